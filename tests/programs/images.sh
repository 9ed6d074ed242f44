#!/usr/bin/env bash
# images.sh -- folders of PNG and JPEG images: decoded once, stored in a packed file, with the same samples as the same bytes in .npy
# files; messages about a wrong folder or image name its place.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

if ! cc -std=gnu11 -O1 -o "$work/image" "$TENON_ROOT/tests/tools/image.c" -lpng -lturbojpeg 2> /dev/null; then
    skip "folders of images: there is no libpng or no libturbojpeg"; finish; exit
fi
image() { "$work/image" "$@"; }
export XDG_CACHE_HOME=$work/home

cat > "$work/small.tn" <<'END'
model small(image: f32[channels, 16, 16], channels: int = 3, classes: int = 2) {
    h = avg_pool(image, 4) |> flatten |> dense(8) |> relu
    return dense(h, classes)
}
train small {
    data      = imagefolder("pictures")
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.5, momentum = 0.9)
    batch     = 8
    epochs    = 8
}
END

# Two colours in images of exact size: 12 for training and 4 for the test of each, as files and as numbers; the
# classes take turns.
mkdir -p "$work"/exact/{train,test}/{blue,red} "$work/npy"
header() { # TYPE SHAPE
    local text="{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$text"
}
for split in "train 12" "test 4"; do
    n=${split#* } split=${split% *}
    header '|u1' "($((2 * n)), 3, 16, 16)" > "$work/npy/${split}_x.npy"
    header '|u1' "($((2 * n)),)" > "$work/npy/${split}_y.npy"
    for ((i = 10; i < 10 + n; i++)); do
        image "$work/exact/$split/blue/$i.png" 16 16 40 60 200 $i
        image raw 16 16 40 60 200 $i >> "$work/npy/${split}_x.npy"
        image "$work/exact/$split/red/$i.PNG.png" 16 16 200 60 40 $i
        image raw 16 16 200 60 40 $i >> "$work/npy/${split}_x.npy"
        printf '\x00\x01' >> "$work/npy/${split}_y.npy"
    done
done
touch "$work/exact/train/red/.hidden" "$work/exact/train/README"
"$TENON" build "$work/small.tn" -o "$work/p" || { bad "tenon build small.tn"; finish; exit 1; }
run=("$work/p" --threads 2)
decoded() { grep -c 'are decoded' "$work/out" || true; }

succeeds "the same as numbers" "${run[@]}" --data "$work/npy" --log "$work/npy.log"
succeeds "folders of images" "${run[@]}" --data "$work/exact" --log "$work/first.log"
same "both splits are decoded" "$(decoded)" 2
same "the weights of both" "$(hashes "$work/npy.log")" "$(hashes "$work/first.log")"
succeeds "the packed files" "${run[@]}" --data "$work/exact" --log "$work/second.log"
same "nothing is decoded twice" "$(decoded)" 0
cc -shared -fPIC -O1 -o "$work/faults.so" "$TENON_ROOT/tests/tools/faults.c" -ldl
succeeds "the packed files, read in parts" env LD_PRELOAD="$work/faults.so" FAULT_SHORT=1 "${run[@]}" --data "$work/exact" --epochs 1
same "nothing is decoded again" "$(decoded)" 0
same "the weights after packing" "$(hashes "$work/second.log")" "$(hashes "$work/first.log")"
same "two packed files and no other" "$(find "$work/exact" -name '.tenon*' | wc -l)" 2
succeeds "the first images are of all classes" "${run[@]}" --data "$work/exact" --limit-samples 8 --epochs 1
touch "$work/exact/train/red/11.PNG.png"
succeeds "an image that changed" "${run[@]}" --data "$work/exact"
same "its split is decoded again" "$(decoded)" 1
# Pixels set to zero in a packed file, or in its list of hashes: no run trains with them.
packed=("$work/exact"/.tenon-train*)
cp -r "$work/exact" "$work/spoiled"; spoiled=$work/spoiled/${packed[0]##*/}
rm "$spoiled"; find "$work/spoiled" -name '*.png' -exec touch -r "$work/exact/train/red/10.PNG.png" {} +
succeeds "packed again" "${run[@]}" --data "$work/spoiled" --checkpoint "$work/packed" --epochs 2
head -c 900 /dev/zero | dd of="$spoiled" bs=1 seek=$((4096 + 7 * 768)) conv=notrunc status=none
refuses "pixels set to zero" "tenon-train-3x16x16 is damaged: image [678] of 24 in it, .*png, is not what was packed; remove that file" "${run[@]}" --data "$work/spoiled"
refuses "and when it goes on" "image [678] of 24 .*saved in $work/packed" "${run[@]}" --data "$work/spoiled" --checkpoint "$work/packed" --resume
rm "$spoiled"
succeeds "gone on with what is decoded anew" "${run[@]}" --data "$work/spoiled" --checkpoint "$work/packed" --resume --log "$work/packed.log"
XDG_CACHE_HOME=/dev/null succeeds "the same in two" "${run[@]}" --data "$work/spoiled" --log "$work/once.log"
same "their weights" "$(field "$work/packed.log" end weights_hash)" "$(field "$work/once.log" end weights_hash)"
head -c 3 /dev/zero | dd of="$spoiled" bs=1 seek=$(($(stat -c %s "$spoiled") - 5)) conv=notrunc status=none
succeeds "a list of hashes that is damaged" "${run[@]}" --data "$work/spoiled" --epochs 1
grep -q "is damaged and is made again" "$work/out" && ok || bad "a damaged list of hashes is taken: $(cat "$work/out")"
image "$work/spoiled/train/red/12.PNG.png" 16 16 1 2 3 4
refuses "another image" "made with samples whose bytes have the hash" "${run[@]}" --data "$work/spoiled" --checkpoint "$work/packed" --resume --epochs 9

truncate -s -1 "$work/exact"/.tenon-train*
succeeds "a packed file cut short" "${run[@]}" --data "$work/exact" --log "$work/third.log"
same "it is made anew" "$(decoded)" 1
same "with the same weights" "$(hashes "$work/third.log")" "$(hashes "$work/first.log")"
rm "$work/exact"/.tenon*; mkdir "$work/exact/.tenon-train-3x16x16" "$work/exact/.tenon-test-3x16x16"
succeeds "nowhere to write beside the images" "${run[@]}" --data "$work/exact"
same "the user's cache has them" "$(find "$work/home/tenon" -name 'images-*' | wc -l)" 2
succeeds "from the user's cache" "${run[@]}" --data "$work/exact" --log "$work/home.log"
same "nothing is decoded" "$(decoded)" 0
same "the weights from there" "$(hashes "$work/home.log")" "$(hashes "$work/first.log")"
touch "$work/exact/train/red/11.PNG.png"
XDG_CACHE_HOME=/dev/null succeeds "nowhere to write at all" "${run[@]}" --data "$work/exact" --log "$work/memory.log"
same "the weights from memory" "$(hashes "$work/memory.log")" "$(hashes "$work/first.log")"

# A packed file appears when it is complete.  While another process writes it, samples are in memory only; after a
# kill it is written again; the same without locks.
cp -r "$work/exact" "$work/shared"; rm -rf "$work"/shared/.tenon*
cc -shared -fPIC -O1 -o "$work/faults.so" "$TENON_ROOT/tests/tools/faults.c" -ldl
env LD_PRELOAD="$work/faults.so" FAULT_FSYNC="$work/waits" "${run[@]}" --data "$work/shared" > /dev/null 2>&1 & one=$!
for ((i = 0; i < 200; i++)); do [ -e "$work/waits" ] && break; sleep 0.05; done
XDG_CACHE_HOME=/dev/null succeeds "beside a process that packs" "${run[@]}" --data "$work/shared" --log "$work/beside.log"
same "the weights beside it" "$(hashes "$work/beside.log")" "$(hashes "$work/first.log")"
same "no split is packed twice" 0 "$(find "$work/shared" -name '.tenon-train-*' ! -name '*.tmp*' | wc -l)"
kill -9 $one; wait $one 2> /dev/null || true
succeeds "behind it, without locks" env LD_PRELOAD="$work/faults.so" FAULT_FLOCK=38 "${run[@]}" --data "$work/shared"
same "two packed files, and what the killed one had begun is gone" ".tenon-test-3x16x16 .tenon-train-3x16x16" "$(cd "$work/shared" && echo .tenon*)"
# 16 bits are reduced to the higher eight, and a gAMA chunk changes nothing, as in Pillow's convert("RGB"): the
# samples are the exact ones.
for kind in deep gamma; do
    cp -r "$work/exact" "$work/$kind"; rm -rf "$work/$kind"/.tenon*
    for ((i = 10; i < 22; i++)); do
        image "$work/$kind/train/blue/$i.png" $kind 16 40 60 200 $i
        image "$work/$kind/train/red/$i.PNG.png" $kind 16 200 60 40 $i
    done
    succeeds "PNG, $kind" "${run[@]}" --data "$work/$kind" --log "$work/$kind.log"
    same "the weights of PNG, $kind" "$(hashes "$work/$kind.log")" "$(hashes "$work/first.log")"
done
# A temporary file of a process on another host, or in a container that no longer exists: it stays for a day.
rm "$work"/shared/.tenon*; touch "$work/shared/.tenon-train-3x16x16.tmp-0123456789abcdef-1-1-0"
XDG_CACHE_HOME=/dev/null succeeds "beside another host that packs" "${run[@]}" --data "$work/shared" --epochs 1
[ ! -e "$work/shared/.tenon-train-3x16x16" ] && ok || bad "packed beside another host that packs"
touch -d '2 days ago' "$work"/shared/.tenon-train*
XDG_CACHE_HOME=/dev/null succeeds "behind another host that packed" "${run[@]}" --data "$work/shared" --epochs 1
[ -e "$work/shared/.tenon-train-3x16x16" ] && ok || bad "a file of two days ago, of a host that is gone, keeps images from being packed"

# The middle part of wider images equals the exact images.
cp -r "$work/exact" "$work/wide"; rm -rf "$work"/wide/.tenon*
for ((i = 10; i < 22; i++)); do image "$work/wide/train/blue/$i.png" wide 16 40 60 200 $i; done
succeeds "the middle of wide images" "${run[@]}" --data "$work/wide" --log "$work/wide.log"
same "the weights of wide images" "$(hashes "$work/wide.log")" "$(hashes "$work/first.log")"
"$TENON" build "$work/small.tn" -o "$work/stretched" --set data.fit=stretch
succeeds "wide images stretched" "$work/stretched" --data "$work/wide" --log "$work/stretched.log"
[ "$(hashes "$work/stretched.log")" != "$(hashes "$work/first.log")" ] && ok || bad "stretched images are the cropped ones"

# Images of many sizes and kinds are learned; as grey images for one channel.
mkdir -p "$work"/mixed/{train,test}/{blue,red}
for ((i = 1; i < 10; i++)); do
    image "$work/mixed/train/blue/$i.jpg" $((5 * i)) $((40 - 3 * i)) 40 60 200 $i
    image "$work/mixed/train/red/$i.jpeg" $((60 - 5 * i)) $((7 * i)) 200 60 40 $i
    image "$work/mixed/test/blue/$i.png" $((9 * i)) 20 40 60 200 $((i + 50))
    image "$work/mixed/test/red/$i.JPG" 33 $((4 * i)) 200 60 40 $((i + 50))
done
mv "$work/mixed/train/blue/3.jpg" "$work/mixed/train/blue/3.png"     # the bytes decide the format
succeeds "images of many sizes" "${run[@]}" --data "$work/mixed" --log "$work/mixed.log"
same "colours are told apart" "$(field "$work/mixed.log" epoch test_accuracy | awk '{ print $NF }')" 1
"$TENON" build "$work/small.tn" -o "$work/grey" --set model.channels=1
succeeds "grey" "$work/grey" --data "$work/mixed"
ldd "$work/p" > "$work/libraries"
if grep -q turbojpeg "$work/libraries"; then ok; else bad "a program for images is linked without libturbojpeg"; fi
build mlp "$work/mlp"
ldd "$work/mlp" > "$work/libraries"
if grep -Eq 'turbojpeg|png' "$work/libraries"; then bad "a program for MNIST is linked with libpng"; else ok; fi
refuses "images for a program that reads none" "folders of images need data = imagefolder" "$work/mlp" --data "$work/exact"

# An image is classified by name; all outputs are those of the same bytes in a .npy file.
w=(--weights "$work/w.safetensors")
succeeds "weights with names" "${run[@]}" --data "$work/exact" --save "$work/w.safetensors" --checkpoint "$work/ck"
"$work/p" predict --help > "$work/help"
grep -q -- '--input FILE  *images: a PNG or JPEG file, or a folder of them; or .npy (N, ' "$work/help" && ok || bad "predict --help does not mention images"
succeeds "predict of a folder" "$work/p" predict "${w[@]}" --input "$work/exact/test/red"
same "a line a file, sorted, with its class and how likely it is" "$(printf "$work/exact/test/red/%s.PNG.png red p\n" 10 11 12 13)" "$(sed 's/\t1\.0000$\|\t0\.[0-9]*$/ p/; s/\t/ /' "$work/out")"
for kind in grey grey16; do
    image "$work/$kind.png" $kind 16 120 0 0 7
    "$work/p" predict "${w[@]}" --input "$work/$kind.png" --output "$work/$kind.csv" || bad "predict of $kind"
done
same "grey of 8 and of 16 bits" "$(cat "$work/grey.csv")" "$(cat "$work/grey16.csv")"
image "$work/huge.png" empty 20000 0 0 0 1
refuses "an image of a gigabyte" "huge.png cannot be read as an image: it has 20000 x 20000 pixels, more than the 178956970 that are read" "$work/p" predict "${w[@]}" --input "$work/huge.png"
(cd "$work/exact/test/blue" && "$work/p" predict "${w[@]}" --input 10.png) > "$work/one"
same "predict of a file" "10.png blue" "$(cut -f 1,2 "$work/one" | tr '\t' ' ')"
cp "$work/mixed/test/red/9.JPG" "$work/photo"
succeeds "predict of a JPEG without a name's end, by a checkpoint" "$work/p" predict --weights "$(find "$work/ck" -name 'step-*' | sort | tail -n 1)" --input "$work/photo"
same "its class" red "$(cut -f 2 "$work/out")"
(cd "$work/exact/test/blue" && "$work/p" predict "${w[@]}" --input . --id file) > "$work/ids.csv"
same "paths in front of rows" "$(ls "$work/exact/test/blue" | sed 's#^#./#' | sort | head -n 2)" "$(cut -d, -f 1 "$work/ids.csv" | head -n 2)"
refuses "images have no columns" "images have no column 'name': --id file writes their paths" "$work/p" predict "${w[@]}" --input "$work/exact/test/blue" --id name
succeeds "all outputs of images" "$work/p" predict "${w[@]}" --input "$work/exact/test/red" --output "$work/images.csv"
header '|u1' "(4, 3, 16, 16)" > "$work/red.npy"
for i in 10 11 12 13; do image raw 16 16 200 60 40 $i >> "$work/red.npy"; done
succeeds "all outputs of the same numbers" "$work/p" predict "${w[@]}" --input "$work/red.npy" --output "$work/numbers.csv"
same "the outputs of both" "$(cat "$work/numbers.csv")" "$(cat "$work/images.csv")"
succeeds "weights without names" "${run[@]}" --data "$work/npy" --save "$work/nameless.safetensors"
same "classes without names are numbers" "1" "$("$work/p" predict --weights "$work/nameless.safetensors" --input "$work/exact/test/red/10.PNG.png" | cut -f 2)"
succeeds "three classes: build" "$TENON" build "$work/small.tn" -o "$work/three" --set model.classes=3
refuses "names of two classes for three" "holds? the weights|names 2 classes" "$work/three" predict "${w[@]}" --input "$work/photo"
echo text > "$work/text.png"
refuses "predict of a text" "text.png cannot be read as an image: it is neither PNG nor JPEG" "$work/p" predict "${w[@]}" --input "$work/text.png"
refuses "predict of no file" "none.png cannot be read" "$work/p" predict "${w[@]}" --input "$work/none.png"
refuses "predict of folders" "test holds no image: .*folders in it are not looked into" "$work/p" predict "${w[@]}" --input "$work/exact/test"
succeeds "an MLP's weights" "$work/mlp" --epochs 1 --limit-samples 128 --save "$work/mlp.safetensors"
refuses "an image for a program that reads none" "text.png is an image, and mlp was built without .*data = imagefolder" "$work/mlp" predict --weights "$work/mlp.safetensors" --input "$work/text.png"

# Obstacles at the path of a packed file, and damage to it: the message has its final name, not the temporary one
# under which it was mapped.
rm -rf "$work/d"; cp -r "$work/mixed" "$work/d"; rm -f "$work"/d/.tenon*
mkfifo "$work/d/.tenon-train-3x16x16"
succeeds "a pipe in a packed file's place" timeout 60 "${run[@]}" --data "$work/d" --epochs 1
rm -rf "$work"/d/.tenon* "$work/home"
"${run[@]}" --data "$work/d" --epochs 10000000 --log "$work/shrinks.log" > /dev/null 2> "$work/err" & job=$!
for _ in $(seq 400); do grep -qs '"event":"epoch"' "$work/shrinks.log" && break; sleep 0.02; done
truncate -s 4096 "$work/d/.tenon-train-3x16x16"
for _ in $(seq 400); do kill -0 $job 2> /dev/null || break; sleep 0.02; done
kill -9 $job 2> /dev/null && bad "the run goes on though its packed file was cut short"
rc=0; wait $job || rc=$?
same "a packed file cut short by the run that made it" "1 1" "$rc $(grep -c "d/.tenon-train-3x16x16 holds 4096 bytes now, and held" "$work/err")"

# Wrong folders and images.
fresh() { rm -rf "$work/d"; cp -r "$work/mixed" "$work/d"; rm -f "$work"/d/.tenon*; }
wrong() { refuses "$1" "$2" "${run[@]}" --data "$work/d"; [ -z "$(find "$work/d" -name '*.tmp*')" ] && ok || bad "$1: half a packed file is left"; }
fresh; truncate -s -200 "$work/d/train/red/4.jpeg";     wrong "a JPEG cut short" "train/red/4.jpeg cannot be read as an image: .*[Pp]remature"
fresh; truncate -s 60 "$work/d/test/blue/2.png";       wrong "a PNG cut short" "test/blue/2.png cannot be read as an image: "
fresh; : > "$work/d/train/blue/5.jpg";                 wrong "an empty file" "train/blue/5.jpg cannot be read as an image: it is empty"
fresh; echo text > "$work/d/train/blue/6.jpg";         wrong "a text" "train/blue/6.jpg cannot be read as an image: it is neither PNG nor JPEG"
fresh; ln -s nowhere "$work/d/train/red/link.png"; echo > "$work/d/train/blue/x.gif"; mkdir "$work/d/train/blue/folder.png"
succeeds "what is no image" "${run[@]}" --data "$work/d" --epochs 1
grep -q "d/train: 3 entries are left out" "$work/out" && ok || bad "a link to nowhere, a .gif and a folder are not counted: $(cat "$work/out")"
fresh; rm -r "$work/d/train/red" "$work/d/test/red";   wrong "one class" "d/train holds one folder .blue.: .*at least two"
fresh; rm -r "$work"/d/train/*;                        wrong "no class" "d/train holds no folder"
fresh; rm "$work"/d/train/red/*;                       wrong "a class without images" "d/train/red holds no image"
cat > "$work/formula.tn" <<'END'
model formula(image: f32[3, 16, 16]) {
    return flatten(image) |> dense(2)
}
train formula {
    data      = imagefolder("pictures")
    loss      = mean((output - one_hot(label, 2)) ** 2, axes = [0])
    optimizer = sgd(lr = 0.01)
    batch     = 8
    epochs    = 1
}
END
succeeds "a loss that is a formula: build" "$TENON" build "$work/formula.tn" -o "$work/formula"
succeeds "a loss that is a formula" "$work/formula" --data "$work/exact" --threads 2
# A sample that is its own target: the number of folders does not matter, and predictions are numbers.
cat > "$work/own.tn" <<'END'
model own(image: f32[3, 16, 16]) {
    return flatten(image) |> dense(4) |> dense(image.count) |> reshape(image.shape)
}
train own {
    data      = imagefolder("pictures")
    target    = image
    loss      = mse
    optimizer = sgd(lr = 0.01)
    batch     = 8
    epochs    = 1
}
END
succeeds "an autoencoder of images: build" "$TENON" build "$work/own.tn" -o "$work/own"
fresh; for split in train test; do cp -r "$work/d/$split/red" "$work/d/$split/green"; done
succeeds "an autoencoder of images" "$work/own" --data "$work/d" --threads 2 --save "$work/own.safetensors"
"$work/own" predict --weights "$work/own.safetensors" --input "$work/exact/test/red" > "$work/drawn"
same "an image drawn again: its numbers" "4 768" "$(wc -l < "$work/drawn") $(head -n 1 "$work/drawn" | tr , '\n' | wc -l)"
fresh; mkdir "$work/d/train/green"; cp "$work"/d/train/red/* "$work/d/train/green"
refuses "a formula over two of three classes" "d/train holds 3 classes .blue, green, red., but formula has 2" "$work/formula" --data "$work/d"
fresh; mkdir "$work/d/train/green"; cp "$work"/d/train/red/* "$work/d/train/green"; wrong "three classes" "d/train holds 3 classes .blue, green, red., but small has 2.*model.classes=3"
fresh; mv "$work/d/test/red" "$work/d/test/green";     wrong "another class to test" "d/test/green: there is no class 'green' among the folders to train on .blue, red."
fresh; rm -r "$work/d/test/red";                       wrong "a class missing in the test" "d/test/red is missing"
fresh; rm -r "$work/d/test";                           wrong "nothing to test" "no test data.*nor a folder test"
# Another program removes a directory between two looks at it.
gone=(env LD_PRELOAD="$work/faults.so" FAULT_GONE="$work/d/test")
fresh; refuses "a split that disappears" "d/test cannot be read: No such file" "${gone[@]}" "${run[@]}" --data "$work/d"
refuses "a folder to predict that disappears" "d/test cannot be read: No such file" "${gone[@]}" "$work/p" predict "${w[@]}" --input "$work/d/test"
fresh; refuses "a disk that fails" "cannot be read: Input/output error" env LD_PRELOAD="$work/faults.so" FAULT_READ=5 "${run[@]}" --data "$work/d"
fresh; rm -r "$work/d";                                refuses "no directory" "data directory .*/d does not exist" "${run[@]}" --data "$work/d"
refuses "images for vectors" "small.tn:.*error: imagefolder gives images" "$TENON" check "$work/small.tn" --set model.channels=2
refuses "imagefolder of nothing" "missing its argument 'directory'" "$TENON" check "$work/small.tn" --set 'data=imagefolder()'
refuses "a directory without quotes" "string|quotes" "$TENON" check "$work/small.tn" --set 'data=imagefolder(3)'
finish
