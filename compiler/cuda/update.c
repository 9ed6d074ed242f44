/* update.c -- the update of a GPU program: sums over shards, running averages, parameters.
 *
 * One launch updates all parameters, with a table of rows (UpdateRow).  If ranks add gradients
 * bucket by bucket, each bucket has its own launch.  Clipping by norm and --dtype f16 need all
 * gradients first: then there are three launches. */
#include "cuda/lower.h"
#include "runtime/constants.h"

/* Number of blocks that update the parameter of a sum. */
static int64_t update_blocks(const Sum *s)
{
    return ceil_div(s->count, RT_UPDATE_EACH);
}

/* Writes which rows of the table have a trust ratio. */
static void trust_rows(const Writer *w, Text *t)
{
    const Step *s = w->in->train->step;
    const char *before = "";

    text_add(t, "/* Rows whose parameter has a trust ratio. */\n"
                "static RT_TABLE char trust_rows[] = {");
    for (int i = 0; i < s->nsum; i++)
        if (s->sum[i].param) {
            text_printf(t, "%s%d", before, sum_trusts(w->in->train, &s->sum[i]));
            before = ", ";
        }
    text_add(t, "};\n\n");
}

/* Writes the table of updates: one row for each parameter, with offsets, number of elements, blocks
 * before it, and factors of rate and decay. */
void update_rows(Writer *w, Text *t, bool rest)
{
    const Step *s = w->in->train->step;
    int64_t before = 0; /* blocks */

    text_printf(t, "%sstatic RT_TABLE UpdateRow %s[] = {\n",
                rest ? "/* The rows of the parameters that cannot stay on the chip; one stage "
                       "updates "
                       "them all. */\n"
                     : "/* One row for each parameter: offsets of its sum in a shard and in the "
                       "gradients, of its weights "
                       "and its states; their number;\n"
                       " * the blocks of all rows before it; factors of the recipe's learning rate "
                       "and decay. */\n",
                rest ? "rest_rows" : "update_rows");
    for (int i = 0; i < s->nsum; i++) {
        const Sum *m = &s->sum[i];
        const Param *p = m->param;
        if (!p || (rest && w->cuda->owned[i]))
            continue;
        text_printf(t, "    {%s, %lld, %s, %s, %s, %lld, %lld, %.17g, %.17g}, /* %s */\n",
                    name_of(w, node_root(m->root)), (long long)m->offset, name_of_param(w, p),
                    p->offset_state[0] < 0 ? "-1" : name_of_state(w, p, 0),
                    p->offset_state[1] < 0 ? "-1" : name_of_state(w, p, 1), (long long)m->count,
                    (long long)before, p->lr, p->decay, sum_name(m));
        before += update_blocks(m);
    }
    text_add(t, "};\n\n");
    if (!rest && optimizer_trusts(&w->in->train->recipe.optimizer))
        trust_rows(w, t);
}

int update_parameters(const Writer *w, int sums)
{
    int n = 0;
    for (int i = 0; i < sums; i++)
        n += w->in->train->step->sum[i].param != NULL;
    return n;
}

const char *update_rule(const Graph *g)
{
    return optimizer_update(g->arena, &g->recipe.optimizer);
}

/* ---------------------------------------- parts of the table */

/* Rows of the table: all of them, or those of a bucket. */
typedef struct Part {
    int before, n;  /* number of rows before it; number of its rows */
    int *sum;       /* by row: index of the sum in Step.sum */
    int64_t blocks; /* number of pieces of RT_UPDATE_EACH numbers, one for each block */
} Part;

/* The rows of `sums` sums from index `first` on.  Sums without a parameter are statistics, and have
 * no row.  With --kernels=persistent the table has only the parameters that no other call
 * updates. */
static Part rows_of(const Writer *w, int first, int sums)
{
    const Sum *sum = w->g->step->sum;
    Part p = {0};

    for (int i = 0; i < first + sums; i++) {
        if (!sum[i].param || (w->cuda->list->persistent && w->cuda->owned[i]))
            continue;
        p.before += i < first;
        if (i < first)
            continue;
        ARENA_PUSH(w->arena, p.sum, p.n, i);
        p.blocks += update_blocks(&sum[i]);
    }
    return p;
}

