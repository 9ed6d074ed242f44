#!/usr/bin/env bash
# torch.sh -- PyTorch computes the same losses and gradients from the same weights and batches, within the bounds of same_numbers.py.
#
#   TENON_TORCH=PYTHON   an interpreter with torch and numpy (default: python3); without it everything is skipped
#   CHECK_DEEP=1          also all deep networks, and those over time and text; words on the command line select cases
set -euo pipefail
. "$(dirname "$0")/../common.sh"
python=${TENON_TORCH:-python3}
cases=(lenet mlp resnet20)
deep=(resnet56 resnet50_32 resnet50_64 inception_v3 mobilenet_v2 densenet_22)
sequences=(lstm_synthetic lstm_text lstm_imdb gru_imdb gru_before char_lstm gpt_char text_cnn)
[ "$CHECK_DEEP" = 0 ] || cases+=("${deep[@]}" "${sequences[@]}")
[ $# = 0 ] || cases=("$@")

if ! "$python" -c 'import torch, numpy' 2> /dev/null; then
    for name in "${cases[@]}"; do skip "$name: $python has no torch (TENON_TORCH names an interpreter that has)"; done
    finish; exit
fi
for name in "${cases[@]}"; do
    if PYTHONDONTWRITEBYTECODE=1 "$python" "$TENON_ROOT/tests/peers/same_numbers.py" "$TENON" "$TENON_ROOT/models" "$work" "$name" > "$work/out" 2> "$work/err"; then ok
    else bad "$name differs from PyTorch"; tail -n 5 "$work/err"; fi
    cat "$work/out"
    rm -rf "${work:?}/$name"
done
[ "$CHECK_DEEP" = 1 ] || [ $# -gt 0 ] || skip "the deep networks, and those over time and text, beside PyTorch: CHECK_DEEP=1"
finish
