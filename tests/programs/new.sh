#!/usr/bin/env bash
# new.sh -- tenon new: each kind of data gets a model that compiles, builds and trains as it is; nothing is overwritten.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$work"

# Data of each kind, small.
small_mnist "$work/digits" 640 100 || true
mkdir numbers steps arrays texts reviews topics
npy numbers/train_x.npy '<f4' '(60, 7)' $((60 * 7 * 4))
npy steps/train_x.npy '<f4' '(60, 5, 3)' $((60 * 5 * 3 * 4))
npy arrays/train_x.npy '|u1' '(60, 1, 16, 12)' $((60 * 16 * 12))
for set in numbers steps arrays; do
    npy $set/train_y.npy '<i4' '(60,)' 0
    for _ in $(seq 20); do printf '\0\0\0\0\1\0\0\0\2\0\0\0'; done >> $set/train_y.npy
    cp $set/train_x.npy $set/test_x.npy
    cp $set/train_y.npy $set/test_y.npy
done
mkdir prices places                                       # targets: 1, 2 and 3 in turn; the same in two columns, f64
npy prices/train_x.npy '<f4' '(60, 7)' $((60 * 7 * 4))
npy prices/train_y.npy '<f4' '(60,)' 0
for _ in $(seq 20); do printf '\0\0\200\77\0\0\0\100\0\0\100\100'; done >> prices/train_y.npy
cp arrays/train_x.npy places/train_x.npy
npy places/train_y.npy '<f8' '(60, 2)' 0
for _ in $(seq 40); do printf '\0\0\0\0\0\0\360\77\0\0\0\0\0\0\0\100\0\0\0\0\0\0\10\100'; done >> places/train_y.npy
for set in prices places; do
    cp $set/train_x.npy $set/test_x.npy
    cp $set/train_y.npy $set/test_y.npy
done
for i in $(seq 60); do printf '%d\tthe %s film %d\n' $((i % 2)) "$([ $((i % 2)) = 0 ] && echo bad || echo good)" $((i % 7)); done > reviews/train.tsv
for i in $(seq 60); do printf '%d\tword%d is here\n' $((i % 3)) $((i % 3)); done > topics/train.tsv
for set in reviews topics; do cp $set/train.tsv $set/test.tsv; done
for i in $(seq 400); do echo "Line $i: straße, naïve, 日本."; done > "a \"tale\".txt"
python3 - << 'END'
import os, struct, zlib
def png(path, grey):                                      # 8 x 8 pixels of one grey
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes([grey] * 8) for _ in range(8))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for split in "train", "test":
    for k, name in enumerate(("dark", "grey", "light")):
        os.makedirs(f"pictures/{split}/{name}")
        for i in range(8):
            png(f"pictures/{split}/{name}/{i}.png", 40 + 80 * k + i)
END

# Tables: a number to learn, after row numbers without a name and with a gap; names of classes; two classes as numbers.
awk 'BEGIN { print ";living area;\"town; part\";price"; for (i = 0; i < 80; i++) printf "%d;%s;%s;%d\n", i, i == 7 ? "" : 30 + i % 50, i % 3 ? "Ulm" : "Bonn", 100 + 3 * (i % 50) }' > flats.csv
awk 'BEGIN { print "a\tb\tkind"; for (i = 0; i < 80; i++) printf "%d\t%.1f\t%s\n", i % 9, i / 7, substr("xyz", 1 + i % 3, 1) }' > kinds.tsv
awk 'BEGIN { print "a,b,yes"; for (i = 0; i < 80; i++) printf "%d,%d,%d\n", i % 9, i % 5, (i % 9 > 4) }' > facts.csv

