#!/usr/bin/env bash
# A student with a text: lets anneal write a config, trains a small GPT on its characters, stops it with Ctrl-C,
# continues, and reads what it has learned.
#   student-text.sh UNPACKED-TARBALL
source "$(dirname "$0")/preamble.sh"

# The first scenes: a text of a student's own is as long.
head -c 25000 "$examples/shakespeare/tinyshakespeare.txt" >story.txt

printf '$ anneal init story.txt > story.yaml\n'
anneal init story.txt >story.yaml 2>found || { cat found; fail "anneal init ended with $?"; }
sees '^story.txt: plain text, 25,000 characters in [0-9]+ lines, [0-9]+ different characters$' found
sees '^next: anneal train story.yaml$' found

# How large will it be? Before it is trained.
run anneal plan story.yaml
sees 'peak|memory'

# Stopped on the way: as the terminal does it, by INT to the process.
printf '$ anneal train story.yaml    (and Ctrl-C)\n'
code=0
# A shell starts background processes with INT ignored; python3 gives it back, as a terminal would.
/usr/bin/python3 - >out 2>&1 <<'END' || code=$?
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
process = subprocess.Popen(["anneal", "train", "story.yaml"])
metrics = "runs/story/metrics.jsonl"
while process.poll() is None and not (os.path.exists(metrics) and os.path.getsize(metrics)):
    time.sleep(0.02)
process.send_signal(signal.SIGINT)
sys.exit(process.wait())
END
[ $code = 75 ] || fail "Ctrl-C ended it with $code and not with 75: stopped, with a checkpoint"

# The same command continues, to the end.
run anneal train story.yaml
sees 'resum|continu'
at_most 2.45 val_loss runs/story # 3.3 is what the frequencies of characters alone give

printf 'ROMEO: the king is' >ask.txt
run anneal predict runs/story --input ask.txt --output next.csv
[ "$(wc -l <next.csv)" -gt 10 ] || { cat next.csv; fail "there is no line for each character"; }
run anneal export runs/story --to story.safetensors
[ -s story.safetensors ] || fail "nothing was exported"
