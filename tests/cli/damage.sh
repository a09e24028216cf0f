#!/usr/bin/env bash
# A run whose newest checkpoints are damaged: it carries on from the one before, says so and which file it was, and ends
# with the same bits. If all are damaged it is refused, and nothing is deleted.
source "$(dirname "$0")/preamble.sh"
export OMP_NUM_THREADS=2

# Lines are as wide as a page: what they say is looked for in one.
says() { tr -s ' \n' ' ' <out | grep -qF -- "$1" || fail "it does not say: $1"; }
state() { python3 -c "import json; print(json.load(open('$1/summary.json'))['state_hash'])"; }
# flip FILE BYTE: another bit in it
flip() {
    python3 - "$1" "$2" <<'P'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 4]))
P
}

python3 - <<'P'
with open("sums.csv", "w") as rows:
    rows.write("a,b,sum\n")
    for i in range(96):
        rows.write(f"{i % 11 / 10:.3f},{i % 7 / 6:.3f},{i % 11 / 10 + i % 7 / 6:.3f}\n")
P
cat >small.yaml <<'Y'
run:       {dir: whole, steps: 12, seed: 3}
model:     {type: mlp, hidden: [5], dropout: 0.1}
data:      {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}
batch:     {global: 8, leaves: 2}
optimizer: {lr: 1e-2}
save:      {every: 3 steps, keep_last: all, writers: 2}
Y
"${anneal[@]}" train small.yaml >out 2>err || fail "a run"
expected=$(state whole)

# stopped NAME: a run of that name that has the checkpoints 3, 6 and 9, and no more steps
stopped() {
    cp -r whole "$1"
    rm -r "$1"/checkpoints/step-00000012-1 "$1"/summary.json "$1"/outcome.json
    [ "$(ls "$1/checkpoints" | tr '\n' ' ')" = 'step-00000003-1 step-00000006-1 step-00000009-1 ' ] ||
        fail "there are: $(ls "$1/checkpoints")"
}
# carries_on NAME STEP FILE...: from the checkpoint of that step, and these files of later ones are named
carries_on() {
    local name=$1 step=$2 named
    shift 2
    "${anneal[@]}" train small.yaml --set run.dir="$name" >out 2>err || fail "$name: it ended with $?"
    [ ! -s err ] || fail "$name: there is something on standard error"
    says "resumes after step $step, from $name/checkpoints/step-0000000$step-1"
    for named in "$@"; do says "$name/checkpoints/$named"; done
    [ "$(grep -c 'skipped:' out)" = $# ] || fail "$name: not $# checkpoints were skipped"
    [ "$(state "$name")" = "$expected" ] || fail "$name: it ends with other bits"
}

# --- as it is, and one damage after another of the newest ---
stopped good
carries_on good 9
newest=checkpoints/step-00000009-1
for file in config.yaml graph.ang metrics.json part-00000.safetensors part-00001.safetensors manifest.json; do
    stopped "flip-$file"
    flip "flip-$file/$newest/$file" 60
    carries_on "flip-$file" 6 "step-00000009-1/$file"
    code=0
    "${anneal[@]}" verify "flip-$file/$newest" >out 2>err || code=$?
    [ "$code" = 1 ] && cat out err | grep -qF "step-00000009-1/$file" || fail "verify, after a flip in $file: $code"
done
for file in part-00001.safetensors manifest.json; do
    stopped "cut-$file"
    truncate -s -1 "cut-$file/$newest/$file"
    carries_on "cut-$file" 6 "step-00000009-1/$file"
    stopped "gone-$file"
    rm "gone-$file/$newest/$file"
    carries_on "gone-$file" 6 "step-00000009-1/$file"
done
stopped swapped
cp swapped/checkpoints/step-00000006-1/part-00000.safetensors swapped/$newest/
carries_on swapped 6 step-00000009-1/part-00000.safetensors

# --- the two newest ---
stopped two
flip two/$newest/part-00001.safetensors 4100
flip two/checkpoints/step-00000006-1/manifest.json 4
carries_on two 3 step-00000009-1/part-00001.safetensors step-00000006-1/manifest.json

# --- all of them: refused, and nothing is deleted ---
stopped all
for step in 3 6 9; do flip all/checkpoints/step-0000000$step-1/part-00000.safetensors 4097; done
cp -r all all-before
code=0
"${anneal[@]}" train small.yaml --set run.dir=all >out 2>err || code=$?
[ "$code" = 1 ] || fail "all are damaged: exit code $code"
cat out err >both
for step in 3 6 9; do
    grep -qF "step-0000000$step-1/part-00000.safetensors" both || fail "all are damaged: it does not name that of step $step"
done
grep -qF -- '--fresh' both || fail "all are damaged: it does not say what to do"
diff -r all-before/checkpoints all/checkpoints >diff || fail "all are damaged: $(cat diff)"
[ ! -e all/summary.json ] || fail "all are damaged: there is a summary"
"${anneal[@]}" train small.yaml --set run.dir=all --fresh >out 2>err || fail "all are damaged: --fresh"
diff -r all-before/checkpoints all/checkpoints >diff || fail "--fresh: $(cat diff)"
[ "$(state all-2)" = "$expected" ] || fail "--fresh ends with other bits"
echo "damage: all as it should be"
