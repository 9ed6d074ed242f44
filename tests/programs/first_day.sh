#!/usr/bin/env bash
# first_day.sh -- bench/first-day over programs that only say what Tenon's programs say: errors of usage, packs that are interrupted or lack
# a program, results that are cut, steps on processors beside peers, the report of broken files; over stand-ins for CUDA a small pack, its
# parts a and d, a part that is killed and goes on, a wrong gradient.
#
# Deep: takes more than a minute of a processor.
#
# Parts: pack gpu
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
{ [ "$(uname -m)" = x86_64 ] && command -v g++ && command -v xargs && command -v xz && command -v flock && command -v python3; } > /dev/null ||
    { skip "the first day: it needs g++, xargs, xz, flock, python3 and x86-64"; finish; exit; }

# ---- a pack of programs that only say what Tenon's programs say
part pack && {
mkdir "$work/bin"
export STAND_INS=$work/bin REAL=$TENON
cat > "$STAND_INS/program" << 'SH'
#!/usr/bin/env bash
# A program of Tenon in a few words.  SAYS=nothing: `bench` has no record.  MISSES=1: a run misses its expectation.  CALLS: a file for its commands.
log= threads=1
[ -z "${CALLS:-}" ] || echo "$0 $*" >> "$CALLS"
for ((i = 1; i < $#; i++)); do
    j=$((i + 1))
    case ${!i} in --log) log=${!j} ;; --threads) threads=${!j} ;; --output) cp "$STAND_INS/safetensors" "${!j}" ;; esac
done
case ${1:-} in
info) echo "batch: 4" ;;
bench) [ "${SAYS:-}" = nothing ] || echo '{"event":"bench","steps":3,"step_ms_mean":0.5,"step_ms_median":'$((32 / threads))',"samples_per_s":8000,"fma_peak_gflops":'$((50 + 50 * threads))'}' > "$log" ;;
grads) ;;
*) for i in 1 2 3 4; do printf '{"event":"step","train_loss":%s}\n{"event":"epoch","test_accuracy":0.99,"weights_hash":"f%s"}\n' 0.$i $i; done > "${log:-/dev/null}"
   [[ " $* " != *" --strict "* ]] || if [ -z "${MISSES:-}" ]; then echo "expected accuracy >= 0.97: 0.9841, met"; else echo "expected accuracy >= 0.97: 0.9, missed"; exit 1; fi ;;
esac
SH
cat > "$STAND_INS/tenon" << 'SH'
#!/usr/bin/env bash
# The compiler in a few words; a command that matches FAILS fails.  Each build is a line in $STAND_INS/builds.
[ -z "${FAILS:-}" ] || [[ ! "$*" =~ $FAILS ]] || { echo "tenon: error: a test" >&2; exit 1; }
case $1 in
ops) if [ $# = 1 ]; then echo "  tanh(x)"; else echo "a model"; fi ;;
build) sleep "${SLOW:-0}"; echo "$*" >> "$STAND_INS/builds"; cp "$STAND_INS/program" "${@: -1}" ;;
show) exec "$REAL" "$@" ;;
esac
SH
cat > "$STAND_INS/nvcc" << 'SH'
#!/usr/bin/env bash
printf '#!/bin/sh\n[ ! -e "$STAND_INS/broken" ] || { echo "{"; exit 1; }\necho "{ \\"processors\\": 132, \\"news\\": 1 }"\n' > "${@: -1}"
chmod +x "${@: -1}"
SH
printf '\x3b\x00\x00\x00\x00\x00\x00\x00%-59s\x00\x00\x80\x3f' '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' > "$STAND_INS/safetensors"
chmod +x "$STAND_INS"/{program,tenon,nvcc}
pack="$work/p k"
packs() { env TENON="$STAND_INS/tenon" NVCC="$STAND_INS/nvcc" bench/first-day pack "$@"; }

