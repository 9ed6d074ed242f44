/* data.h -- samples: where they come from, and the batch of a step.
 *
 * Stored data are read once and stay in memory in their stored type; a batch is a list of their
 * rows. A synthetic sample is a function of its number and is made for the current batch.
 */
#ifndef DATA_H
#define DATA_H
#include "base/threads.h"
#include "data/order.h"
#include "rt.h"

/* One batch, as the fields of Rt of the same names. */
typedef struct Batch {
    const void *x;
    int64_t x_stride;
    int x_type;
    double x_scale;
    int x_height, x_width;
    /* evaluation, means over the split: labels of a sample that count (0: all), sum of their
     * weights */
    double scored, weighted;
    const void *label;
    int64_t label_stride;
    int label_type;
    const uint32_t *index;
    const RtOrder *order; /* index[i] is the sample at place first + i; a device computes it */
    int64_t first;
    int valid;
    uint64_t seed;
    int64_t epoch;
    const RtPart *part;       /* several inputs: their places in a row */
    int64_t x_row, label_row; /* bytes of one sample; strides can be larger, or smaller (overlap) */
    const void *stored, *stored_label; /* for devices: memory to copy; x and label point into it */
    int64_t stored_bytes, label_bytes; /* bytes of this memory */
    bool fresh;                        /* this memory has another content for each batch */
} Batch;

typedef struct Stream Stream;
typedef struct Cifar Cifar;
typedef struct Images Images;
typedef struct Parts Parts;
typedef struct Targets Targets;
struct Split;

typedef struct Data {
    const char *place;               /* "models/data/mnist", "synthetic": for messages */
    int64_t n;                       /* samples */
    int64_t stride;                  /* bytes a sample */
    int type;                        /* RT_U8 ... */
    double scale;                    /* multiplies u8 */
    int64_t features, height, width; /* elements of a stored sample, its last two dimensions */
    char *x;
    int64_t vocab;        /* samples are tokens 0 .. vocab-1; 0: numbers */
    const RtInput *input; /* several inputs, whose parts of a row are bytes of x; or NULL */
    int ninput;           /* 0: one input */
    RtPart row_part[RT_INPUTS];
    Parts *parts;            /* parts.c: the opened arrays; NULL: none */
    int32_t *label;          /* NULL: none */
    int64_t classes, labels; /* labels a sample */
    int64_t ignored;         /* the class ignored - 1 is not scored; 0: all are */
    char *numbers;   /* the target, if it is numbers: reals of the program; then no label is read */
    int64_t targets; /* such numbers of a sample; 0: the target is a class or the sample itself */
    bool truths;     /* these numbers are from 0 to 1 */
    int real_bytes;
    /* several targets: `label` has rows of them, and `arrays` are their opened arrays; NULL:
     * none */
    const RtTarget *row_target;
    int ntarget; /* 0: one target */
    int64_t target_bytes;
    Targets *arrays;
    /* of each target whose r2 is reported (explained): mean squared distance of its numbers from
     * their means over the split */
    bool explained[RT_TARGETS];
    double variance[RT_TARGETS];
    Stream *x_file, *y_file; /* IDX: open files, until their samples are read */
    int64_t whole;           /* IDX: number of samples in these files */
    Cifar *cifar;            /* CIFAR-10: its opened files */
    Images *images;          /* folders: the list of files, and the packed one */
    const char *next; /* text: labels of the first sample; their stride is that of the samples.
                       * NULL: `label` */
    int64_t shift;    /* text: windows begin 0 .. shift - 1 tokens later; each epoch has another
                     * number */
    int64_t scored;   /* labels that count; 0: all */
    const double *class_weight; /* weights of the classes in the loss; NULL: none */
    double weighted;            /* sum of the weights of the labels' classes */
    const char *x_path;         /* npy: file of the samples */
    const char *y_numbers;      /* npy: the labels or targets as they are in their file */
    int y_size;                 /* npy: bytes of one of them there */
    bool y_signed;              /* npy: whether a label there is signed */
    bool y_real;                /* npy: they are floating-point numbers */
    const char *y_path;         /* npy: file of the labels */
    /* a split that is a share of other samples: indices of its stored samples (NULL: all), and
     * number of all stored samples */
    uint32_t *row;
    int64_t all;
    const char *table; /* the test split of a table: its file and the lines of its samples */
    int64_t *line;
    const char **id; /* predict --id: a text of each sample of a table; NULL: none */
    bool synthetic;
    int64_t first;      /* synthetic: number of sample 0 of this split */
    uint32_t *position; /* synthetic: [batch] places of the current batch */
    int batch;
    bool device;          /* the program is for a device: tokens are checked before each launch */
    int part_first, part; /* synthetic: samples of a batch that this rank makes (data_share) */
} Data;

