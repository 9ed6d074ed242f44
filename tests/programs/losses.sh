#!/usr/bin/env bash
# losses.sh -- the library file losses.tn: every model finds it; its losses have the values of their formulas and right gradients.  A
# loss can read an input.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$work"

make() { "$TENON" build "$1.tn" -o "$1" "${@:2}" > out 2>&1 || { bad "tenon build $*"; cat out; finish; exit 1; }; }
recipe="data = synthetic(samples = 96, test_samples = 40, classes = 3); optimizer = sgd(lr = 0.1); batch = 16; shards = 4; epochs = 2"

# ---- import

printf 'import "losses.tn"\nmodel net(x: f32[8]) { return dense(x, 3) }\ntrain net { %s; loss = focal(output, label) }\n' "$recipe" > far.tn
succeeds "losses.tn from another directory" "$TENON" check far.tn
mkdir own
cp far.tn own/
echo 'block focal(output, label) { return nothing(output) }' > own/losses.tn
refuses "a file beside the model comes first" "own/losses.tn:1:[0-9]+: error: .*nothing" "$TENON" check own/far.tn
sed 's|"losses.tn"|"./losses.tn"|' far.tn > path.tn
refuses "a path is only beside the model" "cannot import './losses.tn'" "$TENON" check path.tn

# ---- without the import

printf 'model net(x: f32[8]) { return dense(x, 3) }\ntrain net { %s; loss = NAME }\n' "$recipe" > none.tn
for pair in focal:focal binary_focal:binary_focal dice:dice kl:kl triplet:triplet contrastive:contrastive KLDivLoss:kl dice_loss:dice; do
    name=${pair#*:}
    grep -q "^block $name(" "$TENON_ROOT/models/library/losses.tn" && ok || bad "losses.tn has no block $name"
    for call in "${pair%:*}" "${pair%:*}(output, label)"; do
        sed "s/NAME/$call/" none.tn > name.tn
        refuses "$call without the import" "help: write import .losses.tn. at the top of the file: it has the loss '$name'" "$TENON" check name.tn
    done
done
{ echo 'import "losses.tn"'; sed 's/NAME/dice_loss/' none.tn; } > name.tn
refuses "another name of a loss" "help: did you mean 'dice'" "$TENON" check name.tn

# ---- values: from the probabilities that predict prints

make far
./far --epochs 1 --save w.safetensors > out
sed 's/focal(output, label)/focal(output, label, gamma = 0.0)/' far.tn > zero.tn
sed 's/focal(output, label)/softmax_cross_entropy/' far.tn > plain.tn
for name in zero plain; do make $name; ./$name test --weights w.safetensors --log $name.log > out; done
same "gamma = 0 is the cross-entropy" "$(field zero.log test test_loss)" "$(field plain.log test test_loss)"
cat > arrays.py <<'END'
import random
from npy import save
random.seed(3)
x = [round(random.uniform(-2, 2), 3) for _ in range(240)]
open("rows.csv", "w").write("".join(",".join(map(str, x[i:i + 8])) + "\n" for i in range(0, 240, 8)))
for split in "train", "test":
    save(split + "_x.npy", "<f4", (30, 8), x)
    save(split + "_y.npy", "<i4", (30,), [i % 3 for i in range(30)])
END
PYTHONPATH=$TENON_ROOT/tests python3 -B arrays.py
./far test --weights w.safetensors --data . --log far.log > out
./far predict --weights w.safetensors --input rows.csv > p.csv
expected=$(awk -F, '{ p = $(1 + (NR - 1) % 3); sum += -log(p) * (1 - p) ^ 2 } END { printf "%.5f", sum / NR }' p.csv)
same "focal loss" "$expected" "$(field far.log test test_loss | awk '{ printf "%.5f", $1 }')"

# ---- an error in the file names the call

printf 'import "losses.tn"\nmodel net(x: f32[8]) { return dense(x, 3) }\ntrain net { %s; loss = dice(output, label) }\n' "$recipe" > class.tn
refuses "where a block of another file is called" "note: 'dice' is called on line 3 of class.tn" "$TENON" check class.tn
refuses "a call in an option" "note: 'kl' is called in --set" "$TENON" check class.tn --set "loss=kl(output, label)"
refuses "the file of a tensor" "note: the input is .N., the model's label on line 3 of class.tn" "$TENON" check class.tn

# ---- a probability of 1: finite gradients, also with gamma below 1

for gamma in 0.0 0.5; do
    cat > sure.tn <<END
import "losses.tn"
model sure(x: f32[8]) { return left = 100 * dense(x, 3), right = 100 * dense(x, 3) }
train sure { $recipe; target = (digit: class, truth: f32[3]); loss = focal(left, digit, gamma = $gamma) + binary_focal(right, gt(truth, 0), gamma = $gamma) }
END
    make sure
    succeeds "focal losses of sure answers, gamma = $gamma" ./sure
done

# ---- shapes: nothing is repeated to fit

wrong() { # NAME LOSS: a loss of an output of one number and a target of four
    printf 'import "losses.tn"\nmodel net(x: f32[8]) { return one = dense(x, 1), four = dense(x, 4) }\ntrain net { %s; target = y: f32[4]\nloss = %s\n}\n' \
        "$recipe" "$2" > wrong.tn
    refuses "$1: shapes" "note: '$1' is called on line 4 of wrong.tn" "$TENON" check wrong.tn
}
wrong kl 'kl(one, y) + mse(four, y)'
wrong dice 'dice(one, y) + mse(four, y)'
wrong triplet 'triplet(four, y, one)'
wrong contrastive 'contrastive(four, one, slice(y, 0, start = 0, size = 1))'

# ---- gradients

cat > all.tn <<END
import "losses.tn"
model all(a: f32[6], b: f32[6], c: f32[6]) {
    code = dense(5)
    return left = code(a), middle = code(b), right = code(c)
}
train all {
    $recipe
    target = (truth: f32[5], near: f32[1], digit: class)
    loss = terms(focal = focal(left, digit) + binary_focal(middle, sigmoid(truth)), dice = dice(right, sigmoid(truth)),
                 kl = kl(left, softmax(truth)), triplet = triplet(left, middle, right, margin = 2.0),
                 pair = contrastive(left, right, sigmoid(near), margin = 4.0), code = 0.1 * mean(abs(middle - slice(b, 0, start = 0, size = 5)), axes = [0]))
}
END
make all --dtype f64
succeeds "gradients of all losses" ./all gradcheck

# ---- a loss that reads an input

cat > input.tn <<END
model copy(x: f32[6]) { return dense(x, 6) }
train copy { $recipe; target = y: f32[6]; loss = mse(output, x) + 0 * mse(output, y) }
END
sed 's/target = y: f32\[6\]; loss = .* }/target = x; loss = mse }/' input.tn > target.tn
for name in input target; do make $name; ./$name --save $name.safetensors > out; done
cmp -s input.safetensors target.safetensors && ok || bad "an input in the loss, and as the target: other weights"
refuses "scripts" "input.tn:2:.*--to pytorch writes losses of outputs and targets, and this one reads the input 'x'" "$TENON" emit input.tn --to pytorch -o script
finish
