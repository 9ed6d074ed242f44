#!/usr/bin/env bash
# tutorial.sh -- runs the commands of docs/tutorial.md in order, and compares their output with the page; with CHECK_DEEP=1 also those of
# the how-to pages that have <!-- tested --> in their head.
#
# Parts: smaller points tools
# Deep parts: lenet pages
set -uo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/page"
# A reader has the default flags.  With those of other tests, ./check compiles only what these have not compiled; but LeNet's training
# takes longer with them than its compilation with the default flags.
if [ "$CHECK_DEEP" = 1 ] || part lenet; then unset TENON_CFLAGS TENON_STEP_CFLAGS; fi

# Each network of the tutorial is a part, with the section that makes the directory.
if part lenet; then run_page "$TENON_ROOT/docs/tutorial.md" '^[1-57][.] '; fi
if part smaller; then run_page "$TENON_ROOT/docs/tutorial.md" '^[16][.] '; fi
if part points; then run_page "$TENON_ROOT/docs/tutorial.md" '^[^2-7]'; fi

if part tools; then
    # csv2npy accepts the separators that `predict` accepts.
    (
        cd "$work" && ${CC:-cc} -o csv2npy "$TENON_ROOT/docs/examples/csv2npy.c" || exit
        awk 'BEGIN { print "width,height,kind"; for (i = 0; i < 20; i++) printf "%d,%.1f,%s\n", i, i / 3, i % 2 ? "a b" : "c" }' > points.csv
        ./csv2npy points.csv points > printed && grep -qx 'points: 16 train samples of 2 numbers' printed || exit
        for separator in ';' '\t'; do
            tr , "$separator" < points.csv > other.csv && ./csv2npy other.csv other > printed && diff -r points other || exit
        done
    ) && ok || bad "csv2npy: other arrays from semicolons or tabs than from commas"

    # The comparison must be able to fail.
    printf '...\nepoch 1/2 0.74 s loss 0.40, accuracy 0.88\nend\n' > "$work/page"
    differs() { printf "$2" > "$work/printed"; awk -f "$here/compare.awk" "$work/page" "$work/printed" > /dev/null && bad "compare.awk: $1" || ok; }
    agrees() { printf "$2" > "$work/printed"; awk -f "$here/compare.awk" "$work/page" "$work/printed" > /dev/null && ok || bad "compare.awk: $1"; }
    agrees "another time, and losses nearby" 'a\nb\nepoch 1/2 12.5 s loss 0.42, accuracy 0.87\nend\n'
    differs "another loss" 'epoch 1/2 12.5 s loss 0.70, accuracy 0.87\nend\n'
    differs "another accuracy" 'epoch 1/2 0.74 s loss 0.40, accuracy 0.82\nend\n'
    differs "another epoch" 'epoch 2/2 0.74 s loss 0.40, accuracy 0.88\nend\n'
    differs "another word" 'epoch 1/2 0.74 s lost 0.40, accuracy 0.88\nend\n'
    differs "a line too few" 'epoch 1/2 0.74 s loss 0.40, accuracy 0.88\n'
    differs "a line too many" 'epoch 1/2 0.74 s loss 0.40, accuracy 0.88\nend\nend\n'
fi

if part pages && deep "the commands of the how-to pages"; then
    for page in "$TENON_ROOT"/docs/*.md "$TENON_ROOT"/docs/how-to/*.md; do
        if grep -q '^<!-- tested -->$' "$page"; then run_page "$page"; fi
    done
fi
finish
