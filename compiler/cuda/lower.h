/* lower.h -- turns nodes into calls of a GPU program, at the end of CudaState.list (call.h). */
#ifndef CUDA_LOWER_H
#define CUDA_LOWER_H
#include "cuda/call.h"
#include "runtime/constants.h"

void cuda_lower(Writer *w, const Node *n); /* adds no call if the call of another node computes n */
/* calls cuda_lower, and adds the call for the metric if n is a metric */
void cuda_lower_node(Writer *w, const Node *n);

void loop_lower(Writer *w, const Node *n); /* loop.c: elementwise */
void loop_lower_sum(Writer *w, const Node *n);
void move_lower(Writer *w, const Node *n); /* move.c */

/* Adds calls that clear the sums of a phase, if several calls add to a sum; without `backward`,
 * only sums of the forward pass. */
void cuda_clear_sums(Writer *w, int phase, bool backward);
/* Whether all nodes have a CUDA form; reports each node without one at its line. */
bool cuda_able(const Graph *train, const Graph *test, const Options *o, Diag *d);

/* ---- update.c: the update */

/* Adds calls to CudaState.list: the update of running averages, and of all parameters but those of
 * own.c.  from_grad: from gradients that ranks have added; else from the sums of the shards. */
void update_lower(Writer *w, bool from_grad);
/* Writes the table of parameters; rest: without those of own.c. */
void update_rows(Writer *w, Text *t, bool rest);
/* number of parameters among the first `sums` sums: rows of the table */
int update_parameters(const Writer *w, int sums);
const char *update_rule(const Graph *g); /* device function of the optimizer: "update_sgd" */
/* Adds the accesses of the update of a parameter: its sum over the shards, the parameter and its
 * states. */
void update_access(Writer *w, CudaCall *c, int sum, bool from_grad, bool writes);
/* adds the access to the scale of the loss */
void update_access_scaling(Writer *w, CudaCall *c, bool writes);

/* ---- library.c: products of NVIDIA's libraries */

/* Adds the calls that compute n; false: a kernel of Tenon computes it. */
bool library_lower(Writer *w, const Node *n);
/* Adds a call of function fn of runtime/cuda, which calls `library` with row `row` of its table. */
CudaCall *library_call(Writer *w, const char *fn, const char *library, const Node *n, int row);

/* Whether another call also computes the sum n, such as the gradient of a bias: then n needs no
 * call. */
bool library_brings(const Writer *w, const Node *n);

/* Whether the call of `gradient` can also compute `sum`, because it reads the same values. */
typedef bool Brings(const Writer *w, const Node *sum, const Node *gradient);

/* The partner of n in such a pair, where n is the gradient or the sum; NULL: none.  If layers share
 * a gradient, several nodes fit: the first one is the partner, so each node has at most one. */
const Node *library_companion(const Writer *w, const Node *n, Brings *brings);

/* Bytes after the scratch: the workspace of the libraries, then parts of sums
 * (CudaState.apart_bytes).  Called when all calls are written. */
int64_t library_workspace(const Writer *w);
/* writes the headers */
void library_includes(const Writer *w, Text *t, EmitHeaders *h);
/* Writes the tables, and the function that opens the libraries. */
void library_tables(const Writer *w, Text *t);
void library_fields(const Writer *w, Text *t); /* writes fields of RtProgram */

/* graph.c: the same as library_lower, for convolutions */
bool graph_lower(Writer *w, const Node *n);
bool graph_brings(const Writer *w, const Node *n);
/* Adds a call that computes the epilogue of n (pass epilogue), after a kernel of Tenon has computed
 * the convolution or product; false: n has no epilogue. */
bool graph_lower_rest(Writer *w, const Node *n);
/* The same for a gradient: applies the mask of the relu of y, in place. */
CudaCall *graph_lower_rest_dx(Writer *w, const Node *n);
int64_t graph_workspace(const Writer *w);
void graph_tables(const Writer *w, Text *t);

/* words.c: the text of a convolution or its gradient as a graph of cuDNN (language of
 * runtime/cuda/cudnn_graph.h).  The graph contains the first `nfused` operations of `fused`, which
 * follow a convolution (bias, add, activation, batch_moments) or its gradient (relu_d, sum_to).
 * Tensors 1 to 3 are two operands and the result.  Tensor 4 is a bias, with the type of the third
 * input of n, or f32 without one.  The next tensors are an addend, the sums, or the result of the
 * relu whose gradient is computed.  LAST: channels innermost. */
typedef enum { ORDER_ROW, ORDER_LAST } ImageOrder;
const char *graph_words(Arena *a, int64_t batch, ImageOrder order, const Node *n,
                        const char *const *fused, int nfused);

/* columns.c: lowers sums for channels in the innermost dimension. */
bool columns_lower(Writer *w, const Node *n); /* false: n is no such sum, and no call is added */
Brings columns_shift; /* whether the nodes are the gradients of shift and scale of one layer */
/* Adds the calls for a sum_to n: the sum of the rows of in[0].  adds: the sum is added to n. */
void columns_lower_sum(Writer *w, const Node *n, int64_t columns, int64_t rows, bool adds);

/* The parts of parts_lower_sum stand in the first SUMS_MOST numbers of the region APART.  The parts
 * of products, and sorted tokens, stand after these numbers.  So one launch can have calls of both
 * kinds. */
enum { SUMS_MOST = RT_FULL };

/* parts.c: lowers products with their sums in parts.  s: the sizes of n's call; false: n is no such
 * product, and no call is added. */
bool parts_lower(Writer *w, const Node *n, const Sizes *s);
/* n: `kept` sums of `summed` numbers each; value: the C++ function of a number of a sum. */
bool parts_lower_sum(Writer *w, const Node *n, int64_t kept, int64_t summed, const char *value);

/* tokens.c: lowers the gradient of an embedding with many tokens; false as for parts_lower */
bool tokens_lower(Writer *w, const Node *n, const Sizes *s);

/* library.c: the index of a row; equal rows are stored once. */
int library_row(Writer *w, Rows *rows, const char *row);
const char *library_layer(Writer *w, const Node *n); /* name and line of n, as a string of C */

#endif
