/* cudnn_graph.c -- a cuDNN operation graph from a line of text. */
#include "cuda/cudnn_ops.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cudnnBackendDescriptor_t Desc;

/* ---- the text */

/* Copies the next word of a statement to the caller's buffer; false: the statement has ended. */
static bool next_word(const char **s, char *to, size_t room)
{
    size_t n = 0;
    while (isspace((unsigned char)**s))
        ++*s;
    for (; **s && **s != ';' && !isspace((unsigned char)**s); ++*s)
        if (n + 1 < room)
            to[n++] = **s;
    to[n] = 0;
    return n > 0;
}

static bool read_integer(const char **s, int64_t *v)
{
    char *end;
    while (**s == ' ')
        ++*s;
    if (!isdigit((unsigned char)**s) && **s != '-')
        return false;
    *v = strtoll(*s, &end, 10);
    *s = end;
    return true;
}

static bool read_integers(CudnnGraph *g, const char **s, int64_t *v, int n, const char *what)
{
    for (int i = 0; i < n; i++)
        if (!read_integer(s, &v[i]))
            cudnn_fail(g, "%s needs %d number%s", what, n, n == 1 ? "" : "s");
    return !*g->why;
}

static bool type_of(const char *name, cudnnDataType_t *t)
{
    static const struct {
        const char *name;
        cudnnDataType_t type;
    } types[] = {{"f32", CUDNN_DATA_FLOAT}, {"bf16", CUDNN_DATA_BFLOAT16},
                 {"f16", CUDNN_DATA_HALF},  {"f64", CUDNN_DATA_DOUBLE},
                 {"i8", CUDNN_DATA_INT8},   {"i32", CUDNN_DATA_INT32},
                 {"i64", CUDNN_DATA_INT64}, {"bool", CUDNN_DATA_BOOLEAN}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0)
            return *t = types[i].type, true;
    return false;
}

enum { RANK = 5 };

/* Strides of dims in their order, or with the second one innermost, or with the last two
 * swapped. */
static void lay_out(const int64_t *dim, int rank, bool last, bool transposed, int64_t *stride)
{
    int order[RANK], n = 0;
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--)
        if (!last || i != 1)
            order[n++] = i;
    if (last) {
        memmove(order + 1, order, (size_t)n * sizeof *order);
        order[0] = 1;
    } else if (transposed && rank > 1) {
        order[0] = rank - 2;
        order[1] = rank - 1;
    }
    for (int i = 0; i < rank; i++) {
        stride[order[i]] = step;
        step *= dim[order[i]];
    }
}

static void read_graph_tensor(CudnnGraph *g, const char *name, const char **s)
{
    int64_t dim[RANK], stride[RANK], v, count = 1, bytes = 0;
    char w[CUDNN_NAME];
    bool isvirtual = false, value = false, row = false, transposed = false, given = false;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int rank = 0;
    if (!next_word(s, w, sizeof w) || !type_of(w, &type))
        cudnn_fail(g, "'%s' is neither an operation nor a type of tensor '%s'", w, name);
    while (rank < RANK && read_integer(s, &v)) {
        if (v < 1 || __builtin_mul_overflow(count, v, &count))
            cudnn_fail(g, "tensor %s has a size of %lld", name, (long long)v);
        dim[rank++] = v;
    }
    while (next_word(s, w, sizeof w)) {
        if (strcmp(w, "strides") == 0)
            given = read_integers(g, s, stride, rank, "strides");
        else if (strcmp(w, "virtual") == 0)
            isvirtual = true;
        else if (strcmp(w, "value") == 0)
            value = true;
        else if (strcmp(w, "row") == 0)
            row = true;
        else if (strcmp(w, "transposed") == 0)
            transposed = true;
        else
            cudnn_fail(g, "tensor %s: '%s' is not a flag", name, w);
        if (*g->why)
            return;
    }
    if (rank == 0 || g->ntensor == CUDNN_TENSORS || strlen(name) >= CUDNN_NAME)
        cudnn_fail(g, "tensor %s: no sizes, a long name, or more than %d tensors", name,
                   CUDNN_TENSORS);
    if (*g->why)
        return;
    if (!given)
        lay_out(dim, rank, rank >= 4 && !row && !transposed, transposed, stride);
    Desc d = cudnn_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    bytes = type == CUDNN_DATA_INT64 || type == CUDNN_DATA_DOUBLE ? 8 : 4;
    cudnn_set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    cudnn_set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dim);
    cudnn_set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, stride);
    cudnn_set_int(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, g->ntensor + 1);
    cudnn_set_int(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, value ? bytes : 16);
    cudnn_set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &isvirtual);
    cudnn_set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &value);
    CudnnTensor *t = &g->tensor[g->ntensor++];
    strcpy(t->name, name);
    t->descriptor = cudnn_finish(g, d);
}

