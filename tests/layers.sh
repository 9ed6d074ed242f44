#!/usr/bin/env bash
# layers.sh -- fails on an include against the order of the directories, on memory that does not come from the arena, on code
# that scans or cuts printed text, on a pass that calls another pass, on a pass, operation or shared
# emitter that asks which target it is for, on too many tests of an operation's name outside of ops and targets, on a kernel without a
# row in the table of headers (compiler/cpu/unit.c), on an elementwise operation that two tests do not have, on a function of a header
# that no other file uses, and on a pass without a word in the page about passes (docs/explain/compiler.md).
#
#   compiler/   base <- ir <- ops <- {front (+ grammar), passes, emit <- {cpu, cuda}, scripts, pictures} <- tool <- {lsp, main.c}   read "is included by"
#   runtime/    rt.h <- base <- files <- {comm, data, measure} <- {options, device} <- {step, cuda} <- train <- commands <- main.c
#
# compiler/ and runtime/ share three headers: runtime/constants.h, the patterns of names, runtime/base/glob.h, which only base
# includes, and the reader of tables, runtime/data/sheet.h, which only tool includes.  Kernels (runtime/cpu) see rt.h, augment.h and each
# other; generated C sees rt.h alone, which includes constants.h.
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0 failed=0
declare -A level=([base]=0 [ir]=1 [ops]=2 [front]=3 [grammar]=3 [passes]=3 [emit]=3 [scripts]=3 [pictures]=3 [cpu]=4 [cuda]=4 [tool]=5 [lsp]=6 [main.c]=6)
declare -A rank=([constants.h]=0 [rt.h]=1 [augment.h]=2 [cpu]=2 [base]=2 [files]=3 [comm]=4 [data]=4 [measure]=4 [options]=5 [device]=5 [step]=6 [cuda]=6
                 [train]=7 [commands]=8 [main.c]=9)

bad() { echo "FAIL $1: $2"; fine=0; }

