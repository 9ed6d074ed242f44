/* embedding.c -- a learned vector for each token, and for each position.
 *
 *   embedding   y[t] = w[token[t]]           token (N, T) or (N)   w (V, F)   y (N, T, F) or (N, F)
 *               dw[v] = sum over the samples and t with token[t] = v of dy[t], in that order
 *   position    y[t] = x[t] + w[t]           x, y (N, T, F)        w (T, F)
 *
 * An optimizer also updates rows that no token of the batch uses: their gradient is 0, but momentum
 * and decay still change them.  `lazy = true` skips such rows: the result differs, and steps with
 * large tables are faster.
 *
 * The token `padding` gives zeros; its row begins with zeros and is not trained.  A table that a
 * dense product uses as well (tied weights: matmul(h, tokens.weight, transpose_b = true)) is
 * stored in the panels of that product, and the kernels read rows from the panels.
 */
#include "ops/embedding.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/price.h"
#include "runtime/constants.h"

static bool embedding_shape(Node *n, Diag *d)
{
    if (!check_numbers(n, 0, d) || !check_int(n, "vocab", 1, d) || !check_int(n, "width", 1, d) ||
        !check_vocab(n, 0, "vocab", d))
        return false;
    const Attr *padding = node_attr(n, "padding");
    if (padding && (padding->i < 0 || padding->i >= node_int(n, "vocab"))) {
        diag_error(d, node_span(n, "padding"), "embedding padding is %lld, outside 0 to %lld",
                   (long long)padding->i, (long long)node_int(n, "vocab") - 1);
        return false;
    }
    Shape y = n->in[0]->shape;
    if (y.rank > 1) {
        diag_error(d, n->span, "embedding needs tokens (N, T) or (N), got %s",
                   shape_text(diag_arena(d), &y));
        check_note(n, 0, d);
        return false;
    }
    const int64_t dim[2] = {y.rank ? y.dim[0] : node_int(n, "width"), node_int(n, "width")};
    return check_result(n, shape_make(true, y.rank ? "TF" : "F", dim, y.rank + 1), d);
}

static Node *embedding_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                             Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    node_copy_attrs(g, &probe, attrs);
    if (!embedding_shape(&probe, d))
        return NULL;
    const int64_t dim[2] = {node_int(attrs, "vocab"), node_int(attrs, "width")};
    Node *w = graph_param(g, d, arena_printf(g->arena, "%s.weight", path),
                          shape_make(false, "OI", dim, 2), NULL, attrs->span);
    if (!w)
        return NULL;
    const Attr *lazy = node_attr(attrs, "lazy");
    w->param->lazy = lazy && lazy->i;
    w->param->blank = node_attr(attrs, "padding") ? node_int(attrs, "padding") + 1 : 0;
    Node *y = op_make_like(g, "embedding", attrs, 2, x[0], w);
    y->name = path;
    return y;
}

static void embedding_gradient(Grad *gr, Node *n, Node *dy)
{
    if (grad_wanted(gr, n->in[1]))
        grad_add(gr, n->in[1],
                 op_make_like(grad_graph(gr), "embedding_dw", n, 3, n->in[0], dy, n->in[1]));
}

static bool embedding_shape_dw(Node *n, Diag *d)
{
    return check_result(n, n->in[2]->shape, d);
}

/* The kernel copies or adds one row after another. */
static void embedding_price(const Node *n, const Market *m, Price *p)
{
    const double numbers = (double)(shape_count(&n->in[0]->shape) * m->n * node_int(n, "width"));
    p->values = 2 * numbers * m->real;
    p->cycles = 20 + 3 * numbers / m->lanes;
    price_stream(p, m, p->values, p->values);
}

int64_t embedding_units(const Node *n)
{
    const int64_t width = n->shape.dim[1], fit = 8192 / width;
    return ceil_div(n->shape.dim[0], fit < 16 ? 16 : fit / 16 * 16);
}

/* Each unit reads all tokens; all units together read weights, states and gradients once. */
Price embedding_price_update(const Node *n, const Market *m, int64_t samples, int states)
{
    const double table = (double)(shape_count(&n->shape) * m->real),
                 tokens = (double)(samples * shape_count(&n->in[0]->shape));
    Price p = {.weights = 2 * (1 + states) * table,
               .values = tokens * (double)(n->shape.dim[1] * m->real)};
    p.cycles = (double)embedding_units(n) * (tokens + 200) +
               table / m->real / m->lanes * 8 / m->core->fma + p.values / m->real / m->lanes * 2;
    price_stream(&p, m, p.weights, (1 + states) * table);
    price_stream(&p, m, p.values, p.values);
    return p;
}

/* Whether pass layout has stored the table in panels, so that equal features of neighbouring
 * rows are adjacent. */
static bool in_panels(const Param *p)
{
    return p && p->naxis == 2 && p->axis[0].inner == 1 && p->axis[0].block > 1 &&
           p->axis[1].outer > 1;
}

/* w is the table; its memory layout shows whether it lies in panels. */
static void embedding_call(const Node *n, Call *c, const char *fn, const Node *w)
{
    const Param *p = w->param;
    const Attr *padding = node_attr(n, "padding");
    call_kernel(c, fn);
    c->parts = true;
    call_out(c, n);
    call_in(c, n->in[0]);
    call_in(c, n->in[1]);
    Sizes *s = sizes_new(c->arena, "Embedding");
    sizes_int(s, "rows", c->n * shape_count(&n->in[0]->shape));
    sizes_int(s, "width", node_int(n, "width"));
    sizes_int(s, "padding", padding ? padding->i : -1);
    sizes_bool(s, "panels", in_panels(p));
    call_sizes(c, s);
}

