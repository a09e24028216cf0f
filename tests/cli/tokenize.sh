#!/usr/bin/env bash
# anneal tokenize: the same bytes for any number of threads and after kills, documents of text and of JSON lines, a file
# that a run reads, messages.
#   tokenize.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
tokenizer=$1/tests/golden/tokenizers/gpt2.json
python3 - <<'P'
import json
words = "the quick brown fox doesn't jump 12 times\nover it\n\n  and again, we've said\nso".split(" ")
text = " ".join(words[(i * i + i // 7) % len(words)] for i in range(600000))
open("large.txt", "w").write(text)
open("small.txt", "w").write("the dog\n")
with open("lines.jsonl", "w") as file:
    for i in range(3000):
        file.write(json.dumps({"id": i, "text": text[i * 100 : i * 100 + 90], "meta": {"text": "no"}}) + "\n" * (1 + i % 2))
P

# --- the same bytes on any threads; all files in their order ---
for threads in 1 3; do attempt 0 tokenize "$tokenizer" small.txt large.txt lines.jsonl --end '<|end|>' -t $threads -o tokens.$threads; done
cmp tokens.1 tokens.3 || fail 'threads change the tokens'
grep -q '3,002 documents' out || fail 'a file is a document, and a line of JSON'
[ ! -e tokens.1.partial ] && [ ! -e tokens.1.progress ] || fail 'something is left'
python3 - "$tokenizer" <<'P' || fail 'the tokens are not those of the texts'
import json, struct, sys
tokenizer = json.load(open(sys.argv[1]))
vocabulary = {i: t for t, i in tokenizer["model"]["vocab"].items()}
own = [*range(33, 127), *range(161, 173), *range(174, 256)]
byte = {chr(b): b for b in own}
byte.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in own)})
data = open("tokens.1", "rb").read()
magic, version, count = struct.unpack("<3i", data[:12])
assert (magic, version) == (20240520, 1) and len(data) == 1024 + 2 * count
ids = struct.unpack(f"<{count}H", data[1024:])
documents, text = [], bytearray()
added = {t["id"]: t["content"] for t in tokenizer["added_tokens"]}
for i in ids:
    if added.get(i) == "<|end|>":
        documents.append(text.decode())
        text = bytearray()
    elif i in added:
        text += added[i].encode()
    else:
        text += bytes(byte[c] for c in vocabulary[i])
lines = [json.loads(line)["text"] for line in open("lines.jsonl") if line.strip()]
assert documents == ["the dog\n", open("large.txt").read(), *lines] and not text
P

# --- interrupted, it goes on where it was, and ends with the same bytes ---
for _ in 1 2 3; do cat large.txt; done >three.txt
attempt 0 tokenize "$tokenizer" three.txt small.txt --end '<|end|>' -o whole
code=0
(ulimit -f 10000 && exec "${anneal[@]}" tokenize "$tokenizer" three.txt small.txt --end '<|end|>' -o parts) >out 2>err || code=$?
[ $code = 1 ] && grep -q 'parts.partial: cannot be written: File too large' err || fail 'a limit on the size of files'
[ ! -e parts ] && cp parts.partial kept.partial && cp parts.progress kept.progress || fail 'no place was kept'
attempt 0 tokenize "$tokenizer" three.txt small.txt --end '<|end|>' -t 3 -o parts
grep -q 'continuing parts.partial after' err && cmp whole parts || fail 'it does not go on where it was'
# Another end token is another job, and a file that lacks what the place counts is none.
attempt 0 tokenize "$tokenizer" three.txt small.txt --end '<|begin|>' -o kept
! grep -q continuing err || fail 'it goes on with another job'
mv kept other && mv parts parts.done
"${anneal[@]}" tokenize "$tokenizer" three.txt small.txt --end '<|end|>' -t 2 -o parts >/dev/null 2>&1 &
process=$!
until_true 60 eval '[ -e parts.progress ] || [ -e parts ]' || fail 'nothing is written down'
kill -KILL $process 2>/dev/null || true
wait $process 2>/dev/null || true
process=
[ -e parts ] || attempt 0 tokenize "$tokenizer" three.txt small.txt --end '<|end|>' -o parts
cmp whole parts || fail 'a kill changes the tokens'

# --- messages ---
printf '{"text": "a"}\n{"text": 7}\n' >broken.jsonl
attempt 1 tokenize "$tokenizer" large.txt broken.jsonl --end none -o again
grep -q 'broken.jsonl: byte 23: a string is expected here' err || fail 'a record without a text'

