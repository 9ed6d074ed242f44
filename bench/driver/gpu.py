"""gpu.py -- bench/gpu: compares programs for a GPU with PyTorch and JAX on the same GPU, in rounds as in bench/run.

Tenon's programs have seven forms: its own kernels ("tenon"), the same with one step in each launch, many steps in one launch
(small networks), NVIDIA's libraries in exact f32, tf32, bf16 and f16.  A part starts no measurement after its minutes.  Results
are written after every network.

With --jobs the programs of PyTorch and JAX of a network are started and compared at the same time, with --together those of all
networks of a part; then the bursts are measured one after another.

Each program's losses are compared with Tenon's before it is timed: the first to 1e-5, the one after 5 steps to 1e-3.  tf32, bf16
and f16 round: their losses may differ by 3e-2, and they are not counted as the fastest program.  The GPU's clock, power and
memory are read before each burst.
"""
import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import median

from machine import first_line, machine
from measure import Bounds, Column, Session
from programs import Absent, Bench, Failed
from works import Peer, Work

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROUNDED = 3e-2
OVER = "not measured: the part's minutes were over"
SMALL, DEEP, SEQUENCES = ("lenet", "mlp"), ("resnet56_cifar10", "resnet50_cifar10", "resnet50", "inception_v3"), ("lstm_synthetic",)
ALL = SMALL + DEEP + SEQUENCES
WORKS = {
    "small": [Work(model, batch, 3, 0) for model in SMALL for batch in (64, 512, 4096)],
    "deep": [Work("resnet56_cifar10", 128, 1.15, 0, image=(3, 32, 32), settings=("augment=[]", "normalize=none", "schedule=constant"), deep=True),
             Work("resnet50_cifar10", 128, 1.15, 0, image=(3, 32, 32), deep=True),
             Work("resnet50", 64, 1.15, 0, image=(3, 224, 224), classes=1000, settings=("optimizer=sgd(lr=0.01)",), deep=True),
             Work("inception_v3", 32, 1.15, 0, image=(3, 299, 299), classes=1000, settings=("optimizer=sgd(lr=0.01)",), deep=True)],
    "sequences": [Work("lstm_synthetic", batch, 1.15, 0, image=(40, 60), classes=60) for batch in (128, 1024)],
}


LIBRARIES = "tenon cudnn, f32"
PERSISTENT = "tenon persistent, f32"
ALONE = "tenon, a step a launch"


def peers(device):
    """The peers in the order in which they start.  The eager modes are last, so these are left out when the minutes are over."""
    found = []
    if device:                                        # there are no such programs for the processor
        found = [Peer(ALONE, "tenon", "", "--launch-steps 1", models=ALL),
                 Peer(PERSISTENT, "tenon", "--kernels=persistent", models=SMALL),
                 Peer(LIBRARIES, "tenon", "--kernels=cudnn", models=ALL),
                 *(Peer(f"tenon cudnn, {t}", "tenon", f"--kernels=cudnn --dtype={t}", models=ALL, further=True) for t in ("tf32", "bf16", "f16"))]
    found.append(Peer("jax, f32", "python", "jax_step.py", models=SMALL + SEQUENCES, env={"JAX_DEFAULT_MATMUL_PRECISION": "highest", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}))
    for mode in ("graph", "compile", "graph_compile", "eager") if device else ("compile", "eager"):
        for dtype in "f32", "tf32", "bf16":
            torch = Peer(f"torch {mode}, {dtype}", "python", "torch_step.py", mode, SMALL + SEQUENCES, env={"PEER_DTYPE": dtype}, further=dtype != "f32")
            found.append(torch)
            if mode != "graph_compile":               # all programs of a deep network have to fit on the GPU
                found.append(replace(torch, mode=f"{mode}_cl", models=DEEP))
    return found


