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

typedef struct Op Op; /* ops/op.h */
typedef struct Node Node;
typedef struct Graph Graph;

typedef enum { ATTR_INT, ATTR_FLOAT, ATTR_BOOL, ATTR_STRING, ATTR_INTS, ATTR_REALS } AttrKind;
typedef struct Attr {
    const char *key;
    AttrKind kind;
    int64_t i;           /* INT, BOOL */
    double f;            /* FLOAT */
    const char *s;       /* STRING; of REALS the text "1, 2.5", as C and Python write it */
    const int64_t *list; /* INTS: at most INTS_MAX */
    const double *reals; /* REALS */
    int nlist;           /* INTS, REALS */
    Span span;           /* the argument in the model file, or none */
} Attr;

/* Limits of one elementwise loop: operations that it computes, and values that it reads.  A value
 * with attribute "inline" is computed in the loop of its reader, and never stored.  Pass chains
 * respects these limits when it sets this attribute; the emitter relies on the limits. */
enum { LOOP_OPS = 32, LOOP_LEAVES = 12 };

/* How a value lies in memory.  Param.axis describes the layout of weights.
 *   ROW    dimensions in order, the last one fastest
 *   LAST   a (C, H, W) sample stored as (H, W, C); a flattened sample (rank 1, with flat[] = C, H,
 *          W) has this order, too
 *   TIME   the (T, F) sequences of the samples of a chunk, stored step by step as (T, N, F) */
typedef enum { LAYOUT_ROW, LAYOUT_LAST, LAYOUT_TIME } Layout;

/* Where a value lives (set by the passes schedule and plan).
 *   FIXED    one copy: parameters, optimizer state, packed weights, gradients after reduction
 *   BATCH    a region per shard: values that one phase writes and a later phase reads
 *   PARTIAL  a region per slice of a shard: sums over the samples of the slice
 *   LOCAL    scratch of the thread that runs the slice
 *   VIEW     the bytes of in[0] under another shape */
typedef enum { PLACE_NONE, PLACE_FIXED, PLACE_BATCH, PLACE_PARTIAL, PLACE_LOCAL, PLACE_VIEW } Place;

/* An axis of the map from file order to memory order: index i has the offset (i / block) * outer
 * + (i % block) * inner. */
typedef struct Axis {
    int64_t n, block, outer, inner;
} Axis;

/* A Carry passes a value from each step of a loop to the next step.  The back edge from next to
 * state is in the Carry and not in in[], so that each node follows its inputs. */
typedef struct Carry {
    Node *state, *next;
} Carry;

/* A call of a block instance; outer: the call that contains it.  An instance that is called several
 * times has the same weights in each call. */
typedef struct BlockCall {
    const char *name, *path; /* of the block; of the instance */
    const struct BlockCall *outer;
} BlockCall;

/* A loop over time (language.md: scan).  The graph stays flat: the body of a loop is the set of
 * nodes whose `loop` points to it, and these nodes are neighbours in graph->node.  A node that
 * reads a node of the body belongs to the body, too, unless it reads only nodes whose op leaves the
 * loop (OP_LEAVES, ops/scan.c). */
typedef struct Loop {
    int id;
    int64_t steps;
    bool reversed; /* from the last step to the first */
    int ncarry;
    Carry *carry;
    Span span; /* the scan in the model */
    /* the lstm, gru or rnn that the loop computes; NULL: the loop is a scan of the model.  This
     * node is not in the graph; in[0] is the sequence, and name is the path of the parameters */
    Node *call;
    struct Loop *mirror; /* pass gradient: the backward loop of this loop */
    /* k of the option recompute = every k: states are kept only at every k-th step, and k steps are
     * a stretch; 0: all needed values are kept */
    int64_t every;
    /* pass stretch: the backward loop whose steps contain this loop.  This loop runs when the
     * backward loop enters a stretch, and recomputes the values of the stretch. */
    struct Loop *inside;
    int nstack;
    Node **stack; /* pass gradient: sequences of values of this loop, each made once */
} Loop;

typedef struct Param {
    const char *name; /* "conv1.weight": path of bindings, unique */
    uint64_t hash;    /* of the name */
    Node *node;       /* the only leaf of this parameter */
    Shape file;       /* shape in checkpoints: (O, I, H, W), (out, in), (n) */
    Init init;
    int64_t fan_in, fan_out; /* of the file shape, for init */
    /* factors for the values of the recipe; default 1, and decay 0 for a vector */
    double lr, decay;
    bool frozen;   /* the recipe excludes it from training */
    int64_t blank; /* a table: row blank - 1 begins with zeros; 0: no such row */
    bool lazy;     /* a table: the update skips rows whose gradient is 0 */
    bool average;  /* a running average: kept in files, never trained */
    /* layout in memory; the axes stand in row-major order of the file.  graph_param sets row-major
     * order, and pass layout changes it. */
    int naxis;
    Axis axis[SHAPE_MAX + 2];
    int64_t count_memory; /* reals in memory, padding included */
    int64_t offset;       /* bytes in FIXED, by pass plan; states follow at offset_state */
    int64_t offset_state[2];
    Span span;
} Param;

