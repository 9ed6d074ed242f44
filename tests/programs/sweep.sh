#!/usr/bin/env bash
# sweep.sh -- tenon sweep stores each run once, also if it is killed; tenon results answers questions; errors name their place.
set -uo pipefail
. "$(dirname "$0")/../common.sh"

if "$TENON" sweep --help 2>&1 | grep -q 'left out when this tenon was built'; then skip "built without SQLite or cJSON"; finish; exit; fi
cd "$work"
small_mnist small 600 200
repeats=3
sed '/dense(h, 64)/d' "$TENON_ROOT/models/mlp.tn" > mlp.tn     # two layers compile faster than three
sed '/^    h = /d; s/dense(h, /flatten(image) |> dense(/' mlp.tn > one.tn
if deep "more runs of a deeper network"; then
    repeats=4
    cp "$TENON_ROOT/models/mlp.tn" .
fi
all=$((4 * repeats))
quick=(--data small --epochs 2 --warm-steps 2 --retries 0)
sweep() { "$TENON" sweep "$@"; }
results() { local command=$1; shift; "$TENON" results "$command" --store store.db "$@"; }
stored() { if [ -e store.db ]; then results list 2> /dev/null | tail -n +2 | wc -l; else echo 0; fi; }

# kill -9, twice, each time after a few more runs have been stored.
plan=(mlp.tn --batch 50,128 --threads 1,2 --repeat $repeats --store store.db --label one --layers yes "${quick[@]}")
before=0
for kill in 1 2; do
    "$TENON" sweep "${plan[@]}" > "log$kill" 2>&1 & pid=$!
    for ((i = 0; i < 600; i++)); do
        [ "$(stored)" -lt $((before + 3)) ] || break
        kill -0 $pid 2> /dev/null || break
        sleep 0.1
    done
    kill -9 $pid && ok || bad "the sweep was over before it could be killed: $(cat "log$kill")"
    wait $pid 2> /dev/null || true
    results export --csv -o "kept$kill.csv"
    before=$(stored)
    [ "$before" -ge $((kill * 3)) ] && ok || bad "only $before runs were stored before kill $kill"
done
succeeds "the sweep after two kills" sweep "${plan[@]}"
grep -q "$before of $all runs are stored already" out && ok || bad "it does not say what is there already: $(cat out)"
same "all runs, once" "$(stored)" $all
results export --csv -o all.csv
for kill in 1 2; do
    same "what was stored before kill $kill is as it was" "$(head -n "$(wc -l < "kept$kill.csv")" all.csv | cksum)" "$(cksum < "kept$kill.csv")"
done
same "the nine columns" "$(head -n 1 all.csv | cut -d, -f1-9)" "infrastructure,model,script,batch_size,gpus,accuracy,epochs,time,samples_sec"
same "each configuration has each repeat" "$(results list | tail -n +2 | sed 's/.*mlp, batch/batch/' | awk '{ print $2 $3, $5 }' | sort -u | wc -l)" $all
succeeds "nothing is left to do" sweep "${plan[@]}"
same "nothing was run again" "$(stored)" $all
[ ! -e store.db.work ] && ok || bad "the sweep leaves store.db.work behind"

# Answers of tenon results.
succeeds "two settings of one length" sweep one.tn --build "--plain --set optimizer.lr=0.00100" --build "--plain --set optimizer.lr=0.00200" --steps 2 --repeat 1 --retries 0 --threads 2 --store names.db
for what in table list; do
    "$TENON" results $what --store names.db > names
    same "results $what tells builds apart" "$(grep -oe '--plain --set optimizer.lr=0.00[12]00 ' names | sort -u | wc -l)" 2
