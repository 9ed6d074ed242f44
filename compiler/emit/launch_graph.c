/* launch_graph.c -- convolutions, their gradients and attention in the words that tenon-plan reads.
 *
 * Dims are (N, C, H, W).  Exact f32 lies as it is counted, for its engines want that order; all else lies channels innermost.  Numbers a
 * channel (bias, statistics) are f32, but a bias that the program has in two bytes.  Samples and their filters have the channels that pass
 * lanes gives them.
 */
#include "emit/launch.h"
#include "ops/window.h"
#include <string.h>

typedef struct Words {
    Text t;
    const Node *n;
    GpuType type;
    int64_t batch;
    LaunchOrder order;
} Words;

/* A part of an image's channels lies among the others, as wide as all. */
static const Node *frame_of(const Words *w, const Node *n)
{
    return w->order == LAUNCH_PARTS && node_is(n, "slice") && n->shape.rank == 3 && node_int(n, "axis") == 0 ? n->in[0] : n;
}

static void image(Words *w, const char *name, const Node *n, const int64_t *chw)
{
    const int64_t all = frame_of(w, n)->shape.dim[0], pixels = chw[1] * chw[2], lanes = node_lanes(n);
    text_printf(&w->t, "%s %s %lld %lld %lld %lld", name, gpu_type_name(w->type),
                (long long)w->batch, (long long)(lanes ? lanes : chw[0]), (long long)chw[1], (long long)chw[2]);
    if (w->order == LAUNCH_ROW)
        text_add(&w->t, " row");
    else if (frame_of(w, n) != n)
        text_printf(&w->t, " strides %lld 1 %lld %lld", (long long)(all * pixels),
                    (long long)(all * chw[2]), (long long)all);
    text_add(&w->t, "; ");
}

static void result(Words *w, const char *name, const char *type, const char *kind)
{
    const int64_t *d = w->n->shape.dim;
    text_printf(&w->t, "%s %s %lld %lld %lld %lld%s%s; ", name, type, (long long)w->batch,
                (long long)d[0], (long long)d[1], (long long)d[2], w->order == LAUNCH_ROW ? " row" : "",
                kind);
}

static void filters(Words *w, const char *name)
{
    const Window v = window_of(w->n, 1 << 20, 1 << 20);
    const int64_t *x = node_attr(w->n, "x_shape")->list;
    const int64_t lanes = node_is(w->n, "conv2d_dx") ? 0 : node_lanes(w->n->in[0]);
    text_printf(&w->t, "%s %s %lld %lld %lld %lld%s; ", name, gpu_type_name(w->type),
                (long long)node_int(w->n, "filters"), (long long)(lanes ? lanes : x[0] / node_int(w->n, "groups")),
                (long long)v.kernel[0], (long long)v.kernel[1], w->order == LAUNCH_ROW ? " row" : "");
}

static void say_channels(Words *w, const char *name, GpuType type)
{
    text_printf(&w->t, "%s %s 1 %lld 1 1; ", name, gpu_type_name(type),
                (long long)w->n->shape.dim[0]);
}

/* "conv x w y pad 1 1 stride 2 2" */
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

static bool is_fused(const char *op, const char *const *fused, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(fused[i], op) == 0)
            return true;
    return false;
}

/* y = act(conv(x, w) + b + r), or y = conv(x, w) with the sums that batch_norm wants. */
static void forward(Words *w, const char *const *fused, int nfused)
{
    static const char *const between[] = {"s", "t", "z"};
    const char *at = "y", *type = gpu_type_name(w->type);
    const bool sums = is_fused("batch_moments", fused, nfused);
    const int chain = sums ? 0 : nfused;
    image(w, "x", w->n->in[0], node_attr(w->n, "x_shape")->list);
    filters(w, "w");
    result(w, "y", type, "");
    if (is_fused("bias", fused, nfused))
        say_channels(w, "b", w->n->nin > 2 ? gpu_half(w->n->in[2]->half) : GPU_F32);
    if (is_fused("add", fused, nfused))
        result(w, "r", type, "");
    if (sums)
        say_channels(w, "u", GPU_F32), say_channels(w, "v", GPU_F32);
    for (int i = 0; i < chain; i++)
        result(w, between[i], "f32", " virtual");
    at = chain ? between[0] : "y";
    convolve(w, "conv", arena_printf(w->t.arena, "x w %s", at));
    for (int i = 0; i < chain; i++) {
        const char *to = i + 1 < chain ? between[i + 1] : "y";
        const bool bias = !strcmp(fused[i], "bias"), add = !strcmp(fused[i], "add"),
                   six = !strcmp(fused[i], "relu6");
        text_printf(&w->t,
                    bias  ? "; add %s b %s"
                    : add ? "; add %s r %s"
                    : six ? "; relu %s %s upper 6"
                          : "; %s %s %s",
                    bias || add || six ? at : fused[i], bias || add || six ? to : at, to);
        at = to;
    }
    if (sums)
        text_add(&w->t, "; genstats y u v");
}

