"""report.py -- bench/first-day report RESULTS: the results of a first day as Markdown, for bench/GPU.md.

Exit code 1 if a check failed or a file cannot be read; the other files are shown all the same.
"""
import csv
import io
import glob
import json
import os
import re
import sys
from collections import defaultdict

GPU = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../compiler/ir/gpu.c")
FIELDS = ("part", "name", "what", "value", "bound", "seconds", "note")
broken = []                                           # what could not be read: file and reason

# What bench/day/constants.cu measures, in words, with what the predictions assume: a figure, or a name of compiler/ir/gpu.c.
CONSTANTS = {
    "graph_kernel_us": ("a kernel of one block in a CUDA graph, us", "KERNEL_S"),
    "graph_kernel_all_processors_us": ("a kernel with a block on each multiprocessor, in a graph, us", "KERNEL_S"),
    "stream_kernel_us": ("a kernel that the host launches, us", ""),
    "graph_launch_and_wait_us": ("launching a graph and waiting for its end, us", "30"),
    "grid_barrier_us": ("a barrier of all blocks, one on each multiprocessor, us", "BARRIER_S"),
    "grid_barrier_two_blocks_each_us": ("the same, two on each, us", "BARRIER_S"),
    "cluster_barrier_8_us": ("a barrier of a cluster of 8 blocks, us", "CLUSTER_S"),
    "cluster_barrier_16_us": ("a barrier of a cluster of 16 blocks, us", "CLUSTER_S"),
    "block_barrier_us": ("a barrier of a block, us", ""),
    "f32_flop_per_s": ("f32, FLOP/s", "67 T"),
    "tf32_mma_sync_flop_per_s": ("tf32 by mma.sync, FLOP/s", "494 T"),
    "bf16_mma_sync_flop_per_s": ("bf16 by mma.sync, FLOP/s", "790 T"),
    "copy_by_driver_bytes_per_s": ("copy by the driver, bytes/s read and written", ""),
    "copy_16_bytes_a_thread_bytes_per_s": ("copy, 16 bytes a thread and iteration", ""),
    "copy_4_bytes_a_thread_bytes_per_s": ("copy, 4 bytes a thread and iteration", ""),
    "read_bytes_per_s": ("reading memory, bytes/s", ""),
    "read_l2_bytes_per_s": ("reading 16 MB again and again, bytes/s", ""),
    "host_to_gpu_pinned_bytes_per_s": ("host to GPU, pinned, bytes/s", "64 G"),
    "gpu_to_host_pinned_bytes_per_s": ("GPU to host, pinned, bytes/s", ""),
    "host_to_gpu_pageable_bytes_per_s": ("host to GPU, pageable, bytes/s", ""),
    "kilobyte_back_and_wait_pinned_us": ("1 KB to the host and waiting for it, pinned, us", ""),
    "kilobyte_back_and_wait_pageable_us": ("1 KB to the host and waiting for it, pageable, us", ""),
    "clock_hz_after_load": ("clock after load, Hz", ""),
    "processors": ("multiprocessors", "132"),
}


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(x) for x in row) + " |")
    print()


def number(x):
    for size, letter in (1e12, " T"), (1e9, " G"), (1e6, " M"):
        if x >= size:
            return f"{x / size:.3g}{letter}"
    return f"{x:.3g}"


def figure(text):
    """-> the number, or None if the text is no number: programs also write n/a"""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def guarded(show, path):
    """Calls show(path).  If the file does not have the right form, notes its name, and the report goes on."""
    try:
        return show(path)
    except OSError as e:
        broken.append(f"{path}: {e.strerror}")
    except (ValueError, LookupError, TypeError, AttributeError, csv.Error) as e:
        broken.append(f"{path}: {type(e).__name__}: {e}")
        return []


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def record(line):
    r = json.loads(line)                              # of bytes: UTF-8, or a ValueError
    if not isinstance(r, dict) or not isinstance(r.get("ok"), bool) or not all(isinstance(r.get(k), str) for k in FIELDS):
        raise ValueError("no record of a check")
    return r


