"""keras_step.py -- the training step of the LSTM models in Keras 3, MODE its backend: tensorflow (one tf.function) or jax (one jit).

Layers, losses and Adam are Keras's own; the loop around them is the backend's, for `fit` spends more on callbacks than some of these
steps take.  Keras's RMSprop has eps inside the root, which changes the first steps with small gradients, so it is written out.
"""
import os
import sys

os.environ["KERAS_BACKEND"] = backend = sys.argv[2]

import keras
from common import Peer, serve
from keras import layers

UNROLL = {"tensorflow": True, "jax": False}           # XLA has its own loop; TensorFlow's loop takes as much time as its steps


def network(net, shape, dropout):
    x = keras.Input(shape, dtype="int32" if net.tokens else "float32")
    h = layers.Embedding(20000, 128)(x) if net.tokens else x
    h = layers.Dropout(dropout)(h) if dropout else h
    h = layers.LSTM(128, unroll=UNROLL[backend])(h)
    h = layers.Dropout(dropout)(h) if dropout else h
    return keras.Model(x, layers.Dense(1 if net.tokens else 60)(h))


def placed(weights):
    """Weights in Keras's order, for an LSTM: kernel, recurrent kernel, bias.  All matrices but the embedding's are (inputs, outputs)."""
    *first, w, b, u, dense, last = weights
    return [*first, w.T, u.T, b, dense.T, last]


class RMSprop(keras.optimizers.RMSprop):
    def update_step(self, gradient, variable, learning_rate):
        mean = self._velocities[self._get_variable_index(variable)]
        self.assign(mean, self.rho * mean + (1 - self.rho) * gradient * gradient)
        self.assign_sub(variable, learning_rate * gradient / (keras.ops.sqrt(mean) + self.epsilon))


class Keras(Peer):
    def __init__(self, job):
        super().__init__(job)
        net = job.net
        self.model = network(net, job.x[0].shape[1:], job.dropout)
        self.model.set_weights(placed(job.weights))
        if net.rmsprop:
            self.optimizer = RMSprop(net.lr, rho=net.rho, epsilon=net.eps)
        else:
            self.optimizer = keras.optimizers.Adam(net.lr, beta_2=net.beta2, epsilon=1e-8)
        self.optimizer.build(self.model.trainable_variables)

    def loss(self, y, output):
        if self.job.net.tokens:
            return keras.ops.mean(keras.losses.binary_crossentropy(y[:, None], output, from_logits=True))
        return keras.ops.mean(keras.losses.sparse_categorical_crossentropy(y, output, from_logits=True))


class OnTensorFlow(Keras):
    def __init__(self, job):
        import tensorflow as tf
        tf.config.threading.set_intra_op_parallelism_threads(job.threads)
        tf.config.threading.set_inter_op_parallelism_threads(job.threads)
        super().__init__(job)
        self.versions = {"keras": keras.__version__, "tensorflow": tf.__version__}
        weights = self.model.trainable_variables

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = self.loss(y, self.model(x, training=True))
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return loss

        self.x, self.y = [tf.constant(x) for x in job.x], [tf.constant(y) for y in job.y]
        self.compiled = step.get_concrete_function(self.x[0], self.y[0])

    def step(self, i):
        return self.compiled(self.x[i], self.y[i])


class OnJax(Keras):
    def __init__(self, job):
        import jax
        super().__init__(job)
        self.versions = {"keras": keras.__version__, "jax": jax.__version__}

        def loss(weights, others, x, y):
            output, others = self.model.stateless_call(weights, others, x, training=True)
            return self.loss(y, output), others

        def step(weights, others, states, x, y):
            (value, others), gradient = jax.value_and_grad(loss, has_aux=True)(weights, others, x, y)
            weights, states = self.optimizer.stateless_apply(states, gradient, weights)
            return weights, others, states, value

        self.compiled = jax.jit(step, donate_argnums=(0, 1, 2))
        self.state = tuple([v.value for v in kind] for kind in (self.model.trainable_variables, self.model.non_trainable_variables,
                                                                 self.optimizer.variables))
        self.x, self.y, self.ready = [jax.numpy.array(x) for x in job.x], [jax.numpy.array(y) for y in job.y], jax.block_until_ready

    def step(self, i):
        *self.state, value = self.compiled(*self.state, self.x[i], self.y[i])
        return value

    def wait(self, loss):
        self.ready(self.state)
        return float(loss)


serve({"tensorflow": OnTensorFlow, "jax": OnJax}[backend])