struct Node {
    int id; /* unique in the graph, grows with creation; stable across dumps */
    const Op *op;
    int nin;
    Node **in;
    int nattr;
    Attr *attr;
    Shape shape;
    DType dtype;
    Span span;        /* the call in the model; a backward node has the span of its forward node */
    const char *name; /* "conv1", "h", "conv1.weight"; NULL = none; not unique */
    const BlockCall *call; /* the call of a block that made it; NULL: the model itself */
    Param *param;          /* ops "param" and "update" */
    bool needs_grad;       /* depends on a trained parameter (pass infer) */
    bool backward;         /* made by pass gradient */
    Half half;             /* pass narrow: its numbers are stored in two bytes */
    Loop *loop;            /* the loop over time that computes it; NULL: none */
    /* token graph: it stands for a node that stays in a loop (passes/token.c, hoist.c) */
    bool looped;

    Layout layout;   /* pass layout */
    int64_t flat[3]; /* C, H, W of a flattened LAST value */
    Place place;     /* pass schedule */
    int phase;       /* pass schedule: index into Step.phase, -1 = none */
    int64_t offset;  /* pass plan: bytes inside its region */
    /* pass slices: the node in whose memory this value lies, with the row stride of that node */
    Node *within;
    int64_t start; /* reals from the start of `within` to the start of this value */
    int mark;      /* scratch for the current pass */
    int seat;      /* index into the latest Readers (ir/readers.h) */
    Node *alias;   /* the node whose memory it shares: results in place, terms of one gradient */
};

/* batched scalars: "loss", "accuracy" */
typedef struct Metric {
    const char *name;
    Node *node;
} Metric;

/* One of several outputs of a model, or an output with a name.  Passes replace nodes, so `node` is
 * valid only before the first pass. */
typedef struct Output {
    const char *name;
    Node *node;
    Shape shape;
    int64_t classes; /* softmax over this many numbers gives probabilities; 0: no softmax does */
    int64_t pixels;  /* H W of an image with a class for each pixel; else 0 */
    bool binary;     /* sigmoid gives the probability of class 1 */
    Span span;
} Output;

struct Graph {
    Arena *arena;
    const char *name; /* the model */
    const Source *source;
    bool training;         /* false: evaluation and prediction (dropout off) */
    const BlockCall *call; /* the call of a block that the front end is lowering */
    int nnode, next_id;
    Node **node;
    int nloop;
    Loop **loop;
    Loop *walked; /* pass gradient: the loop that is being differentiated; NULL: none */
    int nparam;
    Param **param;                       /* in order of first appearance = checkpoint order */
    Node *input, *label, *output, *loss; /* label, loss NULL without a train block */
    Node *unmixed; /* augment mixes samples: the loss of one target of each sample; else NULL */
    int ninput;    /* several inputs have the attribute `part`, an index */
    Node *inputs[RT_INPUTS]; /* in the order of the model; the first one is `input` */
    /* With several outputs, `output` is the first one in training; in evaluation and in scripts, it
     * is a row of all of them. */
    int noutput;    /* 0: one output without a name */
    bool probable;  /* one output: sigmoid gives the probability of class 1, or of truths */
    int64_t pixels; /* one output: H W of an image with a class for each pixel; else 0 */
    Output outputs[RT_OUTPUTS];
    /* What losses compare outputs with: labels, numbers, or an input; `target` is the first one. */
    Node *target, *targets[RT_TARGETS];
    int nmetric;
    Metric metric[RT_METRICS];
    Recipe recipe;
    int nstate;  /* optimizer states per parameter: 0, 1 or 2 */
    Graph *peer; /* evaluation: the planned training graph, which owns the parameters */
    bool token;  /* made by passes/token.c: the graph processes one token at a time */
    /* token graph: reals of states; reals of keys, values and scores; largest number of positions
     * (0: no limit) */
    int64_t carried, cached, window;
    struct Step *step; /* ir/step.h: made by pass schedule, filled by pass plan */
};

Graph *graph_new(Arena *a, const char *name, bool training);
/* Appends a node, in the loop of its inputs.  The caller or op->shape sets the shape. */
Node *graph_add(Graph *g, const Op *op, Node *const *in, int nin, Span at);
/* Inputs of the program.  graph_input: samples (reals, or tokens as DT_I32); at most RT_INPUTS
 * times.  graph_label: class numbers, one per sample or one per position.  graph_target: numbers,
 * of any shape; it is a label of reals. */
Node *graph_input(Graph *g, const char *name, Shape s, DType t, Span at);
Node *graph_label(Graph *g, Shape s, Span at);
Node *graph_target(Graph *g, const char *name, Shape s, Span at);
Param *graph_find_param(const Graph *g, const char *name); /* NULL: there is none */
/* Returns the parameter with this name; the first use makes it, later uses share it.  Reports an
 * error and returns NULL when the shapes differ.  `init`, if not NULL, overrides the init of the
 * recipe. */
