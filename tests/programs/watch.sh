#!/usr/bin/env bash
# watch.sh -- tenon watch: curves in the terminal, a log that grows, and event files that TensorBoard reads (--deep: its own package).
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$work"
export COLUMNS=80
[ -x "$(dirname "$TENON")/tenon-bench" ] || { skip "tenon watch: this build has no tenon-bench"; finish; exit; }

# records FIRST LAST: epochs of a training whose test loss is 1/epoch
start() { echo "{\"event\":\"start\",\"model\":\"net\",\"batch\":10,\"epochs\":$1,\"samples\":100,\"epoch\":$2,\"step\":0}"; }
records() { awk -v first="$1" -v last="$2" 'BEGIN { for (e = first; e <= last; e++) printf "{\"event\":\"epoch\",\"epoch\":%d,\"samples\":100,\"seconds\":2.0,\"samples_per_s\":50.0,\"lr\":0.1,\"train_loss\":%.9g,\"train_accuracy\":%.9g,\"test_loss\":%.9g,\"test_accuracy\":%.9g}\n", e, 2 / e, 1 - 2 / (e + 2), 1 / e, 1 - 1 / (e + 1) }'; }
ended() { echo '{"event":"end","seconds":16.0,"epochs":8}'; }
{ start 8 0; records 1 8; ended; } > a.jsonl
{ start 8 0; records 1 3; } > b.jsonl

succeeds "one run" "$TENON" watch a.jsonl --once
grep -qx "a: net, epoch 8 of 8, 50 samples/s, ended after 16 s" "$work/out" && ok || bad "the line of a run: $(head -n 1 "$work/out")"
grep -qx "    loss 0.25, accuracy 0.8, test loss 0.125, test accuracy 0.8889" "$work/out" && ok || bad "the numbers of a run: $(sed -n 2p "$work/out")"
succeeds "two runs" "$TENON" watch a.jsonl b.jsonl
grep -qx "b B  b: net, epoch 3 of 8, 50 samples/s, 10 s left" "$work/out" && ok || bad "a run that goes on: $(cat "$work/out")"

# The chart of the loss: from 2 to 0.125 over epochs 1 to 8, the training set above the test set.
sed -n '/^ *loss, logarithmic$/,/epoch 1/p' "$work/out" > chart
same "largest and smallest loss" "$(sed -n '2p;13p' chart | awk '{ print $1 }' | tr '\n' ' ')" "2 0.125 "
same "the middle of a logarithmic axis" "$(sed -n 8p chart | awk '{ print $1 }')" 0.4408
grep -q '^ *accuracy$' "$work/out" && ok || bad "the axis of accuracy is not linear: $(grep accuracy "$work/out")"
same "the first line of the chart" "$(sed -n 2p chart)" "       2 |bb"
awk 'length > 79 { exit 1 }' "$work/out" && ok || bad "a line is longer than 79: $(awk 'length > 79' "$work/out")"
grep -q 'A$' <(sed -n 13p chart) && ok || bad "the test loss does not end at the lower right: $(cat chart)"
for width in 20 40 200; do
    COLUMNS=$width "$TENON" watch a.jsonl b.jsonl > shown
    awk -v w=$width 'length >= w { exit 1 }' shown && ok || bad "a line does not fit $width columns: $(awk -v w=$width 'length >= w' shown)"
done
for width in 0 -5 wide; do same "\$COLUMNS is $width" "$(COLUMNS=$width "$TENON" watch a.jsonl | cksum)" "$(COLUMNS=100 "$TENON" watch a.jsonl | cksum)"; done
LC_ALL=C.UTF-8 "$TENON" watch a.jsonl | grep -q '⠤' && ok || bad "no Braille with UTF-8"
LC_ALL=C.UTF-8 "$TENON" watch a.jsonl b.jsonl --color always | grep -q "$(printf '\033')\[32m" && ok || bad "no colour of the second run"

# A validation split, further metrics, the best epoch, and the metrics of the weights that the run leaves.
{ start 4 0
  awk 'BEGIN { for (e = 1; e <= 4; e++) printf "{\"event\":\"epoch\",\"epoch\":%d,\"seconds\":2.0,\"train_loss\":%g,\"train_accuracy\":0.5,\"validation_loss\":%g,\"validation_accuracy\":0.75,\"validation_auc\":%g,\"test_loss\":%g,\"test_accuracy\":0.25,\"test_auc\":%g,\"best_epoch\":%d}\n", e, 8 / e, 4 / e, e / 8, 2 / e, e / 5, e < 3 ? e : 3 }'
  echo '{"event":"best","epoch":3,"result":"validation_loss","value":1}'; echo '{"event":"metrics","test_precision":0.625}'; ended; } > v.jsonl
