#!/usr/bin/env bash
# What `anneal train` says to mistakes in configs, data and folders: the exact words, the exit code, and that no step
# was taken.
#   mistakes.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
tree=$1
export OMP_NUM_THREADS=1
count=0

base='run: {dir: run, steps: 3}
model: {type: mlp, hidden: [8]}
data: {train: {type: csv, path: rows.csv}}
batch: {global: 8}
optimizer: {lr: 1e-3}'

# with LINE...: c.yaml is the base with these sections in the place of its own
with() {
    local text=$base line
    for line; do
        text=$(grep -v "^${line%%:*}:" <<<"$text" || true)$'\n'$line
    done
    printf '%s\n' "$text" >c.yaml
}

# expect CODE MESSAGE COMMAND...: the command ends with CODE and says MESSAGE, all of it and nothing else
expect() {
    local code=0 wanted=$1 message=$2
    shift 2
    "$@" >out 2>err || code=$?
    count=$((count + 1))
    if [ "$code" != "$wanted" ] || [ "$(cat err)" != "$message" ]; then
        printf 'FAILED: %s\n--- config\n%s\n--- expected %s\n%s\n--- said %s\n%s\n' "$*" "$(cat c.yaml)" "$wanted" "$message" \
            "$code" "$(cat err)"
        exit 1
    fi
}
no_step() { ! grep -qs '"loss"' run/metrics.jsonl || { echo "FAILED: a step was taken, with $(cat c.yaml)"; exit 1; }; }

# mistake CODE MESSAGE LINE...: of a config that has these lines
mistake() {
    local wanted=$1 message=$2
    shift 2
    with "$@"
    rm -rf run
    expect "$wanted" "$message" "${anneal[@]}" train c.yaml
    no_step
}

# --- what the configs name ---
seq 1 40 | awk '{ printf "%d,%g,%g,%g\n", $1, $1 / 7, $1 % 5, $1 * 2 }' | sed '1i a,b,c,y' >rows.csv
seq 1 40 | awk '{ printf "%g,%g,%d\n", $1 / 7, $1 % 5, $1 % 10 }' | sed '1i a,b,k' >classes.csv
sed '5s/.*/4,oops,1,8/' rows.csv >text.csv
sed '6s/.*/5,1/' rows.csv >ragged.csv
sed '9s/.*/8,nan,3,16/' rows.csv >nan.csv
: >empty.csv
mkdir folder
gunzip -c "$tree/examples/mnist/mnist-10k-images-idx3-ubyte.gz" >images
gunzip -c "$tree/examples/mnist/mnist-10k-labels-idx1-ubyte.gz" >labels
head -c 100000 images >cut-images
head -c 5008 labels >cut-labels
{ head -c 4 labels; printf '\0\0\0\144'; tail -c +9 labels | head -c 100; } >few-labels || true
head -c 200000 "$tree/examples/mnist/mnist-10k-images-idx3-ubyte.gz" >cut.gz
head -c 4096 "$tree/examples/shakespeare/tinyshakespeare.txt" >some.txt
printf 'hello' >short.txt
printf 'abc' >odd.bin
for i in $(seq 0 1999); do n=$((i % 300)) && printf "\\x$(printf %02x $((n % 256)))\\x$(printf %02x $((n / 256)))"; done >tokens.bin

# --- configs: exit code 2, and the place first; data and folders: exit code 1, and the path ---
mistake 2 'c.yaml:6:1: unknown key '\''optimzer'\''; did you mean '\''optimizer'\''?' \
    'optimzer: {lr: 1}'
mistake 2 'c.yaml:5:13: unknown key '\''optimizer.lrr'\''; did you mean '\''lr'\''?' \
    'optimizer: {lrr: 1e-3}'
mistake 2 'c.yaml:5:17: optimizer.lr is '\''fast'\''; it takes a number of at least 0' \
    'optimizer: {lr: fast}'
mistake 2 'c.yaml:5:17: optimizer.lr is '\''-1'\''; it takes a number of at least 0' \
    'optimizer: {lr: -1}'
