#!/usr/bin/env python3
"""Compares anneal find-lr with the same loop in PyTorch: against_torch.py ANNEAL [--write]. Run by hand; needs PyTorch.

An MLP in f64, for numbers and for classes. PyTorch gets the initial weights from anneal, and computes batches, AdamW, clipping, schedule, smoothing and the
proposal by itself. With --write, PyTorch's curves become tests/golden/data/find-lr.json, which golden.py compares anneal with.
"""
import json
import math
import os
import struct
import sys
import tempfile

sys.dont_write_bytecode = True

import torch

import curves
from curves import BATCH, FROM, SAMPLES, SEED, STEPS, TO

anneal = os.path.abspath(sys.argv[1])
os.chdir(tempfile.mkdtemp())


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


def load(name):
    """The weights that a run begins with."""
    curves.run(anneal, "train", name + ".yaml")  # with a rate of 0, so the weights stay as they began
    curves.run(anneal, "export", name, "--to", name + ".safetensors")
    with open(name + ".safetensors", "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    layers, modules = ("hidden.0", "hidden.1", "output"), []
    header = json.loads(data[8:begin])
    for layer in layers:
        tensors = []
        for part in ("weight", "bias"):
            about = header[f"{layer}.{part}"]
            first, end = about["data_offsets"]
            values = torch.frombuffer(bytearray(data[begin + first:begin + end]), dtype=torch.float64)
            tensors.append(values.reshape(about["shape"]))
        linear = torch.nn.Linear(*reversed(tensors[0].shape), dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(tensors[0])
            linear.bias.copy_(tensors[1])
        modules += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*modules[:-1])


def compute(name, rows, loss_of, targets_type):
    curves.write(name, rows)
    inputs = torch.tensor([row[:3] for row in rows], dtype=torch.float64)
    targets = torch.tensor([row[3] for row in rows], dtype=targets_type)
    points = range_test(load(name), inputs, targets, loss_of)
    return {"points": points, "proposal": proposal_of(points)}


tables = curves.tables()
golden = {"numbers": compute("numbers", tables["numbers"], lambda out, y: torch.nn.functional.mse_loss(out.flatten(), y), torch.float64),
          "classes": compute("classes", tables["classes"], torch.nn.functional.cross_entropy, torch.long)}
for name in golden:
    curves.compare(name, golden[name], curves.find(anneal, name))
if "--write" in sys.argv:
    curves.GOLDEN.write_text(json.dumps(golden, separators=(",", ":")).replace("],[", "],\n[") + "\n")
