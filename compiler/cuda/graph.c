/* graph.c -- convolutions that a GPU's program leaves to cuDNN (--kernels=cudnn): their
 * graphs, calls and plans.
 *
 *   y = relu(conv2d(x, w) + b)   one graph, in f32, bf16 or f16; dx and dw are graphs of their own
 *
 * What pass epilogue has put into a convolution can be inside of its graph, where cuDNN has an
 * engine for that, and so can the sums of its result for batch_norm, and a relu undone behind
 * dx.  `build` has the ways planned, takes the first that has one and embeds its plan: the rest
 * is a kernel of ours behind it, in place.  Without plans (what `emit` writes) a graph is the
 * convolution alone, for which there are engines everywhere, and is planned when the program
 * first starts.  The gradient of filters in two bytes has two bytes as well, and a kernel of
 * ours takes it to f32. */
#include "cuda/library.h"
#include "cuda/lower.h"
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

/* The sums of a convolution's result that batch_norm wants; NULL: nobody does, or kernels of
 * ours add them in the order of the language. */
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

/* The gradient of a bias, the sum of dx over samples and pixels; NULL: none, or it comes with
 * that of a scale. */
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

/* What pass epilogue has put into a convolution or its gradient, in order, and what comes along;
 * returns how many. */
static int epilogue_of(const Graph *g, const Node *n, const Options *o, const char *what[3])
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

static const char *join_words(Arena *a, const char *between, const char *const *what, int n)
{
    Text t = text_new(a);
    for (int i = 0; i < n; i++)
        text_printf(&t, "%s%s", i ? between : "", what[i]);
    return t.s;
}

/* Way 0 has all inside, each next one a step less. */
void emit_plan_take(Arena *a, EmitPlan *p, int way)
{
    p->way = way;
    p->inside = join_words(a, " + ", p->epilogue, p->nepilogue - way);
    p->behind = join_words(a, " + ", p->epilogue + p->nepilogue - way, way);
}

/* The convolution alone. */
static EmitPlan unplanned(Arena *a, const Graph *g, const Node *n, const Options *o)
{
    const ImageOrder order = node_attr(n, "last") ? ORDER_LAST : ORDER_ROW;
    EmitPlan p = {.node = n};
    p.nepilogue = epilogue_of(g, n, o, p.epilogue);
    for (int i = 0; i <= p.nepilogue; i++)
        p.graph[i] = graph_words(a, g->step->chunk, order, n, p.epilogue, p.nepilogue - i);
    p.ways = join_words(a, " | ", p.graph, p.nepilogue + 1);
    emit_plan_take(a, &p, p.nepilogue);
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
static void quote_bytes(Text *t, const char *s, size_t n)
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
        quote_bytes(t, plan[i].text, plan[i].bytes);
        text_add(t, ";\n");
    }
}

