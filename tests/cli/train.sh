#!/usr/bin/env bash
# `anneal train` as its users see it: the banner, plain lines in a pipe, the run's folder, a second run, a signal.
#   train.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
tree=$1
export OMP_NUM_THREADS=2

says() { grep -qF -- "$1" out || fail "it does not say: $1"; }

cat >small.yaml <<Y
run:       {dir: run, steps: 25, seed: 3}
model:     {type: gpt2, layers: 2, heads: 2, width: 32, context: 16}
data:
  train:   {type: text, path: $tree/examples/shakespeare/tinyshakespeare.txt, tokens: chars, part: 0%..10%}
  eval:    {type: text, path: $tree/examples/shakespeare/tinyshakespeare.txt, tokens: chars, part: 10%..11%}
batch:     {global: 8, leaves: 4}
optimizer: {lr: 3e-3, weight_decay: 0.1}
schedule:  {type: cosine, warmup: 5, min_ratio: 0.1}
eval:      {every: 10 steps}
log:       {every: 5 steps}
Y

# --- a run, in a pipe ---
"${anneal[@]}" train small.yaml >out 2>err || fail "it ended with $?"
[ ! -s err ] || fail "there is something on standard error"
for words in 'anneal 0.' 'model ' 'parameters' 'data ' '6,971 samples of 16 tokens' 'for evaluation' \
    '8 samples a step = 1 micro-batch × 4 leaves × 2' '25 steps' 'seed 3' 'adamw (default), lr 3e-3, betas 0.9 0.999 (default)' \
    'weight decay 0.1' 'rate × 1, decay 0.1' 'rate × 1, decay 0 ' 'tied' 'cosine, warmup 5' 'norm 1.0 (default)' 'memory ' \
    '1 rank × 2 threads' 'identical on 1 to 4 ranks, at level ' 'step  1/25  loss ' 'step 25/25  loss ' 'step 10/25  val_loss ' \
    'done, after 25 steps' 'weights ' 'anneal plot run'; do
    says "$words"
done
! grep -q $'\r\|\033' out || fail "there are control characters in a pipe"
[ "$(grep -c '  loss ' out)" = 6 ] || fail "not one line for step 1 and every fifth"
[ "$(grep -c '  val_loss' out)" = 3 ] || fail "not three evaluations"

# --- its folder ---
for name in config.yaml log.txt metrics.jsonl plan.json summary.json outcome.json; do
    [ -s run/$name ] || fail "there is no run/$name"
done
ls run/events.out.tfevents.* >/dev/null || fail "there is no event file"
grep -qF 'val_loss' run/log.txt || fail "log.txt has no evaluation"
python3 - <<'P' || fail "metrics.jsonl is not what it should be"
import json
lines = [json.loads(line) for line in open("run/metrics.jsonl")]
steps = [line for line in lines if "loss" in line]
evaluations = [line for line in lines if "val_loss" in line]
assert [line["step"] for line in steps] == [1, 5, 10, 15, 20, 25], steps
assert [line["step"] for line in evaluations] == [10, 20, 25], evaluations
assert all(set(line) == {"step", "epoch", "loss", "mean_loss", "lr", "grad_norm", "tokens_per_second"} for line in steps), steps[0]
assert steps[0]["mean_loss"] == steps[0]["loss"] and steps[0]["epoch"] == 1, steps[0]
assert steps[1]["mean_loss"] > steps[1]["loss"], steps[1]  # of five steps, in which it fell
assert abs(steps[0]["lr"] - 3e-3 / 5) < 1e-12, steps[0]
summary = json.load(open("run/summary.json"))
assert summary["steps"] == 25 and summary["metrics"]["loss"] == steps[-1]["loss"]
assert summary["metrics"]["val_loss"] == evaluations[-1]["val_loss"]
assert len(summary["weights_hash"]) == len(summary["state_hash"]) == 32
assert set(summary["bits"]) == {"threads", "ranks", "mpi", "isa", "onednn", "anneal", "fingerprint"}
assert summary["best"]["value"] == min(line["val_loss"] for line in evaluations)
plan = json.load(open("run/plan.json"))
assert plan["peak_bytes"] == summary["planned_bytes"] <= summary["allocated_bytes"] <= summary["process_bytes"]
assert json.load(open("run/outcome.json"))["end"] == "done"
P
hash=$(field run/summary.json 'd["weights_hash"]')

# --- the resolved config gives the same run; so does --set ---
"${anneal[@]}" train run/config.yaml --set run.dir=again >out 2>err || fail "the resolved config is refused"
[ "$(field again/summary.json 'd["weights_hash"] + d["state_hash"]')" = "$(field run/summary.json 'd["weights_hash"] + d["state_hash"]')" ] ||
    fail "the resolved config gives another run"
"${anneal[@]}" train small.yaml --set run.dir=other --set run.seed=4 >out 2>err
[ "$(field other/summary.json 'd["weights_hash"]')" != "$hash" ] || fail "--set run.seed changes nothing"

