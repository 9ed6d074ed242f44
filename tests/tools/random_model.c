/* random_model.c -- writes a random model with its train block, to compare all ways to compile it.
 *
 *   random_model SEED        the same model for the same seed, on every machine
 *
 * Values of known shapes are made from one another, by every operation that fits: layers, shared
 * layers, moves, reductions, formulas, attention, recurrent layers, scans.  tanh and similar
 * functions keep results small, so that rounding errors stay small, too.  The last layer reads
 * every value that no other result has read.  The loss has a name or is a formula; half of the
 * operations in formulas are those of the model.  `tenon check` should accept every model.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 1200, VALUES = 60, MOST = 160 };

typedef struct Value {
    char text[TEXT];                                  /* a name, or in a loss an expression */
    int rank, dim[3];
    bool used;
} Value;

typedef struct Pool {
    Value value[VALUES];
    int count;
    bool weights, scan, loss;                         /* can have parameters; is the body of a scan; has the values of a loss */
} Pool;

static uint64_t state;
static int layers;                                    /* with parameters, so far */

static int below(int n)                               /* 0 to n - 1; splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (int)((z ^ (z >> 31)) % (uint64_t)n);
}

static bool chance(int percent) { return below(100) < percent; }
static int from(int low, int high) { return low + below(high - low + 1); }

static int size_of(const Value *v)
{
    int n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dim[i];
    return n;
}

static Value *any(Pool *p)
{
    const int last = chance(50) && p->count > 3 ? p->count - 3 : 0;
    return &p->value[from(last, p->count - 1)];
}

static void say(Value *y, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(y->text, TEXT, fmt, ap) >= TEXT)
        y->rank = -1;                                 /* too long: not taken */
    va_end(ap);
}

static const char *list(const int *v, int n)
{
    static char text[4][128];
    static int next;
    char *t = text[next++ % 4];
    int len = sprintf(t, "[");
    for (int i = 0; i < n; i++)
        len += sprintf(t + len, "%s%d", i ? ", " : "", v[i]);
    sprintf(t + len, "]");
    return t;
}

static const char *truth(bool b) { return b ? "true" : "false"; }

/* ------------------------------------------------------------------------------- operations: y of values of the pool, false where nothing fits */

static bool unary(Pool *p, Value *y)
{
    static const char *const form[] = {
        "tanh(%s)", "sigmoid(%s)", "softplus(%s)", "gelu(%s)", "silu(%s)", "erf(%s)", "square(tanh(%s))", "abs(%s)", "-%s", "relu(%s)",
        "relu6(%s)", "leaky_relu(%s)", "leaky_relu(%s, slope = 0.3)", "hard_sigmoid(%s)", "hard_swish(%s)", "exp(tanh(%s))", "bell(%s)",
        "bell(%s, w = 0.25)", "log(1.5 + tanh(%s))", "sqrt(2 + sin3(%s))", "reciprocal(2 + tanh(%s))", "(1.5 + tanh(%s)) ** 0.5", "tanh(%s) ** 3",
        "sigmoid(%s) ** 2", "1 - %s", "0.5 * %s", "%s * 2 - 1", "1 / (2 + tanh(%s))", "max(%s, 0.1)", "min(%s, 0.7)", "neg(%s)", "add(%s, 0.25)",
        "pow(sigmoid(%s), 1.5)", "step(%s) * 0.5", "sign(%s) * 0.5", "2 ** tanh(%s)", "-tanh(%s) ** 2"};
    const Value *x = any(p);
    *y = *x;
    say(y, form[below((int)(sizeof form / sizeof *form))], x->text);
    return true;
}

static bool broadcast(const Value *a, const Value *b, Value *y)
{
    *y = a->rank >= b->rank ? *a : *b;
    for (int i = 1; i <= a->rank && i <= b->rank; i++) {
        const int m = a->dim[a->rank - i], n = b->dim[b->rank - i];
        if (m != n && m != 1 && n != 1)
            return false;
        y->dim[y->rank - i] = m == 1 ? n : m;
    }
    return true;
}

