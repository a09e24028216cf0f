#!/usr/bin/env bash
# Evaluation, threads that load, threads that compute and recompute leave no trace: STEPS steps end with the same weights.
#   trace.sh SOURCE-TREE STEPS
source "$(dirname "$0")/preamble.sh"
tree=$1 steps=$2
export OMP_NUM_THREADS=2

# A GPT with dropout, and a convolutional network with batch norm, whose running statistics evaluation reads.
cat >gpt.yaml <<Y
run:       {steps: $steps, seed: 5}
model:     {type: gpt2, layers: 2, heads: 2, width: 32, context: 16, dropout: 0.1}
data:
  train:   {type: text, path: $tree/examples/shakespeare/tinyshakespeare.txt, tokens: chars, part: 0%..20%}
  eval:    {type: text, path: $tree/examples/shakespeare/tinyshakespeare.txt, tokens: chars, part: 99.8%..100%}
batch:     {global: 8, leaves: 2, micro: 2}
optimizer: {lr: 1e-3}
eval:      {every: off}
Y
cat >cnn.yaml <<Y
run:       {steps: $steps, seed: 5}
model:     {type: cnn, filters: [4, 8], hidden: 16, batch_norm: on, dropout: 0.1}
data:
  train:   {type: idx, path: $tree/examples/mnist/mnist-10k-images-idx3-ubyte.gz, labels: $tree/examples/mnist/mnist-10k-labels-idx1-ubyte.gz, part: 0%..80%}
  eval:    {type: idx, path: $tree/examples/mnist/mnist-10k-images-idx3-ubyte.gz, labels: $tree/examples/mnist/mnist-10k-labels-idx1-ubyte.gz, part: 99.5%..100%}
batch:     {global: 32, micro: 16}
optimizer: {lr: 1e-3}
eval:      {every: off}
Y

# hash MODEL NAME [OPTION...]: the weights after a run of its own
hash() {
    local model=$1 name=$2
    shift 2
    "${anneal[@]}" train $model.yaml --set run.dir=$model-$name "$@" >out 2>err || { cat out err >&2 && exit 1; }
    python3 -c "import json; print(json.load(open('$model-$name/summary.json'))['weights_hash'])"
}

for model in gpt cnn; do
    plain=$(hash $model never)
    same() {
        local found
        found=$(hash $model "$@")
        printf '%s %-12s %s\n' $model "$1" "$found"
        [ "$found" = "$plain" ] || { echo "FAILED: $model with $* ends with other weights than $plain"; exit 1; }
    }
    same each --set 'eval.every=1 step'
    same quarter --set "eval.every=$((steps / 4)) steps"
    for loaders in 1 2 4; do same loaders-$loaders --set data.threads=$loaders; done
    for threads in 1 2 3 4; do same threads-$threads --threads $threads; done
    for mode in block full; do same recompute-$mode --set train.recompute=$mode; done
    [ "$(hash $model seed --set run.seed=6)" != "$plain" ] || { echo "FAILED: the hash does not see the weights"; exit 1; }
done
