/* choose.c -- which algorithm computes a convolution.
 *
 * Winograd's F(2x2, 3x3) and F(2x2, 5x5) take 2.25 and 2.8 times fewer multiplications than the
 * direct sum and are as exact; F(4x4, 3x3), 4 times fewer and 3-4 times less exact, is for --fast.
 * The transforms cost a pass over input and output, so there must be channels enough to pay for
 * them: measured on AVX-512, F(2x2, 3x3) gains 1.6 times at 64 channels and nothing at 16,
 * F(2x2, 5x5) 1.7 at 20, F(4x4, 3x3) 2.7 at 16.
 * Convolutions behind a fused pooling keep their sparse gradients: those beat any dense one.
 * The choice depends on sizes only and is written into the program: the same bits everywhere.
 */
#include "ops/op.h"
#include "passes/pass.h"
#include <string.h>

enum {
    SCRATCH_BYTES = 384 * 1024, /* runtime/cpu/winograd.h: WINO_SCRATCH */
    TILE_ROWS = 8,              /* runtime/cpu/tile.h: the most rows of a register tile */
    LEAST_OUTPUTS = 4           /* rows and columns of the result */
};

static bool all(const Node *n, const char *key, int64_t value)
{
    const Attr *a = node_attr(n, key);
    return a && a->nlist == 2 && a->list[0] == value && a->list[1] == value;
}

static int64_t channels_needed(int64_t kernel, int64_t m)
{
    return kernel == 5 || m == 4 ? 12 : 32;
}

/* Do the transformed tiles of `in` channels and one panel of outputs fit the kernel's scratch? */
static bool fits(int64_t in, int64_t side, const Options *o, int64_t real_bytes)
{
    return side * side * (in + 2 * o->vector) * TILE_ROWS * real_bytes <= SCRATCH_BYTES;
}

/* Outputs of a tile, 2 or 4, or 0 for direct; the convolution has `in` channels and makes
 * `out` of h x w pixels. */
static int64_t tile_of(const Node *n, const Options *o, int64_t in, int64_t out, int64_t h,
                       int64_t w, int64_t real_bytes)
{
    const int64_t k = node_attr(n, "kernel")->list[0];

    if (!(all(n, "kernel", 3) || all(n, "kernel", 5)) || !all(n, "stride", 1) ||
        !all(n, "dilation", 1) || node_int(n, "groups") != 1 || h < LEAST_OUTPUTS ||
        w < LEAST_OUTPUTS)
        return 0;
    for (int64_t m = o->fast && k == 3 ? 4 : 2; m >= 2; m -= 2)
        if (in >= channels_needed(k, m) && out >= channels_needed(k, m) &&
            fits(in, m + k - 1, o, real_bytes))
            return m;
    return 0;
}

static void forward(Graph *g, Node *n, const Options *o, int64_t bytes)
{
    const Attr *pool = node_attr(n, "pool");
    const int64_t step = pool ? pool->i : 1;
    const int64_t m = tile_of(n, o, n->in[0]->shape.dim[0], n->shape.dim[0], n->shape.dim[1] * step,
                              n->shape.dim[2] * step, bytes);

    if (m)
        node_set_int(g, n, "winograd", m);
}

static void backward(Graph *g, Node *n, const Options *o, int64_t bytes)
{
    const int64_t *pad = node_attr(n, "pad_before")->list, *k = node_attr(n, "kernel")->list;
    const Shape *dy = &n->in[1]->shape;
    const int64_t m =
        tile_of(n, o, dy->dim[0], n->shape.dim[0], n->shape.dim[1], n->shape.dim[2], bytes);

    if (m && pad[0] < k[0] && pad[1] < k[1])
        node_set_int(g, n, "winograd", m);
}

void pass_choose(Graph *g, const Options *o, Diag *d)
{
    const int64_t bytes = strcmp(g->recipe.dtype, "f64") ? 4 : 8;

    (void)d;
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i];
        if (node_is(n, "conv2d"))
            forward(g, n, o, bytes);
        else if (node_is(n, "conv2d_dx"))
            backward(g, n, o, bytes);
    }
}
