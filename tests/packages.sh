# packages.sh -- sourced by ./quickstart and ./check: installs missing packages, or prints which packages to install.
#
#   need_packages COMMAND:PACKAGE FILE:PACKAGE CALL@HEADER@LIBRARIES:PACKAGE ...
#
# A FILE starts with / and can be a glob.  CALL@HEADER@LIBRARIES is present if a C program with this call links: a header alone proves
# nothing, because two packages can have it (libblas-dev has a cblas.h, but not the library that programs need).
# If everything is present, the network is not used.

# links CALL HEADER LIBRARIES: whether a C program with this header and this call links with these libraries
links() {
    local file status=0
    file=$(mktemp)
    # shellcheck disable=SC2086
    printf '#include <%s>\nint main(void)\n{\n    %s;\n    return 0;\n}\n' "$2" "$1" | cc -x c -o "$file" - $3 2> /dev/null || status=$?
    rm -f "$file"
    return $status
}

missing_packages() {
    local item have call header libraries
    for item in "$@"; do
        have=${item%%:*}
        case $have in
        *@*) IFS=@ read -r call header libraries <<< "$have"
             links "$call" "$header" "$libraries" || echo "${item#*:}" ;;
        /*) compgen -G "$have" > /dev/null || echo "${item#*:}" ;;
        *) command -v "$have" > /dev/null || echo "${item#*:}" ;;
        esac
    done | sort -u | tr '\n' ' '
}

# have ITEM...: whether all items are present
have() {
    [ -z "$(missing_packages "$@")" ]
}

need_packages() {
    local missing sudo=
    recent_cmake
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if ! command -v apt-get > /dev/null; then
        echo "missing: $missing(names of Debian packages); install them with this system's own tool, then try again" >&2
        exit 1
    fi
    if [ "$(id -u)" != 0 ]; then
        sudo=sudo
        if ! command -v sudo > /dev/null || ! sudo -n true 2> /dev/null && ! { [ -t 0 ] && sudo true; }; then
            echo "missing packages; as root: apt-get install $missing" >&2
            exit 1
        fi
    fi
    echo "installing $missing"
    # Package lists can be missing or old: they are fetched only if the first attempt fails.
    local log
    log=$(mktemp)
    # shellcheck disable=SC2086
    if ! install_packages "$sudo" $missing > "$log" 2>&1; then
        $sudo apt-get update -qq > "$log" 2>&1 || true
        if ! install_packages "$sudo" $missing >> "$log" 2>&1; then
            tail -n 20 "$log" >&2
            echo "cannot install; needed packages: $missing" >&2
            rm "$log"
            exit 1
        fi
    fi
    rm "$log"
}

# Whether an old cmake, such as one in /usr/local/bin, hides Debian's: then installing a package would not help.
recent_cmake() {
    local have wanted=3.18
    have=$(cmake --version 2> /dev/null | sed -n '1s/.*version //p') || return 0      # no cmake: it will be installed
    if [ -n "$have" ] && [ "$(printf '%s\n' $wanted "${have%%-*}" | sort -V | head -n 1)" != $wanted ]; then
        echo "$(command -v cmake) is version $have; $wanted or newer is needed: install Debian's package cmake and put it first in PATH" >&2
        exit 1
    fi
}

# writable_tree DIR: exits if DIR/build, to which both commands write, is not writable
writable_tree() {
    mkdir -p "$1/build" 2> /dev/null && [ -w "$1/build" ] && return
    echo "cannot write to $1/build: copy the repository to a directory of yours, or build elsewhere: cmake -S ${1@Q} -B DIR && cmake --build DIR" >&2
    exit 1
}

install_packages() {
    local sudo=$1; shift
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@"
}

# want_packages ITEM...: the same, but continues if packages are missing; the commands that need them report it
want_packages() {
    local missing
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    (need_packages "$@") > /dev/null 2>&1 || echo "going on without $missing"
}

# Headers of the C library and of zlib are in a directory that depends on the architecture: a glob finds it.
packages_build=(gcc:build-essential make:build-essential cmake:cmake flex:flex bison:bison
                '/usr/include/stdio.h:build-essential' '/usr/include/zlib.h:zlib1g-dev')
# For tenon sweep, tenon results and tenon lsp.
packages_sweep=(/usr/include/sqlite3.h:libsqlite3-dev /usr/include/cjson/cJSON.h:libcjson-dev)
# Also for bench/run.  A function that only OpenBLAS has distinguishes it from other BLAS libraries.
openblas='extern void openblas_set_num_threads(int); cblas_sdot(0, 0, 0, 0, 0); openblas_set_num_threads(1)@cblas.h@-lopenblas:libopenblas-dev'
packages_check=("${packages_build[@]}" "${packages_sweep[@]}" pkg-config:pkg-config /usr/include/lzma.h:liblzma-dev xz:xz-utils '/usr/include/check.h:check' "$openblas"
                mpicc:libopenmpi-dev mpirun:openmpi-bin ompi_info:openmpi-bin /usr/include/png.h:libpng-dev /usr/include/turbojpeg.h:libturbojpeg0-dev)
# 75 MB to fetch, only for ./check --deep; without them tests/programs/armv8.sh and numa.sh, and parts of completion.sh, are skipped.
packages_cross=(aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu '/usr/aarch64-linux-gnu/include/stdio.h:libc6-dev-arm64-cross'
                qemu-aarch64:qemu-user qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio zsh:zsh fish:fish)
