/* launch.h -- what the launcher that started this process says of the others: by its variables alone, without a library. */
#ifndef COMM_LAUNCH_H
#define COMM_LAUNCH_H
#include <stdbool.h>
#include <stdint.h>

enum { LAUNCH_RANKS = 1 << 20 };                      /* at most */

typedef struct Launch {
    const char *word;                                 /* the variable that says how many: "SLURM_STEP_NUM_TASKS" */
    int         rank, size;                           /* 0 <= rank < size */
    bool        one_host;                             /* as far as it says */
} Launch;

/* By TENON_RANKS and TENON_RANK, or as mpirun (Open MPI, MPICH) and srun set theirs.  size is 1 when there was no launcher.
 * Dies, naming the variable, where one holds no such number, the rank is not below the size, or one of the two is missing. */
Launch launch_read(void);

/* Where rank 0 waits for the others: $TENON_MEET, "node1:21000", or on one host a port made of the job's own name; on several the first
 * one that Slurm names.  Dies when nothing says where.  job: equal in all processes of one run, and hardly in two runs; anybody can
 * know it (secret.h has what nobody else knows). */
void launch_meeting(const Launch *l, char host[256], int *port, uint64_t *job);

#endif
