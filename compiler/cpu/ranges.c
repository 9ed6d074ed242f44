/* ranges.c -- writes the sums over shards and the updates of a step, as consecutive ranges of
 * units.
 *
 * A unit is a part of a vector (4096 numbers, or more if there are 64 units), or a block of weights
 * of a layer with their gradient.  A bucket of gradients is a range of units (passes/buckets.c).
 */
#include "cpu/parts.h"
#include "ops/dense_price.h"
#include "ops/embedding.h"
#include "ops/step_price.h"

static const char *state_pointer(Writer *w, const Param *p, int k)
{
    return p->offset_state[k] < 0
               ? "NULL"
               : arena_printf(w->arena, "FIXED(real, %s)", name_of_state(w, p, k));
}

static const char *update_name(const Graph *g)
{
    return optimizer_update(g->arena, &g->recipe.optimizer);
}

/* Number of units of a range kernel: one for each 4096 reals, at most 64. */
static int64_t range_units(int64_t count)
{
    const int64_t u = (count + 4095) / 4096;
    return u < 1 ? 1 : u > 64 ? 64 : u;
}

static const char *shard_pointer(Writer *w, const Node *n)
{
    return arena_printf(w->arena, "r->shard + %s", name_of(w, node_root(n)));
}

static const char *weight_pointer(Writer *w, const Param *p)
{
    return p ? arena_printf(w->arena, "FIXED(real, %s), %s, %s", name_of_param(w, p),
                            state_pointer(w, p, 0), state_pointer(w, p, 1))
             : "NULL, NULL, NULL";
}

/* Number of units of a sum, as a C constant expression. */
static const char *sum_units(Writer *w, const Sum *s)
{
    if (!s->panels)
        return arena_printf(w->arena, "%lld", (long long)range_units(s->count));
    const int64_t *dim = s->param->file.dim;
    switch (s->root->op->product) {
    case PRODUCT_TABLE:
        return arena_printf(w->arena, "%lld", (long long)embedding_units(s->root));
    case PRODUCT_CONV:
        return arena_printf(w->arena, "%s_UNITS(%lld, %lld, %lld)",
                            op_reads_half(s->root) ? "BF16_FILTER" : "CONV_DW", (long long)dim[0],
                            (long long)dim[1], (long long)(dim[2] * dim[3]));
    default:
        return s->stored ? arena_printf(w->arena, "DENSE_INPUT_UNITS(%lld, %lld, %lld)",
                                        (long long)w->g->step->shard, (long long)dim[1],
                                        (long long)dim[0])
                         : arena_printf(w->arena, "%sDENSE_UNITS(%lld, %lld)",
                                        op_reads_half(s->root) ? "BF16_" : "", (long long)dim[1],
                                        (long long)dim[0]);
    }
}

#define RANGE_PARAMS                                                                               \
    "const Rt *r, int unit, int units, int64_t grad, real *w, real *s0, real *s1, int64_t count"

/* Factors for the learning rate and the decay of the recipe, and where the trust ratio of the
 * parameter is.  A sum without a parameter has no update, so its factors are not used. */
static const char *factors(Writer *w, const Sum *s)
{
    const Param *p = s->param;
    const char *trust = "";
    if (sum_trusts(w->g, s))
        trust = arena_printf(w->arena, ", .trust = %d", (int)(s - w->g->step->sum) + 1);
    return arena_printf(w->arena, "(Factors){ .lr = %.17g, .decay = %.17g%s }", p ? p->lr : 1,
                        p ? p->decay : 0, trust);
}

/* Whether the update works on whole rows, as for a lazy table; the width of a row is then an
 * argument. */
static bool by_rows(const Param *p)
{
    return p && p->lazy;
}

static const char *rule_of(Writer *w, const Param *p, const char *rule)
{
    return by_rows(p) ? arena_printf(w->arena, "embedding_%s", rule) : rule;
}

