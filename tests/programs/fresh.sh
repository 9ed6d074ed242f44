#!/usr/bin/env bash
# fresh.sh -- the two commands, ./quickstart and ./check, on fresh Debian systems with installed programs that have broken them before or
# could: a reference BLAS, MPICH beside Open MPI, clang as cc, an old cmake first in PATH, no git, a read-only tree, spaces in the path.
#
# Deep: it makes Debian systems in directories.
#
# A system is a minimal tree of this machine's Debian release, from the mirror that apt uses on this machine, entered with chroot in its
# own namespaces.  Needs root, debootstrap and git; otherwise skipped.  Takes about 20 minutes on two cores, and 4 GB of disk.
#
#   FRESH_BASE=DIR   keeps the minimal tree in DIR for the next run
set -uo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../systems.sh"
git -C "$TENON_ROOT" ls-files --error-unmatch quickstart > /dev/null 2>&1 || { skip "$TENON_ROOT is no git repository"; finish; exit; }

# ---- systems

# put TREE: makes a clean clone, with the files of the working tree as they are now
put() {
    rm -rf "${1:?}$project"
    mkdir -p "$1$project"
    git clone --quiet --no-local --no-hardlinks "$TENON_ROOT" "$1$project" &&
        git -C "$TENON_ROOT" ls-files -z --deduplicate | tar -C "$TENON_ROOT" --null --ignore-failed-read -T - -c 2> /dev/null | tar -C "$1$project" --no-same-owner -x
}

# files TREE: a list of files that must not change when a command refuses
files() { find "$1$project" -type f -printf '%P %s %T@\n' | sort | cksum; }

# trains TEXT TREE: ./quickstart reaches 99 %
trains() {
    succeeds "$1: ./quickstart" inside "$2" ./quickstart
    grep -Eq '^test accuracy 0\.99' "$work/out" && ok || bad "$1: ./quickstart does not end with its accuracy: $(tail -n 1 "$work/out")"
}

# checks TEXT TREE FILTER: ./check passes these tests, and there is at least one
checks() {
    succeeds "$1: ./check --filter $3" inside "$2" "./check --fresh --filter $3"
    tail -n 1 "$work/out" | grep -Eq '^[1-9][0-9]* passed, 0 failed' && ok || bad "$1: ./check --filter $3: $(tail -n 1 "$work/out")"
}

# answers TEXT PATTERN TREE COMMAND: exit code 1, the message, and no file changed
answers() {
    local before
    before=$(files "$3")
    refuses "$1" "$2" inside "$3" "$4"
    same "$1: the files of the tree" "$before" "$(files "$3")"
}

# installs TREE PACKAGE...: installs another package
installs() {
    local tree=$1; shift
    succeeds "apt-get install $*" inside "$tree" "DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $*"
}

project=/root/tenon
kept=${FRESH_BASE:-$work/base}
[ -d "$kept" ] || base "$kept" "$suite" "$mirror" || { skip "debootstrap cannot make a system here: $(tail -n 1 "$work/debootstrap")"; finish; exit; }
plain=$work/plain
cp -a "$kept" "$plain"

# ---- nothing is installed, not even git

put "$plain"
inside "$plain" "command -v git || command -v cc || command -v cmake" > /dev/null && bad "the system is not bare" || ok
trains "a bare system" "$plain"
grep -q '^installing .*build-essential' "$work/out" && ok || bad "a bare system: quickstart installed no compiler"
[ $failed = 0 ] || { finish; exit 1; }                    # all tests below begin with this tree
for neighbour in blas mpich clang; do cp -a "$plain" "$work/$neighbour"; done

# ---- a tree that cannot be written: mounted read-only, or of another user

elsewhere="cannot write to $project/build: .*cmake -S '$project' -B DIR"
put "$plain"
for command in quickstart check; do
    answers "a tree mounted read-only, $command" "$elsewhere" "$plain" "mount --bind -o ro $project $project && cd $project && ./$command"
    answers "another user's tree, $command" "$elsewhere" "$plain" "chmod 755 /root && setpriv --reuid=65534 --regid=65534 --clear-groups ./$command"
