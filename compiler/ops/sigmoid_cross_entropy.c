/* sigmoid_cross_entropy.c -- loss of binary classes: minus the log of the probability of the truth.
 *
 *   y = max(x, 0) - x t + log(1 + exp(-|x|))      dx = (sigmoid(x) - t) dy
 *
 *   x (N, 1)   label t (N), 0 or 1   y (N)         sigmoid(x) is the probability of 1
 *
 * With a target that is numbers from 0 to 1, such as a mask or several labels of a sample, x and t
 * have one shape, and y is the mean over the K numbers of a sample.  positive_weight W multiplies
 * the part of truths, -t log sigmoid(x):
 *
 *   y[i] += (W - 1) t softplus(-x)                 dx += (W - 1) t (sigmoid(x) - 1) dy
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"
#include "ops/price.h"
#include <float.h>

/* Whether the target is numbers: then the kernels compare each of them with its own output. */
static bool of_numbers(const Node *n)
{
    return n->in[1]->dtype == DT_REAL;
}

static double weight_of(const Node *n)
{
    return node_attr(n, "positive_weight") ? node_float(n, "positive_weight") : 1;
}

static bool one_number(Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    const bool sequence = x->rank == 2 && n->in[0]->dtype == DT_REAL;
    if (!sequence && (!check_vector(n, 0, d) || !check_label(n, 1, d)))
        return false;
    if (!sequence && x->dim[0] == 1)
        return true;
    diag_error(d, n->span, "%s needs one number for each sample, got %s", n->op->name,
               shape_text(diag_arena(d), x));
    check_note(n, 0, d);
    diag_help(d, "%s",
              sequence ? "for every position, use softmax_cross_entropy, with two outputs for a "
                         "yes or no: dense(2)"
                       : "end the model with dense(1), or take softmax_cross_entropy");
    return false;
}

static bool check_weight(const Node *n, Diag *d)
{
    const double w = weight_of(n);
    if (!(w > 0 && w <= FLT_MAX)) {
        diag_error(d, node_span(n, "positive_weight"),
                   "sigmoid_cross_entropy positive_weight is %g, not above 0", w);
        diag_help(d, "a truth counts positive_weight times as much as a number that is none: "
                     "positive_weight = 2");
        return false;
    }
    if (w == 1 || of_numbers(n))
        return true;
    diag_error(d, node_span(n, "positive_weight"),
               "positive_weight is for a target that is numbers, and '%s' is a class",
               n->in[1]->name ? n->in[1]->name : "label");
    diag_help(d, "declare numbers, which are stored as 0 and 1: target = label: f32[1]");
    return false;
}

static bool sigmoid_cross_entropy_shape(Node *n, Diag *d)
{
    if (of_numbers(n))
        return loss_of_numbers(n, d) && check_weight(n, d);
    return one_number(n, d) && check_weight(n, d) && loss_result(n, d);
}

static bool binary_accuracy_shape(Node *n, Diag *d)
{
    return one_number(n, d) && loss_result(n, d);
}

static void sigmoid_cross_entropy_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    grad_add(gr, n->in[0],
             op_make_like(g, "sigmoid_cross_entropy_dx", n, 3, n->in[0], n->in[1], dy));
    if (of_numbers(n) && grad_wanted(gr, n->in[1]))
        grad_add(gr, n->in[1],
                 op_make_like(g, "sigmoid_cross_entropy_dt", n, 3, n->in[0], n->in[1], dy));
}

/* Describes the call of the kernel of a label, with one number for each sample. */
static void one_kernel(const Node *n, Call *c)
{
    call_fn(c, n->op->name);
    call_in_parts(c, n);
    call_text(c, "%lld", (long long)c->n);
}

/* Describes the call of "sigmoid_cross_entropy_numbers_dx". */
static void numbers_kernel(const Node *n, Call *c, const char *fn)
{
    loss_call(n, c, fn);
    call_text(c, "%.17g", weight_of(n));
}

static void sigmoid_cross_entropy_kernel(const Node *n, Call *c)
{
    if (of_numbers(n))
        numbers_kernel(n, c, "sigmoid_cross_entropy_numbers");
    else
        one_kernel(n, c);
}

static void sigmoid_cross_entropy_kernel_dx(const Node *n, Call *c)
{
    if (of_numbers(n))
        numbers_kernel(n, c, "sigmoid_cross_entropy_numbers_dx");
    else
        one_kernel(n, c);
}

