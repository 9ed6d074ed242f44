/* graph.c -- convolutions of a GPU program that cuDNN computes (--kernels=cudnn): graphs, calls and
 * plans.
 *
 *   y = relu(conv2d(x, w) + b)   one graph, in f32, bf16 or f16; dx and dw are graphs of their own
 *
 * A graph can contain the epilogue of the convolution (pass epilogue), the sums of its result for
 * batch_norm, and the mask of a relu after dx, if cuDNN has an engine for the graph.  `build` plans
 * the variants of each graph, chooses the first variant with an engine, and embeds its plan.  From
 * sm_90 on, no graph contains sums or relu's gradient (Gpu.slow_fused).  A kernel of Tenon computes
 * the other operations after the convolution, in place.  The output of `emit` has no plans: each
 * graph has the convolution only, for which cuDNN always has an engine, and the program plans the
 * graph at its first start.  If filters have two bytes, cuDNN computes their gradient in two bytes,
 * and a kernel of Tenon converts the gradient to f32. */
#include "cuda/lower.h"
#include "ir/gpu.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <string.h>

/* The gradient of filters of 5 x 5 in exact f32.  cuDNN's engines 0 and 1 compute it by Winograd's
 * algorithm with tiles of 9 x 9, and no note of these engines says so: on an H100 (9.14 and 9.19),
 * LeNet's gradients differed from those in f64 by 2.8e-4 of their norm, and those of other engines
 * by 1e-6.  The next engine of its list, 67, made LeNet's step ten times slower. */
static bool lacks_exact_engine(const Node *n, const Options *o)
{
    return n->op->role == ROLE_DW && !o->tf32 && !o->half && n->shape.dim[2] == 5 &&
           n->shape.dim[3] == 5;
}

/* Whether cuDNN computes n.  Kernels of Tenon compute sums that several calls add to, and values
 * that lie in a step of a sequence. */
static bool is_graph(const Graph *g, const Node *n, const Options *o, const char *dtype)
{
    if (!o->libraries || strcmp(dtype, "f32") != 0 || n->loop || n->op->product != PRODUCT_CONV ||
        lacks_exact_engine(n, o))
        return false;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->loop || n->in[i]->op->leaf == LEAF_CONST)
            return false;
    return (n->in[0]->half || !o->half) && (n->op->role != ROLE_DW || step_writes_sum(g, n, o));
}

/* ---- operations of a graph */

/* Whether `sum` adds the numbers of n for each channel: the moments of a batch_norm, or the
 * gradient of a bias. */
static bool is_channel_sum(const Node *sum, const Node *n)
{
    const Attr *align = node_attr(sum, "align");
    if (sum->nin == 0 || sum->in[0] != n)
        return false;
    return n->op->role == ROLE_Y ? node_is(sum, "batch_moments")
                                 : node_is(sum, "sum_to") && align && !strcmp(align->s, "first") &&
                                       sum->shape.rank == 1 && !sum->shape.batched;
}

/* The sum that the graph of a convolution or of dx also computes.  NULL: there is no such sum,
 * kernels of Tenon add it because channels are outermost, or the gradient of a scale computes
 * it. */
static const Node *sum_of(const Graph *g, const Node *n, const Options *o)
{
    const Node *sum = NULL;
    if (!node_attr(n, "last") || !g->training || n->phase < 0)
        return NULL;
    const Phase *p = &g->step->phase[n->phase];
    for (int i = 0; i < p->nnode; i++) {
        const Node *s = p->node[i];
        if (node_is(s, "batch_norm_dw") && s->in[0] == n)
            return NULL;
        if (!sum && is_channel_sum(s, n) && step_writes_sum(g, s, o))
            sum = s;
    }
    return sum;
}

/* The epilogue of a convolution or of its gradient, in order, with the sum that the graph can
 * compute.  Each operation has the tensor that it reads or writes, if any. */
typedef struct Tail {
    int n;
    const char *op[3];
    const Node *tensor[3];
} Tail;

static void tail_add(Tail *t, const char *op, const Node *tensor)
{
    t->op[t->n] = op, t->tensor[t->n++] = tensor;
}

