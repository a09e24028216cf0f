#!/usr/bin/env python3
"""Compares anneal find-lr with the same loop in PyTorch: against_torch.py ANNEAL. Run by hand; needs PyTorch and safetensors.

An MLP in f64, for numbers and for classes. PyTorch gets the initial weights from anneal, and computes batches, AdamW, clipping, schedule, smoothing and the
proposal by itself. Every point of the curve must agree to 1e-4.
"""
import importlib.util
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import torch

anneal = os.path.abspath(sys.argv[1])
os.chdir(tempfile.mkdtemp())
SAMPLES, BATCH, SEED, STEPS, FROM, TO = 250, 32, 7, 120, 1e-6, 3.0


def run(*arguments):
    return subprocess.run([anneal, *arguments], check=True, capture_output=True, text=True).stdout


# ---- the order of samples: data/permutation.c ----

def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = b >> 32 ^ c1 ^ k0, b & 0xFFFFFFFF, a >> 32 ^ c3 ^ k1, a & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def order_of(epoch):
    site = int.from_bytes(b"permuted", "big")
    h = philox((epoch, 0, site & 0xFFFFFFFF, site >> 32), (SEED, 0))
    half = 3
    while (SAMPLES - 1) >> 2 * half:
        half += 1
    mask = (1 << half) - 1

    def turn(x):
        left, right = x >> half, x & mask
        for step in range(8):
            left, right = right, left ^ philox((right, step, h[2], h[3]), h[:2])[0] & mask
        return left << half | right

    for i in range(SAMPLES):
        x = turn(i)
        while x >= SAMPLES:
            x = turn(x)
        yield x


def batches():
    epoch = 0
    while True:
        order = list(order_of(epoch))
        yield from (order[i:i + BATCH] for i in range(0, SAMPLES, BATCH))
        epoch += 1


# ---- the loop ----

def range_test(net, inputs, targets, loss_of):
    """The points of the curve: rate, loss, smoothed loss."""
    matrices = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                                  lr=FROM, betas=(0.9, 0.999), eps=1e-8)
    beta, average, lowest, points = 1 - 20 / STEPS, 0.0, math.inf, []
    for step, batch in zip(range(STEPS), batches()):
        rate = FROM * (TO / FROM) ** (step / (STEPS - 1))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = loss_of(net(inputs[batch]), targets[batch])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        average = beta * average + (1 - beta) * loss.item()
        smoothed = average / (1 - beta ** (step + 1))
        points.append((rate, loss.item(), smoothed))
        lowest = min(lowest, smoothed)
        if smoothed > 4 * lowest:
            break
    return points


def proposal_of(points):
    smoothed = [p[2] for p in points]
    lowest, reach = smoothed.index(min(smoothed)), STEPS // 20
    falls = {i: smoothed[i - reach] - smoothed[i + reach] for i in range(2 * reach, lowest - reach + 1)}
    return points[max(falls, key=falls.get)][0]


def compare(name, rows, loss_of, targets_type):
    with open(name + ".csv", "w") as file:
        file.write("a,b,c,y\n" + "".join(",".join(repr(x) for x in row) + "\n" for row in rows))
    with open(name + ".yaml", "w") as file:
        file.write(f"run: {{dir: {name}, steps: 1, seed: {SEED}}}\nmodel: {{type: mlp, hidden: [16, 16]}}\n"
                   f"optimizer: {{type: adamw, lr: 0}}\nbatch: {{global: {BATCH}}}\ntrain: {{precision: f64}}\n"
                   f"data: {{train: {{type: csv, path: {name}.csv, dtype: f64, classes: {'on' if targets_type == torch.long else 'off'}}}}}\n")
    run("train", name + ".yaml")  # with a rate of 0, so the weights stay as they began
    run("export", name, "--to", "torch", name + "-torch")
    found = json.loads(run("find-lr", name + ".yaml", "--from", str(FROM), "--to", str(TO), "--steps", str(STEPS), "--json"))
    spec = importlib.util.spec_from_file_location("model", f"{name}-torch/model.py")
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    inputs = torch.tensor([row[:3] for row in rows], dtype=torch.float64)
    targets = torch.tensor([row[3] for row in rows], dtype=targets_type)
    points = range_test(model.load(), inputs, targets, loss_of)
    assert len(points) == len(found["points"]), (len(points), len(found["points"]))
    worst = 0.0
    for theirs, ours in zip(points, found["points"]):
        for a, b in zip(theirs, (ours["lr"], ours["loss"], ours["smoothed"])):
            worst = max(worst, abs(a - b) / abs(a))
    assert worst < 1e-4, (name, worst)
    proposal = proposal_of(points)
    assert abs(proposal - found["proposal"]) < 1e-4 * proposal, (name, proposal, found["proposal"])
    print(f"{name}: {len(points)} points, at most {worst:.1e} apart, end {found['end']}, proposal {proposal:.3g}")


random.seed(1)
table = [[random.uniform(-1, 1) for _ in range(3)] for _ in range(SAMPLES)]
compare("numbers", [[*x, math.sin(3 * x[0]) + x[1] * x[2]] for x in table],
        lambda out, y: torch.nn.functional.mse_loss(out.flatten(), y), torch.float64)
compare("classes", [[*x, (x[0] > 0) + (x[1] * x[2] > 0)] for x in table], torch.nn.functional.cross_entropy, torch.long)
