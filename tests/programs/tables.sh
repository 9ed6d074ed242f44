#!/usr/bin/env bash
# tables.sh -- data = csv(...): equal bits for any threads, ranks and after kills; the columns that weights keep; several inputs and
# targets of one table; predictions with names; what the recipe and the command line refuse.  tests/runtime/test_tables.c has the forms
# and faults of files.
#
# Parts: bits several
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"
cd "$work"

# table ROWS SEED: area, town and kind, a price that follows from them, and whether it is high
table() {
    awk -v n="$1" -v state="$2" 'function drawn() { state = (state * 16807 + 11) % 2147483647; return state / 2147483647 }
    BEGIN {
        split("Ulm|Bonn|\"Bad, Ems\"", town, "|")
        print "living area;town;kind;price;high"
        for (i = 0; i < n; i++) {
            t = 1 + int(3 * drawn()); area = 30 + int(120 * drawn()); kind = 1 + int(2 * drawn())
            price = 2 * area + 60 * t + 40 * kind + 10 * drawn()
            printf "%d;%s;%d;%.1f;%s\n", area, town[t], kind, price, (price > 360 ? "yes" : "no")
        }
    }'
}
table 400 1 > homes.csv

cat > homes.tn <<'END_TN'
model homes(row: f32[6]) {
    h = dense(row, 16) |> tanh
    return dense(h, 1) * 100 + 350
}
train homes {
    data      = csv("homes.csv", input = ["living area", "town", "kind"], categories = kind, test = 0.25)
    target    = price: f32[1]
    loss      = mse
    optimizer = adam(lr = 0.03)
    batch     = 32
    shards    = 4
    epochs    = 6
    expect    = test_r2 >= 0.5
}
END_TN

if part bits; then
    succeeds "build" "$TENON" build homes.tn -o homes-cpu
    mkdir -p other; table 400 2 > other/other.csv
    equal_bits homes 6 r2 other
    grep -q "expected test_r2 >= 0.5: .*, met" one.out && ok || bad "the expectation: $(cat one.out)"
    ./homes-cpu info > out
    grep -qx "table: 28 bytes a row in memory; inputs: living area, town, kind; targets: price; categories: kind; standardized; missing: error; unknown: error" out &&
        ok || bad "info: $(grep table out)"
    grep -qx "test split: 0.25 of the samples" out && ok || bad "info: $(grep split out)"
    # The weights keep the columns: test and predict need no row to train on, and read columns in any order.
    mkdir -p final; table 50 3 > final/test.csv
    succeeds "test without a training split" ./homes-cpu test --weights one.safetensors --data ./final --log final.log
    awk -F ';' '{ print $3 ";" $1 ";" $2 }' final/test.csv > new.csv
    succeeds "predict" ./homes-cpu predict --weights one.safetensors --input new.csv
    same "a name, and a row for each sample" "price 51" "$(head -n 1 out) $(wc -l < out)"
    rmse=$(paste -d ' ' out <(cut -d ';' -f 4 final/test.csv) | awk 'NR > 1 { s += ($1 - $2) ^ 2; n++ } END { printf "%.4f", sqrt(s / n) }')
    same "predictions have the rmse of the test" "$(field final.log test test_rmse | awk '{ printf "%.4f", $1 }')" "$rmse"
    succeeds "columns of weights begin a training" ./homes-cpu train --weights one.safetensors --data ./other --epochs 1 --save again.safetensors
    same "columns of weights" "$(grep -ao 'tenon columns.*' one.safetensors | head -n 1)" "$(grep -ao 'tenon columns.*' again.safetensors | head -n 1)"
    grep -ac "^number 0x" again.safetensors > number; same "columns of numbers" 2 "$(cat number)"
    ./homes-cpu train --weights one.safetensors --data ./other --epochs 2 --log from.log > out
    ./homes-cpu train --weights one.safetensors --data ./other --epochs 1 --checkpoint from --log part.log > out
    refuses "resumed without the columns" "samples whose bytes have the hash .*; if the run began with --weights, name the same file again" \
        ./homes-cpu train --data ./other --epochs 2 --checkpoint from --resume
    succeeds "resumed with the columns" ./homes-cpu train --weights one.safetensors --data ./other --epochs 2 --checkpoint from --resume --log part.log
    grep -q "the weights are those of the checkpoint: only the columns of --weights one.safetensors are used" out && ok || bad "resumed with the columns: $(cat out)"
    same "resumed with the columns: bits" "$(hashes from.log)" "$(hashes part.log)"
    ./homes-cpu train --data ./other --epochs 1 --save others.safetensors > out
    cmp -s <(grep -a "^number 0x" one.safetensors) <(grep -a "^number 0x" others.safetensors) && bad "another table has the same means" || ok
    cmp -s <(grep -a "^number 0x" one.safetensors) <(grep -a "^number 0x" again.safetensors) && ok || bad "a training from weights has other means"
    sed 1s/town/twn/ new.csv > new2.csv
    ./homes-cpu predict --weights one.safetensors --input new.csv --id "living area" > ids.csv || bad "predict --id"
    same "ids" "$(cut -d ';' -f 2 new.csv)" "$(cut -d, -f 1 ids.csv)"
    same "rows behind ids" "$(./homes-cpu predict --weights one.safetensors --input new.csv)" "$(cut -d, -f 2- ids.csv)"
    ./homes-cpu predict --weights one.safetensors --input new.csv --id town --output ids.csv || bad "predict --id --output"
    same "ids in quotes" "$(grep -c '"Bad, Ems"' new.csv)" "$(grep -c '^"Bad, Ems",[0-9.]*$' ids.csv)"
    refuses "ids of an unknown column" "has no column 'twn', did you mean 'town'[?]" ./homes-cpu predict --weights one.safetensors --input new.csv --id twn
    refuses "ids in an array" "--id is a column of a .csv file: write the output to one, not to ids.npy" \
        ./homes-cpu predict --weights one.safetensors --input new.csv --id town --output ids.npy
    refuses "predict: a column is missing" "new2.csv has no column 'town', did you mean 'twn'[?]" \
        ./homes-cpu predict --weights one.safetensors --input new2.csv
    sed 's/Bonn/Rom/' new.csv > rome.csv
    refuses "predict: a new category" "rome.csv:[0-9]+: column 'town' is 'Rom', which no row of the training split has, .*did you mean|whose values are" \
        ./homes-cpu predict --weights one.safetensors --input rome.csv
    refuses "no such table" "no table nowhere.csv; looked for" ./homes-cpu train --data nowhere.csv
    succeeds "missing = mean: build" "$TENON" build homes.tn -o filling --set 'data=csv("homes.csv", input = ["living area", town, kind], categories = kind, missing = mean)'
    awk -F ';' -v OFS=';' 'NR == 5 { $2 = "NA" } { print }' new.csv > gap.csv
    succeeds "missing = mean" ./filling predict --weights one.safetensors --input gap.csv
    grep -q "gap.csv:5: 1 missing value, taken as the mean of the column" out && ok || bad "a missing value: $(cat out | head -n 2)"
    refuses "an output over the table" "is the file that is read" ./homes-cpu predict --weights one.safetensors --input new.csv --output new.csv
