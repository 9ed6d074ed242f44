#!/usr/bin/env bash
# tree_sitter.sh -- editors/tree-sitter-tenon has the lexer's words.  With --deep, by tree-sitter's own program: the corpus; models,
# documents' examples and operations' examples have no error; tests/errors have one where `tenon fmt` has a syntax error; random edits
# that `tenon fmt` accepts have no error; the colours, also in Neovim.
#
#   TENON_TREE_SITTER=PROGRAM    tree-sitter, version 0.22 (default: tree-sitter; else that of Debian 13, unpacked for this test)
#   TENON_NVIM=PROGRAM           another Neovim (default: nvim); without it, its test is skipped
set -uo pipefail
. "$(dirname "$0")/../common.sh"
grammar=$TENON_ROOT/editors/tree-sitter-tenon

words() { grep -oE "$1" "$2" | grep -oE '[a-z]+' | tr '\n' ' '; }
lexer=$(sed -n '/^static int keyword/,/^}/p' "$TENON_ROOT/grammar/lexer.l" | grep -oE '\{"[a-z]+"' | grep -oE '[a-z]+' | tr '\n' ' ')
same "the words of the scanner" "$(sed -n '/words\[\] = /,/;/p' "$grammar/src/scanner.c" | grep -oE '"[a-z]+"' | tr -d '"' | tr '\n' ' ')" "$lexer"
same "the words of the grammar" "$(sed -n '/^const words/,/;/p' "$grammar/grammar.js" | grep -oE "'[a-z]+'" | tr -d "'" | tr '\n' ' ')" "$lexer"
for word in $lexer; do
    case $word in true | false) continue ;; esac
    grep -q "\"$word\"" "$grammar/queries/highlights.scm" && ok || bad "highlights.scm has no colour for '$word'"
done

deep "the grammar for tree-sitter" || { finish; exit; }
command -v node > /dev/null || { skip "no node, which evaluates grammar.js (Debian: nodejs)"; finish; exit; }
command -v python3 > /dev/null || { skip "no python3"; finish; exit; }
program=${TENON_TREE_SITTER:-tree-sitter}
if ! command -v "$program" > /dev/null; then
    . "$(dirname "$0")/../unpack.sh"
    newer=$work/newer                                     # with its own libc
    if ! command -v dpkg-deb > /dev/null || [ -z "$mirror" ] || ! unpack trixie "$newer" tree-sitter-cli libc6 libgcc-s1 libssl3t64; then
        skip "no tree-sitter (Debian 13: tree-sitter-cli)"; finish; exit
    fi
    library=$(dirname "$(find "$newer" -name libc.so.6)")
    program=$work/tree-sitter
    printf '#!/bin/sh\nexec %q --library-path %q %q "$@"\n' "$(compgen -G "$newer/usr/lib*/ld-linux*.so.*" || compgen -G "$library/ld-linux*.so.*")" \
        "$library" "$newer/usr/bin/tree-sitter" > "$program"
    chmod +x "$program"
fi
export HOME=$work/home                                    # tree-sitter keeps compiled grammars here
mkdir -p "$HOME"
cp -r "$grammar" "$work/grammar"
cd "$work/grammar"
"$program" generate --no-bindings > "$work/out" 2>&1 && ok || { bad "tree-sitter generate: $(cat "$work/out")"; finish; exit 1; }
succeeds "the corpus" "$program" test
sed -i 's/(return$/(yield/' test/corpus/statements.txt
"$program" test > "$work/out" 2>&1 && bad "a wrong corpus passes" || ok

# wrong FILE...: prints the files with an error, one on each line
wrong() { printf '%s\n' "$@" > "$work/paths"; "$program" parse -q --paths "$work/paths" 2> /dev/null | sed -n 's/^\(.*\.tn\)[[:blank:]].*/\1/p' | sort; }

mkdir "$work/files"
for op in $("$TENON" ops | sed -n 's/^  \([a-z0-9_]*\)(.*/\1/p'); do "$TENON" ops "$op" --example > "$work/files/$op.tn"; done
awk -v dir="$work/files" '
    FNR == 1 { name = FILENAME; gsub("/", "_", name); on = 0 }
    /^```tenon( |$)/ { on = 1; file = dir "/" name FNR ".tn"; next }
    /^```/ { on = 0 }
    on { print > file }' "$TENON_ROOT"/README.md "$TENON_ROOT"/docs/*.md "$TENON_ROOT"/docs/*/*.md
