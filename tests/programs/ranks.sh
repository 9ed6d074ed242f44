#!/usr/bin/env bash
# ranks.sh -- one training run by several processes has the bits of one process, for any division of the shards; and the end of a run
# when a rank is killed, stopped, started wrongly or has other data.  Needs an MPI (mpicc, mpirun); otherwise skipped.
#
# Parts: bits layers ends
# Deep parts: dropout
set -euo pipefail
. "$(dirname "$0")/../common.sh"
command -v mpicc > /dev/null && command -v mpirun > /dev/null || { skip "no mpicc and mpirun"; finish; exit; }

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none          # containers forbid it, and Open MPI reports that on stderr
timeout -k 5 60 mpirun -n 2 true > /dev/null 2>&1 || { skip "mpirun cannot start two processes here"; finish; exit; }
build_mpi() { local model=$1 program=$2; shift 2; build "$model" "$program" --comm mpi "$@"; }
# ranks N COMMAND...: with a time limit, so that a run that hangs is a failure and does not stop the tests
ranks() { local n=$1; shift; timeout -k 5 120 mpirun -n "$n" --bind-to none "$@"; }
small_mnist "$work/mnist" 640 300 || true

# ---- the same bits
# hash RANKS PROGRAM OPTIONS...
hash() {
    local n=$1; shift
    rm -f "$work/log"
    ranks "$n" "$@" --epochs 2 --threads 1 --data "$work/mnist" --log "$work/log" > "$work/out" 2>&1 || { tail -n 5 "$work/out"; return; }
    [ "$(field "$work/log" start ranks)" = "$n " ] && hashes "$work/log"
}
if part bits || part ends; then
    build_mpi mlp "$work/mlp"
    build_mpi mlp "$work/six" --batch 96 --shards 6
    build mlp "$work/alone"
fi

