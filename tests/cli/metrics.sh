#!/usr/bin/env bash
# Metrics of classes and of outputs as users see them: in training, where they can be best and stop a run, and in anneal
# eval as a table, as JSON and as a picture. The numbers are those of tests/metrics/plain.py, which has the definitions.
source "$(dirname "$0")/preamble.sh"
plain=$(cd "$1/tests/metrics" && pwd)
says() { grep -qF -- "$1" out err || failed "it does not say: $1"; }
field() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }

python3 - <<'END'
import random
random.seed(5)
names = ["<low>", "mid,dle", "h\u00f6chst"]
for file, classes in (("two.csv", 2), ("three.csv", 3)):
    with open(file, "w") as table:
        table.write("a,b,label\n")
        for _ in range(300):
            x, y = random.gauss(0, 1), random.gauss(0, 1)
            kind = min(classes - 1, int(x + y + random.gauss(0, 1) > 0.4) + int(x > 1.1))
            table.write(f'{x:.4f},{y:.4f},"{names[kind]}"\n')
with open("numbers.csv", "w") as table:
    table.write("a,b,sum,big\n")
    for i in range(120):
        a, b = random.random(), random.random()
        table.write(f"{a:.4f},{b:.4f},{a + b:.4f},{1000 * a + random.random():.4f}\n")
with open("many.csv", "w") as table: # a sample has any number of labels
    table.write("a,b,red,green,blue\n")
    for _ in range(300):
        x, y, noise = random.gauss(0, 1), random.gauss(0, 1), random.gauss(0, 0.5)
        table.write(f"{x:.4f},{y:.4f},{int(x + noise > 0)},{int(y + noise > 0.6)},{int(x - y + noise > 1)}\n")
END
config() { # NAME TARGETS REST
    cat >"$1.yaml" <<END
run:   {dir: run-$1, steps: 40, seed: 3}
model: {type: mlp, hidden: [8]}
data:
  train: {type: csv, path: $1.csv, part: 0%..60%, $2}
  eval:  {type: csv, path: $1.csv, part: 60%..100%, $2}
optimizer: {lr: 1e-2}
train: {precision: f32}
$3
END
}
config two 'targets: [label], classes: on' 'eval: {every: 10 steps, metrics: [loss, accuracy, f1, auc], best: val_auc}'
config three 'targets: [label], classes: on' 'eval: {every: 10 steps, early_stop: {metric: val_f1, patience: 30}}'
config numbers 'targets: [sum, big]' 'eval: {every: 20 steps}'
config many 'targets: [red, green, blue]' 'eval: {every: 10 steps, metrics: [loss, accuracy, f1, auc], best: val_auc}'
sed -i 's/hidden: \[8\]/&, loss: binary_cross_entropy/' many.yaml

# --- in training ---
attempt 0 train two.yaml
says 'val_f1'
says 'best val_auc'
[ "$(field run-two/summary.json 'sorted(d["metrics"])[-4:]')" = "['val_accuracy', 'val_auc', 'val_f1', 'val_loss']" ] || fail "$(cat run-two/summary.json)"
attempt 0 train three.yaml
says 'val_precision'
attempt 0 train numbers.yaml
attempt 0 train many.yaml
says 'best val_auc'
attempt 2 train many.yaml --set run.dir=none --set eval.metrics=[mae] --set eval.best=val_mae
says "it predicts probabilities of labels"
attempt 2 train two.yaml --set run.dir=none --set model.loss=binary_cross_entropy
says 'set data.train.classes to off'
sed 's/red, green, blue/red, green, b/; s/run-many/none/' many.yaml >wide.yaml
attempt 2 train wide.yaml
says "model.loss is binary_cross_entropy, whose targets are from 0 to 1, but target 'b' of data.train is from -"
attempt 2 train many.yaml --set run.dir=none --set data.normalize.targets=standard
says "the targets are labels, which have no scale"
# What was not asked for leaves the hash as it was.
attempt 0 train three.yaml --set run.dir=run-plain --set eval.early_stop=
! grep -q val_f1 run-plain/metrics.jsonl || fail "metrics of classes are computed without being asked for"
[ "$(field run-three/summary.json 'd["state_hash"]')" != "$(field run-plain/summary.json 'd["state_hash"]')" ] || fail "val_f1 is not part of the state"
# Killed and resumed: the same state; without the metric, it says so.
attempt 0 train three.yaml --set run.dir=run-half --set save.every='20 steps' --set save.keep_last=all
rm -r run-half/checkpoints/step-00000040-*
rm -f run-half/outcome.json run-half/summary.json
attempt 0 train three.yaml --set run.dir=run-half --set save.every='20 steps' --set save.keep_last=all
[ "$(field run-half/summary.json 'd["state_hash"]')" = "$(field run-three/summary.json 'd["state_hash"]')" ] || fail "a resumed run has another state"

