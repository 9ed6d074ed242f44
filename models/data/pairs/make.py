#!/usr/bin/env python3
"""make.py -- writes pairs of MNIST's digits: the arrays of models/siamese.tn.

    models/data/pairs/make.py [DIR]      DIR: where the arrays go (default: this directory)

    train_left.npy, train_right.npy   (60000, 1, 28, 28) u8     train_y.npy   (60000) u8
    test_left.npy,  test_right.npy    (10000, 1, 28, 28) u8     test_y.npy    (10000) u8

Pair i has image i of the split on its left.  Its right image shows the same digit (y = 1) or another one (y = 0), each with
probability 1/2, and is drawn from the images of the same split.  Needs only Python's standard library.
"""
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True                        # no __pycache__ beside the data
from arrays import PIXELS, main, save


def make(out, split, images, digits):
    same = {d: [i for i, digit in enumerate(digits) if digit == d] for d in range(10)}
    other = {d: [i for i, digit in enumerate(digits) if digit != d] for d in range(10)}
    draw = random.Random(split)
    equal = bytes(draw.getrandbits(1) for _ in digits)
    right = [draw.choice((same if y else other)[d]) for d, y in zip(digits, equal)]
    n = len(digits)
    save(f"{out}/{split}_left.npy", "|u1", (n, 1, 28, 28), images)
    save(f"{out}/{split}_right.npy", "|u1", (n, 1, 28, 28), b"".join(images[i * PIXELS:(i + 1) * PIXELS] for i in right))
    save(f"{out}/{split}_y.npy", "|u1", (n,), equal)


main(make, HERE, __doc__)
