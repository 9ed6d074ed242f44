#!/usr/bin/env bash
# lsp.sh -- tenon lsp: the protocol and its errors, the messages of tenon check, answers at places of a text, names over several files,
# random edits.  With --deep, real clients: Neovim without a screen, and pytest-lsp (PyPI).
#
# Parts: protocol messages answers names random clients
set -euo pipefail
. "$(dirname "$0")/../common.sh"

[ -x "$(dirname "$TENON")/tenon-lsp" ] || { skip "built without cJSON"; finish; exit; }
command -v python3 > /dev/null || { skip "no python3"; finish; exit; }

for part in protocol messages answers names random; do
    part "$part" || continue
    PYTHONDONTWRITEBYTECODE=1 python3 "$TENON_ROOT/tests/lsp/server.py" "$part" "$TENON" "$TENON_ROOT" "$work" > "$work/seen" 2> "$work/err" || true
    if read -r good wrong < <(tail -n 1 "$work/seen") && [[ "$good $wrong" =~ ^[0-9]+\ [0-9]+$ ]]; then
        passed=$((passed + good)) failed=$((failed + wrong))
        sed '$d' "$work/seen"
    else
        bad "the client of part $part did not end: $(tail -n 5 "$work/seen" "$work/err")"
    fi
done
finish
