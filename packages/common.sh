# common.sh -- sourced by the three scripts of packages/: messages, the option -o, the version, a build of the sources.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
self=$(basename "$0")
out=$root/build/packages

die() { echo "$self: $*" >&2; exit 1; }
usage() { sed -n '2,/^set /p' "$0" | grep '^#' | sed 's/^# \{0,1\}//'; }

# options ARGUMENT...: sets $out, makes it a directory with an absolute path
options() {
    while [ $# -gt 0 ]; do
        case $1 in
        -o) [ -n "${2:-}" ] || die "-o needs a directory"
            out=$2; shift ;;
        -h | --help) usage; exit 0 ;;
        *) die "unknown argument '$1'; only -o DIR is known" ;;
        esac
        shift
    done
    mkdir -p "$out" 2> /dev/null && [ -w "$out" ] || die "cannot write to the directory $out; choose another one: packages/$self -o DIR"
    out=$(cd "$out" && pwd)
}

version() { sed -n 's/^project(tenon VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt"; }

# The date of files in packages: the last commit's, so that equal sources give equal packages.
source_date() { git -C "$root" log -1 --format=%ct 2> /dev/null || stat -c %Y "$root/CMakeLists.txt"; }

# build_tree DIR OPTION...: makes an optimised tenon with all its programs in DIR; installs what is missing, or names it
build_tree() {
    local dir=$1; shift
    . "$root/tests/packages.sh"
    need_packages "${packages_build[@]}" "${packages_sweep[@]}" /usr/include/lzma.h:liblzma-dev /usr/include/png.h:libpng-dev \
        /usr/include/turbojpeg.h:libturbojpeg0-dev
    mkdir -p "$dir" 2> /dev/null && [ -w "$dir" ] || die "cannot write to $dir: copy the sources to a directory of yours"
    echo "building tenon in $dir"
    # nvcc is looked for when a program is built, where NVIDIA's packages install it.
    { cmake -S "$root" -B "$dir" -DCMAKE_BUILD_TYPE=Release -DTENON_TESTS=OFF -DTENON_NVCC=/usr/local/cuda/bin/nvcc "$@" &&
        cmake --build "$dir" --parallel "$(nproc)"; } > "$dir/log" 2>&1 || { tail -n 20 "$dir/log" >&2; die "the build has failed; all of its output is in $dir/log"; }
}
