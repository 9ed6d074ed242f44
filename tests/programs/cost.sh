#!/usr/bin/env bash
# cost.sh -- the prices of show --cost, and their use in bench --layers and --trace.
# After an intended change of prices: tests/programs/cost.sh --update
#
# Parts: prices regions program
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
here=tests/programs/cost convs=tests/programs/cost/convs.tn

if part prices; then
    # Prices for a named processor are the same on each machine: the text from "price of a step" to the plan.
    price() { "$TENON" show "$@" --cost --color=never | sed -n '/^price of a step/,/^$/p'; }
    for case in "lenet models/lenet.tn x86-64-v3" "lenet models/lenet.tn x86-64-v4" "convs $convs x86-64-v3" "convs $convs x86-64-v4 --fast" \
        "mlp_wide models/mlp_wide.tn armv8-a"; do
        read -r name model cpu more <<< "$case"
        golden=$here/$name.$cpu.golden
        # shellcheck disable=SC2086
        price "$model" --cpu "$cpu" $more > "$work/price"
        [ "${1:-}" != --update ] || cp "$work/price" "$golden"
        if diff -u "$golden" "$work/price" > "$work/diff"; then ok; else bad "the price of $case is not that of $golden; --update rewrites it"; head -n 20 "$work/diff"; fi
    done
    [ "${1:-}" != --update ] || exit 0

    # The rows add up to the total: FLOPs, executed FLOPs, and milliseconds to the last digit.
    price models/lenet.tn --cpu x86-64-v4 > "$work/price"
    same "rows of the price add up" "$(awk '/^all/ { parts = 1 }
        / ms /{ f = substr($0, 53, 13); gsub(/[ ,-]/, "", f); t = substr($0, 107, 10) }
        / ms / && $1 == "total" { print flops == f && s - t < .002 && t - s < .002 ? "yes" : flops " of " f ", " s " of " t; next }
        / ms / && !parts { s += t; flops += f }
        / ms / && parts { s_of += t; flops_of += f }
        END { print flops_of == flops && s_of - s < .002 && s - s_of < .002 ? "yes" : "parts " flops_of ", " s_of }' "$work/price" | tr '\n' ' ')" "yes yes "
    for cpu in x86-64-v4 x86-64-v3 armv8-a generic; do
        for more in "" --plain "--dtype f64" --fast; do
            # shellcheck disable=SC2086
            succeeds "a price for $cpu $more" "$TENON" show $convs --cost --cpu $cpu $more
            grep -Eq 'inf|nan|-[0-9]+\.[0-9]+ ms' "$work/out" && bad "$cpu $more: a price that is no number" || ok
        done
    done
    "$TENON" emit models/lenet.tn --cpu x86-64-v3 > "$work/lenet.c"
    grep -q '[a-z ]*, pooled before tanh   576.0 kFLOP a sample, [0-9]* % of peak expected' "$work/lenet.c" && ok || bad "the generated C does not say how conv1 is computed"

    # Operations that read a layer's weights are named after the layer or the gradient that they compute, also packing and
    # transposing.
    "$TENON" emit $convs --cpu x86-64-v3 | sed -n 's/^    {"\([^"]*\)", "\([a-z][^"]*\)", "convs.tn:.*/\1 \2/p' > "$work/rows"
    unnamed=$(grep -E ' (conv2d|wino|dense)' "$work/rows" | grep -vE '^(d?conv[0-9]|d?dense[0-9]|dh )' || true)
    same "rows of the account that name no layer" "none $unnamed" "none "
    for row in 'conv1 (conv2d|wino)_pack' 'conv3 (conv2d|wino)_pack' 'dense1 dense_transpose' 'dense1 dense_dx'; do
        grep -Eq "^$row" "$work/rows" && ok || bad "the account has no row $row: $(cat "$work/rows")"
    done
    # Lines of imported files have letters, which the table explains: 27 files have different ones.
    { for i in $(seq 27); do
          echo "block part$i(x) { return dense(x, 4) }" > "$work/part$i.tn"
          echo "import \"part$i.tn\""
      done
      echo "model parts(x: f32[4]) { h = x"
      for i in $(seq 27); do echo "h = part$i(h)"; done
      echo "return h }"; } > "$work/parts.tn"
    "$TENON" show --all "$work/parts.tn" > "$work/shown"
    for row in ' 1a +part11' ' 1z +part261' '1aa +part271' ' +lines with a are in .*part1.tn$' ' +lines with aa are in .*part27.tn$'; do
        grep -Eq "^ *$row" "$work/shown" && ok || bad "lines of 27 files: no row $row"
    done

    # The step of more threads than this machine has, predicted by tenon.
    shown() { "$TENON" show models/lenet.tn --cpu x86-64-v4 --threads "$1" > "$work/shown"; }
    shown 8
    grep -q 'forward and backward of a slice .* 8 units, a slice a thread$' "$work/shown" && ok || bad "8 threads: $(grep slice "$work/shown")"
    one=$(awk '/ in all$/ { print $1 }' "$work/shown") last=$one
    for threads in 8 16 56; do
        shown $threads
        all=$(awk '/ in all$/ { print $3 }' "$work/shown")
        awk -v a="$all" -v b="$last" 'BEGIN { exit !(a > 0 && a < b) }' && ok || bad "$threads threads take $all ms, fewer threads $last"
        last=$all
    done
    grep -q '8 units, 8 teams of 7$' "$work/shown" && ok || bad "56 threads: $(grep slice "$work/shown")"
    # A simulation of LeNet on 56 threads is 18 times as fast as one thread: 0.40 of 7.4 ms.
    awk '/ in all$/ { exit !($1 > 20 * $3 && $1 < 32 * $3) }' "$work/shown" && ok || bad "56 threads: $(tail -n 2 "$work/shown")"
    grep -q 'sum gradients, update .* 1 phase, 49 units$' "$work/shown" && ok || bad "units of sums: $(grep sum "$work/shown")"
    # The update has a phase of its own, in each step, if gradients are clipped by norm.
    grep -qE '  update +1 phase' "$work/shown" && bad "an update that does not run: $(grep update "$work/shown")" || ok
    "$TENON" show models/lenet.tn --cpu x86-64-v4 --threads 8 --set 'clip=norm(1)' > "$work/shown"
    awk '/  update +1 phase/ { found = $1 > 0 } END { exit !found }' "$work/shown" && ok || bad "clip = norm: $(grep update "$work/shown")"
