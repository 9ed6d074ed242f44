#!/usr/bin/env bash
# pictures.sh -- tenon emit --to dot --as-written draws each call of a model file once; Graphviz reads the pictures.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

numbers() { tr -d , | awk '{ n += $1 } END { print n + 0 }'; }
while read -r file; do
    name=$(basename "$file" .tn)
    succeeds "a picture of $name" "$TENON" emit "$file" --to dot --as-written
    cp "$work/out" "$work/$name.dot"
    # The parameters of all calls are those of the model, but what two calls read counts twice.
    total=$("$TENON" show "$file" | sed -n 's/^ *total  *\([0-9,]*\).*/\1/p' | numbers)
    drawn=$(grep -oE '[0-9,]+ parameters' "$work/$name.dot" | numbers)
    case $name in
    gpt_char) [ "$drawn" -gt "$total" ] && ok || bad "$name: $drawn parameters in the picture, $total in the model" ;;
    resnet56_cifar10) same "parameters of $name, and the mean image of normalize" $((total + 3 * 32 * 32)) "$drawn" ;;
    siamese) same "parameters of $name, whose layers are called twice, but for the last one" $((2 * (total - 130) + 130)) "$drawn" ;;
    *) same "parameters of $name" "$total" "$drawn" ;;
    esac
    # Each edge has two nodes, and each node but the loss and the metrics is read: accuracy, or mae, rmse and r2 of numbers, or both.
    most=2
    ! grep -q "^ *target " "$file" || most=4
    ! grep -q "^ *target *= *(" "$file" || most=5
    awk -v name="$name" -v most=$most '
        $2 ~ /^\[label=/ { node[$1] }
        $2 == "->" { sub(/;/, "", $3); from[$1]; if (!($1 in node) || !($3 in node)) { print name ": no node for the edge", $0; bad = 1 } }
        END { for (n in node) if (!(n in from)) last++; exit bad || last < 1 || last > most }' "$work/$name.dot" && ok || bad "$name: edges without nodes, or nodes that nothing reads"
    ! grep -qE '\[label="(dense_d|conv2d_d|bias|update|[a-z0-9_]*_grad)' "$work/$name.dot" && ok || bad "$name: the picture has more than the model file"
    ! command -v dot > /dev/null || succeeds "Graphviz draws $name" dot -Tsvg "$work/$name.dot" -o "$work/picture.svg"
done < <(shipped_models)
same "blocks of a ResNet" "$(grep -c subgraph "$work/resnet20_cifar10.dot")" 9
same "convolutions of a ResNet" "$(grep -c '\[label="conv2d ' "$work/resnet20_cifar10.dot")" 21
grep -q 'n[0-9]* \[label="conv2d conv2\\nfilters 50, kernel 5 x 5\\n(N, 50, 8, 8)\\n25,050 parameters"\];' "$work/lenet.dot" && ok || bad "a call of LeNet: $(cat "$work/lenet.dot")"
same "a recurrent layer" "$(grep -c '\[label="gru gru1' "$work/gru_imdb.dot")" 1
printf 'model m(x: f32[8]) { for i in 0..3 { x = dense(x, 4) |> relu }\nreturn x }\n' > "$work/loop.tn"
succeeds "a loop" "$TENON" emit "$work/loop.tn" --to dot --as-written
same "calls of a loop" "$(grep -c '\[label="dense dense' "$work/out")" 3
printf 'model m(x: f32[3, 4, 4]) {\n    up = conv_transpose2d(3, kernel = 2)\n    return up(x) |> conv_transpose2d(2, kernel = 1, bias = false)\n}\n' > "$work/up.tn"
"$TENON" emit "$work/up.tn" --to dot --as-written > "$work/up.dot"
same "transposed convolutions, one by the name of its layer" "$(grep -c '\[label="conv_transpose2d \(up\|conv1\)' "$work/up.dot")" 2
"$TENON" emit "$TENON_ROOT/models/lenet.tn" --to dot > "$work/planned.dot"
! cmp -s "$work/planned.dot" "$work/lenet.dot" && ok || bad "the picture of the plan is the model as written"
refuses "--as-written of C" "--as-written is for pictures of the graph, not for --to c" "$TENON" emit "$TENON_ROOT/models/lenet.tn" --as-written
refuses "--as-written of another command" "it is an option of tenon emit" "$TENON" show "$TENON_ROOT/models/lenet.tn" --as-written
finish
