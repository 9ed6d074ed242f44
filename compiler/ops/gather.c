/* gather.c -- selects indices of one dimension, in any order and with repetition.
 *
 *   y[.., j, ..] = x[.., index[j], ..]      dx: for each index, the sum of its dy[.., j, ..], j
 *                                           in order
 *
 * With an index that is known at compile time, gather consists of slices (one for each run of
 * neighbours) and a concat, and uses their gradients.  A separate index for each sample (tokens,
 * class numbers or computed numbers) needs a kernel:
 *
 *   gather_at   x (N, .., K, ..)   index (N, J) or (N)
 *               y (N, .., J, ..), or (N, .., ..) without the dimension
 *
 * Real indices are rounded; an index outside of the dimension gives zeros.  The index has no
 * gradient.  For a table that all samples share, use embedding.
 */
#include "ops/along.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/price.h"

/* ---- indices known at compile time */

static bool gather_shape(Node *n, Diag *d)
{
    const Attr *index = node_attr(n, "index");
    Shape y = n->in[0]->shape;
    int axis;
    if (!check_real(n, 0, d) || !check_axis(n, "axis", y.rank, &axis, d))
        return false;
    if (index->nlist == 0) {
        diag_error(d, node_span(n, "index"), "gather has an empty index");
        diag_help(d, "index = [0, 2] takes the first and the third");
        return false;
    }
    for (int i = 0; i < index->nlist; i++) {
        if (index->list[i] >= 0 && index->list[i] < y.dim[axis])
            continue;
        diag_error(d, node_span(n, "index"), "gather index %lld is outside a dimension of %lld",
                   (long long)index->list[i], (long long)y.dim[axis]);
        check_note(n, 0, d);
        diag_help(d, "indices are 0 to %lld", (long long)y.dim[axis] - 1);
        return false;
    }
    y.dim[axis] = index->nlist;
    return check_result(n, y, d);
}

/* Joins slices of neighbouring indices. */
static Node *of_slices(Graph *g, const Node *n)
{
    Node *part[INTS_MAX], like = {.op = n->op, .span = n->span};
    const Attr *index = node_attr(n, "index");
    const int64_t axis = node_int(n, "axis"), rank = n->in[0]->shape.rank;
    int parts = 0;
    node_set_int(g, &like, "axis", axis < 0 ? axis + rank : axis);
    for (int i = 0, end; i < index->nlist; i = end) {
        for (end = i + 1; end < index->nlist && index->list[end] == index->list[end - 1] + 1;)
            end++;
        node_set_int(g, &like, "start", index->list[i]);
        node_set_int(g, &like, "size", end - i);
        part[parts++] = op_make_like(g, "slice", &like, 1, n->in[0]);
    }
    if (parts == 1)
        return part[0];
    Node *y = graph_add(g, op_find("concat"), part, parts, n->span);
    node_copy_attrs(g, y, &like);
    node_drop_attr(g->arena, y, "start");
    node_drop_attr(g->arena, y, "size");
    return y->op->shape(y, diag_new(g->arena, DIAG_NEVER)) ? y : NULL;
}

/* ---- indices of each sample */

static bool check_index(const Node *n, int64_t room, Diag *d)
{
    const Node *index = n->in[1];
    if (!index->shape.batched) {
        diag_error(d, node_span(n, "index"), "gather by %s, which is the same for all samples",
                   shape_text(diag_arena(d), &index->shape));
        check_note(n, 1, d);
        diag_help(d, "an index tensor has values for each sample; write known indices as a list: "
                     "[0, 2]");
        return false;
    }
    if (!node_attr(index, "vocab") || node_int(index, "vocab") <= room)
        return true;
    diag_error(d, node_span(n, "index"),
               "gather takes from a dimension of %lld, but the data's tokens are 0 to %lld",
               (long long)room, (long long)node_int(index, "vocab") - 1);
    check_note(n, 0, d);
    return false;
}

static bool check_source(const Node *n, Diag *d)
{
    if (n->in[0]->shape.batched)
        return check_real(n, 0, d);
    diag_error(d, n->span, "gather by a tensor needs an input with samples, got %s",
               shape_text(diag_arena(d), &n->in[0]->shape));
    check_note(n, 0, d);
    diag_help(d, "embedding(tokens, vocab, width) looks up rows of a table that all samples share");
    return false;
}

/* Sets the shape: the dimensions of the index replace dimension `axis` of x.  If the index has one
 * dimension, this dimension keeps the letter of the old one. */
static bool gather_shape_at(Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape, *index = &n->in[1]->shape;
    int axis;
    if (!check_source(n, d) || !check_axis(n, "axis", x->rank, &axis, d) ||
        !check_index(n, x->dim[axis], d))
        return false;
    const int rank = x->rank - 1 + index->rank, after = axis + index->rank;
    if (rank > SHAPE_MAX) {
        diag_error(d, n->span, "gather of %s by %s would have more than %d dimensions",
                   shape_text(diag_arena(d), x), shape_text(diag_arena(d), index), SHAPE_MAX);
        check_note(n, 0, d);
        check_note(n, 1, d);
        return false;
    }
    Shape y = shape_make(true, NULL, x->dim, rank);
    for (int i = 0; i < rank; i++) {
        const bool own = i < axis || i >= after, single = index->rank == 1;
        const int from = i < after ? i : i - index->rank + 1;
        y.dim[i] = own ? x->dim[from] : index->dim[i - axis];
        y.axis[i] = own || single ? x->axis[from] : index->axis[i - axis];
    }
    return check_result(n, y, d);
}

