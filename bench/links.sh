#!/usr/bin/env bash
# links.sh -- prints SCALING.md's tables: steps over links of limited speed between hosts of namespaces, one rank on each.  Run as root.
#
#   TENON=build/tenon [TORCH=PYTHON] [NETWORKS="lenet ..."] [RATES="off ..."] bench/links.sh [RANKS] > FILE
#
#   RANKS      hosts, at most 4 (default 2); they share this machine's processors
#   NETWORKS   some of lenet, mlp_wide, resnet20 (default: all)
#   RATES      some of off (no limit), 1gbit, 100mbit (default: all)
#   TORCH      an interpreter with PyTorch: also DistributedDataParallel over gloo on the same link, and both sums by size
#
# Columns for each network and link, with one thread in each rank: step (ms, median of 20); own, the step of one rank with its share
# of the batch and no network; bytes, the gradient's bytes over the link's rate (two ranks); the sum of gradients; the part of it that
# is not hidden; the prediction of the scale model (runtime/measure/scale.h, with the link that `bench --comm` fits).
set -euo pipefail
case ${1:-} in --help | -h) sed -n '2,/^set /p' "$0" | grep '^#' | sed 's/^# \{0,1\}//'; exit ;; esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tenon=${TENON:-$root/build/tenon} hosts=$root/tests/cluster/hosts.sh ranks=${1:-2} torch=${TORCH:-}
export HOSTS=b$$
work=$(mktemp -d)
trap '"$hosts" down; rm -rf "$work"' EXIT
declare -A batch=([lenet]=128 [mlp_wide]=64 [resnet20]=64) shards=([lenet]=8 [mlp_wide]=4 [resnet20]=4)
declare -A gradient=([lenet]=1724320 [mlp_wide]=4710304 [resnet20]=1089128)
read -ra networks <<< "${NETWORKS:-lenet mlp_wide resnet20}"
read -ra rates <<< "${RATES:-off 1gbit 100mbit}"
build() {
    local name=$1 model=$2; shift 2
    "$tenon" build "$root/models/$model.tn" "$@" --batch "${batch[$name]}" --shards "${shards[$name]}" --comm mpi -o "$work/$name"
    "$tenon" build "$root/models/$model.tn" "$@" --batch $((batch[$name] / ranks)) --shards $((shards[$name] / ranks)) -o "$work/$name.own"
}
for name in "${networks[@]}"; do
    case $name in
    resnet20) build resnet20 resnet56_cifar10 --set model.depth=20 ;;
    lenet | mlp_wide) build "$name" "$name" ;;
    *) echo "NETWORKS: lenet, mlp_wide, resnet20, not $name" >&2; exit 1 ;;
    esac
done
get() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$work/log" | head -n 1; }
ours() { rm -f "$work/log"; timeout -k 5 120 "$@" > "$work/out" 2>&1 || { tail -n 5 "$work/out" >&2; return 1; }; }
peer() {
    local k rc=0 jobs=()
    for k in $(seq 0 $((ranks - 1))); do
        "$hosts" run $((k + 1)) env RANK="$k" WORLD_SIZE="$ranks" MASTER_ADDR=10.78.0.1 MASTER_PORT=29500 GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 \
            timeout 180 "$torch" "$root/bench/peers/ddp.py" "$@" > "$work/ddp.$k" 2> "$work/ddp.err.$k" & jobs+=($!)
    done
    for k in "${jobs[@]}"; do wait "$k" || rc=1; done
    [ $rc = 0 ] || tail -n 3 "$work"/ddp.err.* >&2
    return $rc
}
SLOTS=1 "$hosts" up "$ranks"
echo "| network, gradient | link | step | own | bytes | sum | waiting | not hidden | the model | DDP | DDP's own | ratio |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|"
for name in "${networks[@]}"; do
    for rate in "${rates[@]}"; do
        "$hosts" rate "$rate"
        ours "$hosts" run 1 "$work/$name.own" bench --steps 20 --threads 1 --log "$work/log" || continue
        own=$(get step_ms_median)
        ours "$hosts" mpirun -n "$ranks" "$work/$name" bench --comm --steps 20 --threads 1 --log "$work/log" || continue
        theirs="- -"
        [ -z "$torch" ] || ! peer "$name" $((batch[$name] / ranks)) 20 || theirs=$(awk '$1 == "step" { print $2, $4 }' "$work/ddp.0")
        awk -v n="$name" -v l="$rate" -v step="$(get step_ms_median)" -v own="$own" -v bytes="${gradient[$name]}" -v sent="$(get gradient_bytes)" -v buckets="$(get buckets)" -v sum="$(get comm_ms)" -v wait="$(get comm_wait_ms)" \
            -v model="$(get model_not_hidden_ms)" -v share="$(get model_not_hidden_percent)" -v ddp="${theirs% *}" -v ddpown="${theirs#* }" '
            BEGIN { mbit["1gbit"] = 955; mbit["100mbit"] = 95.5; word["1gbit"] = "1 Gbit/s"; word["100mbit"] = "100 Mbit/s"; word["off"] = "unshaped"
                    printf "| %s, %.2f MB in %d buckets | %s | %.2f | %.2f | %s | %.2f | %.2f | %.0f %% | %.2f, %.0f %% | %s | %s | %s |\n", n, sent / 1e6, buckets, l in word ? word[l] : l, step, own,
                        l in mbit ? sprintf("%.1f", bytes * 8e-3 / mbit[l]) : "-", sum, wait, 100 * (sum > 0 ? wait / sum : 0), model, share, ddp, ddpown, ddp == "-" ? "-" : sprintf("%.2f", step / ddp) }'
    done
done
[ -n "$torch" ] || exit 0
printf '\n%-8s %10s %10s %10s\n' link bytes "sum, ms" "gloo, ms"
for rate in off 1gbit; do
    "$hosts" rate $rate
    ours "$hosts" mpirun -n "$ranks" "$work/${networks[0]}" bench --comm --steps 3 --threads 1 --log "$work/log" || continue
    sed -n 's/.*"event":"comm".*"bytes":\([0-9]*\),"seconds":\([^,]*\).*/\1 \2/p' "$work/log" > "$work/sizes"
    # shellcheck disable=SC2046
    peer "${networks[0]}" 64 3 $(awk '{ print $1 }' "$work/sizes") || continue
    awk -v l=$rate 'NR == FNR { if ($1 == "sum") gloo[$2] = $3; next } { printf "%-8s %10d %10.3f %10s\n", l == "off" ? "unshaped" : l, $1, 1e3 * $2, gloo[$1] }' "$work/ddp.0" "$work/sizes"
done
