/* view.c -- a step as its phases see it: memory, batch and hyper-parameters in one struct. */
#include "step/average.h"
#include "step/step.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

_Static_assert(sizeof(real) == sizeof(float),
               "the runtime is compiled without RT_F64, for programs of both types");
_Static_assert(offsetof(Rt, opt) % _Alignof(double) == 0, "opt must have room for both types");

/* Sets the values for the optimizer. skipped: steps that the optimizer does not count. */
static void set_optimizer(const RtProgram *p, Rt *r, Hyper h, double skipped)
{
    const RtRecipe *q = &p->recipe;
    const double t = (double)h.step + 1 - skipped;
    const Opt64 o =
        {h.lr,   q->weight_decay,      q->momentum,          q->rho,        q->beta1, q->beta2,
         q->eps, 1 - pow(q->beta1, t), 1 - pow(q->beta2, t), q->clip_value, 1,        q->nesterov};
    if (p->real_bytes == 8)
        memcpy(&r->opt, &o, sizeof o);
    else
        r->opt = (RtOpt){(float)o.lr,    (float)o.decay,      (float)o.momentum, (float)o.rho,
                         (float)o.beta1, (float)o.beta2,      (float)o.eps,      (float)o.bias1,
                         (float)o.bias2, (float)o.clip_value, (float)o.trust,    o.nesterov};
}

View net_view(const Net *n, const Batch *b, Hyper h, int first, int count)
{
    const RtProgram *p = n->p;
    View v;
    memset(&v, 0, sizeof v);
    v.rt = (Rt){.fixed = n->fixed,
                .shard = n->shard + (first - n->first) * n->shard_bytes,
                .shard_bytes = n->shard_bytes,
                .shards = count,
                .first_shard = first,
                .x = b->x,
                .x_stride = b->x_stride,
                .x_type = b->x_type,
                .vocab = p->vocab > 0 ? p->vocab : INT64_MAX,
                .wrong = p->device ? NULL : n->wrong,
                .threads = pool_threads(n->pool),
                .x_scale = b->x_scale,
                .x_height = b->x_height,
                .x_width = b->x_width,
                .label = b->label,
                .label_stride = b->label_stride,
                .label_type = b->label_type,
                .index = b->index,
                .valid = b->valid,
                .scored = b->scored > 0 ? b->scored : (double)p->labels,
                .weighted = b->weighted > 0 ? b->weighted : (double)p->labels,
                .seed = b->seed,
                .epoch = b->epoch,
                .metric = n->slot + RT_METRICS * (first - n->first) * p->slices,
                .loss_scale = 1.0 / p->batch,
                .skipped = n->scaling.skipped,
                .share = average_share(p, h.step)};
    if (p->ninput > 0)
        memcpy(v.rt.part, b->part, sizeof v.rt.part);
    set_optimizer(p, &v.rt, h, (double)n->scaling.skipped);
    return v;
}
