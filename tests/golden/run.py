#!/usr/bin/env python3
"""Makes data/run-losses.txt: 50 steps of a GPT of two layers with PyTorch, with all that a step has: groups of parameters with
rates and decay of their own, warm-up and cosine, accumulation over micro-batches of ragged sequences, clipping.

    pip install torch==2.15.0
    tests/golden/run.py

tests/run/test_run.c has the same model, weights, batches and rules; weights and batches are made by formulas.
"""

import math
import pathlib

import torch
import torch.nn.functional as F

FOLDER = pathlib.Path(__file__).resolve().parent / "data"

STEPS, BATCH, MICRO, TOKENS, VOCABULARY = 50, 12, 4, 16, 29
LAYERS, HEADS, WIDTH = 2, 2, 32
RATE, BETAS, EPSILON, DECAY, CLIP = 3e-3, (0.9, 0.99), 1e-8, 0.1, 0.25
WARMUP, MIN_RATIO = 10, 0.1
LN_SCALE = 0.5  # on the rate of ln_f, which does not decay


def shapes():
    """In the order of the model's parameters."""
    yield "wte.weight", (VOCABULARY, WIDTH)
    yield "wpe.weight", (TOKENS, WIDTH)
    for i in range(LAYERS):
        for name, outputs, inputs in (("ln_1", WIDTH, 0), ("attn.c_attn", 3 * WIDTH, WIDTH), ("attn.c_proj", WIDTH, WIDTH),
                                      ("ln_2", WIDTH, 0), ("mlp.c_fc", 4 * WIDTH, WIDTH), ("mlp.c_proj", WIDTH, 4 * WIDTH)):
            yield f"h.{i}.{name}.weight", (outputs, inputs) if inputs else (outputs,)
            yield f"h.{i}.{name}.bias", (outputs,)
    yield "ln_f.weight", (WIDTH,)
    yield "ln_f.bias", (WIDTH,)


def start(name, shape):
    """Multiples of 1/2002 times a power of two: exact in f32 up to one rounding."""
    seed = sum(ord(c) for c in name)
    i = torch.arange(math.prod(shape), dtype=torch.int64)
    numbers = ((i * 7919 + seed * 104729) % 2003 - 1001).to(torch.float32) / 8192
    if "ln_" in name and name.endswith("weight"):
        numbers = 1 + numbers
    return numbers.reshape(shape).requires_grad_()


def micro_batch(step, first):
    tokens, targets = [], []
    for sample in range(first, first + MICRO):
        length = 1 + (step * BATCH + sample) * 5 % TOKENS
        tokens.append([((step * BATCH + sample) * 7 + k * k * 3) % VOCABULARY for k in range(TOKENS)])
        targets.append([(tokens[-1][k] * 5 + k) % VOCABULARY if k < length else -100 for k in range(TOKENS)])
    return torch.tensor(tokens), torch.tensor(targets)


def loss_sum(w, tokens, targets):
    linear = lambda x, name: F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])
    norm = lambda x, name: F.layer_norm(x, (WIDTH,), w[f"{name}.weight"], w[f"{name}.bias"])
    heads = lambda x: x.view(MICRO, TOKENS, HEADS, -1).transpose(1, 2)
    x = F.embedding(tokens, w["wte.weight"]) + w["wpe.weight"]
    for i in range(LAYERS):
        q, k, v = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(WIDTH, -1)
        y = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=True)
        x = x + linear(y.transpose(1, 2).flatten(2), f"h.{i}.attn.c_proj")
        y = F.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + linear(y, f"h.{i}.mlp.c_proj")
    logits = F.linear(norm(x, "ln_f"), w["wte.weight"])
    return F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1), reduction="sum")


def main():
    w = {name: start(name, shape) for name, shape in shapes()}
    last = [p for name, p in w.items() if name.startswith("ln_f")]
    rest = [p for name, p in w.items() if not name.startswith("ln_f")]
    optimizer = torch.optim.AdamW([{"params": [p for p in rest if p.dim() >= 2], "weight_decay": DECAY},
                                   {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0},
                                   {"params": last, "weight_decay": 0.0, "lr": RATE * LN_SCALE}],
                                  lr=RATE, betas=BETAS, eps=EPSILON, foreach=False)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / WARMUP, total_iters=WARMUP)
    cosine = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda t: MIN_RATIO + (1 - MIN_RATIO) * (1 + math.cos(math.pi * t / (STEPS - WARMUP))) / 2)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], [WARMUP])
    version = torch.__version__.split("+")[0]
    lines = [f"# made by tests/golden/run.py with PyTorch {version}: step, loss, norm of the gradient, rate\n"]
    for step in range(STEPS):
        batches = [micro_batch(step, first) for first in range(0, BATCH, MICRO)]
        count = sum((targets != -100).sum().item() for _, targets in batches)
        optimizer.zero_grad()
        total = 0.0
        for tokens, targets in batches:
            loss = loss_sum(w, tokens, targets)
            (loss / count).backward()
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(list(w.values()), CLIP)
        rate = optimizer.param_groups[0]["lr"]
        optimizer.step()
        schedule.step()
        lines.append(f"{step} {total / count:.9f} {norm.item():.9f} {rate:.17g}\n")
    (FOLDER / "run-losses.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
