#!/usr/bin/env bash
# cuda_libraries.sh -- programs for a GPU that use NVIDIA's libraries (--kernels=cudnn), on a machine without a GPU.
#
# They run on the processor as in cuda.sh.  The libraries are stand-ins, opened like the real ones, that compute with plain loops
# (tests/cuda/fake_*.cpp).  The losses must equal those of the processor.  If nvcc is present, such a program is also built with the
# real headers.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"

refuses "--kernels=cudnn on the processor" "add --target cuda" "$TENON" build models/mlp.tn --kernels=cudnn -o "$work/p"
refuses "--kernels=cudnn and --plain" "exclude each other" "$TENON" build models/mlp.tn --target cuda --kernels=cudnn --plain -o "$work/p"
refuses "bf16 with kernels of our own" "bf16 needs NVIDIA.s libraries, and this program uses Tenon.s own kernels" "$TENON" build models/mlp.tn --target cuda --kernels=own --dtype bf16 -o "$work/p"
refuses "f16 with kernels of our own" "f16 needs NVIDIA.s libraries, and this program uses Tenon.s own kernels" "$TENON" build models/mlp.tn --target cuda --kernels=own --dtype f16 -o "$work/p"
refuses "tf32 with kernels of our own" "tf32 needs NVIDIA.s libraries, and this program uses Tenon.s own kernels" "$TENON" build models/mlp.tn --target cuda --kernels=own --dtype tf32 -o "$work/p"
same "bf16 takes them by itself" "$("$TENON" emit models/mlp.tn --to cuda --dtype bf16 --kernels=cudnn | sed 's/flags = "[^"]*"//' | cksum)" \
    "$("$TENON" emit models/mlp.tn --to cuda --dtype bf16 | sed 's/flags = "[^"]*"//' | cksum)"
if deep "each model as a program with libraries"; then   # tests/passes/emitted.sh compares the text of all models
    for model in models/*.tn; do
        for dtype in f32 bf16 f16; do succeeds "$model with libraries, $dtype" "$TENON" emit "$model" --to cuda --kernels=cudnn --dtype $dtype -o "$work/emitted"; done
    done
fi

. tests/cuda/shim.sh

# pair NAME MODEL OPTIONS...: builds a program for the processor, and one for a GPU with libraries
pair() {
    shim_gpu "$@" --kernels=cudnn
    "$TENON" build "$2" -o "$work/$1/cpu" --cpu generic --plain "${@:3}"
}

# rules NAME FILES...: a program that breaks the rules of a library, with the files that it needs
rules() {
    g++ -std=c++20 -O1 -Wall -Wextra -Werror -rdynamic -I "$cuda/include" ${cudnn_include:+-isystem "$cudnn_include"} -I runtime -o "$work/rules" "$cuda/rules_$1.cpp" "${@:2}" "$work"/{fiber,fake}.o $shim_libraries
    succeeds "rules of $1" "$work/rules"
}

silent() { [ -z "$2" ] && ok || bad "$1: it says '$2'"; }

on_the_processor() {
    shim_runtime
    rules cublas "$work/libcublasLt.so.13" "-Wl,-rpath,$work"
    small_mnist "$work/mnist" 20 12                   # the last step and the last test batch are not full
    pair mlp models/mlp.tn --batch 8
    pair products "$cuda/products.tn"
    steps mlp --data "$work/mnist"
    steps products
    local mlp=$work/mlp data="--data $work/mnist"
    # No kernel of Tenon computes products, and bias and relu are part of them.
    same "kernels of our own that compute products" 0 "$(kernels 'dense|dense_dx|dense_dw|matmul' "$work"/{mlp,products}/*.cu)"
    same "relus of an MLP that are launches" 0 "$(kernels relu "$mlp/mlp.cu")"
    same "biases of an MLP that are launches" 0 "$(kernels bias "$mlp/mlp.cu")"
    # Gradients of biases come from the product that gives those of weights or, if the library cannot do that, from a
    # product with ones.
    same "gradients of an MLP's biases that are launches" 0 "$(kernels sum_to "$mlp/mlp.cu")"
    same "products that bring them along" 3 "$(grep -c '\.sums = true' "$mlp/mlp.cu")"
    FAKE_CUBLAS=alone "$mlp/gpu" $data --epochs 1 --log "$work/ones.jsonl" > /dev/null
    same "the same bits by a product of ones" "$(hashes "$mlp/0.jsonl")" "$(hashes "$work/ones.jsonl")"
    # The gradient of a relu is part of the product after it, by a mask that the layer's own product writes.  If the
    # library has no algorithm for either product, a kernel of Tenon computes it.
    same "relus of an MLP that are undone by launches of their own" 0 "$(kernels relu_d "$mlp/mlp.cu")"
    same "rows that leave bits of a relu, and undo one" "2 2" "$(grep -c '\.mask = true' "$mlp/mlp.cu") $(grep -c '\.undoes = ' "$mlp/mlp.cu")"
    # bits NAME OPTIONS: numbers of products that write masks, of products that use them, and of kernels that compute
    # a relu's gradient
    bits() {
        rm -f "$work/bits.jsonl"
        FAKE_LOG=1 "$work/$1/gpu" "${@:2}" --epochs 1 --log "$work/bits.jsonl" 2> "$work/said" > /dev/null || bad "$*"
        same "the same bits, FAKE_CUBLAS=${FAKE_CUBLAS:-}" "$(hashes "$work/$1/0.jsonl")" "$(hashes "$work/bits.jsonl")"
        echo "$(grep -c ' and bits' "$work/said" || true) $(grep -c ' a relu undone' "$work/said" || true) $(grep -c 'fake: dense_dx_rest' "$work/said" || true)" > "$work/counts"
    }
    bits mlp $data; same "two relus in each of three steps" "6 6 0" "$(cat "$work/counts")"
    ! grep -q "relus inside of products" "$work/said" && ok || bad "something is said of relus though all are inside: $(grep relus "$work/said")"
    for lack in bits undo; do
        FAKE_CUBLAS=$lack bits mlp $data; same "without algorithms that have to do with $lack" "0 0 6" "$(cat "$work/counts")"
        grep -q "^gpu: cuBLASLt computes the gradients of 0 of 2 relus inside products: Tenon's kernels compute the others$" "$work/said" && ok || bad "a lack of $lack is not said"
    done
    if deep "relus of vectors and of each step of a sequence inside of products"; then
        bits products; same "of vectors, and of each step of a sequence, in two shards and three steps" "12 12 0" "$(cat "$work/counts")"
        FAKE_CUBLAS=undo bits products; same "and by kernels of ours" "0 0 12" "$(cat "$work/counts")"
    fi
    # Each step computes every product once; from the third step on it is played from a recording.
    FAKE_LOG=1 "$mlp/gpu" $data --epochs 1 2>&1 | sed -n '/a product/s/.*product, //p' | sort | uniq -c | awk '{ $1 = $1; print }' > "$work/products.log"
    same "the first dense of an MLP in three steps and two tests" "2 8 x 128 + bias relu;3 8 x 128 + bias relu and bits;" "$(grep '8 x 128 + bias relu' "$work/products.log" | tr '\n' ';')"
    if deep "gradients in f64 against central differences"; then
        shim_gpu exact "$cuda/products.tn" --kernels=cudnn --dtype f64 --batch 4 --shards 1
        succeeds "gradients in f64" "$work/exact/gpu" gradcheck --samples 4
    fi
    # Convolutions have no graphs in f64, so kernels of Tenon compute them, and after them the biases.
    same "biases after convolutions in f64" 2 "$("$TENON" emit "$cuda/few.tn" --to cuda --kernels=cudnn --dtype f64 | grep -c '^    conv2d_rest(')"
    # tf32 gives other sums, and the program says that it rounds.
    shim_level=$quick shim_gpu rounded models/mlp.tn --batch 8 --kernels=cudnn --dtype tf32
    "$work/rounded/gpu" $data --epochs 1 --log "$work/tf32.jsonl" --log-steps 1 > /dev/null 2> "$work/said"
    grep -q "in tf32" "$work/said" && ok || bad "tf32 is not said at the start: $(cat "$work/said")"
    differs "losses in tf32" "$(field "$mlp/0.jsonl" step train_loss)" "$(field "$work/tf32.jsonl" step train_loss)"
    "$work/rounded/gpu" info | grep -q "^dtype: f32, factors of products rounded to tf32" && ok || bad "info does not say tf32"
    # Messages about missing or unsuitable libraries.
    TENON_CUBLASLT=/nowhere/libcublasLt.so.13 refuses "no cuBLASLt" "cuBLASLt 13 was not found: .*install it" "$mlp/gpu" $data
    TENON_CUBLASLT=libm.so.6 refuses "a library that is not cuBLASLt" "libm.so.6 is no cuBLASLt 13: it has no cublasLt" "$mlp/gpu" $data
    FAKE_CUBLAS=old refuses "an old cuBLASLt" "is cuBLASLt 12.8, and this program needs version 13" "$mlp/gpu" $data
    FAKE_CUBLAS=start refuses "one that cannot start" "cuBLASLt failed at dense1 \(mlp.tn:8\), starting the library: the library was not initialized" "$mlp/gpu" $data
    FAKE_CUBLAS=none refuses "no algorithm" "no algorithm for dense1 \(mlp.tn:8\), 8 x 128 sums of 784 products" "$mlp/gpu" $data
    FAKE_CUBLAS=fails refuses "a product that fails" "cuBLASLt failed at dense1 \(mlp.tn:8\), the product: " "$mlp/gpu" $data
    TENON_CUBLASLT=/nowhere/libcublasLt.so.13 succeeds "info needs no library" "$mlp/gpu" info
    # Checkpoints are interchangeable with those of the processor.
    "$mlp/cpu" $data --epochs 1 --checkpoint "$work/c" > /dev/null
    "$mlp/gpu" $data --epochs 2 --checkpoint "$work/c" --resume --log "$work/both.jsonl" > /dev/null
    "$mlp/cpu" $data --epochs 2 --log "$work/alone.jsonl" > /dev/null
    near "an epoch on each" "$(field "$work/alone.jsonl" epoch test_loss | cut -d' ' -f2)" "$(field "$work/both.jsonl" epoch test_loss | cut -d' ' -f1)"
}

# Convolutions: the part for cuDNN is compiled with stand-in headers.
convolutions() {
    shim_cudnn || { skip "the headers of cuDNN are not here: convolutions through it"; return; }
    rules cudnn "$work"/cudnn/cudnn_{api,device,graph,load,ops,plan}.o "$(dirname "$TENON")/lib/libtenonrt.a"
    local lenet=$work/lenet data="--data $work/mnist"
    pair lenet models/lenet.tn --batch 8
    pair geometry "$cuda/geometry.tn"
    steps lenet $data
    steps geometry
    same "kernels of our own that compute convolutions" 0 "$(kernels 'conv2d|conv2d_dx|conv2d_dw' "$work"/{lenet,geometry}/*.cu)"
    # Three convolutions in each training step and two in each test batch, all without tensor cores; the two gradients of filters of 5 x 5
    # by kernels of our own, because engine 1 rounds there.  Plans are stored, and a second start makes none.
    same "gradients of filters of 5 x 5 by our own kernels" 2 "$(grep -c '^    conv2d_dw_parts(' "$lenet/lenet.cu")"
    same "convolutions of three steps and two tests" "13 by engine 1;" \
        "$(FAKE_LOG=1 "$lenet/gpu" $data --epochs 1 2>&1 | sed -n 's/^fake: a convolution //p' | sort | uniq -c | awk '{ $1 = $1; print }' | tr '\n' ';')"
    FAKE_CUDNN=none succeeds "a start with plans that are kept" "$lenet/gpu" $data --epochs 1
    TENON_CACHE=$work/other FAKE_CUDNN=none refuses "no engine" "cuDNN has no engine for conv1 \(lenet.tn:8\): .*the graph: x f32 8 1 28 28 row; " "$lenet/gpu" $data
    TENON_CUDNN=/nowhere/libcudnn.so.9 refuses "no cuDNN" "cuDNN 9 was not found: .*computes its convolutions with it" "$lenet/gpu" $data
    TENON_CUDNN=libm.so.6 refuses "a library that is not cuDNN" "has no cudnnGetVersion" "$lenet/gpu" $data
    FAKE_CUDNN=old refuses "an old cuDNN" "is cuDNN 9.5; Tenon needs version 9.8" "$lenet/gpu" $data
    FAKE_CUDNN=start refuses "one that cannot start" "cuDNN cannot start: CUDNN_STATUS_NOT_INITIALIZED" "$lenet/gpu" $data
    FAKE_CUDNN=fails refuses "a convolution that fails" "cuDNN failed at conv1 \(lenet.tn:8\): " "$lenet/gpu" $data
    TENON_CUDNN=/nowhere/libcudnn.so.9 succeeds "info needs no cuDNN" "$lenet/gpu" info
    halves
    scaled
    lanes
    embedded
    fused
}

# Bias and relu are part of a convolution's graph if the plan has an engine for it, else they follow it: the bits are
# the same, and text, table and run agree.
fused() {
    [ -x "$(dirname "$TENON")/tenon-plan" ] || { skip "no tenon-plan: bias and relu inside of convolutions"; return; }
    local geometry=$cuda/geometry.tn inside=$work/inside behind=$work/behind data=
    show() { "$TENON" show "$geometry" --target cuda --kernels=cudnn "$@" 2>&1 | sed -n '/^a step of/,$p'; }
    rows() { sed -n '/RtGraphCall graph_calls/,/};/s/.*geometry.tn:\([0-9]*\)).*}, \/\* \(.*\) \*\//\1 \2/p' "$1"/*.cu | sort -u | tr '\n' ';'; }
    calls() { FAKE_LOG=1 "$1/gpu" --epochs 1 2>&1 | sed -n 's/^fake: a convolution by engine 1 + //p' | sort | uniq -c | awk '{ $1 = $1; print }' | tr '\n' ';'; }
    # Not planned: the convolution alone, and one kernel of Tenon for the rest.
    same "rows without plans" "3 bias + relu after it: not planned;4 bias after it: not planned;4 relu_d after it: not planned;" "$(rows "$work/geometry")"
    same "kernels of bias or relu, without plans" 0 "$(kernels 'bias|relu' "$work/geometry/geometry.cu")"
    TENON_CUDNN=/nowhere/libcudnn.so.9 show > "$work/table"
    grep -q "^   3 .* conv2d  *cuDNN, not planned " "$work/table" && grep -q " conv2d_rest " "$work/table" && grep -q "each convolution without fusion" "$work/table" && ok || bad "the table without cuDNN: $(cat "$work/table")"
    # Planned, by a library that has engines for all graphs.
    planned inside "$geometry" --kernels=cudnn || { bad "tenon build with plans: $(cat "$inside/said")"; return; }
    cp "$work/geometry/cpu" "$inside/cpu"
    steps inside
    same "the bits of bias and relu inside" "$(hashes "$work/geometry/0.jsonl")" "$(hashes "$inside/0.jsonl")"
    same "rows with plans" "3 bias + relu inside;4 bias inside;4 relu_d after it: a kernel of Tenon is faster;" "$(rows "$inside")"
    same "kernels of what is inside" 0 "$(kernels 'bias|relu|conv2d_rest' "$inside"/*.cu)"
    # Two steps of four shards, and one test batch of four shards.
    same "convolutions with more inside" "12 bias;12 bias + relu;" "$(calls "$inside")"
    show > "$work/table"
    grep -q "^   3 .* conv2d + bias + relu  *cuDNN 1 " "$work/table" && grep -q "3 convolutions have operations after them; in 2 the graph contains all of these" "$work/table" && ok || bad "the table: $(cat "$work/table")"
    # A library without an engine for a relu.
    export FAKE_CUDNN=bias TENON_CACHE=$work/behind-cache
    planned behind "$geometry" --kernels=cudnn || bad "tenon build where no engine takes a relu: $(cat "$behind/said")"
    cp "$work/geometry/cpu" "$behind/cpu"
    steps behind
    same "the bits of a relu behind" "$(hashes "$work/geometry/0.jsonl")" "$(hashes "$behind/0.jsonl")"
    same "rows where no engine takes a relu" "3 bias inside, relu after it: no engine takes it;4 bias inside;4 relu_d after it: a kernel of Tenon is faster;" "$(rows "$behind")"
    same "calls where no engine takes a relu" "24 bias;" "$(calls "$behind")"
    show > "$work/table"
    grep -q "^   3 .* conv2d + bias  *cuDNN 1 " "$work/table" && grep -q " conv2d_rest " "$work/table" && ok || bad "the table where no engine takes a relu: $(cat "$work/table")"
    # A library without an engine for bias and relu; and a program for one library meets another library.
    FAKE_CUDNN=alone TENON_CACHE=$work/alone-cache show > "$work/table"
    grep -q "^   3 .* conv2d  *cuDNN 1 " "$work/table" && grep -q "3 convolutions have operations after them; in 0 the graph" "$work/table" && ok || bad "the table of convolutions alone: $(cat "$work/table")"
    FAKE_CUDNN=alone FAKE_DRIVER=13010 refuses "a graph that the library here has no engine for" "no engine for [a-z0-9]+ \(geometry.tn:[34]\): .*build it where this cuDNN is" "$inside/gpu" --epochs 1
    unset FAKE_CUDNN; export TENON_CACHE=$work/cache
    by=planned half geometry "$geometry" 0
    grep -q " bf16 1 6 1 1; s f32 .*relu t y" "$work/geometry-planned"/*.cu && grep -q "bias + relu inside" "$work/geometry-planned"/*.cu && ok || bad "in bf16 bias and relu are not inside"
}

# half NAME MODEL BOUND OPTIONS...: compares $work/NAME-TYPE/gpu, TYPE bf16 or f16 (by=planned:
# $work/NAME-planned/gpu, with plans), with the processor's f32 program of pair NAME.  Losses differ by less than
# 1e-2, or 1e-3 with the three more bits of f16; gradients by at most BOUND of a parameter's norm (0: not compared).
# Two orders give equal bits.  No product has another type.
half() {
    local by=${by:-} type=${type:-bf16} of=$work/$1 bound=$3 order rows within=1e-2
    local dir=$of-${by:-$type}
    [ $type = bf16 ] || within=1e-3
    ${by:-shim_gpu} "$(basename "$dir")" "$2" --kernels=cudnn --dtype $type "${@:4}" || { bad "$dir: it was not built"; return; }
    for order in 0 2; do
        rm -f "$dir/$order.jsonl"
        FAKE_LOG=1 SHIM_ORDER=$order "$dir/gpu" --log "$dir/$order.jsonl" --log-steps 1 --epochs 1 $data > /dev/null 2> "$dir/said" || { bad "$dir/gpu in order $order"; return; }
    done
    differs "$dir: losses" "$(field "$of/cpu.jsonl" step train_loss)" "$(field "$dir/0.jsonl" step train_loss)" $within
    same "$dir: random order" "$(hashes "$dir/0.jsonl")" "$(hashes "$dir/2.jsonl")"
    rows=$(grep "^fake: a \(product\|convolution\)" "$dir/said" | grep -vc "in $type") || true
    same "$dir: products that are not in $type" 0 "$rows"
    [ "$bound" != 0 ] || return 0
    for side in "$of/cpu" "$dir/gpu"; do "$side" grads --output "$side.safetensors" $data > /dev/null 2>&1 || bad "$side grads"; done
    if "$work/compare" "$of/cpu.safetensors" "$dir/gpu.safetensors" "$bound" > "$work/out" 2>&1; then ok; else bad "$dir: gradients differ"; tail -n 5 "$work/out"; fi
}

# bf16 in memory: weights and sums stay f32.
halves() {
    local data=
    cc -std=gnu11 -O1 -o "$work/compare" tests/tools/compare.c -lm
    half products "$cuda/products.tn" 0
    if deep "loops over packs in bf16"; then
        pair packs "$cuda/packs.tn"
        steps packs
        half packs "$cuda/packs.tn" 0
        same "kernels that are loops over packs in bf16" 10 "$(grep -c "each_pack(264627, " "$work/packs-bf16/packs.cu")"
    fi
    pair narrow "$cuda/narrow.tn"
    steps narrow
    half narrow "$cuda/narrow.tn" 3e-2
    if deep "geometry.tn and channels.tn in bf16"; then
        half geometry "$cuda/geometry.tn" 0
        pair channels "$cuda/channels.tn"
        steps channels
        half channels "$cuda/channels.tn" 0
    fi
    data="--data $work/mnist"
    half lenet models/lenet.tn 0 --batch 8
    grep -q "^gpu: products and the values between them in bf16, .*; sums, weights, .* are f32" "$work/lenet-bf16/said" && ok || bad "bf16 is not said at the start: $(head -n 2 "$work/lenet-bf16/said")"
    "$work/lenet-bf16/gpu" info | grep -q "^dtype: f32, products and the values between them in bf16" && ok || bad "info does not say bf16"
    # A convolution whose filters are used twice: a kernel of Tenon adds the second sum to the first.
    same "gradients of filters that are kernels of ours" 2 "$(sed -n '/^static void train_slice/,/^}/p' "$work/narrow-bf16/narrow.cu" | grep -c 'LAUNCH(conv2d_dw')"
    "$work/lenet-bf16/gpu" $data --epochs 1 --save "$work/half.safetensors" > /dev/null 2>&1
    succeeds "the processor's program reads weights trained in bf16" "$work/lenet/cpu" test --weights "$work/half.safetensors" $data
    shim_gpu hot models/mlp.tn --batch 8 --kernels=cudnn --dtype bf16 --set optimizer.lr=1e30
    refuses "a loss in bf16 that is not finite" "the loss is not finite in epoch 1, step [0-9]+ of 3; the first value that is not finite is [a-z0-9]+ \(mlp.tn:" \
        "$work/hot/gpu" $data --epochs 1
}

# of LOG EVENT NAME: a field of the last record of this event
of() { field "$@" | awk '{ print $NF }'; }

# f16: the gradient of the loss is scaled, and a step with gradients that are not finite is skipped.
scaled() {
    local data= dir=$work/large small=$work/small bits steps scale fixed="--loss-scale-steps 0" model=$cuda/scaled.tn
    if deep "products in f16"; then type=f16 half products "$cuda/products.tn" 0; fi
    type=f16 half narrow "$cuda/narrow.tn" 3e-3
    if deep "LeNet in f16"; then data="--data $work/mnist" type=f16 half lenet models/lenet.tn 0 --batch 8; fi
    grep -q "products and the values between them in f16, 10 fraction bits; sums, weights, .* are f32" "$work/narrow-f16/said" && ok || bad "f16 is not said at the start"
    grep -q "loss scale 65536: halved, and the step left out, .*; doubled after 2000 steps" "$work/narrow-f16/said" && ok || bad "the scale is not said at the start"
    "$work/narrow-f16/gpu" info | grep -q "^dtype: f32, products and the values between them in f16" && ok || bad "info does not say f16"
    refuses "a scale of nothing" "for programs built with --dtype f16" "$work/narrow/gpu" --loss-scale 8
    # Clipping sees unscaled gradients: the same bits at any scale, and nearly the losses of f32.
    shim_gpu clipped "$cuda/products.tn" --kernels=cudnn --dtype f16 --set 'clip=norm(0.2)'
    witness "$cuda/products.tn" "$work/clipped/cpu" --set 'clip=norm(0.2)'
    for scale in 64 65536; do "$work/clipped/gpu" --log "$work/$scale.jsonl" --log-steps 1 --loss-scale $scale > /dev/null 2>&1; done
    "$work/clipped/cpu" --log "$work/cpu.jsonl" --log-steps 1 > /dev/null
    differs "losses of clipped steps in f16" "$(field "$work/cpu.jsonl" step train_loss)" "$(field "$work/65536.jsonl" step train_loss)" 1e-3
    differs "and at a small scale" "$(field "$work/cpu.jsonl" step train_loss)" "$(field "$work/64.jsonl" step train_loss)" 1e-3

    # A first scale that is too large: nothing changes, also Adam's moments and count, until the scale is small
    # enough.
    shim_gpu large "$model" --kernels=cudnn --dtype f16
    run() { rm -f "$work/run.jsonl"; "$@" --shuffle off --log "$work/run.jsonl" --log-steps 1 > /dev/null 2>&1 || bad "$*"; }
    run "$dir/gpu" --epochs 0
    bits=$(of "$work/run.jsonl" end weights_hash)
    run "$dir/gpu" --epochs 1 --limit-samples 4
    same "weights after a step that was left out" "$bits" "$(hashes "$work/run.jsonl" | tr -d ' ')"
    same "the scale after it, and what it has cost" "32768 1" "$(of "$work/run.jsonl" epoch loss_scale) $(of "$work/run.jsonl" epoch skipped_steps)"
    run "$dir/gpu" --epochs 9 --limit-samples 4
    steps=$(of "$work/run.jsonl" epoch skipped_steps) scale=$(of "$work/run.jsonl" epoch loss_scale) bits=$(of "$work/run.jsonl" end weights_hash)
    [ "$steps" -ge 2 ] && [ "$steps" -le 6 ] && ok || bad "of nine steps $steps were left out"
    same "each of them halved the scale" $((65536 >> steps)) "$scale"
    run "$dir/gpu" --epochs $((9 - steps)) --limit-samples 4 --loss-scale "$scale"
    same "as if they had never been" "$bits 0" "$(of "$work/run.jsonl" end weights_hash) $(of "$work/run.jsonl" epoch skipped_steps)"
    run "$dir/gpu" --epochs 1 $fixed
    same "a scale that stays" "65536 3" "$(of "$work/run.jsonl" epoch loss_scale) $(of "$work/run.jsonl" epoch skipped_steps)"
    shim_gpu beyond "$model" --kernels=cudnn --dtype f16 --set model.factor=1e7
    refuses "gradients that fit at no scale" "a gradient is not finite in f16 in epoch 1, step 2 of 3, though the loss is, .* --dtype bf16" "$work/beyond/gpu" --loss-scale 2

    # A resumed run restores the scale, the number of steps since it changed, and Adam's count.
    local run="--loss-scale-steps 4 --shuffle off --log-steps 1"
    "$dir/gpu" $run --epochs 6 --log "$work/whole.jsonl" > /dev/null 2>&1
    rm -rf "$work/halfway"
    "$dir/gpu" $run --epochs 3 --checkpoint "$work/halfway" --log "$work/parts.jsonl" > /dev/null 2>&1
    "$dir/gpu" $run --epochs 6 --checkpoint "$work/halfway" --resume --log "$work/parts.jsonl" > /dev/null 2>&1
    same "scales of a run, and of one in two parts" "$(field "$work/whole.jsonl" step loss_scale)" "$(field "$work/parts.jsonl" step loss_scale)"
    same "and their weights" "$(hashes "$work/whole.jsonl")" "$(hashes "$work/parts.jsonl")"
    [ "$(field "$work/whole.jsonl" step loss_scale | tr ' ' '\n' | sort -u | grep -c .)" -ge 4 ] && [ "$(of "$work/whole.jsonl" epoch skipped_steps)" -ge 6 ] && ok || bad "the scale did not go down and up"
    refuses "a run that moves the scale otherwise" "made with --loss-scale-steps 4, this run has 2000" "$dir/gpu" --shuffle off --epochs 7 --checkpoint "$work/halfway" --resume
    "$TENON" build "$model" -o "$dir/cpu" --cpu generic --plain
    "$dir/cpu" --shuffle off --epochs 7 --checkpoint "$work/halfway" --resume > /dev/null 2> "$work/said" && grep -q "another build" "$work/said" && ok || bad "the processor's program does not go on: $(cat "$work/said")"
    "$dir/gpu" --shuffle off --epochs 8 --checkpoint "$work/halfway" --resume > /dev/null 2> "$work/said" && grep -q "holds no loss scale: it begins at 65536" "$work/said" && ok || bad "and not back in f16: $(cat "$work/said")"
    succeeds "its checkpoint serves as weights" "$dir/cpu" test --weights "$(ls "$work"/halfway/*.safetensors | tail -n 1)"

    # Gradients that are too small for f16 without the scale, which doubles.
    shim_gpu small "$model" --kernels=cudnn --dtype f16 --set model.factor=1e-7
    witness "$model" "$small/cpu" --set model.factor=1e-7
    for scale in 1 65536; do "$small/gpu" grads --output "$small/$scale.safetensors" --loss-scale $scale > /dev/null 2>&1 || bad "$small grads"; done
    "$small/cpu" grads --output "$small/cpu.safetensors" > /dev/null
    succeeds "small gradients, scaled" "$work/compare" "$small/cpu.safetensors" "$small/65536.safetensors" 3e-3
    "$work/compare" "$small/1.safetensors" "$small/cpu.safetensors" 0.9 > /dev/null && bad "small gradients do not vanish as they are" || ok
    run "$small/gpu" --epochs 2 --loss-scale 16 --loss-scale-steps 2
    same "a scale that doubles after two steps" "16 32 32 64 64 128 " "$(field "$work/run.jsonl" step loss_scale)"
}

# Samples with few channels are padded to eight channels for cuDNN, and so are filters and their gradient (pass
# lanes); nothing else changes.
lanes() {
    local data= model=$cuda/lanes.tn type name
    # channels CHANNELS OPTIONS...: the channels of samples and filters in the graph of the first convolution
    channels() {
        local want=$1; shift
        "$TENON" emit "$model" --to cuda --kernels=cudnn "$@" -o "$work/channels"
        same "channels with $*" "$want $want" "$(sed -n 's/^    {"x [a-z0-9]* 4 \([0-9]*\) 13 12; w [a-z0-9]* [0-9]* \([0-9]*\) .*/\1 \2/p' "$work/channels/lanes.cu" | head -n 1)"
    }
    channels 8 --dtype bf16
    channels 8 --dtype bf16 --set model.kernel=3
    channels 8 --dtype bf16 --set model.channels=7
    channels 2 --dtype bf16 --set model.channels=2
    channels 1 --dtype bf16 --set model.channels=1
    channels 9 --dtype bf16 --set model.channels=9
    channels 3 --dtype bf16 --set model.filters=12
    channels 8 --dtype f16
    channels 3 --dtype f16 --set model.kernel=5
    channels 3 --dtype tf32
    "$TENON" show "$model" --target cuda --kernels=cudnn --dtype bf16 | grep -q " conv2d_dw, 3 channels as 8 " && ok || bad "show does not say that channels lie otherwise"
    # Samples as they are stored, and normalised and augmented ones; three channels, and four.
    pair lanes "$model"
    steps lanes
    pair augmented "$model" --set model.channels=4 --set 'normalize=per_channel(mean=[0.3,0.5,0.4,0.2],std=[0.2,0.4,0.3,0.5])' --set 'augment=[shift(pixels=2),flip_horizontal,cutout(3),brightness(0.2)]'
    steps augmented
    for type in bf16 f16; do
        half lanes "$model" $([ $type = bf16 ] && echo 3e-2 || echo 3e-3)
        half augmented "$model" $([ $type = bf16 ] && echo 3e-2 || echo 3e-3) --set model.channels=4 --set 'normalize=per_channel(mean=[0.3,0.5,0.4,0.2],std=[0.2,0.4,0.3,0.5])' --set 'augment=[shift(pixels=2),flip_horizontal,cutout(3),brightness(0.2)]'
        for name in lanes augmented; do
            differs "$name in $type: the test's loss" "$(field "$work/$name/cpu.jsonl" epoch test_loss)" "$(field "$work/$name-$type/0.jsonl" epoch test_loss)"
            # Shapes in files are those of the model.
            "$work/$name-$type/gpu" --epochs 1 --save "$work/$name.safetensors" > /dev/null 2>&1
            succeeds "the processor's program reads $name's weights" "$work/$name/cpu" test --weights "$work/$name.safetensors"
        done
    done
    # Samples in training, in the recomputed forward pass and in evaluation; filters in training and in evaluation;
    # their gradient.
    same "launches that know of eight channels" "3 1 1 1 " \
        "$(for name in rt_input_padded convert_padded batch_fold_padded convert_unpadded; do grep -c "LAUNCH(${name}_" "$work/lanes-bf16/lanes.cu"; done | tr '\n' ' ')"
    same "sizes of images with eight channels" 2 "$(grep -c 'lanes = 8' "$work/augmented-bf16/lanes.cu")"
    [ ! -x "$(dirname "$TENON")/tenon-plan" ] || by=planned half lanes "$model" 3e-2
}

# `tenon build` plans with the stand-in, embeds the plans and links; tests/tools/nvcc replaces nvcc.
embedded() {
    [ -x "$(dirname "$TENON")/tenon-plan" ] || { skip "no tenon-plan: plans in programs"; return; }
    local built=$work/built data="--data $work/mnist" first tf32
    make() { SHIM=$work NVCC=$TENON_ROOT/tests/tools/nvcc "$TENON" build models/lenet.tn --target cuda --kernels=cudnn --batch 8 -o "$built" "$@" 2>&1; }
    mkdir -p "$work/unused/plans"
    run() { rm -f "$work/run.jsonl"; TENON_CACHE=$work/unused "$built" $data --epochs 1 --log "$work/run.jsonl" 2>&1 > /dev/null; }
    make > "$work/said" || { bad "tenon build with plans: $(cat "$work/said")"; return; }
    first=$(hashes "$work/lenet/0.jsonl" | tail -n 1)
    silent "a program with plans in it" "$(FAKE_CUDNN=none run)"
    same "and has the bits of one that plans when it starts" "$first" "$(hashes "$work/run.jsonl")"
    [ -z "$(ls "$work/unused/plans")" ] && ok || bad "embedded plans were made anew"
    FAKE_DRIVER=13010 run > "$work/said"
    grep -q "3 of cuDNN's plans are for sm_90 with 132 .*driver API 13.0.*; here is .*driver API 13.1.* they are made again and kept" "$work/said" && ok || bad "another driver: $(cat "$work/said")"
    same "plans made anew have the same bits" "$first" "$(hashes "$work/run.jsonl")"
    same "plans that are kept then" 3 "$(ls "$work/unused/plans" | wc -l)"
    silent "and found at the next start" "$(FAKE_CUDNN=none FAKE_DRIVER=13010 run)"
    # Without a cuDNN that can plan, the program is made without plans.
    TENON_CUDNN=/nowhere/libcudnn.so.9 make --no-cache > "$work/said" || bad "tenon build without cuDNN: $(cat "$work/said")"
    grep -q "warning: the convolutions are not planned: cuDNN 9 was not found" "$work/said" && ok || bad "no warning that nothing is planned: $(cat "$work/said")"
    silent "it plans at its start" "$(run)"
    same "with the same bits" "$first" "$(hashes "$work/run.jsonl")"
    refuses "a graph without an engine" "lenet.tn:8:9: error: cuDNN has no engine on sm_90 for this conv2d" \
        env FAKE_CUDNN=none SHIM="$work" NVCC="$TENON_ROOT/tests/tools/nvcc" "$TENON" build models/lenet.tn --target cuda --kernels=cudnn --batch 4 -o "$work/none"
    # tf32 allows tensor cores.
    make --dtype tf32 > "$work/said" || bad "tf32: $(cat "$work/said")"
    tf32=$(FAKE_LOG=1 run | sed -n 's/^fake: a convolution //p' | sort -u | tr '\n' ';')
    same "the engine in tf32" "by engine 0;by engine 0 + bias;" "$tf32"
    differs "losses in tf32" "$(field "$work/lenet/0.jsonl" epoch train_loss)" "$(field "$work/run.jsonl" epoch train_loss)"
    make --dtype bf16 > "$work/said" || bad "bf16: $(cat "$work/said")"
    same "the engine in bf16" "by engine 0 in bf16;by engine 0 in bf16 + bias;" "$(FAKE_LOG=1 run | sed -n 's/^fake: a convolution //p' | sort -u | tr '\n' ';')"
    # A bias inside of the graph is added before rounding.
    FAKE_CUDNN=none run > "$work/said" && differs "bf16 with plans in it" "$(field "$work/lenet/0.jsonl" epoch train_loss)" "$(field "$work/run.jsonl" epoch train_loss)"
    make --dtype f16 > "$work/said" || bad "f16: $(cat "$work/said")"
    same "the engine in f16" "by engine 0 in f16;by engine 0 in f16 + bias;" "$(FAKE_LOG=1 run | sed -n 's/^fake: a convolution //p' | sort -u | tr '\n' ';')"
    FAKE_CUDNN=none run > "$work/said" && differs "f16 with plans in it" "$(field "$work/lenet/0.jsonl" epoch train_loss)" "$(field "$work/run.jsonl" epoch train_loss)" 1e-3
}

# The real libraries have all functions that are used, and report that there is no GPU.  Only without a GPU, because
# their memory would not be that of the stand-in.
real_libraries() {
    [ ! -e /dev/nvidia0 ] || return 0
    local said
    if said=$(env -u TENON_CUBLASLT "$work/mlp/gpu" --data "$work/mnist" --epochs 1 2>&1); then bad "cuBLASLt computed without a GPU"
    elif grep -q "was not found" <<< "$said"; then skip "cuBLASLt is not installed"
    elif grep -q "cuBLASLt failed at dense1 (mlp.tn:8), starting the library: " <<< "$said"; then ok
    else bad "the real cuBLASLt: $said"; fi
}

by_nvcc() {
    local extra
    "$TENON" build models/mlp.tn --target cuda --kernels=cudnn -o "$work/real" || { bad "tenon build --target cuda --kernels=cudnn"; return; }
    extra=$(readelf -d "$work/real" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libz|ld-linux.*|libpthread|libdl|librt)\.so' || true)
    [ -z "$extra" ] && ok || bad "a program for a GPU needs $extra to start"
    succeeds "its info, on any machine" "$work/real" info
    [ -e "$(dirname "$TENON")/lib/libtenoncudnn.a" ] || { skip "the headers of cuDNN are not here: bias and relu behind convolutions by nvcc"; return; }
    TENON_CUDNN=/nowhere/libcudnn.so.9 "$TENON" build "$cuda/geometry.tn" --target cuda --kernels=cudnn --dtype bf16 --keep "$work/rest" -o "$work/rest/gpu" > "$work/out" 2>&1 && grep -q "LAUNCH(conv2d_rest" "$work"/rest/*.cu && ok ||
        bad "bias and relu behind convolutions by nvcc: $(tail -n 3 "$work/out")"
}

if [ "$(uname -m)" = x86_64 ] && command -v g++ > /dev/null; then on_the_processor; real_libraries; if deep "convolutions by cuDNN, bf16 and f16"; then convolutions; fi; else skip "libraries on the processor: they need g++ and x86-64"; fi
if ! command -v nvcc > /dev/null; then skip "nvcc is not there: nothing was compiled for a GPU"; elif deep "programs with libraries by nvcc"; then NVCC=nvcc by_nvcc; fi
finish
