/* recurrent.c -- lstm, gru and rnn: layers over time, made of scans (scan.c).
 *
 *   lstm   i, f, g, o = W x + U h + b in this order (Keras's and cuDNN's)
 *          c = sigmoid(f) c + sigmoid(i) tanh(g)      h = sigmoid(o) tanh(c)
 *   gru    r, z, n in this order (cuDNN's; Keras has z, r, n)
 *          r, z = sigmoid(W x + U h + b)      h = n + z (h - n)
 *          reset "after":  n = tanh(Wn x + bn + r (Un h + d))       cuDNN, PyTorch, Keras since 2.1
 *          reset "before": n = tanh(Wn x + bn + Un (r h))           Cho et al. 2014, Keras before
 *   rnn    h = act(W x + U h + b)
 *
 *   x (N, T, I)   weight W (G H, I)   recurrent U (G H, H)   bias b (G H): the second bias of cuDNN
 *                 is zero here
 *   gru: candidate_bias d (H); with reset "before" recurrent (2 H, H) and candidate Un (H, H)
 *
 * mask (N, T): the new state is m times the result of the cell plus 1 - m times the old state,
 * so that a mask of 0 keeps the state, as in Keras.
 *
 * W x + b of all steps is one product before the loop.  U begins as an orthogonal matrix, and W as
 * the recipe says.  b begins with zeros, and its part for the forget gate with forget_bias.
 * Source: Hochreiter & Schmidhuber 1997; Gers et al. 2000 (forget gate); Cho et al. 2014.
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/scan.h"
#include <string.h>

typedef struct Layer {
    Graph *g;
    Diag *d;
    const Node *attrs;
    int64_t width;
    bool reversed;
    const char *path;   /* path of its parameters */
    Node *x, *first[2]; /* the sequence; the first states (NULL: zeros) */
    Node *given_mask;   /* (N, T); NULL: all steps count */
    Node *mask, *rest;  /* the mask and 1 - mask, (N, T, 1) */
    Node *all, *last;   /* results */
} Layer;

/* ---- small parts */

static Node *param(Layer *y, const char *name, int64_t rows, int64_t columns, const Init *init)
{
    const int64_t dim[2] = {rows, columns};
    return graph_param(y->g, y->d, arena_printf(y->g->arena, "%s.%s", y->path, name),
                       shape_make(false, columns ? "OI" : "O", dim, columns ? 2 : 1), init,
                       y->attrs->span);
}

static Node *recurrent_param(Layer *y, const char *name, int64_t rows)
{
    const Init init = {.kind = INIT_ORTHOGONAL, .a = 1};
    return param(y, name, rows, y->width, &init);
}

static Node *product(Layer *y, Node *x, Node *w)
{
    Node like = {.op = op_find("dense"), .span = y->attrs->span};
    node_set_int(y->g, &like, "units", w->shape.dim[0]);
    node_set_attr(y->g->arena, &like, (Attr){.key = "bias", .kind = ATTR_BOOL});
    return op_make_like(y->g, "dense", &like, 2, x, w);
}

static Node *make1(Layer *y, const char *op, Node *a)
{
    return op_make(y->g, op, y->attrs->span, 1, a);
}

static Node *make2(Layer *y, const char *op, Node *a, Node *b)
{
    return op_make(y->g, op, y->attrs->span, 2, a, b);
}

/* Gate k of z: the numbers k H .. (k + 1) H - 1. */
static Node *gate(Layer *y, Node *z, int k)
{
    Node like = {.op = op_find("slice"), .span = y->attrs->span};
    node_set_int(y->g, &like, "axis", 0);
    node_set_int(y->g, &like, "start", k * y->width);
    node_set_int(y->g, &like, "size", y->width);
    return op_make_like(y->g, "slice", &like, 1, z);
}

static Node *joined(Layer *y, int axis, Node *a, Node *b)
{
    Node like = {.op = op_find("concat"), .span = y->attrs->span};
    node_set_int(y->g, &like, "axis", axis);
    return op_make_like(y->g, "concat", &like, 2, a, b);
}

/* ---- cells: z is W x + b of the step; state[] holds the old states, then the new ones */

typedef struct Cell {
    const char *name;
    int gates, states;
    bool (*open)(Layer *y, Node **u); /* the parameters that the step reads */
    void (*step)(Layer *y, Node *z, Node *const *u, Node **state);
} Cell;

static bool open_plain(Layer *y, Node **u)
{
    const int gates = node_is(y->attrs, "lstm") ? 4 : 1;
    return (u[0] = recurrent_param(y, "recurrent", gates * y->width)) != NULL;
}

