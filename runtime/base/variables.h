/* variables.h -- the environment variables that programs read, a row each.
 *
 *   VARIABLE(NAME)     the name as a string; a name without a row does not compile
 *
 * A row: the name, the value that the variable takes, which programs read it (a group of the
 * reference page), and the meaning.  tests/docs/program.sh reports rows that no program reads, and
 * a getenv without a row.
 */
#ifndef VARIABLES_H
#define VARIABLES_H

/* clang-format off */
#define VARIABLES(ROW)                                                                            \
    ROW(TENON_DATA, "DIR", ANY,                                                                   \
        "The first directory in which a data set is looked up by its name. The next ones are "    \
        "those of Tenon, `./models/data` and the current directory.")                             \
    ROW(XDG_CACHE_HOME, "DIR", ANY,                                                               \
        "The cache directory of the user, `~/.cache` when it is not set. Programs for folders "   \
        "of images keep packed images in its subdirectory `tenon` when they cannot write beside " \
        "the images. Programs with cuDNN keep plans there.")                                      \
    ROW(HOME, "DIR", ANY, "The home directory, for `~/.cache` and `~/.config`.")                  \
    ROW(TENON_MACHINE, "DIR", ANY,                                                                \
        "The directory that is read instead of `/` for the cores, caches and limits of the "      \
        "machine: a tree of files as in `/sys` and `/proc`, for tests. No thread is pinned then.")\
    ROW(TENON_TURNS, "1", ANY,                                                                    \
        "All threads of a program take turns on one processor, from first to last (`1`) or from " \
        "last to first (`-1`), with the same results: for tests of many threads.")                \
    ROW(TENON_RANKS, "N", RANKS,                                                                  \
        "The number of ranks of a run that no launcher has started. It takes precedence over "    \
        "the variables of launchers.")                                                            \
    ROW(TENON_RANK, "R", RANKS,                                                                   \
        "The number of this rank, from 0 to N - 1. TENON_RANKS and TENON_RANK are set together.") \
    ROW(OMPI_COMM_WORLD_SIZE, "N", LAUNCHER, "Open MPI's `mpirun`: the number of ranks.")         \
    ROW(OMPI_COMM_WORLD_RANK, "R", LAUNCHER, "Open MPI's `mpirun`: the number of this rank.")     \
    ROW(OMPI_COMM_WORLD_LOCAL_SIZE, "N", LAUNCHER,                                                \
        "Open MPI's `mpirun`: the number of ranks on this host.")                                 \
    ROW(PMI_SIZE, "N", LAUNCHER, "MPICH's `mpiexec`: the number of ranks.")                       \
    ROW(PMI_RANK, "R", LAUNCHER, "MPICH's `mpiexec`: the number of this rank.")                   \
    ROW(PMI_FD, "FD", LAUNCHER, "MPICH's `mpiexec`: shows that MPI knows the other ranks.")       \
    ROW(MPI_LOCALNRANKS, "N", LAUNCHER, "MPICH's `mpiexec`: the number of ranks on this host.")   \
    ROW(PMIX_RANK, "R", LAUNCHER,                                                                 \
        "PMIx, as of `srun --mpi=pmix`: shows that MPI knows the other ranks.")                   \
    ROW(PMIX_NAMESPACE, "NAME", LAUNCHER, "PMIx: tells this run from other runs.")                \
    ROW(SLURM_STEP_NUM_TASKS, "N", LAUNCHER, "Slurm's `srun`: the number of ranks.")              \
    ROW(SLURM_PROCID, "R", LAUNCHER, "Slurm's `srun`: the number of this rank.")                  \
    ROW(SLURM_STEP_NUM_NODES, "N", LAUNCHER, "Slurm's `srun`: the number of hosts.")              \
    ROW(SLURM_STEP_NODELIST, "HOSTS", LAUNCHER,                                                   \
        "Slurm's `srun`: the hosts. Rank 0 of a program with `--comm nccl` waits on the first "   \
        "one.")                                                                                   \
    ROW(SLURM_JOB_ID, "N", LAUNCHER, "Slurm: tells this run from other runs.")                    \
    ROW(SLURM_STEP_ID, "N", LAUNCHER, "Slurm: tells this run from other runs.")                   \
    ROW(SLURM_RESTART_COUNT, "N", LAUNCHER, "Slurm: tells this run from other runs.")             \
    ROW(OMPI_MCA_oob_tcp_keepalive_time, "S", MPI,                                                \
        "Open MPI: seconds after which `mpirun` tests a silent connection. A note recommends a "  \
        "value when ranks are on several hosts and it is not set.")                               \
    ROW(TENON_MEET, "HOST:PORT", NCCL,                                                            \
        "The place where rank 0 waits for the other ranks: a host name, an address, or "          \
        "`[ADDRESS]:PORT` for IPv6. It is needed on several hosts, except under `srun`.")         \
    ROW(TENON_SECRET_FILE, "FILE", NCCL,                                                          \
        "The file with the secret by which ranks recognise each other: 16 to 4096 bytes, the "    \
        "same on all hosts, not readable by others.")                                             \
    ROW(TENON_SECRET, "TEXT", NCCL, "The secret itself, instead of TENON_SECRET_FILE.")           \
    ROW(OMPI_MCA_orte_precondition_transports, "KEY", NCCL,                                       \
        "The key that Open MPI's `mpirun` draws for a run. It is the secret when neither of the " \
        "two variables above is set.")                                                            \
    ROW(XDG_CONFIG_HOME, "DIR", NCCL,                                                             \
        "The configuration directory of the user, `~/.config` when it is not set. The secret "    \
        "`tenon/secret` in it is used when no other is given, and made when it is missing.")      \
    ROW(XDG_RUNTIME_DIR, "DIR", NCCL,                                                             \
        "The runtime directory of the user. `tenon/secret` in it is used when the configuration " \
        "directory cannot hold one.")                                                             \
    ROW(TENON_NCCL, "FILE", NCCL,                                                                 \
        "The library NCCL, instead of `libnccl.so.2` where the system finds it.")                 \
    ROW(TENON_CUBLASLT, "FILE", LIBRARIES,                                                        \
        "The library cuBLASLt, instead of `libcublasLt.so.13` where the system finds it.")        \
    ROW(TENON_CUDNN, "FILE", LIBRARIES,                                                           \
        "The library cuDNN, instead of `libcudnn.so.9` where the system finds it.")               \
    ROW(TENON_CACHE, "DIR", LIBRARIES,                                                            \
        "The directory in which plans of cuDNN are kept, instead of `tenon` in XDG_CACHE_HOME; "  \
        "Tenon itself keeps compiled kernels there.")
/* clang-format on */

#define VARIABLE_NUMBER(name, value, group, text) VARIABLE_##name,
enum { VARIABLES(VARIABLE_NUMBER) VARIABLE_COUNT };
#undef VARIABLE_NUMBER

#define VARIABLE(name) (&#name[0 * VARIABLE_##name])

#endif
