# shim.sh -- sourced after common.sh: makes a program for a GPU run on the processor, with the CUDA runtime of fake.cpp and the fibers of shim.h.
#
#   shim_runtime                        once, before the first program
#   shim_nccl                           once, before programs of several ranks: $work/libnccl.so.2 is fake_nccl.cpp, libnccl-2.18.so an older one
#   shim NAME MODEL OPTIONS...          $work/NAME/gpu, and $work/NAME/cpu of the same model in plain C
#   near, steps, differs                compare the losses of the two
#   shim_gpu NAME MODEL OPTIONS...      $work/NAME/gpu alone; with --kernels=cudnn it uses the libraries fake_cublas.cpp and fake_cudnn.cpp
#   planned NAME MODEL OPTIONS...       the same, made by `tenon build`, with plans of fake_cudnn.cpp in it
#   barriers NAME SITES...              checks that each of these barriers is needed
#   shim_test NAME FILE OPTIONS...      $work/NAME, the program of one file that calls device functions
#   shim_cudnn                          after shim_runtime, for models with convolutions; returns 1 if there are no headers of cuDNN, else sets $cudnn_include to their directory
cuda=$TENON_ROOT/tests/cuda
[ "$CHECK_DEEP" = 1 ] && quick= || quick=-O0          # the shim_level of small programs, which compile longer than they run
shim_libraries="-lz -lpthread"
for l in lzma png turbojpeg; do echo 'int main(void) { return 0; }' | gcc -x c - -o "$work/has" -l$l 2> /dev/null && shim_libraries+=" -l$l" || true; done

