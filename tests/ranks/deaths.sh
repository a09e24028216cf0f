#!/usr/bin/env bash
# A rank dies: the report says at which step and at what, the exit code is 128 + the signal, and outcome.json says that
# the run failed.
#   deaths.sh MPI
source "$(dirname "$0")/../cli/preamble.sh"
source "$(dirname "$0")/launch.sh"
mpi=$1
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:handle_segv=0
ulimit -c 0
launcher "$mpi" 2
at_end() {
    [ -z "$process" ] || kill -KILL "$process" $(descendants "$process") 2>/dev/null || true
}
python3 -c "
import struct
open('tokens.bin', 'wb').write(b''.join(struct.pack('<H', i * i % 61) for i in range(40000)))"
cat >small.yaml <<Y
run:   {steps: 100000000, seed: 3}
model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8, vocabulary: 64}
data:  {train: {type: tokens, path: tokens.bin, format: u16}, threads: 1}
batch: {global: 8}
log:   {every: 1 steps}
save:  {every: 1000000 steps}
Y
place='at step [1-9][0-9]*, while "[^"]+"'
trains() { grep -qs '"step"' "$folder/metrics.jsonl"; }
# start FOLDER WORD...: a run in the background, which trains
start() {
    folder=$1
    shift
    "$@" train small.yaml --set run.dir="$folder" "${more[@]}" >out 2>err &
    process=$!
    until_true 60 trains || fail "it does not train"
}
# dies SIGNAL RANK: and the exit code of all is in $code
dies() {
    kill "-$1" "$(rank_process "$process" "$2")"
    code=0
    wait "$process" || code=$?
    process=
}
says() { grep -qE -- "$1" err || fail "nothing it says matches: $1"; }
# has_failed WORDS: what outcome.json says
has_failed() {
    [ "$(field "$folder/outcome.json" 'd["end"]')" = failed ] || fail "outcome.json: $(cat "$folder/outcome.json")"
    field "$folder/outcome.json" 'd["error"]' | grep -qE -- "$1" || fail "outcome.json: $(cat "$folder/outcome.json")"
}

# --- plain ranks and supervised ones ---
for case in 'plain KILL 9 1' 'supervised SEGV 11 0'; do
    read -r how name number rank <<<"$case"
    more=(-n 2 --mpi "$mpi")
    [ $how = plain ] || more+=(--supervise --restarts 0)
    start "$how" "${anneal[@]}"
    if [ $how = plain ]; then # the folder is not for another job
        busy=0
        "${anneal[@]}" train small.yaml --set run.dir="$folder" "${more[@]}" >busy.out 2>busy.err || busy=$?
        [ $busy = 1 ] && grep -q 'is already training in this folder' busy.err || fail "a folder that is in use: $busy, $(cat busy.err)"
    fi
    mkdir "$folder/outcome.json-$process.new" # as on a full disk, nothing can be written beside the file
    dies "$name" "$rank"
    [ "$code" = $((128 + number)) ] || fail "$how: exit code $code after signal $number"
    says "rank $rank \(process [0-9]+\) has died $place"
    says "one of 2 ranks (was killed|crashed) \(signal $number\) $place"
    has_failed "$place"
done

# --- ranks of mpirun: those that live say it; where the launcher kills them at once, whoever looks next does ---
more=()
start bare "${mpirun[@]}" "${anneal[@]}"
sleep 1.5 # ranks hear of each other once a second
dies KILL 1
[ "$code" != 0 ] || fail "mpirun ends well"
if [ "$mpi" = openmpi ]; then
    says "rank 1 has died: its process is gone; it was last heard of $place"
    has_failed "$place"
else
    "${anneal[@]}" compare bare plain >out 2>err || fail "compare: $?"
    grep -qE '^end +died +failed' out || fail "compare says of a killed run: $(cat out)"
fi
echo "deaths with $mpi: as expected"
