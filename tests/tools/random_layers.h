/* random_layers.h -- rules for layers, sums and products. */
#ifndef RANDOM_LAYERS_H
#define RANDOM_LAYERS_H
#include "random_value.h"
#include <string.h>

/* ---- what the model has, for its operations */

enum { SHARED = 3 };
static struct {
    int in, out;
} shared[SHARED];          /* named layers fc0, fc1, fc2; in is 0 before the first call */
static const char *tokens; /* the input, where it is a text */
static int steps;          /* of the input */

/* ---- layers */

static bool dense(Pool *p, Value *y)
{
    const Value *x = any(p);
    if (x->rank < 1 || x->rank > 2 - p->scan)
        return false;
    *y = *x;
    y->dim[y->rank - 1] = from(1, 9);
    say(y, chance(80) ? "dense(%s, %d)" : "dense(%s, %d, bias = false)", x->text,
        y->dim[y->rank - 1]);
    return true;
}

/* A named layer: called again where it fits, or transposed. */
static bool again(Pool *p, Value *y)
{
    for (int i = 0; i < 12 && !p->loss; i++) {
        const Value *x = any(p);
        const int k = below(SHARED), last = x->rank ? x->dim[x->rank - 1] : 0;
        *y = *x;
        if ((x->rank == 1 || (x->rank == 2 && !p->scan)) &&
            (last == shared[k].in || !shared[k].in)) {
            shared[k].in = last;
            y->dim[y->rank - 1] = shared[k].out;
            say(y, "fc%d(%s)", k, x->text);
            return true;
        }
        if (x->rank == 2 && last == shared[k].out && shared[k].in && !p->scan && chance(50)) {
            y->dim[1] = shared[k].in;
            say(y, "matmul(%s, fc%d.weight)", x->text, k);
            return true;
        }
    }
    return false;
}

static bool norm(Pool *p, Value *y)
{
    static const char *const form[] = {
        "layer_norm(%s, epsilon = 0.1)",
        "rms_norm(%s, epsilon = 0.1)",
        "layer_norm(%s, epsilon = 0.1, scale = false)",
        "layer_norm(%s, epsilon = 0.1, shift = false)",
        "rms_norm(%s, epsilon = 0.1, scale = false)",
        "bias(%s)",
        "prelu(%s)",
        "prelu(%s, slope = 0.1, shared = true)",
    };
    const Value *x = any(p);
    *y = *x;
    if (x->rank < 1 || (p->scan && x->rank > 1))
        return false;
    if (chance(25) && !p->scan && x->rank <= 3 && x->dim[0] * (x->rank > 1 ? x->dim[1] : 1) > 4) {
        const int c = x->dim[x->rank == 3 ? 0 : x->rank - 1], groups = c % 2 == 0 ? c / 2 : 1;
        say(y, "group_norm(%s, %d, epsilon = 0.1%s)", x->text, groups,
            chance(30) ? ", scale = false" : "");
        return true;
    }
    say(y, ONE_OF(form), x->text);
    return true;
}

static bool batched_norm(Pool *p, Value *y)
{
    const Value *x = any(p);
    *y = *x;
    if (p->scan || (x->rank != 1 && x->rank != 3))
        return false;
    say(y, "batch_norm(%s, epsilon = 0.1%s%s)", x->text, chance(50) ? ", sync = true" : "",
        chance(20) ? ", scale = false" : "");
    return true;
}

static bool softmax(Pool *p, Value *y)
{
    const Value *x = any(p);
    *y = *x;
    if (x->rank < 1)
        return false;
    if (x->rank > 1 && x->dim[x->rank - 1] == x->dim[x->rank - 2] && chance(60))
        say(y, "softmax(%s, mask = \"causal\")", x->text);
    else
        say(y, "softmax(%s, axis = %d)", x->text, from(-1, x->rank - 1));
    return true;
}

