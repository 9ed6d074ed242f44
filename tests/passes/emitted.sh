#!/usr/bin/env bash
# emitted.sh TENON -- checksums of the text that the compiler writes for each shipped model and each operation's example (emitted.sums).
#
# One line for each model and target.  If a change of the compiler should change no program, all lines stay as they are; else the lines
# show which programs the change reaches.  After an intended change:
#
#   tests/passes/emitted.sh build/check/tenon --update
#
# Large networks take a second for each text: without CHECK_DEEP=1 only one or two of their texts are compared.
#
# To see a difference, emit the program with the compiler of the commit before and with the current one.
set -euo pipefail
tenon=$(readlink -f "$1")
sums=$(cd "$(dirname "$0")" && pwd)/emitted.sums
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The targets of a model.  --cpu names a processor, so that the text is the same on each machine.
targets=("--to c --cpu x86-64-v3" "--to c --cpu x86-64-v3 --dtype bf16" "--to c --cpu generic --plain" "--to cuda --kernels=own" "--to cuda --kernels=persistent"
         "--to cuda --kernels=cudnn --dtype bf16" "--to cuda --kernels=cudnn --dtype f16" "--to cuda --comm nccl" "--to c --cpu x86-64-v4 --comm mpi --dtype f64"
         "--to pytorch" "--to keras" "--to mxnet" "--to slurm --comm mpi" "--to dot --cpu x86-64-v4")

# left_out NAME TARGET: whether this text of a large network is not compared; other models have the parts of these
# networks
left_out() {
    case $1 in *inception* | *resnet50* | *vgg* | *mobilenet* | *densenet* | *resnet56*) ;; *) return 1 ;; esac
    case $all$1$2 in
    1*v3 | 1*=own | 1*bf16 | 1*pytorch) return 1 ;;
    0*inception*v3 | 0*densenet*=own) return 1 ;;
    0*inception* | 0*densenet*) ;;
    0*v3 | 0*=own) return 1 ;;
    esac
}

# one FILE NAME: a line for each target, with the checksum of the text that is written, or of the error message.  One
# cksum for all texts: a process for each takes as long as the compiler.
one() {
    local file=$1 name=$2 texts=$tmp/texts.$$ i sum
    mkdir "$texts"
    for i in "${!targets[@]}"; do
        ! left_out "$name" "${targets[i]}" || continue
        # shellcheck disable=SC2086
        "$tenon" emit "$file" ${targets[i]} < /dev/null > "$texts/$i" 2>&1 || echo "exit code $?" >> "$texts/$i"
    done
    cksum "$texts"/* | while read -r sum _ i; do echo "$sum $name ${targets[${i##*/}]}"; done
    rm -r "$texts"
}

list() {
    local file op
    for file in models/*.tn; do echo "$file $file"; done
    for op in $("$tenon" ops | sed -n 's/^  \([a-z0-9_]*\)(.*/\1/p'); do
        "$tenon" ops "$op" --example > "$tmp/$op.tn"
        echo "$tmp/$op.tn $op"
    done
    cp tests/cuda/sync.tn "$tmp/sync.tn"   # exchange of statistics between ranks: no model and no example has it
    echo "$tmp/sync.tn sync"
}

all=${CHECK_DEEP:-0}
[ "${2:-}" != --update ] || all=1
export -f one left_out
export tenon all tmp
list > "$tmp/list"
declare -p targets > "$tmp/targets"
cd "$tmp"
# The path of an example must not occur in its text.
while read -r file name; do
    case $file in models/*) echo "$OLDPWD/$file $name" ;; *) echo "$name.tn $name" ;; esac
done < list > places
xargs -P "$(nproc)" -L 1 bash -c '. ./targets; case $0 in */models/*) cd "${0%/models/*}"; one "models/${0##*/}" "$1" ;; *) one "$0" "$1" ;; esac' < places | sort -k2 > now

if [ "${2:-}" = --update ]; then cp now "$sums"; exit; fi
passed=$(comm -12 <(sort "$sums") <(sort now) | wc -l)
failed=0
while read -r _ name target; do
    if grep -qF " $name $target" "$sums"; then echo "FAIL tenon emit $name $target: another text than emitted.sums knows"
    else echo "FAIL tenon emit $name $target: no checksum in emitted.sums yet"; fi
    failed=$((failed + 1))
done < <(comm -13 <(sort "$sums") <(sort now))
while read -r _ name target; do
    ! left_out "$name" "$target" || continue
    grep -qF " $name $target" now || { echo "FAIL nothing is emitted any more: $name $target"; failed=$((failed + 1)); }
done < <(comm -23 <(sort "$sums") <(sort now))
[ $failed = 0 ] || echo "if this is intended: tests/passes/emitted.sh $1 --update"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
