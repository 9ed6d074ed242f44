/* report.h -- the sections of the report, in order; a section without data in the store adds nothing. */
#ifndef SWEEP_REPORT_H
#define SWEEP_REPORT_H
#include "sweep/chart.h"
#include "sweep/results.h"

typedef struct Report {
    Results *results;
    Arena *arena;
    Text *out;
    const char *label,
        *before;  /* the newest label, which charts show; the label before it, or NULL */
    Group *group; /* groups of the newest label with valid runs */
    int n;
    const char **model;
    int nmodel;
} Report;

extern const char report_style[];

/* pictures.c */
void report_throughput(Report *r);
void report_scaling(Report *r);
void report_curves(Report *r);
void report_roofline(Report *r);

void report_frameworks(Report *r); /* frameworks.c */

/* tables.c */
void report_summary(Report *r);
void report_machine(Report *r);
void report_table(Report *r);
void report_memory(Report *r);
void report_account(Report *r);
void report_differences(Report *r);
void report_failures(Report *r);

/* A group of the newest label; with `layers`, a group whose layers were measured, or NULL; without, not NULL for a model of r. */
const Group *report_fastest(const Report *r, const char *model, bool layers);

typedef struct LayerTime {
    const Layer *layer;              /* of the first run */
    double ms, gflops, flops, bytes; /* of a step; flops and bytes 0: not counted */
} LayerTime;
int group_layers(Arena *a, const Group *g, LayerTime **layer); /* needs store_details */

void report_begin(Report *r, const char *id, const char *title); /* begins a section */
void report_end(Report *r);

#endif