Node *graph_param(Graph *g, Diag *d, const char *name, Shape file, const Init *init, Span at);
/* "conv1" for "conv1.weight"; "" for a name without a dot. */
const char *param_layer(Arena *a, const Param *p);
/* The name of n.  If n has none: the name of the layer whose weights n reads, packs or transposes.
 * "" if there is no such layer. */
const char *node_serves(Arena *a, const Node *n);
/* A constant filled with v; it takes no memory, because emitters print it as a literal. */
Node *graph_const(Graph *g, double v, Shape s, Span at);
/* Whether the loss predicts the next token of a text, so that exp(loss) is the perplexity.  The
 * only such loss is softmax_cross_entropy without smoothing. */
bool graph_next_token(const Graph *g);
/* Index of the metric with this name; -1: there is none. */
int graph_metric(const Graph *g, const char *name);
/* For each id, whether `root` depends on the node, also through the steps of a loop. */
bool *graph_needed(const Graph *g, const Node *root);
bool graph_several(const Graph *g);    /* several outputs or targets, which have tables (rt.h) */
int64_t graph_outputs(const Graph *g); /* numbers of a sample in `outputs` */
int64_t graph_numbers(const Graph *g); /* numbers and tokens of a sample, in all inputs */
void graph_sort(Graph *g); /* restores order after edits, keeps loops together; stable */
Loop *graph_loop(Graph *g, int64_t steps, bool reversed, Span at);
/* The loop whose steps run l, or l itself if no other loop runs it; l may be NULL. */
const Loop *loop_outer(const Loop *l);
/* The loop whose body has the value of n.  NULL outside of loops, and for an op that leaves its
 * loop, such as scan_stack. */
Loop *node_loop(const Node *n);
/* The path of the block instance that contains n; NULL: the model itself. */
const char *node_block(const Node *n);
int64_t node_steps(const Node *n); /* times that a chunk computes n: 1 outside of loops */

Node *node_root(const Node *n); /* after pass plan: the node that owns the bytes of n */
/* If a loop over time begins at index i of a list of n nodes, returns the index after the last node
 * of the loop; else returns i.  A loop that runs inside the steps of another loop belongs to the
 * other loop, and its nodes come before those of the other loop. */
int loop_end(Node *const *node, int n, int i);
const Attr *node_attr(const Node *n, const char *key); /* NULL if absent */
int64_t node_int(const Node *n, const char *key); /* aborts if absent: a fault of the compiler */
double node_float(const Node *n, const char *key);
bool node_bool(const Node *n, const char *key);
const char *node_string(const Node *n, const char *key);
const Attr *node_list(const Node *n, const char *key);
Span node_span(const Node *n, const char *key); /* the argument's place, else the node's */
void node_set_int(Graph *g, Node *n, const char *key, int64_t v);
void node_set_float(Graph *g, Node *n, const char *key, double v);
void node_set_string(Graph *g, Node *n, const char *key, const char *v);
void node_set_ints(Graph *g, Node *n, const char *key, const int64_t *v, int count);
/* Sets an attribute inside a rule, which has no graph.  Keeps the old span when v has none. */
void node_set_attr(Arena *a, Node *n, Attr v);
Attr attr_ints(Arena *a, const char *key, const int64_t *v, int count);
void node_drop_attr(Arena *a, Node *n, const char *key);
void node_copy_attrs(Graph *g, Node *to, const Node *from);
bool node_same_attrs(const Node *a, const Node *b); /* also in the same order */
bool node_is(const Node *n, const char *op_name);
/* n is a transpose of three dimensions whose result has the dimensions a, b, c of its input. */
bool node_transposes(const Node *n, int64_t a, int64_t b, int64_t c);

/* The outermost node whose memory contains n (Node.within), or n itself.  Sets *start to the offset
 * of n in the memory of this node, in reals.  A sequence that a loop fills step by step (pass
 * steps) does not count, because a step keeps its own row stride. */
const Node *node_frame(const Node *n, int64_t *start);
/* Pass lanes: channels in memory of a pixel or of a filter tap, padded with zeros; 0: no
 * padding. */
int64_t node_lanes(const Node *n);
/* Bytes of a number of n in memory; real: those of a real of the program. */
int64_t node_number_bytes(const Node *n, int64_t real);
/* Reals in memory: of one sample, or of the whole value when it is not batched. */
int64_t node_reals(const Node *n);
/* Reals from a row of channels to the next row: the channels of node_frame. */
int64_t node_row(const Node *n);

/* dump.c: prints one line per node, always in the same form, for --dump and goldens:
 *   %12 = conv2d(%3, %10) {stride=[1,1] pad=[0,0]} (N, 20, 24, 24)  conv1  lenet.tn:3 */
void graph_dump(const Graph *g, FILE *f);
/* verify.c: checks order, arity, attributes, shapes (by the rule of each op), layouts and
 * places.  Returns NULL, or a text about the first fault. */
const char *graph_verify(const Graph *g, Diag *scratch);

#endif
