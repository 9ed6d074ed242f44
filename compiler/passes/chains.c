/* chains.c -- computes a chain of elementwise operations in one loop; on a GPU, in one kernel.
 *
 *   relu_d(add(a, b), y)   ->   relu_d(add(a, b){inline}, y)
 *
 * The reader computes the sum in its own loop; the sum is never stored.  A value is inlined if it
 * has one reader of the same shape, and if the loop has at most LOOP_OPS operations and LOOP_LEAVES
 * operands.  An inlined value has no memory.  Later passes that need the value in memory, such as
 * layout and steps, drop the attribute.
 */
#include "ir/readers.h"
#include "ops/op.h"
#include "passes/pass.h"

/* Size of the loop of a node with its inlined operands: operations, and operands in memory. */
typedef struct Tree {
    int ops, leaves;
} Tree;

static Tree own_tree(const Node *n)
{
    Tree t = {.ops = 1};
    for (int i = 0; i < n->nin; i++)
        t.leaves += n->in[i]->op->leaf != LEAF_CONST;
    return t;
}

/* A value that its only reader reads twice stays in memory.  If it were inlined twice, each link of
 * a chain such as h = h * h would double the expression. */
void pass_chains(Graph *g, const Options *o, Diag *d)
{
    (void)o, (void)d;
    const Readers *r = readers_new(g);
    Tree *tree = arena_alloc(g->arena, (size_t)g->next_id * sizeof *tree);

    for (int i = 0; i < g->nnode; i++)
        tree[g->node[i]->id] = own_tree(g->node[i]);
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i],
             *u = n->op->flags & OP_MAP && n->shape.batched ? readers_only(r, n) : NULL;
        if (!u || !(u->op->flags & OP_MAP) || u->loop != n->loop ||
            !shape_same(&n->shape, &u->shape) || readers_uses(r, n) != 1)
            continue;
        const Tree *t = &tree[n->id], *whole = &tree[u->id];
        const Tree both = {t->ops + whole->ops, t->leaves + whole->leaves - 1};
        if (both.ops > LOOP_OPS || both.leaves > LOOP_LEAVES)
            continue;
        tree[u->id] = both;
        node_set_int(g, n, "inline", 1);
    }
}
