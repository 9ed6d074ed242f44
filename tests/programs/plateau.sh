#!/usr/bin/env bash
# plateau.sh -- schedule = plateau(...): the rate of each epoch is that of PyTorch's ReduceLROnPlateau for the logged results; the same
# bits over threads, groups and ranks, and after a resume.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"
cd "$work"

cat > arrays.py <<'END_PY'
import json, os, random, sys
from npy import save
def made():
    """Labels with noise: the loss of the validation split goes down, and then up."""
    os.makedirs("noisy", exist_ok=True)
    r = random.Random(7)
    rows = [[r.uniform(-1, 1) for _ in range(4)] for _ in range(300)]
    save("noisy/x.npy", "<f4", (300, 4), [v for row in rows for v in row])
    save("noisy/y.npy", "<i4", (300,), [int(a * b + 0.3 * c + r.gauss(0, 0.4) > 0) for a, b, c, d in rows])
class ReduceLROnPlateau:
    """torch/optim/lr_scheduler.py, version 2.5, with threshold_mode "rel" and eps 0."""
    def __init__(self, lr, mode, factor, patience, threshold, cooldown, min_lr):
        self.lr, self.mode, self.factor, self.patience, self.threshold, self.cooldown, self.min_lr = lr, mode, factor, patience, threshold, cooldown, min_lr
        self.best = float("inf") if mode == "min" else -float("inf")
        self.cooldown_counter = self.num_bad_epochs = 0
    def is_better(self, a, best):
        return a < best * (1.0 - self.threshold) if self.mode == "min" else a > best * (self.threshold + 1.0)
    def step(self, current):
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.lr = max(self.lr * self.factor, self.min_lr)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
def follows(log, result, falls, **how):
    """Whether the rates of the log are those of the schedule, and fall so often."""
    s, rates = ReduceLROnPlateau(**how), []
    for line in open(log):
        r = json.loads(line)
        if r["event"] == "epoch":
            rates.append(r["lr"])
            if abs(r["lr"] - s.lr) > 1e-10 * s.lr:
                sys.exit("epoch %d: the rate is %g, not %g" % (r["epoch"], r["lr"], s.lr))
            s.step(r[result])
    print(rates)
    if len(set(rates)) != falls + 1:
        sys.exit("%d falls" % (len(set(rates)) - 1))
exec(sys.argv[1])
END_PY
arrays "made()"
cat > made.tn <<'END_TN'
model made(row: f32[4]) { return dense(row, 20) |> tanh |> dense(2) }
train made {
    data      = "./noisy"(test = 0.2, validation = 0.2)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.05)
    schedule  = plateau(patience = 2, factor = 0.5)
    batch     = 16
    shards    = 4
    epochs    = 24
}
END_TN
last() { hashes "$1" | awk '{ print $NF }'; }
make made made
succeeds "a smaller loss is better" ./made --log made.log --save made.safetensors
[ "$(grep -c "^the learning rate falls to .*: validation_loss has not improved enough on 0.5" out)" = 3 ] && ok || bad "the falls are not printed: $(cat out)"
succeeds "a smaller loss is better: the rates" arrays 'follows("made.log", "validation_loss", 3, lr=0.05, mode="min", factor=0.5, patience=2, threshold=1e-4, cooldown=0, min_lr=0)'
make made larger --set 'schedule=plateau(validation_accuracy, patience = 1, factor = 0.3, threshold = 0.02, cooldown = 3, end = 0.05)'
succeeds "a larger accuracy is better" ./larger --log larger.log
succeeds "a larger accuracy is better: the rates" arrays 'follows("larger.log", "validation_accuracy", 3, lr=0.05, mode="max", factor=0.3, patience=1, threshold=0.02, cooldown=3, min_lr=0.0025)'
make made tested --set 'data="./noisy"(test = 0.2)' --set 'schedule=plateau(test_loss, patience = 0, cooldown = 1, threshold = 0, warmup = 1.5)'
succeeds "the test split" ./tested --log tested.log --epochs 9
[ "$(field tested.log epoch lr | tr ' ' '\n' | sed 1,2d | sort -u | wc -l)" -gt 1 ] && ok || bad "the test split: $(field tested.log epoch lr)"
same "warm-up, at the end of the first epoch" "0.0333333333333 " "$(field tested.log epoch lr | cut -d ' ' -f 1) "

