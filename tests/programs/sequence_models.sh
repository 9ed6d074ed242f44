#!/usr/bin/env bash
# sequence_models.sh -- the shipped networks over time and text, with small sizes: optimised equals plain; the same bits for any number of
# threads and groups, and after kill -9 in the middle of epochs.
#
# Deep: seven networks, each three programs; random_models.sh, sequences.sh and resume.sh have their parts.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm
train() { rm -f "$work/log"; "$work/p" train "$@" --log "$work/log" > /dev/null 2> "$work/err"; hashes "$work/log"; }
tokens='data=synthetic(samples=160,test_samples=32,vocab=30)'
while read -r name options; do
    small=(--batch 32 --set shards=4 --set epochs=2)
    for o in $options; do small+=(--set "$o"); done
    [ "$name" = lstm_synthetic ] || small+=(--set "$tokens")
    for how in "" --plain; do
        if [ -z "$how" ]; then build "$name" "$work/f64" --dtype f64 "${small[@]}"
        else witness "$TENON_ROOT/models/$name.tn" "$work/f64" --dtype f64 "${small[@]}"; fi
        succeeds "$name $how: gradients" "$work/f64" grads --threads 2 --output "$work/grads$how"
    done
    succeeds "$name: optimised = plain" "$work/compare" "$work/grads" "$work/grads--plain" 1e-11
    build "$name" "$work/p" "${small[@]}"
    want=$(train --threads 1)
    for how in "--threads 2" "--groups 2 --threads 3" "--groups 4"; do same "$name: the same bits with $how" "$(train $how)" "$want"; done
done << 'END'
lstm_synthetic model.width=24 model.time=10 model.features=7 data=synthetic(samples=160,test_samples=32,classes=7)
lstm_text      model.width=24 model.time=12
lstm_imdb      model.width=16 model.time=20
gru_imdb       model.width=16 model.time=20
text_cnn       model.width=16 model.time=20 model.filters=9
char_lstm      model.width=24 model.time=16
gpt_char       model.width=32 model.time=24 model.layers=2 model.heads=2
END

# kill -9 after each new checkpoint: every third step of ten, with dropout, clipping and a schedule.
build gpt_char "$work/p" --batch 32 --set model.width=32 --set model.time=24 --set model.layers=1 --set model.heads=2 --set epochs=3
run=(--limit-samples 320 --threads 2)
want=$(train "${run[@]}" | awk '{ print $NF }')
newest() { { find "$work/c" -name 'step-*.safetensors' 2> /dev/null || true; } | sort | tail -n 1; }
middle=0
for _ in 1 2 3 4; do
    before=$(newest)
    "$work/p" train "${run[@]}" --checkpoint "$work/c" --checkpoint-every 3 --resume > /dev/null 2> "$work/err" &
    pid=$!
    while [ "$(newest)" = "$before" ] && kill -0 $pid 2> /dev/null; do sleep 0.01; done
    kill -9 $pid 2> /dev/null || bad "the run ended before it was killed"
    wait $pid 2> /dev/null || true
    grep -qE 'epoch [0-9]+, step [1-9]' "$work/err" && middle=$((middle + 1))
done
[ $middle -ge 2 ] && ok || bad "$middle of 4 runs began in the middle of an epoch"
same "the weights after four kills" "$(train "${run[@]}" --checkpoint "$work/c" --checkpoint-every 3 --resume | awk '{ print $NF }')" "$want"
finish