done
results table > table
grep -Eq "^one +mlp, batch 128, 2 threads +[0-9,]+ +[0-9,]+ \.\. [0-9,]+ +$repeats " table && ok || bad "table: $(cat table)"
results show 1 > show
for line in 'samples_per_s +[0-9]' 'planned_bytes +[0-9]' 'peak_bytes +[0-9]' 'peak_before +[0-9]' 'first_step_ms +[0-9]' 'compile_s +[0-9]' \
    '  algorithms: ' '  cpu: ' '  model mlp' 'weights_hash +[0-9a-f]{16}' '^ +2 .* [0-9a-f]{16}$' ' dense_1 .*mlp.tn:'; do
    grep -Eq -- "$line" show && ok || bad "show has no line '$line'"
done
# The best configuration is the one with the highest median of the test accuracies.
results best > best
grep -q "^mlp" best && ok || bad "no model in the list of the best: $(cat best)"
same "rows of the best" "$(grep -c ' batch [0-9]*, [12] thread' best)" 4
same "the order of the best" "$(awk '$1 ~ /^[01][.]/ { print $1 }' best)" "$(awk '$1 ~ /^[01][.]/ { print $1 }' best | sort -rn)"
same "the best accuracy of all runs" "$(awk '$1 ~ /^[01][.]/ { print $1; exit }' best)" "$(awk -F, 'NR > 1 { printf "%.4f\n", $6 }' all.csv | sort -rn | head -n 1)"
refuses "the best of measured steps" "no run in names.db has a test accuracy or a test loss" "$TENON" results best --store names.db
succeeds "values of two keys" sweep mlp.tn --set optimizer.lr=0.1,0.01 --set seed=1,2,3 --dry-run
same "all pairs of values" "$(grep -oE -- '--set optimizer.lr=0.0?1 --set seed=[123]:' out | sort -u | wc -l)" 6
refuses "a key without values" "set: 'optimizer.lr' is not KEY=VALUE,VALUE" sweep mlp.tn --set optimizer.lr
same "a sweep of one epoch" "$(sweep mlp.tn --epochs 1 --repeat 1 --threads 1 --dry-run | head -n 1)" "mlp, 1 thread: 1 run of 1 epoch"
same "values for a script" "$(sweep mlp.tn --framework pytorch --set seed=1,2 --dry-run | head -n 1)" "skipped: --build or --set with pytorch: its scripts train by the recipe as it is"
refuses "a word after best" "tenon results best: unexpected word 'mlp'" results best mlp
refuses "too many values" "this sweep has 120000 runs; 20000 is the limit" sweep mlp.tn --set seed="$(seq -s, 200)" --set classes="$(seq -s, 200)" --dry-run
refuses "a key twice" "set: seed is given twice" sweep mlp.tn --set seed=1 --set seed=2
for key in epochs batch seed data; do
    own=(--$key 5)
    [ $key = epochs ] && own=()
    refuses "values of $key that another setting replaces" "set: the sweep's own setting '$key' replaces these values" sweep mlp.tn --set $key=1,2 "${own[@]}" --dry-run
done
succeeds "batches as values of the recipe" sweep mlp.tn --set batch=50,100 --dry-run
results plot > plot
same "a bar a configuration" "$(grep -c '[#=-]$' plot)" 4
if command -v gnuplot > /dev/null; then
    results plot -o plot.svg && grep -q 'batch' plot.svg && ok || bad "no plot.svg"
else
    refuses "a picture without gnuplot" "gnuplot has drawn nothing: cannot run gnuplot" results plot -o plot.svg
fi
refuses "a picture of another kind" "a plot is a .png or a .svg, not plot.jpg" results plot -o plot.jpg
same "one network, one batch: one hash for any number of threads" "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "weights_hash") c = i } NR > 1 { print $4, $c }' all.csv | sort -u | wc -l)" 2

# compare: runs of the same programs must not differ in bits; runs of a ms on a busy machine may differ in speed.
sweep "${plan[@]}" --label two --repeat 1 --batch 50 > out 2>&1 || bad "a second label: $(cat out)"
results compare one two > compare || true
grep -q 'batch 50, 1 thread .*too few runs to say' compare && ok || bad "compare: $(cat compare)"
grep -q 'WEIGHTS DIFFER' compare && bad "compare: $(cat compare)" || ok
refuses "a label that is not there" "no run in store.db has the label 'ones'" results compare ones two
refuses "a run that is not there" "there is no run 99 in store.db" results show 99
refuses "a command that is not there" "tenon results has no command 'lst'" "$TENON" results lst

