/* conv2d.c -- two-dimensional convolution and its gradients.
 *
 *   y[o][i][j] = sum over c, r, s of w[o][c][r][s] x[c][i a + r d - p][j a + s d - p]
 *                stride a, dilation d, pad p
 *
 *   x (N, C, H, W)   w (O, C/groups, R, S)   y (N, O, H', W')
 *   filters of group k (from k O/groups on) read only channels of group k (from k C/groups on)
 *
 *   dx = the transposed convolution of dy
 *   dw[o][c][r][s] = sum over samples, i, j of dy[o][i][j] x[c][i a + r d - p][j a + s d - p]
 *
 * Like other frameworks, Tenon computes the correlation and calls it convolution.  The bias is a
 * separate op until pass fuse joins both.  Passes make optimised forms: conv2d(x, packed w,
 * bias?) with attributes act and pool; conv2d_pool_dx and conv2d_pool_dw, which read the arg-max
 * `index` of the fused pooling instead of a full-size dy.
 *
 * Source: Dumoulin & Visin 2016, "A guide to convolution arithmetic for deep learning".
 */
#include "ops/bias.h"
#include "ops/check.h"
#include "ops/conv_price.h"
#include "ops/conv_variants.h"
#include "ops/elementwise.h"
#include "ops/example.h"
#include "ops/window.h"

/* All sizes for a kernel, from the shape (C, H, W) of x and the attributes. */
typedef struct Conv {
    int64_t c, h, w, o, groups, pool;
    Window v;
} Conv;

static Conv conv_of(const Node *n, const int64_t *chw)
{
    const Attr *pool = node_attr(n, "pool");
    return (Conv){.c = chw[0],
                  .h = chw[1],
                  .w = chw[2],
                  .o = node_int(n, "filters"),
                  .groups = node_int(n, "groups"),
                  .pool = pool ? pool->i : 0,
                  .v = window_of(n, chw[1], chw[2])};
}

/* C, H, W of x, which the rule of the forward op stores for gradients and packing. */
static const int64_t *image_of(const Node *n)
{
    return node_attr(n, "x_shape")->list;
}

/* Sets the shape of y = conv2d(x, w, bias?). w may be packed, and pass fuse may have fused a 2x2
 * max-pool. */
static bool conv2d_shape(Node *n, Diag *d)
{
    if (!check_image(n, 0, d) || !check_int(n, "filters", 1, d) || !check_int(n, "groups", 1, d))
        return false;
    const Shape *x = &n->in[0]->shape;
    if (!window_check(n, x->dim[1], x->dim[2], d) ||
        !check_groups(n, x->dim[0], "input channels", d))
        return false;
    const Conv c = conv_of(n, x->dim);
    const int64_t step = c.pool ? c.pool : 1;
    window_resolve(n, &c.v, x->dim, d);
    return check_result(n,
                        shape_make(x->batched, "CHW",
                                   (int64_t[]){c.o, c.v.out[0] / step, c.v.out[1] / step}, 3),
                        d);
}

static Node *conv2d_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                          Diag *d)
{
    Node probe = {.op = op_find("conv2d"), .nin = nx, .in = (Node **)x, .span = attrs->span};
    node_copy_attrs(g, &probe, attrs);
    if (!conv2d_shape(&probe, d))
        return NULL;
    const Conv c = conv_of(&probe, x[0]->shape.dim);
    const int64_t dim[4] = {c.o, c.c / c.groups, c.v.kernel[0], c.v.kernel[1]};
    Node *w = graph_param(g, d, arena_printf(g->arena, "%s.weight", path),
                          shape_make(false, "OIRS", dim, 4), NULL, attrs->span);
    if (!w)
        return NULL;
    Node *y = op_make_like(g, "conv2d", attrs, 2, x[0], w);
    y->name = path;
    return node_bool(attrs, "bias") ? bias_build(g, y, path, attrs->span, d) : y;
}

static void conv2d_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    if (grad_wanted(gr, n->in[0]))
        grad_add(gr, n->in[0], op_make_like(g, "conv2d_dx", n, 2, n->in[1], dy));
    if (grad_wanted(gr, n->in[1]))
        grad_add(gr, n->in[1], op_make_like(g, "conv2d_dw", n, 2, n->in[0], dy));
}

/* conv_transpose2d is conv2d_dx in the forward pass: y = dx(w, x), so x and dy change places. */
static void conv2d_gradient_dx(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    if (grad_wanted(gr, n->in[1]))
        grad_add(gr, n->in[1], op_make_like(g, "conv2d", n, 2, dy, n->in[0]));
    if (grad_wanted(gr, n->in[0]))
        grad_add(gr, n->in[0], op_make_like(g, "conv2d_dw", n, 2, dy, n->in[1]));
}

