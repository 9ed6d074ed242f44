#!/usr/bin/env python3
"""make.py -- writes the table of this directory from scikit-learn's copy of the data.

    pip download scikit-learn==1.9.1 --no-deps
    python3 make.py scikit_learn-1.9.1-*.whl

The values are as measured; the classes 0 and 1 get their names.  Needs only Python's standard library.
"""
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROPERTIES = ("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points", "symmetry",
              "fractal dimension")
NAMES = [form % p for form in ("mean %s", "%s error", "worst %s") for p in PROPERTIES] + ["diagnosis"]

if len(sys.argv) != 2:
    raise SystemExit("usage: python3 make.py scikit_learn-1.9.1-*.whl")
with zipfile.ZipFile(sys.argv[1]) as wheel:
    lines = wheel.read("sklearn/datasets/data/breast_cancer.csv").decode().splitlines()
count, columns, *classes = lines[0].split(",")
tumours = [line.split(",") for line in lines[1:]]
assert len(tumours) == int(count) and {len(t) for t in tumours} == {int(columns) + 1}
with open(f"{HERE}/breast_cancer.csv", "w") as f:
    f.write(",".join(NAMES) + "\n")
    f.writelines(",".join(t[:-1] + [classes[int(t[-1])]]) + "\n" for t in tumours)
