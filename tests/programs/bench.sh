#!/usr/bin/env bash
# bench.sh -- bench/run compares only programs that compute the same, rejects others, and records what it measured.
#
# Deep: it measures another program, and needs Python.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$TENON_ROOT/tests/packages.sh"

python3 -c 'import gzip' 2> /dev/null || { skip "no python3"; finish; exit; }
have "$openblas" || { skip "OpenBLAS, the peer here, is not installed (Debian: libopenblas-dev)"; finish; exit; }
export TENON_CACHE=$work/cache

# A copy, so that a reference program can be changed and results stay separate; bench/run itself would install
# packages.
mkdir "$work/copy"
cp -r "$TENON_ROOT/bench" "$work/copy/bench"
ln -s "$TENON_ROOT/models" "$work/copy/models"
sed -i '/"openblas"/s/, further=True//' "$work/copy/bench/driver/works.py"   # in this test, OpenBLAS is the best other program
bench() { python3 -B "$work/copy/bench/driver/main.py" --tenon "$TENON" --venv "$work/none" --work '^mlp B=128, 1 thread$' "$@"; }
yardstick=$work/copy/bench/yardsticks/mlp_openblas.c

succeeds "the losses of OpenBLAS are ours" bench --check --peer 'blas|jax'
grep -Eq 'openblas: first loss differs by .*, after 5 steps by ' "$work/out" && ok || bad "nothing was compared: $(cat "$work/out")"
grep -q 'jax: not installed' "$work/out" && ok || bad "a peer that is not there is not named"

succeeds "a measurement" bench --peer openblas --rounds 2 --seconds 0.05 --out "$work/results"
same "columns of the CSV" "$(cut -d, -f1-4 "$work/results/results.csv" | tr '\n' ' ')" \
    "model,batch,threads,program mlp,128,1,tenon mlp,128,1,openblas "
awk -F, 'NR > 1 && !($5 > 0 && $6 <= $5 && $5 <= $7 && $8 == 2) { exit 1 }' "$work/results/results.csv" && ok || bad "a row without its two bursts"
python3 - "$work/results/results.json" << 'END' && ok || bad "results.json does not hold the bursts behind its ratio"
import json, statistics, sys
work = json.load(open(sys.argv[1]))["works"][0]
ours, other = (statistics.median(p["samples_per_s"]) for p in work["programs"])
sys.exit(abs(work["ratio"] - ours / other) > 1e-9 or len(work["fma_peak_gflops"]) != 4)
END
grep -q '^| mlp B=128, 1 thread | ' "$work/results/RESULTS.md" && ok || bad "RESULTS.md has no row"
echo "a person's remark" >> "$work/results/RESULTS.md"
succeeds "another one" bench --peer openblas --rounds 1 --seconds 0.05 --out "$work/results"
same "what a person wrote is kept" "$(tail -n 1 "$work/results/RESULTS.md")" "a person's remark"

cp "$work/results/RESULTS.md" "$work/before"
succeeds "RESULTS.md again, from results.json" bench --again --out "$work/results"
cmp -s "$work/results/RESULTS.md" "$work/before" && ok || bad "--again wrote another RESULTS.md: $(diff "$work/before" "$work/results/RESULTS.md" | head -n 5)"
same "lines longer than 140 characters" "$(awk 'length > 140' "$work/results/RESULTS.md" | wc -l)" 0

# A wrong momentum of 0.8 shows after some steps, a missing bias in the first step.
sed -i 's/0\.9f/0.8f/' "$yardstick"
refuses "another momentum" "openblas: refused: its loss after 5 steps is" bench --check --peer openblas
sed -i 's/\*y += l->b\[k\];/*y += 0.01f;/' "$yardstick"
refuses "another network" "openblas: refused: its first loss is" bench --check --peer openblas
refuses "a name that is not there" "nothing of that name" bench --peer tensorfow
finish
