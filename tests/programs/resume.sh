#!/usr/bin/env bash
# resume.sh -- a run that is killed (kill -9) at random moments, each followed by --resume, reaches the weights of an undisturbed run.
# SIGTERM gives exit code 75 and a checkpoint; without --checkpoint exit code 1.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

unset TENON_STEP_CFLAGS                               # the runs are long: 50 epochs take a second longer with -O0
kills=5 epochs=50 samples=1500
if deep "a hundred kills"; then kills=100 epochs=1200 samples=3000; fi
build mlp "$work/p"
small_mnist "$work/mnist" $samples 500 || true
train=("$work/p" --data "$work/mnist" --epochs $epochs --threads 2)

begin=$(date +%s%3N)
"${train[@]}" --log "$work/whole.jsonl" > /dev/null
whole=$(($(date +%s%3N) - begin))
want=$(hashes "$work/whole.jsonl" | tr ' ' '\n' | grep . | tail -n 1)

# Each run is killed 50 ms after its start or later: a random time, at most 1.2 / $kills of the whole run, is added.  On average,
# these times are 0.6 of the whole run together, so that the last run still has work.
RANDOM=20
killed=0
for _ in $(seq $kills); do
    "${train[@]}" --checkpoint "$work/c" --checkpoint-every 5 --resume --log "$work/broken.jsonl" > /dev/null 2> "$work/err" &
    pid=$!
    delay=$((50 + (RANDOM << 15 | RANDOM) % (whole * 6 / 5 / kills + 1)))
    sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
    kill -9 $pid 2> /dev/null && killed=$((killed + 1))
    wait $pid 2> /dev/null || true
done
[ $killed -ge $((kills - 2)) ] && ok || bad "only $killed of $kills runs were still alive to be killed: make the run longer"
"${train[@]}" --checkpoint "$work/c" --checkpoint-every 5 --resume --log "$work/broken.jsonl" > /dev/null
same "hash after $killed kills" "$(hashes "$work/broken.jsonl" | tr ' ' '\n' | grep . | tail -n 1)" "$want"
count=$(find "$work/c" -name 'step-*.safetensors' | wc -l)
[ "$count" -le 2 ] && [ "$count" -ge 1 ] && ok || bad "$count checkpoints are kept, not two"
[ -z "$(find "$work/c" -name '*tmp*')" ] && ok || bad "temporary files stay in the checkpoint directory"

# A new run in a directory that has another run.
refuses "checkpoint directory in use" "--resume" "${train[@]}" --checkpoint "$work/c"
refuses "resume with another seed" "seed" "${train[@]}" --checkpoint "$work/c" --resume --seed 99

# Messages about a complete run, about weights that are not used, and about a schedule that --epochs does not change.
cat > "$work/tiny.tn" << 'END'
model tiny(x: f32[4]) { return dense(x, 3) }
train tiny { data = synthetic(samples = 40, test_samples = 10, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); schedule = cosine(); batch = 8; epochs = 4 }
END
TENON_CFLAGS= "$TENON" build "$work/tiny.tn" -o "$work/tiny" || bad "tenon build tiny.tn"
says() { # TEXT PATTERN OPTIONS...
    local text=$1 pattern=$2; shift 2
    "$work/tiny" "$@" > "$work/out" 2> "$work/err" || bad "$text: exit code $?"
    grep -Eq -e "$pattern" "$work/err" && ok || bad "$text: $(cat "$work/err")"
}
"$work/tiny" --save "$work/w.safetensors" --log "$work/four.jsonl" > /dev/null 2> "$work/err"
[ ! -s "$work/err" ] && ok || bad "a run of the recipe says $(cat "$work/err")"
says "a run that ends earlier" "cosine schedule spans the recipe's 4 epochs, also with --epochs 2; build with --set epochs=2" --epochs 2 --checkpoint "$work/t" --log "$work/two.jsonl"
same "the rates of two epochs of four" "$(field "$work/four.jsonl" epoch lr | cut -d ' ' -f 1,2)" "$(field "$work/two.jsonl" epoch lr | sed 's/ $//')"
same "four rates" 4 "$(field "$work/four.jsonl" epoch lr | tr ' ' '\n' | grep . | sort -u | wc -l)"
same "epochs in the start record" "2 " "$(field "$work/two.jsonl" start epochs)"
says "a run that is complete" "already complete, 2 of 2 epochs; continue it with --epochs N" --epochs 2 --checkpoint "$work/t" --resume
says "fewer epochs than are done" "2 epochs are done, and this run is for 1: nothing is left" --epochs 1 --checkpoint "$work/t" --resume
says "weights beside a checkpoint" "the weights are those of the checkpoint: --weights .*w.safetensors is only used when a run begins" --checkpoint "$work/t" --resume --weights "$work/w.safetensors" --log "$work/two.jsonl"
grep -q "after epoch 2 of 4" "$work/err" && ok || bad "where the run goes on: $(cat "$work/err")"
same "the checkpoint's weights" "$(hashes "$work/four.jsonl")" "$(hashes "$work/two.jsonl")"
says "weights without a checkpoint" "holds no checkpoint" --checkpoint "$work/u" --resume --weights "$work/w.safetensors"
grep -q "the weights are those of the checkpoint" "$work/err" && bad "weights are taken, and it is said that they are not" || ok
refuses "fewer samples" "made with all samples, this run has limit-samples 8" "$work/tiny" --checkpoint "$work/t" --resume --limit-samples 8

