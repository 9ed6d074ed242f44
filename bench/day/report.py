"""report.py -- bench/first-day report RESULTS: the results of a first day as Markdown, for bench/GPU.md.  Exit code 1 if a check failed."""
import csv
import io
import json
import os
import sys
from collections import defaultdict

# What bench/day/constants.cu measures, in words, with what the predictions assume (compiler/cuda/roofline.c).
CONSTANTS = {
    "graph_kernel_us": ("a kernel of one block in a CUDA graph, us", "1.3"),
    "graph_kernel_all_processors_us": ("a kernel with a block on each multiprocessor, in a graph, us", "1.3"),
    "stream_kernel_us": ("a kernel that the host launches, us", ""),
    "graph_launch_and_wait_us": ("launching a graph and waiting for its end, us", "30"),
    "grid_barrier_us": ("a barrier of all blocks, one on each multiprocessor, us", "1.3"),
    "grid_barrier_two_blocks_each_us": ("the same, two on each, us", "1.3"),
    "cluster_barrier_8_us": ("a barrier of a cluster of 8 blocks, us", "0.3"),
    "cluster_barrier_16_us": ("a barrier of a cluster of 16 blocks, us", "0.3"),
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


def lines(path):
    """The records of a part; a part that was killed can end in half a line."""
    found = []
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    print(f"{path}: a line that is not JSON: {line[:60]!r}")
    return found


def of_forms(records):
    """Part a: a row for each form, with how many checks passed and the farthest that passed."""
    forms = defaultdict(list)
    for r in records:
        forms[r["name"].rsplit(".", 1)[1], r["what"]].append(r)
    rows = []
    for (form, what), some in sorted(forms.items()):
        passed = [r for r in some if r["ok"]]
        far = max(passed, key=lambda r: float(r["value"] or 0), default=None)
        rows.append((form, what, len(some), len(some) - len(passed), f"{far['value']} ({far['name']})" if far else ""))
    table(("form", "compared", "programs", "failed", "farthest of those that passed"), rows)


def kernels(path):
    """A kernel in ncu's table: its time, and shares of the GPU's rates."""
    with open(path) as f:
        text = f.read()
    begin = text.find('"ID"')
    if begin < 0:
        return
    runs = {}
    for row in csv.DictReader(io.StringIO(text[begin:])):
        if row.get("ID", "").isdigit():
            runs.setdefault((row["ID"], row["Kernel Name"]), {})[row["Metric Name"]] = row["Metric Value"]
    print(f"{os.path.basename(path)[8:-4]}:\n")
    table(("kernel", "blocks", "us", "arithmetic, % of peak", "memory, % of peak", "registers"),
          [(name.split("(")[0], m.get("launch__grid_size"), round(float(m["gpu__time_duration.sum"].replace(",", "")) / 1e3, 2),
            m.get("sm__throughput.avg.pct_of_peak_sustained_elapsed"), m.get("dram__throughput.avg.pct_of_peak_sustained_elapsed"),
            m.get("launch__registers_per_thread")) for (_, name), m in runs.items() if "gpu__time_duration.sum" in m])


def main(place):
    failed = []
    with open(f"{place}/machine.txt") as f:
        print("Machine: " + "; ".join(f.read().split("\n")) + "\n")
    parts = {part: lines(f"{place}/{part}.jsonl") for part in "abcdfgpt"}
    for part, records in parts.items():
        failed += [r for r in records if not r["ok"]]
    if parts["a"]:
        of_forms(parts["a"])
    for part in "b", "d", "f", "g", "t":
        if parts[part]:
            table(("program", "checked", "result", "value", "goal", "s", "note"),
                  [(r["name"], r["what"], "passed" if r["ok"] else "failed", r["value"], r["bound"], r["seconds"], r["note"][:60]) for r in parts[part]])
    if os.path.exists(f"{place}/constants.json"):
        with open(f"{place}/constants.json") as f:
            measured = json.load(f)
        table(("constant", "measured", "assumed"), [(CONSTANTS[k][0], number(v), CONSTANTS[k][1]) for k, v in measured.items()])
    for name in sorted(os.listdir(place)):
        if name.startswith("kernels."):
            kernels(f"{place}/{name}")
    if os.path.exists(f"{place}/gpu.json"):
        with open(f"{place}/gpu.json") as f:
            rows = json.load(f)["rows"]
        table(("model", "batch", "program", "samples/s", "least", "most", "note"),
              [(r["model"], r["batch"], r["program"], f"{r.get('samples_per_s', 0):,.0f}", r.get("least", ""), r.get("most", ""), r.get("why", "")) for r in rows])
    for r in failed:
        print(f"failed: part {r['part']}: {r['name']}, {r['what']}: {r['value']} (bound {r['bound']}) {r['note']}")
    return 1 if failed else 0


if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
    sys.exit("usage: bench/first-day report DIRECTORY")
sys.exit(main(sys.argv[1]))
