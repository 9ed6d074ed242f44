/* batch_norm.c -- normalises each channel over the samples of a shard.
 *
 *   y = (x - mean) rstd w + b         mean, rstd = 1 / sqrt(var + epsilon) of each channel, over
 *                                     samples and positions of a shard (sync: of the batch)
 *   dw = sum of dy (x - mean) rstd    db = sum of dy
 *   dx = w rstd (dy - db / n - (x - mean) rstd dw / n)      n numbers a channel
 *
 *   x, y (N, C, H, W) or (N, F)       w, b, running mean and variance (C)
 *
 * In a training graph the layer has four nodes: batch_moments, the sums over samples of a slice;
 * batch_statistics, mean and rstd from the sums of all slices; batch_norm, after the next barrier;
 * batch_record, which updates the running averages (emitters write its call).  With sync,
 * batch_known follows each sum; it holds the sums of all shards of the batch, and ranks exchange
 * these sums.  Evaluation uses batch_norm_test, which reads the averages.  `momentum` is the share
 * of the old average in the new one.  The variance is biased in y and unbiased in the average.
 *
 * Source: Ioffe & Szegedy 2015, "Batch normalization: accelerating deep network training by
 * reducing internal covariate shift".
 */
#include "ops/check.h"
#include "ops/elementwise.h"
#include "ops/example.h"

/* Numbers per channel in one sample. */
static int64_t positions(const Shape *x)
{
    return x->rank == 3 ? x->dim[1] * x->dim[2] : 1;
}

static bool check_input(const Node *n, Diag *d)
{
    if (!check_real(n, 0, d))
        return false;
    const Shape *x = &n->in[0]->shape;
    if (x->batched && (x->rank == 1 || x->rank == 3))
        return true;
    diag_error(d, n->span, "batch_norm needs images (N, C, H, W) or vectors (N, F), not %s",
               shape_text(diag_arena(d), x));
    check_note(n, 0, d);
    return false;
}

static bool check_share(const Node *n, const char *key, bool zero, Diag *d)
{
    const double v = node_float(n, key);
    if ((v > 0 || (zero && v == 0)) && v <= 1)
        return true;
    diag_error(d, node_span(n, key), "batch_norm %s = %g is not %s and at most 1", key, v,
               zero ? "at least 0" : "above 0");
    return false;
}

static bool batch_norm_shape(Node *n, Diag *d)
{
    return check_input(n, d) && check_share(n, "momentum", true, d) &&
           check_share(n, "epsilon", false, d) && check_result(n, n->in[0]->shape, d);
}

static Node *kept(Graph *g, Diag *d, const char *path, const char *name, const Shape *c, double v,
                  Span at)
{
    const Init init = {.kind = INIT_CONSTANT, .a = v};
    return graph_param(g, d, arena_printf(g->arena, "%s.%s", path, name), *c, &init, at);
}

/* A running average: stored in checkpoints, never trained. */
static Node *average(Graph *g, Diag *d, const char *path, const char *name, const Shape *c,
                     double v, Span at)
{
    Node *n = kept(g, d, path, name, c, v, at);
    if (n)
        n->param->average = true;
    return n;
}

/* The node from which statistics are computed: `sum` itself; with sync, a batch_known with the sums
 * of all shards. */
static Node *known(Graph *g, Node *sum, const Node *attrs)
{
    const char *op = node_is(sum, "batch_moments") ? "batch_known" : "batch_known_sum";
    return node_bool(attrs, "sync") ? op_make_like(g, op, attrs, 1, sum) : sum;
}

static Node *train(Graph *g, Node *x, Node *w, Node *b, Node *mean, Node *var, const Node *attrs)
{
    Node *m = known(g, op_make(g, "batch_moments", attrs->span, 1, x), attrs);
    Node *t = op_make_like(g, "batch_statistics", attrs, 1, m);
    op_make_like(g, "batch_record", attrs, 3, mean, m, var);
    return op_make_like(g, "batch_norm", attrs, 4, x, w, b, t);
}

