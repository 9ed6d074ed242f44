"""client.py -- a client of tenon lsp for tests and measurements: sends messages, waits for answers."""
import json
import os
import pathlib
import select
import subprocess
import urllib.parse


class Gone(Exception):
    """The server ended, or did not answer in time."""


class Client:
    def __init__(self, tenon, start=True, **capabilities):
        self.process = subprocess.Popen([tenon, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.last = 0
        self.bytes = b""
        self.notes = []
        if start:
            self.hello = self.request("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": capabilities})
            self.notify("initialized", {})

    def write(self, data):
        while data:
            data = data[self.process.stdin.write(data):]

    def send(self, message):
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def fill(self, seconds):
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise Gone("no answer in %g seconds" % seconds)
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        if not data:
            raise Gone("the server has closed its output")
        self.bytes += data

    def receive(self, seconds=60):
        while b"\r\n\r\n" not in self.bytes:
            self.fill(seconds)
        head, _, rest = self.bytes.partition(b"\r\n\r\n")
        length = int(head.split(b":")[1])
        self.bytes = rest
        while len(self.bytes) < length:
            self.fill(seconds)
        body, self.bytes = self.bytes[:length], self.bytes[length:]
        return json.loads(body)

    def request(self, method, params=None):
        """The whole answer; notifications that come before it are kept."""
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        while True:
            answer = self.receive()
            if answer.get("id") == self.last and "method" not in answer:
                return answer
            self.notes.append(answer)

    def reply(self):
        """The next message that is no notification."""
        while True:
            message = self.receive()
            if "method" not in message:
                return message
            self.notes.append(message)

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)

    def diagnostics(self, uri):
        """The next diagnostics of this document."""
        while True:
            for i, note in enumerate(self.notes):
                if note.get("method") == "textDocument/publishDiagnostics" and note["params"]["uri"] == uri:
                    return self.notes.pop(i)["params"]["diagnostics"]
            self.notes.append(self.receive())

    def end(self):
        """The exit code after the protocol's end."""
        self.request("shutdown")
        self.notify("exit")
        self.process.stdin.close()
        return self.process.wait(10)


class Document:
    """An open text: positions are in UTF-16 units."""

    def __init__(self, client, path, text=None):
        self.client = client
        self.path = os.path.abspath(path)
        self.uri = "file://" + urllib.parse.quote(self.path)
        self.text = pathlib.Path(path).read_bytes().decode() if text is None else text
        self.version = 1
        client.notify("textDocument/didOpen", {"textDocument": {
            "uri": self.uri, "languageId": "tenon", "version": 1, "text": self.text}})

    def position(self, offset):
        before = self.text[:offset]
        line = before.count("\n")
        tail = before[before.rfind("\n") + 1:]
        return {"line": line, "character": len(tail.encode("utf-16-le", "surrogatepass")) // 2}

    def find(self, word, nth=0, after=""):
        """The position of a word: its nth occurrence after the text `after`."""
        at = self.text.index(after) + len(after) if after else 0
        for _ in range(nth + 1):
            at = self.text.index(word, at) + 1
        return self.position(at - 1)

    def replace(self, begin, end, text):
        """An incremental change."""
        change = {"range": {"start": self.position(begin), "end": self.position(end)}, "text": text}
        self.text = self.text[:begin] + text + self.text[end:]
        self.change([change])

    def edit(self, old, new):
        at = self.text.index(old)
        self.replace(at, at + len(old), new)

    def set(self, text):
        self.text = text
        self.change([{"text": text}])

    def change(self, changes):
        self.version += 1
        self.client.notify("textDocument/didChange", {
            "textDocument": {"uri": self.uri, "version": self.version}, "contentChanges": changes})

    def close(self):
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})

    def diagnostics(self):
        return self.client.diagnostics(self.uri)

    def ask(self, method, position=None, **more):
        params = {"textDocument": {"uri": self.uri}, **more}
        if position is not None:
            params["position"] = position
        return self.client.request("textDocument/" + method, params)

    def answer(self, method, position=None, **more):
        answer = self.ask(method, position, **more)
        if "error" in answer:
            raise AssertionError(answer["error"]["message"])
        return answer["result"]

    def hover(self, position):
        result = self.answer("hover", position)
        return result["contents"]["value"] if result else ""

    def hints(self):
        """The hint of each line that has one."""
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": self.text.count("\n") + 1, "character": 0}}
        return {h["position"]["line"]: h["label"] for h in self.answer("inlayHint", range=whole)}

    def labels(self, position):
        return [item["label"] for item in self.answer("completion", position)["items"]]

    def apply(self, edits):
        """The text after the edits of a workspace edit."""
        lines = self.text.split("\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)

        def offset(p):
            units = lines[p["line"]].encode("utf-16-le")[:2 * p["character"]]
            return starts[p["line"]] + len(units.decode("utf-16-le"))
        text = self.text
        for e in sorted(edits, key=lambda e: -offset(e["range"]["start"])):
            text = text[:offset(e["range"]["start"])] + e["newText"] + text[offset(e["range"]["end"]):]
        return text
