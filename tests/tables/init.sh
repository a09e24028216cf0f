#!/usr/bin/env bash
# From data to predictions without an edit: `anneal init` writes a config, which trains, evaluates and predicts.
#   init.sh SOURCE-TREE
source "$1/tests/cli/preamble.sh"
export OMP_NUM_THREADS=1
says() { grep -qF -- "$1" err || failed "it does not say: $1"; }
has() { grep -qxF -- "$1" "$config" || fail "$config does not have the line '$1': $(cat "$config")"; }
python3 "$1/tests/tables/make.py"

# begin NAME METRIC LEAST ARGUMENT...: a config, a run whose metric on samples that it did not train on is at least
# this, an evaluation with the same number
begin() {
    local name=$1 metric=$2 least=$3
    shift 3
    config=$name.yaml
    attempt 0 init "$@"
    cp out "$config"
    cp err "$name.found"
    attempt 0 train "$config"
    value=$(field "runs/$name/summary.json" "d['metrics']['val_$metric']")
    python3 -c "assert $value >= $least, '$name: $metric is $value'"
    attempt 0 eval "runs/$name" --checkpoint newest --json
    [ "$(field out "d['metrics']['val_$metric']")" = "$value" ] || fail "$name: eval gives another $metric than $value"
    cp "$name.found" err
}

# --- categories, missing cells, row numbers ---
begin flowers accuracy 0.9 flowers.csv
says "flowers.csv: a table with 240 rows and 5 columns between commas, with a header"
says "target: 'kind', because it is the last column"
says "task: classification, because 'kind' has text: 3 classes"
grep -q '^  id  *left out integer  *240  *0  it numbers the rows$' err || fail "id: $(cat err)"
grep -q '^  width  *input  *number .* 14  ' err || fail "missing cells: $(cat err)"
grep -q '^  kind .* setosa [0-9]*, versicolor [0-9]*, virginica [0-9]*$' err || fail "balance: $(cat err)"
has '    inputs: ["!id"]  # all columns but these'
has '    by: stratify  # the same share of every class'
has '  missing: mean  # missing numbers become the mean of their column'
printf 'color,width,length\nwhite,0.5,1.0\nblue,?,5.1\n' >new.csv
attempt 0 predict runs/flowers --input new.csv --output predicted.csv
[ "$(cut -d, -f1 predicted.csv | tr '\n' ' ')" = "class setosa virginica " ] || fail "$(cat predicted.csv)"

# --- groups, a number to predict ---
begin patients r2 0.8 patients.csv
says "task: regression, because 'pressure' has numbers with fractions"
has '    inputs: ["!patient"]  # all columns but these'
has '    by: "group patient"  # no group is on both sides'
has '    targets: standard  # predictions come in the units of the data'
attempt 0 eval runs/patients --data patients.csv

# --- no header ---
begin kinds accuracy 0.9 kinds.data
says "without a header"
has '    header: off'
begin votes accuracy 0.85 votes.data --target 1
says "without a header"
has '    targets: [1]'

# --- semicolons, whole numbers, what is no input; tabs ---
begin marks accuracy 0.85 marks.csv
says "between semicolons"
says "task: classification, because 'mark' has whole numbers, 4 different ones (--task regress for numbers)"
grep -q '^  year .* all of its cells are the same$' err || fail "year: $(cat err)"
grep -q '^  remark .* it has too many different texts for categories$' err || fail "remark: $(cat err)"
has '    inputs: ["!year", "!remark"]  # all columns but these'
begin wide r2 0.5 wide.tsv
says "between tabs"
attempt 0 init marks.csv --task regress
says "task: regression"
grep -qxF '    targets: standard  # predictions come in the units of the data' out || failed 'targets are not scaled'

