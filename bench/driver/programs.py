"""programs.py -- the measured programs: Tenon's, and peers that stay alive between requests.

Both know check(n) -> losses and time(seconds) -> (steps, seconds).  A peer that is not asked is stopped (SIGSTOP), so that
threads that spin take nothing from the others.
"""
import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time

from inputs import norm

LIBC, PR_SET_PDEATHSIG = ctypes.CDLL(None), 1
PATIENCE = 400                                        # seconds until an answer; TorchInductor and XLA compile during the first one


class Failed(Exception):
    """A program did not do its work.  The message is for the user."""


class Bench:
    """The directories and programs of a measurement, and its processors."""

    def __init__(self, root, work_dir, venvs, cpu, capped, tenon=None):
        self.root, self.dir, self.venvs, self.cpu, self.capped = root, work_dir, venvs, cpu, capped
        self.processors = sorted(os.sched_getaffinity(0))
        self.tenon = tenon or f"{root}/build/tenon"
        self.given = tenon is not None
        self.started = []                             # processes of peers
        self.target = ["--cpu", cpu]                  # options for `tenon build`

    def environment(self, threads, extra):
        n = str(threads)
        return {**os.environ, "OMP_NUM_THREADS": n, "MKL_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
                "TORCHINDUCTOR_CACHE_DIR": f"{self.dir}/inductor", **extra, **self.capped}

    def pin(self, threads):
        """Returns a function for the new process, which gets one processor for each thread: some libraries count processors themselves."""
        chosen = self.processors[:threads]

        def before_exec():
            os.sched_setaffinity(0, chosen)
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)   # else a stopped process would outlive this one
        return before_exec

    def say(self, command, **more):
        """Runs a command to its end and returns its output; raises Failed with the last line that it printed."""
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        except OSError as e:
            raise Failed(str(e))
        if done.returncode:
            raise Failed(f"{os.path.basename(command[0])}: " + ((done.stderr or done.stdout).strip().splitlines() or ["no word"])[-1])
        return done.stdout

    def build_tenon(self):
        if self.given:
            return
        build = f"{self.root}/build"
        self.say(["cmake", "-S", self.root, "-B", build, "-DTENON_TESTS=OFF"])
        self.say(["cmake", "--build", build, "--parallel", str(os.cpu_count()), "--target", "tenon", "tenonrt"])

    @staticmethod
    def program_name(work, flags, dropout):
        return f"{work.model}-{work.batch}{''.join(flags)}" + ("" if dropout else "-nodrop")

    def build_model(self, work, flags, dropout=True):
        """-> path of the program.  Without dropout, the model is the same without the calls of dropout."""
        source = f"{self.root}/{'bench/yardsticks' if work.layer else 'models'}/{work.model}.tn"
        if not dropout:
            with open(source) as f:
                text = re.sub(r" \|> dropout\([0-9.]+\)", "", f.read())
            if "dropout(" in text:
                raise Failed(f"{source}: dropout cannot be taken out")
            source = f"{self.dir}/{work.model}.tn"
            with open(source, "w") as f:
                f.write(text)
        program = f"{self.dir}/{self.program_name(work, flags, dropout)}"
        settings = [f"--set={s}" for s in work.settings]
        self.say([self.tenon, "build", source, *self.target, "--batch", str(work.batch), *settings, *flags, "-o", program])
        return program

    def build_yardstick(self, peer):
        compiler = "g++" if peer.source.endswith(".cpp") else "gcc"
        march = "-march=haswell" if self.capped else "-march=native"
        program = f"{self.dir}/{peer.source.rsplit('.', 1)[0]}"
        if shutil.which(compiler) is None:
            raise Failed(f"not installed ({compiler})")
        try:
            self.say([compiler, "-O3", march, "-ffast-math", "-fopenmp", f"{self.root}/bench/yardsticks/{peer.source}", "-o", program]
                     + [f"-l{x}" for x in peer.libraries] + ["-lm"])
        except Failed as e:
            raise Failed(f"not installed ({e})")
        return program


