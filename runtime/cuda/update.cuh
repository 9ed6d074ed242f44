/* update.cuh -- sums over shards in the fixed tree, and the optimizer's update, for all parameters
 * in one launch.
 *
 * The tree and the formulas are those of runtime/cpu/update.h: a tree of adjacent pairs,
 * ((01)(23))45, and the optimizers of PyTorch.  Multiply-adds are fused in the same places.
 *
 * A small network's update takes as long as its chain of dependent loads.  So a thread takes four
 * adjacent numbers, with accesses of 16 bytes, and it loads everything before it waits for the
 * first result: the fields of r, then the numbers, their states, the loss and the mark `halted`.
 */
#ifndef CUDA_UPDATE_CUH
#define CUDA_UPDATE_CUH
#include "cuda/tree.cuh"

/* A parameter.  sum: bytes from the start of a shard to the parameter's sum; grad: bytes from the
 * start of the gradients to this sum; weights, state0, state1: bytes in `fixed`, -1: none; count:
 * numbers; before: blocks of all rows before this one in the table; lr, decay: the factors for the
 * recipe's learning rate and decay. */
struct UpdateRow {
    int64_t sum, grad, weights, state0, state1, count, before;
    real lr, decay;
};

enum { UPDATE_EACH = RT_UPDATE_EACH }; /* numbers of a block */

/* A number of a parameter, and its states. */
struct UpdateValue {
    real w, s0, s1;
};

/* ------------------- rules: update one number x, with `states` states, by its gradient g */

/* g: with decay */
DEVICE void update_momentum(UpdateValue &x, int states, real g, const RtOpt &o)
{
    real step = g;
    if (states > 0) {
        x.s0 = s_fma(o.momentum, x.s0, g);
        step = o.nesterov ? s_fma(o.momentum, x.s0, g) : x.s0;
    }
    x.w = s_fma(-o.lr, step, x.w);
}

DEVICE void update_sgd(UpdateValue &x, int states, real g, const RtOpt &o)
{
    update_momentum(x, states, s_fma(o.decay, x.w, g), o);
}

DEVICE void update_lars(UpdateValue &x, int states, real g, const RtOpt &o)
{
    update_momentum(x, states, o.trust * s_fma(o.decay, x.w, g), o);
}

/* a / b, and 0 where both are 0; NaN stays NaN. */
DEVICE real update_ratio(real a, real b)
{
    return b > 0 ? a / b : a * b;
}

DEVICE void update_rmsprop(UpdateValue &x, int states, real g, const RtOpt &o)
{
    g = s_fma(o.decay, x.w, g);
    x.s0 = s_fma(1 - o.rho, g * g, o.rho * x.s0);
    real step = update_ratio(g, s_sqrt(x.s0) + o.eps);
    if (states > 1)
        step = x.s1 = s_fma(o.momentum, x.s1, step);
    x.w = s_fma(-o.lr, step, x.w);
}

DEVICE real update_adam_step(UpdateValue &x, real g, const RtOpt &o)
{
    x.s0 = s_fma(1 - o.beta1, g, o.beta1 * x.s0);
    x.s1 = s_fma(1 - o.beta2, g * g, o.beta2 * x.s1);
    return update_ratio(x.s0 / o.bias1, s_sqrt(x.s1 / o.bias2) + o.eps);
}

DEVICE void update_adam(UpdateValue &x, int, real g, const RtOpt &o)
{
    x.w = s_fma(-o.lr, update_adam_step(x, s_fma(o.decay, x.w, g), o), x.w);
}

DEVICE void update_adamw(UpdateValue &x, int, real g, const RtOpt &o)
{
    const real w = x.w * (1 - o.lr * o.decay);
    x.w = s_fma(-o.lr, update_adam_step(x, g, o), w);
}

/* LAMB's step of a number, without learning rate and trust ratio. */
DEVICE real update_lamb_step(UpdateValue &x, real g, const RtOpt &o)
{
    return s_fma(o.decay, x.w, update_adam_step(x, g, o));
}

DEVICE void update_lamb(UpdateValue &x, int, real g, const RtOpt &o)
{
    const real step = update_lamb_step(x, g, o);
    x.w = s_fma(-(o.lr * o.trust), step, x.w);
}

DEVICE void update_adagrad(UpdateValue &x, int, real g, const RtOpt &o)
{
    g = s_fma(o.decay, x.w, g);
    x.s0 = s_fma(g, g, x.s0);
    x.w = s_fma(-o.lr, update_ratio(g, s_sqrt(x.s0) + o.eps), x.w);
}

DEVICE void update_lion(UpdateValue &x, int, real g, const RtOpt &o)
{
    const real w = x.w * (1 - o.lr * o.decay);
    const real step = s_fma(1 - o.beta1, g, o.beta1 * x.s0);
    x.s0 = s_fma(1 - o.beta2, g, o.beta2 * x.s0);
    /* 1, -1, 0 or NaN */
    x.w = s_fma(-o.lr, step > 0 ? real(1) : step < 0 ? real(-1) : step, w);
}

