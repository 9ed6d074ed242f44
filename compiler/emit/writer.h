/* writer.h -- what the files of the C target share: names, pointers, kernels made once, loops. */
#ifndef WRITER_H
#define WRITER_H
#include "base/quote.h"
#include "emit/emit.h"
#include "ops/op.h"

/* The prepare phase is shared out in this many units; kernels that cannot share run in the first. */
#define PREPARE_UNITS_TEXT "8"

/* One specialised kernel: a function of pointers; calls with the same sizes share it. */
typedef struct Kernel {
    const char *name;                                 /* "dense_2": the second of its base */
    const char *key;                                  /* equal for equal kernels */
    const char *base, *params, *body;                 /* "dense", "real *y, const real *a", the statements */
    const char *ways;                                 /* RT_WAYS of its own file, or NULL */
    /* CUDA: its sizes, which the body says from byte size_at to size_end; number of blocks; whether it is launched by itself, is a
     * member of a launch with others, or a stage of --kernels=persistent */
    const char *names;                                /* of its parameters: "y, a" */
    const Sizes *sizes;
    size_t      size_at, size_end;
    struct Blocks *blocks;
    bool        launched, member, staged;
} Kernel;

/* A constant of the generated file; the number to try when it is wanted again.  Or a parameter, and its constant. */
typedef struct Name {
    const char *text;
    int         next;
    const char *param;
} Name;

/* Rows of a table, each once. */
typedef struct Rows {
    const char **row;
    int          n;
} Rows;

typedef struct Writer {
    Arena      *arena;
    const EmitInput *in;
    const Graph *g;                                   /* the graph being written */
    const char  *prefix;                              /* "" for training, "TEST_" for evaluation, "TOKEN_" for generate */
    Text         offsets, body, calls, train, test, token; /* the parts of the file that grow side by side */
    int          ncall;                               /* rows of calls: clocks of bench --layers */
    Text         ranges;                              /* of units of the gradient phase, with what they are predicted to take */
    Text        *units[2];                            /* a bucket each: C expressions, of the gradient phase and of the update */
    Text         layers;                              /* names of the values that nonfinite_K() look at */
    int          nlayer, nforward;                    /* their number; the number of those functions */
    int          nkernel;
    Kernel      *kernel;
    int64_t      behind_bytes;                        /* of GPU memory behind the libraries' workspace */
    Rows         products, graphs, graph_calls;       /* what libraries compute: cuda_library.c, cuda_graph.c */
    struct CudaCalls *list;                           /* CUDA: calls are added to it (cuda_call.h) */
    struct CudaCalls **function;                      /* the calls of each function, and of the steps of --kernels=persistent */
    int          nfunction;
    int64_t      launches;                            /* of a training step: cuda_launch.c */
    Text         steps;                               /* --kernels=persistent: the kernel of many steps */
    const Node  *samples;                             /* of its steps: the value that has a place of its own, two in turns */
    int64_t      samples_bytes;                       /* of each, behind the scratch */
    const struct Order **owned;                       /* of the step's sums: the order of the threads that update it (cuda_own.c), or NULL */
    int          nowned;
    double       launches_seconds, persistent_seconds; /* of a step, expected: as launches, in a launch of many steps */
    int          steps_most;                          /* of one launch; 0: there is none */
    const char  *steps_how, *steps_said[4];           /* how its blocks meet; what is expected of it */
    uint64_t     nname, room;
    Name        *name;                                /* constants used so far: a hash table with `room` places */
    const char **of_node[3];                          /* constant of each node by id: of each writer_graph() */
} Writer;

/* Which graph is being written: 0 training, 1 evaluation, 2 a token at a time. */
static inline int writer_graph(const Writer *w)
{
    return w->g->training ? 0 : w->g->token ? 2 : 1;
}

/* names.c */
const char *name_of(Writer *w, const Node *n);        /* "CONV1", "D_CONV1", "CONV1_WEIGHT": unique in the file */
const char *name_upper(Arena *a, const char *s);
void        name_params(Writer *w, const Graph *g);   /* first of all: parameters get the constants nearest to their names */
const char *name_of_param(const Writer *w, const Param *p);             /* of either graph: "CONV1_WEIGHT" */
const char *name_of_state(const Writer *w, const Param *p, int k);      /* "CONV1_WEIGHT_STATE0" */

