/* window1d.h -- windows over the steps of a sequence, for convolution and pooling in 1D.
 *
 *   x (N, T, F)  ->  image (N, F, T, 1)  ->  two-dimensional operation  ->  y (N, T', F')
 *
 * The features are the channels, and a step is a row with one pixel.  The copies in and out are
 * reshape and transpose; pass layout turns them into views, because a sequence in layout ROW and
 * its image in layout LAST have the same bytes.
 */
#ifndef WINDOW1D_H
#define WINDOW1D_H
#include "ops/op.h"

/* Checks that n->in[0] is a sequence and that the window fits.  Sets *window to a node outside of
 * the graph with the attributes of n, in two dimensions: kernel = [K, 1].  Sets *steps to T'. */
bool window1d_check(const Node *n, Node *window, int64_t *steps, Diag *d);

Node *window1d_image(Graph *g, Node *x, Span at);    /* (N, T, F) as (N, F, T, 1) */
Node *window1d_sequence(Graph *g, Node *y, Span at); /* (N, F', T', 1) as (N, T', F') */

#endif