static void step_lstm(Layer *y, Node *z, Node *const *u, Node **state)
{
    z = make2(y, "add", z, product(y, state[0], u[0]));
    Node *i = make1(y, "sigmoid", gate(y, z, 0)), *f = make1(y, "sigmoid", gate(y, z, 1));
    Node *g = make1(y, "tanh", gate(y, z, 2)), *o = make1(y, "sigmoid", gate(y, z, 3));
    state[1] = make2(y, "add", make2(y, "mul", f, state[1]), make2(y, "mul", i, g));
    state[0] = make2(y, "mul", o, make1(y, "tanh", state[1]));
}

static void step_rnn(Layer *y, Node *z, Node *const *u, Node **state)
{
    const char *act = node_string(y->attrs, "activation");
    state[0] = make1(y, act, make2(y, "add", z, product(y, state[0], u[0])));
}

static bool before(const Layer *y)
{
    return !strcmp(node_string(y->attrs, "reset"), "before");
}

static bool open_gru(Layer *y, Node **u)
{
    const Init zero = {.kind = INIT_CONSTANT};
    u[0] = recurrent_param(y, "recurrent", (before(y) ? 2 : 3) * y->width);
    u[1] = before(y) ? recurrent_param(y, "candidate", y->width)
                     : param(y, "candidate_bias", y->width, 0, &zero);
    return u[0] && u[1];
}

static void step_gru(Layer *y, Node *z, Node *const *u, Node **state)
{
    Node *h = state[0], *v = product(y, h, u[0]);
    Node *r = make1(y, "sigmoid", make2(y, "add", gate(y, z, 0), gate(y, v, 0)));
    Node *k = make1(y, "sigmoid", make2(y, "add", gate(y, z, 1), gate(y, v, 1)));
    Node *n = before(y) ? product(y, make2(y, "mul", r, h), u[1])
                        : make2(y, "mul", r, make2(y, "add", gate(y, v, 2), u[1]));
    n = make1(y, "tanh", make2(y, "add", gate(y, z, 2), n));
    state[0] = make2(y, "add", n, make2(y, "mul", k, make2(y, "sub", h, n)));
}

static const Cell cells[] = {{"lstm", 4, 2, open_plain, step_lstm},
                             {"gru", 3, 1, open_gru, step_gru},
                             {"rnn", 1, 1, open_plain, step_rnn}};

static const Cell *cell_of(const Node *attrs)
{
    const Cell *c = cells;
    while (strcmp(c->name, attrs->op->name) != 0)
        c++;
    return c;
}

/* ---- a layer in one direction */

/* W x + b of all steps; NULL after an error. */
static Node *input(Layer *y, const Cell *c)
{
    const int64_t rows = c->gates * y->width;
    const bool lstm = !strcmp(c->name, "lstm");
    const Init bias = {.kind = lstm ? INIT_SECOND : INIT_CONSTANT,
                       .a = lstm ? node_float(y->attrs, "forget_bias") : 0,
                       .b = (double)y->width};
    Node *w = param(y, "weight", rows, y->x->shape.dim[1], NULL);
    Node *b = w ? param(y, "bias", rows, 0, &bias) : NULL;
    return b ? make2(y, "bias", product(y, y->x, w), b) : NULL;
}

/* The dropout of h, with one mask for all steps, drawn before the loop. */
static Node *dropped(Layer *y)
{
    const double rate = node_float(y->attrs, "recurrent_dropout");
    if (rate == 0 || !y->g->training)
        return NULL;
    Node like = {.op = op_find("dropout"), .span = y->attrs->span};
    Node *one = graph_const(y->g, 1, shape_make(true, "F", &y->width, 1), y->attrs->span);
    node_set_float(y->g, &like, "rate", rate);
    return like.op->build(y->g, &one, 1, &like, y->path, y->d);
}

/* A node of the layer for Loop.call: scripts and pictures have the whole layer as one call. */
static Node *loop_call(Layer *y)
{
    Arena *a = y->g->arena;
    Node *n = arena_alloc(a, sizeof *n);
    Node *const in[] = {y->x, y->first[0], y->first[1], y->given_mask};
    *n = (Node){.op = y->attrs->op, .name = y->path, .span = y->attrs->span, .shape = y->x->shape};
    node_copy_attrs(y->g, n, y->attrs);
    n->in = arena_alloc(a, sizeof in);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        if (in[i])
            n->in[n->nin++] = in[i];
    return n;
}

