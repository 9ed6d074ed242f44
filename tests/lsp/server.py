"""server.py -- tests of tenon lsp with a scripted client.

    server.py PART TENON ROOT WORK      PART: protocol, messages, answers, names, random
"""
import json
import os
import pathlib
import pty
import random
import re
import resource
import subprocess
import sys
from time import monotonic, sleep

from client import Client, Document, Gone

part, tenon, root, work = sys.argv[1:5]
counts = {True: 0, False: 0}
NET = """block conv(x, filters: int, stride: int = 1) {
    return conv2d(x, filters, kernel = 3, stride = stride, pad = "same") |> relu
}

# a small network
model net(image: f32[1, 28, 28], classes: int = 10) {
    h = conv(image, 16) |> conv(32, stride = 2)
    fc = dense(64)
    h = fc(flatten(h))   # the layer
    return dense(h, classes)
}

train net {
    data      = mnist
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.05, momentum = 0.9)
    batch     = 128
}
"""


def check(what, ok, seen=""):
    counts[bool(ok)] += 1
    if not ok:
        print("FAIL", what, "" if seen == "" else repr(seen)[:600])


def same(what, wanted, seen):
    check(what, wanted == seen, {"wanted": wanted, "seen": seen})


def frame(body):
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def tenon_check(path):
    """The messages of tenon check: (line, column in bytes, severity, text with notes)."""
    run = subprocess.run([tenon, "check", path, "--color", "never"], capture_output=True)
    found = []
    for line in run.stderr.decode(errors="replace").split("\n"):
        head = re.match(r"(.*?):(\d+):(\d+): (error|warning): (.*)", line)
        bare = re.match(r"tenon: (error|warning): (.*)", line)
        more = re.match(r"      = (note|help): (.*)", line)
        if head:
            found.append([head[1], int(head[2]), int(head[3]), head[4], head[5]])
        elif bare:
            found.append(["", 1, 1, bare[1], bare[2]])
        elif more:
            found[-1][4] += "\n%s: %s" % more.groups()
    return found


def stat(pid):
    """The fields of /proc/PID/stat from the state on."""
    return pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()


def children(pid):
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int(stat(int(path.name))[1]) == pid:
                found.add(path.name)
        except OSError:                                    # the process has ended
            pass
    return found


def cpu_seconds(pid):
    return sum(map(int, stat(pid)[11:13])) / os.sysconf("SC_CLK_TCK")


# ---- parts