unset TENON_CFLAGS                                    # ./check has some
# Another build of the same program: with other flags of the C compiler its bits can differ.
builds=('TENON_CFLAGS= ' 'TENON_CFLAGS=-O1 -fno-tree-vectorize')
if deep "one flag of the C compiler"; then builds+=('TENON_CFLAGS=-O1'); fi
for build in "${builds[@]}"; do
    env "$build" "$TENON" build "$work/tiny.tn" -o "$work/tiny-built" || bad "tenon build tiny.tn with $build"
    "$work/tiny-built" --epochs 1 --checkpoint "$work/$build" > /dev/null 2> "$work/err" && "$work/tiny-built" --epochs 2 --checkpoint "$work/$build" --resume > /dev/null 2> "$work/err"
    grep -q "another build" "$work/err" && bad "$build: the same build is taken for another one: $(cat "$work/err")" || ok
    says "a checkpoint of $build" "$([ "$build" = 'TENON_CFLAGS= ' ] && echo "resumed from" || echo "made by another build \\(.*$build\\): the run goes on, but its last bits will differ")" \
        --epochs 3 --checkpoint "$work/$build" --resume
    [ "$build" != 'TENON_CFLAGS= ' ] || { grep -q "another build" "$work/err" && bad "no flags are taken for other ones" || ok; }
done
grep -q "TENON_CFLAGS=-O1" <<< "$("$work/tiny-built" info)" && ok || bad "info does not name TENON_CFLAGS"

# A directory that cannot be written is refused before the first step, not after the first epoch.
mkdir "$work/closed"
chmod a-w "$work/closed"
closed=(env)
# shellcheck disable=SC2016
[ "$(id -u)" != 0 ] || closed=(unshare --mount sh -c 'mount -t tmpfs -o ro tmpfs "$0" && exec "$@"' "$work/closed")
if "${closed[@]}" true 2> /dev/null; then
    refuses "a read-only directory" "checkpoints cannot be written into .*closed" "${closed[@]}" "${train[@]}" --checkpoint "$work/closed"
    [ ! -s "$work/out" ] && ok || bad "an epoch was trained before that: $(cat "$work/out")"
else skip "no read-only directory for root here"; fi

# Two runs in one directory: the second one is refused, and can resume when the first has ended.
"$work/p" --data "$work/mnist" --epochs 4000 --checkpoint "$work/both" > /dev/null &
pid=$!
for _ in $(seq 100); do compgen -G "$work/both/step-*.safetensors" > /dev/null && break; sleep 0.1; done
kill -STOP $pid                                       # it keeps its lock, and takes no processor from other tests
refuses "a second run in a directory" "another run saves its checkpoints in .*both" "$work/p" --data "$work/mnist" --epochs 4000 --checkpoint "$work/both" --resume
kill -0 $pid && ok || bad "the first run has ended"
{ sleep 1; kill -9 $pid; } &
succeeds "a run that follows one that is just being killed" "$work/p" --data "$work/mnist" --epochs 1 --checkpoint "$work/both" --resume
wait $pid 2> /dev/null || true

# SIGTERM.
for how in with without; do
    args=(); [ $how = with ] && args=(--checkpoint "$work/term")
    rm -f "$work/begun"
    "${train[@]}" "${args[@]}" --log "$work/begun" > /dev/null 2> "$work/err" &
    pid=$!
    for _ in $(seq 1000); do grep -qs '"event":"epoch"' "$work/begun" && break; sleep 0.01; done
    kill -TERM $pid || bad "the run has ended before SIGTERM: make it longer"
    rc=0; wait $pid || rc=$?
    same "exit code after SIGTERM $how --checkpoint" "$rc" "$([ $how = with ] && echo 75 || echo 1)"
done
[ -n "$(find "$work/term" -name 'step-*.safetensors')" ] && ok || bad "SIGTERM left no checkpoint"
"${train[@]}" --checkpoint "$work/term" --resume --log "$work/term.jsonl" > /dev/null
same "hash after SIGTERM" "$(hashes "$work/term.jsonl" | tr ' ' '\n' | grep . | tail -n 1)" "$want"
finish
