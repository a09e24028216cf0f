#!/usr/bin/env bash
# What the banner of `anneal train` says is what the run does: steps and epochs, rates, groups.
source "$(dirname "$0")/preamble.sh"
export OMP_NUM_THREADS=1

# The banner breaks lines where the terminal ends.
says() { tr -s '\n ' ' ' <out | grep -qF -- "$1" || fail "it does not say: $1"; }
# steps RUN MEMBER: the steps of the lines of metrics.jsonl that have the member
steps() {
    python3 -c 'import json, sys
print(*[line["step"] for line in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if sys.argv[2] in line])' "$1" "$2"
}

python3 -c 'print("a,b,sum")
for i in range(9600): print(i % 11, i % 7, i % 11 + i % 7, sep=",")' >sums.csv

# --- epochs that have 3, 5, 5, 20 and 20 steps ---
hidden='[256, 256]' # steps that take long enough to be killed between them; an emulator needs less for that, and so does a sanitizer
[ -z "${ANNEAL_RUN:-}" ] || hidden='[32, 32]'
[ -z "${ANNEAL_SANITIZED:-}" ] || hidden='[64, 64]'
cat >epochs.yaml <<Y
run:   {dir: whole, epochs: 5, seed: 3}
model: {type: mlp, hidden: $hidden}
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
says 'by epoch: 8 micro-batches from epoch 1, 4 from epoch 2, 1 from epoch 4'
[ "$(steps whole val_loss)" = '3 8 13 33 53' ] || fail "evaluations at $(steps whole val_loss)"
[ "$(steps whole loss)" = '1 3 8 13 33 53' ] || fail "log lines at $(steps whole loss)"
saved=$(cd whole/checkpoints && echo step-*)
[ "$saved" = 'step-00000003-1 step-00000008-1 step-00000013-1 step-00000033-1 step-00000053-1' ] || fail "saves: $saved"

# killed inside the fourth epoch: the same evaluations and saves, at the same steps
"${anneal[@]}" train epochs.yaml --set run.dir=killed >out 2>err &
process=$!
for _ in $(seq 12000); do
    [ -e killed/checkpoints/step-00000013-1 ] && break
    sleep 0.01
done
kill -KILL $process || fail "it ended before it was killed"
wait $process 2>/dev/null || true
process=
"${anneal[@]}" train epochs.yaml --set run.dir=killed >out 2>err || fail "the killed run does not carry on"
for metric in val_loss loss; do
    [ "$(steps killed $metric)" = "$(steps whole $metric)" ] || fail "after the kill: $metric at $(steps killed $metric)"
done
[ "$(field killed/summary.json 'd["weights_hash"] + d["state_hash"]')" = "$(field whole/summary.json 'd["weights_hash"] + d["state_hash"]')" ] ||
    fail "the killed run has other bits"

# --- the rate that is used ---
cat >small.yaml <<'Y'
run:   {dir: small, steps: 20, seed: 3}
model: {type: mlp, hidden: [6]}
data:  {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}
batch: {global: 32}
log:   {every: 1}
Y
# train NAME SETTING…: a run of small.yaml in a folder of its own
train() {
    local name=$1 settings=(--set "run.dir=$1")
    shift
    for setting in "$@"; do settings+=(--set "$setting"); done
    "${anneal[@]}" train small.yaml "${settings[@]}" >out 2>err || fail "$name ended with $?"
}
train cycle 'schedule={type: one_cycle, max_lr: 1e-2}'
says 'lr 0.01 (schedule.max_lr)'
says 'one_cycle: 0.0004 at step 1, 0.01 at 6, 4e-08 at 20'
! grep -q 'lr 1e-4' out || fail "the banner shows a rate that is not used"
python3 - <<'P' || fail "the rates of the run are not those of the banner"
import json
rates = [line["lr"] for line in map(json.loads, open("cycle/metrics.jsonl"))]
assert abs(rates[0] - 4e-4) < 1e-9 and abs(rates[5] - 1e-2) < 1e-9 and abs(rates[-1] - 4e-8) < 1e-12, rates
P

# --- weight decay is a default of adamw only ---
train adamw
says 'weight decay 0.01 (default)'
says 'rate × 1, decay 0.01'
for type in sgd adam; do
    train $type "optimizer={type: $type}"
    says 'weight decay 0 (default)'
    ! grep -q 'decay 0.01' out || fail "$type decays by default"
    train $type-given "optimizer={type: $type, weight_decay: 0.01}"
    says 'rate × 1, decay 0.01'
done

# --- the table of groups, of models with embeddings ---
for i in $(seq 200); do echo "line $((i % 10)) of it"; done >poem.txt
cat >text.yaml <<'Y'
run:       {dir: text, steps: 2}
data:      {train: {type: text, path: poem.txt, tokens: chars}}
batch:     {global: 2}
optimizer: {decay_embeddings: off}
Y
"${anneal[@]}" train text.yaml --set run.dir=gpt2 --set 'model={type: gpt2, layers: 1, heads: 2, width: 16, context: 8}' \
    >out 2>err || fail "gpt2 ended with $?"
says 'decay 0, tied (wte.weight, …)' # wpe, norms and biases are in it too
says 'in 4 tensors: rate × 1, decay 0.01 (h.0.attn.c_attn.weight, …)'
"${anneal[@]}" train text.yaml --set run.dir=llama \
    --set 'model={type: llama, layers: 1, heads: 2, kv_heads: 1, width: 16, hidden: 24, context: 8}' >out 2>err ||
    fail "llama ended with $?"
says 'decay 0 (model.embed_tokens.weight, …)'
says 'decay 0.01 (model.layers.0.self_attn.q_proj.weight, …)'

# --- layer decay needs layers ---
code=0
"${anneal[@]}" train small.yaml --set run.dir=flat --set 'model={type: mlp, hidden: []}' --set optimizer.layer_decay=0.9 \
    >out 2>err || code=$?
[ "$code" = 2 ] || fail "layer_decay without blocks: exit code $code"
grep -qF 'layer_decay is 0.9, but the model' err || fail "layer_decay without blocks: $(cat err)"

echo "the banner says what the run does"