if part bits; then
    "$work/alone" --epochs 2 --data "$work/mnist" --log "$work/log.mlp" > /dev/null
    want=$(hashes "$work/log.mlp")
    several="2 4" halves=3 links=2
    if deep "other numbers of ranks"; then several="1 2 4 8" halves="2 3 6" links="2 3"; fi
    for n in $several; do
        same "mlp, $n ranks, and --comm none" "$(hash $n "$work/mlp" | tail -n 1)" "$want"
    done
    grep -q $'\r' "$work/out" && bad "a progress bar in mpirun's output to a file" || ok
    # The gradient in buckets of any size, which are added while the backward pass continues.
    build_mpi mlp "$work/small" --bucket 4k
    same "mlp, 2 ranks, buckets of 4 kB" "$(hash 2 "$work/small" | tail -n 1)" "$want"
    grep -q "waiting for ranks [0-9]* % of the time: [0-9]* % of the communication" "$work/out" && ok || bad "no word of the communication that was not hidden"
    [ "$(field "$work/log" epoch comm_wait_seconds | wc -w)" = 2 ] && ok || bad "the log does not say how long rank 0 waited"
    succeeds "bench until the median is known, 2 ranks" ranks 2 "$work/mlp" bench --seconds 0.5 --threads 1 --timeout 20
    succeeds "bench --trace --layers, 2 ranks" ranks 2 "$work/mlp" bench --steps 3 --threads 1 --timeout 20 --layers --trace "$work/trace.json"
    grep -q '"ph":"X"' "$work/trace.json" && ok || bad "no trace of two ranks"
    succeeds "--trace, 2 ranks" ranks 2 "$work/mlp" --epochs 1 --limit-samples 256 --data "$work/mnist" --threads 1 --timeout 20 --trace "$work/trace.json"
    "$work/six" --epochs 2 --data "$work/mnist" --log "$work/log.six" > /dev/null
    want=$(hashes "$work/log.six")
    for n in $halves; do
        same "6 shards, $n ranks" "$(hash $n "$work/six" | tail -n 1)" "$want"
    done
    for groups in 2 3 6; do
        rm -f "$work/log"
        "$work/six" --epochs 2 --data "$work/mnist" --log "$work/log" --groups $groups > /dev/null
        same "6 shards, $groups groups" "$(hashes "$work/log")" "$want"
    done

    # ---- bf16 between ranks: other bits, the same in each run, and nearly the same network in the end
    for run in 1 2; do
        rm -f "$work/log"
        succeeds "bf16, run $run" ranks 2 "$work/mlp" --wire bf16 --epochs 4 --data "$work/mnist" --threads 1 --log "$work/log"
        bits[run]=$(hashes "$work/log") loss[run]=$(field "$work/log" epoch test_loss | awk '{ print $4 }')
    done
    same "bf16 twice" "${bits[1]}" "${bits[2]}"
    rm -f "$work/log"
    succeeds "f32 beside it" ranks 2 "$work/mlp" --wire f32 --epochs 4 --data "$work/mnist" --threads 1 --log "$work/log"
    [ "${bits[1]}" != "$(hashes "$work/log")" ] && ok || bad "bf16 has the bits of f32"
    awk -v a="${loss[1]}" -v b="$(field "$work/log" epoch test_loss | awk '{ print $4 }')" 'BEGIN { exit !(a > 0.99 * b && a < 1.01 * b) }' && ok || bad "bf16 trains to another loss: ${loss[1]}"
    refuses "half" "f32 or bf16, not 'f16'" "$work/mlp" --wire f16

    # ---- the measured link between ranks: for a power of two of ranks, and for other numbers.  Rank 1 is late with
    # sums of the steps, so that rank 0 waits also on a loaded machine.
    cat > "$work/late.c" << 'END'
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int MPI_Isend(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    static int late = 40;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (n > 100000 && rank && !strcmp(rank, "1") && late-- > 0)
        usleep(20000);
    return PMPI_Isend(from, n, type, to, tag, comm, request);
}
END
    mpicc -shared -fPIC "$work/late.c" -o "$work/late.so"
    for n in $links; do
        rm -f "$work/log"
        succeeds "bench --comm, $n ranks" ranks $n -x LD_PRELOAD="$work/late.so" "$work/six" bench --comm --steps 3 --threads 1 --log "$work/log"
        # All nine sizes, unless a sum took half a second, as it can on a loaded machine: then it is the last one.
        field "$work/log" comm seconds | tr ' ' '\n' | awk '$1 != "" { n++; if (!($1 > 0) || slow) exit bad = 1; slow = $1 >= 0.5 } END { exit bad || !(n == 9 || (slow && n < 9)) }' && ok ||
            bad "sizes, all with a time: $(field "$work/log" comm seconds)"
        grep -q "measured: [0-9.]* ms, [0-9.]* ms not hidden" "$work/out" && ok || bad "bench --comm does not set the measured step beside the expected"
        # (The measured time can be longer than the sums: a rank also waits for late ranks.)
        awk -v a="$(field "$work/log" scale not_hidden_percent)" -v b="$(field "$work/log" scale model_not_hidden_percent)" 'BEGIN { exit !(a > 0 && b > 0 && b <= 100) }' && ok ||
            bad "what was not hidden, and what the model says: $(cat "$work/log")"
    done
    succeeds "the scale model" "$work/mlp" bench --scale 8.3
    same "a row for each number of ranks" "1 2 4 8 16 32 64 128 256 512 1024 " "$(awk '$1 == "|" && $2 ~ /^[0-9]+$/ && / ms, [0-9]+ %/ { printf "%s ", $2 }' "$work/out")"
    if deep "the bits of LeNet, and the figures of its scale model"; then
        build_mpi lenet "$work/lenet"
        build lenet "$work/lenet1"
        "$work/lenet1" --epochs 2 --data "$work/mnist" --log "$work/log.lenet" > /dev/null
        for n in 2 4; do same "lenet, $n ranks, and --comm none" "$(hash $n "$work/lenet" | tail -n 1)" "$(hashes "$work/log.lenet")"; done
        succeeds "the scale model of LeNet" "$work/lenet" bench --scale 8.3 # figures of the formulas, computed independently of the program
        grep -q "^| 1024 | 9.4 ms, 89 %, 0.76 ms | 8.7 ms, 95 %, 0.12 ms | 8.7 ms, 96 %, 0.04 ms |$" "$work/out" && ok || bad "the scale model: $(cat "$work/out")"
    fi
    refuses "a scale without ranks" "build with --comm mpi" "$work/alone" bench --scale 8.3
    refuses "bench --comm alone" "mpirun -n 2 PROG bench --comm" "$work/six" bench --comm

    # ---- another MPI: the same bits; with the wrong mpirun, a program says that it is a single task
    if command -v mpicc.mpich > /dev/null && command -v mpirun.mpich > /dev/null; then
        MPICC=mpicc.mpich "$TENON" build "$TENON_ROOT/models/mlp.tn" --comm mpi -o "$work/mpich"
        want=$(hashes "$work/log.mlp")
        rm -f "$work/log"
        succeeds "MPICH, 2 ranks" timeout -k 5 120 mpirun.mpich -n 2 "$work/mpich" --epochs 2 --threads 1 --data "$work/mnist" --log "$work/log"
        same "MPICH, 2 ranks, and --comm none" "$(hashes "$work/log")" "$want"
        refuses "the other MPI's mpirun" "the mpirun of the MPI that it was built with" timeout -k 5 60 mpirun.mpich -n 2 "$work/mlp" --epochs 1
    else
        skip "no MPICH beside the first MPI"
    fi

    # ---- checkpoints: another number of ranks continues
    rm -f "$work/log" "$work/whole"
    "$work/mlp" --epochs 3 --data "$work/mnist" --log "$work/whole" > /dev/null
    succeeds "2 ranks save" ranks 2 "$work/mlp" --epochs 1 --data "$work/mnist" --checkpoint "$work/c" --log "$work/log"
    succeeds "4 ranks go on" ranks 4 "$work/mlp" --epochs 2 --data "$work/mnist" --checkpoint "$work/c" --resume --log "$work/log"
    succeeds "one goes on alone" "$work/mlp" --epochs 3 --data "$work/mnist" --checkpoint "$work/c" --resume --log "$work/log"
    same "weights of a run in three pieces" "$(hashes "$work/log")" "$(hashes "$work/whole")"
    [ "$(grep -c '"event":"epoch"' "$work/log")" = 3 ] && ok || bad "a rank beside rank 0 has written into the log"

    # ---- a log of each rank
    rm -f "$work"/each-*
    succeeds "logs of two ranks" ranks 2 "$work/mlp" --epochs 2 --data "$work/mnist" --threads 1 --log "$work/each-%r.jsonl" --log-steps 2
    for r in 0 1; do
        same "rank $r's log says whose it is" "$(field "$work/each-$r.jsonl" start rank)$(field "$work/each-$r.jsonl" start host)" "$r $(hostname) "
        same "rank $r's log" "$(hashes "$work/each-$r.jsonl")$(field "$work/each-$r.jsonl" step step)" "$(hashes "$work/log.mlp")2 4 6 8 10 "
    done
    same "logs of two ranks" "$(ls "$work" | grep -c '^each-')" 2
    succeeds "a log of each rank, of one" "$work/mlp" --epochs 1 --data "$work/mnist" --log "$work/sole-%r"
    [ "$(field "$work/sole-0" epoch epoch)" = "1 " ] && ok || bad "one process is not rank 0 of its log"
