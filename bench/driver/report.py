"""report.py -- the results as text, CSV, JSON and RESULTS.md."""
import csv
import json
import os
import re
import textwrap

from measure import Column, Measured
from works import PEERS, WORKS

BY_HAND = "<!-- bench/run keeps everything below this line -->"      # in RESULTS.md: the text below this line is written by hand
WIDTH = 140                                                          # most characters of a line in RESULTS.md
SMALL = 1.0                                                          # percent of a step: smaller calls share one row of an account


def count(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.1f}"


def outcome(ratio, must, aim):
    return "aim reached" if ratio >= aim else "reached" if ratio >= must else "**missed**"


def table(r):
    """A work as lines for the terminal."""
    lines = []
    for c in sorted(r.columns, key=lambda c: -c.rate):
        if c.bursts:
            over = "" if c is r.tenon else f"   tenon: {r.tenon.rate / c.rate:.2f}x"
            lines.append(f"  {c.name:28}{count(c.rate):>10} samples/s  [{count(min(c.bursts))} .. {count(max(c.bursts))}]{over}")
    lines.append(f"  {r.share:.2f} of the FMA peak, {r.peak:.0f} GFLOP/s [{min(r.peaks):.0f} .. {max(r.peaks):.0f}] on {r.threads} thread{'s' * (r.threads > 1)}")
    return "\n".join(lines) + "\n"


def rows(results):
    for r in results:
        for c in r.columns:
            gflops = c.rate * r.flops / 1e9
            yield {
                "model": r.work.model, "batch": r.work.batch, "threads": r.threads, "program": c.name,
                "samples_per_s": round(c.rate, 1) or "", "least": round(min(c.bursts, default=0), 1) or "",
                "most": round(max(c.bursts, default=0), 1) or "", "rounds": len(c.bursts),
                "tenon_over_it": round(r.tenon.rate / c.rate, 3) if c.bursts else "",
                "gflops": round(gflops, 2) if c.bursts else "", "share_of_peak": round(gflops / r.peak, 4) if c.bursts else "",
                "fma_peak_gflops": round(r.peak, 1), "first_loss_differs": c.first, "later_loss_differs": c.later, "note": c.why,
            }


def versions(results):
    found = {}
    for r in results:
        for c in r.columns:
            found.update(c.versions)
    return found


def write_csv(path, results):
    lines = list(rows(results))
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, list(lines[0]), lineterminator="\n")
        w.writeheader()
        w.writerows(lines)


def write_json(path, facts, results, v3, extras, how):
    works = [{
        "work": r.work.name, "model": r.work.model, "batch": r.work.batch, "threads": r.threads, "flops_per_sample": r.flops, "losses": r.losses,
        "fma_peak_gflops": r.peaks, "ratio": r.ratio, "share_of_peak": r.share,
        "programs": [{"program": c.name, "ours": c.ours, "samples_per_s": c.bursts, "note": c.why, "first_loss_differs": c.first,
                      "later_loss_differs": c.later} for c in r.columns],
        "layers": r.layers,
    } for r in results]
    with open(path, "w") as f:
        json.dump({"command": how, "avx2": v3, "machine": facts, "versions": versions(results), "works": works, **extras}, f, indent=1)
        f.write("\n")


def read_json(path):
    """Reads a file of write_json -> its arguments: facts, results, v3, extras, how."""
    with open(path) as f:
        found = json.load(f)
    further = {p.name for p in PEERS if p.further}
    results = []
    for w in found["works"]:
        r = Measured(next(x for x in WORKS if x.name == w["work"]), w["threads"], w["flops_per_sample"], w["losses"],
                     peaks=w["fma_peak_gflops"], layers=w["layers"])
        r.columns = [Column(p["program"], p["ours"], p["program"] in further, p["note"], p["first_loss_differs"], p["later_loss_differs"],
                            found["versions"], p["samples_per_s"]) for p in w["programs"]]
        results.append(r)
    extras = {k: found[k] for k in ("builds", "convolutions")}
    return found["machine"], results, found["avx2"], extras, found["command"]


