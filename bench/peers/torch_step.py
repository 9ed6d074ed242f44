"""torch_step.py -- the training step in PyTorch.  Its mode is made of words with _ between them:

    eager      operations one by one
    compile    the loss by TorchInductor
    graph      on a GPU: the whole step, with the update, recorded once in a CUDA graph (graph_compile: of the compiled loss)
    cl         channels last

Fused SGD, foreach RMSprop, gradients set to None, denormals flushed; compile takes the loss and its gradient as one graph.
bench/run sets the two variables that keep glibc's malloc from giving pages back every step.  bench/gpu sets PEER_DEVICE=cuda, and
PEER_DTYPE: f32 (exact), tf32, or bf16 (autocast); compile then takes CUDA graphs too (max-autotune).
"""
import os
import sys

import sequence_nets
import torch
from common import KERNEL, Deep, Peer, serve
from torch import nn

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/peers"))


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


def deep_network(net, flat):
    """The network of tests/peers, whose parameters and running statistics have the order of Tenon's files."""
    import torch_nets
    model = getattr(torch_nets, net.net)(net.word)
    at = 0
    for name, tensor in model.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            tensor.copy_(torch.from_numpy(flat[at:at + tensor.numel()].reshape(tensor.shape)))
            at += tensor.numel()
    assert at == len(flat), "weights.npy is not of this network"
    return model.train()


def optimizer(net, model):
    if isinstance(net, Deep):
        if net.adam:
            return torch.optim.Adam(model.parameters(), lr=net.lr, eps=1e-8, fused=True)
        return torch.optim.SGD(model.parameters(), lr=net.lr, fused=True)
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": net.decay},
              {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0}]
    if net.rmsprop:
        return torch.optim.RMSprop(groups, lr=net.lr, alpha=net.rho, eps=net.eps, foreach=True)
    return torch.optim.SGD(groups, lr=net.lr, momentum=net.momentum, fused=True)


DEVICE, DTYPE = os.environ.get("PEER_DEVICE", "cpu"), os.environ.get("PEER_DTYPE", "f32")


class Torch(Peer):
    versions = {"torch": torch.__version__}

    def __init__(self, job):
        super().__init__(job)
        torch.set_num_threads(job.threads)
        torch.set_flush_denormal(True)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = DTYPE == "tf32"
        if job.sequence:
            self.model = sequence_nets.make(job.net, job.dropout, job.flat)
        elif job.deep:
            self.model = deep_network(job.net, job.flat)
        else:
            self.model = network(job.net, job.dropout)
            with torch.no_grad():
                for p, w in zip(self.model.parameters(), job.weights):
                    p.copy_(torch.from_numpy(w))
        self.x = [torch.from_numpy(x) for x in job.x]
        self.y = [torch.from_numpy(y).long() for y in job.y]
        words = job.mode.split("_")
        if "cl" in words:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = [x.contiguous(memory_format=torch.channels_last) for x in self.x]
        self.model, self.x, self.y = self.model.to(DEVICE), [x.to(DEVICE) for x in self.x], [y.to(DEVICE) for y in self.y]
        self.optimizer = (sequence_nets.optimizer if job.sequence else optimizer)(job.net, self.model)
        self.clip = job.net.clip if job.sequence else 0
        if "compile" in words:
            mode = "max-autotune-no-cudagraphs" if "graph" in words else "max-autotune"
            self.loss = torch.compile(self.loss, mode=mode if DEVICE == "cuda" else None)
        self.graph = None
        if "graph" in words:
            self.record()

    def loss(self, x, y):
        measure = self.model.loss if self.job.sequence else nn.functional.cross_entropy
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DTYPE == "bf16"):
            return measure(self.model(x), y)

    def record(self):
        """Records the step in a CUDA graph.  Recording requires three steps of warm-up; after these, weights, statistics and the optimizer's
        states get their old values."""
        for group in self.optimizer.param_groups:
            if "capturable" in group:
                group["capturable"] = True
        self.batch = self.x[0].clone(), self.y[0].clone()
        kept = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self.whole_step(*self.batch)
        torch.cuda.synchronize()
        self.model.load_state_dict(kept)
        for state in self.optimizer.state.values():
            for tensor in state.values():
                if torch.is_tensor(tensor):
                    tensor.zero_()
        self.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.recorded = self.whole_step(*self.batch)
        self.graph = graph

    def step(self, i):
        if not self.graph:
            return self.whole_step(self.x[i], self.y[i])
        self.batch[0].copy_(self.x[i])
        self.batch[1].copy_(self.y[i])
        self.graph.replay()
        return self.recorded

    def whole_step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(x, y)
        loss.backward()
        if self.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip, foreach=True)
        self.optimizer.step()
        return loss.detach()

    def gradient(self):
        return torch.cat([p.grad.flatten().double() for p in self.model.parameters()]).norm().item()


serve(Torch)
