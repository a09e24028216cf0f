#!/usr/bin/env bash
# A stack of 64 kB is enough for a run: train, save, carry on, verify, evaluate.
set -euo pipefail
rm -rf run && mkdir run
for i in $(seq 1 96); do echo "$((i % 11)).5,$((i % 7)).25,$((i % 3))"; done > run/data.csv
cat > run/config.yaml <<END
run: {dir: run/small, steps: 4}
model: {type: mlp, hidden: [64]}
data:
  train: {type: csv, path: data.csv, header: off, targets: ["3"], classes: on}
  eval: {type: csv, path: data.csv, header: off, targets: ["3"], classes: on}
  threads: 2
batch: {global: 16}
save: {every: 2 steps, writers: 8}
optimizer: {groups: [{match: "hidden.*(weight|bias)\$", lr_scale: 0.5}]}
END
ulimit -s 64
export OMP_STACKSIZE=64k OMP_NUM_THREADS=2
${ANNEAL_RUN:-} "$ANNEAL_BIN"/anneal train run/config.yaml > run/out 2>&1 || { cat run/out; exit 1; }
${ANNEAL_RUN:-} "$ANNEAL_BIN"/anneal train run/config.yaml --set run.steps=6 --extend=keep > run/out 2>&1 || { cat run/out; exit 1; }
${ANNEAL_RUN:-} "$ANNEAL_BIN"/anneal verify run/small > run/out 2>&1 || { cat run/out; exit 1; }
${ANNEAL_RUN:-} "$ANNEAL_BIN"/anneal eval run/small > run/out 2>&1 || { cat run/out; exit 1; }
