"""torch_train.py -- resnet56_cifar10's recipe in PyTorch, for the curve beside ours: records as our --log writes them.

    python bench/peers/torch_train.py DIR EPOCHS LOG.jsonl [DEPTH]

DIR holds CIFAR-10's binary batches (plain or .xz).  Mean image taken off, shift by up to 3 pixels with the edge repeated, every other
image flipped, Adam(1e-3), batch 32, He's normal initial weights; channels last, which is PyTorch's fastest here.  The weights and the draws
are its own: the curves are to be alike, not equal (tests/peers compares numbers).
"""
import json
import lzma
import os
import sys
import time

import numpy as np
import torch
from torch import nn

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/peers"))
import torch_nets  # noqa: E402

BATCH, SHIFT, SEED = 32, 3, 1


def read(place, names):
    """-> images (N, 3, 32, 32) as floats from 0 to 1, labels"""
    rows = []
    for name in names:
        path = f"{place}/{name}"
        with open(path, "rb") if os.path.exists(path) else lzma.open(path + ".xz") as f:
            rows.append(np.frombuffer(f.read(), np.uint8).reshape(-1, 3073))
    rows = np.concatenate(rows)
    return torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255), torch.from_numpy(rows[:, 0].astype(np.int64))


def augmented(x):
    """Each image moved by its own shift, and flipped or not."""
    n = len(x)
    rows, columns = [torch.arange(32) + torch.randint(-SHIFT, SHIFT + 1, (n, 1)) for _ in range(2)]
    columns = torch.where(torch.rand(n, 1) < 0.5, columns, columns.flip(1))
    rows, columns = rows.clamp(0, 31), columns.clamp(0, 31)
    return x[torch.arange(n)[:, None, None, None], torch.arange(3)[:, None, None], rows[:, None, :, None], columns[:, None, None, :]]


def initial(model):
    for m in model.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
            if m.bias is not None:
                nn.init.zeros_(m.bias)


def tested(model, x, y):
    """-> mean loss, accuracy"""
    model.eval()
    with torch.no_grad():
        out = torch.cat([model(b.contiguous(memory_format=torch.channels_last)) for b in x.split(200)])
    return nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def trained(model, optimizer, x, y):
    """One epoch; the mean loss and accuracy of its batches, before their updates.  The last batch is filled up from the front, as ours is."""
    model.train()
    loss_sum = hits = steps = 0
    order = torch.randperm(len(x))
    for index in torch.cat([order, order[:-len(x) % BATCH]]).split(BATCH):
        scores = model(augmented(x[index]).contiguous(memory_format=torch.channels_last))
        loss = nn.functional.cross_entropy(scores, y[index])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss_sum, hits, steps = loss_sum + loss.item(), hits + (scores.argmax(1) == y[index]).sum().item(), steps + 1
    return loss_sum / steps, hits / (steps * BATCH)


def main():
    place, epochs, log = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.manual_seed(SEED)
    torch.set_flush_denormal(True)
    x, y = read(place, [f"data_batch_{i}.bin" for i in range(1, 6)])
    test_x, test_y = read(place, ["test_batch.bin"])
    mean = x.mean(0)
    x, test_x = x - mean, test_x - mean
    model = torch_nets.resnet_cifar(int(sys.argv[4]) if len(sys.argv) > 4 else 56)
    initial(model)
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-8, fused=True)
    with open(log, "w") as f:
        for epoch in range(1, epochs + 1):
            began = time.perf_counter()
            loss, accuracy = trained(model, optimizer, x, y)
            seconds = time.perf_counter() - began
            test_loss, test_accuracy = tested(model, test_x, test_y)
            print(json.dumps({"event": "epoch", "epoch": epoch, "samples": len(x), "seconds": seconds, "samples_per_s": len(x) / seconds,
                              "train_loss": loss, "train_accuracy": accuracy, "test_loss": test_loss, "test_accuracy": test_accuracy}),
                  file=f, flush=True)
            print(f"epoch {epoch}: {seconds:.0f} s, loss {loss:.4f}, test accuracy {test_accuracy:.4f}", flush=True)


main()