# The report: one file, without parts from other places, with all its sections, not wider than its window.
results report -o report.html || bad "no report"
for id in summary throughput scaling differences all curves memory roofline account machine; do
    grep -q "<h2 id=$id>" report.html && ok || bad "the report has no section '$id'"
done
grep -Eiq '(https?:)?//|<(script|link|img|iframe)|url\(|@import' report.html && bad "the report refers to something outside" || ok
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -n "$browser" ]; then
    { cat report.html; echo '<script>addEventListener("load", () => { const charts = [...document.querySelectorAll("svg.chart")];
        const flat = charts.filter(c => c.getBoundingClientRect().height < 100 || c.querySelectorAll("circle").length == 0);
        document.title = "width " + (document.documentElement.scrollWidth <= innerWidth ? "fits" : "is too much") + ", " + charts.length + " charts, " + flat.length + " empty" })</script>'; } > measured.html
    for width in 390 1200; do
        timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/browser" --window-size=$width,2000 --screenshot="$work/page$width.png" \
            --dump-dom "file://$work/measured.html" > dom 2> /dev/null || true
        grep -Eq '<title>width fits, [5-9] charts, 0 empty' dom && ok || bad "in a browser, $width wide: $(grep -o '<title>[^<]*' dom)"
    done
else
    skip "no chromium to look at the report"
fi

# A failed run is a row, and the sweep continues.
sed 's/dense(h, classes)/dense(h, nothing)/' mlp.tn > broken.tn
rc=0; sweep broken.tn mlp.tn --batch 50 --threads 1 --repeat 1 --store failed.db "${quick[@]}" > out 2>&1 || rc=$?
same "exit code of a sweep with failed runs" $rc 1
same "both are stored" "$("$TENON" results list --store failed.db | grep -Ec 'failed: broken.tn:.*error|mlp, batch 50, 1 thread .* 0\.')" 2
rc=0; sweep mlp.tn --batch 50 --threads 1 --repeat 1 --store failed.db --label nodata --retries 0 --epochs 1 --data nowhere > out 2>&1 || rc=$?
"$TENON" results list --store failed.db | grep -q 'failed: .*nowhere' && ok || bad "a data set that is not there: $(cat out)"

# Sweep files.
cat > some.sweep << 'END'
repeat = 2
sweep "mlp.tn" {
    batch   = [50, 100]
    threads = [1, all, 64]
}
END
succeeds "a sweep file" sweep some.sweep --dry-run
grep -q 'skipped: 1 rank of 64 threads' out && ok || bad "what the machine cannot do is not said: $(cat out)"
printf 'repeat = 5\nsweep "mlp.tn" {\n    batch = [64, x]\n    layrs = yes\n    framework = [caffe]\n}\nsweep "none.tn" { }\n' > wrong.sweep
refuses "a sweep file with mistakes" '^wrong.sweep:3:18: error: a whole number is expected' sweep wrong.sweep
for line in "^      \|                  \^$" "^wrong.sweep:4:5: error: sweeps have no setting 'layrs'" "did you mean 'layers'" \
    "^wrong.sweep:5:18: error: unknown framework 'caffe'" "^wrong.sweep:7:7: error: there is no model file"; do
    grep -Eq -- "$line" err && ok || bad "wrong.sweep: no line '$line' in: $(cat err)"
