#!/usr/bin/env bash
# checkops itself: its list, its options, and that a failure can be repeated from the line it prints.
set -euo pipefail
checkops=(${ANNEAL_RUN:-} "$ANNEAL_BIN/checkops")

fail() {
    echo "check-options: $*"
    exit 1
}

ends_with() { # ends_with CODE ARGUMENT...: the exit code of checkops, or one of several: 0|77
    code=0
    "${checkops[@]}" "${@:2}" > output.txt 2>&1 || code=$?
    [[ "$code" =~ ^($1)$ ]] || fail "checkops ${*:2} ended with $code instead of $1"
}

ends_with 0 --mode=list
[ "$(wc -l < output.txt)" -ge 45 ] || fail "the list has only $(wc -l < output.txt) ops"
[ -z "$(cut -d' ' -f1 output.txt | sort | uniq -d)" ] || fail "the list names an op twice"
grep -qE ' portable$' output.txt || fail "the portable kernel does not come last"
grep -qvE '^[a-z_]+( [a-z0-9_]+)+$' output.txt && fail "the list has a line that is not an op and its kernels"

ends_with 0 --help
ends_with 0 --mode=test --op=relu --kernel=portable --dtype=bf16 --case=3 --seed=7
for level in base avx2 avx512 amx; do
    ends_with '0|77' --mode=test --op=relu --isa=$level # 77: this machine lacks it, and that is said
    [ "$code" = 0 ] || grep -q "no instructions of level $level" output.txt || fail "it does not say why nothing was checked"
done
ends_with 0 --mode=test --op=relu --dtype=f32 --case=3 --bits
grep -qE '^bits relu portable f32 case 3 output 0: [0-9a-f]{16}$' output.txt || fail "--bits prints no hash"
ends_with 0 --mode=list --isa=base
ends_with 0 --mode=threads --op=relu --dtype=f32 --case=1000001
ends_with 0 --mode=threads --model=mlp-32-128-128-8-b64 --op=matmul --dtype=f32 --work=0.1
grep -q ' checks, 0 failures' output.txt || fail "no node of a real model was checked"
ends_with 0 --mode=rows --model=mlp-32-128-128-8-b64 --op=matmul --dtype=f64 --work=0.1
grep -q ' checks, 0 failures' output.txt || fail "no sample of a real model was checked"
ends_with 0 --mode=perf --op=relu --dtype=f32
grep -q GB/s output.txt || fail "--mode=perf prints no speed"

for wrong in --mode= --mode=all --op=none --op=input --kernel=none --dtype=i8 --isa=sse --isa=auto --case=x --case=-1 --seed= --shapes=0 --threads=0 --model=none --work=x extra; do
    ends_with 2 --mode=test "$wrong"
done
ends_with 2
ends_with 2 --op=relu
