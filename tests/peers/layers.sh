#!/usr/bin/env bash
# layers.sh -- single layers compute the same outputs, loss and gradients in f64 as PyTorch's, within the bound of torch_layers.py.
#
#   TENON_TORCH=PYTHON   an interpreter with torch and numpy (default: python3); without it everything is skipped
#   CHECK_DEEP=1         also programs with --plain; words on the command line select cases
set -euo pipefail
. "$(dirname "$0")/../common.sh"
python=${TENON_TORCH:-python3}
cases=(formulas losses attention resize group_norm prelu conv_transpose2d global_max_pool conv1d pool1d)
[ $# = 0 ] || cases=("$@")

if ! "$python" -c 'import torch, numpy' 2> /dev/null; then
    for name in "${cases[@]}"; do skip "$name beside PyTorch: $python has no torch (TENON_TORCH names an interpreter that has)"; done
    finish; exit
fi
PYTHONDONTWRITEBYTECODE=1 "$python" "$TENON_ROOT/tests/peers/torch_layers.py" "$TENON" "$work" "${cases[@]}" > "$work/out" 2> "$work/err" || true
cat "$work/out"
for name in "${cases[@]}"; do
    if grep -q "^$name" "$work/out" && ! grep -q "^$name.*WRONG" "$work/out"; then ok
    else bad "$name differs from PyTorch"; tail -n 5 "$work/err"; fi
done
finish
