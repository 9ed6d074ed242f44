/* words.c -- an operation in a dialect's words: the table's text with the operands in it, in parentheses where they must be. */
#include "scripts/python.h"
#include "ops/op.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *python_number(Arena *a, double v)
{
    if (fabs(v) < 1e15 && v == floor(v))              /* 10, not 1e+01 */
        return arena_printf(a, "%.0f", v == 0 ? 0 : v);
    for (int digits = 1; isfinite(v) && digits <= 17; digits++) {
        const char *s = arena_printf(a, "%.*g", digits, v);
        if (strtod(s, NULL) == v)
            return s;
    }
    return arena_printf(a, "float('%g')", v);
}

/* "3" of two equal numbers, "(1, 7)" of others. */
const char *python_pair(Arena *a, const int64_t v[2])
{
    return v[0] == v[1] ? arena_printf(a, "%lld", (long long)v[0])
                        : arena_printf(a, "(%lld, %lld)", (long long)v[0], (long long)v[1]);
}

const Node *python_recurrent(const Node *n)
{
    const bool result = node_is(n, "scan_stack") || node_is(n, "scan_last");
    return result && n->in[0]->loop ? n->in[0]->loop->call : NULL;
}

const Node *python_dropout2d(const Node *n)
{
    if (!node_is(n, "mul") || n->shape.rank != 3 || !node_is(n->in[1], "reshape"))
        return NULL;
    const Node *mask = n->in[1]->in[0];
    const int64_t *to = n->in[1]->shape.dim, channels = n->shape.dim[0];
    const bool spread = n->in[1]->shape.rank == 3 && to[0] == channels && to[1] == 1 && to[2] == 1;
    return spread && node_is(mask, "dropout") && mask->shape.rank == 1 &&
                   node_is(mask->in[0], "const") && node_float(mask->in[0], "value") == 1
               ? mask
               : NULL;
}

bool python_causal(const Node *n)
{
    return node_attr(n, "mask") && strcmp(node_string(n, "mask"), "causal") == 0;
}

Window python_window(const Node *n)
{
    const int64_t *x = node_attr(n, "x_shape")->list;
    return window_of(n, x[1], x[2]);
}

/* How many rows and columns of padding the windows reach behind the image, at least 0. */
static void reached(const Window *v, int64_t after[2])
{
    for (int i = 0; i < 2; i++) {
        after[i] = (v->out[i] - 1) * v->stride[i] + (v->kernel[i] - 1) * v->dilation[i] + 1 -
                   v->in[i] - v->before[i];
        after[i] = after[i] > 0 ? after[i] : 0;
    }
}

/* "same" may want a row more behind than before: that is padded by hand. */
bool python_lopsided(const Window *v, int64_t after[2])
{
    reached(v, after);
    return after[0] > v->before[0] || after[1] > v->before[1];
}

/* ---- expressions */

/* Attributes in a word; an absent one is 0. */
static const char *attribute(Arena *a, const Node *n, const char *key)
{
    const Attr *at = node_attr(n, key);
    if (!at)
        return "0";
    return at->kind == ATTR_FLOAT ? python_number(a, at->f)
                                  : arena_printf(a, "%lld", (long long)at->i);
}

const char *python_inside(Arena *a, PyValue v, int binds)
{
    return (int)v.binds < binds ? arena_printf(a, "(%s)", v.s) : v.s;
}

/* An operand.  Ours broadcast the dimensions of a sample from the last on; Python's frameworks count the batch among them. */
static const char *operand(Arena *a, const Dialect *dialect, const Node *n, const PyValue *in,
                           int i, int binds)
{
    const Shape *x = &n->in[i]->shape;
    if (!x->batched || x->rank == n->shape.rank || !(n->op->flags & OP_ELEMENTWISE) ||
        node_is(n->in[i], "const"))
        return python_inside(a, in[i], binds);
    return dialect->wider(a, python_inside(a, in[i], PY_ATOM), x, n->shape.rank);
}

/* How strongly the operand at p must bind: not at all as an argument; behind an operator more than in front of it. */
static int wanted(const PyWord *w, const char *p)
{
    const char before = p > w->python ? p[-1] : 0, after = p[2];
    if ((before == '(' || before == 0 || before == ' ') && (after == ',' || after == ')') &&
        strchr(w->python, '('))
        return PY_SUM;
    if (after == '.' || w->binds == PY_POWER || w->binds == PY_ATOM)
        return PY_ATOM;
    return before == ' ' ? w->binds + 1 : w->binds;
}

static PyValue filled(Arena *a, const Dialect *dialect, const Node *n, const PyWord *w,
                      const PyValue *in)
{
    const Node *mask = python_dropout2d(n);
    Text t = text_new(a);
    for (const char *p = w->python; *p; p++) {
        if (*p == '$') {
            text_add(&t, operand(a, dialect, n, in, p[1] - '0', wanted(w, p)));
            p++;
        } else if (*p == '#') {
            const size_t length = strcspn(p + 1, ",)");
            text_add(&t, attribute(a, mask ? mask : n, arena_strndup(a, p + 1, length)));
            p += length;
        } else
            text_addn(&t, p, 1);
    }
    return (PyValue){t.s, (int)w->binds};
}

const char *python_list(Arena *a, const int64_t *v, int n, int64_t more)
{
    Text t = text_new(a);
    for (int i = 0; i < n; i++)
        text_printf(&t, "%s%lld", i ? ", " : "", (long long)(v[i] + more));
    return t.s;
}

const char *python_widened(Arena *a, const Shape *from, int rank)
{
    Text t = text_new(a);
    for (int k = from->rank; k < rank; k++)
        text_add(&t, "1, ");
    text_add(&t, python_list(a, from->dim, from->rank, 0));
    return t.s;
}

static const PyWord *find(const PyWord *w, const char *op)
{
    while (w && w->op && strcmp(op, w->op) != 0)
        w++;
    return w && w->op ? w : NULL;
}

/* Do the two operands of n broadcast against each other? */
static bool broadcasts(const Node *n)
{
    const Shape *x = n->nin == 2 ? &n->in[0]->shape : NULL, *y = x ? &n->in[1]->shape : NULL;
    if (!x || node_is(n->in[0], "const") || node_is(n->in[1], "const"))
        return false;
    return x->rank != y->rank || memcmp(x->dim, y->dim, sizeof *x->dim * (size_t)x->rank) != 0;
}

bool python_value(Arena *a, const Dialect *dialect, const Node *n, const PyValue *in,
                  const char *layer, PyValue *v, Diag *d)
{
    if (layer) {
        *v = (PyValue){dialect->called(a, n, layer, in[0]), PY_ATOM};
        return true;
    }
    const char *op = python_dropout2d(n) ? "dropout2d" : n->op->name;
    const PyWord *w = broadcasts(n) ? find(dialect->unlike, op) : NULL;
    if (w || (w = find(dialect->word, op))) {
        *v = filled(a, dialect, n, w, in);
        return true;
    }
    *v = (PyValue){dialect->shaped(a, n, in), PY_ATOM};
    if (v->s)
        return true;
    const Node *recurrent = python_recurrent(n);
    diag_error(d, n->span, "--to %s cannot write %s", dialect->to,
               recurrent ? recurrent->op->name : op_written(a, n));
    diag_help(d, "the model can be trained with Tenon itself: tenon build");
    return false;
}