def protocol():
    c = Client(tenon)
    able = c.hello["result"]["capabilities"]
    same("positions", "utf-16", able["positionEncoding"])
    for body, code in [(b"{not json", -32700), (b"[1, 2]", -32600), (b'{"id":1}', -32600), (b"", -32700),
                       (b'{"id":{},"method":"x"}', -32600), (b"[" * 100000, -32700), (b"{} {}", -32700),
                       (b'{"id":"\xff","method":"x"}', -32700)]:
        c.write(frame(body))
        same("the message %r" % body[:20], code, c.receive()["error"]["code"])
    c.write(frame(b'{"id":7,"method":5}'))
    same("the id of a request without a method", 7, c.receive()["id"])
    for body in [b'{"method":"textDocument/didChange"}', b'{"method":"textDocument/didOpen","params":[]}',
                 b'{"method":"textDocument/didOpen","params":{"textDocument":{"uri":5,"text":7}}}', b'{"method":"$/x"}',
                 b'{"method":"textDocument/didClose","params":{"textDocument":{"uri":"file:///x"}}}', b'{"id":3,"result":null}']:
        c.write(frame(body))
    same("an unknown method", -32601, c.request("textDocument/x", {})["error"]["code"])
    same("no parameters", -32602, c.request("textDocument/hover", {})["error"]["code"])
    same("a document that is not open", -32602, c.request("textDocument/hover", {
        "textDocument": {"uri": "file:///x"}, "position": {"line": 0, "character": 0}})["error"]["code"])
    d = Document(c, work + "/p.tn", NET)
    d.diagnostics()
    for place in [{"line": -1, "character": 0}, {"line": "0", "character": 0}, {"line": 1e300, "character": 0}, {}, 7]:
        same("the position %r" % place, -32602, d.ask("hover", place)["error"]["code"])
    for wrong in [{"text": 5}, {"range": {"start": d.position(9), "end": d.position(3)}, "text": "x"}, {"range": 7, "text": "x"}, 7]:
        d.change([wrong])
        while True:
            note = c.notes.pop(0) if c.notes else c.receive()
            if note["method"] == "window/logMessage":
                break
        check("the change %r" % wrong, "has a change without" in note["params"]["message"], note)
    d.change([{"range": None, "text": NET}])
    # Half of a surrogate pair counts as one unit: a later change has the right place.
    d.edit("# a small network", "# \ud83d \udc00 \\ud83d 😀 @block q(x) { return x }")
    d.edit("@", "\n")
    same("halves of surrogate pairs", ["conv", "q", "net", "net"], [o["name"] for o in d.answer("documentSymbol")])
    d.set(NET)
    same("a place after the end", None, d.answer("hover", {"line": 10 ** 6, "character": 10 ** 6}))
    c.write(b"Content-Length: %d\r\n\r\n" % (65 << 20))
    for _ in range(65):
        c.write(b" " * (1 << 20))
    same("a huge message", -32600, c.reply()["error"]["code"])
    c.write(b"content-type: x\r\nCONTENT-LENGTH:  52  \r\n\r\n" + b'{"jsonrpc":"2.0","id":99,"method":"x","params":null}')
    same("header fields", 99, c.reply()["id"])
    same("initialize again", -32600, c.request("initialize", {})["error"]["code"])
    c.request("shutdown")
    same("a request after shutdown", -32600, d.ask("hover", {"line": 0, "character": 0})["error"]["code"])
    c.notify("exit")
    same("exit code after shutdown", 0, c.process.wait(10))

    c = Client(tenon, start=False)
    same("a request before initialize", -32002, c.request("textDocument/hover", {})["error"]["code"])
    c.notify("exit")
    same("exit without shutdown", 1, c.process.wait(10))
    for what, data in [("the client is gone", b""), ("a cut message", b"Content-Length: 500\r\n\r\nabc"),
                       ("a header without length", b"hello\r\n\r\n"), ("a negative length", b"Content-Length: -5\r\n\r\n"),
                       ("a header without end", b"x" * 100000), ("no number", b"Content-Length: 5x\r\n\r\nhello")]:
        c = Client(tenon, start=False)
        try:
            c.write(data)
        except BrokenPipeError:
            pass
        c.process.stdin.close()
        same(what, 1, c.process.wait(10))
    if os.environ.get("CHECK_DEEP") == "1":               # it takes ten seconds
        gone = subprocess.Popen(["true"])
        gone.wait()
        c = Client(tenon, start=False)
        c.request("initialize", {"processId": gone.pid, "rootUri": None, "capabilities": {}})
        same("the process of the client is gone", 1, c.process.wait(30))
    c = Client(tenon)
    Document(c, root + "/models/inception_v3.tn").diagnostics()
    c.request("shutdown")
    seen = set()
    for _ in range(25):                                    # half a second: prices begin after a quarter
        seen |= children(c.process.pid)
        sleep(.02)
    same("no process begins after shutdown", set(), seen)
    c.notify("exit")
    same("exit code with prices that were not computed", 0, c.process.wait(10))
    c = Client(tenon)
    resource.prlimit(c.process.pid, resource.RLIMIT_NOFILE, (3, 3))
    Document(c, root + "/models/inception_v3.tn").diagnostics()
    sleep(.3)
    begin = cpu_seconds(c.process.pid)
    sleep(.5)
    used = cpu_seconds(c.process.pid) - begin
    check("without free descriptors the server waits", used < .2, used)
    same("exit without free descriptors", 0, c.end())
    ours, theirs = pty.openpty()
    shell = subprocess.Popen([tenon, "lsp"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(theirs)
    check("a terminal gets a hint", "waits for an editor" in shell.stderr.readline().decode())
    os.write(ours, b"\4")                                  # Ctrl-D
    same("a terminal without input", 1, shell.wait(10))
    c = Client(tenon)
    c.process.stdout.close()
    try:
        for i in range(2000):
            c.send({"jsonrpc": "2.0", "id": i, "method": "x"})
    except BrokenPipeError:
        pass
    same("a client that reads no more", 1, c.process.wait(10))


def messages():
    """Each file of tests/errors gets the messages of tenon check, at their places in UTF-16."""
    c = Client(tenon)
    compared = 0
    for path in sorted(pathlib.Path(root, "tests/errors").glob("*.tn")) + sorted(pathlib.Path(root, "models").glob("*.tn")):
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue                                   # an editor cannot send it
        if "\0" in text or len(text) > 1 << 20:
            continue
        d = Document(c, str(path), text)
        lines = text.split("\n")
        wanted = []
        for name, line, col, severity, message in tenon_check(str(path)):
            if name not in ("", str(path)):
                continue                               # in an imported file: at the import
            before = lines[line - 1].encode()[:col - 1].decode(errors="replace") if line <= len(lines) else ""
            wanted.append([line - 1, len(before.encode("utf-16-le")) // 2, 1 if severity == "error" else 2, message])
        seen = [[m["range"]["start"]["line"], m["range"]["start"]["character"], m["severity"], m["message"]]
                for m in d.diagnostics() if not re.match(r"(/.*|\.\.\. )", m["message"])]
        same(path.name, wanted, seen)
        compared += len(wanted)
        d.close()
        c.diagnostics(d.uri)
    check("hardly any messages: %d" % compared, compared > 300)
    same("exit", 0, c.end())


def shown(*options):
    run = subprocess.run([tenon, "show", work + "/net.tn", *options], capture_output=True, text=True)
    return run.stdout


def answers():
    pathlib.Path(work, "net.tn").write_text(NET)
    c = Client(tenon)
    d = Document(c, work + "/typed.tn", NET)
    same("no messages", [], d.diagnostics())
    hints = {1: "(N, 32, 14, 14), 1 other shape", 6: "(N, 32, 14, 14)", 8: "(N, 64)", 9: "(N, 10)"}
    same("hints", hints, d.hints())

    # Hover: figures are those of tenon show.
    total = re.search(r"total +([\d,]+) +([\d,]+) +([\d,]+)", shown()).groups()
    text = d.hover(d.find("net("))
    check("parameters", "parameters: " + total[0] in text, text)
    check("FLOPs", "FLOPs: " + total[2] in text, text)
    for _ in range(100):
        text = d.hover(d.find("net("))
        if "predicted time" in text:
            break
        try:
            c.notes.append(c.receive(0.1))
        except Gone:
            pass
    planned = re.search(r"planned +([\d.]+ \w+) ", shown()).group(1)
    check("planned memory", "planned memory: %s with" % planned in text, text)
    step = re.search(r"total .* ([\d.]+) ms", shown("--cost")).group(1)
    time = re.search(r"predicted time: ([\d.]+) ms", text)
    check("predicted time", time and abs(float(time[1]) - float(step)) < 0.01 * float(step), [step, text])
    text = d.hover(d.find("dense(h"))
    for part_ in ["dense(x, units, bias = true)", "(N, 64) → **(N, 10)**", "parameters: 650", "FLOPs: 1,280", "planned memory:",
                  "predicted time:", "fully connected layer", "dweight[o][i]"]:
        check("hover of dense: " + part_, part_ in text, text)
    check("a block that is used twice", "evaluated 2 times" in d.hover(d.find("conv2d")))
    check("hover of a variable", "(N, 64)" in d.hover(d.find("h,", 0)))
    check("hover of a key", "The update of a parameter" in d.hover(d.find("optimizer")))
    check("hover of a form", "stochastic gradient descent" in d.hover(d.find("sgd")))
    check("hover of an argument", "rows and columns of a filter" in d.hover(d.find("kernel")))
    for name in "mnist", '"digits"':
        n = Document(c, work + "/split.tn", NET.replace("mnist", name + "(validation = 0.1)"))
        check("hover of an argument of " + name, "share of the samples for a validation split" in (n.hover(n.find("validation")) or ""))
        n.close()

    # While a statement is broken, shapes come from the last good text.
    d.edit("fc = dense(64)", "fc = dense(64 +")
    check("a message for the statement", d.diagnostics()[0]["message"].startswith("expected ')'"))
    same("hints while a statement is broken", hints, d.hints())
    check("hover while a statement is broken", "(N, 64) → **(N, 10)**" in d.hover(d.find("dense(h")))
    d.edit("fc = dense(64 +", "fc = dens(64)")
    same("a message with a suggestion", "there is no op, block or layer 'dens'\nhelp: did you mean 'dense'?", d.diagnostics()[0]["message"])

    # A line is typed into a finished model: one message at most, and the shapes of the other lines stay.
    d.set(NET)
    line = "    h = relu(h) |> conv(8, stride = 2)\n"
    begin = d.text.index("    fc =")
    for n in range(1, len(line) + 1):
        d.replace(begin + n - 1, begin + n - 1, line[n - 1])
        now = d.hints()
        check("shapes after %r" % line[:n], {k: v for k, v in now.items() if k in (1, 6)} == {1: hints[1], 6: hints[6]}
              or line[:n].rstrip().endswith((")", "relu", "conv")), now)
        pushed = [m for m in c.notes if m.get("params", {}).get("version") == d.version]
        while not pushed:
            c.notes.append(c.receive())
            pushed = [m for m in c.notes if m.get("params", {}).get("version") == d.version]
        check("messages after %r" % line[:n], len(pushed[-1]["params"]["diagnostics"]) <= 1, pushed[-1])
        c.notes = [m for m in c.notes if m.get("params", {}).get("uri") != d.uri]
    same("the typed line has a shape", "(N, 8, 7, 7)", d.hints()[7])
    d.set(NET.replace("dense(64)", "dens(64)"))
    d.diagnostics()

    # Repairs.
    at = d.find("dens(64)")
    actions = d.answer("codeAction", range={"start": at, "end": at}, context={"diagnostics": []})
    same("the repair", ["Change to dense"], [a["title"] for a in actions])
    d.set(d.apply(actions[0]["edit"]["changes"][d.uri]))
    same("the repaired text", NET, d.text)
    same("no message after the repair", [], d.diagnostics())
    d.edit("    loss      = softmax_cross_entropy\n", "")
    d.diagnostics()
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    actions = d.answer("codeAction", range=whole, context={"diagnostics": []})
    d.set(d.apply(actions[0]["edit"]["changes"][d.uri]))
    same("a missing key is added", [], d.diagnostics())
    d.set('model m(x: f32[4]) { return dense(x, 3) }\ntrain m { data = mnist; optimizer = "sgd"; batch = 8; loss = mse }\n')
    d.diagnostics()
    actions = d.answer("codeAction", range=whole, context={"diagnostics": []})
    same("quotes are removed", True, " = sgd;" in d.apply(actions[0]["edit"]["changes"][d.uri]))
    d.set("model m(x: f32[4]) { return dense(x, 3) }\ntrain m { optimizer = adam; loss = mse }\n")
    d.diagnostics()
    actions = d.answer("codeAction", range=whole, context={"diagnostics": []})
    d.set(d.apply(actions[0]["edit"]["changes"][d.uri]))
    same("a key is added in one line", [], d.diagnostics())

    for old, new in [("h = conv2d(x, 4, kernel = 9)", "h = conv2d(x, 4, kernel = 5)"), ("h = conv2d(x, 0, kernel = 3)", "h = conv2d(x, 1, kernel = 3)"),
                     ("h = max_pool(x, 2, pad = 2)", "h = max_pool(x, 2, pad = 1)"), ("h = x × 2", "h = x * 2"), ("h = x ^ 2", "h = x ** 2"),
                     ("for i in 3 { h = relu(x) }", "for i in 0..3 { h = relu(x) }"), ("// a word", "# a word"),
                     ("h = if 1 < 2 && 2 < 3 { x } else { x }", "h = if 1 < 2 and 2 < 3 { x } else { x }"),
                     ("h = if 1 = 2 { x } else { x }", "h = if 1 == 2 { x } else { x }"),
                     ("h = max_pool(x, 2, pad = 'same')", 'h = max_pool(x, 2, pad = "same")'),
                     ("h = max_pool(x, 2, pad = “same”)", 'h = max_pool(x, 2, pad = "same")'),
                     ("h = max_pool(x, 2, pad = \"sam\")", 'h = max_pool(x, 2, pad = "same")'), ("h = relu(y)", None),
                     ("h = conv2d(x, 4, kernel = 8 + 1)", None)]:
        head, tail = "model m(x: f32[3, 5, 5]) {\n    ", "\n    return dense(flatten(x), 3)\n}\n"
        d.set(head + old + tail)
        actions = d.answer("codeAction", range=whole, context={"diagnostics": []})
        texts = [d.apply(x["edit"]["changes"][d.uri]) for x in actions]
        same("repair of %s" % old, [head + new + tail] if new else [], texts)

    # Completion and signatures, also where the text does not parse.
    for before, wanted, unwanted in [
            ("", "model", "conv2d"), ("mo", "model", "conv2d"), ("model m(x: ", "f32", "conv2d"),
            ("model m(x: f32[4], n: int = 3) {\n    h = dense(x, ", "units", "batch"), ("block b(x) {\n    ", "return", "model"),
            ("block b(x) {\n    h = relu(x)\n    y = ", "h", "model"), ("block b(x) {\n    h = x |> conv2", "conv2d", "model"),
            ("block b(x) {\n    h = max_pool(x, 2, pad = ", '"same"', "kernel"), ("block b(x) {\n    y = x.", "channels", "relu"),
            ("block b(x) {\n    h = conv2d(x, kernel = 3, ", "stride", "kernel"), ("train m {\n    ", "optimizer", "relu"),
            ("train m {\n    optimizer = ", "adamw", "relu"), ("train m {\n    optimizer = sgd(", "momentum", "relu"),
            ("train m {\n    optimizer = sgd(lr = 1, ", "momentum", "lr"), ("train m {\n    init = he(dist = ", '"normal"', "fan"),
            ("train m {\n    augment = [", "flip_horizontal", "relu"), ("train m {\n    loss = ", "mse", "adam"),
            ("train m { batch = 8; dtype = ", "f64", "batch"), ("op f(x) = x * ", "tanh", "return"),
            ("model m(rows: f32[4]) { return rows }\ntrain m {\n    target = ", "rows", "mse"), ("train m {\n    target = price: ", "f32", "int"),
            ("train m {\n    data = \"masks\"(", "validation", "csv"), ("train m {\n    data = mnist(test = 0.1, ", "validation", "test"),
            ("train m {\n    loss = softmax_cross_entropy(", "ignore", "mse"), ("train m {\n    loss = softmax_cross_entropy(ignore = 3, ", "smoothing", "ignore"),
            ("block near(x, k: int) { return x }\nblock b(x) {\n    y = near(x, ", "k", "return")]:
        d.set(before)
        labels = d.labels(d.position(len(before)))
        check("completion after %r" % before, wanted in labels and unwanted not in labels, labels)
    for before, after, wanted in [("model m(x: f32[4]) { h = max_pool(x, pad = ", '"sa', ['"same"', '"valid"']), ("import ", '"', ['"net.tn"']),
                                  ("train m { init = he(", 'dist = "', ['"uniform"', '"gaussian"', '"normal"']),
                                  ("block b(x) { h = max_pool(x, pad = ", '"sam', ['"same"', '"valid"'])]:
        d.set(before + after)
        items = d.answer("completion", d.position(len(d.text)))["items"]
        check("completion in a string after %r" % before, set(wanted) <= {i["label"] for i in items} and len(items) < 9, items)
        d.set(d.apply([next(i for i in items if i["label"] == wanted[0])["textEdit"]]))
        same("the completed string", before + after[:after.index('"')] + wanted[0], d.text)
    d.set("block b(x) { h = max_pool(x, pad = \"va\") }")
    items = d.answer("completion", d.find("va"))["items"]
    same("a closed string is replaced", d.text.replace("va", "same"), d.apply([items[0]["textEdit"]]))
    for before in ["# mo", 'h = "mo', "model ", 'train m {\n    data = csv("a.csv", input = [']:
        d.set(before)
        same("no completion after %r" % before, [], d.labels(d.position(len(before))))
    # Formatting: the text of tenon fmt.
    for text in [NET, NET.replace("    h =", "  h="), NET.rstrip() + "   # end", "# 😀\r\nblock b( x ){ return x }", NET.replace("\n", "\n\n\n"),
                 "\n\n" + NET + "\n\n"]:
        pathlib.Path(work, "f.tn").write_bytes(text.encode())
        subprocess.run([tenon, "fmt", work + "/f.tn"], check=True, capture_output=True)
        d.set(text)
        edits = d.answer("formatting", options={"tabSize": 4, "insertSpaces": True})
        same("formatting", pathlib.Path(work, "f.tn").read_bytes().decode(), d.apply(edits))
        d.set(d.apply(edits))
        same("formatting again", [], d.answer("formatting", options={}))
    d.set("block b( {")
    same("a text with errors is not formatted", None, d.answer("formatting", options={}))

    # The work is in proportion to the text.  These texts took 25 s and more when a search began at each comment, over all later comments,
    # and at each place, over its whole line.
    d.set("block b(x) {\n" + "#  c\n" * 200000 + "return x\n}\n")
    begin = monotonic()
    check("many comments are formatted", d.answer("formatting", options={}))
    d.set("block b(x) { " + "h = relu(x); " * 30000 + "return h }\n")
    same("highlights of a long line", 30001, len(d.answer("documentHighlight", d.find("h ="))))
    check("large texts take less than 10 s", monotonic() - begin < 10, monotonic() - begin)
    d.set(NET)
    d.edit("conv(32, stride = 2)", "conv(32, ")
    signature = d.answer("signatureHelp", d.find("\n    fc"))
    same("signature", "conv(x, filters: int, stride: int = 1)", signature["signatures"][0]["label"])
    same("the argument after a pipe", 2, signature["activeParameter"])
    same("the argument with a name", 1, d.answer("signatureHelp", d.find("0.9"))["activeParameter"])
    d.set(NET)
    same("no signature", None, d.answer("signatureHelp", d.find("fc = dense")))
    same("exit", 0, c.end())


def names():
    pathlib.Path(work, "one").mkdir(exist_ok=True)
    main = pathlib.Path(work, "one/main file.tn")
    main.write_text('import "parts.tn"\nmodel m(x: f32[4]) {\n    h = part(x, n = 3)\n    h = relu(h)\n    return h\n}\n')
    c = Client(tenon)
    a = Document(c, str(main))
    check("a missing import", a.diagnostics()[0]["message"].startswith("cannot import 'parts.tn'"))
    b = Document(c, work + "/one/parts.tn", "block part(x, n: int) { return dense(x, n) }\n")
    same("an unsaved import counts", [], a.diagnostics())
    b.edit("n) }", "k) }")
    message = a.diagnostics()[0]
    check("an error of an import stands at the import", "parts.tn:1:41: unknown name 'k'" in message["message"] and
          message["range"]["start"] == {"line": 0, "character": 7}, message)
    b.edit("k) }", "n) }")
    same("the error is gone", [], a.diagnostics())

    def place(location):
        return [location["uri"], location["range"]["start"]["line"], location["range"]["start"]["character"]]
    same("definition in another file", [b.uri, 0, 6], place(a.answer("definition", a.find("part(x"))))
    same("definition of a variable", [a.uri, 2, 4], place(a.answer("definition", a.find("h)"))))
    same("definition of the last binding", [a.uri, 3, 4], place(a.answer("definition", a.find("h\n}"))))
    same("definition of an import", [b.uri, 0, 0], place(a.answer("definition", a.find("parts"))))
    same("definition of an operation", None, a.answer("definition", a.find("relu")))
    both = [[b.uri, 0, 6], [a.uri, 2, 8]]
    same("references", both, sorted(map(place, b.answer("references", b.find("part"), context={"includeDeclaration": True})), reverse=True))
    same("references without the declaration", both[1:], list(map(place, b.answer("references", b.find("part"), context={}))))
    same("highlights", [2, 3, 3, 4], sorted(h["range"]["start"]["line"] for h in a.answer("documentHighlight", a.find("h = "))))

    def renamed(d, word, new, **find):
        edit = d.answer("rename", d.find(word, **find), newName=new)["changes"]
        return [x.apply(edit[x.uri]) if x.uri in edit else x.text for x in (a, b)]
    same("rename a block", [a.text.replace("part(x", "head(x"), b.text.replace("part", "head")], renamed(b, "part", "head"))
    same("rename a parameter", [a.text.replace("n = 3", "units = 3"), b.text.replace("n: int", "units: int").replace("n) }", "units) }")],
         renamed(b, "n: int", "units"))
    same("rename a variable", [re.sub(r"\bh\b", "y", a.text), b.text], renamed(a, "h", "y", after="{\n"))
    for word, new in [("h = ", "x"), ("h = ", "for"), ("h = ", "a b"), ("h = ", ""), ("h = ", "relu"), ("part(x", "dense"), ("relu", "z")]:
        same("rename %s to %r is refused" % (word, new), -32803, a.ask("rename", a.find(word), newName=new).get("error", {}).get("code"))
    same("rename to a function of a file that imports this one is refused", -32803,
         b.ask("rename", b.find("part"), newName="m").get("error", {}).get("code"))
    same("prepareRename", "h", a.answer("prepareRename", a.find("h = "))["placeholder"])
    # A parameter and an operation with one name: a call means the operation, unless the variable is a layer.
    both = ("block b(x, dropout: float) { return dropout(x, dropout) }\n"
            "model m(x: f32[4], vocab: int = 2) { dense = dense(8); h = dense(x); return b(h, dropout = 0.5) |> dense }\n")
    e = Document(c, work + "/both.tn", both)
    for word, wanted in [("dropout: ", [[0, 11], [0, 47], [1, 81]]), ("dense = ", [[1, 37], [1, 59], [1, 99]])]:
        edits = e.answer("rename", e.find(word), newName="z")["changes"][e.uri]
        same("rename " + word, wanted, sorted([r["range"]["start"]["line"], r["range"]["start"]["character"]] for r in edits))
    e.set("block b(x) {\n    h = x\n    scan relu in x { h = relu(relu) }\n    return h\n}\n")
    check("rename beside a scan", "result" in e.ask("rename", e.find("relu"), newName="z"))
    target = "model m(x: f32[4]) { return dense(x, 1) }\ntrain m {\n    target = price: f32[1]\n    loss = mse(output, price)\n}\n"
    e.set(target)
    e.diagnostics()
    same("rename a target", target.replace("price", "cost"), e.apply(e.answer("rename", e.find("price"), newName="cost")["changes"][e.uri]))
    target = ("model m(x: f32[4]) {\n    h = dense(x, 2)\n    return size = dense(h, 1), h\n}\ntrain m {\n    target = (kind: class, area: f32[1])\n"
              "    loss = mse(size, area) + softmax_cross_entropy(h, kind)\n    expect = test_accuracy_kind >= 0.9\n"
              "    keep = best(validation_r2_area)\n    stop = patience(3, result = validation_loss_kind)\n    schedule = plateau(validation_mae_area)\n}\n")
    e.set(target)
    for old, new in ("area", "cost"), ("kind", "sort"), ("size", "width"), ("h", "hidden"):
        same(f"rename {old} of several outputs and targets, and in results", re.sub(rf"(?<![A-Za-z]){old}\b", new, target),
             e.apply(e.answer("rename", e.find(old + ":" if old in ("area", "kind") else old + " ="), newName=new)["changes"][e.uri]))
    check("rename a target at a result", "changes" in e.answer("rename", e.find("kind >="), newName="sort"))
    target = target.replace("loss = mse(size, area) +", "loss = terms(area = mse(size, area), kind =").replace("(h, kind)", "(h, kind))")
    e.set(target)
    wanted = target.replace("kind: class", "sort: class").replace("(h, kind)", "(h, sort)").replace("accuracy_kind", "accuracy_sort")
    same("rename a target beside a term of the same name", wanted, e.apply(e.answer("rename", e.find("kind:"), newName="sort")["changes"][e.uri]))
    target = ("model m(x: f32[4]) { return dense(x, 2) }\ntrain m {\n    keep = best(validation_near)\n    target = cost: f32[2]\n    loss = mse(output, cost)\n"
              "    metrics = [larger(near = mean(abs(output - cost) < 0.5, axes = [0])), report(bias = mean(output - cost, axes = [0]))]\n"
              "    expect = test_near >= 0.9\n}\n")
    e.set(target)
    for old, new, word in ("near", "close", "near ="), ("cost", "price", "cost:"):
        same(f"rename {old} of a recipe with metrics, and in results", target.replace(old, new), e.apply(e.answer("rename", e.find(word), newName=new)["changes"][e.uri]))
    check("rename a metric at a result", "changes" in e.answer("rename", e.find("near >="), newName="close"))
    check("hover of a metric", "near" in str(e.answer("hover", e.find("near ="))))
    check("hover of a target in a metric", "cost" in str(e.answer("hover", e.find("cost) < 0.5"))))
    e.set(target.replace("[larger(near", "").split("metrics =")[0] + "metrics = \n}\n")
    items = [i["label"] for i in e.answer("completion", e.find("\n}\n"))["items"]]
    check("completion of the forms of a metric", {"larger", "smaller", "report"} <= set(items))
    target = "model m(x: f32[4]) { return dense(x, 4) }\ntrain m {\n    target = x\n    loss = mse(output, x)\n}\n"
    e.set(target)
    e.diagnostics()
    same("rename an input that is the target", re.sub(r"\bx\b", "rows", target), e.apply(e.answer("rename", e.find("x"), newName="rows")["changes"][e.uri]))
    e.set(both)
    check("vocab with a default can be renamed", e.answer("rename", e.find("vocab"), newName="z"))
    e.set('model m(text: i32[8], vocab: int) { return embedding(text, 4) |> dense(vocab) }\n')
    message = e.ask("rename", e.find("vocab"), newName="z").get("error", {}).get("message")
    library = 'import "losses.tn"\nmodel m(x: f32[4]) { return dense(x, 4) }\ntrain m { loss = focal(output, label, gamma = 1.0) }\n'
    e.set(library)
    for word in "focal", "gamma":
        same(f"{word} of the library cannot be renamed", "this name belongs to losses.tn of Tenon's library",
             e.ask("rename", e.find(word), newName="z").get("error", {}).get("message"))
    same("the parameter that the data set sets", "the data set gives the parameter 'vocab' its value by its name", message)
    e.close()
    d = Document(c, work + "/net.tn", NET)
    outline = d.answer("documentSymbol")
    same("outline", [["conv", 0, 2], ["net", 5, 10], ["net", 12, 17]],
         [[o["name"], o["range"]["start"]["line"], o["range"]["end"]["line"]] for o in outline])
    same("bindings in the outline", ["h", "fc"], [o["name"] for o in outline[1]["children"]])
    pathlib.Path(d.path).write_text(NET)
    pathlib.Path(work, "link.tn").symlink_to("net.tn")
    link = Document(c, work + "/link.tn", "\nblock other(x) { return x }\n")
    same("a link has its own text", [], link.diagnostics())
    same("the outline of a link", ["other"], [o["name"] for o in link.answer("documentSymbol")])
    link.close()
    b.edit("return", "return (")
    same("rename while an open file is broken is refused", -32803, b.ask("rename", b.find("part"), newName="head")["error"]["code"])
    b.edit("return (", "return")
    e = Client(tenon, general={"positionEncodings": ["utf-32", "utf-8", "utf-16"]})
    same("positions in bytes", "utf-8", e.hello["result"]["capabilities"]["positionEncoding"])
    u = Document(e, work + "/u.tn", 'block b(x) { return dropout("😀é", y) }\n')
    same("a column in bytes", len('block b(x) { return dropout("😀é", '.encode()), [
        m["range"]["start"]["character"] for m in u.diagnostics() if m["message"] == "unknown name 'y'"][0])
    same("exit", 0, e.end())
    b.close()
    seen = a.diagnostics()
    while not (seen and seen[0]["message"].startswith("cannot import")):   # messages of the edits above come first
        seen = a.diagnostics()
    check("a closed import is read from its file", seen[0]["message"].startswith("cannot import 'parts.tn'"))
    pathlib.Path(work, "one/parts.tn").write_text(b.text)
    c.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": b.uri, "type": 1}]})
    same("a changed file is read again", [], a.diagnostics())
    same("exit", 0, c.end())


def random_edits(rounds):
    """Random edits, then the same text at once: both give the same messages.  Each request gets an answer."""
    dice = random.Random(1)
    models = sorted(pathlib.Path(root, "models").glob("*.tn")) + sorted(pathlib.Path(root, "tests/language").glob("**/*.tn"))
    pieces = ["(", ")", "{", "}", "[", "]", ",", "=", "|>", "\n", "\r\n", '"', "#", "😀", "é", "\0", "\t", " ", "h", "dense(", "return ", "train ", "for i in 0..3 {"]
    methods = ["hover", "completion", "signatureHelp", "definition", "references", "documentHighlight", "prepareRename", "rename"]
    def outside(text, at):                                 # no position is between the two characters of a line end
        return at + 1 if text[max(at - 1, 0):at + 1] == "\r\n" else at
    for number in range(rounds):
        c = Client(tenon, **({"general": {"positionEncodings": ["utf-16"]}} if number % 2 else {}))
        d = Document(c, str(dice.choice(models)))
        for step in range(40):
            at = outside(d.text, dice.randrange(len(d.text) + 1))
            end = outside(d.text, min(len(d.text), at + dice.choice([0, 0, 1, 1, 5, 40])))
            d.replace(at, end, dice.choice(pieces) if dice.random() < .8 else d.text[:dice.randrange(60)])
            method = dice.choice(methods)
            answer = d.ask(method, d.position(dice.randrange(len(d.text) + 1)), newName="z", context={"includeDeclaration": True})
            check(method, "result" in answer or answer["error"]["code"] in (-32803, -32602), answer)
            if step % 10 == 0:
                d.hints()
                d.answer("documentSymbol")
                d.answer("codeAction", range={"start": d.position(0), "end": d.position(len(d.text))}, context={"diagnostics": []})
        c.request("textDocument/x")
        d.edit(d.text[:1], d.text[:1]) if d.text else d.set("")
        while True:                                        # the diagnostics of the last version
            note = c.notes.pop(0) if c.notes else c.receive()
            if note.get("params", {}).get("version") == d.version:
                break
        other = Client(tenon)
        whole = Document(other, d.path, d.text)
        same("incremental and whole text", whole.diagnostics(), note["params"]["diagnostics"])
        same("exit", [0, 0], [c.end(), other.end()])


def damaged_messages(sessions):
    """Requests and notifications with random bytes: the server lives, and answers the next right request."""
    dice = random.Random(2)
    place = {"textDocument": {"uri": "file://" + work + "/net.tn", "version": 2}, "newName": "z", "options": {"tabSize": 4},
             "range": {"start": {"line": 1, "character": 1}, "end": {"line": 30, "character": 1}},
             "context": {"includeDeclaration": True, "diagnostics": []},
             "contentChanges": [{"range": {"start": {"line": 3, "character": 1}, "end": {"line": 3, "character": 2}}, "text": "x"}]}
    methods = ["textDocument/" + m for m in (
        "hover inlayHint completion signatureHelp definition references documentHighlight documentSymbol prepareRename rename "
        "codeAction formatting didChange didSave didClose").split()] + ["initialize", "workspace/didChangeWatchedFiles"]
    pieces = [b"null", b"{}", b"[]", b"-1", b"1e999", b'"\\u0000"', b'"\\ud800"', b",", b"}", b"99999999999"]

    def damaged(body):
        body = bytearray(body)
        for _ in range(dice.choice([0, 0, 1, 1, 2, 8])):
            i, kind = dice.randrange(len(body)), dice.random()
            if kind < .4:
                body[i] = dice.randrange(256)
            elif kind < .7:
                del body[i + 1:i + dice.randrange(1, 20)]
            else:
                body[i:i] = dice.choice(pieces)
        return bytes(body)
    for _ in range(sessions):
        c = Client(tenon)
        Document(c, work + "/net.tn", NET)
        for number in range(100):
            message = {"jsonrpc": "2.0", "method": dice.choice(methods),
                       "params": dict(place, position={"line": dice.randrange(20), "character": dice.randrange(60)})}
            if dice.random() < .7:
                message["id"] = "m%d" % number
            c.write(frame(damaged(json.dumps(message).encode())))
        same("a request after damaged messages", -32601, c.request("textDocument/x")["error"]["code"])
        same("exit", 0, c.end())


if part == "random":
    deep = os.environ.get("CHECK_DEEP") == "1"
    random_edits(200 if deep else 4)
    damaged_messages(50 if deep else 2)
else:
    {"protocol": protocol, "messages": messages, "answers": answers, "names": names}[part]()
print(counts[True], counts[False])
