/* average.c -- the key `average`: which recipes averages of the weights fit. */
#include "front/train.h"
#include "ops/op.h"

static const Node *batch_norm_of(const Graph *g)
{
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], "batch_norm"))
            return g->node[i];
    return NULL;
}

/* Reports swa that begins after the last epoch, and swa with batch_norm, whose running averages are
 * those of the trained weights.  A moving average of the weights is near them; a mean of weights
 * over many epochs is not. */
void average_check(const Unit *u, const Graph *g)
{
    const Recipe *r = &g->recipe;
    const AverageSpec *a = &r->average;
    const Node *norm = batch_norm_of(g);
    if (a->kind != AVERAGE_SWA)
        return;
    if (a->from > r->epochs) {
        diag_error(u->diag, a->span, "swa begins with epoch %lld, and the recipe has %lld",
                   (long long)a->from, (long long)r->epochs);
        diag_help(u->diag, "begin in the last quarter of the epochs: from = %lld",
                  (long long)(r->epochs - r->epochs / 4));
    } else if (norm) {
        diag_error(u->diag, a->span,
                   "swa averages the weights, and the running averages of batch_norm fit the "
                   "weights of the last step");
        diag_note(u->diag, "batch_norm is on line %d", norm->span.line);
        diag_help(u->diag, "write average = ema(0.999), or normalise with group_norm");
    }
}
