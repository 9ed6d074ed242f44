#!/usr/bin/env bash
# Deep: a minute and a half.
#
# lines.sh -- two threads rarely write the same cache line at the same time (false sharing), in steps of 16 and 56 simulated threads.
#
# Parts of a result that end inside a line share that line.  This costs little while it is a small part of all written lines; a kernel that
# shares columns without regard to lines shows here.  tests/tools/lines.c says how writes are seen.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
gcc -std=gnu11 -O2 -Wall -Wextra -Werror -c -o "$work/lines.o" "$TENON_ROOT/tests/tools/lines.c"
cat > "$work/cc" << END
#!/bin/sh
for word; do [ "\$word" = -c ] && exec gcc "\$@"; done
exec gcc -Wl,--wrap=memory_map "\$@" "$work/lines.o"
END
chmod +x "$work/cc"

# shared PERMILLE THREADS MODEL OPTIONS...: at most PERMILLE of 1,000 written lines are written by two threads
shared() {
    local most=$1 threads=$2 model=$3 pairs lines; shift 3
    CC=$work/cc "$TENON" build "$model" -o "$work/program" "$@" > "$work/out" 2>&1 || { bad "$model: $(tail -n 3 "$work/out")"; return; }
    for t in $threads; do
        "$work/program" bench --simulate "$t" > "$work/out" 2> "$work/err" || { bad "$model, $t threads: $(tail -n 3 "$work/err")"; continue; }
        read -r pairs lines <<< "$(sed -n 's/^lines: \([0-9]*\) pairs, \([0-9]*\) written lines, .*/\1 \2/p' "$work/err")"
        [ "${lines:-0}" -gt 100000 ] && ok || bad "$model, $t threads: only ${lines:-no} lines were written"
        [ $((1000 * ${pairs:-1000000})) -le $((most * ${lines:-0})) ] && ok ||
            { bad "$model, $t threads: two threads wrote a line $pairs times, of $lines written lines"; grep shared "$work/err" | sort -t' ' -k3,3nr | head -n 5; }
    done
}
small='data=synthetic(samples=64,test_samples=16)' models=$TENON_ROOT/models
shared 10 "5 16 56" "$models/lenet.tn" --batch 64
shared 2 "16 56" "$models/resnet56_cifar10.tn" --batch 16 --set model.depth=8 --set "$small"
shared 10 "16 56" "$models/lstm_synthetic.tn" --batch 32 # rows of 60 numbers end inside of lines
shared 2 13 "$models/lstm_imdb.tn" --batch 8 --set 'data=synthetic(samples=64,test_samples=16,vocab=50,classes=2)'
shared 2 "5 16" "$models/gpt_char.tn" --batch 8 --set model.width=96 --set model.layers=1 --set model.time=32
shared 5 16 "$models/densenet_bc_100_12.tn" --batch 4 --set model.depth=10 --set model.growth=3 --set "$small"

# Rows of 12 numbers end inside of lines, so members must share lines: the tool sees them.
cat > "$work/odd.tn" << 'END'
model odd(image: f32[3, 20, 20]) {
    return conv2d(image, 12, kernel = 3, pad = 1, bias = false) |> batch_norm |> relu |> conv2d(20, kernel = 3, pad = 1) |> relu |> global_avg_pool |> dense(5)
}
train odd { data = synthetic(samples = 16, test_samples = 5, classes = 5); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.05); batch = 8; epochs = 1 }
END
shared 30 16 "$work/odd.tn"
[ "$(sed -n 's/^lines: \([0-9]*\) pairs.*/\1/p' "$work/err")" -gt 1000 ] && ok || bad "no line is shared where rows end inside of lines"
finish