static void sigmoid_cross_entropy_kernel_dt(const Node *n, Call *c)
{
    numbers_kernel(n, c, "sigmoid_cross_entropy_numbers_dt");
}

/* A division, an exponential and a logarithm of single numbers: 60 cycles. */
static void one_price(const Node *n, const Market *m, Price *p)
{
    (void)n;
    p->cycles += 60 * (double)m->n;
}

/* The functions of each number: their prices are those of maps. */
static void sigmoid_cross_entropy_price(const Node *n, const Market *m, Price *p)
{
    if (!of_numbers(n)) {
        one_price(n, m, p);
        return;
    }
    price_each(p, m, n, 3.0 / m->lanes);
    price_map(p, m, (double)shape_count(&n->in[0]->shape) * (double)m->n,
              node_is(n, "sigmoid_cross_entropy_dx") ? "sigmoid" : "softplus");
}

/* The gradient for x or for t. */
#define GRADIENT(word, text, call)                                                                 \
    {                                                                                              \
        .name = word, .brief = text,                                                               \
        .arg = {{"x", ARG_TENSOR, NULL, "what the network says"},                                  \
                {"label", ARG_TENSOR, NULL, "the classes, or numbers"},                            \
                {"dy", ARG_TENSOR, NULL, "gradient of each sample's loss"},                        \
                {"positive_weight", ARG_FLOAT, "none", "as above"}},                               \
        .flags = OP_HIDDEN, .shape = check_like_first, .price = sigmoid_cross_entropy_price,       \
        .kernel = call                                                                             \
    }

const Op op_sigmoid_cross_entropy[] =
    {{.name = "sigmoid_cross_entropy",
      .brief = "the loss of a binary class: minus the logarithm of the true answer's probability",
      .shapes = "x (N, 1)   label t (N), 0 or 1   y (N)\n"
                "x, t (N, ..) of equal shape, K numbers a sample, 0 <= t <= 1   y (N)",
      .formula =
          "y = max(x, 0) - x t + log(1 + exp(-|x|))   sigmoid(x) is the probability of class 1\n"
          "numbers: y = 1/K sum over i of the same, plus (W - 1) t[i] softplus(-x[i])",
      .derivative = "dx = (sigmoid(x) - t) dy\n"
                    "numbers: dx[i] = 1/K (s - t[i] + (W - 1) t[i] (s - 1)) dy   s = "
                    "sigmoid(x[i])\n"
                    "dt[i] = 1/K ((W - 1) softplus(-x[i]) - x[i]) dy",
      .note = "A target that is numbers is a mask or several labels of a sample: target = mask: "
              "f32[1, 64, 64]. Each number has an output of its own and is from 0 to 1. W is "
              "positive_weight. [Masks](../how-to/masks.md) shows a network.",
      .arg = {{"x", ARG_TENSOR, NULL,
               "a number for each sample (N, 1), or for each number of the target"},
              {"label", ARG_TENSOR, NULL,
               "the class of each sample, 0 or 1; or numbers from 0 to 1"},
              {"positive_weight", ARG_FLOAT, "none",
               "factor of the loss of truths, for a target that is numbers; above 0; default: 1"}},
      .outputs = OUTPUTS_BINARY,
      .shape = sigmoid_cross_entropy_shape,
      .gradient = sigmoid_cross_entropy_gradient,
      .price = sigmoid_cross_entropy_price,
      .kernel = sigmoid_cross_entropy_kernel,
      .example = "model example(x: f32[6]) {\n"
                 "    return dense(x, 1)\n"
                 "}\n" EXAMPLE_RECIPE("sigmoid_cross_entropy")},
     GRADIENT("sigmoid_cross_entropy_dx", "gradient of sigmoid_cross_entropy for its first operand",
              sigmoid_cross_entropy_kernel_dx),
     GRADIENT("sigmoid_cross_entropy_dt",
              "gradient of sigmoid_cross_entropy for a target that is numbers",
              sigmoid_cross_entropy_kernel_dt),
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
      .shape = binary_accuracy_shape,
      .price = one_price,
      .kernel = one_kernel,
      .example = "# The program reports it with this loss; a model does not name it.\n"
                 "model example(x: f32[6]) {\n"
                 "    return dense(x, 1)\n"
                 "}\n" EXAMPLE_RECIPE("sigmoid_cross_entropy")},
     {0}};
