#!/usr/bin/env bash
# concat.sh -- parts of a concat that are written in place, and slices that are read in place: the same bits as with copies (a tight
# --memory-limit removes the placing), for any threads and groups; gradients against differences; less memory.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cat > "$work/net.tn" << 'END'
block unit(x, filters: int, size: int = 1) {
    return conv2d(x, filters, kernel = size, pad = "same", bias = false) |> batch_norm |> relu
}
model net(image: f32[3, 9, 9]) {
    h = unit(image, 6, 3)
    pool = max_pool(h, 3, stride = 1, pad = 1)
    h = concat(unit(h, 5), unit(h, 7, 3), avg_pool(h, 3, stride = 1, pad = 1) |> unit(4), pool)
    h = concat(unit(h, 5) + 1, tanh(h), max_pool(h, 3, stride = 1, pad = "same"))
    d = unit(h, 8)
    for i in 0..3 {
        d = concat(d, batch_norm(d) |> relu |> conv2d(3, kernel = 3, pad = 1, bias = false))
    }
    d = batch_norm(d) |> relu
    e = concat(slice(d, 0, 3, 9), avg_pool(d, 2, stride = 1, pad = "same"))
    v = dense(flatten(e), 5) |> relu
    return concat(global_avg_pool(e), v, global_avg_pool(h) |> tanh) |> dense(3)
}
train net {
    data      = synthetic(samples = 128, test_samples = 32)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.05, momentum = 0.9)
    batch     = 32
    shards    = 4
    epochs    = 2
}
END
# The same kinds of parts with a quarter of the kernels, for the programs.
{ sed -n '/^block/,/^}/p' "$work/net.tn"; cat << 'END'
model few(image: f32[3, 9, 9]) {
    h = concat(unit(image, 4), unit(image, 4, 3), max_pool(image, 3, stride = 1, pad = 1))
    d = concat(h + 1, tanh(h))
    for i in 0..2 {
        d = concat(d, batch_norm(d) |> relu |> conv2d(3, kernel = 1, bias = false))
    }
    e = concat(slice(d, 0, 3, 9), avg_pool(d, 2, stride = 1, pad = "same"))
    v = dense(flatten(e), 5) |> relu
    return concat(global_avg_pool(e), v) |> dense(3)
}
END
sed -n '/^train/,$s/net/few/; /^train/,$p' "$work/net.tn"; } > "$work/few.tn"
net=$work/few.tn least=15
if deep "programs of the network with more parts"; then net=$work/net.tn least=20; fi
train() { local p=$1; shift; rm -f "$work/log"; "$p" train "$@" --log "$work/log" > /dev/null; hashes "$work/log"; }
make() { local program=$1; shift; succeeds "build $*" "$TENON" build "$net" -o "$program" "$@"; }
# bytes ROW OPTIONS...: the bytes of that row of the plan
bytes() { "$TENON" show "$net" "${@:2}" | awk -v row="$1" '$1 == row { v = $2 * ($3 == "MB" ? 1e6 : $3 == "kB" ? 1e3 : 1) } END { printf "%d", v }'; }
# tight OPTIONS...: a limit that the plan meets only without placing: 28 % fewer bytes for each shard
tight() { echo $(($(bytes planned "$@") - $(bytes shards "$@") * 28 / 100)); }
# places OPTIONS...: the values of training that lie inside others after the last pass
places() { "$TENON" show "$net" "$@" --dump=recompute 2>&1 | awk '/^graph/ { t = / training$/ } t && / within %/ { n++ } END { print n + 0 }'; }

make "$work/placed"
make "$work/copied" --memory-limit "$(tight)"
[ "$(places)" -gt $least ] && ok || bad "no parts are placed"
same "a tight limit takes the placing back" "$(places --memory-limit "$(tight)")" 0
want=$(train "$work/copied")
for how in "" "--threads 2" "--groups 2" "--groups 4 --threads 2"; do
    same "placed = copied $how" "$(train "$work/placed" $how)" "$want"
done
same "without vectors, too" "$(places --cpu generic --memory-limit "$(tight --cpu generic)")" 0
if deep "parts of a concat without vectors, and their gradients"; then
    make "$work/one" --cpu generic
    make "$work/other" --cpu generic --memory-limit "$(tight --cpu generic)"
    same "placed = copied, without vectors" "$(train "$work/one")" "$(train "$work/other")"
    make "$work/f64" --dtype f64 --verify
    succeeds "gradients" "$work/f64" gradcheck
fi

net=$work/net.tn
# Copies need 961 kB for each shard (measured without pass slices), so this bounds what placing needs.
shard=$(($(bytes shards) / 4))
[ $shard -gt 0 ] && [ $shard -lt 850000 ] && ok || bad "placed parts need $shard bytes a shard, copies 961 kB"

# Every limit down to the least plan is met, and a limit above the plan changes nothing.
all=$(bytes planned) shards=$(bytes shards)
"$TENON" show "$net" > "$work/free"
"$TENON" show "$net" --memory-limit 900G | cmp -s - "$work/free" && ok || bad "a generous limit changes the plan"
for percent in 1 3 6 12 20 30; do
    limit=$((all - shards * percent / 100))
    succeeds "a limit $percent % of the shards below the plan" "$TENON" show "$net" --memory-limit $limit
    [ "$(bytes planned --memory-limit $limit)" -le $((limit + limit / 200)) ] && ok || bad "a plan above its limit $limit"
done
finish