static Part all_rows(const Writer *w)
{
    return rows_of(w, 0, w->g->step->nsum);
}

static void give_rows(Writer *w, CudaCall *c, const Part *p)
{
    const char *rows =
        w->cuda->list->persistent && w->cuda->nowned > 0 ? "rest_rows" : "update_rows";
    cuda_give(w, c, TEXT(p->before ? arena_printf(w->arena, "%s + %d", rows, p->before) : rows),
              NUMBER(p->n), NUMBER(p->blocks), BLOCKS(p->blocks));
}

/* ---------------------------------------- accesses */

/* The end of a sum in the gradient buffer, which ranks add. */
static int64_t gradient_end(const Writer *w, const Sum *s)
{
    return s->offset + s->count * cuda_real_bytes(w);
}

static void give_gradient(Writer *w, CudaCall *c, const Sum *s, bool writes)
{
    cuda_give(w, c, ACCESS(MEMORY_GRADIENT, s->offset, gradient_end(w, s), writes));
}

static void give_parameter(Writer *w, CudaCall *c, int64_t at, const Param *p, bool writes)
{
    const int64_t end = at + p->count_memory * cuda_real_bytes(w);
    cuda_give(w, c, ACCESS(MEMORY_FIXED, at, end, writes));
    c->operand[c->noperand - 1].param = p;
}

void update_access(Writer *w, CudaCall *c, int sum, bool from_grad, bool writes)
{
    const Sum *s = &w->g->step->sum[sum];
    const Param *p = s->param;
    const int before = c->noperand;

    if (from_grad)
        give_gradient(w, c, s, false);
    else
        cuda_give(w, c, VALUE(s->root, false));
    give_parameter(w, c, p->offset, p, writes);
    for (int k = 0; k < w->g->nstate; k++)
        if (p->offset_state[k] >= 0)
            give_parameter(w, c, p->offset_state[k], p, writes);
    for (int i = before; i < c->noperand; i++)
        c->operand[i].walked = true;
}

/* Adds the accesses of the update of a part.  If ranks add gradients, the sums are also written to
 * the gradient buffer. */
static void access_part(Writer *w, CudaCall *c, const Part *p, bool from_grad)
{
    for (int i = 0; i < p->n; i++) {
        update_access(w, c, p->sum[i], from_grad, true);
        if (!from_grad)
            give_gradient(w, c, &w->g->step->sum[p->sum[i]], true);
    }
}

/* The state of the program as an argument of an update.  The update reads the loss there, and
 * changes nothing if the loss is not finite. */
static Given rt_loss(const Writer *w)
{
    const int loss = graph_metric(w->g, "loss");
    return loss >= 0 ? RT_READS(MEMORY_METRIC, loss, loss + 1) : RT_HOST;
}

/* Adds an access to RtScaling (runtime/rt.h), the scale of the loss with --dtype f16. */
void update_access_scaling(Writer *w, CudaCall *c, bool writes)
{
    enum { BYTES = 16 };
    const int64_t at = w->g->step->offset_scaling;
    if (at > 0)
        cuda_give(w, c, ACCESS(MEMORY_FIXED, at, at + BYTES, writes));
}

/* Arguments that are variables of the phase: addresses in the gradient buffer or in the scratch. */
#define GRADIENTS(type, name, writes)                                                              \
    ADDRESS(MEMORY_SCRATCH, type, name, name, writes), ACCESS(MEMORY_GRADIENT, 0, INT64_MAX, writes)

/* ---------------------------------------- running averages */

/* Adds the update of a running average: from the statistics of the shards, from the sums of ranks
 * (from_grad), or from mean and variance of the whole batch, which all ranks know. */
