#!/usr/bin/env python3
"""make.py -- writes the table of this directory from scikit-learn's copy of the data.

    pip download scikit-learn==1.9.1 --no-deps
    python3 make.py scikit_learn-1.9.1-*.whl

The values are as measured: no column is scaled.  Needs only Python's standard library.
"""
import gzip
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = "age", "sex", "bmi", "blood pressure", "s1", "s2", "s3", "s4", "s5", "s6", "progression"


def rows(wheel, name):
    text = gzip.decompress(wheel.read(f"sklearn/datasets/data/{name}.csv.gz")).decode()
    return [[f"{float(v):g}" for v in line.split()] for line in text.splitlines() if line]


if len(sys.argv) != 2:
    raise SystemExit("usage: python3 make.py scikit_learn-1.9.1-*.whl")
with zipfile.ZipFile(sys.argv[1]) as wheel:
    patients = zip(rows(wheel, "diabetes_data_raw"), rows(wheel, "diabetes_target"))
with open(f"{HERE}/diabetes.csv", "w") as f:
    f.write(",".join(NAMES) + "\n")
    f.writelines(",".join(measured + progression) + "\n" for measured, progression in patients)
