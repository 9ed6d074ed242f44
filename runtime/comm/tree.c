/* tree.c -- see tree.h. */
#include "comm/tree.h"

int tree_nodes(int first, int count, int shards, Node node[TREE_NODES])
{
    int n = 0;
    for (const int end = first + count; first < end;) {
        Node x = {first, 1, 0};
        for (int size = 2; first % size == 0; size *= 2) {
            const int last = first + size < shards ? first + size : shards;
            if (last > end || size / 2 >= shards)
                break;
            x = (Node){first, last - first, x.level + 1};
        }
        node[n++] = x;
        first += x.count;
    }
    return n;
}

/* A node that waits for its right neighbour.  index: its position among the nodes of its level. */
typedef struct Waiting {
    int at, level, index;
} Waiting;

void tree_add(const Node *node, int n, void (*add)(void *arg, int to, int from), void *arg)
{
    Waiting stack[TREE_NODES];
    int depth = 0;
    for (int i = 0; i < n; i++) {
        Waiting x = {i, node[i].level, node[i].first >> node[i].level};
        for (; depth > 0 && x.index % 2 == 1 && stack[depth - 1].level == x.level; depth--) {
            add(arg, stack[depth - 1].at, x.at);
            x = (Waiting){stack[depth - 1].at, x.level + 1, x.index / 2};
        }
        stack[depth++] = x;
    }
    for (; depth > 1; depth--) /* end of the batch: a node without neighbour moves up */
        add(arg, stack[depth - 2].at, stack[depth - 1].at);
}
