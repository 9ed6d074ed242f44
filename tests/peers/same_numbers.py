"""same_numbers.py -- Tenon and PyTorch train the same weights on the same batches and get the same numbers.

    python same_numbers.py TENON MODELS DIR [CASE...]      one line a case; the exit code says whether all agree

Of each case: ten steps of the recipe's optimizer in f64 and f32, dropout, augmentation and normalization taken out.
    f64   losses agree to 1e-9, the first step's gradient of every parameter to 1e-8 (relative L2)
    f32   Tenon is at most twice as far from the f64 run as PyTorch is, in the mean over the losses and over all gradients;
          distances below 1e-6, eight times the rounding of one number, are not compared
          lenet and mlp: losses within 1e-4, gradients within 1e-3 as well
"""
import json
import os
import re
import struct
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import torch
import torch_nets as nets

STEPS, FLOOR = 10, 1e-6
NAMES = {"F64": np.float64, "F32": np.float32}


@dataclass(frozen=True)
class Case:
    name: str
    model: str
    net: object                                       # -> module
    image: tuple
    classes: int
    batch: int
    lr: float
    optimizer: str = "sgd"
    momentum: float = 0.0
    decay: float = 0.0
    settings: dict = field(default_factory=dict)
    close: bool = False                               # no deep chain of decisions: f32 has bounds of its own


# An untrained ResNet-50 on a few small images is chaos at usual rates: PyTorch itself, started from weights that differ by one part
# in 1e14, is 9 % away after ten steps at 1e-4, and 6e-10 at 1e-5.  At 1e-6 updates still move losses in the third digit.
RATE = 1e-6


def deep(name, model, net, side, classes, batch, **settings):
    return Case(name, model, net, (3, side, side), classes, batch, RATE, momentum=0.9,
                settings={f"model.{k}": v for k, v in settings.items()})


CASES = [
    Case("lenet", "lenet", lambda: nets.Lenet(28), (1, 28, 28), 10, 64, 0.05, momentum=0.9, decay=1e-4, close=True),
    Case("mlp", "mlp", lambda: nets.mlp(28), (1, 28, 28), 10, 64, 0.05, momentum=0.9, decay=1e-4, close=True),
    Case("resnet20", "resnet56_cifar10", lambda: nets.resnet_cifar(20), (3, 32, 32), 10, 16, 1e-3, "adam",
         settings={"model.depth": 20}),
    Case("resnet56", "resnet56_cifar10", lambda: nets.resnet_cifar(56), (3, 32, 32), 10, 16, 1e-3, "adam"),
    deep("resnet50_32", "resnet50", lambda: nets.resnet50(1000), 32, 1000, 8, size=32),
    deep("resnet50_64", "resnet50", lambda: nets.resnet50(1000), 64, 1000, 8, size=64),
    deep("inception_v3", "inception_v3", lambda: nets.inception_v3(299), 299, 1000, 2),
    deep("mobilenet_v2", "mobilenet_v2", lambda: nets.mobilenet_v2(64), 64, 1000, 8, size=64),
    deep("densenet_22", "densenet_bc_100_12", lambda: nets.densenet(22), 32, 10, 8, depth=22),
]


# ---- files

def read_tensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    header.pop("__metadata__", None)
    return {k: np.frombuffer(data[v["data_offsets"][0]:v["data_offsets"][1]], NAMES[v["dtype"]]).reshape(v["shape"])
            for k, v in header.items()}


def write_tensors(path, tensors):
    header, at = {}, 0
    for k, v in tensors.items():
        header[k] = {"dtype": "F64" if v.dtype == np.float64 else "F32", "shape": v.shape, "data_offsets": [at, at + v.nbytes]}
        at += v.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for v in tensors.values():
            f.write(v.tobytes())


def write_data(case, place):
    """Ten batches of images that a network can tell apart: noise over a pattern of the class."""
    r = np.random.default_rng(1)
    n = STEPS * case.batch
    y = r.integers(0, case.classes, n).astype(np.int32)
    patterns = r.standard_normal((min(case.classes, 10),) + case.image)
    x = (r.standard_normal((n,) + case.image) + patterns[y % 10]).astype(np.float32)
    os.makedirs(place, exist_ok=True)
    for split, k in ("train", n), ("test", case.batch):
        np.save(f"{place}/{split}_x.npy", x[:k])
        np.save(f"{place}/{split}_y.npy", y[:k])
    return x, y


# ---- Tenon

def models_as_compared(models, to):
    """The model files without what draws random numbers or changes the samples."""
    os.makedirs(to, exist_ok=True)
    for name in os.listdir(models):
        if name.endswith(".tn"):
            with open(f"{models}/{name}") as f:
                text = f.read()
            text = re.sub(r" \|> dropout\([0-9.]+\)", "", text)
            text = re.sub(r"(?m)^    (normalize|augment|resize|schedule) .*\n", "", text)
            with open(f"{to}/{name}", "w") as f:
                f.write(text)


def call(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}:\n{done.stdout[-500:]}{done.stderr[-1500:]}")


def build(tenon, case, place, dtype):
    rule = f"sgd(lr={case.lr}, momentum={case.momentum}, weight_decay={case.decay})" if case.optimizer == "sgd" else f"adam(lr={case.lr})"
    words = [f"--set={k}={v}" for k, v in {**case.settings, "optimizer": rule, "data": f"{place}/data"}.items()]
    call(tenon, "build", f"{place}/../models/{case.model}.tn", "-o", f"{place}/{dtype}", "--dtype", dtype, "--batch", str(case.batch), *words)
    return f"{place}/{dtype}"


