/* resize.c -- an image with another number of rows and columns.
 *
 *   nearest    y[c][i][j] = x[c][floor(i H / H')][floor(j W / W')]
 *   bilinear   y[c][i][j] = (1 - v) (1 - u) x[c][r][s]      + (1 - v) u x[c][r][s + 1]
 *                         +      v  (1 - u) x[c][r + 1][s]  +      v  u x[c][r + 1][s + 1]
 *              r + v = max(0, (i + 1/2) H / H' - 1/2), r whole, 0 <= v < 1; s + u likewise, of j
 *   dx         each dy goes to the pixels that it reads, with the same weights
 *
 *   x (N, C, H, W)   y (N, C, H', W')
 *
 * In bilinear mode, a pixel is a square of side 1, and positions refer to its centre: the corners
 * of PyTorch's align_corners = false.  A row H or column W means the last one.  Nothing is averaged
 * when an image gets smaller.  The kernels compute positions with integers, so they are exact.
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/price.h"
#include <string.h>

/* Reports a misspelt mode, and both or none of size and scale. */
static bool check_arguments(const Node *n, Diag *d)
{
    static const char *const word[] = {"nearest", "bilinear"};
    const char *mode = node_string(n, "mode");
    const Attr *size = node_attr(n, "size"), *scale = node_attr(n, "scale");
    if (strcmp(mode, "nearest") && strcmp(mode, "bilinear")) {
        diag_error(d, node_span(n, "mode"), "resize mode is \"%s\"", mode);
        diag_suggest(d, mode, word, 2);
        diag_help(d, "use \"nearest\" or \"bilinear\"");
        return false;
    }
    if (!size == !scale) {
        diag_error(d, size ? node_span(n, "scale") : n->span, "resize takes %s",
                   size ? "a size or a scale, not both" : "a size or a scale");
        check_note(n, 0, d);
        diag_help(d, "size = [rows, columns] of the result, or scale = 2 for twice as many");
        return false;
    }
    return check_int(n, "size", 1, d) && check_int(n, "scale", 1, d);
}

static bool resize_shape(Node *n, Diag *d)
{
    if (!check_image(n, 0, d) || !check_arguments(n, d))
        return false;
    const Shape *x = &n->in[0]->shape;
    const Attr *scale = node_attr(n, "scale");
    const int64_t *given = (scale ? scale : node_attr(n, "size"))->list;
    Shape y = *x;
    for (int i = 0; i < 2; i++)
        y.dim[i + 1] = scale ? given[i] * x->dim[i + 1] : given[i];
    node_set_attr(diag_arena(d), n, attr_ints(diag_arena(d), "x_shape", x->dim, 3));
    node_set_attr(diag_arena(d), n, attr_ints(diag_arena(d), "y_shape", y.dim, 3));
    return check_result(n, y, d);
}

static bool resize_shape_dx(Node *n, Diag *d)
{
    return check_result(n, shape_make(true, "CHW", node_attr(n, "x_shape")->list, 3), d);
}

static void resize_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "resize_dx", n, 1, dy));
}

static bool is_bilinear(const Node *n)
{
    return !strcmp(node_string(n, "mode"), "bilinear");
}

static Cost resize_cost(const Node *n)
{
    const int64_t *x = node_attr(n, "x_shape")->list, *y = node_attr(n, "y_shape")->list;
    const double read = (double)(x[1] * x[2]), made = (double)(y[1] * y[2]);
    return (Cost){.bytes = 4.0 * (double)x[0] * (read + made)};
}

/* Forward, a pixel of y takes its position, then vectors of channels with four loads or one.
 * Backward, a pixel of x takes the weights of its readers, then each dy up to four times. */
static void resize_price(const Node *n, const Market *m, Price *p)
{
    const int64_t *x = node_attr(n, "x_shape")->list, *y = node_attr(n, "y_shape")->list;
    const bool back = node_is(n, "resize_dx");
    const double pixels = (double)(m->n * y[1] * y[2]);
    const double vectors = (double)ceil_div(x[0], m->lanes);
    p->values = (double)(m->n * m->real * x[0]) * (double)(x[1] * x[2] + y[1] * y[2]);
    p->cycles += pixels * vectors * (is_bilinear(n) ? 4 : 1);
    p->cycles += back ? (double)(m->n * x[1] * x[2]) * 60 : pixels * 12;
    price_stream(p, m, p->values, p->values);
}

