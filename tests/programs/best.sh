#!/usr/bin/env bash
# best.sh -- keep = best(...) and stop = patience(...): the weights of the best epoch are those that are saved and tested; training ends
# where the patience ends; both resume to the same bits, also after a kill, over groups, threads and ranks.
#
# Parts: keep kill
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"
cd "$work"

# Labels with noise: the loss of the validation split goes down, and then up.
cat > arrays.py <<'END_PY'
import os, random, sys
from npy import save
os.makedirs("noisy", exist_ok=True)
r = random.Random(7)
rows = [[r.uniform(-1, 1) for _ in range(4)] for _ in range(300)]
save("noisy/x.npy", "<f4", (300, 4), [v for row in rows for v in row])
save("noisy/y.npy", "<i4", (300,), [int(a * b + 0.3 * c + r.gauss(0, 0.4) > 0) for a, b, c, d in rows])
exec(sys.argv[1])
END_PY
arrays ""
cat > noisy.tn <<'END_TN'
model noisy(row: f32[4]) {
    return dense(row, 32) |> tanh |> dense(32) |> tanh |> dense(2)
}
train noisy {
    data      = "./noisy"(test = 0.2, validation = 0.2)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.03)
    batch     = 16
    shards    = 4
    epochs    = 24
}
END_TN
kept=(--set "keep=best(validation_loss)")
ended=("${kept[@]}" --set "stop=patience(5)")

# first_best LOG NAME SIGN: the first epoch whose value is the best; SIGN -1: the smallest is
first_best() { field "$1" epoch "$2" | tr ' ' '\n' | awk -v sign="$3" 'NF && (!best || sign * $1 > sign * value) { best = NR; value = $1 } END { print best }'; }
# end_by_patience LOG PATIENCE: the epoch after which a run with this patience for validation_loss ends
end_by_patience() {
    field "$1" epoch validation_loss | tr ' ' '\n' | awk -v most="$2" 'NF && !over { if (!best || $1 < value) { best = NR; value = $1 }; last = NR; over = NR - best == most } END { print last }'
}
epoch_value() { field "$1" epoch "$2" | cut -d ' ' -f "$3"; }
only() { field "$1" "$2" "$3" | tr -d ' '; }
# keeps TEXT LOG BEST WHOLE: the log of a run says that it leaves the weights of epoch BEST, which are those of this epoch in the log WHOLE
keeps() {
    same "$1: the best epoch" "$3" "$(only "$2" best epoch)"
    same "$1: the weights" "$(epoch_value "$4" weights_hash "$3")" "$(only "$2" end weights_hash)"
    for name in validation_loss validation_accuracy test_loss test_accuracy; do
        same "$1: $name" "$(epoch_value "$4" $name "$3")" "$(only "$2" best $name)"
    done
}

