#!/usr/bin/env bash
# `anneal train --supervise` as its users see it: what is started again, what is not, and what is said about it.
#   supervise.sh quick|full PRELOAD-LIBRARY
source "$(dirname "$0")/preamble.sh"
part=$1
preload=$2
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
# The library that is loaded first is ours, and a crash is to be one.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:handle_segv=0
ulimit -c 0
process=
at_end() { [ -z "$process" ] || kill -KILL $process 2>/dev/null || true; }

says() { grep -qF -- "$1" err || fail "it does not say: $1"; }
matches() { grep -qE -- "$1" err || fail "nothing it says matches: $1"; }
is_silent() { ! grep -q '^anneal supervise:' err || fail "the supervisor has something to say"; }

# supervise ARGUMENT...: starts one in the background, its number in $process
supervise() {
    LD_PRELOAD=${with_preload:+$preload} "${anneal[@]}" train small.yaml --supervise "$@" >out 2>err &
    process=$!
}
# ends: waits for it, its exit code in $code
ends() {
    code=0
    wait $process || code=$?
    process=
}
# children of a process, one a line; others come and go while they are looked at
children() {
    { sed -s 's/^\([0-9]*\) .*) . \([0-9]*\) .*/\1 \2/' /proc/[0-9]*/stat 2>/dev/null || true; } |
        awk -v parent="$1" '$2 == parent { print $1 }'
}
trains() { grep -qs '"step"' "$1/metrics.jsonl"; }
has_child() { child=$(children $process) && [ -n "$child" ]; }
# The training process of the supervisor, once it trains in the folder $1.
training_in() {
    until_true 60 trains "$1" || fail "it does not train"
    until_true 60 has_child || fail "there is no training process"
}

python3 -c "
import struct
open('tokens.bin', 'wb').write(b''.join(struct.pack('<H', i * i % 61) for i in range(40000)))"
cat >small.yaml <<Y
run:       {dir: run, steps: 30, seed: 3}
model:     {type: gpt2, layers: 1, heads: 2, width: 16, context: 8, vocabulary: 64}
data:
  train:   {type: tokens, path: tokens.bin, format: u16}
  threads: 2
batch:     {global: 4}
log:       {every: 1 steps}
save:      {every: 10 steps}
Y
export PRELOAD_DATA=/tokens.bin PRELOAD_FLAG=$work/flag
long=100000000
place='while "[^"]+"( and "[^"]+")?'

