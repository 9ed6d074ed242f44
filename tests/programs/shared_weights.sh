#!/usr/bin/env bash
# shared_weights.sh -- a model without a train block predicts with the weights of the trained model of its file: its outputs are those
# of the whole model, in every form of the program; what such a program refuses; weights that are not shared.
#
# Parts: parts files
# Deep parts: forms
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"

cat > "$work/arrays.py" << 'END_PY'
import os, random, sys
from npy import save
def make(d):
    random.seed(3)
    os.makedirs(d, exist_ok=True)
    for split, n in ("train", 64), ("test", 40):
        save(f"{d}/{split}_x.npy", "|u1", (n, 1, 6, 6), [random.randrange(256) for _ in range(36 * n)])
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY
arrays 'make("digits")'
cd "$work"

# The samples are normalized, and layers have running averages, a constant, and noise in training only.
cat > whole.tn << 'END_TN'
block coder(image, size: int) {
    return conv2d(image, 4, kernel = 3) |> batch_norm |> relu |> flatten |> dropout(0.5) |> dense(size)
}
block drawer(code) { return dense(code, 12) |> relu |> dense(36) |> reshape([1, 6, 6]) }

model encode(image: f32[1, 6, 6], size: int = 5) {
    code = coder(image, size)
    return code
}
model decode(code: f32[5]) { return drawn = drawer(code) }
model both(image: f32[1, 6, 6]) {
    code = coder(image, 5)
    return code = code, twice = 2 * code
}
model whole(image: f32[1, 6, 6], size: int = 5) {
    code = coder(image, size)
    return drawn = drawer(code), code = code
}
model stranger(image: f32[1, 6, 6]) { return flatten(image) |> dense(2) }
model wider(image: f32[1, 6, 6]) {
    code = coder(image, 6)
    return code
}
model words(text: i32[4]) { return embedding(text, 9, 3) }

train whole {
    data      = "./digits"
    normalize = per_channel(mean = [0.4], std = [0.3])
    augment   = [flip_horizontal]
    target    = image
    loss      = mse(drawn, image)
    optimizer = adam(lr = 0.01)
    batch     = 16
    epochs    = 3
}
END_TN
part_of() { "$TENON" build whole.tn --model "$1" -o "${@:2}" > out 2>&1 || { bad "tenon build --model $*"; cat out; finish; exit 1; }; }
predict() { "./$1" predict --weights "${weights:-whole.safetensors}" "${@:2}"; }

if part parts || part forms; then
    make whole whole
    succeeds "train" ./whole --save whole.safetensors
    predict whole --input digits/test_x.npy --output whole.csv
    head -n 1 whole.csv | tr , '\n' | sed -n '37,$p' | paste -sd, > codes.names
    same "the columns of the code" code_0,code_1,code_2,code_3,code_4 "$(cat codes.names)"
    cut -d, -f 37- whole.csv | sed 1d > codes.csv
    cut -d, -f -36 whole.csv | sed 1d > drawn.csv
fi

# close_to TEXT A B DISTANCE: files of numbers differ by DISTANCE at most, and have equally many rows
close_to() {
    paste -d, "$2" "$3" | awk -F, -v most="$4" '
        { for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (d < 0) d = -d; if (!(d <= most)) off++ } n += NF / 2; odd += NF % 2 }
        END { print (n > 0 && !odd && !off) ? "close" : off + 0 " of " n + 0 " differ" }' > close.out
    same "$1" close "$(cat close.out)"
    same "$1: rows" "$(wc -l < "$2")" "$(wc -l < "$3")"
}

