/* launch.c -- a training step as launches on a GPU: which nodes share one, and which library computes it. */
#include "emit/launch.h"
#include "ir/readers.h"
#include "ops/conv_lanes.h"
#include "ops/op.h"
#include <string.h>

typedef struct Maker {
    Arena *arena;
    Graph *g;
    Readers *readers;
    GpuType type;
    Launch *launch;
    int n;
    int *of;   /* node id -> its launch, -1 none */
    int *seat; /* node id -> place in the list */
} Maker;

static bool in(const Node *n, const char *const *names)
{
    for (; *names; names++)
        if (node_is(n, *names))
            return true;
    return false;
}

/* ---- values and their bytes */

/* Values that are other values' memory, seen differently. */
static bool is_view(const Node *n)
{
    static const char *const views[] = {"flatten",   "reshape",    "slice",
                                        "scan_item", "scan_state", "scan_next",
                                        "scan_last", "scan_keep",  NULL};
    return n->op->flags & OP_VIEW || in(n, views);
}

static bool is_leaf(const Node *n)
{
    static const char *const leaves[] = {"param", "label", "const", NULL};
    return in(n, leaves);
}

/* scan_keep and scan_state of the loop back read what another holds. */
static const Node *memory_of(const Node *n)
{
    while (is_view(n) && n->nin > 0)
        n = n->in[0];
    return n;
}

double launch_bytes(const Graph *g, GpuType t, const Node *n)
{
    const int each = n->dtype == DT_U8                         ? 1
                     : n->dtype == DT_I32 || !n->shape.batched ? 4
                                                               : gpu_bytes(t);
    const double samples = n->shape.batched ? (double)g->recipe.batch : 1;
    return node_is(n, "const") ? 0 : (double)node_reals(n) * samples * each;
}

static double bytes(const Maker *m, const Node *n)
{
    return launch_bytes(m->g, m->type, n);
}

/* ---- making a launch */

static void claim(Maker *m, int i, const Node *n)
{
    Launch *l = &m->launch[i];
    m->of[n->id] = i;
    l->last = m->seat[n->id] > l->last ? m->seat[n->id] : l->last;
}

static int add_launch(Maker *m, LaunchBy by, const Node *n, const char *pattern)
{
    const Launch l = {.by = by, .node = n, .pattern = pattern, .times = node_steps(n)};
    ARENA_PUSH(m->arena, m->launch, m->n, l);
    claim(m, m->n - 1, n);
    return m->n - 1;
}

static void join_pattern(Maker *m, int i, const Node *n)
{
    m->launch[i].pattern = arena_printf(m->arena, "%s + %s", m->launch[i].pattern, n->op->name);
}

static double operations(const Maker *m, const Node *n)
{
    return n->op->cost ? n->op->cost(n).flops * (double)m->g->recipe.batch : 0;
}

/* ---- convolutions */

static const char *const activations[] = {"relu", "relu6", "tanh", "sigmoid", "gelu", NULL};

/* What may follow in the same cuDNN graph: bias and activation that nobody else reads, or the sums of
 * batch_norm; no engine makes these in exact f32. */
static int followers(const Maker *m, const Node *n, const Node **fused)
{
    int k = 0;
    const Node *next = readers_only(m->readers, n);
    if (next && node_is(next, "bias") && !next->loop)
        fused[k++] = next, next = readers_only(m->readers, next);
    if (next && in(next, activations) && !next->loop)
        fused[k++] = next;
    for (int i = 0; !k && m->type != GPU_F32 && i < readers_count(m->readers, n); i++)
        if (node_is(readers_at(m->readers, n, i), "batch_moments"))
            fused[k++] = readers_at(m->readers, n, i);
    return k;
}

/* relu_d can follow a gradient: it needs only the sign of the value that it is for. */
static int followers_dx(const Maker *m, const Node *n, const Node **fused)
{
    const Node *next = readers_only(m->readers, n);
    if (m->type == GPU_F32 || !next || !node_is(next, "relu_d") || next->in[0] != n)
        return 0;
    fused[0] = next;
    return 1;
}

