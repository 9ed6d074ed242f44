#!/usr/bin/env bash
# random_models.sh [FIRST COUNT [task]] -- random models and losses (tests/tools/random_model.c) give the same results in all ways to
# compile and run them.  task: models with declared inputs, outputs and targets.
#
# Each model is checked, and built optimised and plain, in f32 and f64, for one processor or another.  Its programs train to the same
# bits with 1 and 3 threads, and as 2 ranks if the shards allow it.  The gradients of the first batch equal those of the plain program
# in f64, and so do the losses of training in f64 with sgd.  Each fifth of many models is also built in bf16.
#
# Without arguments: the files of tests/random, which are reduced models that once failed, and 6 models, every second one also in f32;
# with CHECK_DEEP=1 250 models and 100 tasks, all in both types.  With arguments: models FIRST to FIRST + COUNT - 1.  A model that fails
# is kept in the directory RANDOM_MODELS, if that is set.
#
# Parts: reduced 1 2 3 4 5 6 more
# Deep parts: tasks
set -euo pipefail
. "$(dirname "$0")/../common.sh"

first=${1:-} count=${2:-} kind=${3:-} all=${CHECK_DEEP:-0}
[ -z "$first" ] || all=1
if [ -n "$first" ]; then seeds=$(seq "$first" $((first + ${count:-1} - 1)))
elif [ "${CHECK_DEEP:-0}" = 1 ]; then seeds=$(seq 1 250)
else seeds="1 2 3 4 5 6"; fi
cc -std=gnu11 -O1 "$TENON_ROOT/tests/tools/random_model.c" -o "$work/random_model"
cc -std=gnu11 -O1 "$TENON_ROOT/tests/tools/compare.c" -o "$work/compare" -lm
cpus=(generic)
for cpu in x86-64-v3 $([ $all = 0 ] || echo x86-64-v4); do
    printf 'int main(void) { return !__builtin_cpu_supports("%s"); }' $cpu | cc -x c - -o "$work/has" 2> /dev/null && "$work/has" && cpus+=($cpu)
done

