/* kernel.c -- writes each distinct kernel once: a static function with pointers as parameters,
 * around an always-inlined kernel of the runtime.
 *
 * Two layers of the same sizes, or training and evaluation, call the same function: the C compiler
 * specialises it once.
 */
#include "cpu/parts.h"
#include "ops/step_price.h"
#include <string.h>

static void push(Writer *w, Arguments *s, Argument a)
{
    ARENA_PUSH(w->arena, s->arg, s->n, a);
}

static void push_literal(Writer *w, Arguments *s, const char *text)
{
    push(w, s, (Argument){.inner = text});
}

void arguments_pointer(Writer *w, Arguments *s, const char *name, const Node *n, bool writes)
{
    const char *type = arena_printf(w->arena, "%s *", pointer_type(n));
    push(w, s,
         (Argument){.type = type,
                    .name = name,
                    .constant = !writes,
                    .value = pointer_to_row(w, n)});
}

/* Adds a constant that the kernel reads through a pointer: the kernel gets an array with the
 * numbers of a chunk. */
static void push_const(Writer *w, Arguments *s, Text *body, const Node *n, int number)
{
    const int64_t count = shape_count(&n->shape) * (n->shape.batched ? w->g->step->chunk : 1);

    text_printf(body, "    static const real k%d[%lld] = {[0 ... %lld] = %.17g};\n", number,
                (long long)count, (long long)count - 1, node_float(n, "value"));
    push_literal(w, s, arena_printf(w->arena, "k%d", number));
}

/* Adds a value that is known only at run time: an argument, and a parameter of the kernel if the
 * kernel has no such parameter yet. */
static void push_given(Writer *w, Arguments *s, CallArgKind kind, const char *text)
{
    const struct {
        CallArgKind kind;
        Argument arg;
    } given[] = {{CALL_RT, {.type = "const Rt *", .name = "r", .value = "r"}},
                 {CALL_SCORED,
                  {.type = "const Rt *", .name = "r", .value = "r", .inner = "r->scored"}},
                 {CALL_WEIGHTED,
                  {.type = "const Rt *", .name = "r", .value = "r", .inner = "r->weighted"}},
                 {CALL_FIRST, {.type = "int ", .name = "first", .value = "first"}},
                 {CALL_SEEN, {.type = "int ", .name = "seen", .value = "row - slice * SLICE"}},
                 {CALL_UNIT, {.type = "int ", .name = "unit", .value = "unit"}},
                 {CALL_STEP, {.type = "int ", .name = "step", .value = "step", .inner = text}}};
    const Argument *a = &given[0].arg;

    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        a = given[i].kind == kind ? &given[i].arg : a;
    for (int i = 0; i < s->n; i++)
        if (s->arg[i].type && !strcmp(s->arg[i].name, a->name)) {
            push_literal(w, s, a->inner ? a->inner : a->name);
            return;
        }
    push(w, s, *a);
}

/* Adds all parts of a sum: address of the first part, bytes to the next part, number of parts. */
static void push_sums(Writer *w, Arguments *s, const Node *n)
{
    const Node *root = node_root(n);
    const bool known = n->op->flags & OP_KNOWN;

    push(w, s,
         (Argument){.type = "const char *",
                    .name = "sums",
                    .value = arena_printf(w->arena, "%s + %s", known ? "r->fixed" : "shard",
                                          name_of(w, root)),
                    .inner = arena_printf(w->arena, "sums, %lld, %lld",
                                          (long long)pointer_slice_bytes(w, root),
                                          (long long)(known ? 1 : w->g->step->slices))});
}

/* "y, a, (Dense){ ... }": the arguments that the kernel passes to the function of the runtime. */
static const char *passed_on(Writer *w, const Arguments *s)
{
    Text t = text_new(w->arena);
    for (int i = 0; i < s->n; i++)
        text_printf(&t, "%s%s", i ? ", " : "", s->arg[i].inner ? s->arg[i].inner : s->arg[i].name);
    return t.s;
}

/* Number of units of a prepare phase.  It is the same in the whole program, because kernels are
 * compiled for it.  A call without work takes about 10 ns, so small networks have few units. */
