#!/usr/bin/env bash
# memory.sh -- the peak memory of a program is at most its plan, the data as they are stored, and 30 MB.
#
# Parts: peak limit
set -euo pipefail
. "$(dirname "$0")/../common.sh"

FIXED=30000000
# peak PROGRAM ARGUMENTS...: VmHWM in bytes, read while the program runs
peak() {
    local pid kb=0 v
    "$@" > /dev/null 2>&1 &
    pid=$!
    while v=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status" 2> /dev/null) && [ -n "$v" ]; do kb=$v; sleep 0.02; done
    wait $pid || true
    echo $((kb * 1024))
}

check() {
    local name=$1 data=$2 top planned over; shift 2
    top=$(peak "$@" --log "$work/log")
    planned=$(field "$work/log" start planned_bytes | tr -d ' ')
    over=$((top - ${planned:-0} - data))
    echo "$name: peak $top = planned $planned + data $data + $over"
    [ -n "$planned" ] && [ $over -ge 0 ] && [ $over -le $FIXED ] && ok ||
        bad "$name: $over bytes beside the plan and the data, not between 0 and $FIXED"
    rm -f "$work/log"
}

if part peak; then
    # mnist N: bytes of N training samples and the test set: pixels as stored, labels as 32-bit integers
    mnist() { echo $((($1 + 10000) * (784 + 4))); }
    models=mlp
    ! deep "the peak of LeNet, of a batch of 4096 and of an LSTM" || models="lenet mlp"
    for model in $models; do
        build $model "$work/p"
        check "$model, 2 threads" "$(mnist 2000)" "$work/p" --epochs 1 --limit-samples 2000 --threads 2
        check "$model, 3 threads" "$(mnist 2000)" "$work/p" --epochs 1 --limit-samples 2000 --threads 3
    done
    check "mlp, all samples" "$(mnist 60000)" "$work/p" --epochs 1 --threads 2
    build mlp_wide "$work/wide" --set data.test_samples=1000
    check "mlp_wide, synthetic data" 0 "$work/wide" --epochs 1 --limit-samples 2000 --threads 2
    if [ "$CHECK_DEEP" = 1 ]; then
        build lenet "$work/big" --batch 4096
        check "lenet, batch 4096" "$(mnist 8192)" "$work/big" --epochs 1 --limit-samples 8192 --threads 2
        build lstm_synthetic "$work/lstm" --set data.test_samples=1000
        check "lstm_synthetic, synthetic data" 0 "$work/lstm" --epochs 1 --limit-samples 2000 --threads 2
    fi
fi

part limit || { finish; exit; }

# ---- --memory-limit: values are recomputed instead of kept, with the same bits, and the process has less memory.
# The limit is for the threads of this machine, and so is planned_bytes of a run with as many threads.
small_cifar "$work/cifar10" 20 32
depth=20
resnet() { build resnet56_cifar10 "$work/$1" --set model.depth=$depth "${@:2}"; }
bytes() { "$TENON" show "$TENON_ROOT/models/resnet56_cifar10.tn" --set model.depth=$depth "$@"; }
learn() { rm -f "$work/$1.log"; succeeds "$1 $2 threads" "$work/$1" --data "$work/cifar10" --epochs 1 --threads "$2" --log "$work/$1.log"; }

resnet whole
learn whole "$(nproc)"
all=$(field "$work/whole.log" start planned_bytes | tr -d ' ')
resnet small --memory-limit $((all * 60 / 100))
for threads in 1 "$(nproc)"; do
    learn small "$threads"
    same "weights at 60 % of the plan, $threads threads" "$(hashes "$work/whole.log")" "$(hashes "$work/small.log")"
done
planned=$(field "$work/small.log" start planned_bytes | tr -d ' ')
[ "$planned" -le $((all * 60 / 100)) ] && ok || bad "planned $planned bytes, more than 60 % of $all"
before=$(field "$work/whole.log" epoch peak_bytes | tr -d ' ') after=$(field "$work/small.log" epoch peak_bytes | tr -d ' ')
[ $((before - after)) -ge $((all * 35 / 100)) ] && ok || bad "the peak fell from $before to $after only, with a plan of $planned instead of $all"
bytes --memory-limit 1G | grep -q 'recomputed' && bad "values made again where memory suffices" || ok