fi

if part dropout; then
    build_mpi mlp_wide "$work/wide" --batch 64 --shards 4 --set 'optimizer=adam(lr = 1e-3)' --set 'clip=norm(1.0)'
    for n in 1 4; do
        rm -f "$work/log"
        succeeds "mlp_wide, $n ranks" ranks $n "$work/wide" --epochs 2 --limit-samples 256 --log "$work/log"
        [ $n = 1 ] && want=$(hashes "$work/log") || same "mlp_wide with dropout, $n ranks" "$(hashes "$work/log")" "$want"
    done
fi

if part layers; then
    # More pending sums than a fixed number of messages: a bucket for each of 151 layers.
    cat > "$work/deep.tn" << 'END'
model deep(x: f32[32], classes: int = 4) {
    for i in 0..150 {
        x = dense(x, 32) |> relu
    }
    return dense(x, classes)
}
train deep {
    data      = synthetic(samples = 32, test_samples = 16)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.01)
    init      = glorot("uniform")
    batch     = 16
    epochs    = 2
}
END
    succeeds "tenon build of 151 layers" "$TENON" build "$work/deep.tn" -o "$work/deep" --comm mpi --shards 2 --bucket 4K
    rm -f "$work/log" "$work/log.deep"
    succeeds "151 layers, alone" "$work/deep" --threads 1 --log "$work/log.deep"
    succeeds "151 layers, 2 ranks" ranks 2 "$work/deep" --threads 1 --timeout 20 --log "$work/log"
    same "151 layers, 2 ranks, and one" "$(field "$work/log" start ranks)$(hashes "$work/log")" "2 $(hashes "$work/log.deep")"
