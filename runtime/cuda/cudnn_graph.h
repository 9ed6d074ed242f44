/* cudnn_graph.h -- a cuDNN operation graph from a line of text.
 *
 *   x bf16 64 64 56 56; w bf16 64 64 3 3; b f32 1 64 1 1; y bf16 64 64 56 56;
 *   s f32 64 64 56 56 virtual; t f32 64 64 56 56 virtual; conv x w s pad 1 1; add s b t; relu t y
 *
 * Statements are split at ';'.  A tensor is NAME TYPE DIMS... [FLAGS]: dims are (N, C, H, W), (B, M, N) for matrices; four and more
 * lie channels innermost, fewer in their order.  Flags: `row` (in their order), `turned` (the last two dims change places in memory),
 * `strides S...`, `virtual` (never stored), `value` (one number, given by the host).  An operation is OP TENSORS... [OPTIONS]; the table
 * in cudnn_ops.c says which.  Tensors are numbered from 1 in order: these are the ids that a program binds memory to.
 *
 * The line is what plans are keyed by, what a program embeds to plan anew, and what tests write.
 */
#ifndef CUDNN_GRAPH_H
#define CUDNN_GRAPH_H
#include "cuda/cudnn_api.h"

enum { CUDNN_DESCRIPTORS = 192, CUDNN_TENSORS = 64, CUDNN_OPS = 32, CUDNN_NAME = 16 };

typedef struct CudnnTensor {
    char name[CUDNN_NAME];
    cudnnBackendDescriptor_t descriptor;
} CudnnTensor;

typedef struct CudnnGraph {
    const CudnnApi *api;
    cudnnBackendDescriptor_t graph;
    cudnnBackendDescriptor_t all[CUDNN_DESCRIPTORS]; /* made so far, to be destroyed together */
    cudnnBackendDescriptor_t op[CUDNN_OPS];
    CudnnTensor tensor[CUDNN_TENSORS];
    int nall, nop, ntensor;
    char why[CUDNN_WHY]; /* the first error: which statement, what cuDNN says; "" = none */
} CudnnGraph;

/* False, with g->why, when the line is no graph or cuDNN refuses a part of it.  Freed either way by cudnn_graph_free. */
bool cudnn_graph_read(CudnnGraph *g, const CudnnApi *api, const char *text);
void cudnn_graph_free(CudnnGraph *g);
/* The id of a tensor, 1 and up; 0: there is none of that name. */
int64_t cudnn_graph_id(const CudnnGraph *g, const char *name);

#endif
