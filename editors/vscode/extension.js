// extension.js -- starts tenon lsp for model files.  The package vscode-languageclient (npm) is the client.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = function () {
    const command = workspace.getConfiguration("tenon").get("path");
    client = new LanguageClient("tenon", "Tenon", { command, args: ["lsp"] }, {
        documentSelector: [{ language: "tenon" }],
        synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.tn") },
    });
    return client.start();
};

exports.deactivate = function () {
    return client && client.stop();
};
