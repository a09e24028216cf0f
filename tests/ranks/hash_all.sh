#!/usr/bin/env bash
# The hashes of hash.sh on 1 to 8 ranks, with one and two threads each, under both MPI libraries and by every strategy.
#   hash_all.sh SOURCE-TREE BUILD-FOLDER [--shard "STRATEGY..."] [--runs "NAME..."] [SCRATCH-FOLDER]
# Takes some ten minutes on two cores for each strategy. `hybrid` is for even numbers of ranks, which take themselves
# for ranks of two hosts.
set -euo pipefail
tree=$(realpath "$1") build=$(realpath "$2") strategies="none optimizer" names=
shift 2
while [ $# -gt 0 ]; do
    case $1 in
    --shard) strategies=$2 && shift 2 ;;
    --runs) names=$2 && shift 2 ;;
    *) break ;;
    esac
done
scratch=${1:-$(mktemp -d)}
export ANNEAL_BIN=$build/bin ANNEAL_RUN='' OMP_WAIT_POLICY=passive
failed=0
for mpi in openmpi mpich; do
    for ranks in 1 2 3 4 5 6 8; do
        for shard in $strategies; do
            launcher=("$tree/tests/comm/mpirun.sh" "$mpi" "$ranks")
            if [ "$shard" = hybrid ]; then
                [ $((ranks % 2)) = 0 ] || continue
                launcher+=(env "LD_PRELOAD=$build/lib/libtwo_hosts_$mpi.so")
            fi
            for threads in 1 2; do
                what="$mpi, $ranks ranks, $threads threads, $shard" folder=$scratch/$mpi-$ranks-$threads-$shard
                rm -rf "$folder" && mkdir -p "$folder"
                if (cd "$folder" && "$tree/tests/ranks/hash.sh" "$tree" --threads "$threads" --shard "$shard" --runs "$names" "${launcher[@]}") >"$folder.log" 2>&1; then
                    echo "$what: the recorded hashes"
                else
                    echo "$what: FAILED" && tail -5 "$folder.log"
                    failed=1
                fi
                rm -rf "$folder"
            done
        done
    done
done
exit $failed
