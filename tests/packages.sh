# packages.sh -- sourced by ./quickstart and ./check: installs what is missing, or says what to install.
#
#   need_packages COMMAND:PACKAGE FILE:PACKAGE ...      a FILE starts with /, globs allowed
#
# Nothing is asked of the network when everything is there already.

missing_packages() {
    local item have
    for item in "$@"; do
        have=${item%%:*}
        case $have in
        /*) compgen -G "$have" > /dev/null || echo "${item#*:}" ;;
        *) command -v "$have" > /dev/null || echo "${item#*:}" ;;
        esac
    done | sort -u | tr '\n' ' '
}

need_packages() {
    local missing sudo=
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
    # package lists may be absent or stale: they are fetched only when the first attempt cannot do without
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

install_packages() {
    local sudo=$1; shift
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@"
}

# want_packages ITEM...: the same, but goes on without them; what they are for says so itself when it is asked for.
want_packages() {
    local missing
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    (need_packages "$@") > /dev/null 2>&1 || echo "going on without $missing"
}

# The C library's and zlib's headers lie where the distribution's architecture says: a glob finds both.
packages_build=(gcc:build-essential make:build-essential cmake:cmake flex:flex bison:bison
                '/usr/include/stdio.h:build-essential' '/usr/include/zlib.h:zlib1g-dev')
# tenon sweep and tenon results
packages_sweep=(/usr/include/sqlite3.h:libsqlite3-dev /usr/include/cjson/cJSON.h:libcjson-dev)
packages_check=("${packages_build[@]}" "${packages_sweep[@]}" pkg-config:pkg-config /usr/include/lzma.h:liblzma-dev xz:xz-utils '/usr/include/check.h:check' '/usr/include/*/cblas.h:libopenblas-dev'
                mpicc:libopenmpi-dev mpirun:openmpi-bin /usr/include/png.h:libpng-dev /usr/include/turbojpeg.h:libturbojpeg0-dev)
# 45 MB to fetch: for ./check --all only; without them tests/programs/armv8.sh is skipped
packages_cross=(aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu '/usr/aarch64-linux-gnu/include/stdio.h:libc6-dev-arm64-cross'
                qemu-aarch64:qemu-user)
