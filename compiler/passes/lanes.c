/* lanes.c -- samples of few channels lie as eight where cuDNN's engines want that (ops/conv_lanes.h), zeros behind their own.
 *
 *   conv2d(image (3, H, W), convert(w))   ->   conv2d(image{lanes=8}, convert(w){lanes=8})
 *
 * What is written once a step, samples and the copy of the filters, is written so; the kernel that takes the filters' gradient to f32 leaves the
 * rest out.  Shapes, parameters and files stay as they are.
 */
#include "ops/conv_lanes.h"
#include "passes/pass.h"

/* A copy in two bytes that nobody else reads. */
static bool is_copy(const Readers *r, const Node *w)
{
    return w->half && readers_count(r, w) == 1 && (node_is(w, "convert") || node_is(w, "batch_fold"));
}

void pass_lanes(Graph *g, const Options *o, Diag *d)
{
    (void)d;
    if (!g->input || !g->input->half || g->input->layout != LAYOUT_LAST)
        return;
    const Readers *r = readers_new(g);
    Node *conv = conv_lanes(g, r, o->half);
    if (!conv)
        return;
    if (is_copy(r, conv->in[1]))
        node_set_int(g, conv->in[1], "lanes", CONV_LANES);
    else
        node_drop_attr(g->arena, g->input, "lanes");
}