fi

# Memory of many threads: at most 1.3 times that of two threads.  With a region for each slice, gpt_char had 1.69 times and
# text_cnn 1.51 times as much; now 1.25 and 1.17.  The limit of the two small LSTMs is 3 (2.92 and 2.89, of 12 MB): with fewer
# regions, their predicted step of 64 threads is more than twice as long, because 32 threads share 16 samples.  forecast, of 1.8 MB, has
# the same limit (2.43), and dates, of 11 MB, one of 2.2 (2.16): their layers over time are as small.
if part regions; then
    planned() { "$TENON" show "$1" "${@:2}" | awk '$1 == "planned" { print $2 * ($3 == "GB" ? 1e6 : $3 == "MB" ? 1e3 : 1) }'; }
    all="models/lenet.tn models/resnet20_cifar10.tn models/lstm_synthetic.tn models/text_cnn.tn models/gpt_char.tn"
    if deep "memory of many threads, every model"; then all=$(echo models/*.tn); fi
    for model in $all; do
        name=$(basename "$model" .tn) most=1.3
        case $name in lstm_synthetic | lstm_text | forecast) most=3 ;; dates) most=2.2 ;; esac
        few=$(planned "$model") many=$(planned "$model" --threads 64)
        awk -v few="$few" -v many="$many" -v most=$most 'BEGIN { exit !(few > 0 && many >= few && many <= most * few) }' && ok ||
            bad "$name: $many kB with 64 threads, $few kB with two, more than $most times"
    done
    "$TENON" show models/gpt_char.tn --threads 64 > "$work/shown"
    grep -q '8 units, 4 teams of 16$' "$work/shown" && ok || bad "gpt_char, 64 threads: $(grep slice "$work/shown")"
fi

if part program; then
    # The account of bench --layers is complete for any number of threads, and the trace has the same times.
    succeeds "the trace reader compiles" cc -std=gnu11 -O1 -o "$work/trace" tests/tools/trace.c
    cat > "$work/few.tn" << 'END'
model few(image: f32[3, 16, 16]) {
    h = conv2d(image, 16, kernel = 3, pad = 1)             |> relu
    h = conv2d(h, 16, kernel = 3, pad = 1)                 |> relu
    h = conv2d(h, 17, kernel = 1)                          |> relu
    return flatten(h) |> dense(10)
}
train few {
    data      = synthetic(samples = 256, test_samples = 16)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.01, momentum = 0.9)
    batch     = 16
}
END
    model=$work/few.tn second=conv2 last=conv3
    if deep "the account of every kind of convolution"; then model=$convs second=conv3 last=conv5; fi
    "$TENON" build "$model" -o "$work/convs"
    sum() { grep '"event":"layer"' "$1" | sed 's/.*"ms":\([^,}]*\).*/\1/' | awk '{ s += $1 } END { printf "%.9g\n", s }'; }
    near() { awk -v a="$2" -v b="$3" -v e="$4" 'BEGIN { exit !(a > 0 && (a - b < e * b && b - a < e * b)) }' && ok || bad "$1: '$2' and '$3'"; }
    counts="1 3"
    ! deep "the account of two threads" || counts="1 2 3"
    for threads in $counts; do
        rm -f "$work/log"
        succeeds "bench --trace with $threads threads" "$work/convs" bench --steps 6 --threads $threads --layers --trace "$work/t.json" --log "$work/log"
        grep -q '100.0 %.* in all, 6 steps' "$work/out" && ok || bad "bench --layers has no total"
        grep -q 'waiting for data' "$work/out" && ok || bad "bench --layers says nothing of waiting for data"
        wall=$(field "$work/log" layers ms); wall=${wall% }
        near "$threads threads: the layers' times add up to the step" "$(sum "$work/log")" "$wall" 1e-6
        succeeds "the trace is strict JSON" "$work/trace" "$work/t.json"; cp "$work/out" "$work/sums"
        same "$threads rows in the trace" "$(grep -c ^thread "$work/sums")" $threads
        while read -r _ thread us; do
            near "thread $thread of the trace adds up to its steps" "$(awk -v u="$us" 'BEGIN { printf "%.9g", u / 6000 }')" "$wall" 1e-6
        done < <(grep ^thread "$work/sums")
        for layer in conv1 $last "idle: no unit left" "between phases"; do
            if [ $threads = 1 ] && [[ $layer == idle* ]]; then continue; fi # a single thread never waits for another
            us=$(sed -n "s/^name \([0-9.]*\) $layer\$/\1/p" "$work/sums")
            ms=$(grep "\"layer\":\"$layer\"" "$work/log" | sed 's/.*"ms":\([^,}]*\).*/\1/' | awk '{ s += $1 } END { printf "%.9g", s }')
            near "$threads threads: $layer in trace and account" "$(awk -v u="$us" -v t=$threads 'BEGIN { printf "%.9g", u / 6000 / t }')" "$ms" 1e-6
        done
        if command -v python3 > /dev/null; then succeeds "the trace by python" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/t.json"; fi
    done
    for call in conv1 dense1; do
        grep "\"layer\":\"$call\"" "$work/log" | grep -Eq '"predicted_ms":0*[1-9.]' && ok || bad "no prediction for $call"
    done
    succeeds "the algorithms of a program" "$work/convs" info
    grep -Eq "^  $second \\((conv2d|conv2d_winograd)_[0-9]+\\): [a-zW]" "$work/out" && ok || bad "info does not say which kernel computes $second"

    for broken in '{' '[1,]' '{"traceEvents":[{"ph":"X","ts":1,"dur":-1}]}' '{"traceEvents":[{"ph":"X","ts":1,"dur":2},{"ph":"X","ts":2,"dur":2}]}' \
        '{"traceEvents":[]}' '{"a":01}' '{"a":"\x"}' '{"traceEvents":[{"ph":"X","ts":1,"dur":2}]} x'; do
        printf '%s' "$broken" > "$work/broken.json"
        if "$work/trace" "$work/broken.json" > /dev/null 2>&1; then bad "the trace reader takes $broken"; else ok; fi
    done

    # Training with a trace gives the same weights, and the file of the trace is complete.
    succeeds "train --trace" "$work/convs" --epochs 1 --trace "$work/train.json" --log "$work/traced"
    succeeds "its trace" "$work/trace" "$work/train.json"
    grep -q '^steps 16$' "$work/out" && ok || bad "the trace of 16 steps says $(tail -n 1 "$work/out")"
    succeeds "train without" "$work/convs" --epochs 1 --log "$work/untraced"
    same "weights with and without a trace" "$(hashes "$work/traced")" "$(hashes "$work/untraced")"
    refuses "a trace in no directory" "No such file" "$work/convs" bench --steps 1 --trace "$work/no/t.json"
    [ -s "$work/out" ] && bad "a trace that cannot be written is found out after the bench only" || ok
    refuses "a trace over a directory" "directory" "$work/convs" --epochs 1 --trace "$work"
    mkfifo "$work/pipe"
    refuses "a trace over a pipe" "not a file" "$work/convs" bench --steps 1 --trace "$work/pipe"
    [ -z "$(find "$work" -name '*.json.tmp*')" ] && ok || bad "half a trace is left behind"

    # The same step, simulated by the program.
    for threads in 1 16; do
        succeeds "bench --simulate $threads" "$work/convs" bench --simulate $threads --machine 16-core --layers --log "$work/simulated"
    done
    for key in model batch threads machine step_ms samples_per_s efficiency barriers units_min; do
        [ "$(grep -c "\"event\":\"simulate\".*\"$key\":" "$work/simulated")" = 2 ] && ok || bad "no $key: $(cat "$work/simulated")"
    done
    awk -F'"efficiency":' '{ split($2, e, ","); n += (NR == 1 ? e[1] == 1 : e[1] > 0.02 && e[1] < 2) } END { exit n != 2 }' "$work/simulated" && ok || bad "efficiencies: $(cat "$work/simulated")"
    grep -q '^ *[0-9.]* *[0-9.]* *[0-9.]* *[0-9]*  conv' "$work/out" && ok || bad "no call of a team: $(cat "$work/out")"
    refuses "a machine alone" "needs --simulate" "$work/convs" bench --machine 16-core
    refuses "an unknown machine" "no such machine; the table has 2-core, 16-core" "$work/convs" bench --simulate 4 --machine abacus
    refuses "more threads than cores" "16-core has 16 cores; use --machine c5.18xlarge" "$work/convs" bench --simulate 17 --machine 16-core
    refuses "more threads than any machine" "1 to 192" "$work/convs" bench --simulate 500
    refuses "a number of steps" "leave out --steps" "$work/convs" bench --simulate 4 --steps 9
    refuses "no threads" "simulate" "$work/convs" bench --simulate 0
    for other in "--threads 2" "--pin none" "--trace $work/trace.json"; do
        # shellcheck disable=SC2086
        refuses "$other with a simulation" "leave out ${other%% *}" "$work/convs" bench --simulate 2 $other
    done
    # Gradients above the limit are scaled, in some steps only: a simulation needs steps with equal jobs.
    cat > "$work/clip.tn" << 'END'
model clip(x: f32[6]) { return dense(x, 8) |> tanh |> dense(3) }
train clip { data = synthetic(samples = 256, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 4; clip = norm(0.8) }
END
    witness "$work/clip.tn" "$work/clip"
    succeeds "a simulation with clipped gradients" "$work/clip" bench --simulate 3
    refuses "a log that cannot be" "nowhere" "$work/convs" bench --simulate 2 --log "$work/nowhere/log"
    [ ! -s "$work/out" ] && ok || bad "the log is opened after the simulation"
fi
finish