/* Finds the data set `name` (or the directory), opens one split of it, "train", "test" or
 * "validation", and allocates the memory for all of it. So errors for lack of memory or for a wrong
 * header appear here. limit: number of samples, at most; 0 = all. */
Data *data_open(const RtProgram *p, const char *name, const char *split, int64_t limit);

/* Reads, verifies and checks the data of data_open, several files in parallel (pool NULL: one after
 * another); allocates nothing. */
void data_fill(Data *d, Pool *pool);

/* Whether data_fill reads all rows of the files, and then keeps those of the split.  From the files
 * of MNIST and CIFAR-10, it reads only the samples of the split. */
static inline bool data_reads_all(const Data *d)
{
    return d->row && !d->x_file && !d->cifar;
}
/* The number of rows that data_fill reads.  The test split is filled while the start of a training
 * reads d->n, so data_fill never changes d->n. */
static inline int64_t data_rows(const Data *d)
{
    return data_reads_all(d) ? d->all : d->n;
}

/* Whether the data have a validation split, or the recipe takes one of the training samples. */
bool data_has_validation(const RtProgram *p, const char *name);

/* Samples to test or predict, without labels, from a .npy or .csv file, from lines of text, from an
 * image, or from a folder of images (data_fill decodes them).
 * id: the column of a table whose texts become Data.id; else NULL. */
Data *data_open_file(const RtProgram *p, const char *path, const char *id);
Data *data_open_text(const RtProgram *p, const char *text); /* one sample */

/* `n` synthetic samples in memory, for bench and for runs without data. */
Data *data_in_memory(const RtProgram *p, int64_t n, Pool *pool);

/* mean.c: stores the mean of all samples in the parameter of the program for it, if there is
 * one. */
void data_mean(const Data *d, const RtProgram *p, Pool *pool, char *fixed);

/* Two hashes that identify data. data_hash: of size, type, labels and tokens. data_hash_samples: of
 * the bytes of the samples (samples.c); 0 if there are no stored samples, or if they are tokens. */
uint64_t data_hash(const Data *d);
uint64_t data_hash_samples(const Data *d, Pool *pool);

/* The hash that ranks compare: both of these, but with only some evenly spread samples of arrays
 * above 16 MB. Otherwise each rank would read all samples from a shared file system. */
uint64_t data_hash_rows(const Data *d);

/* Number of samples in a piece with its own hash, and this hash; `samples`: the number of all
 * samples, for the last piece. */
int64_t data_piece(const Data *d);
uint64_t data_piece_hash(const Data *d, int64_t piece, int64_t samples);

/* images.c. images_hash: as data_hash_samples. images_check: checks the pieces of the packed file
 * that this run reads for the first time; calls mapped_wrong if one is damaged. */
uint64_t images_hash(const Data *d);
void images_check(const Data *d, Pool *pool, const uint32_t *index);

/* Makes batch number `step` of an epoch with the samples in `order` (its first entries are repeated
 * after its end). `valid` of the samples count. */
void data_batch(const Data *d, Pool *pool, const Order *order, int64_t step, int valid, Batch *b);

/* After this call, rank `rank` makes only its own part of each batch of synthetic samples. Stored
 * samples are in the memory of every rank, because the order of an epoch scatters each batch over
 * all of them. */
void data_share(Data *d, int rank, int ranks);

/* Reports a token of this file that is not in the vocabulary: the file changed during the run. */
void data_wrong_token(const Data *d);

/* Whether the split has labels, and none of them counts: all are -1 or ignored. */
bool data_unscored(const Data *d);

/* Number of scored labels of the batch divided by the number of its samples. All `batch` samples
 * count, also those that fill the batch; the result is the same on every rank. A batch without
 * scored labels counts as one with one label, so the result can be a divisor. */
double data_scored(const RtProgram *p, const Batch *b);
/* The same with the weight of each label's class: labels of a class are counted and the products
 * added in the order of the classes, so the bits are the same on every rank.  1 without weights. */