static Node *batch_norm_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                              Diag *d)
{
    Node probe = {.op = op_find("batch_norm"), .nin = nx, .in = (Node **)x, .span = attrs->span};
    const int before = g->nparam;
    node_copy_attrs(g, &probe, attrs);
    if (!batch_norm_shape(&probe, d))
        return NULL;
    const Shape c = shape_make(false, "C", x[0]->shape.dim, 1);
    const Span at = attrs->span;
    Node *w = node_bool(attrs, "scale") ? kept(g, d, path, "weight", &c, 1, at)
                                        : graph_const(g, 1, c, at);
    Node *b =
        node_bool(attrs, "shift") ? kept(g, d, path, "bias", &c, 0, at) : graph_const(g, 0, c, at);
    Node *mean = w && b ? average(g, d, path, "running_mean", &c, 0, at) : NULL;
    Node *var = mean ? average(g, d, path, "running_var", &c, 1, at) : NULL;
    if (!var)
        return NULL;
    if (g->nparam < before + 2) {
        diag_error(d, at, "the batch_norm %s is used twice: its averages can follow only one input",
                   path);
        diag_help(d, "give each use a layer of its own");
        return NULL;
    }
    Node *y = g->training ? train(g, x[0], w, b, mean, var, attrs)
                          : op_make_like(g, "batch_norm_test", attrs, 5, x[0], w, b, mean, var);
    y->name = path;
    return y;
}

static void batch_norm_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node *x = n->in[0], *w = n->in[1], *t = n->in[3], like = {.op = n->op, .span = n->span};
    node_set_ints(g, &like, "shape", x->shape.dim, 1);
    node_set_int(g, &like, "batched", 0);
    node_set_string(g, &like, "align", "first");
    Node *db = op_make_like(g, "sum_to", &like, 1, dy);
    Node *dw = op_make(g, "batch_norm_dw", n->span, 3, dy, x, t);
    if (w->param)
        grad_add(gr, w, dw);
    if (n->in[2]->param)
        grad_add(gr, n->in[2], db);
    if (grad_wanted(gr, x))
        grad_add(gr, x,
                 op_make_like(g, "batch_norm_dx", n, 6, dy, x, w, t,
                              op_make_like(g, "batch_total", n, 1, known(g, dw, n)),
                              op_make_like(g, "batch_total", n, 1, known(g, db, n))));
}

static bool batch_norm_shape_pair(Node *n, Diag *d)
{
    const int64_t dim[2] = {2, n->in[0]->shape.dim[0]};
    return check_result(n, shape_make(false, NULL, dim, 2), d);
}

static bool batch_norm_shape_channels(Node *n, Diag *d)
{
    return check_result(n, shape_make(false, "C", n->in[0]->shape.dim, 1), d);
}

static void name(Call *c, const char *fn)
{
    call_kernel(c, fn);
    c->parts = true;
}

static void size_half(Sizes *s, const char *field, const Node *n, const Call *c)
{
    if (c->target.few_half && n && n->half)
        sizes_bool(s, field, true);
}

/* Adds the sizes.  y NULL: the kernel has no y.  If x or y lies within another value, it has the
 * row stride of that value.  On a processor, half_y says whether y or dy has two bytes, and half_r
 * whether a residual or dx has. */
static void size_with(const Node *n, const Node *x, const Node *y, const Node *half_y,
                      const Node *half_r, Call *c)
{
    Sizes *s = sizes_new(c->arena, "BatchNorm");
    sizes_int(s, "n", c->n);
    sizes_int(s, "c", x->shape.dim[0]);
    sizes_int(s, "hw", positions(&x->shape));
    if (x->within)
        sizes_int(s, "ldx", node_row(x));
    if (y && y->within)
        sizes_int(s, "ldy", node_row(y));
    size_half(s, "half_x", x, c);
    size_half(s, "half_y", half_y, c);
    size_half(s, "half_r", half_r, c);
    if (node_attr(n, "last"))
        sizes_bool(s, "last", true);
    call_sizes(c, s);
}

static void size(const Node *n, const Node *x, const Node *y, Call *c)
{
    size_with(n, x, y, y, NULL, c);
}

