#!/usr/bin/env python3
"""TERM and USR1 at random instants after the first line of output: the run ends with 75 (0 where it was done), and the next run goes on
with the next step. In the end every step was taken once, and the bits are those of the run that nobody stopped.

    preempt.py TREE [--signals N] [--seconds S] [--log FILE] [--seed N]

A line of the log is a signal: number, config, signal, instant after the first line, step, exit code, seconds until the end. A log that has
fewer than N is carried on, one that has them all begins anew. ANNEAL_BIN is the folder of the command."""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import time

import configs
import harness
from harness import check, say

STOPPED = 75
LIMIT = 120  # seconds until the end: far more than a step and a save take on a busy machine
NAMES = {"text-f32": 60, "images-batch-norm": 120, "text-bf16": 60, "scaled-f16": 4000}  # and their steps
STEP = re.compile(r"^step +([\d,]+)/[\d,]+  (?!val_)", re.MULTILINE)


class Test:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.random = random.Random(options.seed)
        self.command = harness.Command(None)
        self.end = time.monotonic() + options.seconds
        self.log = harness.open_log(options.log, options.signals)
        self.total, self.slowest, self.stops = len(harness.counted_lines(self.log)), 0.0, 0
        configs.make_data(work)

    def is_over(self):
        return self.total >= self.options.signals or time.monotonic() > self.end

    def write_config(self, name, run):
        return configs.write_config(name, self.options.tree, self.work, run, NAMES[name])

    def expect(self, name):
        """The hash and the time of the run that nobody stops."""
        run = harness.fresh_folder(self.work / f"never-{name}") / "run"
        config = self.write_config(name, run)
        began = time.monotonic()
        result = self.command.train(config, "--set", "log.every=1")
        check(result.returncode == 0, f"{name}: {result.returncode}: {result.stderr}")
        return harness.state_hash(run), time.monotonic() - began

    def launch(self, name, config, run, whole):
        """Starts it, stops it, and gives its exit code."""
        kind = self.random.choice([signal.SIGTERM, signal.SIGUSR1])
        instant = self.random.choice([self.random.uniform(0, 0.05), self.random.uniform(0, whole / 2)])
        with open(self.work / "err", "w+") as errors:
            process = subprocess.Popen([*self.command.anneal, "train", str(config), "--set", "log.every=1"],
                                       stdout=subprocess.PIPE, stderr=errors, env=self.command.environment)
            process.stdout.readline()
            # What it prints is read while it runs: a full pipe would stop it.
            reader = subprocess.Popen(["cat"], stdin=process.stdout, stdout=open(self.work / "out", "wb"))
            process.stdout.close()
            time.sleep(instant)
            sent = time.monotonic()
            process.send_signal(kind)
            try:
                code = process.wait(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                raise harness.Failure(f"{name}: {kind.name} did not end it in {LIMIT} s") from None
            took = time.monotonic() - sent
            reader.wait()
            errors.seek(0)
            said = errors.read()
        check(code in (0, STOPPED), f"{name}: {kind.name} after {instant:.3f} s: exit code {code}: {said}")
        with open(run / "outcome.json") as file:
            outcome = json.load(file)
        check(outcome["end"] == ("done" if code == 0 else "stopped on request"), f"{name}: exit code {code}, {outcome}")
        if code == STOPPED:
            saved = harness.checkpoints(run)
            check(saved and int(saved[0].name.split("-")[1]) == outcome["step"],
                  f"{name}: stopped at step {outcome['step']}, saved {[path.name for path in saved]}")
            self.stops += 1
        self.total += 1
        self.slowest = max(self.slowest, took)
        with open(self.log, "a") as file:
            file.write(f"{self.total}\t{name}\t{kind.name}\t{instant:.3f}\t{outcome['step']}\t{code}\t{took:.3f}\n")
        return code

    def play(self, name, expected, whole):
        run = harness.fresh_folder(self.work / f"stopped-{name}") / "run"
        config = self.write_config(name, run)
        launches, code = 0, STOPPED
        while code == STOPPED and not self.is_over():
            code = self.launch(name, config, run, whole)
            launches += 1
        if code == STOPPED:
            result = self.command.train(config, "--set", "log.every=1")
            check(result.returncode == 0, f"{name}: the last run ended with {result.returncode}: {result.stderr}")
        harness.check_steps(harness.metric_steps(run), NAMES[name], f"{name}: metrics.jsonl")
        shown = [int(step.replace(",", "")) for step in STEP.findall((run / "log.txt").read_text())]
        harness.check_steps(shown, NAMES[name], f"{name}: log.txt")
        found = harness.state_hash(run)
        check(found == expected, f"{name}: other bits after {launches} launches: {found}, not {expected}")
        say(f"  {name}: {launches} signals, each of {NAMES[name]} steps once, {found}; {self.total} in all")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--signals", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--log", type=pathlib.Path, help="without one, the test begins anew")
    parser.add_argument("--seed", type=int, default=time.time_ns())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="preempt-", dir=os.getcwd()) as folder:
        options.log = (options.log or pathlib.Path(folder) / "preempt.log").resolve()
        test = Test(options, pathlib.Path(folder).resolve())
        say(f"preempt: seed {options.seed}; {test.total} signals are in {options.log}")
        expected = {}
        while not test.is_over():
            for name in NAMES:
                if not test.is_over():
                    expected[name] = expected.get(name) or test.expect(name)
                    test.play(name, *expected[name])
    say(f"preempt: {test.total} signals, {test.stops} stops now, the slowest took {test.slowest:.2f} s")


harness.run_main(main)
