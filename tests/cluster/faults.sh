#!/usr/bin/env bash
# faults.sh -- faults during a run on four hosts.  Each fault ends all processes within its limit, with a message that names the cause and
# with its exit code.  It leaves a checkpoint from which one process reaches the weights of an undisturbed run.
#
#   fault                     seconds   exit code
#   a rank is killed             15     137, by mpirun
#   a rank is stopped            20     76, by Tenon: --timeout 3, three more seconds for answers, and the end of the other ranks
#   a connection is broken       30     76, or 205 if mpirun notices first
#   a host is lost               15     205, by mpirun
#   full disk on rank 0, data missing on rank 2, a number that is not finite on rank 1, another program on node2: 20, exit code 1, by Tenon
#
# With CHECK_DEEP=1 (./check --deep) all eight faults, else three.  Skipped if namespaces cannot be made.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
export HOSTS=f$$
command -v mpicc > /dev/null && "$hosts" able || { skip "no several hosts here: root, iproute2 and Open MPI make them"; finish; exit; }
trap '"$hosts" down; quiet_umount; rm -rf "$work"' EXIT
quiet_umount() { umount "$work/full" 2> /dev/null || true; }
every=${CHECK_DEEP:-0}
small_mnist "$work/mnist" 640 300 || true
build mlp "$work/mlp" --comm mpi
# undisturbed N: $work/whole has at least N epochs of one process
undisturbed() {
    [ "$(hashes "$work/whole" 2> /dev/null | wc -w)" -lt "$1" ] || return 0
    rm -f "$work/whole"
    "$work/mlp" --epochs "$1" --data "$work/mnist" --log "$work/whole" > /dev/null
}
undisturbed 60
"$hosts" up 4

# as HOST "COMMANDS" PROGRAM...: runs PROGRAM after COMMANDS, which mount files that only this host sees
cat > "$work/as" <<'END'
#!/bin/sh
if [ "$(hostname)" = "$1" ]; then eval "$2"; fi
shift 2
exec "$@"
END
chmod +x "$work/as"
on_hosts() { timeout -k 5 90 "$hosts" mpirun -n 4 "$@"; }
pid_of() { running "$work/mlp" | while read -r p; do grep -qz "^OMPI_COMM_WORLD_RANK=$1\$" "/proc/$p/environ" 2> /dev/null && echo "$p"; done | head -n 1; }

# ended TEXT CODES PATTERN LIMIT SINCE RC: checks exit code, message and time of a run that has ended
ended() {
    local text=$1 codes=$2 pattern=$3 limit=$4 since=$5 rc=$6 left
    while left=$(running "$work/"); [ -n "$left" ] && [ $((SECONDS - since)) -le "$limit" ]; do sleep 0.2; done
    [ -z "$left" ] && ok || bad "$text: processes are left after $limit s: $left"
    [[ " $codes " == *" $rc "* ]] && ok || bad "$text: exit code $rc, not $codes"
    tr -s '\n ' ' ' < "$work/err" | grep -Eq "$pattern" && ok || { bad "$text: the message does not match '$pattern':"; tail -n 8 "$work/err"; }
}

# goes_on TEXT: one process resumes from the checkpoint, and reaches the weights of a run without the fault
goes_on() {
    local done log=$work/run.log
    done=$(hashes "$log" | wc -w)
    undisturbed $((done + 1))
    succeeds "$1: one process goes on" "$work/mlp" --epochs $((done + 1)) --data "$work/mnist" --checkpoint "$work/c" --resume --log "$log"
    same "$1: weights after it" "$(hashes "$log" | tr ' ' '\n' | sort -u)" "$(hashes "$work/whole" | tr ' ' '\n' | head -n $((done + 1)) | sort -u)"
}

# lost TEXT CODES PATTERN LIMIT COMMAND...: runs COMMAND, a fault, while a run trains
lost() {
    local text=$1 codes=$2 pattern=$3 limit=$4 rc=0 job since
    shift 4
    rm -rf "$work/c" "$work/run.log"
    on_hosts "$work/mlp" --epochs 4000 --threads 1 --timeout 3 --data "$work/mnist" --checkpoint "$work/c" --checkpoint-every 2 --log "$work/run.log" \
        > "$work/out" 2> "$work/err" < /dev/null &
    job=$!
    for _ in $(seq 200); do compgen -G "$work/c/step-*[1-9].safetensors" > /dev/null && break; sleep 0.1; done
    sleep 1
    since=$SECONDS
    "$@"
    wait $job || rc=$?
    ended "$text" "$codes" "$pattern" "$limit" $since $rc
    goes_on "$text"
}
signal() { kill -"$1" "$(pid_of "$2")"; }

