#!/usr/bin/env bash
# terminal.sh -- progress of `train`, `bench` and `tenon build` on a terminal: every text fits the width, and is removed at the end;
# bench measures until the median is known, or until --seconds are over.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

small_mnist "$work/mnist" 640 100 || true
"$TENON" build "$TENON_ROOT/models/mlp.tn" -o "$work/mlp"
# several units that compile in a tenth of a second each
cat > "$work/few.tn" << 'END'
model few(x: f32[10], classes: int = 10) { return layer_norm(x) }
train few { data = synthetic(samples = 64, test_samples = 32); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 32; epochs = 1 }
END

# on_terminal COLUMNS COMMAND...: runs the command on a terminal of that width; prints each text of its progress on a line, without
# the controls
cat > "$work/on_terminal.py" << 'END'
import fcntl, os, pty, struct, sys, termios

columns = int(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
said = b""
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:                                   # the terminal of a process that has ended
        break
    if not part:
        break
    said += part
for line in said.decode().replace("\r\n", "\n").split("\n"):
    for text in line.split("\r\033[K"):
        print(text)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
on_terminal() { python3 -B "$work/on_terminal.py" "$@"; }
longest() { awk -v pattern="$1" '$0 ~ pattern && length > n { n = length } END { print n + 0 }' "$work/shown"; }

widths="40 200"
! deep "60 columns" || widths="40 60 200"
for columns in $widths; do
    succeeds "training on $columns columns" on_terminal $columns "$work/mlp" --data "$work/mnist" --epochs 300 --threads 1
    cp "$work/out" "$work/shown"
    n=$(longest '^epoch 1?[0-9]+/300 [^ ]')
    [ "$n" -ge 20 ] && [ "$n" -lt $columns ] && ok || bad "a bar of $n on $columns columns: $(grep -m 3 '^epoch' "$work/shown")"
    grep -qE '^epoch [0-9]+/300 \[#*\.*\] ' "$work/shown" && bar=1 || bar=0
    same "a bar on $columns columns" $bar $((columns == 200))
    succeeds "bench on $columns columns" on_terminal $columns "$work/mlp" bench --seconds 0.5 --threads 1
    cp "$work/out" "$work/shown"
    n=$(longest '^[0-9]+ s of at most 0.5: ')
    [ "$n" -ge 20 ] && [ "$n" -lt $columns ] && ok || bad "a line of $n of bench on $columns columns: $(head -n 3 "$work/shown")"
done

# A C compiler that takes a long time; without a terminal there is no progress.
printf '#!/bin/sh\nsleep 0.4\nexec cc "$@"\n' > "$work/slow_cc"
chmod +x "$work/slow_cc"
build=("$TENON" build "$work/few.tn" -o "$work/slow" --no-cache)
CC=$work/slow_cc TENON_CFLAGS=-O0 on_terminal 24 "${build[@]}" > "$work/shown"
n=$(longest '^compiling: [0-9]+ of [0-9]+')
[ "$n" -ge 20 ] && [ "$n" -lt 24 ] && ok || bad "a line of $n of tenon build on 24 columns: $(head -n 3 "$work/shown")"
same "the terminal after a build" "$(tail -n 1 "$work/shown" | wc -c)" 1
TENON_CFLAGS=-O0 "${build[@]}" > "$work/out" 2>&1
same "output without a terminal" "$(wc -c < "$work/out")" 0

# With an unreachable or an easy goal: seconds end the measurement, or the median does.
"$work/mlp" bench --seconds 0.05 --log "$work/log" > "$work/out"
grep -qE "^[0-9]+ steps in 0\.[0-9] s: " "$work/out" && ok || bad "bench for 0.05 s: $(cat "$work/out")"
steps=$(field "$work/log" bench steps) median=$(field "$work/log" bench step_ms_median)
low=$(field "$work/log" bench step_ms_low) high=$(field "$work/log" bench step_ms_high)
if [ "$steps" -ge 6 ]; then
    awk -v low="$low" -v median="$median" -v high="$high" 'BEGIN { exit !(0 < low && low <= median && median <= high) }' && ok || bad "the median is not in its interval: $low $median $high"
else                                                        # a busy machine: too few steps for an interval
    [ -z "$low$high" ] && ok || bad "an interval from $steps steps: $low to $high"
fi
"$work/mlp" bench --seconds 0.01 --log "$work/short" > "$work/out"
steps=$(field "$work/short" bench steps) least=$(field "$work/short" bench step_ms_min)
awk -v steps="$steps" -v least="$least" 'BEGIN { exit !(steps * least < 40) }' && ok || bad "$steps steps of at least $least ms in 0.01 s"
printf 'model small(x: f32[8]) { return dense(x, 4) }\ntrain small { data = synthetic(samples = 64, classes = 4); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 1 }\n' > "$work/small.tn"
succeeds "a model of a few microseconds" "$TENON" build "$work/small.tn" -o "$work/small"
"$work/small" bench --steps 1000 --threads 1 > "$work/out"
grep -qE 'step 0\.[0-9]{5,6} ms .best 0\.[0-9]{5,6}.' "$work/out" && grep -qE 'between 0\.[0-9]{5,6} and 0\.[0-9]{5,6} ms' "$work/out" && ok || bad "steps of a few microseconds: $(cat "$work/out")"
h=' |> conv2d(64, 3, pad = 1) |> relu'
side=32 how=(witness "$work/slow.tn" "$work/slow") witness_level=-O0     # a small plain network takes as long as a large optimised one
if deep "a large optimised network"; then side=96 h=$h$h$h$h how=("$TENON" build "$work/slow.tn" -o "$work/slow"); fi
sed "s/x: f32\[8\]/x: f32[64, $side, $side]/; s/return dense(x/return global_avg_pool(x$h) |> dense(/; s/dense(, 4/dense(4/" "$work/small.tn" > "$work/slow.tn"
succeeds "a model of some steps a second" "${how[@]}"
"$work/slow" bench --steps 1 --threads 1 > "$work/out"
grep -qE ', [0-9]{1,2}\.[0-9] samples/s$' "$work/out" && ok || bad "samples/s of a slow step: $(cat "$work/out")"
"$work/mlp" bench --steps 3 --log "$work/three" > "$work/out"
grep -q "^3 steps in .*: too few to say how well the median is known$" "$work/out" && ok || bad "three steps: $(cat "$work/out")"
same "measured steps" "$(field "$work/three" bench steps | tr -d ' ')" 3
refuses "steps and seconds" "--steps and --seconds are both given" "$work/mlp" bench --steps 3 --seconds 3
refuses "no time" "--seconds" "$work/mlp" bench --seconds 0
finish
