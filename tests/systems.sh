# systems.sh -- sourced after common.sh by tests on fresh systems: minimal trees of Debian or Ubuntu in directories, entered with chroot in
# their own namespaces.  Ends a test as skipped where systems cannot be made: it needs root, debootstrap and git.
#
#   $suite, $mirror    the release of this machine, and the address from which apt gets it
#   $project           the directory in which `inside` starts commands
unset LD_PRELOAD                                          # ./check's recording must not enter the systems

[ "$(id -u)" = 0 ] && unshare --mount --pid --uts --ipc --fork true 2> /dev/null || { skip "no root, to make and enter a system"; finish; exit; }
for tool in debootstrap apt-get git; do
    command -v $tool > /dev/null || { skip "no $tool, to make a system"; finish; exit; }
done
. "$(dirname "${BASH_SOURCE[0]}")/unpack.sh"
[ -n "$suite" ] && [ -n "$mirror" ] || { skip "apt has no source for the release '$suite' of this machine"; finish; exit; }

# base DIR SUITE MIRROR [SCRIPT OPTION...]: a minimal tree with the name servers and the proxy of this machine: no compiler, no git, no
# package lists.  SCRIPT and OPTION are those of debootstrap.
base() {
    local tree=$1 file
    mkdir -p "$(dirname "$tree")"
    debootstrap --variant=minbase "${@:5}" "$2" "$tree.new" "$3" ${4:+"$4"} > "$work/debootstrap" 2>&1 || return
    rm -rf "$tree.new"/var/cache/apt/archives/*.deb "$tree.new"/var/lib/apt/lists/*
    for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
        [ ! -e $file ] || { mkdir -p "$tree.new$(dirname $file)"; cp -L $file "$tree.new$file"; }
    done
    apt-config dump | grep '^Acquire::http' > "$tree.new/etc/apt/apt.conf.d/50mirror"      # a proxy, if there is one
    echo "127.0.0.1 fresh" >> "$tree.new/etc/hosts"
    printf '#!/bin/sh\nexit 101\n' > "$tree.new/usr/sbin/policy-rc.d"                      # packages must not start services
    chmod 755 "$tree.new/usr/sbin/policy-rc.d"
    mv -T "$tree.new" "$tree"
}

# inside TREE COMMAND: runs a shell command in the project's directory, as root, with only the network of this
# environment
inside() {
    local vars=() v
    for v in http_proxy https_proxy no_proxy; do [ -z "${!v:-}" ] || vars+=("$v=${!v}"); done
    timeout 1800 unshare --mount --pid --uts --ipc --fork --kill-child sh -ec '
        tree=$1; shift
        hostname fresh
        mount -t proc proc "$tree/proc"; mount -t sysfs -o ro sysfs "$tree/sys"
        mount --rbind /dev "$tree/dev"; mount -t tmpfs tmpfs "$tree/dev/shm"
        chroot "$tree" env -i HOME=/root USER=root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
    ' sh "$1" "${vars[@]}" sh -c "cd '$project' && $2" < /dev/null
}
