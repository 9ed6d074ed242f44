#!/usr/bin/env bash
# sweep.sh -- `tenon sweep --slurm`: the tasks of a job array fill one store, and each run is made once; started by hand, and by Slurm.
#
# The Slurm (two nodes, which are this machine) only with CHECK_DEEP=1 (./check --deep), and if root, slurm-wlm and munge are available.
set -uo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/slurm.sh"
if "$TENON" sweep --help 2>&1 | grep -q 'left out when this tenon was built'; then skip "built without SQLite or cJSON"; finish; exit; fi
cd "$work"
cp "$TENON_ROOT/models/mlp.tn" .
plan=(mlp.tn --batch 50,60,128 --threads 1 --steps 3 --repeat 2 --retries 0 --label 'a b')
stored() { "$TENON" results list --store "$1" 2> /dev/null | tail -n +2 | wc -l; }

# The script, whose tasks are started by hand.
succeeds "a job array" "$TENON" sweep "${plan[@]}" --slurm 2 --store out.db
grep -q '^out.sbatch: 2 tasks; sbatch out.sbatch' out && [ ! -e out.db ] && ok || bad "what is said of it: $(cat out)"
bash -n out.sbatch && ok || bad "out.sbatch is no script: $(cat out.sbatch)"
grep -q "^#SBATCH --array=1-2$" out.sbatch && grep -q -- "--label 'a b'" out.sbatch && ok || bad "out.sbatch: $(cat out.sbatch)"
for i in 1 2; do succeeds "task $i by hand" env SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_JOB_ID=1 bash out.sbatch; done
same "runs of part 1, of part 2, of both" "$(stored out.part-1.db) $(stored out.part-2.db) $(stored out.db)" "4 2 6"
succeeds "a task again" env SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_JOB_ID=1 bash out.sbatch
grep -q '^4 of 4 runs are stored already' out && grep -q '^out.db: 0 runs added, 4 were there' out && ok || bad "it made or merged runs again: $(cat out)"
succeeds "the sweep into the one store" "$TENON" sweep "${plan[@]}" --store out.db
grep -q '^6 of 6 runs are stored already' out && ok || bad "the merged store does not count as done: $(cat out)"
succeeds "tasks for each program at most" "$TENON" sweep "${plan[@]}" --slurm 9 --store many.db
grep -q '^3 tasks instead of 9' out && ok || bad "nine tasks of three programs: $(cat out)"
refuses "a part that is not there" "--part needs I/N, from 1/3 to 3/3 here, not '4/3'" "$TENON" sweep "${plan[@]}" --part 4/3
refuses "no part" "--part needs I/N, from 1/3 to 3/3 here, not 'two'" "$TENON" sweep "${plan[@]}" --part two

# Merging of stores: equal runs are recognised; another run of the same repeat is one more attempt; epochs and texts
# are copied.
succeeds "the same configuration elsewhere" "$TENON" sweep "${plan[@]}" --batch 50 --store else.db
succeeds "both" "$TENON" results merge out.db else.db --store all.db
grep -q '^all.db: 8 runs added, 0 were there' out && ok || bad "merging: $(cat out)"
"$TENON" results show 7 --store all.db > show
grep -Eq '^ *attempt +2$' show && grep -q 'model mlp(' show && grep -q '  cpu: ' show && ok || bad "a merged run: $(cat show)"
refuses "a store into itself" "all.db is the store to merge into" "$TENON" results merge all.db --store ./all.db
refuses "a store that is not there" "there is no store none.db" "$TENON" results merge none.db --store all.db
same "what is there stays" "$(stored all.db)" 8

# A Slurm.
deep "a job array on a Slurm" || { finish; exit; }
type slurmctld slurmd munged sbatch > /dev/null 2>&1 && [ "$(id -u)" = 0 ] || { skip "no Slurm here: root, slurm-wlm and munge make it"; finish; exit; }
slurm=$work/slurm port=$((20000 + $$ % 10000))
trap slurm_end EXIT
chmod 755 "$work"
mkdir -p "$slurm"/{spool,tmp}/n{1,2}
slurm_conf sweep$$ "$(hostname -s)(127.0.0.1)" "n[1-2] NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 2))] RealMemory=100"
slurmctld -f "$SLURM_CONF"
for k in 1 2; do slurmd -f "$SLURM_CONF" -N n$k; done
slurm_idle 2 env || { skip "Slurm's nodes do not come up here"; finish; exit; }
# settle JOB SECONDS: waits until no task of the job is queued or running
settle() { for _ in $(seq $(($2 * 5))); do [ -n "$(squeue -h -j "$1" 2> /dev/null)" ] || return 0; sleep 0.2; done; bad "job $1 is not done: $(squeue)"; }

succeeds "a job array" "$TENON" sweep "${plan[@]}" --slurm 3 --store queued.db
job=$(sbatch --parsable queued.sbatch)
settle "$job" 120
same "runs of three tasks on two nodes" "$(stored queued.db)" 6
# A task that gets the signal before its time limit is queued again, and continues.
succeeds "a longer one" "$TENON" sweep mlp.tn --batch 50,60 --threads 1 --steps 20000 --repeat 6 --retries 0 --slurm 2 --store long.db
job=$(sbatch --parsable long.sbatch)
for _ in $(seq 300); do [ "$(stored long.part-1.db)" -ge 2 ] && break; sleep 0.2; done
scancel --batch --signal=TERM "${job}_1"
for _ in $(seq 100); do grep -q 'the same command continues' sweep-"$job"-1.out && break; sleep 0.2; done
grep -q 'stopped after [1-5] of 6 runs; the same command continues' sweep-"$job"-1.out && ok || bad "the signal did not reach the sweep: $(cat sweep-"$job"-1.out)"
for _ in $(seq 100); do    # Slurm holds a job back for two minutes that was queued again
    scontrol update JobId="${job}_1" StartTime=now+2 2> /dev/null
    sleep 0.2
    [ "$(squeue -h -t R -j "${job}_1" 2> /dev/null | wc -l)" = 0 ] || break
done
settle "$job" 240
same "all runs of both, once" "$(stored long.db)" 12
grep -Eq '^[1-5] of 6 runs are stored already' sweep-"$job"-1.out && ok || bad "the task began anew: $(cat sweep-"$job"-1.out)"
finish
