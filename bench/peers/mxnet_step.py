"""mxnet_step.py -- the training step in MXNet 1.9.1: a symbol bound by Module, oneDNN's kernels inside.

Its RMSprop has eps inside the root, hence the square.
"""
import deep_nets
import mxnet as mx
import numpy as np
from common import KERNEL, Peer, serve


def network(net, dropout):
    h = mx.sym.Variable("data")
    for i, k in enumerate(net.filters):
        pad = KERNEL // 2 if net.same else 0
        h = mx.sym.Convolution(h, num_filter=k, kernel=(KERNEL, KERNEL), pad=(pad, pad), name=f"conv{i}")
        h = mx.sym.Activation(h, act_type=net.activation)
        h = mx.sym.Pooling(h, kernel=(2, 2), stride=(2, 2), pool_type="max")
    h = mx.sym.Flatten(h)
    for i, k in enumerate(net.dense):
        h = mx.sym.FullyConnected(h, num_hidden=k, name=f"dense{i}")
        if i < len(net.dense) - 1:
            h = mx.sym.Activation(h, act_type=net.activation)
            h = mx.sym.Dropout(h, p=dropout) if dropout else h
    return mx.sym.SoftmaxOutput(h, name="softmax")


class Builder:
    """The words of deep_nets.py; `names` lists parameters and running averages in the order in which they were asked for."""

    def __init__(self):
        self.names = []

    def ask(self, kind, *parts):
        name = f"{kind}{len(self.names)}"
        self.names += [f"{name}_{part}" for part in parts]
        return name

    def conv(self, x, filters, rows, columns, stride, p, q):
        return mx.sym.Convolution(x, num_filter=filters, kernel=(rows, columns), stride=(stride, stride), pad=(p, q), no_bias=True,
                                  name=self.ask("conv", "weight"))

    def norm(self, x, epsilon):
        return mx.sym.BatchNorm(x, eps=epsilon, momentum=0.9, fix_gamma=False,
                                name=self.ask("norm", "gamma", "beta", "moving_mean", "moving_var"))

    def relu(self, x):
        return mx.sym.Activation(x, act_type="relu")

    def add(self, x, y):
        return x + y

    def concat(self, parts):
        return mx.sym.Concat(*parts)

    def max_pool(self, x, size, stride, pad):
        return mx.sym.Pooling(x, kernel=(size, size), stride=(stride, stride), pad=(pad, pad), pool_type="max")

    def avg_pool(self, x):
        return mx.sym.Pooling(x, kernel=(3, 3), stride=(1, 1), pad=(1, 1), pool_type="avg", count_include_pad=False)

    def head(self, x, classes):
        x = mx.sym.Flatten(mx.sym.Pooling(x, kernel=(1, 1), global_pool=True, pool_type="avg"))
        x = mx.sym.FullyConnected(x, num_hidden=classes, name=self.ask("dense", "weight", "bias"))
        return mx.sym.SoftmaxOutput(x, name="softmax")


class MXNet(Peer):
    versions = {"mxnet": mx.__version__}

    def __init__(self, job):
        super().__init__(job)
        net, builder = job.net, Builder()
        if job.deep:
            symbol = deep_nets.NETS[net.net](builder, mx.sym.Variable("data"), net.word)
        else:
            symbol = network(net, job.dropout)
        self.module = mx.mod.Module(symbol, context=mx.cpu())
        self.module.bind([("data", job.x[0].shape)], [("softmax_label", (job.batch,))])
        averages = symbol.list_auxiliary_states()
        names = builder.names or [a for a in symbol.list_arguments() if a not in ("data", "softmax_label")]
        tensors = {n: mx.nd.array(w) for n, w in zip(names, job.weights)}
        self.module.init_params(arg_params={n: t for n, t in tensors.items() if n not in averages},
                                aux_params={n: t for n, t in tensors.items() if n in averages})
        name, options = self.optimizer(net)
        self.module.init_optimizer(optimizer=name, optimizer_params=options, kvstore=None)
        self.batch = [mx.io.DataBatch([mx.nd.array(x)], [mx.nd.array(y)]) for x, y in zip(job.x, job.y)]

    def optimizer(self, net):
        options = {"learning_rate": net.lr, "wd": net.decay, "rescale_grad": 1 / self.job.batch}   # wd leaves out biases, by their names
        if self.job.deep and net.adam:
            return "adam", options | {"epsilon": 1e-8}
        if net.rmsprop:
            return "rmsprop", options | {"gamma1": net.rho, "epsilon": net.eps**2}
        return "sgd", options | {"momentum": net.momentum}

    def step(self, i):
        self.module.forward_backward(self.batch[i])
        self.module.update()
        return i

    def gradient(self):
        """Norm of the previous step's gradients, which MXNet still has, as sums over the batch."""
        groups = self.module._exec_group.grad_arrays
        return float(np.sqrt(sum((g[0].asnumpy().astype(np.float64)**2).sum() for g in groups if g[0] is not None))) / self.job.batch

    def wait(self, i):
        scores = self.module.get_outputs()[0].asnumpy()
        mx.nd.waitall()
        return float(-np.log(scores[np.arange(len(scores)), self.job.y[i]]).mean())


serve(MXNet)
