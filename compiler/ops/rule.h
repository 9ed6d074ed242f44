/* rule.h -- makes nodes from the text of a gradient, such as "dy * b * pow(a, b - 1)". */
#ifndef RULE_H
#define RULE_H
#include "ops/op.h"

typedef struct Rule {
    Graph *graph;
    Node *node, *dy; /* y, dy; a and b are the inputs of node */
    const char *at;  /* the unread text */
} Rule;

/* The value of the text.  The text has + - * / and unary minus, parentheses, numbers, a, b, y,
 * dy, float arguments of node, and calls of elementwise operations.  A syntax error is a fault
 * of the table and aborts. */
Node *rule_eval(Graph *g, Node *node, Node *dy, const char *text);

#endif
