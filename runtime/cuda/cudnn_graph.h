/* cudnn_graph.h -- a cuDNN operation graph from a line of text.
 *
 *   x bf16 64 64 56 56; w bf16 64 64 3 3; b f32 1 64 1 1; y bf16 64 64 56 56;
 *   s f32 64 64 56 56 virtual; t f32 64 64 56 56 virtual; conv x w s pad 1 1; add s b t; relu t y
 *
 * Statements are separated by ';'.  A tensor is NAME TYPE DIMS... [FLAGS].  dims are (N, C, H, W),
 * or (B, M, N) for matrices; with four and more dims channels are innermost, with fewer the order
 * is that of the dims.  Flags: `row` (order of the dims), `transposed` (the last two dims are
 * swapped in memory), `strides S...`, `virtual` (never stored), `value` (one number, given by the
 * host).
 * An operation is OP TENSORS... [OPTIONS]; cudnn_ops.c has the table.  Tensors are numbered from 1
 * in order: these numbers are the ids to which a program binds memory.
 *
 * The line is the key of a plan; programs embed it to plan again, and tests write it.
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
    cudnnBackendDescriptor_t all[CUDNN_DESCRIPTORS]; /* all that exist, to be destroyed together */
    cudnnBackendDescriptor_t op[CUDNN_OPS];
    CudnnTensor tensor[CUDNN_TENSORS];
    int nall, nop, ntensor;
    char why[CUDNN_WHY]; /* the first error: the statement, and cuDNN's message; "" = none */
} CudnnGraph;

/* Reads a graph.  Returns false, with g->why, if the line is no graph or cuDNN refuses a part of
 * it.  In both cases cudnn_graph_free frees it. */
bool cudnn_graph_read(CudnnGraph *g, const CudnnApi *api, const char *text);
void cudnn_graph_free(CudnnGraph *g);

#endif