static Tail tail_of(const Graph *g, const Node *n, const Options *o)
{
    const bool y = n->op->role == ROLE_Y;
    Tail t = {0};

    if (y && n->nin > (node_attr(n, "residual") ? 3 : 2))
        tail_add(&t, "bias", n->in[2]);
    if (y && node_attr(n, "residual"))
        tail_add(&t, "add", n->in[n->nin - 1]);
    if (y && node_attr(n, "act"))
        tail_add(&t, node_string(n, "act"), NULL);
    if (n->op->role == ROLE_DX && node_attr(n, "mask"))
        tail_add(&t, "relu_d", n->in[2]);
    const Node *sum = y == !t.n && !(y && gpu_of(o->arch)->slow_fused) ? sum_of(g, n, o) : NULL;
    if (sum)
        tail_add(&t, sum->op->name, sum);
    return t;
}

/* The tensor of `op`, if it is not one of the first `inside` operations. */
static const Node *tail_tensor(const Tail *t, const char *op, int inside)
{
    for (int i = inside; i < t->n; i++)
        if (!strcmp(t->op[i], op))
            return t->tensor[i];
    return NULL;
}

static const char *join_words(Arena *a, const char *between, const char *const *what, int n)
{
    Text t = text_new(a);
    for (int i = 0; i < n; i++)
        text_printf(&t, "%s%s", i ? between : "", what[i]);
    return t.s;
}

/* Takes variant n, whose graph contains all operations but the last n. */
void emit_plan_take(Arena *a, EmitPlan *p, int variant)
{
    p->variant = variant;
    p->inside = join_words(a, " + ", p->epilogue, p->nepilogue - variant);
    p->outside = join_words(a, " + ", p->epilogue + p->nepilogue - variant, variant);
}

/* A plan with the graph of the convolution only. */
static EmitPlan unplanned(Arena *a, const Graph *g, const Node *n, const Options *o)
{
    const ImageOrder order = node_attr(n, "last") ? ORDER_LAST : ORDER_ROW;
    const Tail t = tail_of(g, n, o);
    const bool alone = n->op->role == ROLE_DX && gpu_of(o->arch)->slow_fused;
    EmitPlan p = {.node = n, .nepilogue = t.n, .first = alone ? t.n : 0};
    for (int i = 0; i <= t.n; i++)
        p.graph[i] = graph_words(a, g->step->chunk, order, n, t.op, t.n - i);
    for (int i = 0; i < t.n; i++)
        p.epilogue[i] = t.op[i];
    p.variants = join_words(a, " | ", p.graph + p.first, t.n + 1 - p.first);
    emit_plan_take(a, &p, t.n);
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
            while (same < n && strcmp((*plan)[same].variants, p.variants) != 0)
                same++;
            if (same == n)
                ARENA_PUSH(a, *plan, n, p);
        }
    return n;
}

/* Writes bytes as a string of C, in lines of about 100 columns. */
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

/* The index of the plan whose chosen variant is `graph`; -1: none. */
static int plan_index(const Writer *w, const char *graph)
{
    int i = w->in->nplan - 1;
    while (i >= 0 && strcmp(w->in->plan[i].graph[w->in->plan[i].variant], graph) != 0)
        i--;
    return i;
}

/* The plan of n; without plans, the graph of the convolution only. */
static EmitPlan plan_for(const Writer *w, const Node *n)
{
    EmitPlan p = unplanned(w->arena, w->g, n, w->in->options);
    for (int i = 0; i < w->in->nplan; i++) {
        const EmitPlan *plan = &w->in->plan[i];
        if (strcmp(plan->variants, p.variants) != 0)
            continue;
        emit_plan_take(w->arena, &p, p.first + plan->variant - plan->first);
        p.text = plan->text, p.bytes = plan->bytes, p.workspace = plan->workspace;
        p.engine = plan->engine, p.notes = plan->notes;
        break;
    }
    return p;
}

/* ---- calls */

static Given tensor_or_null(const char *name, const Node *n)
{
    return n ? IN(name, n) : TEXT("(const real *)nullptr");
}

/* Adds a call that computes the epilogue of a convolution in place, without the first `inside`
 * operations. */
static void lower_rest(Writer *w, const Node *n, const Tail *t, int inside)
{
    const int64_t channels = n->shape.dim[0], pixels = n->shape.dim[1] * n->shape.dim[2],
                  count = w->g->step->chunk * channels * pixels;

    cuda_call(w, "conv2d_rest", n, OUT("y", n), tensor_or_null("b", tail_tensor(t, "bias", inside)),
              tensor_or_null("a", tail_tensor(t, "add", inside)), NUMBER(count), NUMBER(channels),
              NUMBER(node_attr(n, "last") ? 1 : pixels), BOOL(node_attr(n, "act")), EACH(count));
}