if part keep; then
    make noisy all
    make noisy kept "${kept[@]}"
    succeeds "without keep" ./all train --log all.log --save all.safetensors
    succeeds "keep" ./kept train --log kept.log --save kept.safetensors
    cp out kept.out
    same "keep changes no step" "$(hashes all.log)" "$(hashes kept.log)"
    best=$(first_best all.log validation_loss -1)
    [ "$best" -gt 3 ] && [ "$best" -lt 18 ] && ok || bad "the best epoch is $best of 24, so the test shows nothing"
    keeps "keep" kept.log "$best" all.log
    grep -q "^epoch  *$best/24 .*, the best so far$" kept.out && ok || bad "the line of the best epoch: $(grep "^epoch  *$best/" kept.out)"
    grep -q "^the weights are those of epoch $best, with the best validation_loss, 0\.[0-9]*: validation loss .*, test loss" kept.out && ok || bad "the last lines: $(tail -n 2 kept.out)"
    same "the last epoch's mark" "$best" "$(field kept.log epoch best_epoch | tr ' ' '\n' | grep . | tail -n 1)"
    succeeds "test" ./kept test --weights kept.safetensors --log test.log
    same "test of the saved weights" "$(only kept.log best test_loss)" "$(only test.log test test_loss)"
    same "the last line" "$(printf "%.4f" "$(only kept.log best test_accuracy)")" "$(sed -n 's/^test accuracy \([0-9.]*\), 24 epochs.*/\1/p' kept.out)"
    cmp -s all.safetensors kept.safetensors && bad "the best weights are those of the last epoch" || ok
    # The same with other numbers of threads, and with groups.
    for way in "--threads 1" "--threads 3" "--groups 2"; do
        # shellcheck disable=SC2086
        succeeds "$way" ./kept train $way --log way.log --save way.safetensors
        cmp -s kept.safetensors way.safetensors && ok || bad "$way: other weights"
    done
    # A result that is better when it is larger; the first of equal epochs; another name.
    make noisy accurate --set "keep=best(validation_accuracy)" --set "expect=test_accuracy > 0.99"
    succeeds "keep by accuracy" ./accurate train --log accurate.log
    best=$(first_best all.log validation_accuracy 1)
    keeps "keep by accuracy" accurate.log "$best" all.log
    grep -q "^expected test_accuracy > 0.99: $(printf "%.4f" "$(epoch_value all.log test_accuracy "$best")"), missed" out && ok || bad "the expectation: $(tail -n 3 out)"
    # Of equal epochs, the first one counts.
    make noisy still "${kept[@]}" --set "stop=patience(2)" --set "optimizer=sgd(lr=0)"
    succeeds "equal epochs" ./still train --log still.log
    same "equal epochs: the first one" "1" "$(only still.log best epoch)"
    same "equal epochs: the end" "3" "$(only still.log end epochs)"
    # The plan counts the copy.
    planned() { "$1" info --threads 2 | sed -n 's/^planned bytes: \([0-9]*\).*/\1/p'; }
    copy=$("$work/kept" info | sed -n 's/^planned bytes: .*, \([0-9]*\) for the best weights)$/\1/p')
    same "planned bytes" "$((copy + $(planned ./all)))" "$(planned ./kept)"
    [ "$copy" -ge $(((4 * 32 + 32 + 32 * 32 + 32 + 64 + 2) * 4)) ] && ok || bad "the copy has $copy bytes"
    same "the log's planned bytes" "$copy" "$(($(only kept.log start planned_bytes) - $(only all.log start planned_bytes)))"
    grep -q "^  best weights  *[0-9.]* kB   a copy" <<< "$("$TENON" show noisy.tn "${kept[@]}")" && ok || bad "show has no row for the best weights"

    # stop = patience(...): the result of keep, or validation_loss.
    make noisy ended "${ended[@]}" --set "expect=validation_loss <= 10"
    succeeds "patience" ./ended train --log ended.log --save ended.safetensors
    last=$(end_by_patience all.log 5)
    [ "$last" -lt 24 ] && ok || bad "a patience of 5 epochs does not end the training, so the test shows nothing"
    same "patience: epochs" "$last" "$(field ended.log epoch epoch | wc -w)"
    same "patience: why" "patience" "$(only ended.log end stopped)"
    same "patience: the epochs without a better one" "5" "$(field ended.log epoch waited_epochs | tr ' ' '\n' | grep . | tail -n 1)"
    grep -q "^stopped after epoch $last of 24: no better validation_loss than 0\.[0-9]* of epoch $((last - 5)) in 5 epochs (patience 5)$" out && ok || bad "patience: $(tail -n 4 out)"
    grep -q "^expected validation_loss <= 10: .*, met$" out && ok || bad "patience: the expectation is not compared: $(tail -n 3 out)"
    keeps "patience" ended.log $((last - 5)) all.log
    make noisy alone --set "stop=patience(2, validation_accuracy)"
    succeeds "patience without keep" ./alone train --log alone.log
    n=$(field alone.log epoch epoch | wc -w)
    same "patience without keep: epochs" "$n" "$(($(first_best alone.log validation_accuracy 1) + 2))"
    same "patience without keep: the last weights" "$(epoch_value all.log weights_hash "$n")" "$(only alone.log end weights_hash)"
    grep -q "^the weights are those" out && bad "patience without keep: $(tail -n 2 out)" || ok
    # --stop-at names its split, with and without a validation split.
    succeeds "--stop-at" ./kept train --stop-at 0.55 --log at.log
    grep -q "^stopped after epoch [0-9]* of 24: the validation accuracy is 0\.[0-9]*, at least 0.55 (--stop-at)$" out && ok || bad "--stop-at: $(tail -n 3 out)"
    same "--stop-at: why" "stop-at" "$(only at.log end stopped)"
    make noisy divided --set 'data="./noisy"(test = 0.2)'
    succeeds "--stop-at without validation" ./divided train --stop-at 0.55
    grep -q "^stopped after epoch [0-9]* of 24: the test accuracy is 0\.[0-9]*, at least 0.55 (--stop-at)$" out && ok || bad "--stop-at: $(tail -n 3 out)"

    # What is refused.
    check() { refuses "$1" "$2" "$TENON" check noisy.tn "${@:3}"; }
    check "a result of the test split" "'result' is a result of the validation split, this is test_loss" --set "keep=best(test_loss)"
    check "the help" "write validation_loss" --set "keep=best(test_loss)"
    check "no split" "the validation split has no result 'accuracy'" --set "keep=best(accuracy)"
    check "no split: the help" "write validation_accuracy" --set "stop=patience(3, accuracy)"
    check "a misspelt result" "did you mean 'validation_accuracy'" --set "keep=best(validation_acuracy)"
    check "a result that is not reported" "'noisy' has no r2 that 'keep' could watch" --set "keep=best(validation_r2)"
    check "the results that are" "it reports validation_loss, validation_accuracy" --set "stop=patience(3, validation_mae)"
    check "no result" "best is missing its argument 'result'" --set "keep=best"
    check "a number" "'result' is a result of the validation split" --set "keep=best(3)"
    check "no patience" "'epochs' is between 1 and 1000000, this is 0" --set "stop=patience(0)"
    check "another form" "there is no choice of weights 'last'" --set "keep=last"
    check "another end" "there is no end of training 'never'" --set "stop=never"
    make noisy whole "${ended[@]}" --set 'data="./noisy"(test = 0.2)'
    refuses "no validation split" "'keep' of the recipe watches validation_loss, and the data ./noisy have no validation split: write validation = 0.1 in the parentheses" ./whole train
    make noisy made --set "stop=patience(3)" --set "data=synthetic(samples = 64, test_samples = 32)"
    refuses "synthetic data" "'stop' of the recipe watches validation_loss, and synthetic data have no validation split: build without 'stop'" ./made train
    grep -qx "keep: the best validation_loss" <<< "$(./ended info)" && ok || bad "info: keep"
    grep -qx "stop: after 5 epochs without a better validation_loss" <<< "$(./ended info)" && ok || bad "info: stop"
    refuses "a script" "to pytorch writes scripts that train for all epochs and keep the last weights" \
        "$TENON" emit noisy.tn --to pytorch -o script.py "${kept[@]}" --set "data=synthetic(samples = 64, test_samples = 32)"
