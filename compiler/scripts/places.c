/* places.c -- computes the values of places in the template of a node: shapes, axes, windows,
 * conditions. */
#include "base/round.h"
#include "ops/op.h"
#include "ops/window.h"
#include "scripts/words.h"
#include <string.h>

static const char *integer_text(const Use *u, int64_t v)
{
    return arena_printf(u->arena, "%lld", (long long)v);
}

static const char *flag(bool on)
{
    return on ? "" : NULL;
}

/* ---- properties of a node */

const Node *python_recurrent(const Node *n)
{
    const bool result = n->op->scan == SCAN_STACK || n->op->scan == SCAN_LAST;
    return result && n->in[0]->loop ? n->in[0]->loop->call : NULL;
}

const Node *python_mask(const Node *layer)
{
    return node_attr(layer, "mask") ? layer->in[layer->nin - 1] : NULL;
}

const Node *python_dropout2d(const Node *n)
{
    if (!node_is(n, "mul") || n->shape.rank != 3 || !node_is(n->in[1], "reshape"))
        return NULL;
    const Node *mask = n->in[1]->in[0];
    const int64_t *to = n->in[1]->shape.dim, channels = n->shape.dim[0];
    const bool spread = n->in[1]->shape.rank == 3 && to[0] == channels && to[1] == 1 && to[2] == 1;
    return spread && node_is(mask, "dropout") && mask->shape.rank == 1 &&
                   mask->in[0]->op->leaf == LEAF_CONST && node_float(mask->in[0], "value") == 1
               ? mask
               : NULL;
}

const Node *python_prelu(const Node *n)
{
    if (!node_is(n, "prelu_y"))
        return NULL;
    const Node *w = n->in[1];
    return node_is(w, "bias") ? w->in[1] : w;
}

bool python_causal(const Node *n)
{
    return node_attr(n, "mask") && strcmp(node_string(n, "mask"), "causal") == 0;
}

/* Places of one kind, with their values; a value can be NULL. */
typedef struct Row {
    const char *name, *value;
} Row;

static const char *value_in(const Row *row, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(row[i].name, name) == 0)
            return row[i].value;
    return NULL;
}

/* ---- windows of convolutions and poolings */

static bool is_pool(const Node *n)
{
    return node_is(n, "max_pool") || node_is(n, "avg_pool");
}

static bool has_window(const Node *n)
{
    return is_pool(n) || node_is(n, "conv2d") || node_is(n, "conv2d_dx");
}

/* The window of n.  `after` counts only rows and columns of padding that a window reaches, at least
 * 0. */
static Window window(const Node *n)
{
    const int64_t *x = node_attr(n, "x_shape")->list;
    Window v = window_of(n, x[1], x[2]);
    for (int i = 0; i < 2; i++) {
        const int64_t after =
            (v.out[i] - 1) * v.stride[i] + window_span(&v, i) - v.in[i] - v.before[i];
        v.after[i] = after > 0 ? after : 0;
    }
    return v;
}

static bool is_padded(const Window *v)
{
    return v->before[0] || v->before[1] || v->after[0] || v->after[1];
}

/* Whether the padding is "same" of Keras: ceil(in / stride) outputs, with an odd row or column
 * after the image. */
static bool is_same(const Window *v)
{
    for (int i = 0; i < 2; i++) {
        const int64_t out = ceil_div(v->in[i], v->stride[i]);
        const int64_t reach = (out - 1) * v->stride[i] + window_span(v, i) - v->in[i];
        if (v->out[i] != out || v->before[i] != (reach > 0 ? reach / 2 : 0))
            return false;
    }
    return is_padded(v);
}

bool places_counts_padding(const Node *n)
{
    const Attr *count = node_attr(n, "count_include_pad");
    return count && count->i;
}

/* Whether Keras can use "same" for the node: its averages do not count padding. */
static bool pads_same(const Use *u, const Window *v)
{
    const bool counts = node_is(u->node, "avg_pool") && places_counts_padding(u->node);
    return u->dialect->pads_same && is_same(v) && !counts;
}

bool places_by_hand(const Use *u)
{
    if (!has_window(u->node) || node_is(u->node, "conv2d_dx"))
        return false;
    const Window v = window(u->node);
    if (u->dialect->pads_same)
        return is_padded(&v) && !pads_same(u, &v);
    const bool over_half = 2 * v.before[0] > v.kernel[0] || 2 * v.before[1] > v.kernel[1];
    return v.after[0] > v.before[0] || v.after[1] > v.before[1] ||
           (u->dialect->pads_half && is_pool(u->node) && over_half);
}

