/* lease.h -- a directory belongs to one run at a time, on any file system.
 *
 * Where flock works, it is the lock, and ends with the process. Where it does not (a directory on
 * NFS, Lustre without -o flock, some FUSE), a file says who has the directory: DIR/.tenon-lease,
 *
 *     tenon lease OWNER beat 0000000042 host NAME         OWNER: see owner.h
 *
 * A thread counts its beat on every two seconds. A run that finds such a file knows of a process of
 * this host whether it runs; of any other it watches the file, and takes the directory when nothing
 * has moved for 20 seconds. Clocks of hosts are not compared.
 */
#ifndef LEASE_H
#define LEASE_H

enum { LEASE_BEAT_MS = 2000, LEASE_SILENT_MS = 20000 };

typedef struct Lease Lease;

/* Dies when another run has the directory, or when nothing can be written there. */
Lease *lease_take(const char *directory);

/* Before each file: dies when another run has taken the directory since, because this one, or its
 * disk, stood still for too long. Allocates nothing. */
void   lease_check(Lease *l);

void   lease_give(Lease *l);                          /* l may be NULL */

#endif
