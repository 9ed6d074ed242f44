#!/usr/bin/env bash
# distribution.sh -- the scripts of packages/: what they refuse, and that equal commits give equal source tarballs.  With --deep: the
# source tarball of this repository builds; the .deb is installed, used and removed on fresh systems, of this Debian, the next one and
# Ubuntu; the wheel in a virtual environment of Python.
#
# The systems need root, debootstrap and git, and a network with Debian's packages.  Ubuntu's keys come from Debian.
#
#   TENON_UBUNTU="SUITE MIRROR"   another release or mirror of Ubuntu
#   TENON_SYSTEMS=DIR             keeps the minimal trees in DIR for the next run
#
# Parts: scripts source wheel systems
set -uo pipefail
. "$(dirname "$0")/../common.sh"

# A small repository with the scripts: they need no more for the checks below.
if part scripts; then
    small=$work/small
    mkdir -p "$small/cmake"
    cp -r "$TENON_ROOT/packages" "$TENON_ROOT/CMakeLists.txt" "$TENON_ROOT/.gitattributes" "$small"
    cp "$TENON_ROOT/cmake/commit.txt" "$TENON_ROOT/cmake/commit.cmake" "$small/cmake"
    cd "$small"
    for kind in deb source wheel; do
        refuses "$kind, an option" "^$kind: unknown argument '--tag'; only -o DIR is known" packages/$kind --tag x
        refuses "$kind, -o without a directory" "^$kind: -o needs a directory" packages/$kind -o
        refuses "$kind, a directory that cannot be made" "^$kind: cannot write to the directory CMakeLists.txt/x; choose another one" packages/$kind -o CMakeLists.txt/x
        same "$kind --help" "$(packages/$kind --help | head -n 1 | cut -d' ' -f1-3)" "$kind -- makes"
    done
    refuses "wheel, without a Python that can pack" "^wheel: needs a Python with the package wheel .*python3-wheel" env PYTHON=false packages/wheel -o "$work/o"
    mkdir "$work/bin"                                     # a PATH without Debian's tools
    for tool in bash basename dirname mkdir sed; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
    refuses "deb, without Debian's tools" "^deb: needs dpkg-shlibdeps: make the package on Debian or Ubuntu" env PATH="$work/bin" packages/deb -o "$work/o"
    refuses "source, without a repository" "^source: $small is not a git repository" env GIT_CEILING_DIRECTORIES="$work" packages/source -o "$work/o"

    commit() { git -C "$small" -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -qm "$1" --date=2001-02-03T04:05:06Z; }
    git -c init.defaultBranch=main init -q && git add . && commit one
    echo "# more" >> CMakeLists.txt
    refuses "source, with changes" "^source: there are changes that are not committed" packages/source -o "$work/o"
    same "files after refusals" "$(find "$work/o" -type f | wc -l | tr -d ' ')" 0
    git checkout -q CMakeLists.txt

    # Two clones, made at other times, with other modes, and with other settings of git.
    git clone -q "$small" "$work/first"
    sleep 1.1
    (umask 077; git clone -q "$small" "$work/second"; find "$work/second" -name .git -prune -o -type f -exec touch {} +)
    git -C "$work/second" config tar.umask 077
    succeeds "a tarball" "$work/first/packages/source" -o "$work/one"
    succeeds "another tarball" "$work/second/packages/source" -o "$work/two"
    tarball=$(basename "$work"/one/*)
    version=$("$TENON" --version | sed 's/^tenon //')
    same "the name of the tarball" "$tarball" "tenon-$version.tar.gz"
    cmp -s "$work/one/$tarball" "$work/two/$tarball" && ok || bad "two clones give two tarballs"
    tar -xzf "$work/one/$tarball" -C "$work"
    succeeds "the commit of a tarball" cmake -DSOURCE="$work/tenon-$version" -DOUT="$work/commit" -P "$work/tenon-$version/cmake/commit.cmake"
    same "the commit" "$(cat "$work/commit")" "$(git -C "$small" rev-parse HEAD | cut -c1-10)"
    succeeds "the commit of a clone" cmake -DSOURCE="$work/first" -DOUT="$work/commit" -P "$work/first/cmake/commit.cmake"
    same "the commit" "$(cat "$work/commit")" "$(git -C "$small" rev-parse HEAD | cut -c1-10)"
fi

[ "$CHECK_DEEP" = 1 ] || case ${CHECK_PART:-} in scripts) finish; exit ;; esac
deep "packages that are installed" || { finish; exit; }

# The files of the working tree, with an empty build directory.
sources() {
    mkdir -p "$work/sources"
    git -C "$TENON_ROOT" ls-files -z --deduplicate | tar -C "$TENON_ROOT" --null --ignore-failed-read -T - -c 2> /dev/null | tar -C "$work/sources" --no-same-owner -x
}

# A session of an editor, which asks for the shapes at the end of lines.
rpc() { printf 'Content-Length: %d\r\n\r\n%s' ${#1} "$1"; }
session() {
    local text='model m(image: f32[1, 28, 28]) {\n    h = conv2d(image, 20, kernel = 5)\n    return flatten(h) |> dense(10)\n}\n'
    local range='{"start":{"line":0,"character":0},"end":{"line":4,"character":0}}'
    rpc '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
    rpc '{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///m.tn","languageId":"tenon","version":1,"text":"'"$text"'"}}}'
    rpc '{"jsonrpc":"2.0","id":2,"method":"textDocument/inlayHint","params":{"textDocument":{"uri":"file:///m.tn"},"range":'"$range"'}}'
    rpc '{"jsonrpc":"2.0","id":3,"method":"shutdown"}'
    rpc '{"jsonrpc":"2.0","method":"exit"}'
}

# used TEXT COMMAND... -- PREFIX: COMMAND runs a shell command where tenon is in PATH; its share/ is in PREFIX
used() {
    local text=$1 run=() share; shift
    while [ "$1" != -- ]; do run+=("$1"); shift; done
    share=$2/share
    succeeds "$text: --version" "${run[@]}" 'tenon --version'
    same "$text: the version" "$(cat "$work/out")" "$("$TENON" --version)"
    succeeds "$text: check" "${run[@]}" "for m in $share/tenon/models/*.tn; do tenon check \$m || exit 1; done"
    succeeds "$text: a program" "${run[@]}" "tenon build $share/tenon/models/lenet.tn -o lenet && ./lenet --epochs 1 --limit-samples 1280"
    grep -Eq '^test accuracy 0\.[1-9]' "$work/out" && ok || bad "$text: the program ends with '$(tail -n 1 "$work/out")'"
    succeeds "$text: a language server" "${run[@]}" 'tenon lsp < session > answers'
    "${run[@]}" 'grep -qF "(N, 20, 24, 24)" answers' > "$work/out" && ok || bad "$text: the server does not answer with a shape"
    succeeds "$text: a sweep" "${run[@]}" "tenon sweep $share/tenon/models/mlp.tn --steps 2 --repeat 1 --threads 1 --retries 0 --store s.db && tenon results table --store s.db"
}

if part source; then
    cd "$work"
    for n in 1 2; do
        git clone -q --no-local "$TENON_ROOT" clone$n && succeeds "the tarball of clone $n" clone$n/packages/source -o "$work/tar$n"
        sleep 1.1
    done
    tarball=$(basename tar1/*)
    cmp -s "tar1/$tarball" "tar2/$tarball" && ok || bad "two clones of $(git -C clone1 rev-parse HEAD) give two tarballs"
    rm -rf clone2 tar2
    tar -xzf "tar1/$tarball"
    source=$work/${tarball%.tar.gz}
    succeeds "the tarball builds" sh -c "cmake -S '$source' -B built -DTENON_TESTS=OFF && cmake --build built --target tenon tenonrt -j2"
    succeeds "its tenon" built/tenon build "$source/models/mlp.tn" -o mlp
    succeeds "its program" ./mlp --epochs 1 --limit-samples 256
    [ ! -e built/tenon.commit ] || same "its commit" "$(cat built/tenon.commit)" "$(git -C clone1 rev-parse HEAD | cut -c1-10)"
fi

if part wheel; then
    if [ -z "${PYTHON:-}" ] && ! python3 -m wheel version > "$work/out" 2>&1 && ! /usr/bin/python3 -m wheel version > "$work/out" 2>&1; then
        skip "no Python with the package wheel (Debian: python3-wheel)"
    elif ! python3 -m venv "$work/environment" > "$work/out" 2>&1; then
        skip "no virtual environment (Debian: python3-venv): $(tail -n 1 "$work/out")"
    else
        sources
        for n in 1 2; do                                  # with the PATH of a user who is not root
            succeeds "a wheel" env PATH="$(tr : '\n' <<< "$PATH" | grep -v 'sbin$' | paste -sd :)" "$work/sources/packages/wheel" -o "$work/wheel$n"
            sleep 1.1
        done
        wheel=$(basename "$work"/wheel1/*)
        cmp -s "$work/wheel1/$wheel" "$work/wheel2/$wheel" && ok || bad "the wheel, made again, differs"
        [[ "$wheel" =~ ^tenon-[0-9.]+-py3-none-manylinux_2_[0-9]+_$(uname -m)\.whl$ ]] && ok || bad "the name $wheel"
        if python3 -m auditwheel --version > "$work/out" 2>&1; then
            python3 -m auditwheel show "$work/wheel1/$wheel" | tr '\n' ' ' > "$work/out"
            grep -q "consistent with the following platform tag: \"$(sed 's/.*none-//; s/\.whl//' <<< "$wheel")\"" "$work/out" && ok || bad "auditwheel: $(cat "$work/out")"
        else
            skip "no auditwheel (PyPI)"
        fi
        cd "$work/environment"
        find . -type f | sort > "$work/before"
        succeeds "pip install" bin/pip install --no-index --no-compile "$work/wheel1/$wheel"
        session > session
        used "the wheel" env -i HOME="$work/home" PATH="$PWD/bin:/usr/bin:/bin" sh -c -- "$PWD"
        [ "$(ldd lib/tenon/tenon-lsp lib/tenon/tenon-bench | grep -c "=> $PWD/lib/tenon/lib")" -ge 3 ] && ok || bad "libraries of the system: $(ldd lib/tenon/tenon-lsp lib/tenon/tenon-bench)"
        rm -f session answers lenet s.db*
        succeeds "pip uninstall" bin/pip uninstall -y tenon
        find . -type f | sort | diff "$work/before" - > "$work/out" && ok || bad "pip leaves files: $(head -n 5 "$work/out")"
    fi
fi

part systems || { finish; exit; }
. "$(dirname "$0")/../systems.sh"
project=/root
trees=${TENON_SYSTEMS:-$work/trees}
sources
succeeds "a .deb with a maintainer" env DEBEMAIL=a@b.example DEBFULLNAME="A B" "$work/sources/packages/deb" -o "$work/deb0"
same "the maintainer" "$(dpkg-deb -f "$work"/deb0/*.deb Maintainer)" "A B <a@b.example>"
succeeds "a .deb" "$work/sources/packages/deb" -o "$work/deb1"
sleep 1.1
succeeds "the .deb again" "$work/sources/packages/deb" -o "$work/deb2"
deb=$(basename "$work"/deb1/*)
same "the maintainer, later" "$(dpkg-deb -f "$work/deb1/$deb" Maintainer)" "Tenon's developers <tenon@tenon.invalid>"
same "its name" "$deb" "tenon_$("$TENON" --version | sed 's/^tenon //')_$(dpkg --print-architecture).deb"
cmp -s "$work/deb1/$deb" "$work/deb2/$deb" && ok || bad "the .deb, made again, differs"
for need in 'gcc | c-compiler' libc6-dev zlib1g-dev 'libc6 (>= ' libcjson1 libsqlite3-0; do
    dpkg-deb -f "$work/deb1/$deb" Depends | grep -qF "$need" && ok || bad "the .deb does not depend on $need: $(dpkg-deb -f "$work/deb1/$deb" Depends)"
done
if command -v lintian > "$work/out"; then
    lintian --allow-root --fail-on error "$work/deb1/$deb" > "$work/out" 2>&1 && ok || bad "lintian: $(grep '^E:' "$work/out")"
else
    skip "no lintian"
fi

# on NAME TREE RECOMMENDED: the .deb on a copy of a minimal tree; RECOMMENDED: yes or no
on() {
    local name=$1 tree=$work/system option=--no-install-recommends left
    cp -a "$2" "$tree"
    cp "$work/deb1/$deb" "$tree/root"
    session > "$tree/root/session"
    [ "$3" = no ] || option=--install-recommends
    inside "$tree" "command -v cc || command -v tenon" > "$work/out" && bad "$name: the system is not bare" || ok
    succeeds "$name: apt-get update" inside "$tree" 'apt-get -qq update'
    succeeds "$name: apt-get install $option" inside "$tree" "DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $option ./$deb"
    used "$name" inside "$tree" -- /usr
    if [ "$3" = yes ]; then
        succeeds "$name: OpenBLAS" inside "$tree" 'tenon build /usr/share/tenon/models/mlp.tn --kernels=blas -o blas && ./blas --epochs 1 --limit-samples 256'
        succeeds "$name: MPI" inside "$tree" 'tenon build /usr/share/tenon/models/mlp.tn --comm mpi -o ranks &&
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 ./ranks --epochs 1 --limit-samples 256 --threads 1'
    fi
    inside "$tree" "dpkg -L tenon | while read f; do [ -d \$f ] || echo \$f; done" > "$work/installed"
    [ "$(wc -l < "$work/installed")" -gt 200 ] && ok || bad "$name: only $(wc -l < "$work/installed") files are installed"
    succeeds "$name: apt-get purge" inside "$tree" 'apt-get purge -qq -y tenon'
    left=$(cd "$tree" && { sed 's,^/,,' "$work/installed" | while read -r f; do [ ! -e "$f" ] && [ ! -L "$f" ] || echo "$f"; done
        find . -xdev \( -path ./root -o -path ./tmp -o -path ./var/log -o -path ./proc -o -path ./sys \) -prune -o -iname '*tenon*' -print; } | head -n 5)
    same "$name: files after the removal" "none$left" none
    rm -rf "$tree"
}

kept() { [ -d "$trees/$1" ] || base "$trees/$1" "${@:2}" || { skip "debootstrap cannot make $1 here: $(tail -n 1 "$work/debootstrap")"; false; }; }
if kept "$suite" "$suite" "$mirror"; then on "Debian $suite" "$trees/$suite" yes; fi
next=trixie
[ "$suite" = $next ] || ! kept $next $next "$mirror" || on "Debian $next" "$trees/$next" no
read -r ubuntu archive <<< "${TENON_UBUNTU:-noble http://archive.ubuntu.com/ubuntu}"
if unpack $next "$work/keys" ubuntu-keyring; then
    # gutsy is debootstrap's script for all later releases; this debootstrap can be older than the release.
    if kept "$ubuntu" "$ubuntu" "$archive" gutsy --keyring="$work/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg" --components=main,universe; then
        on "Ubuntu $ubuntu" "$trees/$ubuntu" no
    fi
else
    skip "Ubuntu's keys cannot be fetched: $(tail -n 1 "$work/apt.log")"
fi
finish
