/* secret.h -- the secret of a job, by which its processes recognise each other (tcp_greet.h).
 *
 * Sources, in this order:
 *
 *   TENON_SECRET_FILE   a file that only its owner can read
 *   TENON_SECRET        the secret itself
 *   Open MPI's key      mpirun draws 128 random bits for each job and puts them into the
 *                       environment of its processes
 *   the user's file     $XDG_CONFIG_HOME/tenon/secret or ~/.config/tenon/secret, else
 *                       $XDG_RUNTIME_DIR/tenon/secret.  The first process makes it, readable by its
 *                       owner only.  Hosts that share home directories share the file
 *
 * A run needs a secret also on loopback: every user of a host can reach its loopback addresses.
 */
#ifndef COMM_SECRET_H
#define COMM_SECRET_H
#include "base/hash.h"
#include "comm/launch.h"

enum { SECRET_LEAST = 16, SECRET_MOST = 4096 }; /* bytes */

typedef struct Secret {
    Hmac key;
    char source[512]; /* for messages: "TENON_SECRET", "/home/ada/.config/tenon/secret" */
} Secret;

/* Finds the job's secret.  Dies if a named source cannot be used, or if no file can be made; the
 * message says how to make one. */
void secret_find(const Launch *l, Secret *s);

#endif
