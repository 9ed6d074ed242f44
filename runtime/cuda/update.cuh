/* update.cuh -- sums over shards in the fixed tree, and the optimizer's update, for all parameters
 * in one launch.
 *
 * The tree and the formulas are those of runtime/cpu/update.h: adjacent pairs, ((01)(23))45;
 * PyTorch's optimizers.  Multiply-adds are fused in the same places.
 */
#ifndef CUDA_UPDATE_CUH
#define CUDA_UPDATE_CUH
#include "cuda/tree.cuh"

/* A parameter.  sum, grad: bytes from the start of a shard, and of the gradients, to its sum;
 * weights, state0, state1: bytes in `fixed`, -1: none; count: numbers; then the factors for the
 * recipe's learning rate and decay. */
struct UpdateRow {
    int64_t sum, grad, weights, state0, state1, count;
    real lr, decay;
};

enum { UPDATE_EACH = RT_UPDATE_EACH }; /* numbers of a block */

/* ------------------------------------------ rules: w, s0, s1 of one number, with its gradient g */

DEVICE void update_sgd(real *w, real *s0, real *, real g, const RtOpt &o)
{
    const real x = *w;
    real step = g = s_fma(o.decay, x, g);
    if (s0) {
        *s0 = s_fma(o.momentum, *s0, g);
        step = o.nesterov ? s_fma(o.momentum, *s0, g) : *s0;
    }
    *w = s_fma(-o.lr, step, x);
}

/* a / b, and 0 where both are 0; NaN stays NaN. */
DEVICE real update_ratio(real a, real b)
{
    return b > 0 ? a / b : a * b;
}

DEVICE void update_rmsprop(real *w, real *s0, real *s1, real g, const RtOpt &o)
{
    const real x = *w;
    g = s_fma(o.decay, x, g);
    *s0 = s_fma(1 - o.rho, g * g, o.rho * *s0);
    real step = update_ratio(g, s_sqrt(*s0) + o.eps);
    if (s1)
        step = *s1 = s_fma(o.momentum, *s1, step);
    *w = s_fma(-o.lr, step, x);
}

DEVICE real update_adam_step(real *s0, real *s1, real g, const RtOpt &o)
{
    *s0 = s_fma(1 - o.beta1, g, o.beta1 * *s0);
    *s1 = s_fma(1 - o.beta2, g * g, o.beta2 * *s1);
    return update_ratio(*s0 / o.bias1, s_sqrt(*s1 / o.bias2) + o.eps);
}

DEVICE void update_adam(real *w, real *s0, real *s1, real g, const RtOpt &o)
{
    const real x = *w;
    *w = s_fma(-o.lr, update_adam_step(s0, s1, s_fma(o.decay, x, g), o), x);
}

DEVICE void update_adamw(real *w, real *s0, real *s1, real g, const RtOpt &o)
{
    const real x = *w * (1 - o.lr * o.decay);
    *w = s_fma(-o.lr, update_adam_step(s0, s1, g, o), x);
}

/* ------------------------------------------------------------------------------- the tree */

/* The sum of the number at p over the shards. */
DEVICE real update_tree(const char *p, int64_t stride, int shards)
{
    return tree_sum(shards, [=](int i) { return *(const real *)(p + i * stride); });
}

/* Whether the loss over all shards is finite, in this step and in earlier steps of the launch.
 * metric < 0: there is no loss to check. */
DEVICE bool update_allowed(const Rt *r, int metric)
{
    double sum = 0;
    for (int i = 0; metric >= 0 && i < r->shards; i++)
        sum += r->metric[i * RT_METRICS + metric];
    if (!isfinite(sum))
        *r->halted = 1;
    return !*r->halted;
}

/* The row of a block, and the block's first number in it. */
DEVICE int update_row(const UpdateRow *rows, int n, int64_t block, int64_t *first)
{
    int i = 0;
    for (; i < n - 1; i++) {
        const int64_t blocks = (rows[i].count + UPDATE_EACH - 1) / UPDATE_EACH;
        if (block < blocks)
            break;
        block -= blocks;
    }
    *first = block * UPDATE_EACH;
    return i;
}

/* Element i of a parameter; states: nullptr if the optimizer has none. */
struct UpdateNumber {
    real *w, *s0, *s1;
};
DEVICE UpdateNumber update_number(const Rt *r, const UpdateRow &q, int64_t i)
{
    return UpdateNumber{(real *)(r->fixed + q.weights) + i,
                        q.state0 < 0 ? nullptr : (real *)(r->fixed + q.state0) + i,
                        q.state1 < 0 ? nullptr : (real *)(r->fixed + q.state1) + i};
}

/* Updates the number x.  g: its gradient.  counted: the step whose Adam corrections are used. */
template <class Rule>
DEVICE void update_with(const Rt *r, const Rt *counted, const UpdateRow &q, const UpdateNumber &x,
                        real g, Rule rule)
{
    RtOpt o = r->opt;
    o.bias1 = counted->opt.bias1, o.bias2 = counted->opt.bias2;
    o.lr *= q.lr, o.decay *= q.decay;
    if (o.clip_value > 0)
        g = s_max(-o.clip_value, s_min(o.clip_value, g));
    rule(x.w, x.s0, x.s1, g, o);
}
template <class Rule>
DEVICE void update_one(const Rt *r, const Rt *counted, const UpdateRow &q, int64_t i, real g,
                       Rule rule)
{
    update_with(r, counted, q, update_number(r, q, i), g, rule);
}

/* from_grad: the sums are in r->grad.  Else they are computed here, and stored there if it is
 * set. */
template <class Rule>
DEVICE void update_part(unsigned block, const Rt *r, const UpdateRow *rows, int n, bool from_grad,
                        Rule rule)
{
    int64_t first;
    const UpdateRow q = rows[update_row(rows, n, block, &first)];
    const int64_t end = first + UPDATE_EACH < q.count ? first + UPDATE_EACH : q.count;

    for (int64_t i = first + threadIdx.x; i < end; i += THREADS) {
        real *grad = (real *)(r->grad + q.grad) + i;
        const real g = from_grad ? *grad
                                 : update_tree(r->shard + q.sum + i * (int64_t)sizeof(real),
                                               r->shard_bytes, r->shards);
        if (r->grad && !from_grad)
            *grad = g;
        else
            update_one(r, r, q, i, g, rule);
    }
}
template <class Rule>
DEVICE void update(const Rt *r, const UpdateRow *rows, int n, int blocks, bool from_grad, int loss,
                   Rule rule)
{
    if (!update_allowed(r, loss))
        return;
    FOR_BLOCKS(block, blocks)
        update_part(block, r, rows, n, from_grad, rule);
}

#endif
