#!/usr/bin/env bash
# names.sh -- any name that the language accepts gives a program that compiles: names that differ only in case or in a dot, names of the
# generated file's own constants, and every word in capitals of the headers that it includes, on a GPU, too.  Names of files and data sets can
# contain any characters: they change no code in any generated language.
#
# Parts: programs words gpu files
set -euo pipefail
. "$(dirname "$0")/../common.sh"

recipe='train m { data = synthetic(samples = 16, test_samples = 8); loss = softmax_cross_entropy; optimizer = adam; batch = 8; epochs = 1 }'
trains() {
    printf '%s\n%s\n' "$2" "$recipe" > "$work/m.tn"
    rm -f "$work/p"
    succeeds "$1: build" "$TENON" build "$work/m.tn" -o "$work/p"
    succeeds "$1: train" "$work/p"
}
if part programs; then
    trains "case" 'model m(x: f32[4]) { fc = dense(x, 5); FC = dense(fc, 5); Fc = dense(FC, 5); return dense(Fc, 3) }'
    trains "a dot" 'block part(x) { b = dense(x, 4); return b } model m(x: f32[4]) { a_b = dense(x, 5); a = part(a_b); return dense(a, 3) }'
    trains "states" 'model m(x: f32[4]) { a = dense(x, 5); a_weight_state0 = dense(a, 5); da = dense(a_weight_state0, 5); return dense(da, 3) }'
    trains "attention's names" 'model m(x: f32[4]) { q = dense(x, 4); k = dense(x, 4); v = dense(x, 4); p = q * k; return dense(p * v, 3) }'
    trains "Tenon's words" 'model m(slice: f32[4]) { chunk = dense(slice, 4); shard = tanh(dense(chunk, 4)); return dense(shard + chunk, 3) }'

    # A layer in a loss has its own name.  With the name of the model's first dense layer, it would share its weights.
    printf 'model m(x: f32[4]) { return dense(x, 4) }\n%s\n' "${recipe/softmax_cross_entropy/l2(dense(output, 4))}" > "$work/m.tn"
    same "layers of a model and of its loss" "dense1 train.dense1" \
        "$("$TENON" show "$work/m.tn" | awk '$3 == "dense" { printf "%s%s", sep, $2; sep = " " }')"
    same "their parameters" 40 "$("$TENON" show "$work/m.tn" | awk '$1 == "total" { print $2 }')"
fi

if part words; then
    # The file that emit writes, for all words together.
    runtime=$TENON_ROOT/runtime
    printf '#include "rt.h"\n' > "$work/w.c"
    { cc -std=gnu11 -DRT_KERNELS -I "$runtime" -E "$work/w.c" | grep -v '^#'
      cc -std=gnu11 -DRT_KERNELS -I "$runtime" -E -dM "$work/w.c" | awk '{ print $2 }'; } |
        { grep -oE '\b[A-Z][A-Z0-9_]*\b' || true; } | sort -u | tr 'A-Z' 'a-z' | grep -vxE 'h|x' > "$work/words"
    [ "$(wc -l < "$work/words")" -gt 200 ] && ok || bad "the headers have hardly any words: $(wc -l < "$work/words")"
    { echo 'model m(x: f32[4]) {'; echo 'h = x'; sed 's/.*/& = dense(h, 4); h = tanh(&)/' "$work/words"; echo 'return dense(h, 3)'; echo '}'; echo "$recipe"; } > "$work/m.tn"
    succeeds "emit all words" "$TENON" emit "$work/m.tn" -o "$work/c"
    succeeds "C takes all words" cc -std=gnu11 -DRT_KERNELS -I "$runtime" -fsyntax-only "$work/c/m.c"
fi

