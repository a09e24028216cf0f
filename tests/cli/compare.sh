#!/usr/bin/env bash
# anneal compare as its users see it: what differs between runs, the best of them, runs that have not ended, and folders
# that are none.
source "$(dirname "$0")/preamble.sh"
says() { grep -qF -- "$1" out err || failed "it does not say: $1"; }

awk 'BEGIN { print "x,y"; for (i = 0; i < 64; i++) printf "%.3f,%.3f\n", i / 64, i / 32 }' >line.csv
cat >a.yaml <<'END'
run:   {dir: runs/a, steps: 20, seed: 1}
model: {type: mlp, hidden: [4]}
data:
  train: {type: csv, path: line.csv, part: 0%..75%}
  eval:  {type: csv, path: line.csv, part: 75%..100%}
train: {precision: f32}
END
attempt 0 train a.yaml
attempt 0 train a.yaml --set run.dir=runs/b --set optimizer.lr=0.05
attempt 0 train a.yaml --set run.dir=runs/again

attempt 0 compare runs/a runs/b
grep -qE '^ +a +b$' out || fail "it does not name the runs: $(cat out)"
grep -qE '^optimizer.lr +0.0001 +0.05$|^optimizer.lr +1e-4 +0.05$' out || fail "it does not show the rates: $(cat out)"
! grep -q '^run.dir' out || fail "where runs were written is no difference"
! grep -q '^run.seed' out || fail "a key that is the same is shown"
grep -qE '^end +done +done$' out || fail "it does not say how they ended: $(cat out)"
grep -qE '^val_loss +[0-9.e-]+ +[0-9.e-]+ \*$' out || fail "the better one has no star: $(cat out)"
! grep -q '^best_' out || fail "the only evaluation is shown twice: $(cat out)"
! grep -q '^step ' out || fail "results that are equal are shown: $(cat out)"
grep -qx 'the runs ended with different bits (state_hash)' out || fail "it does not compare the hashes: $(cat out)"
attempt 0 compare runs/a runs/b --all
grep -qE '^step +20 +20$' out || fail "--all does not show what is equal: $(cat out)"

attempt 0 compare runs/a runs/again/
grep -qx 'the configs are the same, apart from run.dir' out || fail "$(cat out)"
grep -qx 'all runs ended with the same state_hash: they are bit-identical' out || fail "$(cat out)"

attempt 0 compare runs/a runs/b runs/again --json
python3 - <<'END' || fail "its JSON is another: $(cat out)"
import json
runs = json.load(open("out"))["runs"]
assert [run["path"] for run in runs] == ["runs/a", "runs/b", "runs/again"]
assert [sorted(run["config"]) for run in runs] == [["optimizer.lr"]] * 3
assert float(runs[1]["config"]["optimizer.lr"]) == 0.05 and runs[0]["config"] == runs[2]["config"]
for run in runs:
    summary = json.load(open(run["path"] + "/summary.json"))
    assert run["state_hash"] == summary["state_hash"] and run["end"] == "done"
    for name in ("loss", "val_loss", "val_r2"):
        assert run["results"][name] == summary["metrics"][name], name
END

# The best loss of a run may be one that it has left behind: it is shown with its step, and the best of all has the
# star.
for name in low high; do cp -r runs/b runs/$name; done
printf '{"step": 5, "val_loss": 0.5}\n{"step": 10, "val_loss": 0.125}\n{"step": 20, "val_loss": 2}\n' >runs/low/metrics.jsonl
printf '{"step": 5, "val_loss": 0.25}\n{"step": 10, "val_loss": null}\n{"step": 20, "val_loss": 1, "val_margin": 3}\n' >runs/high/metrics.jsonl
attempt 0 compare runs/low runs/high
grep -qE '^val_loss +2 +1 \*$' out || fail "the last values: $(cat out)"
grep -qE '^best_val_loss +0.125 \(10\) \* +0.25 \(5\)$' out || fail "the best values: $(cat out)"

# A long number keeps its star.
printf '{"step": 20, "val_loss": 0.000123456789}\n' >runs/low/metrics.jsonl
attempt 0 compare runs/low runs/high
grep -qE '^val_loss +0.000123457 \* +1$' out || fail "the star is lost: $(cat out)"

# A run that is still training: no outcome yet, and half a line.
cp -r runs/b runs/live
rm runs/live/outcome.json runs/live/summary.json
printf '{"step": 21, "lo' >>runs/live/metrics.jsonl
attempt 0 compare runs/a runs/live
grep -qE '^end +done +unfinished$' out || fail "$(cat out)"

mkdir empty
attempt 1 compare runs/a empty
says "'empty' has no config.yaml; give a run folder (run.dir)"
echo 'no JSON' >runs/live/metrics.jsonl
attempt 1 compare runs/a runs/live
says 'runs/live/metrics.jsonl:1: this is not a JSON object'
rm runs/live/metrics.jsonl
mkfifo runs/live/metrics.jsonl
attempt 1 compare runs/a runs/live
says 'runs/live/metrics.jsonl: cannot be read: it is not a regular file'
attempt 2 compare