static void lower_average(Writer *w, const Sum *s, bool from_grad)
{
    const Step *step = w->g->step;
    const Node *n = s->update;
    const int64_t channels = n->shape.dim[0], samples = s->known ? step->shard : step->slice,
                  rows = samples * shape_count(&s->root->in[0]->shape) / channels;
    const bool added = from_grad && !s->known; /* by ranks */
    enum { RECORD_BLOCKS = 64 };               /* enough for many layers in one launch */
    const Given rt = added ? RT_READS(MEMORY_GRADIENT, s->offset, gradient_end(w, s)) : rt_loss(w);
    CudaCall *c = cuda_call(w,
                            s->known    ? "batch_record_known"
                            : from_grad ? "batch_record_grad"
                                        : "batch_record",
                            NULL, rt, OUT("mean", n->in[0]), OUT("var", n->in[2]),
                            s->known || from_grad ? EACH(channels) : BLOCKS(RECORD_BLOCKS));

    c->comment = arena_printf(w->arena, "running averages of batch_norm %s",
                              param_layer(w->arena, n->in[0]->param));
    if (s->known)
        cuda_give(w, c,
                  POINTER("known", n->in[1],
                          arena_printf(w->arena, "FIXED(real, %s)", name_of(w, n->in[1])), false));
    else if (!from_grad)
        cuda_give(w, c, PARAM("int64_t ", "moments", name_of(w, node_root(s->root))),
                  VALUE(s->root, false));
    if (!s->known)
        cuda_give(w, c,
                  PARAM("int64_t ", "grad", arena_printf(w->arena, "%lld", (long long)s->offset)));
    if (!s->known && !from_grad)
        give_gradient(w, c, s, true);
    if (!added)
        cuda_give(w, c, NUMBER(graph_metric(w->g, "loss")), NUMBER(rows));
    cuda_give(w, c, NUMBER(step->shards),
              TEXT(arena_printf(w->arena, "%.17g", node_float(n, "momentum"))), NUMBER(channels));
}

/* Adds the updates of running averages of shards, or (known) of the whole batch, under `condition`;
 * "": always. */
static void lower_averages(Writer *w, bool from_grad, bool known, const char *condition)
{
    const Step *s = w->g->step;
    const bool guarded = *condition && !w->cuda->list->persistent;
    bool any = false;

    for (int i = 0; i < s->nsum; i++) {
        const Sum *sum = &s->sum[i];
        if (sum->param || !sum->update || sum->known != known)
            continue;
        if (guarded && !any)
            cuda_line(w, arena_printf(w->arena, "    if (%s) {\n", condition));
        any = true;
        lower_average(w, sum, from_grad);
    }
    if (guarded && any)
        cuda_line(w, "    }\n");
}

/* Statistics of shards are in the last bucket.  Known statistics need no reduction: with ranks, the
 * update phase of the last bucket reads them, and without ranks the gradient phase does. */
static void lower_all_averages(Writer *w, bool from_grad)
{
    const int buckets = w->g->step->nbucket;
    const char *last = buckets > 1 ? arena_printf(w->arena, "unit == %d", buckets - 1) : "";

    lower_averages(w, from_grad, false,
                   *last && !from_grad ? arena_printf(w->arena, "!r->grad || %s", last) : last);
    lower_averages(w, from_grad, true, from_grad ? last : "!r->grad");
}

/* ------------------------------------------------------------------------------- parameters */

/* Whether gradients are scaled, with --dtype f16: then a step is skipped if a gradient is not
 * finite. */
static bool is_scaled(const Writer *w)
{
    return w->g->step->offset_scaling > 0;
}

/* Whether the update needs the norm of all gradients: to clip them, or to know that they are
 * finite. */
static bool needs_norm(const Writer *w)
{
    return w->g->recipe.clip_norm > 0 || is_scaled(w);
}

/* Whether the update needs all gradients first. */
static bool looks_at_all(const Writer *w)
{
    return recipe_updates_last(&w->g->recipe) || is_scaled(w);
}

static CudaCall *open_update(Writer *w, const char *form)
{
    CudaCall *c = cuda_add(w, form, NULL);
    c->alone = looks_at_all(w) || w->g->step->nbucket > 1;
    return c;
}

/* Adds the update of all parameters of a part, in one launch. */
static CudaCall *lower_update(Writer *w, bool from_grad, const Part *p)
{
    CudaCall *c = cuda_give(w, open_update(w, "update"), rt_loss(w));
    give_rows(w, c, p);
    cuda_give(w, c, PARAM("bool ", "from_grad", from_grad ? "true" : "false"),
              NUMBER(graph_metric(w->g, "loss")), TEXT(update_rule(w->g)));
    access_part(w, c, p, from_grad);
    return c;
}

/* Adds a call that writes the sums to the gradient buffer, in f16 divided by the scale of the
 * loss. */
