"""tf_step.py -- the training step in TensorFlow: graph (tf.function, oneDNN's kernels inside), xla (jit_compile).

NHWC; the update by the fused kernels that Keras' optimizers end in.
"""
import tensorflow as tf
from common import Peer, serve


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


def update(net, w, s, g):
    if net.rmsprop:                                   # a kernel with eps inside the root: written out
        s.assign(net.rho * s + (1 - net.rho) * g * g)
        w.assign_sub(net.lr * g / (tf.sqrt(s) + net.eps))
        return
    if len(w.shape) > 1 and net.decay:
        g = g + net.decay * w
    if net.momentum:
        tf.raw_ops.ResourceApplyMomentum(var=w.handle, accum=s.handle, lr=net.lr, grad=g, momentum=net.momentum)
    else:
        tf.raw_ops.ResourceApplyGradientDescent(var=w.handle, alpha=net.lr, delta=g)


class TensorFlow(Peer):
    versions = {"tensorflow": tf.__version__}

    def __init__(self, job):
        super().__init__(job)
        job.channels_last()
        tf.config.threading.set_intra_op_parallelism_threads(job.threads)
        tf.config.threading.set_inter_op_parallelism_threads(job.threads)
        net = job.net
        weights = [tf.Variable(w) for w in job.weights]
        state = [tf.Variable(tf.zeros_like(w)) for w in weights]

        @tf.function(jit_compile=job.mode == "xla")
        def step(x, y):
            with tf.GradientTape() as tape:
                scores = forward(net, weights, x, job.dropout)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores))
            for pair in zip(weights, state, tape.gradient(loss, weights)):
                update(net, *pair)
            return loss

        self.x, self.y = [tf.constant(x) for x in job.x], [tf.constant(y) for y in job.y]
        self.compiled = step.get_concrete_function(self.x[0], self.y[0])

    def step(self, i):
        return self.compiled(self.x[i], self.y[i])


serve(TensorFlow)
