#!/usr/bin/env bash
# Ranks die, and so does their launcher: a supervised run goes on with fewer ranks and again with all, and ends bit-identical to one process that nobody disturbed.
#   kills.sh MPI KILLS
# With KILLS_DONE=FILE, the runs that have passed are noted there with their kills, and are not done again.
source "$(dirname "$0")/../cli/preamble.sh"
source "$(dirname "$0")/launch.sh"
mpi=$1 wanted=$2
ranks=4 steps=6000
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
launcher "$mpi" $ranks
at_end() {
    local all
    [ -n "$process" ] || return 0
    all=$(descendants "$process")
    kill -KILL $process $all 2>/dev/null || true
}

python3 -c "
import struct
open('tokens.bin', 'wb').write(b''.join(struct.pack('<H', i * i % 61) for i in range(40000)))"
cat >small.yaml <<Y
run:       {dir: run, steps: $steps, seed: 3}
model:     {type: gpt2, layers: 1, heads: 2, width: 16, context: 8, vocabulary: 64}
data:
  train:   {type: tokens, path: tokens.bin, format: u16}
  threads: 1
batch:     {global: 8, leaves: 8}
log:       {every: 1000 steps}
save:      {every: 200 steps}
Y
"${anneal[@]}" train small.yaml --set run.dir=alone >out 2>err || fail "a run that nobody disturbs: $?"
alone=$(field alone/summary.json 'd["state_hash"]')

# What there is to kill: ranks, and the launcher, which is the supervisor's child.
victims() {
    local p name
    for p in $(descendants "$process"); do
        name=$(cat "/proc/$p/comm" 2>/dev/null) || continue
        case $name in anneal | mpirun* | mpiexec* | orterun) echo "$p $name" ;; esac
    done
}
has_victims() { [ "$(victims | wc -l)" -ge 2 ]; }
is_gone() { ! kill -0 "$process" 2>/dev/null; }

kills=0 runs=0 launchers=0
[ -z "${KILLS_DONE:-}" ] || while read -r _ n; do kills=$((kills + n)); done < <(grep -s "^$mpi " "$KILLS_DONE")
while [ "$kills" -lt "$wanted" ]; do
    runs=$((runs + 1))
    here=0
    "${anneal[@]}" train small.yaml --supervise -n $ranks --min-ranks 1 --mpi "$mpi" --restarts 10000 --set run.dir=run-$runs >out 2>err &
    process=$!
    while [ $((kills + here)) -lt "$wanted" ]; do
        until_true 120 has_victims || break
        sleep "$((RANDOM % 3)).$((RANDOM % 10))"
        is_gone && break
        victim=$(victims | shuf -n 1)
        [ -n "$victim" ] || continue
        kill -KILL "${victim% *}" 2>/dev/null || continue
        here=$((here + 1))
        case $victim in *anneal) ;; *) launchers=$((launchers + 1)) ;; esac
    done
    code=0
    wait $process || code=$?
    left=$(descendants $process)
    process=
    [ "$code" = 0 ] || fail "run $runs after $here kills: exit code $code"
    [ -z "$left" ] || fail "processes are left: $left"
    hash=$(field run-$runs/summary.json 'd["state_hash"]')
    [ "$hash" = "$alone" ] || fail "run $runs after $here kills has state_hash $hash, and not $alone"
    [ "$here" = 0 ] || grep -qE 'restarting it with [1-4] of 4 ranks' err || fail "it was not restarted"
    kills=$((kills + here))
    [ -z "${KILLS_DONE:-}" ] || echo "$mpi $here" >>"$KILLS_DONE"
    rm -rf run-$runs
done
echo "$kills kills in $runs runs with $mpi, $launchers of them of the launcher: the hash of the run that nobody disturbed"
