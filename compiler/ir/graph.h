/* graph.h -- the network as a graph: a node is an operation and the one value that it makes.
 *
 * The list graph->node is always in an order in which every node follows its inputs.  The graph
 * of a training step holds forward, loss, backward and update nodes alike; the gradient is a
 * transformation of this graph (passes/gradient.c), never a tape.
 */
#ifndef GRAPH_H
#define GRAPH_H
#include "base/diag.h"
#include "ir/recipe.h"
#include "ir/shape.h"
#include "runtime/constants.h"

typedef struct Op Op;                                 /* ops/op.h */
typedef struct Node Node;
typedef struct Graph Graph;

typedef enum { ATTR_INT, ATTR_FLOAT, ATTR_BOOL, ATTR_STRING, ATTR_INTS } AttrKind;
typedef struct Attr {
    const char    *key;
    AttrKind       kind;
    int64_t        i;                                 /* INT, BOOL */
    double         f;                                 /* FLOAT */
    const char    *s;                                 /* STRING */
    const int64_t *list;                              /* INTS: at most INTS_MAX */
    int            nlist;
    Span           span;                              /* the argument in the model file, or none */
} Attr;

/* The most that one elementwise loop computes and reads: pass chains keeps to it ("inline" = 1: computed inside its
 * reader's loop, never stored), the emitter relies on it. */
enum { LOOP_OPS = 32, LOOP_LEAVES = 12 };

/* How a value lies in memory.  ROW: its dims in order, last one fastest.  LAST: a (C, H, W) sample stored as (H, W, C);
 * a flattened one (rank 1 with flat[] = C, H, W) keeps that order.  TIME: the (T, F) sequences of a chunk's samples stored
 * as (T, N, F), a step after the other.  Weights in memory are described by Param.axis. */
typedef enum { LAYOUT_ROW, LAYOUT_LAST, LAYOUT_TIME } Layout;

/* Where a value lives (set by the passes schedule and plan).
 *   FIXED    one copy: parameters, optimizer state, packed weights, gradients after reduction
 *   BATCH    a region per shard: what one phase writes and a later one reads
 *   PARTIAL  a region per slice of a shard: a sum over samples on its way to the tree
 *   LOCAL    scratch of the thread that runs the slice
 *   VIEW     the bytes of in[0] under another shape */
typedef enum { PLACE_NONE, PLACE_FIXED, PLACE_BATCH, PLACE_PARTIAL, PLACE_LOCAL, PLACE_VIEW } Place;

/* One axis of a parameter's way from file order to memory: index i lies at (i / block) * outer + (i % block) * inner. */
typedef struct Axis { int64_t n, block, outer, inner; } Axis;

/* A loop over time (language.md: scan).  Its body is the nodes whose `loop` it is: the graph stays flat, and a node that reads one
 * of them is in the loop too, unless the op says that it leaves (ops/scan.c).  What a step hands to the next is a pair: the back
 * edge from next to state stands here and not in in[], so that the list keeps its order.  A loop's nodes stand together in it. */
typedef struct Carry { Node *state, *next; } Carry;
typedef struct Loop {
    int      id;
    int64_t  steps;
    bool     reversed;                                /* from the last step to the first */
    int      ncarry;
    Carry   *carry;
    Span     span;                                    /* the scan in the model */
    Node    *call;                                    /* the lstm, gru or rnn that it computes: in[0] its sequence, name the path of its
                                                         parameters; not in the graph; NULL: a scan as the model says it */
    struct Loop *mirror;                              /* pass gradient: the loop that goes back through this one */
    int64_t  every;                                   /* recompute = every k: its states are kept every k steps, a stretch; 0: all it needs */
    struct Loop *inside;                              /* pass stretch: it runs in that one's steps, a stretch at the first step of each */
    int      nstack;
    Node   **stack;                                   /* pass gradient: sequences of this loop's values, made once each */
} Loop;

