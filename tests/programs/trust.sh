#!/usr/bin/env bash
# trust.sh -- the optimizers lars and lamb: three steps equal a definition in Python, from the gradients that `grads` writes; equal bits
# for any threads, ranks and after a kill; programs for a GPU over the stand-in.
#
# Parts: definition bits
# Deep parts: gpu
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
. tests/cuda/shim.sh

# One batch is all samples, so a step is an epoch.  Filters, a bias, a scale of batch_norm, and a matrix with half of the decay.
cat > "$work/small.tn" <<'TN'
model small(x: f32[2, 6, 6]) {
    h = conv2d(x, 3, 3) |> batch_norm |> relu |> flatten
    return dense(h, 4)
}
train small {
    data = synthetic(samples = 12, test_samples = 12, classes = 4)
    loss = softmax_cross_entropy
    optimizer = sgd(lr = 1)
    factors = [decay("dense*.weight", 0.5)]
    batch = 12
    shards = 1
    epochs = 4
}
TN
lars='lars(lr = 0.5, momentum = 0.8, trust = 0.02, weight_decay = 0.01)'
nesterov='lars(lr = 0.5, momentum = 0.8, trust = 0.02, weight_decay = 0.01, nesterov = true)'
lamb='lamb(lr = 0.1, beta1 = 0.8, beta2 = 0.9, weight_decay = 0.1)'

cat > "$work/definition.py" <<'END_PY'
import json, math, struct, sys
def load(path):
    """Parameters of a safetensors file."""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    form = {"F32": "f", "F64": "d"}
    return {name: (struct.unpack(f"<{math.prod(t['shape'])}{form[t['dtype']]}", data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]), t["shape"])
            for name, t in json.loads(data[8:8 + n]).items() if name != "__metadata__" and t["dtype"] in form}
def norm(x):
    return math.sqrt(sum(v * v for v in x))
kind, directory, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
states, worst = {}, 0
for step in range(3):
    before, after, gradient = (load(f"{directory}/{name}.safetensors") for name in (f"{step}", f"{step + 1}", f"g{step}"))
    whole = norm([v for name in gradient if name in before for v in gradient[name][0]])
    scale = limit / whole if 0 < limit < whole else 1
    for name, (g, shape) in gradient.items():
        if name not in before or ".running_" in name:
            continue
        w, g = before[name][0], [v * scale for v in g]
        m, s = states.setdefault(name, ([0.0] * len(w), [0.0] * len(w)))
        share = 0 if len(shape) == 1 else 0.5 if name.startswith("dense") else 1         # of the decay
        if kind == "lamb":
            decay = 0.1 * share
            m[:] = [0.8 * a + 0.2 * b for a, b in zip(m, g)]
            s[:] = [0.9 * a + 0.1 * b * b for a, b in zip(s, g)]
            u = [a / (1 - 0.8 ** (step + 1)) / (math.sqrt(b / (1 - 0.9 ** (step + 1))) + 1e-6) + decay * x for a, b, x in zip(m, s, w)]
            q = norm(w) / norm(u) if len(shape) > 1 and norm(w) * norm(u) > 0 else 1
            new = [x - 0.1 * q * v for x, v in zip(w, u)]
        else:
            decay = 0.01 * share
            q = 0.02 * norm(w) / (norm(g) + decay * norm(w)) if len(shape) > 1 and norm(w) * norm(g) > 0 else 1
            g = [q * (a + decay * x) for a, x in zip(g, w)]
            m[:] = [0.8 * a + b for a, b in zip(m, g)]
            new = [x - 0.5 * (b + 0.8 * a if kind == "nesterov" else a) for x, a, b in zip(w, m, g)]
        worst = max([worst] + [abs(a - b) for a, b in zip(new, after[name][0])])
        assert max(abs(a - b) for a, b in zip(w, after[name][0])) > 1e-4 or len(shape) == 1, name + " has not changed"
print("equal" if worst < 1e-10 else f"weights differ by {worst}")
END_PY

# defined NAME LIMIT OPTIONS...: the weights after each of three steps, and the gradients before it
defined() {
    local name=$1 limit=$2 step; shift 2
    "$TENON" build "$work/small.tn" --dtype f64 -o "$work/p" "$@" > /dev/null
    mkdir -p "$work/$name"
    for step in 0 1 2 3; do
        "$work/p" --epochs "$step" --save "$work/$name/$step.safetensors" > /dev/null
        [ $step = 3 ] || "$work/p" grads --weights "$work/$name/$step.safetensors" --output "$work/$name/g$step.safetensors" > /dev/null
    done
    same "$name" equal "$(python3 "$work/definition.py" "${name%.*}" "$work/$name" "$limit" 2>&1)"
}

