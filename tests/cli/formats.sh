#!/usr/bin/env bash
# The same digits as a folder of PNG files, IDX, .npy, .npz and JSON lines: a run on each has the same bits, with any
# number of loader threads. Classes of an evaluation have the numbers of the training data's.
#   formats.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
mnist=$1/examples/mnist/mnist-10k
export OMP_NUM_THREADS=1
python3 "$1/tests/cli/make_digits.py" "$mnist-images-idx3-ubyte.gz" "$mnist-labels-idx1-ubyte.gz" 400

cat >mlp.yaml <<'Y'
run: {dir: run, steps: 8}
model: {type: mlp, hidden: [16]}
data: {train: {type: idx, path: digits.idx, labels: labels.idx}}
batch: {global: 32}
Y
sed 's/type: mlp.*/type: cnn, filters: [4], hidden: 8}/' mlp.yaml >cnn.yaml

# hash CONFIG ARGUMENT...: of the weights after a run
hash() {
    rm -rf run
    attempt 0 train "$@"
    field run/summary.json "d['weights_hash']"
}

# Built without libpng, the command says what to install.
code=0
"${anneal[@]}" train mlp.yaml --set 'data.train={type: images, path: digits}' --set run.steps=1 >out 2>err || code=$?
pictures=1
if grep -q 'built without a library' err; then
    grep -q 'install libpng-dev' err || fail 'it does not say what to install'
    pictures=
elif [ "$code" != 0 ]; then
    fail 'a folder of PNG files cannot be trained on'
fi

for model in mlp cnn; do
    wanted=$(hash $model.yaml)
    sources=('{type: npy, path: x.npy, labels: y.npy}' '{type: npy, path: digits.npz}')
    [ -z "$pictures" ] || sources+=('{type: images, path: digits}')
    [ $model = cnn ] || sources+=('{type: jsonl, path: digits.jsonl}')
    for source in "${sources[@]}"; do
        for threads in 0 1 4; do
            got=$(hash $model.yaml --set "data.train=$source" --set data.threads=$threads)
            [ "$got" = "$wanted" ] || fail "$model on $source with $threads loader threads has other weights: $got, not $wanted"
        done
    done
done
[ -n "$pictures" ] || exit 0

# Folders of some classes: 3, 5 and 7 stay what they are.
touch few/notes.txt
attempt 0 train mlp.yaml --set run.dir=run2 --set 'data.train={type: images, path: digits}' \
    --set 'data.eval={type: images, path: few}' --set eval.every=8
grep -qF 'few: 1 entry was skipped, because it is hidden or not a class folder' out err || fail 'it does not say what was skipped'
attempt 0 train mlp.yaml --set run.dir=run3 --set 'data.train={type: images, path: digits}' \
    --set 'data.eval={type: images, path: digits}' --set eval.every=8
attempt 0 eval run3 --json
python3 -c 'import json; assert json.load(open("out"))["classes"] == list("0123456789")' || fail 'eval does not show the names of folders'
mkdir few/x
cp few/3/*.png few/x
attempt 1 train mlp.yaml --set run.dir=run4 --set 'data.train={type: images, path: digits}' --set 'data.eval={type: images, path: few}'
grep -qF "few/x: the training data has no class 'x'" err || fail 'it does not say which class is unknown'

# A file that is cut off is named, wherever it is read.
picture=$(ls digits/4/*.png | head -1)
head -c 100 "$picture" >cut
cp cut "$picture"
attempt 1 train mlp.yaml --set run.dir=run5 --set run.steps=13 --set 'data.train={type: images, path: digits}'
grep -qF "$picture: byte " err || fail 'it does not name the broken file'

# Predictions for a file and for a folder.
attempt 0 predict run2 --input few/3 --output out.npy
attempt 0 predict run2 --input "$(ls few/7/*.png | head -1)" --output out.npy

# Names of classes are kept with the model: predict and eval show them, and predict needs no training data for it.
mkdir named
for class in 3 5 7; do cp -r "few/$class" "named/digit $class"; done
attempt 0 train mlp.yaml --set run.dir=run6 --set run.steps=40 --set 'data.train={type: images, path: named}'
jsonl='{type: jsonl, path: digits.jsonl}'
attempt 0 train mlp.yaml --set run.dir=run7 --set run.steps=60 --set optimizer.lr=1e-2 --set "data.train=$jsonl" --set "data.eval=$jsonl"
attempt 0 eval run7 --json
[ "$(field out "d['classes'][3]")" = 'digit 3' ] || fail 'eval does not show the names of JSON lines'
head -1 digits.jsonl >one.jsonl
rm -r named digits.jsonl
attempt 0 predict run6 --input few/3 --output out.csv
[ "$(head -1 out.csv)" = 'file,class,probability_digit 3,probability_digit 5,probability_digit 7' ] || fail "predict of images: $(head -1 out.csv)"
cut -d, -f1 out.csv | tail -n +2 | cmp -s - <(ls few/3/*.png) || fail 'other names of files, or in another order'
attempt 1 predict run6 --input few/3 --keep id
grep -qF "few/3: images have no column 'id'; they have 'file'" err || fail 'it does not say what images have'

# A folder with classes: what the folders say is there beside the predictions, and how many are right.
mkdir -p classes empty
for class in 3 7; do cp -r "few/$class" "classes/digit $class"; done
cp -r few/5 classes/unsorted
attempt 0 predict run6 --input classes
[ "$(head -1 out)" = 'file,target,class,probability_digit 3,probability_digit 5,probability_digit 7' ] || fail "predict of classes: $(head -1 out)"
right=$(awk -F, 'NR > 1 && $2 == $3' out | wc -l)
known=$(awk -F, 'NR > 1 && $2 != "unsorted"' out | wc -l)
grep -qF ": the class of $right of $known images is that of their folder" err || fail "the accuracy is another one: $(cat err)"
grep -qF "$(ls few/5 | wc -l) images are in folders whose names are no classes of the model" err || fail "what is unknown counts: $(cat err)"
attempt 0 predict run6 --input classes --output classes.npy
grep -q '^accuracy 0\.' out || fail "no accuracy beside a .npy file: $(cat out)"
attempt 1 predict run6 --input empty
grep -qF 'empty: has no PNG or JPEG files; as a folder of classes: empty: the folder contains no folders' err || fail 'an empty folder'
attempt 0 predict run7 --input one.jsonl --output out.csv
[ "$(tail -1 out.csv | cut -d, -f1)" = 'digit 0' ] || fail "predict of JSON lines: $(cat out.csv)"
sed -i 's/, "digit": .*/}/' one.jsonl
cp out.csv with-target.csv
attempt 0 predict run7 --input one.jsonl --output out.csv # without the target
cmp -s out.csv with-target.csv || fail 'a target changes what is predicted'
printf '{"pixels": [1, 2]}\n' >short.jsonl
attempt 1 predict run7 --input short.jsonl --output out.csv
grep -qF 'short.jsonl: a record has 2 numbers, but the model reads 784' err || fail 'it does not say how long a record must be'
attempt 0 train mlp.yaml --set run.dir=run8 --set 'data.train={type: npy, path: digits.npz}'
attempt 0 predict run8 --input digits.npz --output out.csv
[ "$(wc -l <out.csv)" = 401 ] || fail 'predict of a .npz file'
printf 'formats: all give the same bits\n'
