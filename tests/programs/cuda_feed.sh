#!/usr/bin/env bash
# cuda_feed.sh -- samples that stay in the host's memory (runtime/device/feed.h), on a machine without a GPU.
#
# Programs run on the processor as in cuda.sh.  The place of the samples must not change a bit of the losses, the test or the weights,
# with one step in a launch and with several, in each order of the streams.  Without the wait for a copy, or with one place instead of
# two, results must differ.
#
# Deep: three programs are compiled and run over a stand-in of CUDA, a minute of a processor.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
. tests/cuda/shim.sh

said="^gpu: samples stay in the host's memory, .* MB of it pinned"

# run NAME LOG OPTIONS...
run() {
    local dir=$work/$1 log=$2; shift 2
    rm -f "$dir/$log.jsonl"
    "$dir/gpu" --log "$dir/$log.jsonl" --log-steps 1 "$@" > "$dir/$log.out" 2>&1 || { bad "$dir/gpu $*"; tail -n 3 "$dir/$log.out"; }
}

# results LOG: the losses, the test and the weights of a run
results() { local what; for what in step:train_loss epoch:test_loss epoch:test_accuracy epoch:weights_hash; do field "$1" ${what%:*} ${what#*:}; done; }

# equal NAME OPTIONS...: samples on the GPU and on the host give equal results, with single steps and several in a
# launch, in three orders
equal() {
    local dir=$work/$1 name=$1 order how; shift
    run "$name" there --samples-in gpu "$@"
    grep -q "$said" "$dir/there.out" && bad "$name: samples on the GPU stay here" || ok
    for how in "--launch-steps 1" "--launch-steps 64"; do
        for order in 0 1 2; do
            # shellcheck disable=SC2086
            FAKE_LATE=${order#[12]} SHIM_ORDER=$order run "$name" here --samples-in host ${how/64/$most} "$@"
            same "$name, $how, order $order" "$(results "$dir/there.jsonl")" "$(results "$dir/here.jsonl")"
            [ "$(grep -c "$said" "$dir/here.out")" = 1 ] && ok || bad "$name does not say once where samples are: $(cat "$dir/here.out")"
        done
    done
}

# npy FILE DESCR SHAPE: the header of an array
npy() { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': $3, }" > "$1"; }

# images DIR N TEST CHANNELS HEIGHT WIDTH: images of three classes, made of bytes of MNIST
images() {
    local dir=$1 split n bytes=$(($4 * $5 * $6)) i
    mkdir -p "$dir"
    for split in "train $2" "test $3"; do
        n=${split#* } split=${split% *}
        npy "$dir/${split}_x.npy" '|u1' "($n, $4, $5, $6)"; npy "$dir/${split}_y.npy" '|u1' "($n,)"
        tail -c +4017 "$work/mnist/train-images-idx3-ubyte" | head -c $((n * bytes)) >> "$dir/${split}_x.npy"
        for ((i = 0; i < n; i++)); do printf "\\x0$((i * 5 % 7 % 3))"; done >> "$dir/${split}_y.npy"
    done
}

# The stand-in has only the memory that the program asks for, which is not enough for all samples as well.
little_room() {
    local mlp=$work/mlp data=(--data "$work/mnist" --epochs 2 --launch-steps 1) room
    FAKE_LOG=1 run mlp here --samples-in host "${data[@]}"
    room=$(sed -n 's/^fake: \([0-9]*\) bytes of memory$/\1/p' "$mlp/here.out" | awk '{ n += $1 } END { print n }')
    run mlp there --samples-in gpu "${data[@]}"
    FAKE_ROOM=$room run mlp little "${data[@]}"
    grep -q "$said" "$mlp/little.out" && ok || bad "samples that do not fit do not stay here: $(cat "$mlp/little.out")"
    same "little room" "$(results "$mlp/there.jsonl")" "$(results "$mlp/little.jsonl")"
    FAKE_ROOM=$((room * 2)) run mlp much "${data[@]}"
    grep -q "$said" "$mlp/much.out" && bad "samples that fit stay here" || ok
    same "more room" "$(results "$mlp/there.jsonl")" "$(results "$mlp/much.jsonl")"
    FAKE_ROOM=$room refuses "no room" "no room on the GPU for the samples: .* MB are needed" "$mlp/gpu" --samples-in gpu "${data[@]}"
    FAKE_ROOM=$((room - 1)) refuses "no room for places" "no room on the GPU for two places for samples" "$mlp/gpu" "${data[@]}"
    FAKE_CUDA=pinned refuses "no pinned memory" "no pinned memory for two places for samples: .* MB that the machine must not page out" "$mlp/gpu" --samples-in host "${data[@]}"
}

# A launch other than the prefetched one, or with another number of steps.
unexpected() {
    local mlp=$work/mlp data=(--data "$work/mnist" --epochs 4)
    run mlp there --samples-in gpu "${data[@]}"
    run mlp saved --samples-in host "${data[@]}" --checkpoint "$work/c" --checkpoint-every 5
    same "with checkpoints" "$(results "$mlp/there.jsonl")" "$(results "$mlp/saved.jsonl")"
    rm -f "$work"/c/step-000000{26,27,28}.safetensors
    run mlp resumed --samples-in host "${data[@]}" --checkpoint "$work/c" --resume
    same "resumed" "$(field "$mlp/there.jsonl" epoch weights_hash | awk '{ print $NF }')" "$(field "$mlp/resumed.jsonl" epoch weights_hash | awk '{ print $NF }')"
    stopped_by_sigterm "$mlp/gpu" --samples-in host --data "$work/mnist" --epochs 1000
    shim_gpu hot models/mlp.tn --batch 4 --set optimizer.lr=1e30
    local where
    for where in gpu host; do "$work/hot/gpu" --samples-in $where --data "$work/mnist" --epochs 1 --launch-steps 1 2>&1 | grep -o "the loss is not finite.*" > "$work/hot/said.$where"; done
    same "a loss that is not finite" "$(cat "$work/hot/said.gpu")" "$(cat "$work/hot/said.host")"
}

# A mapped file is truncated while samples are gathered from it: no launch has used it, and the last state is saved.
cut_short() {
    local dir=$work/mlp job rc=0 epochs
    images "$work/cut" 20 6 1 28 28; cp -r "$work/cut" "$work/uncut"
    rm -rf "$work/c" "$dir/cut.jsonl"
    "$dir/gpu" --samples-in host --data "$work/cut" --epochs 100000 --checkpoint "$work/c" --checkpoint-every 1000000 --log "$dir/cut.jsonl" > /dev/null 2> "$work/err" & job=$!
    for _ in $(seq 400); do [ -e "$dir/cut.jsonl" ] && [ "$(grep -c '"event":"epoch"' "$dir/cut.jsonl")" -ge 2 ] && break; sleep 0.05; done
    truncate -s 4096 "$work/cut/train_x.npy"
    for _ in $(seq 400); do kill -0 $job 2> /dev/null || break; sleep 0.05; done
    kill -9 $job 2> /dev/null && bad "samples cut short: the run goes on"
    wait $job || rc=$?
    same "samples cut short: exit code" 1 $rc
    grep -Eq "train_x.npy holds 4096 bytes now, and held 15808 .*saved in $work/c" "$work/err" && ok || bad "samples cut short: $(cat "$work/err")"
    epochs=$(grep -o 'in epoch [0-9]*' "$work/err" | cut -d ' ' -f 3)
    "$dir/gpu" --samples-in host --data "$work/uncut" --epochs "$epochs" --checkpoint "$work/c" --resume --save "$work/again.safetensors" > /dev/null 2>&1 || bad "samples cut short: --resume"
    "$dir/gpu" --samples-in gpu --data "$work/uncut" --epochs "$epochs" --save "$work/once.safetensors" > /dev/null 2>&1 || bad "samples cut short: a run that nobody disturbs"
    cmp -s "$work/again.safetensors" "$work/once.safetensors" && ok || bad "samples cut short: other weights than those of a run that nobody disturbed"
}

# The other commands.
commands() {
    local mlp=$work/mlp where
    "$mlp/gpu" --data "$work/mnist" --epochs 1 --save "$work/w.safetensors" > /dev/null 2>&1
    npy "$work/input.npy" '|u1' "(10, 28, 28)"
    tail -c +17 "$work/mnist/train-images-idx3-ubyte" | head -c 7840 >> "$work/input.npy"
    for where in gpu host; do
        rm -f "$work/$where.jsonl"
        "$mlp/gpu" test --data "$work/mnist" --weights "$work/w.safetensors" --samples-in $where --log "$work/$where.jsonl" > /dev/null 2>&1 || bad "test with samples in $where"
        "$mlp/gpu" predict --input "$work/input.npy" --weights "$work/w.safetensors" --samples-in $where > "$work/$where.csv" 2> /dev/null || bad "predict with samples in $where"
        succeeds "bench with samples in $where" "$mlp/gpu" bench --samples-in $where --steps 40
    done
    same "test" "$(field "$work/gpu.jsonl" test test_loss)" "$(field "$work/host.jsonl" test test_loss)"
    same "predict" "$(cat "$work/gpu.csv")" "$(cat "$work/host.csv")"
    refuses "another place" "samples-in is gpu or host, not 'disk'" "$mlp/gpu" --samples-in disk
    "$TENON" build models/mlp.tn -o "$work/cpu" --cpu generic --plain
    refuses "a program for the processor" "--samples-in is for programs for a GPU" "$work/cpu" --samples-in host
}

# changed NAME SED FILE OUTPUT COMPILER...: the mlp with a changed line must give another result, or none, in one of
# the orders
changed() {
    local name=$1 change=$2 file=$3 object=$4 order seen=0; shift 4
    sed "$change" "$file" > "$work/changed.c"
    cmp -s "$file" "$work/changed.c" && { bad "$name: nothing was changed"; return; }
    mkdir -p "$work/changed"
    gcc -O1 -I "$cuda/include" -I runtime -c "$work/changed.c" -o "$work/changed/$object.o"
    local objects=("$work/changed/$object.o" "$work"/{fiber,fake}.o)
    [ "$object" = gpu ] || objects+=("$work/gpu.o")
    g++ -rdynamic -o "$work/changed/gpu" "$work"/mlp/*.o "${objects[@]}" "$(dirname "$TENON")/lib/libtenonrt.a" $shim_libraries
    run mlp there --data "$work/mnist" --epochs 3
    for order in 0 1 2; do
        rm -f "$work/changed/log"
        (FAKE_LATE=${order#[12]} SHIM_ORDER=$order "$work/changed/gpu" --samples-in host --data "$work/mnist" --epochs 3 --log "$work/changed/log" --log-steps 1 || exit 1) > /dev/null 2>&1 || { seen=1; break; }
        [ "$(results "$work/mlp/there.jsonl")" = "$(results "$work/changed/log")" ] || { seen=1; break; }
    done
    [ $seen = 1 ] && ok || bad "$name changes nothing"
}

# as_ranks NAME MODEL DATA OPTIONS...: two ranks have the weights of one
as_ranks() {
    local name=$1 model=$2 data=$3 r pid=() one; shift 3
    shim_gpu "$name" "$model" --batch 8 --comm nccl "$@"
    run "$name" there --data "$data" --epochs 2
    one=$(hashes "$work/$name/there.jsonl")
    rm -f "$work/$name/ranks.jsonl"
    for r in 0 1; do
        TENON_RANKS=2 TENON_RANK=$r TENON_MEET=127.0.0.1:$((21000 + $$ % 9000)) timeout -k 2 100 "$work/$name/gpu" --samples-in host \
            --data "$data" --epochs 2 --log "$work/$name/ranks.jsonl" > "$work/out.$r" 2>&1 < /dev/null & pid[r]=$!
    done
    for r in 0 1; do wait "${pid[r]}" || bad "$name, rank $r: $(cat "$work/out.$r")"; done
    same "$name, two ranks" "$one" "$(hashes "$work/$name/ranks.jsonl")"
}

# Each rank gathers its own part; of samples that are mixed with those of other ranks, the whole batch.
ranks() {
    shim_nccl
    as_ranks two models/mlp.tn "$work/mnist" --shards 4
    sed 's/\(augment *= \).*/\1[random_crop(1), mixup(0.4), cutmix(1)]/' "$cuda/norm.tn" > "$work/mixed.tn"
    as_ranks mixed "$work/mixed.tn" "$work/norm.data"
}

on_the_processor() {
    local most=16
    shim_runtime
    small_mnist "$work/mnist" 26 6                    # seven steps of four samples, the last one not full; two test batches
    images "$work/norm.data" 24 12 2 7 6
    images "$work/geometry.data" 24 12 3 11 9
    awk 'BEGIN { for (i = 0; i < 90; i++) printf "%c", 97 + i * i * 3 % 11 % 5 }' > "$work/letters.txt"
    shim_gpu mlp models/mlp.tn --batch 4
    equal mlp --data "$work/mnist" --epochs 3
    little_room
    unexpected
    cut_short
    commands
    changed "a launch that does not wait for its samples" '/cudaStreamWaitEvent(rt_cuda_stream, sent/d' runtime/cuda/gpu.c gpu
    changed "one place instead of two" 's/PLACES = 2/PLACES = 1/' runtime/device/feed.c feed
    shim_gpu norm "$cuda/norm.tn"                     # augmentation by sample numbers, and
    equal norm --data "$work/norm.data" --epochs 2
    shim_gpu geometry "$cuda/geometry.tn"             # dropout by sample numbers
    equal geometry --data "$work/geometry.data" --epochs 2
    shim_gpu lstm models/char_lstm.tn --batch 2 --set model.time=5 --set model.width=6 --set "data=text(\"$work/letters.txt\",unit=\"char\",vocab=5)"
    equal lstm --epochs 3                             # overlapping windows
    most=64
    shim_gpu steps models/mlp.tn --batch 4 --kernels=persistent
    equal steps --data "$work/mnist" --epochs 2
    ranks
}

if [ "$(uname -m)" = x86_64 ] && command -v g++ > /dev/null; then on_the_processor; else skip "kernels on the processor: they need g++ and x86-64"; fi
finish
