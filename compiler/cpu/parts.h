/* parts.h -- declarations that the files of compiler/cpu share. */
#ifndef PARTS_H
#define PARTS_H
#include "emit/writer.h"

/* The part of the writer's state that only programs for processors need (Writer.cpu). */
typedef struct CpuState {
    int ncall;  /* number of rows of `calls`, the clocks of bench --layers */
    bool teams; /* the writer is in a slice phase, where teams of threads can share units */
    /* of the slice phase that is being written: predicted microseconds of a step, and of its calls
     * by one thread of a team (ALONE); number of team barriers of a step */
    double slice_us, alone_us, barriers;
    EmitPhase *phase; /* [nphase]: phases of the training step written so far */
    int nphase;
    const Phase *slice;     /* this phase */
    struct Accesses *joint; /* of the calls since the last barrier of a team */
    struct Accesses *head;  /* of the calls of a chunk before its first barrier */
    bool in_head;           /* no barrier has followed a call of the chunk yet */
} CpuState;

/* Number of units of the prepare phase: more for more bytes of packed weights, so that
 * many threads get equal shares.  Kernels that cannot be divided run in the first unit. */
int kernel_prepare_units(const Writer *w);

/* A value that a call reads or writes. */
typedef struct Access {
    const Node *node;
    bool written;
    bool samples; /* each member of a team reads and writes only its own samples: if the chunk is
                   * cut into n equal parts, member i of n has part i */
} Access;

typedef struct Accesses {
    Access *access;
    int count;
} Accesses;

/* A call in generated C: "dense_2", "LOCAL(real, H1), r, first". */
typedef struct Statement {
    const char *fn, *args; /* fn NULL: no call */
    bool parts;            /* each thread of a team computes a part of the result (Call.parts) */
    Accesses all;          /* all values that the call reads and writes */
} Statement;

/* The arguments of a kernel's function. */
typedef struct Arguments {
    Argument *arg;
    int n;
} Arguments;
/* Adds a pointer to n's value, which is parameter `name` of the kernel. */
void arguments_pointer(Writer *w, Arguments *s, const char *name, const Node *n, bool writes);

/* The call that computes n; its kernel is defined once. */
Statement kernel_statement(Writer *w, const Node *n);

/* ---- joint.c: calls of a team that follow each other without a barrier */

void joint_access(Writer *w, Accesses *to, Access o);
/* To be called at the beginning of a slice phase (joint_begin), and before its first chunk
 * (joint_begin_chunk). */
void joint_begin(Writer *w);
void joint_begin_chunk(Writer *w);
/* Whether the call s of n, in phase p, needs no barrier after it.  w keeps the group of calls since
 * the last barrier.  results: after the last call of a chunk, the first member reads metrics. */
bool joint_goes_on(Writer *w, const Phase *p, const Node *n, const Statement *s, bool results);

/* ---- loop.c: elementwise trees and sums as loops with literal bounds */

Statement loop_statement(Writer *w, const Node *n);
Statement loop_sum(Writer *w, const Node *n); /* sum_to, amax_to */

/* ---- move.c: ops that only move numbers (ops/move.h) */

Statement move_statement(Writer *w, const Node *n);

/* ---- price.c: predicted times of calls */

/* The name of a sum over samples, "conv1.weight: "; "" for other values. */
const char *price_title(Arena *a, const Node *n);
/* "direct, pooled before tanh   576.0 kFLOP a sample, 58 % of peak expected"; below 1,000 FLOPs
 * only the algorithm. */
const char *price_cost(const Writer *w, const Node *n, double flops);
/* Textbook FLOPs per sample, of convolutions and products only, as in flops_per_sample. */
double price_flops(const Node *n);
/* The statement that reads the clock after a call of fn, " TICK(3);"; adds a row to the table of
 * calls.  "" outside of training. */
const char *price_tick(Writer *w, const char *what, const char *fn, Span at, double flops,
                       const char *algorithm, Price p);

/* ---- phases.c: the functions of a step, written to w->body */

/* Writes the call of n with its comment and its clock.  *line is the line of the model that was
 * printed last. */
void phase_call(Writer *w, const Node *n, int *line, const char *indent);
void phase_prepare(Writer *w, const Phase *p, const char *fn);
void phase_slice(Writer *w, int phase, const char *fn, const char *about);
/* Returns the number of units as a C expression. */
const char *phase_wide(Writer *w, const Phase *p, const char *fn);
/* The units of a wide phase. */
const EmitRange *phase_wide_ranges(Writer *w, const Phase *p, int *n);
/* Writes nonfinite_K(), and adds the names of the values that it checks, if the phase has calls of
 * the forward pass. */
void phase_nonfinite(Writer *w, int phase);

/* ---- ranges.c: sums and updates, as consecutive ranges of units */

/* Writes the function fn to w->body, and the number of units to *total as a C expression.
 * from_grad: the units update parameters from reduced sums; else they add the sums and update. */
void ranges_write(Writer *w, const char *fn, const char *about, bool from_grad, Text *total);
/* The units of this function. */
const EmitRange *ranges_list(Writer *w, bool from_grad, int *n);

/* ---- target.c */

const char *isa_name(const char *cpu); /* "RT_ISA_X86_V4" */
/* Writes all parts of the file.  This defines the kernels of the file. */
void program_open(Writer *w, const EmitInput *in, Arena *a);
/* Puts the parts together: n headers follow rt.h, `kernels` is the section of kernels. */
EmitUnit program_unit(Writer *w, const char *const *header, int n, const char *kernels);

#endif
