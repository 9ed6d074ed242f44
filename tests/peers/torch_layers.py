"""torch_layers.py -- single layers of Tenon and of PyTorch compute the same numbers in f64.

    python torch_layers.py TENON DIR [CASE...]      one line a case; the exit code says whether all agree

The output of a model is one layer in several forms, after a layer with weights; the loss is half the sum of squares.  From the same
weights and samples, the outputs, the loss and the gradients of all parameters agree to 1e-9 (relative L2).  With CHECK_DEEP=1 the
same holds for --plain programs.
"""
import os
import sys
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F
from same_numbers import apart, call, read_tensors, write_tensors

BATCH, BOUND = 6, 1e-9


@dataclass(frozen=True)
class Case:
    name: str
    shape: tuple                                      # of a sample
    body: str                                         # first lines of the model; x is the sample
    forms: tuple                                      # outputs of the model; they are flattened and joined
    torch: object                                     # (parameters by name, x) -> list of the same outputs


# ---- layers

PIXELS = "pixel = conv2d(x, 19, kernel = 1)\n    h = tanh(pixel)"


def pixels(w, x):
    return torch.tanh(F.conv2d(x, w["pixel.weight"], w["pixel.bias"]))


def resized(mode):
    return tuple(f'resize(h, {size}, mode = "{mode}")' for size in ("[4, 5]", "scale = [2, 3]", "[7, 11]", "[3, 2]", "1", "size = [29, 9]"))


def resize(w, x):
    h = pixels(w, x)
    sizes = (4, 5), (8, 15), (7, 11), (3, 2), (1, 1), (29, 9)
    return [F.interpolate(h, size, mode="nearest") for size in sizes] + \
        [F.interpolate(h, size, mode="bilinear", align_corners=False) for size in sizes]


FORMULAS = ("sin(3 * h)", "cos(3 * h)", "clamp(h, -0.4, 0.3)", "where(h > 0.1, h * h, sin(h))", "where(pixel <= h, 0.5, h) * (h != 0)",
            "h * stop_gradient(tanh(2 * h))", "h * ((h >= 0.2) + (h < -0.1) - (0.05 < h)) + (h == h) * h", "cumsum(h, axis = 0)", "cumsum(h, axis = 1, reverse = true)",
            "cumsum(h)", "h * argmax(h, axis = 0)", "0.1 * argmax(h)")


def formulas(w, x):
    h, pixel = pixels(w, x), F.conv2d(x, w["pixel.weight"], w["pixel.bias"])
    return [torch.sin(3 * h), torch.cos(3 * h), h.clamp(-0.4, 0.3), torch.where(h > 0.1, h * h, torch.sin(h)),
            torch.where(pixel <= h, torch.tensor(0.5, dtype=h.dtype), h), h * torch.tanh(2 * h).detach(),
            h * ((h >= 0.2).double() + (h < -0.1).double() - (h > 0.05).double()) + h,
            h.cumsum(1), h.flip(2).cumsum(2).flip(2), h.cumsum(3), h * h.argmax(1, keepdim=True), 0.1 * h.argmax(3).double()]


LOSSES = ("binary_focal(a, t)", "binary_focal(a, t, gamma = 1.5, alpha = 0.6)", "dice(a, t)", "kl(a, softmax(b))", "triplet(a, b, c)",
          "triplet(a, c, b, margin = 3.0)", "contrastive(a, b, mean(t, axes = [0]))", "contrastive(a, c, mean(t, axes = [0]), margin = 5.0)")