/* The plan whose taken way is that graph. */
static const EmitPlan *plan_of(const Writer *w, const char *graph, int *number)
{
    for (int i = 0; i < w->in->nplan; i++) {
        const EmitPlan *p = &w->in->plan[i];
        if (strcmp(p->graph[p->way], graph) == 0)
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

/* What epilogue has put into a convolution and is not inside of its graph, in place. */
static void lower_rest(Writer *w, const Node *n, bool bias, bool residual)
{
    Arena *a = w->arena;
    const int64_t channels = n->shape.dim[0], pixels = n->shape.dim[1] * n->shape.dim[2],
                  count = w->g->step->chunk * channels * pixels,
                  run = node_attr(n, "last") ? 1 : pixels;
    CudaCall *c = cuda_add(w, "conv2d_rest", n);

    cuda_value(w, c, "y", n, true);
    if (bias)
        cuda_value(w, c, "b", n->in[2], false);
    else
        cuda_literal(w, c, "(const real *)nullptr");
    if (residual)
        cuda_value(w, c, "a", residual_of(n), false);
    else
        cuda_literal(w, c, "(const real *)nullptr");
    cuda_literal(w, c,
                 arena_printf(a, "%lld, %lld, %lld", (long long)count, (long long)channels,
                              (long long)run));
    cuda_literal(w, c, node_attr(n, "act") ? "true" : "false");
    cuda_blocks(w, c, "each", count);
}

CudaCall *graph_lower_rest_dx(Writer *w, const Node *n)
{
    const int64_t count = w->g->step->chunk * shape_count(&n->shape);
    CudaCall *c = cuda_add(w, node_is(n, "dense_dx") ? "dense_dx_rest" : "conv2d_dx_rest", n);

    c->device = "relu_undone";
    cuda_value(w, c, "dx", n, true);
    cuda_value(w, c, "y", n->in[2], false);
    cuda_number(w, c, count);
    cuda_blocks(w, c, "each", count);
    return c;
}

bool graph_lower_rest(Writer *w, const Node *n)
{
    const bool dx = (node_is(n, "conv2d_dx") || node_is(n, "dense_dx")) && node_attr(n, "mask"),
               forward = node_is(n, "conv2d") && (n->nin > 2 || node_attr(n, "act"));
    if (dx)
        graph_lower_rest_dx(w, n);
    else if (forward)
        lower_rest(w, n, bias_of(n), residual_of(n));
    return dx || forward;
}

/* Where a graph leaves the sums of its result and of its squares: behind the workspace, as
 * graphs want them aligned. */
static const char *sums_at(Writer *w, int64_t channels, bool squares)
{
    const int64_t each = (channels + 3) / 4 * 4, bytes = 2 * each * (int64_t)sizeof(float);
    w->behind_bytes = bytes > w->behind_bytes ? bytes : w->behind_bytes;
    return squares ? arena_printf(w->arena, "APART(real) + %lld", (long long)each) : "APART(real)";
}

/* They become what batch_norm reads. */
static void lower_moments(Writer *w, const Node *n)
{
    const Node *m = moments_of(w->g, n, w->in->options);
    const int64_t channels = n->shape.dim[0],
                  rows = w->g->step->chunk * n->shape.dim[1] * n->shape.dim[2];
    CudaCall *c = cuda_add(w, "batch_moments_sums", n);

    cuda_value(w, c, "moments", m, true);
    cuda_address(w, c, "real", "sums", sums_at(w, channels, false), false);
    cuda_address(w, c, "real", "squares", sums_at(w, channels, true), false);
    cuda_literal(w, c, arena_printf(w->arena, "%lld, %lld", (long long)rows, (long long)channels));
    cuda_blocks(w, c, "each", channels);
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
    return p.way == 0 && !strcmp(p.epilogue[p.nepilogue - 1], n->op->name);
}

static const char *behind_of(const Writer *w, const Node *n)
{
    return arena_printf(w->arena, "APART(%s)", pointer_half(n->in[0]->half));
}

/* The gradient of filters, for whose narrow numbers room is behind the workspace, as the f32 sum
 * that it is. */
static void lower_conversion(Writer *w, const Node *n)
{
    const int64_t count = shape_count(&n->shape), lanes = node_lanes(n->in[0]),
                  channels = n->shape.dim[1],
                  bytes = 2 * (lanes ? count / channels * lanes : count);
    CudaCall *c = cuda_add(w, lanes ? "convert_unpadded" : "convert", n);

    w->behind_bytes = bytes > w->behind_bytes ? bytes : w->behind_bytes;
    cuda_value(w, c, "y", n, true);
    cuda_address(w, c, pointer_half(n->in[0]->half), "a", behind_of(w, n), false);
    cuda_number(w, c, count);
    if (lanes)
        cuda_literal(w, c,
                     arena_printf(w->arena, "%lld, %lld", (long long)channels, (long long)lanes));
    cuda_blocks(w, c, "convert", count);
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

/* Does a kernel of ours stand behind the graph? */
static void lower_behind(Writer *w, const Node *n, const EmitPlan *p, const Node *const *inside)
{
    const bool forward = node_is(n, "conv2d"), bias = forward && bias_of(n),
               residual = forward && residual_of(n);
    const bool rest =
        forward ? *p->behind && strcmp(p->behind, "batch_moments") : n->nin > 2 && !inside[0];

    if (n->in[0]->half && !n->half)
        lower_conversion(w, n);
    else if (!strcmp(p->inside, "batch_moments"))
        lower_moments(w, n);
    else if (rest && forward)
        lower_rest(w, n, bias && !inside[0], residual && inside[bias] == NULL);
    else if (rest)
        graph_lower_rest_dx(w, n);
}

bool graph_lower(Writer *w, const Node *n)
{
    if (!is_graph(w->g, n, w->in->options, w->in->dtype))
        return false;
    const bool forward = node_is(n, "conv2d");
    const EmitPlan p = taken(w, n);
    const Node *inside[2] = {NULL, NULL}; /* the graph's fourth and fifth tensor */
    int more = p.nepilogue - p.way;
    for (int k = 0, i = 2; i < n->nin && more-- > 0; i++)
        inside[k++] = n->in[i];
    if (!forward && more > 0)
        inside[1] = sum_of(w->g, n, w->in->options);
    const int graph = library_row(w, &w->graphs, p.graph[p.way]);
    CudaCall *c =
        library_call(w, "rt_graph", n, library_row(w, &w->graph_calls, call_row(w, &p, n, graph)));
    EmitPlan *plan = arena_alloc(w->arena, sizeof *plan);
    *plan = p, c->graph = plan, c->library = "cuDNN";
    library_value(w, c, n->in[forward ? 0 : 1], false);
    library_value(w, c, n->in[forward ? 1 : 0], false);
    if (n->in[0]->half && !n->half)
        cuda_literal(w, c, behind_of(w, n));
    else
        library_value(w, c, n, true);
    for (int k = 0; k < 2; k++)
        if (!strcmp(p.inside, "batch_moments"))
            cuda_literal(w, c, sums_at(w, n->shape.dim[0], k));
        else
            library_value(w, c, inside[k], !forward && k);
    cuda_literal(w, c, "WORKSPACE");
    lower_behind(w, n, &p, inside);
    return true;
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
    text_add(t, "/* ---- convolutions through cuDNN: graphs without duplicates, and a row a call "
                "---- */\n\n");
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