static const char *filter_rows(Writer *w, const Param *p)
{
    return by_rows(p) ? arena_printf(w->arena, "%lld, ", (long long)p->file.dim[1]) : "";
}

/* Writes the update of running averages from the statistics of the whole batch, which all ranks
 * have.  The gradient phase and the update phase (from_grad) both have this call. */
static void record_known_call(Writer *w, const Sum *s, const char *units, bool from_grad)
{
    Arena *a = w->arena;
    const Node *n = s->update;
    const Step *st = w->g->step;
    const int64_t rows =
        st->slices * st->slice * shape_count(&s->root->in[0]->shape) / n->shape.dim[0];
    const char *fn = kernel_define(
        w, "batch_record_known",
        "const Rt *r, int unit, int units, bool after, real *mean, real *var, const char *known",
        arena_printf(a,
                     "    batch_record_known(r, unit, units, after, mean, var, known, %lld, %lld, "
                     "%.17g, %lld);\n",
                     (long long)st->shards, (long long)rows, node_float(n, "momentum"),
                     (long long)n->shape.dim[0]));
    statement_wrapped(
        &w->body,
        arena_printf(a, "%s(r, unit, %s, %s, FIXED(real, %s), FIXED(real, %s), r->fixed + %s);%s",
                     fn, units, from_grad ? "true" : "false", name_of(w, n->in[0]),
                     name_of(w, n->in[2]), name_of(w, n->in[1]),
                     price_tick(w, n->in[0]->name, fn, n->span, 0, "",
                                step_price_sum(w->g, s, from_grad, w->in->options))),
        "        ");
}

/* Writes the update of running averages from the statistics of shards: from the moments of slices,
 * or (from_grad) from reduced moments. */
static void record_call(Writer *w, const Sum *s, const char *units, bool from_grad)
{
    Arena *a = w->arena;
    const Node *n = s->update;
    const Step *st = w->g->step;
    const char *tail = arena_printf(a, "%lld, %.17g, %lld", (long long)st->shards,
                                    node_float(n, "momentum"), (long long)n->shape.dim[0]);
    const int64_t rows = st->slice * shape_count(&s->root->in[0]->shape) / n->shape.dim[0];
    const char *fn =
        from_grad
            ? kernel_define(
                  w, "batch_record_grad",
                  "const Rt *r, int unit, int units, int64_t grad, real *mean, real *var",
                  arena_printf(a, "    batch_record_grad(r, unit, units, grad, mean, var, %s);\n",
                               tail))
            : kernel_define_using(
                  w, USES_SLICES, "batch_record",
                  "const Rt *r, int unit, int units, int64_t grad, real *mean, real *var, "
                  "const char *moments",
                  arena_printf(a,
                               "    batch_record(r, unit, units, grad, mean, var, moments, "
                               "%lld, SLICES, %lld, %s);\n",
                               (long long)pointer_slice_bytes(w, s->root), (long long)rows, tail));
    const char *moments = from_grad ? "" : arena_printf(a, ", %s", shard_pointer(w, s->root));
    statement_wrapped(&w->body,
                      arena_printf(a,
                                   "%s(r, unit, %s, %lld, FIXED(real, %s), FIXED(real, %s)%s);%s",
                                   fn, units, (long long)s->offset, name_of(w, n->in[0]),
                                   name_of(w, n->in[2]), moments,
                                   price_tick(w, n->in[0]->name, fn, n->span, 0, "",
                                              step_price_sum(w->g, s, from_grad, w->in->options))),
                      "        ");
}

