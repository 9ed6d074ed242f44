#!/usr/bin/env bash
# factors.sh -- factors for learning rate and decay, and frozen layers.  A frozen layer does not change, needs no gradient, is stored
# and is counted.  The bits are the same for any threads and groups and after a stop.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

kernel=1                                              # compiles faster than Winograd's algorithm
! deep "factors of a convolution of 3 x 3" || kernel=3
cat > "$work/net.tn" << END
model net(image: f32[3, 8, 8]) {
    stem = conv2d(image, 8, kernel = 3, bias = false)
    norm = batch_norm(stem) |> relu
    h = conv2d(norm, 8, kernel = $kernel) |> relu
    h = flatten(h) |> dense(20) |> relu
    return dense(h, 10)
}
train net {
    data      = synthetic(samples = 640, test_samples = 64)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.05, momentum = 0.9, weight_decay = 0.01)
    batch     = 64
    shards    = 4
    epochs    = 2
}
END
type=f64                                              # that of gradcheck
! deep "factors in f32" || type=f32
make() { local program=$1; shift; succeeds "build $*" "$TENON" build "$work/net.tn" -o "$program" --dtype $type "$@"; }
last() { tr ' ' '\n' | grep . | tail -n 1; }
train() { local p=$1; shift; rm -f "$work/log"; "$p" train "$@" --log "$work/log" > /dev/null; hashes "$work/log" | last; }
factors='factors=[decay("*.bias", 1), decay("norm.*", 0.5), lr("dense2.*", 3), decay("conv1.*", 0)]'

make "$work/free"
make "$work/frozen" --set 'freeze=["stem.*", "norm.*"]'
make "$work/still" --set 'factors=[lr("stem.*", 0), lr("norm.*", 0)]'
make "$work/factors" --set "$factors"
make "$work/ones" --set 'factors=[lr("*", 1), decay("*.weight", 1), decay("norm.*", 0)]'
free=$(train "$work/free")
frozen=$(train "$work/frozen")
same "frozen = a learning rate of 0" "$frozen" "$(train "$work/still")"
[ "$frozen" != "$free" ] && ok || bad "frozen layers train"
same "factors of 1 change nothing" "$(train "$work/ones")" "$free"

want=$(train "$work/factors")
[ "$want" != "$free" ] && ok || bad "factors change nothing"
for how in "--threads 2" "--groups 2" "--groups 4 --threads 2"; do
    same "factors, $how" "$(train "$work/factors" $how)" "$want"
    same "frozen, $how" "$(train "$work/frozen" $how)" "$frozen"
done

# Each optimizer, with a fused update and with an update after a reduction.
optimizers=('adamw(lr=1e-3, weight_decay=0.1)')
if deep "rmsprop and adam"; then optimizers+=('rmsprop(lr=1e-3, weight_decay=0.1)' 'adam(lr=1e-3, weight_decay=0.1)'); fi
for optimizer in "${optimizers[@]}"; do
    make "$work/p" --set "optimizer=$optimizer" --set "$factors"
    same "$optimizer in groups" "$(train "$work/p" --groups 2)" "$(train "$work/p")"
done

# A stop in the second epoch.
for p in factors frozen; do
    "$work/$p" train --checkpoint "$work/c.$p" --checkpoint-every 7 --epochs 1 > /dev/null
    rm -f "$work/log"
    "$work/$p" train --checkpoint "$work/c.$p" --resume --log "$work/log" > /dev/null
    same "$p, resumed" "$(hashes "$work/log" | last)" "$([ $p = factors ] && echo "$want" || echo "$frozen")"
done

refuses "a checkpoint of other factors" "was made by another program: .*recipe.* differ" "$work/frozen" train --checkpoint "$work/c.factors" --resume

# No gradient and no state, but stored and counted.
"$TENON" emit "$work/net.tn" --to c --set 'freeze=["stem.*", "norm.*"]' -o "$work/c" > /dev/null
! grep -rqE 'D_STEM|D_NORM' "$work/c" && ok || bad "gradients of frozen layers are computed"
file=$(find "$work/c.frozen" -name 'step-*' | sort | tail -n 1)
head -c 6000 "$file" | tr -d '\0' > "$work/head"
grep -q '"dense2.weight.state0"' "$work/head" && ! grep -qE '"(stem|norm)[^"]*state' "$work/head" && ok || bad "states of frozen layers: $(grep -oE '"[^"]*state.?"' "$work/head" | tr '\n' ' ')"
# Below the lowest trained layer there is no backward pass: no gradient of a value but that of the output, no gradient of weights but
# that of the last layer.
"$TENON" emit "$work/net.tn" --to c --set 'freeze=["stem.*", "norm.*", "conv1.*", "dense1.*"]' -o "$work/last" > /dev/null
"$TENON" emit "$work/net.tn" --to c -o "$work/all" > /dev/null
backward() { grep -ohE '^ +[a-z0-9_]+_d[wx][a-z_]*_[0-9]+\(' "$work/$1"/*.c | tr -d ' (' | sort | uniq -c | awk '{ print $1 " " $2 }' | tr '\n' ' '; }
same "the backward pass of the last layer" "1 dense_dw_update_1 1 softmax_cross_entropy_dx_1 " "$(backward last)"
[[ " $(backward all)" = *" conv2d_dx_1 "*" dense_dx_transposed_1 "* ]] && ok || bad "all layers are trained: $(backward all)"
"$TENON" show "$work/net.tn" --set 'freeze=["stem.*", "norm.*"]' > "$work/show"
grep -q '232 of the parameters are frozen, in 3 tensors' "$work/show" && ok || { bad "show does not count frozen parameters"; tail -n 4 "$work/show"; }
type=f64 make "$work/p" --set 'freeze=["norm.weight", "dense1.*"]'
succeeds "gradcheck beside frozen layers" "$work/p" gradcheck
! grep -qE 'norm.weight|dense1' "$work/out" && ok || bad "gradcheck looks at frozen parameters"
finish
