#!/usr/bin/env bash
# cuda.sh -- programs for a GPU, on a machine without a GPU.
#
# A C++ compiler compiles the same .cu file: its kernels run on the processor, with a fiber for each thread (tests/cuda/shim.h), over a
# stand-in for the CUDA runtime (tests/cuda/fake.cpp).  The stand-in poisons memory, puts red zones between allocations, runs a
# stream only when the program waits for it, and refuses launches that do not fit on a GPU (tests/cuda/limits.h).  The losses of
# three steps must equal those of the program for the processor.  If nvcc is present, every file must compile for each architecture
# without spills.
#
# Parts: options mlp norm tokens packs nvcc
# Deep parts: geometry tiles many
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"

# ---- an operation without a CUDA form is reported with its line before anything is written; each shipped model has
# CUDA forms
options() {
    if deep "each model as a program for a GPU"; then        # tests/passes/emitted.sh compares the text of all models
        for model in models/*.tn; do succeeds "$model has a CUDA form" "$TENON" emit "$model" --to cuda -o "$work/emitted"; done
    fi
    cat > "$work/wide.tn" <<'TN'
model wide(x: f32[5, 600]) {
    return causal_attention(x, x, x, heads = 2) |> flatten |> dense(3)
}
train wide { data = synthetic(samples = 64, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
    sed 's/wide/narrow/; s/heads = 2/heads = 600/' "$work/wide.tn" > "$work/narrow.tn"
    refuses "attention of narrow heads" "narrow.tn:2:12: error: causal_attention of heads of 1 feature has no CUDA form yet" \
        "$TENON" emit "$work/narrow.tn" --to cuda -o "$work/none"
    refuses "attention of wide heads" "wide.tn:2:12: error: causal_attention of heads of 300 features has no CUDA form yet" \
        "$TENON" emit "$work/wide.tn" --to cuda -o "$work/none"
    [ ! -e "$work/none" ] && ok || bad "a refused model left files behind"
    for option in --kernels=blas --tune "--comm mpi" --fast "--memory-limit 1G"; do
        refuses "$option with --target cuda" "is for programs on the processor" "$TENON" build models/mlp.tn --target cuda $option -o "$work/p"
    done
    refuses "--arch without --target cuda" "--arch is for programs on a GPU" "$TENON" build models/mlp.tn --arch sm_80 -o "$work/p"
    NVCC=/nowhere/nvcc refuses "no nvcc" "cannot run the CUDA compiler '/nowhere/nvcc'" "$TENON" build models/mlp.tn --target cuda -o "$work/p"
    "$TENON" emit models/lenet.tn --to cuda | grep -q "for sm_90" && ok || bad "--arch sm_90 is not the default"
}

toolkit_headers() { echo "$(dirname "$(dirname "$(command -v nvcc || echo /usr/bin/nvcc)")")/include" /usr/local/cuda/include; }

# ---- on the processor

. tests/cuda/shim.sh
. "$cuda/gate.sh"

# In the second epoch two steps are one recorded launch, and the third step is another; so are the batches of the
# test.
graphs() {
    local of=$(sed -n '/^static void train_slice/,/^}/p' "$work/mlp/mlp.cu" | grep -c LAUNCH)
    FAKE_LOG=1 "$work/mlp/gpu" --data "$work/mnist" --epochs 2 2>&1 | sed -n 's/^fake: a graph of //p' | sort | uniq -c | awk '{ print $2 ":" $1 }' > "$work/graphs"
    grep -q "^$((1 + of + 1)):1$" "$work/graphs" && grep -q "^$((1 + 2 * of + 2)):1$" "$work/graphs" && ok ||
        bad "no graphs of one step and of two, of one launch and $((of + 1)) a step: $(tr '\n' ' ' < "$work/graphs")"
}

# same_metrics NAME METRIC...: the last run of the program for a GPU has the values of the processor's steps
same_metrics() {
    local name=$1 metric; shift
    for metric in "$@"; do
        near "$name: $metric" "$(field "$work/$name/cpu.jsonl" step "train_$metric")" "$(field "$work/$name/0.jsonl" step "train_$metric")"
    done
}

# Shipped networks with small sizes.
networks() {
    shim text_cnn models/text_cnn.tn --batch 4 --set model.width=6 --set model.time=9 --set model.filters=5 --set 'data=synthetic(samples=8,test_samples=4,vocab=11,classes=2)'
    shim densenet models/densenet_bc_100_12.tn --batch 4 --set model.depth=10 --set model.growth=3 --set 'data=synthetic(samples=8,test_samples=4)'
    steps text_cnn
    steps densenet
}

# The samples of batches: the kernel that finds them, compared with the host's lists.
places() {
    shim_test begin "$cuda/begin.cpp"
    for order in 0 2; do succeeds "places of batches, order $order" env SHIM_ORDER=$order "$work/begin"; done
}

# Every operation that has a CUDA form; and each barrier is left out once.
many() {
    shim sync "$cuda/sync.tn"
    shim lenet models/lenet.tn --batch 8
    small_cifar "$work/cifar" 3 4
    shim sequence "$cuda/sequence.tn"
    shim loops "$cuda/loops.tn"
    shim moves "$cuda/moves.tn"
    shim places "$cuda/places.tn"
    shim layers "$cuda/layers.tn"
    steps layers
    barriers layers 0 1                               # a block adds two sums one after another: group_norm of many numbers
    steps sync
    shim_gpu exact "$cuda/sync.tn" --dtype f64
    succeeds "gradients through statistics of the batch" "$work/exact/gpu" gradcheck --samples 1
    steps sequence
    steps loops
    steps moves --data "$work/cifar"
    steps places
    steps lenet --data "$work/mnist"
    networks
    barriers sequence 13 15 16 17 18 19               # 14 stands between two parts of one block; each block has only one here
}

geometry() {
    local shim_level=$quick
    shim geometry "$cuda/geometry.tn"
    steps geometry
    if deep "images of one pixel on a GPU"; then
        shim one "$cuda/one.tn"
        steps one
    fi
    shim_test rows "$cuda/edges.cpp"
    succeeds "the rows of taps of pixels" "$work/rows"
    if deep "taps beyond the edges of images on a GPU"; then
        shim edges "$cuda/edges.tn"
        steps edges
    fi
    shim target "$cuda/target.tn"
    steps target
    same_metrics target loss_square loss_linear loss_both
    shim masks "$cuda/masks.tn"
    steps masks
    same_metrics masks loss_soft accuracy iou dice
    if deep "a class for each pixel on a GPU"; then
        shim pixels "$cuda/pixels.tn"
        steps pixels
        same_metrics pixels accuracy loss_weighted
    fi
    shim inputs "$cuda/inputs.tn"
    steps inputs
    deep "several outputs and targets on a GPU" || return 0
    shim outputs "$cuda/outputs.tn"
    steps outputs
    same_metrics outputs loss_digit loss_weights loss_maybe loss_image
    if deep "an autoencoder on a GPU"; then
        shim own "$cuda/own.tn"
        steps own
    fi
    [ "$CHECK_DEEP" = 0 ] || barriers geometry 0 4 5 6 7 8
}

norm() {
    local name shim_level=$quick
    shim norm "$cuda/norm.tn"
    steps norm
    [ "$CHECK_DEEP" = 1 ] || return 0
    # Mixtures of two samples, with a mean grey of both and without; two targets, and one class.
    shim mixed "$cuda/mixed.tn"
    steps mixed
    same_metrics mixed loss_kind loss_share accuracy_kind
    sed 's/    return .*/    return dense(h, classes)/; /target/d; s/loss .*/loss = softmax_cross_entropy/; s/contrast(0.3)/rotate(20)/' "$cuda/mixed.tn" > "$work/class.tn"
    shim class "$work/class.tn" --dtype f64
    steps class
    # Moved images and labels; whole pixels and changed colours; an image as a target.
    shim moved "$cuda/moved.tn"
    steps moved
    shim pixels "$cuda/moved.tn" --set 'augment=[flip_vertical,shift(2),contrast(0.4),saturation(0.4),hue(0.4),erase]'
    steps pixels
    shim contrast "$cuda/moved.tn" --set 'augment=[contrast(0.8),rotate(20)]'
    steps contrast
    sed 's/target .*/target = next: f32[3, 7, 6]/; s/loss .*/loss = mse/' "$cuda/moved.tn" > "$work/numbers.tn"
    shim numbers "$work/numbers.tn" --dtype f64
    steps numbers
    # Numbers whose mean is a thousand deviations from 0: statistics in f32 keep their digits.
    sed 's/mean = \[0.3, 0.5\], std = \[0.2, 0.4\]/mean = [-300, -300], std = [1, 1]/; s/augment.*//' "$cuda/norm.tn" > "$work/far.tn"
    shim_gpu far "$work/far.tn"
    shim_gpu far64 "$work/far.tn" --dtype f64
    for name in far far64; do "$work/$name/gpu" --epochs 1 --log "$work/$name.jsonl" --log-steps 1 > /dev/null; done
    near "a mean of a thousand deviations" "$(field "$work/far64.jsonl" step train_loss)" "$(field "$work/far.jsonl" step train_loss)"
}

