/* check.c -- checks and messages that many shape rules share. */
#include "ops/check.h"
#include "ir/vocabulary.h"
#include <string.h>

/* The name of the op that the model calls.  The bias of a layer is a separate node after the layer,
 * with the same span; it gets the name of the layer. */
static const char *written(const Node *n)
{
    const Node *x = n->nin ? n->in[0] : NULL;
    const bool inner = node_is(n, "bias") && (x->op->layer || op_transposed(x)) &&
                       x->span.source == n->span.source && x->span.line == n->span.line &&
                       x->span.col == n->span.col && x->span.end_line == n->span.end_line &&
                       x->span.end_col == n->span.end_col;
    return op_in_language(inner ? x : n);
}

/* Adds the place: a line of the file, or the option whose text made the node.  from: the file of
 * the message. */
static const char *with_place(Arena *a, const char *what, Span at, const Source *from)
{
    if (!at.source)
        return what;
    const char *name = at.source->name;
    if (name[0] == '-' && name[1] == '-')
        return arena_printf(a, "%s in %s", what, name);
    if (from && at.source != from)
        return arena_printf(a, "%s on line %d of %s", what, at.line, name);
    return arena_printf(a, "%s on line %d", what, at.line);
}

static const char *made_by(const Node *n, Arena *a, const Source *from)
{
    const char *what = n->op->leaf == LEAF_LABEL && n->dtype == DT_REAL
                           ? arena_printf(a, "the recipe's target %s", n->name)
                       : n->op->leaf == LEAF_INPUT || n->op->leaf == LEAF_LABEL
                           ? arena_printf(a, "the model's %s", n->name ? n->name : "input")
                       : n->op->leaf == LEAF_CONST ? "a number"
                       : n->op->scan == SCAN_KEEP  ? "made by zeros"
                       : n->param                  ? arena_printf(a, "the parameter %s", n->name)
                                                   : arena_printf(a, "made by %s", written(n));
    return with_place(a, what, n->span, from);
}

void check_note(const Node *n, int i, Diag *d)
{
    const Node *in = n->in[i];
    const char *which = i == 0   ? "input"
                        : i == 1 ? "second input"
                                 : arena_printf(diag_arena(d), "input %d", i + 1);
    diag_note(d, "the %s is %s, %s", which, shape_text(diag_arena(d), &in->shape),
              made_by(in, diag_arena(d), n->span.source));
}

/* Reports an input with another rank: `want` names the right shape, `help` is the way out. */
static bool check_rank(const Node *n, int i, int rank, const char *want, const char *help, Diag *d)
{
    const Shape *s = &n->in[i]->shape;
    if (s->rank == rank)
        return true;
    diag_error(d, n->span, "%s needs %s, got %s", n->op->name, want, shape_text(diag_arena(d), s));
    check_note(n, i, d);
    diag_help(d, "%s", help);
    return false;
}

bool check_image(const Node *n, int i, Diag *d)
{
    return check_real(n, i, d) &&
           check_rank(n, i, 3, "images (N, C, H, W)",
                      "reshape(x, [channels, height, width]) makes images of vectors", d);
}

bool check_vector(const Node *n, int i, Diag *d)
{
    return check_real(n, i, d) &&
           check_rank(n, i, 1, "vectors (N, F)",
                      n->in[i]->shape.rank ? "flatten it first: flatten(x)"
                                           : "reshape it first: reshape(x, [1])",
                      d);
}

bool check_vectors(const Node *n, int i, Diag *d)
{
    return n->in[i]->shape.rank == 2 ? check_real(n, i, d) : check_vector(n, i, d);
}

bool check_sequence(const Node *n, int i, Diag *d)
{
    if (!check_real(n, i, d))
        return false;
    if (n->in[i]->shape.rank == 2 && n->in[i]->shape.batched)
        return true;
    diag_error(d, n->span, "%s needs sequences (N, T, F), got %s", n->op->name,
               shape_text(diag_arena(d), &n->in[i]->shape));
    check_note(n, i, d);
    return false;
}

bool check_groups(const Node *n, int64_t inputs, const char *called, Diag *d)
{
    const int64_t groups = node_int(n, "groups"), filters = node_int(n, "filters");
    if (inputs % groups == 0 && filters % groups == 0)
        return true;
    const bool in = inputs % groups != 0;
    diag_error(d, node_span(n, "groups"), "%s groups = %lld does not divide its %lld %s",
               n->op->name, (long long)groups, (long long)(in ? inputs : filters),
               in ? called : "filters");
    check_note(n, 0, d);
    diag_help(d, "use a number that divides %lld and %lld", (long long)inputs, (long long)filters);
    return false;
}

