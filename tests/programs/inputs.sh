#!/usr/bin/env bash
# inputs.sh -- models with several inputs: equal bits for any threads, ranks and after kills; the losses of the same network with all
# numbers in one input; predictions from each form of their samples; faults of the arrays.
#
# Parts: arrays
# Deep parts: bits
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"

# four: arrays of u8, f32, f64 and tokens; packed: the numbers of the first three in one array, as the network sees them
cat > "$work/arrays.py" <<'END_PY'
import array, os, random, sys
from npy import save
def make(d, packed):
    random.seed(1)
    os.makedirs(d, exist_ok=True), os.makedirs(packed, exist_ok=True)
    for split, n in ("train", 200), ("test", 60):
        left = [[random.randrange(256) for _ in range(36)] for _ in range(n)]
        right = [array.array("f", (random.uniform(-1, 1) for _ in range(18))).tolist() for _ in range(n)]
        age = [array.array("f", [random.uniform(-1, 1)]).tolist() for _ in range(n)]
        words = [[random.randrange(7) for _ in range(5)] for _ in range(n)]
        y = [int(sum(a) / 36 > 127) + int(b[0] + c[0] > 0) + int(w[0] > 4) for a, b, c, w in zip(left, right, age, words)]
        def flat(rows): return [v for row in rows for v in row]
        save(f"{d}/{split}_left.npy", "|u1", (n, 1, 6, 6), flat(left))
        save(f"{d}/{split}_right.npy", "<f4", (n, 2, 3, 3), flat(right))
        save(f"{d}/{split}_age.npy", "<f8", (n,), flat(age))
        save(f"{d}/{split}_words.npy", "<i4", (n, 5), flat(words))
        rows = [[v / 255 for v in a] + b + c for a, b, c in zip(left, right, age)]
        save(f"{packed}/{split}_x.npy", "<f8", (n, 55), flat(rows))
        for place in d, packed:
            save(f"{place}/{split}_y.npy", "|u1", (n,), y)
def samples(d, out, csv):
    os.makedirs(out, exist_ok=True)
    for name in "left", "right", "age", "words":
        os.link(f"{d}/test_{name}.npy", f"{out}/{name}.npy")
    rows = array.array("d", open(f"{csv}/test_x.npy", "rb").read()[128:])
    with open("rows.csv", "w") as f:
        for i in range(0, len(rows), 55):
            f.write(",".join(map(repr, rows[i:i + 55])) + "\n")
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY
arrays 'make("four", "packed"); samples("four", "some", "packed")'

cat > "$work/four.tn" <<'END_TN'
model four(left: f32[1, 6, 6], right: f32[2, 3, 3], age: f32[1], words: i32[5], vocab: int) {
    a = conv2d(left, 4, kernel = 3) |> relu |> flatten |> dense(8)
    b = conv2d(right, 4, kernel = 3, pad = 1) |> relu |> flatten |> dense(8)
    c = embedding(words, vocab, 3) |> flatten |> dense(8)
    return a + b + c + dense(age, 8) |> tanh |> dense(4)
}
train four {
    data      = "./four"(vocab = 7)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01)
    batch     = 16
    shards    = 4
    epochs    = 4
}
END_TN
# The same without tokens, and with all numbers in one input.
sed '/embedding/d; s/ + c//; s/, words: i32\[5\], vocab: int//; s/(vocab = 7)//; s/ four/ three/' "$work/four.tn" > "$work/three.tn"
sed 's/ three(.*/ one(row: f32[55]) {\n    left = slice(row, 0, 0, 36) |> reshape([1, 6, 6])\n    right = slice(row, 0, 36, 18) |> reshape([2, 3, 3])\n    age = slice(row, 0, 54, 1)/
    s/ three/ one/; s#"./four"#"./packed"#' "$work/three.tn" > "$work/one.tn"
cd "$work"
# learns NAME SYNTHETIC ACCURACY EPOCHS TEXT < MODEL: trains NAME-cpu on synthetic data to that test accuracy
learns() {
    { cat; printf 'train %s {\n    data      = synthetic(%s)\n    loss      = softmax_cross_entropy\n    optimizer = adam(lr = 0.02)\n' "$1" "$2"
      printf '    batch     = 32\n    expect    = test_accuracy >= %s\n}\n' "$3"; } > "$1.tn"
    make "$1" "$1-cpu"
    succeeds "$5" "./$1-cpu" train --epochs "$4" --strict
}

