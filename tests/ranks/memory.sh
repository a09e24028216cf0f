#!/usr/bin/env bash
# What ranks hold of GPT-2 124M by every strategy: as planned, to the byte; of the machine's memory within 3 % of it;
# pieces fall as 1/P, and no rank has more of them than another.
#   memory.sh SOURCE-TREE BUILD-FOLDER MPI RANKS...
# STRATEGIES and PRECISIONS have the names to go through. By none and optimizer there are at most 4 ranks: eight copies
# do not fit a machine of 24 GB. With MEMORY_DONE=FILE, the lines of memory.c are kept there, and what it has is not
# done again.
export ANNEAL_BIN=$2/bin
source "$(dirname "$0")/../cli/preamble.sh"
tree=$1 build=$2 mpi=$3 vocabulary=50257
shift 3
export OMP_WAIT_POLICY=passive MPIRUN_SECONDS=1200
python3 -c "
import random, struct
tokens = random.Random(1)
open('tokens.bin', 'wb').write(struct.pack('<4000H', *(tokens.randrange($vocabulary) for _ in range(4000))))"

# write_config FILE SHAPE: batches of one sample of 64 tokens, a leaf for each rank. Where gradients are whole, a leaf
# has two of them: the second adds to the gradients of the first, which needs most.
write_config() {
    local samples=$ranks
    case $shard in none | optimizer) samples=$((2 * ranks)) ;; esac
    cat >"$1" <<C
version: 1
run:       {dir: run, seed: 1, steps: 10}
model:     {type: gpt2, $2, context: 1024, vocabulary: $vocabulary}
data:
  train:   {type: tokens, path: tokens.bin, format: u16, context: 64}
batch:     {global: $samples, leaves: $ranks, micro: 1}
train:     {precision: $precision}
ranks:     {shard: $shard}
C
}

done=$work/lines
[ -z "${MEMORY_DONE:-}" ] || done=$MEMORY_DONE
touch "$done"
for precision in ${PRECISIONS:-f32 bf16}; do
    for ranks in 1 "$@"; do
        for shard in ${STRATEGIES:-none optimizer gradients full}; do
            [ "$ranks" -gt 1 ] || [ "$shard" = none ] || continue
            case $shard in none | optimizer) [ "$ranks" -le 4 ] || continue ;; esac
            case="$precision $shard $ranks"
            ! grep -q "^$case " "$done" || continue
            write_config large.yaml "layers: 12, heads: 12, width: 768"
            write_config little.yaml "layers: 2, heads: 2, width: 32"
            "$tree/tests/comm/mpirun.sh" "$mpi" "$ranks" "$build/bin/ranks_memory" "$mpi" little.yaml large.yaml >out 2>err || fail "$case: it ended with $?"
            [ "$(grep -c '^rank ' out)" = "$ranks" ] || fail "$case: not every rank has written a line"
            sed -n "s/^rank /$case rank /p" out | sort -t ' ' -k 5n >>"$done"
        done
    done
done
python3 "$tree/tests/ranks/memory_check.py" "$done" || fail "memory is not as it must be"
