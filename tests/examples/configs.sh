#!/usr/bin/env bash
# The examples that are configs reach what is expected of them, at their last evaluation. shakespeare/char.yaml is
# trained by tests/cli/demo.sh, for a minute, and looked at there.
#   configs.sh SOURCE-TREE      (ANNEAL_BIN is the folder of the command)
set -euo pipefail
tree=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# reaches CONFIG METRIC LIMIT: at least
reaches() {
    "$ANNEAL_BIN/anneal" train "$tree/examples/$1" >out 2>err || { tail -n 5 out err && exit 1; }
    local folder
    folder=$(echo runs/*)
    python3 - "$folder/summary.json" "$2" "$3" <<'P'
import json, sys
value, limit = json.load(open(sys.argv[1]))["metrics"][sys.argv[2]], float(sys.argv[3])
print(f"{sys.argv[1]}: {sys.argv[2]} {value:.4f}, at least {limit}")
sys.exit(not value >= limit)
P
    rm -rf runs
}
reaches mnist/mlp.yaml val_accuracy 0.965
reaches mnist/cnn.yaml val_accuracy 0.985