if part bits; then
    make four four-cpu
    # Another byte of the last sample of one of the arrays is other data.
    cp -r four other; printf '\x05' | dd of=other/train_words.npy bs=1 seek=$((128 + 200 * 20 - 4)) conv=notrunc status=none
    equal_bits four 4 accuracy other
    awk -v a="$(field one.log epoch train_accuracy | awk '{ print $4 }')" 'BEGIN { exit !(a > 0.5) }' && ok || bad "the network learns nothing: $(field one.log epoch train_accuracy)"
    ./four-cpu info > out
    grep -qx "inputs: left 1 6 6, right 2 3 3, age 1, words 5 tokens" out && ok || bad "info: $(grep input out)"
    ./four-cpu test --weights one.safetensors --log test.log > out
    same "test prints the metrics of the last epoch" "$(field one.log epoch test_accuracy | awk '{ print $4 }')" "$(field test.log test test_accuracy | tr -d ' ')"

    # The same network with one input: a slice of the packed row is an input.
    make three three-cpu --dtype f64
    make one one-cpu --dtype f64
    succeeds "three inputs" ./three-cpu train --log three.log --save three.safetensors --log-steps 1
    succeeds "one input" ./one-cpu train --log packed.log --save packed.safetensors --log-steps 1
    same "losses of three inputs and of one" "$(field three.log step train_loss | tr ' ' '\n' | awk 'NF { printf "%.10f ", $1 }')" "$(field packed.log step train_loss | tr ' ' '\n' | awk 'NF { printf "%.10f ", $1 }')"
    same "steps" $((4 * 13)) "$(field three.log step train_loss | wc -w)"
    witness "$work/three.tn" three-plain --dtype f64
    succeeds "plain" ./three-plain train --log plain.log
    same_values "plain" epoch three.log plain.log train_loss test_loss
    succeeds "gradcheck" ./three-cpu gradcheck --data ./four

    # Predictions from a directory of arrays, an array of rows and a CSV file.
    ./three-cpu predict --weights three.safetensors --input some > by-directory.csv
    same "a row for each sample" 60 "$(wc -l < by-directory.csv)"
    for input in packed/test_x.npy rows.csv; do
        ./three-cpu predict --weights three.safetensors --input $input > rows.out
        paste -d, by-directory.csv rows.out | awk -F, '{ for (i = 1; i <= 4; i++) { d = $i - $(i + 4); if (!(d < 1e-9 && d > -1e-9)) exit 1 } } END { exit NR != 60 }' && ok || bad "predictions from $input"
    done
    ./one-cpu predict --weights three.safetensors --input packed/test_x.npy > rows.out 2>&1 || bad "weights of three inputs in the network with one: $(cat rows.out)"
    refuses "an output over an input" "is the file that is read" ./three-cpu predict --weights three.safetensors --input some --output some/left.npy
    # Synthetic tokens of several inputs have the class of their position.
    learns each "samples = 2048, vocab = 5" 0.45 4 "synthetic tokens with a class for each position" <<'END_TN'
model each(left: i32[6], right: i32[6], vocab: int) {
    return (embedding(left, vocab, 8) + embedding(right, vocab, 8)) |> dense(3)
}
END_TN
    # One input with as many dimensions as a tensor can have.
    learns dimensions "samples = 640" 0.9 8 "six dimensions" <<< 'model dimensions(x: f32[1, 2, 3, 2, 1, 2]) { return dense(flatten(x), 3) }'
    ./dimensions-cpu info > out
    grep -qx "input: 1 2 3 2 1 2" out && ok || bad "info of six dimensions: $(grep input out)"
    if deep "gradients with tokens, and bf16"; then
        make four double --dtype f64
        succeeds "gradcheck with tokens" ./double gradcheck
        equal_bf16_bits four
    fi
fi