static LaunchOrder order_of(const Maker *m)
{
    return m->type == GPU_F32 ? LAUNCH_ROW : LAUNCH_PARTS;
}

static void convolution(Maker *m, const Node *n)
{
    const int i = add_launch(m, BY_CUDNN, n, n->op->name);
    Launch *l = &m->launch[i];
    const char *op[2];
    l->operations = operations(m, n);
    l->nfused = node_is(n, "conv2d")      ? followers(m, n, l->fused)
                : node_is(n, "conv2d_dx") ? followers_dx(m, n, l->fused)
                                          : 0;
    for (int f = 0; f < l->nfused; f++) {
        op[f] = l->fused[f]->op->name;
        claim(m, i, l->fused[f]), join_pattern(m, i, l->fused[f]);
    }
    l->ways = launch_ways(m->arena, m->g->recipe.batch, m->type, order_of(m), n, op, l->nfused);
    /* Apart, the result is read once more; what changes it also writes it, and a mask is read either way. */
    if (l->nfused)
        l->rest_bytes = bytes(m, n) * (node_is(l->fused[0], "batch_moments") ? 1 : 2);
}

/* ---- products: cuBLASLt's relu is ours, its gelu is another (tanh), and it has no tanh */

static void dense(Maker *m, const Node *n)
{
    const int i = add_launch(m, BY_CUBLAS, n, n->op->name);
    const Node *next = readers_only(m->readers, n);
    m->launch[i].operations = operations(m, n);
    if (next && node_is(n, "dense") && node_is(next, "bias")) {
        claim(m, i, next), join_pattern(m, i, next);
        next = readers_only(m->readers, next);
    }
    const bool back = next && node_is(n, "dense_dx") && node_is(next, "relu_d") && next->in[0] == n;
    if (next && (back || (node_is(n, "dense") && node_is(next, "relu") && next->loop == n->loop)))
        claim(m, i, next), join_pattern(m, i, next);
}

/* The bias' gradient comes out of the weights' gradient, which reads dy anyway. */
static void dense_dw(Maker *m, const Node *n)
{
    const Node *dy = n->in[1];
    const int i = add_launch(m, BY_CUBLAS, n, n->op->name);
    m->launch[i].operations = operations(m, n);
    for (int r = 0; r < readers_count(m->readers, dy); r++) {
        const Node *sum = readers_at(m->readers, dy, r);
        if (node_is(sum, "sum_to") && sum->in[0] == dy && m->of[sum->id] < 0 && !sum->shape.batched)
            claim(m, i, sum), join_pattern(m, i, sum);
    }
}

/* ---- kernels of our own */

static bool is_elementwise(const Node *n)
{
    static const char *const like[] = {"bias",       "dropout",    "dropout_dx",
                                       "dropout2d",  "batch_norm", "batch_norm_dx",
                                       "scan_stack", "one_hot",    "mask",
                                       NULL};
    return n->op->flags & OP_ELEMENTWISE || in(n, like) || (n->loop && node_is(n, "concat"));
}

static bool is_finish(const Node *n)
{
    return n->op->flags & (OP_TOTAL | OP_KNOWN) || node_is(n, "batch_record");
}

/* A chain goes on where the last one's result has one reader; in a loop over time all between two products is one kernel, a cell. */
static int chain_of(const Maker *m, const Node *n)
{
    const int last = m->n - 1, kept = node_is(n, "scan_stack") ? m->of[n->in[0]->id] : -1;
    if (kept >= 0 &&
        m->launch[kept].by == BY_KERNEL) /* what makes a step's value puts it into the sequence */
        return kept;
    if (n->loop && last >= 0 && m->launch[last].by == BY_KERNEL &&
        m->launch[last].node->loop == n->loop)
        return last;
    for (int i = 0; i < n->nin && !n->loop; i++) {
        const int at = m->of[n->in[i]->id];
        if (at >= 0 && m->launch[at].by == BY_KERNEL && is_elementwise(n->in[i]) &&
            !n->in[i]->loop && readers_only(m->readers, n->in[i]) == n &&
            shape_same(&n->shape, &n->in[i]->shape))
            return at;
    }
    return -1;
}

