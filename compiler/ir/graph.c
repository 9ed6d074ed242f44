/* graph.c -- building and editing the graph: nodes, parameters, order. */
#include "ir/graph.h"
#include "base/text.h"
#include "ir/vocabulary.h"
#include <string.h>

Graph *graph_new(Arena *a, const char *name, bool training)
{
    Graph *g = arena_alloc(a, sizeof *g);
    g->arena = a;
    g->name = name;
    g->training = training;
    return g;
}

Loop *graph_loop(Graph *g, int64_t steps, bool reversed, Span at)
{
    Loop *l = arena_alloc(g->arena, sizeof *l);
    *l = (Loop){.id = g->nloop + 1, .steps = steps, .reversed = reversed, .span = at};
    ARENA_PUSH(g->arena, g->loop, g->nloop, l);
    return l;
}

const Loop *loop_outer(const Loop *l)
{
    return l && l->inside ? l->inside : l;
}

const char *node_block(const Node *n)
{
    return n->call ? n->call->path : NULL;
}

Loop *node_loop(const Node *n)
{
    return op_leaves(n->op) ? NULL : n->loop;
}

int64_t node_steps(const Node *n)
{
    return n->loop ? n->loop->steps : 1;
}

Node *graph_add(Graph *g, const Op *op, Node *const *in, int nin, Span at)
{
    Node *n = arena_alloc(g->arena, sizeof *n);
    n->id = g->next_id++;
    n->op = op;
    n->nin = nin;
    n->in = arena_alloc(g->arena, (size_t)(nin ? nin : 1) * sizeof *n->in);
    for (int i = 0; i < nin; i++)
        n->in[i] = in[i];
    n->span = at;
    n->phase = -1;
    n->call = g->call;
    for (int i = 0; i < nin && !n->loop; i++)
        n->loop = node_loop(in[i]);
    ARENA_PUSH(g->arena, g->node, g->nnode, n);
    return n;
}

Node *graph_input(Graph *g, const char *name, Shape s, DType t, Span at)
{
    Node *n = graph_add(g, op_find("input"), NULL, 0, at);
    n->name = name;
    n->shape = s;
    n->dtype = t;
    g->inputs[g->ninput++] = n;
    g->input = g->inputs[0];
    return n;
}

bool graph_several(const Graph *g)
{
    return g->noutput > 1 || g->recipe.ntarget > 1;
}

int64_t graph_outputs(const Graph *g)
{
    int64_t n = 0;
    for (int i = 0; i < g->noutput; i++)
        n += shape_count(&g->outputs[i].shape);
    return n;
}

int64_t graph_numbers(const Graph *g)
{
    int64_t n = 0;
    for (int i = 0; i < g->ninput; i++)
        n += shape_count(&g->inputs[i]->shape);
    return n;
}

Node *graph_label(Graph *g, Shape s, Span at)
{
    Node *n = graph_add(g, op_find("label"), NULL, 0, at);
    n->name = "label";
    n->shape = s;
    n->dtype = DT_I32;
    g->label = g->label ? g->label : n;
    return g->target = n;
}

Node *graph_target(Graph *g, const char *name, Shape s, Span at)
{
    Node *n = graph_label(g, s, at);
    n->name = name;
    n->dtype = DT_REAL;
    return n;
}

Node *graph_const(Graph *g, double v, Shape s, Span at)
{
    Node *n = graph_add(g, op_find("const"), NULL, 0, at);
    n->shape = s;
    node_set_float(g, n, "value", v);
    return n;
}

/* ---- parameters */

/* Fans as ir/recipe.h defines them: (O, I, H, W) gives I H W and O H W, (O, I) gives I and O, (n)
 * gives n and n. */
static void set_fans(Param *p)
{
    int64_t field = 1;
    for (int i = 2; i < p->file.rank; i++)
        field *= p->file.dim[i];
    p->fan_out = (p->file.rank ? p->file.dim[0] : 1) * field;
    p->fan_in = p->file.rank > 1 ? p->file.dim[1] * field : p->fan_out;
}

const Node *node_frame(const Node *n, int64_t *start)
{
    for (*start = 0; n->within && !op_leaves(n->within->op); n = n->within)
        *start += n->start;
    return n;
}

int64_t node_lanes(const Node *n)
{
    const Attr *lanes = node_attr(n, "lanes");
    return lanes ? lanes->i : 0;
}

int64_t node_number_bytes(const Node *n, int64_t real)
{
    return n->dtype == DT_U8 ? 1 : n->half ? 2 : n->dtype == DT_I32 ? 4 : real;
}

/* Channels are the first dimension of a sample, and the second dimension of filters. */
int64_t node_reals(const Node *n)
{
    const int64_t all = shape_count(&n->shape), lanes = node_lanes(n);
    return lanes ? all / n->shape.dim[n->shape.rank == 4] * lanes : all;
}

