/* loss.c -- functions that all losses share. */
#include "ops/loss.h"
#include "ops/check.h"
#include "ops/price.h"

bool loss_result(Node *n, Diag *d)
{
    return check_result(n, shape_make(n->in[0]->shape.batched, NULL, NULL, 0), d);
}

/* Rejects a single class: its one-hot vector is 1 for every sample, so there is nothing to
 * learn. */
static bool check_one_hot(const Node *n, Diag *d)
{
    if (!node_is(n->in[1], "one_hot") || node_int(n->in[1], "classes") > 1)
        return true;
    diag_error(d, n->span, "%s compares %s with a one-hot vector of 1 class, which is always 1",
               n->op->name, shape_text(diag_arena(d), &n->in[0]->shape));
    check_note(n, 0, d);
    diag_help(d, "to learn a number, declare it in the recipe: target = price: f32[1]; to learn a "
                 "class, end the model with a number for each class: dense(10) for ten; for a yes "
                 "or no "
                 "keep dense(1) and use loss = sigmoid_cross_entropy");
    return false;
}

/* Adds the help for an output and a target of different shapes. */
static void suggest_shape(const Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape, *t = &n->in[1]->shape;
    const char *dims = "";

    if (shape_count(x) == shape_count(t)) {
        for (int i = 0; i < t->rank; i++)
            dims =
                arena_printf(diag_arena(d), "%s%s%lld", dims, i ? ", " : "", (long long)t->dim[i]);
        diag_help(d, "end the model with reshape([%s])", dims);
    } else if (x->rank == 1 && t->rank == 1) {
        diag_help(d, "end the model with dense(%lld), or change the target", (long long)t->dim[0]);
    } else {
        diag_help(d, "change the model or the target so that both have the same shape");
    }
}

bool loss_of_numbers(Node *n, Diag *d)
{
    if (!check_real(n, 0, d) || !check_real(n, 1, d) || !check_one_hot(n, d))
        return false;
    if (shape_same(&n->in[0]->shape, &n->in[1]->shape))
        return loss_result(n, d);
    diag_error(d, n->span, "%s of %s and %s: the shapes differ", n->op->name,
               shape_text(diag_arena(d), &n->in[0]->shape),
               shape_text(diag_arena(d), &n->in[1]->shape));
    check_note(n, 0, d);
    check_note(n, 1, d);
    suggest_shape(n, d);
    return false;
}

void loss_numbers_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node *dx =
        op_make_like(g, arena_printf(g->arena, "%s_dx", n->op->name), n, 3, n->in[0], n->in[1], dy);
    grad_add(gr, n->in[0], dx);
    if (grad_wanted(gr, n->in[1]))
        grad_add(gr, n->in[1], op_make(g, "neg", n->span, 1, dx));
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
    call_in_parts(c, n);
    call_given(c, CALL_SCORED);
    call_text(c, "%lld, %lld, %lld", (long long)c->n, (long long)x->dim[0], (long long)x->dim[1]);
}

void loss_call_weighted(const Node *n, Call *c, const char *fn, const char *weights)
{
    const Shape *x = &n->in[0]->shape;

    call_fn(c, arena_printf(c->arena, "%s_each", call_version(c, fn)));
    call_in_parts(c, n);
    call_given(c, CALL_WEIGHTED);
    call_text(c, "%lld, %lld, %lld", (long long)c->n, (long long)(x->rank < 2 ? 1 : x->dim[0]),
              (long long)x->dim[x->rank - 1]);
    call_text(c, "RT_WEIGHTS(%s)", weights);
}

void loss_call(const Node *n, Call *c, const char *fn)
{
    call_kernel(c, fn);
    call_in_parts(c, n);
    call_text(c, "%lld, %lld", (long long)(n->in[0]->shape.batched ? c->n : 1),
              (long long)shape_count(&n->in[0]->shape));
}

void loss_kernel(const Node *n, Call *c)
{
    loss_call(n, c, n->op->name);
}
