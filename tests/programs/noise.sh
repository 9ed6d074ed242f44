#!/usr/bin/env bash
# noise.sh -- normal_like in a network: the same bits over threads, groups, ranks and a resume; other numbers in each epoch and with each
# seed; the same numbers in each evaluation; comparisons, where, clamp and stop_gradient beside the same network written without them.
#
# Parts: formulas
# Deep parts: bits
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$work"

make() { "$TENON" build "$1.tn" -o "$2" "${@:3}" > out 2>&1 || { bad "tenon build $*"; cat out; finish; exit 1; }; }
train="train %s { data = synthetic(samples = 80, test_samples = 30, classes = 3); loss = softmax_cross_entropy; optimizer = adam(lr = 0.01); batch = 16; shards = 4; epochs = 3 }\n"
{
    printf 'model noise(x: f32[11]) {\n    h = dense(x, 21) |> tanh\n    mean = dense(h, 37)\n    return dense(mean + exp(0.5 * dense(h, 37)) * normal_like(mean), 3)\n}\n'
    # shellcheck disable=SC2059
    printf "$train" noise
} > noise.tn

if part bits; then
    make noise noise
    succeeds "one thread" ./noise --threads 1 --log one.log --save one.safetensors
    for way in "--threads 2" "--threads 7" "--groups 2" "--groups 4"; do
        # shellcheck disable=SC2086
        succeeds "$way" ./noise $way --log way.log --save way.safetensors
        cmp -s one.safetensors way.safetensors && ok || bad "$way: other weights"
        same "$way: test loss" "$(field one.log epoch test_loss)" "$(field way.log epoch test_loss)"
    done
    rm -rf c; ./noise --epochs 2 --checkpoint c > out
    succeeds "resumed" ./noise --checkpoint c --resume --save way.safetensors
    cmp -s one.safetensors way.safetensors && ok || bad "resumed: other weights"

    # An evaluation has numbers of its own, which no seed changes.
    succeeds "test" ./noise test --weights one.safetensors --log test.log
    same "test after training" "$(field one.log epoch test_loss | awk '{ print $NF }')" "$(field test.log test test_loss | tr -d ' ')"
    ./noise --epochs 0 --save start.safetensors > out
    for seed in 1 2; do succeeds "seed $seed" ./noise --epochs 1 --seed $seed --weights start.safetensors --shuffle off --log seed$seed.log; done
    [ "$(field seed1.log epoch train_loss)" != "$(field seed2.log epoch train_loss)" ] && ok || bad "two seeds have the same noise"
    awk 'BEGIN { for (i = 0; i < 9; i++) { for (k = 0; k < 11; k++) printf "%s%.2f", k ? "," : "", (i * k % 7 - 3) / 4; print "" } }' > rows.csv
    for threads in 1 2; do succeeds "predict, $threads" ./noise predict --weights one.safetensors --input rows.csv --threads $threads --output p$threads.csv; done
    cmp -s p1.csv p2.csv && ok || bad "predict: other outputs with two threads"

    if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
        make noise ranks --comm mpi
        succeeds "two ranks" timeout -k 5 120 mpirun -n 2 --bind-to none ./ranks --threads 1 --save way.safetensors
        cmp -s one.safetensors way.safetensors && ok || bad "two ranks: other weights"
    else
        skip "two ranks: no mpicc and mpirun"
    fi

    make noise double --dtype f64
    succeeds "f64" ./double --log double.log
    witness noise.tn plain --dtype f64
    succeeds "f64, plain" ./plain --log plain.log
    nine() { tr ' ' '\n' | awk 'NF { printf "%.9f ", $1 }'; }
    same "optimised and plain" "$(field double.log epoch train_loss | nine)" "$(field plain.log epoch train_loss | nine)"
    same "optimised and plain: test" "$(field double.log epoch test_loss | nine)" "$(field plain.log epoch test_loss | nine)"
    if deep "bf16, and a GPU"; then
        make noise half --dtype bf16
        succeeds "bf16" ./half --threads 1 --log half.log
        succeeds "bf16, two threads" ./half --threads 2 --log half2.log
        same "bf16: threads" "$(hashes half.log)" "$(hashes half2.log)"
        if [ "$(uname -m)" = x86_64 ] && command -v g++ > /dev/null; then
            . "$TENON_ROOT/tests/cuda/shim.sh"
            shim_runtime
            shim_gpu gpu noise.tn --dtype f64
            succeeds "a GPU" ./gpu/gpu --log gpu.log
            same "a GPU: losses" "$(field double.log epoch train_loss | nine)" "$(field gpu.log epoch train_loss | nine)"
            same "a GPU: test" "$(field double.log epoch test_loss | nine)" "$(field gpu.log epoch test_loss | nine)"
            {
                printf 'model choices(x: f32[6, 4]) {\n    h = dense(x, 4)\n'
                printf '    a = where(h > 0.1, sin(h), 0.5 * cos(h)) * (0.3 <= h) + clamp(h, -0.4, 0.6) + cumsum(h, axis = 0) - cumsum(h, reverse = true)\n'
                printf '    return dense(concat(flatten(a * stop_gradient(h)), argmax(h), argmax(x, axis = 0)), 3)\n}\n'
                # shellcheck disable=SC2059
                printf "$train" choices
            } > choices.tn
            make choices choices --dtype f64
            succeeds "choices" ./choices --log choices.log
            shim_gpu chosen choices.tn --dtype f64
            succeeds "choices on a GPU" ./chosen/gpu --log chosen.log
            same "choices on a GPU: losses" "$(field choices.log epoch train_loss | nine)" "$(field chosen.log epoch train_loss | nine)"
        else
            skip "a GPU: it needs g++ and x86-64"
        fi
    fi
