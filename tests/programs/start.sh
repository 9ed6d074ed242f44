#!/usr/bin/env bash
# start.sh -- start = weights(...), and --weights with --only and --except: which tensors of a file a run begins with, byte by byte; what
# is printed, logged and refused; the same bits by the recipe and by options, over threads, groups and ranks, and after a resume.
#
# Parts: parts words
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"
cd "$work"

cat > arrays.py <<'END_PY'
import json, struct, sys
def read(path):
    """The entry and the bytes of each tensor."""
    data = open(path, "rb").read()
    size, = struct.unpack("<Q", data[:8])
    entries = json.loads(data[8:8 + size])
    entries.pop("__metadata__", None)
    return {k: ((e["dtype"], e["shape"]), data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]]) for k, e in entries.items()}
def write(path, tensors):
    """A file as other tools write it: without a checksum."""
    head, at = {}, 0
    for k, ((dtype, shape), data) in tensors.items():
        head[k] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values()))
def taken(result, base, fresh, initial):
    """Whether the tensors of `result` are those of `base`, but those whose names begin so, which are those of `fresh`."""
    r, b, f = read(result), read(base), read(fresh)
    wrong = [k for k in r if r[k] != (f if k.startswith(tuple(initial)) else b).get(k)]
    same = [k for k in r if f[k] == b.get(k)]
    print("wrong:", wrong, "equal in both:", same)
    sys.exit(bool(wrong or same or len(r) != len(f)))
exec(sys.argv[1])
END_PY
cat > net.tn <<'END_TN'
model net(row: f32[12], classes: int = 10) {
    h = dense(row, 16, bias = false) |> batch_norm |> relu
    h = dense(h, 20) |> tanh
    return head = dense(h, classes)
}
train net {
    data      = synthetic(samples = 640, test_samples = 64)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.05, momentum = 0.9)
    batch     = 64
    shards    = 4
    epochs    = 4
}
END_TN
sed 's/return head = /return /' net.tn > none && mv none net.tn
trained() { local p=$1; shift; rm -f log; "./$p" train "$@" --log log > out && hashes log | awk '{ print $NF }'; }

