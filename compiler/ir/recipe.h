/* recipe.h -- the checked train block: how a network is trained, as plain data. */
#ifndef RECIPE_H
#define RECIPE_H
#include "base/limits.h"
#include "base/source.h"
#include "runtime/constants.h"
#include <stdbool.h>
#include <stdint.h>

/* Weight initialisation.  Fans of conv weights (O, I, H, W): in = I H W, out = O H W;
 * dense weights (O, I): in = I, out = O.
 *   xavier(dist, fan, magnitude)  MXNet:  gaussian sigma = sqrt(magnitude / fan), uniform bound
 *                                 the same;  fan "avg" = (in + out)/2, "in" or "out"
 *                                 default: uniform, avg, 3
 *   glorot(dist)    Keras: uniform bound sqrt(6 / (in + out)), normal sigma sqrt(2 / (in + out))
 *   he(dist, fan)   sigma sqrt(2 / fan), uniform bound sqrt(6 / fan), fan "in"
 *   lecun(dist)     sigma sqrt(1 / in),  uniform bound sqrt(3 / in)
 *   orthogonal(gain)  Saxe et al. 2014   uniform(low, high)   normal(mean, std)   constant(value)
 * Parameters of one dimension (biases) start at 0 unless the op has another rule. */
typedef enum {
    INIT_XAVIER,
    INIT_GLOROT,
    INIT_HE,
    INIT_LECUN,
    INIT_ORTHOGONAL,
    INIT_UNIFORM,
    INIT_NORMAL,
    INIT_CONSTANT,
    INIT_SECOND /* a for elements b to 2 b - 1, 0 for all others: the bias of lstm */
} InitKind;
typedef enum { FAN_IN, FAN_OUT, FAN_AVG } Fan;
typedef struct Init {
    InitKind kind;
    bool gaussian; /* dist = "gaussian" or "normal"; else uniform */
    Fan fan;
    double a, b; /* magnitude | gain | low, high | mean, std | value */
} Init;

typedef enum {
    OPT_SGD,
    OPT_RMSPROP,
    OPT_ADAM,
    OPT_ADAMW,
    OPT_ADAGRAD,
    OPT_LION,
    OPT_LARS,
    OPT_LAMB
} OptKind;
typedef struct Optimizer { /* runtime/cpu/update.h has the formulas */
    OptKind kind;
    double lr, momentum, weight_decay, rho, beta1, beta2, eps;
    double trust; /* lars: the trust coefficient; else 0 */
    bool nesterov;
} Optimizer;
/* "update_sgd": the function of runtime/cpu/update.h, and of a GPU, that updates weights. */
const char *optimizer_update(Arena *a, const Optimizer *o);
int optimizer_states(const Optimizer *o); /* states that it keeps of each parameter */
/* Whether the update of a parameter needs its trust ratio, from the norms of its weights and of its
 * step (lars, lamb). */
bool optimizer_trusts(const Optimizer *o);

/* A result that training watches after each epoch: of the validation split; a schedule can also
 * watch one of the test split. */
typedef struct Watch {
    const char *result;  /* "validation_loss"; NULL: none is watched */
    bool larger;         /* a larger value is better */
    int64_t epochs;      /* patience: training ends after this many epochs without a new best
                         * value; a rate falls after more than this number */
    const char *meaning; /* a metric of the recipe: a hash of its definition (emit_meaning) */
    Span span;
} Watch;

/* Factor of the learning rate.  The epoch is the number of finished epochs.  All but step use
 * fractions of epochs; cosine, polynomial and one_cycle run over the epochs of the recipe.  Linear
 * warm-up over `warmup` epochs comes first. */
typedef enum {
    SCHED_CONSTANT,
    SCHED_STEP,
    SCHED_COSINE,
    SCHED_POLYNOMIAL,
    SCHED_ONE_CYCLE,
    SCHED_RESTARTS,
    SCHED_PLATEAU
} SchedKind;
typedef struct Schedule {
    SchedKind kind;
    int nat;
    double at[REALS_MAX]; /* step: epochs, ascending */
    /* step: factor of the rate at each epoch of at[]; plateau: at each fall; restarts: growth */
    double factor;
    double power, end;  /* power: of polynomial; end: last rate / lr, for all kinds but step */
    double start, rise; /* one_cycle: first rate / lr; share of the epochs in which it grows */
    double first;       /* restarts: epochs of the first cycle */
    double warmup;      /* epochs; 0 = none; combines with any kind */
    Watch watch;        /* plateau: the result, and the patience */
    double threshold;   /* plateau: relative change that counts as an improvement */
    int64_t cooldown;   /* plateau: epochs after a fall that are not counted */
} Schedule;