typedef struct Param {
    const char *name;                                 /* "conv1.weight": path of bindings, unique */
    Node    *node;                                    /* the one leaf that stands for it */
    Shape    file;                                    /* shape in checkpoints: (O, I, H, W), (out, in), (n) */
    Init     init;
    int64_t  fan_in, fan_out;                         /* of the file shape, for init */
    double   lr, decay;                               /* times the recipe's: 1, and 0 of a vector's decay, unless the recipe says otherwise */
    bool     frozen;                                  /* the recipe lets nothing train it */
    int64_t  blank;                                   /* a table: row blank - 1 begins with zeros; 0: none does */
    bool     lazy;                                    /* a table: the update leaves rows alone whose gradient is 0 */
    bool     average;                                 /* a running average: kept in files, never trained */
    int      naxis;                                   /* memory layout: file visited row-major over these axes; */
    Axis     axis[SHAPE_MAX + 2];                     /* filled row-major by graph_param, changed by pass layout */
    int64_t  count_memory;                            /* reals in memory, padding included */
    int64_t  offset;                                  /* bytes in FIXED, by pass plan; states follow at offset_state */
    int64_t  offset_state[2];
    Span     span;
} Param;

struct Node {
    int        id;                                    /* unique in the graph, grows with creation; stable across dumps */
    const Op  *op;
    int        nin;
    Node     **in;
    int        nattr;
    Attr      *attr;
    Shape      shape;
    DType      dtype;
    Span       span;                                  /* the call in the model; backward nodes carry their forward's */
    const char *name;                                 /* "conv1", "h", "conv1.weight"; NULL = none; not unique */
    const char *block;                                /* path of the block instance it stands in; NULL: the model itself */
    Param     *param;                                 /* op "param" and op "update" */
    bool       needs_grad;                            /* a parameter lies upstream (pass infer) */
    bool       backward;                              /* made by pass gradient */
    Half       half;                                  /* pass narrow: it lies in memory in two bytes a number */
    Loop      *loop;                                  /* the loop that computes it, once a step; NULL: none */

    Layout     layout;                                /* pass layout */
    int64_t    flat[3];                               /* C, H, W of a flattened LAST value */
    Place      place;                                 /* pass schedule */
    int        phase;                                 /* pass schedule: index into Graph.phase, -1 = none */
    int64_t    offset;                                /* pass plan: bytes inside its region */
    Node      *within;                                /* pass slices: it lies in this one's memory, its rows as far apart */
    int64_t    start;                                 /* reals from that one's first to its own */
    int        mark;                                  /* scratch of whichever pass runs */
    int        seat;                                  /* place in the index of ir/readers.h that was made last */
    Node      *alias;                                 /* pass plan: shares the memory of this node (views, in place, joined sums) */
};

typedef struct Metric { const char *name; Node *node; } Metric;   /* batched scalars: "loss", "accuracy" */

struct Graph {
    Arena   *arena;
    const char *name;                                 /* the model */
    const Source *source;
    bool     training;                                /* false: evaluation and prediction (dropout off) */
    const char *block;                                /* while the front builds: of nodes that are added */
    int      nnode, next_id;
    Node   **node;
    int      nloop;
    Loop   **loop;
    Loop    *walked;                                  /* pass gradient: whose values rules read now */
    int      nparam;
    Param  **param;                                   /* in order of first appearance = checkpoint order */
    Node    *input, *label, *output, *loss;           /* label, loss NULL without a train block */
    int      nmetric;
    Metric   metric[RT_METRICS];
    Recipe   recipe;
    int      nstate;                                  /* optimizer states a parameter: 0, 1 or 2 */
    Graph   *peer;                                    /* evaluation: the training graph, already planned, whose parameters it uses */
    bool     token;                                   /* by passes/token.c: of one token at a time, which leave */
    int64_t  carried, cached, window;                 /* so many reals of states, and of keys and values; positions at most, 0: any number */
    struct Step *step;                                /* ir/step.h: made by pass schedule, filled by pass plan */
};

