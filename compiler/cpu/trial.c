/* trial.c -- the C file that times alternatives of kernels for --tune.
 *
 * Each trial calls one kernel.  The kernel rule of the op writes the call, with the sizes and
 * functions of the program.  As in a program, the kernel is a separate function, and the C compiler
 * knows nothing about the memory of its pointers.  runtime/measure/tune.c runs the trials in turn.
 */
#include "cpu/trial.h"
#include "cpu/parts.h"
#include "ops/conv_price.h"

Trials trials_new(Arena *a, const Options *o, const char *dtype, int64_t chunk)
{
    return (Trials){.options = o,
                    .chunk = chunk,
                    .real = dtype_bytes(dtype),
                    .functions = text_new(a),
                    .table = text_new(a)};
}

/* Bytes of the operand x of n.  Filters are packed, except as input of the packing and as
 * gradient. */
static int64_t operand_bytes(const Trials *t, const Node *n, const Node *x)
{
    const Attr *tile = node_attr(n, "winograd");
    const bool packs = node_is(n, "conv2d_pack"), dx = !packs && node_is(n, "conv2d_dx");
    const int64_t each = node_number_bytes(x, t->real);
    int64_t count = shape_count(&x->shape) * (x->shape.batched ? t->chunk : 1);

    if (x->shape.rank == 4 && !packs && !node_is(n, "conv2d_dw"))
        count = conv_packed_count(n, dx, tile ? tile->i : 0, t->options->vector);
    return count * each;
}

/* Takes an offset for operand `index` from the memory that trials read or write.  The operands of a
 * trial have different offsets in a page. */
static int64_t trial_place(int64_t *end, int index, int64_t bytes)
{
    const int64_t at = (*end + 4095) / 4096 * 4096 + index * 192;
    *end = at + bytes + 64;
    return at;
}

/* The parameters of a kernel, the arguments of the trial, and the call inside of the kernel. */
typedef struct Line {
    Text params, args, inner;
    int64_t in, out; /* bytes read and written so far */
    int pointers;
} Line;

static void put_comma(Text *t)
{
    text_add(t, t->len ? ", " : "");
}

static void argument(Trials *t, Line *l, const Node *n, const CallArg *a)
{
    const char *type = a->kind == CALL_SIDE ? "uint8_t" : a->node ? pointer_type(a->node) : "";
    const bool reads = a->kind == CALL_IN;

    put_comma(&l->inner);
    const char *literal = call_literal(t->functions.arena, a, false);
    if (literal) {
        text_add(&l->inner, literal);
        return;
    }
    put_comma(&l->params), put_comma(&l->args);
    text_printf(&l->inner, "p%d", l->pointers);
    text_printf(&l->params, "%s%s *p%d", reads ? "const " : "", type, l->pointers++);
    text_printf(&l->args, "(%s *)(m + %s%lld)", type, reads ? "" : "WRITTEN + ",
                (long long)trial_place(reads ? &l->in : &l->out, l->pointers,
                                       operand_bytes(t, n, a->node)));
}

int trials_add(Trials *t, const Node *n)
{
    Arena *a = t->functions.arena;
    Call c = {.arena = a, .n = t->chunk, .target = target_of(t->options)};
    Line l = {text_new(a), text_new(a), text_new(a), 0, 0, 0};

    n->op->kernel(n, &c);
    for (int i = 0; i < c.narg; i++)
        argument(t, &l, n, &c.arg[i]);
    text_printf(&t->functions,
                "static KERNEL void kernel_%d(%s)\n{\n    %s(%s%s);\n}\n"
                "static void trial_%d(char *m)\n{\n    kernel_%d(%s);\n}\n\n",
                t->n, l.params.s, c.fn, l.inner.s, node_is(n, "conv2d_pack") ? ", 0, 1" : "", t->n,
                t->n, l.args.s);
    text_printf(&t->table, "{trial_%d}, ", t->n);
    t->read = l.in > t->read ? l.in : t->read;
    t->written = l.out > t->written ? l.out : t->written;
    return t->n++;
}

/* Only convolutions have alternatives, so their headers suffice. */
EmitHeaders trials_headers(void)
{
    static const char *header[] = {"rt.h",
                                   "cpu/vec.h",
                                   "cpu/math.h",
                                   "cpu/conv_pool_dw.h",
                                   "cpu/conv_pool_dx.h",
                                   "cpu/conv_pool_forward.h",
                                   "cpu/winograd_dw.h"};
    return (EmitHeaders){header, sizeof header / sizeof *header};
}

static const char KERNELS[] =
    "\n#ifdef __clang__\n#define KERNEL __attribute__((noinline))\n#else\n"
    "#define KERNEL RT_FLATTEN __attribute__((noipa)) /* its callers count as unknown */\n"
    "#endif\n";

/* Written memory begins half a page away from read memory.  If a load and an earlier store have the
 * same offset in a page, the load waits for the store, also without an overlap (4 KB aliasing).
 * This doubled the time of F(2x2, 3x3) backward on x86-64-v3. */
EmitUnit trials_unit(const Trials *t)
{
    const int64_t written = (t->read + 4095) / 4096 * 4096 + 2048;
    EmitUnit u = {.name = "tune"};
    Text includes = text_new(t->functions.arena);

    const EmitHeaders h = trials_headers();
    for (int i = 0; i < h.n; i++)
        emit_include(&includes, &u.headers, h.name[i]);
    u.text = arena_printf(t->functions.arena,
                          "/* made by tenon --tune: kernels to be timed side by side */\n"
                          "%s%senum { WRITTEN = %lld };\n\n%s"
                          "static const RtTrial trial[] = {%s};\n\n"
                          "int main(void)\n{\n"
                          "    const RtProgram p = {.isa = %s, .real_bytes = sizeof(real)};\n"
                          "    return rt_tune(&p, trial, %d, WRITTEN + %lld);\n}\n",
                          includes.s, KERNELS, (long long)written, t->functions.s, t->table.s,
                          isa_name(t->options->cpu), t->n, (long long)t->written);
    return u;
}