int64_t node_row(const Node *n)
{
    int64_t start;
    return node_frame(n, &start)->shape.dim[0];
}

static void set_row_major(Param *p)
{
    int64_t stride = 1;
    p->naxis = p->file.rank;
    for (int i = p->naxis - 1; i >= 0; i--) {
        const int64_t n = p->file.dim[i];
        p->axis[i] = (Axis){.n = n, .block = n, .outer = 0, .inner = stride};
        stride *= n;
    }
    p->count_memory = stride;
}

static Param *new_param(Graph *g, const char *name, Shape file, const Init *init, Span at)
{
    Param *p = arena_alloc(g->arena, sizeof *p);
    p->name = arena_strdup(g->arena, name);
    p->hash = text_hash(name, strlen(name), 0);
    p->file = file;
    p->file.batched = false;
    p->lr = 1, p->decay = file.rank >= 2;
    p->init = init ? *init : file.rank < 2 ? (Init){.kind = INIT_CONSTANT} : g->recipe.init;
    p->span = at;
    p->offset_state[0] = p->offset_state[1] = -1;
    set_fans(p);
    set_row_major(p);
    ARENA_PUSH(g->arena, g->param, g->nparam, p);
    return p;
}

/* Names of parameters have long equal beginnings: without hashes, their comparison takes a sixth of
 * `tenon check models/inception_v3.tn`. */
Param *graph_find_param(const Graph *g, const char *name)
{
    const uint64_t hash = text_hash(name, strlen(name), 0);
    for (int i = 0; i < g->nparam; i++)
        if (g->param[i]->hash == hash && !strcmp(g->param[i]->name, name))
            return g->param[i];
    return NULL;
}

/* PARAM_MAX is 2^30, because kernels count the numbers of a tensor in an int, and padding at
 * most doubles the size of a parameter. */
Node *graph_param(Graph *g, Diag *d, const char *name, Shape file, const Init *init, Span at)
{
    const Param *known = graph_find_param(g, name);
    Node *n = known ? known->node : NULL;
    file.batched = false;
    if (n && shape_same(&n->param->file, &file))
        return n;
    if (n) {
        diag_error(d, at, "the shared parameter %s is %s here and %s at its first use", name,
                   shape_text(g->arena, &file), shape_text(g->arena, &n->param->file));
        diag_note(d, "its first use is on line %d", n->param->span.line);
        diag_help(d, "a layer can be shared only between inputs of one shape");
        return NULL;
    }
    if (shape_count(&file) > PARAM_MAX) {
        diag_error(d, at, "the parameter %s %s has more than 2^30 numbers", name,
                   shape_text(g->arena, &file));
        return NULL;
    }
    n = graph_add(g, op_find("param"), NULL, 0, at);
    n->param = new_param(g, name, file, init, at);
    n->param->node = n;
    n->name = n->param->name;
    n->shape = n->param->file;
    return n;
}

const char *param_layer(Arena *a, const Param *p)
{
    const char *dot = strrchr(p->name, '.');
    return dot ? arena_strndup(a, p->name, (size_t)(dot - p->name)) : "";
}

/* The parameter of n, or the only parameter that n packs, transposes or converts; else NULL. */
static const Param *weights_in(const Node *n)
{
    while (!n->param && n->nin == 1 && n->in[0] && !n->shape.batched)
        n = n->in[0];
    return n->param;
}

const char *node_serves(Arena *a, const Node *n)
{
    const char *layer = n->name ? n->name : "";

    for (int i = 0; i < n->nin && !*layer; i++) {
        const Param *p = n->in[i] ? weights_in(n->in[i]) : NULL;
        if (p)
            layer = param_layer(a, p);
    }
    return layer;
}

Node *node_root(const Node *n)
{
    for (;;) {
        if (n->within)
            n = n->within;
        else if (n->place == PLACE_VIEW)
            n = n->in[0];
        else if (n->alias && n->alias != n)
            n = n->alias;
        else
            return (Node *)n;
    }
}

int loop_end(Node *const *node, int n, int i)
{
    const Loop *l = i < n ? loop_outer(node[i]->loop) : NULL;
    while (l && i < n && loop_outer(node[i]->loop) == l)
        i++;
    return i;
}

/* Marks the next value of each marked state; true if a mark was added. */
static bool need_carried(const Graph *g, bool *needed)
{
    bool more = false;
    for (int i = 0; i < g->nloop; i++)
        for (int k = 0; k < g->loop[i]->ncarry; k++) {
            const Carry *c = &g->loop[i]->carry[k];
            if (!c->next || !needed[c->state->id] || needed[c->next->id])
                continue;
            needed[c->next->id] = more = true;
        }
    return more;
}

/* A node follows its inputs, so one walk from the end finds all needed nodes, except behind the
 * back edge of a loop. */
