/* call.h -- a kernel call as data: ops describe it, emitters print it.
 *
 * A call is the name of a function in runtime/cpu and its arguments in order: addresses of nodes,
 * literals, structs of literals, and values that the step knows only at run time.  An elementwise
 * node has no function: it is an expression (elementwise.h), and the emitter writes the loop.
 */
#ifndef CALL_H
#define CALL_H
#include "ir/graph.h"
#include "ir/target.h"

/* Literal sizes: a struct of the kernels, such as "Dense" with .n = 16.  An omitted field is 0. */
typedef enum { SIZE_INT, SIZE_REAL, SIZE_BOOL, SIZE_WORD, SIZE_SHARD } SizeKind;
typedef struct SizeField {
    const char *name;
    SizeKind kind;
    int64_t i;
    double f;
    const char *word;
} SizeField;
enum { SIZE_FIELDS = 24 };
typedef struct Sizes {
    const char *type;
    int n;
    SizeField field[SIZE_FIELDS];
    const struct Sizes *inner; /* the only member of the struct, or NULL */
} Sizes;

Sizes *sizes_new(Arena *a, const char *type);
/* field NULL: the only member of the struct */
void sizes_int(Sizes *s, const char *field, int64_t v);
void sizes_real(Sizes *s, const char *field, double v);
void sizes_bool(Sizes *s, const char *field, bool v);
void sizes_word(Sizes *s, const char *field, const char *c); /* a C expression */
void sizes_shard(Sizes *s, const char *field);        /* SHARD: number of samples of a shard */
int64_t sizes_get(const Sizes *s, const char *field); /* an integer; 0 if it is omitted */
bool sizes_use_shard(const Sizes *s);                 /* whether a field is SHARD */
bool sizes_same(const Sizes *a, const Sizes *b);
/* In C "(Dense){ .n = 16 }", in C++ "Dense{ .n = 16 }". */
const char *sizes_text(Arena *a, const Sizes *s, bool cpp);

typedef enum {
    CALL_OUT,      /* address of the value of the node */
    CALL_IN,       /* address of an input */
    CALL_NULL,     /* null pointer */
    CALL_SIDE,     /* address of the second result: op "side" */
    CALL_SUMS,     /* all parts of a sum over samples: call_sums */
    CALL_OFFSET,   /* a number that is a parameter of the kernel: call_offset */
    CALL_SCRATCH,  /* temporary memory */
    CALL_TEXT,     /* a literal: number or word */
    CALL_SIZES,    /* a literal: struct */
    CALL_RT,       /* the state of the program */
    CALL_SCORED,   /* number of samples that count in the loss */
    CALL_WEIGHTED, /* the same, each with the weight of its class */
    CALL_FIRST,    /* index of the first sample of the chunk in the batch */
    CALL_SEEN,     /* index of the first sample of the chunk in its slice */
    CALL_STEP,     /* an index computed from the step in time */
    CALL_UNIT      /* index of the unit that runs the kernel */
} CallArgKind;
typedef struct CallArg {
    CallArgKind kind;
    const Node *node;
    const char *text;
    const Sizes *sizes;
} CallArg;

enum { CALL_ARGS = 24 };
typedef struct Call {
    Arena *arena;
    int64_t n;      /* samples in the chunk of this call: a literal */
    int64_t shards; /* of the batch */
    int64_t slices; /* of a shard */
    int64_t slice;  /* samples of a slice */
    bool writes;    /* the kernel writes its sum; else it adds to the sum: step_writes_sum */
    Target target;  /* its versions of the kernels, and which arguments they take */
    /* The kernel computes a part for each member of a team (runtime/cpu/team.h).  Barriers follow
     * from the nodes of its arguments, so it reads and writes no other values. */
    bool parts;
    const char *fn; /* name of the function; NULL: no call */
    /* value of the macro RT_VARIANTS in the file of this kernel; NULL: the file does not define
     * it */
    const char *variants;
    int narg;
    CallArg arg[CALL_ARGS];
} Call;

/* Whether n has a statement of its own (known after pass plan).  False for a view, a constant, a
 * value that the loop of its reader computes, and the like. */
bool kernel_needed(const Node *n);

/* The name of the function.  call_fn: the kernel has one version for all targets.  call_kernel: the
 * target's version of the kernel.  call_product: the same for a product: dense, conv2d, matmul. */
void call_fn(Call *c, const char *name);
void call_kernel(Call *c, const char *name);
void call_product(Call *c, const char *name);
/* The name of the target's version of a kernel: "mse", or "mse_plain" for reference kernels. */
const char *call_version(const Call *c, const char *name);
void call_out(Call *c, const Node *n); /* address of the value of n, which the kernel writes */
void call_in(Call *c, const Node *n);  /* address of an input; n NULL: a null pointer */
/* Addresses of the value of n and of all its inputs, for a kernel that computes a part for each
 * member of a team. */
void call_in_parts(Call *c, const Node *n);
/* Address of the second result of n (op "side"); a null pointer if no node reads it. */
void call_side(Call *c, const Node *n);
/* Adds three arguments: address of the part of the first slice of the shard in the sum n, bytes to
 * the part of the next slice, number of slices.  If n is an OP_KNOWN, the parts are rows of shards:
 * address of the row of the first shard of the batch, bytes to the next row, 1. */
void call_sums(Call *c, const Node *n);
/* Address of the scratch of the thread that Op.scratch has requested; no argument on a GPU. */
void call_scratch(Call *c);
/* Passes the number as a parameter `at` of the kernel, and not as a literal, so that calls that
 * differ only in this number share one kernel.  At most one per call. */
void call_offset(Call *c, int64_t at);
/* Adds a literal as C writes it. */
void call_text(Call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void call_sizes(Call *c, const Sizes *s);
void call_given(Call *c, CallArgKind kind); /* CALL_RT and the kinds after it, without CALL_STEP */
/* The literal as C or C++ writes it; NULL if the argument is no literal. */
const char *call_literal(Arena *a, const CallArg *arg, bool cpp);
void call_step(Call *c, const char *at); /* an index that is computed from `step`: "step % 8" */

#endif
