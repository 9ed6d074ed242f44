"""arrays.py -- for the make.py of each directory: reads MNIST, writes .npy files, and is the command `make.py [DIR]`.

Needs only Python's standard library.
"""
import array
import gzip
import os
import random
import sys

MNIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mnist")
PIXELS = 28 * 28


def contents(name, header):
    with gzip.open(os.path.join(MNIST, name)) as f:
        return f.read()[header:]


def mnist(split):
    """Returns the images of "train" or "test", PIXELS bytes each, and their digits, a byte each."""
    name = {"train": "train", "test": "t10k"}[split]
    return contents(f"{name}-images-idx3-ubyte.gz", 16), contents(f"{name}-labels-idx1-ubyte.gz", 8)


def floats(numbers):
    """Returns the bytes of numbers as f32, for the type <f4."""
    a = array.array("f", numbers)
    if sys.byteorder == "big":
        a.byteswap()
    return a.tobytes()


def stored(kind, shape, data):
    """Returns the bytes of a file of an array of the type `kind` ("|u1", "<f4"), whose bytes are `data`."""
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    return b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n" + data


def save(path, kind, shape, data):
    """Writes such a file."""
    with open(path + ".part", "wb") as f:
        f.write(stored(kind, shape, data))
    os.replace(path + ".part", path)


def command(make, here, text, problem):
    """Runs make(DIR).  DIR is the argument of the command, else `here`; `text` is the help, and `problem` what an error says first."""
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        raise SystemExit(text)
    out = sys.argv[1] if len(sys.argv) == 2 else here
    try:
        os.makedirs(out, exist_ok=True)
        make(out)
    except OSError as error:
        raise SystemExit(f"make.py: {error}; {problem}`make.py DIR` writes to another directory")


def main(make, here, text):
    """Runs make(DIR, SPLIT, IMAGES, DIGITS) for both splits of MNIST, as a command."""
    command(lambda out: [make(out, split, *mnist(split)) for split in ("train", "test")], here, text,
            f"it reads {os.path.normpath(MNIST)}, and ")


def drawn(make, here, text):
    """Runs make(DIR, SPLIT, N, RANDOM) for 20,000 samples to train on and 2,000 to test, as a command."""
    command(lambda out: [make(out, split, n, random.Random(seed)) for split, n, seed in (("train", 20000, 1), ("test", 2000, 2))], here,
            text, "")
