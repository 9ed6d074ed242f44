#!/usr/bin/env bash
# cuda_persistent.sh -- --kernels=persistent, many training steps in one launch, on a machine without a GPU.
#
# The program runs on the processor as in cuda.sh; the blocks of its one launch run side by side (tests/cuda/fiber.cpp), by default
# six: two on each of three multiprocessors (tests/cuda/limits.h).  Its bits must be those of the ordinary program, in each order of
# threads and blocks, for any number of steps in a launch.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
. tests/cuda/shim.sh

# ---- options that it excludes
refuses "the processor" "--kernels=persistent runs many steps in one launch on a GPU.*processor" "$TENON" build models/mlp.tn --kernels=persistent -o "$work/p"
refuses "several GPUs" "--kernels=persistent needs a training step that is one launch on one GPU; with --comm nccl" \
    "$TENON" build models/mlp.tn --target cuda --comm nccl --kernels=persistent -o "$work/p"
for type in tf32 bf16 f16; do
    refuses "$type" "$type needs NVIDIA's libraries, and this program uses Tenon's own kernels" "$TENON" build models/mlp.tn --target cuda --dtype $type --kernels=persistent -o "$work/p"
done
# It is never the default: on an H100 it was slower than launches in each case that was measured (bench/GPU.md).
form() { "$TENON" emit "$@" --to cuda | grep -c "^#define RT_PERSISTENT" || true; }
same "the MLP" 0 "$(form models/mlp.tn --batch 64)"
same "the MLP, in one launch" 1 "$(form models/mlp.tn --batch 64 --kernels=persistent)"
runs_as() { "$TENON" emit "$@" --to cuda --kernels=persistent | sed -n 's/^ \* .*the program uses \(.*\)\.$/\1/p; s/^ \* and \(this GPU has no clusters\)\.$/\1/p'; }
same "a small step" "one cluster of 16 blocks" "$(runs_as models/mlp.tn --batch 4)"
same "a large step" "all blocks that fit on the GPU" "$(runs_as models/lenet.tn --batch 1024)"
stages() { "$TENON" show "$@" --target cuda --kernels=persistent | sed -n 's/^ *\(.* barriers\) a step, .* FLOPs, .*/\1/p'; }
same "LeNet" "48 stages and 20 barriers" "$(stages models/lenet.tn)"
same "a ResNet" "367 stages and 159 barriers" "$(stages models/resnet56_cifar10.tn --set model.depth=20)"
same "an A100" "this GPU has no clusters" "$(runs_as models/mlp.tn --batch 4 --arch sm_80)"

"$TENON" show models/mlp.tn --target cuda --kernels=persistent --batch 64 > "$work/said"
grep -q "^a step of 64 samples on H200 (sm_90), f32, in one launch with other steps$" "$work/said" &&
    grep -q "^      29 stages and 8 barriers a step, 64 steps a launch, .* FLOPs, " "$work/said" &&
    grep -q "^  Predicted for an H200, not measured: .* the program uses one cluster of 16 blocks.$" "$work/said" &&
    grep -q "^  Weights and states of 6 of 6 parameters stay on the chip through a launch: 56.1 KB a block.$" "$work/said" && ok || bad "what show says of it: $(cat "$work/said")"

# stay LIMIT WHAT MODEL...: which parameters stay on the chip; they fit into LIMIT KB of a block, besides 42 KB of the
# stages and 1 KB of CUDA
stay() {
    local limit=$1 what=$2 said; shift 2
    said=$("$TENON" show "$@" --target cuda --kernels=persistent | sed -n 's/^  Weights.* of \(.* of [0-9]*\) parameters stay on the chip through a launch: \([0-9.]*\) KB a block\.$/\1 \2/p')
    same "what stays of $*" "$what" "${said% *}"
    awk -v kb="${said##* }" -v limit="$limit" 'BEGIN { exit !(kb > 0 && kb + 43 <= limit) }' && ok || bad "$*: ${said##* } KB a block, of $limit"
}
stay 228 "6 of 6" models/mlp.tn --batch 64
stay 114 "8 of 8" models/lenet.tn
stay 114 "8 of 8" models/lenet.tn --arch sm_100
stay 82 "8 of 8" models/lenet.tn --arch sm_80
sed 's/dense(128)/dense(4096)/; s/dense(h, 64)/dense(h, 4096)/' models/mlp.tn > "$work/wide.tn"
stay 114 "4 of 6" "$work/wide.tn"

