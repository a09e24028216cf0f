#!/usr/bin/env bash
# A table as people have it, from the config to the predictions: names of classes, categories, missing cells, a split.
source "$(dirname "$0")/preamble.sh"
export OMP_NUM_THREADS=1
says() { grep -qF -- "$1" out || failed "it does not say: $1"; }
complains() { grep -qF -- "$1" err || failed "it does not complain: $1"; }

# Three kinds of flowers that length and color tell apart; a width is missing here and there.
python3 - <<'P'
import random
random.seed(5)
kinds = {"setosa": (1, "white"), "versicolor": (3, "blue"), "virginica": (5, "blue")}
rows = []
for i in range(240):
    kind = random.choice(sorted(kinds))
    length, color = kinds[kind]
    width = "NA" if i % 17 == 3 else f"{random.uniform(0, 1):.2f}"
    rows.append((f"{length + random.uniform(-0.6, 0.6):.2f}", width, color, f"plant {i % 40}", kind))
with open("flowers.csv", "w") as f:
    f.write("length,width,color,plant,kind\n" + "".join(",".join(r) + "\n" for r in rows))
with open("new.csv", "w") as f:  # other order, a category that training never saw, and no target
    f.write("color,width,length\nwhite,0.5,1.0\nblue,?,3.0\nred,0.1,5.1\n")
P
cat >flowers.yaml <<'Y'
run:       {dir: run, epochs: 30, seed: 2}
model:     {type: mlp, hidden: [16]}
data:
  train:   {type: csv, path: flowers.csv, classes: on, inputs: ["*", "!plant"]}
  split:   {eval: 25%, by: stratify}
  missing: mean
batch:     {global: 16}
optimizer: {lr: 1e-2}
eval:      {every: 10 epochs}
Y

