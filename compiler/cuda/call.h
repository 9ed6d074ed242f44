/* call.h -- the step of a GPU's program as data: an array of calls.
 *
 *   lowering   nodes to calls with form, sizes, operands and order of the results: lower.c,
 *              loop.c, move.c, library.c, graph.c, columns.c, update.c
 *   passes     launch.c: which calls share a launch; stage.c and own.c: barriers and
 *              updates of --kernels=persistent; price.c: counts and prices
 *   spelling   calls to C++, once, when all passes have run: spell.c, steps.c
 *
 * A pass decides from operands alone.  Texts in a call are for the speller: no pass looks into one.
 */
#ifndef CUDA_CALL_H
#define CUDA_CALL_H
#include "cuda/cuda.h"
#include "emit/nest.h"
#include "emit/writer.h"

/* Regions of memory.  UNKNOWN: any address, so it conflicts with every other access.  GRADIENT: the
 * buffer that ranks add.  SAMPLES and NEXT: the two buffers of samples of --kernels=persistent, of
 * this step and of the next one. */
typedef enum {
    MEMORY_UNKNOWN,
    MEMORY_FIXED,
    MEMORY_SCRATCH,
    MEMORY_SHARD,
    MEMORY_GRADIENT,
    MEMORY_METRIC,
    MEMORY_OUTPUT,
    MEMORY_SAMPLES,
    MEMORY_NEXT
} Memory;

/* How a kernel shares out `count` numbers over its threads: calls of one order give a number to the
 * same thread.
 *   EACH       FOR_EACH: number i to thread i, and so on in turns
 *   RESULTS    as the product `form` of these sizes computes its results (runtime/cuda/results.cuh)
 *   SUMS       a block a number
 *   CHANNELS   FOR_CHANNELS
 *   POOL       windows of these sizes, each by the thread that has its number in order `through` */
typedef enum { WALK_EACH, WALK_RESULTS, WALK_SUMS, WALK_CHANNELS, WALK_POOL } Walk;
typedef struct Order {
    Walk walk;
    int64_t count;
    const char *form;
    const Sizes *sizes;
    const struct Order *through;
} Order;

/* Bytes from .. to - 1 of a region. */
typedef struct Operand {
    const Node *node; /* whose value, or NULL */
    const Param *param;
    Memory memory;
    int64_t from, to;
    bool writes;
    bool walked;        /* the call's order goes through its numbers from the first to the last */
    const Order *order; /* which thread has which number; NULL: not known */
} Operand;

/* An argument of the device function: a parameter of the kernel around it, or a literal. */
typedef struct Argument {
    const char *type, *name; /* "real *", "a"; NULL: a literal */
    bool constant;           /* a pointer that is read only */
    bool rt;                 /* const Rt *: its address depends on who calls */
    const char *value;       /* what the launch passes */
    const char *inner;       /* what the kernel passes on; NULL: the name */
    const Sizes *sizes;      /* a literal struct */
    bool counts;             /* a literal that says how many blocks */
} Argument;

/* Number of blocks: form_blocks(its arguments); without a form, `number`.  count: the same for the
 * price, 0 where nvcc alone computes it. */
typedef struct Blocks {
    const char *form, *number;
    int64_t count;
    const Argument *arg;
    int narg;
} Blocks;

/* LIBRARY: a function that the host, or all blocks, call instead of a kernel.  LINE: code between
 * calls.  METRICS: metrics that wait for a launch or a barrier are written here at the latest. */
typedef enum { KIND_KERNEL, KIND_LIBRARY, KIND_LINE, KIND_METRICS } CudaKind;

