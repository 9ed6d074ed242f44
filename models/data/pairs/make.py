#!/usr/bin/env python3
"""make.py -- writes pairs of MNIST's digits: the arrays of models/siamese.tn.

    models/data/pairs/make.py [DIR]      DIR: where the arrays go (default: this directory)

    train_left.npy, train_right.npy   (60000, 1, 28, 28) u8     train_y.npy   (60000) u8
    test_left.npy,  test_right.npy    (10000, 1, 28, 28) u8     test_y.npy    (10000) u8

Pair i has image i of the split on its left.  Its right image shows the same digit (y = 1) or another one (y = 0), each with
probability 1/2, and is drawn from the images of the same split.  Needs only Python's standard library.
"""
import gzip
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MNIST = os.path.join(HERE, "..", "mnist")
PIXELS = 28 * 28


def contents(name, header):
    with gzip.open(os.path.join(MNIST, name)) as f:
        return f.read()[header:]


def save(path, shape, parts):
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }" % (shape,)
    with open(path + ".part", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n")
        for part in parts:
            f.write(part)
    os.replace(path + ".part", path)


def make(out, split, name):
    images = contents(f"{name}-images-idx3-ubyte.gz", 16)
    digits = contents(f"{name}-labels-idx1-ubyte.gz", 8)
    same = {d: [i for i, digit in enumerate(digits) if digit == d] for d in range(10)}
    other = {d: [i for i, digit in enumerate(digits) if digit != d] for d in range(10)}
    draw = random.Random(split)
    equal = bytes(draw.getrandbits(1) for _ in digits)
    right = [draw.choice((same if y else other)[d]) for d, y in zip(digits, equal)]
    n = len(digits)
    save(f"{out}/{split}_left.npy", (n, 1, 28, 28), [images])
    save(f"{out}/{split}_right.npy", (n, 1, 28, 28), (images[i * PIXELS:(i + 1) * PIXELS] for i in right))
    save(f"{out}/{split}_y.npy", (n,), [equal])


if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
    raise SystemExit(__doc__)
OUT = sys.argv[1] if len(sys.argv) == 2 else HERE
try:
    os.makedirs(OUT, exist_ok=True)
    for split, name in ("train", "train"), ("test", "t10k"):
        make(OUT, split, name)
except OSError as error:
    raise SystemExit(f"make.py: {error}; it reads {os.path.normpath(MNIST)}, and `make.py DIR` writes to another directory")
