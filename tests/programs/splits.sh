#!/usr/bin/env bash
# splits.sh -- test = 0.2 and validation = 0.1 of data without these splits: the same training as from arrays that are divided beforehand,
# for one input, several inputs and targets, folders of images and MNIST; what the screen, the log, --stop-at and `expect` say of a
# validation split; data that are divided already.
#
# Parts: arrays images
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"
cd "$work"

# The random number of a sample, as runtime/data/split.c says, in Python: Philox4x32-10 of the recipe's seed and the key.
cat > arrays.py <<'END_PY'
import os, random, struct, sys, zlib
from npy import save
def philox(key, c):
    k, m = [key & 0xFFFFFFFF, key >> 32], 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & m, (a >> 32) ^ c[3] ^ k[1], a & m]
        k = [(k[0] + 0x9E3779B9) & m, (k[1] + 0xBB67AE85) & m]
    return c
def split_of(key, seed, test, validation):
    r = philox(seed, [key & 0xFFFFFFFF, 6, key >> 32, 0])
    u = (r[0] + r[1] * 2.0 ** -32) * 2.0 ** -32
    return "test" if u < test else "validation" if u < test + validation else "train"
def rows(n, k, seed):
    r = random.Random(seed)
    return [[r.uniform(-1, 1) for _ in range(k)] for _ in range(n)]
def write(path, kind, values):
    shape = (len(values),) if not isinstance(values[0], list) else (len(values), len(values[0]))
    save(path, kind, shape, [v for row in values for v in (row if isinstance(row, list) else [row])])
def data(d, n, parts):
    """Arrays without a split in d, and the same samples divided in d-split."""
    os.makedirs(d, exist_ok=True); os.makedirs(d + "-split", exist_ok=True)
    for name, kind, values in parts:
        write(f"{d}/{name}.npy", kind, values)
        for split in "train", "test", "validation":
            write(f"{d}-split/{split}_{name}.npy", kind, [v for i, v in enumerate(values) if split_of(i, 5, 0.2, 0.1) == split])
def png(path, pixels):
    chunk = lambda kind, text: struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(pixels[4 * y:4 * y + 4]) for y in range(4)))) + chunk(b"IEND", b""))
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY

model() { # model NAME INPUTS BODY TARGET LOSS
    cat << END
model $1($2) {
$3
}
train $1 {
    data      = "./$1"(test = 0.2, validation = 0.1)
    target    = $4
    loss      = $5
    optimizer = adam(lr = 0.03)
    batch     = 32
    seed      = 5
    epochs    = 3
}
END
}

# divided NAME METRIC: the program that divides the arrays has the weights and metrics of one that reads divided arrays
divided() {
    succeeds "$1: build" "$TENON" build "$1.tn" -o "$1-cpu"
    succeeds "$1: build for divided arrays" "$TENON" build "$1.tn" -o "$1-split-cpu" --set "data=./$1-split"
    succeeds "$1: train" "./$1-cpu" train --log own.log --save own.safetensors
    succeeds "$1: train from divided arrays" "./$1-split-cpu" train --log split.log
    for name in weights_hash "train_$2" "validation_$2" "test_$2"; do
        same "$1: $name" "$(field split.log epoch "$name")" "$(field own.log epoch "$name")"
    done
    succeeds "$1: test" "./$1-cpu" test --weights own.safetensors --log test.log
    same "$1: the test split of test" "$(field own.log epoch "test_$2" | awk '{ print $3 }')" "$(field test.log test "test_$2" | tr -d ' ')"
}

