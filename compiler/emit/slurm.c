/* slurm.c -- a job script for Slurm: one program, any number of ranks (processes that know MPI, or one a GPU) that divides the shards, and a run that goes on by
 * itself when its time is over. */
#include "base/quote.h"
#include "emit/emit.h"

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

void emit_slurm(const Graph *g, const char *source, bool gpus, Text *out)
{
    const long long shards = (long long)g->step->shards;
    text_printf(out,
                "#!/bin/bash\n"
                "# %s.sbatch -- made by tenon from %s: trains on Slurm, and goes on by itself when its time is over.\n"
                "#\n"
                "#     tenon build %s -o %s %s\n"
                "#     sbatch %s.sbatch [--max-restarts N] [OPTIONS OF THE PROGRAM]\n"
                "#\n"
                "# Two minutes before the limit (or when the job is preempted) all ranks stop after the same step, rank 0 saves, and the\n"
                "# exit code is 75: the job is queued again, and resumes on whatever ranks it gets, to the same bits.\n"
                "# A rank that is lost ends the others; the job is queued again for that, too, 3 times or N.  A lost node ends the job\n"
                "# itself, and Slurm queues it again.  Both go on from the last checkpoint, at most ten minutes old.\n"
                "# Another job, with other ranks, takes up what job J has saved with --checkpoint %s-J among the options.\n"
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
                "0 | 1) exit $code ;;               # done; or a mistake, which another try would only meet again\n"
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
                gpus ? "# A process a GPU.  They meet at a port of the first node, made of the job's number; TENON_MEET=HOST:PORT in the environment\n"
                       "# names another place.  NCCL is libnccl.so.2 where the loader finds it, or TENON_NCCL=/path/libnccl.so.2.\n"
                     : "",
                g->name, shards, divisors(out->arena, shards, gpus),
                gpus ? "#SBATCH --gpus-per-task=1\n"
                       "#SBATCH --cpus-per-task=4         # of the host, to read data\n"
                     : "#SBATCH --cpus-per-task=2         # threads of a rank: no result depends on them\n",
                g->name, g->name, gpus ? "--mpi=none --gpus-per-task=1" : "--mpi=pmix", g->name);
}