printf '{"body": "a"}\n' >other.jsonl
attempt 1 tokenize "$tokenizer" other.jsonl --end none -o x1
grep -q "other.jsonl: byte 0: the record has no 'text'; --key names the member" err || fail 'a record without the key'
attempt 0 tokenize "$tokenizer" other.jsonl --end none --key body -o x2
attempt 1 tokenize "$tokenizer" small.txt --end none -o x2
grep -q 'x2 exists; remove it' err || fail 'a file that exists'
attempt 2 tokenize "$tokenizer" small.txt -o x3
grep -q 'name it with --end TOKEN, or say --end none' err || fail 'no end token'
attempt 2 tokenize "$tokenizer" small.txt -o x3 --end '<eos>'
grep -q "the tokenizer has no token '<eos>'" err || fail 'an unknown end token'
attempt 2 tokenize "$tokenizer" small.txt --end none
attempt 2 tokenize "$tokenizer" --end none -o x3
attempt 1 tokenize "$tokenizer" missing.txt --end none -o x3
grep -q 'missing.txt: cannot be looked at' err || fail 'a missing file'
attempt 1 tokenize small.txt small.txt --end none -o x3
grep -q 'small.txt: byte 0: an object is expected here' err || fail 'a tokenizer that is none'

# --- a run reads it ---
cat >run.yaml <<'Y'
run: {dir: run, steps: 2}
model: {type: gpt2, layers: 1, width: 8, heads: 1, vocabulary: 512, context: 8}
data: {train: {type: tokens, path: tokens.1}}
batch: {global: 2}
Y
attempt 0 train run.yaml
# --- training: the same bytes on any threads and for any order; what was made is read again ---
attempt 2 tokenize --train small.txt --to t.json
grep -q -- '--vocabulary N is missing' err || fail 'the vocabulary is needed'
attempt 2 tokenize --train small.txt --vocabulary 300
grep -q -- '--to FILE is missing' err || fail 'the file is needed'
attempt 2 tokenize --train small.txt --vocabulary 300 --to t.json -o x
grep -q -- '--output has no effect with --train' err || fail 'an option that nothing obeys'
attempt 2 tokenize "$tokenizer" small.txt -o x --vocabulary 300
grep -q -- '--vocabulary has no effect without --train' err || fail 'an option that nothing obeys'
attempt 2 tokenize --train small.txt --vocabulary 200 --to t.json
grep -q 'must have 256' err || fail 'a small vocabulary'
attempt 0 tokenize --train large.txt lines.jsonl --vocabulary 320 --to one.json --special '<|endoftext|>' -t 1
grep -q '^one.json: 3.. tokens, from .* documents$' out || fail "what was made: $(cat out)"
attempt 0 tokenize --train lines.jsonl large.txt --vocabulary 320 --to two.json --special '<|endoftext|>' -t 3
cmp one.json two.json || fail 'threads or the order of files change the tokenizer'
attempt 1 tokenize --train small.txt --vocabulary 300 --to one.json
grep -q 'one.json exists' err || fail 'a file is overwritten'
attempt 0 tokenize --train small.txt --vocabulary 300 --to few.json
grep -q 'fewer tokens than the 300' err || fail 'nothing says that there are fewer'
attempt 0 tokenize one.json large.txt --end '<|endoftext|>' -o own.tokens
[ $(($(stat -c %s own.tokens) / 2)) -lt $(($(stat -c %s large.txt) / 2)) ] || fail 'the tokens are not longer than bytes'

# --- the tokenizer beside the tokens: the run knows its vocabulary, and prompts are texts, wherever the data is ---
for _ in $(seq 200); do printf 'a line and a line and one more line, and so it goes on and on\n'; done >poem.txt
attempt 0 tokenize --train poem.txt --vocabulary 300 --to poem.json --special '<|endoftext|>'
attempt 0 tokenize poem.json poem.txt -o poem.bin # the end token is the usual one
cmp poem.json poem.bin.tokenizer/tokenizer.json || fail 'the tokenizer does not lie beside the tokens'
grep -q '"eos_token": "<|endoftext|>"' poem.bin.tokenizer/tokenizer_config.json || fail 'the end token was not written down'
cat >poem.yaml <<Y
model: {type: gpt2, layers: 1, heads: 2, width: 32, context: 16}
data: {train: {type: tokens, path: poem.bin}}
batch: {global: 8}
optimizer: {lr: 5e-3}
run: {steps: 200, dir: poem}
Y
attempt 0 train poem.yaml
attempt 0 train poem.yaml --set run.dir=stated --set model.vocabulary=279
cmp <(field poem/summary.json "d['state_hash']") <(field stated/summary.json "d['state_hash']") || fail 'the default vocabulary is another model'
mkdir away && mv poem.bin poem.bin.tokenizer poem.json away && mv poem moved
attempt 0 generate moved --prompt 'one more' --max-tokens 6
# Only this word follows in the poem. What comes after it depends on the level of instructions, at which few steps end
# elsewhere.
[[ "$(cat out)" == ' line'* ]] || fail 'not how the poem goes on'
cp out from-run
attempt 0 export moved --to gguf poem.gguf
! grep -q warning err || fail "$(cat err)"
attempt 0 generate poem.gguf --prompt 'one more' --max-tokens 6
cmp out from-run || fail 'another text from a GGUF file'
attempt 0 export moved --to hf poem-hf
[ -e poem-hf/tokenizer.json ] || fail 'the tokenizer did not go along'
rm -r moved/tokenizer
attempt 0 export moved --to gguf mute.gguf
grep -q 'warning: mute.gguf has no tokenizer, because none is known for this run' err || fail "it does not say what is missing: $(cat err)"
echo "tokenize: all as it should be"