# ---- RESULTS.md

def goals(results, v3, extras):
    """The table of goals."""
    yield "| work | must | aim | measured | fastest other program | |"
    yield "|---|---|---|---|---|---|"
    for r in results:
        must, aim, share = r.work.wanted(v3)
        if r.best:
            yield f"| {r.work.name} | {must}x | {aim}x | {r.ratio:.2f}x | {r.best.name} | {outcome(r.ratio, must, aim)} |"
        else:
            yield f"| {r.work.name} | {must}x | {aim}x | - | none ran | |"
        if share:
            yield f"| {r.work.name}, nominal share of the FMA peak | {share[0]} | {share[1]} | {r.share:.2f} | | {outcome(r.share, *share)} |"
    for c in extras.get("convolutions", []):
        yield (f"| ResNet-50's convolutions at {c['size']}, time of oneDNN over Tenon's | 1.3x | 1.8x | {c['sum']:.2f}x | oneDNN "
               f"| {outcome(c['sum'], 1.3, 1.8)} |")
        yield f"| the slowest of these, `{c['at']}` | 0.9x | 0.9x | {c['least']:.2f}x | oneDNN | {outcome(c['least'], 0.9, 0.9)} |"
        yield (f"| the same with `--fast`; oneDNN uses Winograd where that is faster | | 2.2x | {c['fast']:.2f}x | oneDNN "
               f"| {'aim reached' if c['fast'] >= 2.2 else ''} |")
    for name, value, must, aim, unit in extras["builds"]:
        yield f"| {name} | {must:g} {unit} | {aim:g} {unit} | {value:.3g} {unit} | | {outcome(-value, -must, -aim)} |"


def spread(c):
    return f"{count(c.rate)} [{count(min(c.bursts))}..{count(max(c.bursts))}]"


def fastest(results):
    """A row for each work: Tenon and the fastest other program."""
    yield "| work | Tenon | fastest other program | its samples/s | FMA peak, GFLOP/s | nominal share |"
    yield "|---|---|---|---|---|---|"
    for r in results:
        other = f"{r.best.name} | {spread(r.best)}" if r.best else "none ran | -"
        yield f"| {r.work.name} | {spread(r.tenon)} | {other} | {r.peak:.0f} [{min(r.peaks):.0f}..{max(r.peaks):.0f}] | {r.share:.2f} |"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def programs(results):
    """Tables of the other programs, with a row for each work, and as many columns as fit into WIDTH."""
    names = []
    for r in results:
        names += [c.name for c in r.columns[1:] if c.name not in names]
    cells = {(r.work.name, c.name): count(c.rate) if c.bursts else c.why.split(":")[0].split(" (")[0] for r in results for c in r.columns}

    def rows_of(chosen):
        yield ["work", *chosen]
        for r in results:
            if any((r.work.name, n) in cells for n in chosen):
                yield [r.work.name, *(cells.get((r.work.name, n), "-") for n in chosen)]

    while names:
        n = max([k for k in range(1, len(names) + 1) if all(len(line(row)) <= WIDTH for row in rows_of(names[:k]))], default=1)
        head, *body = rows_of(names[:n])
        yield ""
        yield line(head)
        yield "|---" * (n + 1) + "|"
        yield from map(line, body)
        names = names[n:]


def differences(results):
    """How far the other programs' losses are from Tenon's."""
    yield "| work | Tenon's first loss | difference | Tenon's loss after 5 steps | difference | norm of the first gradient: difference |"
    yield "|---|---|---|---|---|---|"
    for r in results:
        peers = [c for c in r.columns[1:] if not c.why]
        first, later = max((c.first for c in peers), default=0), max((c.later for c in peers), default=0)
        rest = f"- | - | {later:.1e}" if r.work.deep else f"{r.losses[-1]:.5f} | {later:.1e} | -"
        yield f"| {r.work.name} | {r.losses[0]:.5f} | {first:.1e} | {rest} |"
    out = [f"- {r.work.name}, {c.name}: {c.why}" for r in results for c in r.columns if c.why]
    if out:
        yield "\nPrograms that were refused, or did not run:\n"
        yield from out