# --- a finished run, and a fresh one ---
"${anneal[@]}" train small.yaml >out 2>err || fail "a finished run is no failure"
says 'run: this run is finished; add --fresh to start a new run beside it'
code=0
"${anneal[@]}" train small.yaml --set run.seed=4 >out 2>err || code=$?
[ "$code" = 2 ] && grep -q 'run.seed=4: run.seed is 4, was 3' err || fail "another config in a finished run's folder: $code"
"${anneal[@]}" train small.yaml --fresh >out 2>err || fail "--fresh"
[ "$(field run-2/summary.json 'd["weights_hash"]')" = "$hash" ] || fail "the fresh run has other bits"

# --- limits: early stop, time ---
"${anneal[@]}" train small.yaml --set run.dir=early --set optimizer.lr=0 --set 'eval.early_stop=val_loss' \
    --set eval.early_stop.patience=1 --set 'eval.every=2 steps' >out 2>err || fail "early stop"
says 'stopped early'
[ "$(field early/outcome.json 'd["end"], d["step"]')" = "stopped early 4" ] || fail "it did not stop early"
"${anneal[@]}" train small.yaml --set run.dir=time --set run.steps=100000000 --set run.max_time=1s >out 2>err && fail "max_time: done"
[ $? = 75 ] || fail "max_time: exit code $?"
[ "$(field time/outcome.json 'd["end"]')" = "time limit" ] || fail "it did not end in time"

# --- a signal ends it after the step that is under way ---
"${anneal[@]}" train small.yaml --set run.dir=signal --set run.steps=100000000 >out 2>err &
process=$!
for _ in $(seq 600); do
    grep -qs '"step": 5,' signal/metrics.jsonl && break
    sleep 0.1
done
kill -TERM $process
code=0
wait $process || code=$?
process=
[ "$code" = 75 ] || fail "a signal: exit code $code"
[ "$(field signal/outcome.json 'd["end"]')" = "stopped on request" ] || fail "a signal: $(cat signal/outcome.json)"

# --- a run that was stopped, and one that was killed, end with the bits of one that never was ---
"${anneal[@]}" train small.yaml --set run.dir=twice --set 'save.every=3 steps' >out 2>err &
process=$!
for _ in $(seq 6000); do
    grep -qs '"step": 10,' twice/metrics.jsonl && break
    sleep 0.01
done
kill -KILL $process 2>/dev/null || true
wait $process 2>/dev/null || true
process=
"${anneal[@]}" train small.yaml --set run.dir=twice --set 'save.every=5 steps' >out 2>err || fail "a killed run does not carry on"
says 'resumes'
says 'save.every: 5 steps now, 3 steps before'
[ "$(field twice/summary.json 'd["weights_hash"] + d["state_hash"]')" = "$(field run/summary.json 'd["weights_hash"] + d["state_hash"]')" ] ||
    fail "a run that was killed ends with other bits"
[ "$(grep -c '"loss"' twice/metrics.jsonl)" = "$(grep -c '"loss"' run/metrics.jsonl)" ] || fail "metrics of a killed run: $(cat twice/metrics.jsonl)"
means() { python3 -c 'import json, sys; print([d["mean_loss"] for d in map(json.loads, open(sys.argv[1])) if "loss" in d])' "$1"; }
[ "$(means twice/metrics.jsonl)" = "$(means run/metrics.jsonl)" ] || fail "mean losses of a killed run: $(means twice/metrics.jsonl), not $(means run/metrics.jsonl)"

# --- f16: scale and skips are seen, and a run that never recovers fails ---
printf 'a,y\n1e6,2\n2e6,1\n3e6,6\n4e6,8\n' >overflow.csv
cat >never.yaml <<Y
run:   {dir: never, steps: 120}
model: {type: mlp, hidden: [4]}
data:  {train: {type: csv, path: overflow.csv}}
batch: {global: 4}
train: {precision: f16}
log:   {every: 1 steps}
Y
code=0
"${anneal[@]}" train never.yaml >out 2>err || code=$?
[ "$code" = 1 ] || fail "f16 that never recovers: exit code $code"
grep -qF 'the loss scale would fall to 0.5' err || fail "it does not say why it failed"
says 'scale 4096, 5 skipped'
[ "$(field never/outcome.json '"error" in d or d["end"]')" = True ] || fail "f16 that never recovers: $(cat never/outcome.json)"
[ "$(tail -n 1 never/metrics.jsonl | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["step"], d["scale"], d["skips"])')" = "16 2 16" ] ||
    fail "metrics of f16: $(tail -n 2 never/metrics.jsonl)"
! grep -q '"scale"' run/metrics.jsonl || fail "a run without f16 has a scale in its metrics"

# --- NaN stops it and names the place ---
printf 'a,y\n1,2\n2,1e39\n3,6\n4,8\n' >huge.csv
cat >nan.yaml <<Y
run:   {dir: nan, epochs: 4}
model: {type: mlp, hidden: [4]}
data:  {train: {type: csv, path: huge.csv}}
batch: {global: 4}
Y
code=0
"${anneal[@]}" train nan.yaml >out 2>err || code=$?
[ "$code" = 1 ] || fail "infinite numbers: exit code $code"
