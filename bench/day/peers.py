"""peers.py -- part t of bench/first-day: training steps of PyTorch and JAX on the processors of this machine.

    PYTHON peers.py SCRATCH UNTIL < ROWS      PYTHON has numpy, and torch or jax

A row is "NAME MODEL BATCH PEER THREADS"; PEER is jax, or torch and a mode of torch_step.py: torch_eager, torch_eager_cl.  The answer to a
row is "NAME PEER THREADS MS NOTE"; MS is -, and NOTE the reason, if the peer failed.  As many peers as there are processors start at the
same time, then one after another is measured.  Nothing starts after UNTIL, in seconds of /proc/uptime; such rows have no answer.
The samples and the initial weights are random.
"""
import math
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import median

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [f"{ROOT}/bench/driver", f"{ROOT}/bench/peers"]

import common  # noqa: E402
import deep_nets  # noqa: E402
import numpy as np  # noqa: E402
from inputs import write_samples  # noqa: E402
from programs import Bench, Failed, Running  # noqa: E402
from works import PEERS, WORKS, Work  # noqa: E402

BURST, BURSTS, STEPS = 0.3, 3, 3                      # seconds of a burst, number of bursts, fewest measured steps
Running.patience = 90                                 # seconds until an answer
WHOLE_GPT = Work("gpt_char_whole", 64, 0, 0, image=(256,), classes=65, tokens=65, labels=(256,))


def work_of(model, batch):
    """The work of bench/run with this batch, without zeros in the samples, because MNIST is not on this machine."""
    found = WHOLE_GPT if model == "gpt_char" else next(w for w in WORKS if w.model == model and not w.layer)
    return replace(found, batch=batch, no_zeros=True)


def weights(model):
    """Random weights with He's variance or, in networks over sequences, a deviation of 0.02; gains and variances are 1."""
    net, random = (common.NETS | common.DEEP | common.SEQUENCES)[model], np.random.default_rng(1)
    if isinstance(net, common.Deep):
        found = deep_nets.shapes(net.net, net.word)
    else:
        shapes = common.SEQUENCE_SHAPES[net.net] if isinstance(net, common.Sequence) else net.shapes()
        found = [("weight", s) for s in shapes]
    parts = []
    for kind, shape in found:
        scale = 0.02 if isinstance(net, common.Sequence) else 0 if len(shape) == 1 else math.sqrt(2 / math.prod(shape[1:]))
        parts.append(np.ones(shape, np.float32) if kind in ("gain", "variance") else scale * random.standard_normal(shape, np.float32))
    return np.concatenate([p.ravel() for p in parts])


def prepared(work, scratch):
    place = f"{scratch}/{work.model}-{work.batch}"
    if not os.path.exists(f"{place}/weights.npy"):
        os.makedirs(place, exist_ok=True)
        write_samples(ROOT, work, place)
        np.save(f"{place}/new.npy", weights(work.model).astype(np.float32))
        os.rename(f"{place}/new.npy", f"{place}/weights.npy")
    return place


def started(bench, row, work, place):
    """-> the peer, or the reason why it did not start"""
    kind, _, mode = row[3].partition("_")
    peer = next(p for p in PEERS if p.source == f"{kind}_step.py" and p.mode == (mode or "-"))
    try:
        return Running(bench, peer, [sys.executable, "-B", f"{ROOT}/bench/peers/{peer.source}"], work, int(row[4]), True, place)
    except Failed as e:
        return str(e)


def measured(peer):
    """-> ms of a step, number of measured steps.  The first step compiles; the second one is timed to choose the length of the bursts."""
    loss = peer.check(1)[0]
    if not math.isfinite(loss):
        raise Failed(f"its first loss is {loss}")
    began = time.monotonic()
    peer.check(1)
    least = (STEPS + 0.2) * (time.monotonic() - began)
    bursts = [peer.time(max(BURST, least)) for _ in range(BURSTS if least < BURST else 1)]
    return 1e3 * median(spent / steps for steps, spent in bursts), sum(steps for steps, _ in bursts)


def answer(row, peer):
    try:
        if isinstance(peer, str):
            raise Failed(peer)
        ms, steps = measured(peer)
        said = f"{ms:.6g} {steps} steps, {' '.join(f'{k} {v}' for k, v in peer.versions.items())}"
        peer.stop()
    except Failed as e:
        said = f"- {e}"
    print(row[0], row[3], row[4], said, flush=True)


def over(until):
    with open("/proc/uptime") as f:
        return float(f.read().split()[0]) >= until


def main(scratch, until):
    rows = [line.split() for line in sys.stdin]
    most = len(os.sched_getaffinity(0))
    for at in range(0, len(rows), most):
        if over(until):
            return
        some = rows[at:at + most]
        works = [work_of(row[1], int(row[2])) for row in some]
        places = [prepared(work, scratch) for work in works]
        bench = Bench(ROOT, scratch, {}, "", {}, tenon="-")
        with ThreadPoolExecutor(len(some)) as pool:       # a peer ends with the thread that has started it
            peers = list(pool.map(lambda a: started(bench, *a), zip(some, works, places)))
            for row, peer in zip(some, peers):
                if over(until):
                    return
                answer(row, peer)


main(sys.argv[1], float(sys.argv[2]))