/* Writes sum and update of a large embedding; a unit is a few rows. */
static void table_call(Writer *w, const Sum *s)
{
    const Node *token = s->root->in[0], *dy = s->root->in[1];
    const Attr *padding = node_attr(s->root, "padding");
    const char *fn = kernel_define_using(
        w, USES_SLICES, "embedding_dw_update",
        "const Rt *r, int unit, int64_t grad, real *w, real *s0, real *s1, const char *token, "
        "const char *dy",
        arena_printf(w->arena,
                     "    embedding_dw_update(r, unit, grad, w, s0, s1, token, dy, %s, %s, "
                     "(EmbeddingUpdate){ .vocab = %lld, .width = %lld, .padding = %lld, .rows = "
                     "%lld, .slices = SLICES%s });\n",
                     factors(w, s), update_name(w->g), (long long)s->param->file.dim[0],
                     (long long)s->param->file.dim[1], padding ? (long long)padding->i : -1LL,
                     (long long)(w->g->step->slice * shape_count(&token->shape)),
                     by_rows(s->param) ? ", .lazy = true" : ""));
    statement_wrapped(&w->body,
                      arena_printf(w->arena, "%s(r, unit, %lld, %s, %s, %s);%s", fn,
                                   (long long)s->offset, weight_pointer(w, s->param),
                                   shard_pointer(w, token), shard_pointer(w, dy),
                                   price_tick(w, sum_name(s), fn, s->root->span, 0, "",
                                              step_price_sum(w->g, s, false, w->in->options))),
                      "        ");
}

/* Writes gradient and update of a dense layer by panels: the product of x and dy of all shards,
 * which are kept in memory.  If x is the input of the program, the kernel reads it from the data
 * set. */
static void dense_call(Writer *w, const Sum *s)
{
    Arena *a = w->arena;
    const char *kernel = s->stored                ? "dense_dw_update_input"
                         : op_reads_half(s->root) ? "bf16_dense_dw_update"
                                                  : "dense_dw_update";
    const char *rows = dense_rows(s->root) == 1
                           ? "SHARD"
                           : arena_printf(a, "SHARD * %lld", (long long)dense_rows(s->root));
    const char *fn = kernel_define_using(
        w, USES_SHARD, kernel,
        arena_printf(a,
                     "const Rt *r, int unit, int64_t grad, real *w, real *s0, real *s1, %sconst "
                     "char *dy",
                     s->stored ? "" : "const char *x, "),
        arena_printf(a,
                     "    %s(r, unit, grad, w, s0, s1, %sdy, %s, %s, %s, "
                     "(Dense){ .n = %s, .k = %lld, .o = %lld });\n",
                     kernel, s->stored ? "" : "x, ", rows, factors(w, s), update_name(w->g), rows,
                     (long long)s->param->file.dim[1], (long long)s->param->file.dim[0]));
    const char *x = s->stored ? "" : arena_printf(a, "%s, ", shard_pointer(w, s->root->in[0]));
    statement_wrapped(&w->body,
                      arena_printf(a, "%s(r, unit, %lld, %s, %s%s);%s", fn, (long long)s->offset,
                                   weight_pointer(w, s->param), x, shard_pointer(w, s->root->in[1]),
                                   price_tick(w, sum_name(s), fn, s->root->span,
                                              price_flops(s->root),
                                              s->stored ? "zeros left out" : "",
                                              step_price_sum(w->g, s, false, w->in->options))),
                      "        ");
}

/* The literal sizes in the kernel call of n, for this number of samples. */
static const char *sizes_of(Writer *w, const Node *n, int64_t samples)
{
    Call c = {.arena = w->arena, .n = samples, .target = target_of(w->in->options)};
    n->op->kernel(n, &c);
    return call_literal(w->arena, &c.arg[c.narg - 1], false);
}

/* Writes gradient and update of large filters with few positions, by blocks of filters: the product
 * of x and dy of all shards, which are kept in memory. */