mistake 2 'c.yaml:5:19: optimizer.type is '\''adamax'\''; it takes adamw, adam, sgd, lion or rmsprop; did you mean '\''adamw'\''?' \
    'optimizer: {type: adamax}'
mistake 2 'c.yaml:6:18: schedule.type is '\''cosin'\''; it takes constant, linear, cosine, cosine_restarts, one_cycle, inverse_sqrt, wsd, step, exponential, polynomial, points, sequence or sqrt; did you mean '\''cosine'\''?' \
    'schedule: {type: cosin}'
mistake 2 'c.yaml:5:9: batch.global is 16, but micro 4 × accumulate 3 = 12; change one of them, or remove global' \
    'batch: {global: 16, micro: 4, accumulate: 3}'
mistake 2 'c.yaml:5:17: batch.global is '\''0'\''; it takes a whole number of at least 1' \
    'batch: {global: 0}'
mistake 2 'c.yaml:5:8: batch: the table of accumulate must begin with 0 finished epochs and be sorted by them; entry 0 is 1: 2' \
    'batch: {micro: 4, accumulate: {1: 2}}'
mistake 2 'c.yaml:5:20: batch.leaves is 8, but a step has 4 samples, so 4 leaves would be empty; set it to at most 4' \
    'batch: {global: 4, leaves: 8}'
mistake 2 'c.yaml:5:21: the pattern '\''^attention'\'' of a group matches no parameter; '\''anneal graph'\'' lists their names' \
    'optimizer: {groups: [{match: "^attention", lr_scale: 0.1}]}'