typedef enum { TEXT_NONE, TEXT_CHAR, TEXT_BYTE, TEXT_WORD, TEXT_BPE } TextUnit;
typedef struct Texts {
    const char **v;
    int n;
} Texts;
typedef struct DataSpec {
    const char *name;              /* "mnist", "synthetic", a directory, any name to look up */
    int64_t samples, test_samples; /* synthetic: sizes (defaults 10000, 1000) */
    int64_t classes;               /* synthetic: 0 = the model's output count */
    bool xz;                       /* CIFAR-10: its files may be compressed with xz */
    bool images;                   /* imagefolder: PNG and JPEG files, one folder for each class */
    int fit;    /* imagefolder: 0: the middle of the image is cut out; 1: the image is stretched */
    int unit;   /* TextUnit: unit of a token, if the data are text */
    bool table; /* tsv: labelled lines; else one text */
    bool columns;                  /* csv: a table whose columns have names */
    Texts input, target, category; /* csv: names of columns */
    Texts exclude;                 /* csv, without `input`: columns that are no inputs */
    bool standardize;              /* csv: numbers of inputs get mean 0 and deviation 1 */
    int missing, unknown;          /* csv: 0: an error; 1: missing takes the mean, unknown takes
                                    * `other` */
    double test, validation;       /* shares of samples, for data without these splits */
    int64_t step;  /* text: tokens between the starts of two windows; 0: the runtime decides */
    int64_t vocab; /* tokens are 0 .. vocab - 1; 0: samples are not tokens */
    double scale;  /* factor for stored u8, default 1/255; f32 data are not scaled */
    Span span;
} DataSpec;

/* What the output is compared with: a class (the label), numbers that the data hold beside each
 * sample, or the input itself. */
typedef enum { LEARN_CLASS, LEARN_NUMBERS, LEARN_INPUT } Learn;
typedef struct TargetSpec {
    Learn kind;
    const char *name; /* in the loss; NULL: "label" */
    int rank;         /* of NUMBERS; of a CLASS for each position or pixel */
    int64_t dim[SHAPE_MAX];
    /* several targets, set by the front end: number of classes of a CLASS; the place of the target
     * in a row */
    int64_t classes, at;
    const char *weights; /* of the classes, in a loss: "1, 2, 0.5"; NULL: none */
    int64_t ignored;     /* the class ignored - 1 is not scored; 0: all are */
    bool truths;         /* NUMBERS from 0 to 1: a loss compares them by sigmoid_cross_entropy */
    int compared;        /* index of the output that its metrics compare */
    /* a parameter of the layer that computes this output; NULL: there is none */
    const struct Param *head;
    bool bad; /* has an error, which is reported */
    Span span;
} TargetSpec;

/* How augment moves a target: the attribute `moved` of its node. */
enum { MOVED_NEAREST = 1, MOVED_BILINEAR = 2 };

/* Which target a leaf holds if augment mixes samples, the attribute `mixed` of its node: of a
 * sample and the one that it is mixed with, the target with more weight, or with less weight; or
 * the larger weight itself. */
enum { MIXED_MORE = 1, MIXED_LESS = 2, MIXED_WEIGHT = 3 };

/* Normalization of samples, after scaling: (x - mean) / std for each channel, or x minus the
 * mean of the pixel over the training set. */
typedef enum { NORM_NONE, NORM_CHANNEL, NORM_PIXEL } NormKind;
typedef struct Normalize {
    NormKind kind;
    int nmean, nstd; /* 1 or as many as channels */
    double mean[NORMALIZE_MAX], std[NORMALIZE_MAX];
    Span span;
} Normalize;

/* Augmentation of images, in training only; runtime/augment.h describes each kind.  Two numbers are
 * bounds. */