/* Makes m new + (1 - m) old, for each state. */
static void masked(Layer *y, Loop *l, Node *const *old, Node **state, int states)
{
    Node *m = scan_item(y->g, l, y->mask, y->attrs->span);
    Node *rest = scan_item(y->g, l, y->rest, y->attrs->span);
    for (int i = 0; i < states; i++)
        state[i] = make2(y, "add", make2(y, "mul", m, state[i]), make2(y, "mul", rest, old[i]));
}

static bool run(Layer *y)
{
    static const char *const name[] = {"h", "c"};
    const Cell *c = cell_of(y->attrs);
    Node *z = input(y, c), *u[2], *in[2], *state[2], *kept = dropped(y);

    if (!z || !c->open(y, u))
        return false;
    Loop *l = graph_loop(y->g, z->shape.dim[0], y->reversed, y->attrs->span);
    l->call = loop_call(y);
    l->every = node_attr(y->attrs, "recompute") ? node_int(y->attrs, "recompute") : 0;
    for (int i = 0; i < c->states; i++) {
        Node *zero = graph_const(y->g, 0, shape_make(true, "F", &y->width, 1), y->attrs->span);
        in[i] = state[i] = scan_state(y->g, l, y->first[i] ? y->first[i] : zero, y->attrs->span);
        state[i]->name = arena_printf(y->g->arena, "%s.%s", y->path, name[i]);
    }
    if (kept)
        state[0] = make2(y, "mul", state[0], kept);
    z = scan_item(y->g, l, z, y->attrs->span);
    z->name = arena_printf(y->g->arena, "%s.z", y->path);
    c->step(y, z, u, state);
    if (y->mask)
        masked(y, l, in, state, c->states);
    for (int i = 0; i < c->states; i++) {
        state[i]->name = in[i]->name;
        scan_next(y->g, in[i], state[i]);
    }
    y->all = scan_stack(y->g, state[0]);
    y->last = scan_last(y->g, in[0], y->attrs->span);
    return true;
}

/* ---- the ops */

static bool check_state(const Node *n, int i, Diag *d)
{
    const Shape *s = &n->in[i]->shape;
    if (s->batched && s->rank == 1 && s->dim[0] == node_int(n, "width") &&
        node_int(n, "layers") == 1 && !node_bool(n, "bidirectional"))
        return true;
    diag_error(d, n->span, "the first state of %s is (N, %lld), of one layer in one direction",
               n->op->name, (long long)node_int(n, "width"));
    check_note(n, i, d);
    return false;
}

static bool recurrent_check_mask(const Node *n, int i, Diag *d)
{
    const Shape *s = &n->in[i]->shape;
    if (s->batched && s->rank == 1 && s->dim[0] == n->in[0]->shape.dim[0] &&
        n->in[i]->dtype == DT_REAL)
        return true;
    diag_error(d, node_span(n, "mask"), "the mask of %s has one number for each step, (N, %lld)",
               n->op->name, (long long)n->in[0]->shape.dim[0]);
    check_note(n, 0, d);
    check_note(n, i, d);
    diag_help(d, "mask(text) computes it from tokens: 1, or 0 for padding");
    return false;
}

/* Index of the input that is an optional tensor; 0: it is absent. */
static int given(const Node *n, const char *key)
{
    static const char *const order[] = {"h", "c", "mask"};
    int i = 1;
    for (int k = 0; strcmp(order[k], key) != 0; k++)
        i += node_attr(n, order[k]) != NULL;
    return node_attr(n, key) ? i : 0;
}

static bool check(const Node *n, Diag *d)
{
    const double rate = node_float(n, "recurrent_dropout");
    if (node_loop(n->in[0])) {
        diag_error(d, n->span, "%s cannot be used in a scan: it is a scan itself", n->op->name);
        check_note(n, 0, d);
        diag_help(d, "collect the sequence with 'yield', and apply %s to it after the scan",
                  n->op->name);
        return false;
    }
    if (n->in[0]->shape.rank != 2) {
        diag_error(d, n->span, "%s needs sequences (N, T, F), got %s", n->op->name,
                   shape_text(diag_arena(d), &n->in[0]->shape));
        check_note(n, 0, d);
        return false;
    }
    if (!check_real(n, 0, d) || !check_int(n, "width", 1, d) || !check_int(n, "layers", 1, d))
        return false;
    if (rate < 0 || rate >= 1) {
        diag_error(d, node_span(n, "recurrent_dropout"),
                   "%s recurrent_dropout is %g, outside 0 <= rate < 1", n->op->name, rate);
        return false;
    }
    if (node_attr(n, "recompute") && !check_int(n, "recompute", 1, d))
        return false;
    const int mask = given(n, "mask");
    for (int i = 1; i < n->nin; i++)
        if (i != mask && !check_state(n, i, d))
            return false;
    return mask == 0 || recurrent_check_mask(n, mask, d);
}