# ---- large networks: cheap values are recomputed by default, and --keep-all keeps them; the memory of a dense block
large() { # NAME MODEL OPTIONS...: builds a program with and one without; compares the bits, and prints the bytes of both
    local name=$1 show=("$TENON" show "$TENON_ROOT/models/$2.tn" --set augment=[] --set "data=synthetic(samples=256,test_samples=64)" "${@:3}")
    "${show[@]}" | grep -q 'recomputed' && ok || bad "$name: nothing made again"
    "${show[@]}" --keep-all | grep -q 'recomputed' && bad "$name: made again under --keep-all" || ok
    build "$2" "$work/kept" "${show[@]:3}" --keep-all
    build "$2" "$work/again" "${show[@]:3}"
    for p in kept again; do
        rm -f "$work/$p.log"
        succeeds "$name, $p" "$work/$p" --epochs 1 --threads 2 --log "$work/$p.log"
    done
    same "$name: weights" "$(hashes "$work/kept.log")" "$(hashes "$work/again.log")"
    before=$(field "$work/kept.log" epoch peak_bytes | tr -d ' ') after=$(field "$work/again.log" epoch peak_bytes | tr -d ' ')
    echo "$name: peak $before with everything kept, $after without"
    # How much is worth recomputing depends on the processor: 16 % of the densenet with AVX-512, 9 % with AVX2.  The peak falls as the plan
    # does, by a tenth where the plan falls by a tenth, as it does for AVX-512.
    plan=$(field "$work/kept.log" start planned_bytes | tr -d ' ')
    fall=$((plan - $(field "$work/again.log" start planned_bytes)))
    [ $fall -gt 0 ] && [ $(((before - after) * 10)) -ge $((fall * 9)) ] && ok || bad "$name: the peak fell from $before to $after only, and the plan by $fall"
    [ $((fall * 10)) -lt "$plan" ] || [ $((after * 10)) -le $((before * 9)) ] && ok ||
        bad "$name: the peak fell from $before to $after only"
    planned() { "${show[@]}" --cpu x86-64-v4 "$@" | sed -n 's/^  planned *\([0-9.]*\) MB .*/\1/p'; }
    awk -v before="$(planned --keep-all)" -v after="$(planned)" 'BEGIN { exit !(after > 0 && after <= 0.9 * before) }' && ok ||
        bad "$name: the plan fell from $(planned --keep-all) to $(planned) MB only"
}
if deep "values of a ResNet and a densenet made again without being asked"; then
    large "resnet20 of 256" resnet56_cifar10 --set model.depth=20 --batch 256
    large "densenet of 22 layers" densenet_bc_100_12 --set model.depth=22 --batch 128
fi
bytes | grep -q 'recomputed' && bad "values of a small network made again" || ok

# With several ranks, all rows are for one of them: it cannot save more than the whole plan with all values would take.
of_one() { bytes --shards 2 --ranks 2 "${@:2}" | sed -n "s/^  $1 *\([0-9.]*\) MB .*/\1/p"; }
awk -v left="$(of_one 'recomputed' --memory-limit 50M)" -v kept="$(of_one planned --keep-all)" -v less="$(of_one planned --memory-limit 50M)" \
    'BEGIN { exit !(left > 0 && left < kept - less + 0.1) }' && ok || bad "the row 'recomputed' of one of two ranks"

refuses "a limit below all plans" "needs .* more than --memory-limit 20.0 MB" bytes --memory-limit 20M
grep -q "use a smaller --batch" "$work/err" && ok || bad "no way out of a limit that a smaller batch meets"
refuses "a limit below the parameters" "which do not depend on --batch" bytes --memory-limit 1M
# A limit just below the least plan: both figures would be rounded to the same, so the message has bytes.
limit=$(bytes --memory-limit 20M 2>&1 > "$work/out" | awk '/ needs / { sub(/.* needs /, ""); printf "%d", $1 * 1e6 + .5; exit }') || true
for _ in 1 2 3 4 5 6 7 8 9 10; do
    bytes --memory-limit "$limit" > "$work/out" 2> "$work/err" || break
    limit=$((limit - 10000))
done
grep -Eq "needs [0-9,]+ bytes with .* than --memory-limit [0-9,]+ bytes" "$work/err" && ok || bad "rounded figures that look equal: $(head -n 1 "$work/err")"
refuses "--keep-all with a limit" "exclude each other" bytes --memory-limit 30M --keep-all
refuses "a limit that is no size" "--memory-limit needs a size, not '20X'" bytes --memory-limit 20X
finish
