/* update.h -- sums over samples in one fixed order, and the optimizers' updates.
 *
 * Each sum over shards is a binary tree of adjacent pairs, ((01)(23))(45), computed like a binary
 * counter.  Its shape depends only on the number of items.  A process that holds a power-of-two run
 * of the shards computes a whole subtree, so one process, several groups and several ranks get the
 * same bits.
 *
 * The formulas are PyTorch's (torch.optim), with the gradient g of the mean loss, per element:
 *     sgd      g += decay w     s0 = momentum s0 + g     w -= lr (nesterov ? g + momentum s0 : s0)
 *     rmsprop  g += decay w     s0 = rho s0 + (1-rho) g^2
 *              s1 = momentum s1 + g / (sqrt(s0) + eps)     w -= lr s1
 *     adam     g += decay w     s0 = beta1 s0 + (1-beta1) g     s1 = beta2 s1 + (1-beta2) g^2
 *              w -= lr (s0 / bias1) / (sqrt(s1 / bias2) + eps)
 *     adamw    w -= lr decay w, then adam without decay
 *     adagrad  g += decay w     s0 += g^2     w -= lr g / (sqrt(s0) + eps)
 * Lion is that of Chen et al. 2023 ("Symbolic Discovery of Optimization Algorithms"):
 *     lion     w -= lr decay w     w -= lr sign(beta1 s0 + (1-beta1) g)
 *              s0 = beta2 s0 + (1-beta2) g
 * LARS (You, Gitman, Ginsburg 2017, "Large Batch Training of Convolutional Networks") and LAMB (You
 * et al. 2020, "Large Batch Optimization for Deep Learning") multiply the step of a parameter by
 * its trust ratio q, which the runtime computes before the update (step/trust.h):
 *     lars     g = q (g + decay w), then sgd without decay
 *     lamb     u = adam's (s0 / bias1) / (sqrt(s1 / bias2) + eps) + decay w     w -= lr q u
 */
#ifndef CPU_UPDATE_H
#define CPU_UPDATE_H

/* w, s0, s1: V elements each; a state that the optimizer does not keep is NULL. */
typedef void (*Update)(real *w, real *s0, real *s1, vec g, const RtOpt *o);

/* w -= lr times the step; g: with decay. */
RT_LEAF void update_momentum(real *w, real *s0, vec x, vec g, const RtOpt *o)
{
    const vec momentum = v_set(o->momentum);
    vec step = g;
    if (s0) {
        const vec v = v_fma(momentum, v_load(s0), g);
        v_store(s0, v);
        step = o->nesterov ? v_fma(momentum, v, g) : v;
    }
    v_store(w, v_fma(v_set(-o->lr), step, x));
}

RT_LEAF void update_sgd(real *w, real *s0, real *s1, vec g, const RtOpt *o)
{
    (void)s1;
    const vec x = v_load(w);
    update_momentum(w, s0, x, v_fma(v_set(o->decay), x, g), o);
}

RT_LEAF void update_lars(real *w, real *s0, real *s1, vec g, const RtOpt *o)
{
    (void)s1;
    const vec x = v_load(w);
    update_momentum(w, s0, x, v_set(o->trust) * v_fma(v_set(o->decay), x, g), o);
}

/* a / b, and 0 where both are 0 (padding, with eps = 0); NaN stays NaN. */
RT_LEAF vec update_ratio(vec a, vec b)
{
    return v_select_gt(b, v_set(0), a / b, a * b);
}

RT_LEAF void update_rmsprop(real *w, real *s0, real *s1, vec g, const RtOpt *o)
{
    const vec x = v_load(w);
    g = v_fma(v_set(o->decay), x, g);
    const vec square = v_fma(v_set(1 - o->rho), g * g, v_set(o->rho) * v_load(s0));
    v_store(s0, square);
    vec step = update_ratio(g, v_sqrt(square) + v_set(o->eps));
    if (s1) {
        step = v_fma(v_set(o->momentum), v_load(s1), step);
        v_store(s1, step);
    }
    v_store(w, v_fma(v_set(-o->lr), step, x));
}

