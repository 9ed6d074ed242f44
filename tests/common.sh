# common.sh -- sourced by all test scripts: a scratch directory, counters, and the compiler to test.
#
#   TENON             the compiler (default build/tenon)
#   TENON_ROOT        the repository
#   TENON_TEST_DATA   a directory with data sets that are too large for the repository (cifar10/); without it, tests of them are skipped
#   CHECK_DEEP=1      also runs longer tests (./check --deep)
#   CHECK_PART        the part to run of a script with "# Parts: NAME..." in its head (default: all parts)
#   $work             the scratch directory, removed at the end
#
# `ok` and `bad TEXT` count one check each; `finish` prints "N passed, N failed[, N skipped]" and sets the exit code.
TENON_ROOT=${TENON_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
TENON=${TENON:-$TENON_ROOT/build/tenon}
CHECK_DEEP=${CHECK_DEEP:-0}
TENON_TEST_DATA=${TENON_TEST_DATA:-}
export LC_ALL=C
unset TENON_DATA
passed=0 failed=0 skipped=0
if [ -n "${CHECK_SCRATCH:-}" ]; then                      # ./check: the same name in each run, so that calls can be repeated
    work=$CHECK_SCRATCH
    rm -rf "$work"
    mkdir -p "$work"
    unset CHECK_SCRATCH                                   # a test that this test starts makes its own
else
    work=$(mktemp -d)
fi
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config                   # ranks keep here the secret by which they recognise each other
[ -x "$TENON" ] || { echo "FAIL no compiler at $TENON"; exit 1; }

ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
skip() { skipped=$((skipped + 1)); echo "SKIP $*"; }
finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ $failed = 0 ]; }

# deep WHAT: whether the long tests of WHAT run; if not, they count as one skipped test
deep() { [ "$CHECK_DEEP" = 1 ] || { skip "$*: ./check --deep"; return 1; }; }

# part NAME: whether this part of the script runs.  ./check runs each part as a separate test, so that a change
# repeats only the parts that it can touch.
part() { [ -z "${CHECK_PART:-}" ] || [ "$CHECK_PART" = "$1" ]; }

# same TEXT A B: both strings are equal and not empty
same() { if [ -n "$2" ] && [ "$2" = "$3" ]; then ok; else bad "$1: '$2' and '$3'"; fi; }

# succeeds TEXT COMMAND...: the exit code is 0; else the output is shown
succeeds() {
    local text=$1; shift
    if "$@" > "$work/out" 2>&1; then ok; else bad "$text: exit code $? of: $*"; tail -n 12 "$work/out"; fi
}

# refuses TEXT PATTERN COMMAND...: the exit code is 1 (not a signal), and stderr matches PATTERN
refuses() {
    local text=$1 pattern=$2 rc=0; shift 2
    "$@" > "$work/out" 2> "$work/err" < /dev/null || rc=$?
    if [ $rc != 1 ]; then bad "$text: exit code $rc, not 1, of: $*"; tail -n 5 "$work/err"
    elif ! grep -Eq -e "$pattern" "$work/err"; then bad "$text: the message does not match '$pattern':"; tail -n 5 "$work/err"
    else ok; fi
}

# stopped_by_sigterm PROGRAM OPTIONS...: sends SIGTERM after the first checkpoint in $work/c, a directory that is
# emptied first
stopped_by_sigterm() {
    local job rc=0
    rm -rf "$work/c"
    "$@" --checkpoint "$work/c" > /dev/null 2> "$work/err" & job=$!
    for _ in $(seq 400); do compgen -G "$work/c/*.safetensors" > /dev/null && break; sleep 0.05; done
    kill -TERM $job
    wait $job || rc=$?
    same "stopped" 75 $rc
    grep -q "stopped by SIGTERM in epoch .*; saved in" "$work/err" && ok || bad "what SIGTERM says: $(cat "$work/err")"
}

# build MODEL PROGRAM OPTIONS...: a failure ends the test, because nothing after it would be meaningful
build() {
    local model=$1 program=$2; shift 2
    "$TENON" build "$TENON_ROOT/models/$model.tn" -o "$program" "$@" && return
    bad "tenon build models/$model.tn $*"; finish; exit 1
}

# headers_used FILE: the headers of the kernels that a generated C file calls, according to the compiler's table.  A
# test that reads only these headers stays valid when other kernels change (tests/check/kept.c).
headers_used() {
    printf 'cpu/%s.h\n' vec math input output dense_input dense_wide conv_dw_units update
    awk '
        FNR == NR {
            if (match($0, /\{"[a-z_0-9]+", "cpu\/[a-z_0-9]+\.h"/)) {
                split(substr($0, RSTART, RLENGTH), part, "\"")
                prefix[++n] = part[2]
                header[n] = part[4]
            }
            next
        }
        /^ *(\/\*|\* )/ { next }                           # a comment: the line of the model
        {
            while (match($0, /[A-Za-z_0-9]+\(/)) {
                word = substr($0, RSTART, RLENGTH - 1)
                $0 = substr($0, RSTART + RLENGTH)
                if (word ~ /^conv2d.*_[0-9]+$/) continue  # a function of this file, perhaps around conv2d_plain
                for (i = 1; i <= n && index(word, prefix[i]) != 1; i++) { }
                if (i <= n && !(header[i] in used)) { used[header[i]]; print header[i] }
            }
        }' "$TENON_ROOT/compiler/cpu/unit.c" "$1"
}

# one_file FILE OPTIONS...: prints the C compiler's options for a file that `tenon emit` has written with OPTIONS, if
# the whole program is one file
one_file() {
    local flags="-std=gnu11 -ffp-contract=off -fno-math-errno -fno-trapping-math -I $TENON_ROOT/runtime -include rt.h"
    flags+=$(printf ' -include %s' $(headers_used "$1"))
    case " ${*:2} " in *" --dtype f64 "*) flags+=" -DRT_F64" ;; *" --dtype bf16 "*) flags+=" -DRT_BF16" ;; esac
    case " ${*:2} " in *" --cpu x86-64-v4 "*) flags+=" -march=x86-64-v4 -mprefer-vector-width=512" ;; *" --cpu x86-64-v3 "*) flags+=" -march=x86-64-v3" ;;
        *" --cpu armv8-a "*) flags+=" -march=armv8-a" ;; esac
    echo "$flags $1"
}