if [ "$part" = quick ]; then
    # --- wrong use, which nothing is started for ---
    for arguments in '--restarts 3' '--supervise --restarts many' '--supervise --restarts -1' '--supervise --set run.step=3'; do
        code=0
        "${anneal[@]}" train small.yaml $arguments >out 2>err || code=$?
        [ "$code" = 2 ] || fail "$arguments: exit code $code"
        is_silent
    done

    # --- a refusal that no restart cures: the checkpoint is of other instructions ---
    "${anneal[@]}" train small.yaml --set run.dir=refused --isa base >out 2>err || fail "a short run"
    supervise --set run.dir=refused --set run.steps=100 --extend keep --isa avx2
    ends
    [ "$code" = 2 ] || fail "a run of other instructions: exit code $code"
    is_silent
    [ "$(ls refused/launches)" = 1 ] || fail "a run that was refused has been launched"
    supervise --set run.dir=refused --set run.steps=100 --set run.allow_new_bits=on --extend keep --isa base
    ends
    [ "$code" = 0 ] || fail "the run with its own instructions: exit code $code"
    [ ! -e run ] || fail "wrong use has made a folder"

    # --- a run that nothing happens to is the same run ---
    "${anneal[@]}" train small.yaml --set run.dir=alone >out 2>err || fail "a run without supervisor: $?"
    supervise
    ends
    [ "$code" = 0 ] || fail "exit code $code"
    is_silent
    [ "$(field run/summary.json 'd["state_hash"]')" = "$(field alone/summary.json 'd["state_hash"]')" ] || fail "the supervisor changes the run"
    supervise
    ends
    [ "$code" = 0 ] && grep -q 'this run is finished' out || fail "a finished run: $code"
    supervise --fresh
    ends
    [ "$code" = 0 ] && [ -s run-2/summary.json ] || fail "--fresh: $code"

    # --- a heartbeat that is none ---
    for number in 1 9999 x -1; do
        ANNEAL_HEARTBEAT=$number "${anneal[@]}" train small.yaml --set run.dir=beat$number >out 2>err || fail "ANNEAL_HEARTBEAT=$number: $?"
        grep -qF "ANNEAL_HEARTBEAT=$number does not name" err || fail "ANNEAL_HEARTBEAT=$number is taken"
    done
    # A file that anybody could cut short is none either, right as it may look: the record's size, 32 + 32 × 128, and
    # zeros.
    { printf '\x20\x10\0\0\0\0\0\0' && head -c 4120 /dev/zero; } >file
    ANNEAL_HEARTBEAT=7 "${anneal[@]}" train small.yaml --set run.dir=beat7 7<>file >out 2>err || fail "a file as heartbeat: $?"
    says "does not name a supervisor's heartbeat and is ignored"

    # --- a crash that comes again at the same place is given up ---
    echo 'crash 1' >flag
    with_preload=1 supervise --set run.dir=crash --set data.train.format=auto # which is found out by a read, before anything else
    ends
    rm flag
    [ "$code" = 139 ] || fail "three crashes: exit code $code"
    says 'the training process crashed (signal 11) at step 0, while "start"; restarting it (restart 1 of 100)'
    says '(restart 2 of 100)'
    says 'crashed (signal 11) at step 0, while "start"; this happened 3 times in a row at the same step, so it is not restarted'

    # --- the limit; kill -9 says nothing against the run ---
    supervise --set run.dir=limit --set run.steps=$long --restarts 0
    training_in limit
    kill -KILL $child
    ends
    [ "$code" = 137 ] || fail "--restarts 0: exit code $code"
    matches "was killed \(signal 9\) at step [1-9][0-9]*, $place; it was restarted 0 times and has reached the limit"

    # --- it takes its training process with it ---
    supervise --set run.dir=orphan --set run.steps=$long
    training_in orphan
    kill -KILL $process
    ends
    gone() { [ ! -e "/proc/$child" ] || grep -q '^State:.*Z' "/proc/$child/status"; }
    until_true 10 gone || fail "the training process outlives its supervisor"

    # --- a second interrupt ends all at once, even where the training process does not answer ---
    supervise --set run.dir=interrupt --set run.steps=$long
    training_in interrupt
    kill -STOP $child
    kill -INT $process
    until_true 10 grep -q 'asked to stop (signal 2)' err || fail "the first interrupt"
    kill -INT $process
    ends
    [ "$code" = 130 ] || fail "two interrupts: exit code $code"
    until_true 10 gone || fail "two interrupts leave the training process"
    exit 0
fi

# --- a process that is stopped is reported with its threads, and started again in time ---
supervise --set run.dir=stopped --set run.steps=$long --set ranks.timeout=3s --set ranks.report_after=1s
training_in stopped
kill -STOP $child
begin=$(date +%s%N)
until_true 60 grep -q 'restart 1 of 100' err || fail "it is not started again"
took=$((($(date +%s%N) - begin) / 1000000))
[ "$took" -ge 2800 ] || fail "it was started again after $took ms already"
# Reported once after a second, and once after three. On a busy machine the supervisor may be late, and report other
# stalls before and after.
stall='no progress for [0-9.]+ s'
matches "^anneal supervise: $stall at step [1-9][0-9]*, $place\$"
matches "$stall \(ranks.timeout\) at step [1-9][0-9]*, $place: it hangs"
sed -nE 's/.*no progress for ([0-9.]+) s( \(ranks.timeout\))? at step ([0-9]+),.*/\3 \1/p; /restart 1 of 100/q' err |
    awk '{ n = $1 == step ? n + 1 : 1; step = $1; before = last; last = $2 } END { exit !(n == 2 && before >= 1 && last >= 3) }' ||
    fail "the stall is not reported once after one second and once after three"
matches "  thread $child \(anneal\) is stopped.*: "
matches '  thread [0-9]+ \(anneal\) is stopped.*: (waits until batch [0-9]+ was used|loading batch [0-9]+)'
if grep -q 'no stacks' err; then # a build without them, or a system that forbids them, says so
    matches 'no stacks: (anneal was built without libdw|this system does not allow ptrace here)'
else
    matches "  stack of thread $child: .*an_trainer_run.* < main"
fi
matches "the training process hung at step [1-9][0-9]*, $place; restarting it \(restart 1 of 100\)"
kill -KILL $process
ends