if part gpu; then
    # The same for a GPU: words of the headers of runtime/cuda without comments and strings, whatever their #if, and the macros of a
    # generated file.  A C++ compiler reads the file as in cuda.sh.
    runtime=$TENON_ROOT/runtime shim=$TENON_ROOT/tests/cuda
    printf 'model m(x: f32[4]) { return dense(x, 3) }\n%s\n' "$recipe" > "$work/m.tn"
    "$TENON" emit "$work/m.tn" --to cuda --kernels=persistent -o "$work/cu"
    cat "$runtime"/cuda/*.cuh "$work/cu/m.cu" | gcc -fpreprocessed -dD -E -P -x c++ - 2> /dev/null | sed -E 's/"([^"\\]|\\.)*"//g' > "$work/headers"
    grep -oE '\b[A-Z][A-Z0-9_]*\b' "$work/headers" | sort -u | tr 'A-Z' 'a-z' | grep -vxE 'h|x' > "$work/words"
    [ "$(wc -l < "$work/words")" -gt 100 ] && ok || bad "the headers for a GPU have hardly any words: $(wc -l < "$work/words")"
    { echo 'model m(x: f32[4]) {'; echo 'h = x'; sed 's/.*/& = dense(h, 4); h = tanh(&)/' "$work/words"; echo 'return dense(h, 3)'; echo '}'; echo "$recipe"; } > "$work/m.tn"
    for kernels in own persistent; do
        succeeds "emit all words for a GPU, --kernels=$kernels" "$TENON" emit "$work/m.tn" --to cuda --kernels=$kernels -o "$work/cu"
        succeeds "C++ takes all words, --kernels=$kernels" g++ -std=c++20 -x c++ -DRT_SHIM -include "$shim/shim.h" -I "$shim/include" -I "$runtime" -fsyntax-only "$work/cu/m.cu"
        # a macro that the C++ compiler does not see, because nvcc defines it, or that no text uses before the constant
        grep -hoE '^ *# *define [A-Z][A-Z0-9_]*' "$runtime"/cuda/*.cuh "$work/cu/m.cu" | awk '{ print $NF }' | sort -u > "$work/macros"
        grep -oE '^    [A-Z][A-Z0-9_]* *= +[0-9]+,' "$work/cu/m.cu" | awk '{ print $1 }' | sort -u > "$work/constants"
        [ "$(wc -l < "$work/macros")" -gt 10 ] && [ "$(wc -l < "$work/constants")" -gt 100 ] && ok || bad "hardly any macros or constants"
        found=$(comm -12 "$work/macros" "$work/constants" | tr '\n' ' ')
        [ -z "$found" ] && ok || bad "constants with the name of a macro, --kernels=$kernels: $found"
    done
fi

part files || { finish; exit; }
# ---- names of files, which can contain any characters
model='model m(x: f32[4]) { h = dense(x, 4) |> relu; return dense(h, 3) }'
hostile=('a"b.tn' 'a\x.tn' "it's.tn" '$(touch hostile)`touch hostile`.tn' '%s%n%d%%.tn' '<b>&amp;.tn' 'a??/.tn' $'line\nprint(1); touch hostile\n#.tn'
         $'"""\nraise SystemExit("hostile")\n"""' $'byte\xff.tn' $'tab\tcr\rdel\x7f.tn' 'x*/ __attribute__((constructor)) static void hostile(void) { __builtin_trap(); } /*.tn'
         '\' '" "' 'é.tn')

# code FILE: a generated file without its comments and with empty strings
code() {
    case $1 in
    *.c | *.cu) cc -x c -fpreprocessed -dD -E -P "$1" 2>&1 | sed -E 's/"([^"\\]|\\.)*"/""/g' ;;
    *.sbatch) bash -n "$1" 2>&1; grep -v '^# ' "$1" ;;
    *) cat "$1" ;;
    esac
}
names="$work/names" made="$work/made"
mkdir "$names" "$made"
number=0
for name in plain.tn "${hostile[@]}"; do
    mkdir -p "$names/$(dirname "$name")"
    printf '%s\n%s\n' "$model" "$recipe" > "$names/$name"
    for to in c cuda dot slurm pytorch keras mxnet; do
        "$TENON" emit "$names/$name" --to $to -o "$made/$to.$number" > "$work/out" 2>&1 || { bad "emit --to $to of '$name'"; cat "$work/out"; continue; }
        case $to in pytorch | keras | mxnet) continue ;; esac
        code "$made/$to.$number"/* > "$work/$to.now" 2>&1 || true
        if [ $number = 0 ]; then
            mv "$work/$to.now" "$work/$to.plain"
            [ "$(wc -c < "$work/$to.plain")" -gt 200 ] && ok || bad "$to: nothing to compare"
        elif cmp -s "$work/$to.plain" "$work/$to.now"; then
            ok
        else
            bad "'$name' changes the code of --to $to"; { diff "$work/$to.plain" "$work/$to.now" || true; } | sed -n '1,4s/\(.\{200\}\).*/\1/p'
        fi
    done
    number=$((number + 1))
