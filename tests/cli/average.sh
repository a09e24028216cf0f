#!/usr/bin/env bash
# The moving average of the weights as users see it: a run that evaluates it, with one thread and with two, and eval,
# predict and export, which use it unless they are asked for the weights. With ranks and kills:
# tests/ranks/data_exact.sh.
source "$(dirname "$0")/preamble.sh"
says() { grep -qF -- "$1" out err || failed "it does not say: $1"; }
field() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }

python3 - <<'END'
import random
random.seed(5)
with open("table.csv", "w") as table:
    table.write("a,b,y\n")
    for _ in range(400):
        a, b = random.random(), random.random()
        table.write(f"{a:.4f},{b:.4f},{a * b:.4f}\n")
END
config() { # FOLDER STEPS REST
    cat >"$1.yaml" <<END
run:   {dir: $1, steps: $2, seed: 3}
model: {type: mlp, hidden: [40, 40]}
data:
  train: {type: csv, path: table.csv, part: 0%..80%}
  eval:  {type: csv, path: table.csv, part: 80%..100%}
batch: {global: 16, leaves: 2}
optimizer: {lr: 1e-2}
eval:  {every: 40 steps, best: val_loss}
save:  {every: 20 steps}
$3
END
}
hash_of() { field "$1/summary.json" 'd["state_hash"]'; }

# --- in training ---
config averaged 400 'train: {ema: 0.9}'
attempt 0 train averaged.yaml
says 'average    decay 0.9; evaluations use the average of the weights'
for threads in 1 2; do
    attempt 0 train averaged.yaml --set "ranks.threads=$threads" --set "run.dir=threads-$threads"
    [ "$(hash_of "threads-$threads")" = "$(hash_of averaged)" ] || failed "$threads threads give another hash"
done
config plain 400 ''
attempt 0 train plain.yaml
[ "$(hash_of plain)" != "$(hash_of averaged)" ] || failed 'the average is not part of the state'
[ "$(field plain/summary.json 'd["weights_hash"]')" = "$(field averaged/summary.json 'd["weights_hash"]')" ] ||
    failed 'the average has changed the weights'

# --- a run that would have another average, or none ---
attempt 2 train averaged.yaml --set train.ema=0.5
says 'train.ema.decay is 0.5, was 0.9: the average so far depends on it'
attempt 2 train averaged.yaml --set train.ema=off
says 'train.ema.decay is off, was 0.9'
attempt 2 train plain.yaml --set train.ema=0.9
says 'train.ema.decay is 0.9, was off'

# --- eval ---
# The last steps of both runs are compared, so the newest checkpoints are.
newest=(--checkpoint newest)
loss() { field out 'd["metrics"]["val_loss"]'; }
attempt 0 eval averaged "${newest[@]}" --json
[ "$(field out 'd["weights"]')" = ema ] || failed 'eval does not use the average'
average=$(loss)
[ "$average" = "$(field averaged/summary.json 'd["metrics"]["val_loss"]')" ] || failed 'eval has another val_loss than the run'
attempt 0 eval averaged "${newest[@]}" --weights ema --json
[ "$(loss)" = "$average" ] || failed 'eval --weights ema is not the default'
attempt 0 eval averaged "${newest[@]}" --weights raw --json
[ "$(field out 'd["weights"]')" = raw ] || failed 'eval --weights raw uses the average'
[ "$(loss)" = "$(field plain/summary.json 'd["metrics"]["val_loss"]')" ] || failed 'raw weights are not those of a run without an average'
attempt 0 eval averaged "${newest[@]}"
says 'average of the weights'
attempt 1 eval plain --weights ema
says 'keeps no moving average of the weights'
attempt 2 eval averaged --weights mean
says "--weights takes raw or ema, not 'mean'"

# --- predict and export ---
attempt 0 predict averaged "${newest[@]}" --input table.csv --output average.npy
attempt 0 predict averaged "${newest[@]}" --input table.csv --output ema.npy --weights ema
attempt 0 predict averaged "${newest[@]}" --input table.csv --output raw.npy --weights raw
attempt 0 predict plain "${newest[@]}" --input table.csv --output plain.npy
cmp -s average.npy ema.npy || fail 'predict does not use the average'
cmp -s raw.npy plain.npy || fail 'predict --weights raw does not use the weights'
! cmp -s average.npy raw.npy || fail 'predict has the same predictions with both'
attempt 1 predict plain --input table.csv --output none.npy --weights ema
says 'has no moving average of the weights'
attempt 0 export averaged "${newest[@]}" --to average.safetensors
attempt 0 export averaged "${newest[@]}" --to raw.safetensors --weights raw
attempt 0 export plain "${newest[@]}" --to plain.safetensors
cmp -s raw.safetensors plain.safetensors || fail 'export --weights raw does not have the weights'
! cmp -s average.safetensors raw.safetensors || fail 'export has the same weights with both'
attempt 1 export plain --to none.safetensors --weights ema
says 'has no moving average of the weights'
attempt 0 inspect averaged
says 'moving averages (shown with --all)'
attempt 0 inspect averaged --all
says 'ema/hidden.0.weight'
echo passed
