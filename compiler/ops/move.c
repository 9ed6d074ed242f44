/* move.c -- price of an operation that only moves numbers. */
#include "ops/move.h"

void move_price(const Node *n, const Market *m, Price *p)
{
    double numbers = 0;
    for (int i = 0; i < n->nin; i++) {
        Move v = {0};
        if (n->in[i]->within == n)
            continue;
        n->op->move(n, i, &v);
        numbers += 2 * (double)shape_count(v.scatter ? &n->in[i]->shape : &n->shape);
        numbers += v.filled ? (double)shape_count(&n->shape) : 0;
    }
    p->values = numbers * (double)m->n * m->real;
    p->cycles = 20 + 2 * numbers * (double)m->n / m->lanes;
    price_stream(p, m, p->values, p->values);
}
