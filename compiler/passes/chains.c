/* chains.c -- computes a chain of elementwise operations in one loop; on a GPU, in one kernel.
 *
 *   relu_d(add(a, b), y)   ->   relu_d(add(a, b){inline}, y)
 *
 * The reader computes the sum in its own loop; the sum is never stored.  A value is inlined if it
 * has one reader of the same shape, and if the loop has at most LOOP_OPS operations and LOOP_LEAVES
 * operands.  bias(0, w), a parameter that is repeated over pixels, is inlined in all readers, which
 * read w.  An inlined value has no memory.  Later passes that need the value in memory, such as
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

/* Whether u can compute n in its loop. */
static bool can_compute(const Tree *tree, const Node *u, const Node *n)
{
    const Tree *t = &tree[n->id], *whole = &tree[u->id];
    return u->op->flags & OP_MAP && u->loop == n->loop && shape_same(&n->shape, &u->shape) &&
           t->ops + whole->ops <= LOOP_OPS && t->leaves + whole->leaves - 1 <= LOOP_LEAVES;
}

static void compute(Tree *tree, const Node *u, const Node *n)
{
    tree[u->id].ops += tree[n->id].ops;
    tree[u->id].leaves += tree[n->id].leaves - 1;
}

/* Inlines bias(0, w) in all readers. */
static void repeat_parameter(Graph *g, const Readers *r, Tree *tree, Node *n)
{
    const int count = readers_count(r, n);
    for (int i = 0; i < count; i++)
        if (!can_compute(tree, readers_at(r, n, i), n))
            return;
    for (int i = 0; i < count; i++)
        compute(tree, readers_at(r, n, i), n);
    node_set_int(g, n, "inline", 1);
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
        if (n->op->epilogue == EPILOGUE_BIAS && n->in[0]->op->leaf == LEAF_CONST &&
            !graph_keeps(g, n)) {
            repeat_parameter(g, r, tree, n);
        } else if (u && can_compute(tree, u, n) && readers_uses(r, n) == 1) {
            compute(tree, u, n);
            node_set_int(g, n, "inline", 1);
        }
    }
}