bool *graph_needed(const Graph *g, const Node *root)
{
    bool *needed = arena_alloc(g->arena, (size_t)g->next_id * sizeof *needed);
    needed[root->id] = true;
    do
        for (int i = g->nnode - 1; i >= 0; i--)
            for (int k = 0; needed[g->node[i]->id] && k < g->node[i]->nin; k++)
                needed[g->node[i]->in[k]->id] = true;
    while (need_carried(g, needed));
    return needed;
}

int graph_metric(const Graph *g, const char *name)
{
    for (int i = 0; i < g->nmetric; i++)
        if (strcmp(g->metric[i].name, name) == 0)
            return i;
    return -1;
}

bool graph_next_token(const Graph *g)
{
    const Attr *s = g->loss ? node_attr(g->loss, "smoothing") : NULL;
    return g->loss && g->recipe.data.unit && !g->recipe.data.table &&
           node_is(g->loss, "softmax_cross_entropy") && !(s && s->f > 0);
}

/* ---- editing */

/* State of a sort: a depth-first walk with an explicit stack, because graphs can be 100,000
 * nodes deep. */
enum { ABSENT, WAITING, OPEN, PLACED };
typedef struct Sort {
    const Graph *g;
    char *state; /* by id */
    int *next;   /* by id: index of the first input that is not visited yet */
    Node **stack, **order;
    int depth, count;
    Node ***member; /* by loop: nodes of the loops inside its steps, then its own nodes */
    int *nmember;
    bool *begun; /* by loop */
} Sort;

static void place(Sort *s, Node *root);

static int member_of(const Loop *l)
{
    return loop_outer(l)->id - 1;
}

/* Places all inputs of the loop, then its own nodes next to each other. */
static void place_loop(Sort *s, const Loop *l)
{
    const int at = member_of(l);
    s->begun[at] = true;
    for (int i = 0; i < s->nmember[at]; i++) {
        const Node *n = s->member[at][i];
        for (int k = 0; k < n->nin; k++)
            if (loop_outer(n->in[k]->loop) != loop_outer(l) && s->state[n->in[k]->id] == WAITING)
                place(s, n->in[k]);
    }
    for (int i = 0; i < s->nmember[at]; i++)
        if (s->state[s->member[at][i]->id] == WAITING)
            place(s, s->member[at][i]);
}

/* Places root after all its inputs.  Leaves a cycle in place; graph_verify reports it. */
static void place(Sort *s, Node *root)
{
    const int base = s->depth;
    if (root->loop && !s->begun[member_of(root->loop)])
        place_loop(s, root->loop);
    if (s->state[root->id] != WAITING)
        return;
    s->stack[s->depth++] = root;
    s->state[root->id] = OPEN;
    while (s->depth > base) {
        Node *n = s->stack[s->depth - 1];
        Node *in = s->next[n->id] < n->nin ? n->in[s->next[n->id]++] : NULL;
        if (in && in->loop && !s->begun[member_of(in->loop)])
            place_loop(s, in->loop);
        if (in && s->state[in->id] == WAITING) {
            s->state[in->id] = OPEN;
            s->stack[s->depth++] = in;
        } else if (!in) {
            s->state[n->id] = PLACED;
            s->order[s->count++] = n;
            s->depth--;
        }
    }
}

static void find_members(Sort *s, bool inside)
{
    for (int i = 0; i < s->g->nnode; i++) {
        Node *n = s->g->node[i];
        const int at = n->loop ? member_of(n->loop) : 0;
        if (n->loop && inside == (n->loop->inside != NULL))
            ARENA_PUSH(s->g->arena, s->member[at], s->nmember[at], n);
    }
}

/* Sorts the list.  A node keeps its position, unless an input stands after it.  Such an input moves
 * to the position directly before the node. */
void graph_sort(Graph *g)
{
    const size_t ids = (size_t)g->next_id + 1, nodes = (size_t)g->nnode + 1;
    Sort s = {.g = g,
              .state = arena_alloc(g->arena, ids),
              .next = arena_alloc(g->arena, ids * sizeof(int)),
              .stack = arena_alloc(g->arena, nodes * sizeof(Node *)),
              .order = arena_alloc(g->arena, nodes * sizeof(Node *)),
              .member = arena_alloc(g->arena, (size_t)(g->nloop + 1) * sizeof(Node **)),
              .nmember = arena_alloc(g->arena, (size_t)(g->nloop + 1) * sizeof(int)),
              .begun = arena_alloc(g->arena, (size_t)g->nloop + 1)};
    for (int i = 0; i < g->nnode; i++)
        s.state[g->node[i]->id] = WAITING;
    find_members(&s, true);
    find_members(&s, false);
    for (int i = 0; i < g->nnode; i++)
        if (s.state[g->node[i]->id] == WAITING)
            place(&s, g->node[i]);
    memcpy(g->node, s.order, (size_t)s.count * sizeof(Node *));
}