CudaCall *graph_lower_rest_dx(Writer *w, const Node *n)
{
    const int64_t count = cuda_numbers(w, n);
    CudaCall *c =
        cuda_call(w, node_is(n, "dense_dx") ? "dense_dx_rest" : "conv2d_dx_rest", n, OUT("dx", n),
                  IN("y", n->in[2]), NUMBER(count), EACH(ceil_div(count, RT_PACK)));
    c->device = "relu_undone";
    return c;
}

bool graph_lower_rest(Writer *w, const Node *n)
{
    const bool conv = n->op->product == PRODUCT_CONV, y = conv && n->op->role == ROLE_Y,
               dx = (conv || node_is(n, "dense_dx")) && node_attr(n, "mask");
    if (dx)
        graph_lower_rest_dx(w, n);
    if (!y || (n->nin == 2 && !node_attr(n, "act")))
        return dx;
    const Tail t = tail_of(w->g, n, w->in->options);
    lower_rest(w, n, &t, 0);
    return true;
}

/* The address at which a graph writes the sums of its result, or the sums of the squares: after the
 * workspace, with the alignment that graphs need. */
static const char *sums_at(Writer *w, int64_t channels, bool squares)
{
    const int64_t each = round_up(channels, 4), bytes = 2 * each * (int64_t)sizeof(float);
    cuda_keep_apart(w, bytes);
    return squares ? arena_printf(w->arena, "APART(real) + %lld", (long long)each) : "APART(real)";
}

/* Adds a call that turns these sums into the moments that batch_norm reads. */
static void lower_graph_moments(Writer *w, const Node *n, const Node *moments)
{
    const int64_t channels = n->shape.dim[0],
                  rows = w->g->step->chunk * n->shape.dim[1] * n->shape.dim[2];
    const char *sums = sums_at(w, channels, false), *squares = sums_at(w, channels, true);

    cuda_call(w, "batch_moments_sums", n, OUT("moments", moments),
              ADDRESS(MEMORY_UNKNOWN, "real *", "sums", sums, false),
              ADDRESS(MEMORY_UNKNOWN, "real *", "squares", squares, false), NUMBER(rows),
              NUMBER(channels), EACH(channels));
}

bool graph_brings(const Writer *w, const Node *n)
{
    const Options *o = w->in->options;
    if (!n->nin || !is_graph(w->g, n->in[0], o, w->in->dtype))
        return false;
    const Tail t = tail_of(w->g, n->in[0], o);
    return t.n && t.tensor[t.n - 1] == n && plan_for(w, n->in[0]).variant == 0;
}

static const char *apart_of(const Writer *w, const Node *n)
{
    return arena_printf(w->arena, "APART(%s)", pointer_half(n->in[0]->half));
}

/* Adds a call that converts the gradient of filters to the sum in f32.  cuDNN has written the
 * gradient in two bytes to the memory after the workspace. */
static void lower_conversion(Writer *w, const Node *n)
{
    const int64_t count = shape_count(&n->shape), lanes = node_lanes(n->in[0]),
                  channels = n->shape.dim[1],
                  bytes = 2 * (lanes ? count / channels * lanes : count);
    const char *type = arena_printf(w->arena, "%s *", pointer_half(n->in[0]->half));
    CudaCall *c = cuda_call(w, lanes ? "convert_unpadded" : "convert", n, OUT("y", n),
                            ADDRESS(MEMORY_UNKNOWN, type, "a", apart_of(w, n), false),
                            NUMBER(count), BLOCKS_OF("convert", count));

    cuda_keep_apart(w, bytes);
    if (lanes)
        cuda_give(w, c, NUMBER(channels), NUMBER(lanes));
}

/* "{"conv1 (lenet.tn:8)", 0},", with a comment: the operations in the graph, and those outside of
 * it */
static const char *call_row(Writer *w, const EmitPlan *p, const Node *n, int graph)
{
    Text t = text_new(w->arena);

    text_printf(&t, "{%s, %d},", library_layer(w, n), graph);
    if (*p->inside || *p->outside)
        text_add(&t, " /*");
    if (*p->inside)
        text_printf(&t, " %s inside%s", p->inside, *p->outside ? "," : "");
    if (*p->outside)
        text_printf(&t, " %s after it: %s", p->outside,
                    !w->in->nplan            ? "not planned"
                    : p->variant == p->first ? "a kernel of Tenon is faster"
                                             : "no engine takes it");
    if (*p->inside || *p->outside)
        text_add(&t, " */");
    return t.s;
}

