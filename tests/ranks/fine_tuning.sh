#!/usr/bin/env bash
# Fine-tuning is exact: LoRA on conversations, packed and not, on a file of tokens, and on a base in q8_0 ends with one
# state_hash, whatever takes its steps.
#   fine_tuning.sh SOURCE-TREE [KILLS] [MPI...]       50 kills, openmpi mpich
# Threads, threads that load, recompute, 1, 2 and 4 ranks by `none` and `full`; and runs that are killed until there
# were KILLS of them, each start with other threads or ranks. COMPARE=off leaves all but the kills out, KINDS='chat
# q8_0' all other kinds. Run by hand; docs/evidence/fine-tuning.md has the counts. Takes some minutes.
source "$(dirname "$0")/../cli/preamble.sh"
tree=$1 wanted=${2:-50}
shift $(($# < 2 ? $# : 2))
libraries=("${@:-openmpi}")
[ $# -gt 0 ] || libraries=(openmpi mpich)
export OMP_WAIT_POLICY=passive
# All processes of a start, which have its name in their environments: MPICH puts each rank into a session of its own.
started() { { grep -slz "^FINE_TUNING_START=$1\$" /proc/[0-9]*/environ || true; } | cut -d/ -f3; }
at_end() { [ -z "$process" ] || kill -KILL $(started "$$.$starts") 2>/dev/null || true; }
hash_of() { field "$1/summary.json" 'd["state_hash"]'; }

python3 - "$tree" <<'END'
import array, json, pathlib, random, struct, sys
rng = random.Random(3)
golden = pathlib.Path(sys.argv[1]) / "tests/golden/finetune"
with open("chat.jsonl", "w") as chat:
    for i in range(160):
        turns = [("user", f"What is {i % 7} and {i % 5}?"), ("assistant", f"It is {i % 7 + i % 5}.")] * (1 + i % 3)
        chat.write(json.dumps({"messages": [{"role": role, "content": content} for role, content in turns]}) + "\n")
vocabulary = 512
array.array("H", [i * i % 23 for i in range(4000)]).tofile(open("tokens.bin", "wb"))
# a small published model with random weights
width, hidden, heads, kv = 32, 64, 4, 2
names = [("model.embed_tokens.weight", [vocabulary, width]), ("model.norm.weight", [width])]
for i in range(2):
    layer = f"model.layers.{i}."
    names += [(layer + "input_layernorm.weight", [width]), (layer + "post_attention_layernorm.weight", [width]),
              (layer + "self_attn.q_proj.weight", [width, width]), (layer + "self_attn.k_proj.weight", [width * kv // heads, width]),
              (layer + "self_attn.v_proj.weight", [width * kv // heads, width]), (layer + "self_attn.o_proj.weight", [width, width]),
              (layer + "mlp.gate_proj.weight", [hidden, width]), (layer + "mlp.up_proj.weight", [hidden, width]), (layer + "mlp.down_proj.weight", [width, hidden])]
header, data = {}, b""
for name, shape in names:
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    part = struct.pack(f"<{count}f", *[rng.gauss(0, 0.1) if len(shape) > 1 else 1.0 for _ in range(count)])
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
    data += part
text = json.dumps(header).encode()
pathlib.Path("base").mkdir()
pathlib.Path("base/model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
pathlib.Path("base/config.json").write_text(json.dumps(dict(
    architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=width, intermediate_size=hidden, num_hidden_layers=2, num_attention_heads=heads,
    num_key_value_heads=kv, vocab_size=vocabulary, max_position_embeddings=256, tie_word_embeddings=True)))
for name, source in (("packed", f"{{type: chat, path: chat.jsonl, tokenizer: {golden}/bpe}}"), ("chat", f"{{type: chat, path: chat.jsonl, tokenizer: {golden}/bpe, packing: off}}"),
                     ("tokens", "{type: tokens, path: tokens.bin}"), ("q8_0", "{type: tokens, path: tokens.bin}")):
    base = ", base: q8_0" if name == "q8_0" else ""
    pathlib.Path(name + ".yaml").write_text(
        f"run: {{dir: {name}, steps: 40}}\nmodel: {{from: base, context: 64}}\nlora: {{targets: [q_proj, v_proj, down_proj], rank: 4, dropout: 0.1{base}}}\n"
        f"data: {{train: {source}, split: {{eval: 10%}}}}\nbatch: {{global: 4, micro: 1, leaves: 4}}\noptimizer: {{lr: 1e-2}}\neval: {{every: 10 steps}}\n")
END

declare -A expected
read -ra kinds <<<"${KINDS:-packed chat tokens q8_0}"
compared=0
# same NAME FOLDER WORDS: the run in FOLDER must have the hash of NAME
same() {
    [ "$(hash_of "$2")" = "${expected[$1]}" ] || fail "$1, $3: another hash"
    compared=$((compared + 1))
    rm -rf "$2"
}
for name in "${kinds[@]}"; do
    began=$(date +%s%N)
    attempt 0 train $name.yaml --threads 1
    lasts=$((($(date +%s%N) - began) / 1000000)) # milliseconds
    expected[$name]=$(hash_of $name)
    [ "${COMPARE:-on}" = on ] || continue
    for change in '--threads 2' '--set data.threads=0' '--set data.threads=3' '--set train.recompute.mode=full' '--set save.every=3 steps'; do
        key=${change%% *} value=${change#* }
        attempt 0 train $name.yaml --set run.dir=other "$key" "$value"
        same $name other "$change"
    done
    for mpi in "${libraries[@]}"; do
        for ranks in 1 2 4; do
            for shard in none full; do
                "$tree/tests/comm/mpirun.sh" "$mpi" $ranks "${anneal[@]}" train $name.yaml --set run.dir=other --set ranks.shard=$shard --set ranks.threads=1 >out 2>err ||
                    fail "$name on $ranks ranks of $mpi, $shard: it ended with $?"
                same $name other "$ranks ranks of $mpi, $shard"
            done
        done
    done
    echo "$name: ${expected[$name]}, $compared runs so far have the hash of their kind"
done
[ $(printf '%s\n' "${expected[@]}" | sort -u | wc -l) = ${#kinds[@]} ] || fail 'two kinds have one hash'

# Kills: at any moment, between the start of a process and its end.
kills=0 runs=0 starts=0
while [ $kills -lt "$wanted" ]; do
    for name in "${kinds[@]}"; do
        runs=$((runs + 1))
        code=1
        until [ $code = 0 ]; do
            starts=$((starts + 1))
            case $((starts % 4)) in
            0) launch=("${anneal[@]}" train $name.yaml --threads 1) ;;
            1) launch=("${anneal[@]}" train $name.yaml --threads 2) ;;
            2) launch=("$tree/tests/comm/mpirun.sh" "${libraries[0]}" 2 "${anneal[@]}" train $name.yaml --set ranks.shard=full --set ranks.threads=1) ;;
            3) launch=("$tree/tests/comm/mpirun.sh" "${libraries[-1]}" 2 "${anneal[@]}" train $name.yaml --set ranks.shard=none --set ranks.threads=1) ;;
            esac
            FINE_TUNING_START=$$.$starts setsid "${launch[@]}" --set run.dir=killed --set save.every='2 steps' --set save.keep_last=2 >out 2>err &
            process=$!
            victims=
            if [ $kills -lt "$wanted" ]; then
                wait_ms=$((RANDOM % lasts + lasts / 3))
                sleep "$((wait_ms / 1000)).$(printf '%03d' $((wait_ms % 1000)))"
                victims=$(started $$.$starts)
                [ -z "$victims" ] || kill -KILL $victims 2>/dev/null || true
            fi
            code=0
            { wait $process; } 2>/dev/null || code=$?
            [ $code = 0 ] || [ -n "$victims" ] || fail "$name: a start that nobody killed ended with $code"
            [ $code = 0 ] || kills=$((kills + 1))
            process=
            is_over() { [ -z "$(started $$.$starts)" ]; }
            until_true 30 is_over || fail "ranks that were killed are still there"
        done
        same $name killed "after kills"
        echo "$name: the same hash after $kills kills in all, in $starts starts"
    done
done
echo "$compared runs compared, $kills kills in $starts starts of $runs runs"
