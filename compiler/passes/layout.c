/* layout.c -- channels innermost: images as (H, W, C), conv weights as (O, R, S, I), dense weights
 * in panels.
 *
 * A flattened image keeps its (H, W, C) order when a dense layer reads it: the order goes into the
 * weight's own layout (files keep C, H, W).  What needs the order of the language gets a relayout
 * before it. Parameters are stored in the layout of their kernels; Param.axis says how files map to
 * it. Not done under --plain: there everything is row-major (N, C, H, W), weights as in files.
 *
 * For a GPU it is done where libraries compute convolutions with rounded factors (options_gpu_last): the same orders, but nothing is
 * packed or turned, and dense weights are no panels.  What has a kernel for either order gets the attribute `last`.
 */
#include "ir/target.h"
#include "ir/vocabulary.h"
#include "ops/conv_price.h"
#include "ops/dense_price.h"
#include "passes/pass.h"
#include <string.h>

/* LAST and ROW are the same bytes: nothing to reorder. */
static bool trivial(const int64_t chw[3])
{
    return chw[0] == 1 || chw[1] * chw[2] == 1;
}

static bool is_image(const Shape *s)
{
    return s->rank == 3;
}

static void dims_of(const Node *n, int64_t chw[3])
{
    memcpy(chw, is_image(&n->shape) ? n->shape.dim : n->flat, 3 * sizeof *chw);
}

static bool is_last(const Node *n)
{
    int64_t chw[3];

    if (n->layout != LAYOUT_LAST)
        return false;
    dims_of(n, chw);
    return !trivial(chw);
}

static void set_last(Node *n, const int64_t chw[3])
{
    n->layout = LAYOUT_LAST;
    memcpy(n->flat, chw, sizeof n->flat);
}

/* n's value in the order `to`, through a copy when it lies in the other.  The copy reads memory:
 * what was to be computed inside its reader's loop is stored after all. */
static Node *reordered(Graph *g, Node *n, Layout to, const int64_t chw[3])
{
    const bool last = is_last(n);

    if (trivial(chw) || last == (to == LAYOUT_LAST))
        return n;
    node_drop_attr(g->arena, n, "inline");
    Node *r = graph_add(g, op_find("relayout"), &n, 1, n->span);
    r->shape = n->shape, r->dtype = n->dtype, r->half = n->half;
    r->name = n->name, r->backward = n->backward, r->needs_grad = n->needs_grad;
    node_set_string(g, r, "to", to == LAYOUT_LAST ? "last" : "row");
    if (to == LAYOUT_LAST)
        set_last(r, chw);
    return r;
}

static void want(Graph *g, Node *n, int i, Layout to)
{
    int64_t chw[3];

    if (!n->in[i]->shape.batched)
        return;
    if (is_image(&n->in[i]->shape) || n->in[i]->layout == LAYOUT_LAST)
        dims_of(n->in[i], chw), n->in[i] = reordered(g, n->in[i], to, chw);
}

/* ------------------------------------------------------------------------------- parameters */

static void conv_weight(Param *p)
{
    const int64_t *d = p->file.dim; /* O, I, R, S -> O, R, S, I */

    p->naxis = 4;
    p->axis[0] = (Axis){d[0], 1, d[1] * d[2] * d[3], 0};
    p->axis[1] = (Axis){d[1], 1, 1, 0};
    p->axis[2] = (Axis){d[2], 1, d[3] * d[1], 0};
    p->axis[3] = (Axis){d[3], 1, d[1], 0};
    p->count_memory = d[0] * d[1] * d[2] * d[3];
}

