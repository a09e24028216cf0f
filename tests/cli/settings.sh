#!/usr/bin/env bash
# generation_config.json of a published model: its settings are the defaults of anneal generate, options win, and a line
# says where a value came from.
source "$(dirname "$0")/preamble.sh"
says() { grep -qF -- "$1" err || failed "standard error does not have: $1"; }
silent() { ! grep -q 'Settings of' err || failed 'a line about settings that have no effect'; }

cp -r "$(dirname "$0")/../golden/pretrained/smollm2" model
generate=(generate model --tokens 3,1,4 --max-tokens 12)
settings() { printf '%s' "$1" >model/generation_config.json; }

attempt 0 "${generate[@]}"
silent
cp out greedy
attempt 2 "${generate[@]}" --top-k 3
attempt 0 "${generate[@]}" --temperature 3 --top-k 50
cp out drawn
cmp -s greedy drawn && fail 'the model says the same with a temperature: this test sees nothing'
attempt 0 "${generate[@]}" --repetition-penalty 2
cp out penalized
cmp -s greedy penalized && fail 'the model says the same with a penalty: this test sees nothing'

settings '{"do_sample": true, "temperature": 3.0, "eos_token_id": [0, 2], "num_beams": 4}'
attempt 0 "${generate[@]}"
cmp out drawn || failed 'the settings of the folder are not used'
says 'Settings of generation_config.json: temperature 3, top-k 50. Options change them; with --temperature 0 the most likely token is taken.'
says 'Settings of generation_config.json that have no effect here: num_beams.'
attempt 0 "${generate[@]}" --temperature 0
cmp out greedy || failed 'an option does not win'
attempt 0 "${generate[@]}" --top-k 3
says 'Settings of generation_config.json: temperature 3. Options'
attempt 0 inspect model
grep -qF '  generation   temperature 3, top-k 50, ends at token 0, 2; without effect: num_beams' out || failed 'inspect does not show the settings'

settings '{"do_sample": true, "temperature": 3.0, "top_k": 9223372036854775807}'
attempt 0 "${generate[@]}"
cmp out drawn || failed 'a top_k above the vocabulary is not all of it'
settings '{"do_sample": false, "temperature": 3.0, "top_p": 0.1}'
attempt 0 "${generate[@]}"
cmp out greedy || failed 'a temperature counts without do_sample'
silent
attempt 2 "${generate[@]}" --top-k 3
settings '{"repetition_penalty": 2.0}'
attempt 0 "${generate[@]}"
cmp out penalized || failed 'the penalty of the folder is not used'
says 'Settings of generation_config.json: repetition-penalty 2. Options change them.'

# Tokens that end a text: those of the file, and without them that of the tokenizer. Tokens of this model are the
# letters a to x.
python3 - "$(cat greedy)" <<'END'
import json, sys
letters = {chr(97 + i): i for i in range(24)}
json.dump({"model": {"type": "BPE", "vocab": letters, "merges": []}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}, "decoder": {"type": "ByteLevel"}}, open("model/tokenizer.json", "w"))
tokens = [int(n) for n in sys.argv[1].split()]
end = next(i for i, t in enumerate(tokens) if i > 0 and t not in tokens[:i])  # the first new one
json.dump({"eos_token": chr(97 + tokens[0])}, open("model/tokenizer_config.json", "w"))
json.dump({"eos_token_id": [23 if 23 not in tokens else 22, tokens[end]]}, open("model/generation_config.json", "w"))
open("expected", "w").write("".join(chr(97 + t) for t in tokens[: end + 1]))
open("first", "w").write(chr(97 + tokens[0]))
END
printf 'dbe\n' >prompts
attempt 0 generate model --input prompts --max-tokens 12
[ "$(field out 'd["text"] + " " + d["end"]')" = "$(cat expected) stop" ] || failed 'the text does not end at the tokens of generation_config.json'
rm model/generation_config.json
attempt 0 generate model --input prompts --max-tokens 12
[ "$(field out 'd["text"] + " " + d["end"]')" = "$(cat first) stop" ] || failed "the text does not end at the tokenizer's token"

settings '{"top_p": 7}'
attempt 1 "${generate[@]}"
says 'generation_config.json: top_p is 7, but it must be above 0 and at most 1'
attempt 0 inspect model
grep -q '  generation   unknown: .*top_p is 7' out || failed 'inspect does not say what is wrong'
echo 'settings: passed'
