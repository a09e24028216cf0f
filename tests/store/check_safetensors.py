"""safetensors files go both ways between anneal and the package from PyPI, and PyTorch if it is there, bit for bit.

    pip install safetensors numpy      # 0.8.0 and 2.4.6 were used, and torch 2.15.0
    tests/store/check_safetensors.py BUILD/bin/test_train_safetensors

The program, given an argument, writes a file of every type or prints one. Exit code 1: something differs.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import safetensors
import safetensors.numpy

try:
    import safetensors.torch
    import torch
except ImportError:
    torch = None

program = pathlib.Path(sys.argv[1]).resolve()
failed = False


def compare(what, found, expected):
    global failed
    same = found == expected
    failed |= not same
    print(f"{what}: {len(expected)} tensors, {'the same' if same else 'OTHERS'}")
    for name in sorted(set(found) | set(expected)):
        if not same and found.get(name) != expected.get(name):
            print(f"  {name!r}: {found.get(name)} and not {expected.get(name)}")


def by_anneal(path):
    """What anneal reads: name to type, shape and bytes."""
    tensors = {}
    for line in subprocess.run([program, path], check=True, capture_output=True, text=True).stdout.splitlines():
        dtype, shape, data, name = line.split(" ")
        tensors[bytes.fromhex(name[1:]).decode()] = dtype, json.loads(shape), bytes.fromhex(data[1:])
    return tensors


def by_package(path):
    return {name: (view["dtype"], list(view["shape"]), bytes(view["data"]))
            for name, view in safetensors.deserialize(path.read_bytes())}


def by_torch(path):
    names = {torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.uint16: "U16",
             torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "I32", torch.uint32: "U32", torch.float32: "F32",
             torch.float64: "F64", torch.int64: "I64", torch.uint64: "U64"}
    return {name: (names[tensor.dtype], list(tensor.shape), tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
            for name, tensor in safetensors.torch.load_file(path).items()}


def data_bytes(begin, count):
    """The bytes that test_safetensors.c puts there."""
    return bytes((at * 167 + at // 251) % 256 for at in range(begin, begin + count))


with tempfile.TemporaryDirectory() as folder:
    # What anneal writes.
    subprocess.run([program, "write"], cwd=folder, check=True)
    ours = pathlib.Path(folder) / "t.safetensors"
    read, at = by_anneal(ours), 0
    expected = {}
    for name, (dtype, shape, data) in read.items():
        expected[name] = dtype, shape, data_bytes(at, len(data))
        at += len(data)
    compare("written and read by anneal", read, expected)
    compare(f"written by anneal, read by safetensors {safetensors.__version__}", by_package(ours), expected)
    if torch:
        compare(f"written by anneal, read by torch {torch.__version__}", by_torch(ours), expected)
    with safetensors.safe_open(ours, "numpy") as file:
        failed |= file.metadata() != {"format": "pt"}

    # What they write.
    theirs = pathlib.Path(folder) / "theirs.safetensors"
    random = numpy.random.default_rng(1)
    kinds = ["bool", "uint8", "int8", "int16", "uint16", "float16", "int32", "uint32", "float32", "float64", "int64", "uint64"]
    arrays = {f"{kind}.{rank} é": random.integers(0, 2 if kind == "bool" else 100, [2] * rank).astype(kind)
              for kind in kinds for rank in range(5)}
    arrays["empty"] = numpy.zeros([3, 0, 2], "float32")
    safetensors.numpy.save_file(arrays, theirs, metadata={"format": "pt", "a \"key\"": "value\n"})
    compare("written from numpy, read by anneal", by_anneal(theirs), by_package(theirs))
    if torch:
        tensors = {f"{dtype}.{rank}": torch.randn([3] * rank).to(dtype) for rank in range(5)
                   for dtype in [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.bool]}
        safetensors.torch.save_file(tensors, theirs)
        compare("written from torch, read by anneal", by_anneal(theirs), by_torch(theirs))
sys.exit(failed)
