/* window.c -- positions of a window that slides over an image. */
#include "ops/window.h"
#include "base/round.h"
#include "ops/check.h"
#include <string.h>

static void read_pair(const Node *n, const char *key, int64_t fallback, int64_t out[2])
{
    const Attr *a = node_attr(n, key);
    for (int i = 0; i < 2; i++)
        out[i] = a && a->kind == ATTR_INTS && a->nlist == 2 ? a->list[i]
                 : a && a->kind == ATTR_INT                 ? a->i
                                                            : fallback;
}

/* Sets the padding of "same": that for ceil(in / stride) outputs, with the smaller half before. */
static void pad_same(Window *v, int i)
{
    const int64_t out = ceil_div(v->in[i], v->stride[i]);
    const int64_t all = (out - 1) * v->stride[i] + window_span(v, i) - v->in[i];
    v->before[i] = all > 0 ? all / 2 : 0;
    v->after[i] = all > 0 ? all - all / 2 : 0;
}

Window window_of(const Node *n, int64_t h, int64_t w)
{
    Window v = {.in = {h, w}};
    const Attr *pad = node_attr(n, "pad");
    read_pair(n, "kernel", 1, v.kernel);
    read_pair(n, "stride", 0, v.stride);
    read_pair(n, "dilation", 1, v.dilation);
    read_pair(n, "pad", 0, v.before);
    for (int i = 0; i < 2; i++) {
        v.stride[i] = v.stride[i] ? v.stride[i] : v.kernel[i];
        v.after[i] = v.before[i];
        if (pad && pad->kind == ATTR_STRING && !strcmp(pad->s, "same"))
            pad_same(&v, i);
        v.out[i] = (v.in[i] + v.before[i] + v.after[i] - window_span(&v, i)) / v.stride[i] + 1;
    }
    return v;
}

static bool check_pad(const Node *n, Diag *d)
{
    static const char *const word[] = {"same", "valid"};
    const Attr *a = node_attr(n, "pad");
    if (!a || a->kind != ATTR_STRING || !strcmp(a->s, "same") || !strcmp(a->s, "valid"))
        return check_int(n, "pad", 0, d);
    diag_error(d, node_span(n, "pad"), "%s pad is \"%s\"", n->op->name, a->s);
    diag_suggest(d, a->s, word, 2);
    diag_help(d, "use a number, %s\"same\" or \"valid\"",
              n->in[0]->shape.rank == 2 ? "" : "a pair [rows, columns], ");
    return false;
}

static void report_too_large(const Node *n, const Window *v, Diag *d)
{
    const int64_t h = v->in[0] + v->before[0] + v->after[0],
                  w = v->in[1] + v->before[1] + v->after[1];
    const bool dilated = v->dilation[0] > 1 || v->dilation[1] > 1;
    const bool padded = v->before[0] || v->before[1] || v->after[0] || v->after[1];
    Arena *a = diag_arena(d);
    const char *spans = dilated
                            ? arena_printf(a, " spans %lldx%lld and", (long long)window_span(v, 0),
                                           (long long)window_span(v, 1))
                            : "";
    diag_error(d, node_span(n, "kernel"),
               "%s kernel %lldx%lld%s is larger than its %sinput %lldx%lld", n->op->name,
               (long long)v->kernel[0], (long long)v->kernel[1], spans, padded ? "padded " : "",
               (long long)h, (long long)w);
    check_note(n, 0, d);
    const int64_t step = v->dilation[0] > v->dilation[1] ? v->dilation[0] : v->dilation[1];
    const int64_t most = ((h < w ? h : w) - 1) / step + 1;
    diag_help(d, "use kernel <= %lld, %s", (long long)most,
              dilated ? "a smaller dilation, or a larger pad" : "or a larger pad");
    diag_replace_int(d, v->kernel[0], most);
}

bool window_check(const Node *n, int64_t h, int64_t w, Diag *d)
{
    if (!check_int(n, "kernel", 1, d) || !check_int(n, "stride", 1, d) ||
        !check_int(n, "dilation", 1, d) || !check_pad(n, d))
        return false;
    const Window v = window_of(n, h, w);
    for (int i = 0; i < 2; i++)
        if (window_span(&v, i) > v.in[i] + v.before[i] + v.after[i]) {
            report_too_large(n, &v, d);
            return false;
        }
    return true;
}

void window_resolve(Node *n, const Window *v, const int64_t *chw, Diag *d)
{
    Arena *a = diag_arena(d);
    node_set_attr(a, n, attr_ints(a, "pad_before", v->before, 2));
    node_set_attr(a, n, attr_ints(a, "x_shape", chw, 3));
}

void window_sizes(Sizes *s, const char *a, const char *b, const int64_t v[2])
{
    if (v[0] || v[1])
        sizes_int(s, a, v[0]), sizes_int(s, b, v[1]);
}
