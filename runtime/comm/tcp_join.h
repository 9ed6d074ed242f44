/* tcp_join.h -- the opening of all lines of a run: the interface of tcp_join.c and tcp_listen.c for
 * tcp_meet.c. */
#ifndef COMM_TCP_JOIN_H
#define COMM_TCP_JOIN_H
#include "comm/secret.h"
#include "comm/tcp.h"
#include "comm/tcp_address.h"
#include <poll.h>

enum { JOIN_ADDRESSES = 8 }; /* addresses of rank 0's host that are tried */

/* The address of a rank. */
typedef struct Place {
    Address at;
    char host[64];
} Place;

/* What a new line waits for. */
typedef enum { NONE, CONNECTS, HELLO, CHALLENGE, CALLER, ANSWERER, DONE } Step;

typedef struct Greeting {
    Step step;
    int fd, rank, line;  /* rank: the other end's */
    double since, again; /* time when it began; time of the next call */
    int tries;           /* calls that have failed */
    Hello hello;
    Challenge challenge;
    size_t got; /* bytes received of the awaited message */
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
    double limit, until;        /* seconds; the time at which they are over */
    Address at[JOIN_ADDRESSES]; /* of rank 0 */
    int nat;                    /* number of these addresses */
    char text[300];             /* rank 0's address in words: "node1:21000" */
    bool private;               /* only processes of this host can reach rank 0's address */
    int listener, port;         /* the socket at which this rank listens, and its port */
    int taken;                  /* lines that other ranks have opened */
    int refused;                /* connections that were refused */
    char stranger[300];         /* the last of these, and the reason */
    const char *trouble;        /* reason of the last call that failed */
    int calls, slots;
    Greeting *greeting;   /* [calls + slots]: calls of this rank, then incoming connections */
    struct pollfd *watch; /* [1 + calls + slots]: the listener first */
    Peer *peer;
    Place *place;
} Meeting;

/* Number of slots for incoming connections: what the limit of open files leaves besides all lines.
 * Raises the limit if that is allowed; dies if it is too low. */
int join_slots(const Launch *l);

/* Opens the socket at which this rank listens: at the first of n addresses that can be opened, or,
 * if n is 0, at all addresses of this host.  port 0: any port.  Dies if there is none. */
void join_listen(Meeting *m, const Address *only, int n, int port);

/* Plans the next calls: to ranks from .. to - 1, on lines first .. last each. */
void join_plan(Meeting *m, int from, int to, int first, int last);

/* Runs until all calls are answered and `want` incoming lines are open. */
void join_lines(Meeting *m, int want);

const Address *join_address(const Meeting *m, const Greeting *g); /* the address that g calls */

#endif
