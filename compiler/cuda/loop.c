/* loop.c -- calls for elementwise trees and sums over broadcast dimensions, on a GPU. */
#include "cuda/lower.h"
#include "emit/nest.h"
#include "ops/step_price.h"

/* Makes the call with its operands: y and the leaves of the tree. */
static CudaCall *lower_operands(Writer *w, const Nest *t, const Node *n)
{
    CudaCall *c = cuda_call(w, n->op->name, n, OUT("y", n));
    for (int k = 0; k < t->nleaf; k++)
        cuda_give(w, c, IN(arena_printf(w->arena, "%c", t->leaf[k].letter), t->leaf[k].node));
    return c;
}

/* Adds a call in which a thread computes number i, its index, then i plus the number of threads,
 * and so on. If the call takes the order of another call, the thread computes the numbers of that
 * order. */
void loop_lower(Writer *w, const Node *n)
{
    Nest t = {0};
    Text b = text_new(w->arena);

    loop_open(w, n, &t);
    const int64_t all = nest_trips(&t, false) * nest_trips(&t, true);
    CudaCall *c = lower_operands(w, &t, n);
    if (t.n > 1)
        nest_indices(&b, &t, false, "at");
    text_printf(&b, "        y[%s] = %s;\n", nest_index(w, "", &t, t.out),
                loop_expression(w, &t, n, false));
    c->code = b.s, c->index = t.n == 1 ? "i" : "at", c->follows = true;
    cuda_give(w, c, EACH(all));
    for (int i = 0; i < c->noperand; i++)
        c->operand[i].walked = nest_in_order(&t, i ? t.leaf[i - 1].stride : t.out, NULL);
    cuda_give_natural(w, c, (Order){.walk = WALK_EACH, .count = all});
}

/* Whether the nest adds the rows of a matrix. */
static bool is_columns(const Nest *t)
{
    const int64_t *in = t->leaf[0].stride;
    return t->n == 2 && !t->out[0] && t->out[1] == 1 && in[1] == 1 && in[0] == t->count[1];
}

/* Whether the nest has a loop whose terms are added, even a loop with one term. */
static bool has_summed_loop(const Nest *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->out[i] == 0)
            return true;
    return false;
}

/* Adds a call in which a block computes one number of y, by adding all terms of this number. */
void loop_lower_sum(Writer *w, const Node *n)
{
    const bool max = node_is(n, "amax_to");
    const bool adds = !n->shape.batched && !max && !step_writes_sum(w->g, n, w->in->options);
    Nest t;
    Text value = text_new(w->arena), body = text_new(w->arena);

    loop_open_sum(w, n, &t);
    const int64_t kept = nest_trips(&t, false), summed = nest_trips(&t, true);
    if (options_gpu_last(w->in->options) && !max && !n->shape.batched && is_columns(&t)) {
        columns_lower_sum(w, n, t.count[1], t.count[0], adds);
        return;
    }
    const char *to = nest_index(w, "", &t, t.out), *from = nest_index(w, "", &t, t.leaf[0].stride);
    const char *const at = *to == '0' ? "" : " at", *const of = has_summed_loop(&t) ? " of" : "";
    text_printf(&value, "[=](int%s, int%s) {\n", at, of);
    nest_indices(&value, &t, false, "at");
    nest_indices(&value, &t, true, "of");
    text_printf(&value, "        return %sa[%s];\n    }", n->in[0]->half ? "(real)" : "", from);
    const bool in_order = nest_in_order(&t, t.out, t.out) && cuda_numbers(w, n) == kept;
    if (!max && in_order && parts_lower_sum(w, n, kept, summed, value.s))
        return;
    text_printf(&body, "    block_%s(%lld, %lld, %s, [=](int%s, real sum) {\n",
                max ? "maxima" : "sums", (long long)kept, (long long)summed, value.s, at);
    nest_indices(&body, &t, false, "at");
    text_printf(&body, "        y[%s] %s sum;\n    });\n", to, adds ? "+=" : "=");
    CudaCall *c = lower_operands(w, &t, n);
    c->code = body.s;
    cuda_give(w, c, BLOCKS_OF("sum", kept));
    if (!in_order)
        return;
    c->operand[0].walked = true;
    cuda_give_natural(w, c, (Order){.walk = WALK_SUMS, .count = kept});
}