/* ------------------------------------------------------------------------------- the loss */

/* What the check of the loss loads: the loss of the first shard, and the mark `halted`, which a
 * step of the launch sets if its loss is not finite.  metric < 0: there is no loss to check. */
struct UpdateCheck {
    double loss;
    int halted;
};
DEVICE UpdateCheck update_check(const Rt *r, int metric)
{
    return UpdateCheck{metric < 0 ? 0 : r->metric[metric], *r->halted};
}

/* Whether the loss over all shards is finite, in this step and in earlier steps of the launch. */
DEVICE bool update_allowed(const Rt *r, int metric, UpdateCheck c)
{
    RT_UNROLL_4
    for (int i = 1; metric >= 0 && i < r->shards; i++)
        c.loss += r->metric[i * RT_METRICS + metric];
    if (!isfinite(c.loss))
        *r->halted = 1;
    return isfinite(c.loss) && !c.halted;
}
DEVICE bool update_allowed(const Rt *r, int metric)
{
    return update_allowed(r, metric, update_check(r, metric));
}

/* ------------------------------------------------------------------------------- four numbers */

/* Buffers begin, and end, at multiples of RT_ALIGN bytes.  So the load of a pack is allowed even if
 * fewer numbers are left; a store must not touch numbers of another row. */
using Quad = Pack<real>;
static_assert(RT_ALIGN % sizeof(Quad) == 0, "a pack must not cross the end of a buffer");

DEVICE Quad quad_at(const void *p)
{
    return pack_read((const real *)p, 0);
}
/* Stores the first `count` numbers. */
DEVICE void quad_put(void *p, const Quad &q, int count)
{
    if (count >= PACK)
        pack_write((real *)p, 0, q);
    else
        for (int k = 0; k < PACK - 1; k++)
            if (k < count)
                ((real *)p)[k] = q.at[k];
}

/* The numbers of this thread in a block: `count` numbers of row q, the row-th of the part, `bytes`
 * after its first number; count <= 0: none. */
struct UpdateShare {
    UpdateRow q;
    int64_t bytes;
    int count, row;
};

/* Returns the row of a block: the last row that has at most `block` blocks before it.  *first: the
 * first number of the row that the block updates.  The n rows can be a part of the table. */
DEVICE int update_row(const UpdateRow *rows, int n, int64_t block, int64_t *first)
{
    int row = 0;
    block += rows[0].before;
    for (int end = n; end - row > 1;) {
        const int middle = (row + end) / 2;
        if (rows[middle].before <= block)
            row = middle;
        else
            end = middle;
    }
    *first = (block - rows[row].before) * UPDATE_EACH;
    return row;
}

DEVICE UpdateShare update_share(const UpdateRow *rows, int n, int64_t block)
{
    static_assert(UPDATE_EACH == 4 * THREADS, "each thread takes four numbers");
    int64_t first;
    const int row = update_row(rows, n, block, &first);
    const UpdateRow q = rows[row];
    first += 4 * threadIdx.x;
    return UpdateShare{q, first * (int64_t)sizeof(real),
                       q.count - first < 4 ? (int)(q.count - first) : 4, row};
}

/* ------------------------------------------------------------------------------- the tree */

/* The sum of the number at p over the shards. */
DEVICE real update_tree(const char *p, int64_t stride, int shards)
{
    return tree_sum(shards, [=](int i) { return *(const real *)(p + i * stride); });
}

/* The sums of a thread's numbers, at p, over the shards; first: those of the first shard.  The four
 * trees of up to 15 shards are added at the same time; more would need too many registers. */
DEVICE Quad update_trees(const char *p, const Quad &first, int64_t stride, int shards)
{
    Quad sum = first;
    if (shards >= 16) {
        RT_NO_UNROLL
        for (int k = 0; k < 4; k++) {
            const real x = update_tree(p + k * sizeof(real), stride, shards);
            RT_UNROLL
            for (int i = 0; i < 4; i++)
                sum.at[i] = i == k ? x : sum.at[i];
        }
    } else if (shards > 1)
        sum = tree_joined<Quad, 4>(
            shards, [=](int i) { return quad_at(p + i * stride); },
            [](const Quad &a, const Quad &b) {
                return Quad{a.at[0] + b.at[0], a.at[1] + b.at[1], a.at[2] + b.at[2],
                            a.at[3] + b.at[3]};
            });
    return sum;
}
DEVICE Quad update_gradient(const Rt *r, const UpdateShare &s)
{
    const char *p = r->shard + s.q.sum + s.bytes;
    return update_trees(p, quad_at(p), r->shard_bytes, r->shards);
}

