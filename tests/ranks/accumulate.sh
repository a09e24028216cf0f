#!/usr/bin/env bash
# Ranks that divide gradients, with several micro-batches in a leaf and several leaves in a micro-batch: the state_hash
# of one process, and the bytes that the plan says a rank sends in a step.
#   accumulate.sh SOURCE-TREE openmpi|mpich [RANKS...]
# A line for each run: leaves and micro-batches, strategy, ranks, ranks.accumulate, bytes that the busiest rank sends,
# hash.
source "$(dirname "$0")/../cli/preamble.sh"
tree=$1 mpi=$2
shift 2
[ $# -gt 0 ] || set -- 2 3 4
command -v "mpirun.$mpi" >/dev/null || { echo "there is no mpirun.$mpi here: not tested"; exit 77; }
export OMP_WAIT_POLICY=passive
cat >model.yaml <<Y
run:       {dir: run, seed: 3, steps: 6}
model:     {type: gpt2, layers: 2, heads: 2, width: 64, context: 16, dropout: 0.1}
data:      {train: {type: text, path: $tree/examples/shakespeare/tinyshakespeare.txt, tokens: chars, part: 0%..1%}}
batch:     {global: 64, leaves: 16}
train:     {precision: f32}
save:      {every: off}
log:       {every: 1 step, tensorboard: off}
Y
# run WHAT LAUNCHER... -- SETTING...: the hash of a run
run() {
    local what=$1 launcher=()
    shift
    while [ "$1" != -- ]; do launcher+=("$1") && shift; done
    shift
    rm -rf run
    "${launcher[@]}" "${anneal[@]}" train model.yaml --set ranks.threads=1 "$@" >out 2>err || fail "$what: it ended with $?"
    hash=$(field run/summary.json 'd["state_hash"]')
}
# sent RANKS SETTING...: bytes that the busiest rank sends in a step
sent() {
    local ranks=$1
    shift
    "${anneal[@]}" plan model.yaml --ranks "$ranks" "$@" --json >plan.json 2>err || fail "plan $*: $?"
    field plan.json "[s['sent_bytes'] for s in d['strategies'] if s['taken']][0]"
}
runs=0
for micro in 1 2 4 8 16; do # a leaf has 4 samples
    run "one process" -- --set batch.micro=$micro
    expected=$hash
    [ $micro -lt 4 ] && cut="$((4 / micro)) micro-batches a leaf" || cut="$((micro / 4)) leaves a micro-batch"
    for shard in gradients full; do
        for ranks in "$@"; do
            before=
            for accumulate in on off; do
                [ $micro -ge 4 ] || [ $accumulate = on ] || continue # parts of leaves are added first
                settings=(--set batch.micro=$micro --set ranks.shard=$shard --set ranks.accumulate=$accumulate)
                run "$cut, $shard, $ranks ranks" "$tree/tests/comm/mpirun.sh" "$mpi" "$ranks" -- "${settings[@]}"
                bytes=$(sent "$ranks" "${settings[@]}")
                echo "$cut, $shard, $ranks ranks, accumulate $accumulate: $bytes bytes, $hash"
                [ "$hash" = "$expected" ] || fail "one process has the hash $expected"
                [ -z "$before" ] || [ "$before" -le "$bytes" ] || fail "adding gradients sends more: $before bytes"
                before=$bytes runs=$((runs + 1))
            done
        done
    done
done
echo "$mpi: $runs runs have the hash of one process"
