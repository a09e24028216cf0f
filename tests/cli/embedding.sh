#!/usr/bin/env bash
# Categories of a table as rows that the model learns: from text to text through train, eval, predict and export, and
# what is refused.
source "$(dirname "$0")/preamble.sh"
says() { grep -qF -- "$1" out err || failed "it does not say: $1"; }
python3 - <<'END'
import random
random.seed(3)
cities = {f"city {i}": random.gauss(0, 1) for i in range(40)}
colors = {"red": 1, "green": -1, "blue": 0}
with open("table.csv", "w") as table, open("new.csv", "w") as new, open("numbers.csv", "w") as numbers:
    table.write("size,city,color,price\n")
    new.write("city,color,size\n")
    numbers.write("a,b\n" + "1,2\n" * 40)
    for i in range(1200):
        city, color, size = random.choice(list(cities)), random.choice(list(colors)), random.random() * 100
        table.write(f"{size:.3f},{city},{color},{cities[city] + colors[color] + size / 50:.4f}\n")
        if i < 5: new.write(f"{city},{color},{size:.3f}\n")
END
cat >c.yaml <<'END'
run:   {dir: run, epochs: 30, seed: 1}
model: {type: mlp, hidden: [16]}
data:
  train: {type: csv, path: table.csv, categories: embedding}
  split: {eval: 20%}
  normalize: {inputs: standard, targets: standard}
optimizer: {lr: 1e-2}
END
attempt 0 train c.yaml
r2=$(field run/summary.json 'd["metrics"]["val_r2"]')
python3 -c "assert $r2 > 0.97" || fail "r² is $r2"
attempt 0 inspect run
grep -qE '^embedding\.0\.weight +F32 +\[40, 20\]' out || failed 'the table of the cities is not 40 × 20'
grep -qE '^embedding\.1\.weight +F32 +\[3, 2\]' out || failed 'the table of the colors is not 3 × 2'
# Text goes in, in any order of the columns; the checkpoint knows the names.
attempt 0 eval run
attempt 0 predict run --input new.csv --output new.npy
attempt 0 predict run --input table.csv --output all.npy
python3 - <<'END' || fail 'predictions depend on the order of the columns, or on the batch'
import struct
def numbers(path):
    data = open(path, "rb").read()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]
a, b = numbers("new.npy"), open("new.csv").read().split("\n")[1:-1]
rows = [line.split(",") for line in open("table.csv").read().split("\n")[1:-1]]
all_rows = numbers("all.npy")
for i in range(len(b)):
    assert all_rows[4 * i:4 * i + 4] == a[4 * i:4 * i + 4], i
END
# A category that training has not seen is a row of zeros, and is counted.
printf 'city,color,size\nAtlantis,red,50\n' >unknown.csv
attempt 0 predict run --input unknown.csv --output unknown.npy
says "'Atlantis' in line 2"
attempt 0 export run --to torch torch
grep -q 'embedding' torch/model.py || failed 'the exported model does not embed'
# The same bits with other threads, and after a resume.
hash_of() { field "$1/summary.json" 'd["state_hash"]'; }
attempt 0 train c.yaml --set run.dir=one --threads 1 --set data.threads=0
[ "$(hash_of one)" = "$(hash_of run)" ] || failed 'one thread gives another hash'
attempt 75 train c.yaml --set run.dir=two --set run.max_time=0.05s
attempt 0 train c.yaml --set run.dir=two
[ "$(hash_of two)" = "$(hash_of run)" ] || failed 'a run that was stopped has another hash'
attempt 0 train c.yaml --set run.dir=layers --set 'model={type: sequential, layers: [{type: linear, size: 16}, relu, {type: linear}], embedding: 4}'
attempt 0 inspect layers
grep -qE '^embedding\.0\.weight +F32 +\[40, 4\]' out || failed 'model.embedding is not obeyed'

# --- what is refused ---
attempt 2 train c.yaml --set run.dir=no --set data.train.categories=onehot --set model.embedding=4
says 'there is nothing to embed'
attempt 2 train c.yaml --set run.dir=no --set data.train.path=numbers.csv
says 'no input column of the table has text'
attempt 2 train c.yaml --set run.dir=run --set data.train.categories=onehot
says 'data.train.categories is onehot, was embedding'
