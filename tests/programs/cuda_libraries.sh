#!/usr/bin/env bash
# cuda_libraries.sh -- programs for a GPU that take NVIDIA's libraries (--kernels=cudnn), on a machine without one.
#
# They run on the processor as in cuda.sh; the libraries are fakes that programs open as they would the real ones, and that compute by plain
# loops (tests/cuda/fake_*.cpp).  The losses must be the processor's.  Where nvcc is there, such a program is built with the real headers.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
cuda=$TENON_ROOT/tests/cuda

refuses "--kernels=cudnn on the processor" "add --target cuda" "$TENON" build models/mlp.tn --kernels=cudnn -o "$work/p"
refuses "--kernels=cudnn and --plain" "exclude each other" "$TENON" build models/mlp.tn --target cuda --kernels=cudnn --plain -o "$work/p"
refuses "tf32 with kernels of our own" "add --target cuda --kernels=cudnn" "$TENON" build models/mlp.tn --target cuda --dtype tf32 -o "$work/p"
for model in models/*.tn; do
    [ "$CHECK_ALL" = 1 ] || case $model in *gpt_char* | *lstm_text* | *resnet20*) ;; *) continue ;; esac
    succeeds "$model with libraries" "$TENON" emit "$model" --to cuda --kernels=cudnn -o "$work/emitted"
done

. "$cuda/shim.sh"

# pair NAME MODEL OPTIONS...: the processor's program, and one for a GPU with libraries
pair() {
    shim_gpu "$@" --kernels=cudnn
    "$TENON" build "$2" -o "$work/$1/cpu" --cpu generic --plain "${@:3}"
}

# differs TEXT A B: equally many losses, none the same and none far
differs() {
    if awk -v a="$2" -v b="$3" 'BEGIN { n = split(a, x); m = split(b, y); if (n < 1 || n != m) exit 1
        for (i = 1; i <= n; i++) { d = x[i] - y[i]; if (d < 0) d = -d; if (!(d < 1e-2 * x[i])) exit 1; if (d > 0) seen++ } exit !seen }'
    then ok; else bad "$1: '$2' and '$3'"; fi
}

on_the_processor() {
    shim_runtime
    small_mnist "$work/mnist" 20 12                   # the last step and the last test are filled up
    pair mlp models/mlp.tn --batch 8
    pair lenet models/lenet.tn --batch 8
    pair products "$cuda/products.tn"
    pair loops "$cuda/loops.tn"
    steps mlp --data "$work/mnist"
    steps lenet --data "$work/mnist"
    steps products
    steps loops
    local mlp=$work/mlp data="--data $work/mnist"
    # no kernel of ours is left of the products, and bias and relu are inside of them
    ! grep -q "LAUNCH(dense\|LAUNCH(matmul" "$work"/{mlp,lenet,products,loops}/*.cu && ok || bad "kernels of our own compute products"
    same "relus of an MLP that are launches" 0 "$(grep -c 'LAUNCH(relu_[0-9]' "$mlp/mlp.cu" || true)"
    same "biases of an MLP that are launches" 0 "$(grep -c 'LAUNCH(bias' "$mlp/mlp.cu" || true)"
    # each step computes every product once; from the third step on out of a recording
    FAKE_LOG=1 "$mlp/gpu" $data --epochs 1 2>&1 | sed -n '/a product/s/.*product, //p' | sort | uniq -c | awk '{ $1 = $1; print }' > "$work/products.log"
    same "the first dense of an MLP in three steps and two tests" "5 8 x 128 + bias relu" "$(grep '8 x 128 + bias relu' "$work/products.log")"
    # in f64: gradients against central differences
    shim_gpu exact "$cuda/products.tn" --kernels=cudnn --dtype f64 --batch 4 --shards 1
    succeeds "gradients in f64" "$work/exact/gpu" gradcheck
    # tf32 is another sum, and says so
    shim_gpu rounded models/mlp.tn --batch 8 --kernels=cudnn --dtype tf32
    "$work/rounded/gpu" $data --epochs 1 --log "$work/tf32.jsonl" --log-steps 1 > /dev/null 2> "$work/said"
    grep -q "in tf32" "$work/said" && ok || bad "tf32 is not said at the start: $(cat "$work/said")"
    differs "losses in tf32" "$(field "$mlp/0.jsonl" step train_loss)" "$(field "$work/tf32.jsonl" step train_loss)"
    "$work/rounded/gpu" info | grep -q "^dtype: f32, factors of products rounded to tf32" && ok || bad "info does not say tf32"
    # what can be wrong with the library, in its own words
    TENON_CUBLASLT=/nowhere/libcublasLt.so.13 refuses "no cuBLASLt" "cuBLASLt 13 was not found: .*install it" "$mlp/gpu" $data
    TENON_CUBLASLT=libm.so.6 refuses "a library that is not cuBLASLt" "libm.so.6 is no cuBLASLt 13: it has no cublasLt" "$mlp/gpu" $data
    FAKE_CUBLAS=old refuses "an old cuBLASLt" "is cuBLASLt 12.8, and this program needs version 13" "$mlp/gpu" $data
    FAKE_CUBLAS=start refuses "one that cannot start" "cuBLASLt failed at dense1 \(mlp.tn:8\), starting the library: the library was not initialized" "$mlp/gpu" $data
    FAKE_CUBLAS=none refuses "no algorithm" "no algorithm for dense1 \(mlp.tn:8\), \(8 x 128\) of sums of 784" "$mlp/gpu" $data
    FAKE_CUBLAS=fails refuses "a product that fails" "cuBLASLt failed at dense1 \(mlp.tn:8\), the product: " "$mlp/gpu" $data
    TENON_CUBLASLT=/nowhere/libcublasLt.so.13 succeeds "info needs no library" "$mlp/gpu" info
    # checkpoints are interchangeable with the processor's
    "$mlp/cpu" $data --epochs 1 --checkpoint "$work/c" > /dev/null
    "$mlp/gpu" $data --epochs 2 --checkpoint "$work/c" --resume --log "$work/both.jsonl" > /dev/null
    "$mlp/cpu" $data --epochs 2 --log "$work/alone.jsonl" > /dev/null
    near "an epoch on each" "$(field "$work/alone.jsonl" epoch test_loss | cut -d' ' -f2)" "$(field "$work/both.jsonl" epoch test_loss | cut -d' ' -f1)"
}

by_nvcc() {
    local extra
    "$TENON" build models/mlp.tn --target cuda --kernels=cudnn -o "$work/real" || { bad "tenon build --target cuda --kernels=cudnn"; return; }
    extra=$(readelf -d "$work/real" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libz|ld-linux.*|libpthread|libdl|librt)\.so' || true)
    [ -z "$extra" ] && ok || bad "a program for a GPU needs $extra to start"
    succeeds "its info, on any machine" "$work/real" info
}

if [ "$(uname -m)" = x86_64 ] && command -v g++ > /dev/null; then on_the_processor; else skip "libraries on the processor: they need g++ and x86-64"; fi
if command -v nvcc > /dev/null; then export NVCC=nvcc; by_nvcc; else skip "nvcc is not there: nothing was compiled for a GPU"; fi
finish
