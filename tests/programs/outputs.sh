#!/usr/bin/env bash
# outputs.sh -- logs, pipes and standard descriptors that cannot be written: the run continues, can be stopped, and reports it once.
set -uo pipefail
. "$(dirname "$0")/../common.sh"

cat > "$work/tiny.tn" << 'END'
model tiny(x: f32[4]) { return dense(x, 3) }
train tiny { data = synthetic(samples = 40, test_samples = 10, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 8; epochs = 20 }
END
TENON_CFLAGS=-O1 "$TENON" build "$work/tiny.tn" -o "$work/p" || { bad "tenon build tiny.tn"; finish; exit 1; }
cd "$work" || exit 1
endless=(--threads 1 --epochs 100000000 --checkpoint)

# records TEXT LOG EPOCHS: the log has the records of that many epochs, or of any number, and nothing else
records() {
    if grep -avq '^{"event":.*}$' "$2"; then bad "$1: $(grep -av '^{"event":.*}$' "$2" | head -n 1)"
    else same "epochs in the log, $1" "${3:-$(grep -c '"event":"epoch"' "$2")}" "$(grep -c '"event":"epoch"' "$2")"; fi
}

# waits PID: waits until the process has used no processor time for 0.3 s, because it waits for a pipe
waits() {
    local before='' now=''
    for _ in $(seq 40); do
        now=$(cut -d ' ' -f 14,15 "/proc/$1/stat" 2> /dev/null)
        [ -n "$before" ] && [ "$now" = "$before" ] && return
        before=$now
        sleep 0.3
    done
}

# ends TEXT PID CODE: the process ends within five seconds, with that exit code
ends() {
    local rc=0
    for _ in $(seq 50); do kill -0 "$2" 2> /dev/null || break; sleep 0.1; done
    kill -9 "$2" 2> /dev/null
    wait "$2" || rc=$?
    same "exit code, $1" "$3" $rc
}

# stops TEXT PID DIRECTORY: SIGTERM, while the process waits, leaves a checkpoint from which a run continues
stops() {
    waits "$2"
    kill -TERM "$2"
    ends "$1" "$2" 75
    compgen -G "$3/step-*.safetensors" > /dev/null && ok || bad "no checkpoint, $1"
    "$work/p" --threads 1 --epochs 1 --checkpoint "$3" --resume > /dev/null 2> again && ok || bad "--resume, $1: $(cat again)"
}

# fill PIPE: fills the pipe; a reader that does not read is $reader
fill() {
    sleep 60 < "$1" & reader=$!
    timeout 0.5 cat /dev/zero > "$1"
}

# A full pipe: SIGTERM stops the run.
mkfifo full full-out full-both nobody gone
fill full
"$work/p" "${endless[@]}" c1 --log full > out 2> err & job=$!
stops "the log is a full pipe" $job c1
same "a note of the full pipe" 1 "$(grep -c "the log full is a pipe whose reader does not read" err)"
grep -q "stopped by SIGTERM .*; saved in c1" err && ok || bad "what SIGTERM says: $(cat err)"
kill $reader

fill full-out
"$work/p" "${endless[@]}" c2 --log c2.jsonl > full-out 2> err & job=$!
stops "standard output is a full pipe" $job c2
records "beside a full standard output" c2.jsonl
kill $reader

fill full-both
"$work/p" "${endless[@]}" c3 > full-both 2>&1 & job=$!
stops "standard output and stderr are a full pipe" $job c3
kill $reader

# A pipe that nobody has opened: the run waits for a reader, and can be stopped.
"$work/p" "${endless[@]}" c4 --log nobody > out 2> err & job=$!
for _ in $(seq 100); do grep -q "nobody reads: the run begins when a reader opens it" err && break; sleep 0.1; done
stops "the log is a pipe without a reader" $job c4
grep -q "nobody reads: the run begins when a reader opens it" err && ok || bad "what a run says that waits for a reader: $(cat err)"
cat nobody > read & reader=$!
"$work/p" --log nobody > out 2> err && ok || bad "a log that is a pipe: $(cat err)"
wait $reader
records "in a pipe" read 20
[ ! -s err ] && ok || bad "a log that is read: $(cat err)"

# A reader that ends: the run continues.
head -n 3 < gone > /dev/null &
"$work/p" --log gone --log-steps 1 --epochs 40 --save w.safetensors --checkpoint c5 > out 2> err
same "exit code without the log's reader" 0 $?
same "a note of the log's reader" 1 "$(grep -c "the log gone cannot be written: Broken pipe" err)"
[ -s w.safetensors ] && compgen -G "c5/step-*.safetensors" > /dev/null && ok || bad "no weights without the log's reader"
{ "$work/p" --log closed.jsonl --epochs 200 --seed 18446744073709551615 --save w2.safetensors 2> err; echo $? > code; } | head -n 1 > /dev/null
same "exit code without a pager" 0 "$(cat code)"
same "a note of the pager" 1 "$(grep -c "standard output cannot be written: Broken pipe; the run goes on" err)"
records "without a pager" closed.jsonl 200
same "a seed of 64 bits in the log" "18446744073709551615 " "$(field closed.jsonl start seed)"
[ -s w2.safetensors ] && ok || bad "no weights without a pager"
{ sleep 0.2; "$work/p" --log closed.jsonl > /dev/full 2>&1; echo $? > code; } | true
same "exit code without standard output and stderr" 0 "$(cat code)"
{ sleep 0.2; "$work/p" --data nowhere 2>&1; echo $? > code; } | true
same "exit code of an error that nobody reads" 1 "$(cat code)"
for word in info --help "predict --help"; do
    # shellcheck disable=SC2086
    { sleep 0.2; "$work/p" $word 2> err; echo $? > code; } | true
    case $(cat code) in 141 | 1) ok ;; *) bad "$word without a reader: exit code $(cat code)" ;; esac      # 1 where SIGPIPE is ignored
