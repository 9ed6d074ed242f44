#!/usr/bin/env bash
# buckets.sh -- gradients divided into buckets (--bucket): the same bits as with one bucket, for networks of every kind; a bucket is
# computed completely before the next one begins.  Groups simulate ranks; ranks.sh tests the same between processes.
#
# Parts: words plan
# Deep parts: norm
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cat > "$work/norm.tn" <<'END'
model norm(image: f32[1, 12, 12], classes: int = 4) {
    h = conv2d(image, 8, kernel = 3, pad = 1) |> batch_norm |> relu
    h = conv2d(h, 8, kernel = 3, pad = 1) |> batch_norm |> relu |> dropout(0.2)
    return flatten(h) |> dense(24) |> tanh |> dense(classes)
}
train norm { data = synthetic(samples = 192, test_samples = 64); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.05, momentum = 0.9); batch = 32; shards = 4; epochs = 2 }
END
cat > "$work/words.tn" <<'END'
model words(token: i32[6], classes: int = 3) {
    return embedding(token, 40, 8) |> lstm(12) |> dense(classes)
}
train words { data = synthetic(samples = 192, test_samples = 64, vocab = 40); loss = softmax_cross_entropy; optimizer = adam(lr = 1e-3); batch = 32; shards = 4; epochs = 2; clip = norm(1.0) }
END
rows() { "$TENON" emit "$@" --to c | awk '/RtBucket buckets/ { on = 1 } /^};/ { on = 0 } on && /\.offset/ { n++ } END { print n + 0 }'; }

for model in norm words; do
    part $model || continue
    file=$work/$model.tn
    "$TENON" build "$file" -o "$work/one" || { bad "$model does not compile"; continue; }
    "$work/one" --epochs 2 --log "$work/one.log" > "$work/out" 2>&1 || { bad "$model does not run"; cat "$work/out"; }
    want=$(hashes "$work/one.log")
    [ "$(rows "$file")" = 1 ] && ok || bad "$model: without --comm there is one bucket"
    for options in "--bucket 1k" "--bucket 4k" "--bucket 1" "--bucket 1 --plain" "--bucket 1k --plain"; do
        [ "$options" != "--bucket 1k --plain" ] || deep "$model: larger buckets of a plain program" || continue
        # shellcheck disable=SC2086
        [ "$(rows "$file" $options)" -gt 1 ] && ok || bad "$model $options: one bucket"
        if [[ $options = *plain* ]]; then
            witness "$file" "$work/p" --bucket "$(echo "$options" | cut -d ' ' -f 2)" || bad "$model $options does not compile"
            [ "$options" != "--bucket 1 --plain" ] || witness "$file" "$work/one" || bad "$model --plain does not compile"
            rm -f "$work/one.log"
            "$work/one" --log "$work/one.log" > "$work/out"
            want=$(hashes "$work/one.log")
        else
            # shellcheck disable=SC2086
            "$TENON" build "$file" $options -o "$work/p" || bad "$model $options does not compile"
        fi
        for groups in 1 2 4; do
            rm -f "$work/log"
            "$work/p" --groups $groups --log "$work/log" > "$work/out" 2>&1 || cat "$work/out"
            same "$model $options, $groups groups" "$(hashes "$work/log")" "$want"
        done
    done
done

if part plan; then
    # `ready` never decreases, and the buckets' bytes are adjacent and cover the whole buffer.
    "$TENON" emit "$work/norm.tn" --to c --bucket 1k > "$work/c"
    awk '/\.offset = / && /\.ready/ { gsub(/[{},]/, " "); o = $3; b = $6; r = $9; if (o != end || r < last) wrong = 1; end = o + b; last = r }
     END { exit wrong || end == 0 }' "$work/c" && ok || bad "buckets are out of order"
    # Each sum is computed in a phase (else the compiler stops), also if the last bucket needs no other phase.
    for file in $(shipped_models); do
        for options in "--comm mpi" "--bucket 4k" "--bucket 1"; do
            # shellcheck disable=SC2086
            succeeds "${file##*/} $options" "$TENON" emit "$file" --to c $options
        done
    done
    refuses "a bucket of no size" "needs a size" "$TENON" emit "$work/norm.tn" --bucket large
fi
finish
