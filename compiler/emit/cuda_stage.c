/* cuda_stage.c -- a stage of a step that is one launch with others: what it takes, in which order it goes, whether blocks meet before it. */
#include "emit/cuda_stage.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------- what a stage takes */

/* Blocks that have something to do. */
static double parts_of(const Node *n, double results)
{
    const bool sum = node_is(n, "sum_to") || node_is(n, "batch_moments") || node_is(n, "batch_norm_dw");
    double each = sum ? 1 : !emit_counts_flops(n) ? RT_THREADS : node_is(n, "conv2d_dw") ? 9 : RT_TILE * RT_TILE;
    for (; each > RT_TILE_SIDE * RT_TILE_SIDE && results / each < RT_FEW_BLOCKS; each /= 4)
        ;
    return results > each ? results / each : 1;
}

/* A roofline's time, by as many multiprocessors as its parts, or the launch's blocks, occupy. */
double stage_seconds(const Gpu *g, double flops, double bytes, double parts, double most)
{
    const double work = flops / g->f32, move = bytes / g->bandwidth, whole = work > move ? work : move;
    return whole * g->processors / (parts < most ? parts : most);
}

void stage_work(const Writer *w, double flops, double bytes, double parts, double times)
{
    const Gpu *g = gpu_of(w->in->options->arch);
    Stages *s = w->stages;
    const double all = times * stage_seconds(g, flops, bytes, parts, g->processors);

    s->all += all, s->apart += all;
    s->few += times * stage_seconds(g, flops, bytes, parts, CLUSTER);
    s->stages += (int)times;
}

void stage_cost(const Writer *w, const Touch *touch, int n)
{
    const Stages *s = w->stages;
    const double flops = s->node ? statement_flops(s->node) * (double)w->g->step->chunk : 0;
    double bytes = 0, results = 1;

    for (int i = 0; i < n; i++) {
        const double one = touch[i].to == INT64_MAX ? 0 : (double)(touch[i].to - touch[i].from);
        bytes += one;
        results = touch[i].writes && one / 4 > results ? one / 4 : results;
    }
    stage_work(w, flops, bytes, s->node ? parts_of(s->node, results) : 1, s->node ? (double)node_steps(s->node) : 1);
}

/* ------------------------------------------------------------------------------- stages as they are written */

bool stage_together(const Writer *w)
{
    return w->stages && !w->stages->groups;
}

bool stage_groups(const Writer *w)
{
    return w->stages && w->stages->groups;
}

const char *stage_meeting(const Writer *w)
{
    return w->stages->cluster ? "cluster_meet(arrived);" : "grid_meet(arrived);";
}

void stage_meet(Writer *w)
{
    w->stages->must = true;
}

static bool clashes(const Stages *s, const Touch *touch, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s->ntouch; k++)
            if (touch_conflict(&touch[i], &s->touch[k]))
                return true;
    return false;
}

bool stage_clashes(const Writer *w, const Touch *touch, int n)
{
    return clashes(w->stages, touch, n);
}

bool stage_free(Writer *w, const Node *n)
{
    const char *at = pointer_to(w, n);
    Touch t;
    return touch_of(w, at, strlen(at), &t) && !clashes(w->stages, &t, 1);
}

void stage_remember(Writer *w, const Touch *touch, int n)
{
    Stages *s = w->stages;
    for (int i = 0; i < n; i++)
        ARENA_PUSH(w->arena, s->touch, s->ntouch, touch[i]);
}

/* A metric is told as soon as blocks have met behind its value, so that the update need not wait for it. */
void stage_metric(Writer *w, int i, const char *indent)
{
    const char *statement = cuda_metric(w, i);
    const Touch told = {.memory = MEMORY_METRIC, .from = i, .to = i + 1, .writes = true};

    w->stages->told |= 1u << i;
    w->stages->order = w->stages->other = (Order){0};
    stage_before(w, statement, indent);
    stage_remember(w, &told, 1);
    statement_wrapped(&w->body, statement, indent);
}

static void meet_here(Writer *w, const char *indent)
{
    Stages *s = w->stages;
    const Node *node = s->node;
    const Order order = s->order, other = s->other;

    text_printf(&w->body, "%s%s\n", indent, stage_meeting(w));
    s->meetings += node ? (int)node_steps(node) : 1;
    s->ntouch = 0, s->must = false, s->node = NULL;
    for (int i = 0; i < w->g->nmetric; i++)
        if ((s->pending & ~s->told) >> i & 1 && !(node && node->loop))
            stage_metric(w, i, indent);
    s->node = node, s->order = order, s->other = other;
}

void stage_before_touches(Writer *w, const Touch *touch, int n, const char *indent)
{
    if (w->stages->must || clashes(w->stages, touch, n))
        meet_here(w, indent);
    stage_remember(w, touch, n);
}