# --- in eval: the definitions, from the model's own outputs ---
for name in two three numbers many; do
    cp "$name.csv" all.csv
    attempt 0 eval "run-$name" --data all.csv --json
    cp out "$name.json"
    attempt 0 predict "run-$name" --input all.csv --output "$name.npy"
    attempt 0 eval "run-$name" --data all.csv
    cp out "$name.txt"
done
attempt 0 predict run-many --input many.csv --output many-table.csv
PYTHONPATH=$plain python3 - <<'END' || fail "eval has other numbers than the definitions"
import csv, json, plain

def close(a, b):
    assert abs(a - b) <= 1e-12 * max(1, abs(b)), (a, b)

for name in ("two", "three"):
    found = json.load(open(name + ".json"))
    names = found["classes"]
    assert names == ["<low>", "h\u00f6chst", "mid,dle"] if name == "three" else ["<low>", "mid,dle"], names
    targets = [names.index(line["label"]) for line in csv.DictReader(open(name + ".csv"))]
    rows = plain.read_npy(name + ".npy")
    counts = plain.confusion(targets, rows, len(names))
    assert found["confusion"] == counts, (found["confusion"], counts)
    classes = plain.of_classes(counts)
    for m, c, label in zip(found["class_metrics"], classes, names):
        assert (m["class"], m["targets"], m["predicted"]) == (label, c[0], c[1])
        for key, value in zip(("precision", "recall", "f1"), c[2:]):
            close(m[key], value)
    metrics = found["metrics"]
    for key, value in zip(("val_precision", "val_recall", "val_f1"), plain.macro(classes)):
        if key in metrics:
            close(metrics[key], value)
    assert "val_f1" in metrics and 0.3 < metrics["val_f1"] < 1
    assert ("roc" in found) == (name == "two")
    if name == "two":
        close(metrics["val_auc"], plain.area(targets, rows))
        curve = found["roc"]
        trapezoids = sum((b["false_rate"] - a["false_rate"]) * (a["true_rate"] + b["true_rate"]) / 2
                         for a, b in zip(curve, curve[1:]))
        close(trapezoids, metrics["val_auc"])

# Labels, each by itself: as a class 1 of two whose other score is 0. What predict writes are probabilities.
found = json.load(open("many.json"))
lines = list(csv.DictReader(open("many.csv")))
rows = plain.read_npy("many.npy")
sums = [0] * 5
assert [label["label"] for label in found["labels"]] == ["red", "green", "blue"]
for i, label in enumerate(found["labels"]):
    targets = [int(line[label["label"]]) for line in lines]
    scores = [[0, row[i]] for row in rows]
    counts = plain.confusion(targets, scores, 2)
    there = plain.of_classes(counts)[1]
    expected = [(counts[0][0] + counts[1][1]) / len(lines), *there[2:], plain.area(targets, scores)]
    assert (label["targets"], label["predicted"], label["right"]) == (there[0], there[1], counts[1][1])
    for k, key in enumerate(("accuracy", "precision", "recall", "f1", "auc")):
        close(label[key], expected[k])
        sums[k] += expected[k]
