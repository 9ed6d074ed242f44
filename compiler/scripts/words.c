/* words.c -- writes a node in a dialect: fills the template of its operation.
 *
 * Operands:  @x @y      the first two, in parentheses where they must be
 *            @bare      the first one, never in parentheses
 *            @all       all of them: "h, z"
 *            @mask      the mask of a recurrent layer, which is its last input
 *            @layer     of a call: "self.conv1"
 *            @math      the framework's module of functions: "torch"
 * Attributes of the node have their own names; places.c has those that are computed.
 */
#include "scripts/words.h"
#include "ops/op.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *python_number(Arena *a, double v)
{
    if (fabs(v) < 1e15 && v == floor(v)) /* 10, not 1e+01 */
        return arena_printf(a, "%.0f", v == 0 ? 0 : v);
    for (int digits = 1; isfinite(v) && digits <= 17; digits++) {
        const char *s = arena_printf(a, "%.*g", digits, v);
        if (strtod(s, NULL) == v)
            return s;
    }
    return arena_printf(a, "float('%g')", v);
}

const char *python_list(Arena *a, const int64_t *v, int n, int64_t more)
{
    Text t = text_new(a);
    for (int i = 0; i < n; i++)
        text_printf(&t, "%s%lld", i ? ", " : "", (long long)(v[i] + more));
    return t.s;
}

const char *python_inside(Arena *a, PyValue v, PyBinds binds)
{
    return v.binds > binds ? arena_printf(a, "(%s)", v.s) : v.s;
}

/* ---- operands */

/* The values of the places of `wider`: an operand, and its new shape. */
typedef struct Wider {
    const char *x, *shape;
} Wider;

static const char *wider_value(const void *of, const char *name, const char *at)
{
    const Wider *w = of;
    (void)at;
    return strcmp(name, "x") == 0 ? w->x : strcmp(name, "widened") == 0 ? w->shape : NULL;
}

/* The dimensions of a sample, with ones before them up to the given rank: "1, 1, 3, 4". */
static const char *widened(const Use *u, const Shape *from, int rank)
{
    int64_t dim[SHAPE_MAX], transposed[SHAPE_MAX];
    const int ones = rank - from->rank;
    for (int i = 0; i < rank; i++)
        dim[i] = i < ones ? 1 : from->dim[i - ones];
    for (int i = 0; i < rank; i++) /* C, H, W become H, W, C */
        transposed[i] = u->dialect->channels_last && rank == 3 ? dim[(i + 1) % 3] : dim[i];
    return python_list(u->arena, transposed, rank, 0);
}

/* The text of an operand.  Tenon matches dimensions of samples from the right.  In Python the batch
 * is a dimension, too, so an operand of lower rank gets a new shape. */
static const char *operand_value(const Use *u, int i, PyBinds binds)
{
    const Node *n = u->node;
    const Shape *x = &n->in[i]->shape;
    if (!x->batched || x->rank == n->shape.rank || !(n->op->flags & OP_ELEMENTWISE) ||
        n->in[i]->op->leaf == LEAF_CONST)
        return python_inside(u->arena, u->in[i], binds);
    const Wider w = {python_inside(u->arena, u->in[i], PY_ATOM), widened(u, x, n->shape.rank)};
    const Places p = {wider_value, &w};
    Text t = text_new(u->arena);
    template_fill(u->dialect->wider, &p, &t);
    return t.s;
}

/* The precedence of the weakest operator of a template outside of parentheses. */
static PyBinds binds_of(const char *python)
{
    PyBinds binds = *python == '-' ? PY_SIGN : PY_ATOM;
    int depth = 0;
    for (const char *s = python; *s; s++) {
        depth += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
        if (depth || *s != ' ' || !strchr("+-*/", s[1]))
            continue;
        const PyBinds here = s[2] == '*' ? PY_POWER : strchr("+-", s[1]) ? PY_SUM : PY_PRODUCT;
        binds = here > binds ? here : binds;
    }
    return binds;
}

/* The precedence that the operand at `at` needs: none as an argument; a stronger one after an
 * operator than before it. */
static PyBinds wanted_binding(const char *python, const char *at)
{
    const char before = at > python ? at[-1] : 0, after = at[2];
    const PyBinds binds = binds_of(python);
    if ((before == 0 || strchr("( ?|", before)) && (after == ',' || after == ')') &&
        strchr(python, '('))
        return PY_SUM;
    if (after == '.' || binds <= PY_POWER)
        return PY_ATOM;
    return before == ' ' ? binds - 1 : binds;
}

static const char *all_operands(const Use *u)
{
    Text t = text_new(u->arena);
    for (int i = 0; i < u->node->nin; i++)
        text_printf(&t, "%s%s", i ? ", " : "", u->in[i].s);
    return t.s;
}

/* ---- a word */

