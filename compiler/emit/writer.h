/* writer.h -- the state of the emitters and the functions that they share: names, pointers,
 * kernels, loops, phases. */
#ifndef WRITER_H
#define WRITER_H
#include "base/quote.h"
#include "emit/emit.h"
#include "ops/op.h"

/* Constants of the step that the body of a kernel can use. */
enum { USES_SLICES = 1, USES_SHARD = 2 };

/* One specialised kernel: a function of pointers; calls with the same sizes share it. */
typedef struct Kernel {
    const char *name;                 /* "dense_2": the second kernel of its base */
    const char *key;                  /* a text that is equal for equal kernels */
    uint64_t hash;                    /* of the key */
    const char *base, *params, *body; /* "dense", "real *y, const real *a", the statements */
    unsigned uses;                    /* USES_SLICES, USES_SHARD: constants in the body */
    const char *variants;             /* RT_VARIANTS for a file with only this kernel, or NULL */
    struct CudaKernel *cuda;          /* cuda/call.h; NULL for another target */
} Kernel;

/* A name in the hash table of constants. */
typedef struct Name {
    const char *text;
    int next;          /* the number to try when the same name is requested again */
    const char *param; /* the constant, if text is the name of a parameter; else NULL */
} Name;

/* Rows of a table, without duplicates. */
typedef struct Rows {
    const char **row;
    int n;
} Rows;

typedef struct Writer {
    Arena *arena;
    const EmitTarget *target;
    const EmitInput *in;
    const Graph *g;     /* the graph being written */
    const char *prefix; /* "" for training, "TEST_" for evaluation, "TOKEN_" for generate */
    /* parts of the file that grow at the same time: offsets, phases, rows of RtCall, and rows of
     * RtPhase of each graph */
    Text offsets, body, calls, train, test, token;
    Text ranges; /* rows of RtRange: units of the gradient phase with their predicted times */
    /* numbers of units of each bucket, in the gradient phase and in the update, as C expressions */
    Text *units[2];
    Text layers;  /* names of the values that nonfinite_K() checks */
    int nlayer;   /* number of these values */
    int nforward; /* number of functions nonfinite_K() */
    int nkernel;
    Kernel *kernel;
    uint64_t nname, size;    /* entries and size of `name` */
    Name *name;              /* hash table of the constants in use */
    const char **of_node[3]; /* the constant of each node by id, for each writer_graph() */

    /* Set by a target. */
    /* writes a line between two calls; NULL: the line goes to `body` */
    void (*put_line)(struct Writer *w, const char *text);
    int64_t workspace; /* bytes of the workspace after the scratch */

    /* a value with two buffers, used in turn in steps of one launch, or NULL; the bytes of each
     * buffer, which lies after the scratch */
    const Node *samples;
    int64_t samples_bytes;
    struct CpuState *cpu;   /* cpu/parts.h; NULL for another target */
    struct CudaState *cuda; /* cuda/call.h; NULL for another target */
} Writer;

/* The graph being written: 0 training, 1 evaluation, 2 one token at a time. */
static inline int writer_graph(const Writer *w)
{
    return w->g->training ? 0 : w->g->token ? 2 : 1;
}

/* ---- names.c */

/* The constant of n: "CONV1", "D_CONV1", "CONV1_WEIGHT"; unique in the file. */
const char *name_of(Writer *w, const Node *n);
/* Gives parameters constants like their names; called before all other names are made. */
void name_params(Writer *w, const Graph *g);
/* The constant of a parameter, the same in all graphs: "CONV1_WEIGHT".  Its state 0 has
 * "CONV1_WEIGHT_STATE0". */
const char *name_of_param(const Writer *w, const Param *p);
const char *name_of_state(const Writer *w, const Param *p, int k);
const char *sum_name(const Sum *s); /* "conv1.weight", "norm.mean" */

/* ---- pointer.c */

/* A C expression for the address of the value of n, inside a phase. */
const char *pointer_to(Writer *w, const Node *n);
/* The same; for sums that ranks exchange (OP_KNOWN), the address of the current shard's row. */
const char *pointer_to_row(Writer *w, const Node *n);
const char *pointer_type(const Node *n); /* "real", "uint8_t", "int32_t", "Bf16" */
const char *pointer_half(Half h);        /* "Bf16", "F16" */
/* Whether n is the total of a shard on a GPU.  A shard is one slice there, so the total lies in
 * the memory of the slice's sum. */
