#!/usr/bin/env bash
# concat.sh -- parts of a concat that are written, and slices that are read, where they lie: the same bits as with copies
# (--memory-limit turns the placing off), for any threads and groups; gradients against differences; less memory.
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
train() { local p=$1; shift; rm -f "$work/log"; "$p" train "$@" --log "$work/log" > /dev/null; hashes "$work/log"; }
make() { local program=$1; shift; succeeds "build $*" "$TENON" build "$work/net.tn" -o "$program" "$@"; }
planned() { "$TENON" show "$work/net.tn" "$@" | awk '$1 == "shards" { v = $2 * ($3 == "MB" ? 1e6 : $3 == "kB" ? 1e3 : 1) } END { printf "%d", v }'; }

make "$work/placed"
make "$work/copied" --memory-limit 900G
want=$(train "$work/copied")
for how in "" "--threads 2" "--groups 2" "--groups 4 --threads 2"; do
    same "placed = copied $how" "$(train "$work/placed" $how)" "$want"
done
make "$work/one" --cpu generic
make "$work/other" --cpu generic --memory-limit 900G
same "placed = copied, without vectors" "$(train "$work/one")" "$(train "$work/other")"

placed=$(planned) copied=$(planned --memory-limit 900G)
[ "$placed" -gt 0 ] && [ $((placed * 10)) -lt $((copied * 9)) ] && ok || bad "placed parts need $placed bytes a shard, copied ones $copied"
make "$work/f64" --dtype f64 --verify
succeeds "gradients" "$work/f64" gradcheck
finish
