/* rt.h -- the runtime as generated code sees it: the one header that a generated program includes.
 *
 * A generated file defines `const RtProgram rt_program`, and a main() that returns
 * rt_main(&rt_program, argc, argv).
 *
 * A program is a few phases.  A phase is a function that runs once for each unit: a slice of the
 * batch, an output panel, a range of parameters.  Any thread can run a unit, in any order, because
 * units of one phase never write the same memory.  A barrier stands between two phases.  The
 * runtime does not know layers; it knows parameters (for checkpoints), phases and sizes.
 *
 * Memory is one arena with three kinds of region; each offset is a literal of the generated file:
 *   fixed    one copy: parameters, optimizer states, packed weights, statistics of all shards
 *   shard    one for each shard of this process: what a phase leaves for a later one, and partial
 *            sums over samples
 *   thread   one for each slice that is computed at a time: its current values
 */
#ifndef RT_H
#define RT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "constants.h"

#ifdef __cplusplus /* programs for a GPU are C++ */
extern "C" {
#define _Thread_local thread_local
#endif

#ifdef RT_F64 /* the flag -DRT_F64; the constant RT_F64 below is a type of stored samples */
#undef RT_F64
#define RT_DOUBLE 1
typedef double real;
#else
typedef float real;
#endif

/* What the optimizer's update needs besides the tensors; constant within a step.
 * bias1, bias2: 1 - beta^t of Adam, computed in double and rounded once.  trust: the trust ratio of
 * a parameter (lars, lamb), else 1. */
typedef struct RtOpt {
    real lr, decay, momentum, rho, beta1, beta2, eps, bias1, bias2, clip_value, trust;
    bool nesterov;
} RtOpt;

/* --dtype f16: the state of loss scaling.  scale: factor of the loss's gradient; good: steps since
 * the factor changed; skipped: steps that were skipped, and halved the factor, because a gradient
 * was not finite; every: number of good steps after which the factor doubles, 0: never.  The struct
 * lies in `fixed`, where the update changes it; checkpoints keep it as a tensor of four numbers.
 * The factor stays between 1 and 2^24. */
typedef struct RtScaling {
    float scale, good, skipped, every;
} RtScaling;
#define RT_SCALING     "loss-scale" /* its name in files; no parameter has this name */
#define RT_SCALE_LEAST 1.0f
#define RT_SCALE_MOST  16777216.0f

/* One of several inputs in a stored row of samples: the offset in bytes, and its type, RT_U8 ... */
typedef struct RtPart {
    int64_t at;
    int type;
} RtPart;

/* One step, or one batch of an evaluation, as the phases see it. */
typedef struct Rt {
    char *fixed;
    char *shard;         /* region of this process's first shard */
    int64_t shard_bytes; /* from one shard's region to the next */
    int shards;          /* shards of this process (or group) */
    int first_shard;     /* index of the first one in the global batch */
    /* NULL: the phases of gradients update the weights.  Else sums go here, at the offsets of
     * RtSum. */
    char *grad;
    /* the batch: sample i of the global batch is row index[i] of the data */
    const void *x;         /* stored samples, row-major (C, H, W) */
    int64_t x_stride;      /* bytes from one stored sample to the next */
    int x_type;            /* RT_U8, RT_F32 ...; tokens are integers */
    double x_scale;        /* factor for u8 */
    int x_height, x_width; /* of stored images, if they are resized */
    const void *label;     /* labels of the stored samples; NULL: none (predict) */
    int64_t label_stride;  /* bytes from the labels of one sample to those of the next */
    int label_type;        /* RT_I32 ... */
    const uint32_t *index; /* index of the stored sample for each sample of the global batch */
    int valid;             /* samples that count; an evaluation's last batch is filled up */
    bool in_order; /* x and label hold only this batch (device/feed.h): row i is sample i of it */
    double scored; /* labels of a sample; in training, the mean number of labels that are not -1 */
    double weighted; /* the same sum, with the weight of each label's class */
    /* random numbers have no state: philox(seed; ..., epoch) */
    uint64_t seed;
    int64_t epoch; /* from 0 */
    /* results: [slices of this process][RT_METRICS]; the runtime adds slices in order within a
     * shard, and shards in the tree */
    double *metric;
    const struct Rt *there; /* for a device: its copy of this struct; NULL on the processor */
    char *scratch;          /* for a device: its only thread region; NULL on the processor */
    real *output;           /* predict: [batch][outputs] in logical order; else NULL */
    double loss_scale;      /* 1 / global batch */
    RtScaling *scaling;     /* f16: on the device; else NULL */
    /* for a device, where one launch can have several steps: */
    int *halted;    /* on the device: not 0 after a loss that is not finite; no update follows */
    int64_t stride; /* bytes from a step's `there` to the next step's */
    float skipped;  /* scaling->skipped before the launch; `opt` counts all steps of the launch */
    /* One token at a time.  carried: states after the last token; carry: states for the next token;
     * cache: keys and values; position: number of tokens so far. */
    const char *carried;
    char *carry, *cache;
    int64_t position;
    /* Tokens are below vocab, or padding.  These two fields are not beside x: there, they would
     * move fields that each call reads to other cache lines, which costs 7 % of a step of 16,384
     * tokens. */
    int64_t vocab;
    int *wrong;   /* 1: a token was out of this range, because a file changed; NULL on a device */
    int threads;  /* that share the units of a phase */
    double share; /* average = ema(...): share of the weights in their new average */
    const double *trust;    /* lars, lamb: the trust ratio of each RtSum; NULL on a device */
    RtPart part[RT_INPUTS]; /* several inputs: where each of them lies in a stored row */
    /* last, because its size depends on `real`; the runtime is compiled once for both types */
    RtOpt opt;
} Rt;
/* Types of stored samples and labels.  The largest U16 and each negative number are padding among
 * tokens.  Among labels they count as -1, a position that is not scored. */
enum { RT_U8, RT_F32, RT_F64, RT_U16, RT_I32, RT_I64 };

/* Statistics of shards that all ranks exchange: rows in `fixed` from `offset` on, with `bytes`
 * bytes for each shard of the batch. */
typedef struct RtKnown {
    int64_t offset, bytes;
} RtKnown;

/* The recipe's `augment`: augment.h.  0: not used. */
typedef struct Augment {
    int shift;
    bool edge, flip; /* new pixels repeat the edge, else they are 0; horizontal */
    int cutout;
    double brightness;
    bool upside; /* flip_vertical */
    double contrast, saturation, hue;
    double degrees, zoom;                 /* rotate, scale */
    double crop_area[2], crop_ratio[2];   /* shares of the area; logarithms of width / height */
    double erase;                         /* the probability */
    double erase_area[2], erase_ratio[2]; /* as those of the crop */
    double mixup, mixup_p;                /* alpha of the distribution of weights; probability */
    double cutmix, cutmix_p;
    int among; /* samples of a batch, if samples are mixed */
} Augment;

/* For a program whose labels are moved with the image. */
typedef struct RtMoved {
    Augment augment;
    int h, w;
    int fill; /* the label of new pixels */
} RtMoved;

/* A phase.  units = per_slice ? slices of this process : count. */
typedef struct RtPhase {
    void (*run)(const Rt *r, char *thread, int unit);
    bool per_slice;
    int count;
    bool from_grad;   /* runs only if r->grad is set: the update after a reduction */
    const char *what; /* "forward and backward, a slice of 16 samples" */
    bool to_grad;     /* sums gradients; if r->grad is set, its units run bucket by bucket */
    /* After a slice phase, with a unit for each shard of this process: writes the shard's rows,
     * which ranks then exchange; or NULL. */
    void (*known)(const Rt *r, char *thread, int unit);
    const RtKnown *row;
    int nrow;
    /* for bench --simulate, in a step: bytes of values outside of thread regions, each value once;
     * bytes of values inside of thread regions, each twice: written and read */
    double bytes, local_bytes;
    /* slice phases: predicted microseconds of a unit on one thread; the part of them in calls that
     * one member of a team makes for all members; barriers of a team in a unit */
    double unit_us, alone_us, barriers;
} RtPhase;

/* Consecutive units of the phase to_grad that take about the same time; predicted: microseconds of
 * all these units together. */
typedef struct RtRange {
    int units;
    double predicted;
} RtRange;

/* An axis of a parameter, for the conversion from the order in files to the order in memory (see
 * the generated table): index i lies at (i / block) * outer + (i % block) * inner. */
typedef struct RtAxis {
    int64_t n, block, outer, inner;
} RtAxis;
enum {
    RT_XAVIER,
    RT_GLOROT,
    RT_HE,
    RT_LECUN,
    RT_ORTHOGONAL,
    RT_UNIFORM,
    RT_NORMAL,
    RT_CONSTANT,
    RT_SECOND
};
enum { RT_FAN_IN, RT_FAN_OUT, RT_FAN_AVG };
typedef struct RtInit { /* compiler/ir/recipe.h explains it */
    int kind;
    bool gaussian;
    int fan;
    double a, b;
} RtInit;
typedef struct RtParam {
    const char *name; /* "conv1.weight" */
    int rank;
    int64_t dim[RT_DIMS]; /* in files: (O, I, H, W), (out, in), (n) */
    int naxis;
    RtAxis axis[8];
    int64_t count_memory;
    int64_t offset;   /* bytes in `fixed`; count_memory reals, padding is 0 */
    int64_t state[2]; /* bytes in `fixed`; -1: none; same layout */
    int64_t fan_in, fan_out;
    RtInit init;
    bool frozen;   /* no update changes it */
    int64_t blank; /* row blank - 1 of a table begins as zeros, because it is not read; 0: no row */
} RtParam;

/* A sum over samples that a step reduces.  offset: in r->grad; count: reals (for gradcheck and
 * --groups); param: index of the parameter whose whole gradient it is, or -1.  In r->grad, sums lie
 * one after another, `grad_bytes` in all: first gradients, then other sums (statistics for running
 * averages).  trusts: the update needs the parameter's trust ratio; decay: then, its factor for the
 * recipe's decay. */
typedef struct RtSum {
    int64_t offset, count;
    int param;
    bool trusts;
    double decay;
} RtSum;

/* Adjacent sums in r->grad, which ranks add in one operation.  Buckets are in the order in which
 * the backward pass completes them. */
typedef struct RtBucket {
    int64_t offset, bytes; /* in r->grad */
    int ready;             /* index of the phase of `train` after which its sums are complete */
    int due;               /* the first phase of the next step that needs its update */
    int units, updates;    /* its units in the gradient phase; its units in the update phase */
} RtBucket;

/* One of several inputs of a model. */
typedef struct RtInput {
    const char *name;
    int rank;
    int64_t dim[RT_DIMS];
    bool tokens; /* integers below RtProgram.vocab */
} RtInput;

enum { RT_SGD, RT_RMSPROP, RT_ADAM, RT_ADAMW, RT_ADAGRAD, RT_LION, RT_LARS, RT_LAMB };
enum {
    RT_SCHED_CONSTANT,
    RT_SCHED_STEP,
    RT_SCHED_COSINE,
    RT_SCHED_POLYNOMIAL,
    RT_SCHED_ONE_CYCLE,
    RT_SCHED_RESTARTS,
    RT_SCHED_PLATEAU
};
enum { RT_TEXT_NONE, RT_TEXT_CHAR, RT_TEXT_BYTE, RT_TEXT_WORD, RT_TEXT_BPE };
typedef struct RtText {
    int unit;     /* RT_TEXT_*: what a token is; NONE: the data are no text */
    bool table;   /* labelled lines; false: one text, whose next tokens are the labels */
    int64_t step; /* tokens from one window to the next; 0: a window's length, or 1 if a window has
                     one label */
} RtText;
typedef struct RtNames {
    int n;
    const char *const *name;
} RtNames;
typedef struct RtTable { /* data = csv(...) */
    bool given;
    RtNames input;    /* columns in the order of the inputs; none: see data/tabular.c */
    RtNames target;   /* columns in the order of the targets */
    RtNames exclude;  /* columns that are no inputs, if no input is named */
    RtNames category; /* columns that hold categories, even if these are numbers */
    bool standardize; /* numbers have mean 0 and deviation 1 in the training split */
    bool mean, other; /* missing = mean, unknown = other; else both are errors */
} RtTable;
typedef struct RtStart {  /* start = weights(file, only, except) */
    const char *file;     /* NULL: a run begins with initial values */
    RtNames only, except; /* patterns of parameters (base/glob.h) */
} RtStart;
/* keep = best(result), stop = patience(epochs, result), schedule = plateau(result, ...) */
typedef struct RtWatch {
    const char *result;  /* "validation_loss"; NULL: none is watched */
    bool larger;         /* a larger value is better */
    int64_t epochs;      /* stop: training ends after this many epochs without a new best value;
                         * plateau: the rate falls after more than this number */
    const char *meaning; /* a metric of the recipe: a hash of its definition, for checkpoints; else
                          * NULL */
} RtWatch;
enum { RT_AVERAGE_NONE, RT_AVERAGE_EMA, RT_AVERAGE_SWA };
typedef struct RtRecipe {
    const char *data;              /* name of a data set, or "synthetic" */
    int64_t samples, test_samples; /* of synthetic data */
    double x_scale;
    RtText text;
    RtTable table;
    double test, validation; /* shares of the samples; 0: not given */
    bool resize;             /* images of any height and width are stretched to the input's size */
    bool stretch; /* folders of images: stretched to the input's size instead of cropped */
    int optimizer;
    double lr, momentum, weight_decay, rho, beta1, beta2, eps, clip_norm, clip_value;
    bool nesterov;
    double trust; /* lars: the trust coefficient */
    int schedule, nat;
    double at[RT_LIST], factor, power, end, warmup, start, rise, first;
    double threshold; /* plateau: relative change that counts as an improvement */
    int64_t cooldown; /* plateau: epochs after a fall that are not counted */
    int64_t epochs, seed;
    RtStart weights;
    int average; /* RT_AVERAGE_*: step/average.h has the formulas */
    double average_decay;
    int64_t average_from;
    RtWatch plateau, keep, stop;
    const char *expect_metric, *expect_op; /* "test_accuracy", ">="; NULL: none */
    double expect_value;
} RtRecipe;

/* A call of a training step.  `bench --layers` reads a clock after each call. */
typedef struct RtCall {
    const char *what, *kernel, *place; /* "conv1", "conv2d_pool_1", "lenet.tn:8" */
    double flops;                      /* of a sample, textbook count; 0: not counted */
    const char *algorithm;             /* "direct, pooled before tanh"; "": there is only one */
    double executed;  /* FLOPs of a sample in the kernel: with idle lanes, without known zeros */
    double predicted; /* microseconds of a step on the nominal core */
    double bytes;     /* read and written in a step, according to the price */
} RtCall;
/* Nanoseconds of this thread for each call; NULL: nothing is measured. */
extern _Thread_local int64_t *rt_ticks;
void rt_tick(int call);
#define TICK(call)                                                                                 \
    do {                                                                                           \
        if (__builtin_expect(rt_ticks != NULL, 0))                                                 \
            rt_tick(call);                                                                         \
    } while (0)

/* A team: the threads that compute one unit of a slice phase together, where there are more
 * threads than units.  Each member runs the whole function of the phase, on the thread region of
 * the team.  A kernel computes the part of its result that belongs to the member (cpu/team.h).  A
 * barrier follows where a later call needs parts of other members.  A thread that computes a unit
 * alone is a team of one. */
typedef struct RtTeam {
    int at, of;              /* index of this thread in the team, from 0; number of members */
    struct Barrier *barrier; /* base/team.h */
    char *own;               /* scratch of this thread; NULL: that of the unit's region */
} RtTeam;
/* A member's part of a table: part `row` of `rows` equal parts of its rows, and part `column` of
 * `columns` of its columns.  rows 0: nothing. */
typedef struct RtGrid {
    int row, rows, column, columns;
} RtGrid;
extern _Thread_local RtTeam rt_team;
void rt_team_wait(void);
RtGrid rt_team_grid(int64_t rows, int64_t columns);
/* The same without `row` and `column`: the numbers of parts, equal for all members. */
RtGrid rt_team_shape(int64_t rows, int64_t columns);
/* Returns the first member's argument to all members, after a barrier.  Another barrier must follow
 * before the next call. */
void *rt_team_share(void *own);
/* Fills `bytes` bytes with zeros; members share them in whole cache lines. */
void rt_team_clear(void *at, int64_t bytes);

/* Whether the calling thread may use the tiles of AMX.  rt_tiles_begin asks the system for
 * permission, and configures the tiles of the thread: 16 rows of 64 bytes each.  If the processor
 * has tiles and the system refuses, a note says so once. */
enum { RT_TILES_UNKNOWN, RT_TILES_READY, RT_TILES_REFUSED, RT_TILES_CHAINS };
extern _Thread_local int rt_tiles;
void rt_tiles_begin(void);
/* To be called before a thread begins. isa: the value of --isa; NULL: not given, tiles where they
 * can be used.  fast: the program is built with --fast; without tiles, it then uses VDPBF16PS on
 * AMD's processors. Dies if `isa` cannot be used. */
void rt_tiles_choose(const char *isa, bool fast);
/* After rt_tiles_choose: RT_TILES_READY, RT_TILES_REFUSED: products by AVX-512, or RT_TILES_CHAINS:
 * by VDPBF16PS, with other bits than the other two. */
int rt_tiles_form(void);

#define TEAM_FIRST (rt_team.at == 0)
/* A call that the first member makes for the whole team. */
#define ALONE(...)                                                                                 \
    do {                                                                                           \
        if (TEAM_FIRST) {                                                                          \
            const int members = rt_team.of;                                                        \
            rt_team.of = 1;                                                                        \
            __VA_ARGS__;                                                                           \
            rt_team.of = members;                                                                  \
        }                                                                                          \
    } while (0)
#define TEAM_BARRIER                                                                               \
    do {                                                                                           \
        if (__builtin_expect(rt_team.of > 1, 0))                                                   \
            rt_team_wait();                                                                        \
    } while (0)

typedef struct RtUnpack RtUnpack; /* data/unpack.h */
extern const RtUnpack rt_unpack_xz;
typedef struct RtDecode RtDecode; /* data/decode.h */
extern const RtDecode rt_decode_images;

typedef struct RtTransport RtTransport; /* comm/transport.h */
extern const RtTransport rt_mpi, rt_tcp;

typedef struct RtDevice RtDevice; /* device/device.h */
extern const RtDevice rt_cuda;

typedef struct RtLink RtLink; /* device/link.h */
extern const RtLink rt_nccl;

/* What outputs are compared with: labels; numbers that the data hold beside each sample, stored as
 * reals of the program; the sample itself. */
enum { RT_TARGET_CLASS, RT_TARGET_NUMBERS, RT_TARGET_INPUT, RT_TARGET_SEVERAL };

/* One of several targets.  A sample's row of labels holds them all: a class as one int32, numbers
 * as reals of the program. */
typedef struct RtTarget {
    const char *name;
    int kind;        /* CLASS, NUMBERS or INPUT, which is not in the row */
    int64_t at;      /* bytes from the start of the row */
    int64_t classes; /* CLASS */
    int rank;        /* NUMBERS: the shape of a sample's numbers */
    int64_t dim[RT_DIMS];
    bool truths; /* NUMBERS: from 0 to 1 */
} RtTarget;

/* One of several outputs.  They lie one after another in a row of predict. */
typedef struct RtOutput {
    const char *name;
    int64_t classes; /* softmax over this many numbers gives probabilities; 0: no softmax does */
    bool binary;     /* sigmoid gives the probability of class 1, or of truths */
    int rank;
    int64_t dim[RT_DIMS];
    int64_t pixels; /* an image with a class for each pixel: numbers from a class to the next one;
                     * 0: classes are adjacent */
} RtOutput;

typedef struct RtProgram {
    /* "lenet", "models/lenet.tn", 16 hex digits of network + recipe + batch + shards + dtype */
    const char *model, *source, *source_hash;
    const char *trained; /* the program only predicts, with weights of this model; else NULL */
    const char *compiler, *flags, *target, *cpu; /* "tenon 0.1.0", "--plain", "cpu", "x86-64-v4" */
    int isa;                                     /* RT_ISA_*: instructions that are needed */
    bool fast_half;                              /* products in bf16 can use VDPBF16PS (--fast) */
    /* products in bf16 on the processor: predicted microseconds of a step on one core, in f32 and
     * in bf16 by AVX-512; 0: not known */
    double us_f32, us_half;
    int real_bytes; /* 4 or 8 */
    /* samples of a batch; shards of a batch; slices of a shard; samples of a chunk: a slice is one
     * or more chunks */
    int batch, shards, slices, chunk;
    int64_t parameters; /* numbers in files */
    double flops_per_sample;
    int64_t fixed_bytes, shard_bytes, thread_bytes, grad_bytes;
    int64_t scratch_bytes;  /* scratch of kernels, at the end of a thread region */
    int64_t more_stack;     /* bytes of stack that its kernels need beyond RT_STACK */
    bool fused_update;      /* gradient phases update the weights if r->grad is NULL */
    int64_t average_bytes;  /* average = ...: bytes of the averages, in memory of the host; or 0 */
    int64_t average_offset; /* of a device: their offset in `fixed`, after the states; or 0 */
    int64_t kept_bytes;     /* keep = best(...): the first bytes of `fixed`, all parameters; or 0 */
    int input_rank;
    /* (C, H, W) or (F); of several inputs: how many numbers they have */
    int64_t input_dim[RT_DIMS];
    const RtInput *input; /* several inputs; NULL: one */
    int ninput;           /* 0: one input */
    int64_t vocab;        /* tokens are 0 .. vocab - 1; 0: samples are numbers */
    int64_t classes;      /* labels are 0 .. classes - 1; 0: the target is no class */
    int64_t labels;       /* of a sample: 1, or one for each position of the input */
    int64_t outputs;      /* numbers of a sample: labels * classes; 1 for a binary label */
    bool softmax_output;  /* predict prints probabilities: the softmax of the output */
    int64_t pixels;       /* as in RtOutput, of one output */
    bool sigmoid_output;  /* the target is numbers: predict prints the sigmoid of the output */
    /* the target is numbers, or classes of pixels: the shape of the output; 0: a row */
    int output_rank;
    int64_t output_dim[RT_DIMS];
    int label_rank; /* classes of pixels: the shape of a sample's labels; 0: a list */
    int64_t label_dim[RT_DIMS];
    const double *class_weight; /* weights of the classes in the loss; NULL: none */
    int64_t ignored;            /* the class ignored - 1 is not scored; 0: all are */
    const RtMoved *moved; /* augment moves the labels, whose scored ones are counted; else NULL */
    int target_kind;      /* RT_TARGET_* */
    const char *target_name;
    int target_rank; /* NUMBERS: the shape of a sample's numbers */
    int64_t target_dim[RT_DIMS];
    bool target_truths;      /* NUMBERS: from 0 to 1 */
    const RtTarget *targets; /* SEVERAL; else NULL */
    int ntarget;
    int64_t target_bytes;   /* of a sample's row */
    const RtOutput *output; /* with several outputs or targets; else NULL: one output */
    int noutput;
    int compared[RT_TARGETS]; /* for each target: index in `output` of what its metrics compare */
    /* csv: for each target, the index of a parameter of the layer that computes its output; -1:
     * none */
    int head[RT_TARGETS];
    const struct RtParam *input_mean; /* the mean training sample, which is subtracted; or NULL */
    bool mixes; /* augment mixes samples of a batch: each rank reads whole batches in training */
    int nmetric;
    /* "loss", "accuracy"; for numbers also "mae", and "rmse" and "r2", whose terms are the mean
     * squared errors of the samples; for masks "iou" and "dice", whose terms are overlaps and
     * unions */
    const char *metric[RT_METRICS];
    int nmeasure; /* the last ones are expressions of the recipe, which only evaluations compute */
    bool perplexity; /* exp of the mean loss is reported, too */
    const RtParam *param;
    int nparam;
    const RtSum *sum;
    int nsum, ngradient;
    const RtBucket *bucket;
    int nbucket;
    const RtRange *range; /* of the units of the phase to_grad */
    int nrange;           /* 0: all units take the same time */
    const RtPhase *train; /* one training step */
    int ntrain;
    const RtPhase *test; /* one batch of an evaluation; slices and thread_bytes as of `train` */
    int ntest;
    /* generate: one token of one text, index[0].  carried: reals of states; cached: reals of keys
     * and values; window: positions at most, 0: any number.  token NULL: the program evaluates only
     * whole windows. */
    const RtPhase *token;
    int ntoken;
    int64_t carried, cached, window;
    RtRecipe recipe;
    const char *const *layer; /* for messages: name and place of each checked value, in order */
    int nlayer;
    /* For a message about a loss that is not finite: for each phase of the forward pass, a function
     * that computes one slice of the batch in r again, and returns the index in `layer` of the
     * first value with a NaN or an infinity, or -1. */
    int (*const *nonfinite)(const Rt *r, char *thread, int unit);
    int nforward;
    const char *core;   /* "Zen 4": the core that predictions are for */
    double core_gflops; /* its FMA peak */
    const RtCall *call; /* calls of a training step, in the order of their TICKs */
    int ncall;
    const RtUnpack *unpack_xz;    /* &rt_unpack_xz; NULL: linked without liblzma */
    const RtTransport *transport; /* between ranks: &rt_mpi, &rt_tcp; NULL: --comm none */
    const RtLink *link;           /* between the devices of ranks: &rt_nccl; NULL: one device */
    const RtDecode *decode;       /* for folders of images: &rt_decode_images; NULL: no libpng */
    const char *const *data_dirs; /* searched for data after $TENON_DATA; ends with NULL; or NULL */
    const RtDevice *device;       /* runs the step: &rt_cuda; NULL: the processor */
    /* Up to steps_most training steps are one launch: of this function or, if it is NULL, of a
     * recording of their phases.  The Rt of step i lies i * stride bytes after `first`; `first` and
     * `arrived` are on the device.  A step whose loss is not finite is the last one.
     * steps_how: "one cluster of 16 blocks", "a CUDA graph". */
    void (*steps)(const Rt *first, int64_t stride, int n, unsigned *arrived);
    int steps_most;
    const char *steps_how;
    void (*libraries)(void); /* called when the device is open: prepares libraries; or NULL */
    /* How libraries multiply.  "tf32": they round factors; "bf16", "f16": they read and write this
     * type; NULL: f32 or f64. */
    const char *products;
    double flops_half;      /* a processor: of flops_per_sample, those with factors in two bytes */
    const RtParam *scaling; /* f16: RtScaling in `fixed`; NULL: the loss is not scaled */
} RtProgram;

enum { RT_ISA_ANY, RT_ISA_X86_V3, RT_ISA_X86_V4, RT_ISA_ARMV8 };

int rt_main(const RtProgram *p, int argc, char **argv);

/* tenon build --tune: measures kernels in turn on `bytes` bytes of synthetic numbers.  Reads only
 * isa and real_bytes of p.  Returns 0, or 1 if the times could not be printed. */
typedef struct RtTrial {
    void (*run)(char *memory);
} RtTrial;
int rt_tune(const RtProgram *p, const RtTrial *trial, int n, int64_t bytes);

/* Index of the local shard of a unit of a slice phase; slices: slices of a shard. */
static inline int rt_shard_of(int unit, int slices)
{
    return unit / slices;
}

#ifdef __CUDACC__ /* device code calls it, too */
#define RT_EVERYWHERE __host__ __device__
#else
#define RT_EVERYWHERE
#endif

/* Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): 128 random
 * bits from a 128-bit counter and a 64-bit key.  Key = seed; counter = (element block, purpose,
 * sample, epoch). */
static inline RT_EVERYWHERE void rt_philox(uint32_t out[4], uint64_t key, uint32_t c0, uint32_t c1,
                                           uint32_t c2, uint32_t c3)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < 10; i++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b, c3 = (uint32_t)a, c0 = n0, c2 = n2;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* The order of an epoch's samples, as a function of the place: place i has sample P(i), where P is
 * a permutation of 0 .. n - 1 that the keys choose.  Nothing is stored, so the processor and a GPU
 * compute only the places that they need.
 *
 * The construction is that of Black and Rogaway (2002, "Ciphers with arbitrary finite domains"): a
 * generalized Feistel network over pairs (row, column) of across x down numbers.  Each round adds a
 * function of one half to the other half, modulo its size.  A result of n or more goes through the
 * network again (cycle walking); there are fewer than `across` such numbers, so this is rare.
 * Both sizes are near sqrt(n), as Black and Rogaway require.  across is even: with two odd sizes,
 * the network would make only even permutations.
 *
 * The function of a round is the two multiplications of Wellons' lowbias32 (2018), applied to the
 * other half and a word of Philox; its high bits are used.  Rounds: 24 for few samples, as many as
 * Mitchell et al. (2021, "Bandwidth-optimal random shuffling for GPUs") found necessary; 12 from
 * RT_ORDER_MANY samples on, where collisions in a round are rare.  (With 12 rounds, five samples
 * are shuffled unevenly; with 8, sixteen: tests/runtime/test_order.c.)  The order is not secret. n
 * is at most 2^32. */
enum { RT_ORDER_ROUNDS = 24, RT_ORDER_MANY = 4096 };
typedef struct RtOrder {
    int64_t n;
    uint32_t across, down;
    int rounds; /* even; 0: the order in which samples are stored */
    uint32_t key[RT_ORDER_ROUNDS];
} RtOrder;
/* The places of a batch: its place i is place first + i of the order. */
typedef struct RtPlaces {
    RtOrder order;
    int64_t first;
} RtPlaces;

/* x (0 .. size - 1) plus a function of the other half and the key, modulo size; size is at most
 * 2^16. */
static inline RT_EVERYWHERE uint32_t rt_order_round(uint32_t x, uint32_t other, uint32_t key,
                                                    uint32_t size)
{
    const uint32_t a = (other ^ key) * 0x7FEB352Du, b = (a ^ a >> 15) * 0x846CA68Bu,
                   sum = x + (uint32_t)((uint64_t)b * size >> 32), less = sum - size;
    return less < sum ? less : sum;
}
/* Sends `at`, a number of the table, through the network once or more often. */
static inline RT_EVERYWHERE uint32_t rt_order_walk(const RtOrder *o, uint32_t at)
{
    do {
        uint32_t row = at / o->down, column = at % o->down;
        for (int i = 0; i < o->rounds; i += 2) {
            row = rt_order_round(row, column, o->key[i], o->across);
            column = rt_order_round(column, row, o->key[i + 1], o->down);
        }
        at = row * o->down + column;
    } while (at >= o->n);
    return at;
}
/* The sample at a place; the order repeats after the last place. */
static inline RT_EVERYWHERE uint32_t rt_order_at(const RtOrder *o, int64_t place)
{
    const uint32_t at = (uint32_t)(place < o->n ? place : place % o->n);
    return o->rounds > 0 ? rt_order_walk(o, at) : at;
}

/* Element i of a stored row of integers; -1: padding, or no label. */
static inline RT_EVERYWHERE int32_t rt_integer_at(const char *row, int type, int64_t i)
{
    switch (type) {
    case RT_U8:
        return ((const uint8_t *)row)[i];
    case RT_U16:
        return ((const uint16_t *)row)[i] == UINT16_MAX ? -1 : ((const uint16_t *)row)[i];
    case RT_I64:
        return (int32_t)((const int64_t *)row)[i];
    default:
        return ((const int32_t *)row)[i];
    }
}

#ifdef __cplusplus
}
#endif

#ifdef RT_KERNELS /* only generated code needs the kernels */
#include "cpu/kernels.h"
#endif

#endif