/* "3" for two equal numbers, else "(1, 7)". */
static const char *pair(const Use *u, const int64_t v[2])
{
    return v[0] == v[1] ? integer_text(u, v[0])
                        : arena_printf(u->arena, "(%s)", python_list(u->arena, v, 2, 0));
}

static bool differs(const int64_t v[2], int64_t usual)
{
    return v[0] != usual || v[1] != usual;
}

/* Sets `more` to the rows and columns of the result of a conv_transpose2d that lie beyond the last
 * window. */
static void beyond_windows(const Node *n, const Window *v, int64_t more[2])
{
    for (int i = 0; i < 2; i++)
        more[i] = v->in[i] + 2 * v->before[i] - window_span(v, i) -
                  (n->in[1]->shape.dim[i + 1] - 1) * v->stride[i];
}

/* The places of a conv_transpose2d. */
static const char *transpose_place(const Use *u, const Window *v, const char *name)
{
    int64_t more[2];
    const int64_t *y = u->node->shape.dim;
    beyond_windows(u->node, v, more);
    const bool simple = !differs(more, 0) && v->kernel[0] >= v->stride[0] &&
                        v->kernel[1] >= v->stride[1] && !differs(v->dilation, 1) &&
                        node_int(u->node, "groups") == 1;
    const Row all[] = {
        {"made", integer_text(u, y[0])},
        {"more", flag(differs(more, 0))},
        {"output_padding", pair(u, more)},
        {"simple", flag(simple)},
        {"rows_end", integer_text(u, v->before[0] + y[1])},
        {"columns_end", integer_text(u, v->before[1] + y[2])},
    };
    return value_in(all, sizeof all / sizeof *all, name);
}

static const char *window_place(const Use *u, const char *name)
{
    const Window v = window(u->node);
    const bool padded = (v.before[0] || v.before[1]) && !places_by_hand(u);
    const Row all[] = {
        {"kernel", pair(u, v.kernel)},
        {"kernel_rows", integer_text(u, v.kernel[0])},
        {"kernel_columns", integer_text(u, v.kernel[1])},
        {"stride", pair(u, v.stride)},
        {"stride_rows", integer_text(u, v.stride[0])},
        {"stride_columns", integer_text(u, v.stride[1])},
        {"strided", flag(differs(v.stride, 1))},
        {"other_stride", flag(memcmp(v.stride, v.kernel, sizeof v.stride) != 0)},
        {"dilation", pair(u, v.dilation)},
        {"dilated", flag(differs(v.dilation, 1))},
        {"padding", pair(u, v.before)},
        {"padded", flag(padded)},
        {"uncounted", flag(padded && !places_counts_padding(u->node))},
        {"same", flag(pads_same(u, &v))},
        {"tiles", flag(!is_padded(&v) && memcmp(v.stride, v.kernel, sizeof v.stride) == 0)},
    };
    const char *value = value_in(all, sizeof all / sizeof *all, name);
    return value || !node_is(u->node, "conv2d_dx") ? value : transpose_place(u, &v, name);
}

/* ---- the sides of pad, crop and windows: top, left, bottom, right */

static void sides(const Node *n, int64_t at[4])
{
    const Attr *before = node_attr(n, "before"), *after = node_attr(n, "after");
    const Window v = has_window(n) ? window(n) : (Window){0};
    const int64_t *first = before ? before->list : v.before;
    const int64_t *last = after ? after->list : before ? before->list : v.after;
    memcpy(at, first, 2 * sizeof *at);
    memcpy(at + 2, last, 2 * sizeof *at);
}

/* Stores the window of a crop: the first row and column, and the row and column after the last
 * ones. */
static void crop_sides(const Node *n, int64_t at[4])
{
    const int64_t *size = node_attr(n, "size")->list, *have = n->in[0]->shape.dim + 1;
    const Attr *given = node_attr(n, "at");
    for (int i = 0; i < 2; i++) {
        at[i] = given ? given->list[i] : (have[i] - size[i]) / 2;
        at[i + 2] = at[i] + size[i];
    }
}

static const char *side_place(const Use *u, const char *name)
{
    static const char *const names[] = {"top", "left", "bottom", "right"};
    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0) {
            int64_t at[4];
            (node_is(u->node, "crop") ? crop_sides : sides)(u->node, at);
            return integer_text(u, at[i]);
        }
    return NULL;
}

