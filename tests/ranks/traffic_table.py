#!/usr/bin/env python3
"""Whether what each rank sends in a step is what its plan says, to the byte, and what the table of the manual says, within a page for each unit and message.

    traffic_table.py STRATEGY RANKS TENSORS.json STEPS MORE-STEPS

plan.RANK.json is the plan of a rank; sends.STEPS.RANK has the bytes of gradients, weights and all else that it sent in a run of so many steps, in messages only. TENSORS.json is
`anneal inspect --json` of a checkpoint of the run, a GPT-2 with 8 leaves. STRATEGY is `shared` if something goes through memory: then only plans are compared. The ranks of a hybrid are on two hosts."""

import collections
import json
import sys

LEAVES, PAGE = 8, 1024  # elements of a page
PLAN_ONLY = ("shared",)


def load(path):
    with open(path) as file:
        return json.load(file)


def find_units(tensors):
    """For each unit, a block or what lies before or after them: its pages, and the bytes of these that ops read. A parameter takes whole pages."""
    units = collections.defaultdict(lambda: [0, 0])
    mixed = tensors["precision"] in ("bf16", "f16")  # else "none"
    for tensor in tensors["tensors"]:
        if tensor["role"] != "weight":
            continue
        elements = 1
        for dim in tensor["shape"]:
            elements *= dim
        name = tensor["name"]
        unit = ".".join(name.split(".")[:2]) if name.startswith("h.") else "after" if name.startswith("ln_f") else "before"
        pages = -(-elements // PAGE)
        bytes_each = 4
        if mixed and len(tensor["shape"]) == 2:
            bytes_each = 2
            # the embedding reads tables in f32, and the head wte in bf16
            bytes_each += {"wte": 4, "wpe": 2}.get(name.split(".")[-2], 0)
        units[unit][0] += pages
        units[unit][1] += pages * PAGE * bytes_each
    return units.values(), mixed


def count_nodes(begin, end):
    """Maximal nodes of the tree over leaves that lie in a run of them."""
    nodes = 0
    while begin < end:
        size = 1
        while begin % (2 * size) == 0 and begin + 2 * size <= end:
            size *= 2
        begin += size
        nodes += 1
    return nodes


def find_each(leaves, ranks):
    """How many leaves a rank makes in a round: as many as possible, while no rank has more work than with one, or none."""
    def work(each):
        return -(-(-(-leaves // each)) // ranks) * each

    each = 1
    while -(-leaves // (2 * each)) >= ranks and work(2 * each) == work(1):
        each *= 2
    return each


def main():
    strategy, ranks, tensors, steps, more = sys.argv[1], int(sys.argv[2]), load(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    units, mixed = find_units(tensors)
    if strategy == "hybrid" and ranks == 2:
        strategy = "none"  # one rank on each host
    hosts = 2 if strategy == "hybrid" else 1
    group, leaves = ranks // hosts, LEAVES // hosts
    part, all_bytes = (group - 1) / group, sum(pages for pages, _ in units) * PAGE * 4
    gradient_bytes = part * all_bytes
    across = 2 * all_bytes / group * (hosts - 1) / hosts  # what owners add across hosts, there and back
    weight_bytes = part * sum(weights for _, weights in units)
    failed, begin, total = 0, 0, 0
    for rank in range(ranks):
        plan = load(f"plan.{rank}.json")["exchange"]
        few, many = ([int(word) for word in open(f"sends.{count}.{rank}").read().split()] for count in (steps, more))
        gradients, weights, others = ((b - a) / (more - steps) for a, b in zip(few, many))
        sent = gradients + weights + others
        who = f"{strategy}, {tensors['precision']}, rank {rank} of {ranks}"
        if sent != plan["sent_bytes"]:
            failed = 1
            print(f"{who}: it sends {sent:.0f} bytes in a step, planned are {plan['sent_bytes']}")
        end = begin + plan["leaves"]
        made = -(-leaves // find_each(leaves, group))  # nodes that ranks make in rounds
        nodes, rounds, runs = count_nodes(begin, end), len(range(rank % group, made, group)), -(-made // group)
        begin = end
        if strategy in PLAN_ONLY:
            continue
        # how often all gradients go, and how often all weights: at least and at most
        times, least, most = {"none": (nodes + 1, 0, 0), "optimizer": (nodes, 1, 1), "gradients": (rounds, 1, 1),
                              "full": (rounds, runs, 2 * runs), "hybrid": (rounds, runs, 2 * runs)}[strategy]
        # A piece of a unit is up to a page more or less than its P-th part. It is what a rank does not send of its
        # gradients, and what it sends to every other rank.
        room = PAGE * 4 * len(units)
        back = strategy == "none"
        if abs(gradients - times * gradient_bytes - across) > (times - back + back * (ranks - 1) + 2 * (hosts - 1)) * room:
            failed = 1
            print(f"{who}: {gradients:.0f} bytes of gradients in a step, and not {times} times {gradient_bytes:.0f} and {across:.0f}")
        if not mixed and not least * (weight_bytes - (group - 1) * room) <= weights <= most * (weight_bytes + (group - 1) * room):
            failed = 1
            print(f"{who}: {weights:.0f} bytes of weights in a step, and not {least} to {most} times {weight_bytes:.0f}")
        total += weights
        print(f"{who}: planned {plan['sent_bytes']}; sent {gradients:.0f} of gradients, {weights:.0f} of weights, {others:.0f} of records; "
              f"table {times * gradient_bytes + across:.0f}, {least * weight_bytes:.0f} to {most * weight_bytes:.0f}")
    # Pages of two types are not spread evenly: then only what all ranks send together is known.
    if strategy not in PLAN_ONLY and not least * ranks * weight_bytes <= total <= most * ranks * weight_bytes:
        failed = 1
        print(f"{strategy}, {tensors['precision']}, {ranks} ranks: {total:.0f} bytes of weights in a step, and not {least} to {most} times {ranks * weight_bytes:.0f}")
    return failed


sys.exit(main())