/* The id of a tensor, from 1 on; 0: no tensor has this name. */
static int64_t cudnn_graph_id(const CudnnGraph *g, const char *name)
{
    for (int i = 0; i < g->ntensor; i++)
        if (strcmp(g->tensor[i].name, name) == 0)
            return i + 1;
    return 0;
}

static void read_option(CudnnGraph *g, const char *w, const char **s, CudnnOptions *o, bool *post)
{
    int64_t v = 0;
    if (strcmp(w, "pad") == 0)
        read_integers(g, s, o->pad, 2, w);
    else if (strcmp(w, "post") == 0)
        *post = read_integers(g, s, o->post, 2, w);
    else if (strcmp(w, "stride") == 0)
        read_integers(g, s, o->stride, 2, w);
    else if (strcmp(w, "dilate") == 0)
        read_integers(g, s, o->dilate, 2, w);
    else if (strcmp(w, "window") == 0)
        read_integers(g, s, o->window, 2, w);
    else if (strcmp(w, "axis") == 0)
        read_integers(g, s, &o->axis, 1, w);
    else if (strcmp(w, "upper") == 0 && read_integers(g, s, &v, 1, w))
        o->upper = (double)v;
    else
        cudnn_fail(g, "'%s' is neither a tensor of this graph nor an option", w);
}

static void read_op(CudnnGraph *g, const CudnnOp *row, const char **s)
{
    CudnnOptions o = {.stride = {1, 1}, .dilate = {1, 1}, .window = {1, 1}};
    Desc tensor[16] = {0};
    char w[CUDNN_NAME];
    bool post = false;
    int n = 0;
    while (next_word(s, w, sizeof w)) {
        const int64_t id = cudnn_graph_id(g, w);
        if (id && n < 16 && row->tensor[n])
            tensor[n++] = g->tensor[id - 1].descriptor;
        else
            read_option(g, w, s, &o, &post);
        if (*g->why)
            return;
    }
    if (n < row->least || g->nop == CUDNN_OPS)
        cudnn_fail(g, "%s needs %d tensors, not %d (or there are more than %d operations)",
                   row->word, row->least, n, CUDNN_OPS);
    if (!post)
        memcpy(o.post, o.pad, sizeof o.post);
    Desc config = row->setup ? row->setup(g, row, &o) : NULL, d = cudnn_make(g, row->type);
    if (config)
        cudnn_set_desc(g, d, row->configured, config);
    cudnn_op_rest(g, row, d);
    for (int i = 0; i < n; i++)
        cudnn_set_desc(g, d, row->tensor[i], tensor[i]);
    if (!*g->why)
        g->op[g->nop++] = cudnn_finish(g, d);
}

static void read_statement(CudnnGraph *g, const char **s)
{
    char w[32];
    if (!next_word(s, w, sizeof w))
        return;
    for (const CudnnOp *row = cudnn_ops; row->word; row++)
        if (strcmp(w, row->word) == 0) {
            read_op(g, row, s);
            return;
        }
    read_graph_tensor(g, w, s);
}

/* Puts the text of the statement before the error. */
static void mark_statement(CudnnGraph *g, const char *from)
{
    char why[CUDNN_WHY];
    memcpy(why, g->why, sizeof why);
    snprintf(g->why, sizeof g->why, "%.*s: %.*s", (int)strcspn(from, ";"), from, CUDNN_WHY - 160,
             why);
}

bool cudnn_graph_read(CudnnGraph *g, const CudnnApi *api, const char *text)
{
    *g = (CudnnGraph){.api = api};
    for (const char *s = text; *s && !*g->why; s += *s == ';') {
        const char *from = s + strspn(s, " \t\n");
        read_statement(g, &s);
        if (*g->why)
            mark_statement(g, from);
    }
    if (!*g->why && g->nop == 0)
        cudnn_fail(g, "a graph without an operation");
    g->graph = cudnn_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cudnn_set(g, g->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->nop,
              g->op);
    cudnn_finish(g, g->graph);
    return !*g->why;
}

void cudnn_graph_free(CudnnGraph *g)
{
    while (g->nall > 0)
        g->api->BackendDestroyDescriptor(g->all[--g->nall]);
}
