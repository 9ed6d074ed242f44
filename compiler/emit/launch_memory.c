/* launch_memory.c -- what memory the launches of a step want on a GPU.
 *
 * Values that live at the same time must not share bytes.  The largest are placed first, each as low as it fits: close to the bound in
 * networks of layers, where the largest live longest.  A loop over time keeps all that it writes from its first launch to its last.
 */
#include "emit/launch.h"
#include <stdlib.h>

typedef struct Value {
    int64_t bytes, offset;
    int from, to, id; /* launches; node */
} Value;

int64_t launch_fixed(const Graph *train, GpuType t)
{
    int64_t sum = 0;
    for (int i = 0; i < train->nparam; i++) {
        const Param *p = train->param[i];
        const int64_t n = shape_count(&p->file), trained = p->frozen || p->average ? 0 : 1;
        sum += n * (4 + trained * (4 + 4 * train->nstate) + (gpu_bytes(t) < 4 ? 2 : 0));
    }
    return sum;
}

/* ---- when they live */

static void stretch_life(Value *v, int i)
{
    v->from = i < v->from ? i : v->from;
    v->to = i > v->to ? i : v->to;
}

/* A value of a loop lives through all of the loop's launches. */
static void stretch_loop(Value *v, const Launch *launch, int n, const Loop *loop)
{
    for (int i = 0; loop && i < n; i++)
        if (launch[i].node->loop == loop)
            stretch_life(v, i);
}

/* What a launch makes, but parts of a concat, which lie in it.  What samples share is counted with the parameters. */
static int collect_values(Arena *a, const Graph *g, GpuType t, const Launch *launch, int n, Value **out)
{
    int *seat = arena_alloc(a, (size_t)g->next_id * sizeof *seat), count = 0;
    const Node **within = arena_alloc(a, (size_t)g->next_id * sizeof *within);
    Value *value = NULL;
    for (int i = 0; i < n; i++)
        for (int k = 0; launch[i].by == BY_VIEW && k < launch[i].nread; k++)
            within[launch[i].read[k]->id] = launch[i].node;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < launch[i].nwrite; k++) {
            const Node *v = launch[i].write[k];
            const int64_t bytes = (int64_t)launch_bytes(g, t, v);
            if (!v->shape.batched || within[v->id])
                continue;
            ARENA_PUSH(a, value, count,
                       ((Value){.bytes = (bytes + 255) / 256 * 256,
                                .from = i,
                                .to = i,
                                .id = v->id}));
            seat[v->id] = count;
            stretch_loop(&value[count - 1], launch, n, v->loop);
        }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < launch[i].nwrite + launch[i].nread; k++) {
            const Node *v =
                k < launch[i].nwrite ? launch[i].write[k] : launch[i].read[k - launch[i].nwrite];
            while (within[v->id])
                v = within[v->id];
            if (seat[v->id])
                stretch_life(&value[seat[v->id] - 1], i);
        }
    }
    *out = value;
    return count;
}

/* ---- where they lie */

static int compare_sizes(const void *x, const void *y)
{
    const Value *a = x, *b = y;
    return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes) : a->id - b->id;
}

static int by_offset(const void *x, const void *y)
{
    const int64_t a = (*(const Value *const *)x)->offset, b = (*(const Value *const *)y)->offset;
    return (a > b) - (a < b);
}

/* Into the lowest gap between those, of the first n, that live when v does. */
static void place_value(Value *value, int n, Value **beside)
{
    Value *v = &value[n];
    int k = 0;
    for (int i = 0; i < n; i++)
        if (value[i].from <= v->to && v->from <= value[i].to)
            beside[k++] = &value[i];
    qsort(beside, (size_t)k, sizeof *beside, by_offset);
    for (int i = 0; i < k && v->offset + v->bytes > beside[i]->offset; i++) {
        const int64_t end = beside[i]->offset + beside[i]->bytes;
        v->offset = end > v->offset ? end : v->offset;
    }
}

static int64_t most_alive(Arena *a, const Value *value, int count, int launches)
{
    int64_t *change = arena_alloc(a, (size_t)(launches + 1) * sizeof *change), alive = 0, most = 0;
    for (int i = 0; i < count; i++)
        change[value[i].from] += value[i].bytes, change[value[i].to + 1] -= value[i].bytes;
    for (int i = 0; i < launches; i++) {
        alive += change[i];
        most = alive > most ? alive : most;
    }
    return most;
}

int64_t launch_memory(Arena *a, const Graph *train, GpuType t, const Launch *launch, int n,
                      int64_t *bound)
{
    Value *value;
    int64_t end = 0;
    const int count = collect_values(a, train, t, launch, n, &value);
    Value **beside = arena_alloc(a, (size_t)(count + 1) * sizeof *beside);
    if (count)
        qsort(value, (size_t)count, sizeof *value, compare_sizes);
    for (int i = 0; i < count; i++) {
        place_value(value, i, beside);
        end = value[i].offset + value[i].bytes > end ? value[i].offset + value[i].bytes : end;
    }
    *bound = most_alive(a, value, count, n);
    return end;
}