/* The value that pad fills in; NULL: zeros. */
static const char *pad_value(const Use *u)
{
    if (node_is(u->node, "max_pool"))
        return u->dialect->lowest;
    if (!node_is(u->node, "pad") || node_float(u->node, "value") == 0)
        return NULL;
    return python_number(u->arena, node_float(u->node, "value"));
}

/* ---- resize: rows and columns before and after, and the mode */

static const char *resize_place(const Use *u, const char *name)
{
    if (!node_is(u->node, "resize"))
        return NULL;
    const int64_t *x = u->node->in[0]->shape.dim, *y = u->node->shape.dim;
    const Row all[] = {
        {"bilinear", flag(strcmp(node_string(u->node, "mode"), "bilinear") == 0)},
        {"resized", python_list(u->arena, y + 1, 2, 0)},
        {"resized_rows", integer_text(u, y[1])},
        {"resized_columns", integer_text(u, y[2])},
        {"rows_before", integer_text(u, x[1])},
        {"columns_before", integer_text(u, x[2])},
    };
    return value_in(all, sizeof all / sizeof *all, name);
}

/* ---- axes */

/* Dimension i of a sample, counted with the batch as dimension 0. */
static int batch_axis(const Use *u, int64_t i, int rank)
{
    if (!u->dialect->channels_last || rank != 3)
        return (int)i + 1;
    return i == 0 ? 3 : (int)i;
}

static int axis_number(const Use *u)
{
    const Node *n = u->node;
    const int from = n->in[0]->shape.rank, to = n->shape.rank,
              rank = u->dialect->channels_last && to > from ? to : from;
    const int64_t i = node_int(n, "axis");
    return batch_axis(u, i < 0 ? i + rank : i, rank);
}

static const char *axis_text(const Use *u)
{
    return integer_text(u, axis_number(u));
}

static const char *axes(const Use *u)
{
    return python_list(u->arena, node_attr(u->node, "axes")->list, u->node->shape.rank, 1);
}

/* ":, :, ": slices of the dimensions before the axis. */
static const char *colons(const Use *u)
{
    Text t = text_new(u->arena);
    for (int i = axis_number(u); i > 0; i--)
        text_add(&t, ":, ");
    return t.s;
}

static const char *slice_end(const Use *u)
{
    return integer_text(u, node_int(u->node, "start") + node_int(u->node, "size"));
}

/* "2, 3, ": the dimensions that sum_to and amax_to reduce to 1.  If all of these have one element,
 * names one: without a dimension, frameworks reduce all of them, the batch too. */
static const char *reduced_axes(const Use *u)
{
    const Shape *from = &u->node->in[0]->shape, *to = &u->node->shape;
    Text t = text_new(u->arena);
    for (int i = 0; i < from->rank; i++) {
        const int there = i - (from->rank - to->rank);
        if (there < 0 || to->dim[there] != from->dim[i])
            text_printf(&t, "%d, ", batch_axis(u, i, from->rank));
    }
    for (int i = 0; t.len == 0 && i < from->rank; i++)
        if (from->dim[i] == 1)
            text_printf(&t, "%d, ", batch_axis(u, i, from->rank));
    return t.s;
}

/* ---- conditions */

static const char *biased(const Use *u)
{
    return flag(u->biased);
}

static const char *grouped(const Use *u)
{
    return flag(node_int(u->node, "groups") != 1);
}

static const char *other_epsilon(const Use *u)
{
    return flag(node_float(u->node, "epsilon") != 1e-5);
}

static const char *other_momentum(const Use *u)
{
    return flag(node_float(u->node, "momentum") != 0.9);
}

static const char *causal(const Use *u)
{
    return flag(python_causal(u->node));
}

static const char *smoothing(const Use *u)
{
    const Attr *s = node_attr(u->node, "smoothing");
    return s && s->f > 0 ? python_number(u->arena, s->f) : NULL;
}

/* Whether n is one recurrent layer without first states; a gru must have its reset after the
 * product. */
static const char *plain_recurrent(const Use *u)
{
    const Node *n = u->node;
    const bool before = node_is(n, "gru") && strcmp(node_string(n, "reset"), "after") != 0;
    const int inputs = python_mask(n) ? 2 : 1;
    return flag(n->nin == inputs && node_float(n, "recurrent_dropout") == 0 && !before);
}

/* Whether the recurrent layer that n belongs to has a mask. */
static const char *masked(const Use *u)
{
    const Node *layer = python_recurrent(u->node);
    return flag(python_mask(layer ? layer : u->node));
}