refuses "a pack without a directory" "pack needs -o DIR" packs
refuses "an option without its value" "-o needs a value" packs -o
refuses "an unknown option" "pack has no option '--to'" packs --to x
refuses "an unknown GPU" "--arch sm_1: " packs -o "$pack" --arch sm_1
refuses "a regex" "--works: .*no regular expression" packs -o "$pack" --works '('
refuses "works that there are not" "--works: nothing of that name: lenet" packs -o "$pack" --works nothing
refuses "parts that there are not" "--parts tz: the parts are a b c" packs -o "$pack" --parts tz
refuses "no compiler" "there is no compiler /none" env TENON=/none bench/first-day pack -o "$pack"
refuses "no nvcc" "there is no /none: add nvcc" env NVCC=/none TENON="$STAND_INS/tenon" bench/first-day pack -o "$pack"
[ ! -e "$pack" ] && ok || bad "there is a directory after a pack that was refused"

# An interrupted pack ends its programs; the next one goes on, and says what it cannot build.
SLOW=60 TENON="$STAND_INS/tenon" NVCC="$STAND_INS/nvcc" bench/first-day pack -o "$pack" --works 'mlp B=64$' > /dev/null 2>&1 & job=$!
for _ in $(seq 600); do [ -n "$(running "bash $STAND_INS/tenon build")" ] && break; sleep 0.05; done
kill -TERM $job
wait $job 2> /dev/null && bad "a pack that was interrupted succeeds" || ok
same "programs that go on" "none $(running "bash $STAND_INS/tenon build")" "none "
: > "$STAND_INS/builds"
FAILS='op_tanh.tn .*f64|lenet.tn .*--dtype bf16|mlp.tn .*persistent' refuses "a pack that lacks programs" "the same command tries them again" packs -o "$pack" --works 'mlp B=64$'
for missing in "want/op_tanh: not computed" "programs/lenet.bf16: not built" "steps: a program was not built"; do
    grep -qxF "$missing" "$work/err" && ok || bad "a pack does not say: $missing"
done
same "what it has" "$(ls -d "$pack"/{run,constants,programs/lenet.own,steps/mlp-64,cpu/gpt_char-64.v4} "$pack.tar.xz" | wc -l)" 6
: > "$STAND_INS/builds"
succeeds "the same pack again" packs -o "$pack" --works 'mlp B=64$'
same "it builds what was missing, and steps" "$(grep -vc steps/ "$STAND_INS/builds")" 4
refuses "a third time" "is there already" packs -o "$pack"
same "files of the archive" "$(tar -tf "$pack.tar.xz" | grep -cE 'p k/(unfinished|run|want/op_tanh.losses|programs/lenet.bf16|steps/mlp-64--kernels=persistent)$')" 4

# ---- run
says() { # says TEXT RC PATTERN COMMAND...: the exit code, and a line that matches PATTERN
    local text=$1 rc=0 code=$2 line=$3; shift 3
    "$@" > "$work/out" 2>&1 || rc=$?
    same "$text: exit code" $rc "$code"
    grep -Eq -e "$line" "$work/out" && ok || bad "$text: no line '$line' in: $(tail -n 5 "$work/out")"
}
run=$pack/run
lines() { cat "$pack/results/$1.jsonl"; }
says "the help" 0 "^run \\[PART...\\] -- " "$run" --help
says "a part that there is not" 1 "^run: there is no part 'zz'" "$run" a zz
says "a job" 1 "^run: run starts its jobs itself" "$run" job
says "a job of no part" 1 "^run: run starts its jobs itself" "$run" job q x
says "no directory" 1 "^run: no files can be written in /proc/none/x" env DAY_RESULTS=/proc/none/x "$run" a
says "a number" 1 "^run: DAY_JOBS is a whole number from 1 on, not 'abc'" env DAY_JOBS=abc "$run" a
says "a number of bursts" 1 "^run: DAY_BURSTS is" env DAY_BURSTS=x "$run" d
[ ! -e "$pack/results" ] && ok || bad "there are results after errors of usage"
says "no pack" 1 "is not the directory that bench/first-day pack has made" bench/day/run a