# ---- bits

# two NAME MODEL OPTIONS...: builds $work/NAME/gpu and $work/NAME/ordinary
two() {
    shim_gpu "$@"
    mv "$work/$1/gpu" "$work/$1/ordinary"
    shim_gpu "$@" --kernels=persistent
}

# run NAME PROGRAM LOG OPTIONS...
run() {
    local dir=$work/$1 program=$2 log=$3; shift 3
    rm -f "$dir/$log.jsonl"
    "$dir/$program" --log "$dir/$log.jsonl" --log-steps 1 "$@" > "$work/out" 2>&1 || { bad "$dir/$program $*"; tail -n 3 "$work/out"; }
}

# The shared memory of a multiprocessor that has room for one block without parameters: 42 KB of the stages and 1 KB of CUDA.
bare=$((43008 + 1024))

# equal NAME OPTIONS...: both programs have equal losses in all steps, test losses and weights, in each order of threads and blocks.  In
# order 0, all parameters are on the chip of six blocks, or of a cluster; in order 1 (only --deep) none, in three blocks; in order 2 some,
# in five blocks
orders="0 2"
! deep "a launch in three blocks, with nothing on the chip" || orders="0 1 2"
equal() {
    local dir=$work/$1 order name=$1; shift
    run "$name" ordinary ordinary "$@"
    for order in $orders; do
        SHIM_ORDER=$order FAKE_MULTIPROCESSORS=$((order == 2 ? 5 : 3)) FAKE_SHARED=$((order == 0 ? 1000000 : order == 1 ? bare : bare + 8960)) run "$name" gpu $order "$@"
        same "$name, order $order: losses" "$(field "$dir/ordinary.jsonl" step train_loss)" "$(field "$dir/$order.jsonl" step train_loss)"
        same "$name, order $order: the test's" "$(field "$dir/ordinary.jsonl" epoch test_loss)" "$(field "$dir/$order.jsonl" epoch test_loss)"
        same "$name, order $order: weights" "$(hashes "$dir/ordinary.jsonl")" "$(hashes "$dir/$order.jsonl")"
    done
}

# launches: number of launches with many steps in the last run
launches() { grep -c "^fake: [0-9]* blocks together, " "$work/out" || true; }

