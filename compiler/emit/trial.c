/* trial.c -- the C file that times alternatives of kernels for --tune.
 *
 * Each trial is a function of one call, written by the op's own kernel rule with the sizes and
 * functions of the program's call; runtime/tune.c lets them take turns.
 */
#include "emit/trial.h"
#include "emit/writer.h"
#include "ops/conv_price.h"
#include <string.h>

Trials trials_new(Arena *a, const Options *o, const char *dtype, int64_t chunk)
{
    return (Trials){.options = o,
                    .chunk = chunk,
                    .real = strcmp(dtype, "f64") ? 4 : 8,
                    .functions = text_new(a),
                    .table = text_new(a)};
}

/* Filters that n reads lie packed, but for the packing itself. */
static int64_t bytes_of(const Trials *t, const Node *n, const Node *x)
{
    const Attr *tile = node_attr(n, "winograd");
    const bool packs = node_is(n, "conv2d_pack"), dx = !packs && node_is(n, "conv2d_dx");
    const int64_t each = x->dtype == DT_U8 ? 1 : x->dtype == DT_I32 ? 4 : t->real;
    int64_t count = shape_count(&x->shape) * (x->shape.batched ? t->chunk : 1);

    if (x->shape.rank == 4 && !packs)
        count = conv_packed_count(n, dx, tile ? tile->i : 0, t->options->vector);
    return count * each;
}

/* A place of its own among what trials read or write; not a multiple of a page from the last. */
static int64_t place(int64_t *end, int64_t bytes)
{
    const int64_t at = *end;
    *end += (bytes + 4096 + 63) / 64 * 64 + 192;
    return at;
}

static void argument(Trials *t, Text *call, const Node *n, const CallArg *a, int64_t *in,
                     int64_t *out)
{
    const bool side = a->kind == CALL_SIDE, reads = a->kind == CALL_IN;
    const char *type = side ? "uint8_t" : a->node ? pointer_type(a->node) : "";

    text_add(call, call->len ? ", " : "");
    if (a->kind == CALL_TEXT)
        text_add(call, a->text);
    else if (reads)
        text_printf(call, "(const %s *)(m + %lld)", type,
                    (long long)place(in, bytes_of(t, n, a->node)));
    else
        text_printf(call, "(%s *)(m + WRITTEN + %lld)", type,
                    (long long)place(out, bytes_of(t, n, a->node)));
}

int trials_add(Trials *t, const Node *n)
{
    Arena *a = t->functions.arena;
    Call c = {.arena = a, .n = t->chunk};
    Text call = text_new(a);
    int64_t in = 0, out = 0;

    n->op->kernel(n, &c);
    for (int i = 0; i < c.narg; i++)
        argument(t, &call, n, &c.arg[i], &in, &out);
    text_printf(&t->functions,
                "static __attribute__((noinline)) void trial_%d(char *m)\n{\n    %s(%s%s);\n}\n\n",
                t->n, c.fn, call.s, node_is(n, "conv2d_pack") ? ", 0, 1" : "");
    text_printf(&t->table, "{trial_%d}, ", t->n);
    t->read = in > t->read ? in : t->read;
    t->written = out > t->written ? out : t->written;
    return t->n++;
}

const char *trials_text(const Trials *t)
{
    return arena_printf(t->functions.arena,
                        "/* made by tenon --tune: kernels to be timed side by side */\n"
                        "#include \"rt.h\"\n#include \"cpu/kernels.h\"\n\nenum { WRITTEN = %lld };\n\n%s"
                        "static const RtTrial trial[] = {%s};\n\n"
                        "int main(void)\n{\n"
                        "    const RtProgram p = {.isa = %s, .real_bytes = sizeof(real)};\n"
                        "    return rt_tune(&p, trial, %d, WRITTEN + %lld);\n}\n",
                        (long long)t->read, t->functions.s, t->table.s, emit_isa(t->options->cpu),
                        t->n, (long long)t->written);
}