def account(layers):
    """The output of `bench --layers` as a table: calls of at least SMALL percent, the others in one row, then the waiting."""
    head, calls, waiting, small = [], [], [], []
    for text in layers.strip().split("\n"):
        m = re.match(r" *([0-9.]+) ms +([0-9.]+) %(?: +([0-9.]+) ms)?(?: +([0-9.]+) +([0-9]+) %)? +(.*)", text)
        if not m:
            head += [text] * (len(head) < 2)
            continue
        ms, share, predicted, gflops, peak, rest = m.groups(default="")
        call = re.match(r"(.*\S) +(\S+) +(\S+\.tn:[0-9]+) *(.*)", rest)
        if call:
            row = [*call.group(1, 2, 3), ms, f"{share} %", predicted, gflops, f"{peak} %" * bool(peak)]
        else:
            row = [*(re.split("  +", rest.strip()) + [""])[:2], "", ms, f"{share} %", predicted, "", ""]
        if rest.startswith("in all"):
            waiting.append(["**step**", *row[1:]])
        elif float(share) < SMALL:
            small.append((float(ms), float(share), float(predicted or 0)))
        else:
            (calls if predicted else waiting).append(row)
    text = " ".join(h.rstrip(".") + "." for h in head)
    text = re.sub(r"; the FMA peak of these processors is ([0-9.]+): ([0-9]+ %)", r", \2 of the FMA peak of these processors (\1)", text)
    yield from wrapped(re.sub(r"\b1 threads", "1 thread", text))
    yield ""
    yield "| call | kernel | line of the model | ms | share | predicted ms | GFLOP/s | of the FMA peak |"
    yield "|---|---|---|---|---|---|---|---|"
    yield from map(line, calls)
    if small:
        ms, share, predicted = map(sum, zip(*small))
        yield line([f"{len(small)} other calls, each below {SMALL:g} %", "", "", f"{ms:.3f}", f"{share:.1f} %", f"{predicted:.3f}", "", ""])
    yield from map(line, waiting)


def kept(path):
    """The text below the line BY_HAND."""
    try:
        with open(path) as f:
            text = f.read()
    except OSError:
        return ""
    return text[text.index(BY_HAND) + len(BY_HAND):].strip("\n") if BY_HAND in text else ""


def wrapped(text):
    return textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)


def command(how):
    """A command line; options on lines of their own, if one line is too long."""
    return how if len(how) <= WIDTH else " \\\n    ".join(re.split(r" (?=--)", how))