/* A convolution, or pooling. */
static bool window(Pool *p, Value *y, bool pool)
{
    const Value *x = any(p);
    if (x->rank != 3 || (p->scan && !pool))
        return false;
    const int k[2] = {from(1, x->dim[1] < 4 ? x->dim[1] : 4),
                      from(1, x->dim[2] < 4 ? x->dim[2] : 4)};
    const int stride = chance(75) ? 1 : 2, groups = !pool && chance(30) ? x->dim[0] : 1;
    const int pad = k[0] > 1 && k[1] > 1 && chance(40) ? 1 : 0;
    const int filters = groups * from(1, groups > 1 ? 2 : 6);
    *y = *x;
    for (int i = 0; i < 2; i++)
        y->dim[1 + i] = (x->dim[1 + i] + 2 * pad - k[i]) / stride + 1;
    if (pool) {
        const bool max = chance(40);
        say(y, "%s(%s, %s, stride = %d, pad = %d%s)", max ? "max_pool" : "avg_pool", x->text,
            list(k, 2), stride, pad, !max && chance(30) ? ", count_include_pad = true" : "");
        return true;
    }
    y->dim[0] = filters;
    if (chance(15)) {
        for (int i = 0; i < 2; i++)
            y->dim[1 + i] = (x->dim[1 + i] + stride - 1) / stride;
        say(y, "conv2d(%s, %d, kernel = %s, stride = %d, pad = \"same\", groups = %d)", x->text,
            filters, list(k, 2), stride, groups);
    } else if (chance(15) && k[0] * 2 - 1 <= x->dim[1] && k[1] * 2 - 1 <= x->dim[2]) {
        for (int i = 0; i < 2; i++)
            y->dim[1 + i] = x->dim[1 + i] - 2 * (k[i] - 1);
        say(y, "conv2d(%s, %d, kernel = %s, dilation = 2, groups = %d)", x->text, filters,
            list(k, 2), groups);
    } else {
        say(y, "conv2d(%s, %d, kernel = %s, stride = %d, pad = %d, groups = %d%s)", x->text,
            filters, list(k, 2), stride, pad, groups, chance(20) ? ", bias = false" : "");
    }
    return true;
}

static bool convolution(Pool *p, Value *y)
{
    return window(p, y, false);
}

static bool pooling(Pool *p, Value *y)
{
    return window(p, y, true);
}

/* Operations for images only. */
static bool image(Pool *p, Value *y)
{
    const Value *x = any(p);
    if (x->rank != 3)
        return false;
    *y = *x;
    switch (below(5)) {
    case 0:
        y->rank = 1;
        say(y, "global_%s_pool(%s)", chance(70) ? "avg" : "max", x->text);
        return true;
    case 3:
        y->dim[1] = from(1, 2 * x->dim[1]), y->dim[2] = from(1, 2 * x->dim[2]);
        say(y, "resize(%s, %s, mode = \"%s\")", x->text, list(y->dim + 1, 2),
            chance(60) ? "bilinear" : "nearest");
        return true;
    case 1:
        y->dim[1] = from(1, x->dim[1]), y->dim[2] = from(1, x->dim[2]);
        say(y, chance(50) ? "crop(%s, %s)" : "crop(%s, %s, at = 0)", x->text, list(y->dim + 1, 2));
        return true;
    case 2: {
        const int b[2] = {below(2), below(3)}, a[2] = {below(2), below(2)};
        y->dim[1] += a[0] + b[0], y->dim[2] += a[1] + b[1];
        say(y, "pad(%s, %s, after = %s%s)", x->text, list(b, 2), list(a, 2),
            chance(50) ? ", value = -0.5" : "");
        return true;
    }
    default:
        say(y, "dropout2d(%s, 0.25)", x->text);
        return true;
    }
}

/* Windows over the steps of a sequence. */
static bool windows_1d(Pool *p, Value *y)
{
    const Value *x = any(p);
    if (x->rank != 2 || p->scan)
        return false;
    const int k = from(1, x->dim[0] < 4 ? x->dim[0] : 4), stride = chance(70) ? 1 : 2;
    const int pad = k > 1 && chance(40) ? 1 : 0;
    *y = *x;
    y->dim[0] = (x->dim[0] + 2 * pad - k) / stride + 1;
    if (chance(40)) {
        say(y, "%s(%s, %d, stride = %d, pad = %d)", chance(50) ? "max_pool1d" : "avg_pool1d",
            x->text, k, stride, pad);
        return true;
    }
    const int groups = chance(20) ? x->dim[1] : 1, filters = groups * from(1, 3);
    y->dim[1] = filters;
    say(y, "conv1d(%s, %d, kernel = %d, stride = %d, pad = %d, groups = %d)", x->text, filters, k,
        stride, pad, groups);
    return true;
}

static bool dropout(Pool *p, Value *y)
{
    const Value *x = any(p);
    *y = *x;
    say(y, "dropout(%s, 0.25)", x->text);
    return x->rank > 0;
}

/* ---- sums and products */

