#!/usr/bin/env python3
"""Makes the golden files of tests/golden/data with PyTorch, in f64; test_golden compares the library with them.

    pip install torch==2.15.0 numpy transformers
    tests/golden/make.py                     all of them
    tests/golden/make.py softmax attention.  those whose names begin so; of the others, the bytes stay as they are

Random numbers are seeded by the case's name, so adding a case changes no other.
"""

import pathlib
import sys

import torch

sys.dont_write_bytecode = True  # nothing but data/ is written

import cases_attention
import cases_elementwise
import cases_layer
import cases_leaves
import cases_loss
import cases_model
import cases_shape
import pack

MODULES = (cases_elementwise, cases_shape, cases_layer, cases_attention, cases_loss, cases_leaves, cases_model)
FOLDER = pathlib.Path(__file__).resolve().parent / "data"


def main():
    wanted = tuple(sys.argv[1:])
    torch.set_num_threads(1)  # sums have one order
    FOLDER.mkdir(exist_ok=True)
    names, families = [], []
    for module in MODULES:
        for family in module.FAMILIES:
            file = FOLDER / f"{family.__name__}.golden"
            families.append(file.stem)
            before, now = pack.read(file), []
            for case in family():
                names.append(case.name)
                is_wanted = not wanted or case.name.startswith(wanted) or case.name not in before
                now.append(case.packed() if is_wanted else before[case.name])
            pack.write(file, now)
    assert len(set(names)) == len(names), "two cases have one name"
    assert len(set(families)) == len(families), "two families have one name"
    for file in FOLDER.glob("*.golden"):
        if file.stem not in families:
            file.unlink()
    (FOLDER / "families.txt").write_text("".join(family + "\n" for family in families))
    size = sum(file.stat().st_size for file in FOLDER.glob("*.golden"))
    print(f"{len(names)} cases, {size / 1e6:.2f} MB, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
