#!/usr/bin/env bash
# Evaluations of a run: threads that read and eval.micro. Training does not notice either; the numbers of an evaluation
# have the same bits for any threads and ranks.
#   evaluate.sh SOURCE-TREE [openmpi|mpich]
source "$(dirname "$0")/preamble.sh"
tree=$1 mpi=${2:-}
export OMP_NUM_THREADS=1

python3 - <<'P'
import random
random.seed(7)
with open("table.csv", "w") as table:
    print("a,b,y", file=table)
    for _ in range(500):
        a, b = random.random(), random.random()
        print(f"{a:.6f},{b:.6f},{'high' if a + 0.4 * random.random() > b else 'low'}", file=table)
P
cat >c.yaml <<Y
run: {dir: run, steps: 24, seed: 2}
model: {type: mlp, hidden: [24]}
data:
  train: {type: csv, path: table.csv, part: 0%..60%, classes: on}
  eval:  {type: csv, path: table.csv, part: 60%..100%, classes: on}
batch: {global: 16, micro: 4, leaves: 4}
eval: {every: 6 steps, metrics: [loss, accuracy, auc], best: val_auc}
log: {every: 1 steps}
save: {every: 6 steps}
Y
# hash ARGUMENT...: of a whole run with all of its evaluations; `weights` has that of the weights alone
hash() {
    rm -rf run
    attempt 0 train c.yaml --set save.every=off "$@"
    field run/summary.json "d['weights_hash']" >weights
    field run/summary.json "d['state_hash']"
}
declare -A wanted
for micro in 7 16 1000; do
    wanted[$micro]=$(hash --set eval.micro=$micro)
done
if [ -n "$mpi" ]; then
    for kind in '2 none 7' '4 full 7' '4 optimizer 1000'; do # with 1000, most ranks have nothing to evaluate
        read -r ranks shard micro <<<"$kind"
        rm -rf run
        "$tree/tests/comm/mpirun.sh" "$mpi" "$ranks" "${anneal[@]}" train c.yaml --set save.every=off --set "eval.micro=$micro" \
            --set "ranks.shard=$shard" --set "data.threads=$((ranks / 2))" >out 2>err || exit $?
        got=$(field run/summary.json "d['state_hash']")
        [ "$got" = "${wanted[$micro]}" ] || fail "$ranks ranks, $shard, eval.micro $micro: other bits: $got, not ${wanted[$micro]}"
    done
    exit 0
fi

default=$(hash) && cp weights training
# A step has fewer rows than 512, so its samples are the default.
[ "$default" = "${wanted[16]}" ] || fail 'the default of eval.micro is not batch.global'
[ "$default" != "${wanted[7]}" ] || fail 'eval.micro does not group sums'
grep -q '; 200 for evaluation, 16 at a time' out || fail 'the banner does not say what the default is'
for micro in 7 1000; do
    for threads in 0 1 3; do
        [ "${wanted[$micro]}" = "$(OMP_NUM_THREADS=2 hash --set eval.micro=$micro --set data.threads=$threads)" ] ||
            fail "eval.micro $micro has other bits with $threads loader threads"
        cmp weights training || fail "eval.micro $micro changes the weights"
    done
done
grep -q '; 200 for evaluation, 200 at a time' out || fail 'the banner does not say how many are evaluated at a time'

# Part of the run: a launch that goes on must not change it, and one that was killed ends with the same bits.
rm -rf run
attempt 0 train c.yaml --set eval.micro=7 --set run.steps=12
attempt 2 train c.yaml --set eval.micro=8 --extend keep
grep -q 'eval.micro: 7 > 8' err || grep -q 'eval.micro' err || fail "it does not name eval.micro: $(cat err)"
rm -rf run
for launch in $(seq 6); do
    timeout -s KILL "0.0$((launch * 3 / 2))" "${anneal[@]}" train c.yaml --set eval.micro=7 >out 2>err || true
