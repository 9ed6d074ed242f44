#!/usr/bin/env bash
# nccl.sh -- programs for several GPUs, on a machine without a GPU.
#
# Several processes of a GPU program run on the processor as in cuda.sh, over a stand-in for NCCL whose messages go through a shared
# file (tests/cuda/fake_nccl.cpp).  Weights must have the bits of one process with the same shards.  The calls of NCCL are recorded and
# compared.  A lost process ends all others within the limit.
#
# Deep: eight programs over a stand-in take a minute and a half of a processor; ranks.sh and tests/runtime test sums between ranks,
# test_tcp.c their protocol.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
if [ "$(uname -m)" != x86_64 ] || ! command -v g++ > /dev/null; then skip "kernels on the processor: they need g++ and x86-64"; finish; exit; fi
. tests/cuda/shim.sh
export TMPDIR=$work
port=$((20000 + RANDOM % 9000))
small_mnist "$work/mnist" 8 2 || true
shim_runtime
shim_nccl

# start N COMMAND...: starts N ranks in the background: pid[rank], $work/out.RANK and err.RANK
start() {
    local n=$1 r; shift
    port=$((port + 1)) pid=()
    for ((r = 0; r < n; r++)); do
        TENON_RANKS=$n TENON_RANK=$r TENON_MEET=127.0.0.1:$port timeout -k 2 100 "$@" > "$work/out.$r" 2> "$work/err.$r" < /dev/null &
        pid[r]=$!
    done
}
# ended: waits for all ranks; sets code[rank]
ended() { local r; code=(); for r in "${!pid[@]}"; do code[r]=0; wait "${pid[r]}" || code[r]=$?; done; }

# hash N PROGRAM OPTIONS...: the weights' hashes of all epochs, with N ranks
hash() {
    local n=$1; shift
    rm -f "$work/log"
    start "$n" "$@" --log "$work/log"
    ended
    [ "${code[*]}" = "$(printf '0 %.0s' $(seq "$n") | sed 's/ $//')" ] || { echo "exit codes ${code[*]}: $(head -n 3 "$work"/err.*)"; return; }
    [ "$n" = 1 ] || [ "$(field "$work/log" start ranks)" = "$n " ] || { echo "not $n ranks"; return; }
    hashes "$work/log"
}

# ---- the stand-in notices what NCCL forbids
g++ -std=c++20 -O1 -Wall -Wextra -Werror -rdynamic -I tests/cuda/include -I runtime -o "$work/rules" tests/cuda/rules_nccl.cpp "$work"/{fiber,fake}.o "$work/libnccl.so.2" "-Wl,-rpath,$work" -lpthread
succeeds "rules of NCCL" "$work/rules"

# ---- the bits of one rank, with any calls of NCCL
shim_gpu lenet models/lenet.tn --batch 4 --shards 4 --bucket 4M --comm nccl
shim_gpu three models/mlp.tn --batch 12 --shards 6 --set 'clip=norm(0.5)' --bucket 20k --comm nccl
shim_gpu mlp models/mlp.tn --batch 8 --shards 4 --bucket 20k --comm nccl
shim_gpu norm tests/cuda/norm.tn --comm nccl
lenet=("$work/lenet/gpu" --data "$work/mnist" --epochs 1)
TENON_NCCL=/nowhere/libnccl.so.2 succeeds "one rank needs no NCCL" "${lenet[@]}" --log "$work/log.one"
export FAKE_NCCL_LOG=$work/asked
for n in 2 4; do same "lenet, $n ranks, and one" "$(hash $n "${lenet[@]}")" "$(hashes "$work/log.one")"; done

