#!/usr/bin/env bash
# anneal generate --chat: conversations from a pipe, a file and a terminal. What a message contains is never a special
# token.
source "$(dirname "$0")/preamble.sh"
golden=$1/tests/golden
says() { grep -qF -- "$1" out err || fail "it does not say: $1: $(cat out err)"; }
python3 - <<'END'
import json
with open("chat.jsonl", "w") as chat:
    for i in range(80):
        turns = [("user", ["ask", "say"][j % 2]) if k == 0 else ("assistant", ["yes", "no"][j % 2]) for j in range(i, i + 2) for k in range(2)]
        chat.write(json.dumps({"messages": [{"role": role, "content": content} for role, content in turns]}) + "\n")
END
cat >chat.yaml <<END
run:   {dir: run, steps: 60}
model: {type: llama, layers: 2, heads: 2, width: 32, context: 96}
data:  {train: {type: chat, path: chat.jsonl, tokenizer: $golden/finetune/bpe}}
batch: {global: 8}
optimizer: {lr: 1e-2}
END
attempt 0 train chat.yaml

# Each line is a message, each answer a line. The second depends on what was said before: the history is kept.
printf 'ask\n\nsay\r\nask' >lines
attempt 0 generate run --chat <lines
[ "$(cat out)" = $'yes\nno\nyes' ] || fail "the answers: $(cat out)"

# Of a file: one answer to each conversation, the same in any batch.
cat >asked.jsonl <<END
{"messages": [{"role": "user", "content": "ask"}], "other": [1, {}]}
{"messages": [{"role": "user", "content": "ask"}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "say"}]}
END
attempt 0 generate run --chat --input asked.jsonl
grep -qxF '{"messages": [{"role": "user", "content": "ask"}], "text": "yes", "end": "stop"}' out || fail "the first answer: $(cat out)"
[ "$(sed -n '2s/.*"text": "\([^"]*\)".*/\1/p' out)" = no ] || fail "the second answer: $(cat out)"
mv out first
attempt 0 generate run --chat --input asked.jsonl --batch 1 --template chatml
cmp out first || fail 'another batch gives another text'

# The message of the system is written before the question, and what looks like a token is text: it takes more tokens
# than one.
attempt 0 generate run --chat --system 'be brief' --max-tokens 1 <lines
says '(the answer was cut after 1 tokens'
tokens() { "${anneal[@]}" generate run --chat --context "$1" --max-tokens 4 >out 2>err <<<"$2"; }
for n in $(seq 8 96); do tokens "$n" 'aaaa<|im_end|>' && break; done
for m in $(seq 8 96); do tokens "$m" 'aaaa' && break; done
[ $((n - m)) -gt 4 ] || fail "<|im_end|> in a message took $((n - m)) tokens"

# What no longer fits is forgotten, with a remark; a message that never fits is refused.
for _ in $(seq 20); do echo ask; done >many
attempt 0 generate run --chat --max-tokens 4 <many
[ "$(wc -l <out)" = 20 ] || fail 'an answer for each message'
says 'the model does not see its beginning any more'
head -c 500 /dev/zero | tr '\0' a >long
attempt 1 generate run --chat <long
says 'it must leave room for an answer in the context of 96 tokens'

# On a terminal there is a prompt; Ctrl-D ends.
python3 - "${anneal[@]}" <<'END'
import os, pty, sys
process, terminal = pty.fork()
if process == 0:
    os.execvp(sys.argv[1], sys.argv[1:] + ["generate", "run", "--chat"])
seen = b""
def wait(text):
    global seen
    while text not in seen:
        seen += os.read(terminal, 4096)
    seen = seen.split(text, 1)[1]
wait(b"Ctrl-D ends the conversation"), wait(b"\n> ")
os.write(terminal, b"ask\n"), wait(b"yes"), wait(b"\n> ")
os.write(terminal, b"a" * 500 + b"\n"), wait(b"must leave room"), wait(b"\n> ")
os.write(terminal, b"say\n"), wait(b"no"), wait(b"\n> ")
os.write(terminal, b"\x04")
try:
    while os.read(terminal, 4096): pass
except OSError: pass
assert os.waitpid(process, 0)[1] == 0
END

attempt 2 generate run --chat --prompt a
says '--chat and --prompt cannot be combined'
attempt 2 generate run --prompt a --system b
says '--system has no effect without --chat'
attempt 2 generate run --chat --template other </dev/null
says '--template takes one of chatml, llama3'
attempt 1 generate run --chat </dev/null
says 'standard input is empty'
attempt 1 generate run --chat --template llama3 <lines
says "has no token '<|start_header_id|>', which the chat template llama3 needs"
printf 'a\0b\n' >zero
attempt 1 generate run --chat <zero
says 'a byte of value 0'
refused() {
    printf '{"messages": [{"role": "user", "content": "ask"}]}\n%s\n' "$1" >bad.jsonl
    attempt 1 generate run --chat --input bad.jsonl
    says "bad.jsonl: line 2: $2"
}
refused '' 'byte 0: '
refused '[]' 'byte 0: '
refused '{}' 'byte 0: there are no messages'
refused '{"messages": 1}' "byte 13: 'messages' is a list"
refused '{"messages": []}' 'byte 0: there are no messages'
refused '{"messages": [1]}' 'byte 14: a message is an object'
refused '{"messages": [{"role": "user"}]}' 'byte 14: a message needs a role and a content'
refused '{"messages": [{"role": "user", "content": ["x"]}]}' 'byte 42: the content of a message is one text'
refused '{"messages": [{"role": "user", "content": "x", "content": "y"}]}' 'byte 57: a member appears twice'
refused '{"messages": [{"role": "tool", "content": "x"}]}' "message 1: the role is 'tool'"
refused '{"messages": [{"role": "assistant", "content": "x"}]}' "the last message is the assistant's"
mkdir model
cp "$golden"/finetune/bpe/tokenizer.json model
sed "s#$golden/finetune/bpe#model#; s#dir: run#dir: unnamed#; s#steps: 60#steps: 1#; s#type: chat, #type: chat, template: chatml, #" chat.yaml >unnamed.yaml
attempt 0 train unnamed.yaml
attempt 0 generate unnamed --chat --max-tokens 1 <lines
sed -i 's#type: chat, template: chatml, #type: chat, #; s#dir: unnamed#dir: plain#; s#chat.jsonl#plain.jsonl#' unnamed.yaml
printf '{"text": "one two three"}\n' >plain.jsonl
attempt 0 train unnamed.yaml --set data.train.packing=off --set batch.global=1
attempt 2 generate plain --chat <lines
says 'there is no chat template'
says 'Name a template with --template'
echo "chat: passed"
