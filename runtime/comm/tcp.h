/* tcp.h -- what tcp.c and tcp_meet.c share: two lines between any two ranks. */
#ifndef COMM_TCP_H
#define COMM_TCP_H
#include "comm/launch.h"
#include "comm/tcp_greet.h"

/* What is asked overtakes what is sent: so it has a line of its own. */
enum { TCP_DATA, TCP_WORDS, TCP_LINES };

typedef struct Peer {
    int  fd[TCP_LINES];                               /* not blocking; -1: this rank itself */
    Seal seal[TCP_LINES];
    char host[64];
} Peer;

/* All ranks come to the place where rank 0 waits, are told where the others are, and open their lines: [size].  Both ends of
 * a line have proved that they know the job's secret (secret.h).  Dies, naming the ranks that have not come, when that takes
 * longer than `limit` seconds. */
Peer *tcp_meet(const Launch *l, double limit);

#endif
