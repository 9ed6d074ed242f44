#!/usr/bin/env bash
# gpu.sh -- tests that need a GPU; without a GPU they count as skipped.  `./check --gpu` runs only this script.
#
#   tests/gpu/gpu.sh            runs on the GPU of this machine, with nvcc
#   tests/gpu/gpu.sh --shim     runs the same commands with a stand-in for CUDA, on small data, to test this script without a GPU
#   tests/gpu/gpu.sh --shim --ops   of these only the examples of operations (tests/programs/cuda_ops.sh)
#
# Tested are: gradients of the first batch and losses of three steps against the processor's, for networks and for every operation; the
# same bits in ten runs and after resuming; constant memory over 5,000 steps; LeNet at 0.99 on MNIST; memcheck and racecheck of
# compute-sanitizer, if it is installed; limits of launches, which the stand-in assumes.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
samples=6400 tests=2000 batch=64 large=512 runs=10 soak=5000 on_gpu=1
if [ "${1:-}" = --shim ]; then
    . tests/cuda/shim.sh
    samples=20 tests=12 batch=8 large=10 runs=2 soak=12 on_gpu=0
elif ! command -v nvcc > /dev/null; then skip "a GPU's tests: no nvcc"; finish; exit
elif [ ! -e /dev/nvidia0 ] || ! nvidia-smi -L > "$work/gpus" 2>&1; then skip "a GPU's tests: no GPU here"; finish; exit
else head -n 1 "$work/gpus"; fi

arch() { nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d . | sed 's/^9.$/90/; s/^8.$/80/; s/^1..$/100/; s/^/sm_/'; }

# gpu NAME MODEL OPTIONS...: builds $work/NAME/gpu
gpu() {
    local name=$1 model=$2; shift 2
    mkdir -p "$work/$name"
    if [ $on_gpu = 0 ]; then shim_gpu "$name" "$model" "$@"
    else NVCC=nvcc "$TENON" build "$model" --target cuda --arch "$(arch)" --kernels=own -o "$work/$name/gpu" "$@"; fi
}

# both NAME MODEL OPTIONS...: builds $work/NAME/gpu and $work/NAME/cpu
both() {
    if [ $on_gpu = 0 ]; then shim "$@"; return; fi
    gpu "$@"
    "$TENON" build "$2" -o "$work/$1/cpu" "${@:3}"
}

# by KERNELS NAME OF MODEL OPTIONS...: builds $work/NAME/gpu with NVIDIA's libraries (cudnn) or with many steps in one
# launch (persistent), and links OF's program for the processor beside it
by() {
    gpu "$2" "$4" "${@:5}" --kernels="$1"
    cp "$work/$3/cpu" "$work/$2/cpu"
}

# close TEXT BOUND A B: A and B have equally many numbers, and none differs by more than BOUND (1 + |a|)
close() {
    if awk -v bound="$2" -v a="$3" -v b="$4" 'BEGIN { n = split(a, x); m = split(b, y); if (n < 1 || n != m) exit 1
        for (i = 1; i <= n; i++) { d = x[i] - y[i]; if (d < 0) d = -d; if (!(d <= bound * (1 + (x[i] < 0 ? -x[i] : x[i])))) exit 1 } }'
    then ok; else bad "$1: '$3' and '$4'"; fi
}

# agree NAME [OPTIONS]: the gradient of each parameter differs by at most 1e-5 of its norm (sums in f32 have another
# order), and so do the losses of three steps.  With BOUND, for smooth functions: 3e-2 in bf16, about the rounding of
# eight bits through ten layers, and 3e-3 with eleven bits.
agree() {
    local dir=$work/$1 side; shift
    for side in cpu gpu; do
        rm -f "$dir/$side.jsonl"
        "$dir/$side" grads "$@" --output "$dir/$side.safetensors" > "$dir/$side.grads" 2>&1 || { bad "$dir/$side grads"; tail -n 3 "$dir/$side.grads"; return; }
        "$dir/$side" --epochs 1 --log "$dir/$side.jsonl" --log-steps 1 "$@" > "$work/out" 2>&1 || { bad "$dir/$side"; tail -n 3 "$work/out"; return; }
    done
    if "$compare" "$dir/cpu.safetensors" "$dir/gpu.safetensors" "${BOUND:-1e-5}" > "$work/out" 2>&1; then ok; else bad "$dir: gradients differ"; tail -n 5 "$work/out"; fi
    close "$dir: losses" "${BOUND:-1e-5}" "$(field "$dir/cpu.jsonl" step train_loss | cut -d' ' -f1-3)" "$(field "$dir/gpu.jsonl" step train_loss | cut -d' ' -f1-3)"
}

