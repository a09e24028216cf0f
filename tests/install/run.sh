#!/usr/bin/env bash
# Installs a build and uses it from outside the tree: from C and C++, by pkg-config and by find_package, shared and
# static.
#   run.sh BUILD
set -euo pipefail
build=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

strict=(-Wall -Wextra -Wpedantic -Werror)
c=(gcc -std=c11 "${strict[@]}")
cpp=(g++ -std=c++17 "${strict[@]}" -Wold-style-cast)

echo "== install, then move: the installed tree may not know where it lies"
cmake --install "$build" --prefix "$work/first" >/dev/null
mv first prefix
prefix=$work/prefix
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name anneal.pc)")
libdir=$(pkg-config --variable=libdir anneal)
test -f "$prefix/share/doc/anneal/LICENSE"

echo "== every public header compiles alone, as C11 and as C++17"
for header in "$prefix"/include/anneal/*.h; do
    [ "$(basename "$header")" != mpi.h ] || continue # below: it needs an MPI
    grep -qE 'not for direct use|do not include it directly' "$header" && continue # a part of another header, and says so
    printf '#include <anneal/%s>\nextern int not_empty;\n' "$(basename "$header")" >header.c
    "${c[@]}" -fsyntax-only $(pkg-config --cflags anneal) header.c
    "${cpp[@]}" -fsyntax-only -x c++ $(pkg-config --cflags anneal) header.c
done

for plugin in "$libdir"/libanneal-mpi-*.so; do
    [ -e "$plugin" ] || continue
    mpi=${plugin##*-mpi-} mpi=${mpi%.so}
    echo "== mpi.h and the installed plugin, with $mpi"
    case $mpi in openmpi) module=ompi-c ;; *) module=$mpi ;; esac
    flags=$(pkg-config --cflags "$module" | sed 's/-I/-isystem /g') # its own warnings are not ours
    "${c[@]}" -fsyntax-only $(pkg-config --cflags anneal) $flags -x c <(printf '#include <anneal/mpi.h>\nextern int not_empty;\n')
    "${cpp[@]}" -fsyntax-only $(pkg-config --cflags anneal) $flags -x c++ <(printf '#include <anneal/mpi.h>\nextern int not_empty;\n')
    "${c[@]}" "$here/use_mpi.c" -o "use_$mpi" $(pkg-config --cflags anneal) $flags $(pkg-config --libs anneal "$module")
    LD_LIBRARY_PATH=$libdir "$here/../comm/mpirun.sh" "$mpi" 2 "./use_$mpi"
done

echo "== pkg-config, from C and C++, shared and static"
"${c[@]}" "$here/use.c" -o use_c $(pkg-config --cflags --libs anneal)
"${cpp[@]}" -x c++ "$here/use.c" -x none -o use_cpp $(pkg-config --cflags --libs anneal)
static=$(pkg-config --static --cflags --libs anneal)
"${c[@]}" "$here/use.c" -o use_static ${static/-lanneal/-l:libanneal.a}
LD_LIBRARY_PATH=$libdir ./use_c
LD_LIBRARY_PATH=$libdir ./use_cpp
./use_static

echo "== find_package, from C and C++, shared and static"
for static in OFF ON; do
    project=project-$static
    {
        cmake -S "$here/project" -B "$project" -DCMAKE_PREFIX_PATH="$prefix" -DUSE="$here/use.c" -DSTATIC=$static &&
            cmake --build "$project"
    } >project.log || { cat project.log; exit 1; }
    "$project/use_c"
    "$project/use_cpp"
done

if [ -x "$prefix/bin/anneal" ]; then
    echo "== the installed command"
    "$prefix/bin/anneal" version
fi
