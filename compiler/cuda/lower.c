/* lower.c -- turns nodes into calls of a GPU program (call.h).
 *
 * An op describes its call as for the plain kernels of processors (ops/call.h); runtime/cuda has a
 * device function with the same name and arguments.  For a sum over samples, the last argument says
 * whether the kernel writes the sum or adds to it. */
#include "cuda/lower.h"
#include "ir/target.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <string.h>

/* Names of the device functions of runtime/cuda: the names of kernels that ops give.  `ordered` has
 * those whose results have an order that other calls can take. */
/* clang-format off */
static const char *const form[] = {
    "global_avg_pool", "resize", "resize_dx", "global_max_pool", "global_max_pool_dx",
    "global_max_pool_last", "global_max_pool_dx_last", "softmax_cross_entropy",
    "softmax_cross_entropy_dx", "softmax_cross_entropy_smooth", "softmax_cross_entropy_dx_smooth",
    "accuracy", "dropout", "dropout_dx", "normal_like", "batch_known", "batch_norm_test",
    "batch_fold", "batch_fold_padded", "batch_fold_bias", "batch_norm_test_then", "embedding",
    "embedding_dw", "one_hot", "mask", "gather", "gather_dx", "layer_norm", "layer_norm_dx",
    "layer_norm_dw", "group_norm", "group_norm_dx", "attention", "attention_dx", "rotary",
    "sinusoidal", "softmax", "softmax_dx", "softmax_causal", "softmax_along", "softmax_dx_along",
    "cumsum", "argmax", "sigmoid_cross_entropy", "sigmoid_cross_entropy_dx",
    "sigmoid_cross_entropy_numbers", "sigmoid_cross_entropy_numbers_dx",
    "sigmoid_cross_entropy_numbers_dt", "numbers_accuracy", "mask_overlap", "mask_union",
    "binary_accuracy", "mse", "mse_dx", "l2", "l2_dx", "l1", "l1_dx", "huber", "huber_dx",
    "accuracy_each", "softmax_cross_entropy_each", "softmax_cross_entropy_weighted_each",
    "softmax_cross_entropy_dx_weighted_each", "softmax_cross_entropy_smooth_each",
    "softmax_cross_entropy_dx_each", "softmax_cross_entropy_dx_smooth_each", "scan_copy",
    "scan_item", "scan_put", "scan_save", "matmul", "convert", "convert_padded", "hwc_from_chw",
    "chw_from_hwc", "global_avg_pool_last", "global_avg_pool_dx_last", "dropout_last",
    "dropout_dx_last", "loss_scale"
};

/* walked: a bit for each operand that the order covers.  packs: if channels are innermost, threads
 * take packs of adjacent channels (batch_norm.cuh, pool.cuh), an order that no other call can
 * have. */
typedef struct OrderedForm {
    const char *name;
    Walk walk;
    unsigned walked;
    bool packs;
} OrderedForm;
static const OrderedForm ordered[] = {
    {"dense", WALK_RESULTS, 1, false},          {"conv2d", WALK_RESULTS, 1, false},
    {"dense_dx", WALK_RESULTS, 1, false},       {"conv2d_dx", WALK_RESULTS, 1, false},
    {"dense_dw", WALK_RESULTS, 1, false},       {"conv2d_dw", WALK_RESULTS, 1, false},
    {"max_pool", WALK_EACH, 1, true},           {"max_pool_dx", WALK_EACH, 1, true},
    {"avg_pool", WALK_EACH, 1, false},          {"avg_pool_dx", WALK_EACH, 1, false},
    {"batch_total", WALK_EACH, 3, false},       {"global_avg_pool_dx", WALK_EACH, 1, false},
    {"batch_norm", WALK_EACH, 3, true},         {"batch_norm_then", WALK_EACH, 3, true},
    {"batch_norm_dx", WALK_EACH, 7, true},      {"batch_norm_dw", WALK_CHANNELS, 8, false},
    {"batch_moments", WALK_CHANNELS, 1, false}, {"batch_statistics", WALK_CHANNELS, 3, false}
};
/* clang-format on */

static const OrderedForm *ordered_form(const char *name)
{
    for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++)
        if (!strcmp(ordered[i].name, name))
            return &ordered[i];
    return NULL;
}

static bool has_form(const char *name)
{
    for (size_t i = 0; i < sizeof form / sizeof *form; i++)
        if (!strcmp(form[i], name))
            return true;
    return ordered_form(name) != NULL;
}

/* ------------------------------------------------------------------------------- arguments */

/* Adds a pointer: y for the result; a, b, c ... for the inputs in order.  A constant is always a
 * literal. */
