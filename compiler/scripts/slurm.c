/* slurm.c -- a job script for Slurm: one program, any number of ranks (processes that know MPI, or one a GPU) that divides the shards, and a run that goes on by
 * itself when its time is over. */
#include "base/quote.h"
#include "ir/step.h"
#include "scripts/scripts.h"

/* A GPU adds only what is one node of the tree. */
static bool fits(int64_t shards, int64_t ranks, bool gpus)
{
    const int64_t each = shards / ranks;
    return shards % ranks == 0 && (!gpus || ranks == 1 || (each & (each - 1)) == 0);
}

/* "ranks: 1, 2, 4 or 8, which ..." */
static const char *divisors(Arena *a, int64_t shards, bool gpus)
{
    Text t = text_new(a);
    if (shards == 1)
        return "only 1 divides the one shard of a batch; --shards makes more";
    text_add(&t, "ranks: ");
    for (int64_t n = 1; n <= shards; n++)
        if (fits(shards, n, gpus))
            text_printf(&t, "%s%lld", n == 1 ? "" : n == shards ? " or " : ", ", (long long)n);
    text_printf(&t, ", which divide the %lld shards of a batch%s", (long long)shards, gpus ? " into 1, 2, 4, 8 ... each" : "");
    return t.s;
}

void script_slurm(const Graph *g, const char *source, bool gpus, Text *out)
{
    const long long shards = (long long)g->step->shards;
    text_printf(out,
                "#!/bin/bash\n"
                "# %s.sbatch -- made by tenon from %s: trains on Slurm, and resumes by itself after its time limit.\n"
                "#\n"
                "#     tenon build %s -o %s %s\n"
                "#     sbatch %s.sbatch [--max-restarts N] [OPTIONS OF THE PROGRAM]\n"
                "#\n"
                "# Two minutes before the limit, and when the job is preempted, all ranks stop after the same step, and rank 0 saves.\n"
                "# The exit code is then 75: this script queues the job again, and the job resumes to the same bits, with any number of ranks.\n"
                "# A lost rank ends the others, and this script queues the job again, 3 times or N.  After the loss of a node, Slurm queues\n"
                "# the job again.  Both resume from the last checkpoint, which is at most ten minutes old.\n"
                "# To continue job J by another job, also with other ranks, add the option --checkpoint %s-J.\n"
                "%s"
                "#SBATCH --job-name=%s\n"
                "#SBATCH --ntasks=%lld                # %s\n"
                "%s"
                "#SBATCH --time=04:00:00\n"
                "#SBATCH --signal=TERM@120\n"
                "#SBATCH --requeue\n"
                "#SBATCH --open-mode=append\n"
                "#SBATCH --output=%s-%%j.out\n"
                "max_restarts=3\n"
                "if [ \"$1\" = --max-restarts ]; then max_restarts=$2; shift $(($# < 2 ? 1 : 2)); fi\n"
                "case $max_restarts in '' | *[!0-9]*) echo \"--max-restarts wants a number, not '$max_restarts'\" >&2; exit 1 ;; esac\n"
                "run=%s-$SLURM_JOB_ID\n"
                "srun %s --cpus-per-task=\"${SLURM_CPUS_PER_TASK:-1}\" --kill-on-bad-exit=0 \\\n"
                "    ./%s --checkpoint \"$run\" --checkpoint-every 600s --resume --log \"$run.jsonl\" \"$@\"\n"
                "code=$?\n"
                "case $code in\n"
                "0 | 1) exit $code ;;               # done, or an error that another try would repeat\n"
                "75) ;;                             # stopped with a checkpoint\n"
                "*) lost=$(($(cat \"$run.lost\" 2> /dev/null || echo 0) + 1))\n"
                "   echo $lost > \"$run.lost\"\n"
                "   [ $lost -le \"$max_restarts\" ] || exit $code ;;\n"
                "esac\n"
                "scontrol requeue \"$SLURM_JOB_ID\"\n"
                "exit $code\n",
                g->name, quote_line(out->arena, source), quote_shell(out->arena, source), g->name,
                gpus ? "--target cuda --comm nccl    anywhere with nvcc" : "--comm mpi        here, or anywhere with the same MPI",
                g->name, g->name,
                gpus ? "# One process a GPU.  The processes connect to a port of the first node; the number of the job decides which.\n"
                       "# TENON_MEET=HOST:PORT in the environment names another place.  NCCL is the libnccl.so.2 that the loader finds,\n"
                       "# or TENON_NCCL=/path/libnccl.so.2.\n"
                     : "",
                g->name, shards, divisors(out->arena, shards, gpus),
                gpus ? "#SBATCH --gpus-per-task=1\n"
                       "#SBATCH --cpus-per-task=4         # of the host, to read data\n"
                     : "#SBATCH --cpus-per-task=2         # threads of a rank: no result depends on them\n",
                g->name, g->name, gpus ? "--mpi=none --gpus-per-task=1" : "--mpi=pmix", g->name);
}