done
# Scripts for other frameworks: the same syntax tree except for the text at the top.
if command -v python3 > /dev/null; then
    cat > "$work/trees.py" << 'END'
import ast, glob, os, sys
trees = {}
for path in sorted(glob.glob(sys.argv[1] + "/*/m.py")):
    to, number = os.path.basename(os.path.dirname(path)).split(".")
    try:
        tree = ast.parse(open(path, "rb").read())
        trees[to, int(number)] = ast.dump(ast.Module(tree.body[1:], [])) if isinstance(tree.body[0].value.value, str) else "no text at the top"
    except (SyntaxError, ValueError, AttributeError) as e:
        trees[to, int(number)] = str(e)
wrong = [f"{to} {number}" for (to, number), tree in trees.items() if tree != trees[to, 0]]
print(len(trees), "scripts, not as of plain.tn:", *wrong)
END
    same "scripts of hostile names" "$((3 * number)) scripts, not as of plain.tn:" "$(python3 "$work/trees.py" "$made")"
else
    skip "scripts of hostile names need python3"
fi
# The command in a job script names the file.
name='it'"'"'s $HOME "x"'$'\n''y.tn'
mv "$names/plain.tn" "$names/$name"
"$TENON" emit "$names/$name" --to slurm > "$work/job"
eval "set -- $(sed -n 's/^#  *tenon build \(.*\) -o m .*/\1/p' "$work/job")"
same "the file that a job script names" "$names/$name" "$1"
succeeds "a picture of memory" "$TENON" show "$names/$name" --memory "$work/plan.svg"

# Built and run: each text of the file that a program contains.
all=$'"\\*/ void hostile(void) { } /*\n\xff\'%s.tn'
{ echo "$model"; echo "${recipe/synthetic(*8)/\"no\\n\\\"such\\\\%s\"}"; } > "$names/m.tn"
mkdir -p "$names/$(dirname "$all")"
cp "$names/m.tn" "$names/$all"
cd "$names"
succeeds "build a hostile name, keep in @keep" "$TENON" build "$all" -o "$work/p" --keep @keep --cpu generic
cd - > /dev/null
[ -f "$names/@keep/m.c" ] && ok || bad "what --keep kept: $(ls "$names")"
succeeds "bench of it" "$work/p" bench --steps 1 --layers --trace "$work/trace.json"
succeeds "info of it" "$work/p" info
same "info has a line for a key" "1 1" "$(grep -ac '^source: "' "$work/out") $(grep -ac '^data: no' "$work/out")"
# A model with the name of a file from which its program is compiled.
unit=$(cd "$names/@keep/m_units" && ls | grep -m 1 '[0-9a-f]\{8\}\.c')
hostile=("$(tr - _ <<< "${unit%.c}")")
if command -v mpicc > /dev/null; then hostile+=("comm_mpi --comm mpi"); fi
for one in "${hostile[@]}"; do
    sed "s/^model m(/model ${one%% *}(/; s/^train m {/train ${one%% *} {/" "$names/m.tn" > "$names/named.tn"
    # shellcheck disable=SC2086
    succeeds "a model named $one" "$TENON" build "$names/named.tn" -o "$work/named" --cpu generic ${one#"${one%% *}"}
done
if command -v python3 > /dev/null; then
    succeeds "its trace is JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/trace.json"
    for to in pytorch keras mxnet; do
        "$TENON" emit "$names/m.tn" --to $to -o "$made/$to.data"
        sed -n 's/^    places = .*join(at, \(".*"\)) for at in .*/print(repr(\1))/p' "$made/$to.data/m.py"
    done > "$work/data.py"
    same "data of the scripts" "$(printf '%s\n' "'no\\n\"such\\\\%s'"{,,})" "$(python3 "$work/data.py")"
fi
finish