static void lower_value(Writer *w, CudaCall *c, const Node *n, bool out, char *letter)
{
    const char *const name = out ? "y" : arena_printf(w->arena, "%c", (*letter)++);

    if (n->op->leaf == LEAF_CONST) {
        cuda_give(w, c,
                  TEXT(arena_printf(w->arena, "Constant{(real)%.17g}", node_float(n, "value"))));
        return;
    }
    cuda_give(w, c, POINTER(name, n, pointer_to_row(w, n), out));
}

/* Adds a pointer to the sums of a shard, or to the known sums of all shards.  A shard is one slice,
 * so the arguments about slices are omitted. */
static void lower_sums_argument(Writer *w, CudaCall *c, const Node *n)
{
    const Node *root = node_root(n);
    const char *at = n->op->flags & OP_KNOWN ? "FIXED(real, %s)" : "(real *)(shard + %s)";
    at = arena_printf(w->arena, at, name_of(w, root));
    cuda_give(w, c, POINTER("sums", root, at, false));
}

/* Adds a value that is known only at run time: a parameter of the kernel, unless it has this
 * parameter already. */
static void lower_given(Writer *w, CudaCall *c, const CallArg *arg)
{
    const bool step = arg->kind == CALL_STEP;
    const Given param = arg->kind == CALL_FIRST ? FIRST
                        : step                  ? PARAM("int ", "step", "step")
                                                : RT_HOST;
    const char *inner = arg->kind == CALL_SCORED     ? "r->scored"
                        : arg->kind == CALL_WEIGHTED ? "r->weighted"
                        : step                       ? arg->text
                                                     : param.arg.name;
    bool seen = false;

    for (int i = 0; i < c->narg; i++)
        seen |= c->arg[i].type && !strcmp(c->arg[i].type, param.arg.type) &&
                !strcmp(c->arg[i].name, param.arg.name);
    cuda_give(w, c, seen ? TEXT(inner) : param);
    c->arg[c->narg - 1].inner = inner;
}

static void lower_argument(Writer *w, CudaCall *c, const CallArg *arg, char *letter)
{
    switch (arg->kind) {
    case CALL_OUT:
    case CALL_IN:
    case CALL_SIDE:
        lower_value(w, c, arg->node, arg->kind == CALL_OUT, letter);
        break;
    case CALL_SUMS:
        lower_sums_argument(w, c, arg->node);
        break;
    case CALL_NULL:
        cuda_give(w, c, TEXT("nullptr"));
        break;
    case CALL_TEXT:
        cuda_give(w, c, ARGUMENT(.inner = arg->text, .counts = true));
        break;
    case CALL_SIZES:
        cuda_give(w, c, SIZES(arg->sizes));
        break;
    case CALL_RT:
    case CALL_SCORED:
    case CALL_WEIGHTED:
    case CALL_FIRST:
    case CALL_STEP:
        lower_given(w, c, arg);
        break;
    case CALL_OFFSET: /* only in programs for processors */
    case CALL_SCRATCH:
    case CALL_SEEN:
    case CALL_UNIT:
        break;
    }
}

/* ------------------------------------------------------------------------------- orders */

static void set_order(Writer *w, CudaCall *c, Order o, unsigned walked)
{
    for (int i = 0; i < c->noperand; i++)
        c->operand[i].walked = walked >> i & 1;
    cuda_give_natural(w, c, o);
}

/* Whether each pixel is in exactly one window, and no window reaches outside of the image. */
static bool windows_apart(const Sizes *p)
{
    const int64_t r = sizes_get(p, "r"), s = sizes_get(p, "s");
    return r == sizes_get(p, "stride_h") && s == sizes_get(p, "stride_w") &&
           !sizes_get(p, "pad_h") && !sizes_get(p, "pad_w") &&
           sizes_get(p, "oh") * r == sizes_get(p, "h") &&
           sizes_get(p, "ow") * s == sizes_get(p, "w");
}

/* Gives a copy y = x the order of an elementwise loop; x or y can be an element of a sequence. */
static void order_scan(Writer *w, CudaCall *c, const Node *n)
{
    const bool item = !strcmp(c->form, "scan_item"), put = !strcmp(c->form, "scan_put"),
               copy = !strcmp(c->form, "scan_copy");
    const Node *x = n->in[0];

    if (w->cuda->list->persistent || !(item || put || copy) || node_is(x, "const"))
        return;
    set_order(w, c, (Order){.walk = WALK_EACH, .count = cuda_numbers(w, put ? x : n)},
              (unsigned)!put | (unsigned)!item << 1);
    c->follows = c->has_at = true;
}

