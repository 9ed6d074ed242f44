/* cuda_graph.c -- convolutions that a GPU's program leaves to cuDNN (--kernels=cudnn): their graphs, calls and plans.
 *
 *   y = relu(conv2d(x, w) + b)   one graph, in f32, bf16 or f16 as it lies in memory; dx and dw are graphs of their own
 *
 * What pass epilogue has put into a convolution can be inside of its graph, where cuDNN has an engine for that, and so can the sums of its
 * result for batch_norm, and a relu undone behind dx.  `build` has the ways planned, takes
 * the first that has one and embeds its plan: the rest is a kernel of ours behind it, in place.  Without plans (what `emit` writes) a graph is
 * the convolution alone, for which there are engines everywhere, and is planned when the program first starts.  The gradient of filters in two
 * bytes has two bytes as well, and a kernel of ours takes it to f32.
 */
#include "emit/cuda_library.h"
#include "emit/launch.h"
#include "ops/step_price.h"
#include <string.h>

/* A sum that is added to, and what lies at any step of a loop, is for kernels of ours. */
static bool is_graph(const Graph *g, const Node *n, const Options *o, const char *dtype)
{
    const bool sum = node_is(n, "conv2d_dw");

    if (!o->libraries || strcmp(dtype, "f32") != 0 || n->loop ||
        !(sum || node_is(n, "conv2d") || node_is(n, "conv2d_dx")))
        return false;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->loop || node_is(n->in[i], "const"))
            return false;
    return (n->in[0]->half || !o->half) && (!sum || step_writes_sum(g, n, o));
}

/* ---- what is in a graph */

/* The sums of a convolution's result that batch_norm wants; NULL: nobody does, or kernels of ours add them in the order of the language. */
static const Node *moments_of(const Graph *g, const Node *n, const Options *o)
{
    if (!node_is(n, "conv2d") || !g->training || !node_attr(n, "last") || n->phase < 0)
        return NULL;
    const Phase *p = &g->step->phase[n->phase];
    for (int i = 0; i < p->nnode; i++) {
        const Node *m = p->node[i];
        if (node_is(m, "batch_moments") && m->in[0] == n && step_writes_sum(g, m, o))
            return m;
    }
    return NULL;
}

/* The gradient of a bias, the sum of dx over samples and pixels; NULL: none, or it comes with that of a scale. */
static const Node *sum_of(const Graph *g, const Node *dx, const Options *o)
{
    if (!node_is(dx, "conv2d_dx") || !node_attr(dx, "mask") || !node_attr(dx, "last") ||
        !g->training || dx->phase < 0)
        return NULL;
    const Phase *p = &g->step->phase[dx->phase];
    const Node *sum = NULL;
    for (int i = 0; i < p->nnode; i++) {
        const Node *s = p->node[i];
        const Attr *align = node_attr(s, "align");
        if (node_is(s, "batch_norm_dw") && s->in[0] == dx)
            return NULL;
        if (node_is(s, "sum_to") && s->in[0] == dx && !sum && align && !strcmp(align->s, "first") &&
            s->shape.rank == 1 && !s->shape.batched && step_writes_sum(g, s, o))
            sum = s;
    }
    return sum;
}

/* Behind images and filters: what pass epilogue has put into a convolution; NULL: none. */
static const Node *residual_of(const Node *n)
{
    return node_attr(n, "residual") ? n->in[n->nin - 1] : NULL;
}

static const Node *bias_of(const Node *n)
{
    return n->nin > (residual_of(n) ? 3 : 2) ? n->in[2] : NULL;
}

/* What pass epilogue has put into a convolution or its gradient, in order, and what comes along; returns how many. */
static int joined(const Graph *g, const Node *n, const Options *o, const char *what[3])
{
    int k = 0;
    if (node_is(n, "conv2d") && bias_of(n))
        what[k++] = "bias";
    if (node_is(n, "conv2d") && residual_of(n))
        what[k++] = "add";
    if (node_is(n, "conv2d") && node_attr(n, "act"))
        what[k++] = node_string(n, "act");
    if (node_is(n, "conv2d_dx") && node_attr(n, "mask"))
        what[k++] = "relu_d";
    if (sum_of(g, n, o))
        what[k++] = "sum_to";
    if (!k && moments_of(g, n, o))
        what[k++] = "batch_moments";
    return k;
}

static const char *graph_ways(Arena *a, const Graph *g, const Node *n, const Options *o)
{
    const char *what[3];
    const int k = joined(g, n, o, what);
    const LaunchOrder order = node_attr(n, "last") ? LAUNCH_LAST : LAUNCH_ROW;
    return launch_ways(a, g->step->chunk, gpu_half(n->in[0]->half), order, n, what, k);
}

