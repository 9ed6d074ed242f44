#!/usr/bin/env bash
# links.sh -- steps over shaped links: hosts of namespaces, a rank each, 100 Mbit/s, 1 Gbit/s and unshaped.  As root; see SCALING.md.
#
#   TENON=build/tenon bench/links.sh [RANKS] > FILE      (default 2; hosts share this machine's processors)
#
# For each network and link: step in ms (median of 20), the sum of gradients, what of it was not hidden, all on one thread a rank; and
# the same step by one rank with that rank's share of the batch, which is what the step would be without a network.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tenon=${TENON:-$root/build/tenon} hosts=$root/tests/cluster/hosts.sh ranks=${1:-2}
export HOSTS=b$$
work=$(mktemp -d)
trap '"$hosts" down; rm -rf "$work"' EXIT
build() { local name=$1 model=$2; shift 2; "$tenon" build "$root/models/$model.tn" "$@" --comm mpi -o "$work/$name"; }
build lenet lenet
build mlp_wide mlp_wide --batch 64 --shards 4
build resnet20 resnet56_cifar10 --set model.depth=20 --batch 64 --shards 4
SLOTS=1 "$hosts" up "$ranks"
printf '%-10s %-8s %10s %10s %12s %9s\n' network link "step, ms" "sum, ms" "waiting, ms" "not hidden"
for name in lenet mlp_wide resnet20; do
    for rate in off 1gbit 100mbit; do
        "$hosts" rate $rate
        rm -f "$work/log"
        timeout -k 5 120 "$hosts" mpirun -n "$ranks" "$work/$name" bench --steps 20 --threads 1 --log "$work/log" > "$work/out" 2>&1 || { cat "$work/out" >&2; continue; }
        get() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$work/log" | head -n 1; }
        link=$rate; [ $rate != off ] || link=unshaped
        awk -v n=$name -v l=$link -v step="$(get step_ms_median)" -v sum="$(get comm_ms)" -v wait="$(get comm_wait_ms)" \
            'BEGIN { printf "%-10s %-8s %10.2f %10.2f %12.2f %8.0f %%\n", n, l, step, sum, wait, 100 * (sum > 0 ? wait / sum : 0) }'
    done
done
