/* cuda_own.c -- parameters that stay on the chip through a launch of many steps (runtime/cuda/own.cuh).
 *
 * Where the threads that sum a gradient are known, each updates the numbers that it has summed itself: between the sum and the update nobody
 * meets, and weights and states of these numbers lie in its block's shared memory for the whole launch.  Not so where the update wants to
 * know all gradients first (clipping by norm), nor where a gradient is made in another order (batch_norm's, a table's): these are
 * updated by a stage of their own.
 */
#include "emit/cuda_stage.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <string.h>

static const struct {
    const char *order, *type;
} kinds[] = {{"dense_dw_results(", "DenseOwn"}, {"conv2d_dw_results(", "ConvOwn"}, {"sum_results(", "SumOwn"}};
enum { DENSE, CONV, SUM, KINDS };

static int kind_of(const char *order)
{
    int k = 0;
    while (k < KINDS && strncmp(order, kinds[k].order, strlen(kinds[k].order)) != 0)
        k++;
    return k;
}

static bool is_owned(const Stages *s, int sum)
{
    return s->order_of[sum] != NULL;
}

void own_note(Writer *w, const Node *n)
{
    Stages *s = w->stages;
    const Step *step = w->g->step;

    if (w->g->recipe.clip_norm > 0 || !s->order.text || !(s->order.which & 1) || kind_of(s->order.text) == KINDS)
        return;
    for (int i = 0; i < step->nsum; i++)
        if (step->sum[i].param && step->sum[i].root == n && step->sum[i].count == s->order.count)
            s->order_of[i] = s->order.text;
}

/* ------------------------------------------------------------------------------- room */

/* OwnRoom of own.cuh: parts that blocks take in turns, reals of each. */
typedef struct Room {
    int64_t parts, reals;
} Room;

static int64_t up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

/* Of a gradient (O, K): product_tile and product_blocks of product.cuh. */
static Room room_of_product(int64_t o, int64_t k)
{
    int64_t tile = RT_TILE;
    while (tile > RT_TILE_SIDE && up(o, tile) * up(k, tile) < RT_FEW_BLOCKS)
        tile /= 2;
    return (Room){up(o, tile) * up(k, tile), tile * tile};
}

static Room room_of(const Stages *s, const Step *step, int sum)
{
    const Shape *shape = &step->sum[sum].root->shape;
    switch (kind_of(s->order_of[sum])) {
    case DENSE:
        return room_of_product(shape->dim[0], shape->dim[1]);
    case CONV:
        return (Room){shape->dim[0] * shape->dim[1], up(shape->dim[2] * shape->dim[3], RT_WARP) * RT_WARP};
    default:
        return (Room){step->sum[sum].count, 1};
    }
}

static int states(const Writer *w)
{
    return w->g->nstate;
}

static int real_bytes(const Writer *w)
{
    return strcmp(w->in->dtype, "f64") ? 4 : 8;
}

/* What chip_of of own.cuh finds room for on the nominal GPU: bytes a block; where `fits` is given, which of the sums. */
static int64_t chip_bytes(const Writer *w, const Stages *s, int cluster, bool *fits)
{
    const Gpu *g = gpu_of(w->in->options->arch);
    const Step *step = w->g->step;
    const int64_t blocks = cluster ? cluster : (int64_t)g->processors * RT_RESIDENT,
                  limit = (cluster ? g->shared : g->shared / RT_RESIDENT) - 1024 - stage_shared(w);
    int64_t all = 0;

    for (int i = 0; i < step->nsum; i++) {
        if (!is_owned(s, i))
            continue;
        const Room r = room_of(s, step, i);
        const int64_t bytes = up(r.parts, blocks) * r.reals * (1 + states(w)) * real_bytes(w);
        const bool does = all + bytes <= limit;
        if (fits)
            fits[i] = does;
        all += does ? bytes : 0;
    }
    return all;
}

/* ------------------------------------------------------------------------------- the update */

/* Of numbers that have been fetched already a weight goes out; else weight and states come and go.  Each reads its gradient. */
static double bytes_of(const Writer *w, int sum, bool chip)
{
    const double each = chip ? 2 : 3 + 2 * states(w);
    return (double)w->g->step->sum[sum].count * each * real_bytes(w);
}

static void own_work(Writer *w, int sum)
{
    Stages *s = w->stages;
    const Gpu *g = gpu_of(w->in->options->arch);
    const double parts = (double)room_of(s, w->g->step, sum).parts;
    bool *fits = arena_alloc(w->arena, sizeof *fits * (size_t)w->g->step->nsum);

    chip_bytes(w, s, 0, fits);
    s->all += stage_seconds(g, 0, bytes_of(w, sum, fits[sum]), parts, g->processors);
    chip_bytes(w, s, CLUSTER, fits);
    s->few += stage_seconds(g, 0, bytes_of(w, sum, fits[sum]), parts, CLUSTER);
    s->stages++;
}