Graph *graph_new(Arena *a, const char *name, bool training);
/* The same graph again, before the passes: to plan the step in a second form.  copy.c */
Graph *graph_copy(const Graph *g);
/* Appended, in the loop that an input is in; shape is the caller's (or op->shape's) to set. */
Node  *graph_add(Graph *g, const Op *op, Node *const *in, int nin, Span at);
/* What the program is given: samples, real or tokens (DT_I32), and class numbers: one a sample, or one a position. */
Node  *graph_input(Graph *g, const char *name, Shape s, DType t, Span at);
Node  *graph_label(Graph *g, Shape s, Span at);
/* The parameter of that name: made on first use, found again on the next (sharing).  NULL after an error
 * when the shapes differ. `init` overrides the recipe's when not NULL. */
Node  *graph_param(Graph *g, Diag *d, const char *name, Shape file, const Init *init, Span at);
const char *param_layer(Arena *a, const Param *p);    /* "conv1" of "conv1.weight"; "" of a name without a dot */
const char *node_serves(Arena *a, const Node *n);     /* its own name, or the layer whose weights it reads, packs or turns; "": none */
/* A constant filled with v, not batched unless s says so.  Costs no memory: emitters print it. */
Node  *graph_const(Graph *g, double v, Shape s, Span at);
bool   graph_next_token(const Graph *g);              /* its loss is that of a text's next token: exp of it is the perplexity */
void   graph_sort(Graph *g);                          /* restore order after edits, loops in one piece; stable: ties by id */
Loop  *graph_loop(Graph *g, int64_t steps, bool reversed, Span at);
const Loop *loop_outer(const Loop *l);                /* the loop in whose steps l runs; l itself, NULL too: none */
Loop  *node_loop(const Node *n);                      /* the loop that readers of n are in: NULL behind an op that leaves */
int64_t node_steps(const Node *n);                    /* how often a chunk computes n: 1 outside of loops */

Node    *node_root(const Node *n);                                    /* after pass plan: whose bytes n's are */
/* Where the loop over time that begins at i in a list of n nodes ends, whose nodes stand together, behind those of a loop in its
 * steps; i itself: none begins there. */
int      loop_end(Node *const *node, int n, int i);
const Attr *node_attr(const Node *n, const char *key);                /* NULL if absent */
int64_t  node_int(const Node *n, const char *key);                    /* aborts (a bug) if absent */
double   node_float(const Node *n, const char *key);
bool     node_bool(const Node *n, const char *key);
const char *node_string(const Node *n, const char *key);
Span     node_span(const Node *n, const char *key);                   /* the argument's place, else the node's */
void     node_set_int(Graph *g, Node *n, const char *key, int64_t v);
void     node_set_float(Graph *g, Node *n, const char *key, double v);
void     node_set_string(Graph *g, Node *n, const char *key, const char *v);
void     node_set_ints(Graph *g, Node *n, const char *key, const int64_t *v, int count);
void     node_set_attr(Arena *a, Node *n, Attr v);    /* for rules that have no graph at hand; keeps the old span when v has none */
Attr     attr_ints(Arena *a, const char *key, const int64_t *v, int count);
void     node_drop_attr(Arena *a, Node *n, const char *key);
void     node_copy_attrs(Graph *g, Node *to, const Node *from);
bool     node_is(const Node *n, const char *op_name);

/* The value in whose memory n lies, directly or through others (within); n itself when in none.  *start: reals from there.
 * A step of a sequence (pass steps) is a piece of its own: its rows lie as if it were alone. */
const Node *node_frame(const Node *n, int64_t *start);
int64_t  node_lanes(const Node *n);                   /* pass lanes: channels that a pixel, or a tap of filters, has in memory, zeros behind its own; 0: its own */
int64_t  node_reals(const Node *n);                   /* numbers in memory, of one sample, or of the whole when not batched */
int64_t  node_row(const Node *n);                     /* reals from a row of channels to the next: its frame's channels */

/* dump.c: one line a node, stable, for --dump and goldens:
 *   %12 = conv2d(%3, %10) {stride=[1,1] pad=[0,0]} (N, 20, 24, 24)  conv1  lenet.tn:3 */
void   graph_dump(const Graph *g, FILE *f);
/* verify.c: order, arity, shapes by each op's own rule, attributes, layouts, places.  Returns NULL or what is wrong. */
const char *graph_verify(const Graph *g, Diag *scratch);

#endif
