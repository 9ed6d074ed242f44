/* near.c -- see near.h.  Levenshtein's distance, by dynamic programming over the rows of the table.
 */
#include "base/near.h"
#include <string.h>

int near_distance(const char *a, const char *b)
{
    enum { LONG = 40 };
    int row[LONG + 1];
    const int n = (int)strlen(b);
    if (n > LONG || strlen(a) > LONG)
        return LONG;
    for (int k = 0; k <= n; k++)
        row[k] = k;
    for (int i = 0; a[i]; i++) {
        int corner = row[0]++;
        for (int k = 1; k <= n; k++) {
            const int change = corner + (a[i] != b[k - 1]);
            corner = row[k];
            const int shift = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
            row[k] = change < shift ? change : shift;
        }
    }
    return row[n];
}

int near_most(size_t n)
{
    return n < 3 ? 2 : n < 5 ? 3 : 4;
}