/* (O, K) -> [O / P panels][K][P]; K in (H, W, C) order when the input is an image so stored. */
static void dense_weight(Param *p, const int64_t chw[3], bool flat, int64_t panel)
{
    const int64_t o = p->file.dim[0], k = p->file.dim[1];

    p->axis[0] = (Axis){o, panel, k * panel, 1};
    p->count_memory = (o + panel - 1) / panel * k * panel;
    if (!flat) {
        p->naxis = 2;
        p->axis[1] = (Axis){k, 1, panel, 0};
        return;
    }
    p->naxis = 4;
    p->axis[1] = (Axis){chw[0], 1, panel, 0};
    p->axis[2] = (Axis){chw[1], 1, chw[2] * chw[0] * panel, 0};
    p->axis[3] = (Axis){chw[2], 1, chw[0] * panel, 0};
}

/* The parameter behind a layer's weights: what they are folded with, or the copy in two bytes. */
static Node *weights(Node *w)
{
    while (node_is(w, "batch_fold") || node_is(w, "convert"))
        w = w->in[0];
    return w;
}

/* Outputs that lie side by side in dense weights. */
static int64_t panel(const Options *o)
{
    return target_of(o).packs ? 2 * o->vector : 1;
}

/* Evaluation uses the training graph's parameters where they are. */
static bool from_peer(const Graph *g, Node *w)
{
    for (int i = 0; g->peer && i < g->peer->nparam; i++) {
        const Param *p = g->peer->param[i];
        if (!strcmp(p->name, w->param->name)) {
            w->param->naxis = p->naxis, w->param->count_memory = p->count_memory;
            memcpy(w->param->axis, p->axis, sizeof p->axis);
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------------------- rules by op */

/* The input order of a weight that from_peer laid out: what dense_weight did there. */
static void order_from_axes(Node *w)
{
    const Param *p = w->param;

    w->mark = p->naxis == 4 ? 2 : 1;
    for (int i = 0; i < 3 && w->mark == 2; i++)
        w->flat[i] = p->axis[i + 1].n;
}

/* Every layer with the weight w reads a vector a sample. The rows of a sequence are reordered by nobody: in a scan the weight's
 * gradient reads the sequence of what each step has read, as it counts in the language. */
static bool of_vectors(const Graph *g, const Node *w)
{
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        const int at = node_is(n, "dense") ? 1 : node_is(n, "dense_dx") ? 0 : -1;
        if (at >= 0 && weights(n->in[at]) == w && (n->loop || n->shape.rank != 1))
            return false;
    }
    return true;
}

/* A dense layer's weight takes its first reader's input order, in evaluation that of training,
 * whose reader may see another one: dropout asks for ROW, and evaluation has none.  The flag is
 * kept in the node's mark and flat. */
static void dense_forward(Graph *g, Node *n, const Options *o)
{
    Node *w = weights(n->in[1]);
    int64_t chw[3];
    const bool last = is_last(n->in[0]);

    if (!w->mark && from_peer(g, w)) {
        order_from_axes(w);
    } else if (!w->mark) {
        w->mark = last && of_vectors(g, w) ? 2 : 1;
        if (last)
            memcpy(w->flat, n->in[0]->flat, sizeof w->flat);
        dense_weight(w->param, w->flat, w->mark == 2, panel(o));
        if (last == (w->mark == 2))
            return;
    }
    if (last || w->mark == 2) { /* others than that reader follow it */
        Node *x = n->in[0];
        memcpy(chw, w->mark == 2 ? w->flat : x->flat, sizeof chw);
        n->in[0] = reordered(g, x, w->mark == 2 ? LAYOUT_LAST : LAYOUT_ROW, chw);
        for (int i = 0; i < g->nnode; i++) /* its weight gradient reads the same x */
            if (node_is(g->node[i], "dense_dw") && g->node[i]->in[0] == x &&
                g->node[i]->span.line == n->span.line && g->node[i]->span.col == n->span.col)
                g->node[i]->in[0] = n->in[0];
    }
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Turning W over costs half a multiplication a weight and step, and saves dense_dx the sums of
 * lanes: as much as DX_SUM more outputs a sample (measured on AVX-512 and AVX2). */
enum { DX_SUM = 4 };

static bool turns(const Graph *g, const Node *dx)
{
    return node_attr(dx, "turned") || node_int(dx, "units") <= DX_SUM * g->recipe.batch * dense_rows(dx) * node_steps(dx);
}

/* The copy of w that dense_dx reads, one for all who do.  Reals as dense.h counts them:
 * DENSE_TURNED. */
static Node *turned(Graph *g, Node *w, const Node *dx, const Options *o)
{
    const int64_t count =
        round_up(node_attr(dx, "x_shape")->list[0], 2 * o->vector) * node_int(dx, "units");

    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], "dense_turn") && g->node[i]->in[0] == w)
            return g->node[i];
    Node *t = graph_add(g, op_find("dense_turn"), &w, 1, w->span);
    node_copy_attrs(g, t, dx);
    node_set_int(g, t, "count", count);
    t->shape = shape_make(false, NULL, &count, 1), t->dtype = DT_REAL;
    return t;
}

