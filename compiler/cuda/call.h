/* call.h -- the step of a GPU program as data: an array of calls.
 *
 *   lowering   nodes to calls with form, sizes, operands and order of the results: lower.c,
 *              loop.c, move.c, library.c, graph.c, columns.c, update.c
 *   passes     launch.c: which calls share a launch or a loop, and which read packs; stage.c and
 *              own.c: barriers and updates of --kernels=persistent; price.c: counts and prices
 *   spelling   calls to C++, once, when all passes have run: spell.c, steps.c
 *
 * A pass decides from operands only, and reads no texts: the texts in a call are for spell.c.
 */
#ifndef CUDA_CALL_H
#define CUDA_CALL_H
#include "base/round.h"
#include "cuda/cuda.h"
#include "emit/nest.h"
#include "emit/writer.h"
#include "runtime/constants.h"

/* Regions of memory.  UNKNOWN: any address, so it conflicts with every other access.  HOST: data
 * that no kernel writes, such as the data set and the seed.  GRADIENT: the buffer that ranks add.
 * APART: parts of sums, and sorted tokens, after the scratch.  SAMPLES and NEXT: the two buffers of
 * samples of --kernels=persistent, of this step and of the next one. */
typedef enum {
    MEMORY_UNKNOWN,
    MEMORY_HOST,
    MEMORY_FIXED,
    MEMORY_SCRATCH,
    MEMORY_SHARD,
    MEMORY_GRADIENT,
    MEMORY_APART,
    MEMORY_METRIC,
    MEMORY_OUTPUT,
    MEMORY_SAMPLES,
    MEMORY_NEXT
} Memory;

/* How a kernel divides `count` numbers among its threads.  Two calls of the same order give a
 * number to the same thread.
 *   EACH       FOR_EACH: thread i has number i, then number i plus the number of threads ...
 *   PACKS      each_pack: the same for packs of RT_PACK adjacent numbers
 *   RESULTS    the order in which the product `form` of these sizes computes its results
 *              (runtime/cuda/results.cuh)
 *   SUMS       each block has one number
 *   CHANNELS   FOR_CHANNELS: each channel has one thread
 *   POOL       the thread that has number i in the order `through` has window i; `sizes`: those of
 *              the windows */
typedef enum { WALK_EACH, WALK_PACKS, WALK_RESULTS, WALK_SUMS, WALK_CHANNELS, WALK_POOL } Walk;
typedef struct Order {
    Walk walk;
    int64_t count;
    const char *form;
    const Sizes *sizes;
    const struct Order *through;
} Order;

/* Bytes from .. to - 1 of a region. */
typedef struct Operand {
    const Node *node; /* the node whose value it is, or NULL */
    const Param *param;
    Memory memory;
    int64_t from, to;
    bool writes;
    bool walked;        /* the order of the call covers its numbers from the first to the last */
    const Order *order; /* the order in which threads access its numbers; NULL: not known */
} Operand;

/* Number of blocks: form_blocks(arguments), or `number` if form is NULL.  count: the same number,
 * for the price; 0 if only nvcc can compute it. */
typedef struct Blocks {
    const char *form, *number;
    int64_t count;
    const Argument *arg;
    int narg;
} Blocks;

/* LIBRARY: a function that the host, or all blocks, call instead of a kernel.  LINE: code between
 * calls.  METRICS: the latest point at which pending metrics are written. */
typedef enum { KIND_KERNEL, KIND_LIBRARY, KIND_LINE, KIND_METRICS } CudaKind;

/* The role of a call in a loop that one launch computes (recurrence.h).  ITEM: copies an element of
 * a sequence, before the step that reads it. */
typedef enum {
    RECURRENCE_EACH,
    RECURRENCE_ITEM,
    RECURRENCE_PRODUCT,
    RECURRENCE_JOIN
} RecurrenceRole;

