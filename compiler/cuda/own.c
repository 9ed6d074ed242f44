/* own.c -- keeps parameters in shared memory during a launch of many steps (runtime/cuda/own.cuh).
 *
 * If the order of the threads that add a gradient is known, each thread updates the numbers that it
 * has added.  Then no barrier is needed between sum and update, and the weights and states of these
 * numbers stay in the shared memory of the block during the whole launch.  This is impossible if
 * the update needs all gradients first (clipping by norm), or if a gradient has another order (of
 * batch_norm or of a table).  A separate stage updates such parameters. */
#include "cuda/lower.h"
#include "cuda/spell.h"
#include "cuda/steps.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <string.h>

enum { DENSE, CONV, SUM, EACH_NUMBER, KINDS };

/* The orders whose threads can keep a parameter, and their types in own.cuh. */
static const struct {
    Walk walk;
    const char *form, *type;
} kinds[KINDS] = {{WALK_RESULTS, "dense_dw", "DenseOwn"},
                  {WALK_RESULTS, "conv2d_dw", "ConvOwn"},
                  {WALK_SUMS, NULL, "SumOwn"},
                  {WALK_EACH, NULL, "EachOwn"}};

static int kind_of(const Order *o)
{
    int k = 0;
    while (k < KINDS &&
           (o->walk != kinds[k].walk || (kinds[k].form && strcmp(o->form, kinds[k].form) != 0)))
        k++;
    return k;
}

static void choose_owner(const Writer *w, const CudaCall *c)
{
    const Step *step = w->g->step;
    if (!c->node || !c->natural || !c->operand[0].walked || kind_of(c->natural) == KINDS)
        return;
    for (int i = 0; i < step->nsum; i++)
        if (step->sum[i].param && step->sum[i].root == c->node &&
            step->sum[i].count == c->natural->count)
            w->cuda->owned[i] = c->natural;
}

void own_choose(Writer *w, const CudaCalls *l)
{
    const Step *step = w->g->step;
    w->cuda->owned = arena_alloc(w->arena, sizeof *w->cuda->owned * (size_t)(step->nsum + 1));
    w->cuda->nowned = 0;
    for (int i = 0; i < l->n && !recipe_updates_last(&w->g->recipe); i++)
        if (l->call[i]->kind == KIND_KERNEL)
            choose_owner(w, l->call[i]);
    for (int i = 0; i < step->nsum; i++)
        w->cuda->nowned += w->cuda->owned[i] != NULL;
}

/* ------------------------------------------------------------------------------- shared memory */

/* OwnLayout of own.cuh: number of parts, which blocks take in turn, and reals of a part. */
typedef struct OwnLayout {
    int64_t parts, reals;
} OwnLayout;

/* The parts of a gradient (O, K): the tiles of product.cuh. */
static OwnLayout layout_of_product(int64_t o, int64_t k)
{
    const int tile = rt_tile(RT_TILE_ONE_LAUNCH, o, k);
    return (OwnLayout){rt_tile_blocks(tile, o, k), RT_TILE_ROWS(tile) * RT_TILE_COLUMNS(tile)};
}

static OwnLayout layout_of(const Writer *w, int sum)
{
    const Step *step = w->g->step;
    const Shape *shape = &step->sum[sum].root->shape;
    switch (kind_of(w->cuda->owned[sum])) {
    case DENSE:
        return layout_of_product(shape->dim[0], shape->dim[1]);
    case CONV:
        return (OwnLayout){shape->dim[0] * shape->dim[1],
                           round_up(shape->dim[2] * shape->dim[3], RT_WARP)};
    case EACH_NUMBER:
        return (OwnLayout){ceil_div(step->sum[sum].count, RT_THREADS), RT_THREADS};
    default:
        return (OwnLayout){step->sum[sum].count, 1};
    }
}

/* Bytes of a block's shared memory that chip_of (own.cuh) fills on the nominal GPU.  If `fits` is
 * not NULL, sets fits[i] for each sum whose parameter fits. */
