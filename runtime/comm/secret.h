/* secret.h -- what the processes of a job know and nobody else does: by it they recognise each other (tcp_greet.c).
 *
 * In this order:
 *
 *   TENON_SECRET_FILE   a file that only its owner can read
 *   TENON_SECRET        the secret itself
 *   Open MPI's key      mpirun draws 128 random bits for each job and hands them to its processes in their environment
 *   the user's file     $XDG_CONFIG_HOME/tenon/secret or ~/.config/tenon/secret, else $XDG_RUNTIME_DIR/tenon/secret; made by whoever comes
 *                       first, readable by its owner alone.  Hosts that share home directories share it
 *
 * There is no run without one.
 */
#ifndef COMM_SECRET_H
#define COMM_SECRET_H
#include "comm/launch.h"
#include "hash.h"

typedef struct Secret {
    Hmac key;
    char source[512];                                 /* "TENON_SECRET", "/home/ada/.config/tenon/secret": for messages */
} Secret;

/* Dies where a source is named and cannot be used, or no file can be made; says then how to make one. */
void secret_find(const Launch *l, Secret *s);

#endif
