"""inputs.py -- what all programs of a work read: initial weights and samples, as .npy files in one directory.

The weights are Tenon's own initial ones, the samples MNIST's first ones in file order (random bytes for mlp_wide, the deep networks, and where
it says `no zeros`).
"""
import array
import gzip
import json
import math
import os
import random
import struct

BATCHES_MOST, BATCHES_LEAST = 16, 6                   # number of batches in memory, used in turn; the comparison of losses needs six
TEST_SAMPLES = 64                                     # Tenon's `train` needs a test set


def write_npy(path, dtype, shape, data):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},)}}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def mnist(root, samples):
    """-> bytes of the images, labels"""
    def read(name, head):
        with gzip.open(os.path.join(root, "models/data/mnist", name)) as f:
            return f.read()[head:]
    images, labels = read("train-images-idx3-ubyte.gz", 16), read("train-labels-idx1-ubyte.gz", 8)
    return images[:samples * 784], list(labels[:samples])


def made_up(samples, features, classes):
    r = random.Random(1)
    return r.getrandbits(8 * samples * features).to_bytes(samples * features, "little"), [r.randrange(classes) for _ in range(samples)]


def numbers(samples, features, below):
    """-> samples * features random 32-bit numbers below `below`, as bytes"""
    r = random.Random(2)
    return struct.pack(f"<{samples * features}i", *(r.randrange(below) for _ in range(samples * features)))


def write_samples(root, work, place):
    shape, classes = work.image or (1, 28, 28), work.classes
    if work.model == "mlp_wide":
        shape, classes = (784,), 1000
    features = math.prod(shape)
    batches = BATCHES_LEAST if work.deep else max(BATCHES_LEAST, min(BATCHES_MOST, 60000 // work.batch))
    n = batches * work.batch
    each = math.prod(work.labels)                     # labels of a sample
    x, y = mnist(root, n) if shape == (1, 28, 28) and not work.no_zeros else made_up(n, features, classes)
    x, kind = (numbers(n, features, work.tokens), "<i4") if work.tokens else (x, "|u1")
    y = numbers(n, each, classes) if work.labels else struct.pack(f"<{n}i", *y)
    for split, count in ("train", n), ("test", min(n, TEST_SAMPLES)):
        write_npy(f"{place}/{split}_x.npy", kind, (count,) + shape, x[:len(x) // n * count])
        write_npy(f"{place}/{split}_y.npy", "<i4", (count,) + work.labels, y[:4 * count * each])


def tensors(safetensors):
    """-> {name: bytes}"""
    with open(safetensors, "rb") as f:
        data = f.read()
    (length,) = struct.unpack_from("<Q", data)
    entries, at = json.loads(data[8:8 + length]), 8 + length
    return {k: data[at + v["data_offsets"][0]:at + v["data_offsets"][1]] for k, v in entries.items() if k != "__metadata__"}


def norm(safetensors):
    """Euclidean norm of all gradients together, from the file that `PROG grads` writes; the loss in it does not count."""
    return math.sqrt(sum(x * x for k, t in tensors(safetensors).items() if k != "loss" for x in array.array("f", t)))


def write_weights(safetensors, names, path):
    """Writes all parameters one after another, in the order of `names`."""
    of = tensors(safetensors)
    flat = b"".join(of[n] for n in names)
    write_npy(path, "<f4", (len(flat) // 4,), flat)
