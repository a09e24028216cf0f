#!/usr/bin/env bash
# Makes the tarball of a build and unpacks it for the walks.
#   unpack.sh BUILD FOLDER      FOLDER becomes what users have after `tar -x`
set -euo pipefail
build=$1 folder=$2
command -v patchelf >/dev/null || { echo "skipped: the tarball needs patchelf, which tools/bootstrap installs"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cpack --config "$build/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
ls -l "$work"/*.tar.gz
tar -C "$work" -xzf "$work"/*.tar.gz
# The tree and the folder of the build are on the machine of whoever packed it.
! grep -rlIF "$build" "$work"/anneal-*/ || { echo "FAILED: these files name the folder of the build"; exit 1; }
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mv "$work"/anneal-*/ "$folder"
