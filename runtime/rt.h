/* rt.h -- the runtime as generated code sees it: the one header that a generated program includes.
 *
 * A generated file defines `const RtProgram rt_program` and main() { return rt_main(&rt_program, argc, argv); }.
 * The program is a few phases; a phase is a function run once a unit (a slice of the batch, an output panel, a range
 * of parameters), by whichever thread is free to, in any order: units of one phase never share what they write.
 * Between phases stands a barrier.  The runtime knows no layer; it knows parameters (for checkpoints), phases and sizes.
 *
 * Memory is one arena of three kinds of region, every offset a literal of the generated file:
 *   fixed    one copy: parameters, optimizer states, packed weights, reduced gradients
 *   shard    one a shard held by this process: what a phase leaves for a later one, and sums over samples on their way
 *   thread   one a thread: scratch of the slice at work
 */
#ifndef RT_H
#define RT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "constants.h"

#ifdef __cplusplus                                    /* programs for a GPU are C++ */
extern "C" {
#define _Thread_local thread_local
#endif

#ifdef RT_F64                                         /* -DRT_F64: the flag; RT_F64 below: a type of stored samples */
#undef RT_F64
#define RT_DOUBLE 1
typedef double real;
#else
typedef float real;
#endif

/* What the optimizer's update needs besides the tensors; constant within a step.
 * bias1, bias2: 1 - beta^t of Adam, computed in double and rounded once. */
typedef struct RtOpt { real lr, decay, momentum, rho, beta1, beta2, eps, bias1, bias2, clip_value; bool nesterov; } RtOpt;

/* --dtype f16: the factor of the loss's gradient (scale); steps since the factor changed (good); steps that were left out and
 * halved it, because a gradient was not finite (skipped); it doubles after this number of good steps, 0: never (every).  It lies
 * in `fixed`, where the update changes it; checkpoints keep it as a tensor of four numbers.  It stays between 1 and 2^24. */
typedef struct RtScaling { float scale, good, skipped, every; } RtScaling;
#define RT_SCALING     "loss-scale"                   /* in files: no name of a parameter */
#define RT_SCALE_LEAST 1.0f
#define RT_SCALE_MOST  16777216.0f

/* One step (or one evaluation sweep) as the phases see it. */
typedef struct Rt {
    char       *fixed;
    char       *shard;                                /* region of this process's first shard; the next lies shard_bytes on */
    int64_t     shard_bytes;
    int         shards;                               /* held by this process (or group) */
    int         first_shard;                          /* its first shard's number in the global batch */
    char       *grad;                                 /* NULL: update inside the weight gradient; else sums go here (layout of `fixed` gradients) */
    /* the batch: sample i of the global batch is row index[i] of the data */
    const void *x;                                    /* stored samples, row-major (C, H, W) */
    int64_t     x_stride;                             /* bytes a stored sample */
    int         x_type;                               /* RT_U8, RT_F32 ...; tokens are integers */
    double      x_scale;                              /* multiplies u8 */
    int         x_height, x_width;                    /* of stored images, if they are resized */
    const void *label;                                /* of stored samples; NULL when there are none (predict) */
    int64_t     label_stride;                         /* bytes from a sample's labels to the next one's */
    int         label_type;                           /* RT_I32 ... */
    const uint32_t *index;                            /* global batch -> stored sample; valid entries only: count of them below */
    int         valid;                                /* samples of index that count (evaluation's last batch is filled up) */
    bool        in_order;                             /* x and label hold this batch only (device/feed.h): row i is sample i; index still names it */
    double      scored;                               /* labels that count, divided by samples; in training without labels of -1 */
    /* randomness: counters, never state */
    uint64_t    seed;
    int64_t     epoch;                                /* 0-based */
    /* results, a slot a slice, summed by the runtime in slice order within a shard, shards in the tree */
    double     *metric;                               /* [slices of this process][RT_METRICS] */
    const struct Rt *there;                           /* the device's copy of this struct, for its kernels; NULL on the processor */
    char       *scratch;                              /* the device's one thread region; NULL on the processor */
    real       *output;                               /* predict: [batch][outputs] in logical order, else NULL */
    double      loss_scale;                           /* 1 / global batch */
    RtScaling  *scaling;                              /* in f16: on the device; else NULL */
    /* on a device, where one launch can have several steps: */
    int        *halted;                               /* on the device: not 0 after a loss that is not finite; then nothing is updated */
    int64_t     stride;                               /* bytes from a step's `there` to the next step's */
    float       skipped;                              /* scaling->skipped before the launch; `opt` counts all steps of the launch */
    /* a token at a time: states from the last token and for the next one, keys and values, tokens so far */
    const char *carried;
    char       *carry, *cache;
    int64_t     position;
    /* Tokens are below vocab, or padding.  These two fields stand here, because beside x they move fields that each call reads to
     * other cache lines: 7 % of a step of 16,384 tokens. */
    int64_t     vocab;
    int        *wrong;                                /* becomes 1 if a token is not: a file changed during the run; NULL on a device */
    RtOpt       opt;                                  /* last, because its size depends on `real`; the runtime is compiled once for both types */
} Rt;
/* Types of stored samples and labels.  The largest number of U16, and any negative number, is padding if it is a token, and -1 if
 * it is a label: a position that is not scored. */
enum { RT_U8, RT_F32, RT_F64, RT_U16, RT_I32, RT_I64 };

/* Statistics of shards that all ranks exchange: in fixed at `offset`, a row of `bytes` bytes for every shard of the batch. */
typedef struct RtKnown { int64_t offset, bytes; } RtKnown;

/* A phase.  units = per_slice ? slices held by this process : count. */
typedef struct RtPhase {
    void      (*run)(const Rt *r, char *thread, int unit);
    bool        per_slice;
    int         count;
    bool        from_grad;                            /* runs only if r->grad is set: the update after a reduction */
    const char *what;                                 /* "forward and backward, a slice of 16 samples" */
    bool        to_grad;                              /* sums; if r->grad is set, they run bucket by bucket */
    /* After a phase of slices, a unit a shard held by this process: writes the shard's rows, which ranks then exchange; or NULL. */
    void      (*known)(const Rt *r, char *thread, int unit);
    const RtKnown *row; int nrow;
} RtPhase;

/* Consecutive units of the phase to_grad that take about the same time; predicted: microseconds of all of them. */
typedef struct RtRange { int units; double predicted; } RtRange;

/* File order to memory order of a parameter: see the generated table. Index i of an axis lies at (i / block) * outer + (i % block) * inner. */
typedef struct RtAxis { int64_t n, block, outer, inner; } RtAxis;
enum { RT_XAVIER, RT_GLOROT, RT_HE, RT_LECUN, RT_ORTHOGONAL, RT_UNIFORM, RT_NORMAL, RT_CONSTANT, RT_SECOND };
enum { RT_FAN_IN, RT_FAN_OUT, RT_FAN_AVG };
typedef struct RtInit { int kind; bool gaussian; int fan; double a, b; } RtInit;   /* as compiler/ir/recipe.h says in words */
typedef struct RtParam {
    const char *name;                                 /* "conv1.weight" */
    int         rank;
    int64_t     dim[RT_DIMS];                         /* in files: (O, I, H, W), (out, in), (n) */
    int         naxis;
    RtAxis      axis[8];
    int64_t     count_memory;
    int64_t     offset;                               /* bytes in fixed; count_memory reals, padding 0 */
    int64_t     state[2];                             /* bytes in fixed, -1 = none; same layout */
    int64_t     fan_in, fan_out;
    RtInit      init;
    bool        frozen;                               /* the recipe lets nothing train it */
    int64_t     blank;                                /* row blank - 1 of a table begins with zeros, because it is not read; 0: no row */
} RtParam;

/* A sum over samples that a step reduces: its place in r->grad, and for gradcheck/--groups its length.
 * In the region of a group or rank, sums lie one after another; `grad_bytes` in all. */
/* Gradients come first, then other sums (statistics for running averages). */
typedef struct RtSum { int64_t offset, count; int param; } RtSum;          /* count in reals; param: index whose whole gradient it is, or -1 */

/* Neighbouring sums in r->grad that ranks add in one operation, in the order in which the backward pass completes them. */
typedef struct RtBucket {
    int64_t     offset, bytes;                        /* in r->grad */
    int         ready;                                /* the phase of `train` after which its sums can run */
    int         due;                                  /* the first phase of the next step that needs its update */
    int         units, updates;                       /* of the gradient phase, of the update phase; bucket b's follow b - 1's */
} RtBucket;

enum { RT_SGD, RT_RMSPROP, RT_ADAM, RT_ADAMW };
enum { RT_SCHED_CONSTANT, RT_SCHED_STEP, RT_SCHED_COSINE, RT_SCHED_POLYNOMIAL };
enum { RT_TEXT_NONE, RT_TEXT_CHAR, RT_TEXT_BYTE, RT_TEXT_WORD, RT_TEXT_BPE };
typedef struct RtText {
    int         unit;                                 /* RT_TEXT_*: what a token is; NONE: the data are no text */
    bool        table;                                /* labelled lines; else one text, whose next tokens are the labels */
    int64_t     step;                                 /* tokens from a window to the next; 0: end to end, or 1 with one label a window */
} RtText;
typedef struct RtRecipe {
    const char *data;                                 /* name to look up, or "synthetic" */
    int64_t     samples, test_samples;                /* synthetic */
    double      x_scale;
    RtText      text;
    bool        resize;                               /* images of any height and width are stretched to the input's */
    bool        stretch;                              /* folders of images: stretched to the input's size, not cropped */
    int         optimizer;
    double      lr, momentum, weight_decay, rho, beta1, beta2, eps, clip_norm, clip_value;
    bool        nesterov;
    int         schedule, nat;
    double      at[RT_LIST], factor, power, end, warmup;
    int64_t     epochs, seed;
    const char *expect_metric, *expect_op;            /* NULL = none; "test_accuracy", ">=" */
    double      expect_value;
} RtRecipe;

/* bench --layers: a clock after each call of a training step.  rt_ticks is this thread's sum of nanoseconds by call, or NULL
 * while nothing is measured. */
typedef struct RtCall {
    const char *what, *kernel, *place;                /* "conv1", "conv2d_pool_1", "lenet.tn:8" */
    double      flops;                                /* a sample, textbook count; 0 = not counted */
    const char *algorithm;                            /* "direct, pooled before tanh"; "": there is only one */
    double      executed;                             /* FLOPs a sample that the kernel executes: with idle lanes, without known zeros */
    double      predicted;                            /* microseconds a step of the nominal core */
    double      bytes;                                /* read and written a step, as the price counts them */
} RtCall;
extern _Thread_local int64_t *rt_ticks;
void rt_tick(int call);
#define TICK(call)                                                                                                     \
    do {                                                                                                               \
        if (__builtin_expect(rt_ticks != NULL, 0))                                                                     \
            rt_tick(call);                                                                                             \
    } while (0)

typedef struct RtUnpack RtUnpack;                     /* data/unpack.h */
extern const RtUnpack rt_unpack_xz;
typedef struct RtDecode RtDecode;                     /* data/decode.h */
extern const RtDecode rt_decode_images;

typedef struct RtTransport RtTransport;               /* comm/transport.h */
extern const RtTransport rt_mpi, rt_tcp;

typedef struct RtDevice RtDevice;                     /* device/device.h */
extern const RtDevice rt_cuda;

typedef struct RtLink RtLink;                         /* device/link.h */
extern const RtLink rt_nccl;

typedef struct RtProgram {
    const char *model, *source, *source_hash;         /* "lenet", "models/lenet.tn", 16 hex digits of network + recipe + batch + shards + dtype */
    const char *compiler, *flags, *target, *cpu;      /* "tenon 0.1.0", "--plain", "cpu", "x86-64-v4" */
    int         isa;                                  /* RT_ISA_*: what the processor must have */
    int         real_bytes;                           /* 4 or 8 */
    int         batch, shards, slices, chunk;         /* slices a shard; samples a chunk (a slice is one or more chunks) */
    int64_t     parameters;                           /* numbers in files */
    double      flops_per_sample;
    int64_t     fixed_bytes, shard_bytes, thread_bytes, grad_bytes;
    int64_t     more_stack;                           /* bytes of a thread's stack that its kernels need beyond RT_STACK */
    bool        fused_update;                         /* the update happens inside the gradient phases when r->grad is NULL */
    int         input_rank; int64_t input_dim[4];     /* (C, H, W) or (F) */
    int64_t     vocab;                                /* samples are tokens 0 .. vocab-1; 0: they are numbers */
    int64_t     classes;                              /* labels are 0 .. classes-1 */
    int64_t     labels;                               /* a sample: 1, or one a position of the input */
    int64_t     outputs;                              /* numbers a sample: labels * classes; 1 for a binary label */
    bool        softmax_output;                       /* predict prints probabilities: softmax of the output */
    const struct RtParam *input_mean;                 /* the mean training sample, which is subtracted; or NULL */
    int         nmetric; const char *metric[RT_METRICS];                   /* "loss", "accuracy" */
    bool        perplexity;                           /* exp of the mean loss is reported, too */
    const RtParam *param;  int nparam;
    const RtSum   *sum;    int nsum, ngradient;
    const RtBucket *bucket; int nbucket;
    const RtRange *range;  int nrange;                /* of the units of the phase to_grad; 0: all alike */
    const RtPhase *train;  int ntrain;                /* one training step */
    const RtPhase *test;   int ntest;                 /* one evaluation batch: same slices; thread_bytes covers both */
    /* generate: one token of one text, index[0]; reals of states, and of keys and values; most positions, 0: any number.
     * NULL: the program evaluates whole windows only. */
    const RtPhase *token; int ntoken;
    int64_t     carried, cached, window;
    RtRecipe    recipe;
    const char *const *layer; int nlayer;             /* for messages: name and place of each value that the step checks, in order */
    /* After a loss that is not finite, phase by phase: recomputes the forward pass of one slice of the batch in r and returns
     * the index in `layer` of the first value with a NaN or an infinity, or -1. */
    int       (*const *nonfinite)(const Rt *r, char *thread, int unit); int nforward;
    const char *core; double core_gflops;             /* "Zen 4": the core that predictions are for, its FMA peak */
    const RtCall *call; int ncall;                    /* of a training step, in the order of their TICKs */
    const RtUnpack *unpack_xz;                        /* &rt_unpack_xz: data may be packed so; NULL: linked without liblzma */
    const RtTransport *transport;                     /* between ranks: &rt_mpi, &rt_tcp; NULL: built with --comm none */
    const RtLink *link;                               /* between the devices of ranks: &rt_nccl; NULL: one device at most */
    const RtDecode *decode;                           /* &rt_decode_images: data may be folders of images; NULL: linked without libpng */
    const char *const *data_dirs;                     /* where data are looked up by name after $TENON_DATA, ended by NULL; may be NULL */
    const RtDevice *device;                           /* the device that runs the step: &rt_cuda; NULL: the processor */
    /* Up to steps_most training steps are one launch: of this function, or, if it is NULL, of a recording of their phases.  The Rt of
     * step i lies i * stride bytes after `first`; `first` and `arrived` are on the device.  A step whose loss is not finite is the last.
     * steps_how: "one cluster of 16 blocks", "a CUDA graph". */
    void      (*steps)(const Rt *first, int64_t stride, int n, unsigned *arrived);
    int         steps_most; const char *steps_how;
    void      (*libraries)(void);                     /* once, when the device is open: prepares calls of libraries; may be NULL */
    const char *products;                             /* "tf32": libraries round factors; "bf16", "f16": they read and write these; NULL: f32 or f64 */
    const RtParam *scaling;                           /* in f16: RtScaling in fixed; NULL: the loss is not scaled */
} RtProgram;

enum { RT_ISA_ANY, RT_ISA_X86_V3, RT_ISA_X86_V4, RT_ISA_ARMV8 };

int rt_main(const RtProgram *p, int argc, char **argv);

/* tenon build --tune: times kernels in turn on `bytes` bytes of synthetic numbers.  Of p it reads isa and real_bytes only.
 * Returns 0, or 1 if the times could not be printed. */
typedef struct RtTrial { void (*run)(char *memory); } RtTrial;
int rt_tune(const RtProgram *p, const RtTrial *trial, int n, int64_t bytes);

/* Which local slice and shard a unit of a per-slice phase is. */
static inline int rt_shard_of(int unit, int slices) { return unit / slices; }

#ifdef __CUDACC__                                     /* device code calls it, too */
#define RT_EVERYWHERE __host__ __device__
#else
#define RT_EVERYWHERE
#endif

/* Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): 128 random bits from a 128-bit counter and
 * a 64-bit key.  Key = seed; counter = (element block, purpose, sample, epoch). */
static inline RT_EVERYWHERE void rt_philox(uint32_t out[4], uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3)
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

/* The order of an epoch's samples as a function of the place: place i is sample P(i), P a permutation of 0 .. n - 1 that its keys choose.
 * Nothing is stored, so the processor and a GPU each ask for the places that they want.  The constructions are Black and Rogaway's (2002,
 * "Ciphers with arbitrary finite domains"): a generalized Feistel network over pairs (row, column) of across x down numbers, each round adding a
 * function of one half to the other, modulo its size; what falls on n or beyond goes through it again until it does not (cycle walking):
 * there are fewer than across + 1 such numbers, so hardly a place walks.  Black and Rogaway want sizes near sqrt(n); across is even, too:
 * a network of two odd sizes makes even permutations alone.
 * The function of a round is the two multiplications of Wellons' lowbias32 (2018), of the other half and a word of Philox; its high bits choose.
 * Rounds: 24, as many as Mitchell et al. (2021, "Bandwidth-optimal random shuffling for GPUs") found that a shuffle wants, where samples
 * are few; 12 from RT_ORDER_MANY on, where rounds that meet in one number are rare.  (With 12, five samples are unevenly shuffled, with
 * 8 sixteen: tests/runtime/test_order.c.)  It is no cipher: nobody is kept from guessing.  n is 2^32 at most. */
enum { RT_ORDER_ROUNDS = 24, RT_ORDER_MANY = 4096 };
typedef struct RtOrder {
    int64_t     n;
    uint32_t    across, down;
    int         rounds;                               /* even; 0: as the samples are stored */
    uint32_t    key[RT_ORDER_ROUNDS];
} RtOrder;
/* Of a batch: place i of it is place first + i of the order. */
typedef struct RtPlaces { RtOrder order; int64_t first; } RtPlaces;

/* x, 0 .. size - 1, plus a function of the other half and the key, modulo size, at most 2^16. */
static inline RT_EVERYWHERE uint32_t rt_order_round(uint32_t x, uint32_t other, uint32_t key, uint32_t size)
{
    const uint32_t a = (other ^ key) * 0x7FEB352Du, b = (a ^ a >> 15) * 0x846CA68Bu,
                   sum = x + (uint32_t)((uint64_t)b * size >> 32), less = sum - size;
    return less < sum ? less : sum;
}
/* From any number of the table on, through the network once at least. */
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
/* The sample of a place; after the last place the order repeats. */
static inline RT_EVERYWHERE uint32_t rt_order_at(const RtOrder *o, int64_t place)
{
    const uint32_t at = (uint32_t)(place < o->n ? place : place % o->n);
    return o->rounds > 0 ? rt_order_walk(o, at) : at;
}

/* Number i of a stored row of integers; -1: none. */
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

enum { RT_PURPOSE_INIT = 1, RT_PURPOSE_SHUFFLE = 2, RT_PURPOSE_DATA = 3, RT_PURPOSE_AUGMENT = 4, RT_PURPOSE_GENERATE = 5, RT_PURPOSE_DROPOUT = 16 };   /* + layer ordinal */

#ifdef __cplusplus
}
#endif

#ifdef RT_KERNELS                                     /* generated code; the runtime's own files do not need the kernels */
#include "cpu/kernels.h"
#endif

#endif
