"""measure.py -- one network: compares what all programs compute, then times bursts in rounds, after a measurement of the FMA peak."""
import os
import time
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from inputs import write_samples, write_weights
from programs import Failed, Running, Tenon
from works import PEERS, Work

STEPS = 6                                             # steps that are compared: the first loss, and the loss after 5 updates


class Bounds(NamedTuple):
    """Allowed differences of these losses; for deep networks relative differences of the first loss (two modes of PyTorch differ by
    1.4e-5) and of the norm of the first gradient (Inception-v3: 1.5e-3)."""
    first: float = 1e-5
    later: float = 1e-3
    deep: float = 1e-4
    gradient: float = 5e-3


@dataclass
class Column:
    """A program in a work: how far its losses are from Tenon's, and its bursts or the reason why it has none."""
    name: str
    ours: bool = False
    further: bool = False
    why: str = ""                                     # reason: not installed, refused, failed
    first: float = 0.0                                # difference of the first loss
    later: float = 0.0                                # difference after 5 steps, or of the first gradient's norm
    versions: dict = field(default_factory=dict)
    bursts: list = field(default_factory=list)        # samples/s

    @property
    def rate(self):
        return median(self.bursts) if self.bursts else 0.0


@dataclass
class Measured:
    work: Work
    threads: int
    flops: float = 0.0                                # of a sample, nominal
    losses: list = field(default_factory=list)        # losses of Tenon
    columns: list = field(default_factory=list)       # the first is Tenon
    peaks: list = field(default_factory=list)         # GFLOP/s, one for each burst
    layers: str = ""                                  # output of `bench --layers`, if a goal was missed

    @property
    def tenon(self):
        return self.columns[0]

    @property
    def peak(self):
        return median(self.peaks)

    @property
    def best(self):
        """The fastest peer, or None."""
        return max((c for c in self.columns if not c.ours and not c.further and c.bursts), key=lambda c: c.rate, default=None)

    @property
    def ratio(self):
        return self.tenon.rate / self.best.rate if self.best else 0.0

    @property
    def share(self):
        return self.tenon.rate * self.flops / 1e9 / self.peak


def compare(column, losses, ours, bounds):
    """Refuses a program whose losses are not those of Tenon."""
    column.first, column.later = abs(losses[0] - ours[0]), abs(losses[-1] - ours[-1])
    if not column.first <= bounds.first:
        raise Failed(f"refused: its first loss is {losses[0]:.7f}, Tenon's {ours[0]:.7f}")
    if not column.later <= bounds.later:
        raise Failed(f"refused: its loss after {len(ours) - 1} steps is {losses[-1]:.5f}, Tenon's {ours[-1]:.5f}")


def compare_deep(column, loss, gradient, our_loss, our_gradient, bounds):
    """Compares the first loss and gradient only: the losses of deep networks differ after a few steps, because rounding decides single ReLUs."""
    column.first, column.later = abs(loss - our_loss) / our_loss, abs(gradient - our_gradient) / our_gradient
    if not column.first <= bounds.deep:
        raise Failed(f"refused: its first loss is {loss:.7f}, Tenon's {our_loss:.7f}")
    if not column.later <= bounds.gradient:
        raise Failed(f"refused: its first gradient has the norm {gradient:.6f}, Tenon's {our_gradient:.6f}")


def verdict(column, deep):
    later = "the first gradient's norm" if deep else f"after {STEPS - 1} steps"
    return column.why or f"first loss differs by {column.first:.1e}, {later} by {column.later:.1e}"