done

# A full disk, and a file that may not grow: no partial record stays, and the run continues.
if [ -c /dev/full ]; then
    "$work/p" --log /dev/full --log-steps 1 --save w3.safetensors --checkpoint c6 > out 2> err
    same "exit code with a full disk under the log" 0 $?
    same "a note of the full disk" 1 "$(grep -c "the log /dev/full cannot be written: No space left on device" err)"
    [ -s w3.safetensors ] && ok || bad "no weights with a full disk under the log"
    same "epochs are printed" 20 "$(grep -c ^epoch out)"
    "$work/p" > /dev/full 2> err
    same "exit code with a full disk under standard output" 0 $?
    same "a note of standard output" 1 "$(grep -c "standard output cannot be written: No space left on device; the run goes on" err)"
    for command in "test --weights w3.safetensors" "bench --steps 2"; do
        # shellcheck disable=SC2086
        refuses "$command with a full disk under its record" "the log /dev/full cannot be written: No space left" "$work/p" $command --log /dev/full
        [ -s out ] && ok || bad "$command prints nothing"
    done
fi
( ulimit -f 8; exec "$work/p" --log small.jsonl --log-steps 1 ) > out 2> err
same "exit code with a file that may not grow" 0 $?
grep -q "the log small.jsonl cannot be written: File too large" err && ok || bad "a file that may not grow: $(cat err)"
[ "$(stat -c %s small.jsonl)" -gt 7000 ] && ok || bad "a file that may not grow has $(stat -c %s small.jsonl) bytes"
records "in a file that may not grow" small.jsonl

# Closed descriptors: no file gets their numbers.
"$work/p" --epochs 3 --save s2.safetensors > out
for closed in "<&-" ">&-" "2>&-" "<&- >&- 2>&-"; do
    eval "\"\$work/p\" --log c.jsonl --epochs 3 --save s.safetensors $closed" > out 2> err
    rc=$?
    same "exit code with $closed" 0 $rc
    records "with $closed" c.jsonl 3
    cmp -s s.safetensors s2.safetensors && ok || bad "weights with $closed"
done
TENON_CFLAGS=-O1 "$TENON" build "$work/tiny.tn" -o q --no-cache <&- >&- 2>&-
same "exit code of tenon build without descriptors" 0 $?
cmp -s p q && ok || bad "tenon build without descriptors makes another program"
"$work/p" --epochs 1 --log bad.jsonl --data nowhere 2>&- > out
same "exit code of an error without stderr" 1 $?
"$work/p" info >&- 2> err
same "exit code of info >&-" 1 $?
grep -q "output could not be written" err && ok || bad "info >&-: $(cat err)"
finish