bool check_real(const Node *n, int i, Diag *d)
{
    if (n->in[i]->dtype == DT_REAL)
        return true;
    diag_error(d, n->span, "%s needs numbers, got %s", n->op->name,
               n->in[i]->op->leaf == LEAF_INPUT ? "tokens" : "class numbers");
    check_note(n, i, d);
    diag_help(d, "one_hot(%s, %s) makes vectors of them", n->in[i]->name ? n->in[i]->name : "label",
              n->in[i]->op->leaf == LEAF_INPUT ? "vocab" : "classes");
    return false;
}

bool check_label(const Node *n, int i, Diag *d)
{
    const Node *in = n->in[i];
    if (in->dtype == DT_I32 && in->shape.rank == 0 && in->shape.batched)
        return true;
    const bool numbers = in->dtype == DT_REAL;
    diag_error(d, n->span, "%s needs one class number for each sample, got %s%s", n->op->name,
               numbers ? "numbers " : "", shape_text(diag_arena(d), &in->shape));
    check_note(n, i, d);
    if (in->op->leaf == LEAF_LABEL && numbers)
        diag_help(d, "compare numbers by mse, l1 or huber, truths from 0 to 1 by "
                     "sigmoid_cross_entropy; without the key target, the network learns a class");
    else if (in->op->leaf == LEAF_INPUT)
        diag_help(d, "compare the output with the input by mse, l1 or huber");
    else
        diag_help(d, "use label, which holds the class numbers");
    return false;
}

/* Checks a loss over classes of pixels.  The rule `build` of the loss has arranged x as one vector
 * of classes for each pixel. */
static bool check_pixels(const Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape, *t = &n->in[1]->shape;
    if (x->rank == 2 && x->dim[0] == shape_count(t))
        return true;
    diag_error(d, n->span, "%s of %s has no numbers for the classes of %lld x %lld pixels",
               n->op->name, shape_text(diag_arena(d), x), (long long)t->dim[0],
               (long long)t->dim[1]);
    check_note(n, 0, d);
    check_note(n, 1, d);
    diag_help(d, "end the model with conv2d(h, CLASSES, kernel = 1) of images with this size");
    return false;
}

bool check_labelled(const Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape, *t = &n->in[1]->shape;
    if (n->in[1]->dtype != DT_I32 && t->batched)
        return check_label(n, 1, d);
    if (t->rank == 2 && !check_pixels(n, d))
        return false;
    if (x->rank != 2 || t->rank < 1 || n->in[1]->dtype != DT_I32)
        return check_vector(n, 0, d) && check_label(n, 1, d);
    if (x->dim[0] == shape_count(t))
        return check_real(n, 0, d);
    diag_error(d, n->span, "%s of %s has another number of positions than its classes %s",
               n->op->name, shape_text(diag_arena(d), x), shape_text(diag_arena(d), t));
    check_note(n, 0, d);
    check_note(n, 1, d);
    return false;
}

bool check_numbers(const Node *n, int i, Diag *d)
{
    const Node *in = n->in[i];
    if (in->dtype == DT_I32 && in->shape.batched)
        return true;
    diag_error(d, n->span, "%s needs class numbers or tokens, got numbers %s", n->op->name,
               shape_text(diag_arena(d), &in->shape));
    check_note(n, i, d);
    diag_help(d, "an input of tokens is declared i32[...]: text: i32[80]");
    return false;
}

bool check_vocab(const Node *n, int i, const char *key, Diag *d)
{
    const int64_t have = node_int(n, key);
    if (!node_attr(n->in[i], "vocab") || node_int(n->in[i], "vocab") <= have)
        return true;
    diag_error(d, node_span(n, key), "%s %s is %lld, but the data's tokens are 0 to %lld",
               n->op->name, key, (long long)have, (long long)node_int(n->in[i], "vocab") - 1);
    diag_help(d, "a model's parameter `vocab: int` without a value is as large as the data's "
                 "vocabulary");
    return false;
}

static bool check_limit(const Node *n, const char *key, int64_t v, int64_t low, Diag *d)
{
    if (v >= low && v <= CHECK_DIM_MAX)
        return true;
    if (v < low)
        diag_error(d, node_span(n, key), "%s %s is %lld, below %lld", n->op->name, key,
                   (long long)v, (long long)low);
    else
        diag_error(d, node_span(n, key), "%s %s is %lld, above %d", n->op->name, key, (long long)v,
                   CHECK_DIM_MAX);
    diag_help(d, "use %s >= %lld%s", key, (long long)low,
              v < low ? "" : ", and a much smaller number");
    if (v < low)
        diag_replace_int(d, v, low);
    return false;
}

bool check_int(const Node *n, const char *key, int64_t low, Diag *d)
{
    const Attr *a = node_attr(n, key);
    if (!a || (a->kind != ATTR_INT && a->kind != ATTR_INTS))
        return true;
    if (a->kind == ATTR_INT)
        return check_limit(n, key, a->i, low, d);
    for (int i = 0; i < a->nlist; i++)
        if (!check_limit(n, key, a->list[i], low, d))
            return false;
    return true;
}

