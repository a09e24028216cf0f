#!/usr/bin/env bash
# Fine-tuning from a config: conversations for a language model and sentences for BERT, from weights of transformers.
# They learn, and have the same bits with any threads, with recompute and after stops; what is cut is said.
source "$(dirname "$0")/preamble.sh"
golden=$1/tests/golden
says() { grep -qF -- "$1" out err || failed "it does not say: $1"; }
hash_of() { field "$1/summary.json" 'd["state_hash"]'; }
python3 - <<'END'
import json
with open("chat.jsonl", "w") as chat, open("sentences.jsonl", "w") as sentences:
    for i in range(120):
        turns = [("user", f"What is {i % 7} and {i % 5}?"), ("assistant", f"It is {i % 7 + i % 5}.")] * (1 + i % 3)
        chat.write(json.dumps({"messages": [{"role": role, "content": content} for role, content in turns]}) + "\n")
        word, label = [("all", "many"), ("one", "few"), ("none", "few")][i % 3]
        sentences.write(json.dumps({"text": f"we saw {word}", "text_pair": "of them " * (i % 4), "label": label}) + "\n")
END
cat >chat.yaml <<END
run:   {dir: chat, steps: 30}
model: {type: llama, layers: 2, heads: 2, width: 16, context: 96}
data:  {train: {type: chat, path: chat.jsonl, tokenizer: $golden/finetune/bpe}, split: {eval: 20%}}
batch: {global: 4, micro: 2, leaves: 2}
optimizer: {lr: 1e-2}
END
# From the tenth epoch on it has learned the rule, at every level of instructions and in f32 and bf16; after eight that
# depends on the level.
cat >bert.yaml <<END
run:   {dir: bert, epochs: 16}
model: {type: bert, layers: 2, heads: 4, width: 16, hidden: 40, context: 12, vocabulary: 200, dropout: 0.1, init: {from: $golden/huggingface/bert/model.safetensors, missing: init,
        unexpected: ignore, rename: {'word_embeddings': other, '^classifier': other}}}
data:  {train: {type: sentences, path: sentences.jsonl, tokenizer: $golden/finetune/wordpiece}, split: {eval: 20%, by: stratify}}
batch: {global: 8, leaves: 2}
optimizer: {lr: 3e-3}
END
for kind in chat bert; do
    attempt 0 train $kind.yaml
    attempt 0 train $kind.yaml --set run.dir=threads --threads 1 --set data.threads=0 --set train.recompute.mode=full
    [ "$(hash_of threads)" = "$(hash_of $kind)" ] || failed "$kind: one thread and recompute give another hash"
    attempt 0 train $kind.yaml --set run.dir=more --set data.threads=3
    [ "$(hash_of more)" = "$(hash_of $kind)" ] || failed "$kind: three threads that load give another hash"
    # killed at some step, several times; it goes on from its last checkpoint
    for pause in 0.2 0.3 0.4; do
        "${anneal[@]}" train $kind.yaml --set run.dir=killed --set save.every='2 steps' >out 2>err &
        process=$!
        sleep $pause
        kill -KILL $process 2>/dev/null || true
        wait $process || true
        process=
    done
    [ -f killed/summary.json ] || attempt 0 train $kind.yaml --set run.dir=killed --set save.every='2 steps'
    [ "$(hash_of killed)" = "$(hash_of $kind)" ] || failed "$kind: a run that was killed has another hash"
    rm -rf threads more killed
done
python3 -c "assert $(field chat/summary.json 'd["metrics"]["val_loss"]') < 2" || fail 'the language model has not learned'
python3 -c "assert $(field bert/summary.json 'd["metrics"]["val_accuracy"]') > 0.9" || fail 'BERT has not learned'
# what the library warns of is told
sed "s/'word_embeddings': other/&, nothing_like_it: other/" bert.yaml >warned.yaml
attempt 0 train warned.yaml --set run.dir=warned --set run.epochs=1
says "warning: model.init.rename: 'nothing_like_it' matches no tensor"
# its classes are counted, and sentences without labels are told apart
attempt 0 eval bert
says precision
says many
python3 -c 'import json
for line in open("sentences.jsonl"):
    record = json.loads(line)
    del record["label"]
    print(json.dumps(record))' >unlabelled.jsonl
