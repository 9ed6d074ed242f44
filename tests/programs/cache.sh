#!/usr/bin/env bash
# cache.sh -- objects and programs of earlier builds: which are used again and which are rejected, and builds with a cache that is full,
# damaged, read-only or shared by several builds at the same time.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
export TENON_CACHE=$work/cache TENON_CFLAGS=-O0           # fast to compile; no program of this test trains for long
export TENON_CPU=generic                                  # about 20 builds compile all units of a network of one layer
mlp=$work/mlp.tn
cat > "$mlp" << 'END'
model mlp(image: f32[1, 2, 5], classes: int = 10) {
    return flatten(image) |> layer_norm
}
train mlp {
    data      = synthetic(samples = 64, test_samples = 32)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.1)
    batch     = 32
    epochs    = 1
}
END

# compiled COMMAND...: how many times COMMAND starts the C compiler for a unit
printf '#!/bin/sh\ncase " $* " in *" -c "*) echo x >> %s ;; esac\nexec cc "$@"\n' "$work/count" > "$work/countcc"
chmod +x "$work/countcc"
compiled() {
    : > "$work/count"
    CC=$work/countcc "$@" > "$work/out" 2>&1 || { bad "exit code $? of: $*"; tail -n 5 "$work/out"; }
    wc -l < "$work/count"
}
objects() { find "$TENON_CACHE" -name '*.o' | wc -l; }

all=$(compiled "$TENON" build "$mlp" -o "$work/p")
[ "$all" -ge 5 ] && ok || bad "only $all units were compiled"
same "every object is kept" "$(objects)" "$all"
cp "$work/p" "$work/first"

# A changed layer compiles only the units that depend on it.
sed 's/layer_norm/rms_norm/' "$mlp" > "$work/changed.tn"
cmp -s "$mlp" "$work/changed.tn" && bad "the model was not changed"
some=$(compiled "$TENON" build "$work/changed.tn" -o "$work/q")
[ "$some" -gt 0 ] && [ "$some" -lt "$all" ] && ok || bad "a changed layer compiles $some of $all units"
sed 's/^ *epochs .*/    epochs = 99/' "$mlp" > "$work/recipe.tn"
same "a changed recipe compiles the step alone" "$(compiled "$TENON" build "$work/recipe.tn" -o "$work/q")" 1
same "other flags for the step compile the step alone" "$(TENON_STEP_CFLAGS=-DSTEP compiled "$TENON" build "$mlp" -o "$work/q" --verbose)" 1
grep -q -- ' -O0 -DSTEP .* -c ' "$work/out" && ok || bad "TENON_STEP_CFLAGS do not follow TENON_CFLAGS: $(cat "$work/out")"
grep -q 'TENON_CFLAGS=-O0 TENON_STEP_CFLAGS=-DSTEP' <<< "$("$work/q" info)" && ok || bad "info does not name TENON_STEP_CFLAGS: $("$work/q" info)"

# A program is the same with and without the cache, and from any mix of cached objects.
same "the objects are used when the program is gone" \
    "$(find "$TENON_CACHE" -type f ! -name '*.o' -size +10k -delete; compiled "$TENON" build "$mlp" -o "$work/p")" 0
cmp -s "$work/p" "$work/first" && ok || bad "a program linked from kept objects differs"
same "--no-cache compiles everything" "$(compiled "$TENON" build "$mlp" -o "$work/p" --no-cache)" "$all"
cmp -s "$work/p" "$work/first" && ok || bad "--no-cache makes another program"

# Damage is noticed: some bytes of each object and program are overwritten, or the end is missing.
damage() {
    local file
    find "$TENON_CACHE" -type f -name '????????????????*' | while read -r file; do
        printf damaged | dd of="$file" bs=1 seek=100 conv=notrunc status=none
    done
}
damage
same "damaged entries are not used" "$(compiled "$TENON" build "$mlp" -o "$work/p")" "$all"
cmp -s "$work/p" "$work/first" && ok || bad "damaged entries change the program"
find "$TENON_CACHE" -type f -name '????????????????*' -exec truncate -s 50 {} +
same "entries cut short are not used" "$(compiled "$TENON" build "$mlp" -o "$work/p")" "$all"
same "and are replaced" "$(compiled "$TENON" build "$mlp" -o "$work/p")" 0
cmp -s "$work/p" "$work/first" && ok || bad "entries cut short change the program"
same "a kept program runs where it lies" "$("$TENON" run "$mlp" -- info | grep -c mlp | sed 's/[1-9][0-9]*/some/')" some

