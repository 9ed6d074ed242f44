/* conv_lanes.c -- decides when samples of few channels are stored with eight channels.  The rule
 * follows the engines of cuDNN 9.19; it does not depend on the host's GPU.
 *
 * Numbers moved per pixel with c channels:
 *
 *   without padding   the input writes c; the convolution reads c; the gradient of the filters
 *                     reads c, and writes and reads a padded copy of 8:   3 c + 16
 *   with padding      the input writes 8; both read 8:                    24
 *
 * So padding needs less memory traffic for 3 channels and more.
 */
#include "ops/conv_lanes.h"
#include "ops/window.h"

enum { FEWEST = 3 };

/* In f16, only windows of at least 6 x 6 are padded: for smaller ones, cuDNN has engines that read
 * few channels without padding.  The documentation of cuDNN does not say that its engine for eight
 * channels with the sums of batch_norm uses tensor cores in f16. */
enum { LARGE = 6 };

static bool wants(const Node *n, bool only_large)
{
    const Window v = window_of(n, 1 << 20, 1 << 20);
    const bool large = v.kernel[0] >= LARGE && v.kernel[1] >= LARGE;
    return node_int(n, "groups") == 1 && node_int(n, "filters") % CONV_LANES == 0 &&
           (large || !only_large);
}

/* Whether only the update reads the gradient dw.  If dw is added to another gradient, a kernel of
 * Tenon computes dw. */
static bool is_alone(const Readers *r, const Node *dw)
{
    return readers_count(r, dw) == 1 && node_is(readers_at(r, dw, 0), "update");
}

Node *conv_lanes(Graph *g, const Readers *r, bool only_large)
{
    Node *x = g->input, *conv = NULL;
    int gradients = 0;

    if (!x || g->ninput > 1 || x->dtype != DT_REAL || x->shape.rank != 3 ||
        x->shape.dim[0] < FEWEST || x->shape.dim[0] >= CONV_LANES)
        return NULL;
    for (int i = 0; i < readers_count(r, x); i++) {
        Node *n = readers_at(r, x, i);
        if (node_is(n, "conv2d") && !conv && !n->loop && wants(n, only_large))
            conv = n;
        else if (!node_is(n, "conv2d_dw") || gradients++ || !is_alone(r, n))
            return NULL;
    }
    if (conv)
        node_set_int(g, x, "lanes", CONV_LANES);
    return conv;
}
