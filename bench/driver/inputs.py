"""inputs.py -- what all programs of a work read: initial weights and samples, as .npy files in one directory.

The weights are Tenon's own initial ones, the samples MNIST's first ones in file order (random bytes for mlp_wide).
"""
import gzip
import json
import os
import random
import struct

BATCHES_MOST, BATCHES_LEAST = 16, 6                   # in memory, used in turn; the comparison of losses takes six
TEST_SAMPLES = 64                                     # Tenon's `train` wants a test set


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


def write_samples(root, work, place):
    wide = work.model == "mlp_wide"
    batches = max(BATCHES_LEAST, min(BATCHES_MOST, 60000 // work.batch))
    n = batches * work.batch
    x, y = made_up(n, 784, 1000) if wide else mnist(root, n)
    shape = (784,) if wide else (1, 28, 28)
    for split, count in ("train", n), ("test", min(n, TEST_SAMPLES)):
        write_npy(f"{place}/{split}_x.npy", "|u1", (count,) + shape, x[:count * 784])
        write_npy(f"{place}/{split}_y.npy", "<i4", (count,), struct.pack(f"<{count}i", *y[:count]))


def write_weights(safetensors, names, path):
    """All parameters one after another, in the order of `names`."""
    with open(safetensors, "rb") as f:
        data = f.read()
    (length,) = struct.unpack_from("<Q", data)
    entries, at = json.loads(data[8:8 + length]), 8 + length
    flat = b"".join(data[at + entries[n]["data_offsets"][0]:at + entries[n]["data_offsets"][1]] for n in names)
    write_npy(path, "<f4", (len(flat) // 4,), flat)