done
succeeds "the way out: a build elsewhere" inside "$plain" "mount --bind -o ro $project $project && cd $project &&
    cmake -S $project -B /tmp/build && cmake --build /tmp/build --parallel 2 --target tenon tenonrt && /tmp/build/tenon run models/mlp.tn -- --epochs 1"
rm -rf "$plain/tmp/build"

# ---- an old cmake first in PATH

if python3 -m pip install --quiet --no-deps --target "$work/pip" 'cmake<3.18' > "$work/out" 2>&1 &&
    [ -x "$work/pip/cmake/data/bin/cmake" ]; then
    cp -r "$work/pip/cmake/data" "$plain/opt/cmake"
    for command in quickstart check; do
        answers "an old cmake, $command" "^/opt/cmake/bin/cmake is version 3\.1[0-7]\.[0-9]+; 3\.18 or newer is needed" "$plain" "PATH=/opt/cmake/bin:\$PATH ./$command"
    done
else
    skip "pip finds no old cmake: $(tail -n 1 "$work/out")"
fi

# ---- a BLAS that is not OpenBLAS; then both, with the other one as the system's choice

tree=$work/blas
put "$tree"
installs "$tree" libblas-dev
trains "a reference BLAS" "$tree"
for test in programs.attention programs.blas; do checks "a reference BLAS" "$tree" $test; done
grep -q SKIP "$tree$project"/build/check/log/programs.blas.sh && bad "a reference BLAS: OpenBLAS was not installed" || ok
succeeds "choosing the reference BLAS" inside "$tree" 'for name in libblas.so libblas.so.3; do
    to=$(update-alternatives --list $name-$(gcc -print-multiarch) | grep /blas/) && update-alternatives --set $name-$(gcc -print-multiarch) $to || exit 1; done'
checks "both, the reference BLAS chosen" "$tree" programs.blas
rm -rf "$tree"

# ---- two MPIs

tree=$work/mpich
put "$tree"
installs "$tree" mpich libmpich-dev
trains "MPICH" "$tree"
# ranks TEXT: a program built with the selected mpicc runs as two ranks with the bits of one
ranks() {
    succeeds "$1: two ranks of LeNet" inside "$tree" 'export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 &&
        rm -f one.jsonl two.jsonl && build/tenon build models/lenet.tn --comm mpi -o build/ranks && options="--epochs 1 --limit-samples 640 --threads 1" &&
        build/ranks $options --log one.jsonl && mpirun -n 2 build/ranks $options --log two.jsonl'
    same "$1: ranks" "$(field "$tree$project/two.jsonl" start ranks)" "2 "
    same "$1: weights" "$(hashes "$tree$project/one.jsonl")" "$(hashes "$tree$project/two.jsonl")"
}
ranks "MPICH alone"
installs "$tree" libopenmpi-dev openmpi-bin
ranks "MPICH beside Open MPI"
succeeds "choosing MPICH" inside "$tree" 'update-alternatives --set mpi $(update-alternatives --list mpi | grep mpich) && update-alternatives --set mpirun $(update-alternatives --list mpirun | grep mpich)'
ranks "MPICH chosen beside Open MPI"
rm -rf "$tree"

# ---- clang as cc

tree=$work/clang
put "$tree"
installs "$tree" clang
succeeds "choosing clang" inside "$tree" 'update-alternatives --set cc /usr/bin/clang && cc --version | grep clang'
trains "clang as cc" "$tree"
checks "clang as cc" "$tree" programs.plain
rm -rf "$tree"

# ---- spaces in the path

rm -rf "$plain$project"
project="/root/my projects/tenon 1"
put "$plain"
trains "spaces in the path" "$plain"
checks "spaces in the path" "$plain" language
answers "a read-only tree, spaces in its path" "cmake -S '$project' -B DIR" "$plain" 'mount --bind -o ro "$PWD" "$PWD" && cd "$PWD" && ./quickstart'
finish