# shim_once OUT COMMAND... FILE.cpp: COMMAND compiles a stand-in to OUT; under ./check the tests of one run share it (CHECK_STAND_INS, a
# directory).  Its name is a checksum of the command and of the repository's files that it reads.  No kernel is among these files, so after
# a change of a kernel, results of tests that do not run it stay valid.
shim_once() {
    local out=$1 key unknown stand_in; shift
    if [ -z "${CHECK_STAND_INS:-}" ]; then "$@" -o "$out"; return; fi
    key=$({ echo "$*" | sed "s#$work##g"; cat "${@: -1}" "$cuda"/{fake,fiber,limits,resources,rounded,shim,task}.h "$cuda"/include/* "$TENON_ROOT"/runtime/{constants,cuda/nccl_api}.h; } 2> /dev/null | cksum | tr ' ' '-')
    mkdir -p "$CHECK_STAND_INS"
    exec {stand_in}> "$CHECK_STAND_INS/$key.lock"         # tests that begin at the same time compile it once; without flock, each may compile it
    ! command -v flock > /dev/null || flock "$stand_in"
    if [ ! -f "$CHECK_STAND_INS/$key" ]; then
        "$@" -MMD -MF "$work/stand-in.d" -o "$work/stand-in.new"
        unknown=$(tr -s ' \\' '\n' < "$work/stand-in.d" | grep "^$TENON_ROOT/" | grep -vE '/tests/cuda/([a-z_]*\.cpp|(fake|fiber|limits|resources|rounded|shim|task)\.h|include/.*)$|/runtime/constants\.h$|/cuda/nccl_api\.h$' || true)
        [ -z "$unknown" ] || bad "shim_once must have $unknown in its key"
        mv "$work/stand-in.new" "$CHECK_STAND_INS/$key"
    fi
    exec {stand_in}>&-
    cp "$CHECK_STAND_INS/$key" "$out"
}

shim_runtime() {
    gcc -O1 -Wall -Wextra -Werror -I "$cuda/include" -I "$TENON_ROOT/runtime" -c "$TENON_ROOT/runtime/cuda/gpu.c" -o "$work/gpu.o"
    for file in fiber fake; do shim_once "$work/$file.o" g++ -std=c++20 -O2 -Wall -Wextra -Werror -I "$cuda/include" -c "$cuda/$file.cpp"; done
    shim_once "$work/libcublasLt.so.13" g++ -std=c++20 -O2 -Wall -Wextra -Werror -fPIC -shared -I "$cuda/include" "$cuda/fake_cublas.cpp"
    export TENON_CUBLASLT=$work/libcublasLt.so.13
}

shim_cudnn() {
    local dir at
    for dir in "$(sed -n 's/^CUDNN_INCLUDE:PATH=//p' "$(dirname "$TENON")/CMakeCache.txt" 2> /dev/null)" /usr/local/cuda/include /usr/include; do
        [ ! -e "$dir/cudnn_graph.h" ] || at=$dir
    done
    [ -n "${at:-}" ] || return 1
    cudnn_include=$at
    mkdir -p "$work/cudnn"
    for file in "$TENON_ROOT"/runtime/cuda/cudnn_*.c; do
        gcc -O1 -Wall -Wextra -Werror -I "$cuda/include" -isystem "$at" -I "$TENON_ROOT/runtime" -c "$file" -o "$work/cudnn/$(basename "$file" .c).o"
    done
    shim_once "$work/libcudnn.so.9" g++ -std=c++20 -O2 -Wall -Wextra -Werror -fPIC -shared -I "$cuda/include" -isystem "$at" "$cuda/fake_cudnn.cpp"
    export TENON_CUDNN=$work/libcudnn.so.9 TENON_CACHE=$work/cache  # plans of the fake are kept apart from those of cuDNN
}

shim_nccl() {
    shim_once "$work/libnccl.so.2" g++ -std=c++20 -O2 -Wall -Wextra -Werror -fPIC -shared -I "$cuda/include" -I "$TENON_ROOT/runtime" "$cuda/fake_nccl.cpp"
    shim_once "$work/libnccl-2.18.so" g++ -std=c++20 -O2 -Wall -Wextra -Werror -fPIC -shared -DFAKE_NCCL_18 -I "$cuda/include" -I "$TENON_ROOT/runtime" "$cuda/fake_nccl.cpp"
    export TENON_NCCL=$work/libnccl.so.2
}

shim() {
    shim_gpu "$@" || return
    witness "$2" "$work/$1/cpu" "${@:3}"
}

# shim_compile FILE.cu OPTIONS...: compiles it with $shim_level, or with the flags of other tests
shim_compile() {
    # shellcheck disable=SC2086
    g++ -std=c++20 ${shim_level:-${TENON_CFLAGS:--O1}} -ffp-contract=off -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-unused-function -x c++ -DRT_SHIM \
        -include "$cuda/shim.h" -I "$cuda/include" -I "$TENON_ROOT/runtime" -c "$@"
}

# kernels PATTERN FILES...: how many of Tenon's kernels have such a name, whether launched or part of a launch
kernels() { cat "${@:2}" | grep -cE "^(KERNEL|DEVICE void) ($1)_[0-9]+(_body)?\\(" || true; }

# Without an option --kernels it uses Tenon's own kernels (--kernels=own).
shim_gpu() {
    local dir=$work/$1 model=$2 f64= file link= kernels=--kernels=own; shift 2
    case " $* " in *" f64 "*) f64=-DRT_F64 ;; esac
    case " $* " in *" --kernels"*) kernels= ;; esac
    mkdir -p "$dir"
    rm -f "$dir"/*.o
    "$TENON" emit "$model" --to cuda -o "$dir" $kernels "$@" || return
    grep -q "link = &rt_nccl" "$dir"/*.cu && link="nccl nccl_api" && shim_compile "$TENON_ROOT/runtime/cuda/rank_sum.cu" $f64 -o "$dir/rank_sum.o"
    for file in $(sed -n 's/^#include "cuda\/\(cu[a-z]*\).h"/\1/p' "$dir"/*.cu) $link; do
        gcc -O1 -Wall -Wextra -Werror $f64 -I "$cuda/include" -I "$TENON_ROOT/runtime" -c "$TENON_ROOT/runtime/cuda/$file.c" -o "$dir/$file.o"
    done
    shim_compile "$dir"/*.cu $f64 -o "$dir/program.o" || return
    ! grep -q '^#include "cuda/cudnn_run.h"' "$dir"/*.cu || cp "$work"/cudnn/*.o "$dir"
    g++ -rdynamic ${CHECK_LINKER:-} -o "$dir/gpu" "$dir"/*.o "$work"/{gpu,fiber,fake}.o "$(dirname "$TENON")/lib/libtenonrt.a" $shim_libraries
}

shim_test() {
    shim_compile "$2" "${@:3}" -o "$work/$1.o"
    g++ -rdynamic ${CHECK_LINKER:-} -o "$work/$1" "$work/$1.o" "$work"/{gpu,fiber,fake}.o "$(dirname "$TENON")/lib/libtenonrt.a" $shim_libraries
}

# near TEXT A B: equally many numbers, equal to 1e-5
near() {
    if awk -v a="$2" -v b="$3" 'BEGIN { n = split(a, x); m = split(b, y); if (n < 1 || n != m) exit 1
        for (i = 1; i <= n; i++) { d = x[i] - y[i]; if (d < 0) d = -d; if (!(d <= 1e-5 * (1 + (x[i] < 0 ? -x[i] : x[i])))) exit 1 } }'
    then ok; else bad "$1: '$2' and '$3'"; fi
}

# steps NAME [OPTIONS]: both programs have nearly the same loss in each step and on the test set.  The GPU's program has equal bits with
# threads and blocks in another order: random and, with CHECK_DEEP=1, backward
steps() {
    local dir=$work/$1 order orders="0 2"; shift
    [ "$CHECK_DEEP" = 0 ] || orders="0 1 2"
    rm -f "$dir/cpu.jsonl"
    "$dir/cpu" --log "$dir/cpu.jsonl" --log-steps 1 --epochs 1 "$@" > /dev/null
    for order in $orders; do
        rm -f "$dir/$order.jsonl"
        SHIM_ORDER=$order "$dir/gpu" --log "$dir/$order.jsonl" --log-steps 1 --epochs 1 "$@" > /dev/null || { bad "$dir/gpu in order $order"; return; }
        [ $order = 0 ] || same "$dir: order $order" "$(hashes "$dir/0.jsonl")" "$(hashes "$dir/$order.jsonl")"
    done
    near "$dir: losses of three steps" "$(field "$dir/cpu.jsonl" step train_loss)" "$(field "$dir/0.jsonl" step train_loss)"
    near "$dir: loss of the test" "$(field "$dir/cpu.jsonl" epoch test_loss)" "$(field "$dir/0.jsonl" epoch test_loss)"
}

# barriers NAME SITES...: without one of these calls of block_sync, the program must have another result, or none, in one of the orders.
# The calls are numbered in the order of the headers.  1, 2 and 3 stand between two sums, or maxima, of a block; these models have one.
barriers() {
    local dir=$work/$1 site order seen; shift
    for site in "$@"; do
        seen=0
        for order in 1 2 0; do
            rm -f "$dir/skip.jsonl"
            (SHIM_SKIP=$site SHIM_ORDER=$order "$dir/gpu" --log "$dir/skip.jsonl" || exit 1) > /dev/null 2>&1 || { seen=1; break; }
            [ "$(hashes "$dir/skip.jsonl")" = "$(hashes "$dir/0.jsonl")" ] || { seen=1; break; }
        done
        [ $seen = 1 ] && ok || bad "leaving out barrier $site changes nothing"
    done
}

# differs TEXT A B [WITHIN]: A and B have equally many losses; some differ, and none by more than WITHIN (default 1e-2) of its size
differs() {
    if awk -v a="$2" -v b="$3" -v within="${4:-1e-2}" 'BEGIN { n = split(a, x); m = split(b, y); if (n < 1 || n != m) exit 1
        for (i = 1; i <= n; i++) { d = x[i] - y[i]; if (d < 0) d = -d; if (!(d < within * x[i])) exit 1; if (d > 0) seen++ } exit !seen }'
    then ok; else bad "$1: '$2' and '$3'"; fi
}

# planned NAME MODEL OPTIONS...: `tenon build` makes $work/NAME/gpu, with plans of the fake in it; its text is kept beside it.  tests/tools/nvcc replaces nvcc
planned() {
    local dir=$work/$1 model=$2; shift 2
    mkdir -p "$dir"
    SHIM=$work NVCC=$TENON_ROOT/tests/tools/nvcc "$TENON" build "$model" --target cuda --keep "$dir" -o "$dir/gpu" "$@" > "$dir/said" 2>&1
}