class Tenon:
    """A program of Tenon: each request starts a process."""

    def __init__(self, bench, work, threads, flags=(), dropout=True, place=None, options=()):
        self.bench, self.threads, self.options = bench, threads, options
        self.samples = ("--data", place) if place else ()   # samples of the timed steps: those of the peers, or synthetic ones
        self.program = bench.build_model(work, list(flags), dropout)
        self.log = f"{self.program}.jsonl"
        self.first = 2 if work.deep else 20           # steps of the first burst
        self.steps = 0                                # number of steps in about a second

    def run(self, *words):
        env = {k: v for k, v in os.environ.items() if k != "TENON_DATA"}
        return self.bench.say([self.program, *words], env=env, preexec_fn=self.bench.pin(self.threads))

    def records(self, event):
        with open(self.log) as f:
            return [r for r in map(json.loads, f) if r["event"] == event]

    def info(self):
        """Lines of `info` as a dictionary, and the names of the parameters."""
        text = self.run("info")
        facts = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        return facts, [line.split()[0] for line in text.split("weights:\n", 1)[1].splitlines()]

    def initial(self, place, path):
        self.run("--data", place, "--epochs", "0", "--save", path)

    def check(self, steps, batch, place):
        self.run("--data", place, "--threads", str(self.threads), "--shuffle", "off", "--epochs", "1", "--limit-samples",
                 str(steps * batch), "--log", self.log, "--log-steps", "1", *self.options)
        return [r["train_loss"] for r in self.records("step")]

    def gradient(self, place):
        """Returns the norm of the first batch's gradients."""
        path = f"{place}/gradient.safetensors"
        self.run("grads", "--data", place, "--weights", f"{place}/initial.safetensors", "--output", path)
        return norm(path)

    def measured(self, steps):
        if os.path.exists(self.log):
            os.remove(self.log)
        self.run("bench", *self.samples, "--threads", str(self.threads), "--steps", str(steps), "--log", self.log, *self.options)
        return self.records("bench")[-1]

    def time(self, seconds):
        if not self.steps:
            first = max(2, round(self.first * min(1, seconds * 8)))   # short bursts begin with few steps
            self.steps = 1e3 / self.measured(first)["step_ms_mean"]
        steps = max(2, round(seconds * self.steps))
        mean = self.measured(steps)["step_ms_mean"] / 1e3
        self.steps = 1 / mean
        return steps, steps * mean

    def peak(self):
        """Measures the GFLOP/s of fused multiply-adds in registers, of all threads."""
        return self.measured(1)["fma_peak_gflops"]

    def stop(self):
        pass


class Running:
    """A peer: a process that answers requests, one on each line.  It is stopped (SIGSTOP) between requests."""

    patience = PATIENCE

    def __init__(self, bench, peer, command, work, threads, dropout, place):
        self.name, self.buffer = peer.name, b""
        self.errors = f"{bench.dir}/{work.model}-{work.batch}-{peer.name.replace(' ', '-').replace(',', '')}.err"
        words = [work.model, work.layer or peer.mode, str(work.batch), str(threads), "1" if dropout else "0", place]
        with open(self.errors, "w") as errors:
            self.process = subprocess.Popen(command + words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                            env=bench.environment(threads, peer.env), preexec_fn=bench.pin(threads))
        bench.started.append(self.process)
        self.versions = json.loads(self.answer("ready"))
        self.process.send_signal(signal.SIGSTOP)

    def last_words(self):
        with open(self.errors, errors="replace") as f:
            lines = [line.strip() for line in f if line.strip()]
        return lines[-1][:200] if lines else "it said nothing"

    def answer(self, word):
        until = time.monotonic() + self.patience
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))
            if not ready:
                self.stop()
                raise Failed(f"no answer in {self.patience} s")
            part = os.read(self.process.stdout.fileno(), 4096)
            if not part:
                self.stop()
                raise Failed(f"it ended: {self.last_words()}")
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\n", 1)
        first, _, rest = line.decode().partition(" ")
        if first != word:
            self.stop()
            raise Failed(f"'{line.decode()[:80]}' in place of '{word}'")
        return rest

    def ask(self, question, word):
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(question.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.stop()
            raise Failed(f"it ended: {self.last_words()}")
        rest = self.answer(word)
        self.process.send_signal(signal.SIGSTOP)
        return rest.split()

    def check(self, steps):
        return [float(x) for x in self.ask(f"check {steps}", "losses")]

    def gradient(self):
        return float(self.ask("gradient 1", "norm")[0])

    def time(self, seconds):
        steps, spent = self.ask(f"time {seconds}", "time")
        return int(steps), float(spent)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Absent:
    """Finds out once for each peer whether it can run on this machine."""

    def __init__(self, bench):
        self.bench, self.commands = bench, {}

    def command(self, peer):
        """Returns the command that starts the peer, or raises Failed("not installed ...")."""
        key = (peer.kind, peer.source, peer.mode if peer.source == "keras_step.py" else "")
        if key not in self.commands:
            try:
                self.commands[key] = self.find(peer)
            except Failed as e:
                self.commands[key] = e
        if isinstance(self.commands[key], Failed):
            raise self.commands[key]
        return self.commands[key]

    def find(self, peer):
        if peer.kind == "c":
            return [self.bench.build_yardstick(peer)]
        python = f"{self.bench.venvs[peer.venv]}/bin/python"
        if not os.path.exists(python):
            raise Failed("not installed (bench/run --install-peers)")
        module = {"torch_step.py": "torch", "jax_step.py": "jax", "tf_step.py": "tensorflow", "mxnet_step.py": "mxnet",
                  "keras_step.py": f"keras, {peer.mode}"}[peer.source]
        try:
            self.bench.say([python, "-c", f"import {module}"], env=self.bench.environment(1, peer.env))
        except Failed as e:
            raise Failed(f"not installed ({e})")
        return [python, f"{self.bench.root}/bench/peers/{peer.source}"]
