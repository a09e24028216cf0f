#!/usr/bin/env bash
# Builds the examples outside the tree, with an installed library, and runs them.
#   outside.sh BUILD EXAMPLES
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$1" --prefix "$work/prefix" >/dev/null
cp -r "$2" "$work/examples" # nothing of the tree is near
cd "$work"
{
    cmake -S examples/mlp -B build -DCMAKE_PREFIX_PATH="$work/prefix" && cmake --build build
} >log || { cat log; exit 1; }
build/sine
prefix/bin/anneal plan examples/own-graph.ang --batch 256