static const char *words(Arena *a, const char *const *what, int n)
{
    Text t = text_new(a);
    for (int i = 0; i < n; i++)
        text_printf(&t, "%s%s", i ? " + " : "", what[i]);
    return t.s;
}

/* Way 0 has all inside, each next one a step less. */
void emit_plan_take(Arena *a, EmitPlan *p, int way)
{
    p->way = way;
    p->inside = words(a, p->joined, p->njoined - way);
    p->behind = words(a, p->joined + p->njoined - way, way);
}

/* The convolution alone. */
static EmitPlan unplanned(Arena *a, const Graph *g, const Node *n, const Options *o)
{
    EmitPlan p = {.node = n, .ways = graph_ways(a, g, n, o)};
    p.njoined = joined(g, n, o, p.joined);
    emit_plan_take(a, &p, p.njoined);
    return p;
}

/* ---- plans */

int emit_plans(Arena *a, const EmitInput *in, EmitPlan **plan)
{
    const Graph *const graph[] = {in->train, in->test};
    int n = 0;

    *plan = NULL;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < graph[i]->nnode; k++) {
            const Node *node = graph[i]->node[k];
            if (!is_graph(graph[i], node, in->options, in->dtype))
                continue;
            const EmitPlan p = unplanned(a, graph[i], node, in->options);
            int same = 0;
            while (same < n && strcmp((*plan)[same].ways, p.ways) != 0)
                same++;
            if (same == n)
                ARENA_PUSH(a, *plan, n, p);
        }
    return n;
}

/* Bytes as a string of C, in lines of about 100. */
static void quote(Text *t, const char *s, size_t n)
{
    enum { LINE = 90 };
    text_add(t, "    \"");
    for (size_t i = 0, column = 0; i < n; i++) {
        const unsigned char c = (unsigned char)s[i];
        const size_t before = t->len;
        if (c < 32 || c > 126)
            text_printf(t, "\\%03o", c);
        else
            text_printf(t, c == '"' || c == '\\' || c == '?' ? "\\%c" : "%c", c);
        column += t->len - before;
        if (column >= LINE && i + 1 < n)
            text_add(t, "\"\n    \""), column = 0;
    }
    text_add(t, "\"");
}

void emit_plans_text(const EmitPlan *plan, int n, Text *t)
{
    text_add(t, "/* Made by tenon: cuDNN's plans of a program's convolutions, for one kind of GPU, "
                "driver and cuDNN. */\n");
    for (int i = 0; i < n; i++) {
        text_printf(t, "\nextern const char rt_plan_%d[];\nconst char rt_plan_%d[] =\n", i, i);
        quote(t, plan[i].text, plan[i].bytes);
        text_add(t, ";\n");
    }
}

/* The plan whose taken way is that graph. */
static const EmitPlan *plan_of(const Writer *w, const char *graph, int *number)
{
    for (int i = 0; i < w->in->nplan; i++) {
        const EmitPlan *p = &w->in->plan[i];
        if (strcmp(launch_way(w->arena, p->ways, p->way), graph) == 0)
            return *number = i, p;
    }
    return NULL;
}

static EmitPlan taken(const Writer *w, const Node *n)
{
    const EmitPlan p = unplanned(w->arena, w->g, n, w->in->options);
    for (int i = 0; i < w->in->nplan; i++)
        if (strcmp(w->in->plan[i].ways, p.ways) == 0)
            return w->in->plan[i];
    return p;
}

/* ---- calls */

/* What has been joined to a convolution and is not inside of its graph, in place. */
static const char *rest_launch(Writer *w, const Node *n, bool bias, bool residual)
{
    Arena *a = w->arena;
    const long long channels = n->shape.dim[0], pixels = n->shape.dim[1] * n->shape.dim[2],
                    count = w->g->step->chunk * channels * pixels,
                    run = node_attr(n, "last") ? 1 : pixels;
    const char *params = arena_printf(a, "%s *y", pointer_type(n)), *args = pointer_to(w, n);

    if (bias) {
        params = arena_printf(a, "%s, const %s *b", params, pointer_type(n->in[2]));
        args = arena_printf(a, "%s, %s", args, pointer_to(w, n->in[2]));
    }
    if (residual) {
        params = arena_printf(a, "%s, const %s *a", params, pointer_type(residual_of(n)));
        args = arena_printf(a, "%s, %s", args, pointer_to(w, residual_of(n)));
    }
    return kernel_launch(w, "conv2d_rest", params,
                         arena_printf(a, "    conv2d_rest(y, %s, %s, %lld, %lld, %lld, %s);\n",
                                      bias ? "b" : "(const real *)nullptr",
                                      residual ? "a" : "(const real *)nullptr", count, channels, run,
                                      node_attr(n, "act") ? "true" : "false"),
                         args, arena_printf(a, "each_blocks(%lld)", count));
}