# --- a loader thread that sleeps for ever; the next start finishes the same run ---
"${anneal[@]}" train small.yaml --set run.dir=alone >out 2>err || fail "a run without supervisor: $?"
alone=$(field alone/summary.json 'd["state_hash"]')
same_run() { [ "$(field "$1/summary.json" 'd["state_hash"]')" = "$alone" ] || fail "$1 is another run"; }

echo 'sleep 80' >flag
with_preload=1 supervise --set run.dir=asleep --set ranks.timeout=2s
ends
[ "$code" = 0 ] || fail "a thread that sleeps: exit code $code"
matches 'no progress for [0-9.]+ s \(ranks.timeout\) at step [1-9][0-9]*, while "waits for batch [0-9]+ of the loader": it hangs'
matches '  thread [0-9]+ \(anneal\) sleeps.*: loading batch [0-9]+'
grep -q 'no stacks' err || matches '  stack of thread [0-9]+: pause < .*an_dataset_fetch'
says '(restart 1 of 100)'
[ "$(grep -c 'restarting it' err)" = 1 ] || fail "it was started more than twice"
same_run asleep

# --- a crash that comes again at the same step is given up, and the step is named; without it the run is finished ---
echo 'crash 70' >flag
with_preload=1 supervise --set run.dir=crash --set data.threads=0 --set save.every=off
ends
rm flag
[ "$code" = 139 ] || fail "three crashes: exit code $code"
matches 'crashed \(signal 11\) at step ([1-9][0-9]*), while "loading batch [0-9]+"; restarting it \(restart 2 of 100\)'
matches 'crashed \(signal 11\) at step ([1-9][0-9]*), while "loading batch [0-9]+"; this happened 3 times in a row at the same step'
[ "$(grep -o 'at step [0-9]*' err | sort -u | wc -l)" = 1 ] || fail "the three crashes were not at one step"
supervise --set run.dir=crash --set data.threads=0 --set save.every=off
ends
[ "$code" = 0 ] || fail "after three crashes: exit code $code"
same_run crash

# --- kill -9, five times: it is the run that was never killed ---
"${anneal[@]}" train small.yaml --set run.dir=alone-longer --set run.steps=1000 --set 'save.every=50 steps' >out 2>err ||
    fail "a run without supervisor: $?"
alone=$(field alone-longer/summary.json 'd["state_hash"]')
# supervise_longer ARGUMENT...: the same, with reads that take so long that it lives for two seconds at least
supervise_longer() {
    echo 'slow 1000' >flag
    with_preload=1 supervise --set run.steps=1000 --set 'save.every=50 steps' "$@"
}
supervise_longer --set run.dir=killed
for restart in 1 2 3 4 5; do
    training_in killed
    kill -KILL "$child"
    until_true 60 grep -q "restart $restart of 100" err || fail "killed, and not started again"
    sleep 0.3
done
ends
[ "$code" = 0 ] || fail "kill -9: exit code $code"
matches "was killed \(signal 9\) at step [0-9]+, $place; restarting it \(restart 5 of 100\)"
says 'signal 9 comes from an operator, or from the system when memory runs out'
same_run killed

# --- --fresh is for the first start only ---
supervise_longer --fresh --set run.dir=killed
training_in killed-2
kill -KILL "$child"
ends
[ "$code" = 0 ] && [ ! -e killed-3 ] || fail "--fresh and a restart: exit code $code"
says '(restart 1 of 100)'
same_run killed-2

# --- asked to stop, it has saved; the next one carries on ---
for signal in TERM USR1 INT; do
    supervise_longer --set run.dir=stop-$signal
    training_in stop-$signal
    kill -$signal $process
    ends
    [ "$code" = 75 ] || fail "$signal: exit code $code"
    says 'asked to stop'
    supervise_longer --set run.dir=stop-$signal
    ends
    [ "$code" = 0 ] || fail "after $signal: exit code $code"
    is_silent
    same_run stop-$signal
done
rm flag

# --- run.max_time is for all starts together ---
# With a time for each, this would take 18 s and two launches; what lies between is for a busy machine.
begin=$(date +%s%N)
supervise --set run.dir=limit --set run.steps=$long --set run.max_time=12s
training_in limit
sleep 6
kill -KILL "$child"
ends
took=$((($(date +%s%N) - begin) / 1000000))
[ "$code" = 75 ] && [ "$took" -ge 11500 ] && [ "$took" -le 17500 ] || fail "max_time: exit code $code after $took ms"