if part parts; then
    make net base --set seed=2
    make net five --set model.classes=5
    succeeds "base" ./base --save base.safetensors --checkpoint base.c
    succeeds "the initial values" ./five --epochs 0 --save fresh.safetensors

    # ---- what is loaded: a part, by --except and --only; of a checkpoint; by both options
    succeeds "--except" ./five --weights base.safetensors --except "dense3.*" --epochs 0 --save part.safetensors --log log
    same "--except: the lists" "7 of 9 parameters are those of base.safetensors
  loaded:  dense1.weight, norm1.*, dense2.*
  initial: dense3.*" "$(head -n 3 out)"
    same "--except: the record" "base.safetensors 7 2 0 dense3.* " "$(for f in file loaded initial unused initial_names; do field log weights $f; done)"
    succeeds "--except: the bytes" arrays 'taken("part.safetensors", "base.safetensors", "fresh.safetensors", ["dense3"])'
    succeeds "a checkpoint" ./five --weights "$(find base.c -name 'step-*' | sort | tail -n 1)" --except "dense3.*" --epochs 0 --save checkpoint.safetensors
    cmp -s part.safetensors checkpoint.safetensors && ok || bad "a checkpoint gives other weights"
    ! grep -q unused out && ok || bad "states of a checkpoint count as unused: $(cat out)"
    succeeds "--only" ./five --weights base.safetensors --only "dense1.*,*.running_mean" --epochs 0 --save only.safetensors
    grep -q "^  loaded:  dense1.weight, norm1.running_mean$" out && grep -q "^  initial: norm1.weight, norm1.bias, norm1.running_var, dense2.\*, dense3.\*$" out && ok || bad "--only: $(cat out)"
    succeeds "--only: the bytes" arrays 'taken("only.safetensors", "base.safetensors", "fresh.safetensors", ["norm1.w", "norm1.b", "norm1.running_v", "dense2", "dense3"])'
    succeeds "--only and --except" ./five --weights base.safetensors --only "*.weight" --except "dense3.?eight" --epochs 0
    grep -q "^  loaded:  dense1.weight, norm1.weight, dense2.weight$" out && ok || bad "--only and --except: $(cat out)"

    # ---- the same bits: by the recipe, over threads and groups, after a resume without the file
    want=$(trained five --weights base.safetensors --except "dense3.*")
    [ "$want" != "$(trained five)" ] && ok || bad "the loaded weights change nothing"
    same "the weights as one file" "$(trained five --weights part.safetensors)" "$want"
    [ "$(field log weights loaded)" = "9 " ] && ! grep -q "parameters are those" out && ok || bad "a whole file: $(cat out)"
    make net tuned --set model.classes=5 --set 'start=weights("base.safetensors", except = ["dense3.*"])'
    for how in "" "--threads 2" "--groups 2" "--groups 4 --threads 2"; do
        # shellcheck disable=SC2086
        same "by the recipe $how" "$(trained tuned $how)" "$want"
    done
    grep -q "^  initial: dense3.\*$" out && ok || bad "the recipe's start is not printed: $(cat out)"
    ./tuned info > info
    grep -q "^start: base.safetensors; except: dense3.\*$" info && ok || bad "info does not show the start"
    same "--weights replaces the recipe's start" "$(trained tuned --weights fresh.safetensors)" "$(trained five)"
    for program in tuned five; do
        options=() && [ $program = tuned ] || options=(--weights base.safetensors --except "dense3.*")
        rm -rf c log; ./$program --checkpoint c --checkpoint-every 7 --epochs 2 "${options[@]}" > out
        rm "$(find c -name 'step-*' | sort | tail -n 1)"; mv base.safetensors away
        succeeds "$program, resumed" ./$program --checkpoint c --resume --log log
        mv away base.safetensors
        grep -q "epoch 2, step [1-9]" out && ok || bad "$program: not resumed in an epoch: $(cat out)"
        ! grep -q '"event":"weights"' log && ! grep -q "parameters are those" out && ok || bad "$program: a resumed run loads the file"
        same "$program, resumed: the bits" "$(hashes log | awk '{ print $NF }')" "$want"
    done
    rm -rf c; ./five --checkpoint c --epochs 2 --weights base.safetensors --except "dense3.*" > out
    succeeds "resumed by a program with a start" ./tuned --checkpoint c --resume --log log
    succeeds "grads, by the recipe" ./tuned grads --output tuned.grads
    succeeds "grads, by a file" ./five grads --weights part.safetensors --output five.grads
    cmp -s tuned.grads five.grads && ok || bad "grads does not begin with the recipe's start"
    if deep "programs for a GPU, and ranks"; then
        . "$TENON_ROOT/tests/cuda/shim.sh"
        shim_runtime
        shim_gpu gpu "$work/net.tn" --set model.classes=5 --set 'start=weights("base.safetensors", except = ["dense3.*"])' || { bad "no program over the stand-in"; finish; exit 1; }
        succeeds "a GPU" ./gpu/gpu --epochs 0 --save gpu.safetensors
        cmp -s part.safetensors gpu.safetensors && ok || bad "a GPU begins with other weights"
        succeeds "a GPU, trained" ./gpu/gpu --log log
        succeeds "a GPU, trained from the weights as one file" ./gpu/gpu --log log2 --weights part.safetensors
        same "a GPU, trained" "$(hashes log)" "$(hashes log2)"
        if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
            export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
            make net ranks --comm mpi --set model.classes=5
            rm -f log; succeeds "two ranks" timeout -k 5 120 mpirun -n 2 --bind-to none ./ranks --threads 1 --weights base.safetensors --except "dense3.*" --log log
            same "two ranks" "$(hashes log | awk '{ print $NF }')" "$want"
            same "two ranks: one list" 1 "$(grep -c "parameters are those" out)"
            refuses "ranks with other patterns" "other weights" timeout -k 5 120 mpirun --bind-to none -n 1 ./ranks --threads 1 --weights base.safetensors --except "dense3.*" : -n 1 ./ranks --threads 1 --weights base.safetensors --except "dense3.*,dense2.*"
        else
            skip "two ranks: no mpicc and mpirun"
        fi
    fi

    # ---- a pattern of the recipe that fits no parameter, in a program whose text was changed
    "$TENON" emit net.tn --to c -o emitted --plain --cpu generic --set model.classes=5 --set 'start=weights("base.safetensors", only = ["dense*", "norm1.*"], except = ["dense3.*"])'
    # wrong TEXT CHANGE PATTERN
    wrong() {
        sed -i "$2" emitted/net.c
        # shellcheck disable=SC2046,SC2086
        cc -O0 $(one_file emitted/net.c) ${CHECK_LINKER:-} -o changed "$(dirname "$TENON")/lib/libtenonrt.a" -lz -lm -lpthread
        refuses "$1" "$3" ./changed --epochs 0
    }
    wrong "a pattern of the recipe" 's/"dense3\.\*"/"dense7.*"/' "except \"dense7.\*\" in the recipe's start: no parameter of net is called so, did you mean \"dense[123].\*\"\?"
    wrong "another pattern of the recipe" 's/"norm1\.\*"/"other.weights"/' "only \"other.weights\" in the recipe's start: no parameter of net is called so; .changed info. lists their names"

    # ---- files of other networks: what is missing, what is not used
    arrays 'b = read("base.safetensors"); b["head.weight"] = (("F32", [2]), b"12345678"); b["head.bias"] = b["head.weight"]; del b["dense3.bias"]; write("other.safetensors", b)'
    refuses "a file of another network" "4 tensors differ" ./five --weights other.safetensors
    grep -q '  --except "dense3.\*" keeps the initial values of these parameters' err && grep -q "unknown:  head.weight" err && ok || bad "the way out: $(cat err)"
    succeeds "a file of another network, in part" ./five --weights other.safetensors --except "dense3.*" --epochs 0 --save foreign.safetensors --log log2
    cmp -s part.safetensors foreign.safetensors && ok || bad "a file of another network gives other weights"
    grep -q "^  unused:  head.\*$" out && same "the record" "2 " "$(field log2 weights unused)" || bad "unused tensors: $(cat out)"
    refuses "patterns are kept in the way out" '  --except "dense1.\*,dense3.\*" keeps the initial values' ./five --weights base.safetensors --except "dense1.*"
    arrays 'b = read("part.safetensors"); b["a\x1b[31m\n%s.w"] = (("F32", [2]), b"12345678"); write("odd.safetensors", b)'
    succeeds "a name of odd characters" ./five --weights odd.safetensors --only "*" --epochs 0
    grep -q "^  unused:  a?\[31m?%s.w$" out && ok || bad "a name of odd characters: $(cat -v out)"
    arrays 'b = read("part.safetensors"); b["head.weight"] = (("F32", [2]), b"12345678"); write("more.safetensors", b)'
    refuses "a tensor too many" '  --only "\*" leaves out tensors that net does not have' ./five --weights more.safetensors
    succeeds "a tensor too many, left out" ./five --weights more.safetensors --only "*" --epochs 0
    refuses "another shape" "mismatch: dense3.weight is \(10, 20\) in the file, but \(5, 20\) in the program" ./five --weights base.safetensors --only "dense*"
    make net whole --set model.classes=5 --set 'start=weights("base.safetensors")'
    refuses "the recipe's start does not fit" 'except = \["dense3.\*"\] in the recipe.s start keeps the initial values' ./whole
    refuses "the recipe's file is missing" "base.safetensors cannot be read: No such file" sh -c 'cd / && exec "$0"' "$work/tuned"
    arrays 'd = bytearray(open("base.safetensors", "rb").read()); d[-1] ^= 1; open("damaged.safetensors", "wb").write(d)'
    refuses "a damaged file" "is damaged" ./five --weights damaged.safetensors --except "dense3.*"

    # ---- options and recipes that are wrong
    refuses "a pattern that fits nothing" '--only "dens2.\*": no parameter of net is called so, did you mean "dense2.\*"' ./five --weights base.safetensors --only "dens2.*"
    refuses "a pattern far from any" '--except "encoder": no parameter of net is called so; .five info. lists their names' ./five --weights base.safetensors --except "dense1.*,encoder"
    refuses "no vocabulary" '--except "vocabulary": no parameter' ./five --weights base.safetensors --except vocabulary
    refuses "an empty pattern" 'a pattern that is empty' ./five --weights base.safetensors --only "dense1.*,"
    refuses "nothing is left" "leave no parameter of net to load from base.safetensors" ./five --weights base.safetensors --except "*"
    refuses "--only alone" "--only needs --weights FILE" ./five --only "dense1.*"
    refuses "--except beside the recipe's start" "--except needs --weights FILE: the recipe's start has patterns of its own" ./tuned --except "dense1.*"
    for command in "test" "predict --input x.npy" "grads --output g"; do
        # shellcheck disable=SC2086
        refuses "--only of ${command%% *}" "--only is not an option of ${command%% *}" ./five $command --weights base.safetensors --only "dense1.*"
    done
    sed 's/epochs    = 4/start = weights("w")/' net.tn > ours.tn
    for to in pytorch keras mxnet; do
        refuses "--to $to" "ours.tn:[0-9:]*: error: --to $to writes scripts that read no 'start' of the recipe" "$TENON" emit ours.tn --to $to -o script
    done
    succeeds "--set start=initial" "$TENON" emit net.tn --to pytorch -o script --set 'start=weights("w")' --set start=initial
