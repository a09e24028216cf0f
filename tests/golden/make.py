#!/usr/bin/env python3
"""Makes the golden files of tests/golden/data with PyTorch, in f64; test_golden compares the library with them.

    pip install torch==2.15.0 numpy
    tests/golden/make.py                     all of them
    tests/golden/make.py softmax attention.  those whose names begin so

Random numbers are seeded by the case's name, so adding a case changes no other.
"""

import pathlib
import sys

import torch

sys.dont_write_bytecode = True  # nothing but data/ is written

import cases_attention
import cases_elementwise
import cases_layer
import cases_loss
import cases_model
import cases_shape

MODULES = (cases_elementwise, cases_shape, cases_layer, cases_attention, cases_loss, cases_model)
FOLDER = pathlib.Path(__file__).resolve().parent / "data"


def main():
    wanted = tuple(sys.argv[1:])
    torch.set_num_threads(1)  # sums have one order
    FOLDER.mkdir(exist_ok=True)
    names = []
    for module in MODULES:
        for family in module.FAMILIES:
            for case in family():
                names.append(case.name)
                if not wanted or case.name.startswith(wanted):
                    case.write(FOLDER)
    assert len(set(names)) == len(names), "two cases have one name"
    if not wanted:
        for file in FOLDER.iterdir():
            if file.suffix in (".ang", ".bin") and file.stem not in names:
                file.unlink()
    (FOLDER / "cases.txt").write_text("".join(name + "\n" for name in names))
    size = sum(file.stat().st_size for file in FOLDER.iterdir())
    print(f"{len(names)} cases, {size / 1e6:.2f} MB, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
