#!/usr/bin/env bash
# hosts.sh -- several hosts on one machine: node1 .. nodeN.  Each has a network, a host name, a /dev/shm and an /etc/hosts of its own
# (Linux namespaces).  A bridge in another namespace connects them.  The machine's real network is not touched; files are shared.
#
#   hosts.sh up N            hosts.sh down               hosts.sh able          exit code 0 if the machine can do all this
#   hosts.sh run K CMD...    runs CMD on node K          hosts.sh mpirun ...    Open MPI's mpirun, from node 1 over all nodes
#   hosts.sh rate R|off      limits the speed of links   hosts.sh cut K         drops all packets of node K without an error
#   hosts.sh off K           kills every process of node K, as a loss of power would
#
# HOSTS names the cluster (default tenon), so that two clusters can exist at the same time.  Needs root, iproute2, util-linux.
set -euo pipefail
name=${HOSTS:-tenon}
state=/run/hosts.$name switch=$name-switch self=$(readlink -f "$0")
count() { cat "$state/count"; }
quietly() { "$@" 2> /dev/null || true; }

able() {
    [ "$(id -u)" = 0 ] && type ip tc nsenter unshare mpirun > /dev/null 2>&1 && ip netns add "$name-try" 2> /dev/null || return 1
    local rc=0
    ip -n "$name-try" link add br0 type bridge 2> /dev/null || rc=1
    ip netns del "$name-try"
    return $rc
}

up() {
    local n=$1 k
    mkdir -p "$state/tmp"
    echo "$n" > "$state/count"
    { echo "127.0.0.1 localhost"; for k in $(seq "$n"); do echo "10.78.0.$k node$k"; done; } > "$state/names"
    for k in $(seq "$n"); do echo "node$k slots=${SLOTS:-1}"; done > "$state/slots"
    ip netns add "$switch"
    ip -n "$switch" link add br0 type bridge forward_delay 0
    ip -n "$switch" link set br0 up
    for k in $(seq "$n"); do
        local node=$name-node$k
        ip netns add "$node"
        ip -n "$switch" link add "p$k" type veth peer name eth0 netns "$node"
        ip -n "$switch" link set "p$k" master br0 up
        ip -n "$node" addr add "10.78.0.$k/24" dev eth0
        ip -n "$node" link set lo up
        ip -n "$node" link set eth0 up
        quietly ip netns exec "$node" sysctl -qw net.ipv4.tcp_congestion_control=cubic    # the pacing of bbr and tbf disturb each other
        : > "$state/uts$k"
        mkdir "$state/shm$k"
        unshare --uts="$state/uts$k" hostname "node$k"
        mount -t tmpfs tmpfs "$state/shm$k"
    done
}

off() { local p; for p in $(quietly ip netns pids "$name-node$1"); do quietly kill -9 "$p"; done; }

down() {
    local k
    [ -e "$state" ] || return 0
    for k in $(seq "$(count)"); do
        off "$k"
        quietly umount "$state/shm$k"
        quietly umount "$state/uts$k"
        quietly ip netns del "$name-node$k"
    done
    quietly ip netns del "$switch"
    rm -rf "$state"
}

enter() {
    local k=$1; shift
    # shellcheck disable=SC2016
    exec nsenter --net="/run/netns/$name-node$k" --uts="$state/uts$k" unshare --mount sh -ec \
        'mount --bind "$0/names" /etc/hosts; mount --bind "$0/shm$1" /dev/shm; shift; exec "$@"' "$state" "$k" "$@"
}

# The bucket holds two milliseconds of data: with less, the kernel's clock lets less through than requested.
rate() {
    local k at burst=32kb
    case $1 in *gbit) burst=256kb ;; esac
    for k in $(seq "$(count)"); do
        for at in "$name-node$k eth0" "$switch p$k"; do
            quietly ip netns exec "${at% *}" tc qdisc del dev "${at#* }" root
            [ "$1" = off ] || ip netns exec "${at% *}" tc qdisc add dev "${at#* }" root tbf rate "$1" burst "$burst" latency 100ms
        done
    done
}

# Keep-alive notices a broken connection after 3 + 3 * 1 s in this cluster; with Linux's defaults it takes eight
# minutes.
start() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_MCA_plm_rsh_agent="$self rsh" OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_MCA_orte_default_hostfile="$state/slots"
    export OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_btl=tcp,self OMPI_MCA_pml=ob1
    export OMPI_MCA_oob_tcp_keepalive_time=3 OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=3
    export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_orte_tmpdir_base="$state/tmp"
    enter 1 mpirun "$@"
}

word=${1:-help}
[ $# = 0 ] || shift
case $word in
able | up | down | off | rate) "$word" "$@" ;;
run) enter "$@" ;;
rsh) while [ "${1#-}" != "$1" ]; do shift; done; host=$1; shift; enter "${host#node}" sh -c "$*" ;;
mpirun) start "$@" ;;
cut) ip -n "$switch" link set "p$1" nomaster ;;
*) sed -n '2,/^set -euo/p' "$self" | grep '^#' | sed 's/^# \{0,1\}//' ;;
esac
