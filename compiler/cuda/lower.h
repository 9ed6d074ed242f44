/* lower.h -- from nodes to calls of a GPU's program: to the end of Writer.list (call.h). */
#ifndef CUDA_LOWER_H
#define CUDA_LOWER_H
#include "cuda/call.h"

void cuda_lower(Writer *w, const Node *n);      /* no calls where another node's call computes n */
void cuda_lower_node(Writer *w, const Node *n); /* the same, and the metric that n is */

void loop_lower(Writer *w, const Node *n); /* loop.c: elementwise */
void loop_lower_sum(Writer *w, const Node *n);
void move_lower(Writer *w, const Node *n); /* move.c */

/* Calls that write 0 to the sums of a phase that several calls add to; without `backward`, to those
 * of the forward pass. */
void cuda_clear_sums(Writer *w, int phase, bool backward);
/* Whether all nodes have a CUDA form; reports each node without one at its line. */
bool cuda_able(const Graph *train, const Graph *test, Diag *d);

/* ---- update.c: the update */

/* Running averages, and the update of all parameters but those that own.c updates, behind
 * the calls of Writer.list. from_grad: from gradients that ranks have added, instead of the sums
 * of the shards. */
void update_lower(Writer *w, bool from_grad);
/* The table of parameters; rest: without those of own.c. */
void update_rows(Writer *w, Text *t, bool rest);
int update_parameters(const Writer *w, int sums); /* of the first `sums`: rows of the table */
int update_loss(const Graph *g);                  /* which metric; -1: none */
const char *update_rule(const Graph *g);          /* of the optimizer: "update_sgd" */
/* What the update of a parameter accesses: its sum over the shards, the parameter and its
 * states. */
void update_touch(Writer *w, CudaCall *c, int sum, bool from_grad);
void update_touch_scaling(Writer *w, CudaCall *c, bool writes); /* the scale of the loss */

/* ---- library.c: what is left to NVIDIA's libraries */

/* The calls that compute n; false: a kernel of ours does. */
bool library_lower(Writer *w, const Node *n);
/* Function fn of runtime/cuda, a call of that library with that row of its table. */
CudaCall *library_call(Writer *w, const char *fn, const char *library, const Node *n, int row);

/* Whether another call brings the sum n along, such as the gradient of a bias: it needs none of its
 * own. */
bool library_brings(const Writer *w, const Node *n);

/* Does the call of `gradient` bring `sum` along, which reads the same? */
typedef bool Brings(const Writer *w, const Node *sum, const Node *gradient);

/* The other of such a pair, of n, which is either; NULL: there is none.  A layer may share its
 * gradient with others, so that there are several of either: each goes with the first at most. */
const Node *library_companion(const Writer *w, const Node *n, Brings *brings);

/* When all calls are written: bytes at the end of the scratch; headers; tables, and the function
 * that opens the libraries. */
int64_t library_workspace(const Writer *w);
void library_includes(const Writer *w, Text *t);
void library_tables(const Writer *w, Text *t);

/* graph.c: the same of convolutions alone */
bool graph_lower(Writer *w, const Node *n);
bool graph_brings(const Writer *w, const Node *n);
/* Behind a convolution or a product of ours: what pass epilogue has put into it. */
bool graph_lower_rest(Writer *w, const Node *n);
/* Of a gradient: the relu of y undone, in place. */
CudaCall *graph_lower_rest_dx(Writer *w, const Node *n);
int64_t graph_workspace(const Writer *w);
void graph_tables(const Writer *w, Text *t);

/* words.c: a convolution or its gradient as a graph of cuDNN, with the first `nfused` of
 * `fused` inside: ops that follow a convolution (bias, add, activation, batch_moments) or its
 * gradient (relu_d, sum_to).  The words are those of runtime/cuda/cudnn_graph.h.  Tensors 1 to 3
 * are two operands and the result; 4 a bias, of the type of n's third input, or f32 without one;
 * then what is added, the sums, or the value whose relu is undone.  LAST: channels innermost. */
typedef enum { ORDER_ROW, ORDER_LAST } ImageOrder;
const char *graph_words(Arena *a, int64_t batch, ImageOrder order, const Node *n,
                        const char *const *fused, int nfused);

/* columns.c: sums over channels that lie innermost.  columns_lower: false: another call does;
 * columns_shift: a gradient of a shift, and of the scale of its layer; columns_lower_sum: of a
 * value's rows to n, written or added to what is there. */
bool columns_lower(Writer *w, const Node *n);
Brings columns_shift;
void columns_lower_sum(Writer *w, const Node *n, int64_t columns, int64_t rows, bool adds);

/* The number of a row among its equals, of which each is kept once; a node's name and place as a
 * string of C. */
int library_row(Writer *w, Rows *rows, const char *row);
const char *library_layer(Writer *w, const Node *n);

#endif
