/* emit.h -- from planned graphs to programs: C for processors, CUDA for GPUs. */
#ifndef EMIT_H
#define EMIT_H
#include "base/text.h"
#include "ir/options.h"
#include "ir/step.h"

/* A convolution as a graph of cuDNN's (--kernels=cudnn), the first node that it is for, and its plan, once it has been made. */
typedef struct EmitPlan {
    const Node    *node;
    const char    *ways;                              /* with all of that inside, with one less and so on to none, split at " | " */
    const char    *epilogue[3];                       /* what can be inside: "bias", "add", "relu" */
    int            nepilogue;
    const char    *inside, *behind;                   /* "bias + relu", "": of the way that has been taken, what is a kernel of ours */
    int            way;                               /* the first one that has an engine */
    const char    *text;
    size_t         bytes;
    int64_t        workspace;
    long long      engine;                            /* these two are for people */
    const char    *notes;
} EmitPlan;

typedef struct EmitInput {
    Graph         *train, *test;                      /* both through all passes */
    Graph         *token;                             /* and this one: generate, a token at a time; may be NULL */
    const Options *options;
    const char    *source_name;                       /* "models/lenet.tn", as in the comment at the top */
    const char    *compiler_version;                  /* "tenon 0.1.0" */
    const char    *hash;                              /* emit_hash() of the graph as the front end made it */
    const char    *flags;                             /* what the user chose, for `info`: "--plain --dtype f64" */
    const char    *dtype;                             /* "f32", "f64" */
    const char    *cpu;                               /* resolved: "x86-64-v4", "x86-64-v3", "armv8-a", "generic" */
    bool           mpi;                               /* --comm mpi: the program can be one of several ranks */
    bool           nccl;                              /* --comm nccl: the same on GPUs */
    const char *const *data_dirs;                     /* where the program looks for data by name, after $TENON_DATA */
    int            ndata_dirs;
    const EmitPlan *plan;                             /* that the program is linked with */
    int            nplan;
} EmitInput;

void emit_c(const EmitInput *in, Text *out);          /* the whole generated file */

/* The whole program for a GPU, a C++ file with CUDA's kernels.  First ask whether all of it has such a form: what has none is
 * reported at its line. */
bool emit_cuda_able(const Graph *train, const Graph *test, Diag *d);
void emit_cuda(const EmitInput *in, Text *out);
void emit_calls(const EmitInput *in, Text *out);      /* its calls, a line each: --dump=calls */
bool emit_steps_able(const EmitInput *in, Diag *d);   /* --kernels=persistent: says what stands in the way */
/* Seconds of a step, by a roofline: of launches of several kernels, of many steps in one launch. */
typedef struct EmitSteps {
    double launches, together;
    int64_t count;                                    /* of launches */
} EmitSteps;
EmitSteps emit_steps_expected(Arena *a, const EmitInput *in);
const char *emit_steps_said(Arena *a, const EmitInput *in);             /* what is expected of it: two lines */
/* The graphs of its convolutions, each once, not yet planned; that one of its ways has an engine; the file that holds the plans. */
int  emit_plans(Arena *a, const EmitInput *in, EmitPlan **plan);
void emit_plan_take(Arena *a, EmitPlan *p, int way);
void emit_plans_text(const EmitPlan *plan, int n, Text *out);

/* The same program in files that compile on their own, side by side: the step and each distinct kernel.  The text of a kernel
 * says nothing of the model, and its name ends in a hash of the text: equal kernels of two models are equal files. */
typedef struct EmitUnit {
    const char *name;                                 /* of its file: "conv2d_pool_5bdae5c3" (its function, too), "loss-0"; the step: "lenet" */
    const char *text;
    bool        cuda;                                 /* for nvcc: the file ends in .cu */
    bool        once;                                 /* what it does itself is done once a slice: quickly compiled is as good */
} EmitUnit;
/* Returns how many; those that take the C compiler longest stand first. */
int emit_units(const EmitInput *in, Arena *a, EmitUnit **unit);
/* What a checkpoint is tied to: network, recipe, batch, shards, dtype; not the file's lines, kernels or epochs. 16 hex digits. */
const char *emit_hash(Arena *a, const Graph *forward, const char *dtype);
/* Textbook operations a sample, forward and backward: two a multiply-add of convolutions and products. */
bool emit_counts_flops(const Node *n);                /* is n one of these? */
double emit_flops(const Graph *g);
bool emit_is_call(const Node *n);                     /* does the step call something for n? */

#endif
