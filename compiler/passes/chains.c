/* chains.c -- elementwise operations behind each other are one loop, of a GPU one kernel.
 *
 *   relu_d(add(a, b), y)   ->   relu_d(add(a, b){inline}, y)      the sum is computed where it is read, and never stored
 *
 * What is read once, by one of the same shape, and no more than LOOP_OPS operations of LOOP_LEAVES values.  What is inline has no memory: pass layout,
 * steps and others that want to read it where it lies have it stored after all.
 */
#include "ir/readers.h"
#include "ops/op.h"
#include "passes/pass.h"

static bool in_loop(const Node *n)
{
    return (n->op->flags & OP_ELEMENTWISE) || node_is(n, "bias");
}

/* How much the loop of a node computes once its operands are inlined: operations, and operands in
 * memory. */
typedef struct Tree {
    int ops, leaves;
} Tree;

static Tree own_tree(const Node *n)
{
    Tree t = {.ops = 1};
    for (int i = 0; i < n->nin; i++)
        t.leaves += !node_is(n->in[i], "const");
    return t;
}

/* A value read twice by its one user stays in memory: written into the loop twice, h = h * h
 * after itself would double the program at each step. */
void pass_chains(Graph *g, const Options *o, Diag *d)
{
    (void)o, (void)d;
    const Readers *r = readers_new(g);
    Tree *tree = arena_alloc(g->arena, (size_t)g->next_id * sizeof *tree);

    for (int i = 0; i < g->nnode; i++)
        tree[g->node[i]->id] = own_tree(g->node[i]);
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i], *u = in_loop(n) && n->shape.batched ? readers_only(r, n) : NULL;
        if (!u || !in_loop(u) || u->loop != n->loop || !shape_same(&n->shape, &u->shape) ||
            readers_uses(r, n) != 1)
            continue;
        const Tree *t = &tree[n->id], *whole = &tree[u->id];
        const Tree both = {t->ops + whole->ops, t->leaves + whole->leaves - 1};
        if (both.ops > LOOP_OPS || both.leaves > LOOP_LEAVES)
            continue;
        tree[u->id] = both;
        node_set_int(g, n, "inline", 1);
    }
}