fi

part ends || { finish; exit; }
# SIGTERM to one rank, three times: all ranks stop after the same step, with a checkpoint.
long=("$work/mlp" --epochs 40000 --data "$work/mnist" --threads 1)
ranks 2 "${long[@]}" --checkpoint "$work/term" > /dev/null 2> "$work/err" &
job=$!
sleep 2
pid=$(running "$work/mlp.*term" | tail -n 1)
for _ in 1 2 3; do kill -TERM "$pid" 2> /dev/null || true; sleep 0.002; done
rc=0; wait $job || rc=$?
[ $rc = 75 ] && ok || bad "after SIGTERM to a rank: exit code $rc, not 75"
grep -q "saved in" "$work/err" && ok || bad "after SIGTERM to a rank: no word of the checkpoint"
compgen -G "$work/term/step-*.safetensors" > /dev/null && ok || bad "after SIGTERM to a rank: no checkpoint"

# ---- ranks that do not fit together
some() { local text=$1 pattern=$2; shift 2; local rc=0; timeout -k 5 60 "$@" > "$work/out" 2> "$work/err" || rc=$?
    if [ $rc = 0 ] || [ $rc = 124 ] || [ $rc = 137 ]; then bad "$text: exit code $rc"
    elif ! grep -Eq "$pattern" "$work/err"; then bad "$text: the message does not match '$pattern':"; tail -n 5 "$work/err"
    else ok; fi; }
