#!/usr/bin/env bash
# first_day.sh -- bench/first-day over stand-ins for CUDA: a small pack, its parts a and b, a part that is killed and goes on, the report.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
. tests/cuda/shim.sh
deep "the first day with a GPU, over stand-ins" || { finish; exit; }
{ [ "$(uname -m)" = x86_64 ] && command -v g++ && command -v xargs; } > /dev/null || { skip "the first day: it needs g++, xargs and x86-64"; finish; exit; }
shim_runtime

# ---- a pack as bench/first-day makes it, with stand-ins for programs
pack=$work/pack
mkdir -p "$pack"/{programs,want,data,steps,cpu}
small_mnist "$pack/data/mnist" 128 32
cc -std=gnu11 -O1 -o "$pack/compare" tests/tools/compare.c -lm
cp bench/day/run "$pack/run"
echo "a test" > "$pack/commit"
"$TENON" ops tanh --example > "$work/tanh.tn"
put() { # put NAME MODEL DATA [OPTIONS]
    local name=$1 model=$2 data=$3; shift 3
    shim_gpu "$name" "$model" "$@"
    mv "$work/$name/gpu" "$pack/programs/$name.own"
    succeeds "what $name must compute" bench/day/want "$pack" "$name" "$model" "$data" "$@"
    echo "$name own $data" >> "$pack/forms"
}
put op_tanh "$work/tanh.tn" -
put norm tests/cuda/norm.tn -
put mlp models/mlp.tn mnist --batch 32
cp "$pack/programs/norm.own" "$pack/steps/norm"
lines() { grep -c "$1" "$pack/results/$2.jsonl" || true; }

succeeds "part a" "$pack/run" a
same "gradients and losses of three programs" "$(lines '"ok":true' a)" 6
grep -q "part a: 6 passed, 0 failed" "$work/out" && ok || bad "what part a says: $(cat "$work/out")"
succeeds "part a again" "$pack/run" a
same "nothing is done twice" "$(wc -l < "$pack/results/a.jsonl")" 6

# A part that is killed leaves whole lines, and goes on where it was.
rm -rf "$pack/results"
DAY_JOBS=1 setsid "$pack/run" a > /dev/null 2>&1 & job=$!
for _ in $(seq 600); do [ -s "$pack/results/a.jsonl" ] && break; sleep 0.02; done
kill -9 -- -$job
wait $job 2> /dev/null || true
[ "$(wc -l < "$pack/results/a.jsonl")" -lt 6 ] && ok || skip "the part was finished before it was killed"
succeeds "it goes on" "$pack/run" a
same "each check once" "$(cut -d, -f2,3 "$pack/results/a.jsonl" | sort | uniq -c | awk '$1 == 1' | wc -l)" 6

# A gradient that is wrong is found.
cp "$pack/want/op_tanh.safetensors" "$work/kept"
cp "$pack/want/norm.safetensors" "$pack/want/op_tanh.safetensors"
sed -i '/op_tanh/d' "$pack/results/a.jsonl"
"$pack/run" a > "$work/out"
grep -q "FAILED op_tanh.own, gradients" "$work/out" && ok || bad "wrong gradients pass: $(cat "$work/out")"
cp "$work/kept" "$pack/want/op_tanh.safetensors"

succeeds "the time of steps" env DAY_MS=1 DAY_BURSTS=1 "$pack/run" d
same "of one program" "$(lines '"what":"step_ms","ok":true' d)" 1
rc=0
python3 -B bench/day/report.py "$pack/results" > "$work/out" || rc=$?
same "exit code of the report of a failure" $rc 1
grep -q "^failed: part a: op_tanh.own, gradients" "$work/out" && ok || bad "the report does not name the failure: $(tail -n 3 "$work/out")"
sed -i '/"name":"op_tanh.own","what":"gradients"/d' "$pack/results/a.jsonl"
succeeds "part a, repaired" "$pack/run" a
succeeds "the report" python3 -B bench/day/report.py "$pack/results"
grep -q "^| own | gradients | 3 | 0 |" "$work/out" && ok || bad "the report: $(cat "$work/out")"
finish
