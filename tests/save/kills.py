#!/usr/bin/env python3
"""kill -9 at random instants of a run under `anneal train --supervise`, in every phase of it: the run must end with the bits of the run
that was never killed.

    kills.py TREE LIBRARY [--kills N] [--each N] [--seconds S] [--config NAME] [--log FILE] [--seed N]

Runs of the configs of configs.py follow one another until there were N kills, and N of --each in every phase. Calls on files of the run
folder are slowed down by LIBRARY (interpose.c), so that every stage of a save takes long enough to be hit. A line of the log is a kill:
number, config, phase, step, what its threads said they were doing. A log that has fewer than N is carried on, one that has them all begins
anew; after --seconds the test ends where it is, with 0. ANNEAL_BIN is the folder of the command."""

import argparse
import collections
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import tempfile
import time

import configs
import harness
from harness import check, say

SLOW_MS = 3
MOST_KILLS = 60  # in one run; then it goes to its end
PHASES = ["start", "step", "evaluation", "make folder", "write", "sync", "rename", "link", "removal"]
MESSAGE = re.compile(r'was killed \(signal 9\) at step (\d+), while "(.*)"; ')
STAGES = {"makes": "make folder", "writes": "write", "syncs": "sync", "renames": "rename", "links": "link", "removes": "removal"}
HEARTBEAT_PHASES = {0: "start", 1: "step", 2: "step", 3: "step", 4: "step", 5: "evaluation"}


def stage_of(key):
    """Which stage of a save a call on files belongs to; None: it belongs to none."""
    name, _, path = key.split(" ", 2)
    stages = [
        (name == "mkdir" and "unfinished-" in path, "make folder"),
        (name == "rename" and "-> run/checkpoints/removed-" in path or "checkpoints/removed-" in path, "removal"),
        (name == "rename" and "-> run/checkpoints/step-" in path, "rename"),
        (name in ("fsync", "fdatasync") and "unfinished-" in path, "sync"),
        (name == "open" and re.search(r"unfinished-[^/]*$", path), "sync"),
        ("unfinished-" in path, "write" if name in ("open", "write", "close", "ftruncate") else "removal"),
        (re.match(r"run/best", path), "link"),
        (path == "run/checkpoints" and name in ("open", "fsync", "close"), "rename"),
        (path == "run" and name in ("open", "fsync", "close"), "link"),
    ]
    return next((stage for holds, stage in stages if holds), None)


class Watch:
    """What a training process is doing, seen from outside."""

    def __init__(self, supervisor, now):
        self.supervisor, self.now, self.child = supervisor, now, None

    def find_child(self):
        try:
            with open(f"/proc/{self.supervisor}/task/{self.supervisor}/children") as file:
                children = file.read().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def stages(self, pid):
        """Stages of a save that its threads are in."""
        try:
            with open(f"{self.now}.{pid}", "rb") as file:
                content = file.read()
        except OSError:
            return set()
        found = set()
        for at in range(0, len(content), 512):
            if content[at]:
                found.add(stage_of(content[at:at + 512].split(b"\n", 1)[0].decode()))
        return found - {None}

    def phase(self):
        """What the thread that trains does: the record is in the supervisor's memory (anneal/heartbeat.h)."""
        try:
            with open(f"/proc/{self.supervisor}/maps") as maps:
                address = next((int(line.split("-", 1)[0], 16) for line in maps if "anneal-heartbeat" in line), None)
            if address is None:
                return None
            with open(f"/proc/{self.supervisor}/mem", "rb", buffering=0) as memory:
                memory.seek(address)
                return HEARTBEAT_PHASES.get(struct.unpack("qqqq", memory.read(32))[3])
        except OSError:
            return None

    def is_in(self, pid, phase):
        stages = self.stages(pid)
        if phase in PHASES[:3]:
            return not stages and self.phase() == phase
        return phase in stages