const char *graph_rest_dx(Writer *w, const Node *n)
{
    Arena *a = w->arena;
    const long long count = w->g->step->chunk * (long long)shape_count(&n->shape);
    return kernel_launch(w, node_is(n, "dense_dx") ? "dense_dx_rest" : "conv2d_dx_rest",
                         arena_printf(a, "%s *dx, const %s *y", pointer_type(n),
                                      pointer_type(n->in[2])),
                         arena_printf(a, "    relu_undone(dx, y, %lld);\n", count),
                         arena_printf(a, "%s, %s", pointer_to(w, n), pointer_to(w, n->in[2])),
                         arena_printf(a, "each_blocks(%lld)", count));
}

const char *graph_rest(Writer *w, const Node *n)
{
    if ((node_is(n, "conv2d_dx") || node_is(n, "dense_dx")) && node_attr(n, "mask"))
        return graph_rest_dx(w, n);
    return node_is(n, "conv2d") && (n->nin > 2 || node_attr(n, "act"))
               ? rest_launch(w, n, bias_of(n), residual_of(n))
               : NULL;
}

/* Where a graph leaves the sums of its result and of its squares: behind the workspace, as graphs want them aligned. */
static const char *sums_at(Writer *w, int64_t channels, bool squares)
{
    const int64_t each = (channels + 3) / 4 * 4, bytes = 2 * each * (int64_t)sizeof(float);
    w->apart = bytes > w->apart ? bytes : w->apart;
    return squares ? arena_printf(w->arena, "APART(real) + %lld", (long long)each) : "APART(real)";
}

/* They become what batch_norm reads. */
static const char *sums_launch(Writer *w, const Node *n)
{
    Arena *a = w->arena;
    const Node *m = moments_of(w->g, n, w->in->options);
    const int64_t channels = n->shape.dim[0],
                  rows = w->g->step->chunk * n->shape.dim[1] * n->shape.dim[2];
    return kernel_launch(w, "batch_moments_sums",
                         "real *moments, const real *sums, const real *squares",
                         arena_printf(a, "    batch_moments_sums(moments, sums, squares, %lld, %lld);\n",
                                      (long long)rows, (long long)channels),
                         arena_printf(a, "%s, %s, %s", pointer_to(w, m), sums_at(w, channels, false),
                                      sums_at(w, channels, true)),
                         arena_printf(a, "each_blocks(%lld)", (long long)channels));
}

bool graph_brings(const Writer *w, const Node *n)
{
    const Options *o = w->in->options;
    const Node *x = n->nin > 0 ? n->in[0] : NULL;
    const bool known = node_is(n, "batch_moments") ? moments_of(w->g, x, o) == n
                       : node_is(n, "sum_to")      ? sum_of(w->g, x, o) == n
                                                   : false;
    if (!known || !is_graph(w->g, x, o, w->in->dtype))
        return false;
    const EmitPlan p = taken(w, x);
    return p.way == 0 && !strcmp(p.joined[p.njoined - 1], n->op->name);
}

static const char *apart_of(const Writer *w, const Node *n)
{
    return arena_printf(w->arena, "APART(%s)", pointer_half(n->in[0]->half));
}

/* The gradient of filters, for whose narrow numbers room is behind the workspace, as the f32 sum that it is. */
static const char *taken_over(Writer *w, const Node *n)
{
    Arena *a = w->arena;
    const long long count = (long long)shape_count(&n->shape), lanes = node_lanes(n->in[0]),
                    channels = n->shape.dim[1], apart = 2 * (lanes ? count / channels * lanes : count);

    w->apart = apart > w->apart ? apart : w->apart;
    if (lanes)
        return kernel_launch(w, "convert_unpadded",
                             arena_printf(a, "real *y, const %s *a", pointer_half(n->in[0]->half)),
                             arena_printf(a, "    convert_unpadded(y, a, %lld, %lld, %lld);\n", count,
                                          channels, lanes),
                             arena_printf(a, "%s, %s", pointer_to(w, n), apart_of(w, n)),
                             arena_printf(a, "convert_blocks(%lld)", count));
    return kernel_launch(w, "convert",
                         arena_printf(a, "real *y, const %s *a", pointer_half(n->in[0]->half)),
                         arena_printf(a, "    convert(y, a, %lld);\n", count),
                         arena_printf(a, "%s, %s", pointer_to(w, n), apart_of(w, n)),
                         arena_printf(a, "convert_blocks(%lld)", count));
}