static void launch_elementwise(Maker *m, const Node *n)
{
    const int at = chain_of(m, n);
    if (at < 0) {
        add_launch(m, BY_KERNEL, n, n->op->name);
        return;
    }
    claim(m, at, n);
    if (n->loop)
        m->launch[at].pattern = "cell";
    else
        join_pattern(m, at, n);
}

/* Sums over samples of one value share the reading of it: batch_norm's two, a bias' beside them. */
static void launch_sum(Maker *m, const Node *n)
{
    const int last = m->n - 1;
    for (int r = 0;
         node_is(n, "sum_to") && !n->shape.batched && r < readers_count(m->readers, n->in[0]); r++)
        if (node_is(readers_at(m->readers, n->in[0], r), "dense_dw"))
            return; /* dense_dw will claim it */
    if (last >= 0 && m->launch[last].node->op->flags & OP_SUM && m->launch[last].by == BY_KERNEL &&
        m->launch[last].node->in[0] == n->in[0]) {
        claim(m, last, n), join_pattern(m, last, n);
        return;
    }
    add_launch(m, BY_KERNEL, n, n->op->name);
}

/* Neighbours of a few numbers each: batch_norm's totals; and all updates, over one flat buffer. */
static void together(Maker *m, const Node *n, const char *pattern, bool (*same)(const Node *))
{
    const int last = m->n - 1;
    if (last >= 0 && m->launch[last].by == BY_KERNEL && same(m->launch[last].node))
        claim(m, last, n);
    else
        add_launch(m, BY_KERNEL, n, pattern);
}

static bool is_update(const Node *n)
{
    return node_is(n, "update");
}

/* Parts of a concat are written in its place by kernels of ours; what libraries wrote is copied. */
static void concat(Maker *m, const Node *n)
{
    double copied = 0;
    for (int i = 0; i < n->nin; i++) {
        const int at = m->of[memory_of(n->in[i])->id];
        copied += at >= 0 && m->launch[at].by == BY_KERNEL ? 0 : bytes(m, n->in[i]);
    }
    const int i = add_launch(m, copied > 0 ? BY_KERNEL : BY_VIEW, n, n->op->name);
    m->launch[i].bytes = 2 * copied;
}

static void make_launches(Maker *m, const Node *n)
{
    static const char *const convolutions[] = {"conv2d", "conv2d_dx", "conv2d_dw", NULL};
    static const char *const products[] = {"dense", "dense_dx", "matmul", NULL};
    if (m->of[n->id] >= 0 || is_leaf(n) || is_view(n))
        return;
    if (in(n, convolutions))
        convolution(m, n);
    else if (in(n, products))
        dense(m, n);
    else if (node_is(n, "dense_dw"))
        dense_dw(m, n);
    else if (node_is(n, "attention") && m->type != GPU_F32) {
        const int i = add_launch(m, BY_CUDNN, n, n->op->name);
        m->launch[i].operations = operations(m, n);
        m->launch[i].ways = launch_graph(m->arena, m->g->recipe.batch, m->type, order_of(m), n, NULL, 0);
    } else if (is_update(n))
        together(m, n, "update of all parameters", is_update);
    else if (is_finish(n))
        together(m, n, "batch_norm finish", is_finish);
    else if (is_elementwise(n))
        launch_elementwise(m, n);
    else if (node_is(n, "concat"))
        concat(m, n);
    else if (node_is(n, "input"))
        add_launch(m, BY_KERNEL, n, "gather of the batch");
    else if (n->op->flags & OP_SUM)
        launch_sum(m, n);
    else {
        const int i = add_launch(m, BY_KERNEL, n, n->op->name);
        m->launch[i].operations = operations(m, n);
    }
}

/* ---- what a launch reads and writes */