/* What the stages of the update take that are not owned, and what all of it takes as a launch of its own. */
static void rest_work(Writer *w)
{
    Stages *s = w->stages;
    const Gpu *g = gpu_of(w->in->options->arch);
    double all = 0, rest = 0, of_all = 0, of_rest = 0;

    for (int i = 0; i < w->g->step->nsum; i++) {
        const Sum *m = &w->g->step->sum[i];
        if (!m->param)
            continue;
        all += bytes_of(w, i, false), of_all += (double)up(m->count, RT_UPDATE_EACH);
        if (!is_owned(s, i))
            rest += bytes_of(w, i, false), of_rest += (double)up(m->count, RT_UPDATE_EACH);
    }
    s->apart += stage_seconds(g, 0, all, of_all, g->processors);
    if (of_rest == 0)
        return;
    s->all += stage_seconds(g, 0, rest, of_rest, g->processors);
    s->few += stage_seconds(g, 0, rest, of_rest, CLUSTER);
}

/* Number `sum` of the step's sums: its row of update_rows, and its place in Chip. */
static int row_of(const Step *s, int sum)
{
    int n = 0;
    for (int i = 0; i < sum; i++)
        n += s->sum[i].param != NULL;
    return n;
}

/* Bytes of a parameter and its states in `fixed`. */
static int touch_param(const Writer *w, const Param *p, Order o, Touch *touch)
{
    int n = 0;
    for (int k = -1; k < states(w); k++) {
        const int64_t at = k < 0 ? p->offset : p->offset_state[k];
        if (at >= 0)
            touch[n++] = (Touch){MEMORY_FIXED, at, at + p->count_memory * real_bytes(w), o.count, o.text, true};
    }
    return n;
}

static int touch_sum(Writer *w, const Sum *m, Order o, Touch *touch)
{
    const char *at = pointer_to(w, m->root);
    return touch_in_order(w, at, strlen(at), o, touch);
}

static const char *own_call(Writer *w, int sum, const char *what)
{
    const Step *step = w->g->step;
    const char *order = w->stages->order_of[sum];
    const int k = kind_of(order);
    const char *body = arena_printf(w->arena, "    own(what, r, &update_rows[%d], at, %d, %lld, %d, %s{%s}, %s);\n", row_of(step, sum), states(w),
                                    (long long)step->shards, cuda_loss(w->g), kinds[k].type, order + strlen(kinds[k].order), cuda_rule(w->g));
    return kernel_launch(w, "own", "OwnWhat what, const Rt *r, int at", body, arena_printf(w->arena, "%s, r, chip.at[%d]", what, row_of(step, sum)), "1");
}

void own_stages(Writer *w)
{
    const Step *step = w->g->step;

    for (int i = 0; i < step->nsum; i++) {
        const Sum *m = &step->sum[i];
        if (!is_owned(w->stages, i) || w->stages->joined[i])
            continue;
        const Order o = {w->stages->order_of[i], m->count, 1};
        Touch touch[6] = {{.memory = MEMORY_METRIC, .to = INT64_MAX}};
        int n = 1;
        n += touch_sum(w, m, o, touch + n);
        n += touch_param(w, m->param, o, touch + n);
        own_work(w, i);
        stage_before_touches(w, touch, n, "    ");
        statement_wrapped(&w->body, arena_printf(w->arena, "%s /* %s */", own_call(w, i, "OWN_UPDATE"), m->param->name), "    ");
    }
    rest_work(w);
}

int own_rest(Writer *w, Touch **touch)
{
    const Stages *s = w->stages;
    const Step *step = w->g->step;
    const Touch clipped = {.memory = MEMORY_SCRATCH, .to = INT64_MAX, .writes = true}, metric = {.memory = MEMORY_METRIC, .to = INT64_MAX};
    int n = 0, rest = 0;

    w->owned = arena_alloc(w->arena, sizeof *w->owned * (size_t)(step->nsum + 1));
    w->nowned = 0;
    *touch = arena_alloc(w->arena, sizeof **touch * (size_t)(8 * step->nsum + 2));
    for (int i = 0; i < step->nsum; i++) {
        const Sum *m = &step->sum[i];
        w->owned[i] = is_owned(s, i);
        w->nowned += w->owned[i];
        if (w->owned[i] || !(m->param || m->update))
            continue;
        rest++;
        n += touch_sum(w, m, (Order){0}, *touch + n);
        for (int k = 0; !m->param && k < m->update->nin; k++)
            if (m->update->in[k]->param)
                n += touch_param(w, m->update->in[k]->param, (Order){0}, *touch + n);
        if (m->param)
            n += touch_param(w, m->param, (Order){0}, *touch + n);
        if (m->known) /* what all shards have */
            (*touch)[n++] = (Touch){.memory = MEMORY_FIXED, .to = INT64_MAX};
    }
    if (rest == 0)
        return 0;
    (*touch)[n++] = metric;
    if (w->g->recipe.clip_norm > 0)
        (*touch)[n++] = clipped;
    return n;
}