static bool binary(Pool *p, Value *y)
{
    static const char *const form[] = {"(%s + %s)", "(%s - %s)", "%s * %s", "tanh(%s) * %s", "max(%s, %s)", "min(%s, %s)", "%s / (2 + tanh(%s))",
                                       "(1.5 + tanh(%s)) ** tanh(%s)", "mixed(%s, %s)", "mul(%s, sigmoid(%s))", "sub(%s, %s)", "div(%s, 1 + exp(-tanh(%s)))"};
    const Value *a = any(p), *b = NULL;
    for (int i = 0; i < 8 && !b; i++) {
        const Value *c = any(p);
        b = broadcast(a, c, y) ? c : NULL;
    }
    if (!b)
        return false;
    say(y, form[below((int)(sizeof form / sizeof *form))], a->text, b->text);
    return true;
}

static bool constant(Pool *p, Value *y)               /* zeros(4) + 0.5 as the second or the first operand */
{
    Value *x = any(p);
    char zeros[160];
    *y = *x;
    if (x->rank < 1)
        return false;
    snprintf(zeros, sizeof zeros, "zeros(%s)", list(x->dim, x->rank));
    switch (below(4)) {
    case 0: say(y, "%s * (%s + 0.5)", x->text, zeros); return true;
    case 1: say(y, "max(%s, %s)", x->text, zeros); return true;
    case 2: say(y, "concat(%s, %s + 0.5)", x->text, zeros), y->dim[0] *= 2; return true;
    default: say(y, "(%s + %s)", zeros, x->text); return true;
    }
}

static bool dense(Pool *p, Value *y)
{
    const Value *x = any(p);
    if (x->rank < 1 || x->rank > 2 - p->scan)
        return false;
    *y = *x;
    y->dim[y->rank - 1] = from(1, 9);
    say(y, chance(80) ? "dense(%s, %d)" : "dense(%s, %d, bias = false)", x->text, y->dim[y->rank - 1]);
    return true;
}

enum { SHARED = 3 };
static struct { int in, out; } shared[SHARED];