# witness MODEL.tn PROGRAM OPTIONS...: builds the plain program, which has reference kernels, as one file: a fifth of
# the time of `tenon build`
witness() {
    local model=$1 program=$2 xz=; shift 2
    rm -rf "$program.emitted"
    "$TENON" emit "$model" --to c -o "$program.emitted" --plain --cpu generic "$@" || return
    if grep -q rt_unpack_xz "$program.emitted"/*.c && echo 'int main(void) { return 0; }' | cc -x c - -o "$program.has" -llzma 2> /dev/null; then xz=-llzma; fi
    # shellcheck disable=SC2046,SC2086
    cc ${witness_level:-${TENON_CFLAGS:--O1}} $(one_file "$program.emitted"/*.c "$@") ${CHECK_LINKER:-} -o "$program" "$(dirname "$TENON")/lib/libtenonrt.a" -lz $xz -lm -lpthread
}

# running TEXT: prints the processes whose command line begins with TEXT, a regular expression, without zombies.  It starts no process:
# with three for each process of the machine, a wait for one took seconds of a processor.
running() {
    local p stat words
    for p in /proc/[0-9]*; do
        { mapfile -d '' -t words < "$p/cmdline" && read -r stat < "$p/stat"; } 2> /dev/null || continue
        stat=${stat##*) }
        ! [[ "${words[*]} " =~ ^$1 && $stat != Z* ]] || echo "${p#/proc/}"
    done
}

# recipe MODEL SAMPLES EPOCHS: prints a short train block for a model of three classes
recipe() {
    cat << END
train $1 {
    data      = synthetic(samples = $2, test_samples = 64, classes = 3)
    loss      = softmax_cross_entropy
    optimizer = rmsprop(lr = 0.01)
    batch     = 32
    shards    = 4
    epochs    = $3
}
END
}

# shipped_models: the model files, one on each line; networks whose kernels take a minute to compile only with
# CHECK_DEEP=1
shipped_models() {
    local file
    for file in "$TENON_ROOT"/models/*.tn; do
        case $CHECK_DEEP$file in 0*/resnet50*.tn | 0*/vgg*.tn | 0*/mobilenet*.tn | 0*/inception*.tn | 0*/densenet*.tn) ;; *) echo "$file" ;; esac
    done
}

# small_mnist DIR TRAIN TEST: writes the first samples of MNIST as plain IDX files, for short runs that start
# immediately
small_mnist() {
    local split count bytes
    mkdir -p "$1"
    for split in "train $2" "t10k $3"; do
        count=${split#* } split=${split% *}
        bytes=$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((count >> 24 & 255)) $((count >> 16 & 255)) $((count >> 8 & 255)) $((count & 255)))
        { printf "\\x00\\x00\\x08\\x03$bytes\\x00\\x00\\x00\\x1c\\x00\\x00\\x00\\x1c"
          gzip -dc "$TENON_ROOT/models/data/mnist/$split-images-idx3-ubyte.gz" 2> /dev/null | tail -c +17 | head -c $((count * 784)); } > "$1/$split-images-idx3-ubyte"
        { printf "\\x00\\x00\\x08\\x01$bytes"
          gzip -dc "$TENON_ROOT/models/data/mnist/$split-labels-idx1-ubyte.gz" 2> /dev/null | tail -c +9 | head -c "$count"; } > "$1/$split-labels-idx1-ubyte"
    done
}

# small_cifar DIR N TEST: writes files in CIFAR-10's format, five with N images and one with TEST.  Images are pieces
# of MNIST's images; the classes take turns.
small_cifar() {
    local file i count=$2
    mkdir -p "$1"
    for file in data_batch_{1..5} test_batch; do
        [ $file = test_batch ] && count=$3
        for ((i = 0; i < count; i++)); do
            printf "\\x0$((i * 7 % 10))"
            head -c 3072 <&3
        done > "$1/$file.bin"
    done 3< <(gzip -dc "$TENON_ROOT/models/data/mnist/train-images-idx3-ubyte.gz" 2> /dev/null | tail -c +3000)
}

# field LOG EVENT NAME: prints the values of a field in all records of one event, on one line
field() { { sed -n "/\"event\":\"$2\"/s/.*\"$3\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$1" || true; } | tr '\n' ' '; }
hashes() { field "$1" epoch weights_hash; }

# npy FILE DESCR SHAPE BYTES: writes an array of zeros in NumPy's format, version 1
npy() {
    local head="{'descr': '$2', 'fortran_order': False, 'shape': $3, }"
    printf '\223NUMPY\001\000\166\000%-117s\n' "$head" > "$1"
    head -c "$4" /dev/zero >> "$1"
}