typedef struct CudaCall {
    CudaKind kind;
    const char *form;      /* "conv2d"; "rt_product"; LINE: the code */
    const char *device;    /* the device function, if it has another name */
    const char *library;   /* LIBRARY: "cuBLASLt", "cuDNN"; NULL: the runtime */
    const EmitPlan *graph; /* of a convolution by cuDNN */
    const Node *node;      /* the node that it computes, or NULL */
    const char *comment;   /* "loss" */
    const char *indent;
    int phase;     /* index into Step.phase */
    int64_t times; /* number of times that a step runs it; 0: never */

    int narg, noperand;
    Argument *arg;
    Operand *operand;
    const char *code;  /* the body, if it is more than a call of the device function */
    const char *index; /* the index of its FOR_EACH or other loop; NULL: it has no such loop */
    Blocks blocks;

    /* the order of its results, if it follows no other call; NULL: not known */
    const Order *natural;
    bool last;          /* it takes the last blocks of its launch (FOR_BLOCKS_LAST) */
    bool has_at;        /* a function NAME_at(i, ...) computes number i of its natural order */
    bool follows;       /* a loop over numbers, which can take the order of another call */
    const Sizes *pool;  /* sizes of a pooling gradient, which can take the order of dy; or NULL */
    int metric;         /* the metric that it writes, -1: none */
    int owned;          /* index of the sum whose update it is (own.c), -1: none */
    bool first;         /* the first call of its node */
    bool continues;     /* shares the decision about a barrier with the call before it */
    bool inner_barrier; /* a second barrier, because it reads results of the call before it */
    /* a barrier is always needed: after a loop, between shards, between phases */
    bool needs_barrier;
    bool fallback;              /* runs if the library has no algorithm for the call before it */
    bool alone;                 /* it never shares a launch */
    bool waits;                 /* runs as late as possible, beside calls that do not need it */
    const char *before, *after; /* code of the host around the launch: "case 0: ", " break;" */
    RtSplit split;              /* of a product in parts; parts = 0: another call */

    /* Set by passes. */
    const Order *order;
    const Order *taken_order; /* the order that it takes over from another call; NULL: none */
    int launch;               /* calls with the same number share a launch */
    int loop;                 /* calls with the same number share a loop; 0: a call alone */
    bool barrier;             /* a barrier of all blocks precedes it */
    /* a call that can replace this one: the same product, which also updates its weights */
    struct CudaCall *with_update;
    int updates;                   /* index of the sum of these weights */
    struct Recurrence *recurrence; /* the loop that its launch computes, or NULL: recurrence.h */
    RecurrenceRole role;
    int region; /* of a step of this loop */
} CudaCall;

typedef struct CudaCalls {
    CudaCall **call;
    int n;
    const Graph *graph;
    const char *indent; /* indent of the calls that are added now */
    int phase;
    int64_t times;
    bool needs_barrier;   /* the next call needs a barrier before it */
    bool persistent;      /* the calls of a step of --kernels=persistent */
    const Node **waiting; /* launch.c: elements of sequences without a reader so far */
    int nwaiting;
} CudaCalls;

/* The numbers of APART that hold the parts of a product. */
typedef struct PartsPlace {
    int64_t begin, end;
} PartsPlace;

/* The part of the writer's state that only programs for GPUs need (Writer.cuda). */
typedef struct CudaState {
    int64_t apart_bytes;                /* GPU memory after the workspace of the libraries */
    PartsPlace parts[2];                /* of the last two products with parts */
    Rows products, graphs, graph_calls; /* calls of libraries: library.c, graph.c */
    CudaCalls *list;                    /* new calls are added to this list */
    /* the calls of each function, and of the steps of --kernels=persistent */
    CudaCalls **function;
    int nfunction;
    int64_t launches; /* of a training step: launch.c */
    Text steps;       /* --kernels=persistent: the kernel of many steps */
    /* the order of the threads that update each sum of the step (own.c), or NULL */
    const Order **owned;
    int nowned;
    double step_seconds;   /* predicted time of a step, with many steps in one launch */
    int steps_most;        /* largest number of steps in a launch; 0: no launch has a whole step */
    const char *steps_how; /* how such a launch runs: "one cluster of 16 blocks", "a CUDA graph" */
    const char *steps_said[4]; /* the prediction in words */
} CudaState;