static bool conv2d_shape_dx(Node *n, Diag *d)
{
    return check_result(n, shape_make(true, "CHW", image_of(n), 3), d);
}

static bool conv2d_shape_dw(Node *n, Diag *d)
{
    const Conv c = conv_of(n, image_of(n));
    const int64_t dim[4] = {c.o, c.c / c.groups, c.v.kernel[0], c.v.kernel[1]};
    return check_result(n, shape_make(false, "OIRS", dim, 4), d);
}

/* The packed copy has the shape of w until pass layout sets the attribute count, the number of
 * reals, which depends on the width of vectors. */
static bool conv2d_shape_pack(Node *n, Diag *d)
{
    const Attr *count = node_attr(n, "count");
    return check_result(n, count ? shape_make(false, NULL, &count->i, 1) : n->in[0]->shape, d);
}

/* A multiply-add counts as two, and all taps count; y, dx and dw have the same cost. */
static Cost conv2d_cost(const Node *n)
{
    const Conv c = conv_of(n, image_of(n));
    const double y = (double)c.o * (double)c.v.out[0] * (double)c.v.out[1];
    const double taps = (double)(c.c / c.groups) * (double)(c.v.kernel[0] * c.v.kernel[1]);
    const double x = (double)c.c * (double)c.h * (double)c.w;
    return (Cost){.flops = 2 * y * taps, .bytes = 4 * (x + y)};
}

/* Sizes of the convolution, without the fields that are 0. */
static void literal(const Node *n, Call *call)
{
    const Conv c = conv_of(n, image_of(n));
    Sizes *s = sizes_new(call->arena, "Conv");
    sizes_int(s, "n", call->n);
    sizes_int(s, "c", c.c);
    sizes_int(s, "h", c.h);
    sizes_int(s, "w", c.w);
    sizes_int(s, "o", c.o);
    window_sizes(s, "r", "s", c.v.kernel);
    window_sizes(s, "stride_h", "stride_w", c.v.stride);
    window_sizes(s, "pad_h", "pad_w", c.v.before);
    window_sizes(s, "dil_h", "dil_w", c.v.dilation);
    sizes_int(s, "groups", c.groups);
    window_sizes(s, "oh", "ow", c.v.out);
    if (c.pool)
        sizes_int(s, "pool", c.pool);
    if (call->writes)
        sizes_bool(s, "write", true);
    if (node_is(n, "conv2d") && n->within)
        sizes_int(s, "ldy", node_row(n));
    if (node_attr(n, "last"))
        sizes_bool(s, "last", true);
    call_sizes(call, s);
}

/* Pass choose may select Winograd's algorithm; the size of its output tiles is the last
 * argument. */
static void literal_winograd(const Node *n, Call *c)
{
    const Attr *m = node_attr(n, "winograd");
    literal(n, c);
    if (m)
        call_text(c, "%lld", (long long)m->i);
}

static void conv2d_kernel(const Node *n, Call *c)
{
    const bool pooled = node_attr(n, "pool") != NULL, winograd = node_attr(n, "winograd") != NULL;
    const char *direct = pooled ? "conv2d_pool" : "conv2d";
    const char *fewer = pooled ? "conv2d_winograd_pool" : "conv2d_winograd";
    if (c->target.few_half && op_reads_half(n))
        call_fn(c, "bf16_conv2d");
    else
        call_product(c, winograd ? fewer : direct);
    c->parts = true;
    call_out(c, n);
    if (pooled)
        call_side(c, n);
    call_in(c, n->in[0]);
    call_in(c, n->in[1]);
    if (c->target.fuses) {
        call_in(c, n->nin > 2 ? n->in[2] : NULL);
        elementwise_call_act(n, c);
    }
    literal_winograd(n, c);
    if (!op_reads_half(n))
        c->variants = conv_variants(c->arena, n);
}

static void conv2d_kernel_dx(const Node *n, Call *c)
{
    if (c->target.few_half && op_reads_half(n))
        call_fn(c, "bf16_conv2d_dx");
    else
        call_product(c, node_attr(n, "winograd") ? "conv2d_winograd_dx" : "conv2d_dx");
    c->parts = true;
    call_out(c, n);
    call_in(c, n->in[0]);
    call_in(c, n->in[1]);
    if (c->target.fuses)
        elementwise_call_mask(n, 2, c);
    literal_winograd(n, c);
    if (!op_reads_half(n))
        c->variants = conv_variants_dx(c->arena, n);
}