static void gather_gradient(Grad *gr, Node *n, Node *dy)
{
    const Shape *x = &n->in[0]->shape;
    Node like = {.op = n->op, .span = n->span};
    if (!grad_wanted(gr, n->in[0]))
        return;
    node_copy_attrs(grad_graph(gr), &like, n);
    node_set_ints(grad_graph(gr), &like, "x_shape", x->dim, x->rank);
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "gather_at_dx", &like, 2, n->in[1], dy));
}

static bool gather_shape_dx(Node *n, Diag *d)
{
    const Attr *x = node_attr(n, "x_shape");
    return check_result(n, shape_make(true, NULL, x->list, x->nlist), d);
}

/* The kernel copies or adds rows. */
static void gather_price(const Node *n, const Market *m, Price *p)
{
    const Node *y = node_is(n, "gather_at") ? n : n->in[1];
    const double numbers = (double)(shape_count(&y->shape) * m->n);
    p->values = 2 * numbers * m->real;
    p->cycles = 20 + 3 * numbers / m->lanes;
    if (y != n) { /* dx is filled with zeros first */
        const double all = (double)(shape_count(&n->shape) * m->n);
        p->values += all * m->real, p->cycles += all / m->lanes;
    }
    price_stream(p, m, p->values, p->values);
}

static void gather_call(const Node *n, Call *c, const char *fn, const Shape *x, const Node *index)
{
    const Along a = along_of(x, along_index(node_int(n, "axis"), x->rank), 1);
    call_kernel(c, fn);
    call_out(c, n);
    call_in(c, n->in[0]);
    call_in(c, n->in[1]);
    Sizes *s = sizes_new(c->arena, "Gather");
    sizes_int(s, "n", c->n);
    sizes_int(s, "outer", a.outer);
    sizes_int(s, "k", a.k);
    sizes_int(s, "inner", a.inner);
    sizes_int(s, "places", shape_count(&index->shape));
    sizes_bool(s, "numbers", index->dtype == DT_REAL);
    call_sizes(c, s);
}

static void gather_kernel(const Node *n, Call *c)
{
    gather_call(n, c, "gather", &n->in[0]->shape, n->in[1]);
}

static void gather_kernel_dx(const Node *n, Call *c)
{
    gather_call(n, c, "gather_dx", &n->shape, n->in[0]);
}

/* ---- the choice between both */

static Node *gather_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                          Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    (void)path; /* gather has no parameters */
    node_copy_attrs(g, &probe, attrs);
    if (nx == 1)
        return gather_shape(&probe, d) ? of_slices(g, &probe) : NULL;
    if (!gather_shape_at(&probe, d))
        return NULL;
    node_drop_attr(g->arena, &probe, "index");
    return op_make_like(g, "gather_at", &probe, 2, x[0], x[1]);
}

const Op op_gather[] = {
    {.name = "gather",
     .brief = "chosen elements of one dimension, in any order",
     .shapes =
         "x (N, .., K, ..)   index: a list of J numbers, or (N, J) or (N)   y (N, .., J, ..)\n"
         "index (N): y (N, .., ..), without the dimension",
     .formula = "y[.., j, ..] = x[.., index[j], ..]",
     .derivative = "dx[.., k, ..] = sum over j with index[j] = k of dy[.., j, ..]",
     .note =
         "An index that the network computes is rounded to a whole number. An index outside of the "
         "dimension gives zeros. No gradient flows to the index. embedding looks up the rows of a "
         "table "
         "that all samples share.",
     .arg = {{"x", ARG_TENSOR, NULL, "a tensor"},
             {"index", ARG_PLACES, NULL,
              "the indices from 0, a list of at most 16; or a tensor (N, J) or (N), each sample's "
              "own"},
             {"axis", ARG_INT, "0", "the dimension, without the batch; -1 is the last"}},
     .shape = gather_shape,
     .build = gather_build,
     .example = "# Steps of a sequence, one of them twice; features in another order; steps that "
                "the network computes;\n"
                "# in the loss, the number at the class of each sample.\n"
                "model example(x: f32[5, 6]) {\n"
                "    h = dense(x, 4) |> tanh\n"
                "    h = gather(h, [4, 0, 1, 4]) * gather(h, [1, 2, 3, 4])\n"
                "    h = gather(h, [3, 1, 0, 2], axis = -1) |> sigmoid\n"
                "    place = slice(x, axis = -1, start = 0, size = 1) |> flatten\n"
                "    h = concat(flatten(h), gather(h, 2 + 2 * place) |> flatten)\n"
                "    return dense(h, 3)\n"
                "}\n" EXAMPLE_RECIPE("log(sum(exp(output), axes = [0])) - gather(output, label)")},
    {.name = "gather_at",
     .brief = "elements of one dimension, at places that each sample chooses",
     .arg = {{"x", ARG_TENSOR, NULL, "a value of each sample"},
             {"index", ARG_TENSOR, NULL, "places (N, J) or (N)"},
             {"axis", ARG_INT, NULL, "the dimension"}},
     .flags = OP_HIDDEN,
     .shape = gather_shape_at,
     .gradient = gather_gradient,
     .price = gather_price,
     .kernel = gather_kernel},
    {.name = "gather_at_dx",
     .brief = "gradient of gather_at",
     .arg = {{"index", ARG_TENSOR, NULL, "as above"},
             {"dy", ARG_TENSOR, NULL, "gradient of the result"},
             {"axis", ARG_INT, NULL, "as above"},
             {"x_shape", ARG_INTS, NULL, "of x"}},
     .flags = OP_HIDDEN,
     .shape = gather_shape_dx,
     .price = gather_price,
     .kernel = gather_kernel_dx},
    {0}};