void stage_before(Writer *w, const char *statement, const char *indent)
{
    Stages *s = w->stages;
    Touch touch[4 * STAGE_ARGUMENTS] = {0};
    int n = 0;

    for (const char *at = statement; at && n <= 3 * STAGE_ARGUMENTS; at = strstr(at, "; ")) {
        at += at > statement ? 2 : 0;
        if (strncmp(at, stage_meeting(w), 8) == 0)
            s->meetings++, s->stages++;
        else if (strncmp(at, "/*", 2) != 0)
            n += touches_of(w, at, s->order, s->other, touch + n);
    }
    for (int i = 0; i < s->nextra; i++)
        touch[n++] = s->extra[i];
    s->nextra = 0;
    stage_cost(w, touch, n);
    stage_before_touches(w, touch, n, indent);
}

void stage_write(Writer *w, const char *statement)
{
    w->stages->order = w->stages->other = (Order){0};
    stage_before(w, statement, "    ");
    statement_wrapped(&w->body, statement, "    ");
}

void stage_unordered(Writer *w, const char *statement)
{
    if (w->stages->must)
        meet_here(w, "    ");
    stage_cost(w, NULL, 0);
    statement_wrapped(&w->body, statement, "    ");
}

/* ------------------------------------------------------------------------------- orders */

static const char any_thread[] = "FOR_EACH";

/* The loops walk an operand as numbers 0, 1, 2 ... in their order. */
bool stage_in_order(const Nest *t, const int64_t *stride)
{
    int64_t each = 1;
    for (int i = t->n - 1; i >= 0; i--) {
        if (stride[i] != each)
            return false;
        each *= t->count[i];
    }
    return true;
}

/* May it follow that order from where blocks last met? */
static bool can_follow(Writer *w, const Nest *t, const Node *n, Order o)
{
    Touch touch[LOOP_LEAVES + 1] = {0};
    int found = 0;

    for (int k = -1; k < t->nleaf; k++) {
        const char *at = pointer_to(w, k < 0 ? n : t->leaf[k].node);
        touch[found].writes = false;
        if (touch_in_order(w, at, strlen(at), o.which >> (k + 1) & 1 ? o : (Order){0}, &touch[found]))
            touch[found++].writes = k < 0;
    }
    return !clashes(w->stages, touch, found);
}

void stage_begin(Writer *w)
{
    w->stages->nextra = 0;
    w->stages->order = w->stages->other = (Order){0}, w->stages->decided = NULL;
}

/* In the order of one of the stages since blocks last met that has one of its own. */
static bool follow_product(Writer *w, const Nest *t, const Node *n)
{
    Stages *s = w->stages;
    for (int k = 0; k < s->ntouch; k++) {
        Order o = s->order;
        o.text = s->touch[k].order;
        if (o.text && strchr(o.text, '(') && s->touch[k].count == o.count && can_follow(w, t, n, o)) {
            s->order = o;
            return true;
        }
    }
    return false;
}

const char *stage_elementwise(Writer *w, const Nest *t, const Node *n, int64_t count)
{
    Stages *s = w->stages;

    if (!s)
        return NULL;
    if (s->decided != n) {
        s->order = (Order){any_thread, count, stage_in_order(t, t->out)};
        for (int k = 0; k < t->nleaf; k++)
            s->order.which |= (unsigned)stage_in_order(t, t->leaf[k].stride) << (k + 1);
        const bool wishes = node_is(n, "scan_item"); /* whoever reads it goes on with the product */
        if (!(wishes && follow_product(w, t, n)) && !s->must && !can_follow(w, t, n, s->order))
            follow_product(w, t, n);
        s->decided = n;
    }
    return s->order.text == any_thread ? NULL : s->order.text;
}

void stage_move(Writer *w, int64_t count, unsigned which)
{
    if (w->stages)
        w->stages->order = (Order){any_thread, count, which};
}

const char *stage_scan(Writer *w, const Node *n, const char *fn)
{
    const bool item = !strcmp(fn, "scan_item"), put = !strcmp(fn, "scan_put");
    const Node *x = n->in[0];
    const int64_t all = stage_numbers(w, put ? x : n);
    const Nest t = {.n = 1, .count = {all}, .out = {!put}, .nleaf = 1, .leaf = {{.node = x, .stride = {!item}}}};

    if (!stage_groups(w) || (!item && !put && strcmp(fn, "scan_copy") != 0) || node_is(x, "const"))
        return NULL;
    const char *order = stage_elementwise(w, &t, n, all);
    return order ? arena_printf(w->arena, "[=](auto f) { %s, f); }", order) : NULL;
}

