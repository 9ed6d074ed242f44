/* kernel.c -- writes each distinct kernel once: a static function with pointers as parameters,
 * around an always-inlined kernel of the runtime.
 *
 * Two layers of the same sizes, or training and evaluation, call the same function: the C compiler
 * specialises it once.
 */
#include "cpu/parts.h"
#include "ops/scan.h"
#include "ops/step_price.h"
#include <string.h>

typedef struct Signature {
    Text params, args, inner;
    int letters;
    bool rt, first, unit, seen, step;
} Signature;

static void sign_comma(Text *t)
{
    if (t->len)
        text_add(t, ", ");
}

/* Adds a pointer.  Its name is y for the result, side for the second result, and a, b, c ... for
 * the inputs in order. */
static void sign_pointer(Writer *w, Signature *s, const Node *n, CallArgKind kind)
{
    const char letter[2] = {(char)('a' + s->letters), 0};
    const char *name = kind == CALL_OUT ? "y" : kind == CALL_SIDE ? "side" : letter;

    if (kind == CALL_IN)
        s->letters++;
    sign_comma(&s->params), sign_comma(&s->args), sign_comma(&s->inner);
    text_printf(&s->params, "%s%s *%s", kind == CALL_IN ? "const " : "", pointer_type(n), name);
    text_add(&s->args, pointer_to(w, n));
    if (n->op->flags & OP_KNOWN) /* the row of the current shard */
        text_printf(&s->args, " + number * %lld", (long long)shape_count(&n->shape));
    text_add(&s->inner, name);
}

/* Adds a constant that the kernel reads through a pointer: an array of the size of the chunk,
 * inside the kernel. */
static void add_const(Writer *w, Signature *s, Text *body, const Node *n)
{
    const int64_t count = shape_count(&n->shape) * (n->shape.batched ? w->g->step->chunk : 1);

    text_printf(body, "    static const real k%d[%lld] = {[0 ... %lld] = %.17g};\n", s->letters,
                (long long)count, (long long)count - 1, node_float(n, "value"));
    sign_comma(&s->inner);
    text_printf(&s->inner, "k%d", s->letters++);
}

static void sign_literal(Signature *s, const char *text)
{
    sign_comma(&s->inner);
    text_add(&s->inner, text);
}

/* Adds a value that is known only at run time: an argument, and a parameter of the kernel if it has
 * none for this value yet. */
static void sign_given(Signature *s, CallArgKind kind, const char *text)
{
    const struct {
        CallArgKind kind;
        const char *text, *param, *arg;
        bool *seen;
    } given[] = {{CALL_RT, "r", "const Rt *r", "r", &s->rt},
                 {CALL_SCORED, "r->scored", "const Rt *r", "r", &s->rt},
                 {CALL_FIRST, "first", "int first", "first", &s->first},
                 {CALL_SEEN, "seen", "int seen", "row - slice * SLICE", &s->seen},
                 {CALL_UNIT, "unit", "int unit", "unit", &s->unit},
                 {CALL_STEP, text, "int step", "step", &s->step}};
    size_t i = 0;

    while (given[i].kind != kind)
        i++;
    sign_literal(s, given[i].text);
    if (*given[i].seen)
        return;
    *given[i].seen = true;
    sign_comma(&s->params), sign_comma(&s->args);
    text_add(&s->params, given[i].param);
    text_add(&s->args, given[i].arg);
}

/* Adds all parts of a sum: address of the first part, bytes to the next part, number of parts. */
static void sign_sums(Writer *w, Signature *s, const Node *n)
{
    const Node *root = node_root(n);
    const bool known = n->op->flags & OP_KNOWN;

    sign_comma(&s->params), sign_comma(&s->args), sign_comma(&s->inner);
    text_add(&s->params, "const char *sums");
    text_printf(&s->args, "%s + %s", known ? "r->fixed" : "shard", name_of(w, root));
    text_printf(&s->inner, "sums, %lld, %lld", (long long)pointer_slice_bytes(w, root),
                (long long)(known ? 1 : w->g->step->slices));
}

static const Node *side_of(const Writer *w, const Node *n)
{
    for (int i = 0; i < w->g->nnode; i++)
        if (node_is(w->g->node[i], "side") && w->g->node[i]->in[0] == n)
            return w->g->node[i];
    return NULL;
}

