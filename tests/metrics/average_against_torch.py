#!/usr/bin/env python3
"""Compares train.ema with PyTorch: average_against_torch.py ANNEAL. Run by hand; needs PyTorch.

Trains a small model that saves every step. torch.optim.swa_utils.AveragedModel is given the weights of each checkpoint, one after another, and must have
the averages that anneal has saved.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS = 40
anneal = os.path.abspath(sys.argv[1])
os.chdir(tempfile.mkdtemp())


def run(*arguments):
    return subprocess.run([anneal, *arguments], check=True, capture_output=True, text=True).stdout


def read(checkpoint, weights):
    run("export", checkpoint, "--to", "model.safetensors", "--weights", weights)
    with open("model.safetensors", "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, about in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, end = about["data_offsets"]
            values = torch.frombuffer(bytearray(data[begin + first:begin + end]), dtype=torch.float32)
            tensors[name] = values.reshape(about["shape"]).clone()
    return tensors


class Model(torch.nn.Module):
    """Nothing but the tensors."""

    def __init__(self, tensors):
        super().__init__()
        self.values = torch.nn.ParameterList(torch.nn.Parameter(tensors[name]) for name in sorted(tensors))

    def take(self, tensors):
        with torch.no_grad():
            for value, name in zip(self.values, sorted(tensors)):
                value.copy_(tensors[name])


random.seed(1)
with open("table.csv", "w", encoding="utf-8") as file:
    file.write("a,b,c,y\n")
    for _ in range(200):
        a, b, c = (random.uniform(-1, 1) for _ in range(3))
        file.write(f"{a:.4f},{b:.4f},{c:.4f},{a + b * c:.4f}\n")

for decay in (0.5, 0.9, 0.999):
    with open("run.yaml", "w", encoding="utf-8") as file:
        file.write(f"""
run:       {{dir: run-{decay}, steps: {STEPS}, seed: 3}}
model:     {{type: mlp, hidden: [16, 16]}}
data:      {{train: {{type: csv, path: table.csv}}}}
batch:     {{global: 16}}
optimizer: {{lr: 1e-2}}
train:     {{precision: f32, ema: {decay}}}
save:      {{every: 1 steps, keep_last: {STEPS}}}
""")
    run("train", "run.yaml")
    model, averaged, largest = None, None, 0.0
    for step in range(1, STEPS + 1):
        checkpoint = f"run-{decay}/checkpoints/step-{step:08d}-1"
        weights, ours = read(checkpoint, "raw"), read(checkpoint, "ema")
        if not model:
            model = Model(weights)
            averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
        model.take(weights)
        averaged.update_parameters(model)
        for value, name in zip(averaged.module.values, sorted(ours)):
            error = (value.detach() - ours[name]).abs().max() / value.detach().abs().max()
            largest = max(largest, float(error))
            assert error < 1e-6, (decay, step, name, float(error))
    print(f"decay {decay}: {STEPS} steps, largest relative error {largest:.3g}")