mistake 2 'c.yaml:5:21: the pattern '\''('\'' of a group is not a valid regular expression: missing closing parenthesis, at character 2' \
    'optimizer: {groups: [{match: "(", lr_scale: 0.1}]}'
mistake 2 'c.yaml:5:21: the groups freeze every parameter, so nothing is left to train' \
    'optimizer: {groups: [{match: ".", freeze: on}]}'
mistake 2 'c.yaml:6:8: lora.rank is set, but lora.targets does not say which layers the adapter changes; set it, such as [q_proj, v_proj]' \
    'lora: {rank: 4}'
mistake 2 'c.yaml:6:22: train.loss.beta is for data of type preferences, which data.train is not; remove it' \
    'train: {loss: {beta: 0.2}}'
mistake 2 'c.yaml:6:7: the target '\''layer'\'' matches no linear layer ('\''anneal graph'\'' lists the names of parameters)' \
    'lora: {targets: [layer]}'
mistake 2 'c.yaml:6:7: '\''head'\'', which says what is trained beside the adapter, matches no parameter ('\''anneal graph'\'' lists their names)' \
    'lora: {targets: [hidden], train: [head]}'
mistake 2 'c.yaml:5:20: optimizer.betas has 3 numbers; it takes two, such as [0.9, 0.999]' \
    'optimizer: {betas: [0.9, 0.99, 0.999]}'
mistake 2 'c.yaml:5:26: optimizer.betas[1] is '\''1.0'\''; it takes a list of numbers of at least 0 and below 1' \
    'optimizer: {betas: [0.9, 1.0]}'
mistake 2 'c.yaml:5:24: optimizer.nesterov needs momentum, which is 0; set optimizer.momentum, for example to 0.9' \
    'optimizer: {type: sgd, nesterov: on}'
mistake 2 'c.yaml:5:26: optimizer of type '\''adamw'\'' has no key '\''momentum'\'', which is for type sgd or rmsprop; its keys are type, lr, betas, eps, weight_decay, decay, decay_embeddings, groups, layer_decay' \
    'optimizer: {type: adamw, momentum: 0.9}'
mistake 2 'c.yaml:5:27: optimizer.weight_decay is '\''none'\''; it takes a number of at least 0' \
    'optimizer: {weight_decay: none}'
mistake 2 'c.yaml:6:34: schedule.warmup.steps is '\''-5'\''; it takes a length such as 250 steps, 2 epochs, 300M tokens, 50k samples or 3%' \
    'schedule: {type: cosine, warmup: -5}'
mistake 2 'c.yaml:6:37: schedule.min_ratio is '\''2'\''; it takes a number from 0 to 1' \
    'schedule: {type: cosine, min_ratio: 2}'
mistake 2 'c.yaml:6:11: schedule of type '\''cosine_restarts'\'' needs '\''T_0'\''; set it to a length such as 250 steps, 2 epochs, 300M tokens, 50k samples or 3%, above 0' \
    'schedule: {type: cosine_restarts}'
mistake 2 'c.yaml:6:83: a sequence has 2 parts and 2 milestones; it needs one milestone fewer than parts, because each milestone begins the next part' \
    'schedule: {type: sequence, parts: [{type: constant}, {type: linear}], milestones: [1, 2]}'
mistake 2 'c.yaml:6:11: schedule of type '\''exponential'\'' needs '\''gamma'\''; set it to a number above 0' \
    'schedule: {type: exponential}'
mistake 2 'c.yaml:6:20: train.clip_norm is '\''-1'\''; it takes off, or a number above 0' \
    'train: {clip_norm: -1}'
mistake 2 'c.yaml:6:20: train.precision is '\''f8'\''; it takes auto, f32, bf16, f16 or f64' \
    'train: {precision: f8}'
mistake 2 'c.yaml:6:27: train.matmul_precision is '\''high'\''; CPUs have no TF32; use highest, or medium for products in bf16' \
    'train: {matmul_precision: high}'
mistake 2 'c.yaml:6:20: train.recompute.mode is '\''some'\''; it takes auto, none, block or full' \
    'train: {recompute: some}'
mistake 2 'c.yaml:6:23: train.on_nonfinite is '\''rollback'\''; use skip, which ends with the same weights: a run that returned to its last checkpoint would take the same steps again, bit for bit, up to the step that failed' \
    'train: {on_nonfinite: rollback}'
mistake 2 'c.yaml:6:14: eval.best.metric is '\''val_los'\''; it takes val_loss, val_perplexity, val_accuracy, val_top5, val_mae, val_r2, val_precision, val_recall, val_f1, val_auc, val_margin, loss, perplexity, accuracy, top5, mae, r2, precision, recall, f1, auc or margin; did you mean '\''val_loss'\''?' \
    'data: {train: {type: csv, path: rows.csv}, eval: {type: csv, path: rows.csv}}' 'eval: {best: val_los}'
mistake 2 'c.yaml:6:14: eval.best: this model does not have the metric '\''val_accuracy'\''; it has val_loss, val_mae, val_r2' \
    'data: {train: {type: csv, path: rows.csv, part: 0%..50%}, eval: {type: csv, path: rows.csv, part: 50%..100%}}' \
    'eval: {best: val_accuracy}'
mistake 2 'c.yaml:6:8: eval.early_stop is set, but there is no data to evaluate on; set data.eval or data.split, or remove this key' \
    'eval: {early_stop: val_loss}'
mistake 2 'c.yaml:6:18: eval.generate needs data of type text: nothing says which texts other tokens stand for' \
    'data: {train: {type: csv, path: rows.csv, part: 0%..50%}, eval: {type: csv, path: rows.csv, part: 50%..100%}}' \
    'eval: {generate: rows.csv}'
mistake 2 'c.yaml:6:8: eval.micro is set, but there is no data to evaluate on; set data.eval or data.split, or remove this key' \
    'eval: {micro: 3}'
mistake 2 'c.yaml:6:15: eval.micro is '\''0'\''; it takes auto, or a whole number of at least 1' \
    'eval: {micro: 0}'
mistake 2 'c.yaml:6:15: eval.every is '\''0'\''; it takes auto or off, or a length such as 250 steps, 2 epochs, 300M tokens, 50k samples, 3% or 30m, above 0' \
    'eval: {every: 0}'
mistake 2 'c.yaml:5:27: run.steps is 3 and run.epochs is 2, but a run has only one length; remove one of them (for example with --set run.steps=)' \
    'run: {dir: run, steps: 3, epochs: 2}'
mistake 2 'c.yaml:5:24: run.steps is '\''0'\''; it takes a length such as 250 steps, above 0' \
    'run: {dir: run, steps: 0}'
mistake 2 'c.yaml:5:27: run.max_time is '\''3'\''; it takes off or slurm, or a duration such as 90s, 15m or 3h50m' \
    'run: {dir: run, max_time: 3}'
mistake 2 'c.yaml:5:24: run.steps is '\''3 parsecs'\''; it takes a length such as 250 steps, above 0' \
    'run: {dir: run, steps: 3 parsecs}'
mistake 2 'c.yaml:5:23: run.seed is '\''-1'\''; it takes a whole number of at least 0' \
    'run: {dir: run, seed: -1}'
mistake 2 'c.yaml:5:22: run.isa is '\''sse9'\''; it takes auto, base, avx2, avx512 or amx' \
    'run: {dir: run, isa: sse9}'
ANNEAL_MAX_ISA=base mistake 2 'anneal train: the environment variable ANNEAL_MAX_ISA limits instructions to base, so the instruction set avx2 cannot be used: unset it, or choose base' \
    'run: {dir: run, isa: avx2}'
ANNEAL_MAX_ISA=avx1 mistake 2 "anneal train: the environment variable ANNEAL_MAX_ISA is 'avx1'; set it to base, avx2, avx512 or amx, or unset it" \
    'run: {dir: run}'
mistake 2 'c.yaml:5:15: data.train needs '\''type'\''; set it to idx, csv, images, npy, hdf5, jsonl, text, tokens, megatron, chat, preferences, sentences, mixture or stream' \
    'data: {train: {path: rows.csv}}'
mistake 2 'c.yaml:5:22: data.train.type is '\''cvs'\''; it takes idx, csv, images, npy, hdf5, jsonl, text, tokens, megatron, chat, preferences, sentences, mixture or stream; did you mean '\''csv'\''?' \
    'data: {train: {type: cvs, path: rows.csv}}'
mistake 2 'c.yaml:5:7: data has no '\''train'\''; set it to a table such as {type: text, path: FILE}' \
    'data: {eval: {type: csv, path: rows.csv}}'
mistake 2 'c.yaml:5:15: data.train of type '\''csv'\'' needs '\''path'\''; set it to the path of a file, or a list of paths' \
    'data: {train: {type: csv}}'
mistake 2 'c.yaml:5:15: model.type is '\''transformer'\''; it takes mlp, cnn, gpt2, llama, bert, pretrained, sequential or graph' \
    'model: {type: transformer}'
mistake 2 'c.yaml:5:29: model.hidden[0] is '\''0'\''; it takes a list of whole numbers of at least 1' \
    'model: {type: mlp, hidden: [0]}'
mistake 2 'c.yaml:5:8: data.train: the model'\''s input '\''x'\'' is f32[batch,5], where the first dimension is the sample, but the data'\''s field '\''inputs'\'' is f32[3] for each sample; change the model'\''s sizes (auto takes those of data.train), or data.train' \
    'model: {type: mlp, inputs: 5}'
mistake 2 'c.yaml:5:8: data.train: the model'\''s input '\''targets'\'' is f32[batch,2], where the first dimension is the sample, but the data'\''s field '\''targets'\'' is f32[1] for each sample; change the model'\''s sizes (auto takes those of data.train), or data.train' \
    'model: {type: mlp, outputs: 2}'
mistake 2 'c.yaml:4:32: model.width 64 is not a multiple of model.heads 3 (remainder 1); use a width such as 63 or 66' \
    'model: {type: gpt2, layers: 1, heads: 3, width: 64, context: 16}' 'data: {train: {type: text, path: some.txt}}'
mistake 2 'c.yaml:2:16: data.train has type '\''csv'\'', but a model of type '\''bert'\'' takes sentences with classes; use sentences' \
    'model: {type: bert, layers: 1, heads: 2, width: 64}'
mistake 2 'c.yaml:5:16: data.train has type '\''sentences'\'', but a model of type '\''gpt2'\'' takes tokens; use text, tokens, megatron or chat' \
    'model: {type: gpt2, layers: 1, heads: 2, width: 64, context: 16}' 'data: {train: {type: sentences, path: some.txt}}'
mistake 2 'c.yaml:5:15: nothing says which tokenizer makes tokens of the text; set data.train.tokenizer to a tokenizer.json, its folder, or a GGUF file' \
    'model: {type: gpt2, layers: 1, heads: 2, width: 64, context: 16}' 'data: {train: {type: chat, path: some.txt}}'
mistake 2 'c.yaml:2:16: data.train has type '\''csv'\'', which gives numbers, but a model of type '\''gpt2'\'' takes tokens; use text, tokens, megatron or chat' \
    'model: {type: gpt2, layers: 1, heads: 2, width: 64, context: 16}'
mistake 2 'c.yaml:5:8: the model needs classes, but the targets of data.train are numbers; use data with labels, or csv with classes: on' \
    'model: {type: cnn}'
mistake 1 'anneal train: short.txt: the part has 5 tokens, but a sample needs 17: the context and the token after it (data.train of c.yaml:5:15)' \
    'model: {type: gpt2, layers: 1, heads: 2, width: 64, context: 16}' 'data: {train: {type: text, path: short.txt}}'
mistake 2 'c.yaml:5:50: data.train.part is '\''90%..10%'\''; it takes a range such as 0%..90%' \
    'model: {type: gpt2, layers: 1, heads: 2, width: 64, context: 16}' 'data: {train: {type: text, path: some.txt, part: 90%..10%}}'
mistake 2 'c.yaml:5:49: data.train.part is '\''50%..120%'\''; it takes a range such as 0%..90%' \
    'data: {train: {type: csv, path: rows.csv, part: 50%..120%}}'
mistake 1 'anneal train: rows.csv: line 1: there is no column '\''z'\'' (data.train of c.yaml:5:15)' \
    'data: {train: {type: csv, path: rows.csv, targets: [z]}}'
mistake 2 'c.yaml:6:10: this config has version 2, but this anneal reads only version 1; use a newer anneal' \
    'version: 2'
mistake 2 'c.yaml:5:53: data.threads is '\''-1'\''; it takes a whole number from 0 to 256' \
    'data: {train: {type: csv, path: rows.csv}, threads: -1}'
mistake 2 'c.yaml:6:14: log.every is '\''often'\''; it takes off, or a length such as 250 steps, 2 epochs, 300M tokens, 50k samples, 3% or 30m, above 0' \
    'log: {every: often}'
mistake 2 'c.yaml:6:18: ranks.threads is '\''0'\''; it takes auto, or a whole number from 1 to 4096' \
    'ranks: {threads: 0}'
mistake 2 'c.yaml:5:38: data.train.parts is empty; it takes a list of tables' \
    'data: {train: {type: mixture, parts: []}}'
mistake 2 'c.yaml:5:26: optimizer.layer_decay is '\''0'\''; it takes a number above 0' \
    'optimizer: {layer_decay: 0}'
mistake 2 'c.yaml:6:33: train.loss.label_smoothing is '\''1.5'\''; it takes a number of at least 0 and below 1' \
    'train: {loss: {label_smoothing: 1.5}}'
mistake 2 'c.yaml:6:14: train.ema.decay is '\''1'\''; it takes off, or a number above 0 and below 1' \
    'train: {ema: 1}'
mistake 1 'anneal train: nosuch.csv: cannot be opened: No such file or directory (data.train of c.yaml:5:15)' \
    'data: {train: {type: csv, path: nosuch.csv}}'
mistake 1 'anneal train: folder: is a folder, not a file (data.train of c.yaml:5:15)' \
    'data: {train: {type: csv, path: folder}}'
mistake 1 'anneal train: text.csv: line 5, column 2: '\''oops'\'' is not a number, but most cells of the column are (data.train of c.yaml:5:15)' \
    'data: {train: {type: csv, path: text.csv}}'
mistake 1 'anneal train: ragged.csv: line 6: this line has 2 columns, but the first line has 4 (data.train of c.yaml:5:15)' \
    'data: {train: {type: csv, path: ragged.csv}}'
mistake 1 'anneal train: empty.csv: line 1: the table is empty (data.train of c.yaml:5:15)' \
    'data: {train: {type: csv, path: empty.csv}}'
mistake 1 'anneal train: nan.csv: line 9, column 2: '\''nan'\'' is not a number; if it stands for a missing cell, set data.missing to drop, mean or constant (data.train of c.yaml:5:15)' \
    'data: {train: {type: csv, path: nan.csv}}'
mistake 1 'anneal train: classes.csv: line 5, column 3: the value 4 in field '\''targets'\'' is not in 0 to 3: the data is wrong, or the model is too small for it' \
    'data: {train: {type: csv, path: classes.csv, classes: on}}' 'model: {type: mlp, outputs: 4}'
mistake 1 'anneal train: cut-images: byte 100000: the file ends here, but its header announces 7840016 bytes: download it again (data.train of c.yaml:5:15)' \
    'data: {train: {type: idx, path: cut-images, labels: labels}}'
mistake 1 'anneal train: cut-labels: byte 5008: the file ends here, but its header announces 10008 bytes: download it again (data.train of c.yaml:5:15)' \
    'data: {train: {type: idx, path: images, labels: cut-labels}}'
mistake 1 'anneal train: few-labels: byte 4: the file has 100 targets, but images has 10000 inputs (data.train of c.yaml:5:15)' \
    'data: {train: {type: idx, path: images, labels: few-labels}}'
mistake 1 'anneal train: rows.csv: byte 0: this is not an IDX file: it begins with 61 2c 62 2c (data.train of c.yaml:5:15)' \
    'data: {train: {type: idx, path: rows.csv, labels: labels}}'
mistake 1 'anneal train: cut.gz: byte 200000: the compressed data is cut off (data.train of c.yaml:5:15)' \
    'data: {train: {type: idx, path: cut.gz, labels: labels}}'
mistake 2 'c.yaml:2:8: data.train: the model reads 2 inputs, but a sample of the data has 1 fields; change the model'\''s sizes (auto takes those of data.train), or data.train' \
    'data: {train: {type: idx, path: images}}'
mistake 1 'anneal train: odd.bin: byte 3: the file ends in the middle of a token of u16 (data.train of c.yaml:5:15)' \
    'model: {type: gpt2, layers: 1, heads: 2, width: 64, context: 16}' 'data: {train: {type: tokens, path: odd.bin}}'
mistake 1 'anneal train: tokens.bin: byte 1088: the value 244 in field '\''tokens'\'' is not in 0 to 199: the data is wrong, or the model is too small for it' \
    'model: {type: gpt2, layers: 1, heads: 2, width: 64, context: 16, vocabulary: 200}' 'data: {train: {type: tokens, path: tokens.bin}}'
mistake 1 'anneal train: tokens.idx: cannot be opened: No such file or directory (data.train of c.yaml:5:15)' \
    'model: {type: gpt2, layers: 1, heads: 2, width: 64, context: 16}' 'data: {train: {type: megatron, path: tokens}}'
mistake 1 'anneal train: rows.csv/run: the folder cannot be created: Not a directory' \
    'run: {dir: rows.csv/run, steps: 3}'
mistake 1 'anneal train: /proc/run: the folder cannot be created: No such file or directory' \
    'run: {dir: /proc/run, steps: 3}'
mistake 2 'c.yaml:5:22: the samples of a stream come from a program that calls an_trainer_step_on; with this command, use data from a file' \
    'model: {type: mlp, inputs: 3, outputs: 1}' 'data: {train: {type: stream}}'

# --- the text of a config ---
# wrong CODE MESSAGE: of the config that c.yaml is
wrong() { expect "$1" "$2" "${anneal[@]}" train c.yaml; }
with
echo 'batch: {global: 4}' >>c.yaml
wrong 2 "c.yaml:6:1: 'batch' appears twice in one table, first at 4:1; remove one of them"
with
printf 'train:\n\tclip_norm: 1\n' >>c.yaml
wrong 2 "c.yaml:7:1: found a tab; YAML must be indented with spaces"
with
echo 'train: {clip_norm: 1' >>c.yaml
wrong 2 "c.yaml:7:1: this is not valid YAML: did not find expected ',' or '}', while parsing a flow mapping; check brackets, quotes and indentation"
printf -- '- 1\n- 2\n' >c.yaml
wrong 2 'c.yaml:1:1: this is a list; a config is a table of keys and needs at least model and data'
: >c.yaml
wrong 2 "c.yaml:1:1: 'model' is missing; a config needs at least model and data"
echo 'model: {type: mlp}' >c.yaml
wrong 2 "c.yaml:1:1: 'data' is missing; a config needs at least model and data"
expect 2 'nosuch.yaml: the config cannot be read: No such file or directory; check its name and permissions' \
    "${anneal[@]}" train nosuch.yaml

# --- folders and disks ---
with 'run: {dir: full, steps: 3}'
mkdir full
ln -s /dev/full full/metrics-1.new
expect 1 'anneal train: full/metrics-1.new: is not a regular file but a pipe, a device or a folder; move it away' \
    "${anneal[@]}" train c.yaml
[ "$(field full/outcome.json 'd["end"]')" = failed ] || fail "a run that could not begin: $(cat full/outcome.json)"
with 'run: {dir: busy, steps: 100000000}'
"${anneal[@]}" train c.yaml >busy.out 2>busy.err &
process=$!
for _ in $(seq 600); do
    grep -qs '"step": 1,' busy/metrics.jsonl && break
    sleep 0.1
done
training=$(cut -d' ' -f1 busy/launches/1)
expect 1 "anneal train: busy: process $training is already training in this folder; wait for it, stop it (kill $training), or set run.dir to another name" \
    "${anneal[@]}" train c.yaml
kill -KILL $process
wait $process 2>/dev/null || true
# The same of a run whose checkpoints are gone before another process has read them.
with 'run: {dir: saving, steps: 100000000}'
"${anneal[@]}" train c.yaml --set save.every='1 steps' --set save.keep_last=1 >busy.out 2>busy.err &
process=$!
until_true 60 test -e saving/checkpoints || fail "nothing is saved"
training=$(cut -d' ' -f1 saving/launches/1)
for _ in 1 2 3; do
    expect 1 "anneal train: saving: process $training is already training in this folder; wait for it, stop it (kill $training), or set run.dir to another name" \
        "${anneal[@]}" train c.yaml
done
kill -KILL $process
wait $process 2>/dev/null || true
process=
with
rm -rf run
mkdir run
echo '{"step": 1}' >run/metrics.jsonl
echo 'version: 1' >run/config.yaml
expect 2 "anneal train: run: this folder already has a run with a different config; add --fresh to start a new run beside it, or set run.dir to another name
  run/config.yaml:1:1: 'model' is missing; a config needs at least model and data" \
    "${anneal[@]}" train c.yaml

# --- the command line ---
help="(see 'anneal train --help')"
expect 2 "anneal train: CONFIG is missing
$help" "${anneal[@]}" train
expect 2 "anneal train: there is no option '--theads'; did you mean '--threads'?
$help" "${anneal[@]}" train c.yaml --theads 2
expect 2 "anneal train: --threads takes a whole number of at least 1, not 'none'
$help" "${anneal[@]}" train c.yaml --threads none
expect 2 "anneal train: --isa takes base|avx2|avx512|amx, not 'sse'
$help" "${anneal[@]}" train c.yaml --isa sse
expect 2 '--set optimizer.lr: this is not a setting; write KEY=VALUE, as in optimizer.lr=1e-3' \
    "${anneal[@]}" train c.yaml --set optimizer.lr
expect 2 "--set optimizer.lr=x: optimizer.lr is 'x'; it takes a number of at least 0" "${anneal[@]}" train c.yaml --set optimizer.lr=x

[ "$count" -ge 60 ]
echo "$count mistakes are explained"