double data_weighted(const RtProgram *p, const Batch *b);
/* batch.c: sets d->weighted, from all labels of the split. */
void data_weigh(Data *d);

/* synthetic.c: makes sample `i` of the stream and its labels, which are always the same. x:
 * d->stride bytes. */
void synthetic_sample(const Data *d, void *x, int32_t *label, int64_t i);
/* The target of sample `i`: d->targets reals of the program, or a row of several targets. */
void synthetic_target(const Data *d, void *y, int64_t i);
/* Makes the samples with indices first .. first + n - 1 in memory, with all threads: index k is
 * sample order[k], or sample k if order is NULL. */
void synthetic_fill(const Data *d, Pool *pool, const uint32_t *order, int first, int n);

/* find.c: the directory of a data set, as text of rt_alloc; dies with the list of all searched
 * places if there is none. */
char *find_data(const RtProgram *p, const char *name);
/* The same for a table, which is a file or a directory. */
char *find_file(const RtProgram *p, const char *name);
bool find_is_directory(const char *path);
/* Whether the path ends with this text, such as ".npy", and has a name before it. */
bool find_has_ending(const char *path, const char *ending);

/* idx.c, cifar.c, images.c and npy.c open a split in a directory; false if it has no such files. */
bool idx_open(const RtProgram *p, const char *directory, const char *split, int64_t limit, Data *d);
void idx_fill(Data *d);
bool cifar_open(const RtProgram *p, const char *directory, const char *split, int64_t limit,
                Data *d);
void cifar_fill(Data *d, Pool *pool);
bool images_open(const RtProgram *p, const char *directory, const char *split, int64_t limit,
                 Data *d);
void images_fill(Data *d, Pool *pool);
void images_open_input(const RtProgram *p, const char *path, Data *d);
const char *images_path(const Data *d, int64_t i);
bool npy_open(const RtProgram *p, const char *directory, const char *split, int64_t limit, Data *d);
void npy_fill(Data *d);
void npy_open_input(const RtProgram *p, const char *path, Data *d);

/* rows.c: opens rows of numbers without names of columns. */
void csv_open_input(const RtProgram *p, const char *path, Data *d);

/* tabular.c: tables whose columns have names.  tabular_open: opens a split of a table; the training
 * split determines columns_now(), unless weights have done so.  tabular_open_input: opens samples
 * to predict.
 */
void tabular_open(const RtProgram *p, const char *name, const char *split, int64_t limit, Data *d);
void tabular_open_input(const RtProgram *p, const char *path, const char *id, Data *d);
bool tabular_has_validation(const RtProgram *p, const char *name);

/* shares.c: splits that the data do not have.  shares_find: the stored split that holds the samples
 * of a split; "" for arrays without a split in their names.  *share: which of its samples belong to
 * the split; share->name NULL: all.  shares_take chooses these samples before data_fill.  From
 * arrays, data_fill drops all other samples by shares_keep. */
const char *shares_find(const RtProgram *p, const char *directory, const char *split,
                        struct Split *share);
void shares_take(Data *d, const struct Split *share, int64_t limit);
void shares_keep(Data *d);
/* Called by the command `test` before it opens the data.  all: the test split is all samples of
 * data that have no test split of their own. */
void shares_test(bool all);
/* "; --all tests all samples", or "" in other commands: the end of a message on a small split. */
const char *shares_advice(void);
/* The name under which decoded images of a split are kept: "all" for all samples. */
const char *shares_stored(const char *split);
/* The share that the test split is of its data, by the recipe; 0: they have a test split. */
double shares_tested(void);
/* The path of the first array of a split, such as "validation_"; NULL: it is not there. */
const char *shares_array(const RtProgram *p, const char *directory, const char *prefix);
/* Whether a split is a share of the training data; *share then describes it, else share->name is
 * NULL.  test, validation: files of these splits, or NULL; dies if the recipe gives a share, too.
 * usual: the share of the test split if there is neither. */
bool shares_divide(const RtProgram *p, const char *place, const char *split, const char *test,
                   const char *validation, double usual, struct Split *share);

/* npy_token_type, npy_number_type: the type of stored samples in this array; die if it has another
 * one.  npy_check_tokens: dies if one of n tokens, `each` in a sample, is not below vocab. */