if part parts; then
    part_of encode encode
    predict encode --input digits/test_x.npy > encoded.csv
    close_to "the code" codes.csv encoded.csv 1e-6
    predict encode --input digits/test_x.npy --threads 3 > other.csv 2> err
    same "other threads" "$(cksum < encoded.csv)" "$(cksum < other.csv)"
    predict encode --input digits/test_x.npy --output codes.npy
    same "codes as an array" $((40 * 5 * 4 + 128)) "$(stat -c %s codes.npy)"

    part_of decode decode
    predict decode --input codes.npy > decoded.csv
    close_to "the drawing of a code" drawn.csv decoded.csv 1e-5
    predict decode --input codes.npy --output decoded.npy
    same "drawings are images" "(40, 1, 6, 6)" "$(head -c 128 decoded.npy | grep -ao '(40[^)]*)')"

    part_of both both
    predict both --input digits/test_x.npy > both.csv
    same "names of outputs" code_0,code_1,code_2,code_3,code_4,twice_0,twice_1,twice_2,twice_3,twice_4 "$(head -n 1 both.csv)"
    sed 1d both.csv | cut -d, -f -5 > first.csv
    close_to "one of two outputs" codes.csv first.csv 1e-6

    # The weights of a checkpoint, and those of another size, which both models take by --set.
    succeeds "checkpoint" ./whole --epochs 1 --checkpoint c
    weights=$(ls c/*.safetensors | head -n 1) predict encode --input digits/test_x.npy > checkpoint.csv
    same "weights of a checkpoint" 40 "$(wc -l < checkpoint.csv)"
    succeeds "another size" "$TENON" build whole.tn --set model.size=3 -o small
    succeeds "another size: train" ./small --epochs 1 --save small.safetensors
    part_of encode three --set model.size=3
    weights=small.safetensors predict three --input digits/test_x.npy > three.csv
    same "three numbers" 3 "$(head -n 1 three.csv | tr , '\n' | wc -l)"

    # What such a program is, and what it refuses.
    ./encode --help > help
    same "its commands" "predict info" "$(sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p' help | paste -sd' ')"
    grep -q '^Options of predict ' help && ok || bad "help: $(cat help)"
    ./encode info > info
    grep -q '^weights: those of whole$' info && ok || bad "info: $(cat info)"
    refuses "train" "^encode: error: train is for programs of a model with a train block: build without --model, or give this model a train block" ./encode train
    refuses "test" "test is for programs of a model with a train block" ./encode test --weights whole.safetensors
    refuses "no command is predict" "predict needs --weights FILE, written by .whole --save FILE" ./encode
    refuses "weights of another size" "small.safetensors does not hold the weights of whole that encode needs: 2 tensors differ" ./encode predict --weights small.safetensors --input digits/test_x.npy

    refuses "gradcheck" "gradcheck is for programs of a model with a train block: build" ./encode gradcheck

    # Weights that the trained model does not have.
    refuses "another layer" "'stranger' has no train block, and its weight dense1.weight is none of 'whole'" "$TENON" build whole.tn --model stranger -o no
    refuses "another size" "'wider' has no train block, and its weight code.dense1.weight is \(6, 64\), but \(5, 64\) in 'whole'" "$TENON" build whole.tn --model wider -o no
    refuses "tokens" "'text' holds tokens, and 'words' has no train block with the size of their vocabulary" "$TENON" build whole.tn --model words -o no
    refuses "a key" "model 'encode' has no train block, so 'epochs' cannot be set" "$TENON" build whole.tn --model encode --set epochs=3 -o no
    refuses "a script" "the script of another framework trains, and model 'encode' has no train block" "$TENON" emit whole.tn --model encode --to pytorch
    succeeds "threads of a step" "$TENON" show whole.tn --model encode --threads 4
    grep -q "warning: --threads, --ranks and --target cuda print a training step, and 'encode' has no train block" out && ok || bad "threads of a step: $(cat out)"
    succeeds "check" "$TENON" check whole.tn
    succeeds "show" "$TENON" show whole.tn --model encode --cost
    refuses "persistent kernels" "--kernels=persistent needs a training step .* this model has no train block" "$TENON" build whole.tn --model encode --target cuda --kernels=persistent -o no
fi

if part forms; then
    for form in "--plain" "--dtype f64" "--batch 8 --shards 2" "--cpu generic"; do
        # shellcheck disable=SC2086
        part_of encode form $form
        predict form --input digits/test_x.npy > form.csv
        close_to "encode $form" codes.csv form.csv 1e-5
    done
    part_of encode half --dtype bf16
    predict half --input digits/test_x.npy > half.csv
    close_to "encode in bf16" codes.csv half.csv 0.1

    # A GPU's program, over a stand-in of CUDA.
    . "$TENON_ROOT/tests/cuda/shim.sh"
    shim_runtime
    shim_gpu gpu whole.tn --model encode
    ./gpu/gpu predict --weights whole.safetensors --input digits/test_x.npy > gpu.csv
    close_to "encode on a GPU" codes.csv gpu.csv 1e-5
fi

if part files; then
    # Tables and texts are read with the columns and the vocabulary of the weights: a model of all layers has the outputs of the trained one.
    cat > table.tn << 'END_TN'
model table(row: f32[2]) { return dense(row, 6) |> tanh |> dense(1) }
model again(row: f32[2]) { return dense(row, 6) |> tanh |> dense(1) }
train table { data = csv("./table.csv", test = 0.25); target = price: f32[1]; loss = mse; optimizer = adam(lr = 0.01); batch = 4; epochs = 2 }
END_TN
    awk 'BEGIN { print "age,size,price"; for (i = 0; i < 40; i++) print i % 7 * 100 "," i % 5 "," i % 7 + i % 5 }' > table.csv
    make table table
    succeeds "a table: train" ./table --save table.safetensors
    "$TENON" build table.tn --model again -o again
    weights=table.safetensors predict table --input table.csv | sed 1d > prices.csv
    weights=table.safetensors predict again --input table.csv > again.csv
    same "a table" "$(cksum < prices.csv)" "$(cksum < again.csv)"
    cat > text.tn << 'END_TN'
model text(words: i32[4], vocab: int) { return embedding(words, vocab, 3) |> mean(axes = [0]) |> dense(1) }
model again(words: i32[4], vocab: int) { return embedding(words, vocab, 3) |> mean(axes = [0]) |> dense(1) }
train text { data = tsv("./texts", unit = "word", vocab = 20); loss = sigmoid_cross_entropy; optimizer = adam(lr = 0.01); batch = 4; epochs = 2 }
END_TN
    mkdir texts
    for split in train test; do printf '0\ta b c d\n1\te f g h\n0\ta b b\n1\tg h i\n' > texts/$split.tsv; done
    printf 'a b c\ng h\n' > lines.txt
    make text text
    succeeds "texts: train" ./text --save text.safetensors
    "$TENON" build text.tn --model again -o again
    weights=text.safetensors predict text --input lines.txt --output shares.csv
    weights=text.safetensors predict again --input lines.txt | awk '{ printf "%.9g\n", 1 / (1 + exp(-$1)) }' > again.csv
    close_to "texts" shares.csv again.csv 1e-6

    # The trained model in an imported file; the last of several trained models that has all weights.
    cat > importing.tn << 'END_TN'
import "text.tn"
model vectors(words: i32[4], vocab: int) { return embedding(words, vocab, 3) |> flatten }
END_TN
    succeeds "a trained model in an imported file" "$TENON" build importing.tn -o vectors
    weights=text.safetensors predict vectors --input lines.txt > vectors.csv
    same "a row for each line" 2 "$(wc -l < vectors.csv)"
    cat > several.tn << 'END_TN'
model small(x: f32[6]) { return dense(x, 4) |> tanh |> dense(3) }
model large(x: f32[6]) { return dense(x, 8) |> tanh |> dense(2) }
model features(x: f32[6]) { return dense(x, 4) |> tanh }
train small { data = synthetic(samples = 64, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
train large { data = synthetic(samples = 64, classes = 2); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
END_TN
    succeeds "one of two trained models" "$TENON" build several.tn --model features -o features
    same "the one with all weights" "weights: those of small" "$(./features info | grep '^weights: ')"

    # A subset of the inputs, in another order; the size of the batch and the type of the recipe.
    cat > inputs.tn << 'END_TN'
model inputs(words: i32[4], vocab: int, x: f32[3]) {
    a = embedding(words, vocab, 3)
    b = dense(x, 3)
    return dense(concat(flatten(a), b), 2)
}
model swapped(x: f32[3], words: i32[4], vocab: int) {
    a = embedding(words, vocab, 3)
    b = dense(x, 3)
    return concat(flatten(a), b)
}
model text(words: i32[4], vocab: int) {
    a = embedding(words, vocab, 3)
    return a
}
train inputs { data = "./none"(vocab = 9); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 24; dtype = f64 }
END_TN
    succeeds "inputs in another order" "$TENON" build inputs.tn --model swapped -o swapped
    succeeds "one of two inputs" "$TENON" build inputs.tn --model text -o text-part
    same "batch and type of the recipe" "dtype: f64 batch: 24" "$(./text-part info | grep -E '^(dtype|batch):' | paste -sd ' ')"

    # Other models of the file keep their own sizes: check says so, and the trained model is built.
    cat > sizes.tn << 'END_TN'
model gray(image: f32[1, 6, 6]) { return flatten(image) |> dense(3) }
model small(words: i32[4]) { return embedding(words, 5, 3) |> flatten }
model color(image: f32[3, 6, 6]) { return flatten(image) |> dense(3) }
train color { data = synthetic(samples = 64, classes = 3); normalize = per_channel(mean = [0.1, 0.2, 0.3], std = [1, 2, 3]); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
END_TN
    for model in gray small color; do succeeds "check of $model" "$TENON" check sizes.tn --model $model; succeeds "show of $model" "$TENON" show sizes.tn --model $model; done

    # A layer without a variable: the first of the part is not the first of the whole.
    cat > numbered.tn << 'END_TN'
model end(h: f32[4]) { return dense(h, 4) }
model begin(x: f32[4]) { return dense(x, 4) }
model two(x: f32[4]) { return dense(x, 4) |> relu |> dense(4) }
train two { data = synthetic(samples = 64, classes = 4); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
END_TN
    succeeds "a numbered layer" "$TENON" build numbered.tn --model end -o end
    grep -q "numbered.tn:1:31: warning: this layer of 'end' gets the weights of dense1 of 'two', which reads another value there" out && ok || bad "a numbered layer: $(cat out)"
    succeeds "the first layers" "$TENON" build numbered.tn --model begin -o begin
    grep -q warning out && bad "the first layers: $(cat out)" || ok
fi
finish
