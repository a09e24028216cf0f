#!/usr/bin/env bash
# A model that does not fit: GPT-2 355M in f32, on ranks that may each use what is halfway between the plans of `full`
# and `gradients`. 4 ranks train 10 steps and save at the fifth; 2 ranks go on from there, with a limit set the same
# way. Both end with the hash of one process without a limit, and `gradients` is refused under the limit of 4 ranks.
#   fits.sh SOURCE-TREE openmpi|mpich [STRATEGY]     STRATEGY (full) must be one that fits
#   fits.sh SOURCE-TREE one                          prints the hash of one process, which needs 13 GB
# The limit is RLIMIT_DATA: what a process maps for itself alone and may write to. Addresses that are only reserved do
# not count.
source "$(dirname "$0")/../cli/preamble.sh"
tree=$1 mpi=$2 strategy=${3:-full}
expected=84c9848e2a06f1cc79ee7d5b999d94d5 # of `fits.sh SOURCE-TREE one`
export OMP_WAIT_POLICY=passive MPIRUN_SECONDS=3600
skip() {
    echo "SKIPPED: $1"
    exit 77
}
need_level avx512
[ "$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)" -ge 15000000 ] || skip "less than 15 GB of memory are available"

cat >fits.yaml <<'END'
version: 1
run:       {dir: run, seed: 4, steps: 10, isa: avx512}
model:     {type: gpt2, layers: 24, heads: 16, width: 1024, context: 1024, vocabulary: 50257}
data:      {train: {type: tokens, path: tokens.bin, format: u16, context: 64}}
batch:     {micro: 1, global: 4, leaves: 4}
optimizer: {type: adamw, lr: 3e-4}
train:     {precision: f32}
save:      {every: 5 steps, keep_every: 5 steps}
log:       {every: 1 step, tensorboard: off}
END
python3 - <<'END'
import struct

state, tokens = 7, []
for _ in range(3200):
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    tokens.append((state >> 33) % 50257)
open("tokens.bin", "wb").write(struct.pack(f"<{len(tokens)}H", *tokens))
END
hash_of() { field "$1/summary.json" 'd["state_hash"]'; }
if [ "$mpi" = one ]; then
    "${anneal[@]}" train fits.yaml --set save.every=off >out 2>err || fail "one process: it ended with $?"
    hash_of run
    exit 0
fi

# planned STRATEGY RANKS: bytes of the fullest rank
planned() {
    local rank most=0 bytes
    for ((rank = 0; rank < $2; rank++)); do
        "${anneal[@]}" plan fits.yaml --ranks "$2" --rank $rank --set ranks.shard="$1" --set ranks.threads=1 --json >plan.json
        bytes=$(field plan.json 'd["peak_bytes"]')
        [ "$bytes" -le "$most" ] || most=$bytes
    done
    echo "$most"
}
# train STRATEGY RANKS FOLDER [ARGUMENT...]: each rank may use `limit` bytes
train() {
    local shard=$1 ranks=$2 folder=$3
    shift 3
    "$tree/tests/comm/mpirun.sh" "$mpi" "$ranks" prlimit --data="$limit" "${anneal[@]}" train fits.yaml --set run.dir="$folder" --set ranks.shard="$shard" --set ranks.threads=1 "$@" >out 2>err
}
# set_limit RANKS
set_limit() {
    local full gradients
    full=$(planned full "$1") gradients=$(planned gradients "$1")
    [ "$full" -lt "$gradients" ] || fail "$1 ranks: full needs $full bytes, gradients $gradients"
    limit=$(((full + gradients) / 2))
    echo "$mpi, $1 ranks: full needs $full bytes, gradients $gradients; each may use $limit"
}
# check RANKS FOLDER
check() {
    local hash
    hash=$(hash_of "$2")
    [ "$hash" = "$expected" ] || fail "$1 ranks: the hash is $hash, but that of one process is $expected"
    [ "$strategy" != auto ] || grep -q '^sharding  *full (auto' out || fail "$1 ranks: auto has not taken full: $(grep '^sharding' out)"
    echo "$mpi, $1 ranks, $strategy: the hash of one process, after $SECONDS s; $(grep '^sharding' out)"
}

set_limit 4
! train gradients 4 refused || fail "gradients fits too: the limit shows nothing"
grep -q "does not fit in memory" err || fail "gradients ended, but not for want of memory"
echo "$mpi, 4 ranks, gradients: refused"
train "$strategy" 4 first || fail "4 ranks: it ended with $?"
check 4 first
set_limit 2
train "$strategy" 2 second --resume first/checkpoints/step-00000005-1 || fail "2 ranks: it ended with $?"
check 2 second
