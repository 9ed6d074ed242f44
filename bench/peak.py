"""peak.py -- peak memory of a training step of ResNet-50 at 224, in PyTorch and in Tenon.

    python3 bench/peak.py TENON PLACE [BATCH]      TENON: the compiler; PLACE: a directory for the program; BATCH: default 32

Each process makes two training steps on synthetic images.  It prints a line for each, in MB of 2^20 bytes: the memory before the
first step (interpreter, libraries, network, images), the peak (ru_maxrss), and Tenon's share of PyTorch's least peak.
Needs about 5 GB with a batch of 32.  `peak.py --torch LAYOUT BATCH` is one process with PyTorch.
"""
import os
import resource
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def held():
    """Returns the peak memory of the process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def torch_steps(layout, batch):
    import torch
    sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))
    from torch_nets import resnet50
    torch.manual_seed(1)
    form = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    net = resnet50(1000).to(memory_format=form)
    x = torch.randn(batch, 3, 224, 224).to(memory_format=form)
    y = torch.randint(0, 1000, (batch,))
    update = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    before = held()
    for _ in range(2):
        update.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net(x), y).backward()
        update.step()
    print(before, held())


def torch_peak(layout, batch):
    done = subprocess.run([sys.executable, __file__, "--torch", layout, str(batch)], check=True, capture_output=True, text=True)
    return [float(v) for v in done.stdout.split()]


def our_peak(tenon, place, batch):
    """Returns the peak memory of `bench --steps 2`."""
    program = os.path.join(place, "resnet50")
    subprocess.run([tenon, "build", os.path.join(ROOT, "models", "resnet50.tn"), "--batch", str(batch), "-o", program], check=True)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(program, [program, "bench", "--steps", "2"])
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"{program} bench: status {status}")
    return used.ru_maxrss / 1024


def main(tenon, place, batch):
    ours = our_peak(tenon, place, batch)
    least = None
    for layout in "contiguous", "channels_last":
        before, peak = torch_peak(layout, batch)
        print(f"PyTorch, {layout}, batch {batch}: {before:.0f} MB before the first step, {peak:.0f} MB at most")
        least = peak if least is None else min(least, peak)
    print(f"Tenon, batch {batch}: {ours:.0f} MB at most, {ours / least:.0%} of the least of them")


if __name__ == "__main__":
    if len(sys.argv) < 3 or "--help" in sys.argv:
        sys.exit(__doc__)
    if sys.argv[1] == "--torch":
        torch_steps(sys.argv[2], int(sys.argv[3]))
    else:
        try:
            import torch  # noqa: F401
        except ImportError:
            sys.exit(f"{sys.executable} has no torch: nothing to compare with")
        main(*sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 32)
