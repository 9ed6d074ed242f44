#!/usr/bin/env bash
# sync.sh -- batch_norm(sync = true): statistics of the whole batch, whichever processes have its shards.  One process, groups and ranks
# have the same bits; four shards compute the same as one; a run in pieces ends like a whole one; a lost rank is named.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

# Two branches, whose statistics ranks exchange together; layers without scale and without shift.
kernel=1
! deep "branches of different convolutions" || kernel=3
cat > "$work/net.tn" <<END
model net(image: f32[3, 8, 8], classes: int = 10) {
    h = conv2d(image, 8, kernel = 3, pad = 1, bias = false) |> batch_norm(sync = true) |> tanh
    a = conv2d(h, 12, kernel = $kernel, pad = $((kernel / 2)), bias = false) |> batch_norm(sync = true, scale = false) |> tanh
    b = conv2d(h, 12, kernel = 1) |> batch_norm(sync = true, shift = false)
    h = avg_pool(tanh(a + b), 2) |> flatten |> dense(20, bias = false) |> batch_norm(sync = true, momentum = 0.8) |> tanh
    return dense(h, classes)
}
train net {
    data      = synthetic(samples = 200, test_samples = 40)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.05, momentum = 0.9)
    batch     = 48
    shards    = 4
    epochs    = 3
}
END
sed 's/sync = true/sync = false/' "$work/net.tn" > "$work/each.tn"

# ---- the values: in f64, four shards equal one, optimised kernels equal plain ones; gradients equal differences
of() { local program=$1 model=$2; shift 2; "$TENON" build "$work/$model.tn" -o "$work/$program" --dtype f64 "$@"; rm -f "$work/$program.log"
    "$work/$program" --threads 2 --log "$work/$program.log" > /dev/null; }
near() { # TEXT A B FIELD: compares three epochs of both programs
    if paste <(field "$work/$2.log" epoch "$4" | tr ' ' '\n') <(field "$work/$3.log" epoch "$4" | tr ' ' '\n') |
        awk '$1 > 0 { d = $1 - $2; n += d < 1e-9 && -d < 1e-9 } END { exit n != 3 }'; then ok
    else bad "$1, $4: $(field "$work/$2.log" epoch "$4") and $(field "$work/$3.log" epoch "$4")"; fi
}
of four net --verify
witness_level=-O0                                     # compiles in a third of the time
# textbook PROGRAM MODEL: builds it in f64, plain
textbook() {
    witness "$work/$2.tn" "$work/$1" --dtype f64
    "$work/$1" --threads 2 --log "$work/$1.log" > /dev/null
}
textbook plain net
textbook parts each
one=0
if deep "one shard with batch_norm beside four with sync"; then one=1; of one each --shards 1; fi
for what in train_loss test_loss; do # the test loss uses the running averages
    near "our kernels and the textbook's" four plain $what
    [ $one = 0 ] || near "four shards with sync and one without" four one $what
done
[ "$(field "$work/four.log" epoch train_loss)" != "$(field "$work/parts.log" epoch train_loss)" ] && ok || bad "sync changes nothing"
checked=1
if deep "gradients of more elements"; then checked=4; fi
succeeds "gradients" "$work/four" gradcheck --samples $checked --threads 1
succeeds "gradients as two groups" "$work/four" grads --groups 2 --output "$work/two.safetensors"
succeeds "gradients as one" "$work/four" grads --output "$work/whole.safetensors"
cmp -s "$work/two.safetensors" "$work/whole.safetensors" && ok || bad "gradients of two groups are not those of one"

# ---- one process, groups of its shards
type=f64                                              # as above: equal kernels are compiled once
! deep "one process, groups and ranks in f32" || type=f32
"$TENON" build "$work/net.tn" -o "$work/alone" --dtype $type
six=0
if deep "six shards on 2, 3 and 6 groups and ranks"; then six=1; "$TENON" build "$work/net.tn" -o "$work/six" --dtype $type --batch 72 --shards 6; fi
# hash PROGRAM OPTIONS...
hash() { local program=$1; shift; rm -f "$work/log"; "$program" "$@" --log "$work/log" > /dev/null; hashes "$work/log"; }
want=$(hash "$work/alone" --threads 1)
[ $six = 0 ] || want6=$(hash "$work/six" --threads 1)
same "two threads" "$(hash "$work/alone" --threads 2)" "$want"
for groups in 2 4; do same "$groups groups" "$(hash "$work/alone" --groups $groups)" "$want"; done
[ $six = 0 ] || for groups in 2 3 6; do same "6 shards, $groups groups" "$(hash "$work/six" --groups $groups --threads 2)" "$want6"; done

