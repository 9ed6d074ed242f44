#!/usr/bin/env bash
# threads.sh -- the same weights for any number of threads, on a pool of threads and along the tree of a larger machine; the memory of
# many threads; the default number of threads; notes and errors of --threads and --pin.
# Parts: lenet resnet56 lstm attention filters rounds sums
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$TENON_ROOT/tests/tools/machine.sh"

counts="2 3 7 16 64"
! deep "other numbers of threads" || counts="1 2 3 5 7 11 16 33 64 128"
! part lenet || small_mnist "$work/mnist" 256 32 || true
options() { # MODEL: options for its size and data
    case $1 in
    lenet) data=(--data "$work/mnist" --limit-samples 256) more=() ;;
    resnet56_cifar10) # the kernels of tests/programs/memory.sh and tests/cluster/bits.sh
        data=() more=(--batch 32 --set model.depth=8 --set 'data=synthetic(samples=64,test_samples=16)') ;;
    lstm_synthetic) data=() more=(--batch 32 --set 'data=synthetic(samples=64,test_samples=32,classes=7)' --set model.width=24 --set model.time=10 --set model.features=7) ;;
    esac
}
run() { rm -f "$work/log"; "$work/$1" "${data[@]}" --epochs 1 --log "$work/log" "${@:2}" > "$work/out" 2> "$work/err"; hashes "$work/log"; }
started() { field "$work/log" start "$1" | tr -d " "; }

machine "$work/small" 2 2 4          # 16 cores in 4 caches
machine "$work/smt" 1 1 4 2          # 4 cores with 2 processors each
machine "$work/pod" 1 8 8
quota "$work/pod" 4

for model in lenet resnet56_cifar10 lstm_synthetic; do
    part ${model%%_*} || continue
    options $model
    build $model "$work/$model" "${more[@]}"
    want=$(run $model --threads 1)
    [ "$(wc -w <<< "$want")" = 1 ] && ok || bad "$model: one epoch, but hashes '$want': $(cat "$work/err")"
    case $CHECK_DEEP$model in
    0resnet*) some="3 64" large=11 ;;
    *) some=$counts large="11 13" ;;
    esac
    for threads in $some; do
        same "$model, $threads threads" "$(run $model --threads $threads)" "$want"
    done
    same "$model, a thread a core of a machine with 16" "$(TENON_MACHINE=$work/small run $model)" "$want"
    same "$model: its threads" "$(started threads)" 16
    # More threads than slices: teams of threads, of one size and of several sizes.
    # Waiting members spin, so 13 of them on two processors take a hundred times as long: large teams take turns.
    same "$model, teams of 3 threads" "$(TENON_MACHINE=$work/small run $model --threads 3)" "$want"
    for threads in $large; do
        same "$model, teams of $threads threads in turn" "$(TENON_TURNS=$(turns $threads) TENON_MACHINE=$work/small run $model --threads $threads)" "$want"
    done
done

# Numbers of filters and channels that divide neither by tiles nor by members: each kind of gradient of filters.
if part filters; then
    cat > "$work/filters.tn" << 'END'
model filters(image: f32[3, 20, 20]) {
    h = conv2d(image, 20, kernel = 3, pad = 1, bias = false) |> batch_norm |> relu
    h = conv2d(h, 52, kernel = 3, pad = 1, bias = false)     |> batch_norm |> relu
    h = conv2d(h, 136, kernel = 1, stride = 2, bias = false) |> batch_norm |> relu
    return conv2d(h, 40, kernel = 1) |> relu |> global_avg_pool |> dense(5)
}
train filters { data = synthetic(samples = 16, test_samples = 5, classes = 5); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.05); batch = 8; epochs = 1 }
END
    "$TENON" show "$work/filters.tn" --cost > "$work/out"
    grep -q 'conv2d_dw .*Winograd' "$work/out" && ok || bad "no gradient of filters by Winograd's algorithm: $(grep conv2d_dw "$work/out")"
    # Members of a team wait for each other only where one needs what another has computed.
    "$TENON" emit "$work/filters.tn" -o "$work/emitted"
    tr -d '\n' < "$work/emitted/filters.c" > "$work/line"
    grep -q 'conv2d_winograd_dx_1([^;]*); TICK([^;]*;[^;]*conv2d_winograd_dw_1(' "$work/line" && ok ||
        bad "a barrier between two gradients of a convolution, which read the same values"
    grep -q 'batch_norm_dx_2([^;]*); TEAM_BARRIER; TICK([^;]*;[^;]*conv2d_winograd_dx_1(' "$work/line" && ok ||
        bad "no barrier between a value and its reader"
    grep -q 'rt_labels(LOCAL(int32_t, TEST_LABEL)[^;]*); TEAM_BARRIER;' "$work/line" && ok || bad "no barrier between labels and the loss of a test batch"
    grep -q 'batch_moments_2([^;]*); TICK([^;]*; *} *}' "$work/line" && ok || bad "a barrier between chunks that share no value"
    "$TENON" build "$work/filters.tn" -o "$work/filters"
    data=() want=$(run filters --threads 1)
    some="3 7 16"
    ! deep "more numbers of threads for odd numbers of filters" || some="2 3 5 7 11 13 16"
    for threads in $some; do
        same "odd numbers of filters, $threads threads" "$(TENON_MACHINE=$work/small run filters --threads $threads)" "$want"
    done
