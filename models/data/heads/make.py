#!/usr/bin/env python3
"""make.py -- writes MNIST's images with two targets: the arrays of models/two_heads.tn.

    models/data/heads/make.py [DIR]      DIR: where the arrays go (default: this directory)

    train_x.npy          (60000, 1, 28, 28) u8    test_x.npy          (10000, 1, 28, 28) u8
    train_digit.npy      (60000) u8               test_digit.npy      (10000) u8
    train_brightness.npy (60000) f32              test_brightness.npy (10000) f32

The brightness of an image is the mean of its pixels, from 0 to 1.  Needs only Python's standard library.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True                        # no __pycache__ beside the data
from arrays import PIXELS, floats, main, save


def make(out, split, images, digits):
    n = len(digits)
    save(f"{out}/{split}_x.npy", "|u1", (n, 1, 28, 28), images)
    save(f"{out}/{split}_digit.npy", "|u1", (n,), digits)
    brightness = (sum(images[i * PIXELS:(i + 1) * PIXELS]) / (255 * PIXELS) for i in range(n))
    save(f"{out}/{split}_brightness.npy", "<f4", (n,), floats(brightness))


main(make, HERE, __doc__)
