/* attr.c -- attributes of a node: the arguments of its call that are not tensors, and results of
 * rules. */
#include "ir/graph.h"
#include "ir/vocabulary.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether two keys are equal.  The first letter decides most comparisons.  Without this test,
 * planning DenseNet spent a fifth of its time in strcmp. */
static bool equal(const char *a, const char *b)
{
    return *a == *b && strcmp(a, b) == 0;
}

const Attr *node_attr(const Node *n, const char *key)
{
    for (int i = 0; i < n->nattr; i++)
        if (equal(n->attr[i].key, key))
            return &n->attr[i];
    return NULL;
}

/* Aborts with the name of the attribute if it is missing or has another kind.  This is a fault of
 * the compiler, never of the model. */
static const Attr *want(const Node *n, const char *key, AttrKind kind, AttrKind other)
{
    const Attr *a = node_attr(n, key);
    if (!a || (a->kind != kind && a->kind != other)) {
        fprintf(stderr, "tenon: internal error: %s %%%d has no attribute %s of that kind\n",
                op_name(n->op), n->id, key);
        abort();
    }
    return a;
}

int64_t node_int(const Node *n, const char *key)
{
    return want(n, key, ATTR_INT, ATTR_BOOL)->i;
}

double node_float(const Node *n, const char *key)
{
    const Attr *a = want(n, key, ATTR_FLOAT, ATTR_INT);
    return a->kind == ATTR_INT ? (double)a->i : a->f;
}

bool node_bool(const Node *n, const char *key)
{
    return want(n, key, ATTR_BOOL, ATTR_INT)->i != 0;
}

const char *node_string(const Node *n, const char *key)
{
    return want(n, key, ATTR_STRING, ATTR_STRING)->s;
}

const Attr *node_list(const Node *n, const char *key)
{
    return want(n, key, ATTR_REALS, ATTR_REALS);
}

Span node_span(const Node *n, const char *key)
{
    const Attr *a = node_attr(n, key);
    return a && a->span.source ? a->span : n->span;
}

/* Makes a new list, because copies of the node may share the old one. */
void node_set_attr(Arena *a, Node *n, Attr v)
{
    Attr *list = arena_alloc(a, (size_t)(n->nattr + 1) * sizeof *list);
    int i = 0;
    for (int j = 0; j < n->nattr; j++)
        list[j] = n->attr[j];
    while (i < n->nattr && strcmp(list[i].key, v.key))
        i++;
    if (i < n->nattr && !v.span.source)
        v.span = list[i].span;
    list[i] = v;
    n->nattr += i == n->nattr;
    n->attr = list;
}

/* Makes a new list, because copies of the node may share the old one. */
void node_drop_attr(Arena *a, Node *n, const char *key)
{
    Attr *list = arena_alloc(a, (size_t)(n->nattr + 1) * sizeof *list);
    int kept = 0;
    for (int i = 0; i < n->nattr; i++)
        if (strcmp(n->attr[i].key, key) != 0)
            list[kept++] = n->attr[i];
    n->attr = list, n->nattr = kept;
}

void node_set_int(Graph *g, Node *n, const char *key, int64_t v)
{
    node_set_attr(g->arena, n, (Attr){.key = key, .kind = ATTR_INT, .i = v});
}

void node_set_float(Graph *g, Node *n, const char *key, double v)
{
    node_set_attr(g->arena, n, (Attr){.key = key, .kind = ATTR_FLOAT, .f = v});
}

void node_set_string(Graph *g, Node *n, const char *key, const char *v)
{
    node_set_attr(g->arena, n,
                  (Attr){.key = key, .kind = ATTR_STRING, .s = arena_strdup(g->arena, v)});
}

Attr attr_ints(Arena *a, const char *key, const int64_t *v, int count)
{
    int64_t *list = arena_alloc(a, (size_t)(count + 1) * sizeof *list);
    for (int i = 0; i < count; i++)
        list[i] = v[i];
    return (Attr){.key = key, .kind = ATTR_INTS, .list = list, .nlist = count};
}

void node_set_ints(Graph *g, Node *n, const char *key, const int64_t *v, int count)
{
    node_set_attr(g->arena, n, attr_ints(g->arena, key, v, count));
}

void node_copy_attrs(Graph *g, Node *to, const Node *from)
{
    for (int i = 0; i < from->nattr; i++)
        node_set_attr(g->arena, to, from->attr[i]);
}

static bool same_attr(const Attr *a, const Attr *b)
{
    if (strcmp(a->key, b->key) || a->kind != b->kind)
        return false;
    switch (a->kind) {
    case ATTR_INT:
    case ATTR_BOOL:
        return a->i == b->i;
    case ATTR_FLOAT:
        return !memcmp(&a->f, &b->f, sizeof a->f); /* 0 is not -0 */
    case ATTR_STRING:
    case ATTR_REALS: /* the text has all digits of the numbers */
        return !strcmp(a->s, b->s);
    case ATTR_INTS:
        break;
    }
    return a->nlist == b->nlist && !memcmp(a->list, b->list, (size_t)a->nlist * sizeof *a->list);
}

bool node_same_attrs(const Node *a, const Node *b)
{
    for (int i = 0; i < a->nattr && a->nattr == b->nattr; i++)
        if (!same_attr(&a->attr[i], &b->attr[i]))
            return false;
    return a->nattr == b->nattr;
}

bool node_is(const Node *n, const char *op)
{
    return equal(op_name(n->op), op);
}

bool node_transposes(const Node *n, int64_t a, int64_t b, int64_t c)
{
    const int64_t *axes = node_is(n, "transpose") ? node_attr(n, "axes")->list : NULL;
    return axes && n->shape.rank == 3 && (axes[0] + 3) % 3 == a && (axes[1] + 3) % 3 == b &&
           (axes[2] + 3) % 3 == c;
}
