#!/usr/bin/env bash
# files.sh -- files that runs write are complete, readable, and never those of another run.  Tested with long names and flags, two runs
# that write one file, links and pipes at the path, runs that are killed while they write, disks that lose a bit, and file systems
# without locks or with a clock that is set back.
set -euo pipefail
# A background shell and nohup ignore signals that this script sends to its programs, and bash cannot undo that.
[ -z "$(trap -p HUP INT TERM)" ] || exec env --default-signal=HUP,INT,TERM "$BASH" "$0" "$@"
. "$(dirname "$0")/../common.sh"

cc -shared -fPIC -O1 -o "$work/faults.so" "$TENON_ROOT/tests/tools/faults.c" -ldl
faulty() { env LD_PRELOAD="$work/faults.so" "$@"; }

# tiny NAME FLAGS...: builds a program that compiles and trains in very short time
cat > "$work/tiny.tn" << 'END'
model tiny(x: f32[8]) { return dense(x, 16) |> tanh |> dense(3) }
train tiny { data = synthetic(samples = 64, test_samples = 16, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1, momentum = 0.9); batch = 16; epochs = 2 }
END
tiny() { local name=$1; shift; TENON_CFLAGS=-O0 "$TENON" build "$work/tiny.tn" -o "$work/$name" "$@" || { bad "tenon build tiny.tn $*"; finish; exit 1; }; }
tiny p
p=("$work/p" --threads 1)
nothing_left() { local left; left=$(find "$work" -name '*.tmp*' | head -n 3); [ -z "$left" ] && ok || { bad "$1: left behind: $left"; find "$work" -name '*.tmp*' -delete; }; }

# --- each written file can be read

many=()
for ((i = 0; i < 60; i++)); do many+=(--set epochs=2); done
tiny long "${many[@]}"
succeeds "a checkpoint of a program with 960 characters of flags" "$work/long" --threads 1 --checkpoint "$work/flags"
succeeds "which goes on" "$work/long" --threads 1 --checkpoint "$work/flags" --resume --epochs 3
grep -q "resumed from" "$work/out" && ! grep -q "damaged\|another build" "$work/out" && ok || bad "long flags: $(cat "$work/out")"

name=$(printf 'n%.0s' $(seq 120))
{
    printf 'block a%s(x) { inner%s = dense(x, 16); return inner%s }\n' "$name" "$name" "$name"
    printf 'block b%s(x) { middle%s = a%s(x); return middle%s }\n' "$name" "$name" "$name" "$name"
    printf 'model deep%s(x: f32[8]) { outer%s = b%s(x); return dense(outer%s, 3) }\n' "$name" "$name" "$name" "$name"
    sed -n '2s/tiny/deep'"$name"'/p' "$work/tiny.tn"
} > "$work/deep.tn"
TENON_CFLAGS=-O0 succeeds "names of 120 characters" "$TENON" build "$work/deep.tn" -o "$work/deep"
succeeds "a checkpoint of long names" "$work/deep" --threads 1 --checkpoint "$work/names" --save "$work/names.safetensors"
succeeds "which goes on" "$work/deep" --threads 1 --checkpoint "$work/names" --resume --epochs 3
grep -q "resumed from" "$work/out" && ok || bad "long names: $(cat "$work/out")"
succeeds "weights of long names" "$work/deep" test --weights "$work/names.safetensors"

