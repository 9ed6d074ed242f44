#!/usr/bin/env python3
"""scale.py -- the scale model's table: what of a step is left on 1 to 1024 ranks, by the buckets that the compiler made.

    TENON=build/tenon bench/scale.py MODEL STEP_MS [OPTIONS OF tenon emit...]

STEP_MS is a rank's own step, measured; every rank has that batch (weak scaling).  A third of it is the forward pass; bucket b of k is
ready when (b + 1) / k of the rest is over.  A sum of S bytes over n ranks takes 2 log2(n) messages and 2 (n - 1) / n S bytes (halving and
doubling, as in runtime/comm/sum.c); sums follow one another: end(b) = max(ready(b), end(b - 1)) + T(b).  The slowest of n ranks is
late by s sqrt(2 ln n), s = 1 % of the step.  The network is flat and does not congest; adding costs nothing; a step ends with its last sum.
"""
import math
import os
import re
import subprocess
import sys

NETWORKS = [("10 Gbit/s, 30 us", 10e9, 30e-6), ("100 Gbit/s, 5 us", 100e9, 5e-6), ("400 Gbit/s, 2 us", 400e9, 2e-6)]


def buckets(model, options):
    tenon = os.environ.get("TENON", "build/tenon")
    text = subprocess.run([tenon, "emit", model, "--to", "c", "--comm", "mpi", *options], check=True, capture_output=True, text=True).stdout
    return [int(b) for b in re.findall(r"\.offset = \d+, \.bytes = (\d+), \.ready", text)]


def step(n, sizes, own, rate, alpha):
    """Seconds of a step, and of it what is communication that nothing hides."""
    if n == 1:
        return own, 0.0
    end = 0.0
    for b, size in enumerate(sizes):
        ready = own / 3 + own * 2 / 3 * (b + 1) / len(sizes)
        end = max(ready, end) + 2 * math.ceil(math.log2(n)) * alpha + 2 * (n - 1) / n * size * 8 / rate
    late = 0.01 * own * math.sqrt(2 * math.log(n))
    return max(own, end) + late, max(0.0, end - own)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sizes, own = buckets(sys.argv[1], sys.argv[3:]), float(sys.argv[2]) / 1000
    print(f"{os.path.basename(sys.argv[1])}: {sum(sizes) / 1e6:.2f} MB in {len(sizes)} buckets, the last {sizes[-1] / 1e6:.2f} MB; a rank's own step {1000 * own:.1f} ms\n")
    print("| ranks | " + " | ".join(f"{name}: step, efficiency, not hidden" for name, _, _ in NETWORKS) + " |")
    print("|---|" + "---|" * len(NETWORKS))
    for n in [2 ** i for i in range(11)]:
        cells = []
        for _, rate, alpha in NETWORKS:
            t, bare = step(n, sizes, own, rate, alpha)
            cells.append(f"{1000 * t:.1f} ms, {100 * own / t:.0f} %, {1000 * bare:.2f} ms")
        print(f"| {n} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
