#!/usr/bin/env bash
# inlined.sh -- checks that kernels contain all that they call: a small function of runtime/cpu that the C compiler leaves as a function of
# its own works on sizes that it does not know, many times slower, and no result shows it.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

# the library has functions of its own with some of these names
small=$(grep -hoE '^RT_INLINE [a-zA-Z_0-9 *]*[ *][a-z_0-9]+\(' "$TENON_ROOT"/runtime/cpu/*.h | sed -E 's/.*[ *]([a-z_0-9]+)\($/\1/' | sort -u |
    comm -23 - <(nm "$(dirname "$TENON")/lib/libtenonrt.a" | awk '{ print $NF }' | sort -u))

# left PROGRAM: the small functions that are functions of the program, or "none".  gcc adds .constprop.0, .isra.0 or .part.0 to the
# name of a copy.
left() {
    local names
    names=$(nm "$1" | awk '$2 == "t" || $2 == "T" { sub(/\..*/, "", $3); print $3 }' | sort -u | comm -12 - <(echo "$small") | tr '\n' ' ')
    echo "${names:-none}"
}

[ "$(wc -l <<< "$small")" -gt 300 ] && ok || bad "only these small functions are known: $small"
# resnet20_cifar10: tiles of convolutions that all kernels share; lstm_text: loops over time
for model in lenet resnet20_cifar10 lstm_text gpt_char "mlp --dtype bf16"; do
    read -r name options <<< "$model"
    # shellcheck disable=SC2086
    succeeds "$model is built" "$TENON" build "$TENON_ROOT/models/$name.tn" $options -o "$work/program"
    same "small functions that the kernels of $model call" none "$(left "$work/program")"
done
finish