/* "conv2d_blocks(Conv{ ... })" of "conv2d_results(Conv{ ... }", or of a walk of pool_results through that. */
const char *stage_order_blocks(Arena *a, const char *order)
{
    static const char word[] = "_results(";
    const char *at = order, *sizes = NULL;

    for (const char *next = order; (next = strstr(next, word)); next += strlen(word))
        at = next, sizes = next + strlen(word);
    const char *name = at, *end = sizes + strcspn(sizes, "}");
    while (name > order && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
        name--;
    if (*sizes >= '0' && *sizes <= '9') /* sum_results(20 */
        return arena_printf(a, "sum_blocks(%.*s)", (int)strspn(sizes, "0123456789"), sizes);
    return arena_printf(a, "%.*s_blocks(%.*s})", (int)(at - name), name, (int)(end - sizes), sizes);
}

int64_t stage_numbers(const Writer *w, const Node *n)
{
    return shape_count(&n->shape) * (n->shape.batched ? w->g->step->chunk : 1);
}

/* Of the loops that are not summed over, whose stride is not 0. */
static bool kept_in_order(const Nest *t)
{
    int64_t each = 1;
    for (int i = t->n - 1; i >= 0; i--) {
        if (t->out[i] != 0 && t->out[i] != each)
            return false;
        each *= t->out[i] != 0 ? t->count[i] : 1;
    }
    return true;
}

void stage_sums(Writer *w, const Nest *t, const Node *n, int64_t kept)
{
    if (w->stages && kept_in_order(t) && stage_numbers(w, n) == kept)
        w->stages->order = (Order){arena_printf(w->arena, "sum_results(%lld", (long long)kept), kept, 1};
}

void stage_kernel(Writer *w, const Node *n, const char *fn, const char *sizes)
{
    static const char *const products[] = {"dense", "dense_dx", "dense_dw", "conv2d", "conv2d_dx", "conv2d_dw"};
    /* y[i] = something of a[i] and b[i], if those bits are set, and of others */
    static const struct {
        const char *fn;
        unsigned which;
    } eachs[] = {{"max_pool", 1}, {"max_pool_dx", 1}, {"avg_pool", 1}, {"avg_pool_dx", 1}, {"global_avg_pool_dx", 1}, {"batch_total", 3},
                 {"batch_norm", 3}, {"batch_norm_then", 3}, {"batch_norm_dx", 7}},
      channels[] = {{"batch_moments", 1}, {"batch_statistics", 3}, {"batch_norm_dw", 8}}; /* of which they hold two each */
    Stages *s = w->stages;

    for (size_t i = 0; s && i < sizeof products / sizeof *products; i++)
        if (!strcmp(products[i], fn))
            s->order = (Order){arena_printf(w->arena, "%s_results(%s", fn, sizes), stage_numbers(w, n), 1};
    for (size_t i = 0; s && i < sizeof eachs / sizeof *eachs; i++)
        if (!strcmp(eachs[i].fn, fn))
            s->order = (Order){any_thread, stage_numbers(w, n), eachs[i].which};
    for (size_t i = 0; s && i < sizeof channels / sizeof *channels; i++)
        if (!strcmp(channels[i].fn, fn))
            s->order = (Order){"FOR_CHANNELS", 2 * n->shape.dim[n->shape.rank - 1], channels[i].which};
}

/* ------------------------------------------------------------------------------- behind pooling */

/* ".stride_h = 2" of a size as it is written. */
static int64_t field(const char *size, const char *name)
{
    const char *at = strstr(size, name);
    return at ? atoll(at + strlen(name) + strlen(" = ")) : 0;
}

/* Is each pixel in one window, and that whole? */
static bool windows_apart(const char *size)
{
    return field(size, ".r") == field(size, ".stride_h") && field(size, ".s") == field(size, ".stride_w") && field(size, ".pad_h") == 0 &&
           field(size, ".pad_w") == 0 && field(size, ".oh") * field(size, ".r") == field(size, ".h") &&
           field(size, ".ow") * field(size, ".s") == field(size, ".w");
}

const char *stage_pool(Writer *w, const Node *n, const char *fn, const char *size)
{
    Stages *s = w->stages;
    const bool max = !strcmp(fn, "max_pool_dx");
    if (!s || s->must || !(max || !strcmp(fn, "avg_pool_dx")) || !windows_apart(size))
        return NULL;
    if (s->decided != n) {
        const Node *d = n->in[n->nin - 1];
        const char *at = pointer_to(w, d);
        const int64_t count = stage_numbers(w, d);
        s->pool = NULL;
        for (int k = 0; k < s->ntouch && !s->pool; k++) {
            const Order o = {s->touch[k].order, count, max ? 4 : 2};
            Touch t;
            if (!o.text || !strchr(o.text, '(') || s->touch[k].count != count || !touch_in_order(w, at, strlen(at), o, &t) || clashes(s, &t, 1))
                continue;
            s->pool = arena_printf(w->arena, "[=](auto f) { %s, f); }", o.text), s->other = o;
        }
        s->decided = n;
    }
    if (s->pool)
        s->order = (Order){arena_printf(w->arena, "pool_results(%s, %s", size, s->pool), stage_numbers(w, n), 1};
    return s->pool;
}