# made NAME DATA PATTERN: the model compiles, has the style, and PATTERN is a part of it
made() {
    succeeds "tenon new of $2" "$TENON" new "$1" --data "$2"
    grep -q "^train it: tenon run $1.tn -- --save $1.safetensors$" "$work/out" && ok || bad "what tenon new says: $(cat "$work/out")"
    succeeds "check of $2" "$TENON" check "$1.tn"
    succeeds "the style of $2" "$TENON" fmt --check "$1.tn"
    grep -qE "$3" "$1.tn" && ok || bad "no '$3' in the model of $2: $(cat "$1.tn")"
}
succeeds "tenon new" "$TENON" new mine
cp mine.tn first.tn
made mine_2 mnist 'image: f32\[1, 28, 28\], classes: int = 10'
made small cifar10 'image: f32\[3, 32, 32\], classes: int = 10'
made play tinyshakespeare 'vocab = 65'
made rows numbers 'columns: int = 7, classes: int = 3'
made paths ./steps 'steps: int = 5, features: int = 3, classes: int = 3'
mkdir whole half; cp numbers/train_x.npy whole/x.npy; cp numbers/train_y.npy whole/y.npy; cp numbers/train_?.npy half/
made shared whole 'data      = "./whole"\(test = 0.2\)'
made halved half 'data      = "./half"\(test = 0.2\)'
mkdir large                                               # 48 GB, of which the disk has a block
npy large/train_x.npy '<f4' '(60, 1000, 200000)' 0
truncate -s $((128 + 60 * 1000 * 200000 * 4)) large/train_x.npy
cp numbers/train_y.npy large/
made many large 'steps: int = 1000, features: int = 200000, classes: int = 3'
made homes prices 'columns: int = 7, mean: float = 2, spread: float = 0.8165'
grep -qx '    target    = answer: f32\[1\]' homes.tn && grep -qx '    loss      = mse' homes.tn && ok || bad "no target in $(cat homes.tn)"
made spots places 'dense\(h, 2\) \* spread \+ mean'
made tiny arrays 'f32\[1, 16, 12\], classes: int = 3'
made opinions reviews 'sigmoid_cross_entropy'
made themes topics 'dense\(3\)$'
made gallery pictures 'data      = imagefolder\("./pictures"\)'
made story 'a "tale".txt' 'text\("./a \\"tale\\".txt", unit = "char", vocab = '
made dwellings flats.csv 'csv\("./flats.csv", input = \["living area", "town; part"\], target = "price",$'
grep -q 'missing = mean' dwellings.tn && grep -q 'row: f32\[3\], mean: float = 1' dwellings.tn && ok || bad "the model of a table: $(cat dwellings.tn)"
sed '1s/^;/empty;/; 2,$s/^[0-9]*;/;/' flats.csv > hollow.csv      # a column without a value
made hollows hollow.csv 'csv\("./hollow.csv", input = \["living area", "town; part"\], target = "price",$'
mkdir lots; cp kinds.tsv lots/train.csv
made divided lots 'csv\("./lots", target = "kind", test = 0.2\)'
cp kinds.tsv lots/test.csv
made tested lots 'csv\("./lots", target = "kind"\)'
# Towns that occur once: each town of a test row is unknown, and only those of training rows are inputs.
awk 'BEGIN { print "town,age,sold"; for (i = 0; i < 200; i++) printf "%s,%d,%s\n", (i % 9 == 5 ? "village " i : "Ulm"), i % 50, (i % 2 ? "yes" : "no") }' > rare.csv
made villages rare.csv 'csv\("./rare.csv", target = "sold", unknown = other, test = 0.2\)'
succeeds "a table with rare categories: build" "$TENON" build villages.tn -o villages
succeeds "a table with rare categories: train" ./villages --epochs 1
awk 'BEGIN { print "share,age,sold"; for (i = 0; i < 100; i++) printf "%d %%,%d,%s\n", i, i % 50, (i % 2 ? "yes" : "no") }' > percents.csv
succeeds "a column of different texts" "$TENON" new percents --data percents.csv
grep -q "warning: column 'share' of percents.csv has [0-9]* different texts" out && ok || bad "of a column of different texts: $(cat out)"
"$TENON" new percents2 --data rare.csv > out 2>&1; grep -q warning out && bad "a warning of 23 towns in 200 rows: $(cat out)" || ok
mkdir towns; cp rare.csv towns/train.csv; printf 'sold,town,age\nyes,Rom,3\nno,Ulm,\n' > towns/test.csv
made strange towns 'csv\("./towns", target = "sold", missing = mean, unknown = other\)'
succeeds "a test file with a new town: build" "$TENON" build strange.tn -o strange
succeeds "a test file with a new town: train" ./strange --epochs 1
printf 'sold,town,age\nyes,Ulm,3\n\nperhaps,Ulm,4\n' > towns/test.csv
refuses "a test file with a new class" "towns/test.csv:4: column 'sold' is 'perhaps', which no row of the training split has" "$TENON" new strange2 --data towns
printf 'town,age,sold\nUlm,"1,5",yes\n' > towns/test.csv
refuses "a test file with a comma" "towns/test.csv:2: column 'age' is '1,5', not a number" "$TENON" new strange2 --data towns
printf 'town,sold\nyes,3\n' > towns/test.csv
refuses "a test file without an input" "towns/test.csv has no column 'age'" "$TENON" new strange2 --data towns
printf 'town,sold\ninf,yes\nUlm,no\nRom,yes\n' > towns/train.csv; printf 'town,sold\n3,yes\n' > towns/test.csv
refuses "a number beside an endless one" "towns/train.csv:2: column 'town' is 'inf', not a finite number" "$TENON" new strange2 --data towns
made sorts kinds.tsv 'row: f32\[2\], classes: int = 3'
made truths facts.csv 'sigmoid_cross_entropy'
mkdir sub
succeeds "a model in a directory" "$TENON" new sub/net.tn
succeeds "check of a model in a directory" "$TENON" check sub/net.tn