class Killer:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.random = random.Random(options.seed)
        self.command = harness.Command(options.library.resolve())
        self.counts = collections.Counter()
        self.by_config = collections.Counter()
        self.total = 0
        self.end = time.monotonic() + options.seconds
        self.log = harness.open_log(options.log, options.kills)
        for line in harness.counted_lines(self.log):
            self.count(*line.split("\t", 3)[1:3])
        self.most = min(MOST_KILLS, -(-options.kills // len(configs.CONFIGS)))
        configs.make_data(work)

    def count(self, config, phase):
        self.total += 1
        self.counts[phase] += 1
        self.by_config[config] += 1

    def is_over(self):
        enough = all(self.counts[phase] >= self.options.each for phase in PHASES)
        return (self.total >= self.options.kills and enough) or time.monotonic() > self.end

    def write(self, text):
        with open(self.log, "a") as file:
            file.write(text + "\n")

    # ---- one run ----

    def expect(self, name):
        """The hash of the run that is never killed."""
        case = self.work / f"never-{name}"
        config = configs.write_config(name, self.options.tree, self.work, case / "run")
        began = time.monotonic()
        result = self.command.train(config)
        check(result.returncode == 0, f"{name}: the run that nobody kills ended with {result.returncode}: {result.stderr}")
        say(f"  {name}: {time.monotonic() - began:.1f} s without kills, {harness.state_hash(case / 'run')}")
        return harness.state_hash(case / "run")

    def wait_for(self, watch, pid, wanted, limit):
        """Until the process is in the phase; False: it ended, or it took too long."""
        until = time.monotonic() + limit
        while time.monotonic() < until:
            if watch.is_in(pid, wanted):
                return True
            if watch.find_child() != pid:
                return False
            time.sleep(0.0002)
        return False

    def choose_instant(self, watch, pid, stuck):
        """Waits until it is time to kill. Half of all kills are at an instant of their own, half aim at what was hit least."""
        if stuck:  # nothing was saved since: let it get on, or the supervisor waits longer and longer
            self.wait_for(watch, pid, "rename", 20)
            time.sleep(self.random.uniform(0, 0.1))
        if self.random.random() < 0.5:
            time.sleep(self.random.uniform(0, 0.8))
            return
        wanted = min(PHASES, key=lambda phase: (self.counts[phase], self.random.random()))
        if wanted != "start" and self.wait_for(watch, pid, wanted, 5):
            time.sleep(self.random.uniform(0, SLOW_MS / 1000 / 2))
        elif wanted == "start":
            time.sleep(self.random.uniform(0, 0.02))

    def wait_for_message(self, messages, known, process):
        """The supervisor's word on a kill; None: the process had ended by itself."""
        until = time.monotonic() + 90
        while time.monotonic() < until:
            found = MESSAGE.findall(messages.read_text(errors="replace"))
            if len(found) > known:
                return found[known]
            if process.poll() is not None:
                return None
            time.sleep(0.0005)
        raise harness.Failure("the supervisor says nothing about a kill")

    def play(self, name, expected, round_number):
        case = harness.fresh_folder(self.work / "killed")
        config = configs.write_config(name, self.options.tree, self.work, case / "run")
        now, messages = self.work / "now", self.work / "messages"
        environment = self.command.faults(case, slow_ms=SLOW_MS, now=now)
        environment["OMP_NUM_THREADS"] = str(1 + round_number % 2)  # bits do not depend on it
        with open(messages, "w") as errors:
            process = subprocess.Popen([*self.command.anneal, "train", str(config), "--supervise", "--restarts", "1000000"],
                                       stdout=subprocess.DEVNULL, stderr=errors, env=environment)
        watch, kills, last, repeats = Watch(process.pid, now), 0, None, 0
        try:
            while process.poll() is None and not self.is_over() and kills < self.most:
                pid = watch.find_child()
                if pid is None:
                    time.sleep(0.0005)
                    continue
                self.choose_instant(watch, pid, repeats > 1)
                if watch.find_child() != pid:
                    continue  # it ended by itself
                os.kill(pid, signal.SIGKILL)
                message = self.wait_for_message(messages, kills, process)
                if message is None:
                    break
                kills += 1
                newest = next(iter(harness.checkpoints(case / "run")), None)
                repeats = repeats + 1 if newest == last else 0
                last = newest
                self.note(name, pid, watch, message)
                pathlib.Path(f"{now}.{pid}").unlink(missing_ok=True)
            code = process.wait(timeout=300)  # nobody kills it any more
        finally:
            if process.poll() is None:
                process.kill()
        check(code == 0, f"{name}: the supervisor ended with {code}: {messages.read_text()[-1500:]}")
        found = harness.state_hash(case / "run")
        self.write(f"# {name}: {kills} kills, state_hash {found}, never killed {expected}")
        say(f"  {name}: {kills} kills, {found}; {self.total} in all")
        check(found == expected, f"{name}: other bits after {kills} kills: {found}, not {expected}")
        steps = harness.metric_steps(case / "run")
        check(steps == sorted(set(steps)), f"{name}: steps are twice in metrics.jsonl, or out of order")
        check(not harness.leftovers(case / "run"), f"{name}: left over: {harness.leftovers(case / 'run')}")
        return kills

    def note(self, name, pid, watch, message):
        """What files it was at is exact; between two calls, what threads said last has to do."""
        step, places = message
        *behind, place = places.split('" and "')
        stages = sorted(watch.stages(pid), key=PHASES.index, reverse=True)
        stages += [STAGES[word] for word in STAGES for text in behind if text.startswith(f"save: {word} ")]
        if step == "0":
            phase = "start"  # a launch syncs folders too
        elif stages:
            phase = stages[0]
        else:
            phase = "evaluation" if place.startswith("evaluation") else "copy or wait" if place.startswith("save") else "step"
        self.count(name, phase)
        self.write(f"{self.total}\t{name}\t{phase}\t{step}\t{places}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--each", type=int, default=1, help="kills in every phase")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--config", choices=configs.CONFIGS)
    parser.add_argument("--log", type=pathlib.Path, help="without one, the test begins anew")
    parser.add_argument("--seed", type=int, default=time.time_ns())
    options = parser.parse_args()
    names = [options.config] if options.config else list(configs.CONFIGS)
    with tempfile.TemporaryDirectory(prefix="kills-", dir=os.getcwd()) as folder:
        options.log = (options.log or pathlib.Path(folder) / "kills.log").resolve()
        killer = Killer(options, pathlib.Path(folder).resolve())
        say(f"kills: seed {options.seed}; {killer.total} kills are in {options.log}")
        expected = {name: killer.expect(name) for name in names}
        round_number = 0
        while not killer.is_over():
            killer.play(names[round_number % len(names)], expected[names[round_number % len(names)]], round_number)
            round_number += 1
    for phase in [*PHASES, "copy or wait"]:
        say(f"  {phase:12} {killer.counts[phase]:5}")
    for name in names:
        say(f"  {name:18} {killer.by_config[name]:5}")
    say(f"kills: {killer.total}, every run ended with the bits of the one that was never killed")


harness.run_main(main)
