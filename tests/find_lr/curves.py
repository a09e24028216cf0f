"""The runs of against_torch.py and golden.py: tables, configs, and how curves are compared."""
import json
import math
import pathlib
import random
import subprocess

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden/data/find-lr.json"
SAMPLES, BATCH, SEED, STEPS, FROM, TO = 250, 32, 7, 120, 1e-6, 3.0


def run(anneal, *arguments):
    return subprocess.run([*anneal.split(), *arguments], check=True, capture_output=True, text=True).stdout


def tables():
    """Rows of three inputs and a target. Targets have few digits, so that the sine of another library gives the same."""
    random.seed(1)
    inputs = [[random.uniform(-1, 1) for _ in range(3)] for _ in range(SAMPLES)]
    return {"numbers": [[*x, round(math.sin(3 * x[0]) + x[1] * x[2], 9)] for x in inputs],
            "classes": [[*x, (x[0] > 0) + (x[1] * x[2] > 0)] for x in inputs]}


def write(name, rows):
    with open(name + ".csv", "w") as file:
        file.write("a,b,c,y\n" + "".join(",".join(repr(x) for x in row) + "\n" for row in rows))
    with open(name + ".yaml", "w") as file:
        file.write(f"run: {{dir: {name}, steps: 1, seed: {SEED}}}\nmodel: {{type: mlp, hidden: [16, 16]}}\n"
                   f"optimizer: {{type: adamw, lr: 0}}\nbatch: {{global: {BATCH}}}\ntrain: {{precision: f64}}\n"
                   f"data: {{train: {{type: csv, path: {name}.csv, dtype: f64, classes: {'on' if name == 'classes' else 'off'}}}}}\n")


def find(anneal, name):
    return json.loads(run(anneal, "find-lr", name + ".yaml", "--from", str(FROM), "--to", str(TO), "--steps", str(STEPS), "--json"))


def compare(name, theirs, ours):
    """Rounding grows with the rate, until steps are chaotic: below the lowest loss curves agree to 1e-6, and all of them to 1e-4."""
    points = theirs["points"]
    assert len(points) == len(ours["points"]), (len(points), len(ours["points"]))
    lowest, worst = min(range(len(points)), key=lambda i: points[i][2]), [0.0, 0.0]
    for i, (a, b) in enumerate(zip(points, ours["points"])):
        for x, y in zip(a, (b["lr"], b["loss"], b["smoothed"])):
            worst[i > lowest] = max(worst[i > lowest], abs(x - y) / abs(x))
    assert worst[0] < 1e-6 and worst[1] < 1e-4, (name, worst)
    assert abs(theirs["proposal"] - ours["proposal"]) < 1e-6 * theirs["proposal"], (name, theirs["proposal"], ours["proposal"])
    print(f"{name}: {len(points)} points, at most {worst[0]:.1e} apart, {worst[1]:.1e} after the lowest; proposal {ours['proposal']:.3g}")
