#!/usr/bin/env bash
# stack.sh -- no stack limit of the shell (ulimit -s) changes what the compiler or a program does.  The compiler handles the deepest models
# that it accepts.  Each thread of a program has the stack that its kernels need, also with "unlimited", where threads would get 2 MB.
#
# Parts: compiler mlp attention
# Deep parts: table rotary frame
set -euo pipefail
. "$(dirname "$0")/../common.sh"

# limited KB|unlimited COMMAND...: runs COMMAND with that limit, which a process cannot raise again
limited() { local limit=$1; shift; ( ulimit -s "$limit" && exec "$@" ); }

# ---- the compiler
tail='return dense(h, 3) } train m { data = synthetic(samples = 16, test_samples = 4, classes = 3); loss = softmax_cross_entropy; optimizer = adam; batch = 4; epochs = 1 }'
long() { local i; for ((i = 1; i < $2; i++)); do printf '%s + ' "$1"; done; echo "$1"; }
if part compiler; then
    echo "model m(x: f32[8]) { h = $(long x 1000); $tail" > "$work/sum.tn"
    echo "model m(x: f32[8]) { h = dense(x, 4); for i in 0..1000 { h = dense(h, 4) |> tanh }; $tail" > "$work/layers.tn"
    { printf 'model m(x: f32[8]) { h = '; for ((i = 0; i < 190; i++)); do printf 'tanh('; done; printf x; for ((i = 0; i < 190; i++)); do printf ')'; done; echo "; $tail"; } > "$work/calls.tn"
    [ "${CHECK_DEEP:-0}" = 0 ] || echo "model m(x: f32[8]) { h = dense(x, 4); for i in 0..19000 { h = tanh(h) }; $tail" > "$work/chain.tn"
    for file in "$work"/*.tn; do
        for to in c pytorch dot; do
            rm -rf "$work/few" "$work/many"
            succeeds "$file to $to, 128 KB" limited 128 "$TENON" emit "$file" --to $to -o "$work/few"
            succeeds "$file to $to, unlimited" limited unlimited "$TENON" emit "$file" --to $to -o "$work/many"
            cmp -s "$work"/few/* "$work"/many/* && ok || bad "$file to $to: the stack's limit changes what is written"
        done
    done
fi

# ---- programs
# same_result NAME FILE OPTIONS...: the hash of the weights after an epoch is the same with every limit
same_result() {
    local name=$1 file=$2 limit; shift 2
    "$TENON" build "$file" -o "$work/p" "${build_options[@]}" || { bad "$name does not build"; return; }
    for limit in 8192 unlimited 128; do
        succeeds "$name, $limit" limited $limit "$work/p" --threads 2 --log "$work/$limit.jsonl" "$@"
        same "$name, $limit" "$(hashes "$work/8192.jsonl")" "$(hashes "$work/$limit.jsonl")"
    done
}
build_options=()
if part mlp; then
    small_mnist "$work/mnist" 256 32 || true                # head does not read the rest
    same_result mlp "$TENON_ROOT/models/mlp.tn" --data "$work/mnist" --epochs 1
    # The program also gets signals when it runs on a separate thread.
    stopped_by_sigterm bash -c 'ulimit -s 128; exec "$@"' stack "$work/p" --threads 2 --data "$work/mnist" --epochs 100000
fi
if part attention; then
    # 4 MB of scores and packed copies for each thread, which the plan counts.
    echo "model m(x: f32[1024, 256]) { p = dense(x, 768) |> split(3, axis = -1); h = causal_attention(p[0], p[1], p[2]) |> dense(1) |> flatten; ${tail/samples = 16/samples = 4}" > "$work/attention.tn"
    same_result "attention" "$work/attention.tn"
    "$work/p" info | sed -n 's/^planned bytes: .* \([0-9]*\) a thread.*/\1/p' > "$work/thread"
    [ "$(cat "$work/thread")" -gt 4000000 ] && ok || bad "attention's copies are not planned: $(cat "$work/thread") bytes a thread"
fi
if part table; then
    # Rows of a table in a tree of sums: 1.5 MB of stack.
    echo "model m(x: i32[2], vocab: int) { h = embedding(x, vocab, 1024) |> flatten; ${tail/classes = 3/vocab = 300}" > "$work/embedding.tn"
    same_result "a table" "$work/embedding.tn"
fi
if part frame; then
    # In bf16, rows of an image with 1,200 channels: 2.9 MB.
    echo "model m(x: f32[8, 6, 200]) { h = conv2d(x, 1200, kernel = 3, pad = 1) |> relu; h = conv2d(h, 8, kernel = [5, 3], pad = 2) |> global_avg_pool |> flatten; $tail" > "$work/frame.tn"
    build_options=(--dtype bf16)
    same_result "a convolution in bf16" "$work/frame.tn"
    build_options=()
fi
if part rotary; then
    # Sines and cosines of 200,000 pairs: more than 8 MB.
    echo "model m(x: f32[2, 8]) { h = dense(x, 400000) |> rotary |> flatten; $tail" > "$work/rotary.tn"
    same_result "wide rotary" "$work/rotary.tn"
    # If a thread cannot be created, the error names both numbers.
    refuses "no memory for a stack" "stack of [0-9]+ bytes.*the stack of this thread has 131072 \(ulimit -s\)" bash -c "ulimit -s 128; ulimit -v 12000; exec '$work/p' info"
fi
finish
