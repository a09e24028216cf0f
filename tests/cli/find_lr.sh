#!/usr/bin/env bash
# anneal find-lr as its users see it: the curve and its proposal, that nothing is left of a test, and what it says of
# wrong options.
source "$(dirname "$0")/preamble.sh"
says() { grep -qF -- "$1" out err || failed "it does not say: $1"; }

awk 'BEGIN { srand(1); print "a,b,y"; for (i = 0; i < 512; i++) { a = rand(); b = rand(); printf "%.4f,%.4f,%.4f\n", a, b, sin(6 * a) + b * b } }' >t.csv
# With keys that the schedule of the test does not have, a length that is not in steps, and intervals that are longer
# than the test.
cat >c.yaml <<'END'
run:      {dir: runs/x, epochs: 3, seed: 1}
model:    {type: mlp, hidden: [32, 32]}
data:     {train: {type: csv, path: t.csv}, normalize: standard}
schedule: {type: cosine, warmup: 3 steps, min_ratio: 0.1}
train:    {precision: f32}
save:     {every: 5000 steps, keep_every: 10000 steps}
log:      {every: 1000 steps}
END
attempt 0 find-lr c.yaml
says 'c.yaml: learning-rate range test, 100 steps from 1e-07 to 1'
says '(optimizer.lr is 0.0001)'
grep -qE '^ +[0-9.e-]+ +[0-9.]+ +[0-9.]+  proposal$' out || failed "the table does not mark the proposal"
grep -qE '^to use it: anneal train c.yaml --set optimizer.lr=0.00[0-9]+$' out || failed "it does not say how to use the proposal"
[ ! -s err ] || failed "expected nothing on standard error"
[ "$(find . -newer t.csv -type f | sort | tr '\n' ' ')" = "./c.yaml ./err ./out " ] || fail "the test has left files: $(find . -newer t.csv)"

# --- the points are steps of the run, and the proposal comes from them ---
attempt 0 find-lr c.yaml --from 1e-5 --to 10 --steps 60 --json --svg curve.svg
python3 - <<'END' || failed "the curve is another"
import json, math
d = json.load(open("out"))
points, steps = d["points"], d["steps"]
assert steps == 60 and d["config_lr"] == 1e-4 and 20 < len(points) <= steps
beta, average = 1 - 20 / steps, 0
assert abs(d["smoothing"] - beta) < 1e-15
for i, p in enumerate(points):
    assert abs(p["lr"] / (1e-5 * 1e6 ** (i / (steps - 1))) - 1) < 1e-12, (i, p)
    average = beta * average + (1 - beta) * p["loss"]
    assert abs(p["smoothed"] - average / (1 - beta ** (i + 1))) < 1e-12
smoothed = [p["smoothed"] for p in points]
lowest = smoothed.index(min(smoothed))
assert points[lowest]["lr"] == d["lowest_lr"]
if len(points) < steps: assert d["end"] == "diverged" and smoothed[-1] > 4 * min(smoothed)
falls = {i: smoothed[i - 3] - smoothed[i + 3] for i in range(6, lowest - 2)}
assert d["proposal"] == points[max(falls, key=falls.get)]["lr"]
END
python3 -c 'import xml.dom.minidom as m; m.parse("curve.svg")' || failed "the picture is no XML"
grep -q '>proposal 0' curve.svg && grep -q '>optimizer.lr 0.0001<' curve.svg || fail "the picture does not have the rates"
! grep -qiE 'nan|inf[^o]' curve.svg || fail "the picture has numbers that are none"
mv out first
# The same losses as a run with this schedule has.
attempt 0 train c.yaml --set run.epochs= --set run.steps=5 --set log.every=1 --set optimizer.lr=1e-5 --set run.dir=same \
    --set "schedule={type: exponential, gamma: $(python3 -c 'print(repr(1e6 ** (1 / 59)))')}"
python3 - <<'END' || fail "a run with this schedule has other losses"
import json
ours = [p["loss"] for p in json.load(open("first"))["points"][:5]]
assert ours == [json.loads(line)["loss"] for line in open("same/metrics.jsonl")], ours
END

# --- a run that is there stays as it is, and is not carried on from ---
attempt 0 train c.yaml
find runs -type f | sort | xargs cat | cksum >before
find runs | sort >>before
attempt 0 find-lr c.yaml --from 1e-5 --to 10 --steps 60 --json
cmp -s out first || failed "the test depends on the run in run.dir"
{ find runs -type f | sort | xargs cat | cksum; find runs | sort; } | cmp -s - before || failed "the run folder has changed"

# --- how tests end ---
attempt 0 find-lr c.yaml --set optimizer.type=sgd --set train.clip_norm=off --from 1e-3 --to 1e30 --steps 40
grep -qE '^ended after [0-9]+ steps: the (smoothed loss exceeded 4 times|loss or a gradient was not finite)' out || failed "it does not say why it ended"
says 'The test ended early: try a lower --from and --to.'
attempt 0 find-lr c.yaml --from 1e-12 --to 1e-10 --steps 40
says 'ended after 40 steps: all rates were tried'
says 'no proposal: the loss did not fall by more than its noise'
says 'Try more --steps, a larger batch, or other rates.'
attempt 0 find-lr c.yaml --from 1e-5 --to 1e-2 --set batch.global=512
says 'The loss was still falling at the last rate: try a higher --to.'

# --- wrong use ---
attempt 2 find-lr
says 'CONFIG is missing'
attempt 2 find-lr c.yaml --from 1 --to 0.1
says '--to (0.1) must be larger than --from (1)'
attempt 2 find-lr c.yaml --from 0
says "--from takes a number above 0, as in 1e-3, not '0'"
attempt 2 find-lr c.yaml --to nan
says "--to takes a number above 0, as in 1e-3, not 'nan'"
attempt 2 find-lr c.yaml --steps 5
says "--steps takes a whole number of at least 40, not '5'"
attempt 2 find-lr c.yaml --svg c.yaml
says "'c.yaml' is the config; choose another file for --svg"
attempt 1 find-lr c.yaml --svg nowhere/curve.svg
says "'nowhere/curve.svg' cannot be written: No such file or directory"
attempt 2 find-lr c.yaml --set optimizer.lrr=1
says 'lr'
attempt 1 find-lr c.yaml --set data.train.path=missing.csv
says 'missing.csv'

echo "find-lr: all as expected"
