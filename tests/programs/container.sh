#!/usr/bin/env bash
# container.sh -- bench/container/image makes an image below 150 MB; unpacked, it trains and sweeps without programs of the machine and
# without a network.
#
# Takes two minutes: with CHECK_DEEP=1 (./check --deep) only, as root, on a Debian that can fetch packages.  Otherwise skipped.
set -uo pipefail
. "$(dirname "$0")/../common.sh"
image=$TENON_ROOT/bench/container/image rootfs=$TENON_ROOT/bench/container/rootfs build=$(dirname "$TENON")

refuses "an unknown option" "image: unknown option '--tag'" "$image" --tag x
refuses "an archive of another kind" "image: -o needs a name that ends in .tar or .tar.gz, not x.zip" "$image" -o x.zip
refuses "a build that is not there" "rootfs: there is no nowhere/tenon" "$rootfs" nowhere "$work/root"
refuses "a directory that is there" "rootfs: $work is there already" "$rootfs" "$build" "$work"
deep "an image that trains" || { finish; exit; }
command -v apt-get dpkg-deb unshare readelf cmake > /dev/null && [ "$(id -u)" = 0 ] && unshare --mount --net --pid --fork true 2> /dev/null ||
    { skip "no root, or no Debian, to make and enter an image"; finish; exit; }

cd "$work"
export DEBS=$work/debs
if ! "$image" --build "$build" -o image.tar > made 2>&1; then
    if grep -Eq 'cannot be fetched|no such packages' made; then skip "Debian's packages cannot be fetched here"; else bad "no image: $(cat made)"; fi
    finish; exit
fi
"$image" --build "$build" -o again.tar.gz > /dev/null && [ "$(gzip -dc again.tar.gz | sha256sum)" = "$(sha256sum < image.tar)" ] && ok || bad "made again, the image differs"
rm again.tar.gz

# Read as docker load does: manifest -> configuration, layers; both are named by their hashes.
mkdir image root
tar -xf image.tar -C image
config=$(sed -n 's/.*"Config":"\([^"]*\)".*/\1/p' image/manifest.json) layer=image/$(sed -n 's/.*"Layers":\["\([^"]*\)".*/\1/p' image/manifest.json)
same "the configuration's name" "$(sha256sum < "image/$config" | cut -d' ' -f1).json" "$config"
same "the layer's hash" "sha256:$(sha256sum < "$layer" | cut -d' ' -f1)" "$(sed -n 's/.*"diff_ids":\["\([^"]*\)".*/\1/p' "image/$config")"
[ "$(stat -c %s "$layer")" -lt 150000000 ] && ok || bad "the image is larger than 150 MB: $(cat made)"
tar -xf "$layer" -C root

# Inside: no network, and nothing of this machine but its processors and /dev.
inside() {
    unshare --mount --net --pid --ipc --uts --fork --kill-child sh -ec '
        mount -t proc proc root/proc; mount --rbind /dev root/dev; mount -t tmpfs tmpfs root/tmp
        exec chroot root env -i HOME=/tmp PATH=/usr/bin:/usr/sbin sh -ec "cd /tenon; $1"' sh "$1"
}
succeeds "training in the image" inside 'tenon run models/lenet.tn -- --epochs 1'
grep -Eq '^test accuracy 0\.9[78]' out && ok || bad "an epoch of LeNet in the image: $(cat out)"
succeeds "a sweep in the image" inside 'tenon sweep models/mlp.tn --steps 5 --repeat 2 --batch 64,128 --retries 0 --store /tmp/s.db && tenon results table --store /tmp/s.db &&
    tenon results report --store /tmp/s.db -o /tmp/s.html && test -s /tmp/s.html'
same "its configurations" "$(grep -Ec 'mlp, batch (64|128), [0-9]+ threads? +[0-9,]+ +[0-9,]+ \.\. ' out)" 2
succeeds "other models, and the checked-in sweep" inside 'for m in models/*.tn; do tenon check $m; done; tenon sweep bench/quick.sweep --dry-run'
finish