static bool again(Pool *p, Value *y)                  /* a named layer: called again where it fits, or transposed */
{
    for (int i = 0; i < 12 && !p->loss; i++) {
        const Value *x = any(p);
        const int k = below(SHARED), last = x->rank ? x->dim[x->rank - 1] : 0;
        *y = *x;
        if ((x->rank == 1 || (x->rank == 2 && !p->scan)) && (last == shared[k].in || !shared[k].in)) {
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
    static const char *const form[] = {"layer_norm(%s, epsilon = 0.1)", "rms_norm(%s, epsilon = 0.1)", "layer_norm(%s, epsilon = 0.1, scale = false)",
                                       "layer_norm(%s, epsilon = 0.1, shift = false)", "rms_norm(%s, epsilon = 0.1, scale = false)", "bias(%s)", "prelu(%s)",
                                       "prelu(%s, slope = 0.1, shared = true)"};
    const Value *x = any(p);
    *y = *x;
    if (x->rank < 1 || (p->scan && x->rank > 1))
        return false;
    if (chance(25) && !p->scan && x->rank <= 3 && x->dim[0] * (x->rank > 1 ? x->dim[1] : 1) > 4) {
        const int c = x->dim[x->rank == 3 ? 0 : x->rank - 1], groups = c % 2 == 0 ? c / 2 : 1;
        say(y, "group_norm(%s, %d, epsilon = 0.1%s)", x->text, groups, chance(30) ? ", scale = false" : "");
        return true;
    }
    say(y, form[below(8)], x->text);
    return true;
}

static bool batched_norm(Pool *p, Value *y)
{
    const Value *x = any(p);
    *y = *x;
    if (p->scan || (x->rank != 1 && x->rank != 3))
        return false;
    say(y, "batch_norm(%s, epsilon = 0.1%s%s)", x->text, chance(50) ? ", sync = true" : "", chance(20) ? ", scale = false" : "");
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

static bool window(Pool *p, Value *y, bool pool)      /* a convolution, or pooling */
{
    const Value *x = any(p);
    if (x->rank != 3 || (p->scan && !pool))
        return false;
    const int k[2] = {from(1, x->dim[1] < 4 ? x->dim[1] : 4), from(1, x->dim[2] < 4 ? x->dim[2] : 4)};
    const int stride = chance(75) ? 1 : 2, groups = !pool && chance(30) ? x->dim[0] : 1;
    int pad = k[0] > 1 && k[1] > 1 && chance(40) ? 1 : 0, filters = groups * from(1, groups > 1 ? 2 : 6);
    *y = *x;
    for (int i = 0; i < 2; i++)
        y->dim[1 + i] = (x->dim[1 + i] + 2 * pad - k[i]) / stride + 1;
    if (pool) {
        const bool max = chance(40);
        say(y, "%s(%s, %s, stride = %d, pad = %d%s)", max ? "max_pool" : "avg_pool", x->text, list(k, 2), stride, pad,
            !max && chance(30) ? ", count_include_pad = true" : "");
        return true;
    }
    y->dim[0] = filters;
    if (chance(15)) {
        for (int i = 0; i < 2; i++)
            y->dim[1 + i] = (x->dim[1 + i] + stride - 1) / stride;
        say(y, "conv2d(%s, %d, kernel = %s, stride = %d, pad = \"same\", groups = %d)", x->text, filters, list(k, 2), stride, groups);
    } else if (chance(15) && k[0] * 2 - 1 <= x->dim[1] && k[1] * 2 - 1 <= x->dim[2]) {
        for (int i = 0; i < 2; i++)
            y->dim[1 + i] = x->dim[1 + i] - 2 * (k[i] - 1);
        say(y, "conv2d(%s, %d, kernel = %s, dilation = 2, groups = %d)", x->text, filters, list(k, 2), groups);
    } else {
        say(y, "conv2d(%s, %d, kernel = %s, stride = %d, pad = %d, groups = %d%s)", x->text, filters, list(k, 2), stride, pad, groups,
            chance(20) ? ", bias = false" : "");
    }
    return true;
}

static bool convolution(Pool *p, Value *y) { return window(p, y, false); }
static bool pooling(Pool *p, Value *y) { return window(p, y, true); }

static bool image(Pool *p, Value *y)                  /* operations for images only */
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
        say(y, "resize(%s, %s, mode = \"%s\")", x->text, list(y->dim + 1, 2), chance(60) ? "bilinear" : "nearest");
        return true;
    case 1:
        y->dim[1] = from(1, x->dim[1]), y->dim[2] = from(1, x->dim[2]);
        say(y, chance(50) ? "crop(%s, %s)" : "crop(%s, %s, at = 0)", x->text, list(y->dim + 1, 2));
        return true;
    case 2: {
        const int b[2] = {below(2), below(3)}, a[2] = {below(2), below(2)};
        y->dim[1] += a[0] + b[0], y->dim[2] += a[1] + b[1];
        say(y, "pad(%s, %s, after = %s%s)", x->text, list(b, 2), list(a, 2), chance(50) ? ", value = -0.5" : "");
        return true;
    }
    default:
        say(y, "dropout2d(%s, 0.25)", x->text);
        return true;
    }
}

static bool windows_1d(Pool *p, Value *y)                  /* windows over the steps of a sequence */
{
    const Value *x = any(p);
    if (x->rank != 2 || p->scan)
        return false;
    const int k = from(1, x->dim[0] < 4 ? x->dim[0] : 4), stride = chance(70) ? 1 : 2, pad = k > 1 && chance(40) ? 1 : 0;
    *y = *x;
    y->dim[0] = (x->dim[0] + 2 * pad - k) / stride + 1;
    if (chance(40)) {
        say(y, "%s(%s, %d, stride = %d, pad = %d)", chance(50) ? "max_pool1d" : "avg_pool1d", x->text, k, stride, pad);
        return true;
    }
    const int groups = chance(20) ? x->dim[1] : 1, filters = groups * from(1, 3);
    y->dim[1] = filters;
    say(y, "conv1d(%s, %d, kernel = %d, stride = %d, pad = %d, groups = %d)", x->text, filters, k, stride, pad, groups);
    return true;
}

static bool dropout(Pool *p, Value *y)
{
    const Value *x = any(p);
    *y = *x;
    say(y, "dropout(%s, 0.25)", x->text);
    return x->rank > 0;
}

/* ---- moves */

static bool reshape(Pool *p, Value *y)
{
    const Value *x = any(p);
    int left = size_of(x);
    *y = *x;
    if (x->rank < 1)
        return false;
    if (chance(30)) {
        y->rank = 1, y->dim[0] = left;
        say(y, "flatten(%s)", x->text);
        return true;
    }
    y->rank = from(1, 3);
    for (int i = 0; i < y->rank; i++) {
        int d = i == y->rank - 1 ? left : from(1, 4);
        while (left % d)
            d--;
        y->dim[i] = d;
        left /= d;
    }
    say(y, "reshape(%s, %s)", x->text, list(y->dim, y->rank));
    return true;
}

static bool transpose(Pool *p, Value *y)
{
    static const int order[5][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const Value *x = any(p);
    const int *o = order[x->rank == 2 ? 1 : below(5)];
    if (x->rank < 2)
        return false;
    *y = *x;
    for (int i = 0; i < x->rank; i++)
        y->dim[i] = x->dim[o[i]];
    say(y, "transpose(%s, %s)", x->text, list(o, x->rank));
    return true;
}

static bool concat(Pool *p, Value *y)
{
    const Value *x = any(p), *z = x;
    if (x->rank < 1)
        return false;
    const int axis = below(x->rank);
    for (int i = 0; i < 8; i++) {
        const Value *c = any(p);
        bool fits = c->rank == x->rank;
        for (int d = 0; fits && d < x->rank; d++)
            fits = d == axis || c->dim[d] == x->dim[d];
        z = fits ? c : z;
    }
    *y = *x;
    y->dim[axis] += z->dim[axis];
    if (z == x)
        say(y, chance(50) ? "concat(tanh(%s), %s, axis = %d)" : "concat([%s, 0.5 * %s], axis = %d)", x->text, x->text, axis);
    else
        say(y, chance(50) ? "concat(%s, %s, axis = %d)" : "concat([%s, %s], axis = %d)", x->text, z->text, axis);
    return true;
}

static bool slice(Pool *p, Value *y)
{
    const Value *x = any(p);
    if (x->rank < 1)
        return false;
    const int axis = below(x->rank), d = x->dim[axis], size = from(1, d), parts = d % 3 == 0 ? 3 : d % 2 == 0 ? 2 : 1;
    *y = *x;
    if (chance(40)) {
        y->dim[axis] = d / parts;
        say(y, "split(%s, %d, axis = %d)[%d]", x->text, parts, axis, below(parts));
    } else {
        y->dim[axis] = size;
        say(y, "slice(%s, axis = %d, start = %d, size = %d)", x->text, axis, from(0, d - size), size);
    }
    return true;
}

static bool stack(Pool *p, Value *y)
{
    const Value *x = any(p), *z = x;
    if (x->rank < 1 || x->rank > 2)
        return false;
    for (int i = 0; i < 8; i++) {
        const Value *c = any(p);
        if (c->rank == x->rank && !memcmp(c->dim, x->dim, sizeof *x->dim * (size_t)x->rank))
            z = c;
    }
    const int axis = from(0, x->rank);
    *y = *x;
    y->rank++;
    for (int i = 0, k = 0; i < y->rank; i++)
        y->dim[i] = i == axis ? 2 : x->dim[k++];
    say(y, chance(50) ? "stack(%s, %s, axis = %d)" : "stack([%s, tanh(%s)], axis = %d)", x->text, z->text, axis);
    return true;
}

static bool gather(Pool *p, Value *y)
{
    const Value *x = any(p), *by = any(p);
    if (x->rank < 1)
        return false;
    const int axis = below(x->rank), n = from(1, 4);
    int place[4];
    for (int i = 0; i < n; i++)
        place[i] = below(x->dim[axis]);
    *y = *x;
    y->dim[axis] = n;
    if (by->rank == 1 && by->dim[0] <= 6 && chance(30)) { /* indices that the network computes */
        y->dim[axis] = by->dim[0];
        say(y, "gather(%s, %d * sigmoid(3 * %s), axis = %d)", x->text, x->dim[axis], by->text, axis);
    } else {
        say(y, "gather(%s, %s, axis = %d)", x->text, list(place, n), axis);
    }
    return true;
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
    const char *f = word[below(3)];
    say(y, f[0] == 's' ? "0.5 * %s(%s, axes = %s, keep = %s)" : "%s(%s, axes = %s, keep = %s)", f, x->text, list(axes, n), truth(keep));
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
        say(y, "tanh(matmul(%s, %s, transpose_a = %s, transpose_b = %s))", a->text, b->text, truth(ta), truth(tb));
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
        say(y, "causal_attention(%s, tanh(%s), %s%s)", x->text, x->text, x->text, chance(50) ? ", mask = \"none\"" : "");
        return true;
    case 1:
        say(y, "causal_attention(rotary(dense(%s, %d), heads = %d), rotary(dense(%s, %d), heads = %d), dense(%s, %d), heads = %d)", x->text, width, heads,
            x->text, width, heads, x->text, width, heads);
        return true;
    default:
        say(y, "causal_attention(dense(%s, %d), dense(%s, %d), dense(%s, %d), heads = %d%s)", x->text, width, x->text, width, x->text, width, heads,
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

static const char *tokens;                            /* the input, where it is a text */
static int steps;                                     /* of the input */

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
        strcat(more, ", mask = mask(x)");
    *y = *x;
    y->dim[1] = width * (1 + both);
    if (!all)
        y->rank = 1, y->dim[0] = y->dim[1];
    say(y, "%s(%s, %d, all = %s%s)", word[kind], x->text, width, truth(all), more);
    return true;
}

/* ------------------------------------------------------------------------------- pools */

typedef bool Rule(Pool *p, Value *y);
static Rule *const rules[] = {unary, unary, binary, binary, constant, reshape, transpose, concat, slice, stack, gather, reduce, reduce, product, softmax, /* 15 without weights */
                              pooling, image, attention, places, windows_1d, dense, dense, again, norm, batched_norm, convolution, convolution, dropout, recurrent};
enum { RULES = sizeof rules / sizeof *rules, FREE = 19 };

static bool derive(Pool *p, Value *y)
{
    for (int i = 0; i < 200; i++) {
        y->used = false;
        if (rules[below(p->weights ? RULES : FREE)](p, y) && y->rank >= 0 && size_of(y) <= MOST && (y->rank || !p->scan))
            return true;
    }
    return false;
}

static Value *keep(Pool *p, const Value *y, const char *name)
{
    Value *v = &p->value[p->count++];
    *v = *y;
    v->used = false;
    if (name)
        snprintf(v->text, sizeof v->text, "%s", name);
    return v;
}

static void mark_used(Pool *p, const char *text)
{
    for (int i = 0; i < p->count; i++) {
        const char *name = p->value[i].text, *at = text;
        const size_t len = strlen(name);
        while ((at = strstr(at, name)) && at[len] >= '0' && at[len] <= '9')
            at++;
        p->value[i].used |= at != NULL;
    }
}

static bool has_parameters(const char *text)
{
    static const char *const word[] = {"dense(", "conv2d(", "bias(", "position(", "lstm(", "gru(", "rnn(", "fc0", "fc1", "fc2", "table"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strstr(text, word[i]))
            return true;
    return false;
}

/* Writes a line h = .. with one more value; a model has no value of rank 0. */
static bool statement(Pool *p, const char *indent, int *names)
{
    Value y;
    char name[16];
    for (int i = 0; i < 20; i++)
        if (derive(p, &y) && y.rank > 0) {
            sprintf(name, "v%d", ++*names);
            printf("%s%s = %s\n", indent, name, y.text);
            mark_used(p, y.text);
            keep(p, &y, name);
            layers += has_parameters(y.text);
            return true;
        }
    return false;
}

/* A scan over a sequence of the pool, perhaps two: one state or two, and what each step yields. */
static void scan(Pool *p, int *names)
{
    Pool *body = calloc(1, sizeof *body);
    const Value *x = NULL, *also = NULL;
    for (int i = 0; i < 20 && !x; i++)
        x = any(p)->rank >= 2 ? any(p) : NULL, x = x && x->rank >= 2 ? x : NULL;
    if (!x) {
        free(body);
        return;
    }
    for (int i = 0; i < 10 && !also; i++) {
        const Value *c = any(p);
        also = c->rank >= 2 && c->dim[0] == x->dim[0] ? c : NULL;
    }
    also = chance(40) ? also : NULL;
    const int id = ++*names, width = from(1, 6), states = from(1, 2);
    Value item = *x, state = {.rank = 1, .dim = {width}}, y;
    for (int i = 0; i < states; i++) {
        const Value *first = any(p);
        if (first->rank == 1 && first->dim[0] == width)
            printf("    s%d_%d = %s\n", id, i, first->text);
        else
            printf(chance(80) ? "    s%d_%d = zeros(%d)\n" : "    s%d_%d = zeros(%d) + 0.5\n", id, i, width);
    }
    printf("    scan e%d in %s", id, x->text);
    mark_used(p, x->text);
    if (also)
        printf(", f%d in %s", id, also->text), mark_used(p, also->text);
    if (chance(30))
        printf(" reversed");
    if (chance(25))
        printf(" recompute = every %d", from(1, x->dim[0]));
    printf(" {\n");
    body->weights = body->scan = true;
    char name[40];
    const Value *each[2] = {x, also};
    for (int i = 0; i < 2 && each[i]; i++) {
        item = *each[i];
        item.rank--;
        memmove(item.dim, item.dim + 1, 2 * sizeof *item.dim);
        sprintf(name, "%c%d", "ef"[i], id);
        keep(body, &item, name);
    }
    for (int i = 0; i < states; i++)
        sprintf(name, "s%d_%d", id, i), keep(body, &state, name);
    if (chance(40))
        for (int i = 0; i < 5; i++)
            if (any(p)->rank == 1 && p->value[i % p->count].rank == 1) {
                keep(body, &p->value[i % p->count], p->value[i % p->count].text);
                break;
            }
    for (int i = from(1, 4); i > 0; i--)
        statement(body, "        ", names);
    char sum[TEXT] = "";                              /* of values of the step: each state depends on some of them */
    for (int i = 0; i < body->count; i++) {
        const Value *v = &body->value[i];
        if (v->rank > 0 && (!v->used || chance(30) || i == body->count - 1))
            sprintf(sum + strlen(sum), v->rank == 1 ? "%sdense(%s, %d)" : "%sdense(flatten(%s), %d)", *sum ? " + " : "", v->text, width);
    }
    for (int i = 0; i < states; i++)
        if (chance(70))
            printf("        s%d_%d = tanh(%s)\n", id, i, *sum ? sum : body->value[0].text);
        else
            printf("        s%d_%d = sigmoid(dense(flatten(e%d), %d)) * s%d_%d + 0.3 * tanh(%s)\n", id, i, id, width, id, i, sum);
    y = body->value[below(body->count)];
    if (y.rank == 3)
        y = body->value[0];
    const bool yields = chance(60);
    if (yields)
        printf("        yield ys%d = %s\n", id, y.text);
    printf("    }\n");
    if (yields) {
        memmove(y.dim + 1, y.dim, 2 * sizeof *y.dim);
        y.dim[0] = x->dim[0], y.rank++;
        sprintf(name, "ys%d", id);
        if (size_of(&y) <= 4 * MOST)
            keep(p, &y, name);
    }
    for (int i = 0; i < states; i++)
        sprintf(name, "s%d_%d", id, i), keep(p, &state, name);
    free(body);
}

/* ------------------------------------------------------------------------------- the loss: one number a sample */

/* Reduces all dimensions of x, together or one after the other; a fourth power of unbounded values would let training diverge. */
static void to_number(Value *x, bool squared)
{
    static const char *const word[] = {"sum", "mean", "amax", "0.3 * sum"};
    static const int all[] = {0, 1, 2};
    Value y = *x;
    const char *f = word[below(4)];
    if (x->rank == 0)
        return;
    if (!squared && chance(15)) {
        y.rank = 0;
        say(&y, "l2(%s)", x->text);
    } else if (x->rank > 1 && chance(40)) {
        const int axis = below(x->rank);
        y.rank = 0;
        for (int i = 0; i < x->rank; i++)
            if (i != axis)
                y.dim[y.rank++] = x->dim[i];
        say(&y, "%s(%s, axes = [%d])", f, x->text, axis);
    } else {
        y.rank = 0;
        say(&y, "%s(%s, axes = %s)", f, x->text, list(all, x->rank));
    }
    *x = y;
    to_number(x, squared);
}

/* A term of a loss formula. */
static Value term(Pool *p, const Value *out, bool labelled, bool each)
{
    Value y = *out, z;
    const int k = out->rank ? out->dim[out->rank - 1] : 1;
    y.rank = 0;
    if (labelled && !each && chance(30)) {
        static const char *const form[] = {"softmax_cross_entropy(output, label)", "softmax_cross_entropy(output, label, smoothing = 0.1)",
                                           "-log(gather(softmax(output), label) + 0.01)", "gather(output, label) * 0.5", "mse(output, one_hot(label, %d))",
                                           "mean((output - one_hot(label, %d)) ** 2, axes = [0])", "log(sum(exp(tanh(output)), axes = [0])) - gather(tanh(output), label)"};
        say(&y, form[below(7)], k);
        return y;
    }
    if (each && k > 1 && chance(50)) {
        say(&y, chance(50) ? "softmax_cross_entropy(output, label)" : "mse(output, one_hot(label, %d))", k);
        return y;
    }
    z = *out;
    if (chance(60))
        say(&z, "tanh(%s)", out->text);
    for (int i = from(0, 3); i > 0; i--) {
        Pool *q = calloc(1, sizeof *q);
        *q = *p;
        keep(q, &z, NULL);
        Value next;
        if (derive(q, &next) && next.rank >= 0 && strlen(next.text) < 300)
            z = next;
        free(q);
    }
    const bool squared = z.rank && chance(30);
    const Value x = z;
    if (squared || (z.rank && chance(40)))
        say(&z, squared ? "(%s) ** 2" : "tanh(%s)", x.text);
    to_number(&z, squared);
    return z;
}

static void loss(Pool *p, const Value *out, bool labelled, bool each)
{
    Value a = term(p, out, labelled, each), b = term(p, out, labelled, each);
    static const char *const one[] = {"%s", "%s * 2", "0.5 * (%s)", "tanh(%s) ** 2", "sqrt(1 + (%s) ** 2)", "1 - exp(-abs(%s))", "(%s) / 3"};
    static const char *const two[] = {"%s + %s", "%s + 0.1 * (%s)", "(%s) * tanh(%s)", "max(%s, %s)", "%s - 0.5 * tanh(%s)", "(%s) / (2 + tanh(%s))"};
    printf("    loss = ");
    if (chance(50))
        printf(one[below(7)], a.text);
    else
        printf(two[below(6)], a.text, b.text);
    printf("\n");
}

/* ------------------------------------------------------------------------------- a model */

static void inputs(Pool *p, int *vocab)
{
    static const int kinds[] = {0, 0, 1, 1, 2, 2, 2, 3};
    Value x = {.text = "x"};
    const int kind = kinds[below(8)];
    *vocab = 0;
    switch (kind) {
    case 0: x.rank = 1, x.dim[0] = from(1, 12); break;
    case 1: x.rank = 2, x.dim[0] = from(1, 6), x.dim[1] = from(1, 6); break;
    case 2: x.rank = 3, x.dim[0] = from(1, 4), x.dim[1] = from(2, 6), x.dim[2] = from(2, 6); break;
    default: x.rank = 1, x.dim[0] = from(1, 6), *vocab = from(2, 9); break;
    }
    steps = kind == 1 || kind == 3 ? x.dim[0] : 0;
    printf("model random(x: %s%s", *vocab ? "i32" : "f32", list(x.dim, x.rank));
    printf(*vocab ? ", vocab: int) {\n" : ") {\n");
    for (int i = 0; i < SHARED; i++) {
        shared[i].in = 0, shared[i].out = from(1, 6);
        printf("    fc%d = dense(%d%s)\n", i, shared[i].out, chance(20) ? ", bias = false" : "");
    }
    if (!*vocab) {
        keep(p, &x, NULL);
        return;
    }
    tokens = "x";
    x.rank = 2, x.dim[1] = from(1, 6);
    printf("    table = embedding(vocab, %d%s)\n    v0 = table(x)\n", x.dim[1], chance(40) ? ", padding = 0" : "");
    keep(p, &x, "v0");
    if (chance(40)) {
        printf("    w0 = one_hot(x, vocab)\n");
        x.dim[1] = *vocab;
        keep(p, &x, "w0");
    }
}

static bool froze;                                    /* fc0 is called, and so is another layer */

/* The last line of the model, which reads all values that nothing else has read. */
static Value output(Pool *p)
{
    Value out = {.text = "output", .rank = 1};
    const Value *last = &p->value[p->count - 1];
    char parts[TEXT] = "";
    for (int i = p->count - 1; i >= 0 && strlen(parts) < TEXT / 2; i--)
        if (!p->value[i].used || i == p->count - 1)
            sprintf(parts + strlen(parts), "%sflatten(%s)", *parts ? ", " : "", p->value[i].text);
    out.dim[0] = from(2, 6);
    const int way = layers ? below(10) : 9;
    froze = shared[0].in && way >= 5;
    if (way < 2 && last->rank > 0) {                  /* any value, unchanged */
        out.rank = last->rank;
        memcpy(out.dim, last->dim, sizeof out.dim);
        printf("    return %s\n}\n", last->text);
    } else if (way < 5 && steps && last->rank == 2 && last->dim[0] == steps) {
        out.rank = 2, out.dim[0] = steps, out.dim[1] = from(2, 5);
        printf("    return dense(%s, %d)\n}\n", last->text, out.dim[1]);
    } else if (way < 6) {
        out.dim[0] = 1;
        printf("    return concat(%s) |> dense(1)\n}\n", parts);
    } else {
        printf("    return concat(%s) |> dense(%d)\n}\n", parts, out.dim[0]);
    }
        return out;
}

static void train(Pool *p, const Value *out, int vocab)
{
    static const char *const optimizer[] = {"sgd(lr = 0.01)", "sgd(lr = 0.01, momentum = 0.9)", "sgd(lr = 0.01, weight_decay = 0.01)",
                                            "sgd(lr = 0.01, momentum = 0.9, nesterov = true)", "adam(lr = 0.002)", "rmsprop(lr = 0.002)", "adamw(lr = 0.002)"};
    static const int batches[][2] = {{8, 1}, {8, 2}, {8, 4}, {12, 2}, {12, 3}, {9, 1}, {16, 2}, {10, 5}, {34, 1}};
    const int *b = batches[below(9)];
    const bool each = steps && out->rank == 2 && out->dim[0] == steps, labelled = out->rank == 1 || each;
    const int classes = each ? out->dim[1] : out->rank == 1 ? (out->dim[0] > 1 ? out->dim[0] : 2) : 3;
    printf("train random {\n    data = synthetic(samples = %d, test_samples = 11, classes = %d", b[0] + from(1, 15), classes);
    if (vocab)
        printf(", vocab = %d", vocab);
    printf(")\n");
    if (out->rank == 1 && out->dim[0] == 1 && chance(50))
        printf("    loss = sigmoid_cross_entropy\n");
    else if (labelled && out->dim[out->rank - 1] > 1 && chance(25))
        printf("    loss = %s\n", chance(50) ? "softmax_cross_entropy" : chance(50) ? "mse" : "softmax_cross_entropy(smoothing = 0.1)");
    else
        loss(p, out, labelled && out->dim[out->rank - 1] > 1, each);
    printf("    optimizer = %s\n    batch = %d\n    shards = %d\n    epochs = 2\n", optimizer[below(7)], b[0], b[1]);
    if (chance(15))
        printf("    clip = %s\n", chance(50) ? "norm(1.0)" : "value(0.05)");
    if (chance(10) && froze)
        printf("    freeze = [\"fc0.*\"]\n");
    if (chance(10))
        printf("    factors = [lr(\"*\", 2), decay(\"*\", 1)]\n");
    printf("}\n");
}

int main(int argc, char **argv)
{
    Pool *p = calloc(2, sizeof *p);
    int vocab, names = 0;
    if (argc != 2 || !p) {
        fprintf(stderr, "usage: random_model SEED\n");
        return 1;
    }
    state = strtoull(argv[1], NULL, 10);
    below(2);
    printf("# model %s of tests/tools/random_model.c\nop bell(x, w: float = 0.5) = exp(-w * x * x)\nop mixed(a, b) = tanh(a) * b + a / (2 + b * b)\n"
           "op sin3(x) = tanh(x) - tanh(x) ** 3 / 6\n",
           argv[1]);
    inputs(p, &vocab);
    p->weights = true;
    for (int i = from(1, chance(20) ? 14 : 7); i > 0; i--)
        if (chance(12))
            scan(p, &names);
        else
            statement(p, "    ", &names);
    const Value out = output(p);
    Pool *q = p + 1;
    keep(q, &out, NULL);
    q->loss = true;
    q->weights = chance(10);                          /* a loss may have parameters, too */
    const bool each = steps && out.rank == 2 && out.dim[0] == steps;
    if ((out.rank == 1 || each) && out.dim[out.rank - 1] > 1) {
        Value hot = out;
        say(&hot, "one_hot(label, %d)", out.dim[out.rank - 1]);
        keep(q, &hot, NULL);
    }
    train(q, &out, vocab);
    free(p);
    return 0;
}
