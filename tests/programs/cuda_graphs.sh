#!/usr/bin/env bash
# cuda_graphs.sh -- many training steps as one CUDA graph, on a machine without a GPU.
#
# Programs run on the processor as in cuda.sh.  For each number of steps in a launch, the losses of all steps, the loss scale, the test
# loss and the weights must equal those of --launch-steps 1.  Seven steps of an epoch are graphs of four, two and one steps: launched
# one by one in the first epoch, recorded in the second, played in the third.
#
# Deep: cuda.sh runs launches of one step, cuda_persistent.sh many steps in one launch; emitted.sh compares the text.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
. tests/cuda/shim.sh

# ---- number of steps in a launch
most() { "$TENON" emit "$@" --to cuda | sed -n 's/.*\.steps_most = \([0-9]*\), \.steps_how = "a CUDA graph".*/\1/p'; }
same "steps of a graph, LeNet" 16 "$(most models/lenet.tn)"
# A graph has at most 4096 launches: eight steps of 507 in ResNet-56.
same "ResNet-56, in exact f32: of 4096 launches at most" 8 "$(most models/resnet56_cifar10.tn)"
"$TENON" show models/resnet56_cifar10.tn --target cuda > "$work/table"
grep -q "^ *507 launches a step, " "$work/table" && ok || bad "the table counts $(grep 'launches a step' "$work/table")"
same "launches of a step, LeNet, of which all of training but the update of gradients that ranks have added" 21 \
    "$(("$("$TENON" emit models/lenet.tn --to cuda | sed -n '/^static void train_/,/^}/p' | grep -c LAUNCH)" - 1))"
same "VGG-11, whose products alone take 11 ms" 4 "$(most models/vgg11.tn)"
same "in bf16, 2 ms" 16 "$(most models/vgg11.tn --kernels=cudnn --dtype bf16)"

# ---- small data

word=('\x00\x00\x80\x3f' '\x00\x00\x00\x3f' '\x00\x00\x00\xbf' '\x00\x00\xc0\x3f' '\x00\x00\x80\xbf') # 1, 0.5, -0.5, 1.5, -1

