"""ddp.py -- training steps of PyTorch's DistributedDataParallel over gloo, one process a rank; for bench/links.sh.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=node1 MASTER_PORT=29500 GLOO_SOCKET_IFNAME=eth0 python ddp.py NET BATCH STEPS [BYTES...]

NET is lenet, mlp_wide or resnet20, BATCH a rank's share.  One thread a rank, synthetic samples in memory, f32, DDP's own buckets (25 MB,
the first 1 MB), gradients as views of them.  Rank 0 prints medians in ms: "step S alone A", where alone is the same step without
communication (no_sync), and "sum BYTES T" for an all_reduce of each size.  Like ours, resnet20's statistics are those of a rank.
"""
import os
import statistics
import sys
import time

import torch
from torch import distributed, nn

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/peers"))
import torch_nets  # noqa: E402


def mlp_wide():
    layers, inputs = [nn.Flatten()], 784
    for outputs in 512, 512:
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout(0.2)]
        inputs = outputs
    return nn.Sequential(*layers, nn.Linear(inputs, 1000))


NETS = {
    "lenet": (lambda: torch_nets.Lenet(0), (1, 28, 28), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4, fused=True)),
    "mlp_wide": (mlp_wide, (1, 28, 28), lambda p: torch.optim.RMSprop(p, lr=1e-4, alpha=0.9, eps=1e-7, foreach=True)),
    "resnet20": (lambda: torch_nets.resnet_cifar(20), (3, 32, 32), lambda p: torch.optim.Adam(p, lr=1e-3, eps=1e-8, fused=True)),
}


def times(do, n):
    """Returns the median seconds of a call of do(), after three calls that warm up; ranks begin together."""
    taken = []
    for i in range(n + 3):
        began = time.perf_counter()
        do()
        if i >= 3:
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main():
    name, batch, steps, *sizes = sys.argv[1:]
    make, image, optimizer = NETS[name]
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(make(), gradient_as_bucket_view=True)
    update = optimizer(model.parameters())
    x, y = torch.rand(int(batch), *image), torch.randint(10, (int(batch),))

    def step():
        update.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        update.step()

    def alone():
        with model.no_sync():
            step()

    whole, own = times(step, int(steps)), times(alone, int(steps))
    sums = []
    for size in sizes:
        vector = torch.ones(int(size) // 4)
        sums.append((size, times(lambda v=vector: distributed.all_reduce(v), 8)))
    if distributed.get_rank() == 0:
        print(f"step {1e3 * whole:.4g} alone {1e3 * own:.4g}")
        for size, seconds in sums:
            print(f"sum {size} {1e3 * seconds:.4g}")
    distributed.destroy_process_group()


main()
