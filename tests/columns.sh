#!/usr/bin/env bash
# columns.sh -- sources have at most 100 columns, and C is as clang-format writes it (.clang-format).
#
# The two lists grow until they name the whole tree: format a directory, and add it.  Versions of clang-format
# differ in details; this test uses that of Debian 12.  Without it, only the columns are tested.
set -euo pipefail
cd "$(dirname "$0")/.."

formatted=(compiler/main.c compiler/base compiler/ir compiler/ops compiler/passes compiler/front compiler/tool compiler/scripts compiler/pictures
           compiler/emit compiler/cpu compiler/cuda
           runtime/{main.c,rt.h,constants.h,base,comm,commands,cpu,cuda,data,device,files,measure,options,step,train})
narrow=(grammar "${formatted[@]}")                        # at most 100 columns
version=14

passed=0 failed=0 skipped=0
bad() { echo "FAIL $*"; failed=$((failed + 1)); }

# sources PLACE...: the files of C and CUDA, and those of the grammar
sources() { find "$@" -name '*.[chly]' -o -name '*.cu' -o -name '*.cuh' | sort; }

# is_narrow FILE, is_formatted FILE: 0 if the file is so; else the first line that is not
is_narrow() { awk 'length > 100 { print FILENAME ":" FNR ": " length " columns"; wide = 1; exit } END { exit wide }' "$1"; }
is_formatted() { clang-format --style=file:.clang-format --dry-run -Werror "$1" 2>&1 | head -n 1 | { ! grep .; }; }

each() { # TEST FILE...
    local test=$1 file line
    shift
    for file in "$@"; do
        if line=$($test "$file"); then passed=$((passed + 1)); else bad "$line"; fi
    done
}

mapfile -t files < <(sources "${narrow[@]}")
each is_narrow "${files[@]}"
if clang-format --version 2> /dev/null | grep -q "version $version\."; then
    mapfile -t files < <(sources "${formatted[@]}")
    each is_formatted "${files[@]}"
else
    echo "SKIP the layout of C: no clang-format $version (Debian: apt-get install clang-format)"
    skipped=1
fi

# Both tests can fail.
wrong=$(mktemp --suffix=.c)
trap 'rm -f "$wrong"' EXIT
printf 'int f(void)\n{\n        return 0; /* %090d */\n}\n' 0 > "$wrong"
is_narrow "$wrong" > /dev/null && bad "a line of more than 100 columns passes" || passed=$((passed + 1))
if [ $skipped = 0 ]; then
    is_formatted "$wrong" > /dev/null && bad "eight blanks pass as an indent" || passed=$((passed + 1))
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
