/* loss.h -- what the losses share: a number a sample from vectors of k, and its gradient. */
#ifndef LOSS_H
#define LOSS_H
#include "ops/op.h"

bool loss_result(Node *n, Diag *d);                   /* one number a sample of in[0] */
/* fn(out, every input, n, k): k numbers a sample in in[0]. */
/* An exponential for each number, and what a row needs once: its largest number, a sum, a logarithm. */
void loss_price(const Node *n, const Market *m, Price *p);
void loss_call(const Node *n, Call *c, const char *fn);
/* The same for classes: fn, or with a class a position fn_each(out, every input, n, t, k). */
void loss_call_labelled(const Node *n, Call *c, const char *fn);

#endif