# --- numbers and dates as people write them, and several targets ---
begin sales r2 0.9 sales.csv
grep -q '^  cost  *input  *number .* written as 1.234,5 €$' err || fail "cost: $(cat err)"
grep -q '^  share  *input  *number .* written as 1234,5 %$' err || fail "share: $(cat err)"
grep -q '^  day  *input  *date .* written as DD.MM.YYYY; becomes days since 1970, time of year, day of the week$' err || fail "day: $(cat err)"
says "task: regression, because 'sold' has numbers written as 1.234,5"
has '    numbers: auto  # decimal commas, separators and signs; kept with the model'
has '    dates: auto  # days since 1970, time of year, day of the week; kept with the model'
has '  type: mlp  # 7 inputs, outputs that are numbers; both are taken from the data'
printf 'day;cost;share\n17.05.2023;1.500,00 €;50,0 %%\n' >asked.csv
attempt 0 predict runs/sales --input asked.csv --output told.csv
python3 -c "
rows = open('told.csv').read().split()
assert abs(float(rows[1]) - 4000) < 600, rows"
printf 'day;cost;share\n17.05.2023;1500.00;50,0 %%\n' >asked.csv
attempt 1 predict runs/sales --input asked.csv --output told.csv
says "asked.csv: line 2, column 2: '1500.00' is not written as in the training data, where the cells of this column are like 1.234,5 €"
printf 'x;when;y\n1,234;03/04/2024;1,5\n2,345;05/06/2024;2,5\n3,456;07/08/2024;4,5\n' >unclear.csv
attempt 2 init unclear.csv
says "unclear.csv: 'x': the decimal mark of numbers such as '1,234' could be a point or a comma; say which with --numbers point or --numbers comma"
attempt 2 init unclear.csv --numbers comma
says "unclear.csv: 'when': dates such as '03/04/2024' could begin with the day or with the month; say which with --dates day_first or --dates month_first"
attempt 0 init unclear.csv --numbers comma --dates day_first
cp out unclear.yaml
attempt 0 train unclear.yaml --set run.epochs=1 --set data.split= --set eval=
[ "$(field runs/unclear/checkpoints/*/encoding.json "[c['notation'] for c in d['inputs']]")" = "['1234,5', 'DD/MM/YYYY']" ] || fail "$(cat runs/unclear/checkpoints/*/encoding.json)"
attempt 1 init unclear.csv --numbers comma --dates day_first --target when
says "the target 'when' has dates, which can be inputs only"
attempt 0 init machine.csv --target heat,noise
says "task: regression with 2 outputs, because there are several targets"
cp out machine.yaml
config=machine.yaml
has '    targets: [heat, noise]'
has '  type: mlp  # 2 inputs, outputs that are numbers; both are taken from the data'
attempt 0 train machine.yaml
attempt 0 eval runs/machine --checkpoint newest --json
[ "$(field out "[o['name'] for o in d['outputs'] if o['r2'] > 0.9]")" = "['heat', 'noise']" ] || fail "machine: $(cat out)"
awk -F, -v OFS=, 'NR == 1 { print $0, "hot", "loud" } NR > 1 { print $0, ($2 > 1), ($4 > 1) }' machine.csv >alarms.csv
attempt 0 init alarms.csv --target hot,loud
says "task: 2 labels, because all targets are 0 or 1 (--task regress for numbers)"
cp out alarms.yaml
config=alarms.yaml
has '  loss: binary_cross_entropy  # a probability for each label'
! grep -q 'targets: standard' out || failed 'labels are scaled'
attempt 0 train alarms.yaml --set run.epochs=2
attempt 0 init alarms.csv --target hot,loud --task regress
says "task: regression with 2 outputs"
attempt 2 init machine.csv --target heat,nois
says "machine.csv: there is no column 'nois' for --target"
attempt 2 init flowers.csv --target length,kind
says "'kind' has text, so it cannot be one of several targets"

# --- a class that is rare ---
attempt 0 init faults.csv
says "classes are not balanced: 'broken' has 12 of 300 samples, 'fine' has 288."
cp out faults.yaml
config=faults.yaml
has '  # class_weights: balanced  # rare classes count more, which finds more of them, and mistakes more others for them'
sed -i 's/^  # class_weights/  class_weights/' faults.yaml
attempt 0 train faults.yaml --set run.epochs=1
attempt 0 init flowers.csv
! grep -q 'not balanced' err || failed 'classes of about the same size are not rare'

# --- images of several sizes, grey and in color, and a file that is none ---
python3 - <<'P'
import pathlib, struct, zlib