static void launch_backward(Words *w, const char *const *fused, int nfused)
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
    const bool sum = is_fused("sum_to", fused, nfused);
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

/* softmax(scale q k^T) v by heads; q, k and v are the thirds of one value (N, T, 3 C).  l: log of the sums, for the way back. */
static void attend(Words *w)
{
    const Node *n = w->n;
    const long long b = w->batch, h = node_int(n, "heads"), t = n->shape.dim[0],
                    c = n->shape.dim[1], d = c / h;
    const char *type = gpu_type_name(w->type);
    const bool causal = strcmp(node_string(n, "mask"), "causal") == 0;
    Text *x = &w->t;
    text_printf(x, "q %s %lld %lld %lld %lld strides %lld %lld %lld 1; ", type, b, h, t, d,
                3 * c * t, d, 3 * c);
    text_printf(x, "k %s %lld %lld %lld %lld strides %lld %lld 1 %lld; ", type, b, h, d, t,
                3 * c * t, d, 3 * c);
    text_printf(x, "v %s %lld %lld %lld %lld strides %lld %lld %lld 1; ", type, b, h, t, d,
                3 * c * t, d, 3 * c);
    text_printf(x, "o %s %lld %lld %lld %lld strides %lld %lld %lld 1; ", type, b, h, t, d, c * t,
                d, c);
    text_printf(x, "l f32 %lld %lld %lld 1 row; c f32 1 1 1 1 value; ", b, h, t);
    const char *const scores[] = {"s", "r", "z", "e"}, *const rows[] = {"m", "g", "a"};
    for (int i = 0; i < 4; i++)
        text_printf(x, "%s f32 %lld %lld %lld %lld row virtual; ", scores[i], b, h, t, t);
    for (int i = 0; i < 3; i++)
        text_printf(x, "%s f32 %lld %lld %lld 1 row virtual; ", rows[i], b, h, t);
    text_printf(x, "p %s %lld %lld %lld %lld row virtual; ", type, b, h, t, t);
    if (causal) {
        text_printf(x,
                    "i i32 %lld %lld %lld %lld row virtual; j i32 %lld %lld %lld %lld row "
                    "virtual; ",
                    b, h, t, t, b, h, t, t);
        text_printf(x,
                    "f bool %lld %lld %lld %lld row virtual; n f32 1 1 1 1 value; k2 f32 %lld %lld "
                    "%lld %lld row virtual; ",
                    b, h, t, t, b, h, t, t);
        text_add(x, "matmul q k s; mul s c r; index r i axis 2; index r j axis 3; ge i j f; select "
                    "f r n k2; largest k2 m; sub k2 m z; ");
    } else
        text_add(x, "matmul q k s; mul s c r; largest r m; sub r m z; ");
    text_add(x, "exp z e; sum e g; log g a; add m a l; div e g p; matmul p v o");
}

const char *launch_graph(Arena *a, int64_t batch, GpuType t, LaunchOrder order, const Node *n,
                         const char *const *fused, int nfused)
{
    Words w = {.t = text_new(a), .n = n, .type = t, .batch = batch, .order = order};
    if (node_is(n, "attention"))
        attend(&w);
    else if (node_is(n, "conv2d"))
        forward(&w, fused, nfused);
    else
        launch_backward(&w, fused, nfused);
    return w.t.s;
}

static const char between_ways[] = " | ";

const char *launch_ways(Arena *a, int64_t batch, GpuType t, LaunchOrder order, const Node *n,
                        const char *const *fused, int nfused)
{
    Text ways = text_new(a);
    for (int f = nfused; f >= 0; f--)
        text_printf(&ways, "%s%s", f < nfused ? between_ways : "",
                    launch_graph(a, batch, t, order, n, fused, f));
    return ways.s;
}

const char *launch_way(Arena *a, const char *ways, int way)
{
    const char *end;
    while (way-- > 0)
        ways = strstr(ways, between_ways) + strlen(between_ways);
    return (end = strstr(ways, between_ways)) ? arena_strndup(a, ways, (size_t)(end - ways)) : ways;
}
