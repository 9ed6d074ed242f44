#!/usr/bin/env bash
# reference.sh -- the generated pages of docs/reference are those that the tables of this build make, they have every option of every
# --help, and the manual pages format without warnings.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

build=$(dirname "$TENON") pages=$TENON_ROOT/docs/reference
reference=$build/tests/tenon-reference
[ -x "$reference" ] || { skip "no tenon-reference at $reference"; finish; exit; }
mkdir "$work/pages" "$work/man"
succeeds "tenon-reference markdown" "$reference" markdown "$work/pages"
succeeds "tenon-reference man" "$reference" man "$work/man"

# The committed pages are the generated ones, with none missing and none added.
for page in "$work"/pages/*.md; do
    name=$(basename "$page")
    if cmp -s "$page" "$pages/$name"; then ok; else bad "docs/reference/$name is not what the tables make: run docs/generate/update"; fi
    long=$(awk 'length > 140 { print FNR; exit }' "$page")
    [ -z "$long" ] && ok || bad "$name: line $long is longer than 140 characters"
done
while read -r page; do
    [ -e "$work/pages/$(basename "$page")" ] && ok || bad "$page says that it is generated, but nothing makes it"
done < <(grep -l 'Made by docs/generate/update' "$pages"/*.md)

# has TEXT FILE WORD...: each word begins a definition, or is in code font, in the file
has() {
    local text=$1 file=$2 word lost=; shift 2
    for word; do grep -qE -- "\`${word}[\` ]" "$file" || lost="$lost $word"; done
    if [ $# -gt 0 ] && [ -z "$lost" ]; then ok; else bad "$text: $(basename "$file") lacks:${lost:- everything}"; fi
}

# commands and options
options() { "$TENON" "$@" --help | sed -n 's/^  \(--*[a-z][a-z-]*\).*/\1/p' | sort -u; }
commands=$("$TENON" --help | sed -n 's/^  tenon \([a-z]*\) .*/\1/p' | grep -v '^build$' | sort -u)
for command in $commands build; do
    grep -qx "## $command" "$pages/commands.md" && ok || bad "commands.md has no section of tenon $command"
    manual=$work/man/tenon-$command.1
    [ -s "$manual" ] && ok || { bad "no manual page of tenon $command"; continue; }
    if ! "$TENON" "$command" --help > /dev/null 2>&1; then skip "tenon $command was left out of this build"; continue; fi
    # shellcheck disable=SC2046
    has "tenon $command" "$pages/commands.md" $(options "$command")
    for option in $(options "$command"); do
        grep -qF -- "\\fB$(printf '%s' "$option" | sed 's/-/\\-/g')\\fR" "$manual" && ok || bad "tenon-$command.1 has no $option"
    done
done

# kinds of samples
kinds=$(sed -n '/^const ProgramSample/,/^};/s/^    {PAGE("\([^"=]*\)").*/\1/p' "$TENON_ROOT/runtime/options/program_table.c")
[ "$(wc -l <<< "$kinds")" -ge 4 ] && ok || bad "program_table.c has $(wc -l <<< "$kinds") kinds of samples without a key"
while read -r kind; do
    grep -qx "### ${kind^}" "$work/pages/program.md" && ok || bad "program.md has no section '${kind^}'"
done <<< "$kinds"

# operations, variables
names=$("$TENON" ops | sed -n 's/^  \([a-z0-9_]*\)(.*/\1/p')
[ "$(wc -w <<< "$names")" -ge 30 ] && ok || bad "tenon ops lists $(wc -w <<< "$names") operations, fewer than 30"
lost=
for name in $names; do
    grep -qx "## $name" "$pages/operations.md" || lost="$lost $name"
    "$TENON" ops "$name" > "$work/op"
    grep -qx 'Shapes:' "$work/op" && grep -qx 'Formula:' "$work/op" || lost="$lost $name(shapes, formula)"
    grep -qx 'Gradient:' "$work/op" || grep -q 'no gradient' "$work/op" || lost="$lost $name(gradient)"
done
[ -z "$lost" ] && ok || bad "operations without a section, or without shapes, formula and gradient:$lost"
strays=$(grep -ln 'getenv(' "$TENON_ROOT"/compiler/*/*.c "$TENON_ROOT"/bench/sweep/*.c | grep -v '/base/environment.c$' || true)
[ -z "$strays" ] && ok || bad "variables of the environment that no table has: $strays"

# manual pages
formatter=
for tool in mandoc groff; do command -v $tool > /dev/null && formatter="$formatter $tool"; done
[ -n "$formatter" ] || skip "manual pages: neither mandoc nor groff"
for manual in "$work"/man/*.1; do
    for tool in $formatter; do
        case $tool in
        mandoc) mandoc -T lint -W warning "$manual" > "$work/lint" 2>&1 || true ;;
        groff) groff -man -ww -z -Tutf8 "$manual" > "$work/lint" 2>&1 || true ;;
        esac
        [ ! -s "$work/lint" ] && ok || bad "$tool: $(basename "$manual"): $(head -n 3 "$work/lint")"
    done
done

finish
