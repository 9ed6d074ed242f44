"""normal_numbers.py -- runs a script of `tenon emit --to pytorch` in which torch.randn_like gives the numbers of Tenon's normal_like.

    python normal_numbers.py CALLS SCRIPT ARGUMENTS...       CALLS: of normal_like in a forward pass

The run has samples in stored order and seed 1.  A test follows each epoch, and begins with sample 0, as the next epoch does.

The numbers are those of runtime/cpu/normal.h: Philox 4x32-10 with the counter (element / 4, purpose, sample, epoch).
"""
import runpy
import sys

import numpy as np
import torch

CALLS = int(sys.argv[1])
PURPOSE = 1 << 20
WORD = np.uint64(0xFFFFFFFF)
now = {"training": True, "epoch": 0, "calls": 0, "first": 0}      # first: the first sample of the batch


def philox(counter, key):
    """Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3": four words for each counter."""
    c, k = [np.asarray(w, np.uint64) for w in counter], [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [b >> np.uint64(32) ^ c[1] ^ np.uint64(k[0]), b & WORD, a >> np.uint64(32) ^ c[3] ^ np.uint64(k[1]), a & WORD]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def randn_like(x):
    training = torch.is_grad_enabled()
    n, count = x.shape[0], x[0].numel()
    if training != now["training"]:
        now.update(training=training, epoch=now["epoch"] + training, first=0)
    purpose, sample = PURPOSE + now["calls"] % CALLS, now["first"] + np.arange(n)
    epoch = now["epoch"] if training else 0xFFFFFFFF
    now["calls"] += 1
    if now["calls"] % CALLS == 0:
        now["first"] += n
    block = np.arange((count + 3) // 4)
    shape = (n, len(block))
    word = philox([np.broadcast_to(block, shape), np.full(shape, purpose), np.broadcast_to(sample[:, None], shape), np.full(shape, epoch)],
                  1 if training else 0)
    y = np.empty((*shape, 4))
    for i in range(2):
        size, angle = np.sqrt(-2 * np.log((word[2 * i] + 0.5) * 2.0 ** -32)), word[2 * i + 1] * (2 * np.pi * 2.0 ** -32)
        y[..., 2 * i], y[..., 2 * i + 1] = size * np.cos(angle), size * np.sin(angle)
    return torch.tensor(y.reshape(n, -1)[:, :count].reshape(x.shape), dtype=x.dtype)


torch.randn_like = randn_like
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
