/* layout.c -- stores images with channels innermost, (H, W, C), conv weights as (O, R, S, I), and
 * dense weights in panels.
 *
 * A flattened image keeps its (H, W, C) order if a dense layer reads it: the weight has this order
 * in memory, and files keep (C, H, W).  Ops that need the order of the language read a copy, made
 * by op relayout.  Parameters have the layout of their kernels; Param.axis maps it to files.  With
 * --plain all values are row-major (N, C, H, W), and weights are as in files.
 *
 * On a GPU this pass runs if libraries compute convolutions with rounded factors (TARGET_TENSOR).
 * Then values have the same orders, but no weight is packed or transposed, and dense weights have
 * no panels.  Ops whose kernels take either order get the attribute `last`.
 */
#include "base/round.h"
#include "ir/target.h"
#include "ops/conv_price.h"
#include "ops/dense_price.h"
#include "passes/pass.h"
#include <string.h>

/* Whether LAST and ROW are the same order of bytes. */
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

/* The value of n in the order `to`: n itself, or a copy if n has the other order.  The copy reads n
 * from memory, so n cannot be inlined. */
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

/* ---- parameters */

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

/* (O, K) -> [O / P panels][K][P].  K is in (H, W, C) order if the input is an image in layout
 * LAST. */
static void dense_weight(Param *p, const int64_t chw[3], bool flat, int64_t panel)
{
    const int64_t o = p->file.dim[0], k = p->file.dim[1];

    p->axis[0] = (Axis){o, panel, k * panel, 1};
    p->count_memory = round_up(o, panel) * k;
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

/* The parameter from which the weights of a layer come: they can be a copy in a two-byte type, or
 * with batch_norm folded in. */
static Node *weights(Node *w)
{
    while (w->op->flags & OP_CAST)
        w = w->in[0];
    return w;
}

/* Number of neighbouring outputs in a panel of dense weights. */
static int64_t panel(const Options *o)
{
    return target_of(o).packs ? 2 * o->vector : 1;
}

/* Copies the layout of the parameter w from the training graph, for evaluation; false if there is
 * no training graph with it. */
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

/* ---- rules for kinds of ops */

/* Sets mark and flat of a weight whose layout from_peer has copied, as dense_order did in
 * training. */
static void order_from_axes(Node *w)
{
    const Param *p = w->param;

    w->mark = p->naxis == 4 ? 2 : 1;
    for (int i = 0; i < 3 && w->mark == 2; i++)
        w->flat[i] = p->axis[i + 1].n;
}

/* Whether each layer with the weight w reads one vector for each sample.  No pass reorders the rows
 * of a sequence: in a scan, the gradient of the weight reads the sequence of the inputs of all
 * steps, in the order of the language. */
static bool of_vectors(const Graph *g, const Node *w)
{
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        const int at = n->op->product == PRODUCT_DENSE ? op_weights(n) : -1;
        if (at >= 0 && weights(n->in[at]) == w && (n->loop || n->shape.rank != 1))
            return false;
    }
    return true;
}

/* The weight of a dense layer has the input order of its first reader.  In evaluation, it keeps the
 * order of training, also where the input of the reader differs: dropout needs ROW, and evaluation
 * has no dropout.  The mark of the weight is 1 for ROW and 2 for LAST; flat has the dimensions. */
static void dense_order(Graph *g, Node *n, const Options *o)
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
    if (last || w->mark == 2) { /* later readers use the order of the first one */
        Node *x = n->in[0];
        memcpy(chw, w->mark == 2 ? w->flat : x->flat, sizeof chw);
        n->in[0] = reordered(g, x, w->mark == 2 ? LAYOUT_LAST : LAYOUT_ROW, chw);
        for (int i = 0; i < g->nnode; i++) /* the gradient of its weight reads the same x */
            if (op_computes(g->node[i], PRODUCT_DENSE, ROLE_DW) && g->node[i]->in[0] == x &&
                g->node[i]->span.line == n->span.line && g->node[i]->span.col == n->span.col)
                g->node[i]->in[0] = n->in[0];
    }
}

/* The copy of the dense weights w in two bytes: for y, or (dx) for the gradient of the input. */
static Node *half_packed(Graph *g, Node *w, bool dx, const Node *like)
{
    const Op *op = op_find("dense_pack");
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->op == op && g->node[i]->in[0] == w && node_int(g->node[i], "dx") == dx)
            return g->node[i];
    const int64_t k = node_attr(like, "x_shape")->list[0], units = node_int(like, "units"),
                  count = dx ? dense_half_count(units, k) : dense_half_count(k, units);
    Node *p = graph_add(g, op, &w, 1, w->span);
    node_copy_attrs(g, p, like);
    node_set_int(g, p, "dx", dx);
    node_set_int(g, p, "count", count);
    p->shape = shape_make(false, NULL, &count, 1), p->dtype = DT_REAL;
    p->half = like->in[dx]->half;
    return p;
}