# refused TEXT PATTERN COMMAND...: the run ends by itself, with exit code 1
refused() {
    local text=$1 pattern=$2 rc=0 since=$SECONDS
    shift 2
    on_hosts "$@" > "$work/out" 2> "$work/err" < /dev/null || rc=$?
    ended "$text" 1 "$pattern" 20 $since $rc
}

# The same bits on four hosts as in one process.
rm -f "$work/log"
succeeds "four hosts" on_hosts "$work/mlp" --epochs 2 --threads 1 --data "$work/mnist" --log "$work/log"
grep -q "mpirun would notice a broken connection" "$work/out" && bad "a hint at keep-alive, which is set" || ok
succeeds "two hosts whose keep-alive is not set" timeout -k 5 90 "$hosts" mpirun -n 2 env -u OMPI_MCA_oob_tcp_keepalive_time "$work/mlp" --epochs 1 --threads 1 --data "$work/mnist"
[ "$(grep -c "mpirun would notice a broken connection after 8 minutes; .*keepalive_time=10" "$work/out")" = 1 ] && ok || bad "no hint at keep-alive: $(tail -n 5 "$work/out")"
same "four hosts, and one process" "$(hashes "$work/log")" "$(hashes "$work/whole" | cut -d ' ' -f 1-2) "


lost "a stopped rank" 76 "rank 2 \(node3\) does not answer" 20 signal STOP 2
"$TENON" build "$TENON_ROOT/models/mlp.tn" --comm mpi --set optimizer.lr=0.01 -o "$work/other"
refused "another program on node2" "rank 1 \(node2\) has another program than rank 0 \(node1\)" \
    "$work/as" node2 "mount --bind $work/other $work/mlp" "$work/mlp" --epochs 1 --data "$work/mnist"

# A sample that is not finite, in rank 1's shards: the 40th of a batch of 128.
cat > "$work/four.tn" <<END
model four(x: f32[4], classes: int = 2) { return dense(x, 8) |> tanh |> dense(classes) }
train four { data = "$work/four"; loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 128; shards = 8; epochs = 2 }
END
# array FILE TYPE SHAPE: a NumPy file with the bytes of stdin
array() { { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': $3, }"; cat; } > "$1"; }
mkdir -p "$work/four"
head -c 2048 /dev/zero | array "$work/four/test_x.npy" '<f4' '(128, 4)'
head -c 512 /dev/zero | array "$work/four/test_y.npy" '<i4' '(128,)'
cp "$work/four/test_y.npy" "$work/four/train_y.npy"
{ head -c 640 /dev/zero; printf '\x00\x00\xc0\x7f'; head -c 1404 /dev/zero; } | array "$work/four/train_x.npy" '<f4' '(128, 4)'
"$TENON" build "$work/four.tn" --comm mpi -o "$work/four.prog"
refused "a number that is not finite" "rank 1 \(node2\): error: .*not finite.*in epoch 1, step 1" "$work/four.prog" --shuffle off --epochs 1

if [ "$every" = 1 ]; then
    lost "a killed rank" 137 "rank 1 with PID [0-9]+ on node node2 exited on signal 9" 15 signal KILL 1
    lost "a line that is cut" "76 205" "rank [0-9] \(node4\) does not answer|lost communication with a remote daemon.*node4" 30 "$hosts" cut 4
    "$hosts" down
    "$hosts" up 4
    lost "a host that is gone" 205 "lost communication with a remote daemon.*node3" 15 "$hosts" off 3
    "$hosts" down
    "$hosts" up 4
    refused "data missing on node3" "rank 2 \(node3\): error: .*$work/mnist" \
        "$work/as" node3 "mount -t tmpfs tmpfs $work/mnist" "$work/mlp" --epochs 1 --data "$work/mnist"

    # The disk has room for two and a half checkpoints.
    mkdir "$work/full"
    size=$(stat -c %s "$(find "$work/c" -name 'step-*.safetensors' | head -n 1)")
    rm -rf "$work/c" "$work/run.log"
    mount -t tmpfs -o size=$((size * 5 / 2)) tmpfs "$work/full"
    refused "a full disk" "rank 0 \(node1\): error: .*$work/full.*(No space left|full)" \
        "$work/mlp" --epochs 30 --threads 1 --data "$work/mnist" --checkpoint "$work/full" --checkpoint-every 2 --log "$work/run.log"
    cp -r "$work/full" "$work/c"
    goes_on "a full disk"
else
    skip "five more faults: ./check --cluster"
fi
finish
