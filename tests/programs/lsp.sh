#!/usr/bin/env bash
# lsp.sh -- tenon lsp: the protocol and its errors, the messages of tenon check, answers at places of a text, names over several files,
# random edits; the grammars of editors/ know the lexer's words.  With --deep, real clients: Neovim without a screen, and pytest-lsp (PyPI).
#
#   TENON_NVIM=PROGRAM        another Neovim, with VIMRUNTIME if it is not installed (default: nvim); without it, its test is skipped
#   TENON_LSP_PYTHON=PYTHON   an interpreter with pytest-lsp (default: python3); without it, its test is skipped
#
# Parts: protocol messages answers names random colours clients
set -euo pipefail
. "$(dirname "$0")/../common.sh"

[ -x "$(dirname "$TENON")/tenon-lsp" ] || { skip "built without cJSON"; finish; exit; }
command -v python3 > /dev/null || { skip "no python3"; finish; exit; }

# count WHAT FILE: adds the counts in the last line of FILE, "good wrong", and shows the lines before it
count() {
    local good wrong
    if read -r good wrong < <(tail -n 1 "$2") && [[ "$good $wrong" =~ ^[0-9]+\ [0-9]+$ ]]; then
        passed=$((passed + good)) failed=$((failed + wrong))
        sed '$d' "$2" | grep '^FAIL' || true
    else
        bad "$1 did not end: $(tail -n 5 "$2")"
    fi
}

if part protocol; then
    # A compiler that was built without cJSON: tenon-lsp is not beside it.
    cp "$TENON" "$work/tenon"
    refuses "without tenon-lsp" "left out when this tenon was built: cJSON was missing" "$work/tenon" lsp
    rc=0; "$TENON" lsp --stdio < /dev/null > "$work/out" 2>&1 || rc=$?
    same "--stdio, and a client that is gone" "1 0" "$rc $(wc -c < "$work/out")"
    refuses "a word" "takes options only, not 'model.tn'" "$TENON" lsp model.tn
    refuses "an option" "tenon lsp has no option '--batch'" "$TENON" lsp --batch 3
fi

if part colours; then
    PYTHONDONTWRITEBYTECODE=1 python3 "$TENON_ROOT/tests/lsp/colours.py" "$TENON_ROOT" > "$work/seen" 2>&1 || true
    count "the colours of editors" "$work/seen"
    # The client of VS Code gets the command of the setting; the two packages are replaced by ones that record calls.
    if command -v node > /dev/null; then
        succeeds "editors/vscode/extension.js" node "$TENON_ROOT/tests/lsp/extension.js" "$TENON_ROOT"
    else
        skip "no node (Debian: nodejs)"
    fi
fi

for part in protocol messages answers names random; do
    part "$part" || continue
    PYTHONDONTWRITEBYTECODE=1 python3 "$TENON_ROOT/tests/lsp/server.py" "$part" "$TENON" "$TENON_ROOT" "$work" > "$work/seen" 2>&1 || true
    count "the client of part $part" "$work/seen"
done

if part clients && deep "clients of editors"; then
    nvim=${TENON_NVIM:-nvim}
    if command -v "$nvim" > /dev/null; then
        mkdir -p "$work/neovim"
        (cd "$work" && XDG_DATA_HOME=$work/neovim XDG_STATE_HOME=$work/neovim TENON=$TENON TENON_ROOT=$TENON_ROOT WORK=$work/neovim \
            timeout 120 "$nvim" --headless --clean -c "luafile $TENON_ROOT/tests/lsp/neovim.lua" > "$work/seen" 2>&1 < /dev/null) || true
        count "Neovim" "$work/seen"
    else
        skip "no Neovim (Debian: neovim)"
    fi
    python=${TENON_LSP_PYTHON:-python3}
    if "$python" -c 'import pytest_lsp' 2> /dev/null; then
        succeeds "pytest-lsp" env TENON="$TENON" TENON_ROOT="$TENON_ROOT" PYTHONDONTWRITEBYTECODE=1 \
            "$python" -m pytest -q -p no:cacheprovider -o asyncio_mode=auto "$TENON_ROOT/tests/lsp/pytest_client.py"
    else
        skip "no pytest-lsp (PyPI)"
    fi
    succeeds "bench/lsp" env TENON="$TENON" PYTHONDONTWRITEBYTECODE=1 "$TENON_ROOT/bench/lsp" --rounds 5
fi
finish