# The first model trains as it is; with --deep, all do.
succeeds "build" "$TENON" build mine.tn -o mine
succeeds "training" ./mine --data "$work/digits" --log log --epochs 12
awk '{ exit !($NF > 0.5) }' <<< "$(field log epoch test_accuracy)" && ok || bad "test accuracies $(field log epoch test_accuracy)"
if deep "training of all models of tenon new"; then
    for name in play rows paths homes spots tiny opinions themes gallery story dwellings sorts truths hollows tested shared halved; do
        rm -f log
        succeeds "build $name" "$TENON" build $name.tn -o $name
        succeeds "train $name" ./$name --log log --limit-samples 640
        losses=$(field log epoch train_loss)
        awk '{ for (i = 1; i <= NF; i++) if ($i != $i + 0) exit 1; exit !(NF > 0 && $NF < 1.001 * $1) }' <<< "$losses" && ok || bad "losses of $name: $losses"
    done
fi

# Wrong words: nothing is written, and nothing is overwritten.
refuses "an existing file" "mine.tn exists, and tenon new replaces no file" "$TENON" new mine
cmp -s mine.tn first.tn && ok || bad "tenon new has changed a file"
ln -s nowhere link.tn
refuses "a link" "link.tn exists" "$TENON" new link
[ ! -e nowhere ] && ok || bad "tenon new follows a link"
printf 'a,b\n1,2,3\n' > bad.csv; refuses "a long row" "bad.csv:2: 3 fields where the first row has 2 names" "$TENON" new net --data bad.csv
printf 'a,b\n' > bad.csv; refuses "no rows" "bad.csv has no row below its names" "$TENON" new net --data bad.csv
: > bad.csv; refuses "an empty table" "bad.csv is empty" "$TENON" new net --data bad.csv
printf 'a\n1\n' > bad.csv; refuses "one column" "bad.csv needs two columns with names" "$TENON" new net --data bad.csv
printf 'a,b\n1,x\n2,x\n' > bad.csv; refuses "one class" "the column 'b' of bad.csv has one value" "$TENON" new net --data bad.csv
printf 'a\001,b\n1,x\n2,y\n' > bad.csv; refuses "a name that cannot be written" "the name of column 1 cannot be written in a model file" "$TENON" new net --data bad.csv
printf 'a,\303\266\001,b\n1,2,x\n2,3,y\n' > bad.csv; refuses "a control character after a letter that is not ASCII" "the name of column 2 cannot be written" "$TENON" new net --data bad.csv
# Another column than the last one; what is printed names the column.
printf 'price,town,lift\n10,Bern,yes\n12,Basel,no\n14,Bern,yes\n11,Basel,no\n13,Bern,yes\n15,Basel,yes\n' > flats.csv
succeeds "a column to learn" "$TENON" new flats --data flats.csv --learn price
grep -q "a table with 4 numbers in a row; column 'price': a number to learn" out && ok || bad "it does not name the column: $(cat out)"
grep -q 'csv("./flats.csv", target = "price"' flats.tn && grep -q 'row: f32\[4\]' flats.tn && ok || bad "the model that learns price: $(cat flats.tn)"
succeeds "its build" "$TENON" build flats.tn -o flats
succeeds "its training" ./flats --epochs 1 --save flats.safetensors
printf 'lift,town\nno,Bern\n' > asked.csv
succeeds "its prediction" ./flats predict --weights flats.safetensors --input asked.csv
refuses "a column that is not there" "flats.csv has no column 'pryce', did you mean 'price'" "$TENON" new other --data flats.csv --learn pryce
refuses "a column without a name" "--learn needs the name of a column" "$TENON" new other --data flats.csv --learn ''
printf 'a,gap,b\n1,,x\n2,,y\n3,,x\n4,,y\n5,,x\n6,,y\n' > gaps.csv
refuses "a column without a value" "the column 'gap' of gaps.csv has no value: there is nothing to learn" "$TENON" new other --data gaps.csv --learn gap
refuses "a name of one letter" "gaps.csv has no column 'z': its first row has a, gap, b" "$TENON" new other --data gaps.csv --learn z
refuses "a column of images" "error: --learn names a column of a table" "$TENON" new other --learn price
refuses "the option of other commands" "help: the column of a table that the network learns: --learn COLUMN" "$TENON" new other --data flats.csv --target price