/* Templates that are the same in all frameworks. */
static const PyWord common[] = {
    {"add", "@x + @y"},
    {"sub", "@x - @y"},
    {"mul", "@x * @y"},
    {"div", "@x / @y"},
    {"neg", "-@x"},
    {"pow", "@x ** @y"},
    {"exp", "@math.exp(@x)"},
    {"log", "@math.log(@x)"},
    {"sqrt", "@math.sqrt(@x)"},
    {"sin", "@math.sin(@x)"},
    {"cos", "@math.cos(@x)"},
    {"abs", "@math.abs(@x)"},
    {"square", "@math.square(@x)"},
    {"reciprocal", "@math.reciprocal(@x)"},
    {"sign", "@math.sign(@x)"},
    {"relu", "@math.relu(@x)"},
    {"sigmoid", "@math.sigmoid(@x)"},
    {"tanh", "@math.tanh(@x)"},
    {"erf", "@math.erf(@x)"},
    {NULL, NULL},
};

static const char *value(const void *of, const char *name, const char *at)
{
    const Use *u = of;
    if (name[1] == 0 && (*name == 'x' || *name == 'y'))
        return operand_value(u, *name - 'x', wanted_binding(u->python, at));
    if (strcmp(name, "bare") == 0)
        return u->in[0].s;
    if (strcmp(name, "all") == 0)
        return all_operands(u);
    if (strcmp(name, "mask") == 0)
        return python_inside(u->arena, u->in[1], wanted_binding(u->python, at));
    if (strcmp(name, "layer") == 0)
        return u->layer;
    if (strcmp(name, "math") == 0)
        return u->dialect->math;
    return place_of_node(u, name);
}

/* The template of the first row for the operation whose condition is true; NULL: none. */
static const char *find_word(const Use *u, const PyWord *w)
{
    static const char given[] = " if ";
    const char *op = python_dropout2d(u->node) ? "dropout2d"
                     : python_prelu(u->node)   ? "prelu"
                                               : u->node->op->name;
    const size_t length = strlen(op);
    const Places p = {value, u};
    for (; w && w->op; w++) {
        const char *more = w->op + length;
        if (strncmp(op, w->op, length) != 0 || (*more && strncmp(more, given, strlen(given)) != 0))
            continue;
        if (!*more || template_holds(u->arena, more + strlen(given), &p))
            return w->python;
    }
    return NULL;
}

static PyValue filled(const Use *use, const char *python)
{
    Use u = *use;
    u.python = python;
    const Places p = {value, &u};
    Text t = text_new(u.arena);
    template_fill(python, &p, &t);
    return (PyValue){.s = t.s, .binds = binds_of(python)};
}

const char *python_layer(Arena *a, const Dialect *dialect, const Node *n, bool biased)
{
    const Use u = {.arena = a, .dialect = dialect, .node = n, .biased = biased};
    const char *python = find_word(&u, dialect->layer);
    return python ? filled(&u, python).s : NULL;
}

/* Whether the two operands of n broadcast against each other. */
static bool broadcasts(const Node *n)
{
    const Shape *x = n->nin == 2 ? &n->in[0]->shape : NULL, *y = x ? &n->in[1]->shape : NULL;
    if (!x || n->in[0]->op->leaf == LEAF_CONST || n->in[1]->op->leaf == LEAF_CONST)
        return false;
    return x->rank != y->rank || memcmp(x->dim, y->dim, sizeof *x->dim * (size_t)x->rank) != 0;
}

/* The expression of the node; the padding of windows is already part of the operand, where the
 * dialect needs that. */
static PyValue expressed(const Use *u)
{
    const Node *n = u->node;
    const Dialect *dialect = u->dialect;
    const char *python = NULL;
    if (u->layer) {
        python = find_word(u, dialect->called);
        return filled(u, python ? python : "@layer(@x)");
    }
    if (broadcasts(n))
        python = find_word(u, dialect->unlike);
    if (python || (python = find_word(u, dialect->word)) || (python = find_word(u, common)))
        return filled(u, python);
    return (PyValue){.s = dialect->special ? dialect->special(u->arena, n, u->in) : NULL};
}

/* The operand of a convolution or pooling with its padding, as the dialect writes op pad. */
static PyValue padded(const Use *u)
{
    const PyWord *w = u->dialect->word;
    while (strcmp(w->op, "pad") != 0)
        w++;
    return filled(u, w->python);
}

bool python_value(Arena *a, const Dialect *dialect, const Node *n, const PyValue *in,
                  const char *layer, PyValue *v, Diag *d)
{
    Use u = {.arena = a, .dialect = dialect, .node = n, .in = in, .layer = layer};
    const bool by_hand = places_by_hand(&u);
    const PyValue wide = by_hand ? padded(&u) : (PyValue){.s = ""};
    if (by_hand)
        u.in = &wide;
    /* An average would count the added padding. */
    const bool counts = by_hand && node_is(n, "avg_pool") && !places_counts_padding(n);
    if (!counts) {
        *v = expressed(&u);
        if (v->s)
            return true;
    }
    const Node *recurrent = python_recurrent(n);
    diag_error(d, n->span, "--to %s cannot write %s", dialect->to,
               recurrent ? recurrent->op->name : op_written(a, n));
    diag_help(d, "the model can be trained with Tenon itself: tenon build");
    return false;
}
