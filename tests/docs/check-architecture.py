#!/usr/bin/env python3
"""ARCHITECTURE.md speaks of files and functions that are there.

    check-architecture.py TREE

Every path between backquotes that begins with src/, tests/, docs/, tools/, include/ or examples/ must exist. A function between
backquotes (an_... or cli_...) must occur in src or include, and one that is followed by a path in parentheses must be in that file.
"""
import pathlib
import re
import sys

tree = pathlib.Path(sys.argv[1])
text = (tree / "ARCHITECTURE.md").read_text()
code = {path: path.read_text(errors="replace") for folder in ("src", "include") for path in (tree / folder).rglob("*.[chd]*")}
everything = "\n".join(code.values())
problems = []

for path in re.findall(r"`((?:src|tests|docs|tools|include|examples)/[^`\s<>]*)`", text):
    if not list(tree.glob(path.rstrip("/"))):
        problems.append(f"there is no file {path}")
for name in re.findall(r"`((?:an|cli)_[a-z0-9_]+)(?:\(\))?`", text):
    if not re.search(rf"\b{name}\b", everything):
        problems.append(f"there is no function {name}")
for name, path in re.findall(r"`([a-z][a-z0-9_]*)` \(`(src/[^`]*\.c)`", text):
    if (tree / path).exists() and not re.search(rf"\b{name}\b", (tree / path).read_text()):
        problems.append(f"{path} has no {name}")

for problem in problems:
    print(f"ARCHITECTURE.md: {problem}", file=sys.stderr)
sys.exit(1 if problems else 0)
