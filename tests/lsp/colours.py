"""colours.py -- the grammars of editors/ know the words of the lexer: the TextMate grammar on model files, the words of
Vim's syntax file.

    colours.py ROOT
"""
import json
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
good, wrong = 0, 0


def check(what, ok, seen=""):
    global good, wrong
    good, wrong = good + bool(ok), wrong + (not ok)
    if not ok:
        print("FAIL", what, repr(seen)[:300])


GRAMMAR = json.loads((root / "editors/vscode/syntaxes/tenon.tmLanguage.json").read_text())
LEXER = (root / "grammar/lexer.l").read_text()
WORDS = set(re.findall(r'\{"([a-z]+)", [A-Z]+\}', LEXER))
regex = {}


def flat(patterns):
    for p in patterns:
        if "include" in p:
            part = GRAMMAR["repository"][p["include"][1:]]
            yield from flat([part] if "begin" in part else part["patterns"])
        else:
            yield p


def find(pattern, line, at):
    if pattern not in regex:
        regex[pattern] = re.compile(pattern)
    return regex[pattern].search(line, at)


def paint(scopes, m, captures, name):
    for i in range(m.start(), m.end()):
        scopes[i] = name or scopes[i]
    for group, capture in (captures or {}).items():
        if m.group(int(group)) is not None:
            for i in range(m.start(int(group)), m.end(int(group))):
                scopes[i] = capture["name"]


def colours(text):
    """The innermost scope of each character, line by line, as an editor finds it."""
    stack, result = [], []
    for line in text.split("\n"):
        scopes, at = [stack[-1].get("name") if stack else None] * len(line), 0
        while True:
            rules = list(flat(stack[-1]["patterns"] if stack else GRAMMAR["patterns"]))
            best = None
            if stack:
                m = find(stack[-1]["end"], line, at)
                best = (m, stack[-1], "end") if m else None
            for rule in rules:
                kind = "begin" if "begin" in rule else "match"
                m = find(rule[kind], line, at)
                if m and (best is None or m.start() < best[0].start()):
                    best = (m, rule, kind)
            if best is None or (best[0].end() == at and best[2] == "match"):
                break
            m, rule, kind = best
            if stack and stack[-1].get("name"):
                scopes[at:m.start()] = [stack[-1]["name"]] * (m.start() - at)
            name = rule.get("name")
            paint(scopes, m, rule.get({"begin": "beginCaptures", "end": "endCaptures", "match": "captures"}[kind]), name)
            if kind == "begin":
                stack.append(rule)
            elif kind == "end":
                stack.pop()
            at = m.end()
            if stack and stack[-1].get("name"):
                scopes[at:] = [stack[-1]["name"]] * (len(line) - at)
            elif kind != "match":
                scopes[at:] = [None] * (len(line) - at)
            if at >= len(line) and not (stack and find(stack[-1]["end"], line, at)):
                break
        result.append(scopes)
    return result


TOKEN = re.compile(r'(?P<comment>#.*)|(?P<string>"([^"\\]|\\.)*")|(?P<number>\d+(\.\d+)?([eE][+-]?\d+)?)|(?P<word>[A-Za-z_]\w*)|(?P<mark>\S)')
SCOPE = {"comment": "comment.", "string": ("string.", "constant.character."), "number": "constant.numeric.", "mark": ("keyword.operator", "punctuation.")}
counted = {}
for path in sorted((root / "models").glob("*.tn")) + sorted((root / "tests/errors").glob("*.tn"))[::4]:
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        continue
    model, faults = path.parent.name == "models", []
    for number, (line, scopes) in enumerate(zip(text.split("\n"), colours(text)), 1):
        for m in TOKEN.finditer(line):
            kind, scope = m.lastgroup, scopes[m.start()] or ""
            if m.group("word"):
                kind = "word"
                wanted = ("keyword.", "constant.language") if m.group() in WORDS else ("variable.", "entity.", "storage.type")
            else:
                kind = next(k for k in SCOPE if m.group(k))
                wanted = SCOPE[kind]
            counted[kind] = counted.get(kind, 0) + 1
            if not scope.startswith(wanted):
                faults.append((number, m.group(), scope))
    if model:
        check(path.name, not faults, faults)
    else:
        check(path.name + ": every name has a colour", all(f[2] or not f[1].isidentifier() for f in faults), faults)
check("hardly any tokens", all(counted.get(k, 0) > 100 for k in ("comment", "word", "number", "mark")) and counted["string"] > 30, counted)

VIM = (root / "editors/neovim/syntax/tenon.vim").read_text()
known = set(w for line in re.findall(r"^syntax keyword \w+ (.*)$", VIM, re.M) for w in line.split() if not w.startswith(("nextgroup", "skip")))
check("words of Vim's syntax file", known == WORDS, sorted(known ^ WORDS))
grammar_words = set(re.findall(r"[a-z]+", " ".join(
    w for p in re.findall(r'\\\\b\(([a-z|]+)\)\\\\b|\\\\b(import)\\\\b', (root / "editors/vscode/syntaxes/tenon.tmLanguage.json").read_text()) for w in p)))
check("words of the TextMate grammar", WORDS <= grammar_words, sorted(WORDS - grammar_words))
check("the lexer's words", len(WORDS) == 17, sorted(WORDS))
print(good, wrong)