static bool reduce(Pool *p, Value *y)
{
    static const char *const word[] = {"sum", "mean", "amax"};
    const Value *x = any(p);
    int axes[3], n = 0, rank = 0;
    const bool keep = chance(40);
    if (x->rank < 1)
        return false;
    *y = *x;
    for (int i = 0; i < x->rank; i++) {
        const bool goes = chance(50);
        if (goes)
            axes[n++] = chance(25) ? i - x->rank : i;
        if (!goes || keep)
            y->dim[rank++] = goes ? 1 : x->dim[i];
    }
    y->rank = rank;
    if (n == 0)
        return false;
    const char *f = ONE_OF(word);
    say(y, f[0] == 's' ? "0.5 * %s(%s, axes = %s, keep = %s)" : "%s(%s, axes = %s, keep = %s)", f,
        x->text, list(axes, n), truth(keep));
    return true;
}

static bool product(Pool *p, Value *y)
{
    const Value *a = any(p);
    if (a->rank < 2)
        return false;
    for (int i = 0; i < 10; i++) {
        const Value *b = i < 9 ? any(p) : a;
        const bool ta = chance(50), tb = i < 9 ? chance(50) : !ta;
        if (b->rank != a->rank || (a->rank == 3 && a->dim[0] != b->dim[0]))
            continue;
        const int *m = a->dim + a->rank - 2, *n = b->dim + b->rank - 2;
        if (m[!ta] != n[tb])
            continue;
        *y = *a;
        y->dim[a->rank - 2] = m[ta];
        y->dim[a->rank - 1] = n[!tb];
        say(y, "tanh(matmul(%s, %s, transpose_a = %s, transpose_b = %s))", a->text, b->text,
            truth(ta), truth(tb));
        return true;
    }
    return false;
}

static bool attention(Pool *p, Value *y)
{
    const Value *x = any(p);
    if (x->rank != 2 || p->scan)
        return false;
    const int heads = from(1, 2), width = 2 * heads * from(1, 3);
    *y = *x;
    y->dim[1] = width;
    switch (p->weights ? below(3) : 0) {
    case 0:
        y->dim[1] = x->dim[1];
        say(y, "causal_attention(%s, tanh(%s), %s%s)", x->text, x->text, x->text,
            chance(50) ? ", mask = \"none\"" : "");
        return true;
    case 1:
        say(y,
            "causal_attention(rotary(dense(%s, %d), heads = %d), "
            "rotary(dense(%s, %d), heads = %d), dense(%s, %d), heads = %d)",
            x->text, width, heads, x->text, width, heads, x->text, width, heads);
        return true;
    default:
        say(y, "causal_attention(dense(%s, %d), dense(%s, %d), dense(%s, %d), heads = %d%s)",
            x->text, width, x->text, width, x->text, width, heads,
            chance(40) ? ", mask = \"none\"" : "");
        return true;
    }
}

static bool places(Pool *p, Value *y)
{
    const Value *x = any(p);
    *y = *x;
    if (x->rank != 2 || p->scan)
        return false;
    if (!p->weights || chance(50))
        say(y, x->dim[1] % 2 || chance(50) ? "0.5 * sinusoidal(%s)" : "rotary(%s)", x->text);
    else
        say(y, "position(%s)", x->text);
    return true;
}

static bool recurrent(Pool *p, Value *y)
{
    static const char *const word[] = {"lstm", "gru", "rnn"};
    const Value *x = any(p), *h = any(p);
    if (x->rank != 2 || p->scan || !p->weights)
        return false;
    const int width = from(1, 5), kind = below(3);
    const bool all = chance(60), both = chance(25);
    char more[TEXT + 200] = "";
    if (chance(25))
        strcat(more, ", layers = 2");
    else if (!both && h->rank == 1 && h->dim[0] == width && chance(60))
        snprintf(more, sizeof more, ", h = %s", h->text);
    if (both)
        strcat(more, ", bidirectional = true");
    if (chance(20))
        sprintf(more + strlen(more), ", recompute = %d", from(1, 3));
    if (kind == 1 && chance(40))
        strcat(more, ", reset = \"before\"");
    if (chance(15))
        strcat(more, ", recurrent_dropout = 0.25");
    if (tokens && x->dim[0] == steps && chance(40))
        sprintf(more + strlen(more), ", mask = mask(%s)", tokens);
    *y = *x;
    y->dim[1] = width * (1 + both);
    if (!all)
        y->rank = 1, y->dim[0] = y->dim[1];
    say(y, "%s(%s, %d, all = %s%s)", word[kind], x->text, width, truth(all), more);
    return true;
}

#endif
