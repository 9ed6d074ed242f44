/* lease.h -- one run at a time has a directory, on any file system.
 *
 * Where flock works, it is the lock, and it ends with the process. Where flock does not work (a
 * directory on NFS, Lustre without -o flock, some FUSE), the file DIR/.tenon-lease names the owner:
 *
 *     tenon lease OWNER beat 0000000042 host NAME         OWNER: see owner.h
 *
 * A thread increments the number `beat` every two seconds. A run that finds such a file asks the
 * system whether an owner on this host still runs. It watches the file of any other owner, and
 * takes the directory if the file does not change for 20 seconds. Clocks of hosts are not compared.
 */
#ifndef LEASE_H
#define LEASE_H

enum { LEASE_BEAT_MS = 2000, LEASE_SILENT_MS = 20000 };

typedef struct Lease Lease;

/* Dies if another run has the directory, or if the directory is not writable. */
Lease *lease_take(const char *directory);

/* To be called before each file is written. Dies if another run has taken the directory because
 * this run, or its disk, was stopped for too long. Allocates nothing. */
void lease_check(Lease *l);

void lease_give(Lease *l); /* l may be NULL */

#endif
