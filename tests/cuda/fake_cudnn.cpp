/* fake_cudnn.cpp -- a stand-in for cuDNN's backend API: convolutions with bias and relu, or with
 * sums of the result and of its squares, and gradients of images with a relu's gradient, by plain
 * loops, in the stream of fake.cpp.
 *
 * A shared library, compiled with cuDNN's own headers, that programs and tenon-plan open through
 * TENON_CUDNN.  A descriptor is the list of its attributes.  There are three engines: engine 0 rounds
 * factors to tf32 and reports tensor cores; engine 1 is exact, but rounds without a word in the
 * gradient of filters of 5 x 5, as the real one does; engine 67 is exact.  All need a workspace.
 * Whatever an execution leaves undefined is NaN (undefine).  The text of a plan is the convolution as
 * numbers.
 *
 *   FAKE_CUDNN=old | start | none | fails       another version; cannot start; has no engine; an
 *                              execution fails
 *   FAKE_CUDNN=alone | bias    has engines only for convolutions alone; only for these and a bias
 *   FAKE_ARCH, FAKE_DRIVER     the GPU and its driver: 90, 13000
 *   FAKE_PLANNING=MS           milliseconds in which a plan is made
 *   FAKE_LOG=1                 prints executions to stderr, and "fake: a plan" for each plan that is made
 */
#include "shim.h"
#include "rounded.h"
#include <cstdio>
#include <cstdlib>
#include <cudnn_graph.h>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

/* Weak: tenon-plan, which executes nothing, has no streams. */
void shim_work(struct FakeStream *stream, Task work) __attribute__((weak));

namespace {

enum { WORKSPACE = 4096, UNDEFINED = 0xff /* NaN in each type */ };

struct Value {
    int64_t count;
    std::vector<unsigned char> bytes;
};
struct Descriptor {
    cudnnBackendDescriptorType_t type;
    std::map<int, Value> set;
    std::string text; /* description of a device, or text of a plan */
    int64_t engine;
    const Descriptor *graph; /* for a descriptor that is made from a graph */
};

bool wrong(const char *what)
{
    const char *how = getenv("FAKE_CUDNN");
    return how && !strcmp(how, what);
}

size_t size_of(cudnnBackendAttributeType_t t)
{
    switch (t) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

/* Element i of an attribute; 0: it was not set. */
template <class T> T get(const Descriptor *d, int name, int64_t i = 0)
{
    T v = {};
    const auto at = d->set.find(name);
    if (at != d->set.end() && i < at->second.count)
        memcpy(&v, &at->second.bytes[(size_t)i * sizeof v], sizeof v);
    return v;
}
Descriptor *part(const Descriptor *d, int name)
{
    return get<Descriptor *>(d, name);
}

/* ---- a convolution in numbers */

struct Tensor {
    int64_t id, half, dim[4], stride[4]; /* half: 1: bf16, 2: f16 */
};
struct Convolution {
    int64_t kind, engine; /* 0: y, 1: dx, 2: dw */
    int64_t relu;            /* for dx: apply the gradient of a relu whose value is b */
    Tensor x, w, y, b, r, u, v; /* b.id, r.id 0: none; r: added tensor; u, v: outputs of sums */
    int64_t pad[2], stride[2], dilation[2];
};

Tensor tensor(const Descriptor *d)
{
    const cudnnDataType_t type = get<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE);
    Tensor t = {get<int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID), type == CUDNN_DATA_BFLOAT16 ? 1 : type == CUDNN_DATA_HALF ? 2 : 0, {}, {}};
    for (int i = 0; i < 4; i++)
        t.dim[i] = get<int64_t>(d, CUDNN_ATTR_TENSOR_DIMENSIONS, i), t.stride[i] = get<int64_t>(d, CUDNN_ATTR_TENSOR_STRIDES, i);
    return t;
}