/* "{"conv1 (lenet.tn:8)", 0}, [what is inside of what could be]" */
static const char *call_row(Writer *w, const EmitPlan *p, const Node *n, int graph)
{
    Text t = text_new(w->arena);

    text_printf(&t, "{%s, %d},", library_layer(w, n), graph);
    if (*p->inside || *p->behind)
        text_add(&t, " /*");
    if (*p->inside)
        text_printf(&t, " %s inside%s", p->inside, *p->behind ? "," : "");
    if (*p->behind)
        text_printf(&t, " %s behind it: %s", p->behind,
                    w->in->nplan ? "no engine takes it" : "not planned");
    if (*p->inside || *p->behind)
        text_add(&t, " */");
    return t.s;
}

const char *graph_statement(Writer *w, const Node *n)
{
    if (!is_graph(w->g, n, w->in->options, w->in->dtype))
        return NULL;
    Arena *a = w->arena;
    const bool forward = node_is(n, "conv2d"), apart = n->in[0]->half && !n->half;
    const EmitPlan p = taken(w, n);
    const Node *more[2] = {NULL, NULL}; /* the graph's fourth and fifth tensor */
    const bool sums = strcmp(p.inside, "batch_moments") == 0;
    int inside = p.njoined - p.way;
    for (int k = 0, i = 2; i < n->nin && inside-- > 0; i++)
        more[k++] = n->in[i];
    if (!forward && inside > 0)
        more[1] = sum_of(w->g, n, w->in->options);
    const bool bias = forward && bias_of(n), residual = forward && residual_of(n);
    const int64_t channels = n->shape.dim[0];
    const int graph = library_row(w, &w->graphs, launch_way(a, p.ways, p.way));
    const int row = library_row(w, &w->graph_calls, call_row(w, &p, n, graph));
    const char *call =
        arena_printf(a, "rt_graph(%d, %s, %s, %s, %s, %s, WORKSPACE);", row,
                     pointer_to(w, n->in[forward ? 0 : 1]), pointer_to(w, n->in[forward ? 1 : 0]),
                     apart ? apart_of(w, n) : pointer_to(w, n),
                     sums      ? sums_at(w, channels, false)
                     : more[0] ? pointer_to(w, more[0])
                               : "nullptr",
                     sums      ? sums_at(w, channels, true)
                     : more[1] ? pointer_to(w, more[1])
                               : "nullptr");
    const bool rest = forward ? *p.behind && strcmp(p.behind, "batch_moments") : n->nin > 2 && !more[0];
    const char *then = apart   ? taken_over(w, n)
                       : sums  ? sums_launch(w, n)
                       : !rest ? NULL
                       : forward
                           ? rest_launch(w, n, bias && !more[0], residual && more[bias] == NULL)
                           : graph_rest_dx(w, n);
    return then ? arena_printf(a, "%s %s", call, then) : call;
}

int64_t graph_workspace(const Writer *w)
{
    int64_t most = 0;
    for (int i = 0; i < w->in->nplan; i++)
        most = w->in->plan[i].workspace > most ? w->in->plan[i].workspace : most;
    return w->graphs.n ? most : 0;
}

void graph_tables(const Writer *w, Text *t)
{
    int number;

    if (!w->graphs.n)
        return;
    text_add(t, "/* ---- convolutions through cuDNN: graphs without duplicates, and a row a call ---- */\n\n");
    for (int i = 0; i < w->graphs.n; i++)
        if (plan_of(w, w->graphs.row[i], &number))
            text_printf(t, "extern \"C\" const char rt_plan_%d[];\n", number);
    text_add(t, "static const RtGraph graphs[] = {\n");
    for (int i = 0; i < w->graphs.n; i++) {
        const EmitPlan *p = plan_of(w, w->graphs.row[i], &number);
        text_printf(t, "    {\"%s\",\n        ", w->graphs.row[i]);
        if (p)
            text_printf(t, "rt_plan_%d, %zu},\n", number, p->bytes);
        else
            text_add(t, "nullptr, 0},\n");
    }
    text_add(t, "};\nstatic const RtGraphCall graph_calls[] = {\n");
    for (int i = 0; i < w->graph_calls.n; i++)
        text_printf(t, "    %s\n", w->graph_calls.row[i]);
    text_add(t, "};\n\n");
}
