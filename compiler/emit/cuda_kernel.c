/* cuda_kernel.c -- each distinct kernel of a GPU once, and the line that launches it.
 *
 * An op describes its call as for the processor's plain kernels (ops/call.h): runtime/cuda has a device function of
 * the same name and arguments.  Around it stands a __global__ function with literal sizes, so that nvcc specialises
 * it, and `NAME_blocks`, how many blocks of threads that takes.  What is a sum over samples says at the end whether it
 * is written, or added to what other calls have left there.
 */
#include "emit/cuda_stage.h"
#include "ops/step_price.h"
#include <string.h>

/* The functions of runtime/cuda: without _plain, as ops name them. */
static const char *const form[] = {"conv2d",
                                   "conv2d_dx",
                                   "conv2d_dw",
                                   "dense",
                                   "dense_dx",
                                   "dense_dw",
                                   "max_pool",
                                   "max_pool_dx",
                                   "avg_pool",
                                   "global_avg_pool",
                                   "global_avg_pool_dx",
                                   "avg_pool_dx",
                                   "softmax_cross_entropy",
                                   "softmax_cross_entropy_dx",
                                   "softmax_cross_entropy_smooth",
                                   "softmax_cross_entropy_dx_smooth",
                                   "accuracy",
                                   "dropout",
                                   "dropout_dx",
                                   "batch_moments",
                                   "batch_known",
                                   "batch_statistics",
                                   "batch_total",
                                   "batch_norm",
                                   "batch_norm_test",
                                   "batch_fold",
                                   "batch_fold_padded",
                                   "batch_fold_bias",
                                   "batch_norm_then",
                                   "batch_norm_test_then",
                                   "batch_norm_dw",
                                   "batch_norm_dx",
                                   "embedding",
                                   "embedding_dw",
                                   "one_hot",
                                   "mask",
                                   "gather",
                                   "gather_dx",
                                   "layer_norm",
                                   "layer_norm_dx",
                                   "layer_norm_dw",
                                   "attention",
                                   "attention_dx",
                                   "rotary",
                                   "sinusoidal",
                                   "softmax",
                                   "softmax_dx",
                                   "softmax_causal",
                                   "softmax_along",
                                   "softmax_dx_along",
                                   "sigmoid_cross_entropy",
                                   "sigmoid_cross_entropy_dx",
                                   "binary_accuracy",
                                   "mse",
                                   "mse_dx",
                                   "l2",
                                   "l2_dx",
                                   "accuracy_each",
                                   "softmax_cross_entropy_each",
                                   "softmax_cross_entropy_smooth_each",
                                   "softmax_cross_entropy_dx_each",
                                   "softmax_cross_entropy_dx_smooth_each",
                                   "scan_copy",
                                   "scan_item",
                                   "scan_put",
                                   "scan_save",
                                   "matmul",
                                   "convert",
                                   "convert_padded",
                                   "hwc_from_chw",
                                   "chw_from_hwc",
                                   "global_avg_pool_last",
                                   "global_avg_pool_dx_last",
                                   "dropout_last",
                                   "dropout_dx_last",
                                   "loss_scale"};

/* Forms that are more than one launch, all with the same arguments. */
static const struct {
    const char *form, *launch[3];
} stages[] = {{"attention_dx", {"attention_dx_sums", "attention_dx_keys", "attention_dx_queries"}}};

static const char *without_plain(Arena *a, const char *fn)
{
    static const char word[] = "_plain";
    const char *at = strstr(fn, word);
    return at ? arena_printf(a, "%.*s%s", (int)(at - fn), fn, at + strlen(word)) : fn;
}

static bool has_form(const char *fn)
{
    for (size_t i = 0; i < sizeof form / sizeof *form; i++)
        if (!strcmp(form[i], fn))
            return true;
    return false;
}

