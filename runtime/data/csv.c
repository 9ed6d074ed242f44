/* csv.c -- samples as text: a row a sample, numbers separated by commas; a first line of names is
 * left out. */
#include "data/data.h"
#include "error.h"
#include "memory.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of a line into row[0 .. n-1]; returns how many there are, or -1 where something is
 * no number. */
static int64_t numbers(const char *line, double *row, int64_t n)
{
    int64_t count = 0;
    for (;;) {
        char *end;
        const double v = strtod(line, &end);
        if (end == line)
            return -1;
        if (count < n)
            row[count] = v;
        count++;
        end += strspn(end, " \t\r");
        if (*end == '\n' || *end == 0)
            return count;
        if (*end != ',' && *end != ';')
            return -1;
        line = end + 1;
    }
}

static bool blank(const char *line)
{
    return line[strspn(line, " \t\r\n")] == 0;
}

static void grow(Data *d, int64_t *room)
{
    *room = *room ? 2 * *room : 256;
    d->x = realloc(d->x, (size_t)(*room * d->stride) + MEMORY_SLACK);
    if (!d->x)
        rt_die("out of memory for %lld samples", (long long)*room);
}

void csv_open_input(const RtProgram *p, const char *path, Data *d)
{
    FILE *f = fopen(path, "re");
    if (!f)
        rt_die("%s cannot be opened: %s", path, strerror(errno));
    const int64_t features = data_features(p);
    char *line = NULL;
    size_t size = 0;
    int64_t room = 0;
    d->type = RT_F64;
    d->stride = features * (int64_t)sizeof(double);
    for (int at = 1; getline(&line, &size, f) >= 0; at++) {
        if (blank(line))
            continue;
        if (d->n == room)
            grow(d, &room);
        const int64_t found = numbers(line, (double *)(d->x + d->n * d->stride), features);
        if (found < 0 && at == 1)
            continue;
        if (found < 0)
            rt_die("%s:%d: a row should be numbers separated by commas", path, at);
        if (found != features)
            rt_die("%s:%d: %lld numbers where a sample of %s has %lld", path, at, (long long)found,
                   p->model, (long long)features);
        d->n++;
    }
    free(line);
    fclose(f);
    if (d->n == 0)
        rt_die("%s holds no sample", path);
}
