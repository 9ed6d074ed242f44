#!/usr/bin/env bash
# cuda_recurrence.sh -- loops over time that one launch computes (compiler/cuda/recurrence.c), on a machine without a GPU.
#
# The program runs on the processor as in cuda.sh.  Losses must be those of the processor, and bits those of --kernels=persistent, which
# computes each product of a step with all blocks.
#
# Parts: text
# Deep parts: programs
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
. tests/cuda/shim.sh

# ---- which loops: those whose weights fit into the registers and the shared memory of a block
# loops MODEL OPTIONS...: kernels of whole loops, and loops of launches in the step and in the test
loops() {
    "$TENON" emit "$@" --to cuda -o "$work/text" > /dev/null
    sed '/^static int nonfinite/,/^}/d' "$work"/text/*.cu > "$work/text.cu"; rm -r "$work/text"
    echo "$(grep -c '^RECURRENCE' "$work/text.cu") and $(grep -cE '^ +LAUNCH\(.*, step\);' "$work/text.cu")"
}
lstm=models/lstm_synthetic.tn
if part text; then
    same "an LSTM" "3 and 0" "$(loops $lstm)"
    grep -q '^    Weights<512, 128, 1, 88, false> weights0;' "$work/text.cu" && ok || bad "88 of 128 steps should have their weights in registers"
    grep -q '^    Weights<128, 512, 4, 88, false> weights0;' "$work/text.cu" && ok || bad "dx should have its sums in four parts"
    same "an LSTM for sm_80" "3 and 0" "$(loops $lstm --arch sm_80)"
    grep -q '^    Weights<512, 128, 1, 88, false> weights0;' "$work/text.cu" && ok || bad "88 of 128 steps should have their weights in registers on sm_80"
    same "samples of a block" "4" "$(loops $lstm --batch 512 > /dev/null; sed -n 's/^    const Samples<512, \([0-9]*\)> samples;/\1/p' "$work/text.cu" | sort -u)"
    same "a wide LSTM" "0" "$(loops $lstm --set model.width=256 | sed 's/ .*//')"
    same "an LSTM in f64" "0" "$(loops $lstm --dtype f64 | sed 's/ .*//')"
    same "a narrow LSTM in f64" "3 and 0" "$(loops $lstm --dtype f64 --set model.width=64)"
    same "a loop that recomputes its steps" "1" "$(loops models/lstm_imdb.tn --set model.width=16 > /dev/null; grep -c '^static void train_slice' "$work/text.cu")"

    "$TENON" show $lstm --target cuda > "$work/table"
    grep -q "^      10 launches a step, " "$work/table" && ok || bad "the table counts $(grep 'launches a step' "$work/table")"
fi
part programs || { finish; exit; }

# ---- bits
shim_runtime
shim_level=$quick shim_test weights "$cuda/weights.cpp"
for order in 0 1 2; do SHIM_ORDER=$order succeeds "products of a loop in order $order" "$work/weights"; done
shim recurrence "$cuda/recurrence.tn"
steps recurrence
shim_level=$quick
if deep "loops over elements on a GPU"; then
    shim elements "$cuda/elements.tn"
    steps elements
fi
same "loops over elements" 6 "$(loops "$cuda/elements.tn" | sed 's/ .*//')"

# A newer GPU with less shared memory than the loop needs.  A program for sm_80 has some of its loops as launches.
cat > "$work/wide.tn" <<'TN'
model wide(x: f32[2, 16]) {
    return gru(x, 136) |> dense(4)
}
train wide { data = synthetic(samples = 2, test_samples = 2, classes = 4); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 2; epochs = 1 }
TN
same "a wide GRU, for sm_90 and sm_80" "3 and 0" "$(loops "$work/wide.tn" | sed "s/ .*//") and $(loops "$work/wide.tn" --arch sm_80 | sed "s/ .*//")"
if deep "a loop over time with more shared memory than a newer GPU has, and the same loop for sm_80"; then
    shim_gpu large "$work/wide.tn"
    FAKE_SHARED=102400 refuses "a GPU with 99 KB for a block" \
        "recurrence_1 keeps weights of a loop over time in 106464 bytes of shared memory for a block, and this GPU allows 101376: build the program with --arch sm_80, whose loops need at most 101376" "$work/large/gpu"
    "$work/large/gpu" --log "$work/large.jsonl" > /dev/null
    shim_gpu sm_80 "$work/wide.tn" --arch sm_80
    # nvcc gives these kernels up to 244 registers, and no shared memory besides that of the launch
    for kernel in 1 2 3; do
        printf "ptxas info    : Compiling entry function '_ZL12recurrence_%sPKf' for 'sm_80'\nptxas info    : Used 244 registers\n" $kernel
    done > "$work/ptxas"
    FAKE_SHARED=102400 FAKE_ARCH=80 FAKE_PTXAS=$work/ptxas succeeds "a program for sm_80 on this GPU" "$work/sm_80/gpu" --log "$work/sm_80.jsonl"
    same "bits of a program for sm_80" "$(hashes "$work/large.jsonl")" "$(hashes "$work/sm_80.jsonl")"
fi

# Each barrier of the loops of training is needed.  They are numbered after those of the headers.
if deep "barriers of a loop over time left out"; then
    shim_gpu lstm $lstm --batch 3 --set model.time=3 --set model.width=8 --set 'data=synthetic(samples=9, test_samples=3, classes=60)' --set epochs=1
    "$work/lstm/gpu" --log "$work/lstm/0.jsonl" > /dev/null
    printf '#include "rt.h"\n#include "cuda/kernels.cuh"\nint first = __COUNTER__;\n' > "$work/first.cu"
    first=$(g++ -std=c++20 -E -x c++ -DRT_SHIM -include "$cuda/shim.h" -I "$cuda/include" -I runtime "$work/first.cu" | sed -n 's/^int first = \([0-9]*\);/\1/p')
    sites=$(awk '/^RECURRENCE/ { kernels++ } /block_sync/ && kernels > 0 && kernels < 3 { n++ } END { print n }' "$work/lstm/lstm_synthetic.cu")
    same "barriers of both loops" 5 "$sites"
    # shellcheck disable=SC2046
    barriers lstm $(seq "$first" $((first + sites - 1)))
fi

if deep "random loops"; then
    for number in $(seq 1 20); do
        bash "$cuda/random_loop.sh" "$number" > "$work/random_$number.tn"
        shim random "$work/random_$number.tn" 2> "$work/said"   # warnings of weights without effect
        before=$failed
        steps random
        [ "$failed" = "$before" ] || { echo "the model:"; cat "$work/random_$number.tn"; }
    done
fi

if deep "the bits of one launch for each call"; then
    for name in recurrence lstm; do
        mv "$work/$name/gpu" "$work/$name/one"
        case $name in
        recurrence) shim_gpu recurrence "$cuda/recurrence.tn" --kernels=persistent ;;
        *) shim_gpu lstm $lstm --batch 3 --set model.time=3 --set model.width=8 --set 'data=synthetic(samples=9, test_samples=3, classes=60)' --set epochs=1 --kernels=persistent ;;
        esac
        for form in one gpu; do rm -f "$work/$form.jsonl"; "$work/$name/$form" --log "$work/$form.jsonl" > /dev/null; done
        same "$name: bits" "$(hashes "$work/one.jsonl")" "$(hashes "$work/gpu.jsonl")"
    done
fi
finish