if part arrays; then
    make four four-cpu
    [ -s one.safetensors ] || ./four-cpu train --epochs 0 --save one.safetensors > /dev/null
    wrong() { wrong_arrays four "$@"; }
    wrong "a missing array" "d does not hold all train arrays of four, one for each input: missing train_age.npy" 'os.remove("d/train_age.npy")'
    wrong "missing arrays of the test" "d does not hold all test arrays of four, one for each input: missing test_left.npy, test_words.npy" 'os.remove("d/test_left.npy"); os.remove("d/test_words.npy")'
    wrong "no labels" "d/train_left.npy has no labels beside it: ./d/train_y.npy is missing" 'os.remove("d/train_y.npy")'
    wrong "unequal lengths" "d/train_left.npy holds 200 samples, but ./d/train_age.npy 199" 'save("d/train_age.npy", "<f4", (199,), [0] * 199)'
    wrong "fewer labels" "d/train_left.npy holds 200 samples, but ./d/train_y.npy 199 labels" 'save("d/train_y.npy", "|u1", (199,), [0] * 199)'
    wrong "another shape" "d/train_right.npy holds samples of shape 2 x 3 x 4, but the input 'right' of four is 2 x 3 x 3" 'save("d/train_right.npy", "<f4", (200, 2, 3, 4), [0] * 4800)'
    wrong "no list" "d/train_age.npy is a single number, not a list of samples" 'save("d/train_age.npy", "<f4", (), [0])'
    wrong "no sample" "d/train_left.npy holds no sample" 'save("d/train_left.npy", "|u1", (0, 1, 6, 6), [])'
    wrong "numbers instead of tokens" "d/train_words.npy holds f32: tokens are u8, u16, i32 or i64" 'save("d/train_words.npy", "<f4", (200, 5), [0] * 1000)'
    wrong "integers instead of numbers" "d/train_age.npy holds i64: samples are f32, f64 or u8" 'save("d/train_age.npy", "<i8", (200,), [0] * 200)'
    wrong "a token beyond the vocabulary" "d/train_words.npy: token 7 of sample 3 is out of range: the vocabulary is 0 to 6" 'save("d/train_words.npy", "<i4", (200, 5), [0] * 17 + [7] + [0] * 982)'
    wrong "a NaN" "not finite.*row|the loss is not finite" 'save("d/train_age.npy", "<f4", (200,), [float("nan")] * 200)'
    wrong "an infinity in the test split" "d/test_age.npy: number 0 of sample 0 is inf, not a finite number" 'save("d/test_age.npy", "<f4", (60,), [float("inf")] * 60)'
    refuses "data of one input" "does not hold all train arrays of four, one for each input: missing train_left.npy, train_right.npy, train_age.npy, train_words.npy" ./four-cpu train --data ./packed
    rm -rf d; cp -r four d; arrays 'save("d/train_left.npy", "|u1", (200, 36), [7] * 7200); save("d/train_age.npy", "<f4", (200, 1), [1] * 200)'
    succeeds "flat rows and columns" ./four-cpu train --data ./d --epochs 1
    succeeds "fewer samples" ./four-cpu train --epochs 1 --limit-samples 40 --log few.log
    same "40 samples" "40 " "$(field few.log epoch samples)"
    : > packed.txt
    predict() { ./four-cpu predict --weights one.safetensors --input "$1"; }
    refuses "predict: rows without tokens" "rows.csv: the input of four is a directory with NAME.npy for each input, because a row of numbers has no tokens: left 36, right 18, age 1, words 5" predict rows.csv
    refuses "predict: another file" "packed.txt: the input of four is a directory with NAME.npy for each input" predict packed.txt
    refuses "predict: no such directory" "nowhere cannot be read: No such file" predict nowhere
    refuses "predict: no arrays" "packed does not hold all arrays of four, one for each input: missing left.npy, right.npy, age.npy, words.npy" predict packed
    rm -rf d; cp -r some d; arrays 'save("d/age.npy", "<f4", (60,), [0] * 59 + [float("inf")])'
    refuses "predict: an infinity" "d/age.npy: number 0 of sample 59 is inf, not a finite number" predict d
    make three three-cpu
    succeeds "weights" ./three-cpu train --epochs 0 --data ./four --save three-f32.safetensors
    refuses "predict: another file, without tokens" "packed.txt: the input of three is a directory with NAME.npy for each input, or a .npy or .csv file" \
        ./three-cpu predict --weights three-f32.safetensors --input packed.txt
    printf '1,2,3\n' > short.csv
    refuses "predict: a short row" "short.csv:1: 3 numbers where a sample of three has 55" ./three-cpu predict --weights three-f32.safetensors --input short.csv
    refuses "predict: other rows" "test_y.npy holds samples of shape a number, but three takes 55" ./three-cpu predict --weights three-f32.safetensors --input packed/test_y.npy
    for to in keras mxnet; do
        refuses "--to $to" "three.tn:1:33: error: --to $to writes scripts of one input, and 'three' has 3" "$TENON" emit three.tn --to $to -o "$work/scripts"
    done
    [ ! -e "$work/scripts" ] || [ -z "$(ls "$work/scripts")" ] && ok || bad "a refused script leaves files"
    "$TENON" emit three.tn --to pytorch > script.py
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' script.py && grep -qF 'for name in ("left", "right", "age")' script.py && ok || bad "the script for PyTorch"
    # The shipped network and its data.
    "$TENON_ROOT/models/data/pairs/make.py" pairs
    refuses "make.py: a directory that cannot be made" "^make.py: .*arrays.py/x'; it reads .*/mnist, and .make.py DIR. writes to another" "$TENON_ROOT/models/data/pairs/make.py" arrays.py/x
    if deep "pairs of digits"; then
        build siamese siamese
        succeeds "siamese" ./siamese train --data ./pairs --strict
    fi
    (cd pairs && sha256sum -c --quiet "$TENON_ROOT/models/data/pairs/SHA256SUMS") && ok || bad "make.py makes other arrays than SHA256SUMS says"
fi
finish
