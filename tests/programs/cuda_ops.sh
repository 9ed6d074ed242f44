#!/usr/bin/env bash
# cuda_ops.sh -- every operation's example as a program for a GPU, over the stand-in of cuda.sh: gradients and losses of three steps equal
# those of the processor, within the bounds of tests/gpu/ops.txt.
#
# On a GPU ./check --gpu does the same.
#
# Deep: every operation becomes a program for a GPU.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
{ [ "$(uname -m)" = x86_64 ] && command -v g++; } > /dev/null || { skip "operations as programs for a GPU: they need g++ and x86-64"; finish; exit; }
exec bash tests/gpu/gpu.sh --shim --ops