# A disk loses a bit of the third checkpoint: it is read back before it gets its name, and the two checkpoints before
# it stay.
succeeds "two checkpoints" "${p[@]}" --checkpoint "$work/bits"
before=$(cd "$work/bits" && sha256sum ./*)
: > "$work/now"
refuses "a bit that is lost under a checkpoint" "step-00000012.safetensors cannot be written: what is read back is not what was written" \
    faulty FAULT_WRITE="$work/now" "${p[@]}" --checkpoint "$work/bits" --resume --epochs 4
same "the checkpoints before it" "$before" "$(cd "$work/bits" && sha256sum ./*)"
succeeds "the run goes on" "${p[@]}" --checkpoint "$work/bits" --resume --epochs 4
succeeds "weights" "${p[@]}" --save "$work/w"
before=$(sha256sum < "$work/w")
refuses "a bit that is lost under --save" "what is read back is not" faulty FAULT_WRITE="$work/now" "${p[@]}" --seed 2 --epochs 3 --save "$work/w" --checkpoint "$work/bits2"
same "the weights before it" "$before" "$(sha256sum < "$work/w")"

# A file of --save has a checksum.
size=$(stat -c %s "$work/w")
cp "$work/w" "$work/wrong"
printf '\x55\xaa' | dd of="$work/wrong" bs=1 seek=$((size - 9)) conv=notrunc status=none
refuses "weights with a wrong byte" "is damaged: its content does not match its checksum" "$work/p" test --weights "$work/wrong"

# Each read and write transfers a part of its bytes.
succeeds "short reads and writes" faulty FAULT_SHORT=1 FAULT_FLOCK=95 "${p[@]}" --save "$work/parts" --checkpoint "$work/parts.d"
same "the weights" "$(sha256sum < "$work/w")" "$(sha256sum < "$work/parts")"
succeeds "weights that are read in parts" faulty FAULT_SHORT=1 "${p[@]}" --checkpoint "$work/parts.d" --resume --epochs 3
grep -q "resumed from" "$work/out" && ! grep -q damaged "$work/out" && ok || bad "checkpoints in parts: $(cat "$work/out")"

# --- two runs with the same --save: both end without an error, and the file is one of the two, complete

pairs=6
[ "${CHECK_DEEP:-0}" = 1 ] && pairs=60
for seed in 1 2; do "${p[@]}" --seed $seed --epochs 6 --save "$work/alone-$seed" > /dev/null; done
alone=$(sha256sum < "$work/alone-1")$(sha256sum < "$work/alone-2")
for ((i = 0; i < pairs; i++)); do
    codes=
    "${p[@]}" --seed 1 --epochs 6 --save "$work/pair" > "$work/one" 2>&1 & one=$!
    "${p[@]}" --seed 2 --epochs 6 --save "$work/pair" > "$work/two" 2>&1 & two=$!
    for job in $one $two; do rc=0; wait $job || rc=$?; codes+=$rc; done
    [ $codes = 00 ] || { bad "pair $i: exit codes $codes: $(tail -n 1 "$work/one" "$work/two")"; continue; }
    [[ $alone == *"$(sha256sum < "$work/pair")"* ]] && ok || bad "pair $i: the file is neither run's"
    rm "$work/pair"
done
# The same with forced overlap: the second run writes and ends while the first one waits for its disk.
env LD_PRELOAD="$work/faults.so" FAULT_FSYNC="$work/waits" "${p[@]}" --seed 1 --epochs 6 --save "$work/pair" > /dev/null 2>&1 & one=$!
for ((i = 0; i < 200; i++)); do [ -e "$work/waits" ] && break; sleep 0.05; done
succeeds "a run while another writes the same file" "${p[@]}" --seed 2 --epochs 6 --save "$work/pair"
same "the file is that run's" "$(sha256sum < "$work/alone-2")" "$(sha256sum < "$work/pair")"
[ "$(find "$work" -name 'pair.tmp*' | wc -l)" = 1 ] && ok || bad "what the other writes was taken away"

# --- killed while writing: the next run removes the temporary file; a run that a signal ends removes it itself

kill -9 $one
wait $one 2> /dev/null || true
[ "$(find "$work" -name 'pair.tmp*' | wc -l)" = 1 ] && ok || bad "kill -9 left nothing to test with"
: > "$work/pair.tmp-0123456789abcdef-1-1-0"              # of another host: it is not known whether its run still lives
succeeds "the run behind it" "${p[@]}" --epochs 1 --save "$work/pair"
same "what is left" "$work/pair.tmp-0123456789abcdef-1-1-0" "$(find "$work" -name 'pair.tmp*')"
rm "$work"/pair.tmp*
for signal in HUP INT TERM; do
    rm "$work/waits"
    (trap - INT HUP TERM; exec env LD_PRELOAD="$work/faults.so" FAULT_FSYNC="$work/waits" "$work/p" grads --output "$work/grads") > /dev/null 2>&1 & one=$!
    for ((i = 0; i < 200; i++)); do [ -e "$work/waits" ] && break; sleep 0.05; done
    kill -$signal $one
    rc=0; wait $one || rc=$?
    same "exit code after SIG$signal" $rc $((128 + $(kill -l $signal)))
    nothing_left "SIG$signal"
done
rm "$work/waits"
(trap - INT HUP TERM; exec env LD_PRELOAD="$work/faults.so" FAULT_FSYNC="$work/waits" "${p[@]}" --checkpoint "$work/twice") > /dev/null 2>&1 & one=$!
for ((i = 0; i < 200; i++)); do [ -e "$work/waits" ] && break; sleep 0.05; done
kill -INT $one; sleep 0.2; kill -INT $one
rc=0; wait $one || rc=$?
same "exit code after a second Ctrl-C while a checkpoint is written" 130 $rc
nothing_left "a second Ctrl-C"

# --- file systems without locks: a directory still belongs to one run only

lockless=(env LD_PRELOAD="$work/faults.so" FAULT_FLOCK=95)
lease() { echo "tenon lease $1 beat $2 host elsewhere"; }
none() { [ ! -e "$1/.tenon-lease" ] && ok || bad "$2: the lease stays: $(cat "$1/.tenon-lease")"; }
forever=("${p[@]}" --epochs 100000000 --checkpoint-every 50)
alive() { local job; for job; do ! kill -0 "$job" 2> /dev/null || echo "$job"; done; }

# A lease of a host that has been silent for 20 s, and one of a host that continues: both are waited for while the
# tests below run.  Signals do not shorten the 20 s.
mkdir "$work/silent" "$work/alive"
began=$SECONDS
lease 0123456789abcdef-7-7 0000000003 > "$work/silent/.tenon-lease"
lease 0123456789abcdef-7-7 0000000003 > "$work/alive/.tenon-lease"
(rc=0; "${lockless[@]}" FAULT_SIGNALS=1 "${p[@]}" --checkpoint "$work/silent" > "$work/silent.out" 2>&1 || rc=$?; echo $((SECONDS - began)) > "$work/silent.seconds"; exit $rc) & silent=$!
"${lockless[@]}" "${p[@]}" --checkpoint "$work/alive" > "$work/alive.out" 2>&1 & alive=$!
# The system clock steps back by 1000 s before the first heartbeat: the heartbeat goes on.
env FAULT_CLOCK=1000 "${lockless[@]}" "${forever[@]}" --checkpoint "$work/set-back" > /dev/null 2>&1 & stepped=$!
for ((i = 0; i < 1200; i++)); do grep -q "waiting 20 s" "$work/alive.out" && break; sleep 0.05; done
lease 0123456789abcdef-7-7 0000000004 > "$work/alive/.tenon-lease"
beat() { sed -n 's/.* beat 0*\([1-9][0-9]*\) .*/\1/p' "$work/set-back/.tenon-lease" 2> /dev/null || true; }
for ((i = 0; i < 600; i++)); do [ "$(beat)" ] && break; sleep 0.05; done
beats=$(beat)
[ -n "$beats" ] && [ $((2 * beats)) -le $((SECONDS - began + 1)) ] && ok || bad "${beats:-no} heartbeats in $((SECONDS - began)) s after the clock was set back"
kill -TERM $stepped; wait $stepped 2> /dev/null || true

for error in 9 38 95; do                                 # EBADF, ENOSYS, ENOTSUP
    dir=$work/lease-$error
    env LD_PRELOAD="$work/faults.so" FAULT_FLOCK=$error "${forever[@]}" --checkpoint "$dir" > /dev/null 2>&1 & one=$!
    for ((i = 0; i < 200; i++)); do compgen -G "$dir/step-*.safetensors" > /dev/null && break; sleep 0.05; done
    if [ $error = 95 ]; then
        refuses "a second run without locks" "another run \\(process $one on .*\\) saves its checkpoints in" "${lockless[@]}" "${forever[@]}" --checkpoint "$dir" --resume
        refuses "a second run, where locks work again" "another run \\(process $one on " "${forever[@]}" --checkpoint "$dir" --resume
    fi
    kill -0 $one && grep -q "tenon lease .*-$one-" "$dir/.tenon-lease" && ok || bad "errno $error: the first run has no lease"
    if [ $error = 38 ]; then kill -TERM $one; else kill -9 $one; fi
    rc=0; wait $one 2> /dev/null || rc=$?
    [ $error != 38 ] || none "$dir" "SIGTERM"
    jobs=()
    rm -f "$work"/run-[1-4]
    for i in 1 2 3 4; do                                 # one of four runs takes the place of the dead one
        "${lockless[@]}" "${p[@]}" --epochs 100000000 --checkpoint-every 50 --checkpoint "$dir" --resume > "$work/run-$i" 2>&1 & jobs+=($!)
    done
    for ((i = 0; i < 2400; i++)); do left=$(alive "${jobs[@]}"); [ "$(wc -w <<< "$left")" -gt 1 ] || break; sleep 0.05; done
    same "errno $error: runs that say why they end" 3 "$(grep -l "error: another run" "$work"/run-[1-4] | wc -l)"
    # shellcheck disable=SC2086
    [ -z "$left" ] || kill -TERM $left
    codes=
    for job in "${jobs[@]}"; do rc=0; wait "$job" || rc=$?; codes+="$rc "; done
    same "errno $error: runs that go on" "1: 1 1 1 75" "$(wc -w <<< "$left"): $(tr ' ' '\n' <<< "$codes" | grep . | sort | xargs)"
    none "$dir" "errno $error"
done
succeeds "a run that ends" "${lockless[@]}" "${p[@]}" --checkpoint "$work/ends"
none "$work/ends" "an end"
refuses "a run that fails" "made with" "${lockless[@]}" "${p[@]}" --seed 9 --resume --checkpoint "$work/ends"
none "$work/ends" "a failure"
# Another run has taken the lease of a run: the run saves nothing more, and leaves that lease.
"${lockless[@]}" "${forever[@]}" --checkpoint "$work/lost" > /dev/null 2> "$work/err" & one=$!
for ((i = 0; i < 200; i++)); do compgen -G "$work/lost/step-*.safetensors" > /dev/null && break; sleep 0.05; done
lease 0123456789abcdef-7-7 0000000009 > "$work/mine"; mv "$work/mine" "$work/lost/.tenon-lease"
rc=0; wait $one || rc=$?
same "a run that has lost its lease" "1 1" "$rc $(grep -c "another run has taken .*lost" "$work/err")"
grep -q 0123456789abcdef-7-7 "$work/lost/.tenon-lease" && ok || bad "it took the other's lease away"
# A run was stopped for too long, and a signal ends it before it checks its lease.
(trap - HUP; exec "${lockless[@]}" "${forever[@]}" --checkpoint "$work/still") > /dev/null 2>&1 & one=$!
for ((i = 0; i < 200; i++)); do compgen -G "$work/still/step-*.safetensors" > /dev/null && break; sleep 0.05; done
kill -STOP $one; lease 0123456789abcdef-7-7 0000000009 > "$work/mine"; mv "$work/mine" "$work/still/.tenon-lease"
kill -HUP $one; kill -CONT $one; wait $one 2> /dev/null || true
grep -qs 0123456789abcdef-7-7 "$work/still/.tenon-lease" && ok || bad "a signal took the other's lease away"
rm -rf "$work/still"
rc=0; wait $alive || rc=$?
same "a run on another host that lives" "1 1" "$rc $(grep -c "another run (process 7 on elsewhere)" "$work/alive.out")"
rc=0; wait $silent || rc=$?
same "a run on another host that is silent" "0 1" "$rc $(grep -c "may belong to a run on another host" "$work/silent.out")"
[ "$(cat "$work/silent.seconds")" -ge 19 ] && ok || bad "a silent host was waited for for $(cat "$work/silent.seconds") s"
none "$work/silent" "a silent host"

# --- obstacles at the path of a file

mkfifo "$work/v.tmp" "$work/pipe"
echo mine > "$work/victim"
ln -s victim "$work/u.tmp"
succeeds "a pipe where earlier versions wrote first" timeout 60 "${p[@]}" --epochs 1 --save "$work/v"
succeeds "a link there" "${p[@]}" --epochs 1 --save "$work/u"
same "the link's target" mine "$(cat "$work/victim")"
refuses "a pipe" "is a device or a pipe, not a file" timeout 60 "${p[@]}" --epochs 1 --save "$work/pipe"
rm "$work/v.tmp" "$work/u.tmp"
mkdir "$work/there"
ln -s there/target "$work/link"; ln -s link "$work/link2"; ln -s circle "$work/circle"
succeeds "a link to nothing yet" "${p[@]}" --epochs 1 --save "$work/link2"
[ -L "$work/link2" ] && [ -L "$work/link" ] && [ -s "$work/there/target" ] && ok || bad "the links or their target"
refuses "links in a circle" "circle cannot be written: Too many levels" "${p[@]}" --epochs 1 --save "$work/circle"
rc=0; "${p[@]}" --epochs 1 --save /dev/stdout > "$work/redirected" 2> "$work/err" || rc=$?
same "standard output" "1 1" "$rc $(grep -c "is what this program's output goes to" "$work/err")"
rc=0; "${p[@]}" --epochs 1 --save /dev/stdout 2> "$work/err" | cat > /dev/null || rc=$?
same "a pipe as standard output" 1 "$(grep -c "is a device or a pipe" "$work/err")"
(umask 027; "${p[@]}" --epochs 1 --save "$work/mode" > /dev/null)
same "the umask's mode" 640 "$(stat -c %a "$work/mode")"
long=$(printf 'l%.0s' $(seq 250))
succeeds "a name as long as names may be" "${p[@]}" --epochs 1 --save "$work/$long" --checkpoint "$work/$long.d"
[ -s "$work/$long" ] && ok || bad "a long name"
nothing_left "what stands in the way"

# A pipe where a file is read: an immediate error, although nobody writes into the pipe.
mkdir "$work/piped" "$work/reads"; mkfifo "$work/piped/step-00000005.safetensors" "$work/reads/train_x.npy" "$work/reads/train-images-idx3-ubyte"
refuses "weights" "pipe cannot be read: it is not a safetensors file" timeout 20 "${p[@]}" --epochs 1 --weights "$work/pipe"
refuses "checkpoints" "step-00000005.safetensors is damaged .it is not a safetensors file" timeout 20 "${p[@]}" --epochs 1 --checkpoint "$work/piped" --resume
refuses "arrays" "train_x.npy is not a file" timeout 20 "${p[@]}" --epochs 1 --data "$work/reads"
rm "$work/reads/train_x.npy"
refuses "streams" "train-images-idx3-ubyte is not a file" timeout 20 "${p[@]}" --epochs 1 --data "$work/reads"

# Files of the compiler: a link stays, a pipe without a reader causes no wait, standard output is written.
draw() { "$TENON" show "$work/tiny.tn" --memory "$1"; }
ln -s picture "$work/to-picture"
succeeds "a picture through a link" draw "$work/to-picture"
[ -L "$work/to-picture" ] && [ -s "$work/picture" ] && ok || bad "a link of the compiler's"
export -f draw; export work
refuses "a picture into a pipe that nobody reads" "cannot write .*pipe: No such device" timeout 20 bash -c 'draw "$work/pipe"'
[ -p "$work/pipe" ] && ok || bad "the pipe was replaced"
draw /dev/stdout | cat > "$work/redirected"
grep -q "<svg" "$work/redirected" && ok || bad "a picture on standard output"
draw /dev/stdout > "$work/redirected"
grep -q "<svg" "$work/redirected" && grep -q planned "$work/redirected" && ok || bad "a picture and a table in one file"
succeeds "a long name" draw "$work/$long"
nothing_left "the compiler"
finish
