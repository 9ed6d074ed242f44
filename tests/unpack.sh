# unpack.sh -- sourced after common.sh: packages of another release of Debian, unpacked for one test.
#
#   $suite, $mirror    the release of this machine, and the address from which apt gets it; empty without apt
suite=$(. /etc/os-release 2> /dev/null; echo "${VERSION_CODENAME:-}")
mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2> /dev/null | awk -v s="$suite" '$1 == s { print $2; exit }')

# unpack SUITE DIR PACKAGE...: unpacks packages into DIR; nothing is installed
unpack() {
    local apt=$work/apt.$1 to=$2 suite=$1 file options; shift 2
    mkdir -p "$apt/lists/partial" "$apt/debs/partial" "$to"
    : > "$apt/status"
    echo "deb $mirror $suite main" > "$apt/sources"
    options=(-o Dir::Etc::sourcelist="$apt/sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status"
             -o Dir::Cache="$apt" -o APT::Sandbox::User=)
    [ -s "$apt/pkgcache.bin" ] || apt-get "${options[@]}" update > "$work/apt.log" 2>&1 || return
    (cd "$apt/debs" && apt-get "${options[@]}" download "$@") >> "$work/apt.log" 2>&1 || return
    for file in "$@"; do dpkg-deb -x "$apt/debs/$file"_*.deb "$to" || return; done
}