COLUMNS=200 succeeds "a validation split" "$TENON" watch v.jsonl --tensorboard valid
grep -qx "v: net, epoch 4 of 4, best epoch 3, ended after 8 s" "$work/out" && ok || bad "the best epoch: $(head -n 1 "$work/out")"
same "numbers of all splits" "    loss 2, accuracy 0.5, validation loss 1, validation accuracy 0.75, validation auc 0.5, test loss 0.5, test accuracy 0.25, test auc 0.8, test precision 0.625" "$(sed -n 2p "$work/out")"
same "the charts" "loss accuracy auc" "$(sed -n 's/^ \{9\}\([a-z]*\)[, a-z]*$/\1/p' "$work/out" | xargs)"
sed -n '/^ *auc$/,/epoch 1/p' "$work/out" > chart
same "auc: both splits" "1 A" "$(sed '1d;$d; s/^[^|]*|//' chart | fold -w 1 | sort -u | xargs)"
grep -q "capitals: test set, digits: validation" "$work/out" && ok || bad "the legend: $(sed -n 3p "$work/out")"
same "event files of a validation split" "test train validation" "$(ls valid/v | xargs)"
# A line that is too long goes on in the next one, and no value is cut off.
for width in 24 30 40 50 60 70; do
    COLUMNS=$width "$TENON" watch v.jsonl > shown
    same "all values on $width columns" "v: net epoch 4 of 4 best epoch 3 ended after 8 s loss 2 accuracy 0.5 validation loss 1 validation accuracy 0.75 validation auc 0.5 test loss 0.5 test accuracy 0.25 test auc 0.8 test precision 0.625" \
        "$(sed '/small letters/,$d' shown | tr -d ',' | xargs)"
    same "the legend on $width columns" "small letters: training set capitals: test set digits: validation" "$(sed '1,/precision/d; /^ *loss/,$d' shown | grep -v '^ *0.625$' | tr -d ',' | xargs)"
    awk -v w=$width 'length >= w { exit 1 }' shown && ok || bad "a line does not fit $width columns: $(awk -v w=$width 'length >= w' shown)"
done
# Records of steps, numbers that are not finite, and a run that was resumed from its fourth epoch.
{ start 8 0
  for i in $(seq 1 50); do echo "{\"event\":\"step\",\"step\":$i,\"samples\":10,\"train_loss\":$((100 - i)),\"train_accuracy\":null}"; done
  records 1 5; start 8 4; records 5 8; ended; } > c.jsonl
succeeds "a resumed run" "$TENON" watch c.jsonl
grep -q "^c: net, epoch 8 of 8" "$work/out" && ok || bad "a resumed run: $(head -n 2 "$work/out")"
printf '%s\n' '{"event":"start","model":"net","epochs":1e15}' '{"event":"epoch","epoch":1,"seconds":1e15,"train_loss":1}' > long.jsonl
succeeds "numbers too large for a count of seconds" "$TENON" watch long.jsonl
grep -q "11574074074.1 days left$" "$work/out" && ok || bad "numbers too large for a count of seconds: $(cat "$work/out")"
touch empty.jsonl
succeeds "an empty log" "$TENON" watch empty.jsonl
grep -q "no record of a training yet" "$work/out" && ok || bad "an empty log: $(cat "$work/out")"
printf '{"event":"start","model":"net"' > half.jsonl
succeeds "a line that is not complete" "$TENON" watch half.jsonl

printf '%s\n' '{"event":"start","model":"a\u001b[2J\nb","epochs":2}' > control.jsonl
succeeds "control characters in a name" "$TENON" watch control.jsonl
same "control characters in a name" "$(head -n 1 "$work/out")" "control: a?[2J?b, epoch 0 of 2"

TERM=dumb python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$TENON" watch b.jsonl > "$work/out"
grep -q "epoch 3 of 8" "$work/out" && ! grep -q "$(printf '\033')" "$work/out" && ok || bad "a terminal without controls: $(cat "$work/out")"
refuses "no log" "tenon watch needs a log" "$TENON" watch
refuses "a log twice" "a.jsonl is given twice" "$TENON" watch a.jsonl a.jsonl
refuses "a log that is not there" "cannot read no.jsonl: No such file" "$TENON" watch no.jsonl
refuses "a directory" "it is a directory" "$TENON" watch .
refuses "a model as a log" "lenet.tn:1: this is no log record" "$TENON" watch "$TENON_ROOT/models/lenet.tn"
{ start 8 0; echo '{"event":"epoch",'; } > broken.jsonl
refuses "a broken line" "broken.jsonl:2: this is no log record" "$TENON" watch broken.jsonl --once
truncate -s 1G endless.jsonl
refuses "a line without an end" "endless.jsonl:1: this is no log record" "$TENON" watch endless.jsonl
refuses "an unknown option" "did you mean '--once'" "$TENON" watch a.jsonl --onc

