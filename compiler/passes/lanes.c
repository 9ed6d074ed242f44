/* lanes.c -- stores samples of few channels with eight channels if an engine of cuDNN needs that
 * (ops/conv_lanes.h); the other channels are zeros.
 *
 *   conv2d(image (3, H, W), convert(w))   ->   conv2d(image{lanes=8}, convert(w){lanes=8})
 *
 * Each step writes the samples and the copy of the filters once, with the zeros.  The kernel that
 * converts the gradient of the filters to f32 drops the other channels.  Shapes, parameters and
 * files do not change.
 */
#include "ir/target.h"
#include "ops/conv_lanes.h"
#include "ops/op.h"
#include "passes/pass.h"

/* Whether w is a copy of filters in a two-byte type, with one reader. */
static bool is_copy(const Readers *r, const Node *w)
{
    return w->half && readers_count(r, w) == 1 && w->op->flags & OP_CAST;
}

void pass_lanes(Graph *g, const Options *o, Diag *d)
{
    (void)d;
    if (!g->input || !g->input->half || g->input->layout != LAYOUT_LAST)
        return;
    const Readers *r = readers_new(g);
    Node *conv = conv_lanes(g, r, target_of(o).reads_few_channels);
    if (!conv)
        return;
    if (is_copy(r, conv->in[1]))
        node_set_int(g, conv->in[1], "lanes", CONV_LANES);
    else
        node_drop_attr(g->arena, g->input, "lanes");
}
