#!/usr/bin/env bash
# resume.sh -- kill -9 at twenty random moments, each followed by --resume: the weights of the undisturbed run.
# Then SIGTERM: exit code 75 and a checkpoint; without --checkpoint exit code 1.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

kills=20 epochs=120
[ "$CHECK_ALL" = 1 ] && kills=100 epochs=600
build lenet "$work/p"
small_mnist "$work/mnist" 3000 500 || true
train=("$work/p" --data "$work/mnist" --epochs $epochs --threads 2)

"${train[@]}" --log "$work/whole.jsonl" > /dev/null
want=$(hashes "$work/whole.jsonl" | tr ' ' '\n' | grep . | tail -n 1)

RANDOM=20
killed=0
for _ in $(seq $kills); do
    "${train[@]}" --checkpoint "$work/c" --checkpoint-every 5 --resume --log "$work/broken.jsonl" > /dev/null 2> "$work/err" &
    pid=$!
    sleep "$(printf '0.%03d' $((150 + RANDOM % 700)))"
    kill -9 $pid 2> /dev/null && killed=$((killed + 1))
    wait $pid 2> /dev/null || true
done
[ $killed -ge $((kills - 2)) ] && ok || bad "only $killed of $kills runs were still alive to be killed: make the run longer"
"${train[@]}" --checkpoint "$work/c" --checkpoint-every 5 --resume --log "$work/broken.jsonl" > /dev/null
same "hash after $killed kills" "$(hashes "$work/broken.jsonl" | tr ' ' '\n' | grep . | tail -n 1)" "$want"
count=$(find "$work/c" -name 'step-*.safetensors' | wc -l)
[ "$count" -le 2 ] && [ "$count" -ge 1 ] && ok || bad "$count checkpoints are kept, not two"
[ -z "$(find "$work/c" -name '*tmp*')" ] && ok || bad "temporary files stay in the checkpoint directory"

# a new run into a directory of another run
refuses "checkpoint directory in use" "--resume" "${train[@]}" --checkpoint "$work/c"
refuses "resume with another seed" "seed" "${train[@]}" --checkpoint "$work/c" --resume --seed 99

# SIGTERM
for how in with without; do
    args=(); [ $how = with ] && args=(--checkpoint "$work/term")
    "${train[@]}" "${args[@]}" > /dev/null 2> "$work/err" &
    pid=$!
    sleep 1
    kill -TERM $pid
    rc=0; wait $pid || rc=$?
    same "exit code after SIGTERM $how --checkpoint" "$rc" "$([ $how = with ] && echo 75 || echo 1)"
done
[ -n "$(find "$work/term" -name 'step-*.safetensors')" ] && ok || bad "SIGTERM left no checkpoint"
"${train[@]}" --checkpoint "$work/term" --resume --log "$work/term.jsonl" > /dev/null
same "hash after SIGTERM" "$(hashes "$work/term.jsonl" | tr ' ' '\n' | grep . | tail -n 1)" "$want"
finish
