#!/usr/bin/env bash
# Commands of one process on a checkpoint that ranks have written, each a part of it: they say and write what they do
# for the checkpoint of one process.
#   commands.sh SOURCE-TREE MPI RANKS
# STRATEGIES has the names of those that the ranks divide the state by; by `hybrid`, an even number of ranks is on two
# hosts.
source "$(dirname "$0")/../cli/preamble.sh"
source "$(dirname "$0")/launch.sh"
tree=$1 mpi=$2 ranks=$3 config=gpt-shard
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
need_level avx512
cp "$tree/tests/ranks/$config.yaml" .
python3 "$tree/tests/ranks/make_data.py" "$tree"
run=(train $config.yaml --set run.steps=20 --set ranks.threads=1)

# use FOLDER: all commands, on the run in it, which is called `run` meanwhile; what they give is in FOLDER.out
use() {
    mkdir "$1.out"
    mv "$1" run
    attempt 0 verify run
    attempt 0 inspect run --all --json
    python3 -c "
import json
d = json.load(open('out'))
for key in ('run', 'files', 'bytes'): # its name, and what is more if there are more parts
    del d[key]
for tensor in d['tensors']:
    del tensor['slices']
json.dump(d, open('$1.out/inspect', 'w'), indent=1)"
    attempt 0 export run --to "$1.out/model.safetensors"
    attempt 0 export run "$1.out/torch" --to torch
    attempt 0 eval run --json
    cp out "$1.out/eval"
    attempt 0 predict run --input documents.bin --output "$1.out/predictions.npy"
    attempt 0 predict run --input documents.bin --output "$1.out/predictions.csv"
    mv run "$1"
}

attempt 0 "${run[@]}" --set run.dir=alone
use alone
# The test would notice: other weights give other answers.
attempt 0 "${run[@]}" --set run.dir=other --set run.seed=16
attempt 1 diff alone other
for shard in ${STRATEGIES:-none optimizer gradients full}; do
    two_hosts=()
    [ "$shard" != hybrid ] || two_hosts "${ANNEAL_BIN%/bin}" "$mpi" "$ranks"
    "$tree/tests/comm/mpirun.sh" "$mpi" "$ranks" "${two_hosts[@]}" "${anneal[@]}" "${run[@]}" --set run.dir=many --set ranks.shard="$shard" >out 2>err || fail "$ranks ranks, $shard: it ended with $?"
    parts=$(find many/checkpoints/step-00000020-1 -name 'part-*' | wc -l)
    [ "$parts" = "$ranks" ] || fail "$ranks ranks have written $parts parts"
    attempt 0 diff alone many
    attempt 1 diff many other
    use many
    diff -r alone.out many.out >out || fail "$ranks ranks, $shard: not what the checkpoint of one process gives"
    # A byte of a part is another: whoever reads it says so.
    part=many/checkpoints/step-00000020-1/part-0000$((ranks - 1)).safetensors
    printf '\377' | dd of="$part" bs=1 seek=$(($(stat -c %s "$part") - 3)) conv=notrunc 2>dd.log
    attempt 1 verify many
    attempt 1 export many --checkpoint newest --to damaged.safetensors
    rm -rf many many.out
    echo "$mpi, $ranks ranks, $shard: verify, inspect, export, eval, predict and diff as for one process"
done