static void conv2d_kernel_dw(const Node *n, Call *c)
{
    if (c->target.few_half && op_reads_half(n))
        call_fn(c, "bf16_conv2d_dw");
    else
        call_product(c, node_attr(n, "winograd") ? "conv2d_winograd_dw" : "conv2d_dw");
    c->parts = true;
    call_out(c, n);
    call_in(c, n->in[0]);
    call_in(c, n->in[1]);
    literal_winograd(n, c);
    if (!op_reads_half(n))
        c->variants = conv_variants_dw(c->arena, n);
}

/* The kernels for bf16 copy images with their padding to the stack: 256 kB, or the image rows for
 * one row of results if these take more.  The gradient of the filters keeps only a kernel row of
 * zeros there. */
static int64_t conv2d_stack_bytes(const Node *n, int64_t chunk)
{
    enum { BYTES = 2, FRAME = 256 * 1024 };
    const Conv c = conv_of(n, image_of(n));
    const int64_t rows = c.v.kernel[0] * c.v.dilation[0] + c.v.stride[0],
                  reach = c.w + 2 * c.v.kernel[1] * c.v.dilation[1] + c.v.stride[1],
                  channels = c.c > c.o ? c.c : c.o, row = BYTES * rows * reach * channels;
    (void)chunk;
    if (!op_reads_half(n))
        return 0;
    return n->op->role == ROLE_DW ? BYTES * c.c * c.v.kernel[1] : row > FRAME ? row : FRAME;
}

static void conv2d_kernel_pool_dx(const Node *n, Call *c)
{
    call_fn(c, "conv2d_pool_dx");
    c->parts = true;
    call_out(c, n);
    for (int i = 0; i < 3; i++)
        call_in(c, n->in[i]);
    elementwise_call_mask(n, 3, c);
    literal(n, c);
}

static void conv2d_kernel_pool_dw(const Node *n, Call *c)
{
    call_fn(c, "conv2d_pool_dw");
    c->parts = true;
    call_out(c, n);
    for (int i = 0; i < 3; i++)
        call_in(c, n->in[i]);
    literal(n, c);
}

/* Describes the call without its last two arguments, unit and units: the emitter adds these, and
 * threads divide the packing by them. */
static void conv2d_kernel_pack(const Node *n, Call *c)
{
    const bool dx = node_int(n, "dx") != 0;
    if (n->half)
        call_fn(c, dx ? "bf16_conv_pack_back" : "bf16_conv_pack");
    else if (node_attr(n, "winograd"))
        call_fn(c, dx ? "wino_pack_dx" : "wino_pack");
    else if (dx)
        call_fn(c, node_attr(n, "pool") ? "conv2d_pack_dx" : "conv2d_pack_back");
    else
        call_fn(c, "conv2d_pack");
    call_out(c, n);
    call_in(c, n->in[0]);
    literal_winograd(n, c);
}