/* The facts about a kernel that spell.c needs (Kernel.cuda). */
typedef struct CudaKernel {
    const char *names;  /* of the parameters: "y, a" */
    const Sizes *sizes; /* the first struct of literal sizes, or NULL */
    struct Blocks *blocks;
    const CudaCall *call; /* that it computes; NULL: several calls */
    bool launched;        /* has a launch of its own */
    bool member;          /* shares a launch with other kernels */
    bool looped;          /* shares a loop with other kernels */
    bool stepped;         /* is a part of a step of a loop in one launch */
    bool staged;          /* is a stage of --kernels=persistent */
    int64_t numbers;      /* of its shared memory, if it computes a loop; else 0 */
} CudaKernel;

/* ---- making calls, at the end of CudaState.list */
void cuda_list(Writer *w, int phase, int64_t times); /* a new list */
CudaCall *cuda_add(Writer *w, const char *form, const Node *n);
const Sizes *cuda_sizes(const CudaCall *c); /* its first struct of literal sizes; NULL: none */
int64_t call_launches(const CudaCall *c);   /* number of launches of a step with this call */
void cuda_line(Writer *w, const char *text);
void cuda_metrics_here(Writer *w); /* KIND_METRICS */

/* A property of a call: an argument, an access without an argument, or the number of blocks.
 * Arguments have the order of the device function:
 *
 *   cuda_call(w, "softmax", n, OUT("y", n), IN("a", x), NUMBER(8), EACH(64));
 */
typedef enum {
    GIVEN_END,
    GIVEN_ARGUMENT,
    GIVEN_NUMBER, /* a literal */
    /* a parameter: the address of the value of a node; without a node, a null pointer */
    GIVEN_POINTER,
    GIVEN_DIRECT,  /* the same as a literal */
    GIVEN_ADDRESS, /* an argument and an operand */
    GIVEN_ACCESS,  /* an operand */
    GIVEN_BLOCKS   /* form_blocks(number); without a form, number */
} GivenKind;
typedef struct Given {
    GivenKind kind;
    Argument arg;
    Operand operand;
    int64_t number;
    const char *form;
} Given;
CudaCall *cuda_give_list(Writer *w, CudaCall *c, const Given *g);
#define cuda_give(w, c, ...)       cuda_give_list(w, c, (const Given[]){__VA_ARGS__, {0}})
#define cuda_call(w, form, n, ...) cuda_give(w, cuda_add(w, form, n), __VA_ARGS__)

/* Parameters.  OUT, IN: the address of a value; POINTER: the same, with the text of the address.
 * ADDRESS: an address in a region, with an access to the whole region. */
#define ARGUMENT(...)  ((Given){.kind = GIVEN_ARGUMENT, .arg = {__VA_ARGS__}})
#define OUT(n_, node_) POINTER(n_, node_, NULL, true)
#define IN(n_, node_)  POINTER(n_, node_, NULL, false)
#define POINTER(n_, node_, at_, writes_)                                                           \
    ((Given){.kind = GIVEN_POINTER,                                                                \
             .arg = {.name = n_, .value = at_},                                                    \
             .operand = {.node = node_, .writes = writes_}})
#define ADDRESS(m_, type_, n_, at_, writes_)                                                       \
    ((Given){.kind = GIVEN_ADDRESS,                                                                \
             .arg = {.type = type_, .name = n_, .value = at_, .constant = !(writes_)},             \
             .operand = {.memory = m_, .to = INT64_MAX, .writes = writes_}})
/* A number: "int ", "first", "first". */
#define PARAM(type_, n_, at_) ARGUMENT(.type = type_, .name = n_, .value = at_)
#define FIRST                 PARAM("int ", "first", "first")
/* The state of the program, with an access through it: to bytes of a region, or (RT_HOST) only to
 * what the host writes.  Further accesses follow as ACCESS or VALUE. */