done
printf 'sweep "mlp.tn" { batch = 50\n  seed = 7 }\n # \0 \nsweep "none.tn" { }\n' > nul.sweep
refuses "a sweep file with a NUL byte" '^nul.sweep:3:4: error: the file has a NUL byte here' sweep nul.sweep
printf 'seed = 1\nsweep "mlp.tn" {\n    seed = 2\n    batch = 50\n    seed = 3\n}\n' > twice.sweep
refuses "a setting that is given twice" "^twice.sweep:5:5: error: the setting 'seed' is given twice" sweep twice.sweep
printf 'sweep "mlp.tn" {\n    build = ["", "--fast -o x"]\n    repeat = 2\n}\n' > own.sweep
refuses "a build's option that is the sweep's own" '^own.sweep:2:18: error: build: a sweep gives -o itself' sweep own.sweep
refuses "the same on the command line" 'build: a sweep gives --batch itself' sweep mlp.tn --build "--batch=7"
printf 'steps = 3\nbuild = ["", "--fast --fats"]\nsweep "mlp.tn" { }\nsweep "mlp.tn" { build = ["--cpu foo"] }\n' > flags.sweep
refuses "options that the compiler has not" "^flags.sweep:2:22: error: tenon build has no option '--fats'" sweep flags.sweep --dry-run
for line in "^      \|                      \^~~~~~\$" "did you mean '--fast'" "^flags.sweep:4:28: error: --cpu takes native"; do
    grep -Eq -- "$line" err && ok || bad "flags.sweep: no line '$line' in: $(cat err)"
done
for stray in mlp.tn "--fast more" "--plain --help"; do
    refuses "a build setting of $stray" "error: --build: '$stray' is not made of options alone" sweep mlp.tn --build "$stray" --dry-run
done
refuses "the same on the command line" "error: --build: tenon build has no option '--fats'" sweep mlp.tn --build --fats --dry-run
refuses "an interpreter for nobody" "--python: unknown framework 'tensor'" sweep mlp.tn --python tensor=python3 --dry-run
# Options in `build` are combined, whatever their order; a list in one of them is not an option.
for builds in "--build|--fast|--build|" "--build||--build|--fast" "--build|--fast --set optimizer.lr=0.1|--build|--plain|--build="; do
    IFS='|' read -ra words <<< "$builds|end"
    unset "words[${#words[@]}-1]"
    sweep mlp.tn "${words[@]}" --dry-run > dry 2>&1
    same "builds of $builds" "$(grep -c '^mlp, ' dry) $(grep -c "^.* of $(grep -o -- --build <<< "$builds" | wc -l) configurations" dry)" "$(grep -o -- --build <<< "$builds" | wc -l) 1"
done
for list in '"", "--fast"' '["", "--fast"]' '--set optimizer.lr=0.1,--fast' '--fast, --plain'; do
    refuses "a list as one build: $list" 'error: --build takes the options of one build, not a list' sweep mlp.tn --build "$list" --dry-run
done
refuses "a build that is given twice" 'error: --build "--fast" is given twice' sweep mlp.tn --build --fast --build "" --build --fast --dry-run
cp store.db read.db
succeeds "stores are merged" "$TENON" results merge read.db failed.db --store merged.db
[ -z "$(find . -name 'read.db-*' -o -name 'failed.db-*')" ] && ok || bad "results merge leaves files beside the stores it reads"
refuses "a directory to be swept" "error: small is a directory" sweep small
refuses "an unknown framework" "^--framework:1:7: error: unknown framework 'keras'" sweep mlp.tn --framework tenon,keras
refuses "a framework that is not there" "1 run failed" sweep mlp.tn --framework pytorch --epochs 1 --repeat 1 --retries 0 --python /nonexistent --store none.db
"$TENON" results list --store none.db | grep -q 'mlp, pytorch, .*failed: .*/nonexistent' && ok || bad "the failed run of a script does not say that there is no Python: $("$TENON" results list --store none.db)"
[ ! -e none.db.work ] && ok || bad "a script's directory is left behind: $(ls -R none.db.work)"
refuses "an unknown option" "tenon sweep has no option '--batches'" sweep mlp.tn --batches 3
refuses "a model that is not there" "there is no file none.tn" sweep none.tn

