"""torch_step.py -- the training step in PyTorch: eager, eager_cl (channels last), compile (TorchInductor), compile_cl.

Fused SGD, foreach RMSprop, gradients set to None, denormals flushed; compile takes the loss and its gradient as one graph.
bench/run sets the two variables that keep glibc's malloc from giving pages back every step.
"""
import torch
from common import KERNEL, Peer, serve
from torch import nn


def network(net, dropout):
    active = nn.Tanh if net.activation == "tanh" else nn.ReLU
    layers, inputs = [], net.image[0]
    for k in net.filters:
        layers += [nn.Conv2d(inputs, k, KERNEL, padding=KERNEL // 2 if net.same else 0), active(), nn.MaxPool2d(2)]
        inputs = k
    if net.filters:
        layers.append(nn.Flatten())
        c, h, w = net.flat()
        inputs = c * h * w
    for k in net.dense[:-1]:
        layers += [nn.Linear(inputs, k), active()] + ([nn.Dropout(dropout)] if dropout else [])
        inputs = k
    return nn.Sequential(*layers, nn.Linear(inputs, net.dense[-1]))


def optimizer(net, model):
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": net.decay},
              {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0}]
    if net.rmsprop:
        return torch.optim.RMSprop(groups, lr=net.lr, alpha=net.rho, eps=net.eps, foreach=True)
    return torch.optim.SGD(groups, lr=net.lr, momentum=net.momentum, fused=True)


class Torch(Peer):
    versions = {"torch": torch.__version__}

    def __init__(self, job):
        super().__init__(job)
        torch.set_num_threads(job.threads)
        torch.set_flush_denormal(True)
        self.model = network(job.net, job.dropout)
        with torch.no_grad():
            for p, w in zip(self.model.parameters(), job.weights):
                p.copy_(torch.from_numpy(w))
        self.x = [torch.from_numpy(x) for x in job.x]
        self.y = [torch.from_numpy(y).long() for y in job.y]
        if job.mode.endswith("_cl"):
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = [x.contiguous(memory_format=torch.channels_last) for x in self.x]
        self.optimizer = optimizer(job.net, self.model)
        if job.mode.startswith("compile"):
            self.loss = torch.compile(self.loss)

    def loss(self, x, y):
        return nn.functional.cross_entropy(self.model(x), y)

    def step(self, i):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.x[i], self.y[i])
        loss.backward()
        self.optimizer.step()
        return loss.detach()


serve(Torch)
