"""npy.py -- writes .npy files without NumPy, for tests that make arrays."""
import array


def save(path, descr, shape, numbers):
    code = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|u1": "B"}[descr]
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n" + array.array(code, numbers).tobytes())
