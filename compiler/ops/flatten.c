/* flatten.c -- turns an image into a vector, with C outermost, then H, then W; the numbers stay
 * the same. */
#include "ops/check.h"
#include "ops/example.h"

static bool flatten_shape(Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    const int64_t count = shape_count(x);
    return check_real(n, 0, d) && check_result(n, shape_make(x->batched, "F", &count, 1), d);
}

static void flatten_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node like = {.op = n->op, .span = n->span};
    node_set_ints(g, &like, "shape", n->in[0]->shape.dim, n->in[0]->shape.rank);
    grad_add(gr, n->in[0], op_make_like(g, "reshape", &like, 1, dy));
}

const Op op_flatten[] = {{.name = "flatten",
                          .brief = "all numbers of a sample as one vector, in the order C, H, W",
                          .shapes =
                              "x (N, ..)   y (N, F)   F = count of the numbers in a sample of x",
                          .formula = "y = x, read in row-major order",
                          .derivative = "dx = dy",
                          .arg = {{"x", ARG_TENSOR, NULL, "a tensor of any shape"}},
                          .flags = OP_VIEW,
                          .shape = flatten_shape,
                          .gradient = flatten_gradient,
                          .example = "model example(image: f32[2, 3, 3]) {\n"
                                     "    h = conv2d(image, 4, kernel = 2) |> flatten\n"
                                     "    return dense(h, 3)\n"
                                     "}\n" EXAMPLE_TRAIN},
                         {0}};
