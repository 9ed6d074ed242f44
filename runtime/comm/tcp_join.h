/* tcp_join.h -- lines between ranks while they are made: what tcp_meet.c asks of tcp_join.c. */
#ifndef COMM_TCP_JOIN_H
#define COMM_TCP_JOIN_H
#include "comm/secret.h"
#include "comm/tcp.h"
#include "comm/tcp_address.h"
#include <poll.h>

enum { JOIN_ADDRESSES = 8 };                          /* of rank 0's host, that are tried */

/* Where a rank is found. */
typedef struct Place {
    Address at;
    char host[64];
} Place;

/* What a line that is being made waits for. */
typedef enum { NONE, CONNECTS, HELLO, CHALLENGE, CALLER, ANSWERER, DONE } Step;

typedef struct Greeting {
    Step step;
    int fd, rank, line;  /* rank: the one that is called, or that calls */
    double since, again; /* moments: of the beginning; of the next call */
    int tries;
    Hello hello;
    Challenge challenge;
    size_t got; /* bytes of what is waited for */
    union {
        Hello hello;
        Challenge challenge;
        Proof proof;
        char bytes[1];
    } in;
} Greeting;

typedef struct Meeting {
    const Launch *l;
    Secret secret;
    uint64_t job;
    double limit, until; /* seconds; moment */
    Address at[JOIN_ADDRESSES]; /* of rank 0: */
    int nat;             /* their number */
    char text[300];      /* "node1:21000" */
    bool private;        /* a place that only this host reaches */
    int door, port;      /* where this rank is found */
    int taken;           /* lines that others have opened */
    int refused;         /* others that were sent away, and why the last one was */
    char stranger[300];
    const char *trouble; /* of the last call that failed */
    int calls, slots;
    Greeting *greeting;   /* [calls + slots]: this rank's calls, then those who came */
    struct pollfd *watch; /* [1 + calls + slots]: the door first */
    Peer *peer;
    Place *place;
} Meeting;

/* Slots for those who come: as many as the limit of open files leaves beside all lines.  Raises the limit where that is allowed; dies where
 * it is too low. */
int            join_slots(const Launch *l);

/* Where others find this rank: at the first of n addresses that can be opened, or, where n is 0, at all of this host.  port 0: any. */
void           join_open_door(Meeting *m, const Address *only, int n, int port);

/* The next calls are those of ranks from .. to - 1 on lines first .. last. */
void           join_plan(Meeting *m, int from, int to, int first, int last);

/* Until all calls are answered, and `want` lines have come. */
void           join_lines(Meeting *m, int want);

const Address *join_address(const Meeting *m, const Greeting *g);     /* that is called */

#endif
