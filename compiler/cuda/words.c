/* words.c -- writes convolutions and their gradients as texts that tenon-plan reads.
 *
 * Dims are (N, C, H, W).  In exact f32, channels are outermost, because the engines for f32 need
 * this order; else they are innermost.  Numbers for each channel (bias, statistics) are f32, except
 * for a bias that the program stores in two bytes.  Samples and their filters have as many channels
 * as pass lanes has set.
 */
#include "cuda/lower.h"
#include "ir/gpu.h"
#include "ops/window.h"
#include <string.h>

typedef struct Words {
    Text t;
    const Node *n;
    GpuType type;
    int64_t batch;
    ImageOrder order;
} Words;

static const char *row(const Words *w)
{
    return w->order == ORDER_ROW ? " row" : "";
}

static void image(Words *w, const char *name, const Node *n, const int64_t *chw)
{
    const int64_t lanes = node_lanes(n);
    text_printf(&w->t, "%s %s %lld %lld %lld %lld%s; ", name, gpu_type_name(w->type),
                (long long)w->batch, (long long)(lanes ? lanes : chw[0]), (long long)chw[1],
                (long long)chw[2], row(w));
}

static void result(Words *w, const char *name, const char *type, const char *kind)
{
    const int64_t *d = w->n->shape.dim;
    text_printf(&w->t, "%s %s %lld %lld %lld %lld%s%s; ", name, type, (long long)w->batch,
                (long long)d[0], (long long)d[1], (long long)d[2], row(w), kind);
}

static void filters(Words *w, const char *name)
{
    const Window v = window_of(w->n, 1 << 20, 1 << 20);
    const int64_t *x = node_attr(w->n, "x_shape")->list;
    const int64_t lanes = node_is(w->n, "conv2d_dx") ? 0 : node_lanes(w->n->in[0]);
    text_printf(&w->t, "%s %s %lld %lld %lld %lld%s; ", name, gpu_type_name(w->type),
                (long long)node_int(w->n, "filters"),
                (long long)(lanes ? lanes : x[0] / node_int(w->n, "groups")),
                (long long)v.kernel[0], (long long)v.kernel[1], row(w));
}

static void say_channels(Words *w, const char *name, GpuType type)
{
    text_printf(&w->t, "%s %s 1 %lld 1 1; ", name, gpu_type_name(type),
                (long long)w->n->shape.dim[0]);
}

/* Writes "conv x w y pad 1 1 stride 2 2". */
static void convolve(Words *w, const char *op, const char *operands)
{
    const int64_t *x = node_attr(w->n, "x_shape")->list;
    const Window v = window_of(w->n, x[1], x[2]);
    const struct {
        const char *word;
        const int64_t *v;
        int64_t usual;
    } option[] = {{"pad", v.before, 0},
                  {"post", v.after, -1},
                  {"stride", v.stride, 1},
                  {"dilate", v.dilation, 1}};
    text_printf(&w->t, "%s %s", op, operands);
    for (int i = 0; i < 4; i++) {
        const bool as_before = i == 1 && v.before[0] == v.after[0] && v.before[1] == v.after[1];
        if (!as_before && (option[i].v[0] != option[i].usual || option[i].v[1] != option[i].usual))
            text_printf(&w->t, " %s %lld %lld", option[i].word, (long long)option[i].v[0],
                        (long long)option[i].v[1]);
    }
}

static bool ends_with(const char *op, const char *const *fused, int n)
{
    return n > 0 && !strcmp(fused[n - 1], op);
}

/* Writes y = act(conv(x, w) + b + r), or y = conv(x, w) with the sums that batch_norm needs. */
static void forward(Words *w, const char *const *fused, int nfused)
{
    static const struct {
        const char *op, *verb, *operand, *more;
    } special[] = {{"bias", "add", " b", ""},
                   {"add", "add", " r", ""},
                   {"relu6", "relu", "", " upper 6"}};
    const char *between[] = {"s", "t", "z", "y"}, *type = gpu_type_name(w->type);
    const bool sums = ends_with("batch_moments", fused, nfused);
    const int chain = sums ? 0 : nfused;

    image(w, "x", w->n->in[0], node_attr(w->n, "x_shape")->list);
    filters(w, "w");
    result(w, "y", type, "");
    for (int i = 0; i < nfused; i++)
        if (!strcmp(fused[i], "bias"))
            say_channels(w, "b", gpu_half(w->n->in[2]->half));
        else if (!strcmp(fused[i], "add"))
            result(w, "r", type, "");
    if (sums)
        say_channels(w, "u", GPU_F32), say_channels(w, "v", GPU_F32);
    for (int i = 0; i < chain; i++)
        result(w, between[i], "f32", " virtual");
    between[chain] = "y";
    convolve(w, "conv", arena_printf(w->t.arena, "x w %s", between[0]));
    for (int i = 0; i < chain; i++) {
        const char *verb = fused[i], *operand = "", *more = "";
        for (int k = 0; k < 3; k++)
            if (!strcmp(special[k].op, fused[i]))
                verb = special[k].verb, operand = special[k].operand, more = special[k].more;
        text_printf(&w->t, "; %s %s%s %s%s", verb, between[i], operand, between[i + 1], more);
    }
    if (sums)
        text_add(&w->t, "; genstats y u v");
}

static void backward(Words *w, const char *const *fused, int nfused)
{
    const bool data = node_is(w->n, "conv2d_dx");
    const Node *dy = w->n->in[1];
    image(w, "dy", dy, dy->shape.dim);
    if (!data) {
        image(w, "x", w->n->in[0], node_attr(w->n, "x_shape")->list);
        filters(w, "dw");
        convolve(w, "wgrad", "x dy dw");
        return;
    }
    filters(w, "w");
    result(w, "dx", gpu_type_name(w->type), "");
    const bool sum = ends_with("sum_to", fused, nfused);
    if (nfused)
        result(w, "y", gpu_type_name(w->type), "");
    if (sum)
        say_channels(w, "db", GPU_F32);
    if (nfused)
        result(w, "t", gpu_type_name(w->type), " virtual");
    convolve(w, "dgrad", nfused ? "dy w t" : "dy w dx");
    if (nfused)
        text_printf(&w->t, "; %s t y dx", fused[0]);
    if (sum)
        text_add(&w->t, "; sum dx db");
}

const char *graph_words(Arena *a, int64_t batch, ImageOrder order, const Node *n,
                        const char *const *fused, int nfused)
{
    Words w = {.t = text_new(a),
               .n = n,
               .type = gpu_half(n->in[0]->half),
               .batch = batch,
               .order = order};
    if (node_is(n, "conv2d"))
        forward(&w, fused, nfused);
    else
        backward(&w, fused, nfused);
    return w.t.s;
}
