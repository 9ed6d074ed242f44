/* slurm.c -- `tenon sweep ... --slurm N`: the sweep as a job array for Slurm.
 *
 * Each task measures a part of the matrix (plan_part), on its own node, into its own store.  At its end, its runs are merged
 * into the common store, one task at a time.  So no store is ever open on two nodes: SQLite's WAL does not allow that on a
 * network file system.
 */
#include "sweep/sweep.h"
#include "base/quote.h"
#include "tool/file.h"
#include <stdio.h>
#include <string.h>

static const Span nowhere;

/* The command line without the options that the script sets itself. */
static void add_words(Text *t, const Sweep *s)
{
    static const char *const own[] = {"--slurm", "--store", "--label"};
    for (int i = 0; i < s->argc; i++) {
        bool skip = false;
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
            const size_t n = strlen(own[k]);
            if (strncmp(s->argv[i], own[k], n) == 0 && (!s->argv[i][n] || s->argv[i][n] == '=')) {
                i += !s->argv[i][n];
                skip = true;
                break;
            }
        }
        if (!skip) {
            text_add(t, " ");
            text_add(t, quote_shell(t->arena, s->argv[i]));
        }
    }
}

static Text script(const Sweep *s, const char *stem, int64_t tasks)
{
    Text t = text_new(s->arena);
    text_printf(
        &t,
        "#!/bin/bash\n"
        "# made by tenon sweep: %d configurations in %lld tasks, a node each; at the end "
        "%s holds all runs.\n"
        "#\n"
        "#     sbatch FILE                   more of sbatch's options before FILE, or here\n"
        "#     tenon results table --store %s\n"
        "#\n"
        "# A task that runs out of time (two minutes before the limit) or is preempted is queued "
        "again and continues.\n"
        "# Submitted again, the job makes only the runs that are missing.\n"
        "#SBATCH --job-name=sweep\n"
        "#SBATCH --array=1-%lld\n"
        "#SBATCH --nodes=1\n"
        "#SBATCH --exclusive\n"
        "#SBATCH --time=24:00:00\n"
        "#SBATCH --signal=B:TERM@120\n"
        "#SBATCH --requeue\n"
        "#SBATCH --open-mode=append\n"
        "#SBATCH --output=%%x-%%A-%%a.out\n"
        "export OMPI_MCA_rmaps_base_oversubscribe=1     # ranks are not Slurm's tasks here\n",
        s->plan.nconfig, (long long)tasks, quote_line(t.arena, s->store_path),
        quote_shell(t.arena, s->store_path), (long long)tasks);
    text_add(&t, "tenon=");
    text_add(&t, quote_shell(t.arena, s->tenon));
    text_add(&t, "\nstore=");
    text_add(&t, quote_shell(t.arena, s->store_path));
    text_add(&t, "\npart=");
    text_add(&t, quote_shell(t.arena, stem));
    text_add(&t, ".part-$SLURM_ARRAY_TASK_ID.db\n\"$tenon\" sweep");
    add_words(&t, s);
    if (s->label) { /* now, because the compiler can change before the job runs */
        text_add(&t, " --label ");
        text_add(&t, quote_shell(t.arena, s->label));
    }
    text_printf(&t,
                " \\\n"
                "    --part \"$SLURM_ARRAY_TASK_ID/%lld\" --store \"$part\" & pid=$!\n"
                "trap 'kill $pid' TERM\n"
                "wait $pid\n"
                "code=$?\n"
                "if [ $code -gt 128 ]; then wait $pid; code=$?; fi         # woken by the signal\n"
                "if [ $code = 75 ]; then\n"
                "    scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"\n"
                "    exit\n"
                "fi\n"
                "[ ! -e \"$part\" ] || flock \"$store.merging\" \"$tenon\" results merge \"$part\" "
                "--store \"$store\" || exit 1\n"
                "exit $code\n",
                (long long)tasks);
    return t;
}

int sweep_slurm(Sweep *s)
{
    const size_t n = strlen(s->store_path);
    const bool db = n > 3 && strcmp(s->store_path + n - 3, ".db") == 0;
    const char *stem = arena_strndup(s->arena, s->store_path, db ? n - 3 : n);
    const char *path = arena_printf(s->arena, "%s.sbatch", stem);
    const int64_t tasks = s->slurm < s->plan.nshare ? s->slurm : s->plan.nshare;
    if (tasks < s->slurm)
        printf("%lld tasks instead of %lld: there are no more programs to share out\n",
               (long long)tasks, (long long)s->slurm);
    const Text t = script(s, stem, tasks);
    const int error = file_write(s->arena, path, t.s, t.len, 0777);
    if (error) {
        diag_error(s->diag, nowhere, "cannot write %s: %s", path, strerror(error));
        return 1;
    }
    printf("%s: %lld task%s; sbatch %s\n", path, (long long)tasks, tasks == 1 ? "" : "s", path);
    return 0;
}