# The limit of the cache, and its report.
report=$("$TENON" cache)
grep -q "$TENON_CACHE" <<< "$report" && grep -Eq "objects +$(objects) " <<< "$report" && ok || bad "tenon cache: $report"
grep -Eq 'objects .* found [0-9,]+ of [0-9,]+ \([0-9]+ %\)' <<< "$report" && ok || bad "no hit rate: $report"
succeeds "--limit" "$TENON" cache --limit 100K
size() { find "$TENON_CACHE" -type f -name '????????????????*' -printf '%s\n' | awk '{ s += $1 } END { print s + 0 }'; }
[ "$(size)" -le 100000 ] && ok || bad "$(size) bytes are kept, not 100 kB"
succeeds "a build within the limit" "$TENON" build "$mlp" -o "$work/p"
[ "$(size)" -le $((100000 + $(stat -c %s "$work/p") + 22)) ] && ok || bad "$(size) bytes are kept after a build"
"$TENON" cache | grep -q "of 100 kB" && ok || bad "the limit is not remembered"
for wrong in 12x "" -5 1e30 MB nan; do refuses "--limit '$wrong'" "needs a size" "$TENON" cache --limit="$wrong"; done
refuses "a word" "takes options only" "$TENON" cache models
succeeds "--limit 1G" "$TENON" cache --limit 1G

# The least recently used object is removed first.
"$TENON" build "$mlp" -o "$work/p"
old=$(find "$TENON_CACHE" -name '????????????????*' | head -n 1)
touch -d '2001-01-01' "$old"
"$TENON" cache --limit $(($(size) - 1)) > "$work/out"
[ ! -e "$old" ] && ok || bad "the oldest entry is kept"
"$TENON" cache --limit 1G > "$work/out"
echo mine > "$TENON_CACHE/notes.txt"
succeeds "--clear" "$TENON" cache --clear
same "--clear leaves nothing of ours" "$(size)" 0
[ -s "$TENON_CACHE/notes.txt" ] && ok || bad "--clear removes a stranger's file"

# Several builds at the same time.
builds= some="1 2"
if deep "four builds at the same time"; then some="1 2 3 4"; fi
for i in $some; do "$TENON" build "$mlp" -o "$work/same$i" & builds="$builds $!"; done
for b in $builds; do if wait "$b"; then ok; else bad "a build beside others fails"; fi; done
for i in $some; do if cmp -s "$work/same$i" "$work/first"; then ok; else bad "a build beside others differs"; fi; done

# No directory for a cache.
touch "$work/file"
dirs=("$work/file/below" "$work/file")                   # `tenon run` below has /proc/none
if deep "a cache in /proc"; then dirs+=(/proc/none); fi
for dir in "${dirs[@]}"; do
    succeeds "a cache that cannot be ($dir)" env TENON_CACHE="$dir" "$TENON" build "$mlp" -o "$work/p"
    cmp -s "$work/p" "$work/first" && ok || bad "a build without a cache differs"
    refuses "tenon cache of $dir" "cannot use the cache" env TENON_CACHE="$dir" "$TENON" cache
done
refuses "no cache at all" "no cache directory" env -u TENON_CACHE -u XDG_CACHE_HOME -u HOME "$TENON" cache
succeeds "run without a cache" env TENON_CACHE=/proc/none "$TENON" run "$mlp" -- info

