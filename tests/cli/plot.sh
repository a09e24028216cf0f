#!/usr/bin/env bash
# `anneal plot`: pictures of runs, and what it says of files that are none.
source "$(dirname "$0")/preamble.sh"

# run CODE ARGUMENT...: the command must end with CODE; what it wrote is in out and err
run() {
    local expected=$1
    attempt "$@"
    if [ "$expected" != 0 ] && [ -s out ]; then failed "expected nothing on standard output"; fi
}
says() { grep -qF -- "$1" out || failed "standard output does not say: $1"; }
never() { ! grep -qiE -- "$1" out || failed "standard output says: $1"; }
quiet() { [ ! -s err ] || failed "expected nothing on standard error"; }
complains() { grep -qF -- "$1" err || failed "standard error does not say: $1"; }
is_xml() { python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1" || failed "$1 is no XML"; }

# metrics STEPS EVERY: as a run writes them
metrics() {
    awk -v steps="$1" -v every="$2" 'BEGIN { for (i = 1; i <= steps; i++) {
        printf "{\"step\": %d, \"loss\": %.6f, \"lr\": %.9f, \"grad_norm\": %.6f, \"tokens_per_second\": 1234}\n",
            i * every, 2 + 8 / i + (i % 7) / 50, 0.001 * (1 - i / (steps + 1)), 0.3 + 9 / i
        if (i % (steps > 4 ? int(steps / 4) : 1) == 0)
            printf "{\"step\": %d, \"val_loss\": %.6f, \"val_perplexity\": 6.7}\n", i * every, 2.5 + 8 / i } }'
}
mkdir -p runs/a runs/b runs/none runs/empty
metrics 100 10 >runs/a/metrics.jsonl
metrics 3 100 >runs/b/metrics.jsonl
: >runs/empty/metrics.jsonl

# --- pictures ---
run 0 plot runs/a
quiet
is_xml out
for words in '<title>runs/a</title>' 'width="960"' 'step 1,000' 'best val_loss 2.580 at step 1,000' '>loss<' '>learning rate<' \
    '>gradient norm<' 'before clipping, log scale' '>training<' '>validation<' '>1,000<' '>1e-3<' 'prefers-color-scheme:dark'; do
    says "$words"
done
never 'nan|inf[^o]'
mv out from-folder
run 0 plot runs/a/metrics.jsonl
cmp -s out from-folder || failed "a folder and its file give different pictures"
run 0 plot runs/a/ --output picture.svg --width 1200
quiet
[ ! -s out ] || failed "--output leaves standard output alone"
grep -qF 'width="1200"' picture.svg || failed "--width was not taken"
run 0 plot runs/a runs/b
is_xml out
for words in '>2 runs<' '>runs/a<' '>runs/b<' '>best val_loss<' 'class="line r1"'; do says "$words"; done
run 0 plot runs/{a,b,a,b,a,b,a,b,a,b,a,b}
is_xml out
says 'class="line r11"'

# --- metrics of evaluations are panels of their own; keys that are not known are none ---
never '>accuracy<|>F1<|perplexity'
mkdir -p seeds/{1,2,3,4}
for seed in 1 2 3 4; do
    awk -v seed="$seed" 'BEGIN { for (i = 1; i <= 100; i++) {
        printf "{\"step\": %d, \"epoch\": %d, \"loss\": %.6f, \"mean_loss\": 7, \"epoch_loss\": 7, \"lr\": 0.001, \"grad_norm\": 1}\n", i, i / 10, 2 + 2 / i + seed / 10
        if (i % 20 == 0) printf "{\"step\": %d, \"val_loss\": %.4f, \"val_accuracy\": %.4f, \"val_f1\": 0.5, \"val_seconds\": 3}\n", i, 2.5 + seed, 0.5 + seed / 10 } }' >seeds/$seed/metrics.jsonl
    printf 'run:\n  dir: seeds/%s\n  seed: %s\nmodel:\n  type: mlp\n' "$seed" "$seed" >seeds/$seed/config.yaml