if part arrays; then
    arrays 'x = rows(400, 3, 1); data("one", 400, [("x", "<f4", x), ("y", "<f4", [3 * a - 2 * b + c * c for a, b, c in x])])'
    arrays 'x = rows(300, 2, 2); data("two", 300, [("a", "<f8", [r[0] for r in x]), ("b", "<f4", [r[1] for r in x]), ("sum", "<f4", [a + b for a, b in x]), ("sign", "<i4", [int(a > b) for a, b in x])])'
    model one "row: f32[3]" "    return dense(row, 16) |> tanh |> dense(1)" "price: f32[1]" mse > one.tn
    model two "a: f32[1], b: f32[1]" "    h = concat(a, b) |> dense(16) |> tanh
    return p = dense(h, 1), q = dense(h, 2)" "(sum: f32[1], sign: class)" "terms(u = mse(p, sum), v = softmax_cross_entropy(q, sign))" > two.tn
    divided one r2
    # A directory that holds a test split alone is tested as it is.
    mkdir final; cp one-split/test_*.npy final
    succeeds "a test split alone" ./one-cpu test --weights own.safetensors --data ./final --log final.log
    same "a test split alone" "$(field test.log test test_r2)" "$(field final.log test test_r2)"
    # `test` says that it tests a share; --all tests all samples, as if they were a test split.
    succeeds "a share" ./one-cpu test --weights own.safetensors
    grep -qx "these are the test split of ./one, a share of 0.2; --all tests all samples" out && ok || bad "what test says of a share: $(cat out)"
    succeeds "--all" ./one-cpu test --weights own.safetensors --all --log all.log
    grep -q "^400 samples in" out && grep -qx "these are all samples of ./one, also those that a training learns from" out && ok || bad "what --all says: $(cat out)"
    mkdir whole; cp one/x.npy whole/test_x.npy; cp one/y.npy whole/test_y.npy
    succeeds "--all: the same samples as a test split" ./one-cpu test --weights own.safetensors --data ./whole --log whole.log
    grep -q "share\|these are" out && bad "a share of a test split: $(cat out)" || ok
    same "--all" "$(field all.log test test_r2)" "$(field whole.log test test_r2)"
    arrays 'os.makedirs("single"); write("single/x.npy", "<f4", [[1, 2, 3]]); write("single/y.npy", "<f4", [1])'
    refuses "a share of one sample" "the split 'test' of ./single has no sample: 1 are too few for this share; --all tests all samples" \
        ./one-cpu test --weights own.safetensors --data ./single
    succeeds "--all of one sample" ./one-cpu test --weights own.safetensors --data ./single --all
    refuses "--all of a test split" "--all is for data without a test split: ./whole has one, and without --all the program tests all of it" ./one-cpu test --weights own.safetensors --data ./whole --all
    refuses "--all in a training" "--all is not an option of .* train" ./one-cpu train --all
    divided two accuracy_sign
    # The weights of the labels of a split are added over the split.
    arrays 'x = rows(300, 2, 3); data("three", 300, [("x", "<f4", x), ("y", "<i4", [(a > b) + (a > 0.8) for a, b in x])])'
    model three "row: f32[2]" "    return dense(row, 3)" "y: class" "softmax_cross_entropy(output, y, class_weights = [1, 2, 9])" > three.tn
    divided three loss
    # Another --seed is another run on the same splits.
    ./one-cpu train --seed 9 --epochs 1 --log nine.log > out; ./one-split-cpu train --seed 9 --epochs 1 --log split.log > out
    same "another seed" "$(hashes split.log)" "$(hashes nine.log)"
    # Threads, resume, and --limit-samples of the training split alone.
    for way in "--threads 1" "--groups 2"; do
        # shellcheck disable=SC2086
        "$TENON" build one.tn -o four-cpu --shards 4 > out && ./four-cpu train $way --log "way${way##* }.log" > out
    done
    same "bits" "$(hashes way1.log)" "$(hashes way2.log)"
    ./one-cpu train --log one.log > one.out
    ./one-cpu train --epochs 1 --checkpoint c --log part.log > out; ./one-cpu train --checkpoint c --resume --log part.log > out
    same "resumed" "$(field one.log epoch validation_r2)" "$(field part.log epoch validation_r2)"
    ./one-cpu train --limit-samples 40 --epochs 1 --log few.log > out
    same "few samples" "40 " "$(field few.log start samples)"
    grep -q "^epoch  3/3 .* r2 [0-9.]*, validation loss [0-9.]*, validation mae .*, test loss" one.out && ok || bad "the line of an epoch: $(tail -n 2 one.out)"
    refuses "resumed with other shares" "was made by another program" \
        bash -c '"$TENON" build one.tn -o other-cpu --set data.validation=0.3 > out && ./other-cpu train --epochs 5 --checkpoint c --resume'

    # Splits that are there; data that are not divided.
    refuses "a test split of its own" "one-split holds a split 'test' of its own, ./one-split/test_x.npy: remove test = 0.2 from the recipe" ./one-cpu train --data ./one-split
    rm -r two; cp -r one-split two; rm two/test_x.npy two/validation_x.npy
    succeeds "arrays to train on, which are divided" ./one-cpu train --data ./two --epochs 1
    "$TENON" build one.tn -o plain-cpu --set data=./one > out
    refuses "no share" "one/x.npy is not divided into training and test: write test = 0.2 in the parentheses" ./plain-cpu train
    arrays 'os.makedirs("few", exist_ok=True); write("few/x.npy", "<f4", rows(2, 3, 1)); write("few/y.npy", "<f4", [1, 2])'
    refuses "too few samples" "the split '[a-z]*' of ./few has no sample: 2 are too few" ./one-cpu train --data ./few
    refuses "shares of all" "test = 0.6 and validation = 0.5 leave no sample to train on" "$TENON" check one.tn --set 'data="./one"(test = 0.6, validation = 0.5)'
    refuses "an expectation without a split" "the recipe expects validation_r2, and the data ./one-t have no validation split: write validation = 0.1" \
        bash -c 'mkdir -p one-t && cp one-split/t*.npy one-t && "$TENON" build one.tn -o t-cpu --set data=./one-t --set "expect=validation_r2 >= 0.1" > out && ./t-cpu train'
    refuses "an expectation that is never met" "validation_r2 is at most 1, never >= 2" "$TENON" check one.tn --set "expect=validation_r2 >= 2"
    succeeds "an expectation" bash -c '"$TENON" build one.tn -o e-cpu --set "expect=validation_r2 >= -100" > out && ./e-cpu train'
    grep -q "^expected validation_r2 >= -100: [0-9.-]*, met" out && ok || bad "the expectation: $(tail -n 2 out)"
    refuses "a script" "to pytorch writes scripts that read the splits of the data, and take no share" "$TENON" emit one.tn --to pytorch -o script.py