/* Sets the order of a kernel of runtime/cuda. */
static void order_kernel(Writer *w, CudaCall *c, const Node *n)
{
    const OrderedForm *f = ordered_form(c->form);
    const Sizes *s = cuda_sizes(c);
    const bool pool = !strcmp(c->form, "max_pool_dx") || !strcmp(c->form, "avg_pool_dx");

    if (!f || (f->packs && sizes_get(s, "last") && sizes_get(s, "c") % RT_PACK == 0))
        return;
    Order o = {.walk = f->walk, .count = cuda_numbers(w, n)};
    if (o.walk == WALK_RESULTS)
        o.form = c->form, o.sizes = s;
    if (o.walk == WALK_CHANNELS) /* a mean and a variance for each channel */
        o.count = 2 * n->shape.dim[n->shape.rank - 1];
    set_order(w, c, o, f->walked);
    c->has_at = pool;
    c->pool = pool && windows_apart(s) ? s : NULL;
}

/* ---------------------------------------- calls that ops describe */

static Call call_of(Arena *a, const Graph *g, const Node *n, const Options *o)
{
    Call c = {.arena = a,
              .n = g->step ? g->step->chunk : 1,
              .shards = g->step ? g->step->shards : 1,
              .slices = 1,
              .slice = g->step ? g->step->slice : 1,
              .target = target_of(o)};
    n->op->kernel(n, &c);
    return c;
}

static const Sizes *sizes_of(const Call *call)
{
    for (int i = 0; i < call->narg; i++)
        if (call->arg[i].kind == CALL_SIZES)
            return call->arg[i].sizes;
    return NULL;
}

static CudaCall *lower_form(Writer *w, const Node *n, const char *form, const Call *call)
{
    CudaCall *c = cuda_add(w, form, n);
    char letter = 'a';

    for (int i = 0; i < call->narg; i++)
        lower_argument(w, c, &call->arg[i], &letter);
    if (n->op->flags & OP_SUM && !n->shape.batched)
        cuda_give(w, c, BOOL(step_writes_sum(w->g, n, w->in->options)));
    if (node_is(n, "loss_scale"))
        update_access_scaling(w, c, false);
    order_kernel(w, c, n);
    order_scan(w, c, n);
    return c;
}

/* Adds the call of n.  A form is one kernel, or several kernels one after another with the same
 * arguments. */
static void lower_call(Writer *w, const Node *n)
{
    static const char *const attention[] = {"attention_dx_sums", "attention_dx_keys",
                                            "attention_dx_queries"};

    if (pointer_is_sum(w, n) || library_lower(w, n) || columns_lower(w, n))
        return;
    const Call call = call_of(w->arena, w->g, n, w->in->options);
    if (!call.fn || parts_lower(w, n, sizes_of(&call)) || tokens_lower(w, n, sizes_of(&call)))
        return;
    const bool several = !strcmp(call.fn, "attention_dx");
    for (int k = 0; k < (several ? 3 : 1); k++) {
        CudaCall *c = lower_form(w, n, several ? attention[k] : call.fn, &call);
        c->continues = c->inner_barrier = k > 0;
        /* the epilogue is a call of its own, so no call takes over the order of c */
        if (graph_lower_rest(w, n))
            c->natural = NULL, cuda_give_order(w, c, NULL);
    }
}

/* ------------------------------------------------------------------------------- inputs */

/* Adds the call that loads images: normalises them and, in training, augments them, with the
 * numbers of the recipe as literals. */
static void lower_image(Writer *w, const Node *n, bool augmented)
{
    const int64_t chunk = w->g->step->chunk;
    Sizes *image = kernel_image(w, n);

    if (n->layout == LAYOUT_LAST)
        sizes_bool(image, "last", true);
    if (node_lanes(n))
        sizes_int(image, "lanes", node_lanes(n));
    CudaCall *c = cuda_call(w, kernel_of_image(w, augmented), n, OUT("y", n), RT_HOST, FIRST,
                            NUMBER(chunk), IN("mean", n->nin > 0 ? n->in[0] : NULL), SIZES(image),
                            EACH(chunk * node_reals(n)));
    if (augmented)
        cuda_give(w, c,
                  TEXT(arena_printf(w->arena, "\n        %s",
                                    sizes_text(w->arena, kernel_augment(w, &w->g->recipe.augment),
                                               true))));
}

