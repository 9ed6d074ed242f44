"""jax_step.py -- the training step in JAX: all of it in one jit, the state donated, NHWC, pooling by reshape.

(reduce_window, the library's own max-pooling, takes twice the time on a CPU, most of it in its gradient.)  Networks over sequences are in
sequence_jax.py.
"""
import jax
import jax.numpy as jnp
import sequence_jax
from common import Peer, serve


def forward(net, weights, x, key, dropout):
    active = jnp.tanh if net.activation == "tanh" else jax.nn.relu
    w = iter(weights)
    for _ in net.filters:
        x = jax.lax.conv_general_dilated(x, next(w), (1, 1), "SAME" if net.same else "VALID",
                                         dimension_numbers=("NHWC", "HWIO", "NHWC")) + next(w)
        n, h, v, c = x.shape
        x = active(x).reshape(n, h // 2, 2, v // 2, 2, c).max((2, 4))
    x = x.reshape(len(x), -1)
    for _ in net.dense[:-1]:
        x = active(x @ next(w) + next(w))
        if dropout:
            key, own = jax.random.split(key)
            x = jnp.where(jax.random.bernoulli(own, 1 - dropout, x.shape), x / (1 - dropout), 0)
    return x @ next(w) + next(w)


def update(net, w, s, g):
    """-> new weight, new state"""
    if net.rmsprop:
        s = net.rho * s + (1 - net.rho) * g * g
        return w - net.lr * g / (jnp.sqrt(s) + net.eps), s
    if w.ndim > 1:
        g = g + net.decay * w
    if not net.momentum:
        return w - net.lr * g, s
    s = net.momentum * s + g
    return w - net.lr * s, s


class Jax(Peer):
    versions = {"jax": jax.__version__}

    def __init__(self, job):
        super().__init__(job)
        job.channels_last()
        net = job.net

        def loss(weights, x, y, key):
            scores = jax.nn.log_softmax(forward(net, weights, x, key, job.dropout))
            return -jnp.take_along_axis(scores, y[:, None], 1).mean()

        def step(weights, state, key, x, y):
            key, own = jax.random.split(key) if job.dropout else (key, key)
            value, gradient = jax.value_and_grad(loss)(weights, x, y, own)
            pairs = [update(net, *a) for a in zip(weights, state, gradient)]
            return [w for w, _ in pairs], [s for _, s in pairs], key, value

        self.compiled = jax.jit(step, donate_argnums=(0, 1, 2))
        self.weights = [jnp.array(w) for w in job.weights]
        keeps = net.rmsprop or net.momentum
        self.state = [jnp.zeros(w.shape if keeps else (0,)) for w in job.weights]
        self.key = jax.random.key(1)
        self.x, self.y = [jnp.array(x) for x in job.x], [jnp.array(y) for y in job.y]

    def step(self, i):
        self.weights, self.state, self.key, value = self.compiled(self.weights, self.state, self.key, self.x[i], self.y[i])
        return value

    def wait(self, loss):
        jax.block_until_ready(self.weights)
        return float(loss)


class JaxSequence(Peer):
    versions = Jax.versions

    def __init__(self, job):
        super().__init__(job)
        net, vector = job.net, [w.ndim == 1 for w in job.weights]

        def loss(weights, x, y, key):
            return sequence_jax.losses(net, sequence_jax.forward(net, weights, x, key, job.dropout), y).mean()

        def step(state, key, x, y):
            key, own = jax.random.split(key) if job.dropout else (key, key)
            value, gradient = jax.value_and_grad(loss)(state["w"], x, y, own)
            return sequence_jax.update(net, state, gradient, vector), key, value

        self.compiled = jax.jit(step, donate_argnums=(0, 1))
        self.state = sequence_jax.state(net, [jnp.array(w) for w in job.weights])
        self.key = jax.random.key(1)
        self.x, self.y = [jnp.array(x) for x in job.x], [jnp.array(y) for y in job.y]

    def step(self, i):
        self.state, self.key, value = self.compiled(self.state, self.key, self.x[i], self.y[i])
        return value

    def wait(self, loss):
        jax.block_until_ready(self.state)
        return float(loss)


serve(lambda job: (JaxSequence if job.sequence else Jax)(job))
