#!/usr/bin/env bash
# The examples that fine-tune published models, with small random models in place of these: their data is what they say
# it is, their configs train, and right answers are counted.
#   finetune.sh SOURCE-TREE      (ANNEAL_BIN is the folder of the command, ANNEAL_RUN an emulator and its options)
set -euo pipefail
tree=$1 golden=$1/tests/golden
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$tree/examples/smollm2" "$tree/examples/minilm" "$work"
trains() { ${ANNEAL_RUN:-} "$ANNEAL_BIN/anneal" train "$@" >out 2>err || { tail -n 5 out err && exit 1; }; }

cd "$work/smollm2"
awk -f people.awk >train.jsonl
awk -v part=test -v count=200 -v seed=2 -f people.awk >test.jsonl
sed 's/"messages.*"answer": \(.*\)}/"text": \1}/' test.jsonl >answers.jsonl # what a model that knows everything says
python3 - <<'END_OF_PYTHON'
import json
train = [json.loads(json.loads(line)["messages"][1]["content"]) for line in open("train.jsonl")]
test = [json.loads(line) for line in open("test.jsonl")]
answers = [json.loads(t["answer"]) for t in test]
assert (len(train), len(test)) == (2000, 200)
for key in "name", "city":
    assert not {word for t in train for word in t[key].split()} & {word for t in answers for word in t[key].split()}, key
assert {t["job"] for t in answers} <= {t["job"] for t in train}
for question, answer in zip(test, answers):
    assert list(answer) == ["name", "age", "job", "city"]
    assert all(str(value) in question["messages"][0]["content"] for value in answer.values()), question
with open("answers.jsonl") as right, open("wrong.jsonl", "w") as wrong:  # the first three of them with another age, name and end
    lines = [json.loads(line)["text"] for line in right]
    lines[0], lines[1], lines[2] = lines[0].replace('"age": ', '"age": 1'), lines[1].replace('"name": "', '"name": "X'), lines[2] + " "
    wrong.writelines(json.dumps({"prompt": '"text": "', "text": text, "end": "stop"}) + "\n" for text in lines)
END_OF_PYTHON
[ "$(awk -f exact.awk test.jsonl answers.jsonl)" = "200 of 200 answers are right: 1.000" ] || { echo "FAILED: right answers are not counted"; exit 1; }
[ "$(awk -f exact.awk test.jsonl wrong.jsonl)" = "197 of 200 answers are right: 0.985" ] || { echo "FAILED: wrong answers are counted"; exit 1; }
python3 -c "import array; array.array('H', [i * i % 23 for i in range(40000)]).tofile(open('shakespeare.bin', 'wb'))"
base=(--set model.from="$golden/pretrained/smollm2.gguf" --set model.context=32)
trains shakespeare.yaml "${base[@]}" --set run.steps=3 --set data.train.format=u16 --set data.eval.format=u16 --set eval.samples=4
grep -q '"val_loss"' runs/shakespeare/summary.json
trains people.yaml --set 'model={type: llama, layers: 2, heads: 2, width: 16, context: 256}' --set run.steps=3 --set data.train.tokenizer="$golden/finetune/bpe"
grep -q '"steps": 3' runs/people/summary.json || { cat runs/people/summary.json; exit 1; }

awk -f brief.awk >questions.jsonl
awk -v part=test -f brief.awk >questions-test.jsonl
# Answers as `anneal generate --chat` writes them. Three make no pair: one sentence, none, and a list that comes first.
python3 - <<'END_OF_PYTHON'
import json
for part in "", "-test":
    with open(f"answers{part}.jsonl", "w") as answers:
        for i, line in enumerate(open(f"questions{part}.jsonl")):
            texts = {0: "It is a thing.", 1: "", 2: "Many things:\n\n1. One. 2. Two."}
            text = texts.get(i, f'I say "it is {i}". \\ And [more].\nMore.')
            line = json.dumps({"prompt": json.loads(line)["messages"][0]["content"], "text": text, "end": "stop"})
            answers.write(line.replace("\\n", "\\u000a") + "\n")
END_OF_PYTHON
for part in '' -test; do awk -f pairs.awk questions$part.jsonl answers$part.jsonl >pairs$part.jsonl; done
python3 - <<'END_OF_PYTHON'
import json
asked = [[json.loads(line)["messages"] for line in open(name)] for name in ("questions.jsonl", "questions-test.jsonl")]
assert list(map(len, asked)) == [240, 48] and len({json.dumps(q) for part in asked for q in part}) == 288
train, test = ([json.loads(line) for line in open(name)] for name in ("pairs.jsonl", "pairs-test.jsonl"))
assert (len(train), len(test)) == (237, 45), (len(train), len(test))
for i, (pair, question) in enumerate(zip(train, asked[0][3:])):
    chosen, rejected = (pair[key][0]["content"] for key in ("chosen", "rejected"))
    assert pair["prompt"] == question and chosen == f'I say "it is {i + 3}".' and rejected == chosen + " \\ And [more].\nMore.", pair
END_OF_PYTHON
trains brief.yaml --set 'model={type: llama, layers: 2, heads: 2, width: 16, context: 768}' --set run.steps=2 --set data.train.tokenizer="$golden/finetune/bpe" \
    --set data.eval.tokenizer="$golden/finetune/bpe"
grep -q '"val_accuracy"' runs/brief/summary.json

cd "$work/minilm"
text=$tree/examples/shakespeare/tinyshakespeare.txt
for part in train test; do awk -v part=$part -f speakers.awk "$text" "$text" >$part.jsonl; done
python3 - <<'END_OF_PYTHON'
import collections, json
train, test = ([json.loads(line) for line in open(name)] for name in ("train.jsonl", "test.jsonl"))
assert (len(train), len(test)) == (1233, 303), (len(train), len(test))
counts = [collections.Counter(sample["label"] for sample in part) for part in (train, test)]
assert len(counts[0]) == len(counts[1]) == 10 and counts[0]["GLOUCESTER"] == 169 and counts[1]["JULIET"] == 24, counts
assert not {sample["text"] for sample in train if len(sample["text"]) > 60} & {sample["text"] for sample in test}
END_OF_PYTHON
words=$golden/finetune/wordpiece
trains speakers.yaml --set 'model={type: bert, layers: 2, heads: 4, width: 16, hidden: 40, context: 40, vocabulary: 200}' --set run.epochs= --set run.steps=3 \
    --set data.train.tokenizer="$words" --set data.eval.tokenizer="$words" --set data.train.context=32 --set data.eval.context=32
grep -q '"val_accuracy"' runs/speakers/summary.json