const Op op_conv2d[] =
    {{.name = "conv2d",
      .brief = "two-dimensional convolution of images with learned filters",
      .shapes = "x (N, C, H, W)   weight (O, C / groups, R, S)   bias (O)   y (N, O, H', W')\n"
                "O = filters   (R, S) = kernel\n"
                "H' = floor((H + pad above + pad below - dilation (R - 1) - 1) / stride) + 1   W' "
                "likewise",
      .formula =
          "y[o][i][j] = bias[o] + sum over c, r, s of weight[o][c][r][s] x[c][i'][j']\n"
          "i' = i stride + r dilation - pad above   j' = j stride + s dilation - pad left   x is 0 "
          "outside",
      .derivative = "dx = transposed convolution of dy with weight\n"
                    "dweight[o][c][r][s] = sum over samples, i, j of dy[o][i][j] x[c][i'][j']\n"
                    "dbias[o] = sum over samples, i, j of dy[o][i][j]",
      .note =
          "With groups, filter o sees the channels of its own group only. pad = \"same\" gives "
          "ceil(H / "
          "stride) rows; an odd row or column of padding is added below and to the right. On the "
          "processor the kernel is direct or Winograd's algorithm, chosen by predicted time. On a "
          "GPU it "
          "is a kernel of Tenon, or cuDNN's with --kernels=cudnn.",
      .arg = {{"x", ARG_TENSOR, NULL, "images (N, C, H, W)"},
              {"filters", ARG_INT, NULL, "number of filters, at least 1: channels of the result"},
              {"kernel", ARG_PAIR, NULL, "rows and columns of a filter, at least 1"},
              {"stride", ARG_PAIR, "1", "pixels from one window to the next, at least 1"},
              {"pad", ARG_PAD, "0",
               "rows and columns of zeros around the image, at least 0; \"same\" or \"valid\""},
              {"dilation", ARG_PAIR, "1",
               "pixels from one tap of a filter to the next, at least 1"},
              {"groups", ARG_INT, "1",
               "number of groups of channels; it divides the channels of x and `filters`"},
              {"bias", ARG_BOOL, "true", "add a learned number to each channel of the result"}},
      .flags = OP_SPATIAL | OP_FLOPS,
      .product = PRODUCT_CONV,
      .role = ROLE_Y,
      .takes = EPILOGUE_BIAS | EPILOGUE_ACT | EPILOGUE_POOL | EPILOGUE_NORM,
      .layer = "conv",
      .shape = conv2d_shape,
      .build = conv2d_build,
      .gradient = conv2d_gradient,
      .cost = conv2d_cost,
      .price = conv_price,
      .kernel = conv2d_kernel,
      .stack_bytes = conv2d_stack_bytes,
      .example =
          "# Three-by-three filters, every second pixel, the image padded by one on each side.\n"
          "model example(image: f32[2, 7, 6]) {\n"
          "    h = conv2d(image, 4, kernel = 3, stride = 2, pad = 1) |> tanh\n"
          "    h = conv2d(h, 6, kernel = [2, 3], pad = \"same\", groups = 2)\n"
          "    return flatten(h) |> dense(3)\n"
          "}\n" EXAMPLE_TRAIN},
     {.name = "conv2d_dx",
      .brief = "gradient of conv2d for its images: the transposed convolution",
      .arg = {{"w", ARG_TENSOR, NULL, "filters"},
              {"dy", ARG_TENSOR, NULL, "gradient of the result"},
              {"y", ARG_TENSOR, "none",
               "result of an activation, whose gradient is applied, too (attribute mask)"}},
      .flags = OP_HIDDEN | OP_SPATIAL | OP_FLOPS,
      .product = PRODUCT_CONV,
      .role = ROLE_DX,
      .takes = EPILOGUE_MASK,
      .shape = conv2d_shape_dx,
      .gradient = conv2d_gradient_dx,
      .cost = conv2d_cost,
      .price = conv_price_dx,
      .kernel = conv2d_kernel_dx,
      .stack_bytes = conv2d_stack_bytes},
     {.name = "conv2d_dw",
      .brief = "gradient of conv2d for its filters, summed over the samples",
      .arg = {{"x", ARG_TENSOR, NULL, "images"},
              {"dy", ARG_TENSOR, NULL, "gradient of the result"}},
      .flags = OP_HIDDEN | OP_SPATIAL | OP_SUM | OP_FLOPS,
      .product = PRODUCT_CONV,
      .role = ROLE_DW,
      .shape = conv2d_shape_dw,
      .cost = conv2d_cost,
      .price = conv_price_dw,
      .kernel = conv2d_kernel_dw,
      .stack_bytes = conv2d_stack_bytes},
     {.name = "conv2d_pool_dx",
      .brief = "conv2d_dx through a fused 2x2 max-pool",
      .arg = {{"w", ARG_TENSOR, NULL, "filters"},
              {"dy", ARG_TENSOR, NULL, "gradient of the pooled result"},
              {"index", ARG_TENSOR, NULL, "which of the four numbers is the maximum"},
              {"y", ARG_TENSOR, "none",
               "result of an activation, whose gradient is applied, too (attribute mask)"}},
      .flags = OP_HIDDEN | OP_SPATIAL | OP_FLOPS,
      .product = PRODUCT_POOLED,
      .role = ROLE_DX,
      .takes = EPILOGUE_MASK,
      .shape = conv2d_shape_dx,
      .cost = conv2d_cost,
      .price = conv_price_pool_dx,
      .kernel = conv2d_kernel_pool_dx},
     {.name = "conv2d_pool_dw",
      .brief = "conv2d_dw through a fused 2x2 max-pool",
      .arg = {{"x", ARG_TENSOR, NULL, "images"},
              {"dy", ARG_TENSOR, NULL, "gradient of the pooled result"},
              {"index", ARG_TENSOR, NULL, "which of the four numbers is the maximum"}},
      .flags = OP_HIDDEN | OP_SPATIAL | OP_SUM | OP_FLOPS,
      .product = PRODUCT_POOLED,
      .role = ROLE_DW,
      .shape = conv2d_shape_dw,
      .cost = conv2d_cost,
      .price = conv_price_pool_dw,
      .kernel = conv2d_kernel_pool_dw},
     {.name = "conv2d_pack",
      .brief = "filters in the order in which the fast kernels read them",
      .arg = {{"w", ARG_TENSOR, NULL, "filters"}},
      .flags = OP_HIDDEN | OP_PACK,
      .copy = "packed",
      .shape = conv2d_shape_pack,
      .price = conv_price_pack,
      .kernel = conv2d_kernel_pack},
     {0}};