static Statement call_of_kernel(Writer *w, const Node *n)
{
    Call c = {.arena = w->arena,
              .n = w->g->step->chunk,
              .shards = w->g->step->shards,
              .slices = w->g->step->slices,
              .slice = w->g->step->slice,
              .writes = step_writes_sum(w->g, n, w->in->options),
              .plain = w->in->options->plain || w->in->options->blas,
              .blas = w->in->options->blas};
    Signature s = {.params = text_new(w->arena),
                   .args = text_new(w->arena),
                   .inner = text_new(w->arena)};
    Text body = text_new(w->arena);
    unsigned uses = 0;

    n->op->kernel(n, &c);
    if (!c.fn)
        return (Statement){0};
    for (int i = 0; i < c.narg; i++) {
        const CallArg *a = &c.arg[i];
        const Node *node = a->kind == CALL_SIDE ? side_of(w, n) : a->node;
        uses |= a->sizes && sizes_use_shard(a->sizes) ? USES_SHARD : 0;
        if (a->kind == CALL_PLACE) {
            sign_comma(&s.params), sign_comma(&s.args), sign_comma(&s.inner);
            text_add(&s.params, "int64_t at");
            text_add(&s.args, a->text);
            text_add(&s.inner, "at");
        } else if (a->kind == CALL_SCRATCH) {
            sign_comma(&s.params), sign_comma(&s.args), sign_comma(&s.inner);
            text_add(&s.params, "real *room");
            text_printf(&s.args, "OWN(real, %sSCRATCH)", w->prefix);
            text_add(&s.inner, "room");
        } else if (call_literal(w->arena, a, false)) {
            sign_literal(&s, call_literal(w->arena, a, false));
        } else if (a->kind >= CALL_RT) {
            sign_given(&s, a->kind, a->text);
        } else if (a->kind == CALL_SUMS) {
            sign_sums(w, &s, node);
        } else if (!node) { /* nothing reads the second result */
            sign_literal(&s, "NULL");
        } else if (node_is(node, "const")) {
            add_const(w, &s, &body, node);
        } else {
            sign_pointer(w, &s, node, a->kind);
        }
    }
    if (n->op->flags & OP_PACK) { /* threads share the packing */
        sign_given(&s, CALL_UNIT, NULL);
        sign_literal(&s, PREPARE_UNITS_TEXT);
    }
    text_printf(&body, "    %s(%s);\n", c.fn, s.inner.s);
    const int before = w->nkernel;
    const char *name = kernel_define_using(w, uses, c.fn, s.params.s, body.s);
    if (w->nkernel > before && !c.plain)
        w->kernel[before].ways = c.ways;
    return (Statement){name, s.args.s, c.parts && !c.plain};
}

/* The call that loads images: normalises them and, in training, augments them, with the numbers of
 * the recipe as literals. */
static Statement load_of_images(Writer *w, const Node *n, bool augmented)
{
    const bool mean = n->nin > 0;
    Text body = text_new(w->arena);

    text_printf(&body, "    %s(y, r, first, %lld, %s, %s, %s",
                augmented ? "rt_input_augmented" : "rt_input_normalized",
                (long long)w->g->step->chunk, n->layout == LAYOUT_LAST ? "true" : "false",
                mean ? "mean" : "NULL", sizes_text(w->arena, kernel_image(w, n), false));
    if (augmented)
        text_printf(&body, ",\n        %s",
                    sizes_text(w->arena, kernel_augment(w, &w->g->recipe.augment), false));
    text_add(&body, ");\n");
    return (Statement){kernel_define(w, augmented ? "rt_input_augmented" : "rt_input_normalized",
                                     mean ? "real *y, const Rt *r, int first, const real *mean"
                                          : "real *y, const Rt *r, int first",
                                     body.s),
                       arena_printf(w->arena, "%s, r, first%s%s", pointer_to(w, n),
                                    mean ? ", " : "", mean ? pointer_to(w, n->in[0]) : ""),
                       true};
}

/* The call that loads the samples or labels of a chunk from the data, by the index of the batch. */
static Statement load_of_input(Writer *w, const Node *n)
{
    const Shape *s = &n->shape;
    const int64_t c = s->rank == 3 ? s->dim[0] : 1, all = shape_count(s);

    if (node_is(n, "label"))
        return (Statement){"rt_labels",
                           arena_printf(w->arena, "%s, r, first, CHUNK, %lld", pointer_to(w, n),
                                        (long long)all),
                           false};
    if (n->dtype == DT_I32)
        return (Statement){"rt_tokens",
                           arena_printf(w->arena, "%s, r, first, CHUNK, %lld", pointer_to(w, n),
                                        (long long)all),
                           false};
    const bool augmented = w->g->training && w->g->recipe.augment.given;
    if (augmented || w->g->recipe.resize || w->g->recipe.normalize.kind != NORM_NONE)
        return load_of_images(w, n, augmented);
    return (Statement){"rt_input",
                       arena_printf(w->arena, "%s, r, first, CHUNK, %lld, %lld, %s",
                                    pointer_to(w, n), (long long)c, (long long)(all / c),
                                    n->layout == LAYOUT_LAST ? "true" : "false"),
                       true};
}

Statement kernel_statement(Writer *w, const Node *n)
{
    if (node_is(n, "input") || node_is(n, "label"))
        return load_of_input(w, n);
    if (n->op->flags & OP_ELEMENTWISE || node_is(n, "bias"))
        return loop_statement(w, n);
    if (node_is(n, "sum_to") || node_is(n, "amax_to"))
        return loop_sum(w, n);
    if (n->op->move)
        return move_statement(w, n);
    return n->op->kernel ? call_of_kernel(w, n) : (Statement){0};
}
