#!/usr/bin/env python3
"""make.py -- writes MNIST's images with two targets: the arrays of models/two_heads.tn.

    models/data/heads/make.py [DIR]      DIR: where the arrays go (default: this directory)

    train_x.npy          (60000, 1, 28, 28) u8    test_x.npy          (10000, 1, 28, 28) u8
    train_digit.npy      (60000) u8               test_digit.npy      (10000) u8
    train_brightness.npy (60000) f32              test_brightness.npy (10000) f32

The brightness of an image is the mean of its pixels, from 0 to 1.  Needs only Python's standard library.
"""
import array
import gzip
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MNIST = os.path.join(HERE, "..", "mnist")
PIXELS = 28 * 28


def contents(name, header):
    with gzip.open(os.path.join(MNIST, name)) as f:
        return f.read()[header:]


def save(path, kind, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    with open(path + ".part", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n" + data)
    os.replace(path + ".part", path)


def make(out, split, name):
    images = contents(f"{name}-images-idx3-ubyte.gz", 16)
    digits = contents(f"{name}-labels-idx1-ubyte.gz", 8)
    n = len(digits)
    brightness = array.array("f", (sum(images[i * PIXELS:(i + 1) * PIXELS]) / (255 * PIXELS) for i in range(n)))
    if sys.byteorder == "big":
        brightness.byteswap()
    save(f"{out}/{split}_x.npy", "|u1", (n, 1, 28, 28), images)
    save(f"{out}/{split}_digit.npy", "|u1", (n,), digits)
    save(f"{out}/{split}_brightness.npy", "<f4", (n,), brightness.tobytes())


if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
    raise SystemExit(__doc__)
OUT = sys.argv[1] if len(sys.argv) == 2 else HERE
try:
    os.makedirs(OUT, exist_ok=True)
    for split, name in ("train", "train"), ("test", "t10k"):
        make(OUT, split, name)
except OSError as error:
    raise SystemExit(f"make.py: {error}; it reads {os.path.normpath(MNIST)}, and `make.py DIR` writes to another directory")
