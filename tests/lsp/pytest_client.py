"""pytest_client.py -- tenon lsp with the client of pytest-lsp (PyPI), which checks every message against the protocol's types."""
import asyncio
import os
import pathlib

import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

NET = pathlib.Path(os.environ["TENON_ROOT"], "models/inception_v3.tn")
URI = NET.as_uri()
DOCUMENT = types.TextDocumentIdentifier(uri=URI)


@pytest_lsp.fixture(config=ClientServerConfig(server_command=[os.environ["TENON"], "lsp"]))
async def client(lsp_client: LanguageClient):
    await lsp_client.initialize_session(types.InitializeParams(capabilities=client_capabilities("visual-studio-code"), root_uri=None))
    lsp_client.text_document_did_open(types.DidOpenTextDocumentParams(
        text_document=types.TextDocumentItem(uri=URI, language_id="tenon", version=1, text=NET.read_text())))
    await lsp_client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    yield
    await lsp_client.shutdown_session()


def place(word, after=""):
    text = NET.read_text()
    at = text.index(word, text.index(after))
    return types.Position(line=text[:at].count("\n"), character=at - text.rfind("\n", 0, at) - 1)


def at(kind, word, after="", **more):
    return kind(text_document=DOCUMENT, position=place(word, after), **more)


async def test_diagnostics(client):
    assert len(client.diagnostics[URI]) == 0
    line = place("return global_avg_pool")
    client.text_document_did_change(types.DidChangeTextDocumentParams(
        text_document=types.VersionedTextDocumentIdentifier(uri=URI, version=2),
        content_changes=[types.TextDocumentContentChangePartial(range=types.Range(start=line, end=line), text="h = conv(h, \n    ")]))
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert len(client.diagnostics[URI]) >= 1
    assert all(d.source == "tenon" for d in client.diagnostics[URI])
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(
        text_document=DOCUMENT, range=types.Range(start=types.Position(line=0, character=0), end=types.Position(line=99, character=0))))
    assert any(h.label == "(N, 2048)" for h in hints)      # of the last text without an error


async def test_hover(client):
    hover = await client.text_document_hover_async(at(types.HoverParams, "dense(features"))
    assert "(N, 2048) → **(N, 1000)**" in hover.contents.value
    for _ in range(300):
        if "predicted time" in hover.contents.value:
            break
        await asyncio.sleep(0.1)
        hover = await client.text_document_hover_async(at(types.HoverParams, "dense(features"))
    assert "predicted time" in hover.contents.value and "planned memory" in hover.contents.value


async def test_places(client):
    found = await client.text_document_definition_async(at(types.DefinitionParams, "mixed_a(h"))
    assert found.range.start == place("mixed_a(x")
    uses = await client.text_document_references_async(
        at(types.ReferenceParams, "pooled(x, f", context=types.ReferenceContext(include_declaration=True)))
    assert len(uses) == 4
    marks = await client.text_document_document_highlight_async(at(types.DocumentHighlightParams, "pooled(x, f"))
    assert len(marks) == 4
    outline = await client.text_document_document_symbol_async(types.DocumentSymbolParams(text_document=DOCUMENT))
    assert [s.name for s in outline][-2:] == ["inception_v3", "inception_v3"]


async def test_rename(client):
    ready = await client.text_document_prepare_rename_async(at(types.PrepareRenameParams, "pooled(x, f"))
    assert ready.placeholder == "pooled"
    edit = await client.text_document_rename_async(at(types.RenameParams, "pooled(x, f", new_name="averaged"))
    assert len(edit.changes[URI]) == 4


async def test_completion(client):
    items = await client.text_document_completion_async(at(types.CompletionParams, "avg_pool(x"))
    assert {"avg_pool", "conv", "x", "filters"} <= {i.label for i in items.items}
    help_ = await client.text_document_signature_help_async(at(types.SignatureHelpParams, "1, pad = 1"))
    assert help_.signatures[0].label.startswith("avg_pool(x, kernel")


async def test_actions_and_format(client):
    whole = types.Range(start=types.Position(line=0, character=0), end=types.Position(line=99, character=0))
    assert not await client.text_document_code_action_async(types.CodeActionParams(
        text_document=DOCUMENT, range=whole, context=types.CodeActionContext(diagnostics=[])))
    assert not await client.text_document_formatting_async(types.DocumentFormattingParams(
        text_document=DOCUMENT, options=types.FormattingOptions(tab_size=4, insert_spaces=True)))
