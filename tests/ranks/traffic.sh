#!/usr/bin/env bash
# What ranks send in a step is what `anneal plan --ranks` says, to the byte, with gradients in messages and in shared memory: counted below the plugin, in MPI's own calls.
#   traffic.sh SOURCE-TREE openmpi|mpich COUNTER RANKS...
source "$(dirname "$0")/../cli/preamble.sh"
tree=$1 mpi=$2 counter=$3
shift 3
cp "$tree"/tests/ranks/mlp.yaml .
ln -s "$tree/examples" examples
python3 "$tree/tests/ranks/make_data.py" "$tree"

# train RANKS STEPS SHARED: leaves what each rank has sent in sends.STEPS.RANK. An evaluation comes at the end of both.
train() {
    rm -rf run
    SENDS=sends.$2 "$tree/tests/comm/mpirun.sh" "$mpi" "$1" env LD_PRELOAD="$counter" "${anneal[@]}" train mlp.yaml --set run.dir=run \
        --set ranks.threads=1 --set ranks.shared_memory="$3" --set run.steps="$2" --set eval.every=off --set save.every=off >out 2>err || fail "$1 ranks, $2 steps: it ended with $?"
}

for ranks in "$@"; do
    modes="off on" # test_threads.c counts what is moved in shared memory, on all numbers of ranks
    [ "$ranks" -le 3 ] || modes=off
    for shared in $modes; do
        train "$ranks" 5 $shared
        train "$ranks" 25 $shared
        for ((rank = 0; rank < ranks; rank++)); do
            "${anneal[@]}" plan mlp.yaml --ranks "$ranks" --rank "$rank" --set ranks.shared_memory=$shared --json >plan.json
            planned=$(field plan.json 'd["exchange"]["sent_bytes"]')
            counted=$((($(cat sends.25.$rank) - $(cat sends.5.$rank)) / 20))
            [ "$planned" = "$counted" ] || fail "rank $rank of $ranks, shared memory $shared: it sends $counted bytes in a step, planned are $planned"
        done
        echo "$mpi, $ranks ranks, shared memory $shared: as planned"
    done
done
