"""tf_step.py -- the training step in TensorFlow: graph (tf.function, oneDNN's kernels inside), xla (jit_compile).

NHWC; the update by the fused kernels that Keras' optimizers end in.
"""
import deep_nets
import tensorflow as tf
from common import Peer, serve

KEPT = 0.9                                            # factor of a running average in each step


def forward(net, weights, x, dropout):
    active = tf.nn.tanh if net.activation == "tanh" else tf.nn.relu
    w = iter(weights)
    for _ in net.filters:
        x = tf.nn.conv2d(x, next(w), 1, "SAME" if net.same else "VALID")
        x = tf.nn.max_pool2d(active(tf.nn.bias_add(x, next(w))), 2, 2, "VALID")
    x = tf.reshape(x, (x.shape[0], -1))
    for _ in net.dense[:-1]:
        x = active(tf.nn.bias_add(tf.matmul(x, next(w)), next(w)))
        if dropout:
            x = tf.nn.dropout(x, dropout)
    return tf.nn.bias_add(tf.matmul(x, next(w)), next(w))


class Builder:
    """The words of deep_nets.py."""

    def __init__(self, weights):
        self.w = iter(weights)

    def conv(self, x, _filters, _rows, _columns, stride, p, q):
        return tf.nn.conv2d(x, next(self.w), stride, [[0, 0], [p, p], [q, q], [0, 0]])

    def norm(self, x, epsilon):
        gain, shift, mean, variance = (next(self.w) for _ in range(4))
        y, m, v = tf.compat.v1.nn.fused_batch_norm(x, gain, shift, epsilon=epsilon, is_training=True)
        for kept, new in (mean, m), (variance, v):
            kept.assign_sub((1 - KEPT) * (kept - new))
        return y

    def max_pool(self, x, size, stride, pad):
        return tf.nn.max_pool2d(tf.pad(x, [[0, 0], [pad, pad], [pad, pad], [0, 0]]) if pad else x, size, stride, "VALID")   # after a relu

    def head(self, x, _classes):
        return tf.nn.bias_add(tf.matmul(tf.reduce_mean(x, (1, 2)), next(self.w)), next(self.w))

    def avg_pool(self, x):
        return tf.nn.avg_pool2d(x, 3, 1, "SAME")

    def concat(self, parts):
        return tf.concat(parts, 3)

    relu, add = staticmethod(tf.nn.relu), staticmethod(tf.add)


def update(net, w, s, g):
    if net.rmsprop:                                   # TensorFlow's kernel has eps inside the root, so this is written out
        s.assign(net.rho * s + (1 - net.rho) * g * g)
        w.assign_sub(net.lr * g / (tf.sqrt(s) + net.eps))
        return
    if len(w.shape) > 1 and net.decay:
        g = g + net.decay * w
    if net.momentum:
        tf.raw_ops.ResourceApplyMomentum(var=w.handle, accum=s.handle, lr=net.lr, grad=g, momentum=net.momentum)
    else:
        tf.raw_ops.ResourceApplyGradientDescent(var=w.handle, alpha=net.lr, delta=g)


class Adam:
    """The optimizer Adam: two states for each weight, and the powers of beta1 and beta2."""

    def __init__(self, trained):
        self.m, self.v = ([tf.Variable(tf.zeros_like(w)) for w in trained] for _ in range(2))
        self.power = [tf.Variable(0.9), tf.Variable(0.999)]

    def update(self, net, trained, gradient):
        for w, m, v, g in zip(trained, self.m, self.v, gradient):
            tf.raw_ops.ResourceApplyAdam(var=w.handle, m=m.handle, v=v.handle, beta1_power=self.power[0], beta2_power=self.power[1],
                                         lr=net.lr, beta1=0.9, beta2=0.999, epsilon=1e-8, grad=g)
        for power, beta in zip(self.power, (0.9, 0.999)):
            power.assign(power * beta)


class TensorFlow(Peer):
    versions = {"tensorflow": tf.__version__}

    def __init__(self, job):
        super().__init__(job)
        job.channels_last()
        tf.config.threading.set_intra_op_parallelism_threads(job.threads)
        tf.config.threading.set_inter_op_parallelism_threads(job.threads)
        self.weights = [tf.Variable(w) for w in job.weights]
        averages = ("mean", "variance")
        self.trained = [w for i, w in enumerate(self.weights) if not job.deep or job.kinds[i] not in averages]
        self.x, self.y = [tf.constant(x) for x in job.x], [tf.constant(y) for y in job.y]
        self.compiled = self.make_step().get_concrete_function(self.x[0], self.y[0])

    def scores(self, x):
        net = self.job.net
        if self.job.deep:
            return deep_nets.NETS[net.net](Builder(self.weights), x, net.word)
        return forward(net, self.weights, x, self.job.dropout)

    def differentiate(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, self.scores(x)))
        return loss, tape.gradient(loss, self.trained)

    def make_step(self):
        net = self.job.net
        adam = Adam(self.trained) if self.job.deep and net.adam else None
        state = [] if adam else [tf.Variable(tf.zeros_like(w)) for w in self.trained]

        @tf.function(jit_compile=self.job.mode == "xla")
        def step(x, y):
            loss, gradient = self.differentiate(x, y)
            if adam:
                adam.update(net, self.trained, gradient)
            else:
                for group in zip(self.trained, state, gradient):
                    update(net, *group)
            return loss
        return step

    def step(self, i):
        return self.compiled(self.x[i], self.y[i])

    def gradient(self):
        """Norm of the gradients of the first batch, with the first weights."""
        for variable, w in zip(self.weights, self.job.weights):
            variable.assign(w)
        _, gradient = tf.function(self.differentiate)(self.x[0], self.y[0])
        return float(tf.linalg.global_norm([tf.cast(g, tf.float64) for g in gradient]))


serve(TensorFlow)
