/* secret.h -- the secret of a job, by which its processes recognise each other (tcp_greet.h).
 *
 * In this order:
 *
 *   TENON_SECRET_FILE   a file that only its owner can read
 *   TENON_SECRET        the secret itself
 *   Open MPI's key      mpirun draws 128 random bits for each job and hands them to its processes in their environment
 *   the user's file     $XDG_CONFIG_HOME/tenon/secret or ~/.config/tenon/secret, else $XDG_RUNTIME_DIR/tenon/secret; the first
 *                       process makes it, readable by its owner alone.  Hosts that share home directories share it
 *
 * Without a secret there is no run, on loopback either: every user of a host reaches its loopback addresses.
 */
#ifndef COMM_SECRET_H
#define COMM_SECRET_H
#include "base/hash.h"
#include "comm/launch.h"

enum { SECRET_LEAST = 16, SECRET_MOST = 4096 };        /* bytes */

typedef struct Secret {
    Hmac key;
    char source[512];                                 /* "TENON_SECRET", "/home/ada/.config/tenon/secret": for messages */
} Secret;

/* Dies where a source is named and cannot be used, or no file can be made; says then how to make one. */
void secret_find(const Launch *l, Secret *s);

#endif