static void batch_norm_kernel_moments(const Node *n, Call *c)
{
    name(c, "batch_moments");
    call_out(c, n);
    call_in(c, n->in[0]);
    call_given(c, CALL_SEEN);
    size(n, n->in[0], NULL, c);
}

/* Adds the sums to the call: of all slices of the shard; with sync, of all shards of the batch. */
static void sums(const Node *n, Call *c)
{
    const bool sync = node_bool(n, "sync");
    call_sums(c, n->in[0]);
    if (sync)
        call_text(c, "%lld * (int)sizeof(real)", (long long)shape_count(&n->in[0]->shape));
    else
        call_text(c, "0");
    call_text(c, "%lld", (long long)(sync ? c->shards : 1));
}

/* Numbers of a channel that one row of sums covers: those of a slice; with sync, those of a
 * shard. */
static int64_t rows(const Node *moments, const Call *c)
{
    const bool all = node_is(moments, "batch_known");
    const Node *m = all ? moments->in[0] : moments;
    return (all ? c->slices : 1) * c->slice * positions(&m->in[0]->shape);
}

static void batch_norm_kernel_statistics(const Node *n, Call *c)
{
    call_fn(c, "batch_statistics");
    c->parts = true;
    call_out(c, n);
    sums(n, c);
    call_text(c, "%lld", (long long)rows(n->in[0], c));
    call_text(c, "%.17g", node_float(n, "epsilon"));
    call_text(c, "%lld", (long long)n->shape.dim[1]);
}

static void batch_norm_kernel_known(const Node *n, Call *c)
{
    call_fn(c, "batch_known");
    call_out(c, n);
    call_sums(c, n->in[0]);
    call_text(c, "%lld", (long long)rows(n->in[0], c));
    call_text(c, "%lld", (long long)n->shape.dim[1]);
}

/* Adds the sums of the slices of one shard. */
static void batch_norm_kernel_known_sum(const Node *n, Call *c)
{
    call_fn(c, "batch_total");
    call_out(c, n);
    call_sums(c, n->in[0]);
    call_text(c, "0");
    call_text(c, "1");
    call_text(c, "%lld", (long long)n->shape.dim[0]);
}

static void batch_norm_kernel_total(const Node *n, Call *c)
{
    call_fn(c, "batch_total");
    c->parts = true;
    call_out(c, n);
    sums(n, c);
    call_text(c, "%lld", (long long)n->shape.dim[0]);
}

/* Whether another kernel applies an epilogue to the result, too (pass epilogue, for a GPU). */
static bool has_epilogue(const Node *n, int operands, const Call *c)
{
    return !c->target.fuses && (n->nin > operands || node_attr(n, "act"));
}

static void kernel_epilogue(const Node *n, Call *c, const char *fn, int operands)
{
    call_fn(c, fn);
    call_out(c, n);
    for (int i = 0; i < operands; i++)
        call_in(c, n->in[i]);
    call_in(c, n->nin > operands ? n->in[operands] : NULL);
    if (node_is(n, "batch_norm_test"))
        call_text(c, "%.17g", node_float(n, "epsilon"));
    size(n, n->in[0], n, c);
    call_text(c, "%s", node_attr(n, "act") ? "true" : "false");
}

static void batch_norm_kernel(const Node *n, Call *c)
{
    if (has_epilogue(n, 4, c)) {
        kernel_epilogue(n, c, "batch_norm_then", 4);
        return;
    }
    name(c, "batch_norm");
    call_out(c, n);
    for (int i = 0; i < 4; i++)
        call_in(c, n->in[i]);
    if (c->target.fuses) { /* pass fuse adds a fifth input, which is added to the result */
        call_in(c, n->nin > 4 ? n->in[4] : NULL);
        elementwise_call_act(n, c);
    }
    size_with(n, n->in[0], n, n, n->nin > 4 ? n->in[4] : NULL, c);
}

