/* op.h -- the description of an operation: words of the language, properties, shape, gradient,
 * price, kernels, example.
 *
 * An op is one file and one line in ops.def.  The file exports an array `const Op op_NAME[]`:
 * first the op of the language, then its backward ops (hidden from the language), then a row
 * without a name.  See TEMPLATE.c.
 */
#ifndef OP_H
#define OP_H
#include "ir/graph.h"
#include "ops/call.h"

typedef enum {
    ARG_TENSOR, /* an input */
    ARG_INT,
    ARG_FLOAT,
    ARG_BOOL,
    ARG_STRING,
    ARG_PAIR, /* 3 or [3, 5]: stored as two ints */
    /* 1, [1, 2], "same" or "valid": stored as INTS [h, w] or STRING, from which the op computes the
     * padding */
    ARG_PAD,
    ARG_PAD_STEPS, /* 1, "same" or "valid", for the steps of a sequence */
    ARG_INTS,      /* a list of ints */
    ARG_REALS,     /* a list of numbers */
    /* a list of ints, or an input; with an input, the node has an attribute of the same name */
    ARG_PLACES,
    ARG_TENSORS /* all positional arguments, also lists of tensors; only as the first argument */
} ArgType;

typedef struct OpArg {
    const char *name;
    ArgType type;
    /* the default as text; NULL: the argument is required; "none": the attribute is omitted */
    const char *fallback;
    const char *about; /* a few words for the manual */
} OpArg;

enum { OP_ARGS = 12 };

enum {
    OP_HIDDEN = 1,      /* made by passes only */
    OP_ELEMENTWISE = 2, /* a row of elementwise.def: y[i] from x[i] (broadcasting) */
    OP_SPATIAL = 4,     /* needs (C, H, W) inputs with layout LAST when optimised */
    /* a sum over samples: batched inputs, result not batched (gradients of parameters) */
    OP_SUM = 8,
    OP_INPLACE = 16, /* the output may overwrite in[0] if this is the last reader of in[0] */
    OP_VIEW = 32,    /* same bytes, other shape (reshape, flatten in ROW order) */
    /* a value of a shard, made from sums at the start of each slice phase that reads it */
    OP_TOTAL = 64,
    /* changes parameters after the sum in[1] is complete; a root of the graph */
    OP_UPDATE = 128,
    /* a copy of parameters, made once per step; the emitter adds the arguments unit and units */
    OP_PACK = 256,
    /* computed in a loop over time and read outside of it: a sequence of values of the loop */
    OP_LEAVES = 512,
    /* the sums over samples of all shards, one row for each shard, made after the slice phase and
     * exchanged by ranks; an OP_TOTAL or the OP_UPDATE of running averages reads it */
    OP_KNOWN = 1024,
    /* each number of the result depends only on the numbers at the same index of the inputs; the
     * emitter writes the loop: OP_ELEMENTWISE, and the bias of a layer */
    OP_MAP = 2048,
    /* a sum or maximum over dimensions (and samples); the emitter writes the loop */
    OP_REDUCE = 4096,
    /* a second result of in[0], which the call of in[0] writes */
    OP_SIDE = 8192,
    /* in[0] in another type, or with batch_norm folded in: same shape, same layout */
    OP_CAST = 1 << 14,
    /* its GPU kernel takes in[0] in each layout; the result has the same layout */
    OP_KEEPS_LAYOUT = 1 << 15,
    OP_COMMUTES = 1 << 16, /* f(a, b) and f(b, a) have the same bits */
    /* computes each position of a sequence independently, along attribute axis or the last
     * dimension */
    OP_POSITION = 1 << 17,
    OP_LITERAL = 1 << 18, /* its kernel takes a constant input as a number, not as an address */
    /* stays in the graph without readers: inputs of the program, updates, kept states */
    OP_ROOT = 1 << 19,
    OP_TRAINING = 1 << 20, /* only training computes it; otherwise the result is in[0] */
    /* the textbook count of FLOPs of a network includes its cost: products and attention */
    OP_FLOPS = 1 << 21,
    OP_ADDS = 1 << 22 /* an OP_TOTAL that only adds the sums in[0] */
};

/* What a node of ops/leaf.c stands for. */
typedef enum {
    LEAF_NONE,
    LEAF_INPUT, /* the samples */
    LEAF_LABEL,
    LEAF_PARAM,
    LEAF_CONST /* one number, which emitters print; it takes no memory */
} LeafKind;