attempt 0 predict bert --input unlabelled.jsonl --output classes.csv
attempt 0 eval bert --data sentences.jsonl --json
cp out eval.json
python3 - <<'END' || failed 'the predicted classes are not those that the evaluation counts'
import csv, json
rows, records = list(csv.reader(open("classes.csv"))), [json.loads(line) for line in open("sentences.jsonl")]
assert len(rows) == len(records) + 1, len(rows)
right = sum(row[0] == record["label"] for row, record in zip(rows[1:], records))
assert right == sum(one["right"] for one in json.load(open("eval.json"))["class_metrics"]) > 80, (right, rows[:4])
END
attempt 1 predict bert --input nowhere.npy --output classes.csv
says 'the model reads sentences, so the samples must be JSON lines'
# and transformers gets it with their names
attempt 0 export bert --to hf bert-hf
grep -q '"0": "few"' bert-hf/config.json || failed 'the names of classes do not go along'
# an adapter with a new classifier on it learns too
cat >adapter.yaml <<END
run:   {dir: adapter, epochs: 8}
model: {from: bert-hf, classes: 3}
lora:  {targets: [query, value], rank: 2}
data:  {train: {type: sentences, path: sentences.jsonl, tokenizer: $golden/finetune/wordpiece}, split: {eval: 20%, by: stratify}}
batch: {global: 8}
optimizer: {lr: 1e-2}
END
attempt 0 train adapter.yaml
says 'whole layers that are trained: classifier'
python3 -c "assert $(field adapter/summary.json 'd["metrics"]["val_accuracy"]') > 0.9" || fail 'the new classifier has not learned'
attempt 0 export adapter --to peft theirs
attempt 0 eval adapter --adapter theirs
attempt 0 export adapter --to hf adapter-hf

