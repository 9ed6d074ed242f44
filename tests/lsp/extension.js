// extension.js -- editors/vscode/extension.js with two packages that record its calls: it starts `tenon lsp` and stops it.
const assert = require("assert");
const path = require("path");
const Module = require("module");
const root = process.argv[2];
const seen = [];

const vscode = {
    workspace: {
        getConfiguration: (section) => ({ get: (key) => `value of ${section}.${key}` }),
        createFileSystemWatcher: (pattern) => `files ${pattern}`,
    },
};
class LanguageClient {
    constructor(...words) { seen.push(words); }
    start() { seen.push("start"); }
    stop() { seen.push("stop"); }
}
const load = Module._load;
Module._load = (name, ...rest) =>
    name === "vscode" ? vscode : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest);

const extension = require(path.join(root, "editors/vscode/extension.js"));
const manifest = require(path.join(root, "editors/vscode/package.json"));
extension.activate();
extension.deactivate();
const [id, , server, client] = seen[0];
assert.strictEqual(id, manifest.contributes.languages[0].id);
assert.deepStrictEqual(server, { command: "value of tenon.path", args: ["lsp"] });
assert.deepStrictEqual(client.documentSelector, [{ language: manifest.contributes.languages[0].id }]);
assert.strictEqual(client.synchronize.fileEvents, "files **/*.tn");
assert.deepStrictEqual(seen.slice(1), ["start", "stop"]);
assert.ok(manifest.contributes.configuration.properties["tenon.path"]);
assert.ok(manifest.activationEvents.includes("onLanguage:tenon"));
