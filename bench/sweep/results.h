/* results.h -- `tenon results`: queries of a store. */
#ifndef SWEEP_RESULTS_H
#define SWEEP_RESULTS_H
#include "sweep/store.h"

/* Repeats of one configuration: runs with the same label, network, settings and machine. */
typedef struct Group {
    const Run *first; /* what they have in common */
    const Run **run;  /* the valid ones: complete, and one attempt of each repeat */
    int n, failed, disturbed;
    double *rate; /* samples/s of each */
    double median, least, most;
} Group;

typedef struct Results {
    Arena *arena;
    Diag *diag;
    Store *store;
    const char *store_path, *output;
    const char *label, *model; /* filters, NULL = all */
    const char **word;         /* of the command: an id, two labels, stores */
    int nword;
    double floor;
    bool csv;
    Run *run;
    int nrun;
    Group *group; /* by model, build, batch, ranks, threads, label */
    int ngroup;
} Results;

int results_main(Arena *a, Diag *d, int argc, char **argv);

void results_group(Arena *a, Run *run, int n, Group **group, int *ngroup);
const char *group_name(Arena *a, const Run *r);  /* "lenet, batch 128, 2 threads" */
const char *group_where(Arena *a, const Run *r); /* the same without the model */

/* The median over a group's runs of the double at that offset in Run; NAN if no run has it. */
double group_median(const Group *g, size_t field);

/* The commands; each returns the exit code. */
int results_list(Results *r);
int results_show(Results *r);
int results_table(Results *r);
int results_best(Results *r);
int results_export(Results *r);
int results_compare(Results *r);
int results_merge(Results *r); /* its store is open for writing, and no run is loaded */
int results_plot(Results *r);
int results_picture(Results *r); /* plot with -o */
int results_report(Results *r);

/* Writes to stdout, or to --output, which gets the whole text or stays as it is. */
int results_write(Results *r, const Text *t);

#endif
