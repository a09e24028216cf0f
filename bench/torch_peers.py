"""Forward and backward of a model in PyTorch, timed when it is asked for: the other side of bench/peers.

    torch_peers.py lenet|resnet18|mlp --precision f32|f64|bf16 --batch N --threads N [--compile] [--channels-last]

It says "ready", then answers every line "WARM PASSES" with the seconds of one pass, as bench/step.c does. The models
are those of bench/models.c.
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

import torch_serve

SIDE, CLASSES = 32, 10


class ResNet18(nn.Module):
    class Block(nn.Module):
        def __init__(self, channels, filters, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, filters, 3, stride, padding=1, bias=False)
            self.conv2 = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(filters), nn.BatchNorm2d(filters)
            self.shortcut = nn.Identity()
            if stride != 1 or channels != filters:
                self.shortcut = nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)))
            return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        channels, blocks = 64, []
        for stage in range(4):
            for block in range(2):
                filters = 64 << stage
                blocks.append(self.Block(channels, filters, 2 if stage > 0 and block == 0 else 1))
                channels = filters
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(channels, CLASSES)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES))


def mlp():
    return nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 8))


def make(name, batch, dtype):
    """The model, its input, its targets, its loss."""
    if name == "mlp":
        return mlp(), torch.rand(batch, 32, dtype=dtype) * 2 - 1, torch.rand(batch, 8, dtype=dtype), F.mse_loss
    model, channels = (lenet(), 1) if name == "lenet" else (ResNet18(), 3)
    images = torch.rand(batch, channels, SIDE, SIDE, dtype=dtype) * 2 - 1
    return model, images, torch.randint(0, CLASSES, (batch,)), F.cross_entropy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=["lenet", "resnet18", "mlp"])
    parser.add_argument("--precision", choices=["f32", "f64", "bf16"], default="f32")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    dtype = torch.float64 if arguments.precision == "f64" else torch.float32
    model, inputs, targets, loss_of = make(arguments.model, arguments.batch, dtype)
    model = model.to(dtype)
    if arguments.channels_last and inputs.dim() == 4:
        model, inputs = model.to(memory_format=torch.channels_last), inputs.to(memory_format=torch.channels_last)

    def forward(x, y):
        return loss_of(model(x), y)

    step = torch.compile(forward) if arguments.compile else forward

    def run():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.precision == "bf16"):
            loss = step(inputs, targets)
        loss.backward()
        model.zero_grad(set_to_none=True)

    torch_serve.serve(run)


main()