class Gpu(Bench):
    """Programs for one GPU or, if `device` is None, for the processor."""

    def __init__(self, *words, device, programs=None, **more):
        super().__init__(*words, **more)
        self.device, self.programs = device, programs
        self.given = self.given or programs is not None
        if device:
            self.target = ["--target", "cuda", "--arch", device, "--kernels=own"]

    def build_model(self, work, flags, dropout=True):
        """Builds the program or, with --programs, takes the one that --build-only has built."""
        if not self.programs:
            return super().build_model(work, flags, dropout)
        program = f"{self.programs}/{self.program_name(work, flags, dropout)}"
        if not os.path.exists(program):
            raise Failed(f"{program} was not built")
        return program

    def environment(self, threads, extra):
        env = super().environment(threads, extra)
        if self.device:
            del env["CUDA_VISIBLE_DEVICES"]
            env["PEER_DEVICE"] = "cuda"
        return env


def ask(what):
    return first_line("nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits").split(", ")


def figures(words):
    """The numbers that nvidia-smi has printed; None for each that this GPU does not report ([N/A])."""
    return [float(x) if re.fullmatch(r"[0-9.]+", x) else None for x in words]


class OnGpu(Session):
    """states: clock in MHz, power in W and memory in MB before each burst.  until: the time at which the part's minutes are over."""

    def __init__(self, until, bench, absent, work, chosen, several):
        name = f"{work.name}:" if several else ""
        if not several:
            print(work.name, flush=True)
        # one write for each line, because threads print at the same time
        super().__init__(bench, absent, work, chosen, lambda text: print(f"{name}{text}\n", end="", flush=True), peers=peers(bench.device))
        self.states, self.until, self.failed, self.later = [], until, "", []

    def attempt(self, what, *words):
        """Calls what(*words), unless something has failed before."""
        try:
            if not self.failed:
                what(*words)
        except Failed as e:
            self.failed = str(e)
            self.say(f"  {e}")

    def burst(self, column, program, seconds, warm):
        if time.monotonic() <= self.until:
            super().burst(column, program, seconds, warm)
        elif not column.bursts:
            column.why = OVER

    def between(self, clock):
        if self.bench.device:
            self.states.append(figures(ask("clocks.sm,power.draw,memory.used")))

    def bounds(self, peer):
        return Bounds(ROUNDED, ROUNDED, ROUNDED, ROUNDED) if peer.further else Bounds()

    def tried(self, peer):
        if time.monotonic() > self.until:
            return Column(peer.name, ours=peer.ours, further=peer.further, why=OVER), None
        return super().tried(peer)

    def begin(self, pool):
        """Starts the programs of this work.  Threads of the pool start those of Python."""
        if time.monotonic() > self.until:
            raise Failed(OVER)
        self.start_ours()
        for peer in self.peers:
            if peer.kind == "python":
                self.installed(peer)
        self.later = [pool.submit(self.tried, peer) for peer in self.peers if peer.kind == "python"]
        for peer in self.peers:
            if peer.kind != "python":
                self.start(peer)

    def installed(self, peer):
        """Finds out whether the peer can run, before threads ask for it."""
        try:
            self.absent.command(peer)
        except Failed:
            pass

    def ready(self):
        for started in self.later:
            self.take(*started.result())


def architecture():
    """Returns "sm_90" or the like; exits with a message if something is missing."""
    if subprocess.run(["sh", "-c", "nvidia-smi -L > /dev/null 2>&1"]).returncode:
        sys.exit("gpu: no NVIDIA GPU or no driver on this machine (nvidia-smi -L fails); bench/gpu --try runs the script on the processor")
    capability = ask("compute_cap")[0]
    if not re.fullmatch(r"\d+\.\d", capability):
        sys.exit(f"gpu: nvidia-smi does not say this GPU's compute capability: '{capability}'")
    known = [80, 90, 100]
    here = int(capability.replace(".", ""))
    if here < known[0]:
        sys.exit(f"gpu: this GPU is sm_{here}; programs are for sm_80 and newer")
    return f"sm_{max(k for k in known if k <= here)}"


def rows(session):
    result = session.result
    if session.failed:
        yield {"model": result.work.model, "batch": result.work.batch, "program": "tenon", "why": session.failed}
        return
    said = [[x for x in column if x is not None] for column in zip(*session.states)]
    state = [median(x) if x else "" for x in said] + ["", "", ""]
    for c in result.columns:
        yield {"model": result.work.model, "batch": result.work.batch, "program": c.name, "samples_per_s": round(c.rate, 1), "least": round(min(c.bursts, default=0), 1),
               "most": round(max(c.bursts, default=0), 1), "bursts": len(c.bursts), "first_loss_off": c.first, "later_off": c.later, "why": c.why,
               "clock_mhz": state[0], "power_w": state[1], "memory_mb": state[2]}


