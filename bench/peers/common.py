"""common.py -- what every peer in Python shares: the networks, the data, and the protocol with bench/run.

    python PEER_step.py MODEL MODE BATCH THREADS DROPOUT DIR

MODE is the peer's own word (eager, compile, xla ...), DROPOUT 0 or 1, DIR holds what bench/run wrote there:
    train_x.npy  (N, C, H, W) or (N, F) bytes    train_y.npy  (N) int32    weights.npy  float32, all parameters in file order
A peer says "ready {versions}" and then answers lines:
    check N     "losses L1 ... LN": from the given weights, N steps on batches 0, 1, ...; each the batch's mean before its update
    gradient 1  "norm X": of the first step's gradients, all parameters together; after check 1, of deep networks
    time S      "time STEPS SECONDS": about S seconds of steps on the batches in turn, after a warm-up
The formulas of the update are Tenon's (and PyTorch's): decay is added to the gradient, of weights only, not of biases.
"""
import json
import os
import sys
import time
from dataclasses import dataclass

import deep_nets
import numpy as np

KERNEL = 5                                            # size of all kernels; each convolution is followed by its activation and 2 x 2 pooling


@dataclass(frozen=True)
class Net:
    image: tuple                                      # (C, H, W) or (F,)
    filters: tuple                                    # of the convolutions
    dense: tuple                                      # outputs of the dense layers; no activation after the last
    same: bool = False                                # padding of the convolutions is 2; else there is none
    activation: str = "relu"
    dropout: float = 0.0                              # after each activation
    rmsprop: bool = False                             # else SGD
    lr: float = 0.05
    momentum: float = 0.0
    decay: float = 0.0
    rho: float = 0.9
    eps: float = 1e-7

    def flat(self):
        """(C, H, W) of the input of the first dense layer."""
        if not self.filters:
            return self.image
        c, h, w = self.image
        for k in self.filters:
            lost = 0 if self.same else KERNEL - 1
            c, h, w = k, (h - lost) // 2, (w - lost) // 2
        return c, h, w

    def shapes(self):
        """The shapes of the parameters in file order: (O, I, R, S) or (O, I), then the bias."""
        shapes, inputs = [], self.image[0]
        for k in self.filters:
            shapes += [(k, inputs, KERNEL, KERNEL), (k,)]
            inputs = k
        inputs = int(np.prod(self.flat()))
        for k in self.dense:
            shapes += [(k, inputs), (k,)]
            inputs = k
        return shapes


SAMPLE = dict(momentum=0.9, decay=1e-4)
NETS = {
    "lenet": Net((1, 28, 28), (20, 50), (500, 10), activation="tanh", **SAMPLE),
    "lenet_relu": Net((1, 28, 28), (20, 50), (500, 10), same=True),
    "mlp": Net((784,), (), (128, 64, 10), **SAMPLE),
    "mlp_wide": Net((784,), (), (512, 512, 1000), dropout=0.2, rmsprop=True, lr=1e-4),
}


@dataclass(frozen=True)
class Deep:
    """A network of deep_nets.py and of tests/peers/torch_nets.py: its name there and the word that it takes."""
    net: str
    word: int
    adam: bool = False                                # else plain SGD
    lr: float = 0.01
    dropout: float = 0.0
    rmsprop: bool = False
    momentum: float = 0.0
    decay: float = 0.0


DEEP = {
    "resnet50_cifar10": Deep("resnet50", 10),
    "resnet56_cifar10": Deep("resnet_cifar", 56, adam=True, lr=1e-3),
    "resnet50": Deep("resnet50", 1000),
    "inception_v3": Deep("inception_v3", 299),
}


@dataclass(frozen=True)
class Gpt:
    """Settings of models/gpt_char.tn, with dropout = 0."""
    layers: int
    heads: int
    width: int
    time: int
    vocab: int = 65


@dataclass(frozen=True)
class Sequence:
    """A network of sequence_nets.py, sequence_jax.py and keras_step.py; tokens: its samples are numbers of words, not reals."""
    net: str
    tokens: bool = False
    dropout: float = 0.0
    rmsprop: bool = False                             # else Adam, with decay AdamW
    lr: float = 1e-3
    decay: float = 0.0
    rho: float = 0.9
    eps: float = 1e-7
    beta2: float = 0.999
    clip: float = 0.0                                 # limit for the gradient's norm
    gpt: Gpt | None = None


def lstm_shapes(inputs, width):
    return [(4 * width, inputs), (4 * width,), (4 * width, width)]


def transformer_shapes(width):
    norm, dense = [(width,), (width,)], lambda outputs, inputs: [(outputs, inputs), (outputs,)]
    return [*norm, *dense(3 * width, width), *dense(width, width), *norm, *dense(4 * width, width), *dense(width, 4 * width)]


def gpt_shapes(g):
    return [(g.vocab, g.width), (g.time, g.width), *g.layers * transformer_shapes(g.width), (g.width,), (g.width,)]