def run_tenon(program, place, weights):
    """-> losses of ten steps, gradients of the first."""
    call(program, "grads", "--weights", weights, "--output", f"{place}/grads")
    if os.path.exists(f"{place}/log"):
        os.remove(f"{place}/log")
    call(program, "train", "--weights", weights, "--shuffle", "off", "--epochs", "1", "--log", f"{place}/log", "--log-steps", "1")
    with open(f"{place}/log") as f:
        records = [json.loads(line) for line in f]
    losses = [r["train_loss"] for r in records if r["event"] == "step"]
    assert len(losses) == STEPS, f"{len(losses)} steps"
    return np.array(losses), read_tensors(f"{place}/grads")


# ---- PyTorch

def state_of(module):
    """Parameters and running statistics in the order of the file."""
    return [(k, t) for k, t in module.state_dict(keep_vars=True).items() if not k.endswith("num_batches_tracked")]


def run_torch(case, weights, x, y, dtype):
    """-> losses of ten steps, gradients of the first, under Tenon's names."""
    module = case.net().to(dtype).train()
    state = state_of(module)
    assert len(state) == len(weights), f"{len(state)} tensors here, {len(weights)} there"
    trained = {}
    with torch.no_grad():
        for (here, t), (name, w) in zip(state, weights.items()):
            assert tuple(t.shape) == w.shape, f"{here} {tuple(t.shape)} is {name} {w.shape}"
            t.copy_(torch.from_numpy(w.copy()))
            if isinstance(t, torch.nn.Parameter):
                trained[name] = t
    groups = [{"params": [p for p in trained.values() if p.ndim > 1], "weight_decay": case.decay},
              {"params": [p for p in trained.values() if p.ndim == 1], "weight_decay": 0.0}]
    rule = torch.optim.SGD(groups, lr=case.lr, momentum=case.momentum) if case.optimizer == "sgd" else torch.optim.Adam(groups, lr=case.lr)
    losses, gradients = [], {}
    for i in range(STEPS):
        part = slice(i * case.batch, (i + 1) * case.batch)
        rule.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(torch.from_numpy(x[part]).to(dtype)), torch.from_numpy(y[part]).long())
        loss.backward()
        if i == 0:
            gradients = {k: p.grad.numpy().astype(np.float64) for k, p in trained.items()}
        rule.step()
        losses.append(loss.item())
    return np.array(losses), gradients


# ---- the comparison

def apart(a, b):
    """Relative L2 distance of two tensors."""
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    size = np.linalg.norm(b)
    return np.linalg.norm(a - b) / (size if size > 0 else 1)


def worst(a, b, largest):
    """Distance and name of the parameter whose gradients differ most.  A gradient that vanishes in exact arithmetic (a bias or
    weight before a batch norm) is rounding only: below 1e-12 of the largest it counts as zero."""
    return max((0.0 if np.linalg.norm(b[k]) < 1e-12 * largest else apart(a[k], b[k]), k) for k in b)


def together(a, b):
    return apart(np.concatenate([a[k].ravel() for k in b]), np.concatenate([b[k].ravel() for k in b]))


def compare(tenon, case, place):
    x, y = write_data(case, f"{place}/data")
    program = {d: build(tenon, case, place, d) for d in ("f64", "f32")}
    call(program["f32"], "train", "--epochs", "0", "--save", f"{place}/f32.weights")
    weights = read_tensors(f"{place}/f32.weights")
    write_tensors(f"{place}/f64.weights", {k: v.astype(np.float64) for k, v in weights.items()})

    losses, gradients = run_tenon(program["f64"], place, f"{place}/f64.weights")
    exact, exact_gradients = run_torch(case, weights, x, y, torch.float64)
    loss64 = np.max(np.abs(losses - exact) / np.abs(exact))
    gradient64, name = worst(gradients, exact_gradients, max(np.linalg.norm(g) for g in exact_gradients.values()))

    losses, gradients = run_tenon(program["f32"], place, f"{place}/f32.weights")
    theirs, their_gradients = run_torch(case, weights, x, y, torch.float32)
    loss32, their_loss = (np.mean(np.abs(v - exact) / np.abs(exact)) for v in (losses, theirs))
    gradient32, their_gradient = together(gradients, exact_gradients), together(their_gradients, exact_gradients)

    wrong = []
    if not loss64 <= 1e-9:
        wrong.append("losses in f64")
    if not gradient64 <= 1e-8:
        wrong.append(f"gradient of {name} in f64")
    if not loss32 <= max(2 * their_loss, FLOOR) or case.close and not loss32 <= 1e-4:
        wrong.append("losses in f32")
    if not gradient32 <= max(2 * their_gradient, FLOOR) or case.close and not gradient32 <= 1e-3:
        wrong.append("gradients in f32")
    print(f"{case.name:13} f64: losses {loss64:.1e}, gradients {gradient64:.1e} ({name})   f32: losses {loss32:.1e}, PyTorch "
          f"{their_loss:.1e}; gradients {gradient32:.1e}, PyTorch {their_gradient:.1e}   loss {exact[0]:.4f} to {exact[-1]:.4f}   "
          + ("same" if not wrong else "DIFFERENT: " + ", ".join(wrong)), flush=True)
    return not wrong


def main():
    tenon, models, place, *names = sys.argv[1:]
    models_as_compared(models, f"{place}/models")
    right = True
    for case in CASES:
        if not names or case.name in names:
            os.makedirs(f"{place}/{case.name}", exist_ok=True)
            try:
                right &= compare(tenon, case, f"{place}/{case.name}")
            except (AssertionError, RuntimeError) as e:
                print(f"{case.name:13} FAILED: {e}", flush=True)
                right = False
    sys.exit(not right)


main()