/* Whether all numbers of a mask are 0 or 1, by the operation that makes them. */
static bool is_binary(const Node *mask)
{
    static const char *const binary[] = {"mask", "gt", "ge", "lt", "le", "eq", "ne", "step"};
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
        if (node_is(mask, binary[i]))
            return true;
    return node_is(mask, "mul") && is_binary(mask->in[0]) && is_binary(mask->in[1]);
}

/* Whether a recurrent layer has a mask with other numbers than 0 and 1. */
static const char *weighted(const Use *u)
{
    const Node *mask = python_mask(u->node);
    return flag(mask && !is_binary(mask));
}

static const char *relu(const Use *u)
{
    return flag(strcmp(node_string(u->node, "activation"), "relu") == 0);
}

/* Whether the bias of the forget gate begins with 0. */
static const char *zero_forget_bias(const Use *u)
{
    return flag(node_float(u->node, "forget_bias") == 0);
}

/* Of cumsum. */
static const char *backwards(const Use *u)
{
    return flag(node_bool(u->node, "reverse"));
}

static const char *reversed(const Use *u)
{
    return flag(u->node->in[0]->loop->reversed);
}

/* ---- shapes */

/* Dimension i of a shape, from the end if negative; 1 if the shape has no dimensions. */
static int64_t dim(const Shape *s, int i)
{
    return s->rank ? s->dim[i < 0 ? s->rank + i : i] : 1;
}

static const char *shape_place(const Use *u, const char *name)
{
    const Node *n = u->node;
    const Shape *x = &n->in[0]->shape, *y = &n->shape;
    const Row all[] = {
        {"channels", integer_text(u, dim(x, 0))},
        {"features", integer_text(u, dim(x, -1))},
        {"count", python_prelu(n) ? integer_text(u, python_prelu(n)->shape.dim[0])
                  : n->nin > 1    ? integer_text(u, dim(&n->in[1]->shape, 0))
                                  : NULL},
        {"shape", python_list(u->arena, y->dim, y->rank, 0)},
        {"rows", integer_text(u, dim(y, -1))},
        {"rank", integer_text(u, y->rank)},
        {"vector", flag(x->rank == 1)},
        {"matrix", flag(x->rank == 2)},
        {"image", flag(x->rank == 3)},
        {"image_result", flag(y->rank == 3)},
        {"volume", flag(y->rank > 3)},
        {"batched", flag(y->batched)},
        {"labelled", flag(n->nin > 1 && n->in[1]->dtype == DT_I32)},
    };
    return value_in(all, sizeof all / sizeof *all, name);
}

/* ---- all of them */

/* The value of an attribute; an attribute that is false has none.  The attributes of dropout2d are
 * those of its mask. */
static const char *attribute_text(const Use *u, const char *name)
{
    const Node *mask = python_dropout2d(u->node);
    const Attr *at = node_attr(mask ? mask : u->node, name);
    if (!at || at->kind == ATTR_INTS || (at->kind == ATTR_BOOL && !at->i))
        return NULL;
    return at->kind == ATTR_FLOAT                              ? python_number(u->arena, at->f)
           : at->kind == ATTR_STRING || at->kind == ATTR_REALS ? at->s
                                                               : integer_text(u, at->i);
}

const char *place_of_node(const Use *u, const char *name)
{
    static const struct {
        const char *name;
        const char *(*value)(const Use *u);
    } computed[] = {
        {"axis", axis_text},
        {"axes", axes},
        {"colons", colons},
        {"end", slice_end},
        {"reduced", reduced_axes},
        {"value", pad_value},
        {"biased", biased},
        {"grouped", grouped},
        {"causal", causal},
        {"smoothing", smoothing},
        {"plain", plain_recurrent},
        {"masked", masked},
        {"weighted", weighted},
        {"relu", relu},
        {"backwards", backwards},
        {"reversed", reversed},
        {"zero_forget_bias", zero_forget_bias},
        {"other_epsilon", other_epsilon},
        {"other_momentum", other_momentum},
    };
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++)
        if (strcmp(computed[i].name, name) == 0)
            return computed[i].value(u);
    const char *value = has_window(u->node) ? window_place(u, name) : NULL;
    if (!value)
        value = resize_place(u, name);
    if (!value)
        value = side_place(u, name);
    if (!value && u->node->nin)
        value = shape_place(u, name);
    return value ? value : attribute_text(u, name);
}
