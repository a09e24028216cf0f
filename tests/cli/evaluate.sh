#!/usr/bin/env bash
# Evaluations of a run: threads that read and eval.micro. Training does not notice either; the numbers of an evaluation have the same bits for any threads and ranks.
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
for micro in 4 7 1000; do
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
[ "$default" = "${wanted[4]}" ] || fail 'the default of eval.micro is not batch.micro'
[ "$default" != "${wanted[7]}" ] || fail 'eval.micro does not group sums'
! grep -q 'at a time' out || fail 'the banner says what nobody asked for'
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
attempt 0 eval run --json
field out "d['metrics']['val_loss']" >one
field run/summary.json "d['metrics']['val_loss']" >two
cmp one two || fail "anneal eval has another loss than the run: $(cat one two)"

attempt 2 train c.yaml --set eval.micro=0
grep -q 'eval.micro' err || fail 'a wrong number is not named'
attempt 2 train c.yaml --set data.eval= --set eval.every= --set eval.micro=8
grep -q 'eval.micro is set, but there is no data to evaluate on' err || fail "it takes what it cannot obey: $(cat err)"
echo 'evaluations have the bits that they should'