# Gradients whose sums are in parts; and the same bits with any tile of a product.
tiles() {
    local tile all="" text=$work/parts/parts.cu
    shim parts "$cuda/parts.tn"
    same "gradients in parts" 5 "$(grep -cE 'dw_parts\(.*RT_TILE_16_16, [0-9]+\);' "$text")"
    steps parts
    "$TENON" emit "$cuda/few.tn" --to cuda --kernels=own -o "$work/few"
    same "outputs and dx in parts" 8 "$(grep -cE '(conv2d|dense)(_dx)?_parts\(.*RT_TILE_16_16, [0-9]+\);' "$work/few/few.cu")"
    if deep "outputs and dx in parts on a GPU"; then
        shim few "$cuda/few.tn"
        steps few
    fi
    ! deep "the same bits with any tile of a product" || all="RT_TILE_128_128 RT_TILE_64_128 RT_TILE_32_128 RT_TILE_64_64 RT_TILE_32_32"
    for tile in $all; do
        sed "s/RT_TILE_16_16/$tile/" "$text" > "$work/$tile.cu"
        shim_test tile "$work/$tile.cu" -DRT_TILE_ONLY="$tile"
        rm -f "$work/tile.jsonl"
        "$work/tile" --epochs 1 --log "$work/tile.jsonl" > /dev/null
        same "bits with $tile" "$(hashes "$work/parts/0.jsonl")" "$(hashes "$work/tile.jsonl")"
    done
}