static void batch_norm_kernel_test(const Node *n, Call *c)
{
    if (has_epilogue(n, 5, c)) {
        kernel_epilogue(n, c, "batch_norm_test_then", 5);
        return;
    }
    name(c, "batch_norm_test");
    call_out(c, n);
    for (int i = 0; i < 5; i++)
        call_in(c, n->in[i]);
    if (c->target.fuses)
        elementwise_call_act(n, c);
    call_text(c, "%.17g", node_float(n, "epsilon"));
    size(n, n->in[0], n, c);
}

static void batch_norm_kernel_dw(const Node *n, Call *c)
{
    name(c, "batch_norm_dw");
    call_out(c, n);
    for (int i = 0; i < 3; i++)
        call_in(c, n->in[i]);
    size_with(n, n->in[1], NULL, n->in[0], NULL, c);
}

static void batch_norm_kernel_dx(const Node *n, Call *c)
{
    const int64_t shards = node_bool(n, "sync") ? c->shards : 1;
    name(c, "batch_norm_dx");
    call_out(c, n);
    for (int i = 0; i < 6; i++)
        call_in(c, n->in[i]);
    call_text(c, "%lld", (long long)(shards * c->slices * c->slice * positions(&n->shape)));
    size_with(n, n->in[1], NULL, n->in[0], n, c);
}

#define NORM_ARGS                                                                                  \
    {"momentum", ARG_FLOAT, "0.9", "share that the running averages keep in each step, 0 to 1"},   \
        {"epsilon", ARG_FLOAT, "1e-5", "added to the variance, above 0 and at most 1"},            \
        {"scale", ARG_BOOL, "true", "multiply by a learned number of each channel"},               \
        {"shift", ARG_BOOL, "true", "add a learned number of each channel"},                       \
    {                                                                                              \
        "sync", ARG_BOOL, "false", "take the statistics of the whole batch, not of each shard"     \
    }