RT_LEAF vec update_adam_step(real *s0, real *s1, vec g, const RtOpt *o)
{
    const vec m = v_fma(v_set(1 - o->beta1), g, v_set(o->beta1) * v_load(s0));
    const vec v = v_fma(v_set(1 - o->beta2), g * g, v_set(o->beta2) * v_load(s1));
    v_store(s0, m);
    v_store(s1, v);
    return update_ratio(m / v_set(o->bias1), v_sqrt(v / v_set(o->bias2)) + v_set(o->eps));
}

RT_LEAF void update_adam(real *w, real *s0, real *s1, vec g, const RtOpt *o)
{
    const vec x = v_load(w);
    const vec step = update_adam_step(s0, s1, v_fma(v_set(o->decay), x, g), o);
    v_store(w, v_fma(v_set(-o->lr), step, x));
}

RT_LEAF void update_adamw(real *w, real *s0, real *s1, vec g, const RtOpt *o)
{
    const vec x = v_load(w) * v_set(1 - o->lr * o->decay);
    v_store(w, v_fma(v_set(-o->lr), update_adam_step(s0, s1, g, o), x));
}

RT_LEAF void update_lamb(real *w, real *s0, real *s1, vec g, const RtOpt *o)
{
    const vec x = v_load(w);
    const vec step = v_fma(v_set(o->decay), x, update_adam_step(s0, s1, g, o));
    v_store(w, v_fma(v_set(-(o->lr * o->trust)), step, x));
}

RT_LEAF void update_adagrad(real *w, real *s0, real *s1, vec g, const RtOpt *o)
{
    (void)s1;
    const vec x = v_load(w);
    g = v_fma(v_set(o->decay), x, g);
    const vec square = v_fma(g, g, v_load(s0));
    v_store(s0, square);
    v_store(w, v_fma(v_set(-o->lr), update_ratio(g, v_sqrt(square) + v_set(o->eps)), x));
}

/* The sign of a number: 1, -1, 0 or NaN. */
RT_LEAF vec update_sign(vec x)
{
    return v_select_gt(x, v_set(0), v_set(1), v_select_gt(v_set(0), x, v_set(-1), x));
}

RT_LEAF void update_lion(real *w, real *s0, real *s1, vec g, const RtOpt *o)
{
    (void)s1;
    const vec m = v_load(s0), x = v_load(w) * v_set(1 - o->lr * o->decay);
    const vec step = v_fma(v_set(1 - o->beta1), g, v_set(o->beta1) * m);
    v_store(s0, v_fma(v_set(1 - o->beta2), g, v_set(o->beta2) * m));
    v_store(w, v_fma(v_set(-o->lr), update_sign(step), x));
}

RT_LEAF void update_clipped(real *w, real *s0, real *s1, vec g, const RtOpt *o, Update u)
{
    u(w, s0, s1, o->clip_value > 0 ? v_clamp(g, -o->clip_value, o->clip_value) : g, o);
}

/* The same for the first k lanes only: memory after the last parameter belongs to another one. */
RT_LEAF void update_lanes(real *w, real *s0, real *s1, vec g, const RtOpt *o, Update u, int k)
{
    if (k == V) {
        update_clipped(w, s0, s1, g, o, u);
        return;
    }
    real t[3][V];
    v_store(t[0], v_load_n(w, k));
    v_store(t[1], s0 ? v_load_n(s0, k) : v_set(0));
    v_store(t[2], s1 ? v_load_n(s1, k) : v_set(0));
    update_clipped(t[0], s0 ? t[1] : NULL, s1 ? t[2] : NULL, g, o, u);
    v_store_n(w, v_load(t[0]), k);
    if (s0)
        v_store_n(s0, v_load(t[1]), k);
    if (s1)
        v_store_n(s1, v_load(t[2]), k);
}

/* Factors of a parameter for the recipe's learning rate and decay; 1 keeps their bits.  trust: 1 +
 * the index of its trust ratio; 0: it has none. */
typedef struct Factors {
    real lr, decay;
    int trust;
} Factors;
RT_LEAF RtOpt update_options(const Rt *r, Factors f)
{
    RtOpt o = r->opt;
    o.lr *= f.lr;
    o.decay *= f.decay;
    if (f.trust > 0)
        o.trust = (real)r->trust[f.trust - 1];
    return o;
}