/* Adds the call that loads a target and moves it with its image. */
static void lower_moved(Writer *w, const Node *n)
{
    const Shape *s = &n->shape;
    const int64_t chunk = w->g->step->chunk, height = s->dim[s->rank - 2],
                  width = s->dim[s->rank - 1], at = node_attr(n, "at") ? node_int(n, "at") : 0;
    const bool label = n->dtype == DT_I32;
    CudaCall *c =
        cuda_call(w, label ? "rt_labels_moved" : "rt_target_moved", n, OUT("y", n), RT_HOST, FIRST,
                  NUMBER(chunk), NUMBER(at), EACH(chunk * shape_count(s)));
    if (!label)
        cuda_give(w, c, NUMBER(shape_count(s) / (height * width)));
    cuda_give(w, c, NUMBER(height));
    cuda_give(w, c, NUMBER(width));
    cuda_give(w, c,
              TEXT(arena_printf(w->arena, "\n        %s",
                                sizes_text(w->arena, kernel_augment(w, &w->g->recipe.augment),
                                           true))));
    if (label)
        cuda_give(w, c, NUMBER(node_int(n, "fill")));
    else
        cuda_give(w, c, BOOL(node_int(n, "moved") == MOVED_NEAREST));
}

/* Adds the call that loads a target of a mixture, or the weight of one. */
static void lower_mixed(Writer *w, const Node *n)
{
    const int which = (int)node_int(n, "mixed");
    const int64_t chunk = w->g->step->chunk, *image = w->g->input->shape.dim,
                  at = node_attr(n, "at") ? node_int(n, "at") : 0;
    const bool label = n->dtype == DT_I32, weight = which == MIXED_WEIGHT;
    CudaCall *c = cuda_call(w, kernel_of_mixed(n), n, OUT("y", n), RT_HOST, FIRST, NUMBER(chunk),
                            EACH(chunk * shape_count(&n->shape)));
    if (!weight)
        cuda_give(w, c, NUMBER(at));
    if (!weight && !label)
        cuda_give(w, c, NUMBER(shape_count(&n->shape)));
    cuda_give(w, c, NUMBER(image[1]));
    cuda_give(w, c, NUMBER(image[2]));
    cuda_give(w, c,
              TEXT(arena_printf(w->arena, "\n        %s",
                                sizes_text(w->arena, kernel_augment(w, &w->g->recipe.augment),
                                           true))));
    if (!weight)
        cuda_give(w, c, BOOL(which == MIXED_LESS));
}

/* Adds the call that loads samples or labels from the data in GPU memory, by the index of the
 * batch. */
static void lower_input(Writer *w, const Node *n)
{
    const Recipe *recipe = &w->g->recipe;
    const bool augmented = w->g->training && recipe->augment.given,
               label = n->op->leaf == LEAF_LABEL, tokens = !label && n->dtype == DT_I32;
    if (!label && !tokens && (augmented || recipe->resize || recipe->normalize.kind != NORM_NONE)) {
        lower_image(w, n, augmented);
        return;
    }
    if (w->g->training && node_attr(n, "moved")) {
        lower_moved(w, n);
        return;
    }
    if (label && node_attr(n, "mixed")) {
        lower_mixed(w, n);
        return;
    }
    const int64_t chunk = w->g->step->chunk, lanes = node_lanes(n), *dim = n->shape.dim;
    const bool last = n->layout == LAYOUT_LAST && dim[0] > 1, part = node_attr(n, "part"),
               row = node_attr(n, "at");
    CudaCall *c =
        cuda_call(w,
                  row      ? n->dtype == DT_REAL ? "rt_target_at" : "rt_labels_at"
                  : label  ? n->dtype == DT_REAL ? "rt_target" : "rt_labels"
                  : tokens ? part ? "rt_tokens_part" : "rt_tokens"
                  : part   ? last ? "rt_input_part_last" : "rt_input_part"
                  : lanes  ? "rt_input_padded"
                  : last   ? "rt_input_last"
                           : "rt_input",
                  n, OUT("y", n), RT_HOST, FIRST, NUMBER(chunk),
                  NUMBER(last ? dim[0] : shape_count(&n->shape)), EACH(node_reals(n) * chunk));
    if (last)
        cuda_give(w, c, NUMBER(dim[1] * dim[2]));
    if (lanes)
        cuda_give(w, c, NUMBER(lanes));
    if (part)
        cuda_give(w, c, NUMBER(node_int(n, "part")));
    if (row)
        cuda_give(w, c, NUMBER(node_int(n, "at")));
}

/* ------------------------------------------------------------------------------- any node */