# All gradients, in memory of NCCL, twice: in the first step, and in the second, which is recorded.  With four ranks:
# a piece to each of the others, their parts of this rank's piece, and the sums back.
all=$(($(sed -n 's/.*\.grad_bytes = \([0-9]*\).*/\1/p' "$work"/lenet/*.cu) / 4))
[ $all -ge 431080 ] && ok || bad "fewer gradients than parameters"
piece=$(((all + 3) / 4)) piece=$(((piece + 31) / 32 * 32)) last=$((all - 3 * piece))
asked() {
    local step
    printf '%s\n' memory register
    for step in 1 2; do
        printf '%s\n' "send $2 to 1" "receive $1 from 3" "send $3 to 2" "receive $1 from 2" "send $4 to 3" "receive $1 from 1" end
        printf '%s\n' "send $1 to 1" "receive $4 from 3" "send $1 to 2" "receive $3 from 2" "send $1 to 3" "receive $2 from 1" end
    done
}
asked $piece $piece $piece $last > "$work/want"
cmp -s "$work/want" "$work/asked.0" && ok || { bad "rank 0 asks NCCL for something else"; diff "$work/want" "$work/asked.0" | head -n 8 || true; }

# On two hosts: halves inside a host, then halves of a half between hosts, and back.  So half as many reals leave a host
# as in the test above.
between() { awk '$1 == "send" && $4 >= 2 { n += $2 } END { print n }' "$work/asked.0" "$work/asked.1"; }
flat=$(between)
same "lenet, 2 ranks each on 2 hosts, and one" "$(FAKE_HOSTS=2 hash 4 "${lenet[@]}")" "$(hashes "$work/log.one")"
awk -v flat="$flat" -v two="$(between)" 'BEGIN { exit !(two > 0.49 * flat && two < 0.51 * flat) }' && ok || bad "$flat reals leave two ranks' host, in two levels $(between)"
same "four exchanges a sum, in order" "$(grep -E "^(send|end)" "$work/asked.0" | head -n 8 | awk '{ print $1, $4 }' | tr '\n' ' ')" "send 1 end  send 2 end  send 2 end  send 1 end  "

small_mnist "$work/mnist" 24 12 || true
mlp=("$work/mlp/gpu" --data "$work/mnist" --epochs 2) three=("$work/three/gpu" --data "$work/mnist" --epochs 2)
want=$(hash 1 "${three[@]}")
for n in 3 6; do same "6 shards, $n ranks, and one" "$(SHIM_ORDER=$n hash $n "${three[@]}")" "$want"; done
for hosts in 2 3; do same "6 shards, 6 ranks on $hosts hosts, and one" "$(FAKE_HOSTS=$hosts hash 6 "${three[@]}")" "$want"; done
if deep "lamb over ranks of GPUs"; then
    shim_gpu lamb models/mlp.tn --batch 12 --shards 6 --set 'optimizer=lamb(lr = 0.01)' --set 'clip=norm(0.5)' --bucket 20k --comm nccl
    lamb=("$work/lamb/gpu" --data "$work/mnist" --epochs 2)
    want=$(hash 1 "${lamb[@]}")
    for n in 3 6; do same "lamb, $n ranks, and one" "$(SHIM_ORDER=$n hash $n "${lamb[@]}")" "$want"; done
fi
want=$(hash 1 "${mlp[@]}")
for order in 1 2; do same "mlp, 4 ranks, streams in order $order" "$(SHIM_ORDER=$order hash 4 "${mlp[@]}")" "$want"; done
buckets=$(grep -c '\.ready = ' "$work"/mlp/*.cu)
[ "$buckets" -gt 1 ] && ok || bad "one bucket of 20 kB for all of the MLP"
# An epoch of three steps is a launch of two and one of one; NCCL is called in the first epoch and recorded in the
# second.
same "two exchanges a bucket and step in the first and in the recorded launches" "$(grep -c "^end" "$work/asked.0")" $((12 * buckets))
# played TEXT: how often rank 0 plays graphs, by size
played() { sed -n 's/^fake: a graph of //p' "$work/err.0" | sort -n | uniq -c | awk '{ printf "%s ", $1 }'; }
same "mlp, 4 ranks, with words of the fake runtime" "$(FAKE_LOG=1 hash 4 "${mlp[@]}" --epochs 4)" "$(hash 1 "${mlp[@]}" --epochs 4)"
four=$(hashes "$work/log")
same "tests, steps of one and of two" "$(FAKE_LOG=1 hash 4 "${mlp[@]}" --epochs 4 > /dev/null; played)" "7 3 3 "
same "one step a launch" "$(FAKE_LOG=1 hash 4 "${mlp[@]}" --epochs 4 --launch-steps 1)" "$four"
same "which is played eleven times in twelve steps" "$(played | tr ' ' '\n' | sort -n | tail -n 1)" 11
rm -rf "$work/c"
same "a checkpoint every two steps" "$(hash 4 "${mlp[@]}" --epochs 2 --checkpoint "$work/c" --checkpoint-every 2)" "$want"
same "without memory of NCCL's" "$(FAKE_NCCL=no-memory hash 2 "${mlp[@]}")" "$want"
same "NCCL 2.18" "$(TENON_NCCL=$work/libnccl-2.18.so hash 2 "${mlp[@]}")" "$want"
grep -Eq "memory|register" "$work/asked.0" && bad "NCCL 2.18 is asked for memory" || ok
same "batch_norm's averages, 2 ranks, and one" "$(hash 2 "$work/norm/gpu")" "$(hash 1 "$work/norm/gpu")"

# batch_norm(sync = true): the statistics of each shard go to all ranks in the middle of a step; rows of one phase go
# together.
shim_gpu sync tests/cuda/sync.tn --comm nccl
shim_gpu each tests/cuda/sync.tn --comm nccl --bucket 1k
sync=("$work/sync/gpu" --epochs 2) alone=$(hash 1 "$work/sync/gpu" --epochs 2)
same "six steps with statistics of the batch" 2 "$(wc -w <<< "$alone")"
for n in 2 4; do same "statistics of the batch, $n ranks, and one" "$(SHIM_ORDER=$n hash $n "${sync[@]}")" "$alone"; done
same "rows that 4 ranks tell each other in a step" "$(sed '/^send/q' "$work/asked.0" | grep -E "^(gather|end)" | awk '{ print $NF }' | tr '\n' ' ')" \
    "12 end 10 10 end 18 end 9 9 end 5 5 5 5 end 6 6 end "
same "and in the second, which is recorded" "$(grep -c "^gather" "$work/asked.0")" 24
same "statistics on 2 hosts, and one" "$(FAKE_HOSTS=2 hash 4 "${sync[@]}")" "$alone"
[ "$(grep -c '\.ready = ' "$work"/each/*.cu)" -gt 1 ] && ok || bad "one bucket of 1 kB for all of sync.tn"
for n in 2 4; do same "statistics between sums of buckets, $n ranks, and one" "$(SHIM_ORDER=$n hash $n "$work/each/gpu" --epochs 2)" "$alone"; done
sed 's/sync = true/sync = false/' tests/cuda/sync.tn > "$work/shards.tn"
shim_gpu shards "$work/shards.tn" --comm nccl
[ "$(hash 1 "$work/shards/gpu" --epochs 2)" != "$alone" ] && ok || bad "sync = true changes nothing"
if shim_cudnn; then # innermost channels, with sums in two launches; a convolution gives its own sums
    shim_gpu innermost tests/cuda/sync.tn --comm nccl --kernels=cudnn --dtype tf32
    alone=$(hash 1 "$work/innermost/gpu")
    for n in 2 4; do same "statistics in tf32, $n ranks, and one" "$(hash $n "$work/innermost/gpu")" "$alone"; done
    # Each plan is made by one rank; the ranks make different plans at the same time.  The lock of a process that was killed does not count.
    plans() { cat "$work"/err.* | grep -c "^fake: a plan$" || true; }
    export TENON_CACHE=$work/plans-cache FAKE_LOG=1 FAKE_PLANNING=300
    same "plans that ranks make together: the bits" "$(hash 4 "$work/innermost/gpu")" "$alone"
    same "each plan is made once" "$(plans)" "$(ls "$TENON_CACHE/plans" | wc -l)"
    [ "$(grep -l "^fake: a plan$" "$work"/err.* | wc -l)" -ge 2 ] && ok || bad "one rank made all plans, and the others waited"
    rm "$work"/err.*
    same "plans that are kept" "$(hash 2 "$work/innermost/gpu")$(plans)" "${alone}0"
    rm -r "$TENON_CACHE"
    FAKE_PLANNING=60000 "$work/innermost/gpu" > "$work/out.killed" 2>&1 &
    maker=$!
    for ((i = 0; i < 100; i++)); do ls "$TENON_CACHE/plans"/*.lock > "$work/locks" 2>&1 && break; sleep 0.1; done
    kill -9 $maker; wait $maker 2> "$work/killed" || true
    [ -e "$(head -n 1 "$work/locks")" ] && ok || bad "no plan was being made when its maker was killed"
    same "after a maker that was killed" "$(hash 2 "$work/innermost/gpu")" "$alone"
    ls "$TENON_CACHE/plans" | grep -q lock && bad "the lock of the killed process is still there" || ok
    unset TENON_CACHE FAKE_LOG FAKE_PLANNING
else skip "the headers of cuDNN are not here: statistics of the batch through it"; fi

# f16: every rank sees in the sums of all ranks whether a step counts, and changes the scale alike; the first scale is
# too large.
shim_gpu halves models/mlp.tn --batch 8 --shards 4 --bucket 20k --comm nccl --kernels=cudnn --dtype f16
[ "$(grep -c '\.ready = ' "$work"/halves/*.cu)" -gt 1 ] && ok || bad "one bucket of 20 kB for all of the MLP in f16"
halves=("$work/halves/gpu" --data "$work/mnist" --epochs 3 --loss-scale 16777216 --loss-scale-steps 2)
alone=$(hash 1 "${halves[@]}")
same "steps in f16, 4 ranks, and one" "$(hash 4 "${halves[@]}")" "$alone"
[ "$(field "$work/log" epoch skipped_steps | awk '{ print $NF }')" -ge 2 ] && ok || bad "of the steps in f16 none was left out: $(cat "$work/log")"

rm -f "$work/log"
start 4 "${mlp[@]}" --reduce nccl --log "$work/log"
ended
grep -q "bits can differ from those of one GPU" "$work/out.0" && ok || bad "--reduce nccl does not say what it costs"
[ "$(grep -c "^sum of" "$work/asked.0")" = $((6 * buckets)) ] && ok || bad "--reduce nccl does not leave the sums to NCCL"
[ -n "$(hashes "$work/log")" ] && [ "$(hashes "$work/log")" != "$want" ] && ok || bad "four numbers added in two orders are equal to the bit: $(hashes "$work/log")"
refuses "--reduce of something else" "tree or nccl, not 'ring'" "${mlp[@]}" --reduce ring

# ---- ranks that do not fit together: one reports it, and all end
# ends N CODE PATTERN COMMAND...
ends() {
    local n=$1 want=$2 pattern=$3 since=$SECONDS; shift 3
    start "$n" "$@"
    ended
    [[ " ${code[*]} " != *" 0 "* && " ${code[*]} " == *" $want "* ]] && ok || bad "$pattern: exit codes ${code[*]}"
    grep -Eqs "$pattern" "$work"/err.* && ok || { bad "no word of '$pattern':"; head -n 3 "$work"/err.*; }
    [ $((SECONDS - since)) -lt 40 ] && ok || bad "$pattern: $((SECONDS - since)) s"
    rm -f "$work"/err.*
}
ends 4 1 "6 shards on 4 GPUs|number of ranks 4 does not fit 6 shards" "${three[@]}"
ends 2 1 "6 shards on 2 GPUs: each has to hold 1, 2, 4, 8" "${three[@]}"
TENON_NCCL=/nowhere/libnccl.so.2 ends 2 1 "rank 0 .*NCCL 2, .*was not found.*TENON_NCCL=" "${mlp[@]}"
FAKE_NCCL=old ends 2 1 "is NCCL 2.10; version 2.18" "${mlp[@]}"
FAKE_NCCL=never ends 2 76 "[0-9]+ s at the start of the GPUs' link in step 1, longer than --timeout-start" "${mlp[@]}" --timeout-start 2
FAKE_NCCL=error ends 2 76 "NCCL failed at a sum of gradients: remote process exited" "${mlp[@]}"
FAKE_NCCL=error ends 2 76 "NCCL failed at the statistics of the batch: remote process exited" "${sync[@]}"
ends 2 1 "rank 1 .* has other options than rank 0" bash -c 'exec "$@" --launch-steps "$((TENON_RANK + 1))"' - "${mlp[@]}"
ends 3 76 "ranks 1, 2 of 3 .TENON_RANKS. have not connected to 127.0.0.1:[0-9]* in 2 s" \
    bash -c '[ "$TENON_RANK" != 0 ] || exec "$@"; exit 76' - "${mlp[@]}" --timeout 2
# shellcheck disable=SC2016
ends 2 76 "ranks 1 of 2 .* in 3 s, --timeout; 1 others were refused, the last one from 127.0.0.1:[0-9]*, does not know the job's secret" \
    env -u XDG_CONFIG_HOME bash -c 'TENON_SECRET="a secret of rank $TENON_RANK" exec "$@"' - "${mlp[@]}" --timeout 3
ends 2 1 "rank 1 .* has other options than rank 0" bash -c 'exec "$@" --seed "$((TENON_RANK + 1))"' - "${mlp[@]}"
ends 2 1 "rank 1 .* has other options than rank 0" bash -c 'exec "$@" --loss-scale-steps "$((TENON_RANK + 1))"' - "${halves[@]}"

# Of four steps in one launch, the second is not finite on rank 1 alone, and the third on both: rank 1 reports the
# second.
mkdir "$work/nan"
npy "$work/nan/train_x.npy" '<f4' '(32, 1, 28, 28)' $((32 * 784 * 4)); npy "$work/nan/train_y.npy" '|u1' '(32,)' 32
npy "$work/nan/test_x.npy" '<f4' '(8, 1, 28, 28)' $((8 * 784 * 4)); npy "$work/nan/test_y.npy" '|u1' '(8,)' 8
printf '\0\0\300\177' | dd of="$work/nan/train_x.npy" bs=1 seek=$((128 + 13 * 784 * 4)) conv=notrunc 2> /dev/null
for most in 1 4; do
    rm -rf "$work/c"
    ends 2 1 "rank 1 .* error: the samples hold numbers that are not finite: in epoch 1, step 2 of 4; the loss is not finite, and nothing was updated by them" \
        "$work/mlp/gpu" --data "$work/nan" --epochs 2 --shuffle off --launch-steps $most --log "$work/nan.log" --log-steps 1 --checkpoint "$work/c"
    same "steps before it that were logged, $most a launch" 1 "$(grep -c '"event":"step"' "$work/nan.log" || true)"
    [ -z "$(ls "$work/c")" ] && ok || bad "what a rank had updated in vain was saved"
    rm -f "$work/nan.log"
done

# ---- a rank that is asked to stop
start 2 "${mlp[@]}" --epochs 4000 --checkpoint "$work/s"
sleep 3
kill -TERM "$(running "$work/mlp/gpu" | while read -r p; do grep -qz '^TENON_RANK=1$' "/proc/$p/environ" && echo "$p"; done | head -n 1)" || true
ended
same "exit codes of ranks that were asked to stop" "75 75" "${code[*]}"
grep -q "stopped by a signal to another rank in epoch [0-9]* after [0-9]* steps; saved in" "$work/err.0" && ok || bad "what rank 0 says of it: $(cat "$work/err.0")"
step=$(find "$work/s" -name 'step-*.safetensors' | sed 's/.*step-0*\([0-9]*\)\..*/\1/' | sort -n | tail -n 1)
same "a run that was stopped and gone on with" "$(hash 2 "${mlp[@]}" --epochs $((step / 3 + 2)) --checkpoint "$work/s" --resume | awk '{ print $NF }')" \
    "$(hash 1 "${mlp[@]}" --epochs $((step / 3 + 2)) | awk '{ print $NF }')"

# ---- a lost rank
# lost TEXT PATTERN SIGNAL: rank 1 gets the signal during a run
lost() {
    local since victim
    start 4 "${mlp[@]}" --epochs 4000 --timeout 4
    sleep 3
    victim=$(running "$work/mlp/gpu" | while read -r p; do grep -qz '^TENON_RANK=1$' "/proc/$p/environ" && echo "$p"; done | head -n 1 || true)
    since=$SECONDS
    kill -"$3" "$victim" || true
    for r in 0 2 3; do code[r]=0; wait "${pid[r]}" || code[r]=$?; done
    [ "${code[0]} ${code[2]} ${code[3]}" = "76 76 76" ] && ok || bad "$1: exit codes ${code[*]}, not 76"
    [ $((SECONDS - since)) -le 20 ] && ok || bad "$1: the others end after $((SECONDS - since)) s"
    grep -Eqs "$2" "$work"/err.* && ok || { bad "$1: no word of '$2':"; head -n 3 "$work"/err.*; }
    grep -q abort "$work/asked.0" && ok || bad "$1: the communicator was not let go of"
    kill -9 "$victim" 2> /dev/null || true
    wait "${pid[1]}" 2> /dev/null || true
}
lost "a killed rank" "rank [023] \(.*\): error: rank 1 \(.*\) is gone: .* in step [0-9]+" KILL
lost "a stopped rank" "rank [023] \(.*\): error: .* in step [0-9]+, longer than --timeout: rank 1 \(.*\) does not answer" STOP

# In the first step, CUDA loads kernels at their first launch, and waits for all work then: no message may be pending.
start 2 env FAKE_LAZY=1 FAKE_NCCL=stops "${mlp[@]}" --epochs 4 --timeout 4 --timeout-start 4
code=(0); wait "${pid[0]}" || code[0]=$?
same "a rank that stops while kernels are loaded: exit code" 76 "${code[0]}"
running "$work/mlp/gpu" | xargs kill -9
wait "${pid[1]}" 2> /dev/null || true
same "kernels that are loaded late: the bits" "$(FAKE_LAZY=1 hash 2 "${mlp[@]}" --epochs 2)" "$(hash 1 "${mlp[@]}" --epochs 2)"

# ---- messages of the real libraries, and a program that needs none of them to start
nccl_h=$(for d in /usr/local/cuda*/include /usr/local/include /usr/include; do [ -e "$d/nccl.h" ] && [ -e "$d/cuda_runtime_api.h" ] && echo "$d"; done | head -n 1 || true)
if [ -n "$nccl_h" ]; then
    succeeds "nccl_api.h says what nccl.h says" gcc -I runtime -I "$nccl_h" tests/cuda/nccl_abi.c -o "$work/abi"
    succeeds "and so do its constants" "$work/abi"
else skip "nccl.h is not there"; fi
if command -v nvcc > /dev/null; then
    NVCC=nvcc succeeds "tenon build --target cuda --comm nccl" "$TENON" build models/mlp.tn --target cuda --comm nccl -o "$work/real"
    extra=$(readelf -d "$work/real" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libz|ld-linux.*|libpthread|libdl|librt)\.so' || true)
    [ -z "$extra" ] && ok || bad "a program for several GPUs needs $extra to start"
    succeeds "its info" "$work/real" info
    grep -q "^comm: nccl" "$work/out" && ok || bad "info does not name NCCL"
else skip "nvcc is not there: nothing was compiled for a GPU"; fi
finish
