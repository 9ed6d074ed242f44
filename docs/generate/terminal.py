#!/usr/bin/env python3
"""terminal.py -- records commands in a terminal and draws the recording as an SVG that plays once.

    docs/generate/terminal.py record TAPE -o FILE.cast [--path DIR] [--in DIR]     runs the commands of TAPE, one after the other
    docs/generate/terminal.py draw FILE.cast -o FILE.svg [--speed X]

A TAPE has `columns N`, lines that begin with `$ ` (commands for bash, shown as they are typed), and comments (#).  Every command
runs in a terminal of its own, in a scratch directory with a link to models/ (--in: in DIR), with DIR of --path first in PATH.
A recording is asciicast, version 2; a marker ("m") is a command.  The picture shows output X times as fast as it came, and no
pause is longer than 0.6 seconds; times that programs print are theirs.  Without animation, and where the system asks for less
motion, it shows how the session ends.

docs/images/session.svg is drawn from docs/generate/session.cast, recorded from session.tape.  Python's own modules are enough.
"""
import argparse
import fcntl
import html
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROMPT = "\x1b[32m$\x1b[0m "
KEY, REST, PAUSE, MOST = 0.02, 0.25, 0.5, 0.6      # seconds: per key, before the first key, after a command, longest gap
FRAME = 0.15                                       # least seconds before a line is overwritten
CHAR, LINE, SIZE, MARGIN, TOP = 8.4, 20, 14, 18, 34


# ---- recording

def run(command, columns, cwd, path, begin):
    """Yields (seconds, text) while the command runs."""
    env = {"PATH": path, "HOME": os.environ.get("HOME", "/"), "TERM": "xterm-256color", "LANG": "C.UTF-8", "COLUMNS": str(columns)}
    env.update({name: os.environ[name] for name in ("TENON_CACHE",) if name in os.environ})
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    child = subprocess.Popen(["bash", "-c", command], stdin=follower, stdout=follower, stderr=follower, cwd=cwd, env=env,
                             start_new_session=True)
    os.close(follower)
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:                            # the last process has closed the terminal
            break
        if not data:
            break
        yield time.monotonic() - begin, data.decode("utf-8", "replace")
    os.close(leader)
    child.wait()