# scan FILE...: notes in the table `hits`, for each file, its includes and the lines that the checks below look for.  One process reads
# all files: a process for each file and check took most of the time.
declare -A hits=()
note() { # CHECK: reads "FILE:TEXT"
    local file text
    while IFS=: read -r file text; do hits[$1 $file]+=$text$'\n'; done
}
scan() {
    note include < <(grep -HE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$@" | sed 's/^\([^:]*:\)[^"]*"\([^"]*\)".*/\1\2/')
    note memory < <(grep -nHE "$memory" "$@" | grep -vE "$comment")
    note scans < <(grep -nHE "$scans|$slices" "$@" | grep -vE "$remark" || true)
    note calls < <(grep -nHE "$calls" "$@" | grep -vE "$comment|^[^:]*:[0-9]+:(void|bool|Graph \*)[[:space:]]*\*?pass_|pass_repeat\(")
    note targets < <(grep -nHE "$targets" "$@" | grep -vE "$comment|/pipeline[.]c:[0-9]+:.*p->optional && o->plain")
}
comment='^[^:]*:[0-9]+:[[:space:]]*(\*|/\*|//)'
close() { if [ $fine = 1 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }

# compiler/ROOM/FILE may include its own directory and those below it; the grammar's outputs belong to front.
check_compiler() {
    local file=$1 room=$2 header to
    while read -r header; do
        case $header in
        '' | runtime/constants.h) continue ;;
        runtime/base/glob.h) [ "$room" = base ] || bad "$file" "includes \"$header\", which is for base"; continue ;;
        runtime/data/sheet.h) [ "$room" = tool ] || bad "$file" "includes \"$header\", which is for tool"; continue ;;
        parser.h | lexer.h | grammar/*) to=grammar ;;
        */*) to=${header%%/*} ;;
        *) [ -e "${file%/*}/$header" ] || bad "$file" "includes \"$header\" without its directory"; continue ;;
        esac
        if [ -z "${level[$to]:-}" ]; then
            bad "$file" "includes \"$header\", which is no directory of the compiler"
        elif [ $to != grammar ] && [ ! -e "compiler/$header" ]; then
            bad "$file" "includes \"$header\", which is not there"
        elif [ $to = grammar ] || [ $room = grammar ]; then
            case $room,$to in front,* | grammar,grammar | grammar,front) ;; *,grammar) bad "$file" "includes \"$header\" of the grammar" ;;
            *) [ "${level[$to]}" -lt "${level[$room]}" ] || bad "$file" "includes \"$header\": directories of one level do not include each other" ;; esac
        elif [ "$to" != "$room" ] && [ "${level[$to]}" -ge "${level[$room]}" ]; then
            bad "$file" "includes \"$header\": $room may not look into $to"
        fi
    done <<< "${hits[include $file]:-}"
}

memory='(^|[^_[:alnum:]>.])(malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf|vasprintf|getline|open_memstream)[[:space:]]*\('
check_memory() { [ -z "${hits[memory $1]:-}" ] || bad "$1" "takes memory outside the arena: ${hits[memory $1]}"; }

# The compiler decides from data, such as calls (cuda/call.h): printed text is for compilers and readers alone.  So no code scans
# text, or cuts it at an offset, but the files below, each in this number of lines.  A further line needs a reason.
declare -A reads=(
    # model files, settings and words of the command line
    [grammar/lexer.l]=7 [compiler/front/piece.c]=3 [grammar/parser.y]=5 [compiler/front/parse.c]=1 [compiler/front/node.c]=2 [compiler/front/expect.c]=1 [compiler/front/settings.c]=2
    [compiler/front/data.c]=1 [compiler/ops/table.c]=2 [compiler/tool/command.c]=8 [compiler/tool/option.c]=4 [compiler/tool/manual.c]=2 [compiler/tool/manual_recipe.c]=2
    [compiler/tool/tool.c]=1 [compiler/tool/new.c]=3 [compiler/tool/completion.c]=5
    # names and paths of files
    [compiler/base/source.c]=4 [compiler/front/load.c]=2 [compiler/tool/file.c]=4 [compiler/tool/paths.c]=4 [compiler/scripts/recipe.c]=1
    # heads of arrays, labelled texts, paths of data
    [compiler/tool/sample.c]=9
    # output of the C compiler, of tenon-plan and of trials; files of the cache and of the runtime
    [compiler/tool/objects.c]=9 [compiler/tool/process.c]=1 [compiler/tool/plans.c]=8 [compiler/tool/tune.c]=8 [compiler/tool/cache.c]=6
    # parts of a name: conv1.weight, block.2, the prefix of a kernel, a reserved word, a letter
    [compiler/ir/graph.c]=1 [compiler/front/factors.c]=2 [compiler/front/share.c]=2 [compiler/pictures/graph.c]=2 [compiler/pictures/calls.c]=4 [compiler/cpu/unit.c]=3 [compiler/emit/names.c]=3
    [compiler/tool/show.c]=1
    # rules and templates: rows of elementwise.def, templates of Python, *.py.in
    [compiler/ops/rule.c]=2 [compiler/ops/elementwise.c]=5 [compiler/scripts/template.c]=6 [compiler/scripts/words.c]=6
    # any text: quotes, sizes, indents; Text itself
    [compiler/base/quote.c]=1 [compiler/base/text.c]=6
    # open documents, messages of an editor, and addresses of files; links in texts of the manual (words.c)
    [compiler/lsp/complete.c]=2 [compiler/lsp/context.c]=2 [compiler/lsp/diagnose.c]=8 [compiler/lsp/document.c]=2 [compiler/lsp/json.c]=1 [compiler/lsp/place.c]=5
    [compiler/lsp/wire.c]=1 [compiler/lsp/words.c]=2
    # names of layers and blocks
    [compiler/scripts/network.c]=4 [compiler/scripts/nodes.c]=5 [compiler/scripts/names.c]=1)
scans='(^|[^_[:alnum:]])(strstr|strchr|strrchr|strncmp|strspn|strcspn|strpbrk|strtok|atoi|atol|atoll|strtol|strtoll|strtod|sscanf|memmem|regexec)[[:space:]]*[(]'
slices='(->|[.])(s|body|text|code)[[:space:]]*([+][^=+]|\[)|(^|[^_[:alnum:]"])(body|text|code|printed|kernel|program)[[:space:]]*[+][^=+]'
remark='^[^:]*:[0-9]+:[[:space:]]*([*]( |/|$)|/[*]|//)'
check_scans() {
    local n=0
    [ -z "${hits[scans $1]:-}" ] || n=$(wc -l <<< "${hits[scans $1]%$'\n'}")
    [ "$n" = "${reads[$1]:-0}" ] || bad "$1" "scans or cuts text in $n lines, not ${reads[$1]:-0}: ${hits[scans $1]:-}"
}

# A pass runs by its row of the table: no pass calls another one.
calls='(^|[^_[:alnum:]])pass_[a-z]+\('
check_calls() { [ -z "${hits[calls $1]:-}" ] || bad "$1" "calls a pass that has a row of its own: ${hits[calls $1]}"; }

# Shared passes and operations ask for a property of the target (ir/target.h), never which target or type it is.  Shared
# emitters also ask its functions (EmitTarget in emit/emit.h).  Operations name no version of a kernel (call_kernel in
# ops/call.h).  passes/pipeline.c asks for `plain`, which leaves out optional passes.
targets='(->|[.])(cuda|blas|plain|libraries|persistent|arch|tf32)\>|target[[:alnum:]_]* == &?c(pu|uda)_target|_(plain|blas)"'
targets+='|[!=]= *HALF_(BF16|F16)|HALF_(BF16|F16) *[!=]=|case HALF_(BF16|F16)|strcmp[(].*"(f32|tf32|bf16|f16|f64)"'
check_targets() { [ -z "${hits[targets $1]:-}" ] || bad "$1" "asks which target or type it is: ${hits[targets $1]}"; }

# Directories that belong to no operation and to no target ask for properties of an operation (ops/op.h).  A test of a name is
# for a pattern of exactly this operation; the file gives the reason.  Tests are node_is(n, "NAME"), a comparison with
# op->name, and each row {"NAME", rule} of the table in simplify.c, which alone may test a name that is no literal.
by_name_most=60
by_name=(compiler/ir/*.c compiler/front/*.c compiler/passes/*.c compiler/emit/*.c compiler/tool/*.c compiler/pictures/*.c)
name_tests() { # FILE...: one line for each test
    cat "$@" | grep -v '^bool node_is(' | grep -oE '\<node_is\(|\<strn?cmp\([^;]*op->name|\{"[a-z0-9_]+", simplify_' || true
}
check_names() { # FILE...
    local n hits
    n=$(name_tests "$@" | wc -l)
    [ "$n" -le $by_name_most ] || bad "$1 and others" "$n tests of an operation's name, at most $by_name_most"
    hits=$(grep -nE '\<node_is\(' "$@" /dev/null |
           grep -vE 'node_is\(.*"[a-z0-9_]+"\)|:bool node_is\(|simplify\.c:[0-9]+:.*node_is\(n, rule\[i\]' || true)
    [ -z "$hits" ] || bad "${hits%%:*}" "tests a name that is no literal: $hits"
}

# check_cycles FILE...: at most 4 files call each other in a circle.  The only larger set is the recursive evaluator of front.
evaluator='5: compiler/front/eval.c compiler/front/invoke.c compiler/front/number.c compiler/front/run.c compiler/front/scan.c'
check_cycles() {
    local found
    found=$(awk -f tests/cycles.awk most=4 "$@" | grep -vxF "$evaluator" || true)
    [ -z "$found" ] || bad "$1" "these files call each other in a circle: $found"
}

# check_exports FILE...: another file uses each function that a header declares.
check_exports() {
    local found
    found=$(awk -f tests/exports.awk "$@")
    [ -z "$found" ] || bad "$1 and others" "no other file uses these functions: make them static, or remove them: $found"
}

# check_homes TABLE HEADER...: the C file of a kernel includes the header that compiler/cpu/unit.c names for this kernel.
check_homes() {
    local found
    found=$(awk -f tests/homes.awk "$@")
    [ -z "$found" ] || bad "$1" "$found"
}

# check_elementwise TABLE MATH RANDOM: MATH tests each function of the table, and RANDOM writes each operation into models.
check_elementwise() {
    local name
    for name in $(grep -oE '"[vd]_[a-z0-9_]+",' "$1" | tr -d '",'); do
        grep -qE "(^|[^a-z0-9_])$name([^a-z0-9_]|$)" "$2" || bad "$1" "no test of $name in $2"
    done
    for name in $(sed -n 's/^ROW(\([a-z0-9_]*\),.*/\1/p' "$1"); do
        grep -qE "(^|[^a-z0-9_])$name\(" "$3" || bad "$1" "$name is missing in $3"
    done
}

