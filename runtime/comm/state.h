/* state.h -- what the files of runtime/comm share: messages, and waits for them. */
#ifndef COMM_STATE_H
#define COMM_STATE_H
#include "comm/comm.h"
#include "comm/transport.h"
#include <pthread.h>

enum { TAG_DATA = 1, TAG_ASK, TAG_ANSWER, TAG_SUM }; /* TAG_SUM + i: the posted sum at place i */
enum { MESSAGE = 1 << 26 };                          /* bytes of one message at most */
enum { COMM_REQUESTS = 256 }; /* pending besides sums in halves: an exchange, questions, answers */

/* What a rank is doing: its answer to a rank that waits for it. */
typedef struct Progress {
    char doing[64]; /* "the sum of gradients"; "" while it computes */
    int64_t step;
    int64_t posts;  /* made so far */
    double seconds; /* since it began to do this */
} Progress;

/* A post of comm.h: a sum, or a gather if `sum` is NULL. */
typedef struct Post {
    int64_t number;
    bool done, begun;
    const CommSum *sum;
    int place;
    int64_t from, n;
    void *all;
    int64_t each;
    char during[64];
} Post;

typedef struct Posts {
    pthread_mutex_t lock; /* around changes of this struct */
    pthread_cond_t posted, finished;
    pthread_t thread;
    Post *post;
    int most;             /* post number k is at index k % most */
    int64_t next, oldest; /* number of the next post; all posts below `oldest` are done */
    double counted;       /* time up to which the posts count in Comm.busy */
    int64_t awaited;      /* 1 + number of the post that a thread waits for; 0: none */
} Posts;

typedef struct CommState {
    const RtTransport *t;
    Comm *comm;
    double limit, at_start; /* seconds of a wait; at_start holds until `started` */
    bool started, ending;   /* started: set by the main thread; ending: in comm_close */
    pthread_mutex_t lock;   /* around every use of the transport */
    Posts posts;
    bool background; /* the thread of posts runs posts; its waits soon sleep (comm_rest) */
    char (*host)[64];
    const char *doing;    /* NULL: computing */
    double since;         /* time at which `doing` began */
    Progress *of;         /* the answers of other ranks */
    bool *answered;       /* whether a rank has answered */
    void (*let_go)(void); /* of comm_at_death */
} CommState;

/* Starts the thread of posts, which also answers questions while this rank computes. */
void comm_start(CommState *s);
void comm_await_all(Comm *c);

/* These functions begin and end an operation with other ranks.  Operations do not nest.  comm_end
 * returns the seconds of the operation. */
void comm_begin(CommState *s, const char *during);
double comm_end(CommState *s);
void comm_enter(Comm *c, const char *during); /* the same on the caller's thread, after all posts */
void comm_leave(Comm *c);
void comm_answer(CommState *s); /* answers ranks that ask what this rank is doing */

/* To be called between comm_begin and comm_end. */
void comm_gather_now(Comm *c, const CommPart *part, int n);
void comm_sum_now(Comm *c, const CommSum *s, int64_t from, int64_t n);

/* These functions compute a sum in halves and never wait. go_on sends and adds what it can, and
 * returns whether it could do anything.  fills: a message of the partner has arrived, and messages
 * remain to be sent. */
void comm_sum_begin(const CommSum *s, int place, int tag, int64_t from, int64_t n);
bool comm_sum_go_on(Comm *c, const CommSum *s, int place);
bool comm_sum_fills(const CommSum *s, int place);
bool comm_sum_done(const CommSum *s, int place);

/* Called between two polls of a wait: yields the processor and answers other ranks.  Ends the run
 * and names the missing ranks if the wait is longer than the limit. */
typedef struct Wait {
    double began;
    int polls;
} Wait;
Wait comm_wait_from_now(void);
void comm_rest(CommState *s, Wait *w);

/* exchange.c: pending sends and receives that end together. */
enum { EXCHANGE_MOST = 128 };
typedef struct Exchange {
    int request[EXCHANGE_MOST];
    int n;
} Exchange;
void comm_send(Comm *c, Exchange *e, int to, const void *from, int64_t bytes);
void comm_receive(Comm *c, Exchange *e, int from, void *to, int64_t bytes);
void comm_wait(Comm *c, Exchange *e);

/* wire.c: sums in bf16, if each rank holds one node of the tree. */
int64_t wire_scratch(const Comm *c, int64_t n, int64_t stretch); /* bytes, zeroed by the caller */
void wire_sum(Comm *c, const CommSum *s, int64_t from, int64_t n);

#endif