# A log that grows, on a terminal: it is drawn again, and watch ends when the run has ended.
cat > screen.py << 'END'
import fcntl, os, pty, re, select, struct, sys, termios, time

pid, terminal = pty.fork()
if pid == 0:
    os.environ.pop("COLUMNS")
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "watch", "grows.jsonl", "--tensorboard", "live"])
seen = b""
def size(columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
def until(text):
    global seen
    end = time.time() + 60
    while text not in seen:
        if not select.select([terminal], [], [], max(0, end - time.time()))[0]:
            sys.exit(f"'{text}' is missing in {seen}")
        seen += os.read(terminal, 65536)
    seen = seen[seen.index(text):]
def finish():
    global seen
    until(b"ended after")
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    print(max(len(line) for line in re.sub("\033\\[[0-9;]*[A-Za-z]", "", seen.decode().replace("\r", "")).split("\n")[1:]))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
cat > follow.py << 'END'
from screen import *

size(100)
more = open("more.jsonl").read().splitlines(True)
until(b"epoch 3 of 8")
with open("grows.jsonl", "a") as log:
    log.write(more[0][:40]); log.flush(); time.sleep(0.7)
    log.write(more[0][40:]); log.flush()
    until(b"epoch 4 of 8")
    size(70)
    until(b"\033[H\033[2J")                              # a narrower terminal is drawn anew
    log.writelines(more[1:])
finish()
END
cp b.jsonl grows.jsonl
{ records 4 8; ended; } > more.jsonl
LC_ALL=C succeeds "a log that grows" python3 -B follow.py "$TENON"
[ "$(cat "$work/out")" -lt 70 ] && ok || bad "a line of $(cat "$work/out") on 70 columns"

# Event files: each record with its checksums, and the numbers of the log.
cat > events.py << 'END'
import glob, struct, sys

table = []
for i in range(256):
    c = i
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    table.append(c)
def masked(data):
    c = 0xFFFFFFFF
    for b in data:
        c = table[(c ^ b) & 255] ^ c >> 8
    c ^= 0xFFFFFFFF
    return ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF
assert masked(b"123456789") == (((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF)   # the check value of CRC-32C
def varint(b, i):
    v = s = 0
    while True:
        v |= (b[i] & 127) << s; s += 7; i += 1
        if b[i - 1] < 128:
            return v, i
def fields(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        kind = key & 7
        if kind == 0:
            v, i = varint(b, i)
        elif kind == 2:
            n, i = varint(b, i)
            v, i = b[i:i + n], i + n
        else:
            n = 8 if kind == 1 else 4
            v, i = struct.unpack("<d" if n == 8 else "<f", b[i:i + n])[0], i + n
        yield key >> 3, v
for path in sorted(glob.glob(sys.argv[1] + "/*/events.out.tfevents.*")):
    data, first = open(path, "rb").read(), True
    while data:
        n, = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked(data[:8])
        assert struct.unpack("<I", data[12 + n:16 + n])[0] == masked(data[12:12 + n])
        event, data = dict(fields(data[12:12 + n])), data[16 + n:]
        assert 1e9 < event[1] < 1e10
        assert first == (3 in event) and (not first or event[3] == b"brain.Event:2")
        first = False
        if 5 in event:
            value = dict(fields(dict(fields(event[5]))[1]))
            print(path.split("/")[-2], value[1].decode(), event[2], "%.5g" % value[2])
        if 7 in event:
            print(path.split("/")[-2], "restart", event[2])
END
succeeds "event files" "$TENON" watch a.jsonl c.jsonl --once --tensorboard events
same "files" "$(find events -type f | sort | tr '\n' ' ')" "$(for f in a/test a/train c/steps c/test c/train; do printf 'events/%s/events.out.tfevents.0.tenon ' $f; done)"
succeeds "event files are read" python3 -B events.py events/a
cp "$work/out" read
for line in "train epoch/loss 1 2" "train epoch/accuracy 8 0.8" "test epoch/loss 8 0.125" "test epoch/accuracy 1 0.5" "train epoch/lr 3 0.1" "train epoch/samples_per_s 8 50"; do
    grep -qx "$line" read && ok || bad "no event '$line'"
done
same "events" "$(wc -l < read | tr -d ' ')" $((8 * 6))
succeeds "events of a resumed run" python3 -B events.py events/c
same "epochs of a resumed run" "$(sed -n 's,^test epoch/loss \([0-9]*\) .*,\1,p' "$work/out" | tr '\n' ' ')" "1 2 3 4 5 6 7 8 "
same "steps" "$(grep -c '^steps step/loss ' "$work/out")" 40
[ "$(grep -c accuracy <(grep '^steps' "$work/out"))" = 0 ] && ok || bad "null is an event"
succeeds "a second conversion" "$TENON" watch a.jsonl --once --tensorboard events
same "a second conversion" "$(python3 -B events.py events/a | cksum)" "$(cksum < read)"
same "events of a log that has grown" "$(python3 -B events.py live/grows | sort | cksum)" "$(sort read | cksum)"

# A resumed run while watch follows: the replaced epochs are taken back before the new ones.
{ start 8 0; records 1 6; } > grows.jsonl
{ start 8 4; records 5 8; ended; } > more.jsonl
sed -i 's/epoch 3 of 8/epoch 6 of 8/; s/epoch 4 of 8/epoch 4 of 8/; s/\[:40\]/[:20]/; s/\[40:\]/[20:]/' follow.py
rm -r live
LC_ALL=C succeeds "a resumed run that grows" python3 -B follow.py "$TENON"
same "what is taken back" "$(python3 -B events.py live/grows | grep restart | sort | tr '\n' ' ')" "test restart 5 train restart 5 "
cp -r live/grows taken_back
# Another log replaces the one that watch follows: its records replace all others, also those of sets that it has not.
{ start 8 0; echo '{"event":"step","step":5,"samples":10,"train_loss":3}'; records 1 6; } > grows.jsonl
{ start 8 0; records 1 2; ended; } > new.jsonl
cat > replace.py << 'END'
from screen import *

size(100)
until(b"epoch 6 of 8")
os.rename("new.jsonl", "grows.jsonl")
until(b"epoch 2 of 8")
finish()
END
LC_ALL=C succeeds "a log that is replaced" python3 -B replace.py "$TENON"
same "epochs of a log that was replaced" "$(python3 -B events.py live/grows | grep loss | tr '\n' ' ')" "test epoch/loss 1 1 test epoch/loss 2 0.5 train epoch/loss 1 2 train epoch/loss 2 1 "
mkdir -p other
cp a.jsonl other/
succeeds "two logs of one name" "$TENON" watch a.jsonl other/a.jsonl --tensorboard named
same "their directories" "$(ls named | tr '\n' ' ')" "a.jsonl other_a.jsonl "
cp a.jsonl other_a.jsonl
succeeds "two names with one directory" "$TENON" watch a.jsonl other/a.jsonl other_a.jsonl --tensorboard unique
same "their directories" "$(ls unique | tr '\n' ' ')" "a.jsonl other_a.jsonl other_a.jsonl-2 "
touch plain
refuses "event files in a file" "cannot write plain/a/train: " "$TENON" watch a.jsonl --once --tensorboard plain

if deep "event files in TensorBoard"; then
    venv=${TENON_TENSORBOARD_VENV:-$work/venv}
    [ -x "$venv/bin/tensorboard" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --only-binary :all: tensorboard; } > "$work/pip" 2>&1 || true
    if "$venv/bin/python" -c 'import tensorboard' 2> /dev/null; then
        cat > board.py << 'END'
import sys
from tensorboard.backend.event_processing import event_accumulator

for run in "train", "test":
    events = event_accumulator.EventAccumulator(f"{sys.argv[1]}/{run}")
    events.Reload()
    for tag in sorted(events.Tags()["scalars"]):
        for e in events.Scalars(tag):
            print(run, tag, e.step, "%.5g" % e.value, file=open("board", "a"))
END
        succeeds "TensorBoard reads event files" "$venv/bin/python" -B board.py events/a
        same "what TensorBoard reads" "$(sort board | cksum)" "$(sort read | cksum)"
        rm board
        succeeds "TensorBoard reads a resumed run" "$venv/bin/python" -B board.py taken_back
        same "what TensorBoard reads of a resumed run" "$(sort board | cksum)" "$(sort read | cksum)"
    else skip "TensorBoard cannot be installed: $(tail -n 1 "$work/pip")"; fi
fi
finish
