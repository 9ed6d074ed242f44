"""report.py -- what was measured as text, CSV, JSON, and as RESULTS.md."""
import csv
import json
import os

BY_HAND = "## What was missed, and why"               # of RESULTS.md: from this line on a person writes, and it is kept


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


def write_json(path, facts, results, extras):
    works = [{
        "model": r.work.model, "batch": r.work.batch, "threads": r.threads, "flops_per_sample": r.flops, "losses": r.losses,
        "fma_peak_gflops": r.peaks, "ratio": r.ratio, "share_of_peak": r.share,
        "programs": [{"program": c.name, "ours": c.ours, "samples_per_s": c.bursts, "note": c.why, "first_loss_differs": c.first,
                      "later_loss_differs": c.later} for c in r.columns],
    } for r in results]
    with open(path, "w") as f:
        json.dump({"machine": facts, "versions": versions(results), "works": works, **extras}, f, indent=1)
        f.write("\n")


# ---- RESULTS.md

def goals(results, v3, extras):
    """The table of what was to be reached."""
    yield "| work | must | aim | measured | best peer | |"
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
        yield (f"| ResNet-50's convolutions at {c['size']}: time of oneDNN over ours | 1.3x | 1.8x | {c['sum']:.2f}x | oneDNN "
               f"| {outcome(c['sum'], 1.3, 1.8)} |")
        yield f"| the slowest of them: {c['at']} | 0.9x | 0.9x | {c['least']:.2f}x | oneDNN | {outcome(c['least'], 0.9, 0.9)} |"
        yield (f"| the same with --fast, oneDNN with Winograd where faster | | 2.2x | {c['fast']:.2f}x | oneDNN "
               f"| {'aim reached' if c['fast'] >= 2.2 else ''} |")
    for name, value, must, aim, unit in extras["builds"]:
        yield f"| {name} | {must:g} {unit} | {aim:g} {unit} | {value:.3g} {unit} | | {outcome(-value, -must, -aim)} |"


def rates(results):
    """A row a work, a column a program."""
    names = []
    for r in results:
        names += [c.name for c in r.columns if c.name not in names]
    yield "| work | " + " | ".join(names) + " | FMA peak, GFLOP/s | nominal share |"
    yield "|---" * (len(names) + 3) + "|"
    for r in results:
        cells = {}
        for c in r.columns:
            cells[c.name] = (f"{count(c.rate)} [{count(min(c.bursts))}..{count(max(c.bursts))}]" if c.bursts
                             else c.why.split(":")[0].split(" (")[0])
            if c is r.best:
                cells[c.name] = f"**{cells[c.name]}**"
        yield (f"| {r.work.name} | " + " | ".join(cells.get(n, "-") for n in names)
               + f" | {r.peak:.0f} [{min(r.peaks):.0f}..{max(r.peaks):.0f}] | {r.share:.2f} |")


def differences(results):
    """How far the peers' losses are from ours."""
    yield "| work | our first loss, after 5 steps | largest difference of the first | after 5 steps | not compared, or refused |"
    yield "|---|---|---|---|---|"
    for r in results:
        peers = [c for c in r.columns[1:] if not c.why]
        out = "; ".join(f"{c.name}: {c.why}" for c in r.columns if c.why).replace("|", "/")
        ours, later = f"{r.losses[0]:.5f}", f"{max((c.later for c in peers), default=0):.1e}"
        if r.work.deep:
            later = f"norm of the first gradient: {later}"
        else:
            ours += f", {r.losses[-1]:.5f}"
        yield f"| {r.work.name} | {ours} | {max((c.first for c in peers), default=0):.1e} | {later} | {out} |"


def kept(path):
    """What a person wrote below the line BY_HAND."""
    try:
        with open(path) as f:
            text = f.read()
    except OSError:
        return ""
    return text[text.index(BY_HAND) + len(BY_HAND):].strip("\n") if BY_HAND in text else ""


def markdown(facts, results, v3, extras, how, by_hand):
    yield "# Tenon beside its peers\n"
    yield f"Written by `{how}`; [README.md](README.md) tells how it measures. All figures of one run; the raw ones are in results.json.\n"
    for name, value in {**facts, **versions(results)}.items():
        yield f"- {name}: {value}"
    yield "\n## What was to be reached\n"
    yield "Ratios of medians: Tenon's samples/s over those of the fastest other program of the same row.\n"
    yield from goals(results, v3, extras)
    yield "\n## Samples/s\n"
    yield "Medians [least..most] of the rounds' bursts; bold: the best peer. Nominal: of the textbook's operations, which Winograd saves some of.\n"
    yield from rates(results)
    yield "\n## The same computation\n"
    yield from differences(results)
    missed = [r for r in results if r.layers]
    if missed:
        yield "\n## Accounts of the steps that missed\n\n`PROG bench --layers`, in the same run."
    for r in missed:
        yield f"\n### {r.work.name}\n\n```\n{r.layers.strip()}\n```"
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
    write_json(f"{out}/results.json", facts, results, extras)
    print("\n".join(goals(results, v3, extras)))
    print(f"\nwritten: {path}, results.csv, results.json")


def convolutions(path):
    """Of what bench/convs wrote: sums and the least ratio, a set of shapes (docs in bench/convs)."""
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