Convolution convolution(const Descriptor *op, int64_t engine)
{
    static const int names[3][4] = {
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC}};
    const int kind = op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 0
                     : op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 1
                                                                                                : 2;
    const int *n = names[kind];
    const Descriptor *window = part(op, n[3]);
    Convolution c = {kind, engine, 0, tensor(part(op, n[0])), tensor(part(op, n[1])), tensor(part(op, n[2])), {}, {}, {}, {}, {}, {}, {}};
    for (int i = 0; i < 2; i++) {
        c.pad[i] = get<int64_t>(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
        c.stride[i] = get<int64_t>(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
        c.dilation[i] = get<int64_t>(window, CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
    }
    return c;
}

/* Whether y = alpha conv(x, w) + beta y is a plain convolution: alpha 1, and beta 0, so that the old y is not read (cuDNN's backend API,
 * CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA). */
bool scales_well(const Descriptor *op, int64_t kind)
{
    static const int names[3][2] = {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
                                    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
                                    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
    return get<float>(op, names[kind][0]) == 1 && op->set.count(names[kind][1]) && get<float>(op, names[kind][1]) == 0;
}

int64_t operations(const Descriptor *graph)
{
    return graph->set.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).count;
}

/* dx of a relu whose value is b; t: its gradient, virtual. */
bool read_relu_d(const Descriptor *o, const Descriptor *t, Convolution *c)
{
    const Descriptor *how = part(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    if (!how || get<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE) != CUDNN_POINTWISE_RELU_BWD || part(o, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC) != t ||
        !get<bool>(t, CUDNN_ATTR_TENSOR_IS_VIRTUAL))
        return false;
    c->b = tensor(part(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC)), c->x = tensor(part(o, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC)), c->relu = 1;
    return memcmp(c->b.stride, c->x.stride, sizeof c->b.stride) == 0;
}

/* The sum of dx over all dimensions but the channels. */
bool read_sum_of_dx(const Descriptor *o, const Descriptor *dx, Convolution *c)
{
    const Descriptor *how = part(o, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    if (!how || get<cudnnReduceTensorOp_t>(how, CUDNN_ATTR_REDUCTION_OPERATOR) != CUDNN_REDUCE_TENSOR_ADD || part(o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC) != dx)
        return false;
    c->u = tensor(part(o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
    return !c->u.half && c->u.dim[0] == 1 && c->u.dim[1] == c->x.dim[1];
}

/* Sums of y, which is not virtual, in f32. */
bool read_sums(const Descriptor *o, const Descriptor *y, Convolution *c)
{
    if (part(o, CUDNN_ATTR_OPERATION_GENSTATS_XDESC) != y || get<bool>(y, CUDNN_ATTR_TENSOR_IS_VIRTUAL))
        return false;
    c->u = tensor(part(o, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC)), c->v = tensor(part(o, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC));
    return !c->u.half && !c->v.half && c->u.dim[1] == c->y.dim[1];
}

/* A convolution, and after a forward one at most an add of a number a channel and a relu, each of the virtual tensor before it, or sums; after dx a relu
 * undone.  False: another graph. */
bool read_graph(const Descriptor *graph, int64_t engine, Convolution *c)
{
    const auto op = [&](int64_t i) { return get<Descriptor *>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i); };
    const Descriptor *at = part(op(0), CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
    *c = convolution(op(0), engine);
    if (!scales_well(op(0), c->kind))
        return false;
    if (c->kind == 1 && operations(graph) > 1)
        return read_relu_d(op(1), part(op(0), CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX), c) &&
               (operations(graph) == 2 || read_sum_of_dx(op(2), part(op(1), CUDNN_ATTR_OPERATION_POINTWISE_DXDESC), c));
    if (operations(graph) == 2 && op(1)->type == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR)
        return read_sums(op(1), at, c);
    for (int64_t i = 1; i < operations(graph); i++) {
        const Descriptor *o = op(i), *how = part(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), *b = part(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
        const auto mode = how ? get<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE) : CUDNN_POINTWISE_RECIPROCAL;
        if (c->kind != 0 || c->relu || part(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != at || !get<bool>(at, CUDNN_ATTR_TENSOR_IS_VIRTUAL))
            return false;
        if (mode == CUDNN_POINTWISE_ADD && b && !c->b.id && !c->r.id && get<int64_t>(b, CUDNN_ATTR_TENSOR_DIMENSIONS, 0) == 1)
            c->b = tensor(b);
        else if (mode == CUDNN_POINTWISE_ADD && b && !c->r.id && get<int64_t>(b, CUDNN_ATTR_TENSOR_DIMENSIONS, 2) == c->y.dim[2])
            c->r = tensor(b);
        else if (mode == CUDNN_POINTWISE_RELU_FWD)
            c->relu = 1;
        else
            return false;
        at = part(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
        c->y = tensor(at);
    }
    return c->kind != 0 || !get<bool>(at, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

bool has_engines(const Descriptor *graph)
{
    Convolution c;
    const bool known = read_graph(graph, 0, &c);
    return known && !wrong("none") && !(wrong("alone") && operations(graph) > 1) && !(wrong("bias") && c.relu);
}

std::string text_of(const Convolution &c)
{
    std::string s = "{\"fake\":[";
    const int64_t *v = (const int64_t *)&c;
    for (size_t i = 0; i < sizeof c / sizeof *v; i++)
        s += (i ? "," : "") + std::to_string(v[i]);
    return s + "]}";
}

bool read_text(const std::string &s, Convolution *c)
{
    int64_t *v = (int64_t *)c;
    const char *at = strchr(s.c_str(), '[');
    for (size_t i = 0; i < sizeof *c / sizeof *v; i++) {
        char *end;
        if (!at)
            return false;
        v[i] = strtoll(at + 1, &end, 10);
        at = *end == ',' || *end == ']' ? end : NULL;
    }
    return at && *at == ']';
}

/* The numbers of a tensor, rounded as factors. */
std::vector<float> factors(const Tensor &t, const void *from, bool in_tf32)
{
    std::vector<float> v((size_t)(t.dim[0] * t.stride[0]));
    for (size_t i = 0; i < v.size(); i++) {
        const float x = t.half == 1 ? bf16_at(from, (int64_t)i) : t.half ? f16_at(from, (int64_t)i) : ((const float *)from)[i];
        v[i] = in_tf32 ? tf32(x) : x;
    }
    return v;
}

/* Number i of y or dx, after the operations that follow the convolution; intermediate values are f32, like virtual tensors. */
float number(const Tensor &t, const void *from, int64_t at)
{
    return !t.id ? 0 : t.half == 1 ? bf16_at(from, at) : t.half ? f16_at(from, at) : ((const float *)from)[at];
}
float finished(const Convolution &c, float sum, int64_t i, const void *b, const void *r)
{
    if (c.kind == 1)
        return c.relu && !(number(c.b, b, i) > 0) ? 0 : sum;
    sum += number(c.b, b, i / c.y.stride[1] % c.y.dim[1]);
    sum += number(c.r, r, i);
    return c.relu && sum < 0 ? 0 : sum;
}

/* Sums of a channel's numbers before rounding, and of their squares; v NULL: no squares. */
void put_sums(const Tensor &t, const std::vector<double> &y, float *u, float *v)
{
    std::vector<double> sum((size_t)t.dim[1], 0.0), squares = sum;
    for (size_t i = 0; i < y.size(); i++) {
        const size_t channel = i / (size_t)t.stride[1] % (size_t)t.dim[1];
        sum[channel] += y[i], squares[channel] += y[i] * y[i];
    }
    for (size_t k = 0; k < sum.size(); k++) {
        u[k] = (float)sum[k];
        if (v)
            v[k] = (float)squares[k];
    }
}

bool rounds(const Convolution &c)
{
    return c.engine == 0 || (c.engine == 1 && c.kind == 2 && c.w.dim[2] == 5 && c.w.dim[3] == 5);
}

/* Bytes of a tensor from its first element to its last. */
size_t extent(const Tensor &t)
{
    int64_t last = 0;
    for (int i = 0; i < 4; i++)
        last += (t.dim[i] - 1) * t.stride[i];
    return (size_t)(last + 1) * (t.half ? 2 : 4);
}

/* Outputs are undefined until the graph has written them, and an engine writes them while it reads its inputs: they may not overlap (cuDNN's
 * backend API, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: beta scales the old y, and is 0 here).  Sums: u and v. */
void undefine(const Convolution &c, void *result, void *u, void *v)
{
    memset(result, UNDEFINED, extent(c.kind == 0 ? c.y : c.kind == 1 ? c.x : c.w));
    if (c.u.id)
        memset(u, UNDEFINED, extent(c.u));
    if (c.v.id)
        memset(v, UNDEFINED, extent(c.v));
}

void execute(const Convolution &c, const void *x, const void *w, const void *y, const void *bias, const void *r, void *u, void *v)
{
    const Tensor *to = c.kind == 0 ? &c.y : c.kind == 1 ? &c.x : &c.w;
    void *result = (void *)(c.kind == 0 ? y : c.kind == 1 ? x : w);
    undefine(c, result, u, v);
    const Tensor &ta = c.kind == 1 ? c.w : c.x, &tb = c.kind == 0 ? c.w : c.y;
    const std::vector<float> a = factors(ta, c.kind == 1 ? w : x, rounds(c)), b = factors(tb, c.kind == 0 ? w : y, rounds(c));
    std::vector<double> sum((size_t)(to->dim[0] * to->stride[0]), 0.0);
    const int64_t per_group = c.w.dim[1], groups = c.x.dim[1] / per_group, filters = c.w.dim[0] / groups;

    for (int64_t n = 0; n < c.y.dim[0]; n++)
    for (int64_t o = 0; o < c.y.dim[1]; o++)
    for (int64_t p = 0; p < c.y.dim[2]; p++)
    for (int64_t q = 0; q < c.y.dim[3]; q++)
    for (int64_t i = 0; i < per_group; i++)
    for (int64_t r = 0; r < c.w.dim[2]; r++)
    for (int64_t s = 0; s < c.w.dim[3]; s++) {
        const int64_t h = p * c.stride[0] - c.pad[0] + r * c.dilation[0], v = q * c.stride[1] - c.pad[1] + s * c.dilation[1];
        if (h < 0 || h >= c.x.dim[2] || v < 0 || v >= c.x.dim[3])
            continue;
        const int64_t channel = o / filters * per_group + i;
        const int64_t at_x = n * c.x.stride[0] + channel * c.x.stride[1] + h * c.x.stride[2] + v * c.x.stride[3];
        const int64_t at_w = o * c.w.stride[0] + i * c.w.stride[1] + r * c.w.stride[2] + s * c.w.stride[3];
        const int64_t at_y = n * c.y.stride[0] + o * c.y.stride[1] + p * c.y.stride[2] + q * c.y.stride[3];
        sum[(size_t)(c.kind == 0 ? at_y : c.kind == 1 ? at_x : at_w)] += (double)a[(size_t)(c.kind == 1 ? at_w : at_x)] * b[(size_t)(c.kind == 0 ? at_w : at_y)];
    }
    for (size_t i = 0; i < sum.size(); i++) {
        const float z = c.kind < 2 ? finished(c, (float)sum[i], (int64_t)i, bias, r) : (float)sum[i];
        if (to->half == 1)
            bf16_put(result, (int64_t)i, z);
        else if (to->half)
            f16_put(result, (int64_t)i, z);
        else
            ((float *)result)[i] = z;
        sum[i] = c.kind == 1 ? (double)z : sum[i];
    }
    if (c.u.id)
        put_sums(*to, sum, (float *)u, (float *)v);
}

/* ---- queries of descriptors */

std::string device_text()
{
    const char *arch = getenv("FAKE_ARCH"), *driver = getenv("FAKE_DRIVER");
    return std::string("{\"deviceVer\":") + (arch ? arch : "90") + "0,\"driverVer\":" + (driver ? driver : "13000") + ",\"multiProcessorCount\":132}";
}

cudnnStatus_t give_text(const std::string &s, int64_t room, int64_t *n, void *to)
{
    *n = (int64_t)s.size();
    if (room > 0)
        memcpy(to, s.data(), s.size() < (size_t)room ? s.size() : (size_t)room);
    return CUDNN_STATUS_SUCCESS;
}

template <class T> cudnnStatus_t give(T v, int64_t *n, void *to)
{
    if (n)
        *n = 1;
    memcpy(to, &v, sizeof v);
    return CUDNN_STATUS_SUCCESS;
}

/* The tensor-core engine first, as the real heuristics do. */
cudnnStatus_t give_engines(const Descriptor *heuristics, int64_t room, int64_t *n, void *to)
{
    Descriptor *const *config = (Descriptor *const *)to;
    const Descriptor *graph = part(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    static const int64_t engines[] = {0, 1, 67};
    *n = has_engines(graph) ? 3 : 0;
    for (int64_t i = 0; i < room && i < *n; i++)
        config[i]->engine = engines[i], config[i]->graph = graph;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_plan(Descriptor *d)
{
    Convolution c;
    const Descriptor *config = part(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (!part(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP))
        return CUDNN_STATUS_BAD_PARAM;
    if (config && read_graph(config->graph, config->engine, &c)) {
        d->text = text_of(c);
        if (getenv("FAKE_PLANNING"))
            usleep(1000 * (unsigned)atoi(getenv("FAKE_PLANNING")));
        if (getenv("FAKE_LOG"))
            fprintf(stderr, "fake: a plan\n");
    }
    return read_text(d->text, &c) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

struct Handle {
    cudaStream_t stream;
};

} // namespace

extern "C" {

size_t cudnnGetVersion(void)
{
    return wrong("old") ? 90500 : 91900;
}

const char *cudnnGetErrorString(cudnnStatus_t s)
{
    return s == CUDNN_STATUS_NOT_INITIALIZED ? "CUDNN_STATUS_NOT_INITIALIZED" : "an error of the fake cuDNN";
}

void cudnnGetLastErrorString(char *message, size_t room)
{
    snprintf(message, room, "%s", "");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = (cudnnHandle_t) new Handle{};
    return wrong("start") ? CUDNN_STATUS_NOT_INITIALIZED : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    delete (Handle *)handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    ((Handle *)handle)->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *d)
{
    *d = (cudnnBackendDescriptor_t) new Descriptor{type, {}, "", 0, NULL};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    delete (Descriptor *)d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t it, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
                                       const void *v)
{
    Descriptor *d = (Descriptor *)it;
    const unsigned char *bytes = (const unsigned char *)v;
    if (name == CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION || name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)
        d->text.assign((const char *)v, (size_t)n);
    else
        d->set[name] = Value{n, std::vector<unsigned char>(bytes, bytes + (size_t)n * size_of(type))};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t it)
{
    Descriptor *d = (Descriptor *)it;
    if (d->type == CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR && d->text.empty())
        d->text = device_text();
    return d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ? finalize_plan(d) : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t it, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t, int64_t room,
                                       int64_t *n, void *to)
{
    const Descriptor *d = (const Descriptor *)it;
    switch (name) {
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION:
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
        return give_text(d->text, room, n, to);
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        return give_engines(d, room, n, to);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        (*(Descriptor **)to)->engine = d->engine;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        return give(d->engine, n, to);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        give(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, n, to);
        *n = d->engine == 0;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        *n = 0;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        return give((int64_t)WORKSPACE, n, to);
    default:
        return CUDNN_STATUS_BAD_PARAM;
    }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t of, cudnnBackendDescriptor_t pack)
{
    const Descriptor *given = (const Descriptor *)pack;
    void *workspace = get<void *>(given, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    std::map<int64_t, const void *> data;
    Convolution c;
    for (int64_t i = 0; i < given->set.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count; i++)
        data[get<int64_t>(given, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i)] = get<const void *>(given, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
    if (wrong("fails"))
        return CUDNN_STATUS_EXECUTION_FAILED;
    if (!read_text(((const Descriptor *)of)->text, &c) || !((Handle *)handle)->stream || !workspace || (uintptr_t)workspace % 256)
        return CUDNN_STATUS_BAD_PARAM;
    const void *x = data[c.x.id], *w = data[c.w.id], *y = data[c.y.id], *b = data[c.b.id], *r = data[c.r.id], *u = data[c.u.id], *v = data[c.v.id];
    if (!x || !w || !y || (c.b.id && !b) || (c.r.id && !r) || (c.u.id && !u) || (c.v.id && !v) ||
        ((uintptr_t)x | (uintptr_t)w | (uintptr_t)y | (uintptr_t)b | (uintptr_t)r | (uintptr_t)u | (uintptr_t)v) % 16)
        return CUDNN_STATUS_BAD_PARAM;
    shim_work(((Handle *)handle)->stream, [=] {
        if (getenv("FAKE_LOG"))
            fprintf(stderr, "fake: a convolution by engine %lld%s%s%s%s%s\n", (long long)c.engine, c.x.half == 1 ? " in bf16" : c.x.half ? " in f16" : "", c.kind == 0 && c.b.id ? " + bias" : "", c.r.id ? " + add" : "",
                    !c.relu ? "" : c.kind ? " + relu_d" : " + relu", c.v.id ? " + sums" : c.u.id ? " + sum" : "");
        memset(workspace, UNDEFINED, WORKSPACE); /* an engine writes it at any time (cudnnBackendExecute(), CUDNN_ATTR_VARIANT_PACK_WORKSPACE) */
        execute(c, x, w, y, b, r, (void *)u, (void *)v);
        memset(workspace, UNDEFINED, WORKSPACE);
    });
    return CUDNN_STATUS_SUCCESS;
}

} // extern "C"
