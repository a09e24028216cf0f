#!/usr/bin/env bash
# A stack of 64 kB is enough for every kind of model and of data, and for every command. A pattern that would need more
# is refused.
set -euo pipefail
rm -rf run && mkdir run && cd run
for i in $(seq 1 96); do echo "$((i % 11)).5,$((i % 7)).25,$((i % 3))"; done > data.csv
cut -d, -f1,2 data.csv > inputs.csv
for i in $(seq 1 60); do printf 'the quick brown fox jumps over the lazy dog. '; done > poem.txt
{ printf '\0\0\10\3\0\0\0\100\0\0\0\14\0\0\0\14' && head -c 9216 /dev/urandom; } > images.idx # 64 of 12 × 12
{ printf '\0\0\10\1\0\0\0\100' && for i in $(seq 16); do printf '\0\1\2\3'; done; } > labels.idx
for i in $(seq 100); do printf '\1\0\2\0\3\0\4\0'; done > tokens.bin
{ printf 'MMIDIDX\0\0\1\0\0\0\0\0\0\0\10\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0' # one sequence, two borders
  printf '\220\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0'; } > tokens.idx

# config NAME MODEL DATA [MORE]
config() {
    printf 'run: {dir: %s, steps: 3}\nbatch: {global: 8}\nsave: {every: 2 steps}\nmodel: {%s}\ndata: {%s}\n%s\n' \
        "$1" "$2" "$3" "${4:-}" > "$1.yaml"
}
idx='{type: idx, path: images.idx, labels: labels.idx}'
csv='{type: csv, path: data.csv, header: off, targets: ["3"], classes: on, dtype: f64}'
text='train: {type: text, path: poem.txt, tokens: chars, part: 0%..80%}, eval: {type: text, path: poem.txt, tokens: chars, part: 80%..100%}'
sizes='layers: 2, heads: 2, width: 32, context: 16'
mlp='type: mlp, hidden: [64, 64], batch_norm: on, dropout: 0.1, activation: gelu'
config mlp "$mlp" "train: $csv, eval: $csv" 'train: {precision: f64}'
config cnn 'type: cnn, filters: [8, 16], hidden: 16, batch_norm: on' "train: $idx, eval: $idx"
config gpt2 "type: gpt2, $sizes, dropout: 0.1" "$text"
config gpt2-f64 "type: gpt2, $sizes" "$text" 'train: {precision: f64}'
config gpt2-bf16 "type: gpt2, $sizes" "$text" 'train: {precision: bf16, recompute: block}'
config llama "type: llama, $sizes, kv_heads: 1" "$text"
config megatron "type: gpt2, $sizes, vocabulary: 16" 'train: {type: megatron, path: tokens, documents: apart}'
open=$(printf '%200s' '')
config nested "$mlp" "train: $csv" "optimizer: {groups: [{match: '${open// /(}hidden${open// /)}', lr_scale: 0.5}]}"

ulimit -s 64
export OMP_STACKSIZE=64k
run() { # EXPECTED-CODE ARGUMENT...
    local code=0 expected=$1
    shift
    "$ANNEAL_BIN"/anneal "$@" > out 2> err < /dev/null || code=$?
    [ "$code" = "$expected" ] || { echo "anneal $*: exit code $code"; tail -n 5 out err; exit 1; }
}
for threads in 1 2; do # one: all of it on the stack of the process
    export OMP_NUM_THREADS=$threads
    for name in mlp cnn gpt2 gpt2-f64 gpt2-bf16 llama megatron; do
        rm -rf "$name" && run 0 train "$name.yaml"
    done
done
for name in mlp cnn gpt2 llama; do
    run 0 eval "$name"
    run 0 inspect "$name"
    run 0 verify "$name"
    run 0 export "$name" --to "$name.safetensors"
    run 0 export "$name" --to torch "$name-torch"
    run 0 export "$name" --to onnx "$name.onnx"
    run 0 plan "$name.yaml"
    run 0 config show "$name.yaml"
    run 0 graph "$name.yaml"
    run 0 bench "$name.yaml"
    run 0 diff "$name" "$name.safetensors"
    run 0 plot "$name"
done
run 0 predict mlp --input inputs.csv --output out.csv
run 0 predict cnn --input images.idx --output out.npy
run 0 doctor
run 0 manual
run 2 train nested.yaml
grep -q 'parentheses are too deeply nested' err
code=0
timeout 2 "$ANNEAL_BIN"/anneal demo char-gpt > out 2> err < /dev/null || code=$? # copies its files first
[ "$code" -lt 128 ] || { echo "anneal demo: exit code $code"; exit 1; }