/* pointer.c: a C expression for where n's value lies, seen from inside a phase */
const char *pointer_to(Writer *w, const Node *n);
const char *pointer_type(const Node *n);              /* "real", "uint8_t", "int32_t", "Bf16" */
const char *pointer_half(Half h);                     /* "Bf16", "F16" */
bool        pointer_is_sum(const Writer *w, const Node *n);   /* a shard's total on a GPU, where a shard is one slice: it lies where the slice's sum does */
int64_t     pointer_slice_bytes(const Writer *w, const Node *n);          /* of a sum over samples: bytes from one slice's part to the next */
int64_t     pointer_align(const Writer *w, const Node *n);  /* bytes of which its address is a multiple in every step of a loop: 64 at most */
int64_t     pointer_bytes(const Writer *w, const Node *n);      /* bytes of one sample, or of the whole when not batched */

/* kernel.c: the statement that computes n: a call of a kernel made once */
const char *kernel_statement(Writer *w, const Node *n);
const Sizes *kernel_image(Writer *w, const Node *n);  /* of an input; of the recipe */
const Sizes *kernel_augment(Writer *w, const Augment *a);
const char *kernel_define(Writer *w, const char *base, const char *params, const char *body);

/* loop.c: elementwise trees and sums as loops with literal bounds */
const char *loop_statement(Writer *w, const Node *n);
const char *loop_sum(Writer *w, const Node *n);       /* and amax_to */

/* move.c: numbers put elsewhere (ops/move.h) */
const char *move_statement(Writer *w, const Node *n);

/* statement.c: a call under its line of the model, with its price, broken at its commas; the clock behind a call, and its row in the table of calls */
void        statement_write(Writer *w, Text *t, const Node *n, int *line, const char *indent);
void        statement_wrapped(Text *t, const char *s, const char *indent);
/* The comment above it: the model's line, if it is another than *line, shapes and price. */
const char *statement_about(Writer *w, const Node *n, int *line, const char *indent);
const char *statement_tick(Writer *w, const char *what, const char *call, Span at, double flops, const char *algorithm, Price p);
double      statement_flops(const Node *n);           /* the textbook's, a sample: of convolutions and products, as in flops_per_sample */

/* phases.c: the functions of a step, into w->body */
void phase_prepare(Writer *w, const Phase *p, const char *fn);
void phase_slice(Writer *w, int phase, const char *fn, const char *about);
const char *phase_wide(Writer *w, const Phase *p, const char *fn);        /* its units, a C expression */
/* WORD_known_NUMBER and its rows, what ranks tell each other behind that phase, as fields of an RtPhase; "": nothing. */
const char *phase_known_fields(Writer *w, int phase, const char *word, int number);
void phase_nonfinite(Writer *w, int phase);           /* nonfinite_K(), if the phase goes forward, and the names that it answers with */
void phase_layer_name(Writer *w, const Node *n);
bool phase_goes_forward(const Phase *p);
/* What is written of each call of a phase, in order, those of a loop over time inside of it; forward: of loops that go back nothing. */
typedef void PhaseEach(Writer *w, const Node *n, int *line, const char *indent);
void phase_calls(Writer *w, const Phase *p, PhaseEach *each, int *line, bool forward, const char *indent);

/* ranges.c: sums and updates as consecutive ranges of units; *total gets the number of units as a C expression */
const char *sum_name(const Sum *s);                   /* "conv1.weight", "norm.mean" */
void        ranges_write(Writer *w, const char *fn, const char *about, bool from_grad, Text *total);

/* target_c.c: the program around its kernels */
void program_open(Writer *w, const EmitInput *in, Arena *a);            /* writes all parts, finds the kernels */
/* Puts them together, with these includes besides rt.h and that section of kernels. */
void program_text(Writer *w, const char *includes, const char *kernels, Text *out);

/* target_c.c, for target_cuda.c: offsets of the graph at hand; the lines of the head that say what the program is. */
void program_begin(Writer *w, const EmitInput *in, Arena *a);
void program_offsets(Writer *w, bool parameters);
void program_head(Writer *w, const char *suffix, Text *t);
void program_end(Writer *w, Text *out);               /* the tables behind the phases, and main */

/* cuda_spell.c: the launches that compute n, one kernel each */
const char *cuda_statement(Writer *w, const Node *n);
/* tables.c */
const char *emit_flop_text(Arena *a, double flops);   /* "13.18 MFLOP", "576.0 kFLOP" */
const char *emit_isa(const char *cpu);                /* "RT_ISA_X86_V4" */
void tables_write(Writer *w, Text *out);

#endif
