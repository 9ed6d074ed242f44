"""torch_sequences.py -- the shipped networks over time and text in PyTorch, written after the model files, without dropout.

As in torch_nets.py, parameters come in the order of the model file's.  Where PyTorch's layer has them in another shape (its LSTM and
GRU add two biases), they are registered here as in the file, and handed to PyTorch's layer in its own names.
"""
import os
import sys

import torch
from torch import nn
from torch.nn.functional import one_hot

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/peers"))
from sequence_nets import Block  # noqa: E402 -- the transformer's block that speed is measured against


class Recurrent(nn.Module):
    """torch.nn.LSTM or GRU with the file's parameters: one bias (the second is zero, but for GRU's candidate); all states, or the last."""

    def __init__(self, kind, features, width, every=False):
        super().__init__()
        gates = 4 if kind is nn.LSTM else 3
        self.layer, self.every = [kind(features, width, batch_first=True)], every          # in a list: its parameters are not ours
        self.weight = nn.Parameter(torch.zeros(gates * width, features))
        self.bias = nn.Parameter(torch.zeros(gates * width))
        self.recurrent = nn.Parameter(torch.zeros(gates * width, width))
        if kind is nn.GRU:
            self.candidate_bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        second = torch.zeros_like(self.bias)
        if hasattr(self, "candidate_bias"):
            second = torch.cat([second[:-len(self.candidate_bias)], self.candidate_bias])
        own = {"weight_ih_l0": self.weight, "weight_hh_l0": self.recurrent, "bias_ih_l0": self.bias, "bias_hh_l0": second}
        states, _ = torch.func.functional_call(self.layer[0].to(x.dtype), own, (x,))
        return states if self.every else states[:, -1]


class GruBefore(nn.Module):
    """The GRU of Cho et al. 2014 and of Keras until 2.1, from its formula: the reset gate works before the recurrent product."""

    def __init__(self, features, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(3 * width, features)), nn.Parameter(torch.zeros(3 * width))
        self.recurrent, self.candidate = nn.Parameter(torch.zeros(2 * width, width)), nn.Parameter(torch.zeros(width, width))

    def forward(self, x):
        h = torch.zeros_like(x[:, 0, :1]).expand(-1, self.candidate.shape[0])
        for step in (x @ self.weight.T + self.bias).unbind(1):
            xr, xz, xn = step.chunk(3, 1)
            hr, hz = (h @ self.recurrent.T).chunk(2, 1)
            r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
            h = z * h + (1 - z) * torch.tanh(xn + (r * h) @ self.candidate.T)
        return h


class OneHot(nn.Module):
    """Tokens as vectors, in the numbers that `like` computes with."""

    def __init__(self, vocab, like):
        super().__init__()
        self.vocab, self.like = vocab, [like]

    def forward(self, x):
        return one_hot(x, self.vocab).to(next(self.like[0].parameters()).dtype)


def lstm_synthetic(features, width):
    return nn.Sequential(Recurrent(nn.LSTM, features, width), nn.Linear(width, features))


def lstm_text(vocab, width):
    layer = Recurrent(nn.LSTM, vocab, width)
    return nn.Sequential(OneHot(vocab, layer), layer, nn.Linear(width, vocab))


def char_lstm(vocab, width):
    layer = Recurrent(nn.LSTM, vocab, width, every=True)
    return nn.Sequential(OneHot(vocab, layer), layer, Recurrent(nn.LSTM, width, width, every=True), nn.Linear(width, vocab))


def imdb(vocab, width, layer):
    return nn.Sequential(nn.Embedding(vocab, width), layer, nn.Linear(width, 1))


# ---- the transformer

class Gpt(nn.Module):
    def __init__(self, vocab, time, layers, heads, width):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.position = nn.Parameter(torch.zeros(time, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        h = self.tokens(x) + self.position
        for block in self.blocks:
            h = block(h)
        return self.norm(h) @ self.tokens.weight.T

    def state_dict(self, **words):
        """The table of positions stands behind that of tokens."""
        state = super().state_dict(**words)
        return {k: state[k] for k in sorted(state, key=lambda k: ("tokens" not in k, k != "position"))}


# ---- convolutions over words

class TextCnn(nn.Module):
    def __init__(self, vocab, width, filters):
        super().__init__()
        self.words = nn.Embedding(vocab, width, padding_idx=0)
        self.windows = nn.ModuleList(nn.Conv2d(width, filters, (size, 1)) for size in (3, 4, 5))
        self.out = nn.Linear(3 * filters, 1)

    def forward(self, x):
        words = self.words(x) * (x != 0)[..., None]               # padding is 0, whatever its row in the file
        image = words.transpose(1, 2)[..., None]
        return self.out(torch.cat([torch.relu(w(image)).amax((2, 3)) for w in self.windows], 1))
