#!/usr/bin/env bash
# What the banner of `anneal train` says is what the run does: steps and epochs.
#   banner.sh      (ANNEAL_BIN is the folder of the command, ANNEAL_RUN an emulator and its options)
set -euo pipefail
anneal=(${ANNEAL_RUN:-} "$ANNEAL_BIN/anneal")
export OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    printf 'FAILED: %s\n' "$1"
    tail -n 30 out err
    exit 1
}
# The banner breaks lines where the terminal ends.
says() { tr -s '\n ' ' ' <out | grep -qF -- "$1" || fail "it does not say: $1"; }
# steps RUN MEMBER: the steps of the lines of metrics.jsonl that have the member
steps() {
    python3 -c 'import json, sys
print(*[line["step"] for line in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if sys.argv[2] in line])' "$1" "$2"
}
field() { python3 -c "import json, sys; d = json.load(open('$1')); print($2)"; }

python3 -c 'print("a,b,sum")
for i in range(9600): print(i % 11, i % 7, i % 11 + i % 7, sep=",")' >sums.csv

# --- epochs that have 3, 5, 5, 20 and 20 steps ---
cat >epochs.yaml <<'Y'
run:   {dir: whole, epochs: 5, seed: 3}
model: {type: mlp, hidden: [256, 256]}
data:
  train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}
  eval:  {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}
train: {precision: f32}
batch: {micro: 500, accumulate: {0: 8, 1: 4, 3: 1}, leaves: 1}
eval:  {every: 1 epoch}
save:  {every: 1 epoch, keep_last: all}
log:   {every: 1 epoch}
Y
"${anneal[@]}" train epochs.yaml >out 2>err || fail "it ended with $?"
says '53 steps, 5 epochs of 3 to 20 steps'
says 'by epoch: 8 micro-batches from epoch 0, 4 from epoch 1, 1 from epoch 3'
[ "$(steps whole val_loss)" = '3 8 13 33 53' ] || fail "evaluations at $(steps whole val_loss)"
[ "$(steps whole loss)" = '1 3 8 13 33 53' ] || fail "log lines at $(steps whole loss)"
saved=$(cd whole/checkpoints && echo step-*)
[ "$saved" = 'step-00000003-1 step-00000008-1 step-00000013-1 step-00000033-1 step-00000053-1' ] || fail "saves: $saved"

# killed inside the fourth epoch: the same evaluations and saves, at the same steps
"${anneal[@]}" train epochs.yaml --set run.dir=killed >out 2>err &
process=$!
for _ in $(seq 3000); do
    [ -e killed/checkpoints/step-00000013-1 ] && break
    sleep 0.01
done
kill -KILL $process || fail "it ended before it was killed"
wait $process 2>/dev/null || true
"${anneal[@]}" train epochs.yaml --set run.dir=killed >out 2>err || fail "the killed run does not carry on"
for metric in val_loss loss; do
    [ "$(steps killed $metric)" = "$(steps whole $metric)" ] || fail "after the kill: $metric at $(steps killed $metric)"
done
[ "$(field killed/summary.json 'd["weights_hash"] + d["state_hash"]')" = "$(field whole/summary.json 'd["weights_hash"] + d["state_hash"]')" ] ||
    fail "the killed run has other bits"

echo "the banner says what the run does"
