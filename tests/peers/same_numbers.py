"""same_numbers.py -- Tenon and PyTorch train the same weights on the same batches and get the same numbers.

    python same_numbers.py TENON MODELS DIR [CASE...]      one line a case; the exit code says whether all agree

Of each case: ten steps of the recipe's optimizer in f64 and f32, dropout, augmentation and normalization taken out.
    f64   losses agree to 1e-9, the first step's gradient of every parameter to 1e-8 (relative L2)
    f32   Tenon is at most twice as far from the f64 run as PyTorch is, in the geometric mean over the losses and over all gradients;
          distances below 1e-6, eight times the rounding of one number, are not compared.  Deep networks are chaos: the distance
          grows a hundredfold in ten steps, so that an arithmetic mean is the last step's alone, one throw of the dice; and one start
          is few throws, so they start from three seeds' weights.  Their gradients jump where a decision of a ReLU flips, in one start
          and not in the next: of these the arithmetic mean
          lenet, mlp and the recurrent ones: losses within 1e-4, gradients within 1e-3 as well
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
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
import torch_nets as nets
import torch_sequences as seqs

STEPS, FLOOR = 10, 1e-6
NAMES = {"F64": np.float64, "F32": np.float32}


@dataclass(frozen=True)
class Case:
    name: str
    model: str
    net: object                                       # -> module
    image: tuple                                      # of a sample; (time,) where it is tokens
    classes: int
    batch: int
    lr: float
    optimizer: str = "sgd"
    momentum: float = 0.0
    decay: float = 0.0
    settings: dict = field(default_factory=dict)
    close: bool = False                               # there is no deep chain of decisions, so f32 has narrower bounds of its own
    vocab: int = 0                                    # samples are tokens below it; 0: numbers
    each: bool = False                                # a class for each position; one in eight of them is not scored
    truth: bool = False                               # one output, classes 0 and 1
    seeds: int = 1                                    # draws of the weights whose runs in f32 are compared


# An untrained ResNet-50 on a few small images is chaotic at usual rates: two runs of PyTorch, whose first weights differ by one part in
# 1e14, differ by 9 % after ten steps at the rate 1e-4, and by 6e-10 at 1e-5.  At 1e-6 updates still change the third digit of losses.
RATE = 1e-6


def words(name, model, net, time, vocab, classes, optimizer="adam", **more):
    lr = 0.01 if optimizer == "rmsprop" else 1e-3
    settings = {"model.time": time, **more.pop("settings", {})}
    return Case(name, model, net, (time,), classes, 16, lr, optimizer, settings=settings, vocab=vocab, **more)


def deep(name, model, net, side, classes, batch, **settings):
    return Case(name, model, net, (3, side, side), classes, batch, RATE, momentum=0.9,
                settings={f"model.{k}": v for k, v in settings.items()}, seeds=3)


CASES = [
    Case("lenet", "lenet", lambda: nets.Lenet(28), (1, 28, 28), 10, 64, 0.05, momentum=0.9, decay=1e-4, close=True),
    Case("mlp", "mlp", lambda: nets.mlp(28), (1, 28, 28), 10, 64, 0.05, momentum=0.9, decay=1e-4, close=True),
    Case("resnet20", "resnet56_cifar10", lambda: nets.resnet_cifar(20), (3, 32, 32), 10, 16, 1e-3, "adam",
         settings={"model.depth": 20}),
    Case("resnet56", "resnet56_cifar10", lambda: nets.resnet_cifar(56), (3, 32, 32), 10, 16, 1e-3, "adam"),
    Case("lstm_synthetic", "lstm_synthetic", lambda: seqs.lstm_synthetic(60, 128), (40, 60), 60, 16, 0.01, "rmsprop", close=True),
    words("lstm_text", "lstm_text", lambda: seqs.lstm_text(65, 128), 40, 65, 65, "rmsprop", close=True),
    words("lstm_imdb", "lstm_imdb", lambda: seqs.imdb(500, 128, seqs.Recurrent(nn.LSTM, 128, 128)), 80, 500, 2, close=True, truth=True),
    words("gru_imdb", "gru_imdb", lambda: seqs.imdb(500, 128, seqs.Recurrent(nn.GRU, 128, 128)), 80, 500, 2, close=True, truth=True),
    words("gru_before", "gru_before", lambda: seqs.imdb(500, 128, seqs.GruBefore(128, 128)), 80, 500, 2, close=True, truth=True),
    words("char_lstm", "char_lstm", lambda: seqs.char_lstm(65, 64), 32, 65, 65, close=True, each=True, settings={"model.width": 64}),
    words("gpt_char", "gpt_char", lambda: seqs.Gpt(65, 64, 4, 4, 128), 64, 65, 65, each=True,
          settings={"model.layers": 4, "model.heads": 4, "model.width": 128, "model.dropout": 0}),
    words("text_cnn", "text_cnn", lambda: seqs.TextCnn(500, 128, 20), 40, 500, 2, truth=True, settings={"model.filters": 20}),
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
    """Ten batches of samples that a network can tell apart: noise over a pattern of the class."""
    r = np.random.default_rng(1)
    n = STEPS * case.batch
    y = r.integers(0, case.classes, (n,) + (case.image if case.each else ())).astype(np.int32)
    if case.vocab:
        return save_data(case, place, *tokens(case, r, y))
    patterns = r.standard_normal((min(case.classes, 10),) + case.image)
    return save_data(case, place, (r.standard_normal((n,) + case.image) + patterns[y % 10]).astype(np.float32), y)


def tokens(case, r, y):
    """-> tokens half of which are the class's own, and classes.  With a class a position it is the next token, or -1; else a fifth of
    the samples begin with padding, token 0."""
    own = r.integers(1, case.vocab, (case.classes,) + case.image)
    x = np.where(r.random((len(y),) + case.image) < 0.5, own[y[:, 0] if case.each else y], r.integers(1, case.vocab, (len(y),) + case.image))
    if case.each:
        y = np.where(r.random(y.shape) < 0.125, -1, np.roll(x, -1, 1)).astype(np.int32)
    else:
        x[::5, :case.image[0] // 4] = 0
    return x.astype(np.int32), y


def save_data(case, place, x, y):
    os.makedirs(place, exist_ok=True)
    for split, k in ("train", len(x)), ("test", case.batch):
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
            text = re.sub(r" \|> dropout\([0-9.]+\)", "", text).replace("dropout(h, 0.5)", "h")
            text = re.sub(r"(?m)^    (normalize|augment|resize|schedule|clip) .*\n", "", text)
            with open(f"{to}/{name}", "w") as f:
                f.write(text)
            if name == "gru_imdb.tn":                             # the older GRU
                with open(f"{to}/gru_before.tn", "w") as f:
                    f.write(text.replace("gru(width)", 'gru(width, reset = "before")'))


def call(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}:\n{done.stdout[-500:]}{done.stderr[-1500:]}")


def build(tenon, case, place, dtype):
    rule = f"{case.optimizer}(lr={case.lr})"
    if case.optimizer == "sgd":
        rule = f"sgd(lr={case.lr}, momentum={case.momentum}, weight_decay={case.decay})"
    data = f"synthetic(samples={case.batch}, vocab={case.vocab})" if case.vocab else f"{place}/data"
    options = [f"--set={k}={v}" for k, v in {**case.settings, "optimizer": rule, "data": data}.items()]
    call(tenon, "build", f"{place}/../models/{case.model}.tn", "-o", f"{place}/{dtype}", "--dtype", dtype, "--batch", str(case.batch), *options)
    return f"{place}/{dtype}"


def run_tenon(program, place, weights):
    """-> losses of ten steps, gradients of the first."""
    data = "--data", f"{place}/data"
    call(program, "grads", "--weights", weights, "--output", f"{place}/grads", *data)
    if os.path.exists(f"{place}/log"):
        os.remove(f"{place}/log")
    call(program, "train", "--weights", weights, "--shuffle", "off", "--epochs", "1", "--log", f"{place}/log", "--log-steps", "1", *data)
    with open(f"{place}/log") as f:
        records = [json.loads(line) for line in f]
    losses = [r["train_loss"] for r in records if r["event"] == "step"]
    assert len(losses) == STEPS, f"{len(losses)} steps"
    return np.array(losses), read_tensors(f"{place}/grads")


# ---- PyTorch

def state_of(module):
    """Parameters and running statistics in the order of the file."""
    return [(k, t) for k, t in module.state_dict(keep_vars=True).items() if not k.endswith("num_batches_tracked")]


def loss_of(case, output, y):
    if case.truth:
        return binary_cross_entropy_with_logits(output[:, 0], y.to(output.dtype))
    return cross_entropy(output.flatten(0, -2), y.flatten(), ignore_index=-1)


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
    rule = {"sgd": lambda: torch.optim.SGD(groups, lr=case.lr, momentum=case.momentum), "adam": lambda: torch.optim.Adam(groups, lr=case.lr),
            "rmsprop": lambda: torch.optim.RMSprop(groups, lr=case.lr, alpha=0.9, eps=1e-7)}[case.optimizer]()
    losses, gradients = [], {}
    for i in range(STEPS):
        part = slice(i * case.batch, (i + 1) * case.batch)
        rule.zero_grad()
        loss = loss_of(case, module(torch.from_numpy(x[part]).to(torch.long if case.vocab else dtype)), torch.from_numpy(y[part]).long())
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


def typical(distances):
    """The geometric mean; none counts as less than a rounding."""
    return np.exp(np.mean(np.log(np.maximum(distances, 1e-8))))


def weights_of(program, place, seed):
    call(program, "train", "--epochs", "0", "--seed", str(seed), "--save", f"{place}/f32.weights", "--data", f"{place}/data")
    return read_tensors(f"{place}/f32.weights")


def compare_f64(program, case, place, weights, exact, exact_gradients):
    """-> largest relative distance of a loss, and of a parameter's gradient with its name."""
    write_tensors(f"{place}/f64.weights", {k: v.astype(np.float64) for k, v in weights.items()})
    losses, gradients = run_tenon(program, place, f"{place}/f64.weights")
    return (np.max(np.abs(losses - exact) / np.abs(exact)),
            *worst(gradients, exact_gradients, max(np.linalg.norm(g) for g in exact_gradients.values())))