const char *kernel_launch(Writer *w, const char *base, const char *params, const char *body,
                          const char *args, const char *blocks)
{
    const int before = w->nkernel;
    const char *name = kernel_define(w, base, params, body);

    if (w->nkernel > before)
        w->kernel[before].blocks = blocks;
    for (int i = 0; i < w->nkernel; i++)
        if (!strcmp(w->kernel[i].name, name))
            *(stage_together(w) ? &w->kernel[i].staged : &w->kernel[i].launched) |= !stage_groups(w);
    if (!w->stages)
        return arena_printf(w->arena, "LAUNCH(%s, %s);", name, args);
    if (stage_groups(w))
        return arena_printf(w->arena, "%s_stage(%s);", name, args);
    Text own = text_new(w->arena); /* there already */
    for (const char *there; (there = strstr(args, "r->there")); args = there + strlen("r->there"))
        text_printf(&own, "%.*sr", (int)(there - args), args);
    return arena_printf(w->arena, "%s_stage(%s%s);", name, own.s, args);
}

/* ------------------------------------------------------------------------------- calls that ops describe */

typedef struct Signature {
    Text params, args, inner, sizes;
    int letters;
    bool rt, first, step;
} Signature;

static void comma(Text *t)
{
    if (t->len)
        text_add(t, ", ");
}

static void add_parameter(Signature *s, const char *param, const char *arg)
{
    comma(&s->params), comma(&s->args);
    text_add(&s->params, param);
    text_add(&s->args, arg);
}

/* y: the result; a, b, c ... the inputs in order; a constant is a number everywhere. */
static void add_pointer(Writer *w, Signature *s, const Node *n, bool out)
{
    const char letter[2] = {(char)('a' + s->letters), 0};

    comma(&s->inner);
    if (!out)
        s->letters++;
    if (node_is(n, "const")) {
        text_printf(&s->inner, "Constant{(real)%.17g}", node_float(n, "value"));
        return;
    }
    const char *at = pointer_to(w, n);
    if (n->op->flags & OP_KNOWN) /* the row of the shard at hand */
        at = arena_printf(w->arena, "%s + number * %lld", at, (long long)shape_count(&n->shape));
    add_parameter(s,
                  arena_printf(w->arena, "%s%s *%s", out ? "" : "const ", pointer_type(n),
                               out ? "y" : letter),
                  at);
    text_add(&s->inner, out ? "y" : letter);
}

/* What the host says at each launch. */
static void add_variable(Signature *s, const char *param, const char *arg, bool *seen)
{
    if (!*seen)
        add_parameter(s, param, arg);
    *seen = true;
}

static void add_given(Signature *s, CallArgKind kind, const char *text)
{
    comma(&s->inner);
    if (kind == CALL_RT || kind == CALL_SCORED) {
        text_add(&s->inner, kind == CALL_RT ? "r" : "r->scored");
        add_variable(s, "const Rt *r", "r->there", &s->rt);
    } else if (kind == CALL_FIRST) {
        text_add(&s->inner, "first");
        add_variable(s, "int first", "first", &s->first);
    } else {
        text_add(&s->inner, text);
        add_variable(s, "int step", "step", &s->step);
    }
}

/* A literal, on which the number of blocks may depend. */
static void add_literal(Signature *s, const char *text)
{
    comma(&s->inner), comma(&s->sizes);
    text_add(&s->inner, text);
    text_add(&s->sizes, text);
}

/* What a call takes besides values. */
static void add_other(Writer *w, Signature *s, const CallArg *a)
{
    if (a->kind == CALL_NULL) {
        comma(&s->inner);
        text_add(&s->inner, "nullptr");
    } else if (a->kind == CALL_TEXT) {
        add_literal(s, a->text);
    } else if (a->kind == CALL_SIZES) {
        add_literal(s, sizes_text(w->arena, a->sizes, true));
    } else if (a->kind >= CALL_RT && a->kind != CALL_SEEN) {
        add_given(s, a->kind, a->text);
    }
}

/* What a shard's samples have been added up to, or what is known of every shard of the batch.  A shard is one slice, so the arguments that
 * tell slices apart are left out. */
static void add_sums(Writer *w, Signature *s, const Node *n)
{
    const bool known = n->op->flags & OP_KNOWN;
    comma(&s->inner);
    add_parameter(s, "const real *sums",
                  arena_printf(w->arena, known ? "FIXED(real, %s)" : "(real *)(shard + %s)",
                               name_of(w, node_root(n))));
    text_add(&s->inner, "sums");
}

static Call call_of(Arena *a, const Graph *g, const Node *n)
{
    Call c = {.arena = a,
              .n = g->step ? g->step->chunk : 1,
              .shards = g->step ? g->step->shards : 1,
              .slices = 1,
              .slice = g->step ? g->step->slice : 1,
              .plain = true};
    n->op->kernel(n, &c);
    return c;
}