# ---- ranks
command -v mpicc > /dev/null && command -v mpirun > /dev/null || { skip "no mpicc and mpirun"; finish; exit; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
timeout -k 5 60 mpirun -n 2 true > /dev/null 2>&1 || { skip "mpirun cannot start two processes here"; finish; exit; }
# ranks N COMMAND...
ranks() { local n=$1; shift; timeout -k 5 120 mpirun -n "$n" --bind-to none "$@"; }
shared() { local n=$1; shift; rm -f "$work/log"; ranks "$n" "$@" --log "$work/log" > "$work/out" 2>&1 || tail -n 5 "$work/out"; hashes "$work/log"; }
"$TENON" build "$work/net.tn" -o "$work/net" --dtype $type --comm mpi --bucket 1k # sums of buckets between the statistics
[ $six = 0 ] || "$TENON" build "$work/net.tn" -o "$work/mpi6" --dtype $type --comm mpi --batch 72 --shards 6
for some in "2 2" "4 1"; do
    read -r n threads <<< "$some"
    same "$n ranks of $threads threads" "$(shared "$n" "$work/net" --threads "$threads")" "$want"
done
if deep "other numbers of ranks and threads"; then
    for some in "1 1" "1 2" "2 1" "4 2"; do
        read -r n threads <<< "$some"
        same "$n ranks of $threads threads" "$(shared "$n" "$work/net" --threads "$threads")" "$want"
    done
fi
[ $six = 0 ] || for n in 2 3; do same "6 shards, $n ranks" "$(shared $n "$work/mpi6" --threads 1)" "$want6"; done
# The running averages of a first layer are updated before the next step's statistics overwrite them.
sed -e 's/|> batch_norm(sync = true) |> tanh$/|> tanh/' -e 's/^    h = conv2d(image/    x = batch_norm(image, sync = true, scale = false, shift = false)\n    h = conv2d(x/' "$work/net.tn" > "$work/first.tn"
grep -q 'x = batch_norm' "$work/first.tn" && ok || bad "no batch_norm of the samples"
"$TENON" build "$work/first.tn" -o "$work/first" --dtype $type --comm mpi
same "batch_norm of the samples, 2 ranks" "$(shared 2 "$work/first" --threads 1)" "$(hash "$work/first" --threads 1)"
if deep "one bucket behind all statistics"; then
    "$TENON" build "$work/net.tn" -o "$work/one_bucket" --dtype $type --comm mpi
    same "one bucket, 2 ranks" "$(shared 2 "$work/one_bucket" --threads 1)" "$want"
fi

# ---- stopped and resumed, each time with another number of ranks
rm -f "$work/log"
succeeds "2 ranks save" ranks 2 "$work/net" --epochs 1 --threads 1 --checkpoint "$work/c" --log "$work/log"
succeeds "4 ranks go on" ranks 4 "$work/net" --epochs 2 --threads 1 --checkpoint "$work/c" --resume --log "$work/log"
succeeds "one goes on alone" "$work/net" --checkpoint "$work/c" --resume --log "$work/log"
same "weights of a run in three pieces" "$(hashes "$work/log")" "$want"

deep "a rank that is killed or stopped between statistics" || { finish; exit; } # ranks.sh tests other networks
# Killed, with a checkpoint every second step: two ranks continue.
ranks 4 "$work/net" --threads 1 --epochs 100000 --checkpoint "$work/k" --checkpoint-every 2 > /dev/null 2>&1 &
job=$!
for _ in $(seq 100); do compgen -G "$work/k/step-*[1-9].safetensors" > /dev/null && break; sleep 0.1; done
kill -9 "$(running "$work/net --threads 1 --epochs 100000" | tail -n 1)" || true
rc=0; wait $job || rc=$?
[ $rc = 137 ] && ok || bad "a killed rank: exit code $rc, not 137"
[ -z "$(running "$work/net --threads")" ] && ok || bad "a killed rank: processes are left: $(running "$work/net --threads")"
rm -f "$work/log" "$work/log2"
step=$(find "$work/k" -name 'step-*.safetensors' | sed 's/.*step-0*\([0-9]*\)\..*/\1/' | sort -n | tail -n 1)
epochs=$((step / 5 + 1))
succeeds "two go on" ranks 2 "$work/net" --threads 1 --epochs $epochs --checkpoint "$work/k" --resume --log "$work/log"
succeeds "a run that nothing happened to" "$work/alone" --epochs $epochs --log "$work/log2"
same "weights after a killed rank" "$(hashes "$work/log" | awk '{ print $NF }')" "$(hashes "$work/log2" | awk '{ print $NF }')"

# A stopped rank: the others wait no longer than their limit.
ranks 2 "$work/net" --threads 1 --epochs 100000 --timeout 2 > /dev/null 2> "$work/err" &
job=$!
sleep 2
pid=$(for p in $(running "$work/net --threads 1 --epochs 100000"); do grep -qz OMPI_COMM_WORLD_RANK=1 "/proc/$p/environ" 2> /dev/null && echo "$p"; done | head -n 1) || true
kill -STOP "$pid" || true
rc=0; wait $job || rc=$?
[ $rc = 76 ] && ok || bad "a stopped rank: exit code $rc, not 76"
grep -Eq "[0-9] s at .* in step [0-9]+, longer than --timeout: rank 1 \(.*\) does not answer" "$work/err" && ok ||
    { bad "a stopped rank is not named:"; tail -n 5 "$work/err"; }
kill -9 "$pid" 2> /dev/null || true
finish
