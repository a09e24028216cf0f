#!/usr/bin/env python3
"""Makes the same digits in every format.

    make_digits.py IMAGES.gz LABELS.gz COUNT    (IDX files, of which the first COUNT images are taken)

digits/CLASS/NUMBER.png, and in the order of that folder: digits.idx and labels.idx, digits.npz (deflated), x.npy and y.npy, digits.jsonl
with names of classes. A second folder, few/, has some of the classes."""
import gzip
import io
import json
import pathlib
import struct
import sys
import zipfile
import zlib

SIDE = 28
images, labels, count = gzip.open(sys.argv[1]).read()[16:], gzip.open(sys.argv[2]).read()[8:], int(sys.argv[3])


def png(rows):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    header = struct.pack(">2I5B", SIDE, SIDE, 8, 0, 0, 0, 0)
    packed = zlib.compress(b"".join(b"\0" + rows[i * SIDE:(i + 1) * SIDE] for i in range(SIDE)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def npy(shape, content):
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + content


digits = [(str(labels[i]), f"{i}.png", images[i * SIDE * SIDE:(i + 1) * SIDE * SIDE]) for i in range(count)]
for name, file, pixels in digits:
    for folder in ["digits"] + ["few"] * (name in "357"):
        pathlib.Path(folder, name).mkdir(parents=True, exist_ok=True)
        pathlib.Path(folder, name, file).write_bytes(png(pixels))
digits.sort(key=lambda digit: (digit[0].encode(), digit[1].encode()))
pixels, classes = b"".join(d[2] for d in digits), bytes(int(d[0]) for d in digits)
pathlib.Path("digits.idx").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, count, SIDE, SIDE) + pixels)
pathlib.Path("labels.idx").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, count) + classes)
x, y = npy((count, SIDE, SIDE), pixels), npy((count,), classes)
pathlib.Path("x.npy").write_bytes(x)
pathlib.Path("y.npy").write_bytes(y)
archive = io.BytesIO()
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as members:
    members.writestr("x_train.npy", x)
    members.writestr("y_train.npy", y)
pathlib.Path("digits.npz").write_bytes(archive.getvalue())
pathlib.Path("digits.jsonl").write_text("".join(
    json.dumps({"pixels": [p / 255 for p in d[2]], "digit": "digit " + d[0]}) + "\n" for d in digits))