# init knows these data, and writes a config that trains the model that it is given
attempt 0 export chat --to hf chat-hf
cp "$golden"/finetune/bpe/*.json chat-hf
cp "$golden"/finetune/wordpiece/*.json bert-hf
python3 - <<'END'
import json
with open("pairs.jsonl", "w") as pairs, open("completions.jsonl", "w") as completions, open("texts.jsonl", "w") as texts:
    for i in range(20):
        pairs.write(json.dumps({"prompt": f"{i} and 1 is", "chosen": f" {i + 1}", "rejected": " many"}) + "\n")
        completions.write(json.dumps({"prompt": f"{i} and 1 is", "completion": f" {i + 1}"}) + "\n")
        texts.write(json.dumps({"text": f"{i} and 1 is {i + 1}"}) + "\n")
END
for made in "chat.jsonl:chat:conversations" "completions.jsonl:chat:prompts with completions" "texts.jsonl:chat:texts" \
    "pairs.jsonl:preferences:pairs of answers" "sentences.jsonl:sentences:sentences with labels"; do
    IFS=: read -r data type what <<<"$made"
    attempt 2 init "$data"
    says "$data: $what train a published model; name its folder, or a GGUF file, with --from FOLDER"
    from=chat-hf
    [ "$type" != sentences ] || from=bert-hf
    rm -rf made.yaml runs/made
    attempt 0 init "$data" --from "$from" --output made.yaml
    says "records: $what"
    grep -qxF "    type: $type  # $what" made.yaml || failed "the type is not $type"
    attempt 0 train made.yaml --set run.epochs=1
done
attempt 2 init sentences.jsonl --from chat-hf
says 'sentences with labels train a BERT, and chat-hf is of the family llama'
attempt 2 init chat.jsonl --from bert-hf
attempt 1 init chat.jsonl --from nowhere

attempt 0 train chat.yaml --set run.dir=short --set data.train.context=32 --set run.steps=1
says 'chat.jsonl: of 120 records, '
says 'are longer than 32 tokens and were cut, so '
attempt 0 train bert.yaml --set run.dir=cut --set data.train.context=6 --set run.epochs= --set run.steps=1
says 'are longer than 6 tokens and were cut'

# An unknown template matters only to conversations.
mkdir unknown
cp "$golden"/finetune/bpe/tokenizer.json unknown
printf '{"chat_template": "{{ messages | trim }} <|im_start|> <|im_end|>"}' >unknown/tokenizer_config.json
attempt 1 train chat.yaml --set run.dir=x --set data.train.tokenizer=unknown
says "the chat template is not supported, as it contains 'trim'; choose one of chatml, llama3, mistral, zephyr, qwen, llama3.1, qwen3 by its name"
attempt 0 train chat.yaml --set run.dir=named --set data.train.tokenizer=unknown --set data.train.template=chatml --set run.steps=1
printf '{"prompt": "2 and 2 is", "completion": " 4"}\n{"text": "3 and 1 is 4"}\n{"text": "a"}\n' >plain.jsonl
attempt 0 train chat.yaml --set run.dir=plain --set data.train.tokenizer=unknown --set data.train.path=plain.jsonl --set data.train.packing=off --set data.split= --set run.steps=1
attempt 2 train chat.yaml --set run.dir=x --set data.train.tokenizer=
says 'nothing says which tokenizer makes tokens of the text; set data.train.tokenizer'

# The run's tokenizer reads prompts and writes what the model says.
attempt 0 generate chat --prompt $'<|im_start|>user\nWhat is 3 and 2?<|im_end|>\n<|im_start|>assistant\n' --max-tokens 12
says 'It is '
grep -q 'im_end' out && failed 'the token that ends a turn is shown' || true

# A published model: as it is, and with an adapter that was trained on its GGUF file, which a checkpoint does not hold.
for model in smollm2 smollm2.gguf; do
    attempt 0 generate "$golden/pretrained/$model" --tokens 3,1,4 --max-tokens 5
    cp out "$model.out"
done
cmp smollm2.out smollm2.gguf.out || fail 'the folder and the GGUF file of a model do not say the same'
python3 -c "import array; array.array('H', [i * i % 23 for i in range(400)]).tofile(open('numbers.bin', 'wb'))"
cp "$golden/pretrained/smollm2.gguf" base.gguf
cat >lora.yaml <<END
run:   {dir: lora, steps: 4}
model: {from: base.gguf, context: 8}
lora:  {targets: [q_proj, down_proj], rank: 2}
data:  {train: {type: tokens, path: numbers.bin, format: u16}}
train: {precision: bf16} # auto is bf16 at level amx only
optimizer: {lr: 1e-1}
END
attempt 0 train lora.yaml
tr -s '\n ' ' ' <out >words
grep -q 'model base.gguf, [0-9,]* parameters, of which an adapter is trained: rank 2 ' words || failed 'the banner does not say what is trained'
grep -q 'bf16 products and frozen matrices, trained weights and sums in f32' words || failed 'the banner does not say that frozen matrices are bf16'
attempt 0 generate lora --tokens 3,1,4 --max-tokens 5
cmp -s out smollm2.out && failed 'the adapter changes nothing' || true
cp out lora.out
mkdir merged
cp "$golden/pretrained/smollm2/config.json" merged
attempt 0 export lora --to merged/model.safetensors --merge
attempt 0 generate merged --tokens 3,1,4 --max-tokens 5
cmp out lora.out || failed 'the merged model does not say what the adapter says'

# DoRA: trained, generated with, merged, and evaluated as an adapter of PEFT.
attempt 0 train lora.yaml --set run.dir=dora --set lora.dora=on --set train.precision=f32
tr -s '\n ' ' ' <out | grep -q 'rank 2, with magnitudes (DoRA)' || failed 'the banner does not say that magnitudes are trained'
attempt 0 inspect dora
says 'lora_magnitude_vector'
attempt 0 generate dora --tokens 3,1,4 --max-tokens 5
cp out dora.out
mkdir merged-dora
cp "$golden/pretrained/smollm2/config.json" merged-dora
attempt 0 export dora --to merged-dora/model.safetensors --merge
attempt 0 generate merged-dora --tokens 3,1,4 --max-tokens 5
cmp out dora.out || failed 'the merged model does not say what DoRA says'
attempt 0 export dora --to peft adapter-dora
attempt 0 eval dora --data numbers.bin
grep val_loss out >alone
attempt 0 eval dora --data numbers.bin --adapter adapter-dora
grep val_loss out >both
cmp alone both || failed 'an exported adapter of DoRA is not what the run has'
rm alone both

# A run with an adapter goes on.
attempt 0 train lora.yaml --set run.dir=halves --set run.steps=2
attempt 0 train lora.yaml --set run.dir=halves --extend=keep
[ "$(field halves/summary.json 'd["state_hash"]')" = "$(field lora/summary.json 'd["state_hash"]')" ] || failed 'a run that was resumed has another hash'

# Adapters of two runs, evaluated on one model: what each run has by itself.
attempt 0 train lora.yaml --set run.dir=second --set run.seed=7
for run in lora second; do
    attempt 0 export $run --to peft adapter-$run
    attempt 0 eval $run --data numbers.bin
    grep val_loss out >>alone
done
attempt 0 eval lora --data numbers.bin --adapter adapter-lora,adapter-second
grep val_loss out >both
cmp alone both || failed 'adapters evaluated together are not what they are alone'
[ "$(sort -u both | wc -l)" = 2 ] || failed 'the two adapters are the same'
attempt 0 eval lora --data numbers.bin --adapter adapter-second --json
[ "$(field out 'd["adapters"][0]["adapter"]')" = adapter-second ] || failed 'JSON has no adapter'
attempt 1 eval lora --data numbers.bin --adapter nowhere
says 'nowhere/adapter_config.json'
attempt 2 eval lora --data numbers.bin --adapter adapter-lora --svg x.svg
says 'cannot be used with --svg'
attempt 2 eval chat --adapter adapter-lora
says '--adapter is for runs that train an adapter (lora)'
mv base.gguf elsewhere.gguf
attempt 1 generate lora --tokens 3,1,4 --max-tokens 5
says 'the model of its adapter cannot be read'
