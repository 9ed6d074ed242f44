/* emit.h -- from planned graphs to programs: C for processors, CUDA for GPUs. */
#ifndef EMIT_H
#define EMIT_H
#include "base/text.h"
#include "ir/options.h"
#include "ir/step.h"

/* A convolution as a graph of cuDNN (--kernels=cudnn).  A graph has several variants: the first
 * variant computes all operations of the epilogue, and each further variant computes one operation
 * less than the variant before it. */
typedef struct EmitPlan {
    const Node *node;        /* the first node with this graph */
    const char *graph[4];    /* the text of each variant (cuda/words.c) */
    int first;               /* the first variant that may be chosen */
    const char *variants;    /* all variants from `first` on, separated by " | " */
    const char *epilogue[3]; /* operations that can be in the graph: "bias", "add", "relu" */
    int nepilogue;
    /* of the chosen variant, such as "bias + relu" or "": operations that the graph computes;
     * operations that a kernel of Tenon computes */
    const char *inside, *outside;
    int variant;      /* the chosen variant: the first one that has an engine */
    const char *text; /* the plan as cuDNN writes it; NULL: not planned */
    size_t bytes;     /* of text */
    int64_t workspace;
    long long engine;  /* only printed */
    const char *notes; /* only printed */
} EmitPlan;

typedef struct EmitInput {
    Graph *train, *test; /* after all passes */
    Graph *token;        /* for `generate`: one token at a time, after all passes; may be NULL */
    const Options *options;
    const char *source_name;      /* "models/lenet.tn", as in the comment at the top */
    const char *compiler_version; /* "tenon 0.1.0" */
    const char *hash;             /* emit_hash() of the graph as the front end made it */
    const char *flags;            /* the options of the build, for `info`: "--plain --dtype f64" */
    const char *dtype;            /* "f32", "f64" */
    /* resolved: "x86-64-v4", "x86-64-v3", "armv8-a", "generic" */
    const char *cpu;
    bool mpi;                     /* --comm mpi: the program can be one of several ranks */
    bool nccl;                    /* --comm nccl: the same on GPUs */
    const char *const *data_dirs; /* directories of data sets, searched after $TENON_DATA */
    int ndata_dirs;
    const EmitPlan *plan; /* the plans that the program is linked with */
    int nplan;
    /* of a program in bf16 for processors: predicted microseconds of a step on one core, in f32 and
     * in bf16 by AVX-512; 0: not known */
    double us_f32, us_half;
} EmitInput;

/* Units of a phase that take about the same time; us: predicted for all these units. */
typedef struct EmitRange {
    int64_t units;
    double us;
} EmitRange;

/* A phase of a training step.  Times are predicted, for one nominal core; bytes as in
 * step_price_moved. */
typedef struct EmitPhase {
    const char *what;
    bool slices; /* threads can compute a unit as a team */
    int units;   /* number of equal units; 0: `range` has the units */
    const EmitRange *range;
    int nrange;
    double us;                 /* of all units */
    double alone_us, barriers; /* of a unit: microseconds of ALONE calls (rt.h), barriers */
    double bytes, local_bytes;
} EmitPhase;

/* The headers that a text includes, without those that the headers include. */
typedef struct EmitHeaders {
    const char **name;
    int n;
} EmitHeaders;
/* Writes #include "NAME", and adds the header to *h. */
void emit_include(Text *t, EmitHeaders *h, const char *name);

/* A file of the program that compiles separately: the step, or kernels.  The text of a kernel
 * does not contain the model, and the name of its function ends in a hash of the text.  So equal
 * kernels of two models are equal files. */
typedef struct EmitUnit {
    /* of the file: "conv2d_pool-5bdae5c3", "loss-0"; "lenet" for the step */
    const char *name;
    const char *text;
    EmitHeaders headers; /* of the runtime, which the text includes */
    bool products;       /* it calls products of cuBLASLt (runtime/cuda/cublas.h) */
    bool cuda;           /* for nvcc; the name of the file ends in .cu */
    bool mpi;            /* for mpicc: it includes mpi.h */
    /* the code of the file runs only once for each slice, so a low optimisation level is enough */
    bool once;
} EmitUnit;

struct Writer;
/* The functions of a target: cpu_target (cpu/cpu.h), cuda_target (cuda/cuda.h).  ir/target.c has
 * the properties of targets, and passes/pipeline.c has their passes. */
typedef struct EmitTarget {
    const char *suffix; /* of the file of a program: "c", "cu" */
    /* the function that makes a real of a number of two bytes; NULL: a cast does */
    const char *widen;
    /* Whether the program can be written; reports each obstacle at its line.  NULL: always */
    bool (*able)(const EmitInput *in, Diag *d);
    EmitUnit (*whole)(const EmitInput *in, Arena *a); /* the whole program in one file */
    void (*calls)(const EmitInput *in, Text *out); /* --dump=calls: one call per line; NULL: none */
    /* the phases of a step, for `tenon show --threads`; *n: their number; NULL: none */
    const EmitPhase *(*phases)(const EmitInput *in, Arena *a, int *n);

    /* For the files of emit/: the texts of a target in the parts that all targets share. */

    /* The comment above the call of n: text before the shapes, such as "conv1.weight: ", and text
     * after the shapes.  flops: textbook FLOPs per sample. */
    const char *(*title)(Arena *a, const Node *n);
    const char *(*cost)(const struct Writer *w, const Node *n, double flops);
    /* Fields of RtProgram.  machine_fields: the processor or GPU; memory_fields: memory of a
     * thread, NULL: none; device_fields: GPU and libraries, NULL: none. */
    void (*machine_fields)(const EmitInput *in, Text *t);
    void (*memory_fields)(const Graph *g, Text *t);
    void (*device_fields)(const struct Writer *w, Text *t);
} EmitTarget;

/* A hash of the definition of a training run, which checkpoints store: 16 hex digits.  It covers
 * network, recipe, batch, shards and dtype, but not the data set, the seed, lines of the file or
 * kernels.  It covers the number of epochs only if the schedule depends on this number. */
const char *emit_hash(Arena *a, const Graph *forward, const char *dtype);
/* A hash of a metric of the recipe: its expression, and which values are better.  test: the graph
 * of an evaluation, as the front end made it. */
const char *emit_meaning(Arena *a, const Graph *test, const Measure *m);
/* Whether the textbook count of FLOPs includes n: products and attention (OP_FLOPS). */
bool emit_counts_flops(const Node *n);
/* Textbook FLOPs per sample, forward and backward; a multiply-add counts as two. */
double emit_flops(const Graph *g);
double emit_flops_half(const Graph *g); /* those of products with two-byte factors (pass narrow) */
bool emit_is_call(const Node *n);       /* whether the step has a call for n */

#endif