# npy FILE DESCR SHAPE: the header of an array
npy() { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': $3, }" > "$1"; }

# arrays DIR N: N samples of 12 numbers, of three classes; 4 test samples
arrays() {
    local split n i
    mkdir -p "$1"
    for split in "train $2" "test 4"; do
        n=${split#* } split=${split% *}
        npy "$1/${split}_x.npy" '<f4' "($n, 12)"; npy "$1/${split}_y.npy" '|u1' "($n,)"
        for ((i = 0; i < n * 12; i++)); do printf "${word[i * i * 7 % 31 % 5]}"; done >> "$1/${split}_x.npy"
        for ((i = 0; i < n; i++)); do printf "\\x0$((i * 5 % 7 % 3))"; done >> "$1/${split}_y.npy"
    done
}

# ---- the same bits

# run NAME LOG OPTIONS...
run() {
    local dir=$work/$1 log=$2; shift 2
    rm -f "$dir/$log.jsonl"
    "$dir/gpu" --log "$dir/$log.jsonl" --log-steps 1 "$@" > "$work/out" 2>&1 || { bad "$dir/gpu $*"; tail -n 3 "$work/out"; }
}

# equal NAME OPTIONS...: single steps and graphs of several steps give equal results
equal() {
    local dir=$work/$1 name=$1 what; shift
    run "$name" alone --launch-steps 1 "$@"
    FAKE_LOG=1 SHIM_ORDER=2 run "$name" graphs "$@"
    for what in step:train_loss step:loss_scale epoch:test_loss epoch:weights_hash; do
        [ $what != step:loss_scale ] || grep -q loss_scale "$dir/alone.jsonl" || continue
        same "$name, $what" "$(field "$dir/alone.jsonl" ${what%:*} ${what#*:})" "$(field "$dir/graphs.jsonl" ${what%:*} ${what#*:})"
    done
}

# The graphs of an epoch of seven steps have four, two and one steps; each is played in the second and the third
# epoch.  Each begins with the launch that finds its samples.
graphs() {
    local of=$(sed -n '/^static void train_slice/,/^}/p' "$work/mlp/mlp.cu" | grep -c LAUNCH) k
    FAKE_LOG=1 run mlp graphs --data "$work/mnist" --epochs 3
    for k in 1 2 4; do same "graphs of $k steps" 2 "$(grep -c "^fake: a graph of $((1 + k * (of + 1)))$" "$work/out" || true)"; done
    FAKE_LOG=1 run mlp graphs --data "$work/mnist" --epochs 3 --launch-steps 2
    same "of two at most" "0 8" "$(grep -c "^fake: a graph of $((1 + 4 * (of + 1)))$" "$work/out" || true) $(grep -c "^fake: a graph of $((1 + 2 * (of + 1)))$" "$work/out" || true)"
    "$work/mlp/gpu" info | grep -q "^steps: up to 16 in one launch, by a CUDA graph$" && ok || bad "info does not say how many steps are one launch"
    refuses "no steps" "launch-steps" "$work/mlp/gpu" --launch-steps 0
    succeeds "bench" "$work/mlp/gpu" bench --steps 40
}

# Launches end where the host needs results of their steps, and the next launch continues there.
interrupted() {
    local mlp=$work/mlp whole
    run mlp whole --data "$work/mnist" --epochs 3 --launch-steps 1
    whole=$(hashes "$mlp/whole.jsonl" | cut -d' ' -f3)
    run mlp saved --data "$work/mnist" --epochs 2 --checkpoint "$work/c" --checkpoint-every 5
    same "a checkpoint every five steps" "$(hashes "$mlp/whole.jsonl" | cut -d' ' -f1,2)" "$(hashes "$mlp/saved.jsonl" | cut -d' ' -f1,2)"
    rm -f "$work"/c/step-0000001[34].safetensors
    compgen -G "$work/c/step-00000012.safetensors" > /dev/null && ok || bad "no checkpoint behind step 12: $(ls "$work/c")"
    run mlp resumed --data "$work/mnist" --epochs 3 --checkpoint "$work/c" --resume
    same "resumed behind the fifth of seven steps" "$whole" "$(hashes "$mlp/resumed.jsonl" | cut -d' ' -f2)"
    stopped_by_sigterm "$mlp/gpu" --data "$work/mnist" --epochs 1000
}

# A loss that is not finite: the message and all of `fixed` are those of a program that checks each step.  A sample of
# the third step is not finite; those of the fourth are.
not_finite() {
    local name=$1 fixed how; shift
    fixed=$(sed -n 's/.*\.fixed_bytes = \([0-9]*\).*/\1/p' "$work/$name"/*.cu)
    rm -rf "$work/bad"; cp -r "$work/arrays" "$work/bad"
    printf '\0\0\300\177' | dd of="$work/bad/train_x.npy" bs=1 seek=$((128 + 4 * 12 * 9)) conv=notrunc status=none
    for how in 1 4 16; do
        FAKE_ARENA=$work/$how.arena "$work/$name/gpu" --data "$work/bad" --shuffle off --epochs 1 --launch-steps $how > "$work/$how.said" 2>&1 && bad "$name trains on what is no number" || ok
        head -c "$fixed" "$work/$how.arena" > "$work/$how.fixed"
    done
    grep -q "the samples hold numbers that are not finite: in epoch 1, step 3 of 7" "$work/1.said" && ok || bad "$name: $(cat "$work/1.said")"
    same "$name: what is said" "$(cat "$work/1.said")" "$(cat "$work/4.said")"
    cmp -s "$work/1.fixed" "$work/4.fixed" && cmp -s "$work/1.fixed" "$work/16.fixed" && ok || bad "$name: a step behind the loss that is not finite has updated something"
    "$work/$name/gpu" --data "$work/bad" --shuffle off --epochs 1 --limit-samples 8 --save "$work/two.safetensors" > /dev/null 2>&1 && ok || bad "$name: two steps"
}

# f16: the scale falls and rises inside of a launch, and Adam does not count the skipped steps.
scaled() {
    shim_gpu scaled "$cuda/scaled.tn" --kernels=cudnn --dtype f16
    equal scaled --data "$work/arrays" --epochs 4 --loss-scale-steps 3
    [ "$(field "$work/scaled/graphs.jsonl" step loss_scale | tr ' ' '\n' | sort -u | grep -c .)" -ge 4 ] && ok || bad "the scale did not move: $(field "$work/scaled/graphs.jsonl" step loss_scale)"
    [ "$(field "$work/scaled/graphs.jsonl" epoch skipped_steps | awk '{ print $NF }')" -ge 5 ] && ok || bad "no steps were left out"
    shim_gpu beyond "$cuda/scaled.tn" --kernels=cudnn --dtype f16 --set model.factor=1e7
    local how
    for how in 1 16; do "$work/beyond/gpu" --data "$work/arrays" --epochs 1 --loss-scale 2 --launch-steps $how > "$work/$how.said" 2>&1 && bad "gradients that fit at no scale" || ok; done
    grep -q "a gradient is not finite in f16 in epoch 1, step 2 of 7, though the loss is" "$work/1.said" && ok || bad "gradients that fit at no scale: $(cat "$work/1.said")"
    same "what is said of them" "$(cat "$work/1.said")" "$(cat "$work/16.said")"
    not_finite scaled
}

on_the_processor() {
    shim_runtime
    "$TENON" build models/mlp.tn -o "$work/cpu" --cpu generic --plain
    refuses "a program for the processor" "--launch-steps is for programs for a GPU" "$work/cpu" --launch-steps 2
    small_mnist "$work/mnist" 26 6                    # seven steps of four samples, the last one not full
    small_mnist "$work/few" 9 2                       # five steps of two: graphs of four and of one
    small_cifar "$work/cifar" 2 2                     # ten images: five steps of two
    arrays "$work/arrays" 28
    awk 'BEGIN { for (i = 0; i < 90; i++) printf "%c", 97 + i * i * 3 % 11 % 5 }' > "$work/letters.txt"
    shim_gpu mlp models/mlp.tn --batch 4
    equal mlp --data "$work/mnist" --epochs 3
    graphs
    interrupted
    shim_gpu small "$cuda/scaled.tn" --set model.factor=1
    not_finite small
    if deep "LeNet, an LSTM, a ResNet and f16 as launches of many steps"; then many; fi
}

many() {
    local letters=(--batch 2 --set model.time=5 --set model.width=6 --set "data=text(\"$work/letters.txt\",unit=\"char\",vocab=5)")
    local resnet=(--batch 2 --set model.depth=8) f16=(--kernels=cudnn --dtype f16)
    shim_gpu lenet models/lenet.tn --batch 2
    equal lenet --data "$work/few" --epochs 2
    shim_gpu lstm models/char_lstm.tn "${letters[@]}"
    equal lstm --epochs 3
    witness models/char_lstm.tn "$work/writer" "${letters[@]}"
    "$work/writer" --epochs 1 --save "$work/w.safetensors" > /dev/null 2>&1
    writes() { "$@" generate --weights "$work/w.safetensors" --length 10 --seed 1 --anew; }
    same "a text that goes on" "$(writes "$work/writer")" "$(writes "$work/lstm/gpu")"
    shim_gpu resnet models/resnet56_cifar10.tn "${resnet[@]}"
    equal resnet --data "$work/cifar" --epochs 2
    shim_cudnn || { skip "the headers of cuDNN are not here"; return; }
    scaled
    shim_gpu mlp16 models/mlp.tn --batch 4 "${f16[@]}"
    equal mlp16 --data "$work/mnist" --epochs 3
    shim_gpu lstm16 models/char_lstm.tn "${letters[@]}" "${f16[@]}"
    equal lstm16 --epochs 3
    shim_gpu lenet16 models/lenet.tn --batch 2 "${f16[@]}"
    equal lenet16 --data "$work/few" --epochs 2
    shim_gpu resnet16 models/resnet56_cifar10.tn "${resnet[@]}" "${f16[@]}"
    equal resnet16 --data "$work/cifar" --epochs 2
}

if [ "$(uname -m)" = x86_64 ] && command -v g++ > /dev/null; then on_the_processor; else skip "kernels on the processor: they need g++ and x86-64"; fi
finish
