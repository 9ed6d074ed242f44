/* pointer.c -- the address of a value, as a C expression inside a phase.
 *
 *   FIXED(type, AT)            r->fixed + AT
 *   LOCAL(type, AT)            t + AT: the thread region
 *   BATCH(type, AT, bytes)     shard + AT + row * bytes: the rows of this chunk
 *   PARTIAL(type, AT, bytes)   shard + AT + slice * bytes: the sum of this slice
 *   SAMPLES(type, AT)          --kernels=persistent: the buffer with the samples of this step
 */
#include "emit/writer.h"
#include "ir/target.h"
#include "ops/scan.h"
#include <string.h>

const char *pointer_half(Half h)
{
    static const char *const name[] = {[HALF_BF16] = "Bf16", [HALF_F16] = "F16"};
    return name[h];
}

const char *pointer_to_row(Writer *w, const Node *n)
{
    const char *at = pointer_to(w, n);
    return n->op->flags & OP_KNOWN
               ? arena_printf(w->arena, "%s + number * %lld", at, (long long)shape_count(&n->shape))
               : at;
}

const char *pointer_type(const Node *n)
{
    return n->dtype == DT_U8    ? "uint8_t"
           : n->half            ? pointer_half(n->half)
           : n->dtype == DT_I32 ? "int32_t"
                                : "real";
}

static int64_t element_bytes(const Writer *w, const Node *n)
{
    return node_number_bytes(n, dtype_bytes(w->in->dtype));
}

int64_t pointer_bytes(const Writer *w, const Node *n)
{
    return node_reals(n) * element_bytes(w, n);
}

int64_t pointer_slice_bytes(const Writer *w, const Node *n)
{
    const Step *s = w->g->step;

    for (int i = 0; i < s->nbuffer; i++)
        if (s->buffer[i].node == n)
            return s->buffer[i].bytes / s->slices;
    return 0;
}

/* The address at which the buffer of n begins. */
static const char *begin_of(Writer *w, const Node *n)
{
    const Node *b = node_root(n);
    const char *type = pointer_type(n), *at = name_of(w, b);

    if (b == w->samples)
        return arena_printf(w->arena, "SAMPLES(%s, %s)", type, at);
    switch (b->place) {
    case PLACE_FIXED:
        return arena_printf(w->arena, "FIXED(%s, %s)", type, at);
    case PLACE_LOCAL:
        return arena_printf(w->arena, "LOCAL(%s, %s)", type, at);
    case PLACE_BATCH:
        return arena_printf(w->arena, "BATCH(%s, %s, %lld)", type, at,
                            (long long)pointer_bytes(w, b));
    case PLACE_PARTIAL:
        return arena_printf(w->arena, "PARTIAL(%s, %s, %lld)", type, at,
                            (long long)pointer_slice_bytes(w, b));
    default:
        return "NULL";
    }
}

/* The node whose bytes a view shows under another shape; n itself if it is no view. */
static const Node *shown(const Node *n)
{
    while (n->op->flags & OP_VIEW && !n->within)
        n = n->in[0];
    return n;
}

/* Reals between two steps, if n is a step of a sequence in layout TIME or lies in such a step; else
 * 0. */
static int64_t step_reals(const Writer *w, const Node *n)
{
    int64_t start;
    n = node_frame(shown(n), &start);
    const bool step = n->within || scan_in_place(n);
    return step ? shape_count(&n->shape) * w->g->step->chunk : 0;
}

/* Buffers begin at multiples of 64 bytes, so only offsets reduce the alignment. */
int64_t pointer_align(const Writer *w, const Node *n)
{
    int64_t start = 0, align = 64;
    const int64_t step = step_reals(w, n);

    node_frame(shown(n), &start);
    while ((step * element_bytes(w, n)) % align || (start * element_bytes(w, n)) % align)
        align /= 2;
    return align;
}

bool pointer_is_sum(const Writer *w, const Node *n)
{
    return op_is_sum(n) && target_of(w->in->options).whole_shards;
}

bool pointer_is_whole(const Writer *w, const Node *n)
{
    int64_t start = 0;
    node_frame(shown(n), &start);
    return !pointer_is_sum(w, n) && !step_reals(w, n) && start == 0;
}

const char *pointer_to(Writer *w, const Node *n)
{
    int64_t start;
    if (pointer_is_sum(w, n))
        return arena_printf(w->arena, "(real *)(shard + %s)", name_of(w, node_root(n->in[0])));
    const int64_t step = step_reals(w, n);
    if (step) {
        const Node *f = node_frame(shown(n), &start), *in = f->within ? f->within : f->in[0];
        const char *from = start ? arena_printf(w->arena, " + %lld", (long long)start) : "";
        const char *place = scan_place(w->arena, in);
        return arena_printf(w->arena,
                            strcmp(place, "step") ? "%s + (%s) * %lld%s" : "%s + %s * %lld%s",
                            begin_of(w, n), place, (long long)step, from);
    }
    node_frame(shown(n), &start);
    if (start > 0)
        return arena_printf(w->arena, "%s + %lld", begin_of(w, n), (long long)start);
    return begin_of(w, n);
}