def records(path):
    """The records of a part; notes the lines that are no records."""
    found = []
    with open(path, "rb") as f:
        for i, line in enumerate(f, 1):
            try:
                found.append(record(line))
            except ValueError as e:
                broken.append(f"{path}:{i}: {e}: {line[:60]!r}")
    return found


def of_forms(some):
    """Part a: a row for each form, with the number of checks, how many failed, and the largest distance of those that passed."""
    forms = defaultdict(list)
    for r in some:
        forms[r["name"].rpartition(".")[2], r["what"]].append(r)
    rows = []
    for (form, what), some in sorted(forms.items()):
        passed = [r for r in some if r["ok"]]
        far = max(passed, key=lambda r: figure(r["value"]) or 0, default=None)
        rows.append((form, what, len(some), len(some) - len(passed), f"{far['value']} ({far['name']})" if far else ""))
    table(("form", "compared", "programs", "failed", "farthest of those that passed"), rows)


def constants(path):
    assumed = {name: f"{1e6 * float(value):g}" for name, value in re.findall(r"#define (\w+_S) +(\S+)", read(GPU))}
    words = {k: (what, assumed.get(value, value)) for k, (what, value) in CONSTANTS.items()}
    table(("constant", "measured", "assumed"),
          [(words.get(k, (k,))[0], number(v), words.get(k, ("", ""))[1]) for k, v in json.loads(read(path)).items()])


def kernels(path):
    """A kernel in ncu's table: its time, and shares of the GPU's rates."""
    text = read(path)
    begin = text.find('"ID"')
    if begin < 0:
        raise ValueError("no table of ncu")
    runs = {}
    for row in csv.DictReader(io.StringIO(text[begin:])):
        if (row["ID"] or "").isdigit():
            runs.setdefault((row["ID"], row["Kernel Name"]), {})[row["Metric Name"]] = row["Metric Value"]
    rows = []
    for (_, name), m in runs.items():
        if "gpu__time_duration.sum" in m:
            ns = figure(m["gpu__time_duration.sum"])
            rows.append((name.split("(")[0], m.get("launch__grid_size"), "n/a" if ns is None else round(ns / 1e3, 2),
                         m.get("sm__throughput.avg.pct_of_peak_sustained_elapsed"),
                         m.get("dram__throughput.avg.pct_of_peak_sustained_elapsed"),
                         m.get("launch__registers_per_thread")))
    print(f"{os.path.basename(path)[8:-4]}:\n")
    table(("kernel", "blocks", "us", "arithmetic, % of peak", "memory, % of peak", "registers"), rows)


def steps(path):
    """What bench/gpu has measured."""
    table(("model", "batch", "program", "samples/s", "least", "most", "note"),
          [(r["model"], r["batch"], r["program"], f"{r.get('samples_per_s', 0):,.0f}", *(r.get(k, "") for k in ("least", "most", "why")))
           for r in json.loads(read(path))["rows"]])


def timed_by_threads(some):
    """-> {network: {program: {threads: ms}}}, {network: {threads: GFLOP/s}}; Tenon's program is ''."""
    ms, peaks = defaultdict(lambda: defaultdict(dict)), defaultdict(dict)
    for r in some:
        what = re.fullmatch(r"(?:(\w+), )?(\d+) threads, ms", r["what"])
        if what and r["ok"] and (figure(r["value"]) or 0) > 0:
            ms[r["name"]][what[1] or ""][int(what[2])] = figure(r["value"])
            peak = re.search(r'"fma_peak_gflops":([0-9.]+)', r["note"])
            if peak:
                peaks[r["name"]][int(what[2])] = figure(peak[1])
    return ms, peaks


