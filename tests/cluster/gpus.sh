#!/usr/bin/env bash
# gpus.sh -- programs for several GPUs, on hosts made of namespaces, with stand-ins for CUDA and NCCL (tests/cuda).  Processes connect
# over TCP between hosts, have the bits of one process, and notice a lost host.  Also the job script of
# `tenon emit --to slurm --target cuda`.
#
# NCCL's own connections between hosts are not tested: messages of the stand-in go through a file that all hosts see.  With
# CHECK_DEEP=1 (./check --deep) also a job on a Slurm that gives a GPU to each task; it is queued again when a rank is killed.
# Deep: test_tcp connects GPU ranks over TCP on one host, and faults.sh has lost hosts.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/slurm.sh"
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
export HOSTS=g$$
cd "$TENON_ROOT"
if [ "$(uname -m)" != x86_64 ] || ! command -v g++ > /dev/null; then skip "kernels on the processor: they need g++ and x86-64"; finish; exit; fi
"$hosts" able || { skip "no several hosts here: root, iproute2 and Open MPI make them"; finish; exit; }
slurm=$work/slurm port=$((20000 + $$ % 9000))
trap '"$hosts" down; rm -f "$slurm"/slurm*.pid; slurm_end' EXIT
. tests/cuda/shim.sh
export TMPDIR=$work
chmod 755 "$work"
small_mnist "$work/mnist" 24 12 || true
shim_runtime
shim_nccl
shim_gpu mlp models/mlp.tn --batch 8 --shards 4 --bucket 20k --comm nccl
"$hosts" up 4
mlp=("$work/mlp/gpu" --data "$work/mnist" --threads 1)
"${mlp[@]}" --epochs 2 --log "$work/one" > /dev/null
want=$(hashes "$work/one")

# start N EACH OPTIONS...: starts N ranks, EACH of them on each host, from node1 on.  Sets pid[rank]; $work/err.RANK
# has stderr.
start() {
    local n=$1 each=$2 r; shift 2
    port=$((port + 1)) pid=()
    rm -f "$work"/err.* "$work"/log
    for ((r = 0; r < n; r++)); do
        TENON_RANKS=$n TENON_RANK=$r TENON_MEET=node1:$port timeout -k 2 100 "$hosts" run $((r / each + 1)) "${mlp[@]}" "$@" > "$work/out.$r" 2> "$work/err.$r" < /dev/null &
        pid[r]=$!
    done
}
ended() { local r; code=(); for r in "${!pid[@]}"; do code[r]=0; wait "${pid[r]}" 2> /dev/null || code[r]=$?; done; }

# ---- between hosts: one GPU on each, and two on each of two
every=${CHECK_DEEP:-0}
for each in $([ "$every" = 0 ] || echo 1) 2; do
    start 4 $each --epochs 2 --log "$work/log-%r"
    ended
    same "4 ranks, $each a host: exit codes" "${code[*]}" "0 0 0 0"
    same "4 ranks, $each a host, and one" "$(hashes "$work/log-0")" "$want"
    same "rank 3's host, $each a host" "$(field "$work/log-3" start host)" "node$((3 / each + 1)) "
    rm -f "$work"/log-*
done

# ---- a lost host, and a broken connection
# lost TEXT PATTERN COMMAND...: COMMAND is the fault
lost() {
    local text=$1 pattern=$2 since; shift 2
    start 4 1 --epochs 4000 --timeout 3
    sleep 4
    since=$SECONDS
    "$@"
    ended
    [ "${code[0]} ${code[2]}" = "76 76" ] && ok || bad "$text: exit codes ${code[*]}"
    grep -Eqs "$pattern" "$work"/err.* && ok || { bad "$text: no word of '$pattern':"; head -n 3 "$work"/err.*; }
    [ $((SECONDS - since)) -le 25 ] && ok || bad "$text: $((SECONDS - since)) s"
}
lost "a host that is gone" "rank [023] \(node[134]\): error: rank 1 \(node2\) is gone" "$hosts" off 2

# ---- a Slurm that gives each task a GPU
deep "a cut line, and a job for GPUs on Slurm" || { finish; exit; }
lost "a line that is cut" "rank [012] \(node[123]\): error: .* longer than --timeout: rank 3 \(node4\) does not answer" "$hosts" cut 4
type slurmctld slurmd munged sbatch > /dev/null 2>&1 || { skip "no Slurm here: slurm-wlm and munge make it"; finish; exit; }
"$hosts" down
"$hosts" up 3
mkdir -p "$slurm"/{spool,tmp}/node{2,3}
touch "$slurm"/gpu{0,1}
echo "NodeName=node[2-3] Name=gpu File=$slurm/gpu[0-1]" > "$slurm/gres.conf"
port=$((port + 10))
slurm_conf "$HOSTS" node1 "node[2-3] Port=$((port + 1)) RealMemory=1000 Gres=gpu:2" "GresTypes=gpu"
on() { "$hosts" run 1 "$@"; }
on slurmctld -f "$SLURM_CONF"
for k in 2 3; do "$hosts" run $k slurmd -f "$SLURM_CONF" -N node$k; done
slurm_idle 2 on || { skip "Slurm's nodes do not come up here"; finish; exit; }
cd "$work"
"$TENON" emit "$TENON_ROOT/models/mlp.tn" --to slurm --target cuda --batch 8 --shards 4 -o .
cp mlp/gpu mlp.program
sed -i 's|^    \./mlp |    ./mlp.program |' mlp.sbatch           # mlp is a directory in this test
"${mlp[@]}" --epochs 12 --log whole > /dev/null
job=$(on sbatch --parsable --ntasks=4 --nodes=2 --cpus-per-task=1 mlp.sbatch --max-restarts 1 --epochs 12 --data "$work/mnist" --threads 1 --timeout 5 --checkpoint-every 1)
log=mlp-$job.jsonl
epochs() { { grep '"event":"epoch"' "$log" 2> /dev/null || true; } | wc -l; }
state() { on scontrol show job "$job" | tr ' ' '\n' | sed -n "s/^$1=//p"; }
for _ in $(seq 300); do [ "$(epochs)" -lt 3 ] || break; sleep 0.1; done
same "what each task asks for" "$(state TresPerTask)" gres:gpu:1
victim=$(for p in $(running "$work/./mlp.program"); do grep -qz "^SLURM_PROCID=2\$" "/proc/$p/environ" && echo "$p"; done | head -n 1) || true
kill -9 "$victim" || bad "rank 2 is not there: $(cat mlp-*.out)"
for _ in $(seq 600); do
    case $(state JobState) in COMPLETED | FAILED | CANCELLED | TIMEOUT) break ;; esac
    # Only once: Slurm delays a job that was queued again by two minutes.
    if [ "$(state Reason)" = BeginTime ] && [ -z "${let_go:-}" ]; then on scontrol update JobId="$job" StartTime=now+2; let_go=1; fi
    sleep 0.2
done
same "the job, its restarts, ranks that were lost" "$(state JobState) $(state Restarts) $(cat "mlp-$job.lost" 2> /dev/null)" "COMPLETED 1 1"
same "weights at the end" "$(hashes "$log" | tr ' ' '\n' | sort -u)" "$(hashes whole | tr ' ' '\n' | sort -u)"
same "ranks" "$(field "$log" start ranks)" "4 4 "
[ $failed = 0 ] || cat "mlp-$job.out"
finish
