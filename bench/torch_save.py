"""GPT-2 124M's weights and AdamW moments, saved by torch.save and by torch.distributed.checkpoint: prints JSON of medians.

    python torch_save.py FOLDER [ROUNDS]
"""
import json
import os
import pathlib
import shutil
import statistics
import sys
import time

import torch
import torch.distributed.checkpoint as dcp

ELEMENTS = 124_475_904


def sync(path):
    """As anneal does: the file, and the folder that it is in."""
    for name in [path, *path.rglob("*")] if path.is_dir() else [path]:
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def timed(action):
    begin, work = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - begin, time.process_time() - work


def main():
    folder, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    torch.set_num_threads(2)
    state = {name: torch.randn(ELEMENTS) for name in ("weights", "moment_1", "moment_2")}
    one, many = folder / "torch.pt", folder / "torch-dcp"

    def save():
        torch.save(state, one)
        sync(one)

    def save_distributed():
        shutil.rmtree(many, ignore_errors=True)
        dcp.save(state, checkpoint_id=many)
        sync(many)

    times = {"torch.save": [], "dcp.save": [], "torch.load": [], "dcp.load": []}
    for _ in range(rounds):
        times["torch.save"].append(timed(save))
        times["dcp.save"].append(timed(save_distributed))
        times["torch.load"].append(timed(lambda: torch.load(one)))
        times["dcp.load"].append(timed(lambda: dcp.load(state, checkpoint_id=many)))
    one.unlink()
    shutil.rmtree(many)
    out = {name: [statistics.median(column) for column in zip(*values)] for name, values in times.items()}
    print(json.dumps({"bytes": 12 * ELEMENTS, **out}))


main()
