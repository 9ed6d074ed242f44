#!/usr/bin/env python3
"""make.py -- writes seasonal series with noise: the arrays of models/forecast.tn.

    models/data/series/make.py [DIR]      DIR: where the arrays go (default: this directory)

    train_x.npy (20000, 96, 1) f32: 96 steps of a series      test_x.npy (2000, 96, 1)
    train_y.npy (20000, 6) f32: the six steps after them      test_y.npy (2000, 6)

Step t of a series is level + a sin(2 pi t / 12 + p) + b sin(2 pi t / 30 + q) + noise.  Each series has its own numbers: level from
-1 to 1, a and b from 0.5 to 1.5, p and q from 0 to 2 pi.  The noise has the normal distribution with deviation 0.2.  So no forecast
has an RMSE below 0.2, and least squares with both periods known reach 0.2059.  Needs only Python's standard library.
"""
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True                        # no __pycache__ beside the data
from arrays import drawn, floats, save

STEPS, AHEAD, PERIODS, NOISE = 96, 6, (12, 30), 0.2


def series(r):
    """-> STEPS + AHEAD numbers."""
    level = r.uniform(-1, 1)
    waves = [(r.uniform(0.5, 1.5), 2 * math.pi / period, r.uniform(0, 2 * math.pi)) for period in PERIODS]
    return [level + sum(a * math.sin(w * t + p) for a, w, p in waves) + r.gauss(0, NOISE) for t in range(STEPS + AHEAD)]


def make(out, split, n, r):
    rows = [series(r) for _ in range(n)]
    save(f"{out}/{split}_x.npy", "<f4", (n, STEPS, 1), floats(v for row in rows for v in row[:STEPS]))
    save(f"{out}/{split}_y.npy", "<f4", (n, AHEAD), floats(v for row in rows for v in row[STEPS:]))


drawn(make, HERE, __doc__)