int kernel_prepare_units(const Writer *w)
{
    const Step *s = w->in->train->step;
    const int64_t packed = s->fixed_bytes - s->parameter_bytes - s->state_bytes;
    return packed < 256 << 10 ? 8 : packed < 4 << 20 ? 64 : 256;
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
              .target = target_of(w->in->options)};
    const bool own = !c.target.textbook; /* neither reference kernels nor those of a library */
    Arguments s = {0};
    Accesses all = {0};
    Text body = text_new(w->arena);
    unsigned uses = 0;
    int letters = 0; /* names of the inputs: a, b, c ... */

    n->op->kernel(n, &c);
    if (!c.fn)
        return (Statement){0};
    for (int i = 0; i < c.narg; i++) {
        const CallArg *a = &c.arg[i];
        const Node *node = a->kind == CALL_SIDE ? side_of(w, n) : a->node;
        uses |= a->sizes && sizes_use_shard(a->sizes) ? USES_SHARD : 0;
        if (node)
            joint_access(w, &all,
                         (Access){node, .written = a->kind == CALL_OUT || a->kind == CALL_SIDE});
        const char *literal = call_literal(w->arena, a, false);
        if (a->kind == CALL_OFFSET)
            push(w, &s, (Argument){.type = "int64_t ", .name = "at", .value = a->text});
        else if (a->kind == CALL_SCRATCH)
            push(w, &s,
                 (Argument){.type = "real *",
                            .name = "room",
                            .value = arena_printf(w->arena, "OWN(real, %sSCRATCH)", w->prefix)});
        else if (literal)
            push_literal(w, &s, literal);
        else if (a->kind >= CALL_RT)
            push_given(w, &s, a->kind, a->text);
        else if (a->kind == CALL_SUMS)
            push_sums(w, &s, node);
        else if (!node) /* nothing reads the second result */
            push_literal(w, &s, "NULL");
        else if (node_is(node, "const"))
            push_const(w, &s, &body, node, letters++);
        else if (a->kind == CALL_IN)
            arguments_pointer(w, &s, arena_printf(w->arena, "%c", 'a' + letters++), node, false);
        else
            arguments_pointer(w, &s, a->kind == CALL_OUT ? "y" : "side", node, true);
    }
    if (n->op->flags & OP_PACK) { /* threads share the packing */
        push_given(w, &s, CALL_UNIT, NULL);
        push_literal(w, &s, arena_printf(w->arena, "%d", kernel_prepare_units(w)));
    }
    text_printf(&body, "    %s(%s);\n", c.fn, passed_on(w, &s));
    const int before = w->nkernel;
    const Signature sign = kernel_signature(w->arena, s.arg, s.n, false);
    const char *name = kernel_define_using(w, uses, c.fn, sign.params.s, body.s);
    if (w->nkernel > before && own)
        w->kernel[before].variants = c.variants;
    return (Statement){name, sign.values.s, c.parts && own, all};
}

/* The operands of a call that reads only the data set and constants. */
static Accesses written_only(Writer *w, const Node *n)
{
    Accesses all = {0};
    joint_access(w, &all, (Access){n, .written = true});
    return all;
}

/* The call that loads images: normalises them and, in training, augments them, with the numbers of
 * the recipe as literals. */
static Statement load_of_images(Writer *w, const Node *n, bool augmented)
{
    const bool mean = n->nin > 0;
    const char *fn = kernel_of_image(w, augmented);
    Text body = text_new(w->arena);

    text_printf(&body, "    %s(y, r, first, %lld, %s, %s, %s", fn, (long long)w->g->step->chunk,
                n->layout == LAYOUT_LAST ? "true" : "false", mean ? "mean" : "NULL",
                sizes_text(w->arena, kernel_image(w, n), false));
    if (augmented)
        text_printf(&body, ",\n        %s",
                    sizes_text(w->arena, kernel_augment(w, &w->g->recipe.augment), false));
    text_add(&body, ");\n");
    return (Statement){kernel_define(w, fn,
                                     mean ? "real *y, const Rt *r, int first, const real *mean"
                                          : "real *y, const Rt *r, int first",
                                     body.s),
                       arena_printf(w->arena, "%s, r, first%s%s", pointer_to(w, n),
                                    mean ? ", " : "", mean ? pointer_to(w, n->in[0]) : ""),
                       true, written_only(w, n)};
}

