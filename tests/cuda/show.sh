#!/usr/bin/env bash
# show.sh -- `tenon show --target cuda`: the calls of a step; the real cuDNN plans every graph of it if the library is present.
# show.sh --update rewrites the golden tables.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

golden=$TENON_ROOT/tests/cuda/lenet.launches models=$TENON_ROOT/models
export TENON_CACHE=$work/cache
show() { "$TENON" show "$models/$1.tn" --target cuda "${@:2}"; }

# Parts that do not depend on cuDNN: calls, blocks, bytes, times.  Without cuDNN the table reports that it is missing.
{ show lenet; show lenet --kernels=persistent; TENON_CUDNN=/nowhere/libcudnn.so.9 show lenet --kernels=cudnn 2> "$work/err"; } > "$work/lenet"
sed -n '/^a step/,/ fits B200/p' "$work/lenet" > "$work/launches"
[ "${1:-}" != --update ] || cp "$work/launches" "$golden"
cmp -s "$work/launches" "$golden" && ok || { bad "the launches of LeNet are others than in $golden"; diff "$work/launches" "$golden" | head -10; }
grep -q "the convolutions are not planned: " "$work/err" && grep -q "3 graphs are not planned" "$work/lenet" && ok || bad "the table does not say that nothing is planned"
# The table counts the calls of the program that is written.
counted() { sed -n 's/^ *\([0-9,]*\) launches a step,.*/\1/p' "$work/table" | tr -d ,; }
written() { "$TENON" emit "$models/$1.tn" --to cuda "${@:2}" | sed -n 's/.* a step takes \([0-9]*\) launches;.*/\1/p'; }
for options in "lenet" "lenet --kernels=cudnn --dtype bf16" "lstm_text --kernels=own" "resnet56_cifar10 --kernels=own --set model.depth=20"; do
    # shellcheck disable=SC2086
    TENON_CUDNN=/nowhere/libcudnn.so.9 show $options > "$work/table" 2> /dev/null
    # shellcheck disable=SC2086
    same "launches of $options" "$(counted)" "$(written $options)"
done
# Two loops of 40 steps: forward with two launches a step; backward with three, because dx has its sums in parts.  Nine launches stand around
# the loops.
show lstm_text --kernels=own > "$work/table"
same "launches of a step of lstm_text" "$(counted)" 11
TENON_CUDNN=/nowhere/libcudnn.so.9 show gpt_char --dtype bf16 --batch 2048 > "$work/large" 2> /dev/null
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
plans lenet --kernels=cudnn; same "LeNet's graphs in exact f32, without the gradients of filters of 5 x 5" "$(engines)" 3
grep ' cuDNN [0-9]' "$work/table" | grep -q tensor-cores && bad "exact f32 on tensor cores" || ok
plans lenet --dtype tf32
plans mlp --dtype bf16; same "an MLP has no graphs" "$(engines)" 0
# Precompiled engines with bias and relu, in each type and layout.
for dtype in f32 tf32 bf16; do
    plans lenet_relu --kernels=cudnn --dtype $dtype --batch 64
    grep -q " conv2d + bias + relu  *cuDNN [0-9]" "$work/table" && grep -q "2 convolutions have operations after them; in 2 the graph contains all of these" "$work/table" && ok || bad "in $dtype bias and relu are not inside: $(tail -n 3 "$work/table")"
    ! grep -q "compiled" "$work/table" && ok || bad "in $dtype a program's convolution is compiled for it"
    grep -q "tensor-cores" "$work/table" && tensor=yes || tensor=no
    same "tensor cores in $dtype" "$tensor" "$([ $dtype = f32 ] && echo no || echo yes)"
done
plans lstm_text --dtype bf16; grep -q "dense .* cuBLASLt  *40 " "$work/table" && ok || bad "lstm_text has no product that runs 40 times"
plans resnet56_cifar10 --kernels=cudnn --set model.depth=20; same "ResNet-20's graphs" "$(engines)" 62
"$TENON" cache | grep -E '^  plans +[1-9]' > /dev/null && ok || bad "no plan is kept: $("$TENON" cache)"
before=$("$TENON" cache | awk '/plans/ { print $2 }')
plans resnet56_cifar10 --kernels=cudnn --set model.depth=20
same "planned once" "$("$TENON" cache | awk '/plans/ { print $2 }')" "$before"
refuses "a driver that is none" "CUDA version of a driver" show lenet --kernels=cudnn --driver 580

# An interrupted command ends the planner and leaves no files.
mkdir "$work/tmp"
TMPDIR=$work/tmp "$TENON" show "$models/resnet56_cifar10.tn" --target cuda --dtype bf16 > "$work/table" 2>&1 & pid=$!
for ((i = 0; i < 100; i++)); do [ -z "$(ls "$work/tmp")" ] || break; sleep .1; done
[ -n "$(ls "$work/tmp")" ] && ok || bad "planning wrote no graphs within 10 s"
kill -TERM $pid; wait $pid && bad "it went on after SIGTERM" || ok
[ -z "$(ls "$work/tmp")" ] && ok || bad "left behind: $(ls "$work/tmp")"
# Nor does a command that cannot write the graphs.
said=$(trap '' XFSZ; ulimit -f 0; TMPDIR=$work/tmp "$TENON" show "$models/lenet.tn" --target cuda --kernels=cudnn --no-cache 2>&1) && bad "no graphs, and no error" || ok
case $said in *"cannot write the graphs to plan"*) ok ;; *) bad "graphs without room: $said" ;; esac
[ -z "$(ls "$work/tmp")" ] && ok || bad "left behind: $(ls "$work/tmp")"

finish
