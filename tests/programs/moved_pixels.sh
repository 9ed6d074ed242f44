#!/usr/bin/env bash
# moved_pixels.sh -- augmentations move masks and images that are targets in the same way as the input: an image and its copy stay equal,
# classes stay on their pixels, and the labels that count are those after the move; equal bits for any threads, ranks and after kills.
#
# Parts: copies classes bits
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"

# 48 and 16 images of 6 x 5 pixels.  copies: numbers, and the same numbers as targets; classes: the class of a pixel is its number, with
# class 255 on a tenth of the pixels in `holes`.
cat > "$work/arrays.py" <<'END_PY'
import os, random, sys
from npy import save
def make(holes=255):
    draw = random.Random(5)
    for d in ("copies", "classes", "holes"):
        os.makedirs(d, exist_ok=True)
    for split, n in (("train", 48), ("test", 16)):
        numbers = [draw.random() for _ in range(n * 30)]
        save(f"copies/{split}_x.npy", "<f4", (n, 1, 6, 5), numbers)
        save(f"copies/{split}_y.npy", "<f4", (n, 1, 6, 5), numbers)
        kinds = [draw.randrange(3) for _ in range(n * 30)]
        save(f"classes/{split}_x.npy", "|u1", (n, 1, 6, 5), kinds)
        save(f"classes/{split}_y.npy", "|u1", (n, 6, 5), kinds)
        save(f"holes/{split}_x.npy", "|u1", (n, 1, 6, 5), kinds)
        save(f"holes/{split}_y.npy", "|u1", (n, 6, 5), [holes if draw.random() < 0.1 else k for k in kinds])
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY
arrays 'make()'
cd "$work"

# recipe NAME DATA TARGET AUGMENT LOSS INIT: adds to NAME.tn a recipe by which no weight changes
recipe() {
    cat >> "$1.tn" <<END_TN
train $1 {
    data      = $2
    target    = $3
    augment   = $4
    loss      = $5
    optimizer = sgd(lr = 0)
    init      = $6
    batch     = 16
    shards    = 2
    epochs    = 3
}
END_TN
}

# A network that returns its input, whose weights do not change: the loss compares the moved image with the moved target.
cat > copies.tn <<'END_TN'
model copies(image: f32[1, 6, 5]) { return conv2d(image, 1, kernel = 1, bias = false) }
END_TN
recipe copies '"./copies"' 'copy: f32[1, 6, 5]' '[shift(2), flip_horizontal, flip_vertical, rotate(40), scale(0.3), random_resized_crop(scale = [0.3, 1])]' 'mse' 'constant(1)'
losses() { field "$1" epoch train_loss; }
if part copies; then
    make copies copies-cpu
    succeeds "an image and its copy" ./copies-cpu train --log copies.log
    same "an image and its copy: losses" "0 0 0 " "$(losses copies.log)"
    make copies crop-cpu --set 'augment=[random_crop(2),flip_horizontal]'
    succeeds "an image and its copy, moved by whole pixels" ./crop-cpu train --log crop.log
    same "moved by whole pixels: losses" "0 0 0 " "$(losses crop.log)"
    # the aspect is height / width, and programs have logarithms of width / height
    "$TENON" emit copies.tn --to c --set 'augment=erase(aspect=[2, 3])' -o tall
    grep -q 'erase_ratio = {-1.098[0-9]*, -0.693[0-9]*}' tall/copies.c && ok || bad "erase(aspect = [2, 3]): $(grep -o 'erase_ratio[^}]*' tall/copies.c)"
    # a row of the same numbers is no image, so it is not moved
    sed 's/model copies\(.*\) }/model row\1 |> flatten }/; s/train copies/train row/; s/copy: f32\[1, 6, 5\]/copy: f32[30]/' copies.tn > row.tn
    make row row-cpu
    succeeds "an image beside a row of its numbers" ./row-cpu train --log row.log
    awk '{ exit !($1 > 0.001 && $2 > 0.001 && $3 > 0.001 && $1 != $2) }' <<< "$(losses row.log)" && ok || bad "the image does not move: $(losses row.log)"
    # cutout, erase and colours change the image alone
    make copies cut-cpu --set 'augment=[flip_vertical,erase(p=1)]'
    succeeds "an image that is erased, and its copy" ./cut-cpu train --log cut.log
    awk '{ exit !($1 > 0.001 && $2 > 0.001 && $3 > 0.001) }' <<< "$(losses cut.log)" && ok || bad "erase changes the target, too: $(losses cut.log)"
    # One of several targets is moved; a vector beside it is not.
    if deep "a moved image beside a class"; then
        mkdir -p both
        for split in train test; do
            cp copies/${split}_x.npy both/${split}_x.npy; cp copies/${split}_y.npy both/${split}_copy.npy
        done
        arrays 'save("both/train_kind.npy", "|u1", (48,), [k % 3 for k in range(48)]); save("both/test_kind.npy", "|u1", (16,), [0] * 16)'
        sed 's/model copies(image: f32\[1, 6, 5\]) {.*/model both(image: f32[1, 6, 5]) { y = conv2d(image, 1, kernel = 1, bias = false); return same = y, of = dense(flatten(y), 3) }/
             s/train copies/train both/; s#"./copies"#"./both"#; s/target    = .*/target = (kind: class, copy: f32[1, 6, 5])/
             s/loss      = mse/loss = terms(fit = mse(same, copy), kind = softmax_cross_entropy(of, kind))/' copies.tn > both.tn
        make both both-cpu
        succeeds "a moved image beside a class" ./both-cpu train --log both.log
        same "a moved image beside a class: losses" "0 0 0 " "$(field both.log epoch train_loss_fit)"
    fi
