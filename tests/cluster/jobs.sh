#!/usr/bin/env bash
# jobs.sh -- the job script of `tenon emit --to slurm`, on a Slurm of its own with hosts made of namespaces.  The job continues by itself
# after a warning of the time limit, a killed rank and a lost node, and ends with the bits of an undisturbed run.
#
# Takes about a minute, with CHECK_DEEP=1 (./check --deep) only.  Skipped if Slurm or namespaces are missing.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/slurm.sh"
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
export HOSTS=j$$
deep "a job that loses a rank and a node" || { finish; exit; }
type mpicc slurmctld slurmd munged > /dev/null 2>&1 && "$hosts" able ||
    { skip "no Slurm on several hosts here: root, iproute2, Open MPI, slurm-wlm and munge make it"; finish; exit; }
slurm=$work/slurm port=$((20000 + $$ % 10000))
trap '"$hosts" down; rm -f "$slurm"/slurm*.pid; slurm_end' EXIT
chmod 755 "$work"

# ---- a Slurm: its controller on node1, slurmd on the others
mkdir -p "$slurm"/{spool,tmp}/node{2,3,4}
slurm_conf "$HOSTS" node1 "node[2-4] Port=$((port + 1)) RealMemory=1000" "MpiDefault=pmix
SlurmdTimeout=10"
"$hosts" up 4
on() { "$hosts" run 1 "$@"; }
on slurmctld -f "$SLURM_CONF"
for k in 2 3 4; do "$hosts" run $k slurmd -f "$SLURM_CONF" -N node$k; done
slurm_idle 3 on || { skip "Slurm's nodes do not come up here"; finish; exit; }

# ---- a job
small_mnist "$work/mnist" 640 300 || true
cd "$work"
"$TENON" build "$TENON_ROOT/models/lenet.tn" --comm mpi -o lenet
"$TENON" emit "$TENON_ROOT/models/lenet.tn" --to slurm -o .
./lenet --epochs 60 --data "$work/mnist" --log whole > /dev/null
export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_mpi_yield_when_idle=1
job=$(on sbatch --parsable --ntasks=2 --nodes=2 --cpus-per-task=1 lenet.sbatch --max-restarts 2 --epochs 60 --data "$work/mnist" \
    --timeout 5 --checkpoint-every 2)
log=lenet-$job.jsonl
epochs() { { grep '"event":"epoch"' "$log" 2> /dev/null || true; } | wc -l; }
state() { on scontrol show job "$job" | tr ' ' '\n' | sed -n "s/^$1=//p"; }
free=                                                 # the restart for which the wait of two minutes was shortened
# runs N: waits until the log has N more epochs, or the job has ended; shortens the two minutes that Slurm delays a
# requeued job
runs() {
    local until=$(($(epochs) + $1)) since=$SECONDS
    while [ "$(epochs)" -lt $until ] && [ $((SECONDS - since)) -lt 90 ]; do
        case $(state JobState) in COMPLETED | FAILED | CANCELLED | TIMEOUT) return ;; esac
        if [ "$(state Reason)" = BeginTime ] && [ "$(state Restarts)" != "$free" ]; then
            free=$(state Restarts)
            on scontrol update JobId="$job" StartTime=now+2
        fi
        sleep 0.5
    done
}
runs 4
[ "$(epochs)" -ge 4 ] && ok || { bad "the job does not run"; cat lenet-*.out; }

on scancel --signal=TERM "$job"
runs 4
[ "$(state Restarts)" = 1 ] && ok || bad "after a warning: $(state Restarts) restarts"
grep -q "saved in" "lenet-$job.out" && ok || bad "after a warning: no word of a checkpoint"

pid=$(for p in $(running "$work/./lenet"); do grep -qz "^SLURM_PROCID=1\$" "/proc/$p/environ" && echo "$p"; done | head -n 1) || true
kill -9 "$pid"
runs 4
[ "$(state Restarts)" = 2 ] && ok || bad "after a killed rank: $(state Restarts) restarts"
[ "$(cat "lenet-$job.lost" 2> /dev/null)" = 1 ] && ok || bad "a killed rank was not counted"

"$hosts" off 3
runs 4
[ "$(state Restarts)" = 3 ] && ok || bad "after a lost node: $(state Restarts) restarts"
case $(state NodeList) in *node3* | *2-3* | *3-4*) bad "the job has a lost node: $(state NodeList)" ;; *) ok ;; esac

runs 60
[ "$(state JobState)" = COMPLETED ] && ok || { bad "the job is $(state JobState)"; tail -n 5 "lenet-$job.out"; }
same "weights at the end" "$(hashes "$log" | tr ' ' '\n' | sort -u)" "$(hashes whole | tr ' ' '\n' | sort -u)"
[ $failed = 0 ] || cat "lenet-$job.out"
finish
