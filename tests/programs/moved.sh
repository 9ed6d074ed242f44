#!/usr/bin/env bash
# moved.sh -- an installed tree works in any directory, also after it was moved; so do the programs that it builds.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

succeeds "install" cmake --install "$(dirname "$TENON")" --prefix "$work/first"
for f in bin/tenon lib/tenon/libtenonrt.a share/tenon/runtime/rt.h share/tenon/runtime/cpu/kernels.h share/tenon/models/lenet.tn share/tenon/editors/neovim/lua/tenon.lua \
         share/tenon/models/data/mnist/train-images-idx3-ubyte.gz; do
    [ -e "$work/first/$f" ] && ok || bad "not installed: $f"
done
doc=$work/first/share/doc/tenon
while read -r link; do
    [ -e "$doc/$link" ] && ok || bad "the installed README.md links to $link, which is not installed"
done < <(grep -o '](\([^)]*\))' "$doc/README.md" | sed 's/](\([^)#]*\).*)/\1/' | grep -v '^[a-z]*:')
mv "$work/first" "$work/a second place"
tree="$work/a second place" elsewhere=$work/elsewhere
mkdir "$elsewhere"; cd "$elsewhere"
succeeds "check" "$tree/bin/tenon" check "$tree/share/tenon/models/lenet.tn"
printf 'import "losses.tn"\nmodel net(x: f32[8]) { return dense(x, 3) }\ntrain net { data = mnist; loss = focal(output, label); optimizer = sgd(lr = 0.1) }\n' > focal.tn
succeeds "an import from the library" "$tree/bin/tenon" check focal.tn
if [ -e "$(dirname "$TENON")/tenon-bench" ]; then
    succeeds "a sweep" "$tree/bin/tenon" sweep "$tree/share/tenon/models/mlp.tn" --steps 2 --repeat 1 --threads 1 --retries 0 --store "$work/results.db"
fi
if [ -e "$(dirname "$TENON")/tenon-lsp" ]; then
    rpc() { printf 'Content-Length: %d\r\n\r\n%s' ${#1} "$1"; }
    { rpc '{"id":1,"method":"initialize","params":{}}'; rpc '{"id":2,"method":"shutdown"}'; rpc '{"method":"exit"}'; } > "$work/session"
    succeeds "a session of an editor" "$tree/bin/tenon" lsp < "$work/session"
fi
succeeds "build" "$tree/bin/tenon" build "$tree/share/tenon/models/mlp.tn" -o "$elsewhere/mlp"
succeeds "train on the installed data" "$elsewhere/mlp" --epochs 1 --limit-samples 256
ln -s "$tree/bin/tenon" "$elsewhere/link"
succeeds "build through a symbolic link" "$elsewhere/link" build "$tree/share/tenon/models/mlp.tn" -o "$elsewhere/mlp2"
cmp -s "$elsewhere/mlp" "$elsewhere/mlp2" && ok || bad "the link builds another program"
if command -v python3 > /dev/null; then
    for place in share/tenon share/doc/tenon; do
        for name in heads pairs; do
            refuses "$place: the help of make.py of $name" "^make.py -- writes" python3 "$tree/$place/models/data/$name/make.py" --help
        done
        refuses "$place: make.py of diabetes" "^usage: python3 make.py" python3 "$tree/$place/models/data/diabetes/make.py"
    done
    [ -z "$(find "$tree/share" -name __pycache__)" ] && ok || bad "make.py leaves __pycache__ in the tree"
fi
mv "$tree/lib" "$tree/lib-away"
refuses "a tree without its library" "cannot find its runtime" "$tree/bin/tenon" build "$tree/share/tenon/models/mlp.tn" -o "$elsewhere/mlp3"
finish