def losses(w, x):
    a, b, c = (F.linear(x, w[f"{i}.weight"], w[f"{i}.bias"]) for i in "abc")
    t = torch.sigmoid(c)

    def focal(gamma, alpha):                          # as torchvision.ops.sigmoid_focal_loss writes it
        p = torch.sigmoid(a)
        p = p * t + (1 - p) * (1 - t)
        return (F.binary_cross_entropy_with_logits(a, t, reduction="none") * (1 - p) ** gamma * (alpha * t + (1 - alpha) * (1 - t))).mean(1)

    def triplet(a, b, c, margin):
        return F.triplet_margin_with_distance_loss(a, b, c, distance_function=distance, margin=margin, reduction="none")

    def distance(a, b):
        return (a - b).norm(dim=1)

    def contrastive(a, b, same, margin):
        return 0.5 * (same * distance(a, b) ** 2 + (1 - same) * (margin - distance(a, b)).clamp(min=0) ** 2)
    p = torch.sigmoid(a)
    dice = 1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)
    kl = F.kl_div(F.log_softmax(a, 1), F.softmax(b, 1), reduction="none").sum(1)
    forms = focal(2, 0.25), focal(1.5, 0.6), dice, kl, triplet(a, b, c, 1), triplet(a, c, b, 3), contrastive(a, b, t.mean(1), 1), contrastive(a, c, t.mean(1), 5)
    return [form.reshape(-1, 1) for form in forms]


STEPS = "step = dense(x, 6)\n    h = tanh(step)"


def steps(w, x):
    """-> sequences as PyTorch has them: features, steps."""
    return torch.tanh(F.linear(x, w["step.weight"], w["step.bias"])).transpose(1, 2)


def conv1d(w, x):
    h = steps(w, x)

    def conv(i, h, **more):
        return F.conv1d(h, w[f"{i}.weight"][..., 0], w.get(f"{i}.bias"), **more)
    a = torch.relu(conv("layer_a", h, padding=1))
    sequences = a, conv("b", a, stride=2, padding=2), conv("c", h, dilation=3), conv("d", h, groups=3), conv("e", F.pad(h, (1, 2)))
    return [y.transpose(1, 2) for y in sequences]


ATTENTION = STEPS + """
    q = dense(slice(h, 0, start = 2, size = 5), 12)
    k = dense(h, 12)
    v = dense(h, 18)
    u = dense(h, 12)
    m = mean(h, axes = [1]) > 0.05"""
ATTENTIONS = ("attention(q, k, v, heads = 3)", "attention(q, k, v, mask = m)", "attention(k, q, slice(k, 0, start = 1, size = 5), heads = 4, scale = 0.9)",
              "attention(k, u, k, heads = 2)", "attention(k, u, u, heads = 6, mask = m)")


def attention(w, x):
    h = steps(w, x).transpose(1, 2)
    q, k, v, u = (F.linear(y, w[f"{i}.weight"], w[f"{i}.bias"]) for i, y in (("q", h[:, 2:7]), ("k", h), ("v", h), ("u", h)))
    m = (h.mean(2) > 0.05)[:, None, None, :]
    assert m.any(3).all() and not m.all()             # PyTorch gives NaN where no key counts

    def one(q, k, v, heads=1, **more):
        q, k, v = (t.unflatten(2, (heads, -1)).transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, **more).transpose(1, 2).flatten(2)
    return [one(q, k, v, 3), one(q, k, v, attn_mask=m), one(k, q, k[:, 1:6], 4, scale=0.9), one(k, u, k, 2), one(k, u, u, 6, attn_mask=m)]


CONV1D = STEPS + """
    layer_a = conv1d(h, 18, kernel = 3, pad = 1)
    a = relu(layer_a)
    b = conv1d(a, 5, kernel = 5, stride = 2, pad = 2)
    c = conv1d(h, 7, kernel = 3, dilation = 3)
    d = conv1d(h, 6, kernel = 2, groups = 3, bias = false)
    e = conv1d(h, 4, kernel = 4, pad = "same")"""


def pool1d(w, x):
    h = steps(w, x)
    sequences = (F.max_pool1d(h, 2), F.max_pool1d(h, 3, 1, 1), F.avg_pool1d(h, 3, 2), F.avg_pool1d(h, 3, 2, 1, count_include_pad=False),
                 F.avg_pool1d(h, 3, 2, 1))
    return [y.transpose(1, 2) for y in sequences]


def global_max_pool(w, x):
    return [F.adaptive_max_pool2d(pixels(w, x), 1)]