SMALL_GPT, WHOLE_GPT = Gpt(layers=4, heads=4, width=128, time=64), Gpt(layers=6, heads=6, width=384, time=256)
SEQUENCE_SHAPES = {                                   # shapes of the parameters in file order
    "lstm_synthetic": [*lstm_shapes(60, 128), (60, 128), (60,)],
    "lstm_imdb": [(20000, 128), *lstm_shapes(128, 128), (1, 128), (1,)],
    "gpt_char": gpt_shapes(SMALL_GPT),
    "gpt_char_whole": gpt_shapes(WHOLE_GPT),
}
SEQUENCES = {
    "lstm_synthetic": Sequence("lstm_synthetic", rmsprop=True, lr=0.01),
    "lstm_imdb": Sequence("lstm_imdb", tokens=True, dropout=0.5),
    "gpt_char": Sequence("gpt_char", tokens=True, decay=0.1, beta2=0.99, clip=1.0, gpt=SMALL_GPT),
    "gpt_char_whole": Sequence("gpt_char_whole", tokens=True, decay=0.1, beta2=0.99, clip=1.0, gpt=WHOLE_GPT),
}


class Job:
    """The command line and the files in DIR."""

    def __init__(self, argv):
        model, self.mode, batch, threads, dropout, place = argv
        self.net, self.batch, self.threads = (NETS | DEEP | SEQUENCES)[model], int(batch), int(threads)
        self.deep, self.sequence = isinstance(self.net, Deep), isinstance(self.net, Sequence)
        self.dropout = self.net.dropout if dropout == "1" else 0.0
        x = np.load(f"{place}/train_x.npy")
        x = x.astype(np.int64) if self.sequence and self.net.tokens else x.astype(np.float32) * np.float32(1 / 255)
        y = np.load(f"{place}/train_y.npy").astype(np.int32)
        self.batches = len(x) // self.batch
        image = x.shape[1:] if self.deep or self.sequence else self.net.image
        x = x[:self.batches * self.batch].reshape((self.batches, self.batch) + image)
        self.x, self.y = list(x), list(y[:self.batches * self.batch].reshape((self.batches, self.batch) + y.shape[1:]))
        self.flat, self.weights, self.kinds = np.load(f"{place}/weights.npy"), [], ()
        if self.deep:
            self.kinds, shapes = zip(*deep_nets.shapes(self.net.net, self.net.word))
        else:
            shapes = SEQUENCE_SHAPES[self.net.net] if self.sequence else self.net.shapes()
        self.cut(shapes)

    def cut(self, shapes):
        """Cuts self.flat into self.weights, in file order."""
        at = 0
        for shape in shapes:
            n = int(np.prod(shape))
            self.weights.append(self.flat[at:at + n].reshape(shape).copy())
            at += n
        assert at == len(self.flat), "weights.npy is not of this network"

    def channels_last(self):
        """Turns images and weights to NHWC: (N, H, W, C), (R, S, I, O), (I, O); the first dense layer reads (H, W, C)."""
        if self.deep or self.net.filters:
            self.x = [np.ascontiguousarray(x.transpose(0, 2, 3, 1)) for x in self.x]
        if not self.deep and self.net.filters:
            first = 2 * len(self.net.filters)
            w = self.weights[first].reshape((-1,) + self.net.flat())
            self.weights[first] = w.transpose(0, 2, 3, 1).reshape(len(w), -1)
        turned = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}
        self.weights = [np.ascontiguousarray(w.transpose(turned[w.ndim])) for w in self.weights]


class Peer:
    """Each script implements these methods; they can use `self.job`."""

    versions = {}

    def __init__(self, job):
        self.job = job

    def step(self, i):
        """Makes one training step on batch i; returns its loss, which may still be being computed."""
        raise NotImplementedError

    def gradient(self):
        """Returns the norm of the gradients of the previous step."""
        raise NotImplementedError

    def wait(self, loss):
        """Waits until everything up to this step is done; returns the loss as a float."""
        return float(loss)

    def run(self, steps):
        """Returns the seconds of so many steps, run as a user would run them: only the end waits."""
        began = time.perf_counter()
        for i in range(steps):
            loss = self.step(i % self.job.batches)
        self.wait(loss)
        return time.perf_counter() - began

    def time(self, seconds):
        """Doubles the steps of a warm-up until it takes an eighth of the time, then measures."""
        steps = 1
        while (spent := self.run(steps)) < seconds / 8:
            steps *= 2
        steps = max(1, round(steps * seconds / spent))
        return steps, self.run(steps)


def serve(make):
    """make(job) -> Peer.  Writes answers to the original standard output; what libraries print there goes to the error stream."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = make(Job(sys.argv[1:]))
    print("ready", json.dumps(peer.versions), file=answer, flush=True)
    for line in sys.stdin:
        word, number = line.split()
        if word == "check":
            losses = [peer.wait(peer.step(i)) for i in range(int(number))]
            print("losses", *(f"{x:.9g}" for x in losses), file=answer, flush=True)
        elif word == "gradient":
            print("norm", f"{peer.gradient():.9g}", file=answer, flush=True)
        else:
            print("time", *peer.time(float(number)), file=answer, flush=True)
