#!/usr/bin/env bash
# average.sh -- average = ema(...) and swa(...): averages of the weights, number by number; evaluations and saved weights are the averages,
# and training goes on with the weights; the same bits over threads, groups and ranks, and after a resume.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"
cd "$work"

cat > arrays.py <<'END_PY'
import json, os, random, struct, sys
from npy import save
def made(n):
    os.makedirs("made", exist_ok=True)
    r = random.Random(3)
    rows = [[r.uniform(-1, 1) for _ in range(4)] for _ in range(n)]
    save("made/x.npy", "<f4", (n, 4), [v for row in rows for v in row])
    save("made/y.npy", "<i4", (n,), [int(a * b + 0.3 * c + r.gauss(0, 0.4) > 0) for a, b, c, d in rows])
def read(path, ending=""):
    """The numbers of each tensor of type F64 whose name ends so, without the ending."""
    data = open(path, "rb").read()
    size, = struct.unpack("<Q", data[:8])
    entries = json.loads(data[8:8 + size])
    del entries["__metadata__"]
    part = lambda e: data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]]
    return {k[:len(k) - len(ending)]: list(struct.unpack("<%dd" % (len(part(e)) // 8), part(e)))
            for k, e in entries.items() if k.endswith(ending) and e["dtype"] == "F64"}
def average(result, paths, share):
    """Whether `result` holds the average of the weights in `paths`; share(i): that of the weights i in the new average."""
    a = read(paths[0])
    for i, path in enumerate(paths[1:], 1):
        w = read(path)
        a = {k: [x + share(i) * (y - x) for x, y in zip(a[k], w[k])] for k in a}
    sys.exit(a != read(result) or len(a) != 4)
exec(sys.argv[1])
END_PY
arrays "made(300)"
cat > made.tn <<'END_TN'
model made(row: f32[4]) { return dense(row, 20) |> tanh |> dense(2) }
train made {
    data      = "./made"(test = 0.2, validation = 0.2)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.03)
    batch     = 16
    shards    = 4
    epochs    = 8
}
END_TN
only() { field "$1" "$2" "$3" | tr -d ' '; }

# In f64, with one step an epoch: the weights of each step are those of a run that ends there.
whole=(--dtype f64 --batch 256 --shards 2)
make made raw "${whole[@]}"
make made ema "${whole[@]}" --set "average=ema(0.7)"
make made swa "${whole[@]}" --set "average=swa(from = 3)"
for epochs in 1 2 3 4 5 6; do ./raw --limit-samples 170 --epochs $epochs --save raw$epochs > out; done
for kind in ema swa; do succeeds "$kind" ./$kind --limit-samples 170 --epochs 6 --log $kind.log --save $kind.safetensors --checkpoint $kind.c; done
succeeds "ema: the numbers" arrays 'average("ema.safetensors", ["raw%d" % i for i in range(1, 7)], lambda i: 1 - 0.7)'
succeeds "swa: the numbers" arrays 'average("swa.safetensors", ["raw%d" % i for i in range(3, 7)], lambda i: 1 / (i + 1))'
succeeds "a checkpoint has both" arrays 'a = read("ema.c/step-00000006.safetensors", ".average"); b = read("ema.c/step-00000006.safetensors"); w = read("raw6")
sys.exit(a != read("ema.safetensors") or any(w[k] != b[k] for k in w))'
succeeds "swa before its first epoch" ./swa --limit-samples 170 --epochs 2 --save early
cmp -s raw2 early && ok || bad "swa before its first epoch: not the weights"
succeeds "no epoch" ./ema --limit-samples 170 --epochs 0 --save zero
./raw --limit-samples 170 --epochs 0 --save zero2 > out
cmp -s zero zero2 && ok || bad "no epoch: not the initial weights"

# What is evaluated and saved, and what is trained.
make made raw
make made ema --set "average=ema(0.9)"
succeeds "raw" ./raw --log raw.log
succeeds "ema, f32" ./ema --log ema.log --save ema.safetensors
grep -q "evaluations and saved weights are moving averages of the weights, with a decay of 0.9 in each step" out && ok || bad "the note: $(cat out)"
same "the same steps" "$(field raw.log epoch train_loss)" "$(field ema.log epoch train_loss)"
[ "$(field raw.log epoch test_loss)" != "$(field ema.log epoch test_loss)" ] && ok || bad "the averages give the test loss of the weights"
same "the log" "ema" "$(only ema.log start average)"
same "the hash at the end" "$(hashes ema.log | awk '{ print $NF }')" "$(only ema.log end weights_hash)"
succeeds "test" ./ema test --weights ema.safetensors --log test.log
same "test of the saved weights" "$(field ema.log epoch test_loss | awk '{ print $NF }')" "$(only test.log test test_loss)"
planned() { ./$1 info --threads 2 | sed -n 's/^planned bytes: \([0-9]*\).*/\1/p'; }
copy=$(./ema info | sed -n 's/^planned bytes: .*, \([0-9]*\) for averages)$/\1/p')
same "planned bytes" "$((copy + $(planned raw)))" "$(planned ema)"
same "the log's planned bytes" "$copy" "$(($(only ema.log start planned_bytes) - $(only raw.log start planned_bytes)))"
grep -q "^  averages  *[0-9.]* k*B   of the parameters" <<< "$("$TENON" show made.tn --set "average=ema(0.9)")" && ok || bad "show has no row for the averages"
# Bits: threads, groups, a kill in the middle of an epoch, ranks.
for way in "--threads 1" "--threads 3" "--groups 2" "--groups 4"; do
    # shellcheck disable=SC2086
    succeeds "$way" ./ema $way --save way.safetensors
    cmp -s ema.safetensors way.safetensors && ok || bad "$way: other averages"
done
# resumed TEXT FINAL COMMAND...: after a stop with a checkpoint in c, COMMAND saves the weights FINAL
resumed() {
    local text=$1 final=$2; shift 2
    succeeds "$text" "$@" --checkpoint c --resume --save part.safetensors
    cmp -s "$final" part.safetensors && ok || bad "$text: other averages"
}
# The newest checkpoint is removed, as if the run had been killed before it was complete; the one before is in the third epoch.
rm -rf c; ./ema --epochs 2 --checkpoint c > out 2>&1; resumed "resumed after an epoch" ema.safetensors ./ema
rm -rf c; ./ema --epochs 3 --checkpoint c --checkpoint-every 5 > out 2>&1; rm "$(find c -name 'step-*' | sort | tail -n 1)"
resumed "resumed in an epoch" ema.safetensors ./ema
grep -q "epoch 3, step [1-9]" out && ok || bad "resumed in an epoch: $(cat out)"
checkpoint=$(find c -name 'step-*' | sort | tail -n 1)
succeeds "test of a checkpoint" ./ema test --weights "$checkpoint" --log ended.log
same "a checkpoint has the averages" "$(only test.log test test_loss)" "$(only ended.log test test_loss)"
refuses "another average" "was made by another program" ./raw --checkpoint c --resume --epochs 9
make made swa --set "average=swa(from = 5)" --set "keep=best(validation_loss)"
succeeds "swa and keep" ./swa --log swa.log --save swa.safetensors
for stop in 3 6; do rm -rf c; ./swa --epochs $stop --checkpoint c > out 2>&1; resumed "swa, resumed after epoch $stop" swa.safetensors ./swa; done
same "swa and keep: the averages of the best epoch" "$(field swa.log epoch weights_hash | cut -d ' ' -f "$(only swa.log best epoch)")" "$(only swa.log end weights_hash)"
succeeds "swa, stopped before it begins" ./swa --epochs 3 --checkpoint early.c
succeeds "test of a checkpoint before swa begins" ./swa test --weights "$(find early.c -name 'step-*' | sort | tail -n 1)" --log early.log
same "a checkpoint before swa begins has the weights" "$(field swa.log epoch test_loss | cut -d ' ' -f 3)" "$(only early.log test test_loss)"
# The best averages, of an epoch before the stop.
make made kept --set "average=ema(0.9)" --set "keep=best(validation_loss)" --set optimizer.lr=0.1 --set epochs=24
succeeds "ema and keep" ./kept --log kept.log --save kept.safetensors
best=$(only kept.log best epoch)
[ "$best" -gt 1 ] && [ "$best" -lt 21 ] && ok || bad "the best epoch is $best of 24, so the test shows nothing"
same "ema and keep: the averages of the best epoch" "$(hashes kept.log | cut -d ' ' -f "$best")" "$(only kept.log end weights_hash)"
for stop in $best $((best + 2)); do rm -rf c; ./kept --epochs "$stop" --checkpoint c > out 2>&1; resumed "ema and keep, resumed after epoch $stop" kept.safetensors ./kept; done
if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
    make made ranks --comm mpi --set "average=ema(0.9)"
    ranks() { timeout -k 5 120 mpirun -n 2 --bind-to none ./ranks --threads 1 "$@"; }
    succeeds "two ranks" ranks --save ranks.safetensors
    cmp -s ema.safetensors ranks.safetensors && ok || bad "two ranks: other averages"
    rm -rf c; ranks --epochs 3 --checkpoint c > out 2>&1; resumed "two ranks, resumed" ema.safetensors ranks
else
    skip "two ranks: no mpicc and mpirun"
fi

# Running averages of batch_norm are those of the last step; frozen weights have no average.
cat > norm.tn <<'END_TN'
model norm(row: f32[4]) { return stem = dense(row, 20) |> batch_norm |> tanh |> dense(2) }
END_TN
sed -n '/^train/,$p' made.tn | sed 's/train made/train norm/' >> norm.tn
make norm norm --set "average=ema(0.9)" --set 'freeze="dense1.*"'
succeeds "batch_norm" ./norm --log norm.log --save norm.safetensors --checkpoint n
succeeds "batch_norm: test" ./norm test --weights norm.safetensors --log test.log
same "batch_norm: test of the saved weights" "$(field norm.log epoch test_loss | awk '{ print $NF }')" "$(only test.log test test_loss)"
file=$(find n -name 'step-*' | sort | tail -n 1)
[ "$(head -c 4000 "$file" | tr -d '\0' | grep -o '"[a-z0-9_]*\.[a-z_]*\.average"' | wc -l)" = 4 ] && ok || bad "batch_norm: averages of $(head -c 4000 "$file" | grep -o '"[a-z0-9_.]*average"' | tr '\n' ' ')"

# What is refused.
refuses "swa and batch_norm" "swa averages the weights, and the running averages of batch_norm fit the weights of the last step" "$TENON" check norm.tn --set "average=swa(from = 2)"
refuses "swa that never begins" "swa begins with epoch 9, and the recipe has 8" "$TENON" check made.tn --set "average=swa(from = 9)"
refuses "a decay of 1" "'decay' is at least 0 and below 1, this is 1" "$TENON" check made.tn --set "average=ema(1)"
refuses "another average" "there is no average 'mean'" "$TENON" check made.tn --set "average=mean"
refuses "ema of weights on the chip" "--kernels=persistent has no ema: weights can stay on the chip between two steps" "$TENON" show made.tn --target cuda --kernels=persistent --set "average=ema(0.9)"
refuses "ema of weights on the chip: the way out" "or write average = swa\(from = 6\)" "$TENON" emit made.tn --to cuda --kernels=persistent -o gpu --set "average=ema(0.9)"
grep -q "^  averages  *[0-9.]* [a-zA-Z]*   of the parameters" <<< "$("$TENON" show made.tn --target cuda --set "average=ema(0.9)")" && ok || bad "show has no row for the averages of a GPU"
refuses "a script of Keras" "to keras writes scripts without averages of the weights" "$TENON" emit made.tn --to keras --set "average=ema(0.9)" --set "data=synthetic(samples = 64)"

if deep "bf16, and a GPU"; then
    make made half --dtype bf16 --set "average=ema(0.9)"
    succeeds "bf16" ./half --log half.log --save half.safetensors
    succeeds "bf16: test" ./half test --weights half.safetensors --log test.log
    same "bf16: test of the saved weights" "$(field half.log epoch test_loss | awk '{ print $NF }')" "$(only test.log test test_loss)"
    . "$TENON_ROOT/tests/cuda/shim.sh"
    shim_runtime
    shim_nccl
    # gpu NAME OPTIONS...: ./gpu.NAME/gpu
    gpu() { shim_gpu "gpu.$1" "$work/made.tn" "${@:2}" || { bad "no program over the stand-in: $*"; finish; exit 1; }; }
    gpu plain; gpu swa --set "average=swa(from = 4)"; gpu ema --set "average=ema(0.9)"
    succeeds "a GPU without averages" ./gpu.plain/gpu --log plain.log
    for kind in swa ema; do
        succeeds "$kind on a GPU" ./gpu.$kind/gpu --log gpu.log --save gpu.safetensors
        same "$kind on a GPU: the same steps" "$(field plain.log epoch train_loss)" "$(field gpu.log epoch train_loss)"
        [ "$(field plain.log epoch test_loss)" != "$(field gpu.log epoch test_loss)" ] && ok || bad "$kind on a GPU: the test loss of the weights"
        succeeds "$kind on a GPU: test" ./gpu.$kind/gpu test --weights gpu.safetensors --log test.log
        same "$kind on a GPU: test of the saved weights" "$(field gpu.log epoch test_loss | awk '{ print $NF }')" "$(only test.log test test_loss)"
        for stop in 3 5; do rm -rf c; ./gpu.$kind/gpu --epochs $stop --checkpoint c > out 2>&1; resumed "$kind on a GPU, resumed after epoch $stop" gpu.safetensors ./gpu.$kind/gpu; done
        succeeds "$kind on a GPU, one step a launch" ./gpu.$kind/gpu --launch-steps 1 --save one.safetensors
        cmp -s gpu.safetensors one.safetensors && ok || bad "$kind on a GPU, one step a launch: other averages"
    done
    # The numbers, in f64, with each form of the update.
    for form in "" "clip=norm(0.1)"; do
        options=("${whole[@]}"); [ -z "$form" ] || options+=(--set "$form")
        gpu plain64 "${options[@]}"; gpu ema64 "${options[@]}" --set "average=ema(0.7)"
        for epochs in 1 2 3 4 5 6; do ./gpu.plain64/gpu --limit-samples 170 --epochs $epochs --save raw$epochs > out; done
        succeeds "ema on a GPU $form" ./gpu.ema64/gpu --limit-samples 170 --epochs 6 --save ema.f64
        succeeds "ema on a GPU $form: the numbers" arrays 'average("ema.f64", ["raw%d" % i for i in range(1, 7)], lambda i: 1 - 0.7)'
    done
    # Two GPUs, whose gradients are added in several buckets.
    two_gpus() {
        local port=$((20000 + RANDOM % 20000)) r rc=0 pids=()
        for r in 0 1; do
            TENON_RANKS=2 TENON_RANK=$r TENON_MEET=127.0.0.1:$port timeout -k 2 100 ./gpu.two/gpu "$@" > "two.$r" 2>&1 < /dev/null & pids+=($!)
        done
        for r in "${pids[@]}"; do wait "$r" || rc=$?; done
        return $rc
    }
    gpu two --comm nccl --bucket 256 --shards 2 --set "average=ema(0.9)"; gpu alone --shards 2 --set "average=ema(0.9)"
    [ "$(grep -c "update_average" gpu.two/*.cu)" -ge 3 ] && grep -q "unit == [1-9]" gpu.two/*.cu && ok || bad "two GPUs: one bucket only"
    succeeds "one GPU" ./gpu.alone/gpu --save alone.safetensors
    succeeds "two GPUs" two_gpus --save two.safetensors
    cmp -s alone.safetensors two.safetensors && ok || bad "two GPUs: other averages than one GPU"
fi
finish
