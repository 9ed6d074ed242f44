/* sigmoid_cross_entropy.c -- loss of a binary classification: minus the log of the probability
 * of the true class.
 *
 *   y = max(x, 0) - x t + log(1 + exp(-|x|))      dx = (sigmoid(x) - t) dy
 *
 *   x (N, 1)   label t (N), 0 or 1   y (N)         sigmoid(x) is the probability of 1
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"
#include "ops/price.h"

/* Whether x has numbers for each position: reports this as an error. */
static bool is_sequence(const Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    if (x->rank != 2 || n->in[0]->dtype != DT_REAL)
        return false;
    diag_error(d, n->span, "%s needs one number for each sample, got %s", n->op->name,
               shape_text(diag_arena(d), x));
    check_note(n, 0, d);
    diag_help(d, "for every position, use softmax_cross_entropy, with two outputs for a yes or no: "
                 "dense(2)");
    return true;
}

static bool one_number(Node *n, Diag *d)
{
    if (n->in[1]->dtype == DT_REAL && !check_label(n, 1, d))
        return false;
    if (is_sequence(n, d))
        return false;
    if (!check_vector(n, 0, d) || !check_label(n, 1, d))
        return false;
    if (n->in[0]->shape.dim[0] == 1)
        return true;
    diag_error(d, n->span, "%s needs one number for each sample, got %s", n->op->name,
               shape_text(diag_arena(d), &n->in[0]->shape));
    check_note(n, 0, d);
    diag_help(d, "end the model with dense(1), or take softmax_cross_entropy");
    return false;
}

static bool sigmoid_cross_entropy_shape(Node *n, Diag *d)
{
    return one_number(n, d) && loss_result(n, d);
}

static void sigmoid_cross_entropy_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0],
             op_make(grad_graph(gr), "sigmoid_cross_entropy_dx", n->span, 3, n->in[0], n->in[1],
                     dy));
}

static bool sigmoid_cross_entropy_shape_dx(Node *n, Diag *d)
{
    return check_result(n, n->in[0]->shape, d);
}

static void sigmoid_cross_entropy_kernel(const Node *n, Call *c)
{
    call_fn(c, n->op->name);
    call_in_parts(c, n);
    call_text(c, "%lld", (long long)c->n);
}

/* A division, an exponential and a logarithm of single numbers: 60 cycles. */
static void sigmoid_cross_entropy_price(const Node *n, const Market *m, Price *p)
{
    (void)n;
    p->cycles += 60 * (double)m->n;
}

const Op op_sigmoid_cross_entropy[] =
    {{.name = "sigmoid_cross_entropy",
      .brief = "the loss of a binary class: minus the logarithm of the true answer's probability",
      .shapes = "x (N, 1)   label t (N), 0 or 1   y (N)",
      .formula =
          "y = max(x, 0) - x t + log(1 + exp(-|x|))   sigmoid(x) is the probability of class 1",
      .derivative = "dx = (sigmoid(x) - t) dy",
      .arg = {{"x", ARG_TENSOR, NULL, "a number for each sample (N, 1)"},
              {"label", ARG_TENSOR, NULL, "the class of each sample, 0 or 1"}},
      .outputs = OUTPUTS_BINARY,
      .shape = sigmoid_cross_entropy_shape,
      .gradient = sigmoid_cross_entropy_gradient,
      .price = sigmoid_cross_entropy_price,
      .kernel = sigmoid_cross_entropy_kernel,
      .example = "model example(x: f32[6]) {\n"
                 "    return dense(x, 1)\n"
                 "}\n" EXAMPLE_RECIPE("sigmoid_cross_entropy")},
     {.name = "sigmoid_cross_entropy_dx",
      .brief = "gradient of sigmoid_cross_entropy",
      .arg = {{"x", ARG_TENSOR, NULL, "a number a sample"},
              {"label", ARG_TENSOR, NULL, "the class of each sample, 0 or 1"},
              {"dy", ARG_TENSOR, NULL, "gradient of each sample's loss"}},
      .flags = OP_HIDDEN,
      .shape = sigmoid_cross_entropy_shape_dx,
      .price = sigmoid_cross_entropy_price,
      .kernel = sigmoid_cross_entropy_kernel},
     {.name = "binary_accuracy",
      .brief =
          "1 for each sample whose number is above 0 exactly when its label is 1, else 0; a metric",
      .shapes = "x (N, 1)   label t (N), 0 or 1   y (N)",
      .formula = "y = 1 if (x > 0) = (t = 1), else 0",
      .note = "It has no gradient. A program with the loss sigmoid_cross_entropy reports it "
              "without being "
              "asked.",
      .arg = {{"x", ARG_TENSOR, NULL, "a number for each sample (N, 1)"},
              {"label", ARG_TENSOR, NULL, "the class of each sample, 0 or 1"}},
      .shape = sigmoid_cross_entropy_shape,
      .price = sigmoid_cross_entropy_price,
      .kernel = sigmoid_cross_entropy_kernel,
      .example = "# The program reports it with this loss; a model does not name it.\n"
                 "model example(x: f32[6]) {\n"
                 "    return dense(x, 1)\n"
                 "}\n" EXAMPLE_RECIPE("sigmoid_cross_entropy")},
     {0}};