done
run 0 plot seeds/1
is_xml out
for words in '>accuracy<' '>F1<' 'val_accuracy 0.6000' 'class="raw r0"' 'class="smooth r0"' '>each step<'; do says "$words"; done
never 'epoch|mean_loss|seconds|>recall<|seeds<'
python3 - out <<'PYTHON' || failed "the smoothed line is not in the middle of the raw one"
import math, re, sys
picture = open(sys.argv[1]).read()
def heights(kind): return [float(y) for y in re.findall(r'[ML][0-9.]+ ([0-9.]+)', re.search(rf'class="{kind} r0" d="([^"]*)"', picture)[1])]
raw, smooth = heights("raw"), heights("smooth")
assert len(raw) == len(smooth) == 100 and min(raw) < min(smooth) and abs(raw[60] - smooth[60]) < 2
assert len(set(raw)) > 20 and max(smooth) <= max(raw)
weights = lambda i: [math.exp(-abs(i - k) / length) for k in range(100)]
length = 1 # step: a hundredth of the picture
for i, y in enumerate(smooth): # each point counts once, by its distance
    expected = sum(w * h for w, h in zip(weights(i), raw)) / sum(weights(i))
    assert abs(y - expected) < 0.11, (i, y, expected)
PYTHON

# --- seeds of one config are one line: their mean, in a band ---
run 0 plot seeds/1 seeds/2 seeds/4
is_xml out
for words in '>seeds/1, 3 seeds<' 'val_accuracy 0.7333' 'val_loss 4.833' 'line: mean of seeds, band: lowest to highest'; do says "$words"; done
never 'r1|class="raw'
[ "$(grep -c 'class="band r0"' out)" -ge 4 ] || failed "the seeds have no bands"
python3 - out <<'PYTHON' || failed "the band does not reach from the lowest seed to the highest"
import re, sys
picture = open(sys.argv[1]).read()
bands = re.findall(r'class="band r0" d="([^"]*)"', picture)
accuracy = [float(y) for y in re.findall(r'[ML][0-9.]+ ([0-9.]+)', bands[2])]
dots = [float(y) for y in re.findall(r'M[0-9.]+ ([0-9.]+)h0', re.findall(r'class="dots r0" d="([^"]*)"', picture)[1])]
high, low, mean = min(accuracy), max(accuracy), dots[0] # 0.9, 0.6, 0.7333
assert abs((mean - high) / (low - high) - (0.9 - 0.73333) / 0.3) < 0.01, (high, mean, low)
PYTHON
run 0 plot seeds/1 seeds/2 seeds/4 --separate
for words in '>3 runs<' '>seeds/2<' 'class="smooth r2"'; do says "$words"; done
never 'seeds<|mean of seeds'
sed -i 's/mlp/cnn/' seeds/4/config.yaml
run 0 plot seeds/{1,2,3,4}
for words in '>2 runs<' '>seeds/1, 3 seeds<' '>seeds/4<'; do says "$words"; done
run 0 plot seeds/1 seeds/1 # the same run twice is not two seeds
says '>2 runs<'
run 2 plot seeds/1 seeds/2 --output seeds/2/metrics.jsonl
complains "'seeds/2/metrics.jsonl' holds the metrics of a run"

# --- many points: the picture stays small, and shows lowest and highest ---
metrics 30000 1 >many.jsonl
echo '{"step": 15000, "loss": 77.5}' >>many.jsonl
run 0 plot many.jsonl
is_xml out
says 'class="band r0"'
python3 - out <<'PYTHON' || failed "the band does not reach the one step with a loss of 77.5"
import re, sys
picture = open(sys.argv[1]).read()
top = float(re.search(r'class="grid" d="M68.0 ([0-9.]+)v300.0"', picture)[1])
heights = [float(y) for y in re.findall(r'[ML][0-9.]+ ([0-9.]+)', re.search(r'class="band r0" d="([^"]*)"', picture)[1])]
assert top < min(heights) < top + 20, (top, min(heights))
PYTHON
[ "$(stat -c %s out)" -lt 100000 ] || failed "the picture of 30,000 steps is larger than 100 kB"

# --- odd numbers ---
cat >odd.jsonl <<'JSON'
{"step": 9007199254740992, "loss": -1e308, "lr": 0, "grad_norm": 1e-320}

{"step": 3, "loss": null, "grad_norm": 0}
{"step": 0, "loss": 1e-12, "val_loss": 5e99, "grad_norm": 1e99, "lr": 1e-3, "extra": {"a": [1, "x"]}}
{"step": 1, "loss": 1e12, "grad_norm": 1e-99}
JSON
run 0 plot odd.jsonl
quiet
is_xml out
never 'nan|inf[^o]'
says '9,007,199,254,740,992'
printf '{"step": 5, "loss": 2}\n' >one.jsonl
run 0 plot one.jsonl
is_xml out
never 'nan|inf[^o]'
says '>nothing to draw<'
# A share ends at 1, unless a file says that it does not.
for step in 1 2 3; do printf '{"step": %d, "loss": 2, "val_accuracy": 1, "val_r2": -7}\n' "$step"; done >perfect.jsonl
run 0 plot perfect.jsonl
is_xml out
says '>1.00<'
never '>1.0[1-9]<|>1.1'
printf '{"step": 1, "val_accuracy": 5}\n{"step": 2, "val_accuracy": 3}\n' >wrong.jsonl
run 0 plot wrong.jsonl
is_xml out
never 'nan|inf[^o]'
says '>5.0<'
mkdir $'odd "<&\xff\x01'
cp one.jsonl $'odd "<&\xff\x01/metrics.jsonl'
run 0 plot $'odd "<&\xff\x01'
is_xml out
says $'odd &quot;&lt;&amp;\xef\xbf\xbd\xef\xbf\xbd'

