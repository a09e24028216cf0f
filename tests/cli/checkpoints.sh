#!/usr/bin/env bash
# The tools for checkpoints as their users see them: inspect, verify, export, diff, eval, predict, and model.init.from.
#   checkpoints.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
tree=$1
export OMP_NUM_THREADS=2
background=
at_end() { [ -z "$background" ] || kill -9 $background 2>/dev/null || true; }

# ends CODE ARGUMENT...: the command ends with this code
ends() {
    local code=0 wanted=$1
    shift
    "${anneal[@]}" "$@" >out 2>err || code=$?
    [ "$code" = "$wanted" ] || fail "anneal $*: exit code $code, not $wanted"
}
says() { grep -qF -- "$1" out || fail "it does not say: $1"; }
complains() { grep -qF -- "$1" err || fail "it does not complain: $1"; }
# flip FILE BYTE: changes one bit
flip() { python3 -c "
import sys
with open(sys.argv[1], 'r+b') as f:
    f.seek(int(sys.argv[2])); b = f.read(1)[0]; f.seek(int(sys.argv[2])); f.write(bytes([b ^ 16]))" "$1" "$2"; }

text=$tree/examples/shakespeare/tinyshakespeare.txt
cat >small.yaml <<Y
run:       {dir: run, steps: 12, seed: 3}
model:     {type: gpt2, layers: 2, heads: 2, width: 32, context: 16}
data:
  train:   {type: text, path: $text, tokens: chars, part: 0%..10%}
  eval:    {type: text, path: $text, tokens: chars, part: 10%..11%}
batch:     {global: 8, leaves: 4}
optimizer: {lr: 3e-3, weight_decay: 0.1}
eval:      {every: 6 steps}
save:      {every: 6 steps, writers: 4}
Y
seq 1 60 | awk '{ printf "%g,%g,%g,%g\n", $1 / 60, $1 % 7 / 7, sin($1), $1 / 30 + $1 % 7 }' | sed '1i a,b,c,y' >rows.csv
seq 1 60 | awk '{ printf "%g,%g,%d\n", $1 % 7 / 7, $1 % 3 - 1, $1 % 3 }' | sed '1i a,b,k' >classes.csv
cat >numbers.yaml <<Y
run:   {dir: numbers, epochs: 20}
model: {type: mlp, hidden: [8], batch_norm: on}
data:  {train: {type: csv, path: rows.csv}}
batch: {global: 16}
optimizer: {lr: 1e-2}
Y
sed 's/numbers/classes/; s/rows.csv/classes.csv, classes: on/' numbers.yaml >classes.yaml
for config in small numbers classes; do
    ends 0 train $config.yaml
done
newest=run/checkpoints/step-00000012-1
before=run/checkpoints/step-00000006-1
find run | sort >names

# --- inspect ---
ends 0 inspect run
for words in "$newest" 'step 12 of 12, launch 1' 'run, model gpt2, seed 3' 'last step    loss ' 'at step 12' '28 weights' \
    '56 optimizer tensors (shown with --all)' 'h.0.attn.c_attn.weight  F32   [96, 32]'; do
    says "$words"
done
! grep -q moment_1 out || fail "moments are shown unasked"
ends 0 inspect --all run/best
says 'moment_2/wte.weight'
ends 0 inspect run --all --json
cp out inspected.json
[ "$(field inspected.json 'd["step"], d["steps"], d["generation"], d["model"], d["seed"], len(d["tensors"])')" = "12 12 1 gpt2 3 84" ] ||
    fail "inspect --json has other numbers"
[ "$(field inspected.json 'round(d["loss"], 6), d["best_step"]')" = "$(field run/summary.json 'round(d["metrics"]["loss"], 6), d["best"]["step"]')" ] ||
    fail "inspect --json has another loss, or another best step"
python3 - <<'P' || fail "four writers have not cut a tensor into slices"
import json
assert any(t["slices"] > 1 for t in json.load(open("inspected.json"))["tensors"])
P

# --- export; the numbers of inspect, counted anew from the file ---
ends 0 export run --to weights.safetensors
says "weights.safetensors, from $newest"
ends 0 export run --output named.safetensors
cmp -s weights.safetensors named.safetensors || fail "--output writes something else than --to"
python3 - <<'P' || fail "the statistics are wrong"
import json, math, struct
raw = open("weights.safetensors", "rb").read()
length = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:8 + length])
header.pop("__metadata__", None)
tensors = {t["name"]: t for t in json.load(open("inspected.json"))["tensors"] if t["role"] == "weight"}
assert set(tensors) == set(header), set(tensors) ^ set(header)
for name, entry in header.items():
    begin, end = entry["data_offsets"]
    x = struct.unpack(f"<{(end - begin) // 4}f", raw[8 + length + begin:8 + length + end])
    t, mean = tensors[name], math.fsum(x) / len(x)
    std = math.sqrt(math.fsum((y - mean) ** 2 for y in x) / len(x))
    assert t["shape"] == entry["shape"] and t["type"] == "F32", t
    assert t["zeros"] == x.count(0) and t["nonfinite"] == 0, t
    for key, value in (("min", min(x)), ("max", max(x)), ("mean", mean), ("std", std)):
        assert math.isclose(t[key], value, rel_tol=1e-6, abs_tol=1e-12), (name, key, t[key], value)
