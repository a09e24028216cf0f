#!/usr/bin/env python3
"""Compares the curves of anneal find-lr with those of PyTorch, which against_torch.py has stored."""
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True

import curves

anneal = f"{os.environ.get('ANNEAL_RUN', '')} {os.environ['ANNEAL_BIN']}/anneal".strip()
golden = json.loads(curves.GOLDEN.read_text())
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name, rows in curves.tables().items():
        curves.write(name, rows)
        curves.compare(name, golden[name], curves.find(anneal, name))
