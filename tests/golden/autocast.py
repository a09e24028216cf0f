#!/usr/bin/env python3
"""Makes data/gpt-losses.txt: the losses of a small GPT's first steps with PyTorch, in f32 and in bf16 by its autocast.

    pip install torch==2.15.0 numpy
    tests/golden/autocast.py build/release/bin/test_models_learns

The test, which compares the library with them, first writes the weights to start from (--dump): they come from the
library's own generator, so that nobody has to store them. Model, batches and optimizer are the test's, in the same words.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import torch.nn.functional as F

FOLDER = pathlib.Path(__file__).resolve().parent / "data"
EXAMPLES = FOLDER.parents[2] / "examples"

STEPS, BATCH, TOKENS = 50, 12, 64
LAYERS, HEADS, WIDTH = 4, 4, 128
STRIDE = 7919  # between the beginnings of two samples: a prime
RATE, BETAS, EPSILON, DECAY = 1e-3, (0.9, 0.99), 1e-8, 0.1


def read_weights(program):
    """Lines `name dims…`, a line `end`, then the numbers in f32."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([program, "--dump", file.name], check=True)
        shapes = []
        for line in file:
            words = line.decode().split()
            if words == ["end"]:
                break
            shapes.append((words[0], [int(word) for word in words[1:]]))
        numbers = numpy.frombuffer(file.read(), dtype="<f4")
    weights, begin = {}, 0
    for name, dims in shapes:
        count = int(numpy.prod(dims))
        weights[name] = torch.tensor(numbers[begin:begin + count].reshape(dims)).requires_grad_()
        begin += count
    assert begin == len(numbers)
    return weights


def read_text():
    text = (EXAMPLES / "shakespeare" / "tinyshakespeare.txt").read_bytes()
    numbers = {byte: i for i, byte in enumerate(sorted(set(text)))}
    return torch.tensor([numbers[byte] for byte in text])


def batch_of(text, step):
    begins = [(step * BATCH + i) * STRIDE % (len(text) - TOKENS - 1) for i in range(BATCH)]
    return (torch.stack([text[begin + shift:begin + shift + TOKENS] for begin in begins]) for shift in (0, 1))


def loss_of(w, tokens, targets):
    linear = lambda x, name: F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])
    norm = lambda x, name: F.layer_norm(x, (WIDTH,), w[f"{name}.weight"], w[f"{name}.bias"])
    heads = lambda x: x.view(BATCH, TOKENS, HEADS, -1).transpose(1, 2)
    x = F.embedding(tokens, w["wte.weight"]) + w["wpe.weight"][:TOKENS]
    for i in range(LAYERS):
        q, k, v = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(WIDTH, -1)
        y = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=True)
        x = x + linear(y.transpose(1, 2).flatten(2), f"h.{i}.attn.c_proj")
        y = F.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + linear(y, f"h.{i}.mlp.c_proj")
    logits = F.linear(norm(x, "ln_f"), w["wte.weight"])
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def losses_of(program, low):
    w, text = read_weights(program), read_text()
    groups = [{"params": [p for p in w.values() if p.dim() >= 2], "weight_decay": DECAY},
              {"params": [p for p in w.values() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=EPSILON, foreach=False)
    for step in range(STEPS):
        tokens, targets = batch_of(text, step)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
            loss = loss_of(w, tokens, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def main():
    program = sys.argv[1]
    version = torch.__version__.split("+")[0]
    lines = [f"# made by tests/golden/autocast.py with PyTorch {version}: step, loss in f32, loss in bf16\n"]
    for step, losses in enumerate(zip(losses_of(program, False), losses_of(program, True))):
        lines.append(f"{step} {losses[0]:.6f} {losses[1]:.6f}\n")
    (FOLDER / "gpt-losses.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
