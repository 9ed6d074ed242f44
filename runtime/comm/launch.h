/* launch.h -- number and rank of this process, from the launcher's environment variables alone. */
#ifndef COMM_LAUNCH_H
#define COMM_LAUNCH_H
#include <stdbool.h>
#include <stdint.h>

enum { LAUNCH_RANKS = 1 << 20 }; /* ranks at most */

typedef struct Launch {
    const char *word; /* the variable with the number of ranks: "SLURM_STEP_NUM_TASKS" */
    int rank, size;   /* 0 <= rank < size */
    bool one_host;    /* all ranks are on one host, according to the variables */
} Launch;

/* Reads TENON_RANKS and TENON_RANK, or the variables of mpirun (Open MPI, MPICH) or srun.  size is
 * 1 without a launcher.  Dies and names the variable if its value is no valid number, if the rank
 * is not below the size, or if one of the two is missing. */
Launch launch_read(void);

/* Finds the address where rank 0 waits for the others: $TENON_MEET ("node1:21000"); else on one
 * host a port derived from the job, and on several hosts that port on the first host that Slurm
 * names. Dies if no variable gives an address.  job: the same in all processes of one run, and most
 * likely different in two runs.  It is no secret (secret.h). */
void launch_meeting(const Launch *l, char host[256], int *port, uint64_t *job);

#endif
