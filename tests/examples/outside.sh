#!/usr/bin/env bash
# Builds the examples outside the tree, with an installed library, and runs them.
#   outside.sh BUILD EXAMPLES
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$1" --prefix "$work/prefix" >/dev/null
cp -r "$2" "$work/examples" # nothing of the tree is near
cd "$work"
for example in mlp own-model own-op own-optimizer surrogate; do
    {
        cmake -S examples/$example -B build/$example -DCMAKE_PREFIX_PATH="$work/prefix" && cmake --build build/$example
    } >log || { cat log; exit 1; }
done
build/mlp/sine
build/own-model/spirals
build/surrogate/surrogate examples/surrogate/surrogate.yaml
"$tests"/own_optimizer.sh "$work/build/own-optimizer/waves" "$work/examples/own-optimizer" "$work/prefix/bin/anneal"
prefix/bin/anneal plan examples/own-graph.ang --batch 256
"$tests/own-op.sh" build/own-op/own-op examples/own-op prefix/bin/anneal