const Op op_batch_norm[] =
    {{.name = "batch_norm",
      .brief = "normalises each channel over the samples of a shard",
      .shapes = "x, y (N, C, H, W) or (N, F)   weight, bias, mean, var (C) or (F)",
      .formula =
          "y = (x - mean) r weight + bias   r = 1 / sqrt(var + epsilon)\n"
          "mean, var: of each channel, over the samples and positions of a shard (sync: of the "
          "whole "
          "batch)\n"
          "after each step: average = momentum average + (1 - momentum) value, of mean and of "
          "unbiased var",
      .derivative = "xhat = (x - mean) r   n numbers a channel\n"
                    "dweight = sum of dy xhat\n"
                    "dbias = sum of dy\n"
                    "dx = weight r (dy - dbias / n - xhat dweight / n)",
      .note = "In test, predict and generate the running averages take the place of mean and var. "
              "A shard "
              "must have at least two numbers a channel. Source: Ioffe & Szegedy 2015, \"Batch "
              "normalization: accelerating deep network training by reducing internal covariate "
              "shift\".",
      .arg = {{"x", ARG_TENSOR, NULL, "images (N, C, H, W) or vectors (N, F)"}, NORM_ARGS},
      .flags = OP_SPATIAL,
      .takes = EPILOGUE_ACT | EPILOGUE_RESIDUAL,
      .half = HALF_USE_IN_OUT,
      .half_cpu = HALF_USE_IN_OUT,
      .strided = 1 << 0 | STRIDED_OUT,
      .layer = "norm",
      .shape = batch_norm_shape,
      .build = batch_norm_build,
      .gradient = batch_norm_gradient,
      .kernel = batch_norm_kernel,
      .example = "model example(image: f32[2, 6, 6]) {\n"
                 "    h = conv2d(image, 4, kernel = 3, bias = false) |> batch_norm |> relu\n"
                 "    h = flatten(h) |> dense(5, bias = false) |> batch_norm(momentum = 0.99, "
                 "epsilon = 1e-3)\n"
                 "    return dense(tanh(h), 3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "batch_norm_test",
      .brief = "batch_norm with the running averages",
      .arg = {{"x", ARG_TENSOR, NULL, "the input"},
              {"w", ARG_TENSOR, NULL, "scale"},
              {"b", ARG_TENSOR, NULL, "shift"},
              {"mean", ARG_TENSOR, NULL, "running mean"},
              {"var", ARG_TENSOR, NULL, "running variance"},
              {"r", ARG_TENSOR, "none", "what is added to the result"}},
      .flags = OP_HIDDEN | OP_SPATIAL,
      .takes = EPILOGUE_ACT | EPILOGUE_RESIDUAL,
      .epilogue = EPILOGUE_NORM,
      .half = HALF_USE_IN_OUT,
      .half_cpu = HALF_USE_IN_OUT,
      .strided = 1 << 0 | STRIDED_OUT,
      .shape = check_like_first,
      .kernel = batch_norm_kernel_test},
     {.name = "batch_moments",
      .brief = "mean, and sum of squared distances from it, of each channel",
      .arg = {{"x", ARG_TENSOR, NULL, "the input of batch_norm"}},
      .flags = OP_HIDDEN | OP_SPATIAL | OP_SUM,
      .half = HALF_USE_IN,
      .half_cpu = HALF_USE_IN,
      .strided = 1 << 0,
      .shape = batch_norm_shape_pair,
      .kernel = batch_norm_kernel_moments},
     {.name = "batch_known",
      .brief = "moments of every shard of the batch, known to all ranks",
      .arg = {{"moments", ARG_TENSOR, NULL, "of a shard's slices"}},
      .flags = OP_HIDDEN | OP_KNOWN,
      .shape = check_like_first,
      .kernel = batch_norm_kernel_known},
     {.name = "batch_known_sum",
      .brief = "a sum of every shard of the batch, known to all ranks",
      .arg = {{"sum", ARG_TENSOR, NULL, "of a shard's slices"}},
      .flags = OP_HIDDEN | OP_KNOWN,
      .shape = check_like_first,
      .kernel = batch_norm_kernel_known_sum},
     {.name = "batch_statistics",
      .brief = "mean and 1 / sqrt(variance + epsilon) of a shard",
      .arg = {{"moments", ARG_TENSOR, NULL, "of its slices"}},
      .flags = OP_HIDDEN | OP_TOTAL,
      .shape = check_like_first,
      .kernel = batch_norm_kernel_statistics},
     {.name = "batch_total",
      .brief = "a shard's sum, which the next slice phase reads",
      .arg = {{"sum", ARG_TENSOR, NULL, "of its slices"}},
      .flags = OP_HIDDEN | OP_TOTAL | OP_ADDS,
      .shape = check_like_first,
      .kernel = batch_norm_kernel_total},
     {.name = "batch_record",
      .brief = "the running averages follow the shards' statistics",
      .arg = {{"mean", ARG_TENSOR, NULL, "running mean"},
              {"moments", ARG_TENSOR, NULL, "of the batch"},
              {"var", ARG_TENSOR, NULL, "running variance"}},
      .flags = OP_HIDDEN | OP_UPDATE | OP_ROOT,
      .shape = check_like_first},
     {.name = "batch_norm_dw",
      .brief = "gradient of batch_norm for its scale",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"},
              {"x", ARG_TENSOR, NULL, "the input"},
              {"t", ARG_TENSOR, NULL, "statistics"}},
      .flags = OP_HIDDEN | OP_SPATIAL | OP_SUM,
      .half = HALF_USE_IN,
      .half_cpu = HALF_USE_IN,
      .strided = 1 << 1,
      .shape = batch_norm_shape_channels,
      .kernel = batch_norm_kernel_dw},
     {.name = "batch_norm_dx",
      .brief = "gradient of batch_norm for its input",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"},
              {"x", ARG_TENSOR, NULL, "the input"},
              {"w", ARG_TENSOR, NULL, "scale"},
              {"t", ARG_TENSOR, NULL, "statistics"},
              {"dw", ARG_TENSOR, NULL, "the shard's gradient of the scale"},
              {"db", ARG_TENSOR, NULL, "the shard's gradient of the shift"}},
      .flags = OP_HIDDEN | OP_SPATIAL,
      .half = HALF_USE_IN_OUT,
      .half_cpu = HALF_USE_IN_OUT,
      .strided = 1 << 1,
      .shape = check_like_first,
      .kernel = batch_norm_kernel_dx},
     {0}};