class Session:
    """A work whose programs are running."""

    def __init__(self, bench, absent, work, chosen, say, peers=PEERS):
        self.bench, self.absent, self.work, self.say = bench, absent, work, say
        self.threads = work.threads or len(bench.processors)
        self.result = Measured(work, self.threads)
        self.place = f"{bench.dir}/{work.model}-{work.batch}{'-no-zeros' if work.no_zeros else ''}-data"
        self.alive = []                               # (column, program)
        self.peers = [p for p in peers if work.model in p.models and chosen(p)]

    def start_ours(self):
        """Starts Tenon; losses are compared without dropout.  All other programs start from its initial weights."""
        os.makedirs(self.place, exist_ok=True)
        write_samples(self.bench.root, self.work, self.place)
        self.dropout = self.work.model in ("mlp_wide", "lstm_imdb")
        twin = Tenon(self.bench, self.work, self.threads, dropout=not self.dropout, place=self.place)
        twin.initial(self.place, f"{self.place}/initial.safetensors")
        write_weights(f"{self.place}/initial.safetensors", twin.info()[1], f"{self.place}/weights.npy")
        self.ours = twin.check(1 if self.work.deep else STEPS, self.work.batch, self.place)
        self.gradient = twin.gradient(self.place) if self.work.deep else 0.0
        program = Tenon(self.bench, self.work, self.threads, place=self.place) if self.dropout else twin
        self.result.losses, self.result.flops = self.ours, float(program.info()[0]["flops per sample"])
        self.keep(Column("tenon", ours=True), program)
        self.say(f"  tenon: losses {' '.join(f'{x:.6f}' for x in self.ours)}")

    def keep(self, column, program):
        self.result.columns.append(column)
        self.alive.append((column, program))

    def start(self, peer):
        self.take(*self.tried(peer))

    def tried(self, peer):
        """Starts and compares a peer -> its column, and the program or None"""
        column, began = Column(peer.name, ours=peer.ours, further=peer.further), time.monotonic()
        program = None
        try:
            program = self.checked(peer, column)
        except Failed as e:
            column.why = str(e)
        self.say(f"  {peer.name}: {verdict(column, self.work.deep)} ({time.monotonic() - began:.0f} s)")
        return column, program

    def take(self, column, program):
        if program:
            self.keep(column, program)
        else:
            self.result.columns.append(column)

    def bounds(self, _peer):
        return Bounds()

    def checked(self, peer, column):
        if peer.ours:
            flags, options = peer.source.split(), [] if peer.mode == "-" else peer.mode.split()
            twin = Tenon(self.bench, self.work, self.threads, flags, dropout=not self.dropout, place=self.place, options=options)
            if self.work.deep:
                compare_deep(column, twin.check(1, self.work.batch, self.place)[0], twin.gradient(self.place), self.ours[0], self.gradient, self.bounds(peer))
            else:
                compare(column, twin.check(STEPS, self.work.batch, self.place), self.ours, self.bounds(peer))
            return Tenon(self.bench, self.work, self.threads, flags, place=self.place, options=options) if self.dropout else twin
        command = self.absent.command(peer)
        program = Running(self.bench, peer, command, self.work, self.threads, False, self.place)
        column.versions = program.versions
        try:
            if self.work.deep:
                compare_deep(column, program.check(1)[0], program.gradient(), self.ours[0], self.gradient, self.bounds(peer))
            else:
                compare(column, program.check(STEPS), self.ours, self.bounds(peer))
        except Failed:
            program.stop()
            raise
        if not self.dropout:
            return program
        program.stop()                                # the program that is timed applies dropout, as Tenon's does
        return Running(self.bench, peer, command, self.work, self.threads, True, self.place)

    def burst(self, column, program, seconds, warm):
        try:
            steps, spent = program.time(seconds)
        except Failed as e:
            column.why, column.bursts = str(e), []
            self.alive = [(c, p) for c, p in self.alive if c is not column]
            self.say(f"  {column.name}: {e}")
            return
        if not warm:
            column.bursts.append(steps * self.work.batch / spent)

    def between(self, clock):
        """To be called before each burst that counts."""
        self.result.peaks.append(clock.peak())

    def rounds(self, rounds, seconds):
        """Measures the rounds.  Each round starts with another program; a first round warms up and does not count."""
        clock = self.alive[0][1]
        for i in range(rounds + 1):
            turn = i % len(self.alive)
            for column, program in self.alive[turn:] + self.alive[:turn]:
                if i:
                    self.between(clock)
                self.burst(column, program, seconds if i else seconds / 4, warm=i == 0)

    def stop(self):
        for _, program in self.alive:
            program.stop()


def measure(bench, absent, work, chosen, rounds, seconds, say):
    """-> Measured"""
    session = Session(bench, absent, work, chosen, say)
    try:
        session.start_ours()
        for peer in session.peers:
            session.start(peer)
        if rounds:
            session.rounds(rounds, seconds)
        return session.result
    finally:
        session.stop()