# --- train ---
attempt 0 train flowers.yaml
accuracy=$(field run/summary.json 'd["metrics"]["val_accuracy"]')
python3 -c "assert $accuracy > 0.9, $accuracy"
encoding=$(echo run/checkpoints/*/encoding.json | tr ' ' '\n' | tail -1)
[ "$(field "$encoding" '[c["name"] for c in d["inputs"]]')" = "['length', 'width', 'color']" ] || fail "columns: $(cat "$encoding")"
[ "$(field "$encoding" 'd["targets"][0]["names"]')" = "['setosa', 'versicolor', 'virginica']" ] || fail "classes: $(cat "$encoding")"
[ "$(field "$encoding" 'd["inputs"][2]["names"]')" = "['blue', 'white']" ] || fail "categories: $(cat "$encoding")"
python3 - "$encoding" <<'P'
import csv, json, sys
mean = json.load(open(sys.argv[1]))["inputs"][1]["fill"]
numbers = [float(r["width"]) for r in csv.DictReader(open("flowers.csv")) if r["width"] != "NA"]
assert abs(mean - sum(numbers) / len(numbers)) < 1e-6, mean
P
attempt 0 verify run

# --- predict: by name, with names ---
attempt 0 predict run --input new.csv --output out.csv
complains "warning: new.csv: 1 cell has a category that the training data does not have, and counts as no category; the first is 'red' in line 4, column 1"
[ "$(head -1 out.csv)" = class,probability_setosa,probability_versicolor,probability_virginica ] || fail "$(cat out.csv)"
[ "$(cut -d, -f1 out.csv | tail -3 | tr '\n' ' ')" = "setosa versicolor virginica " ] || fail "$(cat out.csv)"

# Columns that are kept come first, as they are written; by name, by number, in lists; and to standard output.
awk -F, -v OFS=, 'NR == 1 { print "id", "class", $0 } NR > 1 { print "00" NR, "\"a, \"\"b\"\"\"", $0 }' new.csv >ids.csv
attempt 0 predict run --input ids.csv --keep id,class --keep 3
cp out kept.csv
complains "samples, by run/checkpoints/"
[ "$(head -1 kept.csv)" = "id,class,$(head -1 new.csv | cut -d, -f1),predicted_class,probability_setosa,probability_versicolor,probability_virginica" ] || fail "$(cat kept.csv)"
[ "$(cut -d, -f1-3 kept.csv | sed -n 2p)" = '002,"a, ""b"""' ] || fail "$(cat kept.csv)"
tail -n +2 kept.csv | sed 's/^[^,]*,"a, ""b""",[^,]*,//' | cmp -s - <(tail -n +2 out.csv) || fail "kept columns change what is predicted"
attempt 0 predict run --input new.csv -o -
cmp -s out out.csv || fail "standard output has other predictions than a file"
attempt 1 predict run --input ids.csv --keep ids
complains "ids.csv: line 1: there is no column 'ids'; did you mean 'id'?"
[ ! -s out ] || fail "something was predicted: $(cat out)"
attempt 2 predict run --input ids.csv --keep id,
complains '--keep needs names of columns, with commas between them'
attempt 2 predict run --input ids.csv --keep id --output x.npy
complains '--keep is for CSV output; a .npy file has numbers only'
if [ -w /dev/full ]; then
    code=0
    "${anneal[@]}" predict run --input ids.csv >/dev/full 2>err || code=$?
    [ "$code" = 1 ] || fail "a full disk is no failure: exit code $code"
fi

printf 'color,length\nblue,1\n' >short.csv
attempt 1 predict run --input short.csv --output out.csv
complains "short.csv: line 1: there is no column 'width', which the model was trained with"

# --- eval: the part that was kept, and other files ---
attempt 0 eval run
says "val_accuracy   $(python3 -c "print('%.6g' % $accuracy)")"
grep -qE '^virginica +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$' out || fail "classes have no names: $(cat out)"
attempt 0 eval run --json
[ "$(field out 'd["classes"]')" = "['setosa', 'versicolor', 'virginica']" ] || fail "$(cat out)"
awk -F, 'NR == 1 || NR > 200' flowers.csv >some.csv
attempt 0 eval run --data some.csv
says '41 samples'
sed 's/,virginica$/,virginca/' some.csv >typo.csv
attempt 1 eval run --data typo.csv
complains "'virginca' is a class that the training data does not have; did you mean 'virginica'? the classes are 'setosa', 'versicolor', 'virginica'"
# The training data is not what it was.
sed 's/blue/azure/' flowers.csv >other.csv
attempt 1 eval run --set data.train.path=other.csv
complains 'are not those that'

# --- export ---
attempt 0 export run --to torch torch
cmp "$encoding" torch/encoding.json || fail "the export has another encoding"
python3 - "$encoding" torch/model.safetensors <<'P' || fail "the metadata of the export has another encoding"
import json, struct, sys
raw = open(sys.argv[2], "rb").read()
header = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
assert header["__metadata__"]["encoding"] == open(sys.argv[1]).read()
P

# --- the split ---
attempt 0 train flowers.yaml --set run.dir=again
[ "$(field again/summary.json 'd["weights_hash"]')" = "$(field run/summary.json 'd["weights_hash"]')" ] || fail "another run has other bits"
# data.split.seed decides, not run.seed: with no step, evaluations of the same weights differ only in the samples.
samples() { # SETTING...: a hash of the samples that evaluate
    rm -rf probe
    attempt 0 train flowers.yaml --set run.dir=probe --set run.epochs= --set run.steps=1 --set optimizer.lr=0 "$@"
    field probe/summary.json 'd["metrics"]["val_loss"]'
}
first=$(samples)
[ "$first" = "$(samples --set run.steps=2)" ] || fail "the split is not the same for ever"
[ "$first" != "$(samples --set data.split.seed=1)" ] || fail "the seed of the split does nothing"
for by in time 'group plant'; do
    [ "$first" != "$(samples --set "data.split.by=$by")" ] || fail "a split by $by is the same"
done
attempt 2 train flowers.yaml --fresh --set 'data.eval={type: csv, path: some.csv}'
complains 'data.split and data.eval are both set'
attempt 2 train flowers.yaml --fresh --set data.split.by=groups
complains "data.split.by is 'groups'; it takes shuffle, stratify or time, and for csv also group and the name of a column"
attempt 1 train flowers.yaml --fresh --set 'data.split.by=group plan'
complains "there is no column 'plan'; did you mean 'plant'?"
attempt 2 train flowers.yaml --fresh --set data.split= --set data.split.by=time --set eval=
complains 'data.split does not say how many samples evaluate; set data.split.eval to a share such as 20%'
# A run keeps its split.
attempt 2 train flowers.yaml --set data.split.seed=4 --set run.epochs=31
complains data.split.seed

# Nor does it go on with other names: the numbers of the samples may be the same, and mean something else.
sed -i.bak 's/setosa/sertosa/' flowers.csv
attempt 2 train flowers.yaml --set run.epochs=31
complains 'or a table has other names of classes or categories'
mv flowers.csv.bak flowers.csv

# --- missing cells ---
attempt 1 train flowers.yaml --fresh --set data.missing=
complains "flowers.csv: line 5, column 2: 'NA' is not a number; if it stands for a missing cell, set data.missing to drop, mean or constant"
attempt 0 train flowers.yaml --fresh --set run.dir=dropped --set data.missing=drop --set run.epochs=1
complains 'flowers.csv: 14 of 240 rows have a missing cell and are left out'
attempt 0 train flowers.yaml --set run.dir=constant --set 'data.missing={method: constant, value: -1}' --set run.epochs=1
attempt 1 train flowers.yaml --fresh --set data.train.categories=off
complains "line 2, column 3: 'blue' is not a number"

# --- a delimiter that differs ---
tr , ';' <flowers.csv >semicolons.csv
attempt 1 train flowers.yaml --fresh --set data.train.path=semicolons.csv
complains 'semicolons.csv: this file has semicolons (;) between its columns, not commas (,) as data.train.delimiter says; set data.train.delimiter to ";"'
tr , '\t' <some.csv >tabs.csv
attempt 1 eval run --data tabs.csv
complains 'tabs.csv: this file has tabs (\t) between its columns, not commas (,) as the training data has; convert the file, or set its delimiter to "\t"'
tr , ';' <new.csv >other.csv
attempt 1 predict run --input other.csv --output out.csv
complains 'other.csv: this file has semicolons (;) between its columns, not commas (,) as the training data has'

# --- several files ---
mkdir parts other
awk -F, 'NR == 1 || NR <= 100' flowers.csv >parts/z.csv
awk -F, 'NR == 1 || (NR > 100 && NR <= 180)' flowers.csv >parts/b.csv
awk -F, 'NR == 1 || NR > 180' flowers.csv >parts/a.csv
losses() { # SETTING...: of a run with the table in these files
    rm -rf files
    attempt 0 train flowers.yaml --set run.dir=files --set run.epochs=2 "$@"
    field files/summary.json 'd["state_hash"]'
}
whole=$(losses)
[ "$whole" = "$(losses --set 'data.train.path=[parts/z.csv, parts/b.csv, parts/a.csv]')" ] || fail "a list of files is not the whole table"
# Whole paths are kept with the run.
grep -q "path: \[\"$PWD/parts/z.csv\", \"$PWD/parts/b.csv\", \"$PWD/parts/a.csv\"\]" files/config.yaml || fail "$(grep path files/config.yaml)"
attempt 0 eval files
[ "$whole" = "$(losses --set 'data.train.path=["parts/z.csv", "parts/[b].csv", parts/a.csv]')" ] || fail "a pattern in a list is not its file"
[ "$whole" != "$(losses --set 'data.train.path=parts/*.csv')" ] || fail "the order of the files does nothing"
sed "s#path: flowers.csv#path: [../parts/z.csv, ../parts/b.csv, ../parts/a.csv]#" flowers.yaml >other/flowers.yaml
rm -rf files
attempt 0 train other/flowers.yaml --set run.dir=files --set run.epochs=2
[ "$whole" = "$(field files/summary.json 'd["state_hash"]')" ] || fail "paths of a list are not relative to the config"
attempt 1 train flowers.yaml --fresh --set 'data.train.path=[parts/z.csv, parts/none.csv]'
complains 'parts/none.csv: '
attempt 2 train flowers.yaml --fresh --set 'data.train.path=[]'
complains 'data.train.path is empty; it takes the path of a file, or a list of paths'