static void dense_backward(Graph *g, Node *n, const Options *o)
{
    if (node_is(n, "dense_dx")) {
        Node *w = weights(n->in[0]);
        if (w->param && !w->mark && !from_peer(g, w)) /* the model multiplies by it, turned */
            dense_weight(w->param, NULL, false, panel(o));
        w->mark += !w->mark;
        want(g, n, 1, LAYOUT_ROW);
        if (w->mark == 2)
            set_last(n, w->flat);
        if (n->nin > 2 && is_last(n->in[2]) != (w->mark == 2))
            n->in[2] = reordered(g, n->in[2], w->mark == 2 ? LAYOUT_LAST : LAYOUT_ROW,
                                 w->mark == 2 ? w->flat : n->in[2]->flat);
        if (target_of(o).packs && !node_attr(n, "wide") && turns(g, n))
            n->in[0] = turned(g, n->in[0], n, o);
    } else {
        want(g, n, 1, LAYOUT_ROW);
    }
}

/* The packed copy of w that the convolution `like` reads: one for all that read it alike. */
static Node *packed(Graph *g, Node *w, bool dx, const Node *like, const Options *o)
{
    const Attr *winograd = node_attr(like, "winograd");
    const int64_t m = winograd ? winograd->i : 0;

    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (n->nin == 1 && n->in[0] == w && node_is(n, "conv2d_pack") && node_int(n, "dx") == dx &&
            !node_attr(n, "pool") == !node_attr(like, "pool") &&
            (node_attr(n, "winograd") ? node_int(n, "winograd") : 0) == m)
            return g->node[i];
    }
    Node *p = graph_add(g, op_find("conv2d_pack"), &w, 1, w->span);
    const int64_t count = conv_packed_count(like, dx, m, o->vector);
    node_copy_attrs(g, p, like);
    node_set_int(g, p, "dx", dx);
    node_set_int(g, p, "count", count);
    p->shape = shape_make(false, NULL, &count, 1), p->dtype = DT_REAL;
    return p;
}

static void spatial(Graph *g, Node *n, const Options *o)
{
    const bool packs = target_of(o).packs;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->shape.batched && n->in[i]->dtype == DT_REAL)
            want(g, n, i, is_image(&n->in[i]->shape) ? LAYOUT_LAST : LAYOUT_ROW);
    if (node_is(n, "conv2d")) {
        Node *w = weights(n->in[1]);
        if (!w->mark++ && !from_peer(g, w))
            conv_weight(w->param);
        if (packs)
            n->in[1] = packed(g, n->in[1], false, n, o);
    } else if (!packs) {
        ; /* filters are read as they lie */
    } else if (node_is(n, "conv2d_dx") || node_is(n, "conv2d_pool_dx")) {
        n->in[0] = packed(g, n->in[0], true, n, o);
    }
    if (!packs) /* a library asks in which order its operands lie */
        node_set_int(g, n, "last", 1);
    if (is_image(&n->shape) && n->shape.batched)
        set_last(n, n->shape.dim);
}

