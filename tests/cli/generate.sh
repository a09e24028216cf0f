#!/usr/bin/env bash
# anneal generate: texts that do not depend on batch and threads, stop strings, and a message for every mistake.
source "$(dirname "$0")/preamble.sh"
complains() {
    grep -qF -- "$1" err || fail "it does not say '$1': $(cat err)"
}
for _ in $(seq 40); do printf 'a line and a line and one more line, and so it goes on and on\n'; done >poem.txt
for tokens in chars bytes; do
    cat >$tokens.yaml <<Y
model: {type: gpt2, layers: 1, heads: 2, width: 32, context: 40}
data: {train: {type: text, path: poem.txt, tokens: $tokens}}
batch: {global: 8}
optimizer: {lr: 5e-3}
run: {steps: 300, dir: $tokens}
Y
    attempt 0 train $tokens.yaml
done

# It has learned the poem by heart; what is printed is what follows the prompt, and a new line.
attempt 0 generate chars --prompt 'one more' --max-tokens 10
[ "$(cat out)" = ' line, and' ] || fail 'not how the poem goes on'
[ "$(wc -c <out)" = 11 ] || fail 'more than the text and a new line'
attempt 0 generate bytes --prompt 'one more' --max-tokens 10
[ "$(cat out)" = ' line, and' ] || fail 'not how the poem goes on, by bytes'

# A stop string is not printed, nor is a part of it.
attempt 0 generate chars --prompt 'one more' --stop ', a' --stop 'zzz'
[ "$(cat out)" = ' line' ] || fail 'the stop string'

# The same in any batch, on any threads; another seed, or another place among the prompts, is another text.
printf 'a line\nand so\na line\none\nit goes on\n' >prompts.txt
sampled=(--temperature 1.5 --top-k 9 --top-p 0.99 --min-p 0.001 --repetition-penalty 1.1 --max-tokens 20)
attempt 0 generate chars --input prompts.txt "${sampled[@]}" --seed 7
mv out first
[ "$(wc -l <first)" = 5 ] || fail 'a line for each prompt'
grep -q '^{"prompt": "and so", "text": ".*", "end": "length"}$' first || fail 'the line of a prompt'
[ "$(sed -n 1p first)" != "$(sed -n 3p first)" ] || fail 'two sequences drew the same numbers'
for batch in 1 2 3; do
    OMP_NUM_THREADS=$batch attempt 0 generate chars --input prompts.txt "${sampled[@]}" --seed 7 --batch $batch
    cmp out first || fail "batch $batch"
done
for threads in 1 3; do
    attempt 0 generate chars --input prompts.txt "${sampled[@]}" --seed 7 --threads $threads
    cmp out first || fail "threads $threads"
    [ "$(cat err)" = 'chars: the newest checkpoint is used, after step 300: chars/checkpoints/step-00000300-1' ] ||
        fail "what is for a terminal is in a file: $(cat err)"
done
attempt 2 generate chars --prompt a --threads 0
complains '--threads'
attempt 0 generate chars --input prompts.txt "${sampled[@]}" --seed 8
! cmp -s out first || fail 'the seed does nothing'

# Numbers of tokens need no vocabulary.
attempt 0 generate chars --tokens 1,2,3 --max-tokens 4
grep -qE '^[0-9]+ [0-9]+ [0-9]+ [0-9]+$' out || fail 'four numbers'
attempt 0 generate chars --prompt 'a line' --max-tokens 100
complains 'the context of 40 tokens is full'

# At every evaluation of a run; a run that goes on writes what it would have written.
cat >run.yaml <<Y
model: {type: gpt2, layers: 1, heads: 2, width: 32, context: 40}
data: {train: {type: text, path: poem.txt, tokens: chars}, split: {eval: 20%}}
batch: {global: 8}
eval: {every: 10 steps, generate: prompts.txt}
run: {steps: 30, dir: whole}
Y
attempt 0 train run.yaml
[ "$(ls whole/samples)" = "$(printf 'step-%08d.jsonl\n' 10 20 30)" ] || fail "$(ls whole/samples)"
[ "$(wc -l <whole/samples/step-00000030.jsonl)" = 5 ] || fail 'a line for each prompt'
! cmp -s whole/samples/step-000000[12]0.jsonl || fail 'two steps wrote the same'
OMP_NUM_THREADS=1 attempt 0 train run.yaml --set run.dir=parts --set run.steps=15
attempt 0 train run.yaml --set run.dir=parts --extend keep
for step in 10 20 30; do
    cmp {whole,parts}/samples/step-000000$step.jsonl || fail "a run in two parts wrote something else"
done
printf 'a line and a line and a line and a line and\n' >long.txt
attempt 1 train run.yaml --set run.dir=other --set eval.generate=long.txt
complains 'long.txt: line 1: has 43 tokens'

attempt 2 generate chars
complains 'the prompt is missing'
attempt 2 generate chars --prompt a --input prompts.txt
complains 'cannot be combined'
attempt 2 generate chars --prompt a --top-k 5
complains '--top-k has no effect without --temperature'
attempt 2 generate chars --prompt a --temperature warm
complains "as in 0.8, not 'warm'"
attempt 2 generate chars --prompt a --batch 2
complains '--batch has no effect without --input'
attempt 2 generate chars --prompt a --stop ''
complains '--stop takes a text that is not empty'
attempt 2 generate chars --tokens 1,,2
complains '--tokens takes whole numbers'
attempt 2 generate chars --tokens 1 --stop x
complains '--stop has no effect with --tokens'
attempt 1 generate chars --tokens 99
complains 'the model has tokens 0 to'
attempt 1 generate chars --prompt 'Q'
complains 'is not in the vocabulary'
attempt 1 generate chars --prompt ''
complains 'needs something to continue'
attempt 1 generate chars --prompt "$(printf 'a line and a line and a line and a line and')"
complains 'but a sequence of this generator has at most 40'
attempt 1 generate chars --input nowhere.txt
complains 'nowhere.txt: cannot be read'
: >empty.txt
attempt 1 generate chars --input empty.txt
complains 'write one prompt per line'
printf 'a\n\nb\n' >gap.txt
attempt 1 generate chars --input gap.txt
complains 'gap.txt: line 2: is empty'
attempt 1 generate chars --prompt a --temperature 1 --top-p 1.5
complains 'top_p is 1.5'
mv poem.txt away.txt
attempt 1 generate chars --prompt a
complains 'generation needs that file'
attempt 0 generate bytes --prompt a --max-tokens 3
python3 -c 'print("a,b,sum"); [print(f"{i},{2 * i},{3 * i}") for i in range(20)]' >sums.csv
printf 'model: {type: mlp, hidden: [4]}\ndata: {train: {type: csv, path: sums.csv}}\nrun: {steps: 2, dir: sums}\n' >sums.yaml
attempt 0 train sums.yaml
attempt 2 generate sums --tokens 1
complains 'cannot generate'
echo "generate: passed"