struct Npy;
int npy_token_type(const RtProgram *p, const struct Npy *a);
int npy_number_type(const struct Npy *a);
/* These functions die if the array is not one target for each sample: classes, `labels` of them, or
 * numbers of this shape; truths can be bytes. */
void npy_check_classes(const struct Npy *a, int64_t labels);
void npy_check_numbers(const RtProgram *p, const struct Npy *a, const char *target, bool truths,
                       int rank, const int64_t *dim);
int64_t npy_class_at(const struct Npy *a, int64_t i);
double npy_number_at(const struct Npy *a, int64_t i);
void npy_check_tokens(const char *path, const char *tokens, int type, int64_t n, int64_t each,
                      int64_t vocab);

/* parts.c, for programs with several inputs.  parts_open: returns the number of samples in the
 * arrays of the split, also of those beyond the limit; dies if there is not an array for each
 * input. parts_place: lays the inputs out in a row, by the types of row_part. parts_synthetic: the
 * rows of synthetic samples.  parts_open_input: samples to predict, from a directory with an array
 * for each input, or from rows of numbers; parts_file: the file of input k there. */
int64_t parts_open(const RtProgram *p, const char *directory, const char *split, int64_t limit,
                   Data *d);
void parts_place(const RtProgram *p, Data *d);
void parts_synthetic(const RtProgram *p, Data *d);
void parts_fill(Data *d, Pool *pool);
void parts_open_input(const RtProgram *p, const char *path, Data *d);
/* Calls data_check_finite for each input that is numbers. */
void parts_check_finite(const RtProgram *p, const Data *d);
const char *parts_file(const RtProgram *p, const char *path, int k);

/* target.c: stores number k of a target of sample i at y[k]; dies if it is not finite in the type
 * of the program, or if it is a truth that is not from 0 to 1.  target_variances sets d->variance
 * from all targets of the split, for r2. */
void target_put(const Data *d, const char *path, bool truths, void *y, int64_t i, int64_t k,
                double v);
void target_variances(Data *d);
/* Whether p reports the metric r2 of target k. */
bool target_is_explained(const RtProgram *p, int k);
/* Dies if rows of dimensions `dim` do not fit the target `name` of p, which has dimensions
 * `want`. */
void target_take_shape(const RtProgram *p, const char *path, const char *name, int rank,
                       const int64_t *dim, int want_rank, const int64_t *want);
int64_t target_count(const RtTarget *t); /* numbers of a target; 0: it is no numbers */

/* targets.c: several targets.  targets_open: opens their arrays, beside `samples` samples of
 * x_path. */
void targets_open(const RtProgram *p, const char *x_path, const char *directory, const char *split,
                  int64_t samples, Data *d);
void targets_fill(Data *d);

/* shape.c: bytes of n numbers of a stored type, RT_U8 ... */
int64_t data_bytes(int64_t n, int type);

/* Bytes from the labels of a sample to those of the next one, in Data.label or Data.numbers. */
int64_t data_label_stride(const Data *d);

/* The labels or numbers of sample i in memory; NULL: there are none. */
char *data_label(const Data *d, int64_t i);

/* For samples to test or to predict: dies if one of n samples has a number that is not finite in
 * the type of the program.  In training, the loss shows such numbers. */
void data_check_finite(const RtProgram *p, const char *path, const char *x, int type, int64_t n,
                       int64_t features);

/* Numbers of a value of these dimensions. */
int64_t data_numbers(int rank, const int64_t *dim);

/* Numbers of one of several inputs. */
int64_t data_count(const RtInput *x);

/* Elements of an input sample, and of a target that is numbers (0: it is not). */
int64_t data_features(const RtProgram *p);
int64_t data_targets(const RtProgram *p);

/* Takes the dimensions of stored samples; dies if the program cannot use them. They must equal
 * those of the input except for 1s, or one of the two must be flat, or the recipe resizes images
 * and the number of channels is equal. */
void data_take_shape(Data *d, const RtProgram *p, const char *path, int rank, const int64_t *dim);
/* Whether rows of shape `dim` fit `want`: both are equal except for 1s, or one of them is flat. */
bool data_shape_fits(int rank, const int64_t *dim, int want_rank, const int64_t *want);
/* "28 x 28" */
const char *data_shape_text(char text[128], int rank, const int64_t *dim);
void data_check_class(int64_t classes, const char *path, int64_t sample, int64_t label);
void data_check_label(const Data *d, const char *path, int64_t sample, int64_t label);

#endif