static bool is_axis(const Node *n, const char *key, int64_t v, int rank, int *axis, Diag *d)
{
    *axis = (int)(v < 0 ? v + rank : v);
    if (v >= -rank && v < rank)
        return true;
    diag_error(d, node_span(n, key), "%s %s = %lld, its input has %d dimension%s beside the batch",
               n->op->name, key, (long long)v, rank, rank == 1 ? "" : "s");
    check_note(n, 0, d);
    if (rank == 1)
        diag_help(d, "use 0: the batch does not count");
    else
        diag_help(d, rank ? "use 0 to %d: the batch does not count; -1 is the last" : "it has none",
                  rank - 1);
    return false;
}

bool check_axis(const Node *n, const char *key, int rank, int *axis, Diag *d)
{
    return is_axis(n, key, node_int(n, key), rank, axis, d);
}

bool check_axes(const Node *n, const char *key, int rank, int *axis, Diag *d)
{
    const Attr *a = node_attr(n, key);
    if (a->nlist > rank) {
        diag_error(d, node_span(n, key), "%s %s names %d dimensions of %d", n->op->name, key,
                   a->nlist, rank);
        check_note(n, 0, d);
        return false;
    }
    for (int i = 0; i < a->nlist; i++)
        if (!is_axis(n, key, a->list[i], rank, &axis[i], d))
            return false;
    for (int i = 0; i < a->nlist; i++)
        for (int k = 0; k < i; k++)
            if (axis[i] == axis[k]) {
                diag_error(d, node_span(n, key), "%s %s has %d twice", n->op->name, key, axis[i]);
                return false;
            }
    return true;
}

bool check_result(Node *n, Shape s, Diag *d)
{
    for (int i = 0; i < s.rank; i++) {
        if (s.dim[i] >= 1 && s.dim[i] <= CHECK_DIM_MAX)
            continue;
        diag_error(d, n->span, "the result of %s, %s, has a dimension %s", n->op->name,
                   shape_text(diag_arena(d), &s), s.dim[i] < 1 ? "below 1" : "above 2147483647");
        if (n->nin)
            check_note(n, 0, d);
        return false;
    }
    if (shape_count(&s) > (int64_t)SAMPLE_MAX) {
        diag_error(d, n->span, "the result of %s, %s, takes more than 2^40 bytes a sample",
                   n->op->name, shape_text(diag_arena(d), &s));
        if (n->nin)
            check_note(n, 0, d);
        return false;
    }
    n->shape = s;
    n->dtype = DT_REAL;
    return true;
}

bool check_like_first(Node *n, Diag *d)
{
    return check_result(n, n->in[0]->shape, d);
}

/* ---- a node and the arguments of its op */

static bool kind_fits(ArgType type, AttrKind kind)
{
    switch (type) {
    case ARG_INT:
        return kind == ATTR_INT;
    case ARG_FLOAT:
        return kind == ATTR_FLOAT || kind == ATTR_INT;
    case ARG_BOOL:
        return kind == ATTR_BOOL;
    case ARG_STRING:
        return kind == ATTR_STRING;
    case ARG_REALS:
        return kind == ATTR_REALS;
    case ARG_PAIR:
    case ARG_INTS:
    case ARG_PLACES:
        return kind == ATTR_INTS;
    case ARG_PAD:
        return kind == ATTR_INTS || kind == ATTR_STRING;
    case ARG_PAD_STEPS:
        return kind == ATTR_INT || kind == ATTR_STRING;
    case ARG_TENSOR:
    case ARG_TENSORS:
        break;
    }
    return false;
}

/* Ops with a rule `build`, such as layers, have inputs that the language does not show; their
 * shape rule counts these inputs. */
const char *op_complaint(const Node *n, Arena *a)
{
    int least = 0, most = 0;
    for (const OpArg *arg = n->op->arg; arg->name; arg++) {
        const Attr *v = node_attr(n, arg->name);
        const bool must = !arg->fallback || strcmp(arg->fallback, "none");
        if (arg->type == ARG_TENSOR)
            least += must, most++;
        else if (arg->type == ARG_TENSORS)
            least++, most = n->nin > most ? n->nin : most + 1;
        else if ((!v && must) || (v && !kind_fits(arg->type, v->kind)))
            return arena_printf(a, "attribute %s is missing or of the wrong kind", arg->name);
    }
    if (n->op->joins)
        least = most = 1;
    if (n->nin < least || (n->nin > most && !n->op->build))
        return arena_printf(a, "%d inputs, needs %d", n->nin, least);
    return NULL;
}
