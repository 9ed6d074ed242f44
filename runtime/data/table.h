/* table.h -- distinct pieces of text, counted, and numbered in the order of their first
 * occurrence. */
#ifndef TABLE_H
#define TABLE_H
#include <stdint.h>

typedef struct Piece {
    const char *bytes;
    int32_t length;
} Piece;

typedef struct Table {
    Piece *piece;   /* by number; bytes are copies of the table's own */
    int64_t *count; /* by number; the caller counts */
    int32_t n, room;
    int32_t *slot; /* [slots]: number + 1, or 0; slots is a power of 2 */
    uint32_t slots;
    struct Store *store; /* the copies, block by block, the latest first */
    int64_t used, left;  /* bytes of the latest block */
} Table;

int32_t table_find(const Table *t, const char *bytes, int32_t length); /* -1: it is not there */
int32_t table_add(Table *t, const char *bytes,
                  int32_t length); /* returns its number; a new piece gets the next number */
void table_free(Table *t);

/* Sorts by count, the largest first, and entries of equal count by their bytes; or by bytes
 * only. */
void table_sort(Table *t, int by_count);
/* Sorts numbers by their value, before all other texts, which are sorted by bytes. */
void table_sort_values(Table *t);

#endif