# --- a line that a kill cut off is left out ---
{ cat runs/b/metrics.jsonl; printf '{"step": 400, "loss": 2.'; } >cut.jsonl
run 0 plot cut.jsonl
complains 'anneal plot: note: cut.jsonl:7 is incomplete and was skipped: the run was killed there, or is still writing'
says 'step 300 '
{ cat runs/b/metrics.jsonl; printf '{"step": 400, "loss": 2.5}'; } >whole.jsonl
run 0 plot whole.jsonl
quiet
says 'step 400 '

# --- files that are none ---
# broken LINE MESSAGE: as the third line of a file
broken() {
    { head -2 runs/b/metrics.jsonl; printf '%b\n' "$1"; tail -1 runs/b/metrics.jsonl; } >broken.jsonl
    run 1 plot broken.jsonl
    complains "anneal plot: broken.jsonl:3: $2; remove that line, or plot a copy of the file without it"
}
broken '{"step": 3, "loss": NaN}' 'this is not a JSON object (a value is expected here, at byte 21)'
broken '{"step": 3, "loss": 1e999}' 'this is not a JSON object (a number is too large for a double, at byte 21)'
broken '{"step": 3, "loss": 2.' 'this is not a JSON object (this is not a JSON number, at byte 21)'
broken '{"step": 3, "step": 4}' 'this is not a JSON object (a key appears twice, at byte 13)'
broken '{"a": "\0033[2J"}' 'this is not a JSON object (a string has a control character that is not escaped, at byte 8)'
broken '\0000' 'this is not a JSON object (a value is expected here, at byte 1)'
broken '[1, 2]' 'this is JSON, but not an object'
broken '{"loss": 2}' "the object has no 'step'"
for step in -1 1.5 9007199254740994 1e300 99999999999999999999999 '"3"' null; do
    broken "{\"step\": $step, \"loss\": 2}" "'step' is not a whole number from 0 to 2^53"
done
broken '{"step": 3, "loss": "NaN"}' "'loss' is neither a number nor null"
broken '{"step": 3, "grad_norm": [1]}' "'grad_norm' is neither a number nor null"
broken "$(head -c 1200000 /dev/zero | tr '\0' ' ')" 'the line is longer than 1 MiB'
run 1 plot runs/a runs/none
complains "anneal plot: 'runs/none' has no metrics.jsonl; give a run folder (run.dir) with at least one logged step"
run 1 plot runs/empty
complains "'runs/empty/metrics.jsonl' has no steps yet; plot it after the run has logged one (log.every)"
run 1 plot nowhere
complains "'nowhere' cannot be read: No such file or directory; give a run folder, or its metrics.jsonl"
if [ "$(id -u)" != 0 ]; then # root may read everything
    cp one.jsonl locked.jsonl
    chmod 0 locked.jsonl
    run 1 plot locked.jsonl
    complains "'locked.jsonl' cannot be read: Permission denied; check its permissions"
fi

# --- wrong use ---
run 2 plot
complains 'RUN... is missing'
run 2 plot runs/{a,b,a,b,a,b,a,b,a,b,a,b,a}
complains 'a picture can show at most 12 runs, not 13'
run 2 plot runs/a --width 100
complains "--width takes a whole number of at least 640, not '100'"
run 2 plot runs/a --width 5000
complains '--width takes at most 4000 pixels'
run 1 plot runs/a --output nowhere/picture.svg
complains "'nowhere/picture.svg' cannot be written: No such file or directory"
run 2 plot runs/a --output runs/a/metrics.jsonl
complains "'runs/a/metrics.jsonl' holds the metrics of a run; choose another file for --output"
[ "$(wc -l <runs/a/metrics.jsonl)" = 104 ] || failed "the metrics were written over"
run 1 plot runs/a --output /dev/full
complains "'/dev/full' could not be written"

echo "plot: all as expected"
