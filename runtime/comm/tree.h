/* tree.h -- the fixed tree of sums over shards, and which of its nodes a range of shards holds.
 *
 * Leaves are the shards of the batch; neighbours are added, then neighbours of those, and what has no
 * neighbour moves up as it is.  Whoever holds shards a .. b - 1 can add the nodes that lie inside them
 * and nothing more; the rest of the tree is added where those nodes meet.  So the order of a sum, and
 * every bit of it, is the same for any split of the shards.
 */
#ifndef TREE_H
#define TREE_H

enum { TREE_NODES = 64 }; /* of one range: at most two a level */

/* Shards first .. first + count - 1; count is a power of two, or less at the end of the batch. */
typedef struct Node { int first, count, level; } Node;

/* The largest nodes that make up shards first .. first + count - 1 of `shards`; returns how many. */
int tree_nodes(int first, int count, int shards, Node node[TREE_NODES]);

/* Calls add(arg, to, from) in the tree's order until node 0 of the n consecutive ones holds the sum. */
void tree_add(const Node *node, int n, void (*add)(void *arg, int to, int from), void *arg);

#endif
