#!/usr/bin/env bash
# show.sh -- `tenon show --target cuda`: a step as launches, every cuDNN graph of it planned by the real library where that is there.
# show.sh --update writes the golden table anew.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

golden=$TENON_ROOT/tests/cuda/lenet.launches models=$TENON_ROOT/models
export TENON_CACHE=$work/cache
show() { "$TENON" show "$models/$1.tn" --target cuda "${@:2}"; }

# what does not depend on cuDNN: launches, bytes, times; and without it the table says what is missing
TENON_CUDNN=/nowhere/libcudnn.so.9 show lenet > "$work/lenet"
sed -n '/^a step/,$p' "$work/lenet" | sed '/not planned, so engines/d' > "$work/launches"
[ "${1:-}" != --update ] || cp "$work/launches" "$golden"
cmp -s "$work/launches" "$golden" && ok || { bad "the launches of LeNet are others than in $golden"; diff "$work/launches" "$golden" | head -10; }
grep -q "graphs are not planned, so engines and workspaces are missing: " "$work/lenet" && ok || bad "the table does not say that nothing is planned"
TENON_CUDNN=/nowhere/libcudnn.so.9 show gpt_char --dtype bf16 --batch 2048 > "$work/large"
grep -q "does not fit A100 40 GB" "$work/large" && grep -q "fits H200" "$work/large" && ok || bad "gpt_char at 2048 should need between 40 and 141 GB"
refuses "an unknown architecture" "--arch takes sm_80" show lenet --arch sm_70
refuses "f64" "predicted in f32, tf32, bf16 or f16" show lenet --dtype f64
refuses "an architecture without the target" "add --target cuda" "$TENON" show "$models/lenet.tn" --arch sm_80

"$(dirname "$TENON")/tenon-plan" --version > /dev/null 2>&1 || { skip "cuDNN is not here: engines of the models"; finish; exit; }

# plans MODEL OPTIONS...: every graph has an engine, and the table names it
plans() {
    if ! show "$@" > "$work/table" 2> "$work/err"; then bad "show $*: $(head -3 "$work/err")"
    elif grep -q "not planned" "$work/table"; then bad "show $*: not planned"
    else ok; fi
}
engines() { { grep -c ' cuDNN [0-9]' "$work/table" || true; }; }
plans lenet; same "LeNet's graphs in exact f32" "$(engines)" 5
grep ' cuDNN [0-9]' "$work/table" | grep -q tensor-cores && bad "exact f32 on tensor cores" || ok
plans lenet --dtype tf32
plans mlp --dtype bf16; same "an MLP has no graphs" "$(engines)" 0
show mlp --kernels=cudnn | grep -q "^the program computes no convolution with cuDNN" && ok || bad "an MLP has convolutions"
show lenet --kernels=cudnn --dtype f64 | grep -q "^the program computes no convolution with cuDNN" && ok || bad "in f64 convolutions are cuDNN's"
# of the program itself: as its values lie, channels outermost, cuDNN has precompiled engines with bias and relu inside in each type
for dtype in f32 tf32 bf16; do
    plans lenet_relu --kernels=cudnn --dtype $dtype --batch 64
    grep -q " conv2d + bias + relu  *-  *cuDNN [0-9]" "$work/table" && grep -q "2 have operations behind the convolution, 2 of them fuse all of these" "$work/table" && ok || bad "in $dtype bias and relu are not inside: $(tail -n 3 "$work/table")"
    ! grep -q "compiled" "$work/table" && ok || bad "in $dtype a program's convolution is compiled for it"
    grep -q "tensor-cores" "$work/table" && tensor=yes || tensor=no
    same "tensor cores in $dtype" "$tensor" "$([ $dtype = f32 ] && echo no || echo yes)"
done
plans lstm_text --dtype bf16; grep -q "cell .* 40 " "$work/table" && ok || bad "lstm_text has no cell that runs 40 times"
plans resnet56_cifar10 --set model.depth=20; same "ResNet-20's graphs" "$(engines)" 62
"$TENON" cache | grep -E '^  plans +[1-9]' > /dev/null && ok || bad "no plan is kept: $("$TENON" cache)"
before=$("$TENON" cache | awk '/plans/ { print $2 }')
plans resnet56_cifar10 --set model.depth=20
same "planned once" "$("$TENON" cache | awk '/plans/ { print $2 }')" "$before"
refuses "a driver that is none" "CUDA version of a driver" show lenet --driver 580

# ended in the middle, it ends the planner and leaves nothing behind
mkdir "$work/tmp"
TMPDIR=$work/tmp "$TENON" show "$models/resnet56_cifar10.tn" --target cuda --dtype bf16 > "$work/table" 2>&1 & pid=$!
for ((i = 0; i < 100; i++)); do [ -z "$(ls "$work/tmp")" ] || break; sleep .1; done
[ -n "$(ls "$work/tmp")" ] && ok || bad "planning wrote no graphs within 10 s"
kill -TERM $pid; wait $pid && bad "it went on after SIGTERM" || ok
[ -z "$(ls "$work/tmp")" ] && ok || bad "left behind: $(ls "$work/tmp")"

cat > "$work/none.tn" << 'END'
model m(x: f32[16, 30]) {
    h = causal_attention(dense(x, 30), dense(x, 30), dense(x, 30), heads = 3)
    return flatten(h) |> dense(3)
}
train m { data = synthetic(samples = 16, test_samples = 8); loss = softmax_cross_entropy; optimizer = adam; batch = 8; epochs = 1 }
END
refuses "a graph without an engine" "none.tn:2:9: error: cuDNN has no engine on sm_90 for this attention in bf16" \
    "$TENON" show "$work/none.tn" --target cuda --dtype bf16

finish
