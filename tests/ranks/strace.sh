#!/usr/bin/env bash
# Who touches which file of a checkpoint, seen by strace of all ranks: each byte of its parts is read once when it is
# loaded, whatever the number of ranks, and while it is written no rank opens, looks at or names another's.
#   strace.sh SOURCE-TREE MPI WRITERS:READERS...
# STRATEGIES has the names; the readers have another than the writers.
source "$(dirname "$0")/../cli/preamble.sh"
tree=$1 mpi=$2 config=gpt-shard
shift 2
strategies=(${STRATEGIES:-none optimizer gradients full})
export OMP_WAIT_POLICY=passive
command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null || {
    echo "SKIPPED: there is no strace, or it may not trace"
    exit 77
}
need_level avx512
cp "$tree/tests/ranks/$config.yaml" .
python3 "$tree/tests/ranks/make_data.py" "$tree"
cat >rank <<'R'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
exec strace -f -y -qq -s 0 -e signal=none -e trace=%file,read,readv,pread64,preadv,preadv2,mmap,getdents64 -o "trace.$rank" "$@"
R
chmod +x rank

# train RANKS STEPS SHARD: leaves trace.RANK
train() {
    rm -f trace.*
    "$tree/tests/comm/mpirun.sh" "$mpi" "$1" "$work/rank" "${anneal[@]}" train $config.yaml --set run.dir=run --set run.steps="$2" --set ranks.threads=1 --set ranks.shard="$3" \
        --set eval.every=off --set save.every=off >out 2>err || fail "$1 ranks, $2 steps, $3: it ended with $?"
}
turn=0
for numbers; do
    for shard in "${strategies[@]}"; do
        turn=$((turn + 1)) writers=${numbers%:*} readers=${numbers#*:}
        rm -rf run
        train "$writers" 4 "$shard"
        checkpoint=$(echo run/checkpoints/step-00000004-*)
        python3 "$tree/tests/ranks/strace_check.py" saved "$writers" "$checkpoint" >found || fail "$mpi, $writers ranks, $shard: $(cat found)"
        cat found
        other=${strategies[turn % ${#strategies[@]}]}
        cp -a "$checkpoint" before # it is removed when there are newer ones
        train "$readers" 6 "$other"
        python3 "$tree/tests/ranks/strace_check.py" loaded "$readers" before "$checkpoint" >found || fail "$mpi, $readers ranks, $other: $(cat found)"
        cat found
        rm -rf before
        echo "$mpi: saved by $writers ranks with $shard, loaded by $readers with $other"
    done
done