/* For a loss: meaning of the outputs of the network. */
typedef enum {
    OUTPUTS_NUMBERS,
    OUTPUTS_CLASSES, /* softmax of the outputs is the probability of each class */
    OUTPUTS_BINARY   /* sigmoid of each output is the probability of class 1 */
} Outputs;

/* Role in a loop over time: see ops/scan.c. */
typedef enum {
    SCAN_NONE,
    SCAN_ITEM,
    SCAN_STATE,
    SCAN_NEXT,
    SCAN_LAST,
    SCAN_STACK,
    SCAN_KEEP,
    SCAN_SAVE,
    SCAN_RESUME
} ScanRole;

/* Products: y = W x of a layer with weights W, and its two gradients dx = W^T dy and
 * dW = sum of dy x^T. */
typedef enum {
    PRODUCT_NONE,
    PRODUCT_DENSE,
    PRODUCT_CONV,
    PRODUCT_POOLED,   /* a convolution through a fused 2x2 max-pool: gradients only */
    PRODUCT_TABLE,    /* x selects rows of W: embedding */
    PRODUCT_MATMUL,   /* of two values of a sample */
    PRODUCT_ATTENTION /* of q and k, and of their softmax and v */
} ProductKind;

/* Which of the three products an op computes, and from which inputs. */
typedef enum {
    ROLE_Y,  /* y(x, w) */
    ROLE_DX, /* dx(w, dy); of attention dx(x, dy) */
    ROLE_DW  /* dw(x, dy) */
} Role;

/* Epilogues: a kernel applies them to its result before it stores the result. */
enum {
    EPILOGUE_BIAS = 1,
    EPILOGUE_ACT = 2,  /* attribute act: a row of elementwise.def with elementwise_act() */
    EPILOGUE_POOL = 4, /* attribute pool: 2x2 max-pool */
    EPILOGUE_NORM = 8, /* batch_norm with known statistics, folded into weights and bias */
    EPILOGUE_RESIDUAL = 16,
    EPILOGUE_MASK = 32 /* attribute mask: a row of elementwise.def with elementwise_mask() */
};

/* How GPU kernels use tensors of two-byte numbers, bf16 or f16 (pass narrow).  The products DENSE,
 * CONV and MATMUL read them, and ops that only move numbers keep the type. */
typedef enum {
    HALF_USE_NONE,   /* reads and writes f32 */
    HALF_USE_IN,     /* reads either type, writes f32: sums over samples */
    HALF_USE_IN_OUT, /* reads and writes either type */
    HALF_USE_WEIGHTS /* weights or a bias, in the type of the products that read them */
} HalfUse;

/* Op.strided: bit i is set if the kernel can read input i with any row stride; STRIDED_OUT is set
 * if it can write its result with any row stride (pass slices). */
enum { STRIDED_OUT = 1 << 16 };

typedef struct Price Price; /* ops/price.h */
typedef struct Market Market;
typedef struct Move Move; /* ops/move.h */
typedef struct Grad Grad; /* ops/grad.h */

typedef struct Cost {
    double flops; /* per sample, textbook count: a multiply-add counts as two */
    double bytes; /* per sample, each value moved once; without weights */
} Cost;

struct Op {
    const char *name;
    const char *brief; /* one line for the manual */
    /* lines for the manual: shapes of inputs, parameters and result; formula of y; formula of dx */
    const char *shapes, *formula, *derivative;
    const char *note;   /* sentences for the manual: other facts for users, and the source */
    OpArg arg[OP_ARGS]; /* in positional order, tensors first; ended by a NULL name */
    unsigned flags;
    /* "conv", "dense": short name of a layer, which owns parameters; else NULL */
    const char *layer;

    /* Properties that passes and emitters test, instead of the name of the op.  0 is right for most
     * ops. */
    LeafKind leaf;
    ScanRole scan;
    ProductKind product;
    Role role;
    unsigned takes; /* the epilogues that its kernel can apply */
    /* the epilogues that this op can become in the kernel of the op before it; ACT or MASK follow
     * from elementwise.def */
    unsigned epilogue;
    HalfUse half;
    /* what its kernel for processors can do (Target.few_half); Op.half alone decides which values
     * are rounded.  OP_MAP, views and moves need no entry. */
    HalfUse half_cpu;
    unsigned strided;
    Outputs outputs;
    /* the rule `build` joins the tensors of a call: a node has one input, with all side by side */
    bool joins;
    /* for a copy of the parameter in[0], the end of its name in generated code: "packed", as in
     * FC_WEIGHT_PACKED; else NULL */
    const char *copy;
    /* the op that computes the value of one token from the input at its position and from stored
     * values of earlier positions (passes/token.c); NULL: no such op */
    const char *token;

