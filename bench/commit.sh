# commit.sh -- sourced by scripts that measure commits of this repository: builds a commit once.
#
#   root: the repository;  out: the directory of the builds;  die TEXT...: ends the script

# commit_of WORD: prints the whole hash
commit_of() { git -C "$root" rev-parse --quiet --verify "$1^{commit}" || die "there is no commit '$1' here"; }

# made COMMIT: installs the commit in $out/COMMIT, completely or not at all
made() {
    local commit=$1 scratch=$out/$1.part
    [ ! -x "$out/$commit/bin/tenon" ] || return 0
    echo "building $(git -C "$root" log -1 --format='%h %s' "$commit")"
    rm -rf "$scratch"
    mkdir -p "$scratch/source"
    git -C "$root" archive "$commit" | tar -x -C "$scratch/source"
    { cmake -S "$scratch/source" -B "$scratch/build" -DTENON_TESTS=OFF -DWITH_CUDA=OFF && cmake --build "$scratch/build" --parallel "$(nproc)" --target tenon tenonrt &&
        cmake --install "$scratch/build" --prefix "$scratch/tree"; } > "$scratch/log" 2>&1 || { tail -n 20 "$scratch/log" >&2; die "$commit does not build: $scratch/log"; }
    git -C "$root" rev-parse --short=10 "$commit" > "$scratch/tree/bin/tenon.commit"
    mv "$scratch/tree" "$out/$commit"
    rm -rf "$scratch"
}
