#!/usr/bin/env bash
# The banner and the progress line in a real terminal, at 80 and 200 columns, with and without colours.
#   terminal.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
tree=$1
command -v tmux >/dev/null || { echo "there is no tmux here"; exit 77; }
socket=$work/tmux
tmux() { command tmux -S "$socket" "$@"; }
at_end() { tmux kill-server 2>/dev/null || true; }
# The server ends with its last session, and a session that begins meanwhile finds a server that exits: this one stays.
tmux new-session -d -s stays "sleep 3600"
cat >small.yaml <<Y
run:       {dir: run, steps: 20000, max_time: 10m}
model:     {type: gpt2, layers: 2, heads: 2, width: 32, context: 16}
data:
  train:   {type: text, path: $tree/examples/shakespeare/tinyshakespeare.txt, tokens: chars, part: 0%..10%}
  eval:    {type: text, path: $tree/examples/shakespeare/tinyshakespeare.txt, tokens: chars, part: 10%..11%}
batch:     {global: 8}
eval:      {every: 100 steps}
log:       {every: 10 steps}
Y

count=0
# watch COLUMNS [VARIABLE=VALUE] [WORDS]: with these words behind the command's, what stands in the terminal once an
# evaluation is over and the line is drawn again
watch() {
    local columns=$1
    count=$((count + 1)) # each has a folder of its own: the one before may still save what it has, on the signal that ends it
    tmux new-session -d -s run -x "$columns" -y 60 "env TERM=xterm-256color ${2:-A=b} OMP_NUM_THREADS=1 $ANNEAL_BIN/anneal train small.yaml --set run.dir=run-$count ${3:-}; sleep 200"
    for _ in $(seq 1800); do # three minutes: what takes longer does not come
        tmux capture-pane -p -t run >screen
        grep -q ' loss .* left$' screen && grep -q val_loss screen && break
        sleep 0.1
    done
    tmux capture-pane -p -e -t run >screen.colours
    tmux kill-session -t run
}
fail() { printf 'FAILED: %s\n' "$1" && cat screen && exit 1; }

watch 80
grep -q '^machine ' screen || fail "there is no banner at 80 columns"
[ "$(grep -c 'loss .* left$' screen)" = 1 ] || fail "not one line of progress at 80 columns"
grep -qE '^\[.*\] +[0-9]+%  step .*epoch +1/23  loss.*left' screen || fail "the line of progress lacks something at 80 columns"
grep -q 'val_loss.*val_accuracy' screen && grep -qE '^(step .*val_loss.*)?  best$' screen || fail "there is no evaluation at 80 columns"
grep -q $'\033\[32mbest' screen.colours || grep -q $'\033\[32m' screen.colours || fail "there is no colour"
cp screen eighty

watch 80 "" "--set run.steps= --set run.epochs=30 --set 'eval.every=1 epoch' --set data.train.part=0%..1% --set data.eval.part=1%..2%"
grep -qE '^\[.*\] +[0-9]+%  step .*epoch +[0-9]+/30  loss .*left' screen || fail "the line of progress has no epoch or no bar at 80 columns"
grep -qE '^step +[0-9,]+  epoch +[0-9]+/30  val_loss ' screen || fail "an evaluation does not have its epoch"
! grep -qE "^(best|left|[0-9.]+( best)?)$" screen || fail "a line is broken at 80 columns"

watch 200
[ "$(grep -c '^\[.*\]  *[0-9]*%  step .* epoch .* left$' screen)" = 1 ] || fail "not one line with a bar at 200 columns"
grep -q 'step .*loss.*lr.*tokens/s.*left' screen || fail "the line of progress lacks something at 200 columns"

watch 80 NO_COLOR=1
! grep -q $'\033\[3[0-9]m\|\033\[1m' screen.colours || fail "there are colours in spite of NO_COLOR"
cat eighty
