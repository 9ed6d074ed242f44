/* call.h -- a kernel call as data: ops describe it, emitters print it.
 *
 * A call is a function name of runtime/cpu and its arguments in order: places of nodes, literals, structs of literals, and
 * what the step knows only at run time.
 * An elementwise node has no function: it is an expression (see elementwise.h), and the emitter writes the loop.
 */
#ifndef CALL_H
#define CALL_H
#include "ir/graph.h"

/* Literal sizes: a struct of the kernels, "Dense" with .n = 16 and so on.  Fields that would be
 * 0 may be left out. */
typedef enum { SIZE_INT, SIZE_REAL, SIZE_BOOL, SIZE_WORD } SizeKind;
typedef struct SizeField { const char *name; SizeKind kind; int64_t i; double f; const char *word; } SizeField;
enum { SIZE_FIELDS = 24 };
typedef struct Sizes {
    const char *type;
    int         n;
    SizeField   field[SIZE_FIELDS];
    const struct Sizes *inner;                        /* the struct has one member, which is this one */
} Sizes;

Sizes      *sizes_new(Arena *a, const char *type);
void        sizes_int(Sizes *s, const char *field, int64_t v);            /* field NULL: the struct's only member */
void        sizes_real(Sizes *s, const char *field, double v);
void        sizes_bool(Sizes *s, const char *field, bool v);
void        sizes_word(Sizes *s, const char *field, const char *c);     /* a C expression */
int64_t     sizes_get(const Sizes *s, const char *field);               /* an integer; 0 if it was left out */
bool        sizes_same(const Sizes *a, const Sizes *b);
const char *sizes_text(Arena *a, const Sizes *s, bool cpp);             /* C: (Dense){ .n = 16 }; C++: Dense{ .n = 16 } */

typedef enum {
    CALL_OUT, CALL_IN, CALL_NULL, CALL_SIDE, CALL_SUMS, CALL_PLACE, CALL_SCRATCH,
    CALL_TEXT, CALL_SIZES,                            /* literals: numbers and words, a struct */
    CALL_RT, CALL_SCORED,                             /* the program's state, and of it the number of samples that count */
    CALL_FIRST, CALL_SEEN, CALL_STEP,                 /* indices: the chunk's first sample; its place in the slice; a step in time */
    CALL_UNIT                                         /* which unit runs the kernel */
} CallArgKind;
typedef struct CallArg {
    CallArgKind  kind;
    const Node  *node;
    const char  *text;
    const Sizes *sizes;
} CallArg;

enum { CALL_ARGS = 24 };
typedef struct Call {
    Arena      *arena;
    int64_t     n;                                    /* samples in the chunk this call works on: a literal */
    int64_t     shards, slices, slice;                /* of the batch; of a shard; samples of a slice */
    bool        writes;                               /* the result is written, else a sum is added to: step_writes_sum */
    bool        plain;                                /* --plain: reference kernels, row-major */
    bool        blas;                                 /* --kernels=blas: dense and conv through the library, the rest plain */
    const char *fn;                                   /* NULL: no call */
    const char *ways;                                 /* RT_WAYS of the file that holds this kernel alone; NULL: nothing is said */
    int         narg;
    CallArg     arg[CALL_ARGS];
} Call;

/* After the pass plan: a statement of its own computes n.  False: a view, a constant, a value in its reader's loop, ... */
bool kernel_needed(const Node *n);

void call_fn(Call *c, const char *name);              /* call_fn(c, c->plain ? "conv2d_plain" : "conv2d") */
/* name, name_plain or name_blas: whose kernel this program uses for a product. */
void call_product(Call *c, const char *name);
void call_out(Call *c, const Node *n);                /* pointer to n's own storage (written) */
void call_in(Call *c, const Node *n);                 /* pointer to an input's storage; a NULL node is a null pointer */
void call_side(Call *c, const Node *n);               /* pointer to what n makes besides its value: see op "side" */
/* Three arguments: where the first slice of the shard has its part of the sum n, bytes to the
 * next slice, slices; or, where n is what every shard has (OP_KNOWN), where the batch's first
 * shard has its row, which is one part alone. */
void call_sums(Call *c, const Node *n);
/* The bytes of the thread's scratch that Op.scratch asks for, as reals; nothing on a GPU. */
void call_scratch(Call *c);
/* A number that is no literal of the kernel, so that calls which differ in it share one: "at"
 * inside; one a call. */
void call_place(Call *c, int64_t at);
void call_text(Call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));   /* literals as C writes them */
void call_sizes(Call *c, const Sizes *s);
void call_given(Call *c, CallArgKind kind);           /* CALL_RT and what follows it, but CALL_STEP */
/* A literal as C or C++ writes it; NULL: the argument is none. */
const char *call_literal(Arena *a, const CallArg *arg, bool cpp);
void call_step(Call *c, const char *at);              /* an index that is computed from `step`: "step % 8" */

#endif