one() { echo -n "--bind-to none -n 1"; }
quick=(--epochs 1 --data "$work/mnist" --threads 1)
some "3 ranks, 8 shards" "number of ranks 3 does not fit 8 shards: use one of 1, 2, 4, 8" mpirun -n 3 "$work/mlp" "${quick[@]}"
# shellcheck disable=SC2046
{
some "other seeds" "rank 1 \(.*\) has other options than rank 0" mpirun $(one) "$work/mlp" "${quick[@]}" : $(one) "$work/mlp" "${quick[@]}" --seed 7
some "other seeds that are equal as double" "rank 1 \(.*\) has other options than rank 0" \
    mpirun $(one) "$work/mlp" "${quick[@]}" --seed 9007199254740992 : $(one) "$work/mlp" "${quick[@]}" --seed 9007199254740993
some "other programs" "rank 1 \(.*\) has another program" mpirun $(one) "$work/mlp" "${quick[@]}" : $(one) "$work/six" "${quick[@]}"
small_mnist "$work/other" 641 300 || true
some "other data" "rank 1 \(.*\) has other training data" mpirun $(one) "$work/mlp" "${quick[@]}" : $(one) "$work/mlp" --epochs 1 --data "$work/other"
small_mnist "$work/spot" 640 300 || true
printf '\377' | dd of="$work/spot/train-images-idx3-ubyte" bs=1 seek=$((16 + 333 * 784)) conv=notrunc status=none
some "one other pixel" "rank 1 \(.*\) has other training data" mpirun $(one) "$work/mlp" "${quick[@]}" : $(one) "$work/mlp" --epochs 1 --data "$work/spot"
"$work/mlp" --epochs 1 --data "$work/mnist" --checkpoint "$work/begun" > /dev/null
some "a rank that does not resume" "rank 1 \(.*\) has other options than rank 0" \
    mpirun $(one) "$work/mlp" "${quick[@]}" --checkpoint "$work/begun" --resume : $(one) "$work/mlp" "${quick[@]}" --checkpoint "$work/begun"
some "a rank that tests" "rank 1 \(.*\) has another command than rank 0" \
    mpirun $(one) "$work/mlp" "${quick[@]}" : $(one) "$work/mlp" test --weights x --data "$work/mnist"
some "more seconds of bench" "rank 1 \(.*\) has other options than rank 0" mpirun $(one) "$work/mlp" bench --seconds 1 : $(one) "$work/mlp" bench
some "more steps of bench" "rank 1 \(.*\) has other options than rank 0" mpirun $(one) "$work/mlp" bench --steps 1 : $(one) "$work/mlp" bench --steps 2
"$work/mlp" --epochs 1 --data "$work/mnist" --save "$work/w1" > /dev/null
"$work/mlp" --epochs 2 --data "$work/mnist" --save "$work/w2" > /dev/null
some "a test of other weights" "rank 1 \(.*\) has other weights than rank 0" \
    mpirun $(one) "$work/mlp" test --weights "$work/w1" --data "$work/mnist" : $(one) "$work/mlp" test --weights "$work/w2" --data "$work/mnist"
small_mnist "$work/longer" 640 310 || true
some "a test on other data" "rank 1 \(.*\) has other test data than rank 0" \
    mpirun $(one) "$work/mlp" test --weights "$work/w1" --data "$work/mnist" : $(one) "$work/mlp" test --weights "$work/w1" --data "$work/longer"
some "data missing on one" "rank 1 .*nowhere" mpirun $(one) "$work/mlp" "${quick[@]}" : $(one) "$work/mlp" --epochs 1 --data "$work/nowhere"
}
build_mpi mlp "$work/hot" --set optimizer.lr=1e20
some "a loss that is not finite" "rank [01] .*the loss is not finite" mpirun -n 2 "$work/hot" "${quick[@]}"
some "bf16 by three" "power of two" mpirun -n 3 "$work/six" --wire bf16 "${quick[@]}"
some "predict by two" "start one rank" mpirun -n 2 "$work/mlp" predict --weights x --input y.csv
refuses "a number of ranks that is none" "TENON_RANKS=abc in the environment" env TENON_RANKS=abc "$work/alone" "${quick[@]}"
refuses "a launcher that this MPI does not know" "srun --mpi=pmix" env SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 "$work/mlp" "${quick[@]}"

# ---- until the first step is done, a wait may last longer: rank 1 takes SLOW seconds to open each file of images
cat > "$work/slow.c" << 'END'
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int open(const char *path, int flags, ...)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank && !strcmp(rank, "1") && strstr(path, "train-images"))
        sleep((unsigned)atoi(getenv("SLOW")));
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0666);
}
END
cc -shared -fPIC "$work/slow.c" -o "$work/slow.so"
late=("$work/mlp" "${quick[@]}" --threads 1)
succeeds "a rank that loads slowly" ranks 2 -x SLOW=4 -x LD_PRELOAD="$work/slow.so" "${late[@]}" --timeout 3
some "a rank that loads too slowly" "[0-9] s at .* in step 1, longer than --timeout-start: rank 1 \(.*\) is in step 1, computing for [0-9]+ s" \
    mpirun -n 2 --bind-to none -x SLOW=50 -x LD_PRELOAD="$work/slow.so" "${late[@]}" --timeout-start 2

