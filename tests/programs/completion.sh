#!/usr/bin/env bash
# completion.sh -- tenon completion: the scripts complete command lines in bash, zsh and fish, in real shells on a terminal.
# A shell that is not installed counts as skipped.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$work"
export PATH=$(dirname "$TENON"):$PATH HOME=$work TERM=dumb
mkdir -p data/pictures
touch data/net.tn data/other.txt "data/two words.tn"
for shell in bash zsh fish; do "$TENON" completion $shell > complete.$shell; done
refuses "no shell" "needs the name of a shell: bash, zsh or fish" "$TENON" completion
refuses "another shell" "for bash, zsh and fish, not 'csh'" "$TENON" completion csh
refuses "two shells" "takes one shell; 'zsh' is a second one after 'bash'" "$TENON" completion bash zsh
[ -x "$(dirname "$TENON")/tenon-bench" ] && bench=1 || bench=0

# What a user types, and the whole line after Tab.  Each has one answer.
cat > lines << 'END'
tenon bui|tenon build
tenon check data/n|tenon check data/net.tn
tenon show --thr|tenon show --threads
tenon show --target cu|tenon show --target cuda
tenon show --target=cu|tenon show --target=cuda
tenon show --dump sche|tenon show --dump schedule
tenon build data/net.tn --set optimizer.nest|tenon build data/net.tn --set optimizer.nesterov=
tenon build data/net.tn --keep data/pi|tenon build data/net.tn --keep data/pictures
tenon emit data/net.tn --to pyt|tenon emit data/net.tn --to pytorch
tenon ops causal|tenon ops causal_attention
tenon ops flip_h|tenon ops flip_horizontal
tenon fmt data/net.tn data/tw|tenon fmt data/net.tn data/two\ words.tn
tenon new x --data tiny|tenon new x --data tinyshakespeare
tenon watch data/oth|tenon watch data/other.txt
tenon completion fi|tenon completion fish
END
[ $bench = 0 ] || printf '%s\n' "tenon results comp|tenon results compare" "tenon sweep data/net.tn --retry-f|tenon sweep data/net.tn --retry-failed" >> lines

# typed SHELL...: completes each line in an interactive shell on a terminal; prints the lines as the shell has them
cat > typed.py << 'END'
import os, pty, select, sys, time

setup, shell = sys.argv[1], sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(shell[0], shell)
seen = b""
def until(mark):
    global seen
    end = time.time() + 60
    while mark not in seen:
        if not select.select([terminal], [], [], max(0, end - time.time()))[0]:
            sys.exit(f"{shell[0]} says: {seen[-2000:]}")
        seen += os.read(terminal, 65536)
    seen = seen[seen.index(mark) + len(mark):]
os.write(terminal, (setup + "; PS1='> '; echo rea''dy\n").encode())
until(b"ready")
for i, line in enumerate(open("lines")):
    os.write(terminal, line.split("|")[0].encode() + b"\t")
    os.write(terminal, b"\x01print_line \n")                # Ctrl-A: the beginning of the line
    until(b"<<<")
    while b">>>" not in seen:
        seen += os.read(terminal, 65536)
    print(seen[:seen.index(b">>>")].decode())
os.write(terminal, b"exit\n")
END

# compare SHELL: the answers of a shell in the file `got`
compare() {
    local line want got n=0
    while IFS= read -r line; do
        n=$((n + 1))
        want=${line#*|} got=$(sed -n "${n}p" got)
        got=${got%"${got##*[! =/]}"} want=${want%"${want##*[! =/]}"}   # a shell may add a blank, '=' or '/'
        same "$1: ${line%%|*}" "$want" "$got"
    done < lines
}

python3 -B typed.py 'source ./complete.bash; print_line() { printf "<<""<%s>>"">\n" "$(printf "%q " "$@")"; }' bash --norc --noprofile -i > got && compare bash || bad "bash: $(cat got)"

if command -v zsh > /dev/null; then
    python3 -B typed.py 'autoload -Uz compinit; compinit -u -D; source ./complete.zsh; print_line() { local w=(${(q)@}); printf "<<""<%s>>"">\n" "$w"; }' \
        zsh -f -i > got && compare zsh || bad "zsh: $(cat got)"
else skip "completion in zsh: zsh is missing"; fi

if command -v fish > /dev/null; then
    while IFS= read -r line; do
        typed=${line%%|*} word=${line##* }                # fish prints the last word of the answer
        case $typed in *data/tw) word='data/two words.tn' ;; esac
        same "fish: $typed" "$(fish -N -c "source complete.fish; complete -C '$typed'" | cut -f1 | sort -u | tr '\n' ' ' | sed 's,[ =/]*$,,')" "${word%=}"
    done < lines
else skip "completion in fish: fish is missing"; fi

# Each command and each option that --help lists is completed, and nothing else.
source ./complete.bash
completes() { # WORDS...: what bash offers for the last word
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _tenon 2> /dev/null
    printf '%s\n' "${COMPREPLY[@]}" | sort -u | tr '\n' ' '
}
commands=$("$TENON" --help | sed -n 's/^  tenon \([a-z]*\) .*/\1/p')
same "commands" "$(completes tenon '')" "$(printf '%s\n' --help --version $commands | sort -u | tr '\n' ' ')"
for command in $commands; do
    [ $bench = 1 ] || [[ $command != sweep && $command != results ]] || continue
    help=$("$TENON" "$command" --help | sed -n 's/^  \(-[a-z-]*\).*/\1/p' | sort -u | tr '\n' ' ')
    same "options of $command" "$(completes tenon "$command" - | sed 's/--help //')" "${help/--help /}"
    # no pipe: grep -q can end before sed has written everything, and then the pipe would fail
    zsh=$(sed -n "/^    $command)\$/,/;;\$/p" complete.zsh)
    for option in $help; do
        grep -q "'\*\{0,1\}$option=\{0,1\}\[" <<< "$zsh" && ok || bad "zsh does not complete tenon $command $option"
    done
    ! command -v fish > /dev/null ||
        same "options of $command in fish" "$(fish -N -c "source complete.fish; complete -C 'tenon $command -'; complete -C 'tenon $command --'" | cut -f1 | sort -u | tr '\n' ' ' | sed 's/--help //')" "${help/--help /}"
done
finish
