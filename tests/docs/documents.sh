#!/usr/bin/env bash
# documents.sh -- rules for every document (*.md) of the project; each fault is reported as FILE:LINE: description.
#
#   lines        at most 140 characters
#   links        a relative link leads to a file or directory of the repository, and its anchor to a heading of the page
#   examples     a ```tenon block with a model is a whole file that `tenon check` accepts.  ```tenon title="NAME" lets later blocks of
#                the same page import it.  A ```tenon-error block has its message after "# error: ".  A comment on the line before
#                a block marks other blocks: <!-- fragment --> (not checked), <!-- error: MESSAGE --> (must be reported)
#   commands     in ```sh blocks, all commands and options of tenon, of its programs (./NAME) and of the repository's scripts exist,
#                and so does each models/NAME.tn; the same comments mark a block that is not checked
#   variables    a TENON_NAME also occurs in a file that is not a page
#   navigation   mkdocs.yml names each page of docs/ once, and nothing else
#
#   tests/docs/documents.sh [DIR]        checks another tree (a copy with faults shows that each rule can fail)
set -euo pipefail
. "$(dirname "$0")/../common.sh"
here=$(cd "$(dirname "$0")" && pwd)
root=$(realpath "${1:-$TENON_ROOT}")
cd "$root"

# Files are listed by find, not by git, so that a copy without history has the same documents.
find . \( -name .git -o -path './build*' -o -path './bench/.venv*' \) -prune -o -print | sed 's,^\./,,' | sort > "$work/files"
grep '\.md$' "$work/files" > "$work/pages"
[ -s "$work/pages" ] || { bad "no documents in $root"; finish; exit 1; }
mkdir -p "$work/examples"

# take FILE: counts awk's results: lines "ok N", and lines with faults
take() {
    local n
    n=$(sed -n 's/^ok //p' "$1" | awk '{ n += $1 } END { print n + 0 }')
    passed=$((passed + n))
    while read -r line; do bad "$line"; done < <(grep -v '^ok ' "$1" || true)
}

# ---- lines and links; blocks are written to files

xargs -d '\n' awk -v work="$work" -f "$here/read.awk" < "$work/pages" > "$work/read"
take "$work/read"
awk -f "$here/links.awk" "$work/files" "$work/anchors" "$work/links" > "$work/linked"
take "$work/linked"

# ---- examples

while IFS=$'\t' read -r kind place dir name message; do
    rc=0
    (cd "$dir" && timeout 20 "$TENON" check --color=never "$name") > "$work/out" 2> "$work/err" || rc=$?
    if [ "$kind" = good ]; then
        if [ $rc = 0 ]; then ok; else bad "$place: tenon check says: $(grep -m 1 error "$work/err" || echo "exit code $rc")"; fi
    elif [ -z "$message" ]; then bad "$place: the example does not say its error: \"# error: MESSAGE\""
    elif [ $rc != 1 ]; then bad "$place: no error (exit code $rc); expected: $message"
    elif ! grep -qF "$message" "$work/err"; then bad "$place: expected '$message', got: $(head -n 1 "$work/err")"
    else ok; fi
done < "$work/examples/list"

# ---- commands

# options COMMAND TEXT: prints a line "COMMAND --option" for each option that a help text names
options() { { grep -oE '(^|[^[:alnum:]-])--?[a-z][a-z0-9-]*' <<< "$2" || true; } | sed "s/^[^-]*/$1 /" | sort -u; }
{
    overview=$("$TENON" --help)
    options tenon "$overview"
    # shellcheck disable=SC2013
    for command in $(sed -n 's/^  tenon \([a-z][a-z]*\) .*/\1/p' <<< "$overview" | sort -u); do
        echo "tenon-$command"
        options "tenon-$command" "$("$TENON" "$command" --help)"
    done
    # Options of programs: a program names only its own options; the reference page has all, and other tests of
    # tests/docs keep it equal to the tables.
    [ ! -e docs/reference/program.md ] || awk '
        /^## / { commands = $2 == "Commands" }
        commands && /^### / { name = "program-" $2; print name; print name " --help"; print name " --version" }
        commands && /^Options: / { options = 1 }
        options { while (match($0, /`--[a-z][a-z0-9-]*/)) { print name " " substr($0, RSTART + 1, RLENGTH - 1); $0 = substr($0, RSTART + RLENGTH) } }
        /^$/ { options = 0 }' docs/reference/program.md
} > "$work/options"
for kind in "tenon-build --batch" "program-train --epochs" "program-predict --input"; do
    grep -qx -- "$kind" "$work/options" && ok || bad "documents.sh does not find '$kind' among the commands and options"
done
awk -F '\t' -f "$here/commands.awk" "$work/files" "$work/options" "$work/commands" > "$work/used"
# An option of a script occurs in its text, or in that of a file beside or below it.
while IFS=$'\t' read -r place script option; do
    if grep -qF -- "$option" "$script" || { [[ $script = */* ]] && grep -rqIF --exclude='*.md' -- "$option" "${script%/*}"; }; then ok
    else bad "$place: $script has no option $option"; fi
done < <(sed -n 's/^script\t//p' "$work/used")
grep -v '^script' "$work/used" > "$work/known" || true
take "$work/known"

# ---- variables

# Each TENON_SOMETHING of a page occurs in a file that is not a page.
grep -v '\.md$' "$work/files" | { xargs -d '\n' grep -sohIE -e '\bTENON_[A-Z]+' -- || true; } | sort -u > "$work/variables"
while IFS=: read -r page line name; do
    if grep -qx -- "$name" "$work/variables"; then ok; else bad "$page:$line: nothing reads $name"; fi
done < <(xargs -d '\n' grep -noHIE '\bTENON_[A-Z]+' < "$work/pages")

# ---- navigation

if [ -e mkdocs.yml ]; then
    awk '
        FILENAME != "mkdocs.yml" { there[$0] = 1; if ($0 ~ /^docs\/.*\.md$/ && $0 !~ /^docs\/generate\//) page[$0] = 1; next }
        /^nav:/ { nav = 1; next }
        nav && /^[^ #]/ { nav = 0 }
        nav && /\.md *$/ {
            path = $NF
            if (path ~ /^repository\//) sub(/^repository\//, "", path); else path = "docs/" path
            if (!(path in there)) print "mkdocs.yml:" FNR ": there is no " path
            else if (path in seen) print "mkdocs.yml:" FNR ": " path " is there twice"
            else n++
            seen[path] = 1
        }
        END {
            for (path in page) if (path in seen) n++; else print path ":1: the navigation of mkdocs.yml does not name this page"
            print "ok " n + 0
        }' "$work/files" mkdocs.yml > "$work/navigation"
    take "$work/navigation"
else
    bad "mkdocs.yml is missing"
fi
finish
