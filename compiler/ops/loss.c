/* loss.c -- what the losses share. */
#include "ops/loss.h"
#include "ops/check.h"

bool loss_result(Node *n, Diag *d)
{
    return check_result(n, shape_make(n->in[0]->shape.batched, NULL, NULL, 0), d);
}

void loss_call(const Node *n, Call *c, const char *fn)
{
    call_fn(c, fn);
    call_out(c, n);
    for (int i = 0; i < n->nin; i++)
        call_in(c, n->in[i]);
    call_text(c, "%lld, %lld", (long long)(n->in[0]->shape.batched ? c->n : 1),
              (long long)shape_count(&n->in[0]->shape));
}
