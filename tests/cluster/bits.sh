#!/usr/bin/env bash
# bits.sh -- the weights after each epoch do not depend on ranks, threads or the network between the ranks.
#
# LeNet, mlp_wide with its dropout, and a ResNet of four shards with augmented images run on 1, 2 and 4 ranks (LeNet also on 8) with 1
# and 2 threads, over shared memory and over TCP between hosts made of namespaces.  A run is also stopped twice and resumed with other
# numbers of ranks.  With CHECK_DEEP=1 (./check --deep) the ResNet is ResNet-20; otherwise it has 8 layers and uses shared memory only.
#
# Deep: tests/programs/ranks.sh has ranks of one host, faults.sh ranks between hosts.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh all=${CHECK_DEEP:-0}
export HOSTS=e$$
type mpicc mpirun > /dev/null 2>&1 || { skip "no mpicc and mpirun"; finish; exit; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
timeout -k 5 60 mpirun -n 2 true > /dev/null 2>&1 || { skip "mpirun cannot start two processes here"; finish; exit; }
trap '"$hosts" down; rm -rf "$work"' EXIT

# hash WAY RANKS THREADS PROGRAM OPTIONS...: the hashes of the weights.  WAY: shared (memory), between (hosts).
hash() {
    local way=(mpirun --bind-to none) ranks=$2 threads=$3
    [ "$1" = shared ] || way=("$hosts" mpirun)
    shift 3
    rm -f "$work/log"
    timeout -k 5 200 "${way[@]}" -n "$ranks" "$@" --threads "$threads" --log "$work/log" > "$work/out" 2>&1 || { tr '\r' '\n' < "$work/out" | grep -v 'epoch [0-9]*/' | head -n 12 >&2; return 0; }
    hashes "$work/log"
}

# equal NAME WAY MOST OPTIONS...: $work/NAME has equal weights on 1, 2 ... MOST ranks
equal() {
    local name=$1 way=$2 most=$3 ranks threads; shift 3
    [ -e "$work/$name.want" ] || { rm -f "$work/log"; "$work/$name" "$@" --epochs 2 --log "$work/log" > /dev/null; hashes "$work/log" > "$work/$name.want"; }
    [ "$way" = between ] && ranks=2 || ranks=1
    for (( ; ranks <= most; ranks *= 2)); do
        for threads in 1 2; do
            same "$name $way, $ranks ranks of $threads threads" "$(hash "$way" $ranks $threads "$work/$name" "$@" --epochs 2)" "$(cat "$work/$name.want")"
        done
    done
}

# pieces NAME OPTIONS...: one epoch on two ranks, one on four, one on a single rank
pieces() {
    local name=$1 whole; shift
    whole=$(hash shared 1 2 "$work/$name" "$@" --epochs 3)
    hash shared 2 1 "$work/$name" "$@" --epochs 1 --checkpoint "$work/c.$name" > /dev/null
    hash shared 4 1 "$work/$name" "$@" --epochs 2 --checkpoint "$work/c.$name" --resume > /dev/null
    same "$name in pieces of 2, 4 and 1 ranks" "$(hash shared 1 1 "$work/$name" "$@" --epochs 3 --checkpoint "$work/c.$name" --resume | awk '{ print $NF }')" "$(awk '{ print $3 }' <<< "$whole")"
}

small_cifar "$work/cifar" 14 10 || true
resnet() { build resnet56_cifar10 "$work/$1" --comm mpi --set model.depth="$2" --batch 32 --shards 4; }
if [ "$all" = 0 ]; then
    resnet resnet8 8
    equal resnet8 shared 4 --data "$work/cifar"
    pieces resnet8 --data "$work/cifar"
    skip "lenet, mlp_wide, resnet20 by 1 to 8 ranks, and between hosts: ./check --cluster"
    finish; exit
fi
small_mnist "$work/mnist" 640 300 || true
build lenet "$work/lenet" --comm mpi
build mlp_wide "$work/mlp_wide" --comm mpi --batch 64 --shards 4 --set 'optimizer=adam(lr = 1e-3)'
resnet resnet20 20
mlp=(--limit-samples 256)
equal lenet shared 8 --data "$work/mnist"
equal mlp_wide shared 4 "${mlp[@]}"
equal resnet20 shared 4 --data "$work/cifar"
pieces lenet --data "$work/mnist"
pieces mlp_wide "${mlp[@]}"
pieces resnet20 --data "$work/cifar"
if "$hosts" able; then
    "$hosts" up 4
    equal lenet between 4 --data "$work/mnist"
    equal mlp_wide between 4 "${mlp[@]}"
    equal resnet20 between 4 --data "$work/cifar"
else
    skip "between hosts: root, iproute2 and Open MPI make them"
fi
finish