def png(path, side, color):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    row = b"\0" + bytes(range(side * (3 if color else 1)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", side, side, 8, 2 if color else 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(row * side)) + chunk(b"IEND", b""))


for i in range(12):
    png(pathlib.Path("mixed", "ab"[i % 2], f"{i}.png"), 9 if i == 0 else 16 + i % 3, i != 0)
pathlib.Path("mixed/b/99.png").write_text("no picture")
P
if "${anneal[@]}" init mixed -o mixed.yaml >out 2>err; then
    says "mixed: 13 images in 2 classes"
    grep -qE '^  b +7 files +53.8%$' err || fail "balance: $(cat err)"
    says "note: mixed/b/99.png: byte 0: this is neither a PNG nor a JPEG file"
    says "sizes: 9 to 18 pixels high, 9 to 18 wide; half of them up to 17 x 17 (of 12 files looked at)"
    says "color: 8% are grey, and are used as if in color (of 12 files looked at)"
    config=mixed.yaml
    has "    height: 17  # all images are stretched to this"
    has "    channels: 3  # some images are grey, and some in color"
else
    grep -q 'built without a library' err || fail "init mixed: $(cat err)"
fi

# --- other kinds ---
begin rows accuracy 0.9 rows.jsonl
says "target: 'label', because of its name"
says "color                    left out text"
attempt 0 init story.txt
says "plain text"
cp out story.yaml
attempt 0 train story.yaml --set run.steps=5
python3 "$1/tests/cli/make_digits.py" "$1/examples/mnist/mnist-10k-images-idx3-ubyte.gz" "$1/examples/mnist/mnist-10k-labels-idx1-ubyte.gz" 300
mv digits.idx images.idx
for data in images.idx x.npy digits.npz digits.jsonl digits; do
    if ! "${anneal[@]}" init "$data" >digits.yaml 2>err; then
        grep -q 'built without a library' err || fail "init $data: $(cat err)"
        continue
    fi
    grep -qE '10 classes|classes: 10' err || fail "init $data does not say how many classes there are: $(cat err)"
    attempt 0 train digits.yaml --set run.epochs=1 --fresh
done
gzip -k flowers.csv
attempt 0 init flowers.csv.gz

# --- paths: relative to the config, wherever it is written ---
mkdir -p configs 'my data'
cp flowers.csv 'my data/the "flowers".csv'
attempt 0 init 'my data/the "flowers".csv' --output configs/one.yaml
says "next: anneal train configs/one.yaml"
attempt 0 train configs/one.yaml --set run.epochs=1
attempt 1 init flowers.csv --output configs/one.yaml
says "'configs/one.yaml' cannot be written: File exists; remove it, or choose another name"
(cd configs && "${anneal[@]}" init ../flowers.csv >two.yaml 2>/dev/null)
attempt 0 train configs/two.yaml --set run.epochs=1
"${anneal[@]}" init flowers.csv 2>/dev/null >'my data/three.yaml'
attempt 0 train 'my data/three.yaml' --set run.epochs=1
split -l 120 --additional-suffix=.csv kinds.data part-
attempt 0 init 'part-*.csv'
says "240 rows"
grep -qxF '    path: "part-*.csv"' out || failed 'the pattern is not kept'

# --- other encodings, and files of other programs ---
printf 'x,k\n1,caf\351\n2,b\n3,b\n4,b\n' >latin.csv
attempt 2 init latin.csv
says 'latin.csv: line 2: the byte 0xe9 is not UTF-8; this looks like ISO-8859-1; convert it to UTF-8: iconv -f ISO-8859-1 -t UTF-8 "latin.csv" > utf8.txt'
printf 'x,k\n1,\223a\224\n2,b\n' >quotes.csv
attempt 2 init 'quote*.csv'
says 'quotes.csv: line 2: the byte 0x93 is not UTF-8; this looks like WINDOWS-1252;'
iconv -f UTF-8 -t UTF-16 flowers.csv >wide16.csv
cp wide16.csv wide16
for data in wide16.csv wide16; do
    attempt 2 init "$data"
    says "$data: this looks like UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8"
done
(printf '\357\273\277' && cat flowers.csv) >marked.csv
attempt 0 init marked.csv
grep -q "^  id  *left out" err || fail "a byte order mark: $(cat err)"
python3 - <<'P'
import pickle
import zipfile
for name, members in {"book.xlsx": ["[Content_Types].xml", "xl/workbook.xml"], "weights.pt": ["archive/data.pkl"]}.items():
    with zipfile.ZipFile(name, "w") as file:
        for member in members:
            file.writestr(member, "content")
with zipfile.ZipFile("sheet.ods", "w") as file:
    file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
contents = {"rows.parquet": b"PAR1\x15\0", "rows.feather": b"ARROW1\0\0", "rows.h5": b"\x89HDF\r\n\x1a\n\0",
            "rows.xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "rows.pkl": pickle.dumps([1, 2]), "renamed.csv": b"PAR1\x15\0"}
for name, content in contents.items():
    open(name, "wb").write(content)
open("ORCHIDS.txt", "w").write("ORCHIDS are flowers. PAR1 is not one. " * 20)
P
for pair in "book.xlsx:a workbook of Excel" "weights.pt:a file of PyTorch" "sheet.ods:a spreadsheet of LibreOffice" "rows.parquet:a Parquet file" \
    "rows.feather:a Feather (Arrow) file" "rows.xls:a workbook of Excel before 2007" "rows.pkl:a pickle of Python" \
    "renamed.csv:a Parquet file"; do
    attempt 2 init "${pair%%:*}"
    says "${pair%%:*}: this is ${pair#*:}, which anneal does not read; convert it: "
done
attempt 2 init rows.h5
says "rows.h5: this is an HDF5 file, which a config reads: data: {train: {type: hdf5, path: rows.h5}}"
attempt 2 init rows.parquet
says "python3 -c \"import pandas; pandas.read_parquet('rows.parquet').to_csv('data.csv', index=False)\""
attempt 1 train flowers.yaml --fresh --set data.train.path=book.xlsx
says "book.xlsx: this is a workbook of Excel, which anneal does not read; convert it: libreoffice --headless --convert-to csv"
attempt 1 predict runs/flowers --input rows.parquet --output predicted.csv
says "rows.parquet: this is a Parquet file, which anneal does not read"
attempt 0 init ORCHIDS.txt

# --- mistakes ---
attempt 2 init flowers.csv --target nothing
says "flowers.csv: there is no column 'nothing' for --target; name a column of the header, or give its number from 1 to 5"
attempt 2 init patients.csv --task classify
says "'pressure' cannot be classes"
attempt 2 init flowers.csv --task regress
says "'kind' has text, so it cannot be a number to predict"
attempt 2 init flowers.csv --task guess
attempt 1 init absent.csv
says "absent.csv: cannot be read: No such file or directory"
printf 'a,b\n1,2\n1,2,3\n' >ragged.csv
attempt 2 init ragged.csv
says "ragged.csv: line 3: this line has 3 columns, but the first line has 2"
printf 'a,b\n1,7\n2,7\n' >same.csv
attempt 1 init same.csv
says "all cells of the target 'b' are the same"
printf 'a,b,a\n1,2,3\n2,3,4\n' >twice.csv
attempt 1 init twice.csv
says "twice.csv: two columns are called 'a'; rename one of them"
printf 'x\033[31m,y\n1,\033]0;title\007\n2,b\n3,b\n4,b\n' >codes.csv
attempt 0 init codes.csv
! grep -q $'\033' err out || failed 'a file controls the terminal'
printf '{"x": 1, "y": 2}\n{"x": 2}\n' >torn.jsonl
attempt 2 init torn.jsonl
printf 'x,name\n1,a\n2,b\n3,c\n' >names.csv
attempt 1 init names.csv
says "the target 'name' has 3 different texts in 3 rows, so they are no classes"
printf 'x,kind\n1,a\n2,b\n3,b\n4,b\n' >rare.csv
attempt 0 init rare.csv
says "note: the rarest class has only 1 sample"
cp out rare.yaml
attempt 0 train rare.yaml
: >empty.csv
attempt 2 init empty.csv
head -c 1000 /dev/zero >zeros
attempt 2 init zeros
says "this is no kind of data that init knows"
attempt 2 init