fi

# Logits that are largest for the class that equals the pixel.  New pixels are 0 in the image, and class 0.
cat > classes.tn <<'END_TN'
model classes(image: f32[1, 6, 5]) {
    far = conv2d(image, 1, kernel = 1, bias = false)
    return concat([far * far * -30, (far - 1) * (far - 1) * -30, (far - 2) * (far - 2) * -30])
}
END_TN
recipe classes '"./classes"(scale = 1)' 'mask: class[6, 5]' '[random_crop(2), flip_horizontal, flip_vertical]' 'softmax_cross_entropy' 'constant(1)'
# The mean over the pixels that count is log 3 if all logits are equal, whatever the weights of the classes are.
cat > holes.tn <<'END_TN'
model holes(image: f32[1, 6, 5]) { return conv2d(image, 3, kernel = 1, bias = false) }
END_TN
recipe holes '"./holes"(scale = 1)' 'mask: class[6, 5]' '[random_crop(2), rotate(60), scale(0.4), flip_vertical]' 'softmax_cross_entropy(ignore = 255, class_weights = [1, 2, 5])' 'constant(0)'
# level LOG TEXT: each epoch's loss is log 3
level() {
    same "$2" "1.09861 1.09861 1.09861 " "$(losses "$1" | tr ' ' '\n' | awk 'NF { printf "%.5f ", $1 }')"
}
if part classes; then
    make classes classes-cpu
    succeeds "classes of pixels" ./classes-cpu train --log classes.log
    awk '{ exit !($1 < 1e-6 && $2 < 1e-6 && $3 < 1e-6) }' <<< "$(losses classes.log)" && ok || bad "classes left their pixels: $(losses classes.log)"
    make holes holes-cpu
    succeeds "classes that are ignored" ./holes-cpu train --log holes.log
    level holes.log "the mean over the weights of moved pixels"
    if deep "ignored classes without weights, in f64"; then
        make holes holes-64 --dtype f64 --set 'loss=softmax_cross_entropy(ignore=255)'
        succeeds "classes that are ignored, f64" ./holes-64 train --log holes.log
        level holes.log "the mean over moved pixels"
        succeeds "gradcheck" ./holes-64 gradcheck --data ./holes
    fi
    sed 's/class\[6, 5\]/class[3, 5]/; s/kernel = 1, bias/kernel = [2, 1], stride = [2, 1], bias/' holes.tn > half.tn
    refuses "a mask of another size" "augment moves the pixels of 'image', .N, 1, 6, 5., but cannot move 'mask', .N, 3, 5." "$TENON" check half.tn
    refuses "a script that moves masks" "to pytorch writes scripts that move images, but not the target 'mask'" "$TENON" emit classes.tn --to pytorch
    refuses "a script that turns images" "to pytorch writes no scripts with rotate" "$TENON" emit "$TENON_ROOT/models/quick_cifar10.tn" --to pytorch --set 'augment=rotate(3)'
fi

if part bits; then
    sed 's/holes/bits/g; s#"./bits"#"./holes"#; s/lr = 0/lr = 0.05/; s/constant(0)/he/; s/epochs    = 3/epochs    = 4/
         s/flip_vertical\]/flip_vertical, random_resized_crop, erase, contrast(0.4), brightness(0.2)]/
         s/return conv2d(image,/return conv2d(conv2d(image, 4, kernel = 3, pad = 1) |> relu,/' holes.tn > bits.tn
    cp -r holes other; printf '\x02' | dd of=other/train_y.npy bs=1 seek=$((128 + 40 * 30)) conv=notrunc status=none
    make bits bits-cpu
    equal_bits bits 4 accuracy other
    succeeds "seven threads" ./bits-cpu train --threads 7 --log many.log
    same_epochs "seven threads" many.log accuracy
    if deep "colours of three channels, in each type of image"; then
        for type in '"|u1"' '"<f4"' '"<f8"'; do
            arrays "import random; r = random.Random(2); [(os.makedirs('rgb', exist_ok=True), save(f'rgb/{s}_x.npy', $type, (n, 3, 6, 5), [r.randrange(256) for _ in range(n * 90)]), save(f'rgb/{s}_y.npy', '|u1', (n,), [i % 3 for i in range(n)])) for s, n in (('train', 48), ('test', 16))]"
            sed 's/model bits.*/model rgb(image: f32[3, 6, 5]) { return conv2d(image, 4, kernel = 3) |> relu |> flatten |> dense(3) }/; s/train bits/train rgb/
                 s#"./holes"(scale = 1)#"./rgb"#; /target/d; s/softmax_cross_entropy(.*)/softmax_cross_entropy/
                 s/augment .*/augment = [saturation(0.5), hue(0.2), contrast(0.3), rotate(10), erase(p = 0.9)]/' bits.tn > rgb.tn
            make rgb rgb-cpu
            rm -rf c; cp -r rgb changed; printf '\x00' | dd of=changed/train_y.npy bs=1 seek=$((128 + 40)) conv=notrunc status=none
            equal_bits rgb 4 accuracy changed
            rm -rf changed
        done
    fi
fi
finish
