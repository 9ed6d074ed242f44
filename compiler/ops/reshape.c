/* reshape.c -- gives the numbers of each sample another shape; one dimension may be -1: its size
 * follows from the others. */
#include "ops/check.h"
#include "ops/example.h"

static bool report(const Node *n, Diag *d, const char *why, long long have, long long want)
{
    diag_error(d, node_span(n, "shape"), why, want, have);
    check_note(n, 0, d);
    diag_help(d, "the product of the dimensions must be %lld; one may be -1, whatever is left",
              have);
    return false;
}

/* Reads the argument into y; -1 becomes count divided by the other dimensions. */
static bool solve(const Node *n, int64_t count, Shape *y, Diag *d)
{
    const Attr *a = node_attr(n, "shape");
    int64_t known = 1;
    int open = -1;
    if (a->nlist > SHAPE_MAX) {
        diag_error(d, node_span(n, "shape"), "reshape to %d dimensions, more than %d", a->nlist,
                   SHAPE_MAX);
        return false;
    }
    for (int i = 0; i < a->nlist; i++) {
        y->dim[i] = a->list[i];
        if (a->list[i] == -1 && open < 0)
            open = i;
        else if (a->list[i] < 1 || a->list[i] > CHECK_DIM_MAX ||
                 __builtin_mul_overflow(known, a->list[i], &known)) {
            diag_error(d, node_span(n, "shape"), "reshape dimension %lld is not possible",
                       (long long)a->list[i]);
            diag_help(d, "use dimensions >= 1, and at most one -1");
            return false;
        }
    }
    if (open >= 0 && count % known)
        return report(n, d, "reshape: %lld does not divide the %lld numbers of a sample", count,
                      known);
    if (open >= 0)
        y->dim[open] = count / known;
    else if (known != count)
        return report(n, d, "reshape to %lld numbers a sample, its input has %lld", count, known);
    y->rank = a->nlist;
    return true;
}

static bool reshape_shape(Node *n, Diag *d)
{
    static const char *const axes[] = {"", "F", "TF", "CHW"};
    const Shape *x = &n->in[0]->shape;
    Shape y = {.batched = x->batched};
    if (!check_real(n, 0, d) || !solve(n, shape_count(x), &y, d))
        return false;
    return check_result(n, shape_make(y.batched, y.rank < 4 ? axes[y.rank] : NULL, y.dim, y.rank),
                        d);
}

static void reshape_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node like = {.op = n->op, .span = n->span};
    node_set_ints(g, &like, "shape", n->in[0]->shape.dim, n->in[0]->shape.rank);
    grad_add(gr, n->in[0], op_make_like(g, "reshape", &like, 1, dy));
}

const Op op_reshape[] =
    {{.name = "reshape",
      .brief = "the same numbers of each sample in another shape",
      .shapes = "x (N, ..)   y (N, shape[0], shape[1], ..)",
      .formula = "y = x, read in row-major order",
      .derivative = "dx = dy",
      .note = "A shape has at most 6 dimensions.",
      .arg =
          {{"x", ARG_TENSOR, NULL, "a tensor of any shape"},
           {"shape", ARG_INTS, NULL,
            "the new dimensions without the batch, 1 to 6 of them; one may be -1: what is left"}},
      .flags = OP_VIEW,
      .shape = reshape_shape,
      .gradient = reshape_gradient,
      .example = "# A dense layer's result read as an image of two channels.\n"
                 "model example(x: f32[6]) {\n"
                 "    h = dense(x, 32) |> tanh |> reshape([2, 4, -1])\n"
                 "    h = conv2d(h, 3, kernel = 3)\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
