#!/usr/bin/env bash
# What ranks send in a step is what `anneal plan --ranks` says, to the byte, by every strategy: counted below the
# plugin, in MPI's own calls. Without shared memory it is also what the table of traffic_table.py says.
#   traffic.sh SOURCE-TREE BUILD-FOLDER openmpi|mpich RANKS...
# STRATEGIES and PRECISIONS have the names to go through. `hybrid` is for even numbers of ranks, which take themselves
# for ranks of two hosts.
export ANNEAL_BIN=$2/bin
source "$(dirname "$0")/../cli/preamble.sh"
tree=$1 build=$2 mpi=$3 config=gpt-shard.yaml steps=2 more=4
shift 3
need_level avx512
export OMP_WAIT_POLICY=passive
cp "$tree/tests/ranks/$config" .
python3 "$tree/tests/ranks/make_data.py" "$tree"

# train RANKS STEPS: leaves what each rank has sent in sends.STEPS.RANK. An evaluation comes at the end, however many
# steps there are.
train() {
    rm -rf run
    SENDS=sends.$2 "$tree/tests/comm/mpirun.sh" "$mpi" "$1" env LD_PRELOAD="$preloaded" "${anneal[@]}" train $config --set run.dir=run --set ranks.threads=1 \
        --set run.steps="$2" --set eval.every=off --set save.every=off "${settings[@]}" >out 2>err || fail "$1 ranks, $2 steps, ${settings[*]}: it ended with $?"
}

for ranks in "$@"; do
    for precision in ${PRECISIONS:-f32 bf16}; do
        for shard in ${STRATEGIES:-none optimizer gradients full}; do
            modes=off # test_threads.c and test_shard.c count what is moved in shared memory, on all numbers of ranks
            [ "$ranks" != 2 ] || case $shard in none | optimizer) modes="off on" ;; esac
            preloaded=$build/lib/libcount_sends_$mpi.so hosts=1
            if [ "$shard" = hybrid ]; then
                [ $((ranks % 2)) = 0 ] || continue
                preloaded+=:$build/lib/libtwo_hosts_$mpi.so hosts=2
            fi
            for shared in $modes; do
                settings=(--set ranks.shared_memory=$shared --set ranks.shard="$shard" --set train.precision="$precision")
                train "$ranks" $steps
                train "$ranks" $more
                [ -e $precision.json ] || "${anneal[@]}" inspect run --json >$precision.json
                for ((rank = 0; rank < ranks; rank++)); do
                    "${anneal[@]}" plan $config --ranks "$ranks" --rank $rank --hosts $hosts "${settings[@]}" --json >plan.$rank.json
                done
                how=$shard
                [ $shared = off ] || how=shared
                python3 "$tree/tests/ranks/traffic_table.py" "$how" "$ranks" $precision.json $steps $more >table || {
                    cat table
                    fail "$mpi, $ranks ranks, shared memory $shared: not as planned"
                }
                [ $shared = on ] || cat table
                echo "$mpi, $ranks ranks, $shard, $precision, shared memory $shared: as planned"
            done
        done
    done
done