void cuda_lower(Writer *w, const Node *n)
{
    const int before = w->cuda->list->n;

    if (!kernel_needed(n) || library_brings(w, n))
        return;
    if (n->op->leaf == LEAF_INPUT || n->op->leaf == LEAF_LABEL)
        lower_input(w, n);
    else if (n->op->flags & OP_MAP)
        loop_lower(w, n);
    else if (n->op->flags & OP_REDUCE)
        loop_lower_sum(w, n);
    else if (n->op->move)
        move_lower(w, n);
    else if (n->op->kernel)
        lower_call(w, n);
    if (w->cuda->list->n > before)
        w->cuda->list->call[before]->first = true;
}

/* Adds the call that copies metric i to the host. */
static void lower_metric(Writer *w, int i)
{
    const Metric *m = &w->g->metric[i];
    CudaCall *c = cuda_call(w, "rt_metric", NULL, RT_WRITES(MEMORY_METRIC, i, i + 1),
                            PARAM("int ", "unit", "unit"),
                            PARAM("int ", "metric", arena_printf(w->arena, "%d", i)), FIRST,
                            NUMBER(w->g->step->chunk), IN("a", m->node), BLOCKS(1));
    c->metric = i, c->comment = m->name;
    w->cuda->list->needs_barrier = c->needs_barrier, c->needs_barrier = false;
}

void cuda_lower_node(Writer *w, const Node *n)
{
    cuda_lower(w, n);
    for (int i = 0; i < w->g->nmetric; i++)
        if (w->g->metric[i].node == n)
            lower_metric(w, i);
}

/* Adds calls that set sums to 0, for the sums to which several calls add.  Without `backward`, only
 * sums of the forward pass. */
void cuda_clear_sums(Writer *w, int phase, bool backward)
{
    const Step *s = w->g->step;

    for (int i = 0; i < s->nbuffer; i++) {
        const Buffer *b = &s->buffer[i];
        if (b->place != PLACE_PARTIAL || b->first != phase || (!backward && b->node->backward) ||
            step_writes_sum(w->g, b->node, w->in->options))
            continue;
        CudaCall *c =
            cuda_call(w, w->cuda->list->persistent ? "clear_stage" : "rt_cuda_clear", NULL,
                      DIRECT(b->node, true), NUMBER(b->bytes), EACH(b->bytes / cuda_real_bytes(w)));
        c->kind = KIND_LIBRARY;
        if (!w->cuda->list->persistent)
            c->times = 0; /* it is not a launch of a kernel of Tenon */
    }
}

/* ---------------------------------------- nodes without a form */

/* kernel: the device function that is missing; NULL: a reason other than its name. */
static bool missing(const Node *n, const char *what, const char *kernel, Diag *d)
{
    diag_error(d, n->span, "%s has no CUDA form yet", what);
    if (kernel)
        diag_note(d, "compiler/cuda/lower.c does not list a kernel %s", kernel);
    diag_help(d, "programs for the processor have it: leave out --target cuda");
    return false;
}

static bool node_able(const Graph *g, const Node *n, const Options *o, Diag *d)
{
    if (n->op->leaf || !kernel_needed(n) || n->op->flags & (OP_MAP | OP_REDUCE) || n->op->move)
        return true;
    if (node_is(n, "attention")) {
        const int64_t size = n->shape.dim[1] / node_int(n, "heads");
        if (size < 2 || size > GPU_HEAD_MAX)
            return missing(n,
                           arena_printf(g->arena, "%s of heads of %lld feature%s",
                                        op_written(g->arena, n), (long long)size,
                                        size == 1 ? "" : "s"),
                           NULL, d);
    }
    const Call c = n->op->kernel ? call_of(g->arena, g, n, o) : (Call){0};
    if (n->op->kernel && (!c.fn || has_form(c.fn)))
        return true;
    return missing(n, op_written(g->arena, n), c.fn, d);
}

static bool graph_able(const Graph *g, const Options *o, Diag *d)
{
    bool able = true;
    /* one message for an op without a form, not for its gradients */
    for (int backward = 0; able && backward < 2; backward++)
        for (int i = 0; i < g->nnode; i++)
            if (g->node[i]->backward == backward)
                able &= node_able(g, g->node[i], o, d);
    return able;
}

bool cuda_able(const Graph *train, const Graph *test, const Options *o, Diag *d)
{
    if (!graph_able(train, o, d) || !graph_able(test, o, d))
        return false;
    for (int i = 0; i < train->step->nsum; i++) {
        const Sum *s = &train->step->sum[i];
        const bool average = node_is(s->root, "batch_moments") && train->step->fused_update;
        if (!s->param && !(s->update ? average : s->total))
            return missing(s->root,
                           arena_printf(train->arena, "the running average of this %s",
                                        op_written(train->arena, s->root)),
                           NULL, d);
    }
    return true;
}
