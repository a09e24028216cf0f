#!/usr/bin/env bash
# The examples that are configs reach what is expected of them, at their last evaluation.
#   configs.sh SOURCE-TREE      (ANNEAL_BIN is the folder of the command)
set -euo pipefail
tree=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# reaches CONFIG METRIC at-least|at-most LIMIT
reaches() {
    "$ANNEAL_BIN/anneal" train "$tree/examples/$1" >out 2>err || { tail -n 5 out err && exit 1; }
    local folder
    folder=$(echo runs/*)
    python3 - "$folder/summary.json" "$2" "$3" "$4" <<'P'
import json, sys
value, limit = json.load(open(sys.argv[1]))["metrics"][sys.argv[2]], float(sys.argv[4])
print(f"{sys.argv[1]}: {sys.argv[2]} {value:.4f}, {sys.argv[3]} {limit}")
sys.exit(not (value >= limit if sys.argv[3] == "at-least" else value <= limit))
P
    rm -rf runs
}
reaches mnist/mlp.yaml val_accuracy at-least 0.965
reaches mnist/cnn.yaml val_accuracy at-least 0.985
reaches shakespeare/char.yaml val_loss at-most 1.92
