/* scaling.c -- the loss scale of programs in f16: its first value, and its value in a resumed run.
 *
 * The update changes the scale (cuda/loss_scale.cuh); checkpoints keep it like a parameter.
 */
#include "base/error.h"
#include "step/net.h"

static RtScaling *scaling_in_fixed(const Net *n)
{
    return (RtScaling *)(n->fixed + n->p->scaling->offset);
}

void net_scale(Net *n, double scale, int64_t every)
{
    enum { SCALE = 65536, EVERY = 2000 };
    if (!n->p->scaling)
        return;
    n->scaling = (RtScaling){.scale = scale > 0 ? (float)scale : SCALE,
                             .every = every >= 0 ? (float)every : EVERY};
    *scaling_in_fixed(n) = n->scaling;
    net_changed(n);
}

void net_scale_resumed(Net *n)
{
    if (!n->p->scaling)
        return;
    const RtScaling was = *scaling_in_fixed(n), now = n->scaling;
    if (!(was.scale >= RT_SCALE_LEAST && was.scale <= RT_SCALE_MOST && was.good >= 0 &&
          was.skipped >= 0))
        rt_die("the checkpoint's loss scale, %.10g, is not a valid scale", was.scale);
    if (was.every != now.every)
        rt_die("the checkpoint was made with --loss-scale-steps %.0f, this run has %.0f", was.every,
               now.every);
    if (now.every == 0 && was.scale != now.scale)
        rt_die("the checkpoint was made with the fixed --loss-scale %.10g, this run has %.10g",
               was.scale, now.scale);
    n->scaling = was;
}
