/* tcp.h -- what tcp.c and tcp_meet.c share: the lines between each pair of ranks. */
#ifndef COMM_TCP_H
#define COMM_TCP_H
#include "comm/launch.h"
#include "comm/tcp_greet.h"

/* A line is a TCP connection.  Questions between ranks (watch.c) must overtake data, so they have a
 * line of their own. */
enum { TCP_DATA, TCP_WORDS, TCP_LINES };

typedef struct Peer {
    int fd[TCP_LINES]; /* non-blocking; -1: this rank itself */
    Seal seal[TCP_LINES];
    char host[64];
} Peer;

/* Connects all ranks: each rank connects to rank 0, gets the list of all addresses, and opens its
 * lines.  Returns the peers, [size].  Both ends of a line have proved that they know the job's
 * secret (secret.h).  Dies and names the missing ranks after `limit` seconds. */
Peer *tcp_meet(const Launch *l, double limit);

#endif