fi

# The vocabulary of texts and the columns of tables come with the file, unless a pattern excludes them.
if part words; then
    cat > next.tn <<'END_TN'
model next(text: i32[4], vocab: int) { return one_hot(text, vocab) |> flatten |> dense(16) |> relu |> dense(vocab) }
train next {
    data      = text("fox.txt", unit = "char", vocab = 28)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01)
    batch     = 32
    epochs    = 1
}
END_TN
    for _ in $(seq 40); do echo 'the quick brown fox jumps over the lazy dog'; done > fox.txt
    for _ in $(seq 60); do echo 'a fox had a bad cab'; done > cab.txt
    make next next
    succeeds "a text" ./next --save fox.safetensors
    succeeds "another text, with its vocabulary" ./next --data ./cab.txt --weights fox.safetensors --except "dense2.*" --save cab.safetensors
    grep -q "^  the texts are read with the vocabulary of the file$" out && ok || bad "the vocabulary: $(cat out)"
    succeeds "another text, with a vocabulary of its own" ./next --data ./cab.txt --weights fox.safetensors --except "dense2.*,vocabulary" --save own.safetensors
    ! grep -q "vocabulary of the file" out && ok || bad "an excluded vocabulary: $(cat out)"
    succeeds "the vocabularies" arrays 'a, b, c = (read(f + ".safetensors")["vocabulary"] for f in ("fox", "cab", "own")); sys.exit(a != b or a == c)'
    succeeds "a vocabulary in the recipe" "$TENON" check next.tn --set 'start=weights("fox.safetensors", except = [vocabulary])'

    cat > homes.tn <<'END_TN'