static void embedding_kernel(const Node *n, Call *c)
{
    embedding_call(n, c, "embedding", n->in[1]);
}

static void embedding_kernel_dw(const Node *n, Call *c)
{
    embedding_call(n, c, "embedding_dw", n->in[2]);
}

static bool embedding_shape_position(Node *n, Diag *d)
{
    if (!check_real(n, 0, d))
        return false;
    if (n->in[0]->shape.rank == 2)
        return check_result(n, n->in[0]->shape, d);
    diag_error(d, n->span, "position needs sequences (N, T, F), got %s",
               shape_text(diag_arena(d), &n->in[0]->shape));
    check_note(n, 0, d);
    return false;
}

static Node *embedding_build_position(Graph *g, Node *const *x, int nx, const Node *attrs,
                                      const char *path, Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    if (!embedding_shape_position(&probe, d))
        return NULL;
    Node *w = graph_param(g, d, arena_printf(g->arena, "%s.weight", path),
                          shape_make(false, "TF", x[0]->shape.dim, 2), NULL, attrs->span);
    return w ? op_make(g, "add", attrs->span, 2, x[0], w) : NULL;
}

/* The stack of embedding_dw_update (runtime/cpu/embedding.h) holds at least 16 rows for each level
 * of a tree if the table is narrow enough (passes/schedule.c), else one row. */
static int64_t embedding_stack_bytes(const Node *n, int64_t chunk)
{
    enum { WIDE = 1024 };
    const int64_t width = node_int(n, "width"), row = width * (int64_t)sizeof(double);
    (void)chunk;
    return width <= WIDE ? RT_EMBEDDING_LEVELS * RT_EMBEDDING_ROWS * (row + 1) : row;
}

const Op op_embedding[] =
    {{.name = "embedding",
      .brief = "looks up a learned vector for each token",
      .shapes =
          "tokens (N, T) or (N)   weight (V, F)   y (N, T, F) or (N, F)   V = vocab   F = width",
      .formula = "y[t] = weight[tokens[t]]   0 for the token `padding`",
      .derivative = "dweight[v] = sum over samples and t with tokens[t] = v of dy[t]",
      .note = "An optimizer with momentum, averages or weight decay changes every row of the table "
              "in every "
              "step. With lazy = true it changes only rows whose gradient is not 0, which is "
              "another update rule. lazy cannot be combined with tied weights.",
      .arg = {{"tokens", ARG_TENSOR, NULL, "tokens (N, T), or class numbers (N)"},
              {"vocab", ARG_INT, NULL, "number of different tokens V, at least 1"},
              {"width", ARG_INT, NULL, "numbers in a vector F, at least 1"},
              {"padding", ARG_INT, "none",
               "the token whose vector is 0 and is not trained, 0 to vocab - 1; default: none"},
              {"lazy", ARG_BOOL, "none",
               "the optimizer changes only rows whose gradient is not 0; default: false"}},
      .flags = OP_POSITION,
      .product = PRODUCT_TABLE,
      .role = ROLE_Y,
      .layer = "embedding",
      .shape = embedding_shape,
      .build = embedding_build,
      .gradient = embedding_gradient,
      .price = embedding_price,
      .kernel = embedding_kernel,
      .example = "# The table of the first layer is the weight of the last: tied weights.\n"
                 "model example(text: i32[5], vocab: int) {\n"
                 "    tokens = embedding(vocab, 6, padding = 0)\n"
                 "    h = tokens(text) |> position |> tanh\n"
                 "    h = h * embedding(text, vocab, 6)\n"
                 "    return matmul(h, tokens.weight, transpose_b = true)\n"
                 "}\n"
                 "\ntrain example {\n"
                 "    data      = synthetic(samples = 64, test_samples = 16, vocab = 7)\n"
                 "    loss      = softmax_cross_entropy\n"
                 "    optimizer = sgd(lr = 0.05)\n"
                 "    batch     = 8\n"
                 "    epochs    = 1\n"
                 "}\n"},
     {.name = "embedding_dw",
      .brief = "gradient of embedding for its table",
      .arg = {{"tokens", ARG_TENSOR, NULL, "as above"},
              {"dy", ARG_TENSOR, NULL, "gradient of the result"},
              {"w", ARG_TENSOR, NULL, "the table: for its shape"},
              {"vocab", ARG_INT, NULL, "as above"},
              {"width", ARG_INT, NULL, "as above"},
              {"padding", ARG_INT, "none", "as above"},
              {"lazy", ARG_BOOL, "none", "as above"}},
      .flags = OP_HIDDEN | OP_SUM,
      .product = PRODUCT_TABLE,
      .role = ROLE_DW,
      .shape = embedding_shape_dw,
      .price = embedding_price,
      .kernel = embedding_kernel_dw,
      .stack_bytes = embedding_stack_bytes},
     {.name = "position",
      .brief = "adds a learned vector to each step of a sequence",
      .shapes = "x, y (N, T, F)   weight (T, F)",
      .formula = "y[t] = x[t] + weight[t]",
      .derivative = "dx = dy\n"
                    "dweight[t] = sum over samples of dy[t]",
      .arg = {{"x", ARG_TENSOR, NULL, "sequences (N, T, F)"}},
      .layer = "position",
      .shape = embedding_shape_position,
      .build = embedding_build_position,
      .example = "model example(x: f32[5, 6]) {\n"
                 "    h = dense(x, 4) |> position |> tanh\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