fi

if part formulas; then
    witness_level=-O0                                 # the programs compute few numbers
    # formula NAME BODY OTHER: two networks with equal losses in f64
    formula() {
        local name=$1 body i=0
        for body in "$2" "$3"; do
            i=$((i + 1))
            # shellcheck disable=SC2059
            { printf 'model m_%s(x: f32[7]) {\n    h = dense(x, 9)\n    g = dense(x, 9) |> tanh\n    return dense(%s, 3)\n}\n' "$name" "$body"; printf "$train" "m_$name"; } > "$name$i.tn"
            witness "$name$i.tn" "$name$i" --dtype f64
            succeeds "$name, form $i" "./$name$i" --log "$name$i.log"
        done
        same "$name" "$(field "${name}1.log" epoch train_loss)" "$(field "${name}2.log" epoch train_loss)"
    }
    formula where "where(h > 0, h, 0.25 * h) + g" "leaky_relu(h, slope = 0.25) + g"
    formula larger "where(h >= g, h, g)" "max(h, g)"
    formula clamped "clamp(h, 0, 6) + g" "relu6(h) + g"
    formula compared "h * (h != 0) + (g == g) * g" "h + g"
    formula less "g * (g < 0) + g * (g >= 0) + (g <= 2) * h" "g + h"
    # A NaN that is not taken does no harm.
    formula nan "where(h > 0, log(h), g)" "where(h > 0, log(max(h, 0.000000001)), g)"

    # Only != holds for NaN: the first column is NaN, the second 2.
    printf 'model nans(x: f32[2]) { n = sqrt(x); return concat(n > n, n >= n, n < n, n <= n, n == n, n != n) + 0 * dense(x, 12) }\n' > nans.tn
    printf 'train nans { data = synthetic(samples = 32); target = y: f32[12]; loss = mse; optimizer = sgd(lr = 0.1); batch = 16 }\n' >> nans.tn
    echo "-1,4" > nans.csv
    for form in optimised plain; do
        if [ $form = plain ]; then witness nans.tn nans; else make nans nans; fi
        ./nans --epochs 0 --save nans.safetensors > out
        succeeds "comparisons of NaN, $form" ./nans predict --weights nans.safetensors --input nans.csv --output nans.out.csv
        same "comparisons of NaN, $form" 0,0,0,1,0,0,0,1,0,1,1,0 "$(cat nans.out.csv)"
    done
    refuses "an empty range" "the range of clamp is empty: low is 1, high is -1" "$TENON" check <(printf 'model m(x: f32[4]) { return clamp(x, 1, -1) }\n')
fi
finish
