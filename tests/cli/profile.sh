#!/usr/bin/env bash
# The profile of a run: a trace that has steps, data, optimizer, evaluations and saves beside the nodes, in the right
# places; the table; and the same bits as without it.
source "$(dirname "$0")/preamble.sh"
says() { grep -qF -- "$1" out err || failed "it does not say: $1"; }
hash_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["state_hash"])' "$1/summary.json"; }

python3 - <<'END2'
import random
random.seed(5)
with open("table.csv", "w") as table:
    table.write("a,b,y\n")
    for _ in range(400):
        a, b = random.random(), random.random()
        table.write(f"{a:.4f},{b:.4f},{a * b:.4f}\n")
END2
cat >run.yaml <<'END2'
run:   {dir: plain, steps: 60, seed: 3}
model: {type: mlp, hidden: [40, 40]}
data:
  train: {type: csv, path: table.csv, part: 0%..80%}
  eval:  {type: csv, path: table.csv, part: 80%..100%}
batch: {global: 16, micro: 4, leaves: 2}
optimizer: {lr: 1e-2}
eval:  {every: 20 steps}
save:  {every: 30 steps}
END2
attempt 0 train run.yaml
! grep -q 'where the time went' out || failed 'a run without a profile prints one'

for threads in 0 2; do
    attempt 0 train run.yaml --set "run.dir=profiled-$threads" --set "data.threads=$threads" --profile "trace-$threads.json"
    [ "$(hash_of plain)" = "$(hash_of "profiled-$threads")" ] || failed 'a profile changes the bits'
    for row in 'where the time went' 'step ' '  data ' '  forward and backward ' '  optimizer ' '    gradient norm ' '    update ' 'evaluation ' \
        '  forward ' 'save: copy ' 'save thread: write ' "the trace is in trace-$threads.json"; do says "$row"; done
    python3 - "trace-$threads.json" "$threads" out <<'END2' || failed "trace-$threads.json is wrong"
import json, re, sys
from collections import Counter, defaultdict

events, threads = json.load(open(sys.argv[1])), int(sys.argv[2])
names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
bars = [e for e in events if e["ph"] == "X"]
assert {e["tid"] for e in bars} <= set(names), names
expected = {"training", "save 0"}
for kind in ("loader", "evaluation loader"):
    expected |= {n for n in names.values() if re.fullmatch(kind + r" \d+", n)} if threads else set()
    assert not threads or any(n.startswith(kind + " ") for n in names.values()), (kind, names)
assert set(names.values()) == expected, names

NS = 1000  # whole nanoseconds, so that nothing is rounded here
for e in bars:
    e["begin"], e["end"] = round(e["ts"] * NS), round((e["ts"] + e["dur"]) * NS)
    assert 0 <= e["begin"] <= e["end"], e

# Bars of a row lie side by side or within each other; each learns what is around it.
by_row = defaultdict(list)
for e in bars:
    by_row[e["tid"]].append(e)
for row in by_row.values():
    around = []
    for e in sorted(row, key=lambda e: (e["begin"], -e["end"])):
        while around and around[-1]["end"] <= e["begin"] and not (around[-1]["end"] >= e["end"]):
            around.pop()
        assert not around or e["end"] <= around[-1]["end"], ("they overlap", around[-1], e)
        e["around"] = [a["name"] for a in around]
        e["outer"] = around[-1] if around else None
        around.append(e)

training = [e for e in bars if names[e["tid"]] == "training" and e["cat"] == "training"]
nodes = [e for e in bars if names[e["tid"]] == "training" and e["cat"] != "training"]
count = Counter(e["name"] for e in training)
assert count["step"] == count["data"] == count["reduce"] == count["optimizer"] == count["gradient norm"] == count["update"] == 60, count
assert count["forward and backward"] == 240 and count["evaluation"] == 3, count
assert count["evaluation data"] == count["evaluation forward"] == 3 * 5, count
inside = {"step": [], "data": ["step"], "forward and backward": ["step"], "reduce": ["step"], "optimizer": ["step"],
          "gradient norm": ["step", "optimizer"], "update": ["step", "optimizer"], "evaluation": [], "save": [],
          "wait for the save": [], "evaluation data": ["evaluation"], "evaluation forward": ["evaluation"]}
for e in training:
    assert e["around"] == inside[e["name"]], e
saves = [20, 30, 40, 60]  # 20 and 40 are the best so far
for name, numbers in (("step", range(1, 61)), ("evaluation", (20, 40, 60)), ("save", saves)):
    assert [e["args"]["number"] for e in training if e["name"] == name] == list(numbers), name
for e in training:  # data, passes, reduction and optimizer of a step follow each other
    if e["outer"] and e["outer"]["name"] == "step":
        assert e["args"]["number"] == e["outer"]["args"]["number"], e
order = [e["name"] for e in sorted(training, key=lambda e: e["begin"]) if e["outer"] and e["outer"]["name"] == "step"]
assert order == (["data"] + ["forward and backward"] * 4 + ["reduce", "optimizer"]) * 60, order[:8]

# Every node of the last passes, in the last step and in the last evaluation.
last = max(e["begin"] for e in training if e["name"] == "step")
assert nodes and all(e["outer"]["name"] in ("forward and backward", "evaluation forward") for e in nodes), nodes[0]
assert {e["outer"]["name"] for e in nodes} == {"forward and backward", "evaluation forward"}
assert all(e["begin"] >= last for e in nodes) and {e["cat"] for e in nodes} == {"forward", "backward"}

# Loader threads read every batch once, before it is used; a save is written after it was copied.
used = {e["args"]["number"]: e for e in training if e["name"] == "data"}
loads = [e for e in bars if names[e["tid"]].startswith("loader ")]
assert sorted(e["args"]["number"] for e in loads) == (list(range(60)) if threads else []), len(loads)
assert all(e["end"] <= used[e["args"]["number"] + 1]["end"] for e in loads)
loads = [e for e in bars if names[e["tid"]].startswith("evaluation loader ")]
assert sorted(e["args"]["number"] for e in loads) == (sorted(list(range(5)) * 3) if threads else [])
inside = [e for e in training if e["name"] == "evaluation"]
assert all(any(o["begin"] <= e["begin"] and e["end"] <= o["end"] for o in inside) for e in loads), "read outside of an evaluation"
copies = {e["args"]["number"]: e for e in training if e["name"] == "save"}
writes = [e for e in bars if names[e["tid"]] == "save 0"]
assert [e["args"]["number"] for e in writes] == saves
assert all(e["begin"] >= copies[e["args"]["number"]]["end"] for e in writes)

# The table says what the trace does.
table = {m[1].strip(): (int(m[2]), float(m[3])) for m in
         (re.match(r"( *[a-z][a-z: ]*?) +(\d+) +[\d.]+ +([\d.]+) +[\d.]+ %$", line.rstrip()) for line in open(sys.argv[3])) if m}
for name in ("step", "optimizer", "evaluation"):
    seconds = sum(e["dur"] for e in training if e["name"] == name) / 1e6
    assert table[name][0] == count[name] and abs(table[name][1] - seconds) < 0.002, (name, table[name], seconds)
END2
done
echo 'the profile shows what a run does'