# faulty TEXT PATTERN: tenon new refuses this table, as the program would
faulty() { printf "$1" > bad.csv; refuses "a faulty table: $2" "$2" "$TENON" new net --data bad.csv; }
faulty 'a,b\n1,2\n\n"3\n4",5,6\n' "bad.csv:4: 3 fields where the first row has 2 names"
faulty 'a;b\n1;x\n2;"y\n' "bad.csv:3: the quote in column 2 is not closed"
faulty 'a,b\n"1"2,x\n' "bad.csv:2: column 1 has text after its closing quote"
faulty 'a,b,a\n1,2,3\n' "bad.csv:1: columns 1 and 3 are both called 'a'"
faulty '1,2,3\n4,5,6\n' "bad.csv:1: the first row must hold the names of the columns"
faulty 'a;b\n1,5;x\n2,5;y\n' "bad.csv:2: column 'a' is '1,5', not a number"
faulty 'a;b\n1;x\n\n2;1.234,5\n3;7\n' "bad.csv:4: column 'b' is '1.234,5', not a number"
faulty 'a,b\n1,2\ninf,3\n' "bad.csv:3: column 'a' is 'inf', not a finite number"
faulty 'a,b\r1,2\r' "bad.csv has lines that end in CR alone"
faulty 'a,b\n1,\000\n' "bad.csv:2: the row holds a byte of 0"
faulty '\377\376a\000,\000' "bad.csv is in UTF-16"
faulty 'a,b\n,2\n,3\n' "bad.csv has no value in a column beside 'b'"
faulty "a,b\n$(for i in $(seq 60); do printf '%d,%s\\n' "$i" "$((i % 2))"; done)$(for i in $(seq 61 99); do printf '%d,n%d\\n' "$i" "$i"; done)" \
    "bad.csv:[0-9]+: column 'b' is 'n[0-9]+', which no row of the training split has"
