"""mxnet_step.py -- the training step in MXNet 1.9.1: a symbol bound by Module, oneDNN's kernels inside.

Its RMSprop has eps inside the root, hence the square.
"""
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


class MXNet(Peer):
    versions = {"mxnet": mx.__version__}

    def __init__(self, job):
        super().__init__(job)
        net = job.net
        symbol = network(net, job.dropout)
        self.module = mx.mod.Module(symbol, context=mx.cpu())
        self.module.bind([("data", job.x[0].shape)], [("softmax_label", (job.batch,))])
        names = [a for a in symbol.list_arguments() if a not in ("data", "softmax_label")]
        self.module.init_params(arg_params={n: mx.nd.array(w) for n, w in zip(names, job.weights)})
        options = {"learning_rate": net.lr, "wd": net.decay, "rescale_grad": 1 / job.batch}   # wd spares biases by their names
        options |= {"gamma1": net.rho, "epsilon": net.eps**2} if net.rmsprop else {"momentum": net.momentum}
        self.module.init_optimizer(optimizer="rmsprop" if net.rmsprop else "sgd", optimizer_params=options, kvstore=None)
        self.batch = [mx.io.DataBatch([mx.nd.array(x)], [mx.nd.array(y)]) for x, y in zip(job.x, job.y)]

    def step(self, i):
        self.module.forward_backward(self.batch[i])
        self.module.update()
        return i

    def wait(self, i):
        scores = self.module.get_outputs()[0].asnumpy()
        mx.nd.waitall()
        return float(-np.log(scores[np.arange(len(scores)), self.job.y[i]]).mean())


serve(MXNet)
