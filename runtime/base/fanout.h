/* fanout.h -- which thread starts which others: a tree over sockets, caches and groups of threads.
 *
 * Threads are numbered in the order of their processors, so that the threads of a group, a cache
 * and a socket are neighbours.  The first thread of each is its leader.  The tree consists of
 * binomial trees: over the leaders of all sockets; in each socket, over the leaders of its caches;
 * in each cache, over the leaders of its groups; in each group, over its threads.  A parent has a
 * lower number than its children, so threads 0 .. n - 1 are a tree of their own for each n.
 *
 * A parent sends a message to one child after another, first to the child with the largest subtree.
 * The last of T threads gets its message after ceil(log2 T) messages if the parts of each level are
 * powers of two, else after at most two more.  The answers need as many messages.
 */
#ifndef FANOUT_H
#define FANOUT_H
#include "base/cores.h"

enum { FANOUT_GROUP = 8 }; /* threads of a group, at most */

/* A group: threads first .. end - 1. */
typedef struct FanoutGroup {
    int first, end, cache, socket;
} FanoutGroup;

typedef struct Fanout {
    int threads, groups;
    int *group;           /* [threads]: index of the thread's group */
    FanoutGroup *part;    /* [groups] */
    int *parent;          /* [threads]: -1 for thread 0 */
    int *nchild, **child; /* [threads]: children in the order of messages */
} Fanout;

/* Plans the tree.  Thread t is on p[t]; p NULL: all threads share a cache.  The memory comes from
 * rt_alloc. */
void fanout_plan(Fanout *f, const Processor *p, int threads);
void fanout_free(Fanout *f);

#endif