/* ------------------------------------------------------------------------------- the update */

/* counted: the step whose Adam corrections are used. */
DEVICE RtOpt update_options(const Rt *r, const Rt *counted, const UpdateRow &q)
{
    RtOpt o = r->opt;
    o.bias1 = counted->opt.bias1, o.bias2 = counted->opt.bias2;
    o.lr *= q.lr, o.decay *= q.decay;
    return o;
}

/* A gradient within the limits of clip = value(...). */
DEVICE real update_limited(real g, const RtOpt &o)
{
    return o.clip_value > 0 ? s_max(-o.clip_value, s_min(o.clip_value, g)) : g;
}

template <class Rule>
DEVICE void update_value(UpdateValue &x, int states, real g, const RtOpt &o, Rule rule)
{
    rule(x, states, update_limited(g, o), o);
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

/* Updates the number x.  g: its gradient. */
template <class Rule>
DEVICE void update_with(const Rt *r, const Rt *counted, const UpdateRow &q, const UpdateNumber &x,
                        real g, Rule rule)
{
    UpdateValue v = {*x.w, x.s0 ? *x.s0 : 0, x.s1 ? *x.s1 : 0};
    update_value(v, x.s1 ? 2 : x.s0 ? 1 : 0, g, update_options(r, counted, q), rule);
    *x.w = v.w;
    if (x.s0)
        *x.s0 = v.s0;
    if (x.s1)
        *x.s1 = v.s1;
}

/* The weights of a thread, and their states: addresses and values. */
struct UpdateQuads {
    char *w, *s0, *s1;
    int states;
    Quad vw, vs0, vs1;
};
/* Loads these quads; if they are not used, loads from the address `instead`.  There are no
 * branches, so that no load waits for a condition: a missing state is loaded from the address
 * before it. */
DEVICE UpdateQuads update_load(const Rt *r, const UpdateShare &s, bool used, char *instead)
{
    char *const at = r->fixed + s.bytes, *const w = at + s.q.weights, *const s0 = at + s.q.state0,
                *const s1 = at + s.q.state1;
    UpdateQuads u = {};
    u.states = s.q.state1 >= 0 ? 2 : s.q.state0 >= 0 ? 1 : 0;
    u.w = used ? w : instead;
    u.s0 = used && u.states > 0 ? s0 : u.w;
    u.s1 = used && u.states > 1 ? s1 : u.s0;
    u.vw = quad_at(u.w), u.vs0 = quad_at(u.s0), u.vs1 = quad_at(u.s1);
    return u;
}
/* Updates and stores the quads u.  o: from update_options. */
template <class Rule>
DEVICE void update_quads(UpdateQuads &u, const Quad &g, int count, const RtOpt &o, Rule rule)
{
    RT_UNROLL
    for (int k = 0; k < 4; k++) {
        UpdateValue v = {u.vw.at[k], u.vs0.at[k], u.vs1.at[k]};
        update_value(v, u.states, g.at[k], o, rule);
        u.vw.at[k] = v.w, u.vs0.at[k] = v.s0, u.vs1.at[k] = v.s1;
    }
    quad_put(u.w, u.vw, count);
    if (u.states > 0)
        quad_put(u.s0, u.vs0, count);
    if (u.states > 1)
        quad_put(u.s1, u.vs1, count);
}

/* Updates a part of the parameters. from_grad: the sums are in r->grad.  Else the sums are computed
 * here, and stored in r->grad if r->grad is set. */
template <class Rule>
DEVICE void update_part(unsigned block, const Rt *r, const UpdateRow *rows, int n, bool from_grad,
                        int loss, Rule rule)
{
    const UpdateShare s = update_share(rows, n, block);
    if (s.count <= 0)
        return;
    char *const grad = r->grad + s.q.grad + s.bytes, *const sum = r->shard + s.q.sum + s.bytes;
    const int64_t stride = r->shard_bytes;
    const int shards = r->shards;
    const bool stores = r->grad && !from_grad;
    const RtOpt o = update_options(r, r, s.q);
    const UpdateCheck check = update_check(r, loss);
    Quad g = quad_at(from_grad ? grad : sum);
    UpdateQuads u = update_load(r, s, !stores, sum);

    if (!update_allowed(r, loss, check))
        return;
    if (!from_grad && shards > 1) {
        g = update_trees(sum, g, stride, shards);
        u = update_load(r, s, !stores, sum); /* again, because the trees need the registers */
    }
    if (stores)
        quad_put(grad, g, s.count);
    else
        update_quads(u, g, s.count, o, rule);
}
template <class Rule>
DEVICE void update(const Rt *r, const UpdateRow *rows, int n, int blocks, bool from_grad, int loss,
                   Rule rule)
{
    FOR_BLOCKS(block, blocks)
        update_part(block, r, rows, n, from_grad, loss, rule);
}

#endif
