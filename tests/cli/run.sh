#!/usr/bin/env bash
# The command `anneal`: answers on standard output, complaints on standard error, exit codes 0, 1 and 2.
#   run.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
tree=$1
graph=$tree/examples/own-graph.ang

# run CODE ARGUMENT...: the command must end with CODE; what it wrote is in out and err
run() {
    local expected=$1
    attempt "$@"
    if [ "$expected" = 0 ]; then
        [ ! -s err ] || failed "expected nothing on standard error"
    else
        [ ! -s out ] || failed "expected nothing on standard output"
    fi
}
says() { grep -qF -- "$1" out || failed "standard output does not say: $1"; }
complains() { grep -qF -- "$1" err || failed "standard error does not say: $1"; }
number() { sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}$/\1/p" out; }

# --- help, from the tables ---
for arguments in --help -h help; do
    run 0 "$arguments"
    for name in plan bench graph version help; do says "  $name "; done
done
run 0 help plan
mv out help-plan
run 0 plan --help
cmp -s out help-plan || failed "'help plan' and 'plan --help' differ"
for words in '--batch N' '--seq N' '--json' '--svg' '--policy' '--dump PASS' '--precision f32|f64|bf16|f16' \
    '--program' gpt2-1.5b; do
    says "$words"
done
run 0 graph --help
says --dot

# --- version ---
run 0 version
says 'anneal  0.'
mv out version
run 0 --version
cmp -s out version || failed "'--version' and 'version' differ"
run 0 version --json
says '"anneal": "0.'
says '"onednn": '

# --- plan ---
run 0 plan gpt2-124m --batch 4 --seq 256
for words in 'batch 4, tokens 256, f32' weights gradients optimizer activations scratch inputs peak 124,439,808 GFLOP; do
    says "$words"
done
run 0 plan gpt2-124m --batch 4 --seq 256 --json
sum=0
for kind in weights gradients optimizer activations scratch inputs tables; do
    bytes=$(number ${kind}_bytes)
    [ -n "$bytes" ] || failed "no integer ${kind}_bytes"
    sum=$((sum + bytes))
done
[ "$(number peak_bytes)" = $sum ] || failed "peak_bytes is not $sum, the sum of all kinds"
[ "$(number parameters)" = 124439808 ] || failed "wrong number of parameters"
f32=$(number weights_bytes)
run 0 plan gpt2-124m --batch 4 --seq 256 --json --precision f64
[ "$(number weights_bytes)" = $((2 * f32)) ] || failed "f64 weights are not twice as large as f32's"
run 0 plan gpt2-124m --json --program prediction
[ "$(number gradients_bytes)" = 0 ] || failed "prediction has no gradients"
run 0 plan gpt2-1.5b --svg
says '<svg xmlns='
says '</svg>'
[ "$(stat -c %s out)" -lt 2000000 ] || failed "the picture is larger than 2 MB"
run 0 plan "$graph" --batch 64 --svg
says 'own-graph.ang: memory of a training step'
run 0 plan "$graph" --batch 64 --policy
says 'matmul                    low '
run 0 plan "$graph" --batch 64 --dump=autodiff
says 'ang 1 dump'
says 'tanh_diff'
run 0 plan "$graph" --symbol batch=64
says 'batch 64'

run 0 plan gpt2-124m --batch 4 --seq 256 --json --precision bf16
says '"precision": "bf16"'
[ "$(number weights_bytes)" -gt "$f32" ] || failed "copies in bf16 are not among the weights"

# --- bench ---
run 0 bench "$graph" --batch 8 --passes 3
for words in 'own-graph.ang, training: batch 8;' 'passes: 3' '  best ' '  median ' ' samples/s' FLOP/s; do
    says "$words"
done
run 0 bench "$graph" --batch 8 --passes 3 --threads 1 --isa base --profile trace.json
for words in '1 thread, base' 'the roof, measured just now: f32 ' 'of roof' 'matmul ' 'between nodes' 'pass  '; do
    says "$words"
done
instructions=$(sed -n 's/^pass  *\([0-9]*\) .*/\1/p' out)
python3 -m json.tool trace.json >trace.pretty || failed "the trace is not JSON"
[ "$(grep -c '"ph": "X"' trace.pretty)" = "$instructions" ] || failed "the trace has not a bar for each node"
for key in op kernel path flops bytes GF/s GB/s ts dur; do
    grep -q "\"$key\": " trace.pretty || failed "the trace has no '$key'"
done
run 0 bench "$graph" --batch 8 --passes 2 --profile trace.json --json
python3 -m json.tool out >/dev/null || failed "--json is not JSON"
for key in best_seconds median_units_per_second machine profile attainable_seconds; do says "\"$key\": "; done
run 0 bench "$graph" --batch 8 --passes 2 --precision bf16 --program evaluation --json
says '"program": "evaluation"'
says '"precision": "bf16"'

# --- graph ---
run 0 graph "$graph" --dot
says 'digraph "own-graph" {'
says 'label="residual"'
run 0 graph "$graph"
cp out again.ang
run 0 graph again.ang --ang
cmp -s out again.ang || failed "what is printed and read again is not the same"
run 0 graph gpt2-355m --ang
says 'h.23.mlp.c_proj.weight'

