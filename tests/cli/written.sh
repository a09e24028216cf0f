#!/usr/bin/env bash
# eval.generate with ranks: the samples are those of one process, and training does not notice that they are written.
#   written.sh SOURCE-TREE openmpi|mpich
source "$(dirname "$0")/preamble.sh"
tree=$1 mpi=$2
export OMP_NUM_THREADS=1
for _ in $(seq 40); do printf 'a line and a line and one more line, and so it goes on and on\n'; done >poem.txt
printf 'a line\nand so\n' >prompts.txt
cat >c.yaml <<Y
model: {type: gpt2, layers: 2, heads: 2, width: 32, context: 40}
data: {train: {type: text, path: poem.txt, tokens: chars}, split: {eval: 20%}}
batch: {global: 8, micro: 2, leaves: 4}
train: {precision: bf16}
eval: {every: 5 steps}
save: {every: off}
run: {steps: 10, dir: run}
Y
attempt 0 train c.yaml
wanted=$(field run/summary.json "d['state_hash']")
rm -rf run
attempt 0 train c.yaml --set eval.generate=prompts.txt
[ "$(field run/summary.json "d['state_hash']")" = "$wanted" ] || fail 'writing samples changed the training'
mv run/samples samples
[ "$(ls samples)" = "$(printf 'step-%08d.jsonl\n' 5 10)" ] || fail "$(ls samples)"
for kind in '2 none' '2 full' '4 optimizer'; do
    read -r ranks shard <<<"$kind"
    rm -rf run
    "$tree/tests/comm/mpirun.sh" "$mpi" "$ranks" "${anneal[@]}" train c.yaml --set eval.generate=prompts.txt \
        --set "ranks.shard=$shard" >out 2>err || { code=$?; cat err; exit $code; }
    ! grep -q 'were not written' err || fail "$ranks ranks, $shard: no samples"
    [ "$(field run/summary.json "d['state_hash']")" = "$wanted" ] || fail "$ranks ranks, $shard: writing samples changed the training"
    diff -r samples run/samples || fail "$ranks ranks, $shard: other samples"
done
