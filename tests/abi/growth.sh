#!/usr/bin/env bash
# Programs of this release on a library of a later one, in which every public struct has one more member; and programs of
# the later release on this library. From the first release on, the headers that its programs were compiled with stand
# in for those of this tree.
#   growth.sh BUILD
set -euo pipefail
build=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

echo "== the later release: its headers, and its library"
mkdir later
cp -r "$root/CMakeLists.txt" "$root/cmake" "$root/src" "$root/packaging" "$root/LICENSE" later/
"$here/grow.py" "$root/include/anneal" later/include/anneal
# Speed does not matter here, the time to compile does. Kernels are the portable ones.
cmake -S later -B later/build -G Ninja -DANNEAL_TESTS=OFF -DANNEAL_ONEDNN=OFF -DANNEAL_MPI=OFF -DCMAKE_BUILD_TYPE= -DCMAKE_C_FLAGS=-O1 \
    ${CMAKE_C_COMPILER_LAUNCHER:+-DCMAKE_C_COMPILER_LAUNCHER=$CMAKE_C_COMPILER_LAUNCHER} >cmake.log 2>&1 || { cat cmake.log; exit 1; }
cmake --build later/build --target anneal_shared >cmake.log 2>&1 || { tail -30 cmake.log; exit 1; }

# program NAME INCLUDE BUILD FILE: compiled with these headers, linked with that library
program() {
    gcc -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Werror -O1 "$4" -o "$1" -I "$2" -I "$3/include" -L "$3/lib" -lanneal -lm -Wl,-rpath,"$3/lib"
}
run() {
    mkdir -p "in-$1"
    (cd "in-$1" && OMP_NUM_THREADS=1 timeout 300 "../$1" "${@:2}") >"$1.out" 2>&1 || { echo "$1 failed:"; cat "$1.out"; exit 1; }
}

for file in "$root"/examples/own-model/spirals.c "$root"/examples/mlp/sine.c "$root"/tests/install/use.c "$root"/examples/surrogate/surrogate.c; do
    name=$(basename "$file" .c)
    arguments=()
    [ "$name" = surrogate ] && arguments=("$root/examples/surrogate/surrogate.yaml")
    echo "== $name: 0.2 on the later library"
    program "$name-later-library" "$root/include" "$work/later/build" "$file"
    run "$name-later-library" "${arguments[@]}"
    program "$name-both-later" later/include "$work/later/build" "$file"
    run "$name-both-later" "${arguments[@]}"
    diff "$name-later-library.out" "$name-both-later.out"
    echo "== $name: later, on this library"
    program "$name-later-program" later/include "$build" "$file"
    run "$name-later-program" "${arguments[@]}"
    program "$name-both-now" "$root/include" "$build" "$file"
    run "$name-both-now" "${arguments[@]}"
    diff "$name-later-program.out" "$name-both-now.out"
done

echo "== options of a later release are refused"
program appended later/include "$build" "$here/appended.c"
run appended
cat appended.out
