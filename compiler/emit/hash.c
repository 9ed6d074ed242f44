/* hash.c -- a hash of the definition of a training run, for checkpoints. */
#include "emit/emit.h"
#include "ops/op.h"

/* number: of each node, by its id; NULL: the id itself. */
static void add_node(Text *t, const Node *n, const int *number)
{
    text_printf(t, "%d=%s(", number ? number[n->id] : n->id, n->op->name);
    for (int i = 0; i < n->nin; i++)
        text_printf(t, "%d,", number ? number[n->in[i]->id] : n->in[i]->id);
    text_add(t, "){");
    for (int i = 0; i < n->nattr; i++) {
        const Attr *a = &n->attr[i];
        text_printf(t, "%s=%d:%lld:%.17g:%s:", a->key, a->kind, (long long)a->i, a->f,
                    a->s ? a->s : "");
        for (int k = 0; a->kind == ATTR_INTS && k < a->nlist; k++)
            text_printf(t, "%lld,", (long long)a->list[k]);
    }
    text_printf(t, "}%s%s", shape_text(t->arena, &n->shape), n->param ? n->param->name : "");
    if (n->param)
        text_printf(t, "%d%d%d:%.17g:%.17g", n->param->init.kind, n->param->init.gaussian,
                    n->param->init.fan, n->param->init.a, n->param->init.b);
    text_add(t, "\n");
}

static void add_loop(Text *t, const Loop *l)
{
    text_printf(t, "%lld%d", (long long)l->steps, l->reversed);
    for (int i = 0; i < l->ncarry; i++)
        text_printf(t, " %d<%d", l->carry[i].state->id, l->carry[i].next->id);
    text_add(t, "\n");
}

/* Adds nothing for the augmentations of older versions. */
static void add_rare(Text *t, const Augment *a)
{
    if (a->upside)
        text_add(t, "upside\n");
    if (a->contrast > 0 || a->saturation > 0 || a->hue > 0)
        text_printf(t, "colours %.17g %.17g %.17g\n", a->contrast, a->saturation, a->hue);
    if (a->degrees > 0 || a->zoom > 0)
        text_printf(t, "turn %.17g %.17g\n", a->degrees, a->zoom);
    if (a->crop)
        text_printf(t, "crop %.17g %.17g %.17g %.17g\n", a->crop_area[0], a->crop_area[1],
                    a->crop_ratio[0], a->crop_ratio[1]);
    if (a->erase > 0)
        text_printf(t, "erase %.17g %.17g %.17g %.17g %.17g\n", a->erase, a->erase_area[0],
                    a->erase_area[1], a->erase_aspect[0], a->erase_aspect[1]);
    if (augment_mixes(a))
        text_printf(t, "mix %.17g %.17g %.17g %.17g\n", a->mixup, a->mixup_p, a->cutmix,
                    a->cutmix_p);
}

/* Adds nothing for samples without normalisation and augmentation, so checkpoints of older versions
 * stay valid. */
static void add_samples(Text *t, const Normalize *z, const Augment *a)
{
    for (int k = 0; z->kind == NORM_CHANNEL && k < NORMALIZE_MAX; k++)
        text_printf(t, "%.17g %.17g ", z->mean[k], z->std[k]);
    if (z->kind != NORM_NONE || a->given)
        text_printf(t, "%d %lld %d %d %lld %.17g\n", z->kind, (long long)a->shift, a->edge, a->flip,
                    (long long)a->cutout, a->brightness);
    add_rare(t, a);
}

static void add_texts(Text *t, const Texts *list)
{
    for (int i = 0; i < list->n; i++)
        text_printf(t, "%s\n", list->v[i]);
    text_add(t, ".\n");
}

/* Adds nothing if the data are no table and the recipe gives no shares of splits, so checkpoints of
 * older versions stay valid. */
static void add_columns(Text *t, const DataSpec *d)
{
    if (d->columns) {
        text_printf(t, "csv %d %d %d\n", d->standardize, d->missing, d->unknown);
        add_texts(t, &d->input);
        add_texts(t, &d->target);
        add_texts(t, &d->category);
        if (d->exclude.n > 0)
            add_texts(t, &d->exclude);
    }
    if (d->test > 0 || d->validation > 0)
        text_printf(t, "shares %.17g %.17g\n", d->test, d->validation);
}

const char *emit_hash(Arena *a, const Graph *g, const char *dtype)
{
    Text t = text_new(a);
    const Recipe *r = &g->recipe;
    const Optimizer *o = &r->optimizer;
    const Schedule *c = &r->schedule;

    for (int i = 0; i < g->nnode; i++)
        add_node(&t, g->node[i], NULL);
    for (int i = 0; i < g->nloop; i++)
        add_loop(&t, g->loop[i]);
    text_printf(&t, "%d %.17g %.17g %.17g %.17g %.17g %.17g %.17g %d\n", o->kind, o->lr,
                o->momentum, o->weight_decay, o->rho, o->beta1, o->beta2, o->eps, o->nesterov);
    if (o->trust > 0)
        text_printf(&t, "trust %.17g\n", o->trust);
    text_printf(&t, "%d %.17g %.17g %.17g %.17g", c->kind, c->factor, c->power, c->end, c->warmup);
    for (int i = 0; i < c->nat; i++)
        text_printf(&t, " %.17g", c->at[i]);
    if (c->kind == SCHED_COSINE || c->kind == SCHED_POLYNOMIAL || c->kind == SCHED_ONE_CYCLE)
        text_printf(&t, " %lld", (long long)r->epochs);
    if (c->kind == SCHED_ONE_CYCLE || c->kind == SCHED_RESTARTS)
        text_printf(&t, " %.17g %.17g %.17g", c->start, c->rise, c->first);
    if (c->kind == SCHED_PLATEAU)
        text_printf(&t, " %s%s %lld %.17g %lld", c->watch.result,
                    c->watch.meaning ? c->watch.meaning : "", (long long)c->watch.epochs,
                    c->threshold, (long long)c->cooldown);
    text_printf(&t, "\n%.17g %.17g %.17g %lld %lld %s\n", r->clip_norm, r->clip_value,
                r->data.scale, (long long)r->batch, (long long)r->shards, dtype);
    add_samples(&t, &r->normalize, &r->augment);
    for (int i = 0; i < r->nfactor; i++)
        text_printf(&t, "%d %s %.17g\n", r->factor[i].kind, r->factor[i].pattern,
                    r->factor[i].factor);
    if (r->resize)
        text_add(&t, "resize\n");
    add_columns(&t, &r->data);
    if (r->average.kind)
        text_printf(&t, "average %d %.17g %lld\n", r->average.kind, r->average.decay,
                    (long long)r->average.from);
    return arena_printf(a, "%016llx", (unsigned long long)text_hash(t.s, t.len, 0));
}

const char *emit_meaning(Arena *a, const Graph *g, const Measure *m)
{
    const bool *needed = graph_needed(g, g->metric[graph_metric(g, m->name)].node);
    int *number = arena_alloc(a, sizeof *number * (size_t)g->next_id), n = 0; /* in their order */
    Text t = text_new(a);

    for (int i = 0; i < g->nnode; i++)
        number[g->node[i]->id] = needed[g->node[i]->id] ? ++n : 0;
    text_printf(&t, "%d\n", m->better);
    for (int i = 0; i < g->nnode; i++)
        if (needed[g->node[i]->id])
            add_node(&t, g->node[i], number);
    return arena_printf(a, "%016llx", (unsigned long long)text_hash(t.s, t.len, 0));
}