bool pointer_is_sum(const Writer *w, const Node *n);
/* Whether the address of n is that of its buffer: n is no part of another value, and no element of
 * a sequence. */
bool pointer_is_whole(const Writer *w, const Node *n);
/* Bytes from the part of one slice to the next one, in a sum over samples. */
int64_t pointer_slice_bytes(const Writer *w, const Node *n);
/* The alignment in bytes of the address of n, in every step of a loop; at most 64. */
int64_t pointer_align(const Writer *w, const Node *n);
/* Bytes of one sample; of the whole value if it is not batched. */
int64_t pointer_bytes(const Writer *w, const Node *n);

/* ---- kernel.c */

Sizes *kernel_image(Writer *w, const Node *n);            /* literal sizes of the input n */
const Sizes *kernel_augment(Writer *w, const Augment *a); /* of the recipe */
const char *kernel_of_image(const Writer *w, bool augmented);
const char *kernel_of_mixed(const Node *n);
/* An argument of a function of the runtime: a parameter of the kernel around it, or a literal. */
typedef struct Argument {
    const char *type, *name; /* "real *", "a"; NULL: a literal */
    bool constant;           /* a pointer that is read only */
    const char *value;       /* what a call of the kernel passes */
    const char *inner;       /* what the kernel passes on; NULL: the name */
    /* CUDA only */
    bool rt;            /* const Rt *, whose address differs between host and kernel */
    const Sizes *sizes; /* a literal struct */
    bool counts;        /* a literal that is also an argument of the number of blocks */
} Argument;
/* The parameters of a kernel, "real *y, const real *a"; their names, "y, a"; the values that a call
 * passes. */
typedef struct Signature {
    Text params, names, values;
} Signature;
/* stage: the call is inside of the kernel of many steps. */
Signature kernel_signature(Arena *a, const Argument *arg, int n, bool stage);
/* The name of the kernel with this body; equal kernels are defined once. */
const char *kernel_define(Writer *w, const char *base, const char *params, const char *body);
/* The same for a body with constants of the step. */
const char *kernel_define_using(Writer *w, unsigned uses, const char *base, const char *params,
                                const char *body);

/* ---- statement.c: a call, with its line of the model and its price above it */

/* Writes the call s; a line that would be longer than 100 columns ends after a comma between
 * arguments of the call. */
void statement_wrapped(Text *t, const char *s, const char *indent);
/* Writes "if (!TEST) S" in the same way, for two calls. */
void statement_guarded(Text *t, const char *test, const char *s, const char *indent);
/* The comment above the call of n: shapes, price, and the line of the model if it differs from
 * *line. */
const char *statement_about(Writer *w, const Node *n, int *line, const char *indent);

/* ---- phase.c: the calls of a phase */

void phase_layer_name(Writer *w, const Node *n);
bool phase_goes_forward(const Phase *p);
/* Calls `each` for the nodes of a phase in order, and writes loops over time around their nodes.
 * forward: omits loops of the backward pass. */
typedef void PhaseEach(Writer *w, const Node *n, int *line, const char *indent);
void phase_calls(Writer *w, const Phase *p, PhaseEach *each, int *line, bool forward,
                 const char *indent);
/* Writes the function WORD_known_NUMBER, and the rows of the values that ranks exchange after the
 * phase.  Returns the fields of RtPhase, or "" if there are no such values.  each: writes a
 * call. */
const char *phase_known_fields(Writer *w, int phase, const char *word, int number, PhaseEach *each);

/* ---- program.c: the parts of a file that all targets share */

/* Begins an empty writer. */
void program_begin(Writer *w, const EmitTarget *target, const EmitInput *in, Arena *a);
/* Writes the offsets of the current graph; parameters: also those of parameters and states. */
void program_offsets(Writer *w, bool parameters);
void program_head(Writer *w, Text *t);  /* writes the first comment without its end */
void program_end(Writer *w, Text *out); /* writes the tables after the phases, and main */

/* ---- tables.c */

const char *emit_flop_text(Arena *a, double flops); /* "13.18 MFLOP", "576.0 kFLOP" */
void tables_write(Writer *w, Text *out);

/* ---- recipe.c */

void recipe_names(Writer *w, Text *out); /* lists of columns and patterns in the recipe */
void recipe_write(Writer *w, Text *out);

#endif
