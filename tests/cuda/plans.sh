#!/usr/bin/env bash
# plans.sh -- the real cuDNN plans graphs for a GPU, on a machine without GPU and driver; stored plans are loaded again.
# With CHECK_DEEP=1 (./check --deep): fused graphs of every kind, for three architectures.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

bin=$(dirname "$TENON") graphs=$TENON_ROOT/tests/cuda/graphs.txt
[ -x "$bin/tenon-plan" ] || { skip "no tenon-plan: the CUDA toolkit or the headers of cuDNN were not there"; finish; exit; }
refuses "no cuDNN" "cuDNN 9 was not found: .*install it" env TENON_CUDNN=/nowhere/libcudnn.so.9 "$bin/tenon-plan" --version
refuses "a library that is not cuDNN" "has no cudnnGetVersion" env TENON_CUDNN=libm.so.6 "$bin/tenon-plan" --version
"$bin/tenon-plan" --version > "$work/version" 2> "$work/err" || { skip "$(cat "$work/err")"; finish; exit; }
plan() { "$bin/tenon-plan" --jobs 2 "$@"; }

refuses "an unknown architecture" "'sm_91'.*sm_80, sm_90 and sm_100" plan --arch sm_91 "$graphs"
refuses "an unknown driver" "CUDA version of a driver, such as 13.0" plan --driver 580 "$graphs"
refuses "no graphs" "no file of graphs is given" plan
refuses "an option without its value" "needs a value" plan "$graphs" --arch

# A wrong graph is reported with the reason; the other graphs are planned.
conv="x bf16 8 64 14 14; w bf16 64 64 3 3; y bf16 8 64 14 14; conv x w y pad 1 1"
{ echo "$conv foo"; echo "x bf16 8 64 14; conv x"; echo "${conv/64 64 3/64 65 3}"; echo "x bf17 1 2 3 4; conv x"; echo "y bf16 0 3; conv y y y"
  echo "$conv"; echo "$conv foo | $conv"; echo "x f32 4000000000 4000000000 4000000000 1; conv x"; } > "$work/graphs"
plan --out "$work" "$work/graphs" > "$work/answers"
expect() { if sed -n "$1p" "$work/answers" | grep -qE "$2"; then ok; else bad "line $1 is not '$2': $(sed -n "$1p" "$work/answers")"; fi; }
expect 1 "^none .*conv x w y pad 1 1 foo: 'foo' is neither a tensor"
expect 2 "^none .*conv x: conv needs 3 tensors, not 1"
expect 3 "^none .*BAD_PARAM"
expect 4 "^none .*'bf17' is neither an operation nor a type"
expect 5 "^none .*tensor y has a size of 0"
expect 6 "^plan 0 "
expect 7 "^plan 1 "
expect 8 "^none .*tensor x has a size of 4000000000"

# A process that ends takes only its current line with it.
cat > "$work/ends.c" << 'END'
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
char *strdup(const char *s)
{
    const size_t n = strlen(s) + 1;
    if (strcmp(s, "exits") == 0)
        _exit(3);
    if (strcmp(s, "killed") == 0)
        raise(SIGKILL);
    return memcpy(malloc(n), s, n);
}
END
cc -shared -fPIC "$work/ends.c" -o "$work/ends.so"
printf '%s\n' exits killed "conv x" > "$work/graphs"
LD_PRELOAD="$work/ends.so" plan "$work/graphs" > "$work/answers"
expect 1 "^none .*planner ended with exit code 3$"
expect 2 "^none .*planner ended by signal 9$"
expect 3 "^none .*conv x"

# A stored plan is loaded in milliseconds for the same GPU, driver and cuDNN.  For another one it is not used: the
# plan is made again and stored.
load() { "$bin/tests/tenon-load" "$@" 2>&1 | tr '\n' ' '; }
loads() { local text=$1 pattern=$2 got; shift 2; got=$(load "$@"); if [[ $got =~ $pattern ]]; then ok; else bad "$text: '$got' is not '$pattern'"; fi; }
mkdir "$work/kept"
loads "the same" "^embedded workspace" sm_90 13000 "$work/5.plan" "$work/kept"
loads "another driver" "the plan is for sm_90 .*driver API 13.0.* here is .*driver API 13.1.* made workspace" sm_90 13010 "$work/5.plan" "$work/kept"
loads "another driver again" "kept workspace" sm_90 13010 "$work/5.plan" "$work/kept"
loads "another GPU" "is for sm_90 with 132 .* here is sm_80 with 108 .* made workspace" sm_80 13000 "$work/5.plan" -
sed '1s/sms [0-9]*/sms 114/' "$work/5.plan" > "$work/other.plan"
loads "another number of multiprocessors" "for sm_90 with 114 .* here is sm_90 with 132 .* made workspace" sm_90 13000 "$work/other.plan" -
sed '1s/cudnn [0-9]*/cudnn 92600/' "$work/5.plan" > "$work/other.plan"
loads "another cuDNN" "cuDNN 9.26.0; here is .* made workspace" sm_90 13000 "$work/other.plan" -
for kept in "$work"/kept/*.plan; do head -c 600 "$kept" > "$work/cut"; cp "$work/cut" "$kept"; done
loads "a kept plan that is damaged" "made workspace" sm_90 13010 "$work/5.plan" "$work/kept"
head -c 600 "$work/5.plan" > "$work/half.plan"
loads "an embedded plan that is damaged" "cannot be loaded.* made workspace" sm_90 13000 "$work/half.plan" -

# Every kind of graph.
archs=sm_90 until='^# compiled'
[ "$CHECK_DEEP" = 1 ] && archs="sm_90 sm_80 sm_100" until='^never'
sed "/$until/q" "$graphs" | grep -E '^(plan|none)' > "$work/lines"
for arch in $archs; do
    for rule in - exact; do
        grep -E "^(plan|none) $rule :" "$work/lines" > "$work/some" || true
        sed 's/^[^:]*: //' "$work/some" > "$work/graphs"
        flag=; [ $rule = - ] || flag=--exact
        # shellcheck disable=SC2086
        plan --arch $arch $flag "$work/graphs" > "$work/answers"
        while read -r want _ _ graph <&3 && read -r got rest <&4; do
            # Other architectures have other engines: the graphs must be valid, with an engine or without.
            if [ "$want" = "$got" ] || { [ $arch != sm_90 ] && ! grep -q BAD_PARAM <<< "$rest"; }; then ok; else bad "$arch $rule: $got $rest for: $graph"; fi
        done 3< "$work/some" 4< "$work/answers"
        same "$arch $rule: as many answers as graphs" "$(wc -l < "$work/answers")" "$(wc -l < "$work/graphs")"
    done
done
[ "$CHECK_DEEP" = 1 ] || skip "graphs that are compiled, and other architectures: ./check --deep"
! grep -qE "tensor-cores|rounded-inputs|any-order" "$work/answers" && ok || bad "an exact plan with a note against it: $(cat "$work/answers")"
finish
