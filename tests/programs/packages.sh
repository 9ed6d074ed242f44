#!/usr/bin/env bash
# packages.sh -- what ./quickstart and ./check need on a system (../packages.sh): without cmake, without a compiler, with a tree that
# cannot be written.  fresh.sh runs the two commands themselves on fresh systems.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

# A system with the tools of every Debian, and without tools to build or to install packages.
mkdir "$work/bin"
for tool in bash sed sort head tr id mktemp rm mkdir; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
bare() { env -i PATH="$work/bin" bash -euo pipefail -c ". '$TENON_ROOT/tests/packages.sh'; $1"; }

succeeds "no cmake" bare recent_cmake
refuses "nothing to build with" '^missing: bison build-essential cmake flex \(names of Debian packages' bare \
    'need_packages gcc:build-essential cmake:cmake flex:flex bison:bison'
succeeds "nothing is missing" bare 'need_packages sed:sed /dev/null:base'
succeeds "a call that cannot be linked is missing" bare '[ "$(missing_packages "$openblas")" = "libopenblas-dev " ]'
touch "$work/a file"
refuses "a tree that cannot be written to" "cannot write to $work/a file/build: .* cmake -S '$work/a file' -B DIR" bare "writable_tree '$work/a file'"
finish
