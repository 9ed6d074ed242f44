#!/usr/bin/env bash
# gpu_bench.sh -- all of bench/gpu, on a machine without a GPU: over the stand-ins of cuda.sh and cuda_libraries.sh, and a stand-in for
# nvidia-smi.
#
# Tested are: programs with Tenon's kernels and with the libraries are built, compared and measured; a program with another loss is
# rejected; a part stops after its minutes; results that are there stay when nothing is measured; errors of usage.  The figures mean nothing.
#
# Deep: it builds a dozen programs; their figures mean nothing here.
set -eu
# A background shell and nohup ignore signals that this script sends to its programs, and bash cannot undo that.
[ -z "$(trap -p HUP INT TERM)" ] || exec env --default-signal=HUP,INT,TERM "$BASH" "$0" "$@"
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
{ [ "$(uname -m)" = x86_64 ] && command -v g++ && command -v python3; } > /dev/null 2>&1 ||
    { skip "bench/gpu: it needs g++, x86-64 and python3"; finish; exit; }
. "$TENON_ROOT/tests/cuda/shim.sh"
shim_runtime
mkdir -p "$work/bin" "$work/home/bin"
ln -s "$(command -v python3)" "$work/home/bin/python"
cat > "$work/bin/nvidia-smi" <<'SH'
#!/usr/bin/env bash
case $* in
-L) echo "GPU 0: a stand-in" ;;
*compute_cap*) echo "${SMI_CAPABILITY:-9.0}" ;;
*clocks.sm,*) echo "1980, ${SMI_POWER:-321.50}, 2048" ;;
*) echo "a stand-in, 580.0, 141000, 1980, 700" ;;
esac
SH
chmod +x "$work/bin/nvidia-smi"

# measure OPTIONS...: measures an MLP with batch 64 in each form of program, in short bursts
measure() {
    PATH=$work/bin:$PATH SHIM=$work NVCC=$TENON_ROOT/tests/tools/nvcc python3 -B bench/driver/gpu.py --tenon "$TENON" --python "$work/home/bin/python" --out "$work" \
        --scratch "$work/scratch" --work 'mlp B=64$' --peer "^tenon" --rounds 1 --seconds 0.1 "$@" > "$work/out" 2>&1
}

# rows COLUMN [DIR]: that column of each row of the table
rows() { python3 -c 'import csv, sys; print(" ".join(r[sys.argv[2]] for r in csv.DictReader(open(sys.argv[1]))))' "${2:-$work}/gpu.csv" "$1"; }

measure && ok || bad "bench/gpu: $(tail -n 3 "$work/out")"
same "its programs" "tenon tenon, a step a launch tenon persistent, f32 tenon cudnn, f32 tenon cudnn, tf32 tenon cudnn, bf16 tenon cudnn, f16" "$(rows program)"
same "bursts of each" "1 1 1 1 1 1 1" "$(rows bursts)"
same "the clock" "1980.0 1980.0 1980.0 1980.0 1980.0 1980.0 1980.0" "$(rows clock_mhz)"
grep -q "with a step a launch [0-9.]*x of our own kernels" "$work/out" && ok || bad "a step a launch is not said beside the default: $(cat "$work/out")"
grep -q "many steps in one launch [0-9.]*x of our own kernels" "$work/out" && ok || bad "many steps in one launch are not said beside our kernels: $(cat "$work/out")"
grep -q "with NVIDIA's libraries [0-9.]*x of our own kernels" "$work/out" && ok || bad "the libraries are not said beside our kernels: $(cat "$work/out")"
python3 -c 'import json, sys; f = json.load(open(sys.argv[1])); sys.exit(f["machine"]["GPU"] != "a stand-in, 580.0, 141000, 1980, 700" or len(f["rows"]) != 7)' "$work/gpu.json" &&
    ok || bad "gpu.json: $(cat "$work/gpu.json")"