# A full and a read-only disk, if a file system can be mounted.
mkdir "$work/disk"
if mount -t tmpfs -o size=64k tmpfs "$work/disk" 2> "$work/err"; then
    trap 'umount "$work/disk"; rm -rf "$work"' EXIT
    succeeds "a cache on a full disk" env TENON_CACHE="$work/disk" "$TENON" build "$mlp" -o "$work/p"
    cmp -s "$work/p" "$work/first" && ok || bad "a full disk changes the program"
    succeeds "and again" env TENON_CACHE="$work/disk" "$TENON" build "$mlp" -o "$work/p"
    succeeds "tenon cache on a full disk" env TENON_CACHE="$work/disk" "$TENON" cache
    refuses "a temporary directory on a full disk" "tenon: error" env TMPDIR="$work/disk" "$TENON" build "$mlp" -o "$work/p" --no-cache
    rm -rf "$work/disk/"*
    mount -o remount,size=50m "$work/disk"
    env TENON_CACHE="$work/disk" "$TENON" build "$mlp" -o "$work/p"
    mount -o remount,ro "$work/disk"
    export TENON_CACHE=$work/disk
    same "a read-only cache is read" "$(compiled env -u CC "$TENON" build "$mlp" -o "$work/p")" 0
    cmp -s "$work/p" "$work/first" && ok || bad "a read-only cache changes the program"
    succeeds "another model beside a read-only cache" "$TENON" build "$work/changed.tn" -o "$work/p"
    refuses "a limit for a read-only cache" "cannot write" "$TENON" cache --limit 1G
    refuses "--clear of a read-only cache" "cannot remove" "$TENON" cache --clear
    "$TENON" cache | grep -q read-only && ok || bad "the report does not say that the cache is read-only"
else
    skip "no file system may be mounted here: full and read-only disks"
fi

# One unit fails: its message is printed once, the other compilers are ended, and no other file stays.
export TENON_CACHE=$work/cache2
cat > "$work/brokencc" <<'END'
#!/bin/sh
case " $* " in
*" -c "*/layer_norm*) sleep 0.3; echo "it hurts" >&2; exit 3 ;;
*" -c "*/mlp.c*) sleep 250; exit 4 ;;
*) exec cc "$@" ;;
esac
END
chmod +x "$work/brokencc"
mkdir "$work/tmp"
start=$SECONDS
refuses "a unit that fails" "failed on .*layer_norm" env CC="$work/brokencc" TMPDIR="$work/tmp" timeout 300 "$TENON" build "$mlp" -o "$work/no"
if [ "$(nproc)" -gt 1 ]; then [ $((SECONDS - start)) -lt 200 ] && ok || bad "the others were not ended"; fi
same "the message is there once" "$(grep -c 'it hurts' "$work/err")" 1
same "the file at fault is kept, and no other" "$(find "$work/tmp" -type f | wc -l)" 1
rm -rf "$work/tmp"; mkdir "$work/tmp"

# Another MPI behind the same mpicc, with the same C compiler, as after update-alternatives.
if command -v mpicc > /dev/null; then
    printf '#!/bin/sh\nexec mpicc -Wl,--defsym,the_first_mpi=1 "$@"\n' > "$work/mpicc"
    chmod +x "$work/mpicc"
    succeeds "one MPI" env MPICC="$work/mpicc" "$TENON" build "$mlp" --comm mpi -o "$work/q"
    sed -i 's/the_first_mpi/the_other_mpi/' "$work/mpicc"
    succeeds "another MPI" env MPICC="$work/mpicc" "$TENON" build "$mlp" --comm mpi -o "$work/q"
    grep -q the_other_mpi "$work/q" && ok || bad "a program of another MPI comes from the cache"
else
    skip "no mpicc"
fi

# A signal ends the compilers and leaves no files.
printf '#!/bin/sh\ncase $1 in --version) echo slow 1 ;; *) echo $$ >> "$PIDS"; exec sleep 60 ;; esac\n' > "$work/slowcc"
chmod +x "$work/slowcc"
PIDS=$work/pids CC=$work/slowcc TMPDIR=$work/tmp "$TENON" build "$mlp" -o "$work/no" 2> "$work/err" &
build=$!
for _ in $(seq 100); do [ -s "$work/pids" ] && break; sleep 0.05; done
kill -TERM $build
rc=0; wait $build || rc=$?
same "the signal is passed on" "$rc" 143
sleep 0.2
for pid in $(cat "$work/pids"); do if kill -0 "$pid" 2> /dev/null; then bad "a compiler goes on after the signal"; else ok; fi; done
same "nothing stays behind" "$(find "$work/tmp" -type f | wc -l)" 0
finish