/* Checks an argument that is one of two words. */
static bool check_word(const Node *n, const char *key, const char *a, const char *b, Diag *d)
{
    const Attr *v = node_attr(n, key);
    if (!v || !strcmp(v->s, a) || !strcmp(v->s, b))
        return true;
    diag_error(d, node_span(n, key), "%s %s is \"%s\"", n->op->name, key, v->s);
    diag_help(d, "use \"%s\" or \"%s\"", a, b);
    return false;
}

static const char *path_of(Graph *g, const char *path, int64_t layer, bool back)
{
    if (layer > 0)
        path = arena_printf(g->arena, "%s.layer%lld", path, (long long)layer + 1);
    return back ? arena_printf(g->arena, "%s.reverse", path) : path;
}

/* Turns (N, T) into the sequence (N, T, 1). */
static Node *sequence(Graph *g, Node *mask, Span at)
{
    Node like = {.op = op_find("reshape"), .span = at};
    node_set_ints(g, &like, "shape", (const int64_t[]){mask->shape.dim[0], 1}, 2);
    return op_make_like(g, "reshape", &like, 1, mask);
}

/* 1 - m */
static Node *remainder_of(Graph *g, Node *m, Span at)
{
    Node *one = graph_const(g, 1, shape_make(false, "", NULL, 0), at);
    return op_make(g, "sub", at, 2, one, m);
}

static Node *recurrent_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                             Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    Node *all = x[0], *last = NULL;

    node_copy_attrs(g, &probe, attrs);
    if (!check(&probe, d) || !check_word(&probe, "reset", "after", "before", d) ||
        !check_word(&probe, "activation", "tanh", "relu", d))
        return NULL;
    if (node_attr(attrs, "c") && !node_attr(attrs, "h")) {
        diag_error(d, attrs->span, "%s has a first c, but no first h", attrs->op->name);
        return NULL;
    }
    const int h = given(attrs, "h"), c = given(attrs, "c"), mask = given(attrs, "mask");
    Node *m = mask ? sequence(g, x[mask], attrs->span) : NULL;
    Node *rest = mask ? remainder_of(g, m, attrs->span) : NULL;
    for (int64_t k = 0; k < node_int(attrs, "layers"); k++) {
        Layer y = {.g = g,
                   .d = d,
                   .attrs = attrs,
                   .width = node_int(attrs, "width"),
                   .x = all,
                   .given_mask = mask ? x[mask] : NULL,
                   .mask = m,
                   .rest = rest};
        Layer back = y;
        y.path = path_of(g, path, k, false), back.path = path_of(g, path, k, true);
        y.first[0] = h ? x[h] : NULL, y.first[1] = c ? x[c] : NULL;
        back.reversed = true;
        if (!run(&y) || (node_bool(attrs, "bidirectional") && !run(&back)))
            return NULL;
        all = back.all ? joined(&y, 1, y.all, back.all) : y.all;
        last = back.all ? joined(&y, 0, y.last, back.last) : y.last;
    }
    return node_bool(attrs, "all") ? all : last;
}

#define ARGS(...)                                                                                  \
    {"x", ARG_TENSOR, NULL, "a sequence (N, T, I)"},                                               \
        {"width", ARG_INT, NULL, "numbers in the state H, at least 1"},                            \
        {"all", ARG_BOOL, "false",                                                                 \
         "return the states of all steps (N, T, H), not only the last one (N, H)"},                \
        {"layers", ARG_INT, "1",                                                                   \
         "number of layers, at least 1; each reads the states of the one before"},                 \
        {"bidirectional", ARG_BOOL, "false",                                                       \
         "add a second layer that goes from the last step to the first: 2 H numbers"},             \
        {"recurrent_dropout", ARG_FLOAT, "0",                                                      \
         "probability of dropping a number of h, at least 0 and below 1; the same numbers in all " \
         "steps"},                                                                                 \
        __VA_ARGS__,                                                                               \
        {"recompute", ARG_INT, "none",                                                             \
         "keep the state of every k-th step only; the backward pass computes the others again"},   \
    {                                                                                              \
        "h", ARG_TENSOR, "none", "first state (N, H); default: zeros"                              \
    }
#define MASK                                                                                       \
    {                                                                                              \
        "mask", ARG_TENSOR, "none",                                                                \
            "(N, T): where it is 0, the states stay those of the step before"                      \
    }
