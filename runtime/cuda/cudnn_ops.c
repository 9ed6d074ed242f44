/* cudnn_ops.c -- the operations of graphs: a table of descriptors, and the attribute of each
 * tensor.
 *
 * An operation can need more than tensors (a convolution's window, a pointwise mode): the row's
 * `setup` makes a separate descriptor for that.
 * Source: cuDNN's backend API reference.  tests/cuda/plans.sh tries which graphs have engines.
 */
#include "cuda/cudnn_ops.h"
#include <stdarg.h>
#include <stdio.h>

typedef cudnnBackendDescriptor_t Desc;
typedef cudnnBackendAttributeName_t Name;

/* ---- attributes: the first error is kept, and cuDNN is not called after it */

void cudnn_fail(CudnnGraph *g, const char *fmt, ...)
{
    va_list ap;
    if (*g->why)
        return;
    va_start(ap, fmt);
    vsnprintf(g->why, sizeof g->why, fmt, ap);
    va_end(ap);
}

static void check_status(CudnnGraph *g, cudnnStatus_t s, const char *what)
{
    char more[200] = "";
    if (!s || *g->why)
        return;
    g->api->GetLastErrorString(more, sizeof more);
    cudnn_fail(g, "cuDNN: %s: %s%s%s", what, g->api->GetErrorString(s), *more ? ": " : "", more);
}

Desc cudnn_make(CudnnGraph *g, cudnnBackendDescriptorType_t type)
{
    Desc d = NULL;
    if (g->nall == CUDNN_DESCRIPTORS)
        cudnn_fail(g, "more than %d descriptors", CUDNN_DESCRIPTORS);
    if (*g->why)
        return NULL;
    check_status(g, g->api->BackendCreateDescriptor(type, &d), "create");
    if (d)
        g->all[g->nall++] = d;
    return d;
}

void cudnn_set(CudnnGraph *g, Desc d, Name name, cudnnBackendAttributeType_t type, int64_t n,
               const void *v)
{
    if (!*g->why)
        check_status(g, g->api->BackendSetAttribute(d, name, type, n, v), "set");
}

void cudnn_set_int(CudnnGraph *g, Desc d, Name name, int64_t v)
{
    cudnn_set(g, d, name, CUDNN_TYPE_INT64, 1, &v);
}

void cudnn_set_desc(CudnnGraph *g, Desc d, Name name, Desc v)
{
    cudnn_set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &v);
}

static void set_f32(CudnnGraph *g, Desc d, Name name)
{
    const cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
    cudnn_set(g, d, name, CUDNN_TYPE_DATA_TYPE, 1, &f32);
}

Desc cudnn_finish(CudnnGraph *g, Desc d)
{
    if (!*g->why)
        check_status(g, g->api->BackendFinalize(d), "finalize");
    return d;
}

/* ---- descriptors for operations */

