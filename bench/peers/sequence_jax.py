"""sequence_jax.py -- the sequence models in JAX, in their fastest form: one input product for all steps, then lax.scan.

Weights come in the order of common.SEQUENCE_SHAPES, as (outputs, inputs); XLA lays them as it likes.
"""
import jax
import jax.numpy as jnp

EPSILON = 1e-5
UNROLL = 8                                            # steps in a round of the loop


def dense(x, w, b):
    return x @ w.T + b


def lstm(x, w, b, u):
    """x (N, T, I) -> the last state (N, H); gates i, f, g, o."""
    z = jnp.swapaxes(dense(x, w, b), 0, 1)            # (T, N, 4 H)

    def step(state, z):
        h, c = state
        i, f, g, o = jnp.split(z + h @ u.T, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zero = jnp.zeros((x.shape[0], u.shape[1]), x.dtype)
    (h, _), _ = jax.lax.scan(step, (zero, zero), z, unroll=UNROLL)
    return h


def dropped(x, rate, key):
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0) if rate else x


def norm(x, gain, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + EPSILON) * gain + shift


def attention(p, heads):
    """p (N, T, 3 C) -> (N, T, C), each position over itself and those before."""
    n, t, c = p.shape[0], p.shape[1], p.shape[2] // 3
    q, k, v = (jnp.swapaxes(part.reshape(n, t, heads, -1), 1, 2) for part in jnp.split(p, 3, 2))
    score = jnp.where(jnp.tri(t, dtype=bool), q @ jnp.swapaxes(k, 2, 3) * (c // heads) ** -0.5, -jnp.inf)
    return jnp.swapaxes(jax.nn.softmax(score) @ v, 1, 2).reshape(n, t, c)


def gpt(weights, x, heads):
    tokens, position, *rest, gain, shift = weights
    h = tokens[x] + position
    for i in range(0, len(rest), 12):
        g1, s1, wqkv, bqkv, wo, bo, g2, s2, wide, bwide, narrow, bnarrow = rest[i:i + 12]
        h = h + dense(attention(dense(norm(h, g1, s1), wqkv, bqkv), heads), wo, bo)
        h = h + dense(jax.nn.gelu(dense(norm(h, g2, s2), wide, bwide), approximate=False), narrow, bnarrow)
    return norm(h, gain, shift) @ tokens.T


def forward(net, weights, x, key, dropout):
    if net.gpt:
        return gpt(weights, x, net.gpt.heads)
    before, after = jax.random.split(key)
    table, *rest = weights if net.tokens else (None, *weights)
    h = lstm(dropped(table[x], dropout, before) if net.tokens else x, *rest[:3])
    return dense(dropped(h, dropout, after), *rest[3:])


def losses(net, output, y):
    """A loss for each label."""
    if net.net == "lstm_imdb":
        x = output[:, 0]
        return jax.nn.softplus(x) - x * y
    return -jnp.take_along_axis(jax.nn.log_softmax(output), y[..., None], -1)


def state(net, weights):
    zeros = lambda: [jnp.zeros_like(w) for w in weights]
    return {"w": weights, "v": zeros(), "m": [] if net.rmsprop else zeros(), "step": jnp.zeros((), jnp.int32)}


def update(net, state, gradient, vector):
    """RMSprop, or Adam with decoupled decay of all parameters that are no vectors; clips by the norm of all gradients."""
    if net.clip:
        whole = jnp.sqrt(sum(jnp.vdot(g, g) for g in gradient))
        gradient = [g * jnp.minimum(1, net.clip / (whole + 1e-6)) for g in gradient]
    if net.rmsprop:
        v = [net.rho * v + (1 - net.rho) * g * g for v, g in zip(state["v"], gradient)]
        return {**state, "v": v, "w": [w - net.lr * g / (jnp.sqrt(v) + net.eps) for w, v, g in zip(state["w"], v, gradient)]}
    step = state["step"] + 1
    m = [0.9 * m + 0.1 * g for m, g in zip(state["m"], gradient)]
    v = [net.beta2 * v + (1 - net.beta2) * g * g for v, g in zip(state["v"], gradient)]
    first, second = 1 - 0.9 ** step, 1 - net.beta2 ** step
    kept = [1 - (0 if only else net.lr * net.decay) for only in vector]
    w = [k * w - net.lr * (m / first) / (jnp.sqrt(v / second) + 1e-8) for k, w, m, v in zip(kept, state["w"], m, v)]
    return {"w": w, "m": m, "v": v, "step": step}