for k, key in ((0, "val_accuracy"), (3, "val_f1"), (4, "val_auc")):
    close(found["metrics"][key], sums[k] / 3)
assert 0.85 < found["metrics"]["val_auc"] < 1 and "val_mae" not in found["metrics"] and "outputs" not in found
import math
table = list(csv.DictReader(open("many-table.csv")))
assert list(table[0]) == ["probability_red", "probability_green", "probability_blue"]
for line, row in zip(table, rows):
    for value, logit in zip(line.values(), row):
        assert abs(float(value) - 1 / (1 + math.exp(-logit))) < 1e-5

found = json.load(open("numbers.json"))
lines = list(csv.DictReader(open("numbers.csv")))
rows = plain.read_npy("numbers.npy")
for i, output in enumerate(found["outputs"]):
    assert output["name"] == ("sum", "big")[i]
    targets = [float(line[output["name"]]) for line in lines]
    errors = [row[i] - target for row, target in zip(rows, targets)]
    mean = sum(targets) / len(targets)
    squared = sum(e * e for e in errors)
    for key, value in (("mae", sum(map(abs, errors)) / len(errors)), ("rmse", (squared / len(errors)) ** 0.5),
                       ("r2", 1 - squared / sum((t - mean) ** 2 for t in targets))):
        assert abs(output[key] - value) < 1e-6 * max(1, abs(value)), (key, output[key], value) # targets are f32
END
grep -qE '^<low> +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$' three.txt || fail "no table of classes: $(cat three.txt)"
grep -qx 'confusion matrix (rows: targets; columns: predictions)' three.txt || fail "no confusion matrix: $(cat three.txt)"
grep -qE '^big +[0-9.]+ +[0-9.]+ +-?[0-9.]+$' numbers.txt || fail "no table of outputs: $(cat numbers.txt)"
[ "$(awk '{ if (length($0) > most) most = length($0) } END { print most }' three.txt)" -le 100 ] || fail "lines are too long"

# --- the picture ---
attempt 0 eval run-two --svg two.svg
python3 - <<'END' || fail "the picture is no XML, or has no curve"
import xml.dom.minidom
text = xml.dom.minidom.parse("two.svg").documentElement.toxml()
assert "&lt;low&gt;" in text and "ROC curve" in text and text.count('class="cell"') >= 2
END
attempt 0 eval run-three --svg three.svg
! grep -q 'ROC curve' three.svg || fail "three classes have no ROC curve"
attempt 2 eval run-numbers --svg numbers.svg
says '--svg draws a confusion matrix, but this model does not predict a class for each sample'
attempt 1 eval run-two --svg no/such/folder.svg
says "'no/such/folder.svg' cannot be written"

# --- weights of classes: Σ w·l / Σ w over a step that has all samples, whose rate leaves the model as it was ---
for weights in balanced '[1, 2.5, 0.3]'; do
    for micro in 60 7; do
        rm -rf run-weighed
        attempt 0 train three.yaml --set run.dir=run-weighed --set run.steps=1 --set optimizer.lr=1e-30 --set batch.global=180 \
            --set batch.micro=$micro --set log.every='1 steps' --set "data.class_weights=$weights"
        attempt 0 predict run-weighed --input three.csv --output weighed.npy
        PYTHONPATH=$plain python3 - "$weights" <<'END' || fail "the loss with weights $weights is another"
import csv, json, math, plain, sys
names = ["<low>", "h\u00f6chst", "mid,dle"]
targets = [names.index(line["label"]) for line in csv.DictReader(open("three.csv"))][:180]
rows = plain.read_npy("weighed.npy")[:180]
weights = plain.balanced(targets, 3) if sys.argv[1] == "balanced" else json.loads(sys.argv[1])
loss = plain.weighted_cross_entropy(targets, rows, weights)
found = [json.loads(line)["loss"] for line in open("run-weighed/metrics.jsonl") if '"loss"' in line][0]
assert abs(found - loss) < 1e-6 * loss, (found, loss)
assert abs(found - plain.weighted_cross_entropy(targets, rows, [1, 1, 1])) > 1e-4 * loss # it makes a difference
END
    done