static const char *launch_of(Writer *w, const char *fn, const Signature *s)
{
    return kernel_launch(w, fn, s->params.s,
                         arena_printf(w->arena, "    %s(%s);\n", fn, s->inner.s), s->args.s,
                         arena_printf(w->arena, "%s_blocks(%s)", fn, s->sizes.s));
}

/* One launch, or those of its stages. */
static const char *launches(Writer *w, const char *fn, const Signature *s)
{
    Text all = text_new(w->arena);
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        for (int k = 0; k < 3 && !strcmp(stages[i].form, fn); k++)
            text_printf(&all, "%s%s%s%s", k ? " " : "", k && stage_together(w) ? stage_meeting(w) : "",
                        k && stage_together(w) ? " " : "", launch_of(w, stages[i].launch[k], s));
    return all.len ? all.s : launch_of(w, fn, s);
}

static const char *call_statement(Writer *w, const Node *n)
{
    Arena *a = w->arena;
    if (pointer_is_sum(w, n))
        return "";
    const char *call = library_statement(w, n);
    if (!call)
        call = columns_statement(w, n);
    if (call)
        return call;
    const Call c = call_of(a, w->g, n);
    Signature s = {.params = text_new(a),
                   .args = text_new(a),
                   .inner = text_new(a),
                   .sizes = text_new(a)};

    if (!c.fn)
        return "";
    for (int i = 0; i < c.narg; i++)
        if (c.arg[i].kind == CALL_SUMS)
            add_sums(w, &s, c.arg[i].node);
        else if (c.arg[i].kind == CALL_OUT || c.arg[i].kind == CALL_IN || c.arg[i].kind == CALL_SIDE)
            add_pointer(w, &s, c.arg[i].node, c.arg[i].kind == CALL_OUT);
        else
            add_other(w, &s, &c.arg[i]);
    if (n->op->flags & OP_SUM && !n->shape.batched)
        text_printf(&s.inner, ", %s", step_writes_sum(w->g, n, w->in->options) ? "true" : "false");
    const char *joined = own_join(w, n, without_plain(a, c.fn), s.sizes.s);
    if (joined)
        return joined;
    stage_kernel(w, n, without_plain(a, c.fn), s.sizes.s);
    const char *walk = stage_pool(w, n, without_plain(a, c.fn), s.sizes.s);
    if (!walk)
        walk = stage_scan(w, n, without_plain(a, c.fn));
    if (walk)
        return kernel_launch(w, arena_printf(a, "%s_behind", without_plain(a, c.fn)), s.params.s,
                             arena_printf(a, "    %s_behind(%s, %s);\n", without_plain(a, c.fn), s.inner.s, walk), s.args.s,
                             stage_order_blocks(a, walk));
    const char *own = launches(w, without_plain(a, c.fn), &s), *rest = graph_rest(w, n);
    return rest ? arena_printf(a, "%s %s", own, rest) : own;
}

/* "(Image){ ... }" as C++ writes it. */
static const char *without_parentheses(Arena *a, const char *literal)
{
    const char *close = strchr(literal, ')');
    return arena_printf(a, "%.*s%s", (int)(close - literal - 1), literal + 1, close + 1);
}

/* Samples normalised, in training augmented: with the recipe's numbers as literals. */
static const char *image_statement(Writer *w, const Node *n, bool augmented)
{
    Arena *a = w->arena;
    const bool mean = n->nin > 0;
    const char *fn = augmented ? "rt_input_augmented" : "rt_input_normalized";
    const long long samples = w->g->step->chunk;
    const char *body =
        arena_printf(a, "    %s(y, r, first, %lld, %s, %s%s%s);\n", fn, samples,
                     mean ? "mean" : "nullptr", without_parentheses(a, kernel_image(w, n)),
                     augmented ? ",\n        " : "",
                     augmented ? without_parentheses(a, kernel_augment(w, &w->g->recipe.augment))
                               : "");
    const char *args = arena_printf(a, "%s, r->there, first%s%s", pointer_to(w, n),
                                    mean ? ", " : "", mean ? pointer_to(w, n->in[0]) : "");
    return kernel_launch(w, fn,
                         arena_printf(a, "%s *y, const Rt *r, int first%s", pointer_type(n),
                                      mean ? ", const real *mean" : ""),
                         body, args,
                         arena_printf(a, "each_blocks(%lld)", samples * (long long)node_reals(n)));
}