# held: MB of GPU memory in use, by all processes: in a container nvidia-smi knows no processes.
held() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1; }

once() { rm -f "$work/run.jsonl"; "$work/$1/gpu" "${@:2}" --log "$work/run.jsonl" > "$work/out" 2>&1 || { tail -n 3 "$work/out" >&2; return 1; }; hashes "$work/run.jsonl"; }

# Several runs have the same bits.
repeats() {
    local first i; first=$(once "$@" --epochs 1)
    for ((i = 2; i <= runs; i++)); do same "$1: run $i of $runs" "$first" "$(once "$@" --epochs 1)"; done
}

# A run is killed (kill -9) between checkpoints; after --resume it has the bits of an undisturbed run.
survives() {
    local name=$1 whole; shift
    whole=$(once "$name" "$@" --epochs 3 | awk '{ print $3 }')
    rm -rf "$work/kept"
    "$work/$name/gpu" "$@" --epochs 3 --checkpoint "$work/kept" --checkpoint-every 2 > /dev/null 2>&1 & local job=$!
    for _ in $(seq 600); do compgen -G "$work/kept/*.safetensors" > /dev/null && break; sleep 0.05; done
    kill -9 $job 2> /dev/null || true
    wait $job 2> /dev/null || true
    compgen -G "$work/kept/*.safetensors" > /dev/null && ok || bad "$name: no checkpoint before the kill"
    same "$name: killed and resumed" "$whole" "$(once "$name" "$@" --epochs 3 --checkpoint "$work/kept" --resume | awk '{ print $NF }')"
}

# Memory of the GPU and of the process: after the first epoch, when all has been loaded, and at the end of many steps.
lasts() {
    local name=$1 epochs=$((soak / (samples / batch))) job first='' last='' now; shift
    rm -f "$work/soak.jsonl"
    "$work/$name/gpu" "$@" --epochs $epochs --log "$work/soak.jsonl" > /dev/null 2>&1 & job=$!
    while kill -0 $job 2> /dev/null; do
        if [ $on_gpu = 1 ] && grep -qs '"event":"epoch"' "$work/soak.jsonl" && now=$(held); then first=${first:-$now}; kill -0 $job 2> /dev/null && last=$now; fi
        sleep 0.1
    done
    wait $job && ok || bad "$name: $soak steps"
    [ $on_gpu = 0 ] || same "$name: MB on the GPU after an epoch and at the end" "$first" "$last"
    if awk -v all="$(field "$work/soak.jsonl" epoch peak_bytes)" 'BEGIN { n = split(all, x); exit !(n > 1 && x[n] <= 1.02 * x[2]) }'; then ok
    else bad "$name: memory of the process grows: $(field "$work/soak.jsonl" epoch peak_bytes)"; fi
}

sanitized() {
    local tool
    command -v compute-sanitizer > /dev/null || { skip "compute-sanitizer is not installed"; return; }
    for tool in memcheck racecheck initcheck; do
        succeeds "$tool of $1" compute-sanitizer --tool $tool --error-exitcode 9 "$work/$1/gpu" "${@:2}" --epochs 1
    done
}

