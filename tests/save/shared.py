#!/usr/bin/env python3
"""Training in a folder that behaves like one shared over a network (shared_fs.c), with kills: the bits of the run on a plain one.

    shared.py TREE LIBRARY FILE-SYSTEM [--kills N] [--seed N]

While it trains, somebody reads its checkpoints: files that are removed then leave .nfs entries. Where nothing can be mounted the test is
skipped. ANNEAL_BIN is the folder of the command."""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

import configs
import harness
from harness import check, say

STEPS = 60
# What the file system does; all of it together last.
ALIKE = ["silly", "nolock", "nodirect", "nolink"]
KINDS = [["rename=3"], ["rename=2", *ALIKE], ["stale=31", *ALIKE], ALIKE, ["rename=5", "stale=43", *ALIKE]]
MOST_LAUNCHES = 200

# Larger than what is written past the cache from.
LARGE = """
run:       {{dir: {run}, steps: 24, seed: 5}}
model:     {{type: mlp, hidden: [768, 768], dropout: 0.1}}
data:      {{train: {{type: csv, path: {data}/large.csv}}}}
batch:     {{global: 8}}
save:      {{every: 2 steps, keep_last: 1}}
log:       {{every: 1 steps, tensorboard: off}}
"""


class Mount:
    def __init__(self, program, folder, words):
        self.point = harness.fresh_folder(folder / "mounted")
        self.process = subprocess.Popen([program, str(harness.fresh_folder(folder / "behind")), str(self.point), *words],
                                        stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        until = time.monotonic() + 60
        while not os.path.ismount(self.point):
            if self.process.poll() is not None or time.monotonic() > until:
                say(f"shared: nothing can be mounted here: {self.process.stderr.read().strip()}")
                raise SystemExit(harness.SKIPPED)
            time.sleep(0.01)
        return self.point

    def __exit__(self, *_):
        # The system closes files of a killed process when it comes to it: on a busy machine somebody seems to be there
        # for a while.
        until = time.monotonic() + 60
        while subprocess.run(["fusermount3", "-u", str(self.point)], capture_output=True).returncode != 0:
            if time.monotonic() > until:
                subprocess.run(["fusermount3", "-u", "-z", str(self.point)], capture_output=True)
                self.process.kill()
                break
            time.sleep(0.1)
        self.process.wait(timeout=120)


class Reader:
    """Has files of the newest checkpoint open, so that removing them leaves something."""

    def __init__(self, run):
        self.run, self.files = run, []

    def look(self):
        self.close()
        for checkpoint in harness.checkpoints(self.run)[:1]:
            for path in checkpoint.glob("*"):
                try:
                    self.files.append(open(path, "rb"))
                except OSError:
                    pass  # removed, or stale

    def close(self):
        for file in self.files:
            file.close()
        self.files = []


class Test:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.random = random.Random(options.seed)
        self.command = harness.Command(options.library.resolve())
        self.left = 0
        configs.make_data(work)

    def expect(self, name, config):
        result = self.command.train(config, "--set", f"run.dir={self.work}/never-{name}")
        check(result.returncode == 0, f"{name}: the run on a plain folder ended with {result.returncode}: {result.stderr}")
        return harness.state_hash(self.work / f"never-{name}")

    def launch(self, config, point, reader, is_killed):
        """One start; it is killed at some instant or not. Gives its exit code and what it said."""
        with open(self.work / "err", "w+") as errors:
            environment = self.command.faults(point, slow_ms=1)
            process = subprocess.Popen([*self.command.anneal, "train", str(config)], stdout=subprocess.DEVNULL,
                                       stderr=errors, env=environment)
            until = time.monotonic() + (self.random.uniform(0, 0.8) if is_killed else 120)
            while process.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
                reader.look()
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            code = process.wait()
            errors.seek(0)
            return code, errors.read()

    def play(self, name, config, expected, words, kills):
        with Mount(self.options.file_system, self.work, words) as point:
            run = self.work / "behind/run"  # what is looked at here is not what is tested
            reader, killed, failed, said = Reader(point / "run"), 0, 0, ""
            for launch in range(MOST_LAUNCHES):
                code, said = self.launch(config, point, reader, killed < kills)
                killed += code == -signal.SIGKILL
                failed += code == 1
                check(code in (0, 1, -signal.SIGKILL), f"{name} on {words}: exit code {code}: {said}")
                check(code != 1 or said.strip(), f"{name} on {words}: it failed and said nothing")
                check(failed <= 5 + kills / 2, f"{name} on {words}: it fails again and again: {said}")
                left = harness.leftovers(run)
                self.left = max(self.left, len(left))
                if code == 0:
                    break
            check(code == 0, f"{name} on {words}: not done after {MOST_LAUNCHES} launches: {said}")
            reader.close()
            found = harness.state_hash(run)
            check(found == expected, f"{name} on {words}: other bits: {found}, not {expected}")
            steps = harness.metric_steps(run)
            check(steps == sorted(set(steps)), f"{name} on {words}: steps are twice in metrics.jsonl, or out of order")
            # A launch that cannot open the newest checkpoint goes on from the one before, and cuts the metrics there.
            if not any(word.startswith("stale") for word in words):
                harness.check_steps(steps, steps[-1], f"{name} on {words}: metrics.jsonl")
            good = [path for path in harness.checkpoints(run) if self.command.is_good(path)]
            check(good, f"{name} on {words}: no checkpoint is good")
            say(f"  {name} on {' '.join(words)}: {launch + 1} launches, {killed} killed, {failed} failed, {found}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("file_system")
    parser.add_argument("--kills", type=int, default=5, help="on each kind of file system")
    parser.add_argument("--seed", type=int, default=time.time_ns())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shared-", dir=os.getcwd()) as folder:
        test = Test(options, pathlib.Path(folder).resolve())
        say(f"shared: seed {options.seed}")
        config = configs.write_config("text-f32", options.tree, test.work, test.work / "mounted/run", STEPS)
        large = test.work / "large.yaml"
        large.write_text(LARGE.format(run=test.work / "mounted/run", data=test.work))
        expected = {path: test.expect(path.stem, path) for path in (config, large)}
        for words in KINDS:
            test.play("text", config, expected[config], words, options.kills)
        test.play("large", large, expected[large], ALIKE, options.kills)
    say(f"shared: all with the bits of a plain folder; at most {test.left} folders were left over at a time")


harness.run_main(main)
