#!/usr/bin/env bash
# cuda_layout.sh -- programs for a GPU with innermost channels (--kernels=cudnn in tf32, bf16 and f16), on a machine without a GPU.
#
# As cuda_libraries.sh, but the stand-ins do not round factors to tf32, so the losses must equal those of the processor to 1e-5.  Each
# convolution is tested alone with Tenon's kernels around it, and inside of graphs that contain all these operations.
#
# Deep: convolutional networks are compiled and run over stand-ins, a minute of a processor and more.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
. tests/cuda/shim.sh

for model in models/*.tn; do
    succeeds "$model, channels innermost" "$TENON" emit "$model" --to cuda --kernels=cudnn --dtype tf32 -o "$work/emitted"
done

# both NAME MODEL OPTIONS...: builds $work/NAME without plans and $work/NAME-planned with plans; three steps of each
# against the processor's
both() {
    local name=$1; shift
    shim_gpu $name "$@" --kernels=cudnn --dtype tf32 ${arch:-}
    "$TENON" build "$1" -o "$work/$name/cpu" --cpu generic --plain "${@:2}"
    steps $name $data 2> /dev/null
    [ -x "$(dirname "$TENON")/tenon-plan" ] || { skip "no tenon-plan: $name with plans"; return 0; }
    planned $name-planned "$@" --kernels=cudnn --dtype tf32 ${arch:-} || { bad "tenon build with plans: $(cat "$work/$name-planned/said")"; return 0; }
    cp "$work/$name/cpu" "$work/$name-planned/cpu"
    steps $name-planned $data 2> /dev/null
}

# the table of calls of a program, without the numbers of lines and graphs
rows() { sed -n '/RtGraphCall graph_calls/,/};/s/.*}, \/\* \(.*\) \*\//\1/p' "$work/$1"/*.cu | sort | uniq -c | awk '{ $1 = $1; print }' | tr '\n' ';'; }
launches() { sed -n '/^static void train_slice/,/^}/p' "$work/$1"/*.cu | grep -c "LAUNCH($2" || true; }

on_the_processor() {
    local data= name
    shim_runtime
    shim_cudnn || { skip "the headers of cuDNN are not here: images channels innermost"; return; }
    export FAKE_EXACT=1
    cc -std=gnu11 -O1 -o "$work/compare" tests/tools/compare.c -lm
    arch="--arch sm_80" both last "$cuda/last.tn"
    both layers "$cuda/layers.tn"
    both norm "$cuda/norm.tn"
    both channels "$cuda/channels.tn"
    both densenet models/densenet_bc_100_12.tn --batch 4 --set model.depth=10 --set model.growth=3 --set 'data=synthetic(samples=8,test_samples=4)'
    small_mnist "$work/mnist" 20 12
    data="--data $work/mnist" both lenet models/lenet_relu.tn --batch 8
    both geometry "$cuda/geometry.tn"
    both narrow "$cuda/narrow.tn"
    both resnet models/resnet20_cifar10.tn --batch 8 --shards 1 --set optimizer.lr=0.001 --set 'data=synthetic(samples=16,test_samples=8)'
    # The operations inside of graphs, and those that Tenon's kernels compute.
    same "calls of last.tn without plans" "1 add after it: not planned;3 batch_moments after it: not planned;4 bias + relu after it: not planned;2 bias after it: not planned;1 relu_d + sum_to after it: not planned;" "$(rows last)"
    same "launches for statistics without plans" "3 0" "$(launches last batch_moments_parts) $(launches last batch_moments_sums)"
    if [ -d "$work/last-planned" ]; then
        same "calls of last.tn with plans" "1 add inside;3 batch_moments inside;4 bias + relu inside;2 bias inside;1 relu_d + sum_to inside;" "$(rows last-planned)"
        same "launches for statistics with plans" "0 3" "$(launches last-planned batch_moments_parts) $(launches last-planned batch_moments_sums)"
        # From sm_90 on, sums and relu's gradient are outside, because cuDNN's engines for them are slow there.
        same "statistics for sm_90, with plans" "2 0" "$(launches norm-planned batch_moments_parts) $(launches norm-planned batch_moments_sums)"
        same "what is inside for sm_90" 0 "$(rows resnet-planned | grep -cE '(batch_moments|relu_d)[^;]* inside')"
        rows resnet-planned | grep -q " relu_d after it: a kernel of Tenon is faster" && ok || bad "no relu_d after a convolution: $(rows resnet-planned)"
    fi
    # One launch for both gradients of batch_norm.  No launch for a sum or a relu after it, nor for the sum of two
    # gradients before a relu's gradient.  In evaluation, no launch for batch_norm, its shortcut and its relu.
    same "gradients of batch_norm" "$(launches norm batch_norm_dw_parts) $(launches norm batch_norm_then)" "2 2"
    same "batch_norm in evaluation" "0 2" "$(kernels batch_norm_test "$work/norm/norm.cu") $(grep -c '^    batch_fold_[0-9]*_body(' "$work/norm/norm.cu")"
    same "what is left of sums and relus" "0 0 0" "$(kernels sum_to "$work/norm/norm.cu") $(kernels relu "$work/norm/norm.cu") $(kernels add "$work/norm/norm.cu")"
    barriers last 9
    barriers channels 9
    # Files of weights and gradients have the usual order.
    for name in last norm channels; do
        for side in cpu gpu; do "$work/$name/$side" grads --output "$work/$name-$side.safetensors" > /dev/null 2>&1 || bad "$name/$side grads"; done
        succeeds "gradients of $name" "$work/compare" "$work/$name-cpu.safetensors" "$work/$name-gpu.safetensors" 1e-4
    done
    "$work/last/gpu" --epochs 1 --save "$work/weights.safetensors" > /dev/null 2>&1
    for name in cpu gpu; do "$work/last/$name" test --weights "$work/weights.safetensors" 2> /dev/null | grep -o "loss [0-9.]*" > "$work/$name.loss" || true; done
    near "the processor's program with its weights" "$(cut -d' ' -f2 "$work/cpu.loss")" "$(cut -d' ' -f2 "$work/gpu.loss")"
}

if [ "$(uname -m)" = x86_64 ] && command -v g++ > /dev/null; then on_the_processor; else skip "programs on the processor: they need g++ and x86-64"; fi
finish
