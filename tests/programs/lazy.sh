#!/usr/bin/env bash
# lazy.sh -- embedding(lazy = true) does not change rows without a gradient, and changes all others; the same bits in all ways to run;
# rows of padding begin as zeros and stay zeros.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

# model FILE ARGUMENTS OPTIMIZER: a table of 500 rows, of which 20 are ever read, in large or small parts of a batch
model() {
    cat > "$1" << END
model words(text: i32[time], time: int = 12, rows: int = 500) {
    h = embedding(text, rows, 8, padding = 3$2)
    return h |> tanh |> flatten |> dense(3)
}
train words {
    data      = synthetic(samples = 320, test_samples = 32, vocab = 20)
    loss      = softmax_cross_entropy
    optimizer = $3
    batch     = 32
    shards    = 4
    epochs    = 2
}
END
}
# rows FILE FIRST COUNT: prints the numbers of rows of the table in a file of f32 weights
rows() {
    local head begin
    head=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    begin=$(head -c $((head + 8)) "$1" | tail -c "$head" | grep -o '"embedding1.weight":{[^}]*' | grep -o 'data_offsets":\[[0-9]*' | grep -o '[0-9]*$')
    od -An -v -t f4 -j $((head + 8 + begin + $2 * 32)) -N $(($3 * 32)) "$1"
}
optimizer='adamw(lr = 0.01, weight_decay = 0.1)'
model "$work/lazy.tn" ', lazy = true' "$optimizer"
model "$work/dense.tn" '' "$optimizer"
for kind in lazy dense; do
    succeeds "$kind: build" "$TENON" build "$work/$kind.tn" -o "$work/$kind" --verify
    succeeds "$kind: train" "$work/$kind" --threads 1 --save "$work/$kind.safetensors" --log "$work/$kind.jsonl"
done
succeeds "first weights" "$work/lazy" --epochs 1 --limit-samples 32 --save "$work/first.safetensors"
same "lazy: rows that nobody asks for stay" "$(rows "$work/first.safetensors" 20 480)" "$(rows "$work/lazy.safetensors" 20 480)"
[ "$(rows "$work/first.safetensors" 20 480)" != "$(rows "$work/dense.safetensors" 20 480)" ] && ok || bad "the dense update leaves rows alone"
[ "$(rows "$work/first.safetensors" 0 3)" != "$(rows "$work/lazy.safetensors" 0 3)" ] && ok || bad "rows that were asked for are not updated"
for kind in lazy dense; do
    same "$kind: padding is zero" "0 0 0 0 0 0 0 0" "$(rows "$work/$kind.safetensors" 3 1 | tr -s ' \n' ' ' | sed 's/^ //; s/ $//')"
done
# The same result for all ways of summing: by rows of the table, by sums of slices, from reduced gradients.
want=$(hashes "$work/lazy.jsonl")
train() { rm -f "$work/log"; "$@" --log "$work/log" > /dev/null 2>&1; hashes "$work/log"; }
same "two threads" "$want" "$(train "$work/lazy" --threads 2)"
same "four groups" "$want" "$(train "$work/lazy" --groups 4)"
"$work/lazy" --epochs 1 --checkpoint "$work/c" > /dev/null
same "resumed" "$(awk '{ print $NF }' <<< "$want")" "$(train "$work/lazy" --checkpoint "$work/c" --resume | awk '{ print $NF }')"
succeeds "few rows: build" "$TENON" build "$work/lazy.tn" -o "$work/few" --set model.rows=21
few=$(train "$work/few" --threads 1)
same "few rows: two threads" "$few" "$(train "$work/few" --threads 2)"
same "few rows: two groups" "$few" "$(train "$work/few" --groups 2)"
succeeds "clipped: build" "$TENON" build "$work/lazy.tn" -o "$work/clip" --set 'clip=norm(0.01)'
succeeds "clipped: train" "$work/clip" --save "$work/clip.safetensors"
same "clipped: rows that nobody asks for stay" "$(rows "$work/first.safetensors" 20 480)" "$(rows "$work/clip.safetensors" 20 480)"
# Without momentum and decay, lazy makes no difference.
model "$work/lazy.tn" ', lazy = true' 'sgd(lr = 0.1)'
model "$work/dense.tn" '' 'sgd(lr = 0.1)'
for kind in lazy dense; do succeeds "sgd, $kind: build" "$TENON" build "$work/$kind.tn" -o "$work/$kind"; done
same "sgd: lazy is dense" "$(train "$work/dense")" "$(train "$work/lazy")"
finish