/* y: the result or its gradient, which can lie within another value. */
static void resize_call(const Node *n, const Node *y, Call *c, const char *fn)
{
    const int64_t *from = node_attr(n, "x_shape")->list, *to = node_attr(n, "y_shape")->list;
    call_kernel(c, fn);
    call_in_parts(c, n);
    Sizes *s = sizes_new(c->arena, "Resize");
    sizes_int(s, "n", c->n);
    sizes_int(s, "c", from[0]);
    sizes_int(s, "h", from[1]);
    sizes_int(s, "w", from[2]);
    sizes_int(s, "oh", to[1]);
    sizes_int(s, "ow", to[2]);
    if (y->within)
        sizes_int(s, "ldy", node_row(y));
    if (is_bilinear(n))
        sizes_bool(s, "bilinear", true);
    if (node_attr(n, "last"))
        sizes_bool(s, "last", true);
    call_sizes(c, s);
}

static void resize_kernel(const Node *n, Call *c)
{
    resize_call(n, n, c, "resize");
}

static void resize_kernel_dx(const Node *n, Call *c)
{
    resize_call(n, n->in[0], c, "resize_dx");
}

const Op op_resize[] =
    {{.name = "resize",
      .brief = "an image with another number of rows and columns",
      .shapes = "x (N, C, H, W)   y (N, C, H', W')\n"
                "[H', W'] = size, or H' = scale[0] H and W' = scale[1] W",
      .formula = "nearest: y[c][i][j] = x[c][floor(i H / H')][floor(j W / W')]\n"
                 "bilinear: y[c][i][j] = (1 - v) ((1 - u) x[c][r][s] + u x[c][r][s + 1])\n"
                 "                     + v ((1 - u) x[c][r + 1][s] + u x[c][r + 1][s + 1])\n"
                 "  r + v = max(0, (i + 1/2) H / H' - 1/2)   r whole, 0 <= v < 1\n"
                 "  s + u = max(0, (j + 1/2) W / W' - 1/2)   row H and column W are the last ones",
      .derivative = "dx: each dy goes to the pixels that it reads, with the same weights",
      .note = "Bilinear positions are those of PyTorch's align_corners = false. Nothing is "
              "averaged when an image gets smaller: avg_pool does that. For a factor that is not "
              "whole, give "
              "the size.",
      .arg =
          {{"x", ARG_TENSOR, NULL, "images (N, C, H, W)"},
           {"size", ARG_PAIR, "none", "rows and columns of the result, at least 1"},
           {"scale", ARG_PAIR, "none",
            "whole factors for rows and columns, at least 1, instead of size; size takes others"},
           {"mode", ARG_STRING, "nearest",
            "\"nearest\": one pixel of x; \"bilinear\": between four pixels of x"}},
      .flags = OP_SPATIAL,
      .half = HALF_USE_IN_OUT,
      .strided = STRIDED_OUT,
      .shape = resize_shape,
      .gradient = resize_gradient,
      .cost = resize_cost,
      .price = resize_price,
      .kernel = resize_kernel,
      .example = "# Up by bilinear steps, beside the nearest pixels, then down to an odd size.\n"
                 "model example(image: f32[2, 4, 5]) {\n"
                 "    h = conv2d(image, 3, kernel = 2) |> tanh\n"
                 "    h = concat(resize(h, scale = 2, mode = \"bilinear\"), resize(h, [6, 8]))\n"
                 "    h = resize(h, size = [4, 3], mode = \"bilinear\")\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "resize_dx",
      .brief = "gradient of resize: to the pixels that each number reads",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"}},
      .flags = OP_HIDDEN | OP_SPATIAL,
      .half = HALF_USE_IN_OUT,
      .strided = 1 << 0,
      .shape = resize_shape_dx,
      .cost = resize_cost,
      .price = resize_price,
      .kernel = resize_kernel_dx},
     {0}};