def markdown(facts, results, v3, extras, how, by_hand):
    yield "# Results: Tenon beside other frameworks\n"
    yield "This document compares the measured speed of Tenon's training steps with that of other programs, and lists the"
    yield "goals that were missed. [README.md](README.md) describes the method.\n"
    yield "`bench/run` writes the first part, which ends with the accounts. All figures of that part come from one run; the raw"
    yield "figures are in [results.json](results.json) and [results.csv](results.csv). The second part is written by hand: later"
    yield "measurements, a second machine, reasons.\n"
    yield "## Machine of the first part\n"
    yield "| | |"
    yield "|---|---|"
    for name, value in {**facts, **versions(results)}.items():
        yield f"| {name} | {value} |"
    yield f"\nTo measure again:\n\n```sh\n{command(how)}\n```\n"
    yield "## Goals\n"
    yield "A figure with x is a ratio: Tenon's median samples/s divided by that of the fastest other program, or oneDNN's time"
    yield "divided by Tenon's. `must` is required, `aim` is desired. A row that does not reach `must` is marked as missed.\n"
    yield "| name of a row | meaning |"
    yield "|---|---|"
    yield "| `lenet B=128` | a training step with a batch of 128, on all processors |"
    yield "| `lenet B=128, 1 thread` | the same on one thread, pinned to one processor |"
    yield "| `lstm layer, f, b, 40,60,128` | forward and backward pass of one LSTM layer: 40 time steps, 60 features, width 128 |"
    yield ("| `r224/1x1/2 512->256 @28 w` | a convolution of ResNet-50 at 224 x 224: 1x1 filters, stride 2, "
           "512 to 256 channels, 28 x 28 pixels |")
    yield "| `f`, `d`, `w` of a convolution | forward pass, gradient of the data, gradient of the weights |\n"
    yield from goals(results, v3, extras)
    yield "\n## Samples per second\n"
    yield "Each cell holds a median, with the least and the most of the bursts in brackets. The *nominal share* divides the"
    yield "operations per second of the textbook algorithm by the FMA peak. The share can exceed 1, because Winograd's algorithm,"
    yield "pooling inside convolutions and leaving out zeros save operations.\n"
    yield from fastest(results)
    yield "\nMedians of the other programs in samples/s; results.csv has the least and the most of each. `-`: not written for"
    yield "this network."
    yield from programs(results)
    yield "\n## The same computation\n"
    yield "Each program starts from the same weights and takes the same batches. A difference is the largest one between Tenon"
    yield "and the other programs of the row. Networks with batch norm and single layers are compared by their first loss and"
    yield "the norm of their first gradient; both differences are relative.\n"
    yield from differences(results)
    missed = [r for r in results if r.layers]
    if missed:
        yield "\n## Accounts of the steps that missed a goal\n"
        yield "An account shows where the time of a step goes: the output of `PROG bench --layers`, from the same run. The predicted"
        yield "times are those of a Zen 4, in proportion to the FMA peak, without waiting. A call that needs fewer operations than"
        yield "the textbook algorithm can exceed 100 % of the peak. A `d` in front of a name, `dx` and `dw` mark gradients. `idle` is"
        yield "the time in which a thread finds no unit of work left in a phase ([the step](../docs/explain/step.md))."
    for r in missed:
        yield f"\n### {r.work.name}\n"
        yield from account(r.layers)
    yield f"\n{BY_HAND}\n\n{by_hand}".rstrip()


def missed(r, v3):
    must, _, share = r.work.wanted(v3)
    return bool(r.best and r.ratio < must or share and r.share < share[0])


def write(facts, results, out, v3, extras, how):
    os.makedirs(out, exist_ok=True)
    path = f"{out}/RESULTS.md"
    lines = list(markdown(facts, results, v3, extras, how, kept(path)))
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
    write_csv(f"{out}/results.csv", results)
    write_json(f"{out}/results.json", facts, results, v3, extras, how)
    print("\n".join(goals(results, v3, extras)))
    print(f"\nwritten: {path}, results.csv, results.json")


def again(out):
    """Writes RESULTS.md again from results.json; measures nothing."""
    facts, results, v3, extras, how = read_json(f"{out}/results.json")
    lines = list(markdown(facts, results, v3, extras, how, kept(f"{out}/RESULTS.md")))
    with open(f"{out}/RESULTS.md", "w") as f:
        f.write("\n".join(lines) + "\n")


def convolutions(path):
    """From the CSV file of bench/convs: for each set of shapes the ratios of the sums and the least ratio."""
    with open(path) as f:
        lines = [r for r in csv.DictReader(f) if float(r["onednn"] or 0) > 0]
    found = []
    for name, size in ("r224", "224"), ("r32", "32"):
        own = [r for r in lines if r["shape"].startswith(name + "/")]
        if not own:
            continue
        def total(*columns):
            return sum(float(r["gflop"]) / max(float(r[c] or 0) for c in columns) for r in own)
        slowest = min(own, key=lambda r: float(r["tenon"]) / float(r["onednn"]))
        found.append({"size": size, "sum": total("onednn") / total("tenon"),
                      "fast": total("onednn", "onednn_fast") / total("tenon_fast"),
                      "least": float(slowest["tenon"]) / float(slowest["onednn"]), "at": f"{slowest['shape']} {slowest['op']}"})
    return found


