/* state.h -- what the files of runtime/comm share: messages, and waiting for them. */
#ifndef COMM_STATE_H
#define COMM_STATE_H
#include "comm/comm.h"
#include "comm/transport.h"
#include <pthread.h>

enum { TAG_DATA = 1, TAG_ASK, TAG_ANSWER, TAG_SUM };  /* TAG_SUM + i: of the posted sum at place i */
enum { MESSAGE = 1 << 26 };                           /* bytes of one message at most */
enum { COMM_REQUESTS = 256 };                         /* under way beside sums in halves: one exchange, questions and answers */

/* What a rank is doing: its answer to ranks that wait for it. */
typedef struct Whereabouts {
    char    doing[64];                                /* "the sum of gradients"; "" while it computes */
    int64_t step;
    int64_t posts;                                    /* made so far */
    double  seconds;                                  /* since then */
} Whereabouts;

/* What the thread of comm/post.c does: a sum, or where `sum` is NULL a gather. */
typedef struct Post {
    int64_t         number;
    bool            done, begun;
    const CommSum  *sum; int place;
    int64_t         from, n;
    void           *all;
    int64_t         each;
    char            during[64];
} Post;

typedef struct Posts {
    pthread_mutex_t lock;                             /* around changes of this struct */
    pthread_cond_t  posted, finished;
    pthread_t       thread;
    Post           *post; int most;                   /* number k at k % most */
    int64_t         next, oldest;                     /* the number of the next one; those below `oldest` are done */
    int64_t         awaited;                          /* 1 + the number of the post that a thread waits for */
} Posts;

typedef struct CommState {
    const RtTransport *t;
    Comm           *comm;
    double          limit, at_start;                  /* seconds of a wait; until `started`, which the main thread sets */
    bool            started, ending;                  /* ending: all is done, and the ranks wait for each other */
    pthread_mutex_t lock;                             /* around every use of the transport */
    Posts           posts;
    bool            background;                       /* the thread of posts is at work: it naps while it waits */
    char          (*host)[64];
    const char     *doing;                            /* NULL: computing; */
    double          since;
    Whereabouts    *of;                               /* what others answered, */
    bool           *answered;
    void          (*let_go)(void);                    /* comm_at_death */
} CommState;

/* Starts the thread of posts, which also answers for this rank while it computes. */
void comm_start(CommState *s);
bool comm_hurry(CommState *s);                        /* does a thread wait for a post? */
void comm_await_all(Comm *c);

/* Around everything that a rank does with others; nothing nests.  Returns the seconds between. */
void   comm_begin(CommState *s, const char *during);
double comm_end(CommState *s);
void   comm_enter(Comm *c, const char *during);       /* the same by the caller's thread, behind all posts */
void   comm_leave(Comm *c);
void   comm_attend(CommState *s);                     /* answers who asks where this rank is */

/* Between comm_begin and comm_end. */
void comm_gather_now(Comm *c, const CommPart *part, int n);
void comm_sum_now(Comm *c, const CommSum *s, int64_t from, int64_t n);

/* A sum in halves without waiting: go_on does what can be done, and says whether anything could;
 * fills: its partner is there, and it has more to send. */
void comm_sum_begin(const CommSum *s, int place, int tag, int64_t from, int64_t n);
bool comm_sum_go_on(Comm *c, const CommSum *s, int place);
bool comm_sum_fills(const CommSum *s, int place);
bool comm_sum_done(const CommSum *s, int place);

/* Between two looks at what one waits for: leaves the processor, answers others; gives up,
 * naming who is missing, when nothing has come for too long. */
typedef struct Wait { double began; int polls; } Wait;
Wait comm_wait_from_now(void);
void comm_rest(CommState *s, Wait *w);

/* Sends and receives under way, waited for together. */
enum { EXCHANGE_MOST = 128 };
typedef struct Exchange { int request[EXCHANGE_MOST]; int n; } Exchange;
void comm_send(Comm *c, Exchange *e, int to, const void *from, int64_t bytes);
void comm_receive(Comm *c, Exchange *e, int from, void *to, int64_t bytes);
void comm_wait(Comm *c, Exchange *e);

/* wire.c: as bf16, where each rank has one node of the tree. */
int64_t wire_scratch(const Comm *c, int64_t n, int64_t stretch);        /* bytes; zero before the first sum */
void    wire_sum(Comm *c, const CommSum *s, int64_t from, int64_t n);

#endif
