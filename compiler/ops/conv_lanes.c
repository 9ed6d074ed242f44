/* conv_lanes.c -- when samples of few channels lie as eight: by what cuDNN 9.19 was seen to plan, never by the GPU at hand.
 *
 * With c channels of eight, bytes a pixel: unpadded c are written, c read by the convolution, and for the gradient of its filters c read and 8
 * written and read again, 3 c + 16; padded 8 are written and read twice, 24.  So from 3 on; of 1 and 2 the copy is cheaper.
 */
#include "ops/conv_lanes.h"
#include "ops/window.h"

enum { FEWEST = 3 };

/* f16 has engines that read few channels as they are, and of eight one that is not said to take tensor cores for a convolution with batch_norm's
 * sums: both for windows up to 5 x 5. */
enum { LARGE = 6 };

static bool wants(const Node *n, Half type)
{
    const Window v = window_of(n, 1 << 20, 1 << 20);
    const bool large = v.kernel[0] >= LARGE && v.kernel[1] >= LARGE;
    return node_int(n, "groups") == 1 && node_int(n, "filters") % CONV_LANES == 0 &&
           (type == HALF_BF16 || large);
}

/* Nothing but the update reads it: added to another gradient, it would be a kernel of ours that computes it. */
static bool is_alone(const Readers *r, const Node *dw)
{
    return readers_count(r, dw) == 1 && node_is(readers_at(r, dw, 0), "update");
}

Node *conv_lanes(Graph *g, const Readers *r, Half type)
{
    Node *x = g->input, *conv = NULL;
    int gradients = 0;

    if (!x || x->dtype != DT_REAL || x->shape.rank != 3 || x->shape.dim[0] < FEWEST ||
        x->shape.dim[0] >= CONV_LANES)
        return NULL;
    for (int i = 0; i < readers_count(r, x); i++) {
        Node *n = readers_at(r, x, i);
        if (node_is(n, "conv2d") && !conv && !n->loop && wants(n, type))
            conv = n;
        else if (!node_is(n, "conv2d_dw") || gradients++ || !is_alone(r, n))
            return NULL;
    }
    if (conv)
        node_set_int(g, x, "lanes", CONV_LANES);
    return conv;
}