P
ends 0 inspect weights.safetensors
says 'tensors only, not part of a run'
! grep -q '^  model' out || fail "tensors without a description are called a model"
ends 0 inspect $tree/tests/golden/pretrained/llama
for words in 'model        llama, from a folder of Hugging Face' '2 layers, width 12, feed-forward 20, 4 heads of 6, 2 key' \
    'vocabulary 24, context 32, rotary base 50, scaled by 4'; do
    says "$words"
done
! grep -q 'not part of a run\|^  text ' out || fail "a model without a tokenizer has one, or is called tensors only"
mkdir whole
cp $tree/tests/golden/pretrained/llama/*.* $tree/tests/golden/finetune/bpe/* whole
ends 0 inspect whole
says 'text         bpe tokenizer of 320 tokens, conversations as chatml'
ends 0 inspect $tree/tests/golden/pretrained/mistral.gguf --json
[ "$(field out 'd["model"]["family"], d["model"]["window"], d["keys"][0]["value"], len(d["tensors"])')" = "llama 3 llama 21" ] ||
    fail "inspect --json has other numbers of a GGUF file"
ends 0 inspect $tree/tests/golden/gguf/types.gguf
for words in 'model        unknown: ' 'key          tokenizer.ggml.tokens                         3 texts' 'Q4_K.weight  Q4_K'; do
    says "$words"
done
ends 0 export $tree/tests/golden/gguf/types.gguf --to widened.safetensors
ends 0 inspect widened.safetensors
says 'Q4_K.weight  F32'

# --- diff ---
ends 0 diff run $newest
says 'all 84 tensors are bit-identical'
ends 0 diff weights.safetensors run
says 'all 28 tensors are bit-identical'
ends 1 diff $before $newest
says 'step: 6, 12'
says 'tensors differ'
ends 0 train small.yaml --set run.dir=other --set run.seed=4
ends 1 diff --json run other
[ "$(field out 'd["result"], d["tensors"], [c["key"] for c in d["config"]], d["config"][1]["b"]')" = \
    "different 84 ['run.dir', 'run.seed'] 4" ] || fail "diff --json has other numbers"
python3 - <<'P' # one element of one tensor, by 0.5
import json, struct
raw = bytearray(open("weights.safetensors", "rb").read())
length = struct.unpack("<Q", raw[:8])[0]
at = 8 + length + json.loads(raw[8:8 + length])["ln_f.weight"]["data_offsets"][0] + 8
raw[at:at + 4] = struct.pack("<f", struct.unpack("<f", raw[at:at + 4])[0] + 0.5)
open("changed.safetensors", "wb").write(raw)
P
ends 1 diff weights.safetensors changed.safetensors
says '1 of 28 tensors differ'
grep -qE '^ln_f.weight +0\.5 +0\.3[0-9]* +1 of 32$' out || fail "another difference"

# --- eval: the numbers of the run, nothing written ---
ends 0 eval run --json
[ "$(field out 'repr(d["metrics"])')" = "$(field run/summary.json 'repr({k: v for k, v in d["metrics"].items() if k != "loss"})')" ] ||
    fail "eval has other numbers than the run"
ends 0 eval $before
says "$before, step 6: "
find run | sort | cmp -s - names || fail "a tool has written into the run's folder"
ends 0 train small.yaml --set run.dir=base --isa base # other instructions, which eval takes from the checkpoint
ends 0 eval base --json
[ "$(field out 'd["metrics"]["val_loss"]')" = "$(field base/summary.json 'd["metrics"]["val_loss"]')" ] || fail "eval has other instructions"
head -c 3000 "$text" >few.txt
ends 1 eval run --data few.txt
complains 'few.txt: does not have the same characters as the training data'
python3 -c "t = open('$text').read(); open('all.txt', 'w').write(t[:3000] + ''.join(sorted(set(t))))"
ends 0 eval run --data all.txt
says '191 samples'
ends 1 eval numbers
complains 'this run has no data.eval; give the data to evaluate on with --data FILE'
ends 0 eval numbers --data rows.csv
says '60 samples'
says 'val_r2'
ends 0 eval classes --data classes.csv
says 'val_accuracy   1'
"${anneal[@]}" train small.yaml --set run.dir=long --set run.steps=100000000 --set save.keep_last=all >log 2>&1 & # a run that is under way
background=$!
for _ in $(seq 600); do
    [ ! -d long/checkpoints ] || [ -z "$(find long/checkpoints -name 'step-*')" ] || break
    sleep 0.1
done
ends 0 eval long --json
[ "$(field out 'd["step"] % 6, d["samples"]')" = "0 697" ] || fail "another checkpoint of the run that is under way"
kill -TERM $background
code=0
wait $background || code=$?
background=
[ "$code" = 75 ] || fail "the run that is under way was disturbed: $code"

# --- predict ---
cut -d , -f 1-3 rows.csv >inputs.csv
ends 0 predict numbers --input rows.csv --output with.csv
ends 0 predict numbers --input inputs.csv --output without.csv
cmp -s with.csv without.csv || fail "targets in the file change the predictions"
[ "$(head -1 with.csv) $(wc -l <with.csv)" = "y 61" ] || fail "not one line for each sample"
ends 0 predict numbers --input inputs.csv --output numbers.npy
python3 - <<'P' || fail "the .npy file has other numbers"
import csv, struct
raw = open("numbers.npy", "rb").read()
assert raw[:8] == b"\x93NUMPY\x01\x00"
length = struct.unpack("<H", raw[8:10])[0]
head = eval(raw[10:10 + length])
assert head == {"descr": "<f4", "fortran_order": False, "shape": (60, 1)} and (10 + length) % 64 == 0, head
numbers = struct.unpack("<60f", raw[10 + length:])
lines = [float(row[0]) for row in csv.reader(open("with.csv")) if row[0] != "y"]
assert all(struct.pack("<f", a) == struct.pack("<f", b) for a, b in zip(numbers, lines, strict=True))
rows = [list(map(float, row[:3])) for row in list(csv.reader(open("rows.csv")))[1:]]
def write(name, kind, code, rows):
    head = repr({"descr": kind, "fortran_order": False, "shape": (len(rows), 3)}).encode().ljust(117) + b"\n"
    data = b"".join(struct.pack(f"<3{code}", *row) for row in rows)
    open(f"{name}.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)
write("in32", "<f4", "f", rows)
write("in64", "<f8", "d", rows)
# integers: the ends of what each type has, and the same as numbers of f64
for name, kind, code, least, most in (("u1", "|u1", "B", 0, 255), ("u2", "<u2", "H", 0, 65535),
                                      ("i4", "<i4", "i", -2**31, 2**31 - 1), ("i8", "<i8", "q", -2**53, 2**53)):
    ends = [[least, 1, 2], [3, most, 4], [5, 6, most // 2 + 1]]
    write(name, kind, code, ends)
    write(f"{name}-real", "<f8", "d", ends)
P
for type in u1 u2 i4 i8; do
    ends 0 predict numbers --input $type.npy --output whole.csv
    ends 0 predict numbers --input $type-real.npy --output real.csv
    cmp -s whole.csv real.csv || fail "$type.npy gives other predictions than its numbers in f64"
done
for version in in32 in64; do
    ends 0 predict numbers --input $version.npy --output again.csv
    cmp -s with.csv again.csv || fail "$version.npy gives other predictions"
done
ends 0 predict classes --input classes.csv --output classes-out.csv
[ "$(head -1 classes-out.csv)" = 'class,probability_0,probability_1,probability_2' ] || fail "other columns of classes"
[ "$(tail -n +2 classes.csv | cut -d , -f 3 | tr -d '\r' | md5sum)" = "$(tail -n +2 classes-out.csv | cut -d , -f 1 | md5sum)" ] ||
    fail "other classes than those that eval finds right"
head -c 50 "$text" >prompt.txt
ends 0 predict run --input prompt.txt --output tokens.csv
[ "$(head -1 tokens.csv)" = 'sample,position,token,next,probability,predicted,predicted_probability' ] || fail "other columns of tokens"
[ "$(wc -l <tokens.csv)" = 51 ] || fail "not one line for each token"
python3 - <<'P' || fail "probabilities of tokens are not those of the run"
import csv
rows = list(csv.DictReader(open("tokens.csv")))
assert all(a["next"] == b["token"] for a, b in zip(rows, rows[1:])) and rows[-1]["next"] == ""
assert all(0 < float(r["probability"]) <= float(r["predicted_probability"]) < 1 for r in rows[:-1])
P

# --- the run's data is gone ---
mv rows.csv moved.csv
ends 1 eval numbers --data moved.csv
complains 'rows.csv: cannot be opened'
complains '--set data.train.path=FILE'
ends 0 eval numbers --data moved.csv --set data.train.path=moved.csv
ends 0 predict numbers --input moved.csv --output again.csv # which needs none of it
cmp -s with.csv again.csv || fail "other predictions without the run's data"
mv moved.csv rows.csv

# --- another run starts from the weights ---
sed 's/dir: run/dir: tuned/; s/steps: 12/steps: 1/; s/lr: 3e-3/lr: 0/; s/context: 16/context: 16, init: {from: run}/' small.yaml >tuned.yaml
ends 0 train tuned.yaml
ends 0 diff tuned weights.safetensors
ends 0 train tuned.yaml --set run.dir=tuned-2 --set model.init.from=$before
ends 1 diff tuned-2 weights.safetensors
ends 0 eval tuned-2
ends 2 train tuned.yaml --set run.dir=tuned-3 --set model.init.from=numbers
complains 'numbers does not fit the model'

# --- export for PyTorch: what there is without PyTorch ---
ends 0 export run --to torch torch
python3 -m py_compile torch/model.py || fail "model.py is no Python"
ends 0 diff run torch/model.safetensors
ends 2 export weights.safetensors --to torch torch-2
complains 'weights.safetensors: has only tensors'

# --- export for ONNX: a whole file, or none ---
ends 0 export run --to onnx model.onnx
says "model.onnx, from $newest"
[ -s model.onnx ] && [ ! -e model.onnx.new ] && [ ! -e model.onnx.data ] || fail "model.onnx is not there alone"
for place in 'named.onnx' 'again.onnx --to onnx'; do
    # shellcheck disable=SC2086 # two words
    ends 0 export run -o $place
    cmp -s model.onnx "${place%% *}" || fail "-o $place writes something else"
done
ends 2 export weights.safetensors --to onnx other.onnx
complains 'weights.safetensors: has only tensors'
ends 1 export run --to onnx nowhere/model.onnx
[ ! -e other.onnx ] && [ ! -e nowhere ] || fail "a refused export left something"

# --- verify, and damage of every kind ---
ends 0 verify run
says "$before: intact: 8 files,"
says "$newest: intact: 8 files,"
ends 0 verify $newest --json
[ "$(field out 'd["state"], d["checkpoints"][0]["files"]')" = "good 8" ] || fail "verify --json"
[ "$(field out 'd["checkpoints"][0]["bytes"]')" = "$(cat $newest/* | wc -c)" ] || fail "not all bytes were counted"
ends 0 verify weights.safetensors
says ': valid structure, 28 tensors; this format has no hashes'
cp -r run sound
damaged() { # FILE: of the newest
    ends 1 verify run
    complains "$newest/$1"
    says "$before: intact:"
    ends 1 verify $newest
    complains "$newest/$1"
    ends 1 verify --json run
    [ "$(field out 'd["state"], [c["state"] for c in d["checkpoints"]]')" = "damaged ['good', 'damaged']" ] || fail "verify --json: $1"
    rm -rf run
    cp -r sound run
}
for name in config.yaml graph.ang metrics.json part-00000.safetensors part-00001.safetensors part-00002.safetensors part-00003.safetensors manifest.json; do
    flip "$newest/$name" 100
    damaged $name
done
truncate -s -1 $newest/part-00001.safetensors
damaged part-00001.safetensors
rm $newest/metrics.json
damaged metrics.json
touch $newest/added.txt
damaged added.txt
rm $newest/manifest.json
damaged manifest.json
flip $newest/part-00001.safetensors 50000
ends 1 export run --to never.safetensors
complains "$newest/part-00001.safetensors"
[ ! -e never.safetensors ] || fail "damaged weights were exported"
ends 1 eval run
complains "$newest/part-00001.safetensors"
ends 1 predict run --input prompt.txt --output never.csv
complains "$newest/part-00001.safetensors"
[ ! -e never.csv ] || fail "something was predicted with damaged weights"
ends 0 eval $before

# --- mistakes ---
for tool in inspect verify eval; do
    ends 1 $tool nowhere
    complains 'nowhere: cannot be opened: No such file or directory'
    ends 2 $tool
done
mkdir empty
ends 1 inspect empty
complains 'empty: has neither model.safetensors nor model.safetensors.index.json'
ends 2 diff run
complains 'PATH is missing'
ends 2 diff run run run
complains "unexpected argument 'run': give two arguments"
ends 2 export run
complains '--to is required: write --to model.safetensors, --to hf FOLDER, --to gguf NAME.gguf, --to torch FOLDER or --to onnx NAME.onnx'
ends 2 export run --to torch
complains 'the place is missing: write --to torch FOLDER'
ends 2 export run --to onnx
complains 'the place is missing: write --to onnx NAME.onnx'
ends 2 export run --to hf
complains 'the place is missing: write --to hf FOLDER'
ends 2 export run --to gguf
complains 'the place is missing: write --to gguf NAME.gguf'
ends 2 export run --to onnx model.onnx --type f16
complains '--type is for --to hf and --to gguf'
ends 2 export run --to hf folder --type q8_0
complains '--type q8_0 is for --to gguf: write --type f32, f16 or bf16'
ends 2 export run --to gguf model.gguf --type f8
complains "--type takes f32, f16, bf16 or q8_0, not 'f8'"
ends 0 export $tree/tests/golden/pretrained/qwen2 --to gguf qwen2.gguf --type bf16
ends 0 export qwen2.gguf --to hf qwen2
ends 1 export qwen2.gguf --to hf qwen2
complains 'remove that folder, or name another'
ends 2 export run --to model.bin
complains "ends in .safetensors, 'hf', 'gguf', 'torch', 'onnx' or 'peft', not 'model.bin'"
ends 2 export run folder --to model.safetensors
complains "unexpected argument 'folder': the file's name is the one behind --to"
complains_of() { ends 2 export run "${@:2}" && complains "$1"; }
complains_of "'model.bin' does not end in .safetensors, .gguf or .onnx; add --to hf, torch or peft for a folder" -o model.bin
complains_of "unexpected argument 'a.onnx': --output names the place" a.onnx -o b.onnx
complains_of "unexpected argument 'b.safetensors': the file's name is the one behind --to" --to a.safetensors -o b.safetensors
complains_of '--merge writes a file' -o b.onnx --merge
ends 2 predict run --output x.csv
complains '--input FILE is missing'
ends 2 predict run --input prompt.txt --output x.txt
complains 'ends in .csv or .npy'
cut -d , -f 1,2 rows.csv >two.csv
ends 1 predict numbers --input two.csv --output x.csv
complains 'two.csv: has 2 columns, but the model reads 3'
ends 1 predict numbers --input nowhere.csv --output x.csv
complains 'nowhere.csv: cannot be opened'
ends 1 predict numbers --input numbers.npy --output x.csv
complains 'numbers.npy: has 60 samples of 1 numbers, but the model reads 3'
ends 1 predict weights.safetensors --input rows.csv --output x.csv
complains 'has only tensors, without a model'
printf 'abc\001def' >strange.txt
ends 1 predict run --input strange.txt --output x.csv
[ ! -e x.csv ] || fail "half a prediction is left"

# --- a run that saves after every step and keeps one checkpoint: what a command reads stays until it has read it ---
"${anneal[@]}" train small.yaml --set run.dir=saving --set run.steps=100000000 --set eval.every=off --set save.every='1 steps' \
    --set save.keep_last=1 >saving.out 2>&1 &
background=$!
has_saved() { compgen -G 'saving/checkpoints/step-*' >/dev/null; }
until_true 60 has_saved || fail "it does not save"
head -c 200 "$text" >prompt.txt
for i in 1 2 3; do
    ends 0 eval saving
    ends 0 predict saving --input prompt.txt --output saving.npy
    ends 0 generate saving --prompt First --max-tokens 2
    ends 0 export saving --to saving$i.safetensors
    ends 0 inspect saving
done
kill -TERM $background
code=0
wait $background || code=$?
background=
[ "$code" = 75 ] || fail "the run that was read: exit code $code"
[ "$(ls saving/checkpoints | wc -l)" = 1 ] || fail "checkpoints that were read stay: $(ls saving/checkpoints)"

echo "checkpoints: all as expected"
