/* tree.h -- the fixed tree of sums over shards, and the nodes of the tree in a range of shards.
 *
 * The leaves are the shards of the batch.  Each level adds adjacent pairs; a node without neighbour
 * moves up unchanged.  A rank that holds shards a .. b - 1 can add exactly the nodes inside this
 * range; the rest of the tree is added where those nodes are collected.  So the order of additions,
 * and every bit of the sum, is the same for each division of the shards among ranks.
 */
#ifndef TREE_H
#define TREE_H

enum { TREE_NODES = 64 }; /* nodes of one range: at most two a level */

/* Shards first .. first + count - 1; count is a power of two, or less at the end of the batch. */
typedef struct Node {
    int first, count, level;
} Node;

/* The largest nodes that make up shards first .. first + count - 1 of `shards`; returns their
 * number. */
int tree_nodes(int first, int count, int shards, Node node[TREE_NODES]);

/* Calls add(arg, to, from) in the order of the tree, until node 0 of n consecutive nodes holds the
 * sum. */
void tree_add(const Node *node, int n, void (*add)(void *arg, int to, int from), void *arg);

#endif
