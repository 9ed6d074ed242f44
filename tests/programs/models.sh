#!/usr/bin/env bash
# models.sh -- the shipped deep networks are those of the papers: `tenon show` counts the published numbers of parameters and
# multiply-adds, and the heads of the model files state them.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

set -- "$TENON_ROOT"/models/*.tn
same "networks that README counts" "$(sed -n 's/.* \([0-9]*\) networks with paper.*/\1/p' "$TENON_ROOT/README.md")" $#

# shown MODEL OPTIONS...: the file with the output of `tenon show`, which runs once
shown() {
    local file="$work/shown $*"
    [ -s "$file" ] || "$TENON" show "$TENON_ROOT/models/$1.tn" --cpu x86-64-v4 "${@:2}" > "$file" || rm "$file"
    echo "$file"
}

# counts MODEL PARAMETERS MACS OPTIONS...
counts() {
    local model=$1 parameters=$2 macs=$3; shift 3
    same "parameters and multiply-adds of $model $*" "$(awk '$1 == "total" { print $2, $3 }' "$(shown "$model" "$@")")" "$parameters $macs"
    case "$*" in *size=*) return ;; esac               # no head has numbers for other image sizes
    for figure in "$parameters" "$macs"; do
        grep '^#' "$TENON_ROOT/models/$model.tn" | grep -qF " $figure" && ok || bad "the head of $model.tn does not state $figure"
    done
}
counts resnet50 25,557,032 3,857,973,248
counts resnet50 25,557,032 5,038,358,528 --set model.size=256
counts resnet50_cifar10 23,528,522 78,712,832
counts resnet56_cifar10 855,578 125,747,840
counts resnet20_cifar10 272,282 40,813,184
counts quick_cifar10 1,971,328 146,278,912
counts resnet56_cifar10 272,282 40,813,184 --set model.depth=20
if deep "ResNets of 32, 44 and 110 layers"; then
    counts resnet56_cifar10 466,714 69,124,736 --set model.depth=32
    counts resnet56_cifar10 661,146 97,436,288 --set model.depth=44
    counts resnet56_cifar10 1,730,522 253,149,824 --set model.depth=110
fi
counts vgg11 132,863,336 7,609,090,048
counts mobilenet_v2 3,504,872 300,774,272
counts inception_v3 23,834,568 5,713,216,096
counts inception_v3_cifar10 21,806,058 5,711,188,576
counts densenet_bc_100_12 769,162 287,929,692
counts autoencoder 209,968 208,896
counts siamese 136,484 3,997,312
counts two_heads 431,581 2,293,500
counts vae 829,232 827,392
counts forecast 19,494 282,624
counts dates 185,323 3,102,464
counts unet 108,529 29,032,448
counts vit_tiny 359,266 24,847,296
counts lstm_text 107,713 3,960,960
counts char_lstm 871,745 111,312,896
counts lstm_imdb 2,691,713 10,485,888
counts gru_imdb 2,658,945 7,864,448
# Without the train block the layers are the same, also batch_norm: only the rows of the loss and the accuracy are
# missing.
for model in resnet50 mobilenet_v2 densenet_bc_100_12; do
    sed '/^train /,/^}/d' "$TENON_ROOT/models/$model.tn" > "$work/untrained.tn"
    same "parameters and multiply-adds of $model without a train block" \
        "$("$TENON" show "$work/untrained.tn" | awk '$1 == "total" { print $2, $3 }')" "$(awk '$1 == "total" { print $2, $3 }' "$(shown $model)")"
done
# The memory in the heads is that of the plan for two threads, with two figures.
for model in $(grep -l '^#   memory ' "$TENON_ROOT"/models/*.tn); do
    said=$(sed -n 's/^#   memory  *\([0-9.]* [GM]B\) planned.*/\1/p' "$model")
    awk -v said="${said:-0 MB}" '
        function mb(n, unit) { return n * (unit == "GB" ? 1000 : unit == "MB" ? 1 : 0.001) }
        /^memory/ { inside = 1; next }
        inside && $1 == "threads" { planned += 2 * mb($6, substr($7, 1, 2)) }
        inside && $1 != "threads" && $1 != "planned" && $1 != "recomputed" { for (i = 1; i < NF; i++) if ($i ~ /^[0-9.]+$/) { planned += mb($i, $(i + 1)); break } }
        END { split(said, s, " "); m = mb(s[1], s[2]); exit !(m > 0.93 * planned && m < 1.07 * planned) }' "$(shown "$(basename "$model" .tn)")" && ok ||
        bad "$(basename "$model") says it needs $said, and show says another number"
done

# The memory plan as a picture: one box for each buffer, none outside.
succeeds "show --memory" "$TENON" show "$TENON_ROOT/models/resnet56_cifar10.tn" --memory "$work/plan.svg"
[ "$(grep -c '<rect' "$work/plan.svg")" -gt 100 ] && tail -n 1 "$work/plan.svg" | grep -q '^</svg>$' && ok || bad "the picture of the plan is not whole"
same "boxes outside the picture" "$(grep -o '<rect x="[0-9.]*" y="[0-9.]*" width="[0-9.]*"' "$work/plan.svg" | awk -F'"' '$2 < 90 || $2 + $6 > 1000.2' | wc -l)" 0
"$TENON" emit "$TENON_ROOT/models/resnet50.tn" --to dot > "$work/dot"
same "boxes of resnet50" "$(grep -c 'label=' "$work/dot")" 26
same "its longest stage, one box after the other" "$(grep -c 'label="stage3.bottleneck[1-6].n(N, 1024, 14, 14)"' "$work/dot")" 6
succeeds "a picture of a network that is tested in more than it trains in" "$TENON" show "$TENON_ROOT/models/resnet20_cifar10.tn" --memory "$work/more.svg"
same "a thread's memory in the picture and in the table" "$(sed -n 's/.*a thread: \([^,]*\),.*/\1/p' "$work/more.svg")" \
    "$(sed -n 's/^ *threads .* x \([^;]*\);.*/\1/p' "$work/out")"
refuses "a picture in no directory" "cannot write .*plan.svg: No such file" "$TENON" show "$TENON_ROOT/models/mlp.tn" --memory "$work/no/plan.svg"
refuses "a depth that is none" "19 / 6 leaves a remainder" "$TENON" check "$TENON_ROOT/models/resnet56_cifar10.tn" --set model.depth=21

# Blocks of the table are folded until it fits a screen; --all unfolds them; both have the same total.
models="resnet50 mobilenet_v2 lenet"
! deep "a table of Inception v3 that one can read" || models+=" inception_v3"
for model in $models; do
    sed '/^batch/,$d' "$(shown $model)" > "$work/folded"
    sed '/^batch/,$d' "$(shown $model --all)" > "$work/all"
    [ "$(wc -l < "$work/folded")" -lt 46 ] && ok || bad "tenon show $model is longer than a screen: $(wc -l < "$work/folded") lines"
    same "the totals of $model" "$(awk '$1 == "total" { print $2, $3, $4 }' "$work/folded")" "$(awk '$1 == "total" { print $2, $3, $4 }' "$work/all")"
    same "the columns of $model" "$(awk '/ total /, 0 { next } { print length($0) }' "$work/folded" | sort -u | wc -l)" 1
done
grep -q 'stage3.bottleneck6 *6 layers *(N, 1024, 14, 14) *1,117,184' "$(shown resnet50)" && ok || bad "resnet50 has no row for stage3.bottleneck6"
finish
