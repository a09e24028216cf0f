#!/usr/bin/env python3
"""What the README's demo wrote is mostly words of the text it learned from, and examples/shakespeare/char.yaml, which it trains, reached
the loss that is expected of it.

    after-README.py SOURCE-TREE OUTPUT        OUTPUT: what the README's commands printed, in whose folder this runs
"""
import json
import pathlib
import re
import sys

tree, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def words(text):
    return re.findall(r"[A-Za-z']+", text)


known = set(words((tree / "examples/shakespeare/tinyshakespeare.txt").read_text()))
said = output.read_text().split("A sample of what it writes now:\n\n")[1].split("\nNext:")[0]
assert len(said) >= 500, len(said)
found = words(said[:500])
share = sum(word in known for word in found) / len(found)
print(said[:500], f"\n--- {100 * share:.0f} % of {len(found)} words are in the training text")
loss = json.loads(pathlib.Path("anneal-char-gpt/run/summary.json").read_text())["metrics"]["val_loss"]
print(f"--- val_loss {loss:.4f}, at most 1.92")
sys.exit(share < 0.6 or not loss <= 1.92)