static void dense_forward(Graph *g, Node *n, const Options *o)
{
    dense_order(g, n, o);
    if (target_of(o).few_half && op_reads_half(n))
        n->in[1] = half_packed(g, weights(n->in[1]), false, n);
}

/* Transposing W costs half a multiplication for each weight and step.  Then dense_dx needs no sums
 * of lanes, which cost as much as DX_SUM outputs for each sample (measured on AVX-512 and AVX2). */
enum { DX_SUM = 4 };

static bool turns(const Graph *g, const Node *dx)
{
    return node_attr(dx, "transposed") ||
           node_int(dx, "units") <= DX_SUM * g->recipe.batch * dense_rows(dx) * node_steps(dx);
}

/* The transposed copy of w, one for all dense_dx that read w.  It has DENSE_TRANSPOSED reals
 * (runtime/cpu/dense.h). */
static Node *transposed(Graph *g, Node *w, const Node *dx, const Options *o)
{
    const int64_t count =
        round_up(node_attr(dx, "x_shape")->list[0], 2 * o->vector) * node_int(dx, "units");

    const Op *op = op_find("dense_transpose");
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->op == op && g->node[i]->in[0] == w)
            return g->node[i];
    Node *t = graph_add(g, op, &w, 1, w->span);
    node_copy_attrs(g, t, dx);
    node_set_int(g, t, "count", count);
    t->shape = shape_make(false, NULL, &count, 1), t->dtype = DT_REAL;
    return t;
}

static void dense_backward(Graph *g, Node *n, const Options *o)
{
    if (op_computes(n, PRODUCT_DENSE, ROLE_DX)) {
        Node *w = weights(n->in[0]);
        /* no dense layer reads w: the model has a matmul with w */
        if (w->param && !w->mark && !from_peer(g, w))
            dense_weight(w->param, NULL, false, panel(o));
        w->mark += !w->mark;
        want(g, n, 1, LAYOUT_ROW);
        if (w->mark == 2)
            set_last(n, w->flat);
        if (n->nin > 2 && is_last(n->in[2]) != (w->mark == 2))
            n->in[2] = reordered(g, n->in[2], w->mark == 2 ? LAYOUT_LAST : LAYOUT_ROW,
                                 w->mark == 2 ? w->flat : n->in[2]->flat);
        if (target_of(o).few_half && op_reads_half(n))
            n->in[0] = half_packed(g, w, true, n);
        else if (target_of(o).packs && !node_attr(n, "wide") && turns(g, n))
            n->in[0] = transposed(g, n->in[0], n, o);
    } else {
        want(g, n, 1, LAYOUT_ROW);
    }
}

/* The packed copy of w for the convolution `like`: one for all convolutions that need the same
 * order. */
static Node *packed(Graph *g, Node *w, bool dx, const Node *like, const Options *o)
{
    const Attr *winograd = node_attr(like, "winograd");
    const int64_t m = winograd ? winograd->i : 0;
    const Half half = op_reads_half(like) ? like->in[dx]->half : HALF_NONE;
    const Op *op = op_find("conv2d_pack");

    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (n->op == op && n->in[0] == w && node_int(n, "dx") == dx && n->half == half &&
            !node_attr(n, "pool") == !node_attr(like, "pool") &&
            (node_attr(n, "winograd") ? node_int(n, "winograd") : 0) == m)
            return g->node[i];
    }
    Node *p = graph_add(g, op, &w, 1, w->span);
    const int64_t count =
        half ? conv_half_count(like, dx) : conv_packed_count(like, dx, m, o->vector);
    node_copy_attrs(g, p, like);
    node_set_int(g, p, "dx", dx);
    node_set_int(g, p, "count", count);
    p->shape = shape_make(false, NULL, &count, 1), p->dtype = DT_REAL, p->half = half;
    return p;
}