typedef struct Augment {
    bool given;
    int64_t shift; /* random_crop, shift: pixels each way */
    bool edge;     /* new pixels repeat the edge (shift), or are 0 (random_crop) */
    bool flip;
    int64_t cutout;
    double brightness;
    bool upside; /* flip_vertical */
    double contrast, saturation, hue;
    double degrees, zoom; /* rotate, scale */
    bool crop;            /* random_resized_crop */
    double crop_area[2], crop_ratio[2];
    double erase; /* the probability; 0: not given */
    double erase_area[2], erase_aspect[2];
    double mixup, cutmix; /* alpha; 0: not given */
    double mixup_p, cutmix_p;
    Span span;
} Augment;

/* Whether places lie between stored pixels. */
static inline bool augment_interpolates(const Augment *a)
{
    return a->degrees > 0 || a->zoom > 0 || a->crop;
}

/* Whether pixels of the image are left out, repeated or new.  Flips only exchange them. */
static inline bool augment_replaces(const Augment *a)
{
    return a->shift > 0 || augment_interpolates(a);
}

static inline bool augment_moves(const Augment *a)
{
    return a->flip || a->upside || augment_replaces(a);
}

/* Whether a sample is mixed with another one of its batch. */
static inline bool augment_mixes(const Augment *a)
{
    return a->mixup > 0 || a->cutmix > 0;
}

/* The first mixture of a recipe that mixes samples, as messages call it. */
static inline const char *augment_mixture(const Augment *a)
{
    return a->mixup > 0 ? "mixup" : "cutmix";
}

/* Setting for parameters whose name matches a pattern (text_glob); the last match counts. */
typedef enum { FACTOR_LR, FACTOR_DECAY, FACTOR_FREEZE } FactorKind;
typedef struct Factor {
    FactorKind kind;
    const char *pattern; /* "stem.*", "*.bias" */
    double factor;       /* LR, DECAY: factor for the value of the recipe */
    Span span;
} Factor;

/* A metric that the recipe writes as an expression: only evaluations compute it. */
typedef enum { BETTER_LARGER, BETTER_SMALLER, BETTER_NEITHER } Better;
typedef struct Measure {
    const char *name;
    Better better; /* which values are better */
    Span span;
} Measure;

typedef struct Expect {
    const char *metric; /* "test_accuracy", "train_loss", "test_perplexity" ... or NULL */
    Span span;
    const char *op; /* ">=", ">", "<=", "<" */
    double value;
} Expect;

/* start = weights(...): a file of weights with which a run begins. */
typedef struct StartSpec {
    const char *file;   /* NULL: initial values */
    Texts only, except; /* patterns of the parameters that are loaded, and are not; none: all are */
    const Span *only_at, *except_at; /* their places */
    Span span;
} StartSpec;

/* Averages of the trained weights, which evaluations use: runtime/step/average.h. */
typedef enum { AVERAGE_NONE, AVERAGE_EMA, AVERAGE_SWA } AverageKind;
typedef struct AverageSpec {
    AverageKind kind;
    double decay; /* EMA */
    int64_t from; /* SWA: the first epoch of the average, from 1 */
    Span span;
} AverageSpec;

typedef struct Recipe {
    /* false: the file has no train block; check and show need none, build needs one */
    bool present;
    const char *model;
    const char *trained; /* no train block: the model whose weights it shares; else NULL */
    DataSpec data;
    int ntarget;
    TargetSpec target[RT_TARGETS];
    int64_t target_bytes; /* several targets: bytes of a sample's row */
    Normalize normalize;
    Augment augment;
    bool resize; /* stored images of any height and width are stretched to the input's */
    Span resize_span;
    Optimizer optimizer;
    Schedule schedule;
    Init init;
    StartSpec start;
    int nfactor;
    Factor *factor;
    double clip_norm, clip_value;        /* 0 = off */
    int64_t batch, shards, epochs, seed; /* shards 0 = the default of pass schedule */
    const char *dtype;                   /* "f32" or "f64" */
    AverageSpec average;
    Watch keep, stop; /* keep = best(...), stop = patience(...) */
    Expect expect;
    int nmeasure;
    Measure measure[RT_MEASURES];
    Span span;
} Recipe;
/* Whether the update of a parameter needs all its gradients first, or those of all parameters. */
static inline bool recipe_updates_last(const Recipe *r)
{
    return r->clip_norm > 0 || optimizer_trusts(&r->optimizer);
}

/* "label", or the name that the recipe declares. */
static inline const char *target_name(const TargetSpec *t)
{
    return t->name ? t->name : "label";
}

int dtype_bytes(const char *dtype); /* bytes of a number: 8 for "f64", else 4; NULL is "f32" */

#endif
