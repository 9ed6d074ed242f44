#!/usr/bin/env bash
# compare_commits.sh -- bench/compare-commits builds two commits, runs them in turns and compares the results.
#
# Builds the compiler: with CHECK_DEEP=1 (./check --deep) only.  Skipped if the sources are not in git.
set -uo pipefail
. "$(dirname "$0")/../common.sh"
[ -x "$(dirname "$TENON")/tenon-bench" ] || { skip "built without SQLite or cJSON"; finish; exit; }
git -C "$TENON_ROOT" rev-parse --quiet --verify HEAD > /dev/null 2>&1 || { skip "these sources are not in git"; finish; exit; }
export TENON_COMMITS=$work/commits TENON_CACHE=$work/cache
cd "$work"
compare() { "$TENON_ROOT/bench/compare-commits" "$@"; }

refuses "one commit" "needs two commits" compare HEAD
refuses "a commit that is not there" "there is no commit 'no-such' here" compare no-such HEAD
refuses "another one" "there is no commit 'no-such' here" compare HEAD no-such
refuses "no number of rounds" "--repeat needs a number, not 'x'" compare HEAD HEAD --repeat x
TENON=$work/tenon refuses "no tenon" "there is no $work/tenon-bench" compare HEAD HEAD
[ ! -e "$work/commits" ] && ok || bad "a refusal leaves something behind"
deep "two commits that are measured" || { finish; exit; }

# The same commit twice: two rounds prove nothing yet, two more rounds do.
quick=("$TENON_ROOT/models/mlp.tn" --steps 5 --threads 1 --retries 0)
head=$(git -C "$TENON_ROOT" rev-parse HEAD)
label=$(git -C "$TENON_ROOT" rev-parse --short=10 "$head")
succeeds "two rounds" compare "$head" "$head" --repeat 2 "${quick[@]}"
grep -q 'too few runs to say' out && grep -q '^round 2 of 2' out && ok || bad "two rounds: $(cat out)"
compare "$head" "$head" --repeat 4 "${quick[@]}" > out 2>&1 || true      # on a busy machine, steps of a ms may differ
grep -q '^1 compared: ' out && ! grep -q '^building' out && ok || bad "two more: $(cat out)"
store=$work/commits/$label-$label.again.db
"$TENON" results export --csv --store "$store" > runs.csv 2> err || bad "$(cat err)"
same "runs" "$(tail -n +2 runs.csv | wc -l)" 8
same "their labels, commit and programs" \
    "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at["label"], $at["compiler_commit"], $at["binary"] }' runs.csv | sort -u | wc -l)" 2
same "their commit" "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at["compiler_commit"] }' runs.csv | sort -u)" "$label"
finish