static CudaCall *lower_sums(Writer *w, const Part *p)
{
    CudaCall *c =
        cuda_give(w, open_update(w, is_scaled(w) ? "update_sums_scaled" : "update_sums"), RT_HOST);
    give_rows(w, c, p);
    cuda_give(w, c, GRADIENTS("char *", "grad", true));
    for (int i = 0; i < p->n; i++)
        cuda_give(w, c, VALUE(w->g->step->sum[p->sum[i]].root, false));
    update_access_scaling(w, c, false);
    return c;
}

static CudaCall *lower_part(Writer *w, bool from_grad, const Part *p)
{
    return looks_at_all(w) && !from_grad ? lower_sums(w, p) : lower_update(w, from_grad, p);
}

/* Adds the norm of all gradients, which is finite only if all gradients are finite. */
static void lower_squares(Writer *w, const Part *p)
{
    cuda_line(w, arena_printf(w->arena, "    double *const parts = (double *)(t + %lld);\n",
                              (long long)w->g->step->grad_bytes));
    CudaCall *c = open_update(w, "update_squares");
    cuda_give(w, c, GRADIENTS("double *", "parts", true), GRADIENTS("char *", "grad", false));
    give_rows(w, c, p);
    c->blocks.number = "CLIP_PARTS";
    c->inner_barrier = true;
}

/* The limit of the norm. */
static Given limit_of(const Writer *w)
{
    const double norm = w->g->recipe.clip_norm;
    return TEXT(norm > 0 ? arena_printf(w->arena, "%.17g", norm) : "INFINITY");
}

/* Adds the parts of the norm as an argument, and its limit. */
static void give_norm(Writer *w, CudaCall *c)
{
    if (needs_norm(w))
        cuda_give(w, c, GRADIENTS("double *", "parts", false));
    else
        cuda_give(w, c, TEXT("nullptr"));
    cuda_give(w, c, limit_of(w));
}

/* Adds the trust ratios of all parameters, and the update. */
static void lower_trusted(Writer *w, const Part *p)
{
    const Graph *g = w->g;
    const long long at = g->step->grad_bytes + RT_THREADS * (long long)sizeof(double);
    const char *rule = update_rule(g);

    cuda_line(w, arena_printf(w->arena,
                              "    TrustNorms *const norms = (TrustNorms *)(t + %lld);\n"
                              "    double *const ratio = (double *)(norms + %lld);\n",
                              at, (long long)p->blocks));
    CudaCall *c = cuda_give(w, open_update(w, "update_norms"), RT_HOST,
                            GRADIENTS("TrustNorms *", "norms", true));
    give_rows(w, c, p);
    cuda_give(w, c, GRADIENTS("char *", "grad", false));
    give_norm(w, c);
    cuda_give(w, c, TEXT(arena_printf(w->arena, "%s_step", rule)));
    for (int i = 0; i < p->n; i++)
        update_access(w, c, p->sum[i], true, false);
    c->inner_barrier = true;

    c = cuda_give(w, open_update(w, "update_ratios"), RT_HOST, GRADIENTS("double *", "ratio", true),
                  GRADIENTS("TrustNorms *", "norms", false));
    cuda_give(w, c, TEXT("update_rows"), TEXT("trust_rows"), NUMBER(p->n), NUMBER(p->blocks),
              BLOCKS(p->n), TEXT(arena_printf(w->arena, "%.17g", g->recipe.optimizer.trust)));
    c->inner_barrier = true;

    c = cuda_give(w, open_update(w, "update_trusted"), rt_loss(w));
    give_rows(w, c, p);
    cuda_give(w, c, GRADIENTS("char *", "grad", false));
    give_norm(w, c);
    cuda_give(w, c, GRADIENTS("double *", "ratio", false), NUMBER(graph_metric(g, "loss")),
              TEXT(rule));
    access_part(w, c, p, true);
    update_access_scaling(w, c, true);
    c->inner_barrier = true;
}

/* Adds the update that needs all gradients first.  Pass plan reserves memory in the scratch: for
 * the parts of the norms and, before them, for the sums, if there is no gradient buffer. */
