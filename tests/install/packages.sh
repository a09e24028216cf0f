#!/usr/bin/env bash
# Tries what users get: the tarball and the Debian packages, each in a fresh Debian 12 without a network. It is
# installed, it trains on MNIST to the accuracy that the example promises, a program is compiled with it, and it is
# removed and leaves nothing behind.
#   packages.sh SOURCE-TREE BUILD [FOLDER-WITH-DEBIAN-PACKAGES]
# Without the folder, the packages are made first, which compiles the library again. Takes root, and what
# `tools/bootstrap --packages` installs.
set -euo pipefail
tree=$1 build=$2 packages=${3:-}
debian=${ANNEAL_DEBIAN12:-$tree/.deps/debian12.tar}
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
[ "$(id -u)" = 0 ] || skip "chroot needs root"
[ -e "$debian" ] || skip "$debian is missing; tools/bootstrap --packages makes it"
unshare --net --mount true 2>/dev/null || skip "a network of its own is not allowed here"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# inside ROOT COMMAND...: in the Debian there, with an empty network and a /proc of its own that goes with the command.
# Nothing is mounted outside, so nothing has to be unmounted.
inside() {
    local root=$1
    shift
    unshare --net --mount --pid --fork sh -euc 'mount -t proc proc "$1/proc"; mount --bind /dev "$1/dev"; root=$1; shift
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' \
        sh "$root" "$@"
}

# fresh NAME: a new Debian, and its files as a list. What a log or a cache of apt holds is not anneal's.
fresh() {
    mkdir "$work/$1"
    tar -C "$work/$1" -xf "$debian"
    listing "$work/$1" >"$work/$1.before"
}
listing() { (cd "$1" && find . -path ./proc -prune -o -path ./dev -prune -o -path ./var/log -prune -o -path ./var/cache -prune -o -path ./var/lib/dpkg -prune -o \
    -path ./var/lib/apt -prune -o -print | sort); }
nothing_left() {
    listing "$work/$1" >"$work/$1.after"
    diff "$work/$1.before" "$work/$1.after" || fail "removing it left files behind (>)"
}

# trains ROOT ANNEAL EXAMPLES: the example in a folder of its own; prints the accuracy and the hash of the weights.
trains() {
    inside "$1" sh -euc 'mkdir -p /srv/work; cd /srv/work; '"$2 train $3/mnist/mlp.yaml --set run.dir=/srv/work/run" >"$work/train.log" 2>&1 ||
        { cat "$work/train.log"; fail "training failed"; }
    grep -E '^(best|weights)' "$work/train.log"
    awk '/^best val_accuracy/ { good = $3 + 0 > 0.965 } END { exit !good }' "$work/train.log" || fail "the accuracy is below 0.965"
    rm -rf "$1/srv/work"
}

echo "== the tarball"
cpack --config "$build/CPackConfig.cmake" -B "$work/packed" >"$work/cpack.log" 2>&1 || { cat "$work/cpack.log"; fail "cpack"; }
tarball=$(echo "$work"/packed/*.tar.gz)
size=$(stat -c %s "$tarball")
most=$((25 * 1000 * 1000))
tar -tzf "$tarball" | grep -q libdnnl && most=$((80 * 1000 * 1000))
echo "$(basename "$tarball"): $size bytes"
[ "$size" -le $most ] || fail "more than $most bytes"
fresh one
start=$(date +%s%N)
mkdir -p "$work/one/home/someone"
tar -C "$work/one/home/someone" -xzf "$tarball"
mv "$work/one/home/someone"/anneal-* "$work/one/home/someone/any folder" # which has a space in its name
prefix="/home/someone/any folder"
trains "$work/one" "'$prefix/bin/anneal'" "'$prefix/share/anneal/examples'" | tee "$work/one.result"
elapsed=$((($(date +%s%N) - start) / 1000000))
echo "from unpacking to trained: $elapsed ms"
[ $elapsed -lt 60000 ] || fail "it takes more than a minute"

inside "$work/one" ldd "$prefix/bin/anneal" "$prefix/lib/libanneal.so" >"$work/ldd"
! grep 'not found' "$work/ldd" || fail "a library is missing"
outside=$(awk '$2 == "=>" { print $1, $0 }' "$work/ldd" | grep -v "=> $prefix/" | grep -vE '^(libc|libm|libdl|libpthread)\.so' || true)
[ -z "$outside" ] || fail "loaded from the system: $outside"
inside "$work/one" "$prefix/bin/anneal" train "$prefix/share/anneal/examples/mnist/mlp.yaml" --set run.dir=/tmp/run --ranks 2 >"$work/ranks.log" 2>&1 &&
    fail "two ranks without an MPI"
grep -iE 'mpi' "$work/ranks.log" || fail "the message about ranks does not speak of MPI: $(cat "$work/ranks.log")"
rm -rf "$work/one/home/someone" "$work"/one/tmp/run
nothing_left one

echo "== the Debian packages"
if [ -z "$packages" ]; then
    packages=$work/deb
    "$tree/packaging/make-deb" "$packages"
fi
fresh two
cp "$packages"/*.deb "$work/two/var/cache/"
# What they depend on comes from apt's cache, which is all that this Debian can reach.
inside "$work/two" sh -euc 'apt-get -q -y --no-install-recommends install /var/cache/anneal_*.deb /var/cache/libanneal*.deb gcc libc6-dev pkg-config' \
    >"$work/apt.log" 2>&1 || { tail -n 30 "$work/apt.log"; fail "apt-get install"; }
trains "$work/two" anneal /usr/share/anneal/examples | tee "$work/two.result"
diff "$work/one.result" "$work/two.result" || fail "the packages give other bits than the tarball"
inside "$work/two" sh -euc 'cd /root; cc /usr/share/anneal/examples/mlp/sine.c -o sine $(pkg-config --cflags --libs anneal) -lm; ./sine; rm sine' >"$work/sine.log" ||
    { cat "$work/sine.log"; fail "a program with libanneal-dev"; }
tail -n 1 "$work/sine.log"
inside "$work/two" sh -euc 'apt-get -q -y purge anneal libanneal-dev libanneal0.2; rm /var/cache/*.deb; apt-get -q -y purge gcc libc6-dev pkg-config
    apt-get -q -y --purge autoremove' >"$work/apt.log" 2>&1 || { tail -n 30 "$work/apt.log"; fail "apt-get purge"; }
! listing "$work/two" | grep anneal || fail "removing it left files behind"
nothing_left two
echo "everything was installed, used and removed"
