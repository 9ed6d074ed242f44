# random_loop.sh NUMBER -- prints a random model with scans, for cuda_recurrence.sh.  The number selects the model.
#
# Its states, sequences, widths and steps are random, and so are the statements of a step: layers, elementwise operations, slices,
# joined values, values from before the scan, and values that a scan yields for the next one.  All functions are smooth.
set -eu
RANDOM=$1
name=() width=()                                          # the values that a statement can read

below() { answer=$((RANDOM % $1)); }
one_of() { below $#; shift $answer; answer=$1; }
add_value() { name+=("$1") width+=("$2"); }

# value WIDTH: an expression for such a value, as the answer
value() {
    local i most=${#name[@]}
    below $most; i=$answer
    local n=${name[i]} w=${width[i]}
    if [ "$w" = "$1" ]; then answer=$n
    elif [ "$w" -gt "$1" ]; then below $((w - $1 + 1)); answer="slice($n, axis = 0, start = $answer, size = $1)"
    else one_of true false; answer="dense($n, $1, bias = $answer)"; fi
}

# statement NAME WIDTH: binds the name to a value between -1 and 1
statement() {
    local a b kind w=$2
    one_of add add mul gate product join wide own; kind=$answer
    value "$w"; a=$answer
    value "$w"; b=$answer
    case $kind in
    add) answer="tanh($a + $b)" ;;
    mul) answer="$a * tanh($b)" ;;
    gate) answer="sigmoid($a) * $b + (1 - sigmoid($a)) * tanh($b)" ;;
    product) answer="tanh(dense($a, $w, bias = false) + $b)" ;;
    join) value 3; answer="tanh(dense(concat($a, $answer, axis = 0), $w))" ;;
    wide) value 1; answer="sigmoid($a + $answer)" ;;
    own) answer="0.5 * $a - 0.25 * $b" ;;
    esac
    echo "        $1 = $answer"
    add_value "$1" "$w"
}

scan() {
    local i states=() widths=() from=$1 features=$2 outer=$3 outside=$4 w s
    name=() width=()
    add_value "step$outer" "$features"
    [ -z "$outside" ] || add_value "$outside" 6
    one_of 1 1 2 3
    for ((i = answer; i > 0; i--)); do
        one_of 1 3 4 7 8 12 33 129; w=$answer
        states+=("s$outer$i") widths+=("$w")
        one_of zeros zeros before
        if [ $answer = zeros ] || [ -z "$outside" ]; then echo "    s$outer$i = zeros($w)"; else echo "    s$outer$i = dense($outside, $w)"; fi
        add_value "s$outer$i" "$w"
    done
    local with="step$outer in $from" also=
    one_of "" "" also; also=$answer
    if [ -n "$also" ]; then with+=", also$outer in x"; add_value "also$outer" "$input"; fi
    one_of "" "" " reversed"; with+=$answer
    one_of "" "" "" "" " recompute = every 2"; with+=$answer
    echo "    scan $with {"
    below 5
    for ((i = answer; i > 0; i--)); do one_of 1 2 5 8 12; statement "v$outer$i" "$answer"; done
    for s in "${!states[@]}"; do
        value "${widths[s]}"
        # a product with the state, so that one launch can take the loop
        echo "        ${states[s]} = tanh($answer + dense(${states[s]}, ${widths[s]}, bias = false))"
    done
    below ${#name[@]}; yielded=${width[answer]}
    echo "        yield y$outer = ${name[answer]}"
    echo "    }"
    last=${states[*]}
}

one_of 1 2 3 5; steps=$answer
one_of 1 3 5 8; input=$answer
one_of 1 2 3 5; batch=$answer
outside= all=
echo "model random_loop(x: f32[$steps, $input]) {"
one_of "" z; outside=$answer
[ -z "$outside" ] || echo "    z = tanh(dense(flatten(x), 6))"
scan x "$input" a "$outside"; all=$last
one_of one two
if [ $answer = two ]; then scan ya "$yielded" b "$outside"; all+=" $last"; yb=yb; else yb=ya; fi
echo "    return concat(flatten($yb)$(printf ', %s' $all), axis = 0) |> dense(3)"
echo "}"
echo "train random_loop {"
echo "    data = synthetic(samples = $((3 * batch)), test_samples = $((batch + 1)), classes = 3)"
echo "    loss = softmax_cross_entropy"
echo "    optimizer = sgd(lr = 0.1)"
echo "    batch = $batch"
echo "    epochs = 1"
echo "}"