def record(tape, output, path, where):
    columns, commands = 100, []
    with open(tape, encoding="utf-8") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("columns "):
                columns = int(line.split()[1])
            elif line.startswith("$ "):
                commands.append(line[2:])
            elif line and not line.startswith("#"):
                sys.exit(f"terminal.py: {tape}: not a command: {line}")
    with tempfile.TemporaryDirectory() as scratch:
        if not where:
            os.symlink(os.path.join(ROOT, "models"), os.path.join(scratch, "models"))
        events, begin = [], time.monotonic()
        for command in commands:
            now = round(time.monotonic() - begin, 3)
            events += [[now, "m", command], [now, "o", PROMPT + command + "\r\n"]]
            events += [[round(at, 3), "o", text] for at, text in
                       run(command, columns, where or scratch, f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"], begin)]
    with open(output, "w", encoding="utf-8") as f:
        f.write(json.dumps({"version": 2, "width": columns, "height": 40}) + "\n")
        for event in events:
            f.write(json.dumps(event, ensure_ascii=False) + "\n")


# ---- the screen

class Screen:
    """Rows of (character, style); what programs print for people: text, colours, return, tab, erasing to the end of the line."""

    def __init__(self, columns):
        self.columns, self.rows, self.times, self.x, self.style = columns, [[]], [0.0], 0, frozenset()
        self.frames = [[]]                         # by row: (time, old text) at each overwriting

    def put(self, c, at):
        if self.x == self.columns:
            self.newline(at)
            self.x = 0
        row = self.rows[-1]
        row += [(" ", frozenset())] * (self.x + 1 - len(row))
        row[self.x] = (c, self.style)
        self.times[-1] = at
        self.x += 1

    def newline(self, at):
        self.rows.append([])
        self.times.append(at)
        self.frames.append([])

    def colours(self, codes):
        names = {1: "b", 2: "d", 31: "r", 32: "g", 33: "y", 34: "u", 35: "m", 36: "c"}
        for code in codes:
            if code == 0:
                self.style = frozenset()
            elif code in names:
                self.style = (self.style if code < 30 else self.style & {"b", "d"}) | {names[code]}

    def write(self, text, at):
        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]", text):
            if part.endswith("m") and len(part) > 1:
                self.colours([int(c or 0) for c in part[2:-1].split(";")])
            elif part.endswith("K") and len(part) > 1:
                del self.rows[-1][self.x:]
            elif part == "\n":
                self.newline(at)
            elif part == "\r":
                if self.x and self.times[-1] < at:
                    self.frames[-1].append((self.times[-1], list(self.rows[-1])))
                self.x = 0
            elif part == "\t":
                for _ in range(8 - self.x % 8):
                    self.put(" ", at)
            elif part == "\b":
                self.x = max(0, self.x - 1)
            elif part >= " " and len(part) == 1:
                self.put(part, at)


# ---- the picture

STYLE = """
.w{fill:#fbfcfe;stroke:#c9d1da}.k{fill:#fbfcfe}.o{fill:#c9d1da}
text{fill:#1f2733;white-space:pre}
.b{font-weight:700}.d{fill:#66717f}.r{fill:#b3261e}.g{fill:#17703f}.y{fill:#8a5a00}.u{fill:#0b57a4}.m{fill:#8b3fc4}.c{fill:#0b6e80}
@media(prefers-color-scheme:dark){.w{fill:#12171e;stroke:#3a4552}.k{fill:#12171e}.o{fill:#3a4552}
text{fill:#e3e8ee}.d{fill:#9aa6b5}.r{fill:#ff8a80}.g{fill:#6fdc9f}.y{fill:#ffd166}.u{fill:#7ab8ff}.m{fill:#c9a0ff}.c{fill:#67d8ea}}
.k{opacity:0;transform-box:fill-box;transform-origin:right;animation:k 1s backwards}
.l{animation:l 1ms backwards step-end}.f{opacity:0;animation:f 1s step-end}
@keyframes l{from{opacity:0}}
@keyframes f{from,to{opacity:1}}
@keyframes k{from{opacity:1}to{opacity:1;transform:scaleX(0)}}
@media(prefers-reduced-motion:reduce){.l,.f,.k{animation:none}}
"""


def number(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


def spans(row):
    """(column, text, style) of a row; blanks at the ends are left out."""
    out, at = [], 0
    while at < len(row):
        end = at
        while end < len(row) and row[end][1] == row[at][1]:
            end += 1
        text = "".join(c for c, _ in row[at:end])
        left = len(text) - len(text.lstrip(" "))
        if text.strip(" "):
            out.append((at + left, text.strip(" "), row[at][1]))
        at = end
    return out


def text(row, y, name, style):
    """A row as text; each part is as wide as its columns, whatever font the reader has."""
    parts = []
    for column, words, kind in spans(row):
        kind = f' class="{" ".join(sorted(kind))}"' if kind else ""
        parts.append(f'<tspan x="{number(MARGIN + column * CHAR)}" textLength="{number(len(words) * CHAR)}" lengthAdjust="spacingAndGlyphs"'
                     f"{kind}>{html.escape(words, quote=False)}</tspan>")
    return [f'<text class="{name}" y="{y}" style="{style}">{"".join(parts)}</text>'] if parts else []


def play(cast, speed):
    """The screen at the end, and (row, keys, time) of each command that is typed."""
    with open(cast, encoding="utf-8") as f:
        screen = Screen(json.loads(f.readline())["width"])
        events = [json.loads(line) for line in f if line.strip()]
    shown, before, typed, keys, printed = 0.0, 0.0, [], 0, False
    for at, kind, words in events:
        shown += min((at - before) / speed, MOST)
        before = at
        if kind == "m":
            if typed:
                shown += PAUSE
                if printed:                            # an empty line after the output of a command
                    screen.newline(shown)
            keys = len(words)
            typed.append((len(screen.rows) - 1, keys, shown + REST))
            printed = False
            continue
        screen.write(words, shown)
        shown += REST + KEY * keys + 0.2 if keys else 0
        printed = not keys
        keys = 0
    while not screen.rows[-1]:
        screen.rows.pop()
    return screen, typed


def draw(cast, output, title, speed):
    screen, typed = play(cast, speed)
    width, height = screen.columns * CHAR + 2 * MARGIN, TOP + len(screen.rows) * LINE + MARGIN / 2
    fonts = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" width="{number(width)}" height="{number(height)}" '
           f'role="img" aria-label="{html.escape(title)}" font-family="{fonts}" font-size="{SIZE}">',
           f"<title>{html.escape(title)}</title>", f"<style>{STYLE}</style>",
           f'<rect class="w" x=".5" y=".5" width="{number(width - 1)}" height="{number(height - 1)}" rx="8"/>']
    out += [f'<circle class="o" cx="{20 + 18 * i}" cy="17" r="5"/>' for i in range(3)]
    for i, row in enumerate(screen.rows):
        y, kept = number(TOP + i * LINE + 14), []
        for at, frame in screen.frames[i]:
            if screen.times[i] - at > FRAME and (not kept or at - kept[-1][0] > FRAME):
                kept.append((at, frame))
        for (at, frame), end in zip(kept, [at for at, _ in kept[1:]] + [screen.times[i]]):
            out += text(frame, y, "f", f"animation-delay:{number(at)}s;animation-duration:{number(end - at)}s")
        out += text(row, y, "l", f"animation-delay:{number(screen.times[i])}s")
    for row, keys, at in typed:
        out.append(f'<rect class="k" x="{number(MARGIN + 2 * CHAR)}" y="{number(TOP + row * LINE)}" width="{number(keys * CHAR + 2)}" height="{LINE - 1}" '
                   f'style="animation-delay:{number(at)}s;animation-duration:{number(keys * KEY)}s;animation-timing-function:steps({keys},end)"/>')
    out.append("</svg>")
    with open(output, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("record", help="run the commands of a tape, and keep what they print")
    p.add_argument("tape")
    p.add_argument("-o", dest="output", required=True)
    p.add_argument("--path", help="a directory that comes first in PATH")
    p.add_argument("--in", dest="where", help="the directory to run in (default: a scratch directory with models/)")
    p = commands.add_parser("draw", help="draw a recording as an SVG")
    p.add_argument("cast")
    p.add_argument("-o", dest="output", required=True)
    p.add_argument("--speed", type=float, default=1.0, help="how many times as fast as it came (default 1)")
    p.add_argument("--title", default="A terminal session with Tenon")
    a = parser.parse_args()
    if a.command == "record":
        record(a.tape, a.output, a.path and os.path.abspath(a.path), a.where)
    else:
        draw(a.cast, a.output, a.title, a.speed)


if __name__ == "__main__":
    main()
