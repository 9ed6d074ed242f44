#!/usr/bin/env bash
# cuda_ops.sh -- every operation's example as a program for a GPU, over the stand-in of cuda.sh: gradients and losses of three steps are the
# processor's, each within its bound of tests/gpu/ops.txt.
#
# By default some, all with ./check --cuda; on a GPU ./check --gpu does the same.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
{ [ "$(uname -m)" = x86_64 ] && command -v g++; } > /dev/null || { skip "operations as programs for a GPU: they need g++ and x86-64"; finish; exit; }
if [ "$CHECK_ALL" = 1 ] || [ "${CHECK_CUDA:-0}" = 1 ]; then exec bash tests/gpu/gpu.sh --shim --ops; fi
skip "all operations as programs for a GPU: CHECK_ALL=1 or ./check --cuda"
GPU_OPS="bias layer_norm batch_norm lstm concat causal_attention" bash tests/gpu/gpu.sh --shim --ops > "$work/said" 2>&1 || true
grep -v " passed, " "$work/said" || true
read -r some _ wrong _ <<< "$(tail -n 1 "$work/said")"
[ "$some" -gt 0 ] || bad "nothing was compared"
passed=$((passed + some)) failed=$((failed + wrong))
finish
