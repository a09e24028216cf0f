#!/usr/bin/env bash
# Normalisation, augmentation, mixup, split and the moving average of the weights, all in one run on a folder of images:
# it ends bit-identical for any number of threads, loader threads and ranks, by every strategy, and after launches that
# were killed and went on with other numbers.
#   data_exact.sh SOURCE-TREE BUILD-FOLDER all|some KILLS [SEED]
# `all`: every combination of threads, loader threads, ranks, strategies and MPI libraries, which takes some minutes;
# `some`: few, in which each of them appears.
export ANNEAL_BIN=$2/bin
source "$(dirname "$0")/../cli/preamble.sh"
source "$(dirname "$0")/launch.sh"
tree=$1 which=$3 wanted_kills=$4 seed=${5:-1}
export OMP_WAIT_POLICY=passive
at_end() {
    local all
    [ -n "$process" ] || return 0
    all=$(descendants "$process")
    kill -KILL $process $all 2>/dev/null || true
}
libraries=()
for mpi in openmpi mpich; do
    ! command -v "mpirun.$mpi" >/dev/null || [ ! -e "$2/lib/libanneal-mpi-$mpi.so" ] || libraries+=("$mpi")
done

/usr/bin/env python3 "$tree/tests/cli/make_digits.py" "$tree"/examples/mnist/mnist-10k-{images-idx3,labels-idx1}-ubyte.gz 300
cat >c.yaml <<'Y'
run: {dir: run, epochs: 6, seed: 3}
model: {type: cnn, filters: [4], hidden: 8}
data:
  train: {type: images, path: digits}
  split: {eval: 25%, by: stratify, seed: 5}
  normalize: {inputs: standard, fit: first 100 samples}
  augment: {flip: horizontal, shift: 2, crop: 2, rotate: 10, brightness: 20%, contrast: 20%, erase: 10%, mixup: 0.4}
train: {ema: 0.98}
batch: {global: 32, leaves: 4}
optimizer: {lr: 3e-3}
log: {every: 1 steps}
eval: {every: 5 steps}
save: {every: 3 steps, keep_last: 2}
Y

# result: in `got`, the hash of weights, moments, average and metrics of the run, and its last evaluation
result() { got=$(field run/summary.json 'd["state_hash"], d["metrics"]["val_loss"]') || fail 'the run has not finished'; }
# plain ARGUMENT...: the result of one process
plain() {
    rm -rf run
    attempt 0 train c.yaml --set ranks.threads=1 "$@"
    result
}
# choose THREADS LOADERS RANKS SHARD MPI: how the next launch is made, in `launch`. Without MPI there is one rank.
choose() {
    local mpirun=()
    [ "$5" = alone ] || launcher "$5" "$3"
    launch=("${mpirun[@]}" "${anneal[@]}" train c.yaml --set "ranks.threads=$1" --set "data.threads=$2" --set "ranks.shard=$4")
    chosen="$1 threads, $2 loader threads, $3 ranks ($5), ranks.shard $4"
}

plain
expected=$got

# ---- each of the five does something ----
for change in data.normalize= data.augment.shift=1 data.augment.mixup=0 data.split.seed=6 train.ema=0.97; do
    plain --set "$change"
    [ "$got" != "$expected" ] || fail "$change changes nothing"