def compare(tenon, case, place):
    x, y = write_data(case, f"{place}/data")
    program = {d: build(tenon, case, place, d) for d in ("f64", "f32")}
    far = {"ours": ([], []), "theirs": ([], [])}               # distances in f32: of each loss, of all gradients
    for seed in range(1, case.seeds + 1):
        weights = weights_of(program["f32"], place, seed)
        exact, exact_gradients = run_torch(case, weights, x, y, torch.float64)
        if seed == 1:
            first = exact
            loss64, gradient64, name = compare_f64(program["f64"], case, place, weights, exact, exact_gradients)
        for who, (losses, gradients) in (("ours", run_tenon(program["f32"], place, f"{place}/f32.weights")),
                                         ("theirs", run_torch(case, weights, x, y, torch.float32))):
            far[who][0].extend(np.abs(losses - exact) / np.abs(exact))
            far[who][1].append(together(gradients, exact_gradients))
    loss32, their_loss = typical(far["ours"][0]), typical(far["theirs"][0])
    gradient32, their_gradient = np.mean(far["ours"][1]), np.mean(far["theirs"][1])

    wrong = []
    if not loss64 <= 1e-9:
        wrong.append("losses in f64")
    if not gradient64 <= 1e-8:
        wrong.append(f"gradient of {name} in f64")
    if not loss32 <= max(2 * their_loss, FLOOR) or case.close and not max(far["ours"][0]) <= 1e-4:
        wrong.append("losses in f32")
    if not gradient32 <= max(2 * their_gradient, FLOOR) or case.close and not gradient32 <= 1e-3:
        wrong.append("gradients in f32")
    print(f"{case.name:13} f64: losses {loss64:.1e}, gradients {gradient64:.1e} ({name})   f32: losses {loss32:.1e}, PyTorch "
          f"{their_loss:.1e}; gradients {gradient32:.1e}, PyTorch {their_gradient:.1e}   loss {first[0]:.4f} to {first[-1]:.4f}   "
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


if __name__ == "__main__":
    main()
