#!/usr/bin/env python3
"""From `anneal init` to a trained model, beside scikit-learn's MLP on the same splits. Run by hand; needs scikit-learn.

    compare.py ANNEAL [--splits 20] [--first 0] [--tables iris,wine]     (ANNEAL: the command, such as build/release/bin/anneal)

Every table of scikit-learn is written as train.csv and test.csv, with a header and names of classes, 75% and 25% of its rows. anneal
sees nothing but train.csv, of which its config holds out a fifth for evaluation, and the model of the last step is judged on test.csv.
scikit-learn trains on all of train.csv, with standardised inputs and targets, its defaults, and up to 2,000 iterations. A score is the
accuracy, or R² for numbers. The exit code is 1 if anneal is more than one point below scikit-learn on any table."""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings

from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

TABLES = {"iris": datasets.load_iris, "wine": datasets.load_wine, "breast cancer": datasets.load_breast_cancer,
          "diabetes": datasets.load_diabetes, "digits": datasets.load_digits}
POINT = 0.01


def write(path, names, inputs, targets):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(names)
        out.writerows([*map(repr, row), target] for row, target in zip(inputs.tolist(), targets))


def score_anneal(anneal, folder, metric):
    def run(*arguments):
        return subprocess.run([anneal, *arguments], cwd=folder, check=True, capture_output=True, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout
    pathlib.Path(folder, "run.yaml").write_text(run("init", "train.csv"))
    run("train", "run.yaml")
    return json.loads(run("eval", "runs/run", "--data", "test.csv", "--json"))["metrics"]["val_" + metric]


def score_sklearn(model, inputs, targets, classes):
    scaler = StandardScaler().fit(inputs[0])
    scaled = [scaler.transform(x) for x in inputs]
    if not classes:
        mean, deviation = targets[0].mean(), targets[0].std()
        targets = [(y - mean) / deviation for y in targets]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(scaled[0], targets[0]).score(scaled[1], targets[1])


def compare(anneal, name, seed):
    table = TABLES[name]()
    classes = hasattr(table, "target_names")
    *inputs, first, second = train_test_split(table.data, table.target, random_state=seed,
                                              stratify=table.target if classes else None)
    targets = [first, second]
    kinds = [f"{name} {kind}" for kind in table.target_names] if classes else None
    with tempfile.TemporaryDirectory() as folder:
        for part in (0, 1):
            names = [*map(str, table.feature_names), "kind" if classes else "progression"]
            values = [kinds[y] for y in targets[part]] if classes else targets[part].tolist()
            write(pathlib.Path(folder, ["train.csv", "test.csv"][part]), names, inputs[part], values)
        ours = score_anneal(anneal, folder, "accuracy" if classes else "r2")
    model = (MLPClassifier if classes else MLPRegressor)(max_iter=2000, random_state=seed)
    return ours, score_sklearn(model, inputs, targets, classes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("anneal", type=os.path.abspath)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--tables", default=",".join(TABLES))
    options = parser.parse_args()
    failed = False
    print(f"{'table':<16}{'anneal':>9}{'sklearn':>9}{'points':>9}{'± error':>9}", flush=True)
    for name in options.tables.split(","):
        pairs = [compare(options.anneal, name, seed) for seed in range(options.first, options.first + options.splits)]
        ours, theirs = (statistics.mean(pair[k] for pair in pairs) for k in (0, 1))
        differences = [(a - b) / POINT for a, b in pairs]
        error = statistics.stdev(differences) / len(pairs) ** 0.5 if len(pairs) > 1 else float("nan")
        failed = failed or ours < theirs - POINT
        print(f"{name:<16}{ours:>9.4f}{theirs:>9.4f}{(ours - theirs) / POINT:>+9.2f}{error:>9.2f}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