/* ------------------------------------------------------------------------------- inside of the product */

/* Has all that reads the parameter in this step been written, and does nobody but the update want its gradient? */
static bool all_have_read(const Writer *w, const Param *p, const Node *dw)
{
    for (int i = 0; i < w->g->nnode; i++) {
        const Node *n = w->g->node[i];
        for (int k = 0; k < n->nin; k++)
            if ((n->in[k] == p->node && !node_is(n, "update") && !w->stages->done[n->id]) || (n->in[k] == dw && !node_is(n, "update")))
                return false;
    }
    return true;
}

static bool told(const Writer *w)
{
    const int loss = cuda_loss(w->g);
    return loss < 0 || w->stages->told >> loss & 1;
}

const char *own_join(Writer *w, const Node *n, const char *fn, const char *size)
{
    Stages *s = w->stages;
    const Step *step = w->g->step;
    int i = 0;

    if (!stage_together(w) || strcmp(fn, "dense_dw") != 0)
        return NULL;
    while (i < step->nsum && !(step->sum[i].param && step->sum[i].root == n))
        i++;
    if (i == step->nsum || w->g->recipe.clip_norm > 0 || step->shards > 1 || n->loop || s->must || !step_writes_sum(w->g, n, w->in->options))
        return NULL;
    const Sum *m = &step->sum[i];
    const Touch extra[] = {{.memory = MEMORY_METRIC, .to = INT64_MAX},
                           {MEMORY_FIXED, m->param->offset, m->param->offset + m->count * real_bytes(w), 0, NULL, true}};
    if (s->decided != n)
        s->joins = told(w) && all_have_read(w, m->param, n) && stage_free(w, n->in[0]) && stage_free(w, n->in[1]) &&
                   !stage_clashes(w, extra, 2);
    s->decided = n;
    if (!s->joins)
        return NULL;
    s->order_of[i] = arena_printf(w->arena, "%s%s", kinds[DENSE].order, size);
    s->joined[i] = true;
    s->order = s->other = (Order){0};
    memcpy(s->extra, extra, sizeof extra);
    s->nextra = 2;
    const char *body = arena_printf(w->arena, "    dense_dw_own(r, &update_rows[%d], at, %d, %d, a, b, %s{%s}, %s);\n", row_of(step, i), states(w),
                                    cuda_loss(w->g), kinds[DENSE].type, size, cuda_rule(w->g));
    return kernel_launch(w, "dense_dw_own", "const Rt *r, int at, const real *a, const real *b", body,
                         arena_printf(w->arena, "r, chip.at[%d], %s, %s", row_of(step, i), pointer_to(w, n->in[0]), pointer_to(w, n->in[1])), "1");
}

/* ------------------------------------------------------------------------------- for the kernel of many steps */

void own_finish(Writer *w, Stages *s, Text *t)
{
    const Step *step = w->g->step;
    Text rooms = text_new(w->arena), calls = text_new(w->arena);

    w->stages = s;
    for (int i = 0; i < step->nsum; i++) {
        if (!is_owned(s, i) && step->sum[i].param)
            text_printf(&rooms, "    {}, /* %s */\n", step->sum[i].param->name);
        if (!is_owned(s, i))
            continue;
        const char *call = own_call(w, i, "what");
        text_printf(&rooms, "    own_room(%.*s_size(), %d), /* %s */\n", (int)(strstr(call, "_stage(") - call), call, states(w), step->sum[i].param->name);
        text_printf(&calls, "    %s\n", call);
    }
    w->stages = NULL;
    text_printf(t,
                "/* Weights and states that stay on the chip during a launch if there is room: a row for each row of update_rows. */\n"
                "static const OwnRoom own_rooms[RT_OWNED] = {\n%s};\n"
                "DEVICE void owned(OwnWhat what, const Rt *r, const Chip &chip)\n{\n    (void)what, (void)r, (void)chip;\n%s}\n\n",
                rooms.s, calls.s);
}

const char *own_said(const Writer *w, const Stages *s, int cluster)
{
    const Step *step = w->g->step;
    bool *fits = arena_alloc(w->arena, sizeof *fits * (size_t)(step->nsum + 1));
    const double bytes = (double)chip_bytes(w, s, cluster, fits);
    int stay = 0, all = 0;

    for (int i = 0; i < step->nsum; i++)
        stay += fits[i], all += step->sum[i].param != NULL;
    return arena_printf(w->arena, "Weights%s of %d of %d parameters stay on the chip through a launch: %.1f KB a block.",
                        states(w) ? " and states" : "", stay, all, bytes / 1024);
}
