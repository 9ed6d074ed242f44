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
cat > "$work/tiles.tn" << 'END'
model tiles(image: f32[3, 8, 8]) {
    h = conv2d(image, 24, kernel = 3, stride = 2) |> relu
    return flatten(h) |> dense(3)
}
END
recipe tiles 256 1 >> "$work/tiles.tn"

models="$work/tiles
$TENON_ROOT/models/lenet
$TENON_ROOT/models/mlp --dtype bf16"
! deep "kernels of loops over time, residual networks and attention" ||
    models+=$(printf '\n%s' "$TENON_ROOT"/models/{lstm_text,resnet20_cifar10,gpt_char,unet})
while read -r model options; do
    # shellcheck disable=SC2086
    succeeds "$model is built" "$TENON" build "$model.tn" $options -o "$work/program"
    same "small functions that the kernels of $(basename "$model") call" none "$(left "$work/program")"
    [ "$model" != "$work/tiles" ] || ! nm "$work/program" | grep ' T conv_sum_' > /dev/null || tiles=1
done <<< "$models"
same "a program has the tiles that several kernels call" 1 "${tiles:-0}"
finish