/* Whether n is a gradient of filters of two bytes: cuDNN computes it in two bytes, and the sum is
 * f32. */
static bool is_narrow_sum(const Node *n)
{
    return n->in[0]->half && !n->half;
}

/* Adds the fourth and the fifth tensor of a graph with the first `inside` operations. */
static void give_tail(Writer *w, CudaCall *c, const Tail *t, int inside)
{
    int k = 0;
    for (int i = 0; i < inside && t->tensor[i]; i++, k++)
        if (node_is(t->tensor[i], "batch_moments"))
            cuda_give(w, c, TEXT(sums_at(w, c->node->shape.dim[0], false)),
                      TEXT(sums_at(w, c->node->shape.dim[0], true))),
                k++;
        else
            cuda_give(w, c, DIRECT(t->tensor[i], node_is(t->tensor[i], "sum_to")));
    for (; k < 2; k++)
        cuda_give(w, c, DIRECT(NULL, false));
}

/* Adds the call of a kernel of Tenon after the graph, if it is needed. */
static void lower_outside(Writer *w, const Node *n, const Tail *t, int inside)
{
    const Node *moments = tail_tensor(t, "batch_moments", 0);

    if (is_narrow_sum(n))
        lower_conversion(w, n);
    else if (moments && inside)
        lower_graph_moments(w, n, moments);
    else if (n->op->role == ROLE_Y && inside < t->n && !moments)
        lower_rest(w, n, t, inside);
    else if (n->op->role == ROLE_DX && t->n && !inside)
        graph_lower_rest_dx(w, n);
}

bool graph_lower(Writer *w, const Node *n)
{
    if (!is_graph(w->g, n, w->in->options, w->in->dtype))
        return false;
    const bool y = n->op->role == ROLE_Y;
    const Tail t = tail_of(w->g, n, w->in->options);
    EmitPlan *p = arena_alloc(w->arena, sizeof *p);
    *p = plan_for(w, n);
    const int inside = t.n - p->variant,
              graph = library_row(w, &w->cuda->graphs, p->graph[p->variant]);
    const char *row = call_row(w, p, n, graph);
    CudaCall *c =
        library_call(w, "rt_graph", "cuDNN", n, library_row(w, &w->cuda->graph_calls, row));

    c->graph = p;
    cuda_give(w, c, DIRECT(n->in[!y], false), DIRECT(n->in[y], false),
              is_narrow_sum(n) ? TEXT(apart_of(w, n)) : DIRECT(n, true));
    give_tail(w, c, &t, inside);
    cuda_give(w, c, TEXT("WORKSPACE"));
    lower_outside(w, n, &t, inside);
    return true;
}

int64_t graph_workspace(const Writer *w)
{
    int64_t most = 0;
    for (int i = 0; i < w->in->nplan; i++)
        most = w->in->plan[i].workspace > most ? w->in->plan[i].workspace : most;
    return w->cuda->graphs.n ? most : 0;
}

void graph_tables(const Writer *w, Text *t)
{
    if (!w->cuda->graphs.n)
        return;
    text_add(t, "/* ---- convolutions through cuDNN: graphs without duplicates, and a row a call "
                "---- */\n\n");
    for (int i = 0; i < w->cuda->graphs.n; i++)
        if (plan_index(w, w->cuda->graphs.row[i]) >= 0)
            text_printf(t, "extern \"C\" const char rt_plan_%d[];\n",
                        plan_index(w, w->cuda->graphs.row[i]));
    text_add(t, "static const RtGraph graphs[] = {\n");
    for (int i = 0; i < w->cuda->graphs.n; i++) {
        const int plan = plan_index(w, w->cuda->graphs.row[i]);
        text_printf(t, "    {\"%s\",\n        ", w->cuda->graphs.row[i]);
        if (plan >= 0)
            text_printf(t, "rt_plan_%d, %zu},\n", plan, w->in->plan[plan].bytes);
        else
            text_add(t, "nullptr, 0},\n");
    }
    text_add(t, "};\nstatic const RtGraphCall graph_calls[] = {\n");
    for (int i = 0; i < w->cuda->graph_calls.n; i++)
        text_printf(t, "    %s\n", w->cuda->graph_calls.row[i]);
    text_add(t, "};\n\n");
}
