#!/usr/bin/env bash
# Weights of samples: a column that weighs the loss, with the bits of one run on any number of threads and ranks.
#   weights.sh SOURCE-TREE [openmpi|mpich]
source "$(dirname "$0")/preamble.sh"
tree=$1 mpi=${2:-}
export OMP_NUM_THREADS=1
complains() {
    grep -qF "$1" err || fail "it does not say '$1': $(cat err)"
}
python3 - <<'P'
import random
random.seed(4)
rows = [(random.random(), random.random(), random.choice((0, 1, 2, 3))) for _ in range(120)]
with open("weighed.csv", "w") as weighed, open("copied.csv", "w") as copied:
    print("a,b,n,y", file=weighed)
    print("a,b,y", file=copied)
    for a, b, n in rows:
        y = "high" if a + 0.3 * random.random() > b else "low"
        print(f"{a:.6f},{b:.6f},{n / 4},{y}", file=weighed)
        for _ in range(n):
            print(f"{a:.6f},{b:.6f},{y}", file=copied)
P
cat >c.yaml <<Y
run: {dir: run, epochs: 4}
model: {type: mlp, hidden: [8]}
data:
  train: {type: csv, path: weighed.csv, classes: on}
  weights: n
batch: {global: 32, leaves: 4}
log: {every: 1 steps}
save: {every: 5 steps}
Y
# hash ARGUMENT...: of weights and moments after a run
hash() {
    rm -rf run
    attempt 0 train c.yaml "$@"
    field run/summary.json "d['state_hash']"
}
wanted=$(hash)
if [ -n "$mpi" ]; then
    for ranks in 2 4; do
        rm -rf run
        "$tree/tests/comm/mpirun.sh" "$mpi" $ranks "${anneal[@]}" train c.yaml >out 2>err || exit $?
        got=$(field run/summary.json "d['state_hash']")
        [ "$got" = "$wanted" ] || fail "$ranks ranks have other bits: $got, not $wanted"
    done
    exit 0
fi
[ "$wanted" = "$(OMP_NUM_THREADS=3 hash --set data.threads=3)" ] || fail "other threads give other bits"
[ "$wanted" != "$(hash --set data.weights= --set 'data.train.inputs=[a, b]')" ] || fail "the weights do nothing"
[ "$wanted" != "$(hash --set 'data.class_weights=[1, 3]')" ] || fail "weights of classes do nothing beside those of samples"

# A weight is a number of copies: the loss of a step on all samples is the same.
loss() { # ARGUMENT...: of the first step
    rm -rf run
    attempt 0 train c.yaml --set run.epochs= --set run.steps=1 --set batch.global=1000 --set data.train.dtype=f64 "$@"
    field run/summary.json "d['metrics']['loss']"
}
one=$(loss)
other=$(loss --set data.train.path=copied.csv --set data.weights=)
python3 -c "import sys; sys.exit(abs($one / $other - 1) > 1e-6)" || fail "weights have the loss $one, copies $other"

# Killed and started again, with weights and a split: the part that is trained on has its weights.
rm -rf run
attempt 0 train c.yaml --set 'data.split={eval: 25%}'
split=$(field run/summary.json "d['state_hash']")
rm -rf run
for launch in $(seq 8); do
    timeout -s KILL 0.0$launch "${anneal[@]}" train c.yaml --set 'data.split={eval: 25%}' >out 2>err || true
done
[ -e run/summary.json ] || attempt 0 train c.yaml --set 'data.split={eval: 25%}'
[ "$split" = "$(field run/summary.json "d['state_hash']")" ] || fail "a run with a split that was stopped has other bits"

# A table that is only evaluated, or predicted from, needs no weights.
cut -d, -f1,2,4 weighed.csv >plain.csv
attempt 0 eval run --data plain.csv
attempt 0 eval run --data weighed.csv
attempt 0 predict run --input plain.csv --output plain.npy
attempt 0 predict run --input weighed.csv --output weighed.npy
cmp plain.npy weighed.npy || fail "the column of weights changes predictions"
# The same without names: of numbers alone, the count of columns says which there are.
awk -F, -v OFS=, 'NR > 1 { print $1, $2, $3, $1 - $2 }' weighed.csv >numbers.csv
attempt 0 train c.yaml --set run.dir=numbers --set data.weights=3 --set 'data.train={type: csv, path: numbers.csv}'
for columns in 1,2,3,4 1,2,4 1,2; do
    cut -d, -f$columns numbers.csv >some.csv
    attempt 0 predict numbers --input some.csv --output some.npy
    [ -e first.npy ] || cp some.npy first.npy
    cmp some.npy first.npy || fail "columns $columns give other predictions"
