#!/usr/bin/env python3
"""Looks at the lines of memory.sh, "PRECISION STRATEGY RANKS rank N planned N allocated N …", and prints a table of them.

    memory_check.py FILE"""

import collections
import sys

PAGE = 4096
UNITS = 12 + 2  # the blocks, and what lies before and after them
NEAR = 0.03  # of what is allocated
# What a strategy divides, and in how many buffers; in bf16 weights have a low copy too, whose pieces take whole pages
# of the system as well.
BUFFERS = {"weights": 2, "gradients": 1, "moments": 2}
DIVIDED = {"none": [], "optimizer": ["moments"], "gradients": ["gradients", "moments"], "full": ["weights", "gradients", "moments"],
           "hybrid": []}


def main():
    cases, wrong = collections.defaultdict(list), []
    for line in open(sys.argv[1]):
        words = line.split()
        cases[words[0], words[1], int(words[2])].append(dict(zip(words[3::2], map(int, words[4::2]))))
    print("precision  strategy   ranks  planned on the fullest  taken/allocated  weights    gradients  moments    arena      MB  pages apart")
    for (precision, shard, count), ranks in sorted(cases.items()):
        what = f"{precision}, {shard}, {count} ranks"
        if len(ranks) != count:
            wrong.append(f"{what}: {len(ranks)} lines")
        for rank in ranks:
            if rank["planned"] != rank["allocated"]:
                wrong.append(f"{what}: rank {rank['rank']} has allocated {rank['allocated']} bytes, planned are {rank['planned']}")
            if abs(rank["taken"] / rank["allocated"] - 1) > NEAR:
                wrong.append(f"{what}: rank {rank['rank']} takes {rank['taken']} bytes of the machine, and has allocated {rank['allocated']}")
        room = PAGE * UNITS
        for kind, buffers in BUFFERS.items():
            held = [rank[kind] for rank in ranks]
            if max(held) - min(held) > buffers * room:
                wrong.append(f"{what}: {kind} of {min(held)} to {max(held)} bytes")
            alone = cases.get((precision, "none", 1))
            if kind in DIVIDED[shard] and alone and abs(max(held) - alone[0][kind] / count) > buffers * room:
                wrong.append(f"{what}: {kind} of {max(held)} bytes, one process has {alone[0][kind]}")
        planned = [rank["planned"] for rank in ranks]
        if max(planned) - min(planned) > room:
            wrong.append(f"{what}: {min(planned)} to {max(planned)} bytes")
        taken = [rank["taken"] / rank["allocated"] for rank in ranks]
        figures = "".join(f"{max(rank[kind] for rank in ranks) / 1e6:<11.1f}" for kind in ("weights", "gradients", "moments", "arena"))
        print(f"{precision:10} {shard:10} {count:5}  {max(planned):22}  {min(taken):.4f} – {max(taken):.4f}  {figures}      {(max(planned) - min(planned)) / PAGE:.2f}")
    for text in wrong:
        print(text)
    return 1 if wrong or not cases else 0


sys.exit(main())
