#!/usr/bin/env python3
"""Every call on files that a run makes fails once with every error that it may have, is the last thing before the process dies, and the
first thing that it did not live to do; and the power goes at each. The run that follows must end with the bits of the run that nothing
happened to, and from the first save on there must be a good checkpoint at every moment.

    faults.py TREE LIBRARY [--long] [--only TEXT] [--jobs N] [--half 0|1] [--ranks N --mpi NAME --shard NAME]

TREE is the source tree, LIBRARY what tests/save/interpose.c becomes. Without --long each call fails with one of its errors, in turn; and
the three starts, which make mostly the same calls, share what else may happen there: before each call the process dies in one of them and
the power goes in another, in one of two ways instead of in five. A call that one start alone makes has both. With --ranks, calls of saves
fail, and only these, on whichever rank makes them: all ranks must go on or end alike, and the run that follows is one process. With --half,
half of the calls fail: two tests, of different strategies and libraries, have one half each. ANNEAL_BIN is the folder of the command."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import zlib

import harness
import power
from harness import check, say

CONFIG = """
run:       {{dir: {case}/run, steps: {steps}, seed: 3}}
model:     {{type: mlp, hidden: [4], dropout: 0.1}}
data:
  train:   {{type: csv, path: data.csv, part: 0%..75%}}
  eval:    {{type: csv, path: data.csv, part: 75%..100%}}
