#!/usr/bin/env python3
"""make.py -- writes images of a digit in clutter, and their masks: the arrays of models/unet.tn.

    models/data/masks/make.py [DIR]      DIR: where the arrays go (default: this directory)

    train_x.npy (6000, 1, 64, 64) u8    test_x.npy (1000, 1, 64, 64) u8: images
    train_y.npy (6000, 1, 64, 64) u8    test_y.npy (1000, 1, 64, 64) u8: 1 where the digit is, else 0

An image has a digit of MNIST at a random place, and 6 pieces of 8 x 8 pixels of other digits.  Where both have ink, the brighter
one is visible.  The mask has the pixels of the digit above 127.  Digits of the test split are those of MNIST's test split.  Needs
only Python's standard library.
"""
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True                        # no __pycache__ beside the data
from arrays import PIXELS, main, save

SIZE, DIGIT, PIECE, PIECES = 64, 28, 8, 6
COUNT = {"train": 6000, "test": 1000}
TRUTH = bytes(v > 127 for v in range(256))            # a table for bytes.translate


def paste(image, at, row):
    """Draws a row of pixels where it is brighter than the image."""
    image[at:at + len(row)] = map(max, image[at:at + len(row)], row)


def sample(draw, images):
    """Returns an image and its mask."""
    count = len(images) // PIXELS
    image, mask = bytearray(SIZE * SIZE), bytearray(SIZE * SIZE)
    for _ in range(PIECES):
        top, left = draw.randrange(DIGIT - PIECE + 1), draw.randrange(DIGIT - PIECE + 1)
        first = draw.randrange(count) * PIXELS + top * DIGIT + left
        place = draw.randrange(SIZE - PIECE + 1) * SIZE + draw.randrange(SIZE - PIECE + 1)
        for i in range(PIECE):
            paste(image, place + i * SIZE, images[first + i * DIGIT:first + i * DIGIT + PIECE])
    first = draw.randrange(count) * PIXELS
    place = draw.randrange(SIZE - DIGIT + 1) * SIZE + draw.randrange(SIZE - DIGIT + 1)
    for i in range(DIGIT):
        row = images[first + i * DIGIT:first + (i + 1) * DIGIT]
        paste(image, place + i * SIZE, row)
        mask[place + i * SIZE:place + i * SIZE + DIGIT] = row.translate(TRUTH)
    return image, mask


def make(out, split, images, digits):
    n, draw = COUNT[split], random.Random({"train": 1, "test": 2}[split])
    x, y = bytearray(), bytearray()
    for _ in range(n):
        image, mask = sample(draw, images)
        x += image
        y += mask
    save(f"{out}/{split}_x.npy", "|u1", (n, 1, SIZE, SIZE), x)
    save(f"{out}/{split}_y.npy", "|u1", (n, 1, SIZE, SIZE), y)


main(make, HERE, __doc__)
