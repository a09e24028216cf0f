"""Others read our checkpoints, and we read their files: shards with the package safetensors from PyPI and PyTorch, bit for bit.

    pip install safetensors torch      # 0.8.0 and 2.15.0 were used
    tests/store/check_checkpoint.py BUILD/bin/anneal

A run is saved by several writers, so that tensors are cut into parts named TENSOR#BEGIN. Exit code 1: something differs.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import safetensors
import safetensors.torch
import torch

program = str(pathlib.Path(sys.argv[1]).resolve())
failed = False
CONFIG = """
run:   {{dir: {dir}, steps: {steps}}}
model: {{type: gpt2, layers: 2, heads: 2, width: 32, context: 16{init}}}
data:  {{train: {{type: text, path: text.txt}}}}
batch: {{global: 8}}
optimizer: {{lr: {lr}}}
train: {{precision: f32}}
save:  {{writers: {writers}}}
"""


def check(what, good):
    global failed
    failed |= not good
    print(f"{'as it should be' if good else 'WRONG'}: {what}")


def anneal(*arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def train(name, steps=4, lr=1e-2, writers=1, init=""):
    pathlib.Path(f"{name}.yaml").write_text(CONFIG.format(dir=name, steps=steps, lr=lr, writers=writers, init=init))
    anneal("train", f"{name}.yaml")
    return next(pathlib.Path(name, "checkpoints").glob("step-*"))


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(torch.uint8), b.view(torch.uint8))


def gather(folder):
    """All tensors of a checkpoint, by the package and the manifest; and how many were in parts."""
    manifest = json.loads((folder / "manifest.json").read_text())
    shards = {path.name: safetensors.torch.load_file(path) for path in folder.glob("*.safetensors")}
    for path in folder.glob("*.safetensors"):  # the same without reading it whole
        with safetensors.safe_open(path, "pt") as file:
            assert set(file.keys()) == set(shards[path.name])
            assert all(same(file.get_tensor(name), shards[path.name][name]) for name in file.keys())
    parts = {}
    for shard in shards.values():
        for name, tensor in shard.items():
            whole, mark, begin = name.rpartition("#")
            parts.setdefault(whole if mark else name, []).append((int(begin) if mark else 0, tensor))
    tensors = {}
    for entry in manifest["tensors"]:
        pieces = sorted(parts.pop(entry["name"]), key=lambda piece: piece[0])
        tensors[entry["name"]] = torch.cat([piece.flatten() for _, piece in pieces]).view(entry["shape"]), len(pieces)
    assert not parts, parts.keys()
    return {name: tensor for name, (tensor, _) in tensors.items()}, sum(count > 1 for _, count in tensors.values())


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    pathlib.Path("text.txt").write_text("".join(f"{i} times {i} is {i * i}.\n" for i in range(400)))

    one, cut = gather(train("one"))
    check(f"a checkpoint of one writer: {len(one)} tensors, none in parts", cut == 0)
    for writers in (2, 4, 7, 16):
        many, cut = gather(train(f"by-{writers}", writers=writers))
        check(f"of {writers} writers: {cut} tensors in parts, all put together the same bits",
              cut > 0 and set(many) == set(one) and all(same(many[name], one[name]) for name in one))

    anneal("export", "by-7", "--to", "weights.safetensors")
    exported = safetensors.torch.load_file("weights.safetensors")
    weights = {name: tensor for name, tensor in one.items() if not name.startswith("moment_")}
    check(f"an exported file: {len(exported)} weights, the same bits",
          set(exported) == set(weights) and all(same(exported[name], weights[name]) for name in weights))

    torch.manual_seed(3)
    theirs = {name: torch.randn_like(tensor) for name, tensor in weights.items()}
    safetensors.torch.save_file(theirs, "theirs.safetensors")
    train("from-theirs", steps=1, lr=0, init=", init: {from: theirs.safetensors}")
    anneal("export", "from-theirs", "--to", "ours.safetensors")
    ours = safetensors.torch.load_file("ours.safetensors")
    check(f"a file of theirs in a model of ours: {len(ours)} weights, the same bits",
          set(ours) == set(theirs) and all(same(ours[name], theirs[name]) for name in theirs))
    for name, tensor in theirs.items():
        theirs[name] = tensor.bfloat16() if "weight" in name else tensor.double()
    safetensors.torch.save_file(theirs, "low.safetensors")
    train("from-low", steps=1, lr=0, init=", init: {from: low.safetensors}")
    anneal("export", "from-low", "--to", "ours.safetensors")
    ours = safetensors.torch.load_file("ours.safetensors")
    check("the same in bf16 and f64, converted", all(same(ours[name], theirs[name].float()) for name in theirs))
    train("from-run", steps=1, lr=0, init=", init: {from: by-4}")
    anneal("diff", "from-run", "weights.safetensors")
    check("a run of ours from another's checkpoint in parts, the same bits", True)
sys.exit(failed)