# barriers NAME OPTIONS...: without any one of the source's barriers, the program must have another result, or none, in
# one of the orders
barriers() {
    local name=$1 dir=$work/$1 site order seen; shift
    local sites; sites=$(g++ -std=c++20 -E -x c++ -DRT_SHIM -include "$cuda/shim.h" -I "$cuda/include" -I runtime "$dir"/*.cu | grep -v '^#' | grep -o 'shim_grid_barrier([0-9]*)' | tr -dc '0-9\n')
    same "barriers in the source" "$(grep -c "_barrier(arrived);" "$dir"/*.cu)" "$(wc -w <<< "$sites")"
    run "$name" gpu whole --epochs 1 "$@"
    for site in $sites; do
        seen=0
        for order in 1 2 0; do
            rm -f "$dir/skip.jsonl"
            (SHIM_SKIP=$site SHIM_ORDER=$order "$dir/gpu" --epochs 1 "$@" --log "$dir/skip.jsonl" --log-steps 1 || exit 1) > /dev/null 2>&1 || { seen=1; break; }
            [ "$(hashes "$dir/skip.jsonl")" = "$(hashes "$dir/whole.jsonl")" ] || { seen=1; break; }
        done
        [ $seen = 1 ] && ok || bad "$name: leaving out barrier $site changes nothing"
    done
}

# mutant NAME FILE SED: $work/mlp/NAME is the same program with one changed line of its text or of a header; with all
# parameters on the chip, it must have another result, or none
mutant() {
    local name=$1 file=$2 dir=$work/mlp seen=0
    rm -rf "$work/changed"; mkdir -p "$work/changed/cuda"
    cp "$dir/mlp.cu" "$work/changed"
    [ "$file" = mlp.cu ] || cp "runtime/cuda/$file" "$work/changed/cuda"
    sed -i "$3" "$work/changed/${file/#own/cuda/own}"
    cmp -s "$work/changed/${file/#own/cuda/own}" "$([ "$file" = mlp.cu ] && echo "$dir/mlp.cu" || echo "runtime/cuda/$file")" && bad "$name: nothing is changed"
    shim_compile "$work/changed/mlp.cu" -I "$work/changed" -iquote "$work/changed" -o "$work/changed/program.o" > "$work/out" 2>&1 || { bad "$name does not compile"; head -n 5 "$work/out"; return; }
    g++ -rdynamic -o "$dir/$name" "$work/changed/program.o" "$work"/{gpu,fiber,fake}.o "$(dirname "$TENON")/lib/libtenonrt.a" $shim_libraries
    rm -f "$dir/$name.jsonl"
    FAKE_SHARED=1000000 "$dir/$name" --data "$work/mnist" --epochs 2 --log "$dir/$name.jsonl" --log-steps 1 > /dev/null 2>&1 || seen=1
    [ "$(hashes "$dir/$name.jsonl" | cut -d' ' -f2)" = "$(hashes "$dir/ordinary.jsonl" | cut -d' ' -f2)" ] || seen=1
    [ $seen = 1 ] && ok || bad "$name changes nothing"
}

# Parameters on the chip: loaded, stored to memory, and stored back.  With as many blocks as the compiler assumes,
# they are those that the compiler names.
chip() {
    mutant not_fetched mlp.cu '/owned(OWN_FETCH, first, chip);/d'
    mutant not_put_back mlp.cu '/owned(OWN_PUT, first, chip);/d'
    mutant not_brought_out own.cuh 's/^        else if (at >= 0)$/        else if (at >= 0 \&\& what == OWN_PUT)/'
    mutant not_brought_out_of_the_product own.cuh 's/^                    if (at >= 0)$/                    if (false)/'
    mutant loss_not_looked_at own.cuh 's/^    if (!update_allowed(r, loss))$/    if (update_allowed(r, loss))/'
    mutant too_little_room own.cuh 's|(1 + states)}|(1 + 0 * states)}|'
    FAKE_MULTIPROCESSORS=16 FAKE_LOG=1 run mlp gpu sixteen --data "$work/mnist" --epochs 1
    same "bytes on the chip of 16 blocks" "56.1 KB" "$(sed -n 's/^fake: 16 blocks together, \([0-9]*\) bytes on the chip$/\1/p' "$work/out" | awk '{ printf "%.1f KB", $1 / 1024; exit }')"
}

# Launches end where the host needs results of their steps, and the next launch continues there.
interrupted() {
    local mlp=$work/mlp whole
    FAKE_LOG=1 run mlp gpu two --data "$work/mnist" --epochs 2
    same "two epochs of three steps" 2 "$(launches)"
    whole=$(hashes "$mlp/two.jsonl" | cut -d' ' -f2)
    FAKE_LOG=1 run mlp gpu saved --data "$work/mnist" --epochs 1 --checkpoint "$work/c" --checkpoint-every 2
    same "an epoch with a checkpoint in it" 2 "$(launches)"
    rm "$work/c/step-00000003.safetensors"
    FAKE_LOG=1 run mlp gpu resumed --data "$work/mnist" --epochs 2 --checkpoint "$work/c" --resume
    same "the step that is left, and an epoch" 2 "$(launches)"
    same "resumed behind the second of three steps" "$whole" "$(hashes "$mlp/resumed.jsonl" | cut -d' ' -f2)"
    "$mlp/gpu" info | grep -q "^steps: up to 64 in one launch, by one cluster of 16 blocks$" && ok || bad "info does not say how many steps are one launch"
    stopped_by_sigterm "$mlp/gpu" --data "$work/mnist" --epochs 1000
    deep "a checkpoint of the ordinary program, and more steps than a launch has" || return 0
    run mlp ordinary from --data "$work/mnist" --epochs 1 --checkpoint "$work/o" --checkpoint-every 2
    rm "$work/o/step-00000003.safetensors"
    run mlp gpu onward --data "$work/mnist" --epochs 2 --checkpoint "$work/o" --resume
    same "two steps by launches, the others as one" "$whole" "$(hashes "$mlp/onward.jsonl" | cut -d' ' -f2)"
    succeeds "bench, more steps than a launch has" "$work/mlp/gpu" bench --steps 70
}

# A GPU, or a part of one, that has no room for as many blocks as intended: fewer run, with a note and the same bits.
fewer() {
    local mlp=$work/mlp
    run mlp gpu few --data "$work/mnist" --epochs 2
    grep -q "^gpu: 16 blocks cannot run at the same time on this GPU: 4 do, with the same results$" "$work/out" && ok || bad "a cluster that does not fit: $(cat "$work/out")"
    deep "fewer blocks on a GPU without clusters" || return 0
    two old models/mlp.tn --batch 8 --arch sm_80
    FAKE_ARCH=80 FAKE_TOGETHER=2 FAKE_LOG=1 FAKE_MULTIPROCESSORS=5 run old gpu few --data "$work/mnist" --epochs 2
    same "notes" "10 5 5 3 3 2 " "$(sed -n 's/^gpu: \([0-9]*\) blocks cannot run .*: \([0-9]*\) do, .*/\1 \2/p' "$work/out" | tr '\n' ' ')"
    same "launches" "2 blocks" "$(sed -n 's/^fake: \([0-9]* blocks\) together, .*/\1/p' "$work/out" | sort -u)"
    same "a small part of a GPU" "$(hashes "$mlp/few.jsonl")" "$(hashes "$work/old/few.jsonl")"
}

# The first loss that is not finite ends a launch: the message is that of the ordinary program, which waits for each
# step.
not_finite() {
    two hot models/mlp.tn --batch 8 --set optimizer.lr=1e30
    local program
    for program in ordinary gpu; do
        FAKE_MULTIPROCESSORS=16 "$work/hot/$program" --data "$work/mnist" --epochs 1 2>&1 | sed "s/^$program: //; /^up to/d" > "$work/hot/$program.said" || true
    done
    grep -q "the loss is not finite in epoch 1, step 2 of 3" "$work/hot/gpu.said" && ok || bad "a loss that is not finite: $(cat "$work/hot/gpu.said")"
    same "what is said of it" "$(cat "$work/hot/ordinary.said")" "$(cat "$work/hot/gpu.said")"
}

on_the_processor() {
    shim_runtime
    small_mnist "$work/mnist" 20 12                   # the last step and the last test batch are not full
    small_cifar "$work/cifar" 3 4
    two mlp models/mlp.tn --batch 8
    equal mlp --data "$work/mnist" --epochs 2
    interrupted
    fewer
    if deep "LeNet, a ResNet, sequences and shards as persistent programs; barriers and copies left out"; then many; fi
}

many() {
    local name
    two chip "$cuda/chip.tn"
    equal chip --epochs 1
    sed 's/^\( *shards *= \).*/\11/' "$cuda/geometry.tn" > "$work/geometry1.tn"
    two geometry1 "$work/geometry1.tn"                # the two states of adam on the chip
    equal geometry1 --epochs 1
    two geometry "$cuda/geometry.tn"                  # four shards, dropout, adam: synthetic samples, one step in each launch
    two norm "$cuda/norm.tn"                          # batch_norm over two shards, with augmentation
    two sync "$cuda/sync.tn"                          # batch_norm over all four shards
    sed 's/shards    = 2/shards    = 1/' "$cuda/norm.tn" > "$work/norm1.tn"
    two norm1 "$work/norm1.tn"                        # the same with one shard, with barriers only where they are needed
    two sequence "$cuda/sequence.tn"                  # attention, clipped gradients
    two loops "$cuda/loops.tn"                        # loops over time
    two few "$cuda/few.tn"                            # products with their sums in parts
    sed 's/^\( *shards *= \).*/\11/' "$cuda/tokens.tn" > "$work/tokens1.tn"
    two tokens1 "$work/tokens1.tn"                    # tokens that are sorted
    for name in geometry norm norm1 sync sequence loops few tokens1; do equal $name --epochs 1; done
    two resnet models/resnet56_cifar10.tn --batch 6 --set model.depth=8
    equal resnet --data "$work/cifar" --epochs 1
    two double models/mlp.tn --batch 8 --dtype f64
    equal double --data "$work/mnist" --epochs 1
    # Without dense1, dx of dense2 is no sum in parts, and the gradient of the pooling before it continues with the same numbers.
    sed 's/flatten(h) |> dense(500) |> tanh/flatten(h)/' models/lenet.tn > "$work/short.tn"
    sed 's/max_pool/avg_pool/' "$work/short.tn" > "$work/average.tn"
    for name in short average; do
        two $name "$work/$name.tn" --batch 4
        equal $name --data "$work/mnist" --epochs 1
    done
    two lenet models/lenet.tn --batch 8
    equal lenet --data "$work/mnist" --epochs 1
    for name in short average; do same "$name: poolings that go on with what a product has made" 1 "$(grep -c "^    [a-z]*_pool_dx_in_order_[12]_stage" "$work/$name"/*.cu)"; done
    barriers mlp --data "$work/mnist"
    barriers norm1
    chip
    not_finite
}

# ---- compiled by nvcc

# gate FILE ARCHITECTURES...: no spills and no stack; at most 128 registers and 48 KB, so that two blocks fit on a
# multiprocessor
gate() {
    local a file=$1 name=$(basename "$1" .cu); shift
    for a in "$@"; do
        if ! nvcc -std=c++20 -O2 -fmad=false -gencode "arch=compute_$a,code=sm_$a" -Xptxas -v -I runtime -c "$file" -o "$work/gate.o" > "$work/ptxas" 2>&1; then
            bad "nvcc on $file for sm_$a"; head -n 5 "$work/ptxas"; return
        fi
        if awk '/spill stores/ { if ($1 + $5 + $9 > 0) bad = 1 }
                /Compiling entry function/ { steps = /train_steps/ }
                /Used [0-9]+ registers/ { for (i = 2; i <= NF; i++) if ($i ~ /^registers/ && $(i - 1) > 128 || $(i + 1) == "bytes" && $(i + 2) == "smem" && $i > 49152) bad = 1; seen += steps }
                END { exit bad || seen != 1 }' "$work/ptxas"; then ok
        else bad "$name for sm_$a: spills, a stack, more than 128 registers or 48 KB: $(grep -B1 -E '[1-9][0-9]* bytes (stack|spill)' "$work/ptxas" | head -n 4)"; fi
    done
}

by_nvcc() {
    "$TENON" emit models/mlp.tn --to cuda --kernels=persistent -o "$work/nvcc"
    "$TENON" emit models/lenet.tn --to cuda --kernels=persistent --batch 512 -o "$work/nvcc"
    gate "$work/nvcc/mlp.cu" 80 90a 100
    # With the registers that ptxas has given its kernel, in one cluster of 16 blocks.
    if [ -x "$work/mlp/gpu" ]; then
        FAKE_ARCH=100 FAKE_PTXAS=$work/ptxas FAKE_MULTIPROCESSORS=16 FAKE_LOG=1 run mlp gpu printed --data "$work/mnist" --epochs 2
        same "launches of 16 blocks" 2 "$(grep -c '^fake: 16 blocks together, ' "$work/out")"
        same "bits of 16 blocks" "$(hashes "$work/mlp/ordinary.jsonl")" "$(hashes "$work/mlp/printed.jsonl")"
    fi
    gate "$work/nvcc/lenet.cu" 80 90a 100
}

if [ "$(uname -m)" = x86_64 ] && command -v g++ > /dev/null; then on_the_processor; else skip "kernels on the processor: they need g++ and x86-64"; fi
if ! command -v nvcc > /dev/null; then skip "nvcc is not there: nothing was compiled for a GPU"; elif deep "persistent programs by nvcc"; then by_nvcc; fi
finish