# Stores.
refuses "no store" "there is no store nothing.db" "$TENON" results list --store nothing.db
cp all.csv text.db
refuses "a file that is no store" "text.db is no store of results" sweep mlp.tn --store text.db
if command -v python3 > /dev/null && python3 -c 'import sqlite3' 2> /dev/null; then
    cp store.db newer.db
    python3 -c 'import sqlite3; d = sqlite3.connect("newer.db"); d.execute("PRAGMA user_version = 2"); d.execute("PRAGMA wal_checkpoint"); d.close()'
    refuses "a newer schema" "the store newer.db has schema 2; this tenon knows schema 1" "$TENON" results list --store newer.db
    python3 -c 'import sqlite3; d = sqlite3.connect("other.db"); d.execute("CREATE TABLE t (x)"); d.commit()'
    refuses "another program's database" "other.db is a database, but no store of results" sweep mlp.tn --store other.db

    # compare, with fixed times: ten runs a side with noise of 1 %, of which one is disturbed by 10 %.  `equal` has the
    # noise of `old` in another order; in `slow`, dense1 takes 10 % longer, and so the step 5 %.
    cp store.db fixed.db
    python3 - << 'END'
import sqlite3
noise = [0, 7, -8, 3, -5, 9, -2, 5, -10, 100]   # thousandths
d = sqlite3.connect("fixed.db")
for table in "run", "epoch", "layer":
    d.execute(f"DELETE FROM {table}")
for label, factor, shift in ("old", 1, 0), ("equal", 1, 4), ("slow", 1.1, 7):
    for r in range(10):
        ms = {layer: ms * (1 + noise[(step * r + shift) % 10] / 1000)
              for layer, ms, step in (("conv1", 0.4, 3), ("dense1", 0.5 * factor, 7), ("dense2", 0.1, 9))}
        run = d.execute("INSERT INTO run (key, attempt, repeat, label, status, framework, model, build, machine, batch, threads, ranks, steps, samples_per_s)"
                        " VALUES (?, 1, ?, ?, 'done', 'tenon', 'mlp', '', '', 128, 1, 1, 200, ?)", (label + str(r), r + 1, label, 128e3 / sum(ms.values()))).lastrowid
        d.executemany("INSERT INTO layer (run, position, layer, kernel, place, ms) VALUES (?, ?, ?, ?, 'mlp.tn:8', ?)",
                      [(run, i, layer, layer + "_1", ms[layer]) for i, layer in enumerate(ms)])
d.commit()
END
    # fixed TEXT CODE LABEL LINES OPTIONS...: the exit code of a comparison with `old`, and the lines after the head
    fixed() {
        local text=$1 code=$2 label=$3 lines=$4 rc=0; shift 4
        "$TENON" results compare old "$label" --store fixed.db "$@" > out 2>&1 || rc=$?
        same "$text" "$rc $(sed '1d; s/; .*//; s/^mlp.*  //' out)" "$code $lines"
    }
    fixed "10 % of a layer" 1 slow $'SLOWER\n    dense1, dense1_1, mlp.tn:8: +0.050 ms a step (+10 %)\n1 compared: 1 slower, 0 faster'
    fixed "10 % of a layer below the floor" 0 slow $'no change\n1 compared: 0 slower, 0 faster' --floor 12
    fixed "equal builds" 0 equal $'no change\n1 compared: 0 slower, 0 faster'

    python3 -c '
import sqlite3, time
d = sqlite3.connect("store.db", isolation_level=None)
d.execute("BEGIN EXCLUSIVE"); open("locked", "w"); time.sleep(60)' & pid=$!
    for ((i = 0; i < 100; i++)); do [ -e locked ] && break; sleep 0.1; done
    refuses "a locked store" "the store store.db is locked by another program" sweep mlp.tn --store store.db --label three --batch 50 --threads 1 --repeat 1 "${quick[@]}"
    kill $pid; wait $pid 2> /dev/null || true
else
    skip "no python3 with sqlite3"
