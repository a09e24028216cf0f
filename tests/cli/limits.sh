#!/usr/bin/env bash
# Numbers at their limits, and data that is probably a mistake: what is refused, what is warned of, how it is shown.
#   limits.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
tree=$1
export OMP_NUM_THREADS=1

# run CODE ARGUMENT...: a new run of c.yaml
run() {
    local wanted=$1 code=0
    shift
    rm -rf run
    "${anneal[@]}" train c.yaml "$@" >out 2>err || code=$?
    [ "$code" = "$wanted" ] || fail "train c.yaml $* ends with $code, not $wanted"
}
says() { cat out err | tr -s ' \n' ' ' | grep -qF -- "$1" || fail "it does not say: $1"; }
never() { ! cat out err run/log.txt run/metrics.jsonl 2>/dev/null | grep -qE -- "$1" || fail "it says: $1"; }

seq 1 40 | awk '{ printf "%d,%g,%g\n", $1, $1 / 7, $1 * 2 }' | sed '1i a,b,y' >rows.csv
seq 1 60 | awk '{ printf "%g,%d\n", $1 / 7, ($1 - 1) / 20 }' | sed '1i a,k' >sorted.csv # 20 of class 0, then 1, then 2
cat >c.yaml <<'Y'
run: {dir: run, steps: 3}
model: {type: mlp, hidden: [8]}
data: {train: {type: csv, path: rows.csv}}
batch: {global: 8}
train: {precision: f32}
Y

# --- lengths ---
for steps in 9223372036854775807 9223372036854775000 9007199254740992; do
    run 2 --set run.steps=$steps
    says "--set run.steps=$steps: run.steps: this is more than 9007199254740992 steps (2^53); use a shorter length"
done
run 2 --set run.steps= --set run.epochs=9007199254740992
says 'run.epochs: this is more than 9007199254740992 steps (2^53)'
run 2 --set run.steps= --set run.samples=9223372036854775807
says 'run.samples: this is more than 9007199254740992 steps (2^53)'

# --- sizes ---
run 1 --set 'model.hidden=[4000000000,4000000000]'
says 'a dimension does not fit in 64 bits'
run 2 --set train.precision=f64
says '--set train.precision=f64: train.precision is f64, but data.train is read in f32; set data.train.dtype to f64'
run 0 --set train.precision=f64 --set data.train.dtype=f64
for precision in f32 bf16; do
    run 2 --set train.precision=$precision --set data.train.dtype=f64
    says "--set train.precision=$precision: train.precision is $precision, but data.train is read in f64; set data.train.dtype to f32, or train.precision to f64"
done
run 2 --set "data.eval={type: csv, path: rows.csv, dtype: f64}"
says 'data.eval.dtype is f64, but data.train.dtype is f32; set both to the same type'
seq 1 20 | awk '{ printf "{\"inputs\": [%d, 1], \"targets\": %d}\n", $1, $1 * 2 }' >rows.jsonl
run 2 --set train.precision=f64 --set 'data.train={type: jsonl, path: rows.jsonl}'
says 'train.precision is f64, but data.train is read in f32; set data.train.dtype to f64'
mnist=$tree/examples/mnist/mnist-10k
idx="data={train: {type: idx, path: $mnist-images-idx3-ubyte.gz, labels: $mnist-labels-idx1-ubyte.gz}}"
run 2 --set train.precision=f64 --set "$idx"
says 'train.precision is f64, but data.train is read in f32; use f32, because data of this type cannot be read as f64'

# --- how numbers are shown ---
sed '1!s/,[^,]*$/,3e9/' rows.csv >large.csv
run 0 --set data.train.path=large.csv
says 'loss 9e+18'
never 'loss [0-9]{8}'
run 1 --set optimizer.lr=1e30 --set train.clip_norm=off
says 'and the gradient norm is nan; nothing was updated;'
never '-nan'
head -n 2 rows.csv >one.csv
run 0 --set data.train.path=one.csv --set batch.global=1
says 'data 1 sample;'
never '(^|[^0-9.,])1 samples'

# --- metrics ---
run 0
grep -q '"samples_per_second"' run/metrics.jsonl || fail 'samples that are no tokens have no speed in tokens'
grep -q '"samples_per_second"' run/summary.json || fail 'the summary has another name for the speed'
never tokens_per_second
classes='data={train: {type: csv, path: sorted.csv, classes: on}, eval: {type: csv, path: sorted.csv, classes: on}}'
run 0 --set "$classes"
says 'val_accuracy'
never top5
run 0 --set "$classes" --set 'eval.metrics=[top5]' # whoever asks for it gets it
says 'val_top5 1.0000'

# --- data ---
classes='data={train: {type: csv, path: sorted.csv, classes: on, part: 40%..100%}, eval: {type: csv, path: sorted.csv, classes: on, part: 0%..40%}}'
run 0 --set "$classes"
says 'data.train has no samples of class 0, of 3 classes; if the file is sorted by class, shuffle its lines before splitting it'
sed '9s/.*/3,1000000/' sorted.csv >large_label.csv
run 0 --set 'data={train: {type: csv, path: large_label.csv, classes: on}}' --set run.steps=1
says 'the largest class is 1000000, so there are 1000001 classes, but data.train has samples of only 4; check the labels, and number classes from 0 without gaps'
sed '1s/.*/a,a,y/' rows.csv >twice.csv
run 1 --set data.train.path=twice.csv
says "twice.csv: line 1: two columns are called 'a'; rename one of them, or choose columns by number"
run 1 --set data.train.path=twice.csv --set 'data.train.inputs=[a]'
says "twice.csv: line 1: columns 1 and 2 are both called 'a'; rename one of them, or choose columns by number"
run 0 --set data.train.path=twice.csv --set 'data.train.inputs=[1, 2]'

# --- paths ---
for path in data.train.path=~/rows.csv run.dir=~/run model.init.from=~somebody/weights; do
    run 2 --set "${path/$HOME/\~}"
    says "', but ~ is expanded only by a shell; write the full path (or ./~ for a file of that name)"
done
[ ! -e '~' ] || fail 'a folder is called ~'
run 0 --set 'run.dir=./~/run' # a folder of that name
echo 'limits: refused, warned of and shown as they should be'