fi

# Members of a team share the region of a slice, and each has its own scratch: attention needs some.
if part attention; then
    cat > "$work/attention.tn" << 'END'
model heads(x: f32[12, 40]) {
    p = dense(x, 120) |> split(3, axis = -1)
    return causal_attention(p[0], p[1], p[2], heads = 2) |> dense(4) |> flatten |> dense(3)
}
train heads { data = synthetic(samples = 32, test_samples = 9, classes = 3); loss = softmax_cross_entropy; optimizer = adam; batch = 8; epochs = 1 }
END
    "$TENON" build "$work/attention.tn" -o "$work/attention" --shards 4
    data=() want=$(run attention --threads 1) loss=$(field "$work/log" epoch test_loss)
    planned() { "$TENON" show "$work/attention.tn" --shards 4 --threads "$1" | awk '$1 == "threads" { print $0 }'; }
    slices=$(planned 1000 | grep -oE '[0-9]+ x' | head -n 1)
    planned 1000 | grep -qE "[1-9][0-9]* x .*; 1000 x [0-9.]+ [kM]*B of scratch" && ok || bad "no scratch for each thread: $(planned 1000)"
    for threads in 2 3 7 16; do
        same "attention, $threads threads" "$(TENON_MACHINE=$work/small run attention --threads $threads)" "$want"
        same "attention, test loss, with a batch that is not full, $threads threads" "$(field "$work/log" epoch test_loss)" "$loss"
        same "attention, planned bytes of $threads threads" "$(started planned_bytes)" \
            "$("$work/attention" info --threads $threads | sed -n 's/^planned bytes: \([0-9]*\) .*/\1/p')"
        [ $threads -le "${slices% x}" ] || same "attention, thread regions of $threads" "$(planned $threads | grep -oE '[0-9]+ x' | head -n 1)" "$slices"
    done
    same "attention, 64 threads on two cores" "$(run attention --threads 64)" "$want"
fi

# Sums and maxima over dimensions, padding, and a loss of two classes: members of a team divide them along the first loop over outputs.
if part sums; then
    cat > "$work/sums.tn" << 'END'
model sums(image: f32[3, 9, 10]) {
    h = pad(image, [1, 0], after = [0, 2], value = -0.5) |> conv2d(4, kernel = 3) |> tanh
    rows = amax(h, axes = [1]) |> flatten
    cells = mean(h, axes = [0]) |> flatten
    both = sum(h, axes = [1, 2]) |> flatten
    return concat(rows, concat(cells, both)) |> dense(1)
}
train sums { data = synthetic(samples = 48, test_samples = 11, classes = 2); loss = sigmoid_cross_entropy; optimizer = sgd(lr = 0.05); batch = 16; epochs = 1 }
END
    "$TENON" build "$work/sums.tn" -o "$work/sums"
    "$TENON" emit "$work/sums.tn" > "$work/sums.c"
    same "calls of one thread" "$(grep -oE 'ALONE\([a-z_]+' "$work/sums.c" | sort -u | tr '\n' ' ')" "ALONE(rt_metric ALONE(rt_output ALONE(sum_to_ "
    data=() want=$(run sums --threads 1) loss=$(field "$work/log" epoch test_loss)
    for threads in 2 3 5 7 13 33; do
        same "sums, $threads threads in turn" "$(TENON_TURNS=$(turns $threads) TENON_MACHINE=$work/small run sums --threads $threads)" "$want"
        same "sums, test loss, $threads threads" "$(field "$work/log" epoch test_loss)" "$loss"
    done
fi

# More threads than slices, and slices with much memory: few teams compute the slices in rounds, each team in one region.
if part rounds; then
    cat > "$work/rounds.tn" << 'END'