# Bits: threads, groups, a stop while epochs are counted, and in an epoch whose rate has fallen.
want=$(last made.log)
for how in "--threads 2" "--groups 4"; do
    # shellcheck disable=SC2086
    rm -f log; ./made $how --log log > out; same "$how" "$(last log)" "$want"
done
# The newest checkpoint is removed, as if the run had been killed before it was complete.
for stop in 15 17 18; do
    rm -rf c log; ./made --epochs $stop --checkpoint c --checkpoint-every 5 > out 2>&1; rm "$(find c -name 'step-*' | sort | tail -n 1)"
    succeeds "resumed in epoch $stop" ./made --checkpoint c --resume --log log --save resumed.safetensors
    grep -q "epoch $stop, step [1-9]" out && ok || bad "not resumed in epoch $stop: $(cat out)"
    cmp -s made.safetensors resumed.safetensors && ok || bad "resumed in epoch $stop: other weights"
    same "resumed in epoch $stop: the rates" "$(field made.log epoch lr | cut -d ' ' -f "$stop"-)" "$(field log epoch lr)"
done
rm -rf c; ./made --epochs 17 --checkpoint c > out 2>&1
succeeds "resumed after the epoch of a fall" ./made --checkpoint c --resume --save resumed.safetensors
cmp -s made.safetensors resumed.safetensors && ok || bad "resumed after the epoch of a fall: other weights"
refuses "another patience" "was made by another program" ./larger --checkpoint c --resume

make made none --set 'data="./noisy"(test = 0.2)'
refuses "no validation split" "the schedule of the recipe watches validation_loss, and the data ./noisy have no validation split: write validation = 0.1 in the parentheses of the data, or build with --set 'schedule=plateau\(test_loss, factor = 0.5, patience = 2\)'" ./none
# The way out keeps the other arguments of the schedule, and can be built.
make made none --set 'data="./noisy"(test = 0.2)' --set 'schedule=plateau(validation_accuracy, factor=0.25, patience=3, threshold=0.001, cooldown=2, end=0.05, warmup=1.5)'
way="schedule=plateau(test_accuracy, factor = 0.25, patience = 3, threshold = 0.001, cooldown = 2, end = 0.05, warmup = 1.5)"
refuses "no validation split, with other arguments" "or build with --set '${way//[()]/.}'$" ./none
make made other --set 'data="./noisy"(test = 0.2)' --set "$way"
succeeds "the way out" ./other --epochs 1
make made none --set 'data=synthetic(samples = 64)'
refuses "synthetic data" "and synthetic data have no validation split: build with --set 'schedule=plateau\(test_loss, factor = 0.5, patience = 2\)', or name other data" ./none
refuses "a script" "--to pytorch writes scripts whose learning rate does not depend on a result" "$TENON" emit made.tn --to pytorch --set "data=synthetic(samples = 64)" -o script

if deep "ranks, and a GPU"; then
    if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
        make made ranks --comm mpi
        ranks() { timeout -k 5 120 mpirun -n 2 --bind-to none ./ranks --threads 1 "$@"; }
        succeeds "two ranks" ranks --save ranks.safetensors
        cmp -s made.safetensors ranks.safetensors && ok || bad "two ranks: other weights"
        rm -rf c; ranks --epochs 18 --checkpoint c > out 2>&1
        succeeds "two ranks, resumed" ranks --checkpoint c --resume --save ranks.safetensors
        cmp -s made.safetensors ranks.safetensors && ok || bad "two ranks, resumed: other weights"
    else
        skip "two ranks: no mpicc and mpirun"
    fi
    . "$TENON_ROOT/tests/cuda/shim.sh"
    shim_runtime
    shim_gpu gpu "$work/made.tn" || { bad "no program over the stand-in"; finish; exit 1; }
    succeeds "a GPU" ./gpu/gpu --log gpu.log --save gpu.safetensors
    falls=$(($(field gpu.log epoch lr | tr ' ' '\n' | grep . | sort -u | wc -l) - 1))
    [ $falls -gt 0 ] && ok || bad "a GPU: the rate does not fall"
    succeeds "a GPU: the rates" arrays "follows('gpu.log', 'validation_loss', $falls, lr=0.05, mode='min', factor=0.5, patience=2, threshold=1e-4, cooldown=0, min_lr=0)"
    rm -rf c; ./gpu/gpu --epochs 18 --checkpoint c > out 2>&1
    succeeds "a GPU, resumed" ./gpu/gpu --checkpoint c --resume --save resumed.safetensors
    cmp -s gpu.safetensors resumed.safetensors && ok || bad "a GPU, resumed: other weights"
fi
finish