#define RT_ACCESS(m_, from_, to_, writes_)                                                         \
    ((Given){.kind = GIVEN_ADDRESS,                                                                \
             .arg = {.type = "const Rt *", .name = "r", .value = "r->there", .rt = true},          \
             .operand = {.memory = m_, .from = from_, .to = to_, .writes = writes_}})
#define RT_READS(m_, from_, to_)  RT_ACCESS(m_, from_, to_, false)
#define RT_WRITES(m_, from_, to_) RT_ACCESS(m_, from_, to_, true)
#define RT_HOST                   RT_READS(MEMORY_HOST, 0, INT64_MAX)
/* Literals.  DIRECT is a pointer to a value, in a call of a library. */
#define TEXT(text_) ARGUMENT(.inner = text_)
#define BOOL(yes_)  TEXT((yes_) ? "true" : "false")
#define SIZES(s_)   ARGUMENT(.sizes = s_, .counts = true)
#define NUMBER(n_)  ((Given){.kind = GIVEN_NUMBER, .number = n_})
#define DIRECT(node_, writes_)                                                                     \
    ((Given){.kind = GIVEN_DIRECT, .operand = {.node = node_, .writes = writes_}})
/* Accesses without an argument.  VALUE: to a value.  ACCESS: to bytes of a region. */
#define VALUE(node_, writes_)                                                                      \
    ((Given){.kind = GIVEN_ACCESS, .operand = {.node = node_, .writes = writes_}})
#define ACCESS(m_, from_, to_, writes_)                                                            \
    ((Given){.kind = GIVEN_ACCESS,                                                                 \
             .operand = {.memory = m_, .from = from_, .to = to_, .writes = writes_}})
/* Number of blocks.  EACH: one thread for each of n numbers.  PACKS: one for each pack of them.
 * BLOCKS_OF: form_blocks(n).  BLOCKS: n. */
#define EACH(n_)             BLOCKS_OF("each", n_)
#define PACKS(n_)            BLOCKS_OF("pack", n_)
#define BLOCKS_OF(form_, n_) ((Given){.kind = GIVEN_BLOCKS, .number = n_, .form = form_})
#define BLOCKS(n_)           BLOCKS_OF(NULL, n_)

/* numbers in a value, for all samples of a call */
int64_t cuda_numbers(const Writer *w, const Node *n);
int64_t cuda_bytes(const Writer *w, const Node *n); /* bytes of these numbers */
int cuda_real_bytes(const Writer *w);
/* Records that a call stores this many bytes in the region APART. */
void cuda_keep_apart(Writer *w, int64_t bytes);

/* ---- orders and conflicts */
const Order *cuda_order(Arena *a, Order o);
bool cuda_same_order(const Order *a, const Order *b);
bool cuda_is_product(const Order *o); /* the order of a product, which other calls can take over */
/* sets the order of all operands that it covers */
void cuda_give_order(const Writer *w, CudaCall *c, const Order *o);
/* The same for the natural order of the call. */
void cuda_give_natural(const Writer *w, CudaCall *c, Order o);
/* whether different threads can access the same bytes, and one of them writes */
bool cuda_conflict(const Operand *a, const Operand *b);
const char *cuda_order_text(Arena *a, const Order *o); /* "dense_results(Dense{ ... }" */

/* Operands of calls that no barrier, and no end of a launch, separates from the next call. */
typedef struct Pending {
    Operand *operand;
    int n;
} Pending;
bool pending_conflict(const Pending *p, const CudaCall *c);
bool pending_conflict_one(const Pending *p, const Operand *o);
void pending_add(Writer *w, Pending *p, const CudaCall *c);
void pending_add_one(Writer *w, Pending *p, const Operand *o);
/* Chooses the order of a call that can take over the order of an earlier call: an order without
 * conflicts with p, if there is one. */
void pending_order(Writer *w, const Pending *p, CudaCall *c);

#endif