says "without minutes" 1 "0 minutes are over: run a again" env DAY_MINUTES=0 "$run" a
same "what it has done" "0$(cat "$pack/results/a.jsonl")" 0
CALLS=$work/calls DAY_JOBS=1 says "part a" 0 "^part a: [0-9]+ passed, 0 failed" "$run" a
same "programs with a loss scale of their own" "$(grep -- '--loss-scale 1024' "$work/calls" | grep -c 'f16 --epochs')+$(grep -- --loss-scale "$work/calls" | grep -vc 'f16 --epochs')" 7+0
lines a | sort > "$work/whole"
{ head -n 1 "$pack/results/a.jsonl"; sed -n 2p "$pack/results/a.jsonl" | head -c 70; } > "$work/half"
cp "$work/half" "$pack/results/a.jsonl"
says "after half a line" 0 "^part a: [0-9]+ passed, 0 failed" "$run" a
same "whole lines" "$(lines a | grep '^{.*}$' | cut -d, -f2-4 | sort)" "$(cut -d, -f2-4 "$work/whole" | sort)"
exec 8>> "$pack/results/lock"
flock 8
says "a second run" 1 "another run writes to" "$run" a
exec 8>&-

mv "$pack/programs/lenet.bf16" "$work/kept"
says "part b without a program" 1 "FAILED lenet.bf16, equal bits: .* not built: programs/lenet.bf16" "$run" b
mv "$work/kept" "$pack/programs/lenet.bf16"

# Expectations; the arrays of two networks, which the pack does not carry.
same "arrays in the archive" "$(tar -tf "$pack.tar.xz" | grep -c 'p k/data/.*npy$')+$(tar -tf "$pack.tar.xz" | grep -c 'p k/data/[a-z]*/make.py$')" 0+2
same "what was expected" "$(lines b | grep -c '"what":"expectation","ok":true,"value":"0.9841","bound":"0.97"')" 6
sed -i '/"what":"expectation"/d' "$pack/results/b.jsonl"
MISSES=1 says "expectations that are missed" 1 "FAILED siamese.own, expectation: 0.9 \\(0.97\\) expected accuracy" "$run" b
rm "$pack"/data/pairs/*.npy "$pack/data/pairs/made"
sed -i '/"name":"siamese.own"/d' "$pack/results/a.jsonl"
says "arrays that are made" 0 "^part a: [0-9]+ passed, 0 failed" "$run" a
same "the arrays of pairs" "$(ls "$pack/data/pairs"/*.npy | wc -l)" 6
rm "$pack/data/pairs/made"
echo 'raise SystemExit("a reason")' > "$pack/data/pairs/make.py"
sed -i '/"name":"siamese.own"/d' "$pack/results/a.jsonl"
says "arrays that cannot be made" 1 "FAILED siamese.own, losses: .* not built: data/pairs/made" "$run" a
cp models/data/pairs/make.py "$pack/data/pairs"
: > "$pack/data/pairs/made"
sed -i '/"name":"siamese.own"/d' "$pack/results/a.jsonl"

says "part c" 0 "^part c: 1 passed" "$run" c
cp "$pack/results/constants.json" "$work/constants.json"
: > "$STAND_INS/broken"; rm "$pack/results/c.jsonl"
says "constants that fail" 1 "FAILED constants, measured" "$run" c
cmp -s "$work/constants.json" "$pack/results/constants.json" && ok || bad "constants that fail replace those that were measured"
rm "$pack/constants" "$pack/results/c.jsonl"
says "no constants" 1 "FAILED constants, measured: .* not built" "$run" c

SAYS=nothing says "steps without a time" 1 "FAILED mlp-64, step_ms:  \\(\\) no time of a step" "$run" d
same "their value" "$(lines d | grep -c '"ok":false,"value":""')" "$(ls "$pack/steps" | grep -vc '\.')"
rm "$pack/results/d.jsonl"
DAY_BURSTS=1 says "one burst" 0 "0 failed" "$run" d
same "its time" "$(lines d | grep -c '"ok":true,"value":"0.5"')" "$(lines d | wc -l)"

# Everything is measured once.
for p in f g p t; do
    "$run" $p > "$work/out" || true
    n=$(lines $p | wc -l)
    "$run" $p > "$work/out" || true
    same "records of part $p after the second time" "$(lines $p | wc -l)" "$n"
done

# A note keeps the form of JSON wherever it is cut.
mv "$pack/programs/mlp.own" "$work/kept"
cat > "$pack/programs/mlp.own" << 'SH'
#!/bin/sh
printf xxx
for i in $(seq 300); do printf '"\\\t\377'; done
exit 1
SH
chmod +x "$pack/programs/mlp.own"
sed -i '/mlp.own/d' "$pack/results/a.jsonl"
says "a program that says too much" 1 "FAILED mlp.own, gradients" "$run" a
python3 -c 'import json, sys; [json.loads(x) for x in open(sys.argv[1], "rb")]' "$pack/results/a.jsonl" && ok || bad "a note is no JSON: $(tail -n 1 "$pack/results/a.jsonl")"
mv "$work/kept" "$pack/programs/mlp.own"

# ---- a pack of one part: the processors, beside peers that are stand-ins
cores=$work/cores
succeeds "a pack of part t, without nvcc" env TENON="$STAND_INS/tenon" NVCC=/none bench/first-day pack -o "$cores" --parts t
same "what it has not" "$(ls "$cores/programs" "$cores/steps" "$cores/data" | grep -c '[^:]$')0" 00
same "its programs" "$(ls "$cores"/cpu/*.v4 | wc -l)" "$(wc -l < "$cores/cpu/list")"
says "a part that is not in the pack" 1 "^run: this pack has no part a, only t" "$cores/run" a
says "no interpreter" 1 "^run: there is no DAY_PYTHON /none" env DAY_PYTHON=/none "$cores/run"
says "programs by a broken regex" 1 "^run: DAY_CPU is no regular expression" env DAY_CPU='(' "$cores/run"
cat > "$STAND_INS/python" << 'SH'
#!/usr/bin/env bash
# An interpreter with the libraries in LIBRARIES.  Each row of peers.py takes 16 ms a step; rows of a peer that matches FAILS have none, and
# there is no answer to rows of lenet_relu.
case $* in
*find_spec*) [[ $* =~ ${LIBRARIES:-torch|jax} ]]; exit ;;
*/peers/bench/day/peers.py*) while read -r name _ _ peer threads; do
    [[ $name =~ ^lenet_relu ]] || if [[ $peer =~ ${FAILS:-nothing} ]]; then echo "$name $peer $threads - a \"reason\""; else echo "$name $peer $threads 16 3 steps"; fi
