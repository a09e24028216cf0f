"""Whole training steps in PyTorch, timed when it is asked for: the other side of bench/train.

    torch_train.py char-gpt|cnn --precision f32|bf16 --threads N [--compile]

It says "ready", then answers every line "WARM PASSES" with the seconds of one step, as bench/train.c does. Models, batches and
optimizers are those of examples/shakespeare/char.yaml and examples/mnist/cnn.yaml, written as a careful user of PyTorch
would: data in memory as tensors, attention through scaled_dot_product_attention, the fused AdamW, clipping, a schedule.
"""
import argparse
import gzip
import math
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

import torch_serve

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (s.view(b, t, self.heads, -1).transpose(1, 2) for s in self.qkv(self.ln_1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary, context=64, layers=4, heads=4, width=128):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() >= 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                    nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))

    def forward(self, images, labels):
        return F.cross_entropy(self.layers(images), labels)


def char_gpt():
    """The model, its samples, its batch size, AdamW's settings, steps of the run."""
    text = (EXAMPLES / "shakespeare" / "tinyshakespeare.txt").read_text()
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    tokens = torch.tensor([number[c] for c in text[:int(0.9 * len(text))]])
    count = (len(tokens) - 1) // 64
    inputs, targets = tokens[:count * 64].view(count, 64), tokens[1:count * 64 + 1].view(count, 64)
    return GPT(len(number)), inputs, targets, 12, dict(lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1), 2000


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.GELU(), nn.Dropout(0.2), nn.Linear(256, 128), nn.GELU(),
                                    nn.Dropout(0.2), nn.Linear(128, 10))

    def forward(self, images, labels):
        return F.cross_entropy(self.layers(images), labels)


def digits():
    folder = EXAMPLES / "mnist"
    images = gzip.open(folder / "mnist-10k-images-idx3-ubyte.gz").read()[16:]
    labels = gzip.open(folder / "mnist-10k-labels-idx1-ubyte.gz").read()[8:]
    inputs = torch.frombuffer(bytearray(images), dtype=torch.uint8).view(-1, 1, 28, 28)[:8000].float() / 255
    targets = torch.frombuffer(bytearray(labels), dtype=torch.uint8)[:8000].long()
    return inputs, targets


def cnn():
    return CNN(), *digits(), 64, dict(lr=2e-3, weight_decay=0.05), 1000


def mlp():
    return MLP(), *digits(), 64, dict(lr=3e-3, weight_decay=0.01), 1000


MODELS = {"char-gpt": char_gpt, "cnn": cnn, "mlp": mlp}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    model, inputs, targets, batch, settings, steps = MODELS[arguments.model]()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    rest = {key: value for key, value in settings.items() if key != "weight_decay"}
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": settings["weight_decay"]},
                                   {"params": plain, "weight_decay": 0.0}], fused=True, **rest)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda t: min((t + 1) / 100, 0.1 + 0.45 * (1 + math.cos(math.pi * min(t / steps, 1)))))
    forward = torch.compile(model) if arguments.compile else model
    order = []

    def run():
        nonlocal order
        if len(order) < batch:
            order = torch.randperm(len(inputs))
        mine, order = order[:batch], order[batch:]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.precision == "bf16"):
            loss = forward(inputs[mine], targets[mine])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    torch_serve.serve(run)


main()