static int64_t chip_bytes(const Writer *w, int cluster, bool *fits)
{
    enum { RESERVED = 1024 }; /* bytes of a block's shared memory that the driver keeps */
    const Gpu *g = gpu_of(w->in->options->arch);
    const Step *step = w->g->step;
    const int64_t blocks = cluster ? cluster : (int64_t)g->processors * RT_RESIDENT,
                  limit = (cluster ? g->shared : g->shared / RT_RESIDENT) - RESERVED - RT_SHARED;
    int64_t all = 0;

    for (int i = 0; i < step->nsum; i++) {
        if (!w->cuda->owned[i])
            continue;
        const OwnLayout r = layout_of(w, i);
        const int64_t bytes =
            ceil_div(r.parts, blocks) * r.reals * (1 + w->g->nstate) * cuda_real_bytes(w);
        const bool does = all + bytes <= limit;
        if (fits)
            fits[i] = does;
        all += does ? bytes : 0;
    }
    return all;
}

/* ---------------------------------------- price */

/* A parameter in shared memory is only written to global memory; else parameter and states are read
 * and written.  In both cases, the gradient is read. */
CallPrice own_price(const Writer *w, int sum, int cluster)
{
    bool *fits = arena_alloc(w->arena, sizeof *fits * (size_t)w->g->step->nsum);

    chip_bytes(w, cluster, fits);
    const double each = fits[sum] ? 2 : 3 + 2 * w->g->nstate;
    return (CallPrice){.bytes = (double)w->g->step->sum[sum].count * each * cuda_real_bytes(w),
                       .blocks = (double)layout_of(w, sum).parts,
                       .peak = 1};
}

/* ------------------------------------------------------------------------------- the update */

/* Adds the row of a sum in update_rows, and its index in Chip, as arguments. */
static void give_row(Writer *w, CudaCall *c, int sum)
{
    const int row = update_parameters(w, sum);
    cuda_give(w, c, TEXT(arena_printf(w->arena, "&update_rows[%d]", row)),
              PARAM("int ", "at", arena_printf(w->arena, "chip.at[%d]", row)),
              NUMBER(w->g->nstate));
}

/* The order as a literal: "DenseOwn{Dense{ .n = 64, ... }}". */
static const Sizes *own_sizes(Writer *w, const Order *o)
{
    Sizes *s = sizes_new(w->arena, kinds[kind_of(o)].type);
    s->inner = o->sizes;
    if (!o->sizes)
        sizes_int(s, NULL, o->count);
    return s;
}

static CudaCall *lower_own(Writer *w, int sum, const char *what)
{
    const Step *step = w->g->step;
    CudaCall *c = cuda_call(w, "own", NULL, PARAM("OwnWhat ", "what", what),
                            RT_READS(MEMORY_METRIC, 0, INT64_MAX));

    give_row(w, c, sum);
    cuda_give(w, c, NUMBER(step->shards), NUMBER(graph_metric(w->g, "loss")),
              SIZES(own_sizes(w, w->cuda->owned[sum])), TEXT(update_rule(w->g)));
    update_access(w, c, sum, false, true);
    c->owned = sum, c->comment = step->sum[sum].param->name, c->blocks.number = "1";
    c->natural = w->cuda->owned[sum];
    return c;
}

void own_lower(Writer *w)
{
    for (int i = 0; i < w->g->step->nsum; i++)
        if (w->cuda->owned[i])
            lower_own(w, i, "OWN_UPDATE");
}

/* ---------------------------------------- updates inside of products */

/* Whether all stages that read the parameter in this step are complete, and nothing but the update
 * reads its gradient. */
static bool all_have_read(const Writer *w, const Stages *s, const Param *p, const Node *dw)
{
    for (int i = 0; i < w->g->nnode; i++) {
        const Node *n = w->g->node[i];
        for (int k = 0; k < n->nin && !node_is(n, "update"); k++)
            if (n->in[k] == dw || (n->in[k] == p->node && !s->done[n->id]))
                return false;
    }
    return true;
}