done; echo "an error" >&2 ;;
esac
SH
chmod +x "$STAND_INS/python"
export DAY_PYTHON=$STAND_INS/python OMP_NUM_THREADS=8                   # nproc says 8
LIBRARIES=jax DAY_CPU='^(mlp|gpt)' says "part t alone, without PyTorch" 0 "^part t: 11 passed, 0 failed" "$cores/run"
same "the first records" "$(cut -d, -f2 "$cores/results/t.jsonl" | sed -n '1p; 3p' | tr '\n' ' ')" '"name":"mlp-4096" "name":"peers" '
DAY_CPU='^(mlp|gpt)' says "what is left, with peers" 0 "^part t: 14 passed, 0 failed" "$cores/run" t
bench/first-day report "$cores/results" > "$work/out" || bad "the report of part t: $(tail -n 3 "$work/out")"
for line in '| mlp | 4096 | 32 | 16 (2.00; 1.33) | 8 (4.00; 1.60) | 4 (8.00; 1.78) |' '| mlp | 4096 | 8 | 1,024,000 | 256,000 | 256,000 | 4.00 |' \
    '| mlp | 4096 | 1 | 128,000 | - | 256,000 | 0.50 |' '| gpt_char | 64 | 8 | 16,000 | 4,000 | 4,000 | 4.00 |'; do
    grep -qxF "$line" "$work/out" && ok || bad "the report of part t has no line '$line': $(cat "$work/out")"
done
FAILS=cl DAY_CPU='^lenet(_relu)?-64' says "peers that fail" 1 "FAILED lenet-64, torch_eager_cl, 8 threads.*a .*reason" "$cores/run"
grep -q "FAILED lenet_relu-64, jax, 8 threads.*no answer: an error" "$work/out" && ok || bad "a peer without an answer: $(cat "$work/out")"
DAY_MINUTES=0 says "without minutes, a part of the pack" 1 "0 minutes are over: run t again" "$cores/run"
same "no peer fails that was not started" "$(grep -c 'resnet50-16' "$cores/results/t.jsonl")0" 00
unset DAY_PYTHON OMP_NUM_THREADS

