"""Data of the runs in this folder, written to the working folder: rows.csv, documents.bin, text.txt. The argument is the source tree."""

import pathlib
import struct
import sys


def numbers(state):
    """Pseudorandom numbers of 31 bits, the same with every Python."""
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33


def write_rows(count):
    source = numbers(1)
    with open("rows.csv", "w") as file:
        file.write("a,b,c,y,z\n")
        for _ in range(count):
            a, b, c = (next(source) % 20001 - 10000 for _ in range(3))
            file.write(f"{a}e-4,{b}e-4,{c}e-4,{a * b // 10000 + c}e-4,{a - b * c // 10000}e-4\n")


def write_documents(count):
    """Documents of 1 to 23 tokens, of which 0 ends one. The first sample has no target: each of its documents is an end alone."""
    source = numbers(2)
    tokens = [0] * 9
    while len(tokens) < count:
        tokens += [1 + next(source) % 40 for _ in range(next(source) % 23)] + [0]
    pathlib.Path("documents.bin").write_bytes(struct.pack(f"<{count}H", *tokens[:count]))


def write_text(tree, count):
    text = pathlib.Path(tree, "examples/shakespeare/tinyshakespeare.txt").read_bytes()[:count]
    pathlib.Path("text.txt").write_bytes(text)


write_rows(127)
write_documents(1000)
write_text(sys.argv[1], 2500)