def table(session):
    result = session.result
    lines = [f"  {c.name:22} " + (f"{c.rate:14,.0f} [{min(c.bursts):,.0f}..{max(c.bursts):,.0f}]" if c.bursts else c.why) for c in result.columns]
    if result.best:
        lines.append(f"  ratio {result.ratio:.2f}x of {result.best.name}; must {result.work.must}x")
    for name, words in (ALONE, "with a step a launch"), (PERSISTENT, "many steps in one launch"), (LIBRARIES, "with NVIDIA's libraries"):
        column = next((c for c in result.columns if c.name == name and c.bursts), None)
        if column and result.tenon.bursts:
            lines.append(f"  {words} {column.rate / result.tenon.rate:.2f}x of our own kernels" +
                         (f", {column.rate / result.best.rate:.2f}x of {result.best.name}" if result.best else ""))
    return "\n".join(lines)


def together(bench, absent, works, o, until):
    """Starts the programs of all works at the same time, then measures the works one after another.  Yields the rows of each."""
    sessions = []
    # A program ends with the thread that started it, so the pool stays until all is measured.
    with ThreadPoolExecutor(o.jobs) as pool:
        try:
            for work in works:
                sessions.append(OnGpu(until, bench, absent, work, lambda peer: o.peer.search(peer.name), len(works) > 1))
                sessions[-1].attempt(sessions[-1].begin, pool)
            for session in sessions:
                session.attempt(session.ready)
            for session in sessions:
                session.attempt(session.rounds, 1 if o.attempt else o.rounds, 0.2 if o.attempt else o.seconds)
                if not session.failed:
                    print(f"{session.work.name}\n" * (len(works) > 1) + table(session), flush=True)
                yield list(rows(session))
        except BaseException:                         # interrupted: no thread waits for a program that compiles
            pool.shutdown(wait=False, cancel_futures=True)
            for process in bench.started:
                process.kill()
            raise
        finally:
            for session in sessions:
                session.stop()


def build_only(bench, works):
    """Builds the programs of all forms, on a machine that may have no GPU.  -> exit code"""
    failed = 0
    for work in works:
        for flags in [[]] + [p.source.split() for p in peers(bench.device) if p.ours and p.source and work.model in p.models]:
            try:
                print(bench.build_model(work, flags), flush=True)
            except Failed as e:
                failed = 1
                print(f"  {work.name} {' '.join(flags)}: {e}", flush=True)
    return failed


def measured(everything):
    return any(row.get("bursts") for row in everything)


def write(place, facts, everything):
    """Writes the results.  If nothing was measured, leaves the earlier results as they are."""
    if not measured(everything):
        return
    with open(f"{place}/gpu.json.new", "w") as f:
        json.dump({"machine": facts, "rows": everything}, f, indent=1)
    with open(f"{place}/gpu.csv.new", "w", newline="") as f:
        writer = csv.DictWriter(f, fieldnames=max(everything, key=len).keys())
        writer.writeheader()
        writer.writerows(everything)
    for name in "gpu.json", "gpu.csv":
        os.replace(f"{place}/{name}.new", f"{place}/{name}")


class Options(argparse.ArgumentParser):
    def error(self, message):
        self.exit(1, f"gpu: {message}\n")


def pattern(text):
    """Compiles a regular expression; argparse shows the message of the error."""
    try:
        return re.compile(text)
    except re.error as e:
        raise argparse.ArgumentTypeError(f"'{text}' is no regular expression: {e}")


