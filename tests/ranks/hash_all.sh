#!/usr/bin/env bash
# The hashes of hash.sh on 1 to 8 ranks, with one and two threads each, under both MPI libraries. Takes some ten minutes on two cores.
#   hash_all.sh SOURCE-TREE BUILD-FOLDER [SCRATCH-FOLDER]
set -euo pipefail
tree=$(realpath "$1") build=$(realpath "$2") scratch=${3:-$(mktemp -d)}
export ANNEAL_BIN=$build/bin ANNEAL_RUN='' OMP_WAIT_POLICY=passive
failed=0
for mpi in openmpi mpich; do
    for ranks in 1 2 3 4 5 6 8; do
        for threads in 1 2; do
            folder=$scratch/$mpi-$ranks-$threads
            rm -rf "$folder" && mkdir -p "$folder"
            if (cd "$folder" && "$tree/tests/ranks/hash.sh" "$tree" --threads "$threads" "$tree/tests/comm/mpirun.sh" "$mpi" "$ranks") >"$folder.log" 2>&1; then
                echo "$mpi, $ranks ranks, $threads threads: the recorded hashes"
            else
                echo "$mpi, $ranks ranks, $threads threads: FAILED" && tail -5 "$folder.log"
                failed=1
            fi
            rm -rf "$folder"
        done
    done
done
exit $failed
