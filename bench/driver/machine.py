"""machine.py -- machine, versions and date of a measurement."""
import datetime
import glob
import os
import platform
import subprocess


def first_line(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\n")[0].strip()
    except OSError:
        return ""


def read(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return ""


def processor():
    facts = {}
    for line in read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name", platform.machine())
    if "cpu family" in facts:
        name += f" (family {facts['cpu family']}, model {facts.get('model', '?')})"
    flags = facts.get("flags", facts.get("Features", "")).split()
    wide = [f for f in ("fma", "avx2", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve") if f in flags]
    return name, " ".join(wide)


def caches():
    found = []
    for place in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        kind = {"Data": "d", "Instruction": "i"}.get(read(f"{place}/type"), "")
        found.append(f"L{read(f'{place}/level')}{kind} {read(f'{place}/size')}")
    return ", ".join(found)


def machine(bench):
    """Facts by name, in the order in which they are printed."""
    name, wide = processor()
    kilobytes = next((int(x.split()[1]) for x in read("/proc/meminfo").splitlines() if x.startswith("MemTotal")), 0)
    version = first_line("git", "-C", bench.root, "rev-parse", "--short", "HEAD")
    changed = first_line("git", "-C", bench.root, "status", "--porcelain", "--untracked-files=no")
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": name,
        "instructions": wide,
        "processors used": str(len(bench.processors)),
        "caches": caches(),
        "memory": f"{kilobytes / 2**20:.0f} GiB",
        "system": f"Linux {platform.release()}",
        "C compiler": first_line(os.environ.get("CC", "cc"), "--version"),
        "tenon": first_line(bench.tenon, "--version") + (f", commit {version}" if version else "") + (", with uncommitted changes" if changed else ""),
    }
    return {k: v for k, v in facts.items() if v}