# The gradient of an embedding of many tokens: kernels with tokens of several kinds, and a program.
tokens() {
    local order site found
    shim_compile "$cuda/embedding.cpp" -o "$work/embedding.o"
    g++ -o "$work/embedding" "$work/embedding.o" "$work/fiber.o"
    for order in 0 1 2; do succeeds "gradients of embeddings, order $order" env SHIM_ORDER=$order "$work/embedding"; done
    for site in 4 5; do                               # of embedding_sort: 0 to 3 are those of threads.cuh
        found=0
        for order in 0 1 2; do (SHIM_SKIP=$site SHIM_ORDER=$order "$work/embedding" || exit 1) > /dev/null 2>&1 || found=1; done
        same "barrier $site of embedding.cpp is left out, and is missed" 1 $found
    done
    deep "a program with sorted tokens" || return 0
    shim tokens "$cuda/tokens.tn"
    same "launches of embedding_merge" 4 "$(grep -c "LAUNCH(embedding_merge_" "$work/tokens/tokens.cu")"
    same "few tokens: one launch" "1 0" "$("$TENON" emit "$cuda/sequence.tn" --to cuda | awk '/^    embedding_dw\(/ { n++ } /embedding_sort/ { m++ } END { print n + 0, m + 0 }')"
    steps tokens
    shim_compile -DRT_F64 "$cuda/embedding.cpp" -o "$work/embedding.o"
    g++ -o "$work/embedding" "$work/embedding.o" "$work/fiber.o"
    succeeds "gradients of embeddings in f64" "$work/embedding"
    shim_gpu exact "$cuda/tokens.tn" --dtype f64
    succeeds "gradients of tables" "$work/exact/gpu" gradcheck --samples 1
}

# Elementwise loops that read and write several adjacent numbers at once: kernels of each type and count, and a program.  An access that is
# not aligned ends the process.
packs() {
    local order TENON_CFLAGS="${TENON_CFLAGS:--O1} -fsanitize=alignment -fsanitize-undefined-trap-on-error"
    deep "loops over packs" || return 0
    shim_compile "$cuda/packs.cpp" -o "$work/packs.o"
    g++ -o "$work/loops" "$work/packs.o" "$work/fiber.o"
    for order in 0 1; do succeeds "loops over packs, order $order" env SHIM_ORDER=$order "$work/loops"; done
    shim packs "$cuda/packs.tn"
    same "kernels that are loops over packs" 7 "$(grep -c "each_pack(264627, " "$work/packs/packs.cu")"
    steps packs
}

mlp() {
    places
    shim mlp models/mlp.tn --batch 8
    steps mlp --data "$work/mnist"
    graphs
    local mlp=$work/mlp
    # Checkpoints are interchangeable: two epochs on either target, or one on each.
    "$mlp/cpu" --data "$work/mnist" --epochs 1 --checkpoint "$work/c" > /dev/null
    "$mlp/gpu" --data "$work/mnist" --epochs 2 --checkpoint "$work/c" --resume --log "$work/both.jsonl" > /dev/null
    "$mlp/cpu" --data "$work/mnist" --epochs 2 --log "$work/alone.jsonl" > /dev/null
    near "an epoch on each" "$(field "$work/alone.jsonl" epoch test_loss | cut -d' ' -f2)" "$(field "$work/both.jsonl" epoch test_loss | cut -d' ' -f1)"
    "$mlp/gpu" --data "$work/mnist" --epochs 1 --save "$work/w.safetensors" > /dev/null
    succeeds "the processor's program reads the GPU's weights" "$mlp/cpu" test --weights "$work/w.safetensors" --data "$work/mnist"
    shim_level=$quick shim_gpu hot models/mlp.tn --batch 8 --set optimizer.lr=1e30
    refuses "a loss that is not finite" "the loss is not finite in epoch 1, step [0-9]+ of 3; the first value that is not finite is [a-z0-9]+ \(mlp.tn:" \
        "$work/hot/gpu" --data "$work/mnist" --epochs 1
    # Without a usable GPU: a message for each reason.
    FAKE_CUDA=no-driver refuses "no driver" "no NVIDIA driver on this machine" "$mlp/gpu" --epochs 1
    FAKE_CUDA=old-driver refuses "an old driver" "the NVIDIA driver is for CUDA 12.2, and this program needs 13.0: install a newer driver; or, .* cuda-compat-13-0, .*/usr/local/cuda-13.0/compat. first in LD_LIBRARY_PATH" "$mlp/gpu" --epochs 1
    FAKE_CUDA=stub refuses "the toolkit's stub" "is the toolkit's stub" "$mlp/gpu" --epochs 1
    FAKE_CUDA=no-device refuses "no GPU" "driver is there, but no GPU" "$mlp/gpu" --epochs 1
    FAKE_ARCH=80 refuses "an older GPU" "for GPUs from sm_90 on, and the one here is sm_80: build it with --arch sm_80" "$mlp/gpu" --epochs 1
    FAKE_CUDA=memory refuses "no memory" "no room on the GPU for the arena" "$mlp/gpu" --epochs 1
    FAKE_CUDA=lost refuses "a GPU that fails" "the GPU failed at .*cudaErrorLaunchFailure" "$mlp/gpu" --epochs 1 --data "$work/mnist"
    FAKE_SHARED=20000 refuses "a kernel that does not fit on a multiprocessor" "the GPU failed at [a-z_0-9]+: an error of the fake runtime \(cudaErrorLaunchOutOfResources\)" "$mlp/gpu" --epochs 1 --data "$work/mnist"
    refuses "--groups" "--groups is for programs on the processor" "$mlp/gpu" --groups 2
    FAKE_CUDA=no-driver succeeds "info needs no GPU" "$mlp/gpu" info
    FAKE_CUDA=no-driver succeeds "--help needs no GPU" "$mlp/gpu" --help
    rules
}

# The stand-in notices what CUDA forbids.
rules() {
    local with=() include
    for include in $(toolkit_headers); do [ ! -e "$include/cuda_occupancy.h" ] || with=(-DCUDA_OCCUPANCY -isystem "$include"); done
    [ ${#with[@]} -gt 0 ] || skip "blocks on a multiprocessor, compared with cuda_occupancy.h: no CUDA toolkit"
    g++ -std=c++20 -O1 -Wall -Wextra -Werror -I "$cuda/include" "${with[@]}" -o "$work/rules" "$cuda/rules.cpp" "$work"/{fiber,fake}.o -lpthread
    succeeds "rules of CUDA" "$work/rules" "$work/rules.ptxas"
}

on_the_processor() {
    shim_runtime
    small_mnist "$work/mnist" 20 12                   # the last step and the last test batch are not full
    if part mlp; then mlp; fi
    if part geometry; then geometry; fi
    if part norm; then norm; fi
    if part tiles; then tiles; fi
    if part tokens; then tokens; fi
    if part packs; then packs; fi
    if part many && deep "loops over time, attention, moves, LeNet and shipped networks as programs for a GPU; barriers left out"; then many; fi
}

# ---- a compiler that was configured without CUDA

without_cuda() {
    refuses "WITH_CUDA=ON without nvcc" "WITH_CUDA=ON, but nvcc was not found" cmake -S "$TENON_ROOT" -B "$work/on" -DWITH_CUDA=ON -DTENON_NVCC= -DTENON_TESTS=OFF
    cmake -S "$TENON_ROOT" -B "$work/off" -DWITH_CUDA=OFF -DTENON_TESTS=OFF > "$work/out" 2>&1 && cmake --build "$work/off" --target tenon >> "$work/out" 2>&1 ||
        { bad "WITH_CUDA=OFF: $(tail -n 3 "$work/out")"; return; }
    refuses "WITH_CUDA=OFF" "needs nvcc, NVIDIA.s CUDA compiler, and this tenon .* was configured without one" env -u NVCC "$work/off/tenon" build models/mlp.tn --target cuda -o "$work/p"
    succeeds "WITH_CUDA=OFF writes programs for a GPU" "$work/off/tenon" emit models/mlp.tn --to cuda -o "$work/off"
}

# ---- compiled by nvcc

# All kernels are started by one macro, which checks the error code of CUDA.
launches_checked() {
    local include others
    others=$(grep -l '<<<\|cudaLaunchKernel' -r runtime/cuda compiler/emit compiler/cuda "$work"/*/*.cu | grep -v '^runtime/cuda/\(launch\|persistent\).cuh$' || true)
    [ -z "$others" ] && ok || bad "kernels are started otherwise in $others"
    for include in $(toolkit_headers); do [ -e "$include/cuda_runtime_api.h" ] && break; done
    succeeds "launch.cpp" g++ -std=c++20 -Wall -Wextra -Werror -I runtime -isystem "$include" "$cuda/launch.cpp" -o "$work/launch"
    succeeds "a launch that CUDA refuses" "$work/launch"
}

by_nvcc() {
    local name extra
    "$TENON" emit models/mlp.tn --to cuda --batch 8 --kernels=own -o "$work/mlp"
    launches_checked
    local all=
    ! deep "nvcc on every operation" || all="geometry norm sync sequence moves places narrow scaled last layers" # cuda_compiled.sh compiles LeNet
    for name in $all; do
        [ $name != narrow ] || "$TENON" emit "$cuda/narrow.tn" --to cuda --kernels=cudnn --dtype bf16 -o "$work/narrow"
        [ $name != last ] || "$TENON" emit "$cuda/last.tn" --to cuda --kernels=cudnn --dtype bf16 -o "$work/last"
        [ $name != scaled ] || { "$TENON" emit "$cuda/narrow.tn" --to cuda --kernels=cudnn --dtype f16 -o "$work/scaled"; mv "$work/scaled/narrow.cu" "$work/scaled/scaled.cu"; }
        [ -e "$work/$name" ] || "$TENON" emit "$cuda/$name.tn" --to cuda --kernels=own -o "$work/$name"
        gate "$work/$name/$name.cu" 80 90a 100
    done
    "$TENON" build models/mlp.tn --target cuda -o "$work/real" || { bad "tenon build --target cuda"; return; }
    extra=$(readelf -d "$work/real" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libz|ld-linux.*|libpthread|libdl|librt)\.so' || true)
    [ -z "$extra" ] && ok || bad "a program for a GPU needs $extra to start"
    succeeds "its info, on any machine" "$work/real" info
    if [ ! -e /dev/nvidia0 ]; then
        refuses "no driver" "NVIDIA driver|stub" "$work/real" --epochs 1
    fi
}

if part options; then
    options
    if deep "a compiler without CUDA"; then without_cuda; fi
fi
if part mlp || part geometry || part norm || part tiles || part tokens || part packs || part many; then
    if [ "$(uname -m)" = x86_64 ] && command -v g++ > /dev/null; then on_the_processor; else skip "kernels on the processor: they need g++ and x86-64"; fi
fi
if part nvcc; then
    if command -v nvcc > /dev/null; then export NVCC=nvcc; by_nvcc; else skip "nvcc is not there: nothing was compiled for a GPU"; fi
fi
finish