static void view(Graph *g, Node *n)
{
    Node *x = n->in[0];
    int64_t chw[3];

    if (is_last(x) && n->shape.rank == 1) {
        dims_of(x, chw);
        set_last(n, chw);
    } else if (is_last(x) && is_image(&n->shape) && !is_image(&x->shape) &&
               !memcmp(x->flat, n->shape.dim, sizeof x->flat)) {
        set_last(n, n->shape.dim);
    } else {
        want(g, n, 0, LAYOUT_ROW);
    }
}

/* Elementwise: images stay LAST; flattened ones too unless operands disagree. What an image is broadcast with, and has another rank,
 * counts in the language's order. */
static void elementwise(Graph *g, Node *n)
{
    int last = 0, row = 0, k = -1;

    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->shape.batched && n->in[i]->shape.rank == n->shape.rank && n->shape.rank > 0) {
            if (is_last(n->in[i]))
                last++, k = i;
            else
                row++;
        } else if (shape_count(&n->in[i]->shape) > 1) {
            row++; /* a learned vector counts in the language's order */
        }
    if (!last && !is_image(&n->shape))
        return;
    if (is_image(&n->shape) && n->shape.batched) {
        for (int i = 0; i < n->nin; i++)
            want(g, n, i, is_image(&n->in[i]->shape) ? LAYOUT_LAST : LAYOUT_ROW);
        set_last(n, n->shape.dim);
    } else if (last && !row) {
        set_last(n, n->in[k]->flat);
    } else {
        for (int i = 0; i < n->nin; i++)
            want(g, n, i, LAYOUT_ROW);
    }
}

/* The same numbers in the same places, or by numbers that are counted in the language's order wherever they lie. */
static bool stays(const Node *n, const Options *o)
{
    return !target_of(o).packs && (node_is(n, "convert") || node_is(n, "dropout") || node_is(n, "dropout_dx"));
}

static void stay(Graph *g, Node *n)
{
    int64_t chw[3];

    if (!is_last(n->in[0]))
        return;
    dims_of(n->in[0], chw);
    set_last(n, chw);
    node_set_int(g, n, "last", 1);
}

static void one(Graph *g, Node *n, const Options *o)
{
    if (node_is(n, "input")) {
        if (is_image(&n->shape))
            set_last(n, n->shape.dim);
    } else if (stays(n, o)) {
        stay(g, n);
    } else if (node_is(n, "dense")) {
        dense_forward(g, n, o);
    } else if (node_is(n, "dense_dx") || node_is(n, "dense_dw")) {
        dense_backward(g, n, o);
    } else if (n->op->flags & OP_SPATIAL || node_is(n, "side")) {
        spatial(g, n, o);
    } else if (n->op->flags & OP_VIEW) {
        view(g, n);
    } else if (n->op->flags & OP_ELEMENTWISE || node_is(n, "bias")) {
        elementwise(g, n);
    } else if (node_is(n, "sum_to") || node_is(n, "amax_to")) {
        if (n->in[0]->shape.rank == 1 && shape_count(&n->shape) > 1)
            want(g, n, 0, LAYOUT_ROW);
        if (n->shape.batched && is_image(&n->shape))
            set_last(n, n->shape.dim);
    } else if (!node_updates(n) && !node_is(n, "relayout")) {
        for (int i = 0; i < n->nin; i++)
            want(g, n, i, LAYOUT_ROW);
    }
}

/* Everything reads the order it understands; images that a ROW op made are reordered by their
 * reader. */
void pass_layout(Graph *g, const Options *o, Diag *d)
{
    (void)d;
    const int n = g->nnode;
    Node **list = arena_alloc(g->arena, (size_t)n * sizeof *list);

    memcpy(list, g->node, (size_t)n * sizeof *list);
    for (int i = 0; i < n; i++)
        list[i]->mark = 0;
    for (int i = 0; i < n; i++)
        one(g, list[i], o);
    if (is_last(g->output)) {
        int64_t chw[3];
        dims_of(g->output, chw);
        g->output = reordered(g, g->output, LAYOUT_ROW, chw);
    }
    graph_sort(g);
}