fi

if part images; then
    # A share of MNIST's training images; --stop-at watches it.
    cat > digits.tn <<'END_TN'
model digits(image: f32[1, 28, 28]) { return flatten(image) |> dense(10) }
train digits {
    data      = mnist(validation = 0.1)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.1)
    epochs    = 4
}
END_TN
    succeeds "MNIST: build" "$TENON" build digits.tn -o digits-cpu
    succeeds "MNIST: --stop-at" ./digits-cpu train --data "$TENON_ROOT/models/data/mnist" --stop-at 0.5 --log digits.log
    same "MNIST: stopped after one epoch" "1" "$(field digits.log epoch validation_accuracy | wc -w)"
    awk -v n="$(field digits.log start samples)" 'BEGIN { exit !(n > 53600 && n < 54400) }' && ok || bad "MNIST: $(field digits.log start samples) samples to train on"
    refuses "MNIST: --stop-at is not reached" "the validation accuracy stayed below 0.999" ./digits-cpu train --data "$TENON_ROOT/models/data/mnist" --limit-samples 500 --epochs 1 --stop-at 0.999
    refuses "MNIST: a test split of its own" "mnist holds a split 'test' of its own, its test files" \
        bash -c '"$TENON" build digits.tn -o t-cpu --set "data=mnist(test = 0.1)" > out && ./t-cpu train --data "$TENON_ROOT/models/data/mnist"'

    # Folders without train and test.  Images that are added move no other image.
    cat > pets.tn <<'END_TN'
model pets(image: f32[1, 4, 4]) { return flatten(image) |> dense(2) }
train pets {
    data      = imagefolder("./pets", test = 0.25, validation = 0.25)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.1)
    batch     = 8
    epochs    = 2
}
END_TN
    pets() { arrays 'for c in "cat", "dog":
    os.makedirs("pets/" + c, exist_ok=True)
    for i in range('"$1"'):
        png(f"pets/{c}/{i}.png", [(i * 17 + 31 * k + (c == "cat") * 90) % 256 for k in range(16)])'; }
    pets 30
    if "$TENON" build pets.tn -o pets-cpu > out 2>&1; then
        succeeds "folders" ./pets-cpu train --log pets.log --save pets.safetensors
        few=$(field pets.log start samples)
        [ "$few" -gt 15 ] && [ "$few" -lt 45 ] && ok || bad "folders: $few of 60 images to train on"
        succeeds "folders: test" ./pets-cpu test --weights pets.safetensors --log test.log
        cp pets/.tenon-test-1x4x4 packed
        succeeds "folders: --all" ./pets-cpu test --weights pets.safetensors --all
        grep -q "^60 samples in" out && cmp packed pets/.tenon-test-1x4x4 && ok || bad "folders: --all: $(cat out)"
        same "folders: the loss of the test" "$(field pets.log epoch test_loss | awk '{ print $2 }')" "$(field test.log test test_loss | tr -d ' ')"
        # The old images alone, after new ones have come: their split is the same, so the training is the same.
        pets 40; rm -rf pets/*/3[0-9].png
        succeeds "folders: again" ./pets-cpu train --log again.log
        same "folders: bits" "$(hashes pets.log)" "$(hashes again.log)"
        pets 60
        ./pets-cpu train --log more.log > out
        more=$(field more.log start samples)
        [ "$more" -gt "$few" ] && ok || bad "folders: $more images to train on after new ones came, and $few before"
        mkdir -p pets/test; cp -r pets/cat pets/dog pets/test
        refuses "folders: a test split of its own" "pets holds a split 'test' of its own, ./pets/test" ./pets-cpu train
        mkdir strays; mv pets/test strays/
        succeeds "folders: a test split alone" ./pets-cpu test --weights pets.safetensors --data ./strays
        grep -q "^120 samples in" out && ok || bad "folders: a test split alone: $(cat out)"
    else
        skip "folders: $(tail -n 1 out)"
    fi
fi
finish