static void lower_clipped(Writer *w)
{
    const Part p = all_rows(w);

    if (needs_norm(w))
        lower_squares(w, &p);
    if (optimizer_trusts(&w->g->recipe.optimizer)) {
        lower_trusted(w, &p);
        return;
    }
    CudaCall *c =
        cuda_give(w, open_update(w, is_scaled(w) ? "update_scaled" : "update_clipped"), rt_loss(w));
    give_rows(w, c, &p);
    cuda_give(w, c, GRADIENTS("char *", "grad", false), GRADIENTS("double *", "parts", false),
              limit_of(w), NUMBER(graph_metric(w->g, "loss")), TEXT(update_rule(w->g)));
    access_part(w, c, &p, true);
    update_access_scaling(w, c, true);
    c->inner_barrier = true;
}

static void lower_case(Writer *w, bool from_grad, int unit, const Part *p)
{
    CudaCall *c = lower_part(w, from_grad, p);
    c->before = arena_printf(w->arena, "case %d: ", unit), c->after = " break;";
    c->times = unit < 0 ? w->cuda->list->times : 0;
}

/* Adds the sums and updates of all buckets.  If r->grad is set, ranks add and update each bucket
 * separately, so a unit is a bucket; else one unit does everything. */
static void lower_buckets(Writer *w, bool from_grad)
{
    const Step *s = w->g->step;
    const Part all = all_rows(w);

    if (w->cuda->list->persistent && all.n == 0)
        return;
    if (s->nbucket == 1 || w->cuda->list->persistent) {
        lower_part(w, from_grad, &all);
        return;
    }
    cuda_line(w, from_grad ? "    switch (unit) {\n" : "    switch (r->grad ? unit : -1) {\n");
    for (int b = 0; b < s->nbucket; b++) {
        const Part p = rows_of(w, s->bucket[b].first, s->bucket[b].sums);
        if (p.n > 0)
            lower_case(w, from_grad, b, &p);
    }
    if (!from_grad)
        lower_case(w, from_grad, -1, &all);
    cuda_line(w, "    }\n");
}

/* Adds the averages of all parameters (average = ema), after their last update.  If ranks add
 * gradients, this is the update of the last bucket. */
static void lower_moving_averages(Writer *w, bool from_grad)
{
    const Step *s = w->g->step;
    const Part p = all_rows(w);
    const int64_t at = s->average_offset;
    if (at <= 0 || p.n == 0)
        return;
    const char *last = s->nbucket > 1 ? arena_printf(w->arena, "unit == %d", s->nbucket - 1) : "",
               *condition = from_grad ? last : "!r->grad";
    if (*condition)
        cuda_line(w, arena_printf(w->arena, "    if (%s) {\n", condition));
    CudaCall *c = cuda_give(w, cuda_add(w, "update_average", NULL), RT_HOST);
    c->alone = true;
    give_rows(w, c, &p);
    cuda_give(w, c, NUMBER(at));
    for (int i = 0; i < p.n; i++) {
        const Param *q = s->sum[p.sum[i]].param;
        const int64_t end = q->offset + q->count_memory * cuda_real_bytes(w);
        cuda_give(w, c, ACCESS(MEMORY_FIXED, q->offset, end, false),
                  ACCESS(MEMORY_FIXED, at + q->offset, at + end, true));
    }
    if (*condition)
        cuda_line(w, "    }\n");
}

void update_lower(Writer *w, bool from_grad)
{
    const Step *s = w->g->step;
    const bool clips = looks_at_all(w);
    const int before = w->cuda->list->n;

    lower_all_averages(w, from_grad);
    if (clips)
        cuda_line(w, "    char *const grad = r->grad ? r->grad : t;\n");
    if (!clips || !from_grad)
        lower_buckets(w, from_grad);
    else if (s->nbucket > 1)
        cuda_line(w, arena_printf(w->arena,
                                  "    if (unit < %d) /* the norm is that of all buckets */\n      "
                                  "  return;\n",
                                  s->nbucket - 1));
    if (clips && !from_grad && !w->cuda->list->persistent)
        cuda_line(w, "    if (r->grad)\n        return;\n");
    if (clips)
        lower_clipped(w);
    lower_moving_averages(w, from_grad);
    for (int i = before; i < w->cuda->list->n; i++) /* all these calls share one barrier */
        w->cuda->list->call[i]->continues = w->cuda->list->persistent && i > before;
}
