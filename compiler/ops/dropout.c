/* dropout.c -- in training, sets each number to 0 with probability rate, and scales the others
 * so that the mean stays the same.
 *
 *   y[i] = m[i] x[i] / (1 - rate)                     m[i] = 1 with probability 1 - rate, else 0
 *   dx[i] = m[i] dy[i] / (1 - rate)
 *
 * The mask is never stored.  The backward pass draws it again from a counter (seed, purpose,
 * epoch, sample, element), so the mask does not depend on threads, ranks or a resume.  Graphs
 * for evaluation have no dropout.
 *
 * Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from
 * overfitting".
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/price.h"
#include "ops/random.h"

static bool dropout_shape(Node *n, Diag *d)
{
    const double rate = node_float(n, "rate");
    if (!check_real(n, 0, d))
        return false;
    if (rate >= 0 && rate < 1)
        return check_result(n, n->in[0]->shape, d);
    diag_error(d, node_span(n, "rate"), "%s rate is %g, outside 0 <= rate < 1", n->op->name, rate);
    diag_help(d, "rate is the share that is dropped: 0.2 keeps four of five");
    return false;
}

static bool dropout_shape_2d(Node *n, Diag *d)
{
    return check_image(n, 0, d) && dropout_shape(n, d);
}

static Node *dropout_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                           Diag *d)
{
    Node probe = {.op = op_find("dropout"), .nin = nx, .in = (Node **)x, .span = attrs->span};
    (void)path; /* dropout has no parameters */
    node_copy_attrs(g, &probe, attrs);
    if (!dropout_shape(&probe, d))
        return NULL;
    if (!g->training || node_float(attrs, "rate") == 0)
        return x[0];
    random_set_purpose(g, &probe, probe.op);
    return op_make_like(g, "dropout", &probe, 1, x[0]);
}

static void dropout_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "dropout_dx", n, 1, dy));
}

/* `r` and `first`, the batch index of the chunk's first sample, are variables of the generated
 * code. */
static void dropout_call(const Node *n, Call *c, const char *fn)
{
    const bool last = node_attr(n, "last") != NULL;
    const int64_t *chw = n->shape.rank == 3 ? n->shape.dim : n->flat;

    call_fn(c, last ? arena_printf(c->arena, "%s_last", fn) : fn);
    c->parts = !last;
    call_out(c, n);
    call_in(c, n->in[0]);
    call_given(c, CALL_RT);
    call_text(c, "%lld", (long long)node_int(n, "purpose"));
    call_given(c, CALL_FIRST);
    call_text(c, "(real)%.17g", node_float(n, "rate"));
    if (last)
        call_text(c, "%lld, %lld, %lld", (long long)c->n, (long long)chw[0],
                  (long long)(chw[1] * chw[2]));
    else
        call_text(c, "%lld, %lld", (long long)c->n, (long long)shape_count(&n->shape));
}

/* Ten rounds of Philox for four numbers: 13 cycles per number on x86-64-v4, 18 on x86-64-v3. */
static void dropout_price(const Node *n, const Market *m, Price *p)
{
    price_each(p, m, n, 15);
}

static void dropout_kernel(const Node *n, Call *c)
{
    dropout_call(n, c, call_version(c, "dropout"));
}

static void dropout_kernel_dx(const Node *n, Call *c)
{
    dropout_call(n, c, "dropout_dx");
}

/* One factor for each sample and channel, 0 or the scale, multiplies the image. */
static Node *dropout_build_2d(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                              Diag *d)
{
    Node probe = {.op = op_find("dropout2d"), .nin = nx, .in = (Node **)x, .span = attrs->span};
    node_copy_attrs(g, &probe, attrs);
    if (!dropout_shape_2d(&probe, d))
        return NULL;
    const int64_t dim[3] = {x[0]->shape.dim[0], 1, 1};
    Node *one = graph_const(g, 1, shape_make(true, "C", dim, 1), attrs->span);
    Node *mask = dropout_build(g, &one, 1, attrs, path, d);
    if (mask == one)
        return x[0];
    Node like = {.op = op_find("reshape"), .span = attrs->span};
    node_set_ints(g, &like, "shape", dim, 3);
    return op_make(g, "mul", attrs->span, 2, x[0], op_make_like(g, "reshape", &like, 1, mask));
}

const Op op_dropout[] =
    {{.name = "dropout",
      .brief = "in training, sets each number to 0 with probability `rate`",
      .shapes = "x, y (N, ..)",
      .formula = "y[i] = m[i] x[i] / (1 - rate)   m[i] = 0 with probability rate, else 1",
      .derivative = "dx[i] = m[i] dy[i] / (1 - rate)",
      .note = "In test, predict and generate x stays as it is. The mask is not stored: a counter "
              "of seed, "
              "epoch, sample and element generates it again in the backward pass. So it is the "
              "same for any "
              "number of threads and ranks, and after a resume. Source: Srivastava et al. 2014, "
              "\"Dropout: a "
              "simple way to prevent neural networks from overfitting\".",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor of any shape"},
              {"rate", ARG_FLOAT, NULL, "the probability, at least 0 and below 1"}},
      .flags = OP_INPLACE | OP_LITERAL | OP_KEEPS_LAYOUT | OP_TRAINING,
      .half = HALF_USE_IN_OUT,
      .shape = dropout_shape,
      .build = dropout_build,
      .gradient = dropout_gradient,
      .price = dropout_price,
      .kernel = dropout_kernel,
      .example = "model example(x: f32[6]) {\n"
                 "    h = dense(x, 8) |> tanh |> dropout(0.25)\n"
                 "    return dense(h, 3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "dropout2d",
      .brief = "in training, sets whole channels to 0 with probability `rate`",
      .shapes = "x, y (N, C, H, W)",
      .formula = "y[c][..] = m[c] x[c][..] / (1 - rate)   m[c] = 0 with probability rate, else 1",
      .derivative = "dx[c][..] = m[c] dy[c][..] / (1 - rate)",
      .note = "In test, predict and generate x stays as it is.",
      .arg = {{"x", ARG_TENSOR, NULL, "images (N, C, H, W)"},
              {"rate", ARG_FLOAT, NULL, "the probability, at least 0 and below 1"}},
      .shape = dropout_shape_2d,
      .build = dropout_build_2d,
      .example = "model example(image: f32[2, 5, 4]) {\n"
                 "    h = conv2d(image, 8, kernel = 2) |> tanh\n"
                 "    h = dropout2d(h, 0.25) |> conv2d(3, kernel = 2)\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "dropout_dx",
      .brief = "gradient of dropout: the same mask and scale",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"}},
      .flags = OP_HIDDEN | OP_INPLACE | OP_KEEPS_LAYOUT,
      .half = HALF_USE_IN_OUT,
      .shape = dropout_shape,
      .price = dropout_price,
      .kernel = dropout_kernel_dx},
     {0}};