static bool list_has(const Node *const *list, int n, const Node *v)
{
    for (int i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

static void add_read(Maker *m, Launch *l, const Node *v)
{
    if (!list_has(l->read, l->nread, v))
        ARENA_PUSH(m->arena, l->read, l->nread, v);
}

/* Is v, made by launch i, asked for behind it? */
static bool leaves(const Maker *m, const Node *v, int i)
{
    bool outside = graph_keeps(m->g, v) || v->op->flags & OP_UPDATE;
    for (int r = 0; r < readers_count(m->readers, v); r++) {
        const Node *by = readers_at(m->readers, v, r);
        outside |= m->of[by->id] >= 0 ? m->of[by->id] != i : leaves(m, by, i);
    }
    return outside;
}

static void connect(Maker *m, const Node *n)
{
    const int i = m->of[n->id];
    if (i < 0)
        return;
    Launch *l = &m->launch[i];
    for (int k = 0; k < n->nin; k++) {
        const Node *v = memory_of(n->in[k]);
        if (m->of[v->id] != i)
            add_read(m, l, v);
    }
    if (leaves(m, n, i))
        ARENA_PUSH(m->arena, l->write, l->nwrite, n);
}

/* One launch of a loop moves a step's share of the sequences that it reads and writes. */
static double moved(const Maker *m, const Launch *l, const Node *v)
{
    const double all = bytes(m, v);
    const bool sequence =
        l->times > 1 && v->shape.batched && (!v->loop || node_is(v, "scan_stack"));
    return sequence ? all / (double)l->times : all;
}

static void count_bytes(Maker *m, Launch *l)
{
    if (l->by == BY_VIEW || node_is(l->node, "concat"))
        return;
    if (is_update(l->node)) {
        double parameters = 0;
        for (int i = 0; i < m->g->nparam; i++)
            parameters += (double)shape_count(&m->g->param[i]->file);
        /* gradient read; parameter and states read and written; the copy in the tensors' type written */
        l->bytes = parameters * (4 + 8 * (1 + m->g->nstate) + (gpu_bytes(m->type) < 4 ? 2 : 0));
        return;
    }
    if (node_is(l->node, "input"))
        l->bytes += bytes(m, l->node) / (double)node_reals(l->node) * (double)shape_count(&l->node->shape); /* as it is stored, at most so wide */
    for (int i = 0; i < l->nread; i++)
        l->bytes += moved(m, l, l->read[i]);
    for (int i = 0; i < l->nwrite; i++)
        l->bytes += moved(m, l, l->write[i]);
}

static int compare_launches(const Launch *a, const Launch *b)
{
    return a->last - b->last;
}

/* Stable: a fused launch stands where the last of its nodes stood.  Few move, and not far. */
static void sort(Launch *l, int n)
{
    for (int i = 1; i < n; i++) {
        const Launch one = l[i];
        int k = i;
        for (; k > 0 && compare_launches(&l[k - 1], &one) > 0; k--)
            l[k] = l[k - 1];
        l[k] = one;
    }
}

int launch_list(Arena *a, Graph *train, GpuType t, Launch **out)
{
    Maker m = {.arena = a, .g = train, .readers = readers_new(train), .type = t};
    m.of = arena_alloc(a, (size_t)train->next_id * sizeof *m.of);
    m.seat = arena_alloc(a, (size_t)train->next_id * sizeof *m.seat);
    for (int i = 0; i < train->next_id; i++)
        m.of[i] = -1;
    if (gpu_bytes(t) < 4)
        conv_lanes(train, m.readers, t == GPU_BF16 ? HALF_BF16 : HALF_F16);
    for (int i = 0; i < train->nnode; i++)
        m.seat[train->node[i]->id] = i;
    for (int i = 0; i < train->nnode; i++)
        make_launches(&m, train->node[i]);
    for (int i = 0; i < train->nnode; i++)
        connect(&m, train->node[i]);
    for (int i = 0; i < m.n; i++)
        count_bytes(&m, &m.launch[i]);
    sort(m.launch, m.n);
    *out = m.launch;
    return m.n;
}
