#!/usr/bin/env bash
# `anneal stop`: a run of one process stops with a checkpoint in its steps, in an evaluation and before its first step;
# a run that is not there says so.
source "$(dirname "$0")/preamble.sh"
export OMP_NUM_THREADS=1
says() { grep -qF -- "$1" out err || fail "it does not say: $1"; }
trains() { grep -qs '"step"' "$1/metrics.jsonl"; }
runs() { grep -qs '"end": "running"' "$1/outcome.json"; }
# start FOLDER ARGUMENT...: a run in the background that does not end by itself
start() {
    local folder=$1
    shift
    "${anneal[@]}" train small.yaml --set "run.dir=$folder" "$@" >train.out 2>train.err &
    process=$!
}
# stopped FOLDER: the run there has ended as a run that was asked to stop does
stopped() {
    code=0
    wait $process || code=$?
    process=
    [ "$code" = 75 ] || fail "the run ended with $code"
    [ "$(field "$1/outcome.json" 'd["end"], d["reason"]')" = 'stopped on request anneal stop' ] || fail "outcome.json says something else"
    step=$(field "$1/outcome.json" 'd["step"]')
    checkpoint=$(ls "$1/checkpoints" | tail -n 1)
    [ "$((10#$(echo "$checkpoint" | cut -d - -f 2)))" = "$step" ] || fail "there is no checkpoint of step $step"
    grep -qF "$1: stopped on request after step" out || fail "it does not say that the run has stopped"
    grep -qF "saved as checkpoints/$checkpoint" out || fail "it does not name the checkpoint"
}

python3 -c "
import struct
open('tokens.bin', 'wb').write(b''.join(struct.pack('<H', i * i % 61) for i in range(40000)))"
cat >small.yaml <<Y
run:   {dir: run, steps: 100000000, seed: 3}
model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8, vocabulary: 64}
data:  {train: {type: tokens, path: tokens.bin, format: u16}, eval: {type: tokens, path: tokens.bin, format: u16}, threads: 1}
batch: {global: 4}
log:   {every: 1 steps}
eval:  {every: off, samples: 4}
save:  {every: off}
Y

# --- nothing to stop ---
attempt 2 stop
attempt 2 stop nowhere
says "'nowhere' has no run; give a run folder (run.dir)"
attempt 2 stop run --timeout soon
attempt 0 train small.yaml --set run.dir=finished --set run.steps=2
attempt 1 stop finished
says 'finished is not running: it ended after step 2 (done)'

# --- in its steps ---
start run
until_true 60 trains run || fail "it does not train"
attempt 0 stop run
stopped run
attempt 1 stop run
says 'run is not running: it ended after step'

# --- the next launch does not find the request of the last ---
start run --set run.steps=$((step + 5)) --extend keep
code=0
wait $process || code=$?
process=
[ "$code" = 0 ] || fail "the run that was stopped does not go on: $code"

# --- in an evaluation that takes long, before the first step ---
python3 -c "
import struct
open('long.bin', 'wb').write(struct.pack('<H', 3) * 8000000)"
start slow --set eval.at_start=true --set eval.samples=all --set eval.micro=1 --set data.eval.path=long.bin
until_true 60 runs slow || fail "it does not begin"
attempt 0 stop slow
stopped slow
[ "$step" = 0 ] || fail "it has made $step steps, although the evaluation comes before them"

# --- one that does not answer, and one that was killed ---
start still
until_true 60 trains still || fail "it does not train"
kill -STOP $process
attempt 75 stop still --timeout 0.3
says "process $process of the run is suspended"
says 'still has not stopped within 0.3 seconds; the request remains'
attempt 0 stop still --no-wait
kill -KILL $process
wait $process || true
process=
attempt 1 stop still
says 'still is not running: its process was killed'
echo "stop: all as expected"