model homes(row: f32[3]) { return dense(row, 8) |> tanh |> dense(2) }
train homes {
    data      = csv("homes.csv", target = kind, test = 0.25)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01)
    batch     = 8
    epochs    = 1
}
END_TN
    # table SCALE CLASSES PREFIX: the column `area` and the classes depend on them
    table() { echo "area,rooms,age,kind"; for i in $(seq 40); do echo "$((i * 7 % 31 * $1)),$((i % 5)),$((i * 3 % 17)),$3$((i % $2))"; done; }
    table 1 2 a > homes.csv; table 3 2 a > larger.csv; table 3 3 b > others.csv
    columns() { arrays "print(read('$1.safetensors')['columns'][1].decode())"; }
    make homes homes
    succeeds "a table" ./homes --save homes.safetensors
    succeeds "another table, with its inputs" ./homes --data ./larger.csv --weights homes.safetensors --except "dense2.*" --save a.safetensors
    grep -q "^  the inputs of the table are read with those of the file$" out && ok || bad "the columns: $(cat out)"
    same "the inputs of a table" "$(columns homes | sed -n 2,7p)" "$(columns a | sed -n 2,7p)"
    succeeds "another table, with columns of its own" ./homes --data ./larger.csv --weights homes.safetensors --except "dense2.*,columns" --save b.safetensors
    [ "$(columns homes)" != "$(columns b)" ] && ok || bad "excluded columns are those of the file"
    sed -i 's/dense(2)/dense(3)/' homes.tn
    make homes three --set 'data=csv("others.csv", target = kind, test = 0.25)' --set 'start=weights("homes.safetensors", except = ["dense2.*"])'
    succeeds "other classes" ./three --save three.safetensors --checkpoint t
    same "other classes: the inputs" "$(columns homes | sed -n 2,7p)" "$(columns three | sed -n 2,7p)"
    same "other classes: the classes" "b0 b1 b2" "$(columns three | sed -n '/^kind/,$p' | sed 1d | awk '{ print $2 }' | xargs)"
    succeeds "other classes, resumed" ./three --epochs 2 --checkpoint t --resume --save resumed.safetensors
    succeeds "other classes, at once" ./three --epochs 2 --save once.safetensors
    cmp -s resumed.safetensors once.safetensors && ok || bad "other classes, resumed: other weights"
    succeeds "other classes: predict" ./three predict --weights three.safetensors --input others.csv
    # Two heads: the classes of a target come from the weights if its own head is loaded.
    cat > heads.tn <<'END_TN'
model heads(row: f32[3]) {
    h = dense(row, 8) |> tanh
    return kind = dense(h, 2), size = dense(h, 1) * 2
}
train heads {
    data      = csv("two.csv", test = 0.25)
    target    = (sort: class, rooms: f32[1])
    loss      = terms(sort = softmax_cross_entropy(kind, sort), rooms = mse(size, rooms))
    optimizer = adam(lr = 0.01)
    batch     = 8
    epochs    = 1
}
END_TN
    two() { table 1 2 "$1" | sed 's/kind/sort/; s/,/,0,/3' | sed '1s/,0,/,garden,/'; }
    two a > two.csv; two b > new.csv
    make heads heads
    succeeds "two heads" ./heads --save two.safetensors
    succeeds "without the head of the classes" ./heads --data ./new.csv --weights two.safetensors --except "kind.*" --save new.safetensors
    same "its classes" "b0 b1" "$(columns new | sed -n '/^sort/,$p' | grep -o '[ab][01]' | xargs)"
    refuses "without the other head" "new.csv:[0-9]+: column 'sort' is 'b[01]', which the weights do not know, .*without the layer of this target: --except" \
        ./heads --data ./new.csv --weights two.safetensors --except "size.*"
    mv homes.safetensors away
    refuses "the recipe's file is missing" "homes.safetensors cannot be read: No such file or directory; the recipe's start reads the data with its columns" ./three --epochs 3 --checkpoint t --resume
fi
finish