def figures_of(ms, peaks, threads):
    """'ms (speed-up; speed-up by growth of the peak)', as far as they are known"""
    if threads not in ms:
        return ""
    text = f"{ms[threads]:,.4g}"
    if threads > 1 and 1 in ms:
        gain = ms[1] / ms[threads]
        text += f" ({gain:.2f}"
        text += f"; {gain / (peaks[threads] / peaks[1]):.2f})" if peaks.get(1) and peaks.get(threads) else ")"
    return text


def processors(some):
    """Part t: steps by threads, then samples/s beside the peers."""
    ms, peaks = timed_by_threads(some)
    counts = sorted({t for of in ms.values() for t in of[""]})
    words = {name: name.rpartition("-")[::2] if re.search(r"-\d+$", name) else (name, "") for name in ms}
    print("Tenon's steps by threads: ms, the median; in parentheses the speed-up over one thread, and the speed-up divided by the growth of the peak "
          "of multiply-adds, which is measured with each step.\n")
    table(("network", "batch", *(f"{t} thread{'s' * (t > 1)}" for t in counts)),
          [(*words[name], *(figures_of(of[""], peaks[name], t) for t in counts)) for name, of in ms.items()])
    peers = sorted({p for of in ms.values() for p in of if p})
    rows = []
    for threads in sorted({t for of in ms.values() for p in peers for t in of[p]}, reverse=True):
        for name, of in ms.items():
            rate = {p: int(words[name][1]) * 1e3 / of[p][threads] for p in ("", *peers) if words[name][1] and threads in of[p]}
            best = max((rate[p] for p in peers if p in rate), default=0)
            if best:
                rows.append((*words[name], threads, *(f"{rate[p]:,.{0 if rate[p] >= 100 else 1}f}" if p in rate else "-" for p in ("", *peers)),
                             f"{rate[''] / best:.2f}" if "" in rate else "-"))
    if rows:
        print("Samples per second beside PyTorch and JAX; the ratio is Tenon's over the fastest other program's.\n")
        table(("network", "batch", "threads", "Tenon", *peers, "ratio"), rows)
    for r in some:
        if r["ok"] and r["name"] == "peers":
            print(f"{r['note']}\n")


def main(place):
    guarded(lambda path: print("Machine: " + "; ".join(read(path).split("\n")) + "\n"), f"{place}/machine.txt")
    runs = {}                                         # of each part: the files of one or several runs, as first.a.jsonl, second.a.jsonl
    for part in "abcdfgpt":
        files = sorted(glob.glob(f"{glob.escape(place)}/{part}.jsonl") + glob.glob(f"{glob.escape(place)}/*.{part}.jsonl"))
        runs[part] = [guarded(records, path) for path in files]
    parts = {part: [r for some in of for r in some] for part, of in runs.items()}
    if parts["a"]:
        of_forms(parts["a"])
    for part in "b", "d", "f", "g":
        if parts[part]:
            table(("program", "checked", "result", "value", "goal", "s", "note"),
                  [(r["name"], r["what"], "passed" if r["ok"] else "failed", r["value"], r["bound"], r["seconds"], r["note"][:60])
                   for r in parts[part]])
    for some in filter(None, runs["t"]):
        processors(some)                              # a table for each run
    for show, pattern in (constants, "constants.json"), (kernels, "kernels.*.csv"), (steps, "gpu.json"):
        for path in sorted(glob.glob(f"{glob.escape(place)}/{pattern}")):
            guarded(show, path)
    failed = [r for some in parts.values() for r in some if not r["ok"]]
    for r in failed:
        print(f"failed: part {r['part']}: {r['name']}, {r['what']}: {r['value']} (bound {r['bound']}) {r['note']}")
    for what in broken:
        print(f"cannot be read: {what}")
    return 1 if failed or broken else 0


if len(sys.argv) == 2 and sys.argv[1] in ("-h", "--help"):
    print("usage: bench/first-day report DIRECTORY\n\n" + __doc__)
    sys.exit(0)
if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
    sys.exit("usage: bench/first-day report DIRECTORY")
sys.exit(main(sys.argv[1]))