for file in "$work"/files/*.tn; do "$TENON" fmt - < "$file" > /dev/null 2>&1 || rm "$file"; done
[ "$(ls "$work/files" | wc -l)" -ge 150 ] && ok || bad "only $(ls "$work/files" | wc -l) examples"
same "models and examples with an error" "none$(wrong "$TENON_ROOT"/models/*.tn "$work"/files/*.tn)" none

# These messages come from the parser, but not from the grammar: values, types and the words of scan.
meaning='the (integer|number) .* is too large|is not UTF-8 text|has no dimensions|needs its dimensions|there is no type|unexpected .(backwards|each|recompute|reverse).$|.every. is missing|is given twice'
for file in "$TENON_ROOT"/tests/errors/*.tn; do
    "$TENON" fmt - < "$file" > /dev/null 2> "$work/err" || ! grep -a ' error: ' "$work/err" | grep -avqE "$meaning" || echo "$file"
done | sort > "$work/syntax"
[ "$(wc -l < "$work/syntax")" -ge 25 ] && ok || bad "only $(wc -l < "$work/syntax") files have a syntax error"
wrong "$TENON_ROOT"/tests/errors/*.tn > "$work/found"
diff "$work/syntax" "$work/found" > "$work/out" && ok || bad "files of tests/errors: $(cat "$work/out")"

# Random edits, without seeds from the clock.
python3 - "$TENON" "$TENON_ROOT" "$work" << 'END'
import pathlib, random, re, subprocess, sys
tenon, root, work = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
pick = random.Random(28)
token = re.compile(rb'[ \t]+|\n|#[^\n]*|"[^"\n]*"|[A-Za-z_]\w*|\d+(?:\.\d+)?(?:e[+-]?\d+)?|\|>|\.\.|//|\*\*|[=!<>]=|.', re.S)
pieces = [b'\n', b';', b' else ', b'|>', b' if ', b' in ', b' # c\n', b'(', b')', b'{', b'}', b' not ', b'-', b'<', b'=', b',', b'.']
texts = [p.read_bytes() for p in sorted([*root.glob("models/*.tn"), *root.glob("tests/errors/*.tn"), *(work / "files").glob("*.tn")])]
texts = [t for t in texts if len(t) < 4000]
(work / "edits").mkdir()
with open(work / "accepted", "w") as accepted, open(work / "refused", "w") as refused:
    for i in range(1500):
        parts = token.findall(pick.choice(texts))
        for _ in range(pick.choice([1, 1, 2, 3])):
            at = pick.randrange(len(parts) + 1)
            what = pick.randrange(4)
            if what == 0:
                del parts[at:at + 1]
            elif what == 1:
                parts.insert(at, pick.choice(pieces))
            elif what == 2:
                parts.insert(at, pick.choice(parts or pieces))
            else:
                parts[at:at + 1] = [pick.choice(parts or pieces)]
        file = work / "edits" / f"{i:04}.tn"
        file.write_bytes(b"".join(parts))
        with open(file) as text:
            done = subprocess.run([tenon, "fmt", "-"], stdin=text, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        print(file, file=accepted if done else refused)
END
mapfile -t accepted < "$work/accepted"; mapfile -t refused < "$work/refused"
[ ${#accepted[@]} -ge 150 ] && [ ${#refused[@]} -ge 150 ] && ok || bad "${#accepted[@]} edits are accepted, ${#refused[@]} refused"
same "accepted edits with an error" "none$(wrong "${accepted[@]}" | head -n 5)" none
# Of edits that tenon fmt refuses, some are wrong in a value, or end a line too early: the grammar is for editors, which show these errors.
found=$(wrong "${refused[@]}" | wc -l)
[ $((found * 100)) -ge $((${#refused[@]} * 90)) ] && ok || bad "of ${#refused[@]} refused edits, $found have an error"

# Colours.
"$program" query queries/highlights.scm "$TENON_ROOT/models/lenet.tn" > "$work/out" 2>&1 && ok || bad "highlights.scm: $(tail -n 3 "$work/out")"
for seen in 'capture: .* - keyword, .*text: `model`' 'capture: .* - function.call, .*text: `conv2d`' 'capture: .* - number, .*text: `0.05`' 'capture: .* - property, .*text: `loss`'; do
    grep -qE "$seen" "$work/out" && ok || bad "no colour '$seen'"
done

nvim=${TENON_NVIM:-nvim}
command -v "$nvim" > /dev/null || { skip "no Neovim (Debian: neovim)"; finish; exit; }
cp -r "$TENON_ROOT/editors/neovim" "$work/neovim"
mkdir -p "$work/neovim/parser" "$work/neovim/queries/tenon"
succeeds "the parser of Neovim" cc -O1 -shared -fPIC -I src src/parser.c src/scanner.c -o "$work/neovim/parser/tenon.so"
cp queries/highlights.scm "$work/neovim/queries/tenon"
cat > "$work/look.lua" << 'END'
vim.opt.runtimepath:prepend(vim.env.WORK .. "/neovim")
vim.cmd("filetype plugin on | syntax on")
vim.cmd("runtime! ftdetect/*.lua")
require("tenon").command = { "no-such-program" }
vim.cmd("edit " .. vim.env.MODEL)
local ok, message = pcall(function()
  local root = vim.treesitter.get_parser(0, "tenon"):parse()[1]:root()
  local get = vim.treesitter.query.get or vim.treesitter.get_query or vim.treesitter.query.get_query
  local query, count = get("tenon", "highlights"), 0
  for _ in query:iter_captures(root, 0, 0, -1) do count = count + 1 end
  local shown = vim.treesitter.highlighter and vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()] ~= nil
  print(("root %s, errors %s, captures %d, shown %s"):format(root:type(), root:has_error(), count, shown))
end)
if not ok then print(message) end
vim.cmd("qall!")
END
(cd "$work" && XDG_DATA_HOME=$work XDG_STATE_HOME=$work WORK=$work MODEL=$TENON_ROOT/models/lenet.tn timeout 60 "$nvim" --headless --clean -c "luafile $work/look.lua" > "$work/out" 2>&1 < /dev/null)
grep -qE 'root file, errors false, captures [1-9][0-9]{2,}, shown true' "$work/out" && ok || bad "Neovim: $(cat "$work/out")"
finish
