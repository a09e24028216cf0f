#!/usr/bin/env bash
# checkops itself: its list, its options, and that a failure can be repeated from the line it prints.
set -euo pipefail
checkops=$ANNEAL_BIN/checkops

fail() {
    echo "check-options: $*"
    exit 1
}

ends_with() { # ends_with CODE ARGUMENT...: the exit code of checkops
    local code=0
    "$checkops" "${@:2}" > output.txt 2>&1 || code=$?
    [ "$code" = "$1" ] || fail "checkops ${*:2} ended with $code instead of $1"
}

ends_with 0 --mode=list
[ "$(wc -l < output.txt)" -ge 45 ] || fail "the list has only $(wc -l < output.txt) ops"
[ -z "$(cut -d' ' -f1 output.txt | sort | uniq -d)" ] || fail "the list names an op twice"
grep -qE ' reference$' output.txt || fail "the reference kernel does not come last"
grep -qvE '^[a-z_]+( [a-z0-9_]+)+$' output.txt && fail "the list has a line that is not an op and its kernels"

ends_with 0 --help
ends_with 0 --mode=test --op=relu --kernel=reference --dtype=bf16 --case=3 --seed=7
ends_with 0 --mode=threads --op=relu --dtype=f32 --case=1000001
ends_with 0 --mode=perf --op=relu --dtype=f32
grep -q GB/s output.txt || fail "--mode=perf prints no speed"

for wrong in --mode= --mode=all --op=none --op=input --kernel=none --dtype=i8 --case=x --case=-1 --seed= --shapes=0 extra; do
    ends_with 2 --mode=test "$wrong"
done
ends_with 2
ends_with 2 --op=relu
