#!/usr/bin/env bash
# A program on the model of tiles has no instructions of level amx, and the libraries have nothing of the model.
set -euo pipefail

fail() {
    echo "instructions: $*"
    exit 1
}

instructions() { # instructions FILE: those of level amx
    objdump -d --no-show-raw-insn "$1" | grep -cE '^ *[0-9a-f]+:\s+(tdp|tile|ldtilecfg|sttilecfg|vdpbf16ps|vcvtne)' || true
}

# First where there are some, or a search that finds nothing would prove nothing. All programs on the model have the
# same objects.
[ "$(instructions "$ANNEAL_BIN/checkops")" -gt 200 ] || fail "checkops has no instructions of level amx"
[ "$(instructions "$ANNEAL_BIN/checkops_on_model")" = 0 ] || fail "checkops_on_model has instructions of level amx"

has_model() { # has_model FILE
    nm "$1" > names.txt 2> errors.txt
    grep -q tile_model names.txt
}
has_model "$ANNEAL_BIN/checkops_on_model" || fail "checkops_on_model does not have the model of tiles"
for library in "$ANNEAL_BIN"/../lib/libanneal.{a,so}; do
    ! has_model "$library" || fail "$library has the model of tiles"
done