static void conv_call(Writer *w, const Sum *s)
{
    Arena *a = w->arena;
    const Step *st = w->g->step;
    const bool half = op_reads_half(s->root);
    const char *kernel = half ? "bf16_conv2d_dw_update" : "conv2d_dw_update",
               *cut = half ? arena_printf(a, ", (Bf16Cut){ .slice = %lld, .chunk = %lld }",
                                          (long long)st->slice, (long long)st->chunk)
                           : "";
    const char *fn =
        kernel_define(w, kernel,
                      "const Rt *r, int unit, int64_t grad, real *w, real *s0, real *s1, "
                      "const char *x, const char *dy",
                      arena_printf(a, "    %s(r, unit, grad, w, s0, s1, x, dy, %s, %s, %s%s);\n",
                                   kernel, factors(w, s), update_name(w->g),
                                   sizes_of(w, s->root, st->shard), cut));
    statement_wrapped(&w->body,
                      arena_printf(a, "%s(r, unit, %lld, %s, %s, %s);%s", fn, (long long)s->offset,
                                   weight_pointer(w, s->param), shard_pointer(w, s->root->in[0]),
                                   shard_pointer(w, s->root->in[1]),
                                   price_tick(w, sum_name(s), fn, s->root->span,
                                              price_flops(s->root),
                                              half ? "tap by tap" : "tap by tap, in squares",
                                              step_price_sum(w->g, s, false, w->in->options))),
                      "        ");
}

/* Writes gradient and update by panels, rows or blocks of the weights. */
static void product_call(Writer *w, const Sum *s)
{
    switch (s->root->op->product) {
    case PRODUCT_TABLE:
        table_call(w, s);
        break;
    case PRODUCT_CONV:
        conv_call(w, s);
        break;
    default:
        dense_call(w, s);
        break;
    }
}

/* Writes a sum and its update by ranges of numbers. */
static void reduce_call(Writer *w, const Sum *s, const char *units)
{
    const char *name = rule_of(w, s->param, "reduce_update");
    const char *fn =
        kernel_define_using(w, USES_SLICES, name,
                            RANGE_PARAMS ", const char *sums, int64_t slice_bytes",
                            arena_printf(w->arena,
                                         "    %s(r, unit, units, grad, w, s0, s1, sums, "
                                         "slice_bytes, SLICES, count, %s%s, %s);\n",
                                         name, filter_rows(w, s->param), factors(w, s),
                                         update_name(w->g)));
    statement_wrapped(&w->body,
                      arena_printf(w->arena, "%s(r, unit, %s, %lld, %s, %lld, %s, %lld);%s", fn,
                                   units, (long long)s->offset, weight_pointer(w, s->param),
                                   (long long)s->count, shard_pointer(w, s->root),
                                   (long long)pointer_slice_bytes(w, s->root),
                                   price_tick(w, sum_name(s), fn, s->root->span, 0, "",
                                              step_price_sum(w->g, s, false, w->in->options))),
                      "        ");
}

static void sum_call(Writer *w, const Sum *s, const char *units)
{
    if (s->known)
        record_known_call(w, s, units, false);
    else if (s->update && !s->param)
        record_call(w, s, units, false);
    else if (s->panels)
        product_call(w, s);
    else
        reduce_call(w, s, units);
}

/* Writes the update of a parameter from its reduced gradient. */
static void grad_call(Writer *w, const Sum *s, const char *units)
{
    const char *name = rule_of(w, s->param, "grad_update");
    const char *fn =
        kernel_define(w, name, RANGE_PARAMS,
                      arena_printf(w->arena,
                                   "    %s(r, unit, units, grad, w, s0, s1, count, %s%s, %s);\n",
                                   name, filter_rows(w, s->param), factors(w, s),
                                   update_name(w->g)));
    statement_wrapped(&w->body,
                      arena_printf(w->arena, "%s(r, unit, %s, %lld, %s, %lld);%s", fn, units,
                                   (long long)s->offset, weight_pointer(w, s->param),
                                   (long long)s->count,
                                   price_tick(w, sum_name(s), fn, s->root->span, 0, "",
                                              step_price_sum(w->g, s, true, w->in->options))),
                      "        ");
}

