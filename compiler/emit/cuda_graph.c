/* cuda_graph.c -- convolutions that a GPU's program leaves to cuDNN (--kernels=cudnn): their graphs, calls and plans.
 *
 * A graph is the convolution alone, in f32 or bf16 as it lies in our kernels (in bf16 its filters' gradient too, which a kernel of ours takes to
 * f32); what follows it is a kernel of ours.  (Fused in exact f32, few have an engine.)
 * `build` has them planned and embeds the plans; what `emit` writes plans them when it first starts.
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
    return (n->in[0]->half || !o->bf16) && (!sum || step_writes_sum(g, n, o));
}

static const char *graph_text(Arena *a, const Graph *g, const Node *n)
{
    return launch_graph(a, g->step->chunk, n->in[0]->half ? GPU_BF16 : GPU_F32, true, n, NULL, 0);
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
            const EmitPlan p = {.node = node, .graph = graph_text(a, graph[i], node)};
            int same = 0;
            while (same < n && strcmp((*plan)[same].graph, p.graph) != 0)
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

static const EmitPlan *plan_of(const Writer *w, const char *graph, int *number)
{
    for (int i = 0; i < w->in->nplan; i++)
        if (strcmp(w->in->plan[i].graph, graph) == 0)
            return *number = i, &w->in->plan[i];
    return NULL;
}

/* ---- calls */

/* The gradient of filters, for whose bf16 numbers room is behind the workspace, as the f32 sum that it is. */
static const char *taken_over(Writer *w, const Node *n)
{
    Arena *a = w->arena;
    const long long count = (long long)shape_count(&n->shape);

    w->apart = 2 * count > w->apart ? 2 * count : w->apart;
    return kernel_launch(w, "convert", "real *y, const Bf16 *a",
                         arena_printf(a, "    convert(y, a, %lld);\n", count),
                         arena_printf(a, "%s, APART", pointer_to(w, n)),
                         arena_printf(a, "convert_blocks(%lld)", count));
}

const char *graph_statement(Writer *w, const Node *n)
{
    if (!is_graph(w->g, n, w->in->options, w->in->dtype))
        return NULL;
    const bool forward = node_is(n, "conv2d");
    const int graph = library_row(w, &w->graphs, graph_text(w->arena, w->g, n));
    const int row = library_row(w, &w->graph_calls,
                                arena_printf(w->arena, "{%s, %d}", library_layer(w, n), graph));
    const bool apart = n->in[0]->half && !n->half;
    const char *call = arena_printf(w->arena, "rt_graph(%d, %s, %s, %s, WORKSPACE);", row,
                                    pointer_to(w, n->in[forward ? 0 : 1]),
                                    pointer_to(w, n->in[forward ? 1 : 0]),
                                    apart ? "APART" : pointer_to(w, n));
    return apart ? arena_printf(w->arena, "%s %s", call, taken_over(w, n)) : call;
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
    text_add(t, "/* ---- convolutions through cuDNN: each graph once, a row a call ---- */\n\n");
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
        text_printf(t, "    %s,\n", w->graph_calls.row[i]);
    text_add(t, "};\n\n");
}