# The example of every operation, each with its bound of tests/gpu/ops.txt; GPU_OPS="tanh lstm" selects some.
each_op() {
    local op bound
    for op in ${GPU_OPS:-$("$TENON" ops | sed -n 's/^  \([a-z0-9_]*\)(.*/\1/p')}; do
        bound=$(awk -v op="$op" '
            /^[0-9]/ { for (i = 2; i <= NF; i++) if ($i == op) own = own $1 " "; else if ($i == "*") rest = $1 }
            END { print own == "" ? rest : own }' tests/gpu/ops.txt)
        [ "$(wc -w <<< "$bound")" = 1 ] || { bad "$op has several bounds in tests/gpu/ops.txt: $bound"; continue; }
        "$TENON" ops "$op" --example > "$work/op.tn"
        both "op_$op" "$work/op.tn" || { bad "$op: it was not built"; continue; }
        BOUND=$bound agree "op_$op"
    done
}

compare=$work/compare
cc -std=gnu11 -O1 -o "$compare" tests/tools/compare.c -lm
small_mnist "$work/mnist" $samples $tests
mnist=(--data "$work/mnist")
if [ "${2:-}" = --ops ]; then shim_runtime; each_op; finish; exit; fi
[ $on_gpu = 1 ] || { shim_runtime; shim_cudnn || { skip "the headers of cuDNN are not here"; finish; exit; }; }
both geometry tests/cuda/geometry.tn
both norm tests/cuda/norm.tn
both mlp models/mlp.tn --batch $batch
both lenet models/lenet.tn --batch $batch
by cudnn mlp_libraries mlp models/mlp.tn --batch $batch
by cudnn lenet_libraries lenet models/lenet.tn --batch $batch
by cudnn geometry_libraries geometry tests/cuda/geometry.tn
both narrow tests/cuda/narrow.tn
by cudnn narrow_half narrow tests/cuda/narrow.tn --dtype bf16
BOUND=3e-2 agree narrow_half
repeats narrow_half
by cudnn narrow_f16 narrow tests/cuda/narrow.tn --dtype f16
BOUND=3e-3 agree narrow_f16
survives narrow_f16
agree mlp_libraries "${mnist[@]}"
agree lenet_libraries "${mnist[@]}"
agree geometry_libraries
repeats lenet_libraries "${mnist[@]}"
agree geometry
agree norm
# Features that the networks above lack: attention, losses and positions of a sequence, tokens, loops over time, moved
# numbers, statistics of the whole batch.
small_cifar "$work/cifar" 3 4
for name in sequence loops places sync; do both $name tests/cuda/$name.tn; agree $name; done
both moves tests/cuda/moves.tn
agree moves --data "$work/cifar"
both products tests/cuda/products.tn
by cudnn products_libraries products tests/cuda/products.tn
agree products
agree products_libraries
agree mlp "${mnist[@]}"
agree lenet "${mnist[@]}"
repeats lenet "${mnist[@]}"
repeats norm
# Many steps in one launch, with the barrier of a cluster (the MLP, norm) and with a counter in memory (LeNet on a
# GPU, at 512): the same bits.
by persistent mlp_steps mlp models/mlp.tn --batch $batch
by persistent norm_steps norm tests/cuda/norm.tn
both lenet_large models/lenet.tn --batch $large
by persistent lenet_steps lenet_large models/lenet.tn --batch $large
agree lenet_steps "${mnist[@]}"
same "mlp: many steps in one launch" "$(once mlp "${mnist[@]}" --epochs 2)" "$(once mlp_steps "${mnist[@]}" --epochs 2)"
same "norm: many steps in one launch" "$(once norm --epochs 2)" "$(once norm_steps --epochs 2)"
same "lenet: many steps in one launch" "$(once lenet_large "${mnist[@]}" --epochs 2)" "$(once lenet_steps "${mnist[@]}" --epochs 2)"
same "mlp: graphs of several steps" "$(once mlp "${mnist[@]}" --epochs 2 --launch-steps 1)" "$(once mlp "${mnist[@]}" --epochs 2)"
same "mlp: samples in the host's memory" "$(once mlp "${mnist[@]}" --epochs 2)" "$(once mlp "${mnist[@]}" --epochs 2 --samples-in host)"
same "lenet in f32 by libraries: graphs of several steps" "$(once lenet_libraries "${mnist[@]}" --epochs 2 --launch-steps 1)" "$(once lenet_libraries "${mnist[@]}" --epochs 2)"
repeats mlp_steps "${mnist[@]}"
survives mlp_steps "${mnist[@]}"
survives mlp "${mnist[@]}"
survives lenet "${mnist[@]}"
lasts mlp "${mnist[@]}"
each_op
if [ $on_gpu = 1 ]; then
    nvcc -std=c++20 -O2 -arch="$(arch)" -o "$work/limits" tests/gpu/limits.cu
    succeeds "limits of launches, as over the stand-in" "$work/limits"
    small_cifar "$work/cifar" 200 100
    both resnet20 models/resnet56_cifar10.tn --set model.depth=20 --set 'augment=[]'
    agree resnet20 --data "$work/cifar"
    repeats resnet20 --data "$work/cifar"
    sanitized lenet "${mnist[@]}" --limit-samples 128
    sanitized norm
    both full models/lenet.tn
    succeeds "LeNet reaches 0.99 on MNIST" "$work/full/gpu" --epochs 12 --stop-at 0.99
else
    skip "on a GPU: limits of launches, ResNet-20, LeNet on all of MNIST, compute-sanitizer"
fi
finish
