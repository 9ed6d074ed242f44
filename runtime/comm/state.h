/* state.h -- what the files of runtime/comm share: messages, and waiting for them. */
#ifndef COMM_STATE_H
#define COMM_STATE_H
#include "comm/comm.h"
#include "comm/transport.h"
#include <pthread.h>

enum { TAG_DATA = 1, TAG_ASK, TAG_ANSWER };
enum { MESSAGE = 1 << 26 };                           /* bytes of one message at most */

/* Where a rank is, as it tells others that miss it. */
typedef struct Whereabouts {
    char    doing[64];                                /* "the sum of gradients"; "" while it computes */
    int64_t step;
    double  seconds;                                  /* since then */
} Whereabouts;

typedef struct CommState {
    const RtTransport *t;
    Comm           *comm;
    double          limit;
    pthread_mutex_t lock;                             /* around every use of the transport */
    pthread_t       attendant;                        /* answers while this rank computes */
    char          (*host)[64];
    const char     *doing;                            /* NULL: computing; */
    double          since;
    Whereabouts    *of;                               /* what others answered, */
    bool           *answered;
} CommState;

/* Starts the thread that answers for this rank while it computes. */
void comm_watch(CommState *s);

/* Around everything that a rank does with others; nothing nests. */
void comm_enter(Comm *c, const char *during);
void comm_leave(Comm *c);

/* Sends and receives under way, waited for together. */
typedef struct Exchange { int request[TRANSPORT_REQUESTS]; int n; } Exchange;
void comm_send(Comm *c, Exchange *e, int to, const void *from, int64_t bytes);
void comm_receive(Comm *c, Exchange *e, int from, void *to, int64_t bytes);
void comm_wait(Comm *c, Exchange *e);

#endif
