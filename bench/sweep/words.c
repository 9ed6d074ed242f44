/* words.c -- the tables of `tenon sweep` and `tenon results`; needs no library. */
#include "sweep/words.h"
#include "sweep/results.h"
#include "sweep/sweep.h"
#include <stdio.h>

/* clang-format off */
#define AT(field) offsetof(Matrix, field)
const Setting setting_table[] = {
    {"batch", "LIST", SETTING_COUNTS, AT(batch), 1, NULL, "samples in a step (default: the recipe's)"},
    {"threads", "LIST", SETTING_COUNTS, AT(threads), 1, "all", "threads of each process; all: one for each processor (default: all)"},
    {"ranks", "LIST", SETTING_COUNTS, AT(ranks), 1, NULL, "processes; more than one are started by mpirun (default: 1)"},
    {"gpus", "LIST", SETTING_COUNTS, AT(gpus), 0, NULL, "GPUs; 0: the processor (default: 0)"},
    {"framework", "LIST", SETTING_WORDS, AT(framework), 0, NULL,
     "frameworks to measure: tenon, pytorch, keras-jax and others (default: tenon)"},
    {"build", "OPTIONS", SETTING_TEXTS, AT(build), 0, NULL, "options of `tenon build`; each --build is one more build to compare"},
    {"set", "KEY=LIST", SETTING_AXES, AT(set), 0, NULL, "values of the model or the recipe: optimizer.lr=0.1,0.01; again for another key"},
    {"epochs", "N", SETTING_COUNT, AT(epochs), 1, NULL, "epochs to train; the first one warms up (default: 3)"},
    {"steps", "N", SETTING_COUNT, AT(steps), 1, NULL, "measure N steps on synthetic samples, in place of epochs"},
    {"repeat", "R", SETTING_COUNT, AT(repeat), 1, NULL, "runs of each configuration (default: 3)"},
    {"layers", "yes|no", SETTING_FLAG, AT(layers), 0, NULL, "measure also the time of each layer (default: no)"},
    {"limit_samples", "N", SETTING_COUNT, AT(limit_samples), 1, NULL, "use only the first N training samples"},
    {"data", "NAME|DIR", SETTING_TEXT, AT(data), 0, NULL, "the data set (default: the recipe's)"},
    {"seed", "N", SETTING_COUNT, AT(seed), 1, NULL, "the seed of the training (default: the recipe's)"},
    {"warm_steps", "N", SETTING_COUNT, AT(warm_steps), 1, NULL, "steps that warm up before each run (default: 20)"},
    {"timeout", "S", SETTING_COUNT, AT(timeout), 1, NULL, "seconds after which a run is ended and counts as failed (default: 86400)"},
    {0}};
#undef AT

#define AT(field) offsetof(Sweep, field)
const SweepOption sweep_option_table[] = {
    {"store", "FILE", SWEEP_TEXT, AT(store_path), 0, "results.db", "the store, an SQLite file"},
    {"label", "NAME", SWEEP_TEXT, AT(label), 0, "the commit of the compiler", "the name of this version"},
    {"infrastructure", "NAME", SWEEP_TEXT, AT(infrastructure), 0, "the name of its processor", "the name of this machine"},
    {"only", "PATTERN", SWEEP_TEXT, AT(only), 0, NULL, "measure only the models whose name fits, such as lenet*"},
    {"order", "N", SWEEP_NUMBER, AT(order), 0, "1", "the seed of the order of runs"},
    {"retries", "N", SWEEP_NUMBER, AT(retries), 0, "2", "how often a disturbed run is repeated"},
    {"python", "PROGRAM", SWEEP_PYTHON, 0, 0, "python3",
     "the interpreter for scripts of other frameworks; mxnet=PROGRAM: only for those of MXNet"},
    {"jobs", "N", SWEEP_NUMBER, AT(jobs), 1, "2", "programs that are built at the same time"},
    {"slurm", "N", SWEEP_NUMBER, AT(slurm), 1, NULL, "run nothing; write a job array of N tasks for Slurm beside the store"},
    {"part", "I/N", SWEEP_TEXT, AT(part), 0, NULL, "run only the I-th of N parts of the programs, as a task of such an array does"},
    {"cold", NULL, SWEEP_TRUE, AT(cold), 0, NULL, "build without the cache and one program at a time, to measure compile times"},
    {"retry-failed", NULL, SWEEP_TRUE, AT(retry_failed), 0, NULL, "run again what failed before"},
    {"dry-run", NULL, SWEEP_TRUE, AT(dry_run), 0, NULL, "print what would be run, and stop"},
    {"help", NULL, SWEEP_HELP, 0, 0, NULL, "print this text"},
    {0}};
#undef AT

const ResultsCommand results_command_table[] = {
    {"list", "", RESULTS_LIST, 0, 0, "every run, one line each"},
    {"show", "ID", RESULTS_SHOW, 1, 1, "everything that is known about one run"},
    {"table", "", RESULTS_TABLE, 0, 0, "median and spread of each configuration"},
    {"best", "", RESULTS_BEST, 0, 0, "configurations of each model, in the order of test accuracy or test loss"},
    {"export", "--csv", RESULTS_EXPORT, 0, 0, "a CSV file with one row for each run; its first nine columns are those of the reports"},
    {"compare", "A B", RESULTS_COMPARE, 2, 2, "what changed from A to B, labels or stores; exit code 1 when B is slower"},
    {"merge", "A.db B.db ...", RESULTS_MERGE, 1, 1000000, "copy the runs of other stores into this one, each run once"},
    {"plot", "", RESULTS_PLOT, 0, 0, "samples/s as bars in the terminal; with -o FILE.png or FILE.svg a picture, by gnuplot"},
    {"report", "-o FILE.html", RESULTS_REPORT, 0, 0, "one HTML page with tables and pictures"},
    {0}};

#define AT(field) offsetof(Results, field)
const ResultsOption results_option_table[] = {
    {"--store", "FILE", RESULTS_OPTION_TEXT, AT(store_path), "results.db", "the store"},
    {"--label", "NAME", RESULTS_OPTION_TEXT, AT(label), NULL, "only runs with this label; patterns such as v1* are allowed"},
    {"--model", "NAME", RESULTS_OPTION_TEXT, AT(model), NULL, "only runs of this model; patterns are allowed"},
    {"--floor", "PERCENT", RESULTS_OPTION_PERCENT, AT(floor), "3", "the smallest change that compare reports, in percent, 0 to 99"},
    {"-o", "FILE", RESULTS_OPTION_TEXT, AT(output), "stdout", "where the result goes; also --output"},
    {"--csv", NULL, RESULTS_OPTION_TRUE, AT(csv), NULL, "the format of export, the only one"},
    {0}};
#undef AT
/* clang-format on */

const char *setting_option_name(char room[64], const Setting *s)
{
    snprintf(room, 64, "--%s", s->name);
    for (char *c = room; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return room;
}

void words_print(void)
{
    char room[64];
    for (const Setting *s = setting_table; s->name; s++)
        printf("sweep\t%s\t%s\t%s\n", setting_option_name(room, s), s->value, s->help);
    for (const SweepOption *o = sweep_option_table; o->name; o++)
        printf("sweep\t--%s\t%s\t%s\n", o->name, o->value ? o->value : "", o->help);
    for (const ResultsCommand *c = results_command_table; c->name; c++)
        printf("results\t%s\t%s\t%s\n", c->name, c->words, c->help);
    for (const ResultsOption *o = results_option_table; o->name; o++)
        printf("results\t%s\t%s\t%s\n", o->name, o->value ? o->value : "", o->help);
}
