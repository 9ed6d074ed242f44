#!/usr/bin/env bash
# Deep: a minute; it downloads Debian's kernel and boots it under qemu.
#
# numa.sh -- threads and memory on a machine with two sockets, which qemu emulates: eight processors, two hyperthreads a core, two cores a
# socket, and a memory node for each socket.
#
# By default a program has a thread for each core, bound to different cores.  Each thread touches its part of the arena first, so half of the
# arena lies on each node.  The weights are those of this machine to the bit.  Needs qemu-system-x86_64, busybox, cpio and Debian's package
# of a kernel for virtual machines, which is only unpacked.  Skipped where one of them is missing.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
[ "$(uname -m)" = x86_64 ] || { skip "the emulated machine is an x86-64"; finish; exit; }
for tool in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio apt-get:apt; do
    command -v "${tool%:*}" > /dev/null || { skip "${tool%:*} is not installed (Debian: ${tool#*:})"; finish; exit; }
done
cd "$work"
package=$(apt-cache depends linux-image-cloud-amd64 2> /dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9.-]*-cloud-amd64\)$/\1/p' | head -n 1)
if ! apt-get download "${package:-linux-image-cloud-amd64}" > out 2>&1 || ! dpkg-deb --fsys-tarfile linux-image-*.deb | tar x --wildcards './boot/vmlinuz*'; then
    skip "no kernel: Debian's package linux-image-cloud-amd64 cannot be downloaded"; finish; exit
fi

# ---- a system of one program: init prints sections that this test reads
build mlp "$work/mlp" --cpu generic --batch 512
gcc -std=gnu11 -O1 -Wall -Wextra -Werror -static -o pages "$TENON_ROOT/tests/tools/pages.c"
mkdir -p root/{bin,proc,sys,dev,tmp,mnist}
small_mnist root/mnist 1024 100 || true                      # ignores an error: head closes the pipe early
cp mlp pages "$(command -v busybox)" root/bin
for name in sh mount cat grep poweroff sed seq sleep taskset; do ln -sf busybox "root/bin/$name"; done
ldd mlp | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "root$(dirname "$library")"
    cp -L "$library" "root$library"
done
cat > root/init << 'END'
#!/bin/sh
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp

# look NAME COMMAND...: while it trains, the processor of each thread and the nodes of its memory
look() {
    name=$1; shift
    rm -f /tmp/log
    "$@" --data /mnist --epochs 100000 --log /tmp/log > /tmp/out 2>&1 &
    program=$!
    for i in $(seq 600); do grep -q '"epoch"' /tmp/log 2> /dev/null && break; sleep 0.1; done
    echo "== $name"
    grep -h Cpus_allowed_list /proc/$program/task/*/status | sed 's/.*:[^0-9]*/processor /'
    pages $program | sed 's/^/node /'
    kill -9 $program
    wait $program 2> /dev/null
}
echo "== start"
mlp info | grep '^threads'
look all mlp
look one-socket taskset 0f mlp
look free mlp --pin none
echo "== hashes"
mlp --data /mnist --epochs 2 --log /tmp/two > /dev/null
cat /tmp/two
echo "== end"
poweroff -f
END
chmod +x root/init
(cd root && find . | cpio -o -H newc --quiet | gzip -1) > initrd
memory=(-object memory-backend-ram,size=512M,id=m0 -object memory-backend-ram,size=512M,id=m1)
timeout 600 qemu-system-x86_64 -accel tcg,thread=multi -cpu max,vendor=GenuineIntel -m 1G -smp 8,sockets=2,cores=2,threads=2 "${memory[@]}" \
    -numa node,nodeid=0,cpus=0-3,memdev=m0 -numa node,nodeid=1,cpus=4-7,memdev=m1 -kernel boot/vmlinuz-* -initrd initrd \
    -append "console=ttyS0 quiet panic=-1" -display none -serial stdio -no-reboot < /dev/null 2> err | tr -d '\r' > console || true
if ! grep -q '^== end$' console; then
    bad "the emulated machine did not reach its end:"; tail -n 20 err console; finish; exit 1
fi

# ---- what it printed
section() { sed -n "/^== $1\$/,/^== /p" console | sed '1d; /^== /d'; }
processors() { section "$1" | sed -n 's/^processor //p'; }

# halves NAME: the number of neighbours in memory, one on node 0 and one on node 1, that have the same number of pages,
# give or take three: the first and the second half of a region of the arena
halves() {
    section "$1" | awk '/^node / { if (node == 0 && $2 == 1 && pages >= 20 && pages - $3 <= 3 && $3 - pages <= 3) n++; node = $2; pages = $3 } END { print n + 0 }'
}

same "threads by default" "threads: 4 on 4 cores; pinned" "$(section start)"
# /proc/PID/task has no thread of the data loader here: the samples are in memory.
same "each thread has a core of its own" "0 2 4 6" "$(processors all | grep -x '[0-9]*' | sort -nu | tr '\n' ' ' | sed 's/ $//')"
same "the arena has weights, shards and regions of threads: a half of each on the node of its threads" 3 "$(halves all)"
same "a mask of one socket is kept" "0-3" "$(processors one-socket | sort -u | tr '\n' ' ' | sed 's/ $//')"
section one-socket | grep -q '^node 1 ' && bad "a mask of one socket: memory of the other socket" || ok
same "--pin none binds no thread" "0-7" "$(processors free | sort -u | tr '\n' ' ' | sed 's/ $//')"
./mlp --data root/mnist --epochs 2 --log here > out
same "weights after two epochs" "$(hashes here)" "$(section hashes > there; hashes there)"
finish
