#!/usr/bin/env bash
# fmt.sh -- tenon fmt: files, standard input, --check, and what it refuses.  tests/unit/test_format.c tests the style.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

# The models, and the examples of the operations, are in the style.
mkdir "$work/ops"
for op in $("$TENON" ops | sed -n 's/^  \([a-z0-9_]*\)(.*/\1/p'); do "$TENON" ops "$op" --example > "$work/ops/$op.tn"; done
[ "$(ls "$work/ops" | wc -l)" -ge 60 ] && ok || bad "tenon ops lists $(ls "$work/ops" | wc -l) operations"
succeeds "the style of models/ and of examples" "$TENON" fmt --check "$TENON_ROOT"/models/*.tn "$TENON_ROOT"/models/library/*.tn "$work"/ops/*.tn
same "files that would change" "$(wc -c < "$work/out" | tr -d ' ')" 0

# So are the examples of the documents, but one that shows what the language allows.
awk -v dir="$work/ops" '
    FNR == 1 { name = FILENAME; gsub("/", "_", name); on = 0 }
    /^```tenon( |$)/ { on = 1; file = dir "/" name FNR ".tn"; next }
    /^```/ { on = 0 }
    on { print > file }' "$TENON_ROOT"/README.md "$TENON_ROOT"/docs/*.md "$TENON_ROOT"/docs/*/*.md
grep -lE '^ .*; ' "$work"/ops/*.md*.tn > "$work/free"
same "examples that show what the language allows" "$(wc -l < "$work/free" | tr -d ' ')" 1
while read -r file; do rm "$file"; done < "$work/free"
[ "$(ls "$work"/ops/*.md*.tn | wc -l)" -ge 90 ] && ok || bad "the documents have $(ls "$work"/ops/*.md*.tn | wc -l) examples"
succeeds "the style of documents" "$TENON" fmt --check "$work"/ops/*.md*.tn

odd='model m(x:f32[8]) { return dense(x,4) }   # a comment'
good='model m(x: f32[8]) { return dense(x, 4) }  # a comment'
mkdir "$work/m"
a=$work/m/a.tn b=$work/m/b.tn
echo "$odd" > "$a"
echo "$good" > "$b"
chmod 640 "$a"
touch -d 2001-01-01 "$b"
refuses "--check of two files" "^tenon: error: 1 of 2 files would change" "$TENON" fmt --check "$a" "$b"
same "the file that would change" "$(cat "$work/out")" "$a"
same "a checked file" "$(cat "$a")" "$odd"
succeeds "two files" "$TENON" fmt "$a" "$b"
same "the file that has changed" "$(cat "$work/out")" "$a"
same "a formatted file" "$(cat "$a")" "$good"
same "the mode of a formatted file" "$(stat -c %a "$a")" 640
same "the time of a file that does not change" "$(date -r "$b" +%Y)" 2001
echo "$odd" > "$a"
rc=0; ( (ulimit -f 0; exec "$TENON" fmt "$a" > /dev/null 2>&1); exit $?) 2> /dev/null || rc=$?
[ $rc != 0 ] && ok || bad "a file of 0 bytes at most: exit code 0"
same "a file that cannot be written" "$(cat "$a")" "$odd"
same "files beside" "$(ls "$work/m" | tr '\n' ' ')" "a.tn b.tn "

# A link stays a link.
echo "$odd" > "$a"
ln -s a.tn "$work/m/link.tn"
succeeds "a link" "$TENON" fmt "$work/m/link.tn"
same "the target of a link" "$(readlink "$work/m/link.tn") $(cat "$a")" "a.tn $good"

# Standard input.
same "standard input" "$(echo "$odd" | "$TENON" fmt -)" "$good"
same "standard input in the style" "$(echo "$good" | "$TENON" fmt -)" "$good"
same "line ends of other systems" "$(printf 'op f(x) = x\r\n' | "$TENON" fmt - | od -c | head -n 1 | tr -d ' ')" "0000000opf(x)=x\n"
rc=0; echo "$odd" | "$TENON" fmt --check - > "$work/out" 2> /dev/null || rc=$?
same "--check of standard input" "$rc $(cat "$work/out")" "1 <stdin>"
python3 -c '
import socket, subprocess, sys
here, there = socket.socketpair()                         # as editors start a formatter
here.sendall(b"op  f(x)=x")
here.shutdown(socket.SHUT_WR)
sys.exit(subprocess.run([sys.argv[1], "fmt", "-"], stdin=there, capture_output=True).stdout != b"op f(x) = x\n")' "$TENON" && ok || bad "standard input is a socket"

# The time is linear in the number of comments: if it grew with the square, this file would take a minute.
awk 'BEGIN { for (i = 0; i < 300000; i++) print "# c"; print "op f(x) = x" }' > "$work/long.tn"
succeeds "300,000 comments" timeout 20 "$TENON" fmt --check "$work/long.tn"

# A file with an error stays, and the others are formatted.
echo "$odd" > "$a"
printf 'model m(x: f32[8]) {\n  return dense(x,\n' > "$work/m/wrong.tn"
cp "$work/m/wrong.tn" "$work/wrong"
refuses "a syntax error" "wrong.tn:3:1: error: " "$TENON" fmt "$work/m/wrong.tn" "$a"
cmp -s "$work/m/wrong.tn" "$work/wrong" && ok || bad "a file with a syntax error changes"
same "the file after one with an error" "$(cat "$a")" "$good"
rc=0; echo 'model m(' | "$TENON" fmt - > "$work/out" 2> "$work/err" || rc=$?
same "standard input with an error" "$rc $(wc -c < "$work/out" | tr -d ' ')" "1 0"
grep -q '^<stdin>:2:1: error: ' "$work/err" && ok || bad "an error of standard input: $(cat "$work/err")"
refuses "no file" "tenon fmt needs a model file, or - for standard input" "$TENON" fmt
refuses "a file that is not there" "cannot read $work/no.tn: No such file" "$TENON" fmt "$work/no.tn"
refuses "a directory" "cannot read $work: it is a directory" "$TENON" fmt "$work"
refuses "standard input and a file" "other files are given, too" "$TENON" fmt - "$b"
refuses "an option of other commands" "tenon fmt has no option '--batch'" "$TENON" fmt "$b" --batch 3
printf 'op f(x)=x' > "$work/m/given"
refuses "a file that is no file" "is not a file that can be replaced" "$TENON" fmt /dev/fd/3 3< <(cat "$work/m/given")
if [ "$(id -u)" != 0 ]; then
    echo "$odd" > "$a"
    chmod 440 "$a"
    refuses "a file that may not be written" "cannot write $a: Permission denied" "$TENON" fmt "$a"
    same "a file that may not be written" "$(cat "$a")" "$odd"
fi
finish
