/* op.h -- what an operation is: its words in the language, its shape, gradient, price, kernels and example.
 *
 * One op = one file + one line in ops.def.  A file exports an array `const Op op_NAME[]`, ended by a row without a
 * name: first the op of the language, then its backward ops (hidden from the language).  See TEMPLATE.c.
 */
#ifndef OP_H
#define OP_H
#include "ir/graph.h"
#include "ops/call.h"

typedef enum {
    ARG_TENSOR,                                       /* an input */
    ARG_INT, ARG_FLOAT, ARG_BOOL, ARG_STRING,
    ARG_PAIR,                                         /* 3 or [3, 5]: stored as two ints */
    ARG_PAD,                                          /* 1, [1, 2], "same" or "valid": op resolves; stored as INTS [h, w] or STRING */
    ARG_INTS,                                         /* a list of ints */
    ARG_PLACES,                                       /* the same, or an input: then an attribute of its name says that it is there */
    ARG_TENSORS                                       /* as many inputs as the call has positional arguments, and lists of them; only as the first */
} ArgType;

typedef struct OpArg {
    const char *name;
    ArgType     type;
    const char *fallback;                             /* the default as it would be written, NULL = must be given, "none" = attribute left out */
    const char *about;                                /* a few words for the manual */
} OpArg;

enum { OP_ARGS = 12 };

enum {
    OP_HIDDEN      = 1,                               /* made by passes only */
    OP_ELEMENTWISE = 2,                               /* a row of elementwise.def: y[i] from x[i] (broadcasting) */
    OP_SPATIAL     = 4,                               /* wants (C, H, W) inputs stored LAST when optimised */
    OP_SUM         = 8,                               /* not batched from batched: a sum over samples (gradients of parameters) */
    OP_INPLACE     = 16,                              /* the output may overwrite in[0] when that dies here */
    OP_VIEW        = 32,                              /* same bytes, other shape (reshape, flatten in ROW order) */
    OP_TOTAL       = 64,                              /* not batched, of the sums of a shard: made at the head of the slice phases that read it */
    OP_UPDATE      = 128,                             /* changes parameters; in[1] is the sum that it waits for; a root of the graph */
    OP_PACK        = 256,                             /* a copy of parameters made once a step; the emitter adds the arguments unit and units */
    OP_LEAVES      = 512,                             /* computed in a loop over time, read outside of it: a sequence of the loop's values */
    OP_KNOWN       = 1024                             /* of a sum over samples: each shard's, a row a shard of the batch, behind the slice phase; ranks tell
                                                         each other.  What reads it is an OP_TOTAL, or an OP_UPDATE that keeps averages */
};

typedef struct Price Price;                            /* ops/price.h */
typedef struct Market Market;
typedef struct Move Move;                              /* ops/move.h */
typedef struct Grad Grad;                             /* what pass gradient lends a rule */

typedef struct Cost {
    double flops;                                     /* a sample, textbook count, two per multiply-add */
    double bytes;                                     /* a sample, moved at least once; weights not counted */
} Cost;

struct Op {
    const char *name;
    const char *brief;                                /* one line for the manual */
    const char *shapes, *formula, *derivative;        /* lines for the manual: sizes of inputs, parameters and result; y; dx */
    const char *note;                                 /* sentences for the manual: what else a user must know, the source */
    OpArg       arg[OP_ARGS];                         /* in positional order, tensors first; ended by a NULL name */
    unsigned    flags;
    const char *layer;                                /* "conv", "dense": it owns parameters under that short name; else NULL */

    /* Sets n->shape (and dtype) from inputs and attributes; reports at the argument and returns false when they do not fit. */
    bool      (*shape)(Node *n, Diag *d);
    /* Layers: makes parameters under `path` ("stage1.conv2"), the node and its bias.  x = tensor arguments; attrs carries the
     * checked attributes with their spans (not an own node).  NULL: front makes one node and calls shape.
     * Returns NULL after reporting. */
    Node     *(*build)(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path, Diag *d);
    /* Ops whose result is a list of tensors: makes them of other ops, into *part (arena); returns how many, 0 after reporting. */
    int       (*parts)(Graph *g, Node *const *x, const Node *attrs, Diag *d, Node ***part);
    /* Adds this node's contributions to its inputs' gradients with grad_add(); dy = d loss / d n. */
    void      (*gradient)(Grad *gr, Node *n, Node *dy);
    Cost      (*cost)(const Node *n);                 /* NULL: 0 flops, bytes of inputs and output */
    /* What its kernel costs on a nominal core, for ops whose kernels compute more than they move (ops/price.h).
     * NULL: operands and result moved once, a function a number. */
    void      (*price)(const Node *n, const Market *m, Price *p);
    /* Describes the C call that computes the node (ops/call.h).  NULL: no code (views, inputs). */
    void      (*kernel)(const Node *n, Call *c);
    /* Bytes of the thread's scratch for what the kernel makes and forgets (call_scratch), whose size grows with n's; vectors of so many
     * lanes, so many bytes a number.  NULL: none. */
    int64_t   (*scratch)(const Node *n, int lanes, int real);
    /* Bytes of the kernel's stack that grow with the sizes of n, at most, in f64; NULL: none.  RT_STACK has room for other arrays. */
    int64_t   (*stack)(const Node *n, int64_t chunk);
    /* Ops that only put numbers elsewhere (ops/move.h) say where those of input i go; the emitter writes the loops. */
    void      (*move)(const Node *n, int i, Move *m);
    const char *example;                              /* a whole small model file: manual entry, golden, gradient check */
};

const Op *op_find(const char *name);                  /* NULL if there is none */
/* The call that n was made for, as the model file names it: a gather is made of slices, a batch_norm of sums. */
const char *op_written(Arena *a, const Node *n);
/* The lines of its gradients; NULL: it has none. */
const char *op_derivative(Arena *a, const Op *op);
int       op_count(void);
const Op *op_at(int i);                               /* in table order: manual, "did you mean" */

/* ---- for gradient rules: graph building with shapes inferred (the inputs fit by construction) */
Graph *grad_graph(Grad *gr);
void   grad_add(Grad *gr, Node *x, Node *dx);         /* dx joins the sum for x; ignored when x needs no gradient; broadcasting of x undone with sum_to */
bool   grad_wanted(const Grad *gr, const Node *x);
Node  *op_make(Graph *g, const char *op, Span at, int nin, ...);   /* node of op with nin Node* inputs, shape set by its rule; backward flag is the gradient pass's to set */
Node  *op_make_like(Graph *g, const char *op, const Node *attrs_from, int nin, ...);  /* same, attributes and span copied before the shape rule runs */

#endif
