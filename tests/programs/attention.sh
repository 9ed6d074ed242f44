#!/usr/bin/env bash
# attention.sh -- causal_attention, and attention between two sequences, equal the same formula with matmul and softmax: loss and every gradient within 1e-11 (f64), with
# Tenon's kernels and with the library's; also with sequences that do not fill the last block, in f32, and on any number of threads.
#
# Parts: forms blas threads two
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$TENON_ROOT/tests/packages.sh"

succeeds "the comparer compiles" cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm

# model FILE TIME ATTENTION: writes a model with a transformer block that contains ATTENTION
model() {
    cat > "$1" <<M
block heads_of(x, heads: int) { return reshape(x, [x.time, heads, x.features // heads]) |> transpose([1, 0, 2]) }
block by_hand(q, k, v, heads: int, mask: string = "causal") {
    s = matmul(heads_of(q, heads), heads_of(k, heads), transpose_b = true) * (1 / sqrt(float(q.features // heads)))
    h = matmul(softmax(s, mask = mask), heads_of(v, heads))
    return transpose(h, [1, 0, 2]) |> reshape([q.time, q.features])
}
model m(x: f32[$2, 10]) {
    h = dense(x, 24) |> layer_norm
    p = dense(h, 72) |> split(3, axis = -1)
    h = h + dense($3, 24)
    h = h + (layer_norm(h) |> dense(50) |> gelu |> dense(24))
    return flatten(h) |> dense(4)
}
train m {
    data      = synthetic(samples = 64, test_samples = 16)
    loss      = softmax_cross_entropy
    optimizer = adamw(lr = 1e-3)
    batch     = 16
}
M
}

# equal_threads TEXT EPOCHS THREADS...: $work/p has the same weights after each epoch with each number of threads
equal_threads() {
    local text=$1 epochs=$2 threads weights first=''; shift 2
    for threads in "$@"; do
        "$work/p" --epochs "$epochs" --threads "$threads" --log "$work/threads.jsonl" > /dev/null
        weights=$(hashes "$work/threads.jsonl" | tr '\n' ' ')
        first=${first:-$weights}
        same "$text, $threads threads, the same bits" "$first" "$weights"
    done
}

if part forms; then
    [ "$CHECK_DEEP" = 1 ] || skip "attention by hand as an optimised program, and all masks of all lengths: ./check --deep"
    for time in 7 33; do
        for mask in causal none; do
            case $CHECK_DEEP$time$mask in 07none | 033causal) continue ;; esac
            model "$work/fused.tn" $time "causal_attention(p[0], p[1], p[2], heads = 3, mask = \"$mask\")"
            model "$work/hand.tn" $time "by_hand(p[0], p[1], p[2], heads = 3, mask = \"$mask\")"
            for form in fused hand; do
                case $CHECK_DEEP$form in
                0hand) succeeds "$form $time $mask: build" witness "$work/$form.tn" "$work/p" --dtype f64 ;;
                *) succeeds "$form $time $mask: build" "$TENON" build "$work/$form.tn" -o "$work/p" --dtype f64 ;;
                esac
                succeeds "$form $time $mask: gradients" "$work/p" grads --threads 2 --output "$work/$form.s"
            done
            succeeds "$time $mask: causal_attention = matmul and softmax" "$work/compare" "$work/fused.s" "$work/hand.s" 1e-11
        done
    done
fi

if ! part blas; then :
elif have "$openblas"; then
    model "$work/fused.tn" 33 'causal_attention(p[0], p[1], p[2], heads = 3, mask = "none")'
    model "$work/hand.tn" 33 'by_hand(p[0], p[1], p[2], heads = 3, mask = "none")'
    succeeds "own kernels: build" "$TENON" build "$work/fused.tn" -o "$work/p" --dtype f64
    succeeds "own kernels: gradients" "$work/p" grads --threads 2 --output "$work/fused.s"
    succeeds "by hand with the library: build" "$TENON" build "$work/hand.tn" -o "$work/p" --dtype f64 --kernels blas
    "$TENON" emit "$work/hand.tn" --to c -o "$work/c" --kernels blas
    grep -rq matmul_blas "$work/c" && ok || bad "the library's products are not used"
    succeeds "by hand with the library: gradients" "$work/p" grads --output "$work/blas.s"
    succeeds "the library = own kernels" "$work/compare" "$work/fused.s" "$work/blas.s" 1e-11
else
    skip "OpenBLAS is not installed (Debian: libopenblas-dev)"
fi

if part threads; then
    model "$work/fused.tn" 33 "causal_attention(p[0], p[1], p[2], heads = 3)"
    type=f64 bound=1e-11                              # part forms has these kernels, too
    if deep "attention in f32"; then type=f32 bound=1e-4; fi
    succeeds "build in $type" "$TENON" build "$work/fused.tn" -o "$work/p" --dtype $type
    succeeds "build in $type, plain" witness "$work/fused.tn" "$work/q" --dtype $type
    for p in p q; do succeeds "gradients in $type" "$work/$p" grads --output "$work/$p.s"; done
    succeeds "$type: optimised = plain" "$work/compare" "$work/p.s" "$work/q.s" $bound
    equal_threads "$type" 2 1 2 3
fi

# optimised MODEL.tn PROGRAM OPTIONS...: takes the arguments of witness
optimised() { "$TENON" build "$1" -o "$2" "${@:3}"; }

# Queries of one sequence, keys of another one, of which those count whose mean is above the mean of all.
if part two; then
    model "$work/all.tn" 33 "attention(p[0], p[1], p[2], heads = 3)"
    model "$work/none.tn" 33 'causal_attention(p[0], p[1], p[2], heads = 3, mask = "none")'
    for name in all none; do "$TENON" emit "$work/$name.tn" --to c -o "$work/$name"; grep -v "\.tn" "$work/$name/m.c" > "$work/$name.c"; done
    cmp -s "$work/all.c" "$work/none.c" && ok || bad "attention of one sequence is another program than causal_attention without a mask"
    for name in two hand; do
        model "$work/$name.tn" 33 "$name(slice(p[0], 0, start = 20, size = 9), p[1], dense(h, 48), mean(p[2], axes = [1]))"
        cat >> "$work/$name.tn" <<'M'
block counts(m) { return m > mean(m, axes = [0], keep = true) }
block padded(x) { return concat(x, slice(concat(x, x, x), 0, start = 0, size = 24), axis = 0) }
block two(q, k, v, m) { return attention(q, k, v, heads = 3, mask = counts(m)) |> padded }
block hand(q, k, v, m) {
    s = matmul(heads_of(q, 3), heads_of(k, 3), transpose_b = true) / sqrt(8.0)
    e = exp(s - amax(s, axes = [2], keep = true)) * reshape(counts(m), [1, 1, 33])
    h = matmul(e / sum(e, axes = [2], keep = true), heads_of(v, 3))
    return transpose(h, [1, 0, 2]) |> reshape([9, 48]) |> padded
}
M
    done
    succeeds "two: build" "$TENON" build "$work/two.tn" -o "$work/p" --dtype f64
    by=witness                                        # part forms has optimised programs of such a formula
    ! deep "the formula as an optimised program" || by=optimised
    succeeds "hand: build" $by "$work/hand.tn" "$work/q" --dtype f64
    succeeds "two: gradients" "$work/p" grads --threads 2 --output "$work/two.s"
    succeeds "hand: gradients" "$work/q" grads --output "$work/hand.s"
    succeeds "two sequences and a mask = the formula" "$work/compare" "$work/two.s" "$work/hand.s" 1e-11
    equal_threads f64 1 1 2 7
    types=
    if deep "attention between sequences in f32 and bf16"; then types="f32 bf16"; fi
    for type in $types; do
        succeeds "$type: build" "$TENON" build "$work/two.tn" -o "$work/p" --dtype $type
        equal_threads "$type" 1 1 2 7
    done
fi
finish
