#!/usr/bin/env python3
"""Compares anneal eval with scikit-learn: against_sklearn.py ANNEAL. Run by hand; needs scikit-learn.

Trains on scikit-learn's iris, wine, breast cancer, digits and diabetes, and asks scikit-learn for the same metrics from the model's outputs.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

import numpy
from sklearn import datasets, metrics

anneal = os.path.abspath(sys.argv[1])
os.chdir(tempfile.mkdtemp())


def run(*arguments):
    return subprocess.run([anneal, *arguments], check=True, capture_output=True, text=True).stdout


def near(name, ours, theirs):
    assert abs(ours - theirs) < 1e-6 * max(1, abs(theirs)), (name, ours, theirs)


for name in ("iris", "wine", "breast_cancer", "digits", "diabetes"):
    data = getattr(datasets, "load_" + name)()
    classifies = name != "diabetes"
    with open(name + ".csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow([f"x{i}" for i in range(data.data.shape[1])] + ["y"])
        table.writerows([*x, int(y) if classifies else y] for x, y in zip(data.data, data.target))
    with open(name + ".yaml", "w") as file:
        file.write(f"run: {{dir: {name}, steps: 60, seed: 3}}\nmodel: {{type: mlp, hidden: [16]}}\noptimizer: {{lr: 3e-3}}\n"
                   f"data: {{train: {{type: csv, path: {name}.csv, classes: {'on' if classifies else 'off'}}}, normalize: standard}}\n")
    run("train", name + ".yaml")
    found = json.loads(run("eval", name, "--data", name + ".csv", "--json"))
    run("predict", name, "--input", name + ".csv", "--output", name + ".npy")
    outputs = numpy.load(name + ".npy").astype(numpy.float64)
    ours = found["metrics"]
    if not classifies:
        near("mae", found["outputs"][0]["mae"], metrics.mean_absolute_error(data.target, outputs[:, 0]))
        near("rmse", found["outputs"][0]["rmse"], metrics.mean_squared_error(data.target, outputs[:, 0]) ** 0.5)
        near("r2", found["outputs"][0]["r2"], metrics.r2_score(data.target, outputs[:, 0]))
        print(f"{name}: r2 {found['outputs'][0]['r2']:.6f}")
        continue
    predicted = outputs.argmax(axis=1)
    assert found["confusion"] == metrics.confusion_matrix(data.target, predicted).tolist()
    each = metrics.precision_recall_fscore_support(data.target, predicted, zero_division=0)
    mean = metrics.precision_recall_fscore_support(data.target, predicted, average="macro", zero_division=0)
    for i, key in enumerate(("precision", "recall", "f1")):
        near(key, ours["val_" + key], mean[i])
        for row, value in zip(found["class_metrics"], each[i]):
            near(key, row[key], value)
    if len(each[0]) == 2:
        near("auc", ours["val_auc"], metrics.roc_auc_score(data.target, outputs[:, 1] - outputs[:, 0]))
    print(f"{name}: f1 {ours['val_f1']:.6f}" + (f", auc {ours['val_auc']:.6f}" if "val_auc" in ours else ""))
