/* softmax.c -- turns numbers into probabilities.
 *
 *   y[i] = exp(x[i] - m) / sum over j of exp(x[j] - m)          m = max x
 *   dx[i] = y[i] (dy[i] - sum over j of dy[j] y[j])             i, j along the dimension `axis`
 *
 * For training, use softmax_cross_entropy on the numbers themselves: it is more exact than a
 * logarithm of softmax.
 */
#include "ops/along.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"
#include <string.h>

static bool is_causal(const Node *n)
{
    return node_attr(n, "mask") && !strcmp(node_string(n, "mask"), "causal");
}

/* Checks that a causal mask has a square matrix of scores: row i uses columns 0 to i. */
static bool softmax_check_mask(const Node *n, int axis, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    const int r = x->rank;
    if (!node_attr(n, "mask") || !strcmp(node_string(n, "mask"), "none"))
        return true;
    if (!is_causal(n)) {
        diag_error(d, node_span(n, "mask"), "softmax has no mask \"%s\"", node_string(n, "mask"));
        diag_help(d, "\"causal\": in row i only 0 to i count; \"none\": all");
        return false;
    }
    if (r >= 2 && axis == r - 1 && x->dim[r - 2] == x->dim[r - 1])
        return true;
    diag_error(d, node_span(n, "mask"),
               "a causal softmax needs as many rows as columns, and the last axis");
    check_note(n, 0, d);
    return false;
}

static bool softmax_shape(Node *n, Diag *d)
{
    int axis;
    return check_real(n, 0, d) && check_axis(n, "axis", n->in[0]->shape.rank, &axis, d) &&
           softmax_check_mask(n, axis, d) && check_result(n, n->in[0]->shape, d);
}

static void softmax_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "softmax_dx", n, 2, n, dy));
}

/* The kernel takes rows of K adjacent numbers.  If `axis` is not the last dimension, the stride of
 * the numbers is `inner`. */
static void softmax_call(const Node *n, Call *c, const char *fn)
{
    const Along a = along(n, c);
    const bool causal = is_causal(n) && node_is(n, "softmax");
    const char *form = a.inner > 1 ? "_along" : causal ? "_causal" : "";
    call_kernel(c, arena_printf(c->arena, "%s%s", fn, form));
    c->parts = a.inner == 1;
    call_out(c, n);
    for (int i = 0; i < n->nin; i++)
        call_in(c, n->in[i]);
    call_text(c, "%lld, %lld", (long long)a.outer, (long long)a.k);
    if (a.inner > 1)
        call_text(c, "%lld", (long long)a.inner);
}

static void softmax_kernel(const Node *n, Call *c)
{
    softmax_call(n, c, "softmax");
}

static void softmax_kernel_dx(const Node *n, Call *c)
{
    softmax_call(n, c, "softmax_dx");
}

const Op op_softmax[] =
    {{.name = "softmax",
      .brief = "turns numbers into probabilities along one dimension",
      .shapes = "x, y (N, F) or of any rank",
      .formula = "y[i] = exp(x[i] - m) / sum over j of exp(x[j] - m)   m = max x   i, j "
                 "along axis\n"
                 "mask \"causal\": y[r][i] = 0 for i > r, and only i <= r are in the sum",
      .derivative = "dx[i] = y[i] (dy[i] - sum over j of dy[j] y[j])",
      .note = "As a loss, take softmax_cross_entropy on the numbers themselves: it is "
              "exact where the logarithm of a softmax is not. With mask = \"causal\" "
              "axis is the last one, and the last two dimensions are equal.",
      .arg = {{"x", ARG_TENSOR, NULL, "vectors (N, F), or of any rank"},
              {"axis", ARG_INT, "-1",
               "the dimension whose results sum to 1, without the batch; -1 is the last"},
              {"mask", ARG_STRING, "none",
               "\"causal\": in row i only the columns 0 to i count; default: all columns"}},
      .flags = OP_POSITION,
      .shape = softmax_shape,
      .gradient = softmax_gradient,
      .price = loss_price,
      .kernel = softmax_kernel,
      .example = "# A soft choice between features, another between the steps of a "
                 "sequence.\n"
                 "model example(x: f32[4, 6]) {\n"
                 "    gate = dense(x, 5) |> softmax\n"
                 "    h = dense(x, 5) * gate\n"
                 "    h = h * softmax(dense(x, 5, bias = false), axis = 0)\n"
                 "    p = dense(h, 4) |> softmax(mask = \"causal\")\n"
                 "    return concat(flatten(h), flatten(p)) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "softmax_dx",
      .brief = "gradient of softmax",
      .arg = {{"y", ARG_TENSOR, NULL, "probabilities"},
              {"dy", ARG_TENSOR, NULL, "gradient of the result"},
              {"axis", ARG_INT, NULL, "as above"}},
      .flags = OP_HIDDEN,
      .shape = softmax_shape,
      .price = loss_price,
      .kernel = softmax_kernel_dx},
     {0}};