batch:     {{global: 4, leaves: {leaves}, micro: 1}}
optimizer: {{lr: {rate}}}
eval:      {{every: 2 steps, best: val_loss}}
save:      {{every: 2 steps, keep_last: 1}}
log:       {{every: 1 steps, tensorboard: off}}
ranks:     {{shard: {shard}}}
"""
STEPS = 6

# Which errors are meant for which call; done: it did its work, and says so all the same.
COMMON = ["EIO", "ESTALE", "EINTR"]
ROOM = ["ENOSPC", "EDQUOT"]
FAILS = {
    "open": [*COMMON, *ROOM, "EACCES"],
    "openread": ["EIO", "ESTALE", "EACCES"],
    "fopen": [*COMMON, *ROOM, "EACCES"],
    "opendir": [*COMMON, "EACCES"],
    "write": [*COMMON, *ROOM, "SHORT"],
    "fsync": [*COMMON, *ROOM],
    "fdatasync": [*COMMON, *ROOM],
    "close": [*COMMON, *ROOM],
    "rename": [*COMMON, *ROOM, "EACCES", "EXDEV"],
    "unlink": [*COMMON, "EACCES"],
    "rmdir": [*COMMON, "EACCES", "ENOTEMPTY"],
    "mkdir": [*COMMON, *ROOM, "EACCES"],
    "symlink": [*COMMON, *ROOM, "EACCES"],
    "link": [*COMMON, *ROOM, "EACCES", "EXDEV"],
    "ftruncate": [*COMMON, *ROOM],
    "fallocate": [*COMMON, *ROOM],
}
DONE = {"rename": ["ENOENT", "EIO"], "mkdir": ["EEXIST", "EIO"], "unlink": ["ENOENT", "EIO"], "rmdir": ["ENOENT", "EIO"],
        "symlink": ["EEXIST", "EIO"]}
SOME_FAILS = 1  # errors of each call without --long
SHOWN = 4  # faults with the same consequence

Fault = collections.namedtuple("Fault", "start key mode error")  # start: the state of the folder that the run begins in


def is_of_save(path):
    return any(part in path for part in ("checkpoints", "best", "launches"))


def choose_calls(lines):
    """The keys of a run's calls. Lines of text that a run writes as it goes are one like the other: first, middle and last."""
    by_path = collections.defaultdict(list)
    for _, _, name, nth, path in lines:
        by_path[name, path].append(f"{name} {nth} {path}")
    keys = []
    for (name, path), found in by_path.items():
        few = name == "write" and not is_of_save(path)
        keys += dict.fromkeys([found[0], found[len(found) // 2], found[-1]]) if few else found
    return keys


def number_of(key):
    """A number for a call, the same in every run."""
    return zlib.crc32(key.encode())


def has_death(key, starts, before, mode):
    """Whether the process dies so at a call that `starts` starts make, `before` of them before this one."""
    return starts == 1 or (number_of(key) + before) % 2 == (mode == "power")


def make_faults(start, keys, everything, makers):
    """makers: of each call, the starts that make it."""
    faults, turn = [], 0
    for key in keys:
        name = key.split(" ", 1)[0]
        errors = FAILS[name]
        if not everything:
            errors = [errors[(turn + i) % len(errors)] for i in range(SOME_FAILS)]
            turn += SOME_FAILS
        faults += [Fault(start, key, "fail", error) for error in errors]
        faults += [Fault(start, key, "done", error) for error in DONE.get(name, [])[: 2 if everything else 1]]
        if name == "openread":
            continue  # nothing changes there
        if everything:
            faults += [Fault(start, key, mode, "") for mode in ("before", "after")]
            faults += [Fault(start, key, "power", str(seed)) for seed in range(5)]  # 0: strict
            continue
        # What is left after a call is there before the next one too, but for calls of another thread in between.
        deaths = [Fault(start, key, "before", ""), Fault(start, key, "power", str(turn % 2))]
        faults += [death for death in deaths if has_death(key, len(makers[key]), makers[key].index(start), death.mode)]
    return faults


def make_rank_faults(start, keys, everything, makers):
    """Failures only: ranks that die are tests/ranks/save_kills.sh."""
    of_saves = [key for key in keys if is_of_save(key) and not key.startswith("openread")]
    faults = [fault for fault in make_faults(start, of_saves, everything, makers) if fault.mode in ("fail", "done")]
    if everything:
        return faults
    once = {fault.key: fault for fault in reversed(faults)}  # one error each
    return list(once.values())


class Test:
    def __init__(self, command, tree, work, leaves=2, shard="none"):
        self.command, self.tree, self.work, self.leaves, self.shard = command, tree, work, leaves, shard
        lines = random.Random(1)
        with open(work / "data.csv", "w") as file:
            file.write("a,b,y\n")
            for _ in range(40):
                a, b = lines.random(), lines.random()
                file.write(f"{a:.3f},{b:.3f},{a * b:.3f}\n")
        self.starts = {}

    def config(self, folder, case, rate):
        path = folder / "run.yaml"
        path.write_text(CONFIG.format(case=case, rate=rate, steps=STEPS, leaves=self.leaves, shard=self.shard))
        return path

    def add_start(self, name, rate, fault=None):
        """A state to begin from, the hash that all must end with, and the calls of a run from there."""
        case = harness.fresh_folder(self.work / f"start-{name}")
        config = self.config(self.work, case, rate)
        log = self.work / f"{name}.calls"
        say(f"  {name}: a run to its end")
        result = self.command.train(config, environment=self.command.faults(case, log=log, reads=1))
        check(result.returncode == 0, f"{name}: the undisturbed run ended with {result.returncode}: {result.stderr}")
        expected = harness.state_hash(case / "run")
        keys = choose_calls(harness.log_lines(log))
        check(any(key.startswith("rename") and "step-" in key for key in keys), f"{name}: the run saves nothing")
        if fault:  # the start is what is left after a kill; the calls are those of the run that follows
            chosen = [key for key in keys if fault in key]
            check(chosen, f"{name}: there is no call '{fault}'")
            harness.fresh_folder(case)
            result = self.command.train(config, environment=self.command.faults(case, mode="before", at=chosen[0]))
            check(result.returncode == -signal.SIGKILL, f"{name}: not killed at {chosen[0]}: {result.returncode}")
            kept = self.work / f"kept-{name}"
            shutil.copytree(case, kept, symlinks=True)
            log.unlink()
            result = self.command.train(config, environment=self.command.faults(case, log=log, reads=1))
            check(result.returncode == 0, f"{name}: the run that follows ended with {result.returncode}: {result.stderr}")
            check(harness.state_hash(case / "run") == expected, f"{name}: the run that follows has other bits")
            keys = choose_calls(harness.log_lines(log))
            self.starts[name] = (rate, expected, keys, kept)
        else:
            self.starts[name] = (rate, expected, keys, None)
        return keys

    def run(self, fault):
        """Gives the exit code of the disturbed run."""
        rate, expected, _, kept = self.starts[fault.start]
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.work, prefix="case-"))
        case, log = folder / "case", folder / "calls"
        if kept:
            shutil.copytree(kept, case, symlinks=True)
        else:
            case.mkdir()
        config = self.config(folder, case, rate)
        (folder / "data.csv").symlink_to(self.work / "data.csv")
        shadow = None
        if fault.mode == "power":
            shadow = power.Shadow(folder / "shadow")
            shadow.record(case)
        environment = self.command.faults(
            case, log=log, reads=1, at=fault.key, mode="before" if fault.mode == "power" else fault.mode,
            errno=fault.error if fault.mode in ("fail", "done") else None, shadow=shadow and shadow.path)
        result = self.command.train(config, environment=environment)
        self.look_at_end(fault, result, log)
        if shadow:
            seed = int(fault.error)
            cut = power.Cut(case, shadow, random.Random(f"{seed} {fault.key}") if seed else None)
            case.rename(folder / "before-the-cut")
            cut.write(case)
        self.look_for_good(fault, case, log)
        again = self.command.train(config)
        check(again.returncode == 0, f"the run that follows ended with {again.returncode}: {again.stderr}{again.stdout[-500:]}")
        check(harness.state_hash(case / "run") == expected, "the run that follows has other bits")
        if fault.mode != "power":  # which may take lines of metrics with it
            harness.check_steps(harness.metric_steps(case / "run"), STEPS, "metrics.jsonl")
        newest = harness.checkpoints(case / "run")
        check(newest and self.command.is_good(newest[0]), "the last checkpoint is not good")
        check(newest[0].name.startswith("step-00000006-"), f"the last checkpoint is {newest[0].name}")
        shutil.rmtree(folder)
        return result.returncode

    @staticmethod
    def look_at_end(fault, result, log):
        if fault.mode in ("before", "after", "power"):
            check(result.returncode == -signal.SIGKILL, f"the run was not killed, but ended with {result.returncode}")
            return
        check(any(line[0] for line in harness.log_lines(log)), "the call was not made")
        check(result.returncode in (0, 1), f"the run ended with {result.returncode}: {result.stderr}")
        if result.returncode == 1:
            check(result.stderr.strip(), "the run failed and said nothing")

    def look_for_good(self, fault, case, log):
        """From the moment on that a save is complete there is a good checkpoint."""
        complete = self.starts[fault.start][3] is not None
        renamed = False
        for _, result, name, _, path in harness.log_lines(log):
            # Once anything follows that relies on the new one, it must be there whatever happens.
            complete |= renamed and (path == "run/checkpoints" and name == "fsync" and result == 0 or
                                     name in ("mkdir", "rename", "symlink", "unlink") or "summary" in path)
            if name == "rename" and "-> run/checkpoints/step-" in path and result == 0:
                renamed = True
                complete |= fault.mode != "power"
        if complete:
            good = [path.name for path in harness.checkpoints(case / "run") if self.command.is_good(path)]
            check(good, f"no checkpoint is good: {[path.name for path in harness.checkpoints(case / 'run')]}")


def report(faults, results):
    """One line for each name of a call: how many of it, how often what happened, how runs ended that it failed in."""
    table = collections.defaultdict(collections.Counter)
    for fault in faults:
        if fault not in results:
            continue
        name = fault.key.split(" ", 1)[0]
        what = fault.error if fault.mode == "fail" else f"done, {fault.error}" if fault.mode == "done" else fault.mode
        table[name][what] += 1
        table[name]["calls"] = len({(f.start, f.key) for f in faults if f.key.split(" ", 1)[0] == name})
        if fault.mode in ("fail", "done") and results[fault] == 1:
            table[name]["ended 1"] += 1
    for name in sorted(table):
        counts = table[name]
        rest = ", ".join(f"{what} {counts[what]}" for what in sorted(counts) if what not in ("calls", "ended 1"))
        say(f"  {name:10} {counts['calls']:4} calls: {rest}; runs that failed: {counts['ended 1']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", default="", help="faults whose description contains this")
    parser.add_argument("--jobs", type=int, default=4, help="at a time: they mostly wait for the disk")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--mpi", default="openmpi")
    parser.add_argument("--shard", default="none", help="how ranks divide the state")
    parser.add_argument("--half", type=int, choices=(0, 1), help="about half of the calls: those with such a number")
    options = parser.parse_args()
    launcher = [options.tree / "tests/comm/mpirun.sh", options.mpi, str(options.ranks)] if options.ranks > 1 else []
    if launcher and not shutil.which(f"mpirun.{options.mpi}"):
        say(f"SKIPPED: there is no mpirun.{options.mpi}")
        return harness.SKIPPED
    with tempfile.TemporaryDirectory(prefix="faults-", dir=os.getcwd()) as folder:
        test = Test(harness.Command(options.library.resolve(), launcher=launcher), options.tree, pathlib.Path(folder).resolve(),
                    leaves=4 if launcher else 2, shard=options.shard)
        harness.check_interposed(test.command.library)
        say("faults: what there is to fail")
        faults, makers = [], collections.defaultdict(list)
        # rising: each evaluation is the best; falling: the first one is, and its checkpoint is kept
        starts = [("new", 1e-2, None), ("best-is-old", 3.0, None),
                  ("resumed", 1e-2, "write 1 run/checkpoints/unfinished-00000004-1/manifest.json")]
        for name, rate, fault in starts[:1] if launcher else starts:
            for key in test.add_start(name, rate, fault):
                makers[key].append(name)
        for name, (_, _, keys, _) in test.starts.items():
            faults += (make_rank_faults if launcher else make_faults)(name, keys, options.long, makers)
        if options.half is not None:
            faults = [fault for fault in faults if number_of(fault.key) % 2 == options.half]
        faults = [fault for fault in faults if options.only in " ".join(fault)]
        say(f"faults: {len(faults)} runs, each with one that follows")
        began, failed, results = time.monotonic(), collections.defaultdict(list), {}
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            waiting = {pool.submit(test.run, fault): fault for fault in faults}
            try:
                for done in concurrent.futures.as_completed(waiting):
                    fault = waiting[done]
                    try:
                        results[fault] = done.result()
                        if len(results) % 1000 == 0:
                            say(f"  {len(results)} done, after {time.monotonic() - began:.0f} s")
                    except (harness.Failure, subprocess.TimeoutExpired, OSError, ValueError) as failure:
                        text = str(failure).strip().replace(str(test.work), "")[:600]
                        failed[re.sub(r"case-\w+|\d+", "…", text)].append(fault)
                        if len(failed[re.sub(r"case-\w+|\d+", "…", text)]) <= SHOWN:
                            say(f"  {' | '.join(fault)}: {text}")
            except KeyboardInterrupt:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough
                say("interrupted: what there is so far")
                pool.shutdown(cancel_futures=True)
        for text, some in failed.items():
            say(f"  {len(some)} times: {text}")
        report(faults, results)
        say(f"faults: {len(results)} of {len(faults)} as they should be, in {time.monotonic() - began:.0f} s")
        return 1 if failed or len(results) < len(faults) else 0


harness.run_main(main)
