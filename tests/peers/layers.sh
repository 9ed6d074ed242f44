#!/usr/bin/env bash
# layers.sh -- single layers compute the same outputs, loss and gradients in f64 as PyTorch's, within the bound of torch_layers.py.
#
#   TENON_TORCH=PYTHON   an interpreter with torch and numpy (default: python3); without it everything is skipped
#   CHECK_DEEP=1         also programs with --plain; words on the command line select cases
set -euo pipefail
. "$(dirname "$0")/../common.sh"
python=${TENON_TORCH:-python3}
cases=(resize group_norm prelu global_max_pool conv1d pool1d)
[ $# = 0 ] || cases=("$@")

export PYTHONDONTWRITEBYTECODE=1
for name in "${cases[@]}"; do
    if ! "$python" -c 'import torch, numpy' 2> /dev/null; then
        skip "$name beside PyTorch: $python has no torch (TENON_TORCH names an interpreter that has)"
    elif "$python" "$TENON_ROOT/tests/peers/torch_layers.py" "$TENON" "$work" "$name" > "$work/out" 2> "$work/err"; then ok; cat "$work/out"
    else bad "$name differs from PyTorch"; tail -n 5 "$work/out" "$work/err"; fi
done
finish
