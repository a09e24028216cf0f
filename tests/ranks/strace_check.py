#!/usr/bin/env python3
"""Looks at trace.RANK, which `strace -f -y` has written of every rank, for files of a checkpoint.

    strace_check.py saved RANKS CHECKPOINT: each rank has named only its own parts, and rank 0 alone all else
    strace_check.py loaded RANKS COPY CHECKPOINT: each byte of the parts was read once, and rank 0 alone has read all else

The checkpoint has a part for each rank that wrote it. COPY is what is left of it by now."""

import collections
import pathlib
import re
import sys

READS = re.compile(r"^\d+ +(?:read|readv|pread64|preadv2?)\(\d+<([^>]*)>.* = (\d+)$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
UNFINISHED = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")


def calls(rank):
    """Whole calls: strace cuts those in two that another thread's come between."""
    begun = {}
    for line in open(f"trace.{rank}", errors="replace"):
        line = line.rstrip("\n")
        if found := UNFINISHED.match(line):
            begun[found[1]] = found[2]
        elif found := RESUMED.match(line):
            yield f"{found[1]} {begun.pop(found[1], '')}{found[2]}"
        else:
            yield line


def main():
    what, ranks, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    wrong, named, read = [], collections.defaultdict(set), collections.Counter()
    name = pathlib.Path(sys.argv[-1]).name
    both = {name, name.replace("step-", "unfinished-")}
    for rank in range(ranks):
        for call in calls(rank):
            if re.match(r"^\d+ +mmap\(.*/(?:step|unfinished)-", call):
                wrong.append(f"rank {rank} maps a file: {call}")
            if found := READS.match(call):
                path = pathlib.Path(found[1])
                if path.parent.name in both:
                    read[path.name, rank] += int(found[2])
            elif "checkpoints" in call:
                # the names that a call has, and folders that it lists
                for path in re.findall(r'["<]([^"<>]*checkpoints[^"<>]*)[">]', call):
                    parts = pathlib.Path(path).parts
                    at = parts.index("checkpoints")
                    if parts[at + 1:at + 2] and parts[at + 1] in both:
                        named[parts[at + 2] if parts[at + 2:] else "the folder"].add(rank)
                    elif not parts[at + 1:] and "getdents" in call:
                        named["a list"].add(rank)
    if what == "saved":
        parts = sorted(path.name for path in folder.glob("part-*"))
        if len(parts) != ranks:
            wrong.append(f"{len(parts)} parts of {ranks} ranks")
        for rank, part in enumerate(parts):
            if named[part] != {rank}:
                wrong.append(f"{part} was named by ranks {sorted(named[part])}")
        for other in set(named) - set(parts):
            if named[other] != {0}:
                wrong.append(f"{other} was named by ranks {sorted(named[other])}")
        right = f"saved: {len(parts)} parts, each named by its rank only; {len(set(named) - set(parts))} other names, by rank 0 only"
    else:
        total = 0
        for path in sorted(folder.iterdir()):
            by_rank = {rank: read[path.name, rank] for rank in range(ranks) if read[path.name, rank]}
            size = path.stat().st_size
            if path.name.startswith("part-"):
                total += size
                if sum(by_rank.values()) != size:
                    wrong.append(f"{path.name} has {size} bytes, and {by_rank} were read by rank")
            elif set(by_rank) - {0}:
                wrong.append(f"{path.name} was read by ranks {sorted(by_rank)}")
        readers = {rank for (file, rank) in read if file.startswith("part-")}
        right = f"loaded: {total} bytes of parts, each read once, by ranks {sorted(readers)}"
    print("\n".join(wrong or [right]))
    return 1 if wrong else 0


sys.exit(main())
