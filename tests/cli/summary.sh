#!/usr/bin/env bash
# anneal summary: layers whose parameters, memory and work add up to what anneal plan says, as a table and as JSON.
#   summary.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
tree=$1
says() { grep -qE -- "$1" out err || failed "it does not say: $1"; }

awk 'BEGIN { print "a,b,y"; for (i = 0; i < 64; i++) printf "%.3f,%.3f,%.3f\n", i / 64, i / 32, i / 16 }' >line.csv
cat >mlp.yaml <<'END'
run:   {dir: runs/a, steps: 20}
model: {type: mlp, hidden: [32, 16]}
data:  {train: {type: csv, path: line.csv}}
batch: {global: 8}
train: {precision: f32}
END
attempt 0 summary mlp.yaml
says '^mlp.yaml, training: batch 8, f32$'
says '^hidden.0 +8 x 32 +96 +15\.0% +[0-9.]+% +[0-9.]+%$'
says '^hidden.1 +8 x 16 +528 +82\.4% '
says '^output +8 x 1 +17 +2\.7% '
says '^parameters  641'
says ' in a micro-batch, forward and backward$'
[ ! -e runs ] || failed "it has made a run folder"
[ "$(awk '{ if (length($0) > most) most = length($0) } END { print most }' out)" -le 80 ] || failed "the table is too wide"

# adds_up ARGUMENT...: the layers add up to the totals, and these are those of the plan
adds_up() {
    attempt 0 plan "$@" --json
    mv out plan.json
    attempt 0 summary "$@" --json
    python3 - <<'END' || failed "the layers do not add up to the plan"
import json
d, plan = json.load(open("out")), json.load(open("plan.json"))
rows, total = d["layers"] + [d["other"]], d["total"]
for key in ("parameters", "trainable", "bytes"):
    assert sum(row[key] for row in rows) == total[key], key
    assert all(row[key] >= 0 for row in rows), key
assert total["bytes"] == plan["peak_bytes"] and total["parameters"] == plan["parameters"]
assert abs(sum(row["flops"] for row in rows) / total["flops"] - 1) < 1e-9
assert abs(total["flops"] / plan["flops"] - 1) < 1e-9
for key in ("parameter_share", "memory_share", "work_share"):
    assert abs(sum(row[key] for row in rows) - 1) < 1e-6, key
assert len({row["path"] for row in d["layers"]}) == len(d["layers"])
END
}
adds_up mlp.yaml
python3 - <<'END' || failed "the work of a layer is another"
import json
layers = {row["path"]: row for row in json.load(open("out"))["layers"]}
products = 3 * 2 * 8 * 32 * 16  # forward, and backward for inputs and weights
assert products <= layers["hidden.1"]["flops"] < 1.2 * products, layers["hidden.1"]
assert layers["hidden.1"]["output"] == [8, 16] and layers["hidden.1"]["block"] == "hidden.1"
END
adds_up "$tree/examples/mnist/cnn.yaml"
adds_up "$tree/examples/shakespeare/char.yaml" --set train.recompute=block
adds_up "$tree/examples/shakespeare/char.yaml" --set model.dropout=0.2 --set train.precision=f32 # fewer inputs in evaluations
adds_up gpt2-124m --batch 2 --seq 256 --precision bf16
adds_up gpt2-124m --program prediction
adds_up "$tree/examples/shakespeare/char.yaml" --set 'optimizer.groups=[{match: wte, freeze: on}]'
python3 -c 'import json; t = json.load(open("out"))["total"]; assert t["trainable"] == t["parameters"] - 65 * 128' || failed "frozen parameters count as trainable"

# --- blocks that are alike are shown once, with their sums ---
attempt 0 summary gpt2-124m --batch 2 --seq 256
says '^h.0 to h.11 +85,054,464 +68\.3% '
says '^  attn.c_attn +2 x 256 x 2304 +21,261,312 '
says '^wte +38,597,376 +31\.0% '
[ "$(grep -c 'mlp.c_fc' out)" = 1 ] || failed "blocks that are alike are not shown together"
attempt 0 summary mlp.yaml --set 'model.hidden=[32,32,32]'
says '^hidden.1 to hidden.2 +8 x 32 +2,112 '

# --- wrong use ---
attempt 2 summary
says 'is missing'
attempt 2 summary gpt2-125m
says 'did you mean'
attempt 2 summary mlp.yaml --symbol a=1
says 'works with presets and graphs, not with configs'

echo "summary: all as expected"
