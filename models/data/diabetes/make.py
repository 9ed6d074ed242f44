#!/usr/bin/env python3
"""make.py -- writes the four arrays of this directory from scikit-learn's copy of the data.

    pip download scikit-learn==1.9.1 --no-deps
    python3 make.py scikit_learn-1.9.1-*.whl

Every fifth patient, beginning with the first, is in the test split.  The rows are as measured: no column is scaled.
Needs only Python's standard library.
"""
import gzip
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True                        # no __pycache__ beside the data
from arrays import floats, save


def numbers(wheel, name):
    text = gzip.decompress(wheel.read(f"sklearn/datasets/data/{name}.csv.gz")).decode()
    return [[float(v) for v in line.split()] for line in text.splitlines() if line]


def save_rows(path, rows):
    save(path, "<f4", (len(rows), len(rows[0])), floats(v for row in rows for v in row))


if len(sys.argv) != 2:
    raise SystemExit("usage: python3 make.py scikit_learn-1.9.1-*.whl")
with zipfile.ZipFile(sys.argv[1]) as wheel:
    arrays = {"x": numbers(wheel, "diabetes_data_raw"), "y": numbers(wheel, "diabetes_target")}
for name, rows in arrays.items():
    save_rows(f"{HERE}/test_{name}.npy", rows[::5])
    save_rows(f"{HERE}/train_{name}.npy", [row for i, row in enumerate(rows) if i % 5])