# ---- the report of files that are not what they should be
mkdir "$work/good"
echo '{"part":"a","name":"mlp.own","what":"gradients","ok":true,"value":"1e-07","bound":"3e-06","seconds":"1","note":""}' > "$work/good/a.jsonl"
echo a machine > "$work/good/machine.txt"
report() { python3 -B bench/day/report.py "$work/$1"; }
says "the report of one check" 0 "^\\| own \\| gradients \\| 1 \\| 0 \\|" report good
# report_of FILE TEXT: with this text in FILE the report names it, ends with 1 and shows the rest
report_of() {
    rm -rf "$work/bad"; cp -r "$work/good" "$work/bad"
    if [ $# = 1 ]; then rm "$work/bad/$1"; else printf "$2" >> "$work/bad/$1"; fi
    says "the report with such a file: $*" 1 "^cannot be read: $work/bad/$1" report bad
    grep -q "^| own | gradients | 1 | 0 |" "$work/out" && ! grep -q Traceback "$work/out" && ok || bad "the report of $1: $(tail -n 3 "$work/out")"
}
report_of machine.txt
report_of constants.json ''
report_of constants.json '{ "processors": 1'
report_of constants.json '{ "processors": "n/a" }'
report_of gpu.json '{ "rows": ['
report_of gpu.json '[1]'
report_of a.jsonl '3\n'
report_of a.jsonl '{"part":"a","na'
report_of a.jsonl '{"note":"\377"}\n'
report_of b.jsonl '\377\n'
report_of kernels.x.csv '\377'
rm -rf "$work/bad"; cp -r "$work/good" "$work/bad"
sed 's/mlp.own/mlp/; s/1e-07/n\/a/' "$work/good/a.jsonl" >> "$work/bad/a.jsonl"
printf '"ID","Kernel Name","Metric Name","Metric Value"\n"1","k(int)","gpu__time_duration.sum","n/a"\n' > "$work/bad/kernels.x.csv"
says "a time that ncu did not measure" 0 "^\\| k \\| None \\| n/a \\|" report bad
says "the repository's own results" 1 "^cannot be read: bench/day/h100/machine.txt" bench/first-day report bench/day/h100
grep -q "^| persistent | gradients | " "$work/out" && ok || bad "the report of bench/day/h100 has no table: $(tail -n 3 "$work/out")"
}
part gpu || { finish; exit; }

. tests/cuda/shim.sh
shim_runtime

# ---- a pack as bench/first-day makes it, with stand-ins for programs
pack=$work/pack
mkdir -p "$pack"/{programs,want,data,steps,cpu}
small_mnist "$pack/data/mnist" 128 32
cc -std=gnu11 -O1 -o "$pack/compare" tests/tools/compare.c -lm
cp bench/day/run "$pack/run"
echo "a test" > "$pack/commit"; echo ad > "$pack/parts"
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

# A gradient that is zero but for rounding is compared with the size of the other gradients.
safetensors() { # safetensors FILE A B: two tensors of one number
    python3 -c 'import json, struct, sys
head = json.dumps({n: {"dtype": "F64", "shape": [1], "data_offsets": [8 * i, 8 * i + 8]} for i, n in enumerate("ab")}, separators=(",", ":")).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head + struct.pack("<2d", *map(float, sys.argv[2:])))' "$@"
}
safetensors "$work/want" 3 1e-17
safetensors "$work/near" 3 1e-8
safetensors "$work/far" 3 1e-6
succeeds "a zero with an error of rounding" "$pack/compare" "$work/near" "$work/want" 1e-6
same "a zero that is none" "$("$pack/compare" "$work/far" "$work/want" 1e-6 | head -n 1)" "b: relative distance 3.33e-05 is above 1e-06"

# A gradient that is wrong is found.
cp "$pack/want/op_tanh.safetensors" "$work/kept"
cp "$pack/want/norm.safetensors" "$pack/want/op_tanh.safetensors"
sed -i '/op_tanh/d' "$pack/results/a.jsonl"
rc=0
"$pack/run" a > "$work/out" || rc=$?
same "exit code of a wrong gradient" $rc 1
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