# Two networks start together: a python that has neither PyTorch nor JAX says so for each.
measure --work 'mlp B=(64|512)$' --peer "^jax|torch graph, f32" --jobs 2 --together --out "$work/two" && ok || bad "two networks: $(tail -n 3 "$work/out")"
same "programs of two networks" "tenon jax, f32 torch graph, f32 tenon jax, f32 torch graph, f32" "$(rows program "$work/two")"
same "bursts of two networks" "1 0 0 1 0 0" "$(rows bursts "$work/two")"
grep -q "^mlp B=512:  jax, f32: not installed" "$work/out" && ok || bad "no line of a network that starts beside another: $(cat "$work/out")"
# peer TEXT: a python that says TEXT when it starts a program of PyTorch or JAX
peer() {
    mkdir -p "$work/peer/bin"
    printf '#!/bin/sh\ncase $1 in -c) exit 0 ;; esac\n%s\n' "$1" > "$work/peer/bin/python"
    chmod +x "$work/peer/bin/python"
}
# A program of JAX that ends before it is asked has a row that says so, and the others are measured.
peer "echo 'ready {}'"
measure --python "$work/peer/bin/python" --peer "^jax" --out "$work/ended" && ok || bad "a peer that ends: $(tail -n 3 "$work/out")"
same "bursts beside a peer that ends" "1 0" "$(rows bursts "$work/ended")"
grep -q "  jax, f32: it ended: it said nothing" "$work/out" && ok || bad "a peer that ends is not said: $(cat "$work/out")"
# An interrupt waits for no program that has not answered, and starts no other.
peer "touch '$work/started'; exec sleep 300"
PATH=$work/bin:$PATH SHIM=$work NVCC=$TENON_ROOT/tests/tools/nvcc python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp("python3", ["python3", "-B", "bench/driver/gpu.py", *sys.argv[1:]])' --tenon "$TENON" --python "$work/peer/bin/python" --out "$work/ended" \
    --scratch "$work/scratch" --work 'mlp B=64$' --peer '^jax|torch graph' > "$work/out" 2>&1 & interrupted=$!
for ((i = 0; i < 1200; i++)); do [ ! -e "$work/started" ] || break; sleep 0.05; done
rm -f "$work/started"
kill -INT $interrupted; since=$SECONDS
wait $interrupted && bad "an interrupt is not said" || ok
[ $((SECONDS - since)) -le 10 ] && [ ! -e "$work/started" ] && ok || bad "an interrupt takes $((SECONDS - since)) s, or starts another program"
SMI_POWER='[N/A]' FAKE_CUBLAS=wrong measure --peer "cudnn, f32" && ok || bad "bench/gpu with a library that computes something else: $(tail -n 3 "$work/out")"
grep -q "tenon cudnn, f32 *refused: its first loss is" "$work/out" && ok || bad "a wrong loss is not refused: $(cat "$work/out")"
same "a power that nvidia-smi does not know" " clock 1980.0" "$(rows power_w | tr -d ' ') clock $(rows clock_mhz | cut -d' ' -f1)"
cp "$work/gpu.json" "$work/kept.json"
# unmeasured TEXT PATTERN OPTIONS...: bench/gpu ends with 1, says so, and leaves the results
unmeasured() {
    local text=$1 line=$2 rc=0; shift 2
    measure "$@" || rc=$?
    same "$text: exit code" 1 $rc
    grep -Eq -e "$line" "$work/out" && ! grep -q Traceback "$work/out" && ok || bad "$text: no line '$line' in: $(tail -n 3 "$work/out")"
    cmp -s "$work/gpu.json" "$work/kept.json" && ok || bad "$text: gpu.json is another"
}
unmeasured "without minutes" "^  not measured: the part's minutes were over" --minutes 0
mkdir "$work/empty"
unmeasured "programs that are not there" "^gpu: nothing was measured; the results in .* are as before" --programs "$work/empty"
unmeasured "no compiler" "^gpu: no compiler at /none" --tenon /none
unmeasured "no jobs" "^gpu: --jobs is a whole number from 1 on" --jobs 0
unmeasured "no works" "^gpu: nothing of that name: lenet B=64; " --work nothing
unmeasured "a regex of works" "^gpu: argument --work: '\('" --work '('
unmeasured "a regex of programs" "^gpu: argument --peer: '\['" --peer '['
unmeasured "no scratch" "^gpu: /proc/none: " --scratch /proc/none
unmeasured "no directory of results" "^gpu: /proc/none: " --out /proc/none
unmeasured "an unknown option" "^gpu: unrecognized arguments: --zz" --zz
SMI_CAPABILITY='[N/A]' unmeasured "a GPU of unknown capability" "^gpu: nvidia-smi does not say .*: '\[N/A\]'"
unmeasured "programs that cannot be built" "^  mlp B=64 : " --build-only sm_90 --tenon false
same "all networks" "inception_v3 lenet lstm_synthetic mlp resnet50 resnet50_cifar10 resnet56_cifar10 " \
    "$(bench/gpu --list | sed 's/ .*//' | sort -u | tr '\n' ' ')"
refuses "predictions for an unknown GPU" "--arch takes sm_80" bench/predict foo
refuses "predictions for two GPUs" "^predict: one word only" bench/predict sm_80 sm_90
measure --build-only sm_90 && ok || bad "bench/gpu --build-only: $(tail -n 3 "$work/out")"
finish
