/* rule.c -- gradient texts by recursive descent:
 *
 *   sum    = term {("+" | "-") term}
 *   term   = factor {("*" | "/") factor}
 *   factor = "-" factor | number | name | name "(" sum {"," sum} ")" | "(" sum ")"
 */
#include "ops/rule.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Node *sum(Rule *r);

static void bad(const Rule *r, const char *what)
{
    fprintf(stderr, "tenon: internal error: gradient of %s: %s at \"%s\"\n", r->node->op->name,
            what, r->at);
    abort();
}

static void skip(Rule *r)
{
    r->at += strspn(r->at, " ");
}

static bool accept(Rule *r, char c)
{
    skip(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static Node *number(Rule *r, double v)
{
    return graph_const(r->graph, v, shape_make(false, NULL, NULL, 0), r->node->span);
}

static Node *variable(Rule *r, const char *name)
{
    if (!strcmp(name, "dy"))
        return r->dy;
    if (!strcmp(name, "y"))
        return r->node;
    if (!strcmp(name, "a"))
        return r->node->in[0];
    if (!strcmp(name, "b"))
        return r->node->in[1];
    if (!node_attr(r->node, name))
        bad(r, "unknown name");
    return number(r, node_float(r->node, name));
}

/* The called op gets the arguments of node: leaky_relu_d needs the slope of leaky_relu. */
static Node *call(Rule *r, const char *name)
{
    Node *in[2] = {sum(r), NULL};
    const int nin = accept(r, ',') ? 2 : 1;
    if (nin == 2)
        in[1] = sum(r);
    if (!accept(r, ')'))
        bad(r, "needs )");
    return nin == 1 ? op_make_like(r->graph, name, r->node, 1, in[0])
                    : op_make_like(r->graph, name, r->node, 2, in[0], in[1]);
}

static Node *name(Rule *r)
{
    char word[32];
    size_t n = 0;
    for (; isalnum((unsigned char)r->at[n]) || r->at[n] == '_'; n++)
        if (n + 1 == sizeof word)
            bad(r, "long name");
    if (!n)
        bad(r, "needs a name");
    memcpy(word, r->at, n);
    word[n] = 0;
    r->at += n;
    return *r->at == '(' ? (r->at++, call(r, word)) : variable(r, word);
}

static Node *factor(Rule *r)
{
    skip(r);
    if (accept(r, '-'))
        return op_make(r->graph, "neg", r->node->span, 1, factor(r));
    if (accept(r, '(')) {
        Node *n = sum(r);
        if (!accept(r, ')'))
            bad(r, "needs )");
        return n;
    }
    if (!isdigit((unsigned char)*r->at))
        return name(r);
    char *end;
    const double v = strtod(r->at, &end);
    r->at = end;
    return number(r, v);
}

static Node *binary(Rule *r, const char *op, Node *a, Node *b)
{
    return op_make(r->graph, op, r->node->span, 2, a, b);
}

static Node *term(Rule *r)
{
    Node *n = factor(r);
    for (;;)
        if (accept(r, '*'))
            n = binary(r, "mul", n, factor(r));
        else if (accept(r, '/'))
            n = binary(r, "div", n, factor(r));
        else
            return n;
}

static Node *sum(Rule *r)
{
    Node *n = term(r);
    for (;;)
        if (accept(r, '+'))
            n = binary(r, "add", n, term(r));
        else if (accept(r, '-'))
            n = binary(r, "sub", n, term(r));
        else
            return n;
}

Node *rule_eval(Graph *g, Node *node, Node *dy, const char *text)
{
    Rule r = {.graph = g, .node = node, .dy = dy, .at = text};
    Node *n = sum(&r);
    if (*r.at)
        bad(&r, "needs the end");
    return n;
}
