#!/usr/bin/env python3
"""make.py -- writes the four arrays of this directory from scikit-learn's copy of the data.

    pip download scikit-learn==1.9.1 --no-deps
    python3 make.py scikit_learn-1.9.1-*.whl

Every fifth patient, beginning with the first, is in the test split.  The rows are as measured: no column is scaled.
Needs only Python's standard library.
"""
import array
import gzip
import os
import sys
import zipfile


def numbers(wheel, name):
    text = gzip.decompress(wheel.read(f"sklearn/datasets/data/{name}.csv.gz")).decode()
    return [[float(v) for v in line.split()] for line in text.splitlines() if line]


def save(path, rows):
    shape = (len(rows), len(rows[0]))
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n")
        f.write(array.array("f", [v for row in rows for v in row]).tobytes())


if len(sys.argv) != 2:
    raise SystemExit("usage: python3 make.py scikit_learn-1.9.1-*.whl")
here = os.path.dirname(os.path.abspath(__file__))
with zipfile.ZipFile(sys.argv[1]) as wheel:
    arrays = {"x": numbers(wheel, "diabetes_data_raw"), "y": numbers(wheel, "diabetes_target")}
for name, rows in arrays.items():
    save(f"{here}/test_{name}.npy", rows[::5])
    save(f"{here}/train_{name}.npy", [row for i, row in enumerate(rows) if i % 5])