/* Sets c->with_update for the gradient of dense weights, if no other operation comes between
 * gradient and update. */
void own_lower_product(Writer *w, const Node *n, CudaCall *c)
{
    const Step *step = w->g->step;
    int sum = 0;

    while (sum < step->nsum && !(step->sum[sum].param && step->sum[sum].root == n))
        sum++;
    if (strcmp(c->form, "dense_dw") != 0 || sum == step->nsum ||
        recipe_updates_last(&w->g->recipe) || step->shards > 1 || n->loop ||
        !step_writes_sum(w->g, n, w->in->options))
        return;
    const Param *p = step->sum[sum].param;
    CudaCall *u = cuda_call(w, "dense_dw_own", n, RT_READS(MEMORY_METRIC, 0, INT64_MAX));
    w->cuda->list->n--; /* u is not in the list, because it can only replace c */
    give_row(w, u, sum);
    cuda_give(w, u, NUMBER(graph_metric(w->g, "loss")), IN("a", n->in[0]), IN("b", n->in[1]),
              SIZES(own_sizes(w, c->natural)), TEXT(update_rule(w->g)),
              ACCESS(MEMORY_FIXED, p->offset, p->offset + step->sum[sum].count * cuda_real_bytes(w),
                     true));
    u->operand[u->noperand - 1].param = p;
    u->blocks.number = "1", u->updates = sum;
    u->first = true, u->needs_barrier = c->needs_barrier;
    c->with_update = u;
}

/* Whether the loss is known and all readers of the weights have run. */
bool own_can_update(Writer *w, const Stages *s, CudaCall *c)
{
    const int loss = graph_metric(w->g, "loss");
    return (loss < 0 || s->written >> loss & 1) &&
           all_have_read(w, s, c->operand[c->noperand - 1].param, c->node) &&
           !pending_conflict(&s->pending, c);
}

/* ---------------------------------------- code for the kernel of many steps */

void own_spell(Writer *w, Text *t)
{
    const Step *step = w->g->step;
    Text layouts = text_new(w->arena), calls = text_new(w->arena);

    cuda_list(w, 0, 1);
    for (int i = 0; i < step->nsum; i++) {
        const Param *p = step->sum[i].param;
        if (!w->cuda->owned[i] && p)
            text_printf(&layouts, "    {}, /* %s */\n", p->name);
        if (!w->cuda->owned[i])
            continue;
        const CudaCall *c = lower_own(w, i, "what");
        const char *call = spell_stage(w, c);
        text_printf(&layouts, "    own_layout(%s, %d), /* %s */\n", spell_sizes(w, c), w->g->nstate,
                    p->name);
        text_printf(&calls, "    %s\n", call);
    }
    w->cuda->list = NULL;
    text_printf(t,
                "/* Weights and states that stay on the chip during a launch if there is room: a "
                "row for each row of update_rows. */\n"
                "static const OwnLayout own_layouts[RT_OWNED] = {\n%s};\n"
                "DEVICE void owned(OwnWhat what, const Rt *r, const Chip &chip)\n{\n    "
                "(void)what, (void)r, (void)chip;\n%s}\n\n",
                layouts.s, calls.s);
}

const char *own_said(const Writer *w, int cluster)
{
    const Step *step = w->g->step;
    bool *fits = arena_alloc(w->arena, sizeof *fits * (size_t)(step->nsum + 1));
    const double bytes = (double)chip_bytes(w, cluster, fits);
    int stay = 0, all = 0;

    for (int i = 0; i < step->nsum; i++)
        stay += fits[i], all += step->sum[i].param != NULL;
    return arena_printf(w->arena,
                        "Weights%s of %d of %d parameters stay on the chip through a launch: %.1f "
                        "KB a block.",
                        w->g->nstate ? " and states" : "", stay, all, bytes / 1024);
}