fi

if part several; then
    cat > mixed.tn <<'END_TN'
model mixed(area: f32[1], place: i32[2]) {
    h = concat(area, flatten(embedding(place, 5, 3))) |> dense(16) |> tanh
    return grade = dense(h, 2), value = dense(h, 1) * 100 + 350
}
train mixed {
    data      = csv("homes.csv", input = ["living area", town, kind], target = [high, price], categories = kind, vocab = 5, unknown = other)
    target    = (costly: class, price: f32[1])
    loss      = terms(a = softmax_cross_entropy(grade, costly), b = 0.0001 * mse(value, price))
    optimizer = adam(lr = 0.02)
    batch     = 32
    epochs    = 8
}
END_TN
    succeeds "several inputs and targets: build" "$TENON" build mixed.tn -o mixed-cpu
    succeeds "several inputs and targets" ./mixed-cpu train --threads 1 --log one.log --save mixed.safetensors
    succeeds "several: threads" ./mixed-cpu train --threads 3 --log three.log
    same "several: bits" "$(hashes one.log)" "$(hashes three.log)"
    awk -v a="$(field one.log epoch test_accuracy_costly | awk '{ print $8 }')" -v r="$(field one.log epoch test_r2_price | awk '{ print $8 }')" \
        'BEGIN { exit !(a > 0.8 && r > 0.7) }' && ok || bad "several: accuracy and r2: $(tail -n 1 out)"
    sed 's/Bonn/Rom/' homes.csv > rome.csv
    succeeds "several: predict with an unknown category" ./mixed-cpu predict --weights mixed.safetensors --input rome.csv
    grep -q "rome.csv:$(grep -n Rom rome.csv | head -n 1 | cut -d : -f 1): $(grep -c Rom rome.csv) categories that the training split does not have, taken as .other." out &&
        ok || bad "unknown categories: $(grep categor out)"
    same "several: names" "grade_0,grade_1,value 401" "$(sed 1d out | head -n 1) $(sed 1d out | wc -l)"

    # A class has its name, and each class its probability.
    sed 's/categories = kind, test = 0.25/categories = kind, target = high/; s/target    = .*/target    = answer: class/; s/loss  .*/loss = sigmoid_cross_entropy/; s/ \* 100 + 350//; s/test_r2/test_accuracy/' homes.tn > high.tn
    succeeds "a class: build" "$TENON" build high.tn -o high-cpu
    succeeds "a class" ./high-cpu train --save high.safetensors --log high.log
    # The area under the ROC curve is that of all pairs, also with several threads, groups and ranks.
    mkdir -p pairs; table 300 7 > pairs/test.csv
    succeeds "auc: test" ./high-cpu test --weights high.safetensors --data ./pairs --log pairs.log
    ./high-cpu predict --weights high.safetensors --input pairs/test.csv > named.csv
    paste -d, <(awk -F ';' 'NR > 1 { print $5 == "yes" }' pairs/test.csv) <(awk -F, 'NR > 1 { print $3 }' named.csv) |
        awk -F, '{ p[NR] = $1; v[NR] = $2 } END { for (i = 1; i <= NR; i++) for (k = 1; k <= NR; k++) if (p[i] && !p[k]) { n++; s += v[i] > v[k] ? 1 : v[i] == v[k] ? 0.5 : 0 }
            printf "%.10f", s / n }' > area
    succeeds "--all: all rows of another table" ./high-cpu test --weights high.safetensors --data pairs/test.csv --all --log all.log
    same "--all: auc" "$(field pairs.log test test_auc)" "$(field all.log test test_auc)"
    same "auc: all pairs" "$(cat area)" "$(field pairs.log test test_auc | awk '{ printf "%.10f", $1 }')"
    for way in "--threads 1" "--groups 2"; do
        # shellcheck disable=SC2086
        ./high-cpu train $way --log way.log > out || bad "auc: $way: $(cat out)"
        same "auc: $way" "$(field high.log epoch test_auc)" "$(field way.log epoch test_auc)"
    done
    if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
        succeeds "auc: two ranks: build" "$TENON" build high.tn -o ranks-cpu --comm mpi
        succeeds "auc: two ranks" timeout -k 5 120 mpirun -n 2 --bind-to none ./ranks-cpu train --threads 1 --log ranks.log
        same "auc: two ranks" "$(field high.log epoch test_auc)" "$(field ranks.log epoch test_auc)"
    else
        skip "auc: two ranks: no mpicc and mpirun"
    fi
    refuses "auc of numbers" "'homes' has no auc to compare with" "$TENON" check homes.tn --set "expect=test_auc >= 0.5"
    refuses "auc above 1" "test_auc is from 0 to 1, never >= 2" "$TENON" check high.tn --set "expect=test_auc >= 2"
    succeeds "a class: predict" ./high-cpu predict --weights high.safetensors --input homes.csv --output named.csv
    awk -F '[,;]' 'FNR == NR { if (FNR > 1) truth[FNR] = $NF; next }
        FNR == 1 { if ($0 != "high,high_no,high_yes") exit 2; next }
        { n++; right += $1 == truth[FNR]; if ($2 + $3 < 0.999999 || $2 + $3 > 1.000001 || ($1 == "yes") != ($3 >= 0.5)) exit 3 }
        END { exit !(n == 400 && right > 320) }' homes.csv named.csv && ok || bad "names of classes: exit code $? ($(head -n 2 named.csv | tr '\n' ' '))"
    succeeds "a class: an array of probabilities" ./high-cpu predict --weights high.safetensors --input homes.csv --output named.npy
    refuses "weights of arrays" "hold no columns of a table|does not hold the weights" ./high-cpu predict --weights mixed.safetensors --input homes.csv

    # A validation split takes rows from the training split only, and is not in the test split.
    succeeds "validation: build" "$TENON" build homes.tn -o valid-cpu --set data.validation=0.2
    succeeds "validation" ./valid-cpu train --epochs 1 --log valid.log --save valid.safetensors
    ./valid-cpu test --weights valid.safetensors --log tested.log > out
    grep -q '"validation_r2":' valid.log && ok || bad "validation: no r2 of it in the log"
    same "validation: the test split" "$(field valid.log epoch test_r2)" "$(field tested.log test test_r2)"
    "$TENON" build homes.tn -o homes-cpu > out; ./homes-cpu train --epochs 1 --log homes.log --save homes.safetensors > out
    # Weights of another target of the same table, with the same parameters.
    refuses "predict: weights of another target" "the weights have learned 'price' from a table, which are not the targets of homes: use weights" \
        ./high-cpu predict --weights homes.safetensors --input homes.csv
    refuses "test: weights of another target" "the weights have learned 'high' [(]classes[)] from a table" ./homes-cpu test --weights high.safetensors
    awk -v all="$(field homes.log start samples)" -v some="$(field valid.log start samples)" 'BEGIN { exit !(all > 260 && all - some > 40 && all - some < 120) }' && ok ||
        bad "validation: $(field valid.log start samples) of $(field homes.log start samples) rows are left to train on"
    mkdir -p parts; table 100 4 > parts/train.csv; table 30 5 > parts/test.csv; table 20 6 > parts/validation.csv
    succeeds "validation: a file: build" "$TENON" build homes.tn -o parts-cpu --set 'data=csv("./parts", input = ["living area", "town", "kind"], categories = kind)'
    succeeds "validation: a file" ./parts-cpu train --epochs 1 --log parts.log
    grep -q '"validation_r2":' parts.log && ok || bad "validation: no r2 of validation.csv in the log"
    same "validation: all rows of train.csv are for training" "100 " "$(field parts.log start samples)"
    refuses "validation: a test file and a share" "./parts holds a split 'test' of its own, ./parts/test.csv: remove test = 0.25 from the recipe" ./homes-cpu train --data ./parts

    # The shipped model reaches what its recipe expects.
    build breast_cancer breast_cancer
    succeeds "breast_cancer" ./breast_cancer train --data "$TENON_ROOT/models/data/breast_cancer" --strict
    (cd "$TENON_ROOT/models/data/breast_cancer" && sha256sum -c --quiet SHA256SUMS) && ok || bad "models/data/breast_cancer has another table than SHA256SUMS says"

    if deep "a table on a GPU"; then
        . "$TENON_ROOT/tests/cuda/shim.sh"
        shim_runtime
        for name in homes mixed high; do
            shim $name "$work/$name.tn" && steps $name --data "$work/homes.csv" || bad "$name: no program over the stand-in"
        done
        shim valid "$work/homes.tn" --set data.validation=0.2 && steps valid --data "$work/homes.csv" || bad "valid: no program over the stand-in"
        near "high: auc" "$(field high/cpu.jsonl epoch test_auc)" "$(field high/0.jsonl epoch test_auc)"
        near "valid: loss of the validation" "$(field valid/cpu.jsonl epoch validation_loss)" "$(field valid/0.jsonl epoch validation_loss)"
    fi

    # What the compiler refuses.
    check() { refuses "$1" "$2" "$TENON" check homes.tn --set "$3"; }
    check "two targets for one" "csv names 2 columns of targets, and the targets are 1" 'data=csv("homes.csv", target = [price, high])'
    check "three numbers without names" "the target 'place' is 3 numbers, and csv does not name their columns" "target=place: f32[3]"
    check "a column twice" "'input' has \"town\" twice" 'data=csv("homes.csv", input = [town, town])'
    check "an empty name" "'target' has a name that is empty" 'data=csv("homes.csv", target = "")'
    check "an empty file" "'file' is a string, and this one is empty" 'data=csv("", target = price)'
    check "a number as a column" "'input' is a string, or a list of strings" 'data=csv("homes.csv", input = 3)'
    check "all for the test" "'test' is at least 1e-06 and below 1, this is 1" 'data=csv("homes.csv", test = 1)'
    check "a vocabulary of numbers" "vocab is for inputs of tokens, and 'row' is f32" 'data=csv("homes.csv", vocab = 3)'
    check "another word" "'missing' cannot be 'median'" 'data=csv("homes.csv", missing = median)'
    refuses "a class without a column" "csv does not name the column of the label" "$TENON" check <(sed '/^    target/d; s/, target = high//' high.tn)
    # All columns but two, and the same network with the columns named.
    sed 's/csv("homes.csv", input = [^]]*\]/csv("homes.csv", exclude = [high, "number"]/; s/model homes/model left/; s/train homes/train left/' homes.tn > left.tn
    awk -v OFS=';' 'NR == 1 { print "number", $0 } NR > 1 { print NR, $0 }' homes.csv > numbered.csv
    make left left-cpu
    succeeds "excluded columns" ./left-cpu train --data ./numbered.csv --log left.log
    succeeds "named columns" ./homes-cpu train --data ./homes.csv --log named.log
    same "excluded columns: weights" "$(hashes named.log)" "$(hashes left.log)"
    refuses "an excluded column that is none" "homes.csv has no column 'number': its first row has .*; exclude = \[...\] names columns of the table" ./left-cpu train --data ./homes.csv
    refuses "exclude beside input" "csv names the columns of the inputs, so all others are left out: 'exclude' has no meaning" \
        "$TENON" check homes.tn --set 'data=csv("homes.csv", input = [kind], exclude = [high])'
    refuses "a script" "to pytorch writes scripts that read no tables with categories" "$TENON" emit homes.tn --to pytorch -o script.py
fi
finish