done
attempt 2 train three.yaml --set run.dir=r --set 'data.class_weights=[1, 2]'
says 'data.class_weights has 2 weights, but data.train has 3 classes'
# By name, in any order.
weighed_hash() { # WEIGHTS
    rm -rf run-weighed
    attempt 0 train three.yaml --set run.dir=run-weighed --set run.steps=2 --set "data.class_weights=$1"
    field run-weighed/summary.json 'd["state_hash"]'
}
[ "$(weighed_hash '[1, 2.5, 0.3]')" = "$(weighed_hash '{"mid,dle": 0.3, höchst: 2.5, <low>: 1}')" ] || fail "weights by name are others"
attempt 2 train three.yaml --set run.dir=r --set 'data.class_weights={<low>: 1, "mid,dle": 2, hochst: 3}'
says "data.class_weights has a weight for a class that data.train does not have: 'hochst'"
attempt 2 train three.yaml --set run.dir=r --set 'data.class_weights={<low>: 1, "mid,dle": 2}'
says "data.class_weights has no weight for the class 'höchst'"
attempt 2 train three.yaml --set run.dir=r --set 'data.class_weights={<low>: 1, "mid,dle": 2, höchst: 0}'
says 'data.class_weights.höchst is'
printf 'a,label\n0.1,0\n0.2,1\n0.3,1\n' >digits.csv
attempt 2 train three.yaml --set run.dir=r --set 'data={train: {type: csv, path: digits.csv, classes: on}, class_weights: {0: 1, 1: 2}}' --set eval=
says 'data.class_weights: the classes of data.train have no names; list weights in the order of the classes'
attempt 2 train three.yaml --set run.dir=r --set 'data.class_weights=[1, 2, 0]'
says 'data.class_weights[2] is'
attempt 2 train numbers.yaml --set run.dir=r --set data.class_weights=balanced
says 'data.class_weights: the targets of data.train are not classes; remove it'
attempt 2 train three.yaml --set run.dir=r --set data.class_weights=balanced --set train.loss.reduction=sample_mean
says 'data.class_weights: train.loss.reduction is sample_mean, which weighs samples too; remove one of them'

# --- the focal loss ---
for gamma in 0.5 2; do
    rm -rf run-focal
    attempt 0 train three.yaml --set run.dir=run-focal --set run.steps=1 --set optimizer.lr=1e-30 --set batch.global=180 \
        --set log.every='1 steps' --set "train.loss.focal=$gamma"
    attempt 0 predict run-focal --input three.csv --output focal.npy
    PYTHONPATH=$plain python3 - "$gamma" <<'END' || fail "the focal loss of $gamma is another"
import csv, json, plain, sys
names = ["<low>", "h\u00f6chst", "mid,dle"]
targets = [names.index(line["label"]) for line in csv.DictReader(open("three.csv"))][:180]
loss = plain.focal(targets, plain.read_npy("focal.npy")[:180], float(sys.argv[1]))
found = [json.loads(line)["loss"] for line in open("run-focal/metrics.jsonl") if '"loss"' in line][0]
assert abs(found - loss) < 1e-6 * loss, (found, loss)
END
done
attempt 2 train three.yaml --set run.dir=r --set train.loss.focal=2 --set train.loss.label_smoothing=0.1
says 'a focal loss has no label smoothing'
attempt 2 train numbers.yaml --set run.dir=r --set train.loss.focal=2
says 'a focal loss needs a model whose loss is a cross entropy'

# --- what cannot be computed ---
attempt 2 train three.yaml --set run.dir=r --set 'eval.metrics=[auc, f1]'
says "eval.metrics: this model cannot compute 'val_auc': it does not tell exactly two classes apart"
attempt 2 train numbers.yaml --set run.dir=r --set 'eval.metrics=[f1]'
says "this model cannot compute 'val_f1': it has no output with a number for each class in evaluation"
