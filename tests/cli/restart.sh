#!/usr/bin/env bash
# --resume PATH --restart schedule: a new run with the weights and moments of another. What it takes over and what
# begins again, that it is recorded, that it survives being killed, and what is refused. With the name of an MPI
# library: by two ranks, from what two ranks have written.
source "$(dirname "$0")/preamble.sh"
says() { grep -qF -- "$1" out err || failed "it does not say: $1"; }
hash_of() { field "$1/summary.json" 'd["state_hash"]'; }
mpi=${1:-}

python3 - <<'END'
import random
random.seed(7)
with open("table.csv", "w") as table, open("other.csv", "w") as other, open("one.csv", "w") as one:
    table.write("a,b,kind\n")
    other.write("a,b,kind\n")
    one.write("a,b,y\n0.25,0.5,0.75\n")
    for _ in range(300):
        a, b = random.random() * 50, random.random()
        table.write(f"{a:.4f},{b:.4f},{'high' if a * b > 10 else 'low'}\n")
        other.write(f"{a:.4f},{b:.4f},{'much' if a * b > 10 else 'low'}\n")
END
config() { # FOLDER STEPS RATE
    cat >"$1.yaml" <<END
run:   {dir: $1, steps: $2, seed: 3}
model: {type: mlp, hidden: [24]}
data:
  train: {type: csv, path: table.csv, targets: [kind], classes: on}
  split: {eval: 20%}
  normalize: {inputs: standard}
batch: {global: 16, leaves: 2}
optimizer: {lr: $3}
schedule: {type: cosine}
train: {ema: 0.9}
eval:  {every: 40 steps, best: val_loss}
save:  {every: 10 steps}
log:   {every: 1 steps}
END
}
restart() { # CODE CONFIG FROM OPTION...
    local code=$1 config=$2 from=$3
    shift 3
    attempt "$code" train "$config.yaml" --resume "$from" --restart schedule "$@"
}

if [ -n "$mpi" ]; then # every rank writes a part of the state, and has a part of it
    config base 60 1e-2
    attempt 0 train base.yaml -n 2 --mpi "$mpi" --threads 1 --set ranks.shard=full
    config alone 40 1e-3
    restart 0 alone base
    config both 40 1e-3
    restart 0 both base -n 2 --mpi "$mpi" --threads 1 --set ranks.shard=full
    [ "$(hash_of both)" = "$(hash_of alone)" ] || failed 'two ranks restart another run than one process'
    exit 0
fi

# --- what is kept ---
# One sample at a constant rate, so that a new run differs from a longer one in nothing but its numbers.
single() { # FOLDER STEPS
    cat >"$1.yaml" <<END
run:   {dir: $1, steps: $2, seed: 3}
model: {type: mlp, hidden: [8]}
data:  {train: {type: csv, path: one.csv}, eval: {type: csv, path: one.csv}, threads: 0}
batch: {global: 1}
train: {ema: 0.9, precision: f32}
END
}
single whole 14
attempt 0 train whole.yaml
single first 6
attempt 0 train first.yaml
single second 8
restart 0 second first
attempt 0 diff whole second
[ "$(field second/summary.json 'd["weights_hash"]')" = "$(field whole/summary.json 'd["weights_hash"]')" ] ||
    failed 'the new run does not go on where the first has ended'
[ "$(field second/summary.json 'd["metrics"]["val_loss"]')" = "$(field whole/summary.json 'd["metrics"]["val_loss"]')" ] ||
    failed 'the moving average does not go on where the first has ended'

