#!/usr/bin/env bash
# What ranks send in a step is what `anneal plan --ranks` says, to the byte: counted below the plugin, in MPI's own calls.
#   traffic.sh SOURCE-TREE openmpi|mpich COUNTER RANKS...
source "$(dirname "$0")/../cli/preamble.sh"
tree=$1 mpi=$2 counter=$3
shift 3
cp "$tree"/tests/ranks/mlp.yaml .
ln -s "$tree/examples" examples
python3 "$tree/tests/ranks/make_data.py" "$tree"

# train RANKS STEPS: leaves what each rank has sent in sends.STEPS.RANK. An evaluation comes at the end of both.
train() {
    rm -rf run
    SENDS=sends.$2 "$tree/tests/comm/mpirun.sh" "$mpi" "$1" env LD_PRELOAD="$counter" "${anneal[@]}" train mlp.yaml --set run.dir=run \
        --set ranks.threads=1 --set run.steps="$2" --set eval.every=off --set save.every=off >out 2>err || fail "$1 ranks, $2 steps: it ended with $?"
}

for ranks in "$@"; do
    train "$ranks" 5
    train "$ranks" 25
    for ((rank = 0; rank < ranks; rank++)); do
        "${anneal[@]}" plan mlp.yaml --ranks "$ranks" --rank "$rank" --json >plan.json
        planned=$(field plan.json 'd["exchange"]["sent_bytes"]')
        counted=$((($(cat sends.25.$rank) - $(cat sends.5.$rank)) / 20))
        [ "$planned" = "$counted" ] || fail "rank $rank of $ranks sends $counted bytes in a step, planned are $planned"
    done
    echo "$mpi, $ranks ranks: as planned"
done