def group_norm(w, x):
    h = pixels(w, x)
    sequence = h.flatten(2).transpose(1, 2)           # 20 steps of 18 features
    return [F.group_norm(h, 3, w["a.weight"], w["a.bias"]), F.group_norm(h, 9, None, w["b.bias"], 1e-3), F.group_norm(h, 1, w["c.weight"]),
            F.instance_norm(h, weight=w["d.weight"], bias=w["d.bias"]), F.instance_norm(h),
            F.group_norm(sequence.transpose(1, 2), 2, w["f.weight"], w["f.bias"]).transpose(1, 2),
            F.instance_norm(sequence.transpose(1, 2), weight=w["g.weight"], bias=w["g.bias"]).transpose(1, 2),
            F.group_norm(h.mean((2, 3)), 3, w["v.weight"], w["v.bias"])]


GROUP_NORM = """pixel = conv2d(x, 18, kernel = 1)
    h = tanh(pixel)
    sequence = reshape(h, [18, 20]) |> transpose([1, 0])
    a = group_norm(h, 3)
    b = group_norm(h, 9, epsilon = 1e-3, scale = false)
    c = group_norm(h, 1, shift = false)
    d = instance_norm(h)
    f = group_norm(sequence, 2)
    g = instance_norm(sequence)
    v = group_norm(global_avg_pool(h), 3)"""
GROUP_NORMS = "a", "b", "c", "d", "instance_norm(h, scale = false, shift = false)", "f", "g", "v"


def prelu(w, x):
    h = pixels(w, x)
    sequence = F.linear(h.flatten(2), w["s.weight"], w["s.bias"])
    return [F.prelu(h, w["a.weight"]), F.prelu(h, w["b.weight"]), F.prelu(sequence.transpose(1, 2), w["c.weight"]).transpose(1, 2),
            F.prelu(h.mean((2, 3)), w["d.weight"])]


PRELU = PIXELS + """
    s = reshape(h, [19, 20]) |> dense(5)
    a = prelu(h)
    b = prelu(h, shared = true)
    c = prelu(s)
    d = prelu(global_avg_pool(h))"""


def conv_transpose2d(w, x):
    def conv(i, h, **more):
        return F.conv_transpose2d(h, w[f"{i}.weight"], w.get(f"{i}.bias"), **more)
    a = conv("a", x, stride=2, padding=1, output_padding=1)
    h = torch.tanh(a)
    return [a, conv("b", h), conv("c", h, stride=3, groups=2), conv("d", h, dilation=2, padding=(1, 0)), conv("e", h, stride=(2, 1), padding=1)]


CONV_TRANSPOSE2D = """a = conv_transpose2d(x, 18, kernel = 3, stride = 2, pad = 1, output_pad = 1)
    h = tanh(a)
    b = conv_transpose2d(h, 5, kernel = 3)
    c = conv_transpose2d(h, 6, kernel = 2, stride = 3, groups = 2)
    d = conv_transpose2d(h, 4, kernel = [3, 2], dilation = 2, pad = [1, 0], bias = false)
    e = conv_transpose2d(h, 7, kernel = 4, stride = [2, 1], pad = 1)"""


CASES = [
    Case("resize", (2, 4, 5), PIXELS, resized("nearest") + resized("bilinear"), resize),
    Case("global_max_pool", (2, 4, 5), PIXELS, ("global_max_pool(h)",), global_max_pool),
    Case("formulas", (2, 4, 5), PIXELS, FORMULAS, formulas),
    Case("losses", (7,), "a = dense(x, 4)\n    b = dense(x, 4)\n    c = dense(x, 4)\n    t = sigmoid(c)", tuple(f"reshape({form}, [1])" for form in LOSSES), losses),
    Case("group_norm", (2, 4, 5), GROUP_NORM, GROUP_NORMS, group_norm),
    Case("prelu", (2, 4, 5), PRELU, ("a", "b", "c", "d"), prelu),
    Case("conv_transpose2d", (2, 4, 5), CONV_TRANSPOSE2D, ("a", "b", "c", "d", "e"), conv_transpose2d),
    Case("conv1d", (11, 4), CONV1D, ("a", "b", "c", "d", "e"), conv1d),
    Case("attention", (11, 4), ATTENTION, ATTENTIONS, attention),
    Case("pool1d", (11, 4), STEPS, ("max_pool1d(h, 2)", "max_pool1d(h, 3, stride = 1, pad = 1)", "avg_pool1d(h, 3, stride = 2)",
                                    "avg_pool1d(h, 3, stride = 2, pad = 1)",
                                    "avg_pool1d(h, 3, stride = 2, pad = 1, count_include_pad = true)"), pool1d),
]


