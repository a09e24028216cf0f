#!/usr/bin/env bash
# Augmentation and mixup: one hash for any number of loader threads. With ranks and kills: tests/ranks/data_exact.sh.
#   augment.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
tree=$1
export OMP_NUM_THREADS=1
cat >c.yaml <<Y
run: {dir: run, epochs: 3}
model: {type: cnn, filters: [4], hidden: 8}
data:
  train: {type: idx, path: $tree/examples/mnist/mnist-10k-images-idx3-ubyte.gz, labels: $tree/examples/mnist/mnist-10k-labels-idx1-ubyte.gz, part: 0%..3%}
  augment: {flip: horizontal, shift: 2, crop: 2, rotate: 10, brightness: 20%, contrast: 20%, erase: 10%, mixup: 0.4}
batch: {global: 32, leaves: 4}
save: {every: 3 steps}
Y
# hash ARGUMENT...: of weights and moments after a run
hash() {
    rm -rf run
    attempt 0 train c.yaml "$@"
    field run/summary.json "d['state_hash']"
}
wanted=$(hash)
for threads in 0 4; do
    got=$(hash --set data.threads=$threads)
    [ "$got" = "$wanted" ] || fail "$threads loader threads give other bits: $got, not $wanted"
done
for change in data.augment= data.augment.shift=3 data.augment.flip=off data.augment.mixup=0 data.augment.mixup=0.5 run.seed=1; do
    got=$(hash --set $change)
    [ "$got" != "$wanted" ] || fail "$change changes nothing"
done

# Numbers are mixed as well: of a table, with numbers as targets.
seq 1 40 | awk '{ printf "%d,%g\n", $1, $1 * 2 }' | sed '1i a,y' >rows.csv
table=(--set run.dir=table --set 'model={type: mlp}' --set 'data.train={type: csv, path: rows.csv}')
attempt 0 train c.yaml "${table[@]}" --set 'data.augment={mixup: 0.4}'
mixed=$(field table/summary.json "d['state_hash']")
rm -rf table
attempt 0 train c.yaml "${table[@]}" --set data.augment=
[ "$mixed" != "$(field table/summary.json "d['state_hash']")" ] || fail 'mixup does not change a table'
rm -rf table

# What has no images is refused, and so are tokens, and a resume with another augmentation.
attempt 1 train c.yaml "${table[@]}"
grep -qF 'only images can be augmented' err || fail 'it does not say why'
attempt 1 train c.yaml --set run.dir=text --set 'model={type: gpt2, layers: 1, heads: 1, width: 8, context: 8}' \
    --set "data.train={type: text, path: $tree/LICENSE}" --set 'data.augment={mixup: 0.4}'
grep -qF "mixup needs samples of numbers with numbers or one class as targets, but 'tokens' of the data is a list" err ||
    fail 'it does not say why tokens are not mixed'
attempt 2 train c.yaml --set run.dir=mean --set data.augment.mixup=0.3 --set train.loss.reduction=sample_mean
grep -qF -- '--set data.augment.mixup=0.3: data.augment.mixup: train.loss.reduction is sample_mean, which weighs' err ||
    fail 'it does not say where mixup and sample_mean meet'
rm -rf run
attempt 0 train c.yaml
attempt 2 train c.yaml --set data.augment.mixup=0.3
grep -qF 'data.augment.mixup' err || fail 'it resumes with another mixup'
echo passed
