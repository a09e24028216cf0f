#!/usr/bin/env python3
"""Two versions of anneal, the same bits: the eight configs of exact.py, each on one rank and on two, with both.

    between.py TREE BEFORE AFTER

BEFORE and AFTER are builds, whose bin/anneal is run. For a change that must not change a hash.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import exact


def hash_of(anneal, name, label, ranks):
    folder = f"{name}-{label}-{ranks}"
    words = [anneal, "train", name + ".yaml", "--set", "run.dir=" + folder] + (["-n", str(ranks)] if ranks > 1 else [])
    done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode:
        sys.exit(f"between: {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(pathlib.Path(folder, "summary.json").read_text())["state_hash"]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tree, *builds = [pathlib.Path(word).resolve() for word in sys.argv[1:]]
    commands = {label: build / "bin/anneal" for label, build in zip(("before", "after"), builds)}
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exact.write_inputs(tree)
        for name in exact.CONFIGS:
            found = {(label, ranks): hash_of(anneal, name, label, ranks)
                     for label, anneal in commands.items() for ranks in (1, 2)}
            same = len(set(found.values())) == 1
            differing += not same
            print(f"{name:16} {found['before', 1]} {'same' if same else f'DIFFERENT: {found}'}", flush=True)
        os.chdir("/")
    print(f"{len(exact.CONFIGS)} configs, 1 and 2 ranks, two versions: {differing} differ")
    return differing > 0


if __name__ == "__main__":
    sys.exit(main())
