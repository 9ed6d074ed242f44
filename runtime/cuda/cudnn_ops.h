/* cudnn_ops.h -- the operations of graphs: the interface between cudnn_graph.c and cudnn_ops.c. */
#ifndef CUDNN_OPS_H
#define CUDNN_OPS_H
#include "cuda/cudnn_graph.h"

typedef struct CudnnOptions { /* of one operation; rows, then columns */
    int64_t pad[2], post[2], stride[2], dilate[2], window[2], axis;
    double upper; /* relu6: 6 */
} CudnnOptions;

typedef struct CudnnOp CudnnOp;
struct CudnnOp {
    const char *word;
    cudnnBackendDescriptorType_t type;
    cudnnBackendDescriptor_t (*setup)(CudnnGraph *g, const CudnnOp *row, const CudnnOptions *o);
    cudnnBackendAttributeName_t configured; /* the attribute for the descriptor of `setup` */
    int mode, least;                        /* for setup; number of required tensors */
    cudnnBackendAttributeName_t tensor[16];
};
extern const CudnnOp cudnn_ops[]; /* ended by a row without a word */

/* Sets attributes that depend on the operation only. */
void cudnn_op_rest(CudnnGraph *g, const CudnnOp *row, cudnnBackendDescriptor_t d);

/* Keeps the first error in g->why; after it, cuDNN is not called. */
void cudnn_fail(CudnnGraph *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
cudnnBackendDescriptor_t cudnn_make(CudnnGraph *g, cudnnBackendDescriptorType_t type);
void cudnn_set(CudnnGraph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, int64_t n, const void *v);
void cudnn_set_int(CudnnGraph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                   int64_t v);
void cudnn_set_desc(CudnnGraph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                    cudnnBackendDescriptor_t v);
cudnnBackendDescriptor_t cudnn_finish(CudnnGraph *g, cudnnBackendDescriptor_t d);

#endif
