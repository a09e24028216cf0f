"""Configs whose state has everything that a run can have, and data for them. `{run}` is the run's folder."""

import pathlib
import random
import struct

TEXT = """
run:       {{dir: {run}, steps: {steps}, seed: 5}}
model:     {{type: gpt2, layers: 2, heads: 2, width: 16, context: 16, dropout: 0.1}}
data:
  mixtures:
    - {{type: text, path: {tree}/examples/shakespeare/tinyshakespeare.txt, part: 0%..1%, weight: 2}}
    - {{type: text, path: {tree}/examples/shakespeare/tinyshakespeare.txt, part: 50%..50.5%}}
  eval:    {{type: text, path: {tree}/examples/shakespeare/tinyshakespeare.txt, part: 95%..95.5%}}
  threads: 1
batch:     {{micro: 4, leaves: 4, accumulate: {{0: 4, 1: 8, 2: 12}}}}
optimizer: {{lr: 1e-2}}
schedule:  {{type: cosine, warmup: 10, min_ratio: 0.1}}
train:     {{precision: {precision}}}
eval:      {{every: 9 steps, best: val_loss}}
save:      {{every: 7 steps, keep_last: 2, keep_every: 56}}
log:       {{every: 1 steps}}
"""

# Targets that f16 has no room for at the first scale: it falls at the beginning, rises after 2,000 good steps and falls
# again.
SCALED = """
run:       {{dir: {run}, steps: {steps}, seed: 5}}
model:     {{type: mlp, hidden: [32, 32], dropout: 0.1}}
data:
  train:   {{type: csv, path: {data}/large.csv, part: 0%..90%}}
  eval:    {{type: csv, path: {data}/large.csv, part: 90%..100%}}
batch:     {{global: 32, leaves: 2, micro: 4}}
optimizer: {{lr: 1e-3}}
train:     {{precision: f16}}
eval:      {{every: 310 steps, best: val_loss}}
save:      {{every: 150 steps, keep_last: 1}}
log:       {{every: 10 steps, tensorboard: off}}
"""

IMAGES = """
run:       {{dir: {run}, steps: {steps}, seed: 5}}
model:     {{type: cnn, filters: [4, 8], hidden: 16, batch_norm: on, dropout: 0.2}}
data:
  train:   {{type: idx, path: {tree}/examples/mnist/mnist-10k-images-idx3-ubyte.gz, labels: {tree}/examples/mnist/mnist-10k-labels-idx1-ubyte.gz, part: 0%..4%}}
  eval:    {{type: idx, path: {tree}/examples/mnist/mnist-10k-images-idx3-ubyte.gz, labels: {tree}/examples/mnist/mnist-10k-labels-idx1-ubyte.gz, part: 99%..100%}}
batch:     {{global: 32, leaves: 2}}
optimizer: {{type: sgd, lr: 0.05, momentum: 0.9, nesterov: on}}
schedule:  {{type: one_cycle}}
train:     {{precision: f32}}
eval:      {{every: 8 steps, best: val_accuracy}}
save:      {{every: 5 steps, keep_last: 2}}
log:       {{every: 1 steps, tensorboard: off}}
"""

LION = """
run:       {{dir: {run}, steps: {steps}, seed: 5}}
model:     {{type: mlp, hidden: [32, 32], dropout: 0.1}}
data:
  train:   {{type: csv, path: {data}/large.csv, part: 0%..90%}}
  eval:    {{type: csv, path: {data}/large.csv, part: 90%..100%}}
batch:     {{global: 32, leaves: 2, micro: 4}}
optimizer: {{type: lion, lr: 1e-3, weight_decay: 0.1, groups: [{{match: bias, lr_scale: 0.5}}]}}
train:     {{precision: {precision}, ema: 0.9}}
eval:      {{every: 9 steps, best: val_r2}}
save:      {{every: 7 steps, keep_last: 2}}
log:       {{every: 1 steps, tensorboard: off}}
"""

PREFERENCES = """
run:       {{dir: {run}, steps: {steps}, seed: 5}}
model:     {{type: llama, layers: 2, heads: 4, kv_heads: 2, width: 16, hidden: 40, context: 28, vocabulary: 24, init: {{from: {tree}/tests/golden/huggingface/llama/model.safetensors}}}}
lora:      {{targets: [q_proj, v_proj, down_proj], rank: 4, dropout: 0.2}}
data:
  train:   {{type: preferences, path: {tree}/tests/golden/dpo/llama/pairs.jsonl, tokenizer: {tree}/tests/golden/dpo/llama}}
  eval:    {{type: preferences, path: {tree}/tests/golden/dpo/llama/pairs.jsonl, tokenizer: {tree}/tests/golden/dpo/llama}}
batch:     {{global: 4, leaves: 2, micro: 1}}
optimizer: {{lr: 1e-3}}
train:     {{precision: {precision}, recompute: block}}
eval:      {{every: 9 steps, best: val_loss}}
save:      {{every: 7 steps, keep_last: 2}}
log:       {{every: 1 steps, tensorboard: off}}
"""

# name: (template, precision, steps)
CONFIGS = {
    "text-f32": (TEXT, "f32", 200),
    "text-bf16": (TEXT, "bf16", 200),
    "scaled-f16": (SCALED, "f16", 4000),
    "images-batch-norm": (IMAGES, "f32", 120),
    "table-lion": (LION, "bf16", 200),
    "preferences": (PREFERENCES, "bf16", 200),
}


def make_data(folder):
    numbers = random.Random(7)
    with open(folder / "large.csv", "w") as file:
        file.write("a,b,c,y\n")
        for _ in range(2000):
            a, b, c = (numbers.uniform(-1, 1) for _ in range(3))
            file.write(f"{a:.5f},{b:.5f},{c:.5f},{200 * a * b + 100 * c:.3f}\n")


def write_config(name, tree, folder, run, steps=None):
    """Writes the config to folder/name.yaml."""
    template, precision, length = CONFIGS[name]
    path = pathlib.Path(folder) / f"{name}.yaml"
    path.write_text(template.format(run=run, tree=tree, data=folder, steps=steps or length, precision=precision))
    return path
