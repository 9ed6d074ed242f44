/* held.c -- a sorted array of ranges of bytes.  An array is fast enough: a region holds few values
 * at a time, and most of them are written in order of addresses. */
#include "passes/held.h"
#include <string.h>

void held_clear(Region *r)
{
    r->n = 0;
}

int held_find(const Region *r, int64_t at)
{
    int low = 0, high = r->n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (r->held[middle].to <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void reserve(Region *r, int n)
{
    if (n <= r->room)
        return;
    const int room = 2 * n + 16;
    Held *held = arena_alloc(r->arena, (size_t)room * sizeof *held);
    if (r->n)
        memcpy(held, r->held, (size_t)r->n * sizeof *held);
    r->held = held, r->room = room;
}

/* Parts of overlapped ranges that lie before h or after h stay. */
void held_put(Region *r, Held h)
{
    if (h.from >= h.to)
        return;
    const int first = held_find(r, h.from);
    int last = first, n = 0;
    Held by[3];
    while (last < r->n && r->held[last].from < h.to)
        last++;
    if (last > first && r->held[first].from < h.from)
        by[n] = r->held[first], by[n++].to = h.from;
    by[n++] = h;
    if (last > first && r->held[last - 1].to > h.to)
        by[n] = r->held[last - 1], by[n++].from = h.to;
    reserve(r, r->n + n);
    memmove(r->held + first + n, r->held + last, (size_t)(r->n - last) * sizeof h);
    memcpy(r->held + first, by, (size_t)n * sizeof h);
    r->n += n - (last - first);
}
