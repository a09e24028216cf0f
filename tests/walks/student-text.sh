#!/usr/bin/env bash
# A student with a text: trains a small GPT on its characters, stops it with Ctrl-C, continues, and reads what it has learned.
#   student-text.sh UNPACKED-TARBALL
source "$(dirname "$0")/preamble.sh"

cp "$examples/shakespeare/tinyshakespeare.txt" story.txt

cat >story.yaml <<'END'
run:       {steps: 200, seed: 1}
model:     {type: gpt2, layers: 2, heads: 2, width: 64, context: 64}
data:      {train: {type: text, path: story.txt, tokens: chars, part: 0%..90%},
            eval: {type: text, path: story.txt, tokens: chars, part: 90%..100%}}
optimizer: {lr: 2e-3}
eval:      {every: 100 steps, samples: 200}
log:       {every: 10 steps}
END

# How large will it be? Before it is trained.
run anneal plan story.yaml
sees 'peak|memory'

run anneal train story.yaml
at_most 2.6 val_loss runs/story # 3.3 is what the frequencies of characters alone give

# The same run, stopped on the way: as the terminal does it, by INT to the process.
printf '$ anneal train story.yaml --set run.dir=runs/stopped    (and Ctrl-C)\n'
code=0
# A shell starts background processes with INT ignored; python3 gives it back, as a terminal would.
/usr/bin/python3 - >out 2>&1 <<'END' || code=$?
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
process = subprocess.Popen(["anneal", "train", "story.yaml", "--set", "run.dir=runs/stopped"])
metrics = "runs/stopped/metrics.jsonl"
while process.poll() is None and not (os.path.exists(metrics) and os.path.getsize(metrics)):
    time.sleep(0.02)
process.send_signal(signal.SIGINT)
sys.exit(process.wait())
END
[ $code = 75 ] || fail "Ctrl-C ended it with $code and not with 75: stopped, with a checkpoint"
run anneal train story.yaml --set run.dir=runs/stopped
[ -n "$(weights runs/story)" ] && [ "$(weights runs/stopped)" = "$(weights runs/story)" ] || fail "the stopped run ended with other weights"

printf 'ROMEO: the king is' >ask.txt
run anneal predict runs/story --input ask.txt --output next.csv
[ "$(wc -l <next.csv)" -gt 10 ] || { cat next.csv; fail "there is no line for each character"; }
run anneal export runs/story --to story.safetensors
[ -s story.safetensors ] || fail "nothing was exported"
