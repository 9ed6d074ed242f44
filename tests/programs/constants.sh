#!/usr/bin/env bash
# constants.sh -- numbers as tensors (zeros(6) + 1) before every kind of operation: a folded constant must still be in memory if an
# operation reads it there.  Optimised and plain programs train to the same losses in f64.
#
# Parts: constants
# Deep parts: losses
set -eu
. "$(dirname "$0")/../common.sh"

witness_level=-O0                                     # the program computes 40 samples
if part constants; then
    cat > "$work/constants.tn" << 'END'
model constants(x: f32[6], classes: int = 3) {
    a = dense(zeros(4) + 1, 6) + softmax(zeros(6) + 1) + rms_norm(zeros(6) * 2 + 1) + x
    b = dense(concat(zeros(4) + 1, x), 6) + slice(zeros(9) + 1, axis = 0, start = 1, size = 6) + gather(zeros(9) + 3, [1, 2, 3, 4, 5, 6])
    c = flatten(transpose(reshape(zeros(6) + 1, [2, 3]), [1, 0])) * x + sum(reshape(zeros(12) + 1, [6, 2]), axes = [1])
    d = flatten(conv2d(zeros([1, 2, 3]) + 1, 1, kernel = 1)) + concat(zeros(3), zeros(3) + 2) * x + dropout(zeros(6) + 1, 0.5) * x
    e = matmul(reshape(zeros(9) + 1, [3, 3]), reshape(dense(x, 9), [3, 3])) |> flatten |> dense(6)
    f = causal_attention(zeros([3, 4]) + 1, zeros([3, 4]), reshape(dense(x, 12), [3, 4]), heads = 2) |> flatten |> dense(6)
    g = dense(lstm(reshape(zeros(6) + 1, [3, 2]), 4), 6) + flatten(max_pool(zeros([6, 2, 2]) + 1, 2)) + batch_norm(zeros(6) + 1, scale = false)
    return dense(a + b + c + d + e + f + g, classes)
}
train constants {
    data      = synthetic(samples = 32, test_samples = 8)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.01)
    batch     = 8
    shards    = 1
    epochs    = 1
}
END
    succeeds "build" "$TENON" build "$work/constants.tn" --dtype f64 -o "$work/fast"
    succeeds "build --plain" witness "$work/constants.tn" "$work/plain" --dtype f64
    succeeds "the program runs" "$work/fast" --threads 1 --log "$work/log" --log-steps 1
    succeeds "the program runs --plain" "$work/plain" --threads 1 --log "$work/log--plain" --log-steps 1
    if awk -v a="$(field "$work/log" step train_loss)" -v b="$(field "$work/log--plain" step train_loss)" 'BEGIN { n = split(a, x); m = split(b, y); if (n != 4 || m != 4) exit 1
    for (i = 1; i <= n; i++) if (!((x[i] - y[i]) ^ 2 < 1e-20)) exit 1 }'
    then ok; else bad "losses of steps: $(field "$work/log" step train_loss) and plain $(field "$work/log--plain" step train_loss)"; fi
    succeeds "gradients" "$work/fast" gradcheck
fi

if part losses; then
    # compiled OPTIONS...: compiles $work/loss.tn as one file and with little optimisation: a fifth of a second
    compiled() {
        rm -rf "$work/emitted"
        "$TENON" emit "$work/loss.tn" --to c -o "$work/emitted" --dtype f64 --cpu generic --verify "$@" &&
            cc -O0 $(one_file "$work"/emitted/*.c --dtype f64) -o "$work/program" "$(dirname "$TENON")/lib/libtenonrt.a" -lz -lm -lpthread
    }

    # Losses whose gradient begins as a constant of another shape: optimised and plain gradients are right.
    losses() { # OUTPUT LOSS...: losses of a model that returns OUTPUT
        local output=$1 loss way
        shift
        for loss in "$@"; do
            printf 'model m(x: f32[6]) {\n    h = dense(x, 6)\n    return %s\n}\ntrain m {\n    data = synthetic(samples = 24, test_samples = 8, classes = 3)
    loss = %s\n    optimizer = sgd(lr = 0.1)\n    batch = 8\n    shards = 1\n    epochs = 1\n}\n' "$output" "$loss" > "$work/loss.tn"
            for way in "" --plain; do
                [ "$way" = "" ] || [ "$CHECK_DEEP" = 1 ] || continue
                succeeds "$loss of $output $way: build" compiled $way
                succeeds "$loss of $output $way: trains" "$work/program" --threads 1
                succeeds "$loss of $output $way: gradients" "$work/program" gradcheck --threads 1
            done
        done
    }
    ! deep "gradients of these losses in plain programs" || true
    losses "dense(h, 3)" "sum(output ** 2, axes = [0])" "mean(output, axes = [0])" "amax(output, axes = [0]) * 2" "sum(output, axes = [0]) * 2" \
        "sum(output, axes = [0]) + l2(output)" "mean((output - one_hot(label, 3)) ** 2, axes = [0])"
    losses "reshape(tanh(h), [2, 3])" "sum(output, axes = [0, 1])" "mean(transpose(output, [1, 0]), axes = [0, 1])" \
        "sum(concat(flatten(output), slice(flatten(output), axis = 0, start = 1, size = 2)), axes = [0])"
fi
finish