# ---- limits for the start and the end of MPI, which has none
cat > "$work/never" << 'END'
#!/bin/sh
if [ "$OMPI_COMM_WORLD_RANK" = "$1" ]; then eval "$2"; fi
shift 2
exec "$@"
END
chmod +x "$work/never"
# unmet TEXT PATTERN COMMAND...: exit code 76 well before the limit of the test, and no process left
unmet() {
    local text=$1 pattern=$2 rc=0; shift 2
    timeout -k 5 40 mpirun -n 2 --bind-to none "$@" > "$work/out" 2> "$work/err" || rc=$?
    [ $rc = 76 ] && ok || bad "$text: exit code $rc, not 76"
    grep -Eq "$pattern" "$work/err" && ok || { bad "$text: the message does not match '$pattern':"; tail -n 5 "$work/err"; }
    [ -z "$(running "/bin/sh $work/never")$(running "$work/mlp --epochs 1")" ] && ok || bad "$text: processes are left"
}
start="3 s at the start of MPI, longer than --timeout-start: one of 2 ranks \(OMPI_COMM_WORLD_SIZE\) has ended before it, is stopped"
unmet "a rank stopped before MPI" "rank 0: error: $start" "$work/never" 1 'kill -STOP $$' "$work/mlp" "${quick[@]}" --timeout-start 3
# rank 1 starts when mpirun has seen the end of rank 0: if it began before, mpirun would end it
unmet "rank 0 ended before MPI" "rank 1: error: $start" "$work/never" 0 'exit 0' /bin/sh -c 'sleep 2; exec "$@"' sh "$work/mlp" "${quick[@]}" --timeout 1
cat > "$work/at.c" << 'END'
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
int MPI_Finalize(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank && !strcmp(rank, "1"))
        raise(SIGSTOP);
    return PMPI_Finalize();
}
END
mpicc -shared -fPIC "$work/at.c" -o "$work/at.so"
unmet "a rank stopped at the end of MPI" "rank 0 .*: error: 3 s at the end of MPI, longer than --timeout: a rank is stopped" -x LD_PRELOAD="$work/at.so" \
    "$work/mlp" "${quick[@]}" --timeout 3

# ---- lost ranks
# lost TEXT PATTERN SIGNAL: rank 1 gets the signal during a run
lost() {
    local rc=0 pid left
    ranks 2 "${long[@]}" --timeout 3 --log "$work/lost-%r" > "$work/out" 2> "$work/err" &
    job=$!
    sleep 2
    pid=$(for p in $(running "$work/mlp --epochs 4000"); do grep -qz OMPI_COMM_WORLD_RANK=1 "/proc/$p/environ" 2> /dev/null && echo "$p"; done | head -n 1) || true
    kill -"$3" "$pid" || true
    wait $job || rc=$?
    [ $rc != 0 ] && [ $rc != 124 ] && ok || bad "$1: exit code $rc"
    grep -Eq "$2" "$work/err" && ok || { bad "$1: the message does not match '$2':"; tail -n 5 "$work/err"; }
    sleep 1
    kill -9 "$pid" 2> /dev/null || true
    left=$(running "$work/mlp --epochs 4000")
    [ -z "$left" ] && ok || bad "$1: processes are left: $left"
}
lost "a killed rank" "signal 9|Killed" KILL
lost "a stopped rank" "rank 0 .*rank 1 \(.*\) does not answer" STOP
grep -q '^{"event":"message","kind":"error","text":"[0-9]* s at .* longer than --timeout: rank 1 (.*) does not answer"}$' "$work/lost-0" && ok ||
    bad "the log of rank 0 lacks the message: $(tail -n 1 "$work/lost-0")"
finish