fi

if part kill; then
    # The best epoch is before the checkpoint, and a run has all epochs of its patience in several parts.
    make noisy ended "${ended[@]}"
    succeeds "a whole run" ./ended train --log whole.log --save whole.safetensors
    last=$(only whole.log end epochs) best=$(only whole.log best epoch) steps=$((($(only whole.log start samples) + 15) / 16))
    # resumed TEXT: a last part of the run leaves the weights and the epochs of the whole run
    resumed() {
        succeeds "$1" ./ended train --checkpoint c --resume --log part.log --save part.safetensors
        cmp -s whole.safetensors part.safetensors && ok || bad "$1: other weights than without a stop"
        same "$1: epochs" "$last" "$(field part.log end epochs | tr ' ' '\n' | grep . | tail -n 1)"
    }
    step() { printf 'c/step-%08d.safetensors' $(($1 * steps)); }
    rm -rf c; ./ended train --epochs $((best + 2)) --checkpoint c > out
    [ -f "$(step "$best")" ] && ok || bad "the checkpoint of the best epoch is not kept: $(ls c)"
    same "files" "3" "$(find c -type f -name '*.safetensors' | wc -l)"
    cp -r c saved
    resumed "resumed after the best epoch"
    resumed "resumed after the end"
    grep -q "^stopped after epoch $last of 24" out && ok || bad "resumed after the end: $(cat out)"
    # A kill before the last checkpoint was complete: the one before refers to the same best epoch.
    rm -rf c; cp -r saved c; rm "$(step $((best + 2)))"; resumed "the newest checkpoint is missing"
    rm -rf c; cp -r saved c; truncate -s 1000 "$(step $((best + 2)))"; resumed "the newest checkpoint is damaged"
    rm -rf c; cp -r saved c; rm "$(step "$best")"
    refuses "no best weights" "cannot be resumed: the best weights so far are those of epoch $best in c/step-[0-9]*.safetensors, and this file cannot be read: .*; put it back, or begin a new run with --weights" \
        ./ended train --checkpoint c --resume
    rm -rf c; cp -r saved c; printf x | dd of="$(step "$best")" bs=1 seek=3000 conv=notrunc 2> /dev/null
    refuses "damaged best weights" "this file is damaged, of another run, or not of the end of that epoch" ./ended train --checkpoint c --resume
    rm -rf c; cp -r saved c; ./ended train --epochs "$best" --seed 5 --checkpoint seed > out; cp "seed/$(basename "$(step "$best")")" c
    refuses "best weights of another run" "of another run, or not of the end of that epoch; put it back" ./ended train --checkpoint c --resume
    # Checkpoints in the middle of epochs: at each of them, the run is taken to be killed.
    rm -rf c; ./ended train --epochs $((best + 1)) --checkpoint c > out
    for more in 4 9 13; do
        ./ended train --checkpoint c --resume --checkpoint-every 5 --log middle.log > /dev/null 2> err & pid=$!
        sleep 0.0$more; kill -9 $pid 2> /dev/null || true; wait $pid 2> /dev/null || true
        [ -f "$(step "$best")" ] && ok || bad "the best weights are lost: $(ls c)"
    done
    resumed "killed"
    # A program that watches another result, or none, goes on with the same steps.
    rm -rf c; cp -r saved c
    make noisy other --set "keep=best(validation_accuracy)" --set "stop=patience(5)"
    succeeds "another result" ./other train --checkpoint c --resume --epochs $((best + 3)) --log other.log
    grep -q "has no best validation_accuracy: 'keep' counts from epoch $((best + 3)) on" out && ok || bad "another result: $(cat out)"
    same "another result: the best epoch" "$((best + 3))" "$(only other.log best epoch)"
    same "another result: the same steps" "$(epoch_value whole.log weights_hash $((best + 3)))" "$(only other.log epoch weights_hash)"
    same "files that are no longer needed" "2" "$(find c -type f -name '*.safetensors' | wc -l)"
    # Ranks: rank 0 reads the best weights of a checkpoint and sends them to the others.
    if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
        make noisy ranks "${ended[@]}" --comm mpi
        ranks() { timeout -k 5 120 mpirun -n 2 --bind-to none ./ranks train --threads 1 --log ranks.log "$@"; }
        succeeds "two ranks" ranks --epochs $((best + 2)) --checkpoint r
        succeeds "two ranks, resumed" ranks --checkpoint r --resume --save ranks.safetensors
        cmp -s whole.safetensors ranks.safetensors && ok || bad "two ranks: other weights"
        same "two ranks: epochs" "$last" "$(field ranks.log end epochs | tr ' ' '\n' | grep . | tail -n 1)"
    else
        skip "two ranks: no mpicc and mpirun"
    fi
    if deep "other number types, and a GPU"; then
        for type in f64 bf16; do
            make noisy typed --dtype $type "${ended[@]}"
            succeeds "$type" ./typed train --log typed.log --save typed.safetensors
            succeeds "$type: test" ./typed test --weights typed.safetensors --log test.log
            same "$type: test of the saved weights" "$(only typed.log best test_loss)" "$(only test.log test test_loss)"
            same "$type: the weights" "$(epoch_value typed.log weights_hash "$(only typed.log best epoch)")" "$(only typed.log end weights_hash)"
        done
        . "$TENON_ROOT/tests/cuda/shim.sh"
        shim_runtime
        if shim_gpu gpu "$work/noisy.tn" "${ended[@]}"; then
            succeeds "a GPU" ./gpu/gpu --log gpu.log --save gpu.safetensors
            keeps "a GPU" gpu.log "$(first_best gpu.log validation_loss -1)" gpu.log
            same "a GPU: epochs" "$(end_by_patience gpu.log 5)" "$(only gpu.log end epochs)"
            succeeds "a GPU, stopped" ./gpu/gpu --epochs "$(($(only gpu.log best epoch) + 2))" --checkpoint g
            succeeds "a GPU, resumed" ./gpu/gpu --checkpoint g --resume --save resumed.safetensors
            cmp -s gpu.safetensors resumed.safetensors && ok || bad "a GPU, resumed: other weights"
        else
            bad "no program over the stand-in"
        fi
    fi
fi
finish