static Desc setup_conv(CudnnGraph *g, const CudnnOp *row, const CudnnOptions *o)
{
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    Desc d = cudnn_make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    (void)row;
    cudnn_set_int(g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    set_f32(g, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
    cudnn_set(g, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    cudnn_set(g, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, o->pad);
    cudnn_set(g, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, o->post);
    cudnn_set(g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, o->dilate);
    cudnn_set(g, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, o->stride);
    return cudnn_finish(g, d);
}

static Desc setup_pointwise(CudnnGraph *g, const CudnnOp *row, const CudnnOptions *o)
{
    const cudnnPointwiseMode_t mode = (cudnnPointwiseMode_t)row->mode;
    Desc d = cudnn_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnn_set(g, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_f32(g, d, CUDNN_ATTR_POINTWISE_MATH_PREC);
    if (o->upper > 0)
        cudnn_set(g, d, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, 1, &o->upper);
    if (mode == CUDNN_POINTWISE_GEN_INDEX)
        cudnn_set_int(g, d, CUDNN_ATTR_POINTWISE_AXIS, o->axis);
    return cudnn_finish(g, d);
}

static void set_pairs(CudnnGraph *g, Desc d, Name name, const int64_t v[2])
{
    const cudnnFraction_t f[2] = {{v[0], 1}, {v[1], 1}};
    cudnn_set(g, d, name, CUDNN_TYPE_FRACTION, 2, f);
}

static Desc setup_pool(CudnnGraph *g, const CudnnOp *row, const CudnnOptions *o)
{
    const cudnnResampleMode_t mode = (cudnnResampleMode_t)row->mode;
    const cudnnPaddingMode_t padding =
        mode == CUDNN_RESAMPLE_MAXPOOL ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
    const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    Desc d = cudnn_make(g, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    cudnn_set(g, d, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &mode);
    set_f32(g, d, CUDNN_ATTR_RESAMPLE_COMP_TYPE);
    cudnn_set_int(g, d, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, 2);
    cudnn_set(g, d, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &padding);
    cudnn_set(g, d, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
    set_pairs(g, d, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, o->window);
    set_pairs(g, d, CUDNN_ATTR_RESAMPLE_STRIDES, o->stride);
    set_pairs(g, d, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, o->pad);
    set_pairs(g, d, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, o->post);
    return cudnn_finish(g, d);
}

static Desc setup_matmul(CudnnGraph *g, const CudnnOp *row, const CudnnOptions *o)
{
    Desc d = cudnn_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    (void)row, (void)o;
    set_f32(g, d, CUDNN_ATTR_MATMUL_COMP_TYPE);
    return cudnn_finish(g, d);
}

static Desc setup_reduce(CudnnGraph *g, const CudnnOp *row, const CudnnOptions *o)
{
    const cudnnReduceTensorOp_t op = (cudnnReduceTensorOp_t)row->mode;
    Desc d = cudnn_make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    (void)o;
    set_f32(g, d, CUDNN_ATTR_REDUCTION_COMP_TYPE);
    cudnn_set(g, d, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op);
    return cudnn_finish(g, d);
}

/* ---- the table */

#define CONV(n) CUDNN_ATTR_OPERATION_CONVOLUTION_##n
#define PW(n)   CUDNN_ATTR_OPERATION_POINTWISE_##n
#define ROW_PW(word, mode, least, ...)                                                             \
    {                                                                                              \
        word, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, setup_pointwise, PW(PW_DESCRIPTOR),    \
            CUDNN_POINTWISE_##mode, least,                                                         \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define ROW_XY(word, mode)  ROW_PW(word, mode, 2, PW(XDESC), PW(YDESC))
#define ROW_XBY(word, mode) ROW_PW(word, mode, 3, PW(XDESC), PW(BDESC), PW(YDESC))
/* dy, x, dx.  cuDNN's x is the input of the function.  For relu the graph can give y, whose sign is
 * the same; tanh is written as (1 - y y) dy. */
#define ROW_D(word, mode) ROW_PW(word, mode, 3, PW(DYDESC), PW(XDESC), PW(DXDESC))
#define POOL(n)           CUDNN_ATTR_OPERATION_RESAMPLE_##n
#define ROW_POOL(word, mode)                                                                       \
    {                                                                                              \
        word, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, setup_pool, POOL(FWD_DESC),         \
            CUDNN_RESAMPLE_##mode, 2,                                                              \
        {                                                                                          \
            POOL(FWD_XDESC), POOL(FWD_YDESC), POOL(FWD_IDXDESC)                                    \
        }                                                                                          \
    }
#define ROW_POOL_DX(word, mode)                                                                    \
    {                                                                                              \
        word, CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, setup_pool, POOL(BWD_DESC),         \
            CUDNN_RESAMPLE_##mode, 2,                                                              \
        {                                                                                          \
            POOL(BWD_DYDESC), POOL(BWD_DXDESC), POOL(BWD_IDXDESC)                                  \
        }                                                                                          \
    }
#define REDUCE(n) CUDNN_ATTR_OPERATION_REDUCTION_##n
#define ROW_REDUCE(word, mode)                                                                     \
    {                                                                                              \
        word, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, setup_reduce, REDUCE(DESC),            \
            CUDNN_REDUCE_TENSOR_##mode, 2,                                                         \
        {                                                                                          \
            REDUCE(XDESC), REDUCE(YDESC)                                                           \
        }                                                                                          \
    }
#define BN(n) CUDNN_ATTR_OPERATION_BN_FINALIZE_##n##_DESC

const CudnnOp cudnn_ops[] =
    {{"conv",
      CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      setup_conv,
      CONV(FORWARD_CONV_DESC),
      0,
      3,
      {CONV(FORWARD_X), CONV(FORWARD_W), CONV(FORWARD_Y)}},
     {"dgrad",
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      setup_conv,
      CONV(BWD_DATA_CONV_DESC),
      0,
      3,
      {CONV(BWD_DATA_DY), CONV(BWD_DATA_W), CONV(BWD_DATA_DX)}},
     {"wgrad",
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      setup_conv,
      CONV(BWD_FILTER_CONV_DESC),
      0,
      3,
      {CONV(BWD_FILTER_X), CONV(BWD_FILTER_DY), CONV(BWD_FILTER_DW)}},
     {"matmul",
      CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
      setup_matmul,
      CUDNN_ATTR_OPERATION_MATMUL_DESC,
      0,
      3,
      {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
       CUDNN_ATTR_OPERATION_MATMUL_CDESC}},
     ROW_POOL("max_pool", MAXPOOL),
     ROW_POOL("avg_pool", AVGPOOL_INCLUDE_PADDING),
     ROW_POOL("avg_pool_inside", AVGPOOL_EXCLUDE_PADDING),
     ROW_POOL_DX("max_pool_dx", MAXPOOL),
     ROW_POOL_DX("avg_pool_dx", AVGPOOL_INCLUDE_PADDING),
     ROW_REDUCE("sum", ADD),
     ROW_REDUCE("largest", MAX),
     {"genstats",
      CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
      NULL,
      0,
      0,
      3, /* x, sum, sum of squares */
      {CUDNN_ATTR_OPERATION_GENSTATS_XDESC, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC,
       CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC}},
     /* sum, squares, scale, bias, running mean and variance, the updated ones, mean, 1 / deviation,
     * factor and term for x, count, epsilon, rate */
     {"bn_finalize",
      CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR,
      NULL,
      0,
      0,
      15,
      {BN(Y_SUM), BN(Y_SQ_SUM), BN(SCALE), BN(BIAS), BN(PREV_RUNNING_MEAN), BN(PREV_RUNNING_VAR),
       BN(UPDATED_RUNNING_MEAN), BN(UPDATED_RUNNING_VAR), BN(SAVED_MEAN), BN(SAVED_INV_STD),
       BN(EQ_SCALE), BN(EQ_BIAS), BN(ACCUM_COUNT), BN(EPSILON), BN(EXP_AVERATE_FACTOR)}},
#if CUDNN_VERSION >= 91900
     {"sdpa",
      CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
      NULL,
      0,
      0,
      6, /* q, k, v, o, log-sum-exp, scale */
      {CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
       CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
       CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC}},
#endif
     ROW_XBY("add", ADD),
     ROW_XBY("sub", SUB),
     ROW_XBY("mul", MUL),
     ROW_XBY("div", DIV),
     ROW_XBY("max", MAX),
     ROW_XBY("min", MIN),
     ROW_XBY("ge", CMP_GE),
     ROW_XBY("gt", CMP_GT),
     ROW_PW("select", BINARY_SELECT, 4, PW(TDESC), PW(XDESC), PW(BDESC),
            PW(YDESC)), /* x if t is true, else b */
     ROW_XY("relu", RELU_FWD),
     ROW_XY("tanh", TANH_FWD),
     ROW_XY("sigmoid", SIGMOID_FWD),
     ROW_XY("gelu", GELU_FWD),
     ROW_XY("silu", SWISH_FWD),
     ROW_XY("exp", EXP),
     ROW_XY("log", LOG),
     ROW_XY("same", IDENTITY),
     ROW_XY("index", GEN_INDEX),
     ROW_D("relu_d", RELU_BWD),
     ROW_D("gelu_d", GELU_BWD),
     {0}};

/* Convolutions are y = 1 * conv + 0 * y; other operations need no further attributes. */
void cudnn_op_rest(CudnnGraph *g, const CudnnOp *row, Desc d)
{
    const float one = 1, zero = 0;
    const cudnnGenStatsMode_t sums = CUDNN_GENSTATS_SUM_SQSUM;
    const cudnnBnFinalizeStatsMode_t training = CUDNN_BN_FINALIZE_STATISTICS_TRAINING;
#define SCALED(kind)                                                                               \
    cudnn_set(g, d, CONV(kind##_ALPHA), CUDNN_TYPE_FLOAT, 1, &one),                                \
        cudnn_set(g, d, CONV(kind##_BETA), CUDNN_TYPE_FLOAT, 1, &zero)
    if (row->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
        SCALED(FORWARD);
    else if (row->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
        SCALED(BWD_DATA);
    else if (row->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
        SCALED(BWD_FILTER);
    else if (row->type == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR) {
        cudnn_set(g, d, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &sums);
        set_f32(g, d, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC);
    } else if (row->type == CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR) {
        cudnn_set(g, d, CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE,
                  CUDNN_TYPE_BN_FINALIZE_STATS_MODE, 1, &training);
        set_f32(g, d, CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC);
    }
#undef SCALED
}