# --- wrong use ---
run 2
complains 'the command is missing'
run 2 paln
complains "there is no command 'paln'; did you mean 'plan'?"
run 2 --json plan
complains "the command must come before the option '"
run 2 help grpah
complains "; did you mean 'graph'?"
run 2 plan
complains 'PRESET|FILE.ang is missing'
run 2 plan gpt2-124
complains "; did you mean 'gpt2-124m'?"
run 2 plan config
complains '(file names of configs end in .yaml, those of graphs in .ang)'
run 2 plan nowhere.ang
complains "'nowhere.ang' cannot be read: No such file"
run 2 plan gpt2-124m more
complains "unexpected argument 'more'"
run 2 plan gpt2-124m --batsh 4
complains "there is no option '--batsh'; did you mean '--batch'?"
run 2 train c.yaml --lr 1e-3
complains "there is no option '--lr'; it is a key of the config: write --set optimizer.lr=VALUE"
run 2 train c.yaml --every 3
complains "there is no option '--every'"
run 2 plan gpt2-124m -b
complains "there is no option '-b'"
run 2 plan gpt2-124m --batch
complains '--batch needs an argument'
for number in 0 -1 4x '' 9223372036854775807 99999999999999999999; do
    run 2 plan gpt2-124m --batch "$number"
    complains "--batch takes a whole number of at least 1, not '$number'"
done
run 2 plan gpt2-124m --batch 4 --batch 5
complains '--batch was given twice'
run 2 plan gpt2-124m --json=yes
complains '--json takes no argument'
run 2 plan gpt2-124m --json --svg
complains '--json and --svg cannot be combined'
run 2 graph gpt2-124m --precision bf16
complains "is for 'anneal plan'; the parameters of a model are f32 or f64"
run 2 plan gpt2-124m --precision f31
complains "; did you mean 'f32'?"
run 2 plan "$graph" --precision f64
complains '--precision f64 works with presets only; a graph in a file states its own types'
run 2 plan gpt2-124m --program trainign
complains "; did you mean 'training'?"
run 2 plan gpt2-124m --dump=autodif
complains "there is no pass 'autodif'"
run 2 plan "$graph" --seq 5
complains "has no symbol 'tokens'"
run 2 plan "$graph" --symbol bach=5
complains "has no symbol 'bach'; did you mean 'batch'?"
run 2 plan "$graph" --symbol batch
complains "--symbol takes NAME=N, not 'batch'"
run 2 plan "$graph" --symbol batch=0
complains "--symbol: 'batch' takes a whole number of at least 1, not '0'"
run 2 bench "$graph" --pases 3
complains "; did you mean '--passes'?"
run 2 bench "$graph" --passes 0
complains "--passes takes a whole number of at least 1, not '"
run 2 bench "$graph" --isa avx51
complains "; did you mean 'avx512'?"
run 2 bench "$graph" --threads 0
complains "--threads takes a whole number of at least 1, not '"
run 2 bench "$graph" --profile nowhere/trace.json
complains "'nowhere/trace.json' cannot be written: No such file"
run 2 bench "$graph" --seq 5
complains "has no symbol 'tokens'"
run 2 bench gpt2-124
complains "; did you mean 'gpt2-124m'?"
run 2 version more
complains 'this command takes none'
sed 's/\[64,32\]/[64,33]/' "$graph" >wrong.ang
run 2 plan wrong.ang --batch 4
complains 'f32[64,33]'
printf 'ang 1\nsymbol rows\n%%0 = input(name="x") : f32[rows,2]\noutput(%%0, name="y")\n' >other.ang
run 2 plan other.ang
complains "' has a symbol 'rows': set its largest value with --symbol rows=N"
run 0 plan other.ang --symbol rows=3
says prediction
run 2 plan other.ang --symbol rows=3 --program training
complains 'no loss'
run 0 bench other.ang --symbol rows=3 --passes 2
says 'passes/s'

# --- a name that is no text: JSON and SVG stay valid ---
printf 'ang 1\n%%0 = input(name="x") : f32[2]\n%%1 = tanh(%%0)\noutput(%%1, name="y")\n' >$'odd "<&\xff\x01.ang'
run 0 plan $'odd "<&\xff\x01.ang' --json
says $'"model": "odd \\"<&\xef\xbf\xbd\\u0001.ang"'
run 0 plan $'odd "<&\xff\x01.ang' --svg
says $'odd &quot;&lt;&amp;\xef\xbf\xbd\xef\xbf\xbd.ang'

# --- config ---
cat >run.yaml <<'YAML'
model: {type: mlp, hidden: [8]}
data: {train: {type: csv, path: table.csv}}
batch: {global: 16}
YAML
run 0 config show run.yaml
says '  global: 16  '
says '# file'
says '  lr: 1e-4  '
mv out shown.yaml
run 0 config show shown.yaml # what it shows is a config too
run 0 config show run.yaml --set optimizer.lr=3e-4
says '  lr: 3e-4  '
says '# --set'
run 0 config schema
says '"$schema"'
run 0 config keys
says 'optimizer.lr'
run 0 config keys --json
says '"path": "batch.global"'
sed 's/global/globl/' run.yaml >typo.yaml
run 2 config show typo.yaml
complains "typo.yaml:3:9: unknown key 'batch.globl'; did you mean 'global'?"
run 2 config show run.yaml --set batch.globl=3
complains '--set batch.globl=3'
run 2 config show no-such.yaml
complains 'no-such.yaml'
run 2 config shw run.yaml
complains "'config show'"

# --- failures ---
code=0
command=(version '>/dev/full')
"${anneal[@]}" version >/dev/full 2>err || code=$?
: >out
[ "$code" = 1 ] || failed "a full disk must be a failure"
complains 'could not be written'
run 1 bench "$graph" --batch 8 --passes 1 --profile /dev/full --json
complains "'/dev/full' could not be written"

echo "cli: all as expected"