faulty 'a,b\n1,2\n' "bad.csv has 1 row, too few for a training and a test split"
faulty 'a,b\n1,2\n3,K\366ln\n' "bad.csv:3: the byte 0xF6 is not UTF-8"
faulty 'a|b\n1|2\n' "commas, semicolons or tabs separate columns"
rm bad.csv
mkdir masks && npy masks/train_x.npy '|u1' '(4, 3, 8, 8)' 768 && npy masks/train_y.npy '|u1' '(4, 8, 8)' 256
refuses "masks" "masks/train_y.npy holds masks: tenon new writes no models for them" "$TENON" new net --data masks
ls > before
refuses "no name" "needs the name of a model" "$TENON" new
refuses "two names" "takes one name; 'b' is a second one" "$TENON" new a b
refuses "a digit" "'3d' cannot be the name of a model" "$TENON" new 3d
refuses "a hyphen" "'my-net' cannot be the name of a model" "$TENON" new my-net
refuses "a reserved word" "'train' is a reserved word" "$TENON" new train
refuses "an operation" "'dense' is an operation" "$TENON" new dense
refuses "a function" "'int' is a function of Tenon" "$TENON" new int
refuses "another ending" "ends in .tn, not in '.py'" "$TENON" new net.py
refuses "a directory that is not there" "cannot write no/net.tn: No such file" "$TENON" new no/net
refuses "an unknown data set" "did you mean 'mnist'" "$TENON" new net --data mnits
refuses "an empty directory" "holds neither train_x.npy, nor train.csv, nor train.tsv, nor train/CLASS/" "$TENON" new net --data sub
mkdir wrong floats
echo "no array" > wrong/train_x.npy
mkdir uneven; cp prices/*.npy uneven; npy uneven/train_y.npy '<f4' '(59,)' $((59 * 4))
refuses "fewer targets than samples" "train_x.npy has 60 samples, but train_y.npy 59 targets" "$TENON" new net --data uneven
refuses "no array" "are not two arrays of numbers" "$TENON" new net --data wrong
cp numbers/train_x.npy floats/train_x.npy
npy floats/train_y.npy '<f4' '(60,)' $((59 * 4))         # zeros, and a NaN
printf '\0\0\300\177' >> floats/train_y.npy
refuses "a target that is not finite" "targets are f4 or f8, finite" "$TENON" new net --data floats
npy floats/train_y.npy '<f4' '(60, 1, 2)' $((120 * 4))
refuses "targets of two dimensions" "targets are f4 or f8, finite" "$TENON" new net --data floats
mkdir halves
npy halves/train_x.npy '<f2' '(60, 7)' $((60 * 7 * 2))
cp numbers/train_y.npy halves/
refuses "numbers of two bytes" "the samples are f2 of 1 dimension, with 3 classes" "$TENON" new net --data halves
mkdir fewer negative
cp numbers/train_x.npy fewer/
npy fewer/train_y.npy '|u1' '(59,)' 58
printf '\1' >> fewer/train_y.npy
refuses "fewer classes than samples" "fewer/train_x.npy has 60 samples, but train_y.npy is no list of 60 classes" "$TENON" new net --data fewer
npy fewer/train_y.npy '|u1' '(60, 2, 2)' 239
printf '\1' >> fewer/train_y.npy
refuses "masks" "masks are declared in the recipe, as target = mask: class.64, 64. or" "$TENON" new net --data fewer
cp numbers/train_x.npy negative/
npy negative/train_y.npy '|i1' '(60,)' 58
printf '\1\377' >> negative/train_y.npy
refuses "a negative class" "at least two classes are integers from 0" "$TENON" new net --data negative
cp -r numbers $'bytes\xff'
refuses "a path that is not UTF-8" "--data: a path with a byte that is not UTF-8 cannot be written" "$TENON" new net --data $'bytes\xff'
refuses "a path with a line end" "--data: a path with a control character cannot be written" "$TENON" new net --data $'a\nb'
mkdir labels
printf '0\tgood\nbad line\n' > labels/train.tsv
refuses "a line without a class" "a line is the number of a class, a tab and a text" "$TENON" new net --data labels
head -c 3000 /dev/urandom > noise
refuses "no text" "noise is not a text: byte [0-9]* is not UTF-8" "$TENON" new net --data noise
echo short > short
refuses "a short text" "has 6 bytes, too few to learn from" "$TENON" new net --data short
head -c 3000 /dev/zero | tr '\0' a > alike
refuses "a text of one character" "alike has one character only" "$TENON" new net --data alike
rm -r wrong floats uneven halves fewer negative $'bytes\xff' labels noise short alike
rc=0; ( (ulimit -f 0; exec "$TENON" new net > /dev/null 2>&1); exit $?) 2> /dev/null || rc=$?
[ $rc != 0 ] && ok || bad "a file of 0 bytes at most: exit code 0"
[ "$(ls | grep -v before)" = "$(grep -v before before)" ] && ok || bad "files are left: $(ls)"
finish
