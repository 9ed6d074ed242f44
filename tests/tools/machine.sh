# machine.sh -- sourced by tests: describes another machine as a tree of files, which programs read with TENON_MACHINE=DIR.
#
#   machine DIR SOCKETS CACHES CORES [SIBLINGS]      numbers of sockets, caches of a socket, cores of a cache, processors of a core
#   quota DIR PROCESSORS                             gives its control group a quota
#   turns THREADS                                    a value of TENON_TURNS: 3, 7, 11 ... threads run from last to first
machine() {
    local dir=$1 sockets=$2 caches=$3 cores=$4 siblings=${5:-1} i k core cache all at list
    all=$((sockets * caches * cores))
    for ((i = 0; i < all * siblings; i++)); do
        core=$((i % all)) cache=$((i % all / cores)) at=$dir/sys/devices/system/cpu/cpu$i list=
        mkdir -p "$at"/{topology,cache/index0,node$((cache / caches))}
        for ((k = 0; k < cores * siblings; k++)); do
            list+=${list:+,}$((k / cores * all + cache * cores + k % cores))
        done
        echo $((cache / caches)) > "$at/topology/physical_package_id"
        if [ "$siblings" = 2 ]; then echo $core,$((core + all)); else echo $core; fi > "$at/topology/thread_siblings_list"
        echo 3 > "$at/cache/index0/level"
        echo $list > "$at/cache/index0/shared_cpu_list"
    done
    mkdir -p "$dir/proc/self"
    echo 0-$((all * siblings - 1)) > "$dir/sys/devices/system/cpu/online"
    printf 'Cpus_allowed_list:\t0-%d\n' $((all * siblings - 1)) > "$dir/proc/self/status"
}

quota() {
    mkdir -p "$1/sys/fs/cgroup/pod"
    echo 0::/pod > "$1/proc/self/cgroup"
    echo '35 25 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw' > "$1/proc/self/mountinfo"
    echo "$(($2 * 100000)) 100000" > "$1/sys/fs/cgroup/cpu.max"
}

turns() { if [ $(($1 % 4)) = 3 ]; then echo -1; else echo 1; fi; }