    /* Sets n->shape (and dtype) from inputs and attributes.  Reports an error at the argument
     * and returns false when they do not fit. */
    bool (*shape)(Node *n, Diag *d);
    /* Layers: makes the parameters under `path` ("stage1.conv2"), the node and its bias.  x holds
     * the tensor arguments, attrs the checked attributes with their spans (attrs is not in the
     * graph).  Returns NULL after an error.  Without this rule, front makes one node and calls
     * shape. */
    Node *(*build)(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path, Diag *d);
    /* Ops whose result is a list of tensors: makes the tensors from other ops, stores them in *part
     * (memory of the arena), and returns their number; 0 after an error. */
    int (*parts)(Graph *g, Node *const *x, const Node *attrs, Diag *d, Node ***part);
    /* Adds contributions of n to the gradients of its inputs by grad_add(); dy = d loss / d n. */
    void (*gradient)(Grad *gr, Node *n, Node *dy);
    Cost (*cost)(const Node *n); /* NULL: 0 flops, bytes of inputs and output */
    /* Price of the kernel on a nominal core, for kernels that compute more than they move
     * (ops/price.h).  NULL: operands and result are moved once, with one function for each
     * number. */
    void (*price)(const Node *n, const Market *m, Price *p);
    /* Describes the C call that computes the node (ops/call.h).  NULL: no code (views, inputs). */
    void (*kernel)(const Node *n, Call *c);
    /* Bytes of thread scratch for temporary data of the kernel (call_scratch) that grow with the
     * sizes of n, for vectors of `lanes` numbers of `real` bytes.  NULL: none. */
    int64_t (*scratch)(const Node *n, int lanes, int real);
    /* Upper bound, in f64, of the bytes on the stack of the kernel that grow with the sizes of n;
     * NULL: none.  RT_STACK covers arrays of fixed size. */
    int64_t (*stack_bytes)(const Node *n, int64_t chunk);
    /* Ops that only move numbers (ops/move.h): describes the move of input i; the emitter writes
     * the loops. */
    void (*move)(const Node *n, int i, Move *m);
    /* a small complete model file: entry in the manual, checksums, check of the gradient */
    const char *example;
};

const Op *op_find(const char *name); /* NULL if there is none */
/* The name in the language of n's op, which the front end can have replaced by a hidden one. */
const char *op_in_language(const Node *n);
/* The name of the op in the model file for which n was made: gather for the slices of a gather,
 * batch_norm for the sums of a batch_norm. */
const char *op_written(Arena *a, const Node *n);
/* Whether n is this product, in this role. */
bool op_computes(const Node *n, ProductKind product, Role role);
/* Whether n multiplies by the transposed weights of a layer, in the model itself: it is a
 * conv_transpose2d, or a matmul(h, fc.weight), and its op is the gradient of a layer. */
bool op_transposed(const Node *n);
/* Whether the total n is equal to the sum in[0] if a shard is one slice. */
bool op_is_sum(const Node *n);
/* Index of the input with the weights of a product; -1: n reads no weights. */
int op_weights(const Node *n);
/* Whether the kernels for processors can compute the product n from two-byte factors.  The model
 * alone decides it, and never the processor. */
bool op_half_fits(const Node *n);
/* Whether the product n reads its factors in two bytes (pass narrow). */
bool op_reads_half(const Node *n);
int op_count(void);
const Op *op_at(int i); /* in table order, for the manual and "did you mean" */

/* ---- for gradient rules: nodes with inferred shapes (inputs fit by construction) */
Graph *grad_graph(Grad *gr);
/* Adds dx to the gradient of x, with a sum_to if x was broadcast; ignored when x needs no
 * gradient. */
void grad_add(Grad *gr, Node *x, Node *dx);
bool grad_wanted(const Grad *gr, const Node *x);
/* Makes a node of op with nin inputs (Node *).  The rule of the op sets the shape; pass gradient
 * sets the flag `backward`. */
Node *op_make(Graph *g, const char *op, Span at, int nin, ...);
/* The same, with the attributes and the span of attrs_from. */
Node *op_make_like(Graph *g, const char *op, const Node *attrs_from, int nin, ...);

#endif
