"""main.py -- bench/run: its command line, and the order of its measurements."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from statistics import median

import report
from machine import machine
from measure import measure
from programs import Absent, Bench, Failed, Tenon
from works import AVX2_ONLY, PEERS, WORKS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def options():
    p = argparse.ArgumentParser(prog="bench/run", description="Tenon's training step beside other programs, on this machine.")
    p.add_argument("--install-peers", action="store_true", help="make the Python environments of the other programs, then stop")
    p.add_argument("--quick", action="store_true", help="only LeNet and the MLP beside oneDNN and OpenBLAS; writes to build/bench")
    p.add_argument("--check", action="store_true", help="compare the losses; time nothing")
    p.add_argument("--work", metavar="REGEX", default="", help="only the works whose name matches: 'lenet B=128$', 'thread', 'convolutions'")
    p.add_argument("--peer", metavar="REGEX", default="", help="only the programs whose name matches: 'torch|jax'")
    p.add_argument("--again", action="store_true", help="write RESULTS.md again from results.json; measure nothing")
    p.add_argument("--isa", choices=["native", "avx2"], default="native", help="avx2: Tenon for x86-64-v3; other programs without AVX-512 where they have a switch")
    p.add_argument("--rounds", type=int, default=5, help="bursts of every program (default 5)")
    p.add_argument("--seconds", type=float, default=0.5, help="length of a burst (default 0.5)")
    p.add_argument("--venv", metavar="DIR", default=f"{ROOT}/bench/.venv", help="Python environment of the other programs (MXNet's: DIR-mxnet; default: bench/.venv)")
    p.add_argument("--tenon", metavar="PROG", help="the compiler (default: build/tenon, which is built again first)")
    p.add_argument("--out", metavar="DIR", help="directory of the results (default: bench, or build/bench after --quick, --work or --peer)")
    return p.parse_args()


def install(venvs):
    for name, place in venvs.items():
        requirements = f"{ROOT}/bench/peers/requirements{'' if name == 'peers' else '-' + name}.txt"
        print(f"making {place} from {os.path.relpath(requirements, ROOT)}", flush=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            subprocess.run([f"{place}/bin/python", "-m", "pip", "install", "--quiet", "-r", requirements], check=True)
        except (OSError, subprocess.CalledProcessError) as e:
            if name == "peers":
                sys.exit(f"run: {e} (venv comes with Debian's python3-venv)")
            print(f"  {name} does not install here; its column says: not installed", file=sys.stderr)
            shutil.rmtree(place, ignore_errors=True)


def convolutions(bench, path):
    """Runs bench/convs over ResNet-50's shapes; returns no rows if it cannot run."""
    print("convolutions of ResNet-50 (bench/convs)", flush=True)
    env = {**os.environ, "TENON": bench.tenon}
    words = [f"{ROOT}/bench/convs", "--filter", "^r(224|32)/", "--rounds", "3", "--cpu", bench.cpu, "--csv", path]
    if subprocess.run(words, env=env).returncode:
        print("  bench/convs failed; no convolutions in the table", file=sys.stderr)
        return []
    return report.convolutions(path)


def builds(bench):
    """Rows of the table: seconds of `tenon build` of LeNet, cold and unchanged, and the first step's milliseconds; medians of 3."""
    words = [bench.tenon, "build", f"{ROOT}/models/lenet.tn", "--cpu", bench.cpu, "-o", f"{bench.dir}/lenet-built"]
    cold, warm = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            for times in cold, warm:
                began = time.perf_counter()
                bench.say(words, env={**os.environ, "TENON_CACHE": cache})
                times.append(time.perf_counter() - began)
    program = Tenon(bench, next(w for w in WORKS if w.name == "lenet B=128"), len(bench.processors))
    first = [program.measured(1)["first_step_ms"] for _ in range(5)]
    return [("`tenon build` of LeNet, cold", median(cold), 2.5, 1.5, "s"),
            ("`tenon build` of LeNet, unchanged", median(warm), 0.3, 0.1, "s"),
            ("first step of LeNet after the start of the process", median(first), 50, 20, "ms")]


def accounts(bench, results, v3):
    """Measures where the time goes, for the works that missed a goal."""
    for r in results:
        if report.missed(r, v3):
            program = Tenon(bench, r.work, r.threads)
            r.layers = program.run("bench", "--layers", "--threads", str(r.threads), "--steps",
                                   "5" if r.work.deep else "200" if r.work.batch < 1000 else "20")


def summary(bench, results, out, o, began):
    """Measures what the files have besides the works, and writes the files."""
    v3 = Tenon(bench, results[0].work, results[0].threads).info()[0]["cpu"] == "x86-64-v3"
    extras = {"builds": builds(bench), "convolutions": convolutions(bench, f"{bench.dir}/convs.csv") if not o.quick and re.search(o.work, "convolutions") else []}
    accounts(bench, results, v3)
    facts = machine(bench)
    facts["measured"] = f"{o.rounds} rounds of bursts of {o.seconds:g} s, {(time.monotonic() - began) / 60:.0f} minutes in all"
    how = "bench/run" + (" --quick" if o.quick else "") + (" --isa avx2" if o.isa == "avx2" else "") + (f" --work '{o.work}'" if o.work else "") + (f" --peer '{o.peer}'" if o.peer else "")
    how += (f" --rounds {o.rounds}" if o.rounds != 5 else "") + (f" --seconds {o.seconds:g}" if o.seconds != 0.5 else "")
    how += f" --out {o.out}" if o.out else ""
    report.write(facts, results, out, v3, extras, how)


def main():
    o = options()
    venvs = {"peers": o.venv, "mxnet": o.venv.rstrip("/") + "-mxnet"}
    if o.install_peers:
        return install(venvs)
    if o.again:
        return report.again(o.out or f"{ROOT}/bench")
    scratch = f"{ROOT}/build/bench"
    os.makedirs(scratch, exist_ok=True)
    whole = not (o.quick or o.check or o.work or o.peer)
    out = o.out or (f"{ROOT}/bench" if whole else scratch)
    avx2 = o.isa == "avx2"
    bench = Bench(ROOT, scratch, venvs, "x86-64-v3" if avx2 else "native", AVX2_ONLY if avx2 else {}, o.tenon)
    works = [w for w in WORKS if re.search(o.work, w.name) and (w.quick or not o.quick)]
    def chosen(p):
        return re.search(o.peer, p.name) and (p.quick or not o.quick)
    if not works or not any(map(chosen, PEERS)):
        sys.exit("run: nothing of that name: " + "; ".join([w.name for w in WORKS] + [p.name for p in PEERS]))
    began = time.monotonic()
    try:
        bench.build_tenon()
        absent, results = Absent(bench), []
        for work in works:
            print(f"{work.name}", flush=True)
            results.append(measure(bench, absent, work, chosen, 0 if o.check else o.rounds, o.seconds, lambda s: print(s, flush=True)))
            if not o.check:
                print(report.table(results[-1]), flush=True)
        if not o.check:
            summary(bench, results, out, o, began)
    except Failed as e:
        sys.exit(f"run: {e}")
    refused = [f"{r.work.name}, {c.name}: {c.why}" for r in results for c in r.columns if c.why.startswith("refused")]
    if refused:
        sys.exit("run: programs that do not compute the same:\n  " + "\n  ".join(refused))


main()