static void spatial(Graph *g, Node *n, const Options *o)
{
    const bool packs = target_of(o).packs;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->shape.batched && n->in[i]->dtype == DT_REAL)
            want(g, n, i, is_image(&n->in[i]->shape) ? LAYOUT_LAST : LAYOUT_ROW);
    if (op_computes(n, PRODUCT_CONV, ROLE_Y)) {
        Node *w = weights(n->in[1]);
        if (!w->mark++ && !from_peer(g, w))
            conv_weight(w->param);
        if (packs)
            n->in[1] = packed(g, n->in[1], false, n, o);
    } else if (packs && op_weights(n) == 0) { /* conv2d_dx, also through a fused pool */
        Node *w = weights(n->in[0]); /* of a conv_transpose2d: no conv2d has set its layout */
        if (w->param && op_computes(n, PRODUCT_CONV, ROLE_DX) && !w->mark++ && !from_peer(g, w))
            conv_weight(w->param);
        n->in[0] = packed(g, n->in[0], true, n, o);
    }
    if (!packs) /* a library must know the order of its operands */
        node_set_int(g, n, "last", 1);
    if (is_image(&n->shape) && n->shape.batched)
        set_last(n, n->shape.dim);
}

/* A view keeps layout LAST between an image and its flattened form; otherwise it reads ROW. */
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

/* Turns a transpose between a value (H, W, C) in layout ROW and an image (C, H, W) in layout LAST
 * into a view, because both have the same bytes: the sequences of conv1d.  Returns false if n is no
 * such transpose. */
static bool transpose_view(Graph *g, Node *n)
{
    const bool image = n->shape.batched && node_transposes(n, 2, 0, 1) && !is_last(n->in[0]);
    const bool rows =
        n->shape.batched && node_transposes(n, 1, 2, 0) && n->in[0]->layout == LAYOUT_LAST;

    if (!image && !rows)
        return false;
    n->op = op_find("reshape");
    node_drop_attr(g->arena, n, "axes");
    node_set_ints(g, n, "shape", n->shape.dim, n->shape.rank);
    if (image)
        set_last(n, n->shape.dim);
    return true;
}

/* Elementwise operations: images stay LAST.  Flattened images stay LAST unless operands disagree.
 * An operand of another rank, which is broadcast with an image, counts as ROW.  A constant needs no
 * copy: the loop writes it as a number. */
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
            row++; /* a parameter counts as ROW */
        }
    if (!last && !is_image(&n->shape))
        return;
    if (is_image(&n->shape) && n->shape.batched) {
        for (int i = 0; i < n->nin; i++)
            if (n->in[i]->op->leaf != LEAF_CONST)
                want(g, n, i, is_image(&n->in[i]->shape) ? LAYOUT_LAST : LAYOUT_ROW);
        set_last(n, n->shape.dim);
    } else if (last && !row) {
        set_last(n, n->in[k]->flat);
    } else {
        for (int i = 0; i < n->nin; i++)
            want(g, n, i, LAYOUT_ROW);
    }
}

/* Whether n keeps the layout of its input: a convert, and more operations on a GPU. */
static bool stays(const Node *n, const Options *o)
{
    return n->op->flags & OP_KEEPS_LAYOUT && (n->op->flags & OP_CAST || !target_of(o).packs);
}

static void stay(Graph *g, Node *n, const Options *o)
{
    int64_t chw[3];

    if (!is_last(n->in[0]))
        return;
    dims_of(n->in[0], chw);
    set_last(n, chw);
    if (!target_of(o).packs)
        node_set_int(g, n, "last", 1);
}

/* Applies the rule for the kind of op of n. */
static void one(Graph *g, Node *n, const Options *o)
{
    if (n->op->leaf == LEAF_INPUT) {
        if (is_image(&n->shape))
            set_last(n, n->shape.dim);
    } else if (stays(n, o)) {
        stay(g, n, o);
    } else if (transpose_view(g, n)) {
        return;
    } else if (op_computes(n, PRODUCT_DENSE, ROLE_Y)) {
        dense_forward(g, n, o);
    } else if (n->op->product == PRODUCT_DENSE) {
        dense_backward(g, n, o);
    } else if (n->op->flags & (OP_SPATIAL | OP_SIDE)) {
        spatial(g, n, o);
    } else if (n->op->flags & OP_VIEW) {
        view(g, n);
    } else if (n->op->flags & OP_MAP) {
        elementwise(g, n);
    } else if (n->op->flags & OP_REDUCE) {
        if (n->in[0]->shape.rank == 1 && shape_count(&n->shape) > 1)
            want(g, n, 0, LAYOUT_ROW);
        if (n->shape.batched && is_image(&n->shape))
            set_last(n, n->shape.dim);
    } else if (!(n->op->flags & OP_UPDATE)) {
        for (int i = 0; i < n->nin; i++)
            want(g, n, i, LAYOUT_ROW);
    }
}

/* Each op reads the order that its kernel supports.  If an op makes an image in layout ROW, its
 * readers reorder the image. */
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