# check_passes TABLE PAGE: the section "Passes" of PAGE names each pass of TABLE.
check_passes() {
    local name
    for name in $(sed -n 's/^ *ROW(\([a-z0-9_]*\),.*/\1/p' "$1"); do
        sed -n '/^## Passes/,/^##* Words/p' "$2" | grep -qF "\`$name\`" || bad "$1" "$2 does not say what pass $name does"
    done
}

# runtime/ROOM/FILE may include rt.h, its own directory and those below it; cpu/ is for generated code and for device code.
check_runtime() {
    local file=$1 room=$2 header to
    while read -r header; do
        to=${header%%/*}
        if [ -z "$header" ]; then
            continue
        elif [ -z "${rank[$to]:-}" ]; then
            bad "$file" "includes \"$header\", which is no directory of the runtime: paths start at runtime/"
        elif [ ! -e "runtime/$header" ]; then
            bad "$file" "includes \"$header\", which is not there"
        elif [ "$room" = cpu ] || [ "$room" = rt.h ]; then
            case $room,$header in
            cpu,rt.h | cpu,augment.h | cpu,cpu/* | rt.h,cpu/kernels.h | rt.h,constants.h) ;;
            *) bad "$file" "includes \"$header\": generated code would see more than rt.h" ;;
            esac
        elif [ "$to" = cpu ]; then
            [ "$room" = cuda ] || bad "$file" "includes \"$header\": kernels are for generated code"
        elif [ "$to" != "$room" ] && [ "${rank[$to]}" -ge "${rank[$room]}" ]; then
            bad "$file" "includes \"$header\": $room may not look into $to"
        fi
    done <<< "${hits[include $file]:-}"
}

compiler=(compiler/main.c compiler/*/*.[ch] grammar/*.[ly])
runtime=(runtime/*.[ch] runtime/*/*.[ch] runtime/cuda/*.cu runtime/cuda/*.cuh runtime/cuda/*/*.c)
scan "${compiler[@]}" "${runtime[@]}"
for file in "${compiler[@]}"; do
    fine=1 room=${file#compiler/} room=${room%%/*}
    check_compiler "$file" "$room"
    case $file in */pipeline.c) ;; compiler/passes/*.c) check_calls "$file" ;; esac
    case $file in compiler/main.c | compiler/passes/* | compiler/ops/* | compiler/front/* | compiler/emit/*) check_targets "$file" ;; esac
    case $file in compiler/base/arena.c | grammar/*) ;; *) check_memory "$file" ;; esac
    check_scans "$file"
    close
done
fine=1; check_names "${by_name[@]}"; close
fine=1; check_cycles compiler/main.c compiler/*/*.c; close
fine=1; check_cycles runtime/main.c runtime/*/*.c runtime/cuda/*/*.c; close
fine=1; check_exports compiler/*.c compiler/*/* runtime/*.[ch] runtime/*/*.* runtime/cuda/*/*.c bench/*/*.[ch] grammar/*.[ly] tests/*/*.[ch] tests/cuda/*.cpp; close
fine=1; check_homes compiler/cpu/unit.c runtime/cpu/*.h; close
fine=1; check_elementwise compiler/ops/elementwise.def tests/kernels/test_math.c tests/tools/random_ops.h; close
fine=1; check_passes compiler/passes/pipeline.c docs/explain/compiler.md; close
for file in "${runtime[@]}"; do
    fine=1 room=${file#runtime/} room=${room%%/*}
    check_runtime "$file" "$room"
    close
done
for file in generated/*/*.c; do
    [ -e "$file" ] || continue
    fine=1
    [ "$(grep -E '^[[:space:]]*#[[:space:]]*include' "$file" | sort -u)" = '#include "rt.h"' ] || bad "$file" "includes more than rt.h"
    close
done

# The rules themselves must be able to fail: a file that breaks each of them.
self=$(mktemp -d); trap 'rm -r "$self"' EXIT
printf '#include "ops/op.h"\n' > "$self/up.h"
printf '#include "emit/emit.h"\n' > "$self/side.c"
printf '#include "cuda/cuda.h"\n' > "$self/other.c"
for i in 0 1 2 3 4; do printf 'void f%d(void)\n{\n    f%d();\n}\n' $i $(((i + 1) % 5)) > "$self/circle$i.c"; done
printf '#include "runtime/rt.h"\n' > "$self/shared.c"
printf '#include "runtime/data/sheet.h"\n' > "$self/reader.c"
printf '#include "runtime/base/glob.h"\n' > "$self/glob.c"
printf '#include "train/train.h"\n' > "$self/runtime.c"
printf '#include "data/data.h"\n' > "$self/beside.h"
printf '#include "step/net.h"\n' > "$self/kernel.h"
printf 'void *f(void) { return malloc(1); }\n' > "$self/memory.c"
printf 'static int f(const char *s)\n{\n    return strstr(s, "LOCAL(") != 0;\n}\n' > "$self/scan.c"
printf 'static const char *f(const Kernel *k)\n{\n    return k->body + k->size_end;\n}\n' > "$self/slice.c"
printf 'bool f(const Options *o) { return v->options->cuda; }\n' > "$self/target.c"
printf 'bool f(const Writer *w) { return w->target == &cuda_target; }\n' > "$self/row.c"
printf 'void f(Call *c) { call_fn(c, "mse_plain"); }\n' > "$self/version.c"
printf 'bool f(const Call *c) { return c->blas; }\n' > "$self/library.c"
printf 'bool f(const Options *o) { return o->half == HALF_F16; }\n' > "$self/type.c"
printf 'void f(Graph *g)\n{\n    pass_dce(g, 0, 0);\n}\n' > "$self/pass.c"
mkdir -p "$self/compiler"
printf 'int net_used(int n);\nint net_unused(int n); /* net_unused */\n' > "$self/compiler/net.h"
printf 'int net_used(int n)\n{\n    return n; /* not net_unused */\n}\nint net_unused(int n)\n{\n    return net_used(n);\n}\n' > "$self/compiler/net.c"
printf 'int f(void)\n{\n    return net_used(1);\n}\n' > "$self/compiler/user.c"
printf 'static const Home home[] = {{"l2", "cpu/loss.h", false}};\n' > "$self/unit.c"
printf 'RT_INLINE void l2_norm_plain(real *y)\n' > "$self/l2_norm.h"
printf 'ROW(cbrt, 1, MONOTONE, "v_cbrt", "v_cbrt(a)",\n' > "$self/rows.def"
printf '"cbrt(%%s)"\n' > "$self/random.c"
printf '    ROW(fuse, OWN, OPTIONAL,\n' > "$self/table.c"
printf '## Passes\n\n| `fuses` | joins |\n\n## Words\n\n`fuse`\n' > "$self/page.md"
for i in $(seq $((by_name_most + 1))); do echo "if (node_is(n, \"op$i\"))"; done > "$self/names.c"
printf 'bool f(const Node *n) { return node_is(n, list[i]); }\n' > "$self/list.c"
scan "$self"/*.[ch]
expect() { if [ $fine = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL layers.sh does not see $1"; fi; }
fine=1; check_compiler "$self/up.h" ir > /dev/null; expect "an include of a higher directory"
fine=1; check_compiler "$self/side.c" passes > /dev/null; expect "an include of a directory of the same level"
fine=1; check_compiler "$self/other.c" cpu > /dev/null; expect "a target that looks into another one"
fine=1; check_cycles "$self"/circle*.c > /dev/null; expect "five files that call each other in a circle"
fine=1; check_compiler "$self/shared.c" emit > /dev/null; expect "a header of the runtime in the compiler"
fine=1; check_compiler "$self/reader.c" front > /dev/null; expect "the reader of tables outside of tool"
fine=1; check_compiler "$self/glob.c" front > /dev/null; expect "the patterns of the runtime outside of base"
fine=1; check_runtime "$self/runtime.c" step > /dev/null; expect "an include of a higher directory of the runtime"
fine=1; check_runtime "$self/beside.h" comm > /dev/null; expect "an include of a directory of the same level in the runtime"
fine=1; check_runtime "$self/kernel.h" cpu > /dev/null; expect "a kernel that sees more than rt.h"
fine=1; check_memory "$self/memory.c" > /dev/null; expect "malloc outside the arena"
fine=1; check_scans "$self/scan.c" > /dev/null; expect "printed text that is scanned"
fine=1; check_scans "$self/slice.c" > /dev/null; expect "a printed body that is cut"
fine=1; said=$(cd "$self" && awk -f "$OLDPWD/tests/exports.awk" compiler/*); [ "$said" = "compiler/net.h declares net_unused" ] && fine=0; expect "a function that no other file uses"
fine=1; check_homes "$self/unit.c" "$self/l2_norm.h" > /dev/null; expect "a kernel whose file gets another header"
fine=1; check_elementwise "$self/rows.def" "$self/random.c" "$self/random.c" > /dev/null; expect "a function without a test"
fine=1; check_elementwise "$self/rows.def" "$self/rows.def" /dev/null > /dev/null; expect "an operation that no random model has"
fine=1; check_passes "$self/table.c" "$self/page.md" > /dev/null; expect "a pass that no page describes"
fine=1; check_calls "$self/pass.c" > /dev/null; expect "a pass that calls another pass"
fine=1; check_targets "$self/target.c" > /dev/null; expect "a pass that asks which target it is"
fine=1; check_targets "$self/version.c" > /dev/null; expect "an operation that names the kernel of a target"
fine=1; check_targets "$self/library.c" > /dev/null; expect "an operation that asks for a library"
fine=1; check_targets "$self/type.c" > /dev/null; expect "a pass that asks for a type"
fine=1; check_targets "$self/row.c" > /dev/null; expect "a shared emitter that asks which target it writes for"
fine=1; check_names "$self/names.c" > /dev/null; expect "too many tests of an operation's name"
fine=1; check_names "$self/list.c" > /dev/null; expect "a test of a name that is no literal"

echo "$(name_tests "${by_name[@]}" | wc -l) tests of an operation's name outside of ops and targets"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