/* The share of a unit of `count` elements: from *first to the returned value, exclusive.  Whole
 * vectors, except for the last unit. */
RT_LEAF int64_t update_range(int64_t count, int unit, int units, int64_t *first)
{
    const int64_t vectors = (count + V - 1) / V, last = vectors * (unit + 1) / units * V;
    *first = vectors * unit / units * V;
    return last < count ? last : count;
}

/* ------------------------------------------------------------------------------- the fixed tree */
enum { TREE_DEPTH = 32 }; /* 2^32 items */

/* Adds item i: it completes as many pairs as i has trailing ones.  depth: number of pending sums on
 * the stack. */
RT_LEAF void tree_push(vec *stack, int *depth, int i, vec x)
{
    for (; i & 1; i >>= 1)
        x = stack[--*depth] + x;
    stack[(*depth)++] = x;
}

RT_LEAF vec tree_finish(const vec *stack, int depth)
{
    vec x = stack[--depth];
    while (depth > 0)
        x = stack[--depth] + x;
    return x;
}

/* Sum of `items` vectors, `stride` bytes apart; only the first k lanes exist. */
RT_LEAF vec tree_sum(const char *p, int64_t stride, int items, int k)
{
    vec stack[TREE_DEPTH];
    int depth = 0;
    for (int i = 0; i < items; i++)
        tree_push(stack, &depth, i, v_load_lanes((const real *)(p + i * stride), k));
    return tree_finish(stack, depth);
}

/* V numbers of a gradient that slices have stored, of which the first k exist: the tree over the
 * slices of a shard, then the tree over the local shards. */
RT_LEAF vec reduced(const Rt *r, const char *partial, int64_t slice_bytes, int slices, int k)
{
    vec stack[TREE_DEPTH];
    int depth = 0;
    for (int s = 0; s < r->shards; s++)
        tree_push(stack, &depth, s, tree_sum(partial + s * r->shard_bytes, slice_bytes, slices, k));
    return tree_finish(stack, depth);
}

/* Sums a gradient that slices have stored.  Then updates, or stores the sum at r->grad + grad for
 * the reduction across processes.  Elements of this unit only. */
RT_LEAF void reduce_update(const Rt *r, int unit, int units, int64_t grad, real *w, real *s0,
                           real *s1, const char *partial, int64_t slice_bytes, int slices,
                           int64_t count, Factors f, Update u)
{
    const RtOpt o = update_options(r, f);
    int64_t at;
    const int64_t end = update_range(count, unit, units, &at);
    for (; at < end; at += V) {
        const int k = end - at < V ? (int)(end - at) : V;
        const vec g = reduced(r, partial + at * (int64_t)sizeof(real), slice_bytes, slices, k);
        if (r->grad)
            v_store_lanes((real *)(r->grad + grad) + at, g, k);
        else
            update_lanes(w + at, s0 ? s0 + at : NULL, s1 ? s1 + at : NULL, g, &o, u, k);
    }
}

/* Updates from a sum that the runtime has reduced in r->grad. */
RT_LEAF void grad_update(const Rt *r, int unit, int units, int64_t grad, real *w, real *s0,
                         real *s1, int64_t count, Factors f, Update u)
{
    const RtOpt o = update_options(r, f);
    const real *g = (const real *)(r->grad + grad);
    int64_t at;
    const int64_t end = update_range(count, unit, units, &at);
    for (; at < end; at += V) {
        const int k = end - at < V ? (int)(end - at) : V;
        update_lanes(w + at, s0 ? s0 + at : NULL, s1 ? s1 + at : NULL, v_load_lanes(g + at, k), &o,
                     u, k);
    }
}

/* Euclidean norm of all reduced gradients, in double and in order. */
RT_LEAF double grad_norm(const Rt *r, int64_t grad_bytes)
{
    const real *g = (const real *)r->grad;
    double sum = 0;
    for (int64_t i = 0; i < grad_bytes / (int64_t)sizeof(real); i++)
        sum += (double)g[i] * (double)g[i];
    return sqrt(sum);
}

#endif