model rounds(image: f32[3, 20, 20]) {
    h = conv2d(image, 16, kernel = 3, pad = 1) |> relu
    return conv2d(h, 48, kernel = 3, pad = 1) |> relu |> global_avg_pool |> dense(5)
}
train rounds { data = synthetic(samples = 64, test_samples = 21, classes = 5); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.05); batch = 64; epochs = 1 }
END
    "$TENON" build "$work/rounds.tn" -o "$work/rounds" --shards 4
    data=() want=$(run rounds --threads 1) loss=$(field "$work/log" epoch test_loss)
    regions() { "$work/rounds" info --threads "$1" | sed -n 's/^planned bytes: .*share \([0-9]*\) thread regions.*/\1/p'; }
    same "regions of 4 slices" "$(regions 5) $(regions 16)" "2 2"
    for threads in 16 64; do # with 64, the prices of the processor's kernels decide
        same "regions of $threads threads, as the compiler plans them" "$("$TENON" show "$work/rounds.tn" --shards 4 --threads $threads | awk '$1 == "threads" { print $4 }')" "$(regions $threads)"
    done
    for threads in 2 16; do # 16: more than processors, so two threads compute ranges of slices
        same "rounds, $threads threads" "$(run rounds --threads $threads)" "$want"
        same "rounds, test loss, with a batch that is not full, $threads threads" "$(field "$work/log" epoch test_loss)" "$loss"
        same "rounds, planned bytes of $threads threads" "$(started planned_bytes)" \
            "$("$work/rounds" info --threads $threads | sed -n 's/^planned bytes: \([0-9]*\) .*/\1/p')"
    done
    for threads in 16 19; do
        same "rounds of teams, $threads threads in turn" "$(TENON_TURNS=$(turns $threads) TENON_MACHINE=$work/small run rounds --threads $threads)" "$want"
    done
    same "rounds of two real teams" "$(TENON_MACHINE=$work/small run rounds --threads 16)" "$want"
fi

part lstm || { finish; exit; }
# By default: one thread for each core, within the quota.
p=$work/lstm_synthetic
info() { TENON_MACHINE=$work/$1 "$p" info | sed -n "s/^$2: //p"; }
same "cores of 16" "$(info small cores)" "16 of 16, processors: 16, caches: 4, sockets: 2"
same "threads of 16" "$(info small threads)" "16 on 16 cores; not pinned"
same "cores with siblings" "$(info smt cores)" "4 of 4, processors: 8, caches: 1, sockets: 1"
same "threads beside siblings" "$(info smt threads)" "4 on 4 cores; not pinned"
same "threads in a container" "$(info pod threads)" "4 on 64 cores, limited by the quota of the control group; not pinned"
printf 'Cpus_allowed_list:\t1,5\n' > "$work/smt/proc/self/status"
same "threads on a core" "$(info smt threads)" "1 on 1 of 4 cores, limited by the affinity mask; not pinned"
printf 'Cpus_allowed_list:\t0-4095\n' > "$work/smt/proc/self/status"
same "threads of more cores than a program can use" "$(info smt threads | cut -d' ' -f1)" 1024
printf 'Cpus_allowed_list:\t1,5\n' > "$work/smt/proc/self/status"

# The log has it; more threads than cores are allowed, with a note.
options lstm_synthetic
TENON_MACHINE=$work/pod run lstm_synthetic > "$work/hash"
same "the log in a container" "$(started threads) $(started cores) $(started limit) $(started pin)" "4 64 quota none"
same "no note" "$(wc -l < "$work/err")" 0
TENON_MACHINE=$work/smt run lstm_synthetic --threads 3 > "$work/hash"
same "the log of --threads" "$(started threads) $(started cores) $(started limit)" "3 1 option"
same "one note" "$(grep -c 'threads 3: there is 1 core' "$work/err")" 1
TENON_MACHINE=$work/pod run lstm_synthetic --threads 6 > "$work/hash"
same "a note on the quota" "$(grep -c 'threads 6: the control group has a quota of 4 processors' "$work/err")" 1
refuses "more threads than a program can have" "from 1 to 1024, not '1025'" "$p" --threads 1025
refuses "no thread" "from 1 to 1024, not '0'" "$p" --threads 0
"$p" --threads 500 --pin cores --epochs 1 --limit-samples 32 > "$work/out" 2>&1 || bad "500 threads, pinned: $(cat "$work/out")"
grep -q -- "--pin cores: 500 threads are not pinned to [0-9]* processor" "$work/out" && ok || bad "no word of threads that are not pinned: $(cat "$work/out")"
refuses "another word" "pin is none or cores, not 'all'" "$p" --pin all
for pin in none cores; do
    run lstm_synthetic --threads 1 --pin $pin > "$work/hash"
    same "--pin $pin" "$(started pin)" $pin
done
finish
