#!/usr/bin/env bash
# Kernels on the model of tiles and on the processor's tiles: the same bits. Skipped where the processor has no AMX.
set -euo pipefail

fail() {
    echo "same-bits: $*"
    exit 1
}

for op in matmul matmul_sum matmul_chain attention attention_diff cached_attention; do
    for program in checkops checkops_on_model; do
        code=0
        "$ANNEAL_BIN/$program" --mode=test --isa=amx --op=$op --dtype=bf16 --shapes="${1:-6}" --bits > $program.txt || code=$?
        [ $code != 77 ] || [ $program = checkops_on_model ] || exit 77
        [ $code = 0 ] || fail "$program --op=$op ended with $code"
    done
    [ "$(grep -c ^bits checkops.txt)" -ge 6 ] || fail "$op: nothing was compared"
    diff checkops.txt checkops_on_model.txt || fail "$op has other bits on the model"
done