/* Samples and labels come from the data in the GPU's memory, by the batch's index. */
static const char *input_statement(Writer *w, const Node *n)
{
    const Recipe *recipe = &w->g->recipe;
    const bool augmented = w->g->training && recipe->augment.given, label = node_is(n, "label"),
               tokens = !label && n->dtype == DT_I32;
    if (!label && !tokens && (augmented || recipe->resize || recipe->normalize.kind != NORM_NONE))
        return image_statement(w, n, augmented);
    const long long all = node_reals(n) * w->g->step->chunk, lanes = node_lanes(n);
    const bool last = n->layout == LAYOUT_LAST && n->shape.dim[0] > 1;
    const char *fn = label    ? "rt_labels"
                     : tokens ? "rt_tokens"
                     : lanes  ? "rt_input_padded"
                     : last   ? "rt_input_last"
                              : "rt_input";
    const char *size =
        last ? arena_printf(w->arena, "%lld, %lld", (long long)n->shape.dim[0],
                            (long long)(n->shape.dim[1] * n->shape.dim[2]))
             : arena_printf(w->arena, "%lld", (long long)shape_count(&n->shape));
    if (lanes)
        size = arena_printf(w->arena, "%s, %lld", size, lanes);
    const char *body = arena_printf(w->arena, "    %s(y, r, first, %lld, %s);\n", fn,
                                    (long long)w->g->step->chunk, size);
    const char *params = arena_printf(w->arena, "%s *y, const Rt *r, int first", pointer_type(n));

    return kernel_launch(w, fn, params, body,
                         arena_printf(w->arena, "%s, r->there, first", pointer_to(w, n)),
                         arena_printf(w->arena, "each_blocks(%lld)", all));
}

const Statements cuda_statements = {input_statement, move_statement, call_statement};

/* ------------------------------------------------------------------------------- what has no form */

static bool missing(const Node *n, const char *what, Diag *d)
{
    diag_error(d, n->span, "%s has no CUDA form yet", what);
    diag_help(d, "programs for the processor have it: leave out --target cuda");
    return false;
}

static bool node_able(const Graph *g, const Node *n, Diag *d)
{
    if (node_is(n, "input") || node_is(n, "label") || !kernel_needed(n) ||
        n->op->flags & OP_ELEMENTWISE || n->op->move || node_is(n, "bias") ||
        node_is(n, "sum_to") || node_is(n, "amax_to"))
        return true;
    if (node_is(n, "attention")) {
        const int64_t size = n->shape.dim[1] / node_int(n, "heads");
        if (size < 2 || size > GPU_HEAD_MAX)
            return missing(n,
                           arena_printf(g->arena, "%s of heads of %lld features",
                                        op_written(g->arena, n), (long long)size),
                           d);
    }
    if (n->op->kernel) {
        const Call c = call_of(g->arena, g, n);
        if (!c.fn || has_form(without_plain(g->arena, c.fn)))
            return true;
    }
    return missing(n, op_written(g->arena, n), d);
}

static bool graph_able(const Graph *g, Diag *d)
{
    bool able = true;
    for (int i = 0; i < g->nnode; i++)
        if (!g->node[i]
                 ->backward) /* a forward op without a form is said once, not for its gradients too */
            able &= node_able(g, g->node[i], d);
    for (int i = 0; able && i < g->nnode; i++)
        able &= node_able(g, g->node[i], d);
    return able;
}

bool emit_cuda_able(const Graph *train, const Graph *test, Diag *d)
{
    if (!graph_able(train, d) || !graph_able(test, d))
        return false;
    for (int i = 0; i < train->step->nsum; i++) {
        const Sum *s = &train->step->sum[i];
        const bool average = node_is(s->root, "batch_moments") && train->step->fused_update;
        if (!s->param && !(s->update ? average : s->total))
            return missing(s->root,
                           arena_printf(train->arena, "the running average of this %s",
                                        op_written(train->arena, s->root)),
                           d);
    }
    return true;
}