# --- what begins again, and the record of it ---
config base 60 1e-2
attempt 0 train base.yaml
config again 40 1e-3 ''
restart 0 again base
says 'begun from'
says 'optimizer.lr: 1e-3 now, 1e-2 before'
origin=$(field again/summary.json 'd["origin"]["path"]')
hash=$(field again/summary.json 'd["origin"]["hash"]')
[[ $origin = */base/checkpoints/step-00000060-1 ]] || failed "the origin is $origin"
[ "$(field again/summary.json 'd["origin"]["step"]')" = 60 ] || failed 'the origin is not step 60'
grep -q "\"hash\": \"$hash\"" "$origin/manifest.json" || failed 'the hash is not that of the manifest'
grep -q "$hash" again/log.txt || failed 'the log does not name the origin'
[ "$(field again/origin.json 'd["hash"]')" = "$hash" ] || failed 'origin.json has another hash'
attempt 0 inspect again
says "begun from   $origin, after step 60, hash $hash"
python3 - <<'END' || fail 'the metrics are not those of a new run'
import json
lines = [json.loads(line) for line in open("again/metrics.jsonl")]
steps = [line for line in lines if "loss" in line]
assert [line["step"] for line in steps] == list(range(1, 41)), steps[:3]
assert abs(steps[0]["lr"] - 1e-3) < 1e-12 and steps[-1]["lr"] < 1e-5 and steps[0]["epoch"] == 1
base = [json.loads(line) for line in open("base/metrics.jsonl")]
first = [line for line in base if "loss" in line][0]
assert steps[0]["loss"] < 0.8 * first["loss"], (steps[0], first)
END
attempt 0 train again.yaml # the same run, without the options
says 'this run is finished'
restart 0 again base
says 'this run is finished'

# --- stopped before its first checkpoint: only the same command goes on ---
mkdir early
cp again/config.yaml again/metrics.jsonl again/origin.json early
config early 40 1e-3
attempt 1 train early.yaml
says 'began with the state of another run'
restart 0 early base
[ "$(hash_of early)" = "$(hash_of again)" ] || failed 'a run that was stopped early has another hash'

# --- stopped after its first steps: the same command goes on, and so does one without the options ---
config stopped 40 1e-3
restart 75 stopped base --set run.max_time=0.001s
restart 75 stopped base --set run.max_time=0.001s
says 'resumes'
says 'begun from'
attempt 0 train stopped.yaml
says 'begun from'
[ "$(hash_of stopped)" = "$(hash_of again)" ] || failed 'a run that was stopped has another hash'
[ "$(field stopped/summary.json 'd["origin"]["hash"]')" = "$hash" ] || failed 'a run that was stopped has lost its origin'

# --- killed again and again ---
config killed 40 1e-3
kills=0
for _ in $(seq 50); do
    "${anneal[@]}" train killed.yaml --resume base --restart schedule >out 2>err &
    process=$!
    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
    kill -KILL "$process" 2>/dev/null && kills=$((kills + 1)) || true
    wait "$process" 2>/dev/null || true
    process=
    [ "$kills" -lt 4 ] || break
    [ ! -e killed/summary.json ] || rm -r killed # it was faster: once more
done
[ "$kills" -gt 0 ] || fail 'no run was killed'
restart 0 killed base --threads 1
[ "$(hash_of killed)" = "$(hash_of again)" ] || failed 'a run that was killed has another hash'
[ "$(field killed/summary.json 'd["origin"]["hash"]')" = "$hash" ] || failed 'a run that was killed has lost its origin'

# --- what is refused ---
attempt 2 train again.yaml --restart schedule
says '--restart needs --resume'
restart 2 again base --extend keep
says 'cannot be combined'
config base2 40 1e-3
restart 2 base2 base --set run.dir=base
says 'base already has a run, which did not begin with base; a restarted schedule is a new run: set run.dir to another name'
restart 2 base2 base --set 'model.hidden=[25]'
says 'model.hidden is [25], was [24]: it would be a different model'
restart 2 base2 base --set data.normalize.inputs=range
says 'data.normalize.inputs is range, was standard'
restart 2 base2 base --set optimizer.type=sgd --set optimizer.momentum=0.9
says "was trained with the optimizer 'adamw', and this trainer has 'sgd'"
restart 2 base2 base --set train.ema=off
says 'the run keeps a moving average'
restart 2 base2 base --set data.train.path=other.csv
says 'the columns, categories or classes of the data are not those'
restart 1 base2 nothing
says 'this is not a checkpoint or a run'
[ ! -e base2 ] || failed 'what was refused has left a folder'
attempt 2 train base2.yaml --resume base --restart everything
says 'schedule'
# A run that has begun without a checkpoint is not taken over.
mkdir -p taken && : >taken/metrics.jsonl
config taken 40 1e-3
restart 1 taken base
says 'did not begin with the state of another one'