/* The call of a kernel that loads labels or numbers of samples, with this body. */
static Statement load_statement(Writer *w, const Node *n, const char *fn, const char *body)
{
    const char *params = n->dtype == DT_I32 ? "int32_t *y, const Rt *r, int first"
                                            : "real *y, const Rt *r, int first";
    return (Statement){kernel_define(w, fn, params, body),
                       arena_printf(w->arena, "%s, r, first", pointer_to(w, n)), true,
                       written_only(w, n)};
}

/* The call that loads a target and moves it with its image. */
static Statement load_of_moved(Writer *w, const Node *n)
{
    const Shape *s = &n->shape;
    const int64_t height = s->dim[s->rank - 2], width = s->dim[s->rank - 1],
                  at = node_attr(n, "at") ? node_int(n, "at") : 0;
    const bool label = n->dtype == DT_I32;
    const char *fn = label ? "rt_labels_moved" : "rt_target_moved";
    Text body = text_new(w->arena);

    text_printf(&body, "    %s(y, r, first, %lld, %lld, ", fn, (long long)w->g->step->chunk,
                (long long)at);
    if (!label)
        text_printf(&body, "%lld, ", (long long)(shape_count(s) / (height * width)));
    text_printf(&body, "%lld, %lld,\n        %s, ", (long long)height, (long long)width,
                sizes_text(w->arena, kernel_augment(w, &w->g->recipe.augment), false));
    if (label)
        text_printf(&body, "%lld);\n", (long long)node_int(n, "fill"));
    else
        text_printf(&body, "%s);\n", node_int(n, "moved") == MOVED_NEAREST ? "true" : "false");
    return load_statement(w, n, fn, body.s);
}

/* The call that loads a target of a mixture, or the weight of one. */
static Statement load_of_mixed(Writer *w, const Node *n)
{
    const int which = (int)node_int(n, "mixed");
    const int64_t *image = w->g->input->shape.dim, at = node_attr(n, "at") ? node_int(n, "at") : 0;
    const bool label = n->dtype == DT_I32, weight = which == MIXED_WEIGHT;
    const char *fn = kernel_of_mixed(n);
    Text body = text_new(w->arena);

    text_printf(&body, "    %s(y, r, first, %lld, ", fn, (long long)w->g->step->chunk);
    if (!weight)
        text_printf(&body, "%lld, ", (long long)at);
    if (!weight && !label)
        text_printf(&body, "%lld, ", (long long)shape_count(&n->shape));
    text_printf(&body, "%lld, %lld,\n        %s%s);\n", (long long)image[1], (long long)image[2],
                sizes_text(w->arena, kernel_augment(w, &w->g->recipe.augment), false),
                weight                ? ""
                : which == MIXED_LESS ? ", true"
                                      : ", false");
    return load_statement(w, n, fn, body.s);
}

/* The call that loads the samples or labels of a chunk from the data, by the index of the batch. */
static Statement load_of_input(Writer *w, const Node *n)
{
    const Shape *s = &n->shape;
    const int64_t c = s->rank == 3 ? s->dim[0] : 1, all = shape_count(s);
    const bool label = node_is(n, "label"), tokens = n->dtype == DT_I32,
               part = node_attr(n, "part"), row = node_attr(n, "at"),
               augmented = w->g->training && w->g->recipe.augment.given;
    const char *fn = row      ? tokens ? "rt_labels_at" : "rt_target_at"
                     : label  ? tokens ? "rt_labels" : "rt_target"
                     : tokens ? part ? "rt_tokens_part" : "rt_tokens"
                     : part   ? "rt_input_part"
                              : "rt_input";
    Text t = text_new(w->arena);

    if (!label && !tokens &&
        (augmented || w->g->recipe.resize || w->g->recipe.normalize.kind != NORM_NONE))
        return load_of_images(w, n, augmented);
    if (w->g->training && node_attr(n, "moved"))
        return load_of_moved(w, n);
    if (label && node_attr(n, "mixed"))
        return load_of_mixed(w, n);
    text_printf(&t, "%s, r, first, CHUNK, ", pointer_to(w, n));
    if (label || tokens)
        text_printf(&t, "%lld", (long long)all);
    else
        text_printf(&t, "%lld, %lld, %s", (long long)c, (long long)(all / c),
                    n->layout == LAYOUT_LAST ? "true" : "false");
    if (part)
        text_printf(&t, ", %lld", (long long)node_int(n, "part"));
    if (row)
        text_printf(&t, ", %lld", (long long)node_int(n, "at"));
    return (Statement){fn, t.s, true, written_only(w, n)};
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
