/* loss.c -- functions that all losses share. */
#include "ops/loss.h"
#include "ops/check.h"
#include "ops/price.h"

bool loss_result(Node *n, Diag *d)
{
    return check_result(n, shape_make(n->in[0]->shape.batched, NULL, NULL, 0), d);
}

void loss_price(const Node *n, const Market *m, Price *p)
{
    const Shape *x = &n->in[0]->shape;

    price_each(p, m, n, 3.0 / m->lanes);
    price_map(p, m, (double)shape_count(x) * (x->batched ? (double)m->n : 1), "exp");
    p->cycles += 60 * (double)m->n;
}

void loss_call_labelled(const Node *n, Call *c, const char *fn)
{
    const Shape *x = &n->in[0]->shape;

    if (x->rank < 2) {
        loss_call(n, c, fn);
        return;
    }
    call_fn(c, arena_printf(c->arena, "%s_each", call_version(c, fn)));
    c->parts = true;
    call_out(c, n);
    for (int i = 0; i < n->nin; i++)
        call_in(c, n->in[i]);
    call_given(c, CALL_SCORED);
    call_text(c, "%lld, %lld, %lld", (long long)c->n, (long long)x->dim[0], (long long)x->dim[1]);
}

void loss_call(const Node *n, Call *c, const char *fn)
{
    call_kernel(c, fn);
    c->parts = true;
    call_out(c, n);
    for (int i = 0; i < n->nin; i++)
        call_in(c, n->in[i]);
    call_text(c, "%lld, %lld", (long long)(n->in[0]->shape.batched ? c->n : 1),
              (long long)shape_count(&n->in[0]->shape));
}
