#!/usr/bin/env bash
# site.sh -- the site builds without a warning, and its pages load nothing from other hosts.
#
# Deep: it needs mkdocs and its theme from PyPI, which are installed into build/site-venv.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

rc=0
TENON_SITE=$work/site "$TENON_ROOT/docs/build-site" > "$work/out" 2>&1 || rc=$?
if [ $rc = 77 ]; then
    skip "the site: $(tail -n 1 "$work/out")"
    finish
    exit 0
fi
if [ $rc = 0 ]; then ok; else bad "docs/build-site: exit code $rc"; tail -n 20 "$work/out"; finish; exit 1; fi
grep -E 'WARNING|ERROR' "$work/out" && bad "docs/build-site warns" || ok

for page in index.html tutorial.html how-to/own-data.html reference/language.html repository/bench/RESULTS.html search/search_index.js; do
    [ -s "$work/site/$page" ] && ok || bad "the site has no $page"
done
grep -q 'class="k[drnt]*"' "$work/site/index.html" && ok || bad "Tenon's language has no colours"
# Links to other hosts are allowed; scripts, styles, fonts and pictures from other hosts are not.
outside=$(grep -rEoh '<(script|link|img|iframe)[^>]+(src|href)="?(https?:)?//[^" >]+|@import +(url\()?["'"'"']?(https?:)?//[^)]+|url\(["'"'"']?https?://[^)]+' "$work/site" --include='*.html' --include='*.css' |
          grep -v 'rel="\?canonical' | sort -u || true)
[ -z "$outside" ] && ok || bad "pages load from other hosts: $outside"
finish
