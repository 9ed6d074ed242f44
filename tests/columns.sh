#!/usr/bin/env bash
# columns.sh -- sources have at most 100 columns, and C is as clang-format writes it (.clang-format).
#
# The two lists grow until they name the whole tree: format a directory, and add it.  Versions of clang-format
# differ in details; this test uses that of Debian 12.  Without it, only the columns are tested.
#
# One process reads all files, because starting clang-format takes six times as long as formatting a file.
set -euo pipefail
cd "$(dirname "$0")/.."

formatted=(compiler/main.c compiler/base compiler/ir compiler/ops compiler/passes compiler/front compiler/tool compiler/scripts compiler/pictures
           compiler/emit compiler/cpu compiler/cuda compiler/lsp
           runtime/{main.c,rt.h,augment.h,constants.h,base,comm,commands,cpu,cuda,data,device,files,measure,options,step,train})
narrow=(grammar "${formatted[@]}")                        # at most 100 columns
version=14

passed=0 failed=0 skipped=0
bad() { echo "FAIL $*"; failed=$((failed + 1)); }

# sources PLACE...: the files of C and CUDA, and those of the grammar
sources() { find "$@" -name '*.[chly]' -o -name '*.cu' -o -name '*.cuh' | sort; }

# are_narrow FILE..., are_formatted FILE...: 0 if all files are so; else one line for each file that is not
are_narrow() {
    awk 'length > 100 && !(FILENAME in wide) { wide[FILENAME]; bad = 1; print FILENAME ":" FNR ": " length " columns, more than 100" }
         END { exit bad }' "$@"
}
are_formatted() {
    local lines
    ! lines=$(clang-format --style=file:.clang-format --dry-run -Werror "$@" 2>&1) || [ -n "$lines" ] || return 0
    awk -F: '/: error: / && !($1 in seen) { seen[$1]; print; found = 1 } END { exit !found }' <<< "$lines" || head -n 1 <<< "$lines"
    return 1
}

each() { # TEST FILE...: counts each file once
    local test=$1 lines n=0
    shift
    if ! lines=$("$test" "$@"); then
        while read -r line; do bad "$line"; n=$((n + 1)); done <<< "$lines"
    fi
    passed=$((passed + $# - n))
}

mapfile -t files < <(sources "${narrow[@]}")
each are_narrow "${files[@]}"
if clang-format --version 2> /dev/null | grep -q "version $version\."; then
    mapfile -t files < <(sources "${formatted[@]}")
    each are_formatted "${files[@]}"
else
    echo "SKIP the layout of C: no clang-format $version (Debian: apt-get install clang-format)"
    skipped=1
fi

# Both tests can fail.
wrong=$(mktemp --suffix=.c)
trap 'rm -f "$wrong"' EXIT
printf 'int f(void)\n{\n        return 0; /* %090d */\n}\n' 0 > "$wrong"
are_narrow "$wrong" > /dev/null && bad "a line of more than 100 columns passes" || passed=$((passed + 1))
if [ $skipped = 0 ]; then
    are_formatted "$wrong" > /dev/null && bad "eight blanks pass as an indent" || passed=$((passed + 1))
fi

[ $failed = 0 ] || echo "clang-format -i FILE sets the layout; break long lines by hand in comments, strings, and below clang-format off"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
