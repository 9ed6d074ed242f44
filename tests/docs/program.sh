#!/usr/bin/env bash
# program.sh -- the reference pages of programs are those that the tables make, and the tables are complete.
set -eu
. "$(dirname "$0")/../common.sh"

reference=$(dirname "$TENON")/tests/tenon-reference
[ -x "$reference" ] || { bad "no $reference (cmake --build DIR --target tenon-reference)"; finish; exit 1; }
cd "$TENON_ROOT"
pages=docs/reference

# The pages.
mkdir "$work/pages" "$work/man"
succeeds "tenon-reference markdown" "$reference" markdown "$work/pages"
for page in program log files exit-codes environment limits; do
    cmp -s "$work/pages/$page.md" "$pages/$page.md" && ok || bad "$pages/$page.md is not what tenon-reference writes: run docs/generate/update"
done
succeeds "tenon-reference man" "$reference" man "$work/man"
if command -v groff > "$work/groff"; then
    groff -man -ww -Tascii -z "$work/man/tenon-program.1" 2> "$work/err"
    [ -s "$work/err" ] && bad "tenon-program.1: $(head -n 3 "$work/err")" || ok
else
    skip "no groff to format tenon-program.1 with"
fi

# Each option and command that a program offers is on the page.
builds=(lenet)
if command -v mpicc > "$work/mpicc" && command -v mpirun > "$work/mpirun"; then builds+=("mlp --comm mpi"); else skip "no MPI"; fi
for one in "${builds[@]/%lenet/lenet }"; do
    # shellcheck disable=SC2086
    build ${one%% *} "$work/${one%% *}" ${one#* }
    "$work/${one%% *}" --help > "$work/help"
    missing=
    for command in $(sed -n '/^$/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/help"); do
        grep -q "^### $command$" "$pages/program.md" || missing+=" $command"
        "$work/${one%% *}" "$command" --help >> "$work/help"
    done
    for option in $(grep -o '^  --[a-z-]*' "$work/help" | sort -u); do
        case $option in --help | --version) grep -q -- "\`$option\`" "$pages/program.md" ;; *) grep -q -- "^- \`$option[\` ]" "$pages/program.md" ;; esac || missing+=" $option"
    done
    [ -z "$missing" ] && [ "$(grep -c '^  --' "$work/help")" -gt 40 ] && ok || bad "$pages/program.md lacks of ${one%% *}:$missing"
done

# Variables: each one that is read has a row, and each row is read.
loose=$(grep -rnE 'getenv\([^)]*"' runtime || true)
[ -z "$loose" ] && ok || bad "a variable without a row in runtime/base/variables.h: $loose"
find runtime -name '*.c' -exec grep -ohE '(VARIABLE|RECORD)\([a-zA-Z_]*\)|FIELD\([a-z]*, [a-z_]*\)' {} + | sort -u > "$work/used"
sed -n 's/^ *ROW(\([A-Za-z_]*\), "[A-Z0-9].*/VARIABLE(\1)/p' runtime/base/variables.h | sort > "$work/rows"
same "variables that somebody reads" "$(grep VARIABLE "$work/used" | paste -sd' ')" "$(paste -sd' ' "$work/rows")"

# Records: each field of the table is written somewhere, and each field of a log is in the table.
fields() { sed -n 's/^ *ROW(\([a-z]*\), \([a-zA-Z0-9_]*\), "\(text\|count\|real\)".*/\1 \2/p' runtime/files/records.h; }
# The exceptions: names with a metric are made at run time, also those of tally.c; start and step have loss_scale and
# skipped_steps as epoch does; error.c writes messages.
tallied='top5|precision|recall|f1|iou|dice|iou_CLASS'
fields | grep -vE "^test test_($tallied)\$" | grep -vE '^message |_METRIC$|^(step|epoch) .*_perplexity|^(start|step) (loss_scale|skipped_steps)$' | sed 's/\(.*\) \(.*\)/FIELD(\1, \2)/' | sort > "$work/rows"
same "fields that somebody writes" "$(grep FIELD "$work/used" | paste -sd' ')" "$(paste -sd' ' "$work/rows")"
same "records that somebody writes" "$(sed -n 's/RECORD(\(.*\))/\1/p' "$work/used" | paste -sd' ')" "$(fields | cut -d' ' -f1 | grep -v message | sort -u | paste -sd' ')"
loose=$(grep -rnE 'log_(begin|text|count|real)\([^,]*, "' runtime --include=*.c || true)
[ -z "$loose" ] && ok || bad "a field without a row in runtime/files/records.h: $loose"
small_mnist "$work/mnist" 256 64
run=(--data "$work/mnist" --threads 1)
"$work/lenet" "${run[@]}" --epochs 1 --log-steps 1 --log "$work/train-%r.jsonl" --save "$work/w.safetensors" --checkpoint "$work/c" > "$work/out"
"$work/lenet" "${run[@]}" --epochs 2 --log "$work/train-%r.jsonl" --checkpoint "$work/c" --resume > "$work/out" 2>&1
refuses "a run that fails" "stayed below" "$work/lenet" "${run[@]}" --epochs 1 --stop-at 1 --log "$work/fails-%r.jsonl"
"$work/lenet" test "${run[@]}" --weights "$work/w.safetensors" --log "$work/test.jsonl" > "$work/out"
"$work/lenet" bench --threads 1 --steps 2 --layers --log "$work/bench.jsonl" > "$work/out"
[ ! -x "$work/mlp" ] || succeeds "2 ranks" mpirun --allow-run-as-root --oversubscribe -n 2 "$work/mlp" --epochs 1 "${run[@]}" --log "$work/ranks.jsonl"
cat "$work"/*.jsonl > "$work/records"
sed "s/^metrics test_METRIC\$/metrics test_($tallied|auc)/; s/_METRIC\$/_(loss|accuracy)/" <(fields) | sort -u > "$work/known"
fields_of_log() { awk -F'"' '{ for (i = 6; i <= NF; i++) if ($i ~ /^[a-z0-9_]+$/ && substr($(i + 1), 1, 1) == ":") print $4, $i }' "$work/records" | sort -u; }
fields_of_log > "$work/seen"
unknown=$(grep -vxE -f "$work/known" "$work/seen" || true)
[ -z "$unknown" ] && ok || bad "fields of a log that are not in runtime/files/records.h: $unknown"
for event in start step epoch metrics end test bench layer layers message; do
    grep -q "^$event " "$work/seen" && ok || bad "no record $event was written"
done
# Each record that was written has every field that all programs write.
always=$(sed -n 's/^ *ROW(\([a-z]*\), \([a-zA-Z0-9_]*\), "\(text\|count\|real\)", "[^"]*", "".*/\1 \2/p' runtime/files/records.h | sed 's/^metrics test_METRIC/metrics test_f1/; s/METRIC/loss/' | grep -E "^($(cut -d' ' -f1 "$work/seen" | sort -u | paste -sd'|')) ")
unseen=$(grep -vxF -f "$work/seen" <<< "$always" || true)
[ -z "$unseen" ] && ok || bad "fields of runtime/files/records.h that no log has: $unseen"
finish
