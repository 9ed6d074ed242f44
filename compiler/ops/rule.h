/* rule.h -- a gradient written as text, "dy * b * pow(a, b - 1)", made into nodes. */
#ifndef RULE_H
#define RULE_H
#include "ops/op.h"

typedef struct Rule {
    Graph *graph;
    Node  *node, *dy;                                 /* y, dy; a and b are node's inputs */
    const char *at;                                   /* what is still to be read */
} Rule;

/* The text's value: + - * / and unary minus, parentheses, numbers, a, b, y, dy, node's float
 * arguments, and calls of elementwise operations by name.  A text that cannot be read is a bug of
 * the table and aborts. */
Node *rule_eval(Graph *g, Node *node, Node *dy, const char *text);

#endif