# program NAME TYPE CPU OPTIONS...: builds $work/m.tn
program() {
    local name=$1 dtype=$2 cpu=$3
    shift 3
    rm -rf "$work/emitted"
    "$TENON" emit "$work/m.tn" --to c -o "$work/emitted" --dtype "$dtype" --cpu "$cpu" --verify --color never "$@" > "$work/out" 2>&1 || return
    # shellcheck disable=SC2046
    cc -O0 -Werror=incompatible-pointer-types $(one_file "$work"/emitted/*.c --dtype "$dtype" --cpu "$cpu") -o "$work/$name" "$(dirname "$TENON")/lib/libtenonrt.a" -lz -lm -lpthread > "$work/out" 2>&1
}

# trains NAME: the same bits with any number of threads, and as two ranks
trains() {
    local name=$1 threads groups=1
    grep -qE 'shards = (2|4)$' "$work/m.tn" && groups=2
    rm -f "$work"/*.log
    "$work/$name" --threads 1 --log "$work/$name.log" > "$work/out" 2>&1 || { echo "exit code $?" >> "$work/out"; return 1; }
    for threads in 3 2; do
        [ $threads = 3 ] || [ $groups = 2 ] || continue
        "$work/$name" --threads $threads --groups $((threads == 3 ? 1 : 2)) --log "$work/other.log" > "$work/out" 2>&1 || { echo "exit code $?" >> "$work/out"; return 1; }
        [ "$(hashes "$work/$name.log" | wc -w) $(hashes "$work/$name.log")" = "2 $(hashes "$work/other.log")" ] || { echo "hashes of $threads threads: $(hashes "$work/$name.log"), $(hashes "$work/other.log")" > "$work/out"; return 1; }
        rm "$work/other.log"
    done
    "$work/$name" grads --threads 1 --output "$work/$name.s" > "$work/out" 2>&1
    field "$work/$name.log" epoch train_loss > "$work/$name.losses"
    field "$work/$name.log" epoch test_loss >> "$work/$name.losses"
}

# close A B: whether losses agree, number by number
close() { paste -d' ' "$1" "$2" | awk '{ for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (!(d * d <= 1e-16 * (1 + $i * $i))) exit 1 } }' || { cat "$1" "$2" > "$work/out"; return 1; }; }

# judge NUMBER: prints what is wrong with $work/m.tn; the number selects the processor, and by default whether f32 is
# compared
judge() {
    local rc=0 dtype cpu=${cpus[$(($1 % ${#cpus[@]}))]}
    "$TENON" check "$work/m.tn" --color never > "$work/out" 2>&1 || rc=$?
    if [ $rc = 1 ] && grep -q "m.tn:[0-9]*:[0-9]*: error: " "$work/out" && ! grep -q "internal error" "$work/out"; then
        rejected=$((rejected + 1)); echo "refused: $(head -n 1 "$work/out")"; return 0
    fi
    [ $rc = 0 ] || { echo "check: exit code $rc"; return 1; }
    for dtype in f64 f32; do
        [ $dtype = f64 ] || [ $all = 1 ] || [ $(($1 % 2)) = 0 ] || continue
        program plain $dtype generic --plain || { echo "build plain $dtype"; return 1; }
        trains plain || { echo "plain $dtype"; return 1; }
        [ $dtype = f32 ] || cp "$work/plain.s" "$work/truth.s"
        program fast $dtype "$cpu" || { echo "build $dtype $cpu"; return 1; }
        trains fast || { echo "optimised $dtype $cpu"; return 1; }
        if [ $dtype = f64 ]; then
            "$work/compare" "$work/fast.s" "$work/truth.s" 1e-9 1e-4 > "$work/out" || { echo "optimised != plain, f64 $cpu"; return 1; }
            ! grep -q "optimizer = sgd" "$work/m.tn" || close "$work/fast.losses" "$work/plain.losses" || { echo "losses, optimised and plain, f64 $cpu"; return 1; }
        else
            "$work/compare" "$work/plain.s" "$work/truth.s" 1e-3 1e-2 > "$work/out" || { echo "plain f32 != f64"; return 1; }
            "$work/compare" "$work/fast.s" "$work/truth.s" 1e-3 1e-2 > "$work/out" || { echo "optimised f32 != f64, $cpu"; return 1; }
        fi
    done
    [ $all = 0 ] || [ $(($1 % 5)) != 0 ] || halved
}

# halved: $work/m.tn in bf16 has the same bits on each processor, and gradients near those of f64
halved() {
    local cpu want=
    for cpu in "${cpus[@]}"; do
        program half bf16 "$cpu" || { echo "build bf16 $cpu"; return 1; }
        trains half || { echo "bf16 $cpu"; return 1; }
        want=${want:-$(hashes "$work/half.log")}
        [ "$(hashes "$work/half.log")" = "$want" ] || { echo "bf16: other bits on $cpu than on ${cpus[0]}"; return 1; }
    done
    "$work/compare" "$work/half.s" "$work/truth.s" 0.05 1e-2 > "$work/out" || { echo "bf16 != f64"; return 1; }
}

# one NAME NUMBER: judges a model and counts the result
one() {
    if judge "$2" > "$work/why" 2>&1; then
        ok; cat "$work/why"
    else
        bad "model $1: $(cat "$work/why")"; tail -n 6 "$work/out" | cut -c1-300
        [ -z "${RANDOM_MODELS:-}" ] || { mkdir -p "$RANDOM_MODELS"; cp "$work/m.tn" "$RANDOM_MODELS/$1.tn"; cat "$work/out" "$work/why" > "$RANDOM_MODELS/$1.out"; }
    fi
}

rejected=0
for file in "$TENON_ROOT"/tests/random/*.tn; do
    [ -z "$first" ] && part reduced || continue
    cp "$file" "$work/m.tn"
    one "$(basename "$file" .tn)" 1
done
same "files of tests/random that are refused" 0 $rejected
for seed in $seeds; do
    part "$([ "$seed" -gt 6 ] && echo more || echo "$seed")" || continue
    # shellcheck disable=SC2086
    if "$work/random_model" "$seed" $kind > "$work/m.tn"; then one "$seed" "$seed"; else bad "model $seed cannot be made"; fi
done
for seed in $(seq 1 100); do
    [ -z "$first" ] && [ "$all" = 1 ] && part tasks || continue
    if "$work/random_model" "$seed" task > "$work/m.tn"; then one "task$seed" "$seed"; else bad "task $seed cannot be made"; fi
done
[ $((rejected * 20)) -le "$passed" ] && ok || bad "$rejected of $passed models are refused: the generator should know better"
finish