static void update_call(Writer *w, const Sum *s, const char *units)
{
    if (s->known)
        record_known_call(w, s, units, true);
    else if (!s->param)
        record_call(w, s, units, true);
    else
        grad_call(w, s, units);
}

static int bucket_of(const Step *s, int sum)
{
    int b = 0;
    while (sum >= s->bucket[b].first + s->bucket[b].sums)
        b++;
    return b;
}

/* Number of units of a sum, for predictions. */
static int64_t count_units(Writer *w, const Sum *s)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    const int64_t *dim = s->param ? s->param->file.dim : NULL;
    if (!s->panels)
        return range_units(s->count);
    switch (s->root->op->product) {
    case PRODUCT_TABLE:
        return embedding_units(s->root);
    case PRODUCT_CONV: {
        const int64_t rows = m.core->rows, outputs = op_reads_half(s->root)
                                                         ? RT_BF16_FILTER_OUTPUTS
                                                         : RT_DW_BLOCK_BYTES / m.real / rows * rows;
        return ceil_div(dim[0], outputs) * ceil_div(dim[1], RT_DW_BLOCK_CHANNELS) * dim[2] * dim[3];
    }
    default:
        return s->stored ? dense_units_input(&m, w->g->step->shard, dim[1], dim[0])
                         : dense_units_update(&m, dim[1], dim[0], op_reads_half(s->root));
    }
}

/* Whether units of the sum, or of its update from the reduced sum (from_grad), exist. */
static bool has_units(const Sum *s, bool from_grad)
{
    return s->update || !(from_grad || s->total);
}

const EmitRange *ranges_list(Writer *w, bool from_grad, int *n)
{
    const Step *s = w->g->step;
    const Market m = market_of(w->g, w->in->options, s->chunk);
    EmitRange *all = arena_alloc(w->arena, sizeof *all * (size_t)(s->nsum + 1));
    *n = 0;
    for (int i = 0; i < s->nsum; i++) {
        const Sum *x = &s->sum[i];
        if (has_units(x, from_grad))
            all[(*n)++] = (EmitRange){from_grad ? range_units(x->count) : count_units(w, x),
                                      1e6 * market_seconds(&m, step_price_sum(w->g, x, from_grad,
                                                                              w->in->options)
                                                                   .cycles)};
    }
    return all;
}

/* Adds a row to the table of predicted times, by which the program first divides the units among
 * threads. */
static void predicted(Writer *w, const Sum *s, const char *units)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    const Price p = step_price_sum(w->g, s, false, w->in->options);
    text_printf(&w->ranges, "    {%s, %.4g}, /* %s */\n", units, 1e6 * market_seconds(&m, p.cycles),
                sum_name(s));
}

void ranges_write(Writer *w, const char *fn, const char *about, bool from_grad, Text *total)
{
    Text *t = &w->body;
    const Step *s = w->g->step;

    text_printf(t, "/* %s */\nstatic void %s(const Rt *r, char *t, int unit)\n{\n    (void)t;\n",
                about, fn);
    for (int i = 0; i < s->nsum; i++) {
        const Sum *m = &s->sum[i];
        const char *units = from_grad
                                ? arena_printf(w->arena, "%lld", (long long)range_units(m->count))
                                : sum_units(w, m);
        if (!has_units(m, from_grad))
            continue;
        text_printf(total, "%s%s", total->len ? " + " : "", units);
        Text *in_bucket = &w->units[from_grad][bucket_of(s, i)];
        text_printf(in_bucket, "%s%s", in_bucket->len ? " + " : "", units);
        if (!from_grad)
            predicted(w, m, units);
        text_printf(t, "    if (unit < %s) { /* %s */\n", units, sum_name(m));
        if (from_grad)
            update_call(w, m, units);
        else
            sum_call(w, m, units);
        text_printf(t, "        return;\n    }\n    unit -= %s;\n", units);
    }
    text_add(t, "}\n\n");
}