typedef struct CudaCall {
    CudaKind kind;
    const char *form;      /* "conv2d"; "rt_product"; LINE: the code */
    const char *device;    /* the device function, if it has another name */
    const char *library;   /* LIBRARY: "cuBLASLt", "cuDNN"; NULL: the runtime's */
    const EmitPlan *graph; /* of a convolution by cuDNN */
    const Node *node;      /* NULL: no node's */
    const char *comment;   /* "loss" */
    const char *indent;
    int phase;     /* of Step.phase */
    int64_t times; /* how often a step runs it; 0: a step does not */

    int narg, noperand;
    Argument *arg;
    Operand *operand;
    const char *code;  /* the body, where it is more than a call of the device function; */
    const char *index; /* what FOR_EACH or another order counts in it, NULL: it has no such loop */
    Blocks blocks;

    const Order *natural; /* of its results, of its own; NULL: none is known */
    bool follows;         /* a loop over numbers, which may go in the order of another call */
    const Sizes *pool;    /* a pooling's gradient: may go in the order of what it reads last */
    int metric;           /* the metric that it writes, -1: none */
    int owned;            /* the sum of the step whose update it is (own.c), -1: none */
    bool first;           /* of the calls of its node */
    bool continues;       /* one barrier stands before it and the call before it */
    bool inner_barrier;   /* of these: it reads what the one before has written */
    bool needs_barrier;   /* behind a loop, between shards, between phases */
    bool fallback;        /* runs if the library's call before it has no algorithm */
    bool alone;           /* shares no launch */
    const char *before, *behind; /* code of the host around the launch: "case 0: ", " break;" */

    /* What passes decide. */
    const Order *order;
    const Order *behind_order;    /* of another call, with which it goes on: not EACH */
    int launch;                   /* calls of one number share a launch */
    bool barrier;                 /* all blocks meet before it */
    struct CudaCall *with_update; /* the same product, which updates its weights itself: */
    int updates;                  /* those of this sum of the step */
} CudaCall;

typedef struct CudaCalls {
    CudaCall **call;
    int n;
    const Graph *graph;
    const char *indent; /* of the calls that are being added */
    int phase;
    int64_t times;
    bool needs_barrier;   /* of the next one */
    bool persistent;      /* of --kernels=persistent */
    const Node **waiting; /* launch.c: elements of sequences that nobody has read yet */
    int nwaiting;
} CudaCalls;

/* ---- making calls: to the end of Writer.list */
void cuda_list(Writer *w, int phase, int64_t times); /* a new list */
CudaCall *cuda_add(Writer *w, const char *form, const Node *n);
void cuda_line(Writer *w, const char *text);
void cuda_metrics_here(Writer *w); /* KIND_METRICS */

/* Parameters: a pointer to n's value; the same at an address that is computed from n's; an address
 * whose region is not known, `type` without the star; const Rt *r; "int ", "first", "first". */
void cuda_value(Writer *w, CudaCall *c, const char *name, const Node *n, bool writes);
void cuda_value_at(Writer *w, CudaCall *c, const char *name, const Node *n, const char *at,
                   bool writes);
void cuda_address(Writer *w, CudaCall *c, const char *type, const char *name, const char *at,
                  bool writes);
void cuda_rt(Writer *w, CudaCall *c);
void cuda_given(Writer *w, CudaCall *c, const char *type, const char *name, const char *value);
/* Literals; a literal and a struct on which the number of blocks depends. */
void cuda_literal(Writer *w, CudaCall *c, const char *text);
void cuda_number(Writer *w, CudaCall *c, int64_t n);
void cuda_count(Writer *w, CudaCall *c, const char *text);
void cuda_sizes(Writer *w, CudaCall *c, const Sizes *s);
void cuda_blocks(Writer *w, CudaCall *c, const char *form, int64_t n); /* each_blocks(1024) */
void cuda_blocks_number(Writer *w, CudaCall *c, int64_t n);
/* Accesses that no argument says. */
void cuda_touch(Writer *w, CudaCall *c, Memory m, int64_t from, int64_t to, bool writes);
void cuda_touch_value(Writer *w, CudaCall *c, const Node *n, bool writes);
int64_t cuda_numbers(const Writer *w, const Node *n); /* of a value: all samples of a call */
int64_t cuda_bytes(const Writer *w, const Node *n);   /* of these numbers */
int cuda_real_bytes(const Writer *w);
int cuda_shared(const Writer *w); /* bytes of shared memory of a block, which its kernels share */

/* ---- orders and conflicts */
const Order *cuda_order(Arena *a, Order o);
bool cuda_same_order(const Order *a, const Order *b);
bool cuda_is_product(const Order *o); /* threads have numbers of their own: others can follow */
void cuda_give_order(const Writer *w, CudaCall *c, const Order *o); /* to all that it walks */
bool cuda_conflict(const Operand *a, const Operand *b);             /* by different threads */
const char *cuda_order_text(Arena *a, const Order *o); /* "dense_results(Dense{ ... }" */

/* Operands that no barrier, or no launch, has separated from the next call. */
typedef struct Pending {
    Operand *operand;
    int n;
} Pending;
bool pending_conflict(const Pending *p, const Operand *o, int n);
void pending_add(Writer *w, Pending *p, const Operand *o, int n);
/* The order of a call that may go on with another's results: with as few conflicts as possible. */
void pending_order(Writer *w, const Pending *p, CudaCall *c);

#endif