if part definition; then
    defined lars 0 --set "optimizer=$lars"
    defined lamb 0 --set "optimizer=$lamb"
    if deep "Nesterov's momentum and clipped gradients"; then
        defined nesterov 0 --set "optimizer=$nesterov"
        defined lars.clipped 0.05 --set "optimizer=$lars" --set "clip=norm(0.05)"
        defined lamb.clipped 0.05 --set "optimizer=$lamb" --set "clip=norm(0.05)"
    fi
fi

# trained NAME PROGRAM OPTIONS...: the hashes of all epochs
trained() {
    local log=$work/$1.log; shift
    rm -f "$log"
    "$@" --log "$log" > "$work/out" 2>&1 || { bad "$*"; tail -n 3 "$work/out"; }
    hashes "$log"
}

# One batch is 64 samples in 8 shards, and a matrix has more than one piece of 4096 numbers.
if part bits; then
    sed 's/dense(h, 4)/dense(h, 200) |> relu |> dense(4)/; s/samples = 12/samples = 128/g; s/batch = 12/batch = 64/; s/shards = 1/shards = 4/' "$work/small.tn" > "$work/wide.tn"
    for optimizer in "$lars" "$lamb"; do
        "$TENON" build "$work/wide.tn" -o "$work/p" --set "optimizer=$optimizer" > /dev/null
        one=$(trained one "$work/p" --threads 1)
        for options in "--threads 2" "--threads 7" "--groups 4"; do
            # shellcheck disable=SC2086
            same "${optimizer%%(*}: $options" "$one" "$(trained other "$work/p" $options)"
        done
        rm -rf "$work/c"
        "$work/p" --epochs 2 --checkpoint "$work/c" > /dev/null
        same "${optimizer%%(*}: resumed" "$(awk '{ print $NF }' <<< "$one")" "$(trained other "$work/p" --checkpoint "$work/c" --resume | awk '{ print $NF }')"
        if deep "lars and lamb over ranks, plain and in bf16" && command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
            export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
            "$TENON" build "$work/wide.tn" -o "$work/ranks" --comm mpi --set "optimizer=$optimizer" > /dev/null
            same "${optimizer%%(*}: two ranks" "$one" "$(trained other timeout -k 5 120 mpirun -n 2 --bind-to none "$work/ranks" --threads 1)"
            for options in --plain "--dtype bf16"; do
                # shellcheck disable=SC2086
                "$TENON" build "$work/wide.tn" -o "$work/q" --set "optimizer=$optimizer" $options > /dev/null
                trained other "$work/q" > /dev/null
                differs "${optimizer%%(*}: $options" "$(field "$work/one.log" epoch train_loss)" "$(field "$work/other.log" epoch train_loss)" 5e-2
            done
        fi
    done
fi

# A program for a GPU has the losses of the processor.
if part gpu; then
    shim_runtime
    shim lamb "$cuda/target.tn" --set "optimizer=$lamb"
    steps lamb
    shim lars "$cuda/target.tn" --set "optimizer=$lars" --set "clip=norm(0.05)"
    steps lars
    if deep "lamb in one launch, and in f16"; then
        shim_gpu one "$cuda/target.tn" --set "optimizer=$lamb" --kernels=persistent
        for order in 0 2; do same "lamb in one launch, order $order" "$(hashes "$work/lamb/0.jsonl")" "$(SHIM_ORDER=$order trained other "$work/one/gpu" --epochs 1)"; done
        shim_gpu half "$cuda/products.tn" --kernels=cudnn --dtype f16 --set "optimizer=$lamb"
        witness "$cuda/products.tn" "$work/half/cpu" --set "optimizer=$lamb"
        "$work/half/gpu" --log "$work/half.jsonl" --log-steps 1 > /dev/null 2>&1
        "$work/half/cpu" --log "$work/cpu.jsonl" --log-steps 1 > /dev/null
        differs "lamb in f16" "$(field "$work/cpu.jsonl" step train_loss)" "$(field "$work/half.jsonl" step train_loss)" 1e-2
    fi
fi
finish