done
[ -e run/summary.json ] || attempt 0 train c.yaml --set eval.micro=7
[ "$(field run/summary.json "d['state_hash']")" = "${wanted[7]}" ] || fail 'a run that was killed has other bits'

# The command that evaluates uses it too.
attempt 0 eval run --checkpoint newest --json
field out "d['metrics']['val_loss']" >one
field run/summary.json "d['metrics']['val_loss']" >two
cmp one two || fail "anneal eval has another loss than the run: $(cat one two)"

# A run that gets worse at its end: commands that use its model take the best checkpoint, and say so.
attempt 0 train c.yaml --set run.dir=worse --set eval.best=val_loss --set optimizer.lr=1e-2 \
    --set schedule='{type: points, points: {0: 1, 12: 1, 13: 300, 24: 300}}'
best=$(readlink worse/best) newest=checkpoints/step-00000024-1
[ "$best" = checkpoints/step-00000012-1 ] || fail "step 12 is not the best: $best"
attempt 0 eval worse --json
[ "$(field out "d['checkpoint'], d['path'], round(d['metrics']['val_loss'], 6)")" = "best worse/$best $(field worse/summary.json "round(d['best']['value'], 6)")" ] ||
    fail "eval does not take the best: $(head -n 5 out)"
grep -qx "worse: the best checkpoint is used, after step 12: worse/$best" err || fail "eval does not say which it takes: $(cat err)"
attempt 0 eval worse --checkpoint newest --json
[ "$(field out "d['checkpoint'], d['path'], round(d['metrics']['val_loss'], 6)")" = "newest worse/$newest $(field worse/summary.json "round(d['metrics']['val_loss'], 6)")" ] ||
    fail "--checkpoint newest: $(head -n 5 out)"
for choice in worse/checkpoints/step-00000024-1 step-00000024-1; do
    attempt 0 eval worse --checkpoint "$choice" --json
    [ "$(field out "d['checkpoint'], d['step']")" = "given 24" ] || fail "--checkpoint $choice: $(head -n 5 out)"
done
attempt 0 eval "worse/$newest" --json
[ "$(field out "d['checkpoint'], d['step']")" = "given 24" ] && [ ! -s err ] || fail "a checkpoint is not taken as it is: $(cat err)"
attempt 0 predict worse --input table.csv --output best.csv
grep -q 'the best checkpoint is used' err || fail "predict does not say which it takes: $(cat err)"
attempt 0 predict worse --checkpoint best --input table.csv --output same.csv
attempt 0 predict worse --checkpoint newest --input table.csv --output newest.csv
cmp best.csv same.csv && ! cmp -s best.csv newest.csv || fail "predict does not take the best"
attempt 0 export worse --to best.safetensors
grep -qx "best.safetensors, from worse/$best" out || fail "export does not take the best: $(cat out)"
attempt 0 export worse --checkpoint newest --to newest.safetensors
grep -qx "newest.safetensors, from worse/$newest" out || fail "export --checkpoint newest: $(cat out)"
attempt 0 train c.yaml --set run.dir=blind --set data.eval= --set eval=
attempt 1 eval blind --checkpoint best --data table.csv
grep -q 'blind: this run has no best checkpoint' err || fail "what is not there is not named: $(cat err)"
attempt 0 eval blind --data table.csv
grep -qx 'blind: the newest checkpoint is used, after step 24: blind/checkpoints/step-00000024-1' err || fail "$(cat err)"
attempt 2 eval "worse/$best" --checkpoint newest
attempt 1 eval worse --checkpoint step-7

attempt 2 train c.yaml --set eval.micro=0
grep -q 'eval.micro' err || fail 'a wrong number is not named'
attempt 2 train c.yaml --set data.eval= --set eval.every= --set eval.micro=8
grep -q 'eval.micro is set, but there is no data to evaluate on' err || fail "it takes what it cannot obey: $(cat err)"
echo 'evaluations have the bits that they should'
