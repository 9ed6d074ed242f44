"""sequence_nets.py -- the sequence models in PyTorch, with its fastest building blocks: fused LSTM layers, scaled_dot_product_attention.

make(name, dropout, words) -> (module, parameters in the order of the model file, loss(output, y)).  PyTorch's second LSTM bias stays zero.
"""
import torch
from torch import nn
from torch.nn import functional as F


def lstm(inputs, width):
    layer = nn.LSTM(inputs, width, batch_first=True)
    nn.init.zeros_(layer.bias_hh_l0)
    layer.bias_hh_l0.requires_grad_(False)
    return layer


def lstm_parameters(layer):
    return [layer.weight_ih_l0, layer.bias_ih_l0, layer.weight_hh_l0]


class LstmSynthetic(nn.Module):
    def __init__(self, _dropout):
        super().__init__()
        self.lstm, self.dense = lstm(60, 128), nn.Linear(128, 60)

    def forward(self, x):
        return self.dense(self.lstm(x)[0][:, -1])

    def ordered(self):
        return [*lstm_parameters(self.lstm), self.dense.weight, self.dense.bias]

    loss = staticmethod(F.cross_entropy)


class LstmImdb(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.embedding, self.lstm, self.dense, self.rate = nn.Embedding(20000, 128), lstm(128, 128), nn.Linear(128, 1), dropout

    def forward(self, x):
        h = F.dropout(self.embedding(x), self.rate)
        return self.dense(F.dropout(self.lstm(h)[0][:, -1], self.rate))

    def ordered(self):
        return [self.embedding.weight, *lstm_parameters(self.lstm), self.dense.weight, self.dense.bias]

    @staticmethod
    def loss(output, y):
        return F.binary_cross_entropy_with_logits(output[:, 0], y.to(output.dtype))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.wide, self.narrow = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (p.view(n, t, self.heads, -1).transpose(1, 2) for p in self.qkv(self.norm1(x)).split(c, 2))
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(h.transpose(1, 2).reshape(n, t, c))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))

    def ordered(self):
        return [p for m in (self.norm1, self.qkv, self.out, self.norm2, self.wide, self.narrow) for p in (m.weight, m.bias)]


class GptChar(nn.Module):
    def __init__(self, g):
        super().__init__()
        self.tokens, self.position = nn.Embedding(g.vocab, g.width), nn.Parameter(torch.zeros(g.time, g.width))
        self.blocks = nn.ModuleList(Block(g.width, g.heads) for _ in range(g.layers))
        self.norm = nn.LayerNorm(g.width)

    def forward(self, x):
        h = self.tokens(x) + self.position
        for block in self.blocks:
            h = block(h)
        return self.norm(h) @ self.tokens.weight.t()

    def ordered(self):
        blocks = [p for b in self.blocks for p in b.ordered()]
        return [self.tokens.weight, self.position, *blocks, self.norm.weight, self.norm.bias]

    @staticmethod
    def loss(output, y):
        return F.cross_entropy(output.flatten(0, 1), y.flatten())


LSTMS = {"lstm_synthetic": LstmSynthetic, "lstm_imdb": LstmImdb}


def make(net, dropout, flat):
    """-> the module with the weights of `flat`, which holds them one after another."""
    model = GptChar(net.gpt) if net.gpt else LSTMS[net.net](dropout)
    at = 0
    with torch.no_grad():
        for p in model.ordered():
            p.copy_(torch.from_numpy(flat[at:at + p.numel()].reshape(p.shape)))
            at += p.numel()
    assert at == len(flat), "weights.npy is not of this network"
    return model.train()


def optimizer(net, model):
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in trained if p.ndim > 1], "weight_decay": net.decay},
              {"params": [p for p in trained if p.ndim == 1], "weight_decay": 0.0}]
    if net.rmsprop:
        return torch.optim.RMSprop(groups, lr=net.lr, alpha=net.rho, eps=net.eps, foreach=True)
    kind = torch.optim.AdamW if net.decay else torch.optim.Adam
    return kind(groups, lr=net.lr, betas=(0.9, net.beta2), eps=1e-8, fused=True)