done
# An epoch is one step on all samples, and the weights stand still: what differs between epochs is what augmentation has
# made of the images.
spread() { # ARGUMENT...: of the losses of four epochs, in `got`
    rm -rf run
    attempt 0 train c.yaml --set ranks.threads=1 --set run.epochs=4 --set batch.global=1000 --set optimizer.lr=1e-30 "$@"
    got=$(python3 -c '
import json
losses = [d["loss"] for d in map(json.loads, open("run/metrics.jsonl")) if "loss" in d]
assert len(losses) == 4, losses
print(min(abs(a - b) for a, b in zip(losses, losses[1:])))')
}
spread --set data.augment=
still=$got
for change in '{shift: 2}' '{mixup: 0.4}'; do
    spread --set "data.augment=$change"
    python3 -c "import sys; sys.exit(not ($still < 1e-6 and $got > 1e-5))" ||
        fail "data.augment $change: the losses of epochs differ by $got, and without it by $still"
done

# ---- one result ----
cases=0
same() {
    rm -rf run
    choose "$@"
    "${launch[@]}" >out 2>err || fail "$chosen: it ended with $?"
    result
    [ "$got" = "$expected" ] || fail "$chosen: $got, and not $expected"
    cases=$((cases + 1))
}
[ "$which" = all ] || [ "$which" = some ] || [ "$which" = none ] || fail "which cases: all, some or none, not '$which'"
for threads in 1 2; do
    for loaders in 0 1 2; do
        [ $which != some ] || [ $threads = 1 ] || same $threads $loaders 1 none alone
        [ $which = all ] || continue
        same $threads $loaders 1 none alone
        for mpi in "${libraries[@]}"; do
            for ranks in 1 2 4; do
                for shard in none full; do same $threads $loaders $ranks $shard "$mpi"; done
            done
        done
    done
done
if [ $which = some ]; then
    for mpi in "${libraries[@]}"; do
        same 1 2 2 none "$mpi"
        same 1 1 4 full "$mpi"
    done
fi
echo "$cases cases: one result ($expected)"

# ---- killed ----
RANDOM=$seed
pick() { shift $((RANDOM % $#)) && picked=$1; }
choose_any() {
    local threads loaders shard
    pick 1 2 && threads=$picked
    pick 0 1 2 && loaders=$picked
    pick alone "${libraries[@]}" "${libraries[@]}" && mpi=$picked
    pick 1 2 4 && ranks=$picked
    pick none full && shard=$picked
    [ "$mpi" != alone ] || ranks=1 shard=none
    choose "$threads" "$loaders" "$ranks" "$shard" "$mpi"
}
steps() { [ ! -e run/metrics.jsonl ] && echo 0 || wc -l <run/metrics.jsonl; }
is_gone() { ! kill -0 "$process" 2>/dev/null; }
# A resumed run first cuts the lines of steps that it will make again; so this is a lower limit of what it has done.
has_made() { is_gone || [ "$(steps)" -ge "$1" ]; }

rm -rf run
: >moves
kills=0 launches=0 runs=0 history=''
# finish: what a run that has come to its end must have
finish() {
    result
    [ "$got" = "$expected" ] || fail "run $runs ($history): $got, and not $expected"
    runs=$((runs + 1)) history=''
    rm -rf run
}
while [ $kills -lt "$wanted_kills" ]; do
    choose_any
    launches=$((launches + 1)) history+="$chosen; "
    echo "$mpi-$ranks" >>moves
    before=$(steps)
    "${launch[@]}" >out 2>err &
    process=$!
    until_true 120 has_made $((before + 1 + RANDOM % 20)) || fail "run $runs ($history): it makes no steps"
    sleep "0.0$((RANDOM % 10))"
    victims=$(descendants $process)
    # The launcher first, or it may see its ranks die and end by itself. All may have ended meanwhile.
    kill -KILL $process $victims 2>/dev/null || true
    code=0
    wait $process 2>/dev/null || code=$?
    process=
    if [ -e run/summary.json ]; then # it had finished
        finish
    elif [ $code = 137 ] && [ "$(steps)" -gt "$before" ]; then
        kills=$((kills + 1))
    else
        fail "run $runs ($history): it ended with $code and was not killed"
    fi
done
# The last run is left to its end.
choose_any
launches=$((launches + 1)) history+=$chosen
"${launch[@]}" >out 2>err || fail "run $runs ($history): it ended with $?"
finish
echo "$kills kills in $launches launches of $runs runs ($(sort moves | uniq -c | tr -s ' \n' ' ')): each run ends with that result"