def directory(path):
    """Makes the directory if it is missing; exits if no file can be written there."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as e:
        sys.exit(f"gpu: {path}: {e.strerror}")
    if not os.access(path, os.W_OK):
        sys.exit(f"gpu: {path}: no file can be written there")
    return os.path.abspath(path)


def main():
    p = Options(prog="bench/gpu", description="Tenon's training step beside PyTorch's and JAX's, on this machine's GPU.")
    p.add_argument("--part", choices=[*WORKS, "all"], default="all", help="the networks (default: all)")
    p.add_argument("--work", metavar="REGEX", type=pattern, default="", help="only the works whose name matches: 'lenet B=64$'")
    p.add_argument("--list", action="store_true", help="only print the names of the works")
    p.add_argument("--peer", metavar="REGEX", type=pattern, default="", help="only the programs whose name matches: 'compile, f32|jax'; compiling takes most of the time")
    p.add_argument("--python", default=sys.executable, help="interpreter that has PyTorch or JAX with CUDA (default: this one)")
    p.add_argument("--build-only", metavar="ARCH", help="only build the programs, for a GPU of this architecture (sm_90), in the directory of --scratch; needs no GPU")
    p.add_argument("--programs", metavar="DIR", help="take the programs that --build-only has built there; needs no nvcc")
    p.add_argument("--tenon", help="the compiler (default: build/tenon, which is built again first)")
    p.add_argument("--jobs", type=int, default=1,
                   help="programs of PyTorch and JAX that start and compile at the same time: quicker, but they choose kernels by timing, and disturb each other (default 1)")
    p.add_argument("--together", action="store_true",
                   help="start the programs of all networks of a part at the same time: quicker, but all of them have to fit on the GPU")
    p.add_argument("--rounds", type=int, default=5, help="bursts of every program (default 5)")
    p.add_argument("--seconds", type=float, default=1.0, help="length of a burst (default 1)")
    p.add_argument("--minutes", type=float, default=10, help="a part starts nothing more after them (default 10)")
    p.add_argument("--out", default=f"{ROOT}/bench", help="directory of gpu.csv and gpu.json (default: bench)")
    p.add_argument("--scratch", default=f"{ROOT}/build/bench-gpu", help="directory of programs, samples and logs (default: build/bench-gpu)")
    p.add_argument("--try", dest="attempt", action="store_true", help="one short burst on the processor, to test the script; its figures mean nothing")
    o = p.parse_args()
    if o.jobs < 1:
        sys.exit("gpu: --jobs is a whole number from 1 on")
    parts = [[w for w in WORKS[part] if o.work.search(w.name)] for part in WORKS if o.part in (part, "all")]
    works = sum(parts, [])
    if not works:
        sys.exit("gpu: nothing of that name: " + "; ".join(w.name for part in WORKS for w in WORKS[part]))
    if o.list:
        print("\n".join(w.name for w in works))
        return 0
    if o.programs and not os.path.isdir(o.programs):
        sys.exit(f"gpu: --programs {o.programs}: no such directory")
    device = None if o.attempt else o.build_only or architecture()
    scratch, out = directory(o.scratch), o.out
    if not (o.attempt or o.build_only):               # these write no results
        directory(out)
    # environments are directories with bin/python in them
    home = os.path.dirname(os.path.dirname(os.path.abspath(o.python)))
    bench = Gpu(ROOT, scratch, {"peers": home}, "native", {}, o.tenon, device=device, programs=o.programs and os.path.abspath(o.programs))
    everything = []
    try:
        bench.build_tenon()
        if not o.programs and not shutil.which(bench.tenon):
            raise Failed(f"no compiler at {bench.tenon}")
        if o.build_only:
            return build_only(bench, works)
        facts = machine(bench)
        if device:
            facts["GPU"] = ", ".join(ask("name,driver_version,memory.total,clocks.max.sm,power.limit"))
            facts["nvcc"] = first_line("sh", "-c", "nvcc --version | tail -n 2 | head -n 1")
        absent = Absent(bench)
        for some in [works[:1]] if o.attempt else parts:
            until = time.monotonic() + o.minutes * 60
            for group in [some] if o.together else [[work] for work in some]:
                for found in together(bench, absent, group, o, until):
                    everything += found
                    if not o.attempt:
                        write(out, facts, everything)
    except Failed as e:
        sys.exit(f"gpu: {e}")
    if not measured(everything):
        sys.exit("gpu: nothing was measured" + ("" if o.attempt else f"; the results in {out} are as before"))
    return 0


sys.exit(main())