done

# The same samples as JSON lines and as arrays give the same weights.
python3 - <<'P'
import json, struct, zipfile
rows = [line.split(",") for line in open("weighed.csv").read().split()[1:]]
with open("weighed.jsonl", "w") as lines, open("bare.jsonl", "w") as bare, open("negative.jsonl", "w") as negative:
    for i, (a, b, n, y) in enumerate(rows):
        record = {"a": float(a), "b": float(b), "n": float(n), "y": y}
        print(json.dumps(record), file=lines)
        print(json.dumps({**record, "n": -0.5 if i == 6 else record["n"]}), file=negative)
        print(json.dumps({key: record[key] for key in "aby"}), file=bare)
def npy(kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}{kind[1].replace('f', 'd').replace('i', 'q')}", *values)
for name, weights in ("weighed", [float(row[2]) for row in rows]), ("few", [1.0]), ("negative", [-1.0] * len(rows)):
    with zipfile.ZipFile(name + ".npz", "w") as arrays:
        arrays.writestr("x.npy", npy("<f8", (len(rows), 2), [float(row[c]) for row in rows for c in range(2)]))
        arrays.writestr("y.npy", npy("<i8", f"({len(rows)},)", ["high low".split().index(row[3]) for row in rows]))
        arrays.writestr("n.npy", npy("<f8", f"({len(weights)},)", weights))
P
for part in 0%..100% 40%..100%; do
    hash --set "data.train.part=$part" >/dev/null
    of_csv=$(field run/summary.json "d['weights_hash']")
    for format in 'type: jsonl, path: weighed.jsonl' 'type: npy, path: weighed.npz'; do
        hash --set "data.train={$format, part: $part}" >/dev/null
        [ "$(field run/summary.json "d['weights_hash']")" = "$of_csv" ] || fail "{$format} gives other weights than the table"
    done
done
rm -rf run lines
attempt 0 train c.yaml --set run.dir=lines --set 'data.train={type: jsonl, path: weighed.jsonl}' --set 'data.eval={type: jsonl, path: bare.jsonl}'
attempt 0 predict lines --input bare.jsonl --output bare.npy
attempt 0 predict lines --input weighed.jsonl --output weighed.npy
cmp bare.npy weighed.npy || fail "the member with weights changes predictions"

# ---- mistakes ----
attempt 1 train c.yaml --set 'data.train={type: jsonl, path: bare.jsonl}'
complains "'n'"
attempt 1 train c.yaml --set 'data.train={type: jsonl, path: negative.jsonl}'
complains 'in record 7: this is not a weight: weights are finite numbers that are 0 or more'
attempt 1 train c.yaml --set 'data.train={type: npy, path: few.npz}'
complains "few.npz: 'n' has 1 numbers, but there are 120 samples"
attempt 1 train c.yaml --set 'data.train={type: npy, path: negative.npz}'
complains ': -1 is not a weight: weights are finite numbers that are 0 or more'
attempt 1 train c.yaml --set 'data.train={type: npy, path: weighed.npz}' --set data.weights=m
complains "'m'"
rm -rf run
attempt 1 train c.yaml --set data.weights=m
complains "there is no column 'm'"
sed '7s/,[0-9.]*,\([a-z]*\)$/,-0.5,\1/' weighed.csv >negative.csv
attempt 1 train c.yaml --set data.train.path=negative.csv
complains "negative.csv: line 7, column 3: '-0.5' is not a weight: weights are finite numbers that are 0 or more"
attempt 2 train c.yaml --set train.loss.reduction=sample_mean
complains 'data.weights: train.loss.reduction is sample_mean, which weighs samples too; remove one of them'
attempt 2 train c.yaml --set 'model={type: gpt2, layers: 1, heads: 1, width: 8, context: 8}' --set "data.train={type: text, path: $tree/LICENSE}"
complains 'data.weights: only tables (csv), JSON lines and .npz files have weights of samples; remove it'
printf 'weights: %s is the loss of weights, and of copies\n' "$one"