# ---- the comparison

def model_of(case):
    sample = ", ".join(map(str, case.shape))
    joined = ",\n        ".join(f"flatten({form})" for form in case.forms)
    return (f"import \"losses.tn\"\nmodel layer(x: f32[{sample}]) {{\n    {case.body}\n    return concat({joined})\n}}\n"
            f"train layer {{ data = \"given\"; loss = l2(output); optimizer = sgd(lr = 0.1); batch = {BATCH}; shards = 2; epochs = 1 }}\n")


def drawn_weights(program, place, r):
    """Random numbers for all parameters: layers begin with zeros and ones."""
    call(program, "train", "--epochs", "0", "--data", f"{place}/data", "--save", f"{place}/weights")
    weights = {k: r.standard_normal(v.shape) for k, v in read_tensors(f"{place}/weights").items()}
    write_tensors(f"{place}/weights", weights)
    return {k: torch.from_numpy(v).requires_grad_() for k, v in weights.items()}


def compare(tenon, case, place, plain):
    """-> largest distance, and of what."""
    r = np.random.default_rng(5)
    x = r.standard_normal((BATCH,) + case.shape).astype(np.float32)
    os.makedirs(f"{place}/data", exist_ok=True)
    for split in "train", "test":
        np.save(f"{place}/data/{split}_x.npy", x)
        np.save(f"{place}/data/{split}_y.npy", np.arange(BATCH))
    with open(f"{place}/layer.tn", "w") as f:
        f.write(model_of(case))
    program = f"{place}/layer"
    call(tenon, "build", f"{place}/layer.tn", "-o", program, "--dtype", "f64", *(["--plain"] if plain else []))
    weights = drawn_weights(program, place, r)
    call(program, "grads", "--weights", f"{place}/weights", "--data", f"{place}/data", "--output", f"{place}/grads")
    call(program, "predict", "--weights", f"{place}/weights", "--input", f"{place}/data/train_x.npy", "--output", f"{place}/outputs.npy")
    here, gradients = np.load(f"{place}/outputs.npy"), read_tensors(f"{place}/grads")

    parts = [part.flatten(1) for part in case.torch(weights, torch.from_numpy(x).double())]
    assert len(parts) == len(case.forms), f"{len(parts)} outputs in PyTorch, {len(case.forms)} in Tenon"
    there = torch.cat(parts, 1)
    loss = 0.5 * there.square().sum(1).mean()
    loss.backward()
    assert here.shape == tuple(there.shape), f"outputs {here.shape} in Tenon, {tuple(there.shape)} in PyTorch"
    distances = [(apart(here, there.detach().numpy()), "outputs"), (apart(gradients["loss"], np.array(loss.item())), "loss")]
    for name, w in weights.items():
        assert float(w.grad.abs().max()) > 0, f"{name} has no gradient in PyTorch"
        distances.append((apart(gradients[name], w.grad.numpy()), name))
    return max(distances)


def main(tenon, place, *names):
    bad = 0
    for case in (c for c in CASES if not names or c.name in names):
        for plain in (False, True) if os.environ.get("CHECK_DEEP", "0") != "0" else (False,):
            distance, what = compare(tenon, case, place, plain)
            bad += not distance <= BOUND
            print(f"{case.name}{' --plain' if plain else ''}: largest distance {distance:.1e} ({what}){'' if distance <= BOUND else ' WRONG'}")
    return bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 0)