#define EXAMPLE(call)                                                                              \
    "model example(x: f32[5, 4]) {\n"                                                              \
    "    h = " call "\n"                                                                           \
    "    return dense(h, 3)\n"                                                                     \
    "}\n" EXAMPLE_TRAIN

const Op op_recurrent[] =
    {{.name = "lstm",
      .brief = "long short-term memory over the steps of a sequence",
      .shapes =
          "x (N, T, I)   y (N, H), with all = true (N, T, H); bidirectional: 2 H   H = width\n"
          "weight (4 H, I)   recurrent (4 H, H)   bias (4 H), in the order i, f, g, o",
      .formula = "i, f, g, o = weight x[t] + recurrent h + bias   four vectors of H\n"
                 "c = sigmoid(f) c + sigmoid(i) tanh(g)\n"
                 "h = sigmoid(o) tanh(c)",
      .derivative = "through the formulas of each step, from the last step to the first",
      .note =
          "The bias is one vector: the second one of cuDNN and PyTorch is 0 here. recurrent begins "
          "orthogonal, weight as the recipe says, bias with zeros, and its part f with "
          "forget_bias. Where mask is 0, the states stay those of "
          "the step "
          "before. A recurrent layer cannot be used inside a scan. The order of the gates is that "
          "of "
          "Keras and cuDNN. Source: Hochreiter & Schmidhuber 1997, \"Long short-term memory\"; "
          "Gers et "
          "al. 2000, \"Learning to forget\".",
      .arg = {ARGS({"forget_bias", ARG_FLOAT, "1", "initial value of the forget gate's bias"}),
              {"c", ARG_TENSOR, "none", "first cell (N, H), only together with h; default: zeros"},
              MASK},
      .layer = "lstm",
      .build = recurrent_build,
      .example = EXAMPLE("lstm(x, 3, layers = 2, bidirectional = true, all = true) |> lstm(4)")},
     {.name = "gru",
      .brief = "gated recurrent units over the steps of a sequence",
      .shapes =
          "x (N, T, I)   y (N, H), with all = true (N, T, H); bidirectional: 2 H   H = width\n"
          "weight (3 H, I)   recurrent (3 H, H)   bias (3 H), in the order r, z, n   "
          "candidate_bias d "
          "(H)\n"
          "reset \"before\": recurrent (2 H, H)   candidate (H, H), no candidate_bias",
      .formula = "r, z = sigmoid(weight x[t] + recurrent h + bias)   two vectors of H\n"
                 "reset \"after\":  n = tanh(weight_n x[t] + bias_n + r (recurrent_n h + d))\n"
                 "reset \"before\": n = tanh(weight_n x[t] + bias_n + candidate (r h))\n"
                 "h = n + z (h - n)",
      .derivative = "through the formulas of each step, from the last step to the first",
      .note =
          "The bias is one vector: the second one of cuDNN and PyTorch is 0 here. recurrent begins "
          "orthogonal, weight as the recipe says, bias with zeros. Where mask is 0, the states "
          "stay those of "
          "the step "
          "before. A recurrent layer cannot be used inside a scan. The order of the gates is that "
          "of "
          "cuDNN; Keras has z, r, n. Source: Cho et al. 2014, \"Learning phrase representations "
          "using "
          "RNN encoder-decoder\".",
      .arg =
          {ARGS({"reset", ARG_STRING, "after",
                 "\"after\": the gate r multiplies the recurrent product; \"before\": its input"}),
           MASK},
      .layer = "gru",
      .build = recurrent_build,
      .example = EXAMPLE("concat(gru(x, 4), gru(x, 3, reset = \"before\"))")},
     {.name = "rnn",
      .brief = "plain recurrent layer over the steps of a sequence",
      .shapes =
          "x (N, T, I)   y (N, H), with all = true (N, T, H); bidirectional: 2 H   H = width\n"
          "weight (H, I)   recurrent (H, H)   bias (H)",
      .formula = "h = activation(weight x[t] + recurrent h + bias)",
      .derivative = "through the formula of each step, from the last step to the first",
      .note =
          "The bias is one vector: the second one of cuDNN and PyTorch is 0 here. recurrent begins "
          "orthogonal, weight as the recipe says, bias with zeros. Where mask is 0, the states "
          "stay those of "
          "the step "
          "before. A recurrent layer cannot be used inside a scan.",
      .arg = {ARGS({"activation", ARG_STRING, "tanh", "\"tanh\" or \"relu\""}), MASK},
      .layer = "rnn",
      .build = recurrent_build,
      .example = EXAMPLE("rnn(x, 4)")},
     {0}};