fi
mkdir two.db.work
(flock 9; touch taken; sleep 60) 9> two.db.work/lock & pid=$!
for ((i = 0; i < 100; i++)); do [ -e taken ] && break; sleep 0.1; done
refuses "two sweeps into one store" "another sweep is at work on two.db" sweep mlp.tn --store two.db "${quick[@]}"
cc -shared -fPIC -O1 -o faults.so "$TENON_ROOT/tests/tools/faults.c" -ldl
refuses "a store where files cannot be locked" "cannot lock nolock.db.work/lock: Function not implemented" env LD_PRELOAD="$work/faults.so" FAULT_FLOCK=38 "$TENON" sweep mlp.tn --store nolock.db "${quick[@]}"
kill $pid; wait $pid 2> /dev/null

# A full disk: no file may grow beyond the size of this store and a little more.
succeeds "a store to be filled" sweep mlp.tn --store full.db --batch 50 --threads 1 --repeat 2 "${quick[@]}"
size=$(stat -c %s full.db)
(ulimit -f $((size / 1024)); sweep mlp.tn --store full.db --batch 50 --threads 1 --repeat 20 --layers yes "${quick[@]}") > out 2> err || true
grep -Eq "error: cannot (write|open|read) the store full.db|No space|too large" err && ok || bad "a full disk: $(cat out err)"
same "what was stored before the disk was full" "$("$TENON" results list --store full.db | tail -n +2 | wc -l | awk '{ print ($1 >= 2) }')" 1
refuses "a directory that is not there" "there is no directory nowhere for the store nowhere/s.db" sweep mlp.tn --store nowhere/s.db
refuses "a directory as a store" "small is a directory, not a store" sweep mlp.tn --store small
refuses "a directory to read" "small is a directory, not a store" "$TENON" results list --store small

# Files that may not be written; root may write everything, so another user does it.
as_other=()
[ "$(id -u)" != 0 ] || as_other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
chmod 755 "$work"
if "${as_other[@]}" test -r "$work/store.db" -a -x "$TENON" 2> /dev/null; then
    mkdir shut
    cp store.db shut
    chmod a-w shut/store.db shut
    refuses "a read-only store" "the store shut/store.db cannot be written" "${as_other[@]}" "$TENON" sweep "${plan[@]}" --store shut/store.db --repeat 9
    refuses "a new store in a directory that cannot be written" "cannot make the store shut/new.db: its directory cannot be written" \
        "${as_other[@]}" "$TENON" sweep "${plan[@]}" --store shut/new.db
    succeeds "reading a read-only store" "${as_other[@]}" "$TENON" results table --store shut/store.db
    chmod u+w shut
else
    skip "no other user who could reach tenon here"
fi

# A real slow-down: dense1 of the MLP takes eleven times as long.  No noise makes a run of one build as fast as a run of
# the other, so four runs of each are enough, and the builds need not take turns.  bench/alarms measures on a quiet
# machine whether a slow-down of 10 % is found, and how often equal builds differ.
if deep "a planted slow-down"; then
    root=$TENON_ROOT
    . "$root/bench/plant.sh"
    plant fast 0
    plant slow 1000
    for build in fast slow; do
        succeeds "four runs of $build" $build/tenon sweep mlp.tn --steps 200 --threads 1 --layers yes --repeat 4 --retries 0 --label $build --store planted.db
    done
    "$TENON" results compare fast slow --store planted.db > compare && bad "the exit code of a slow-down is 0" || ok
    grep -q '^1 compared: 1 slower, 0 faster' compare && ok || bad "the step is not slower: $(cat compare)"
    # Other layers can follow, because of noise and because the repeated work fills the caches.  Lines are in order of ms.
    grep -m 1 '^    ' compare | grep -Eq '^    dense1, dense_sparse_1, mlp.tn:[0-9]+: \+.*\(\+[0-9]{3,} %\)$' && ok ||
        bad "the planted slow-down is not found: $(cat compare)"
fi
finish
