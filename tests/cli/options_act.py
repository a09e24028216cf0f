#!/usr/bin/env python3
"""No option is silent: changing any of them changes something that can be seen, or is refused.

    options_act.py [WORDS]      (ANNEAL_BIN is the folder of the command; WORDS: only rows whose option has them in its path)

`anneal config keys` says which options there are; options_rows.py has a small run and a change for each. It is a failure if

  - an option has no row. One that only some types have needs a row for each of them, except for types that are not supported.
    A table is covered by the rows of what is in it; one that has the options of another table (data.eval) needs a row itself;
  - a row's change makes no difference, or another one than the row says;
  - a row is of no option.
"""
import concurrent.futures
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True
import options_rows  # noqa: E402

ANNEAL = os.environ["ANNEAL_BIN"] + "/anneal"
LIBRARY = pathlib.Path(os.environ["ANNEAL_BIN"]).parent / "lib" / "libanneal.so"
AT_ONCE = 2
LONGEST_TEXT = 2048  # of a change in a row, and more
ENDED_EARLY = 75  # the exit code of a run that its own limit of time ended
os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive")


# ---- the table of options ----

def options():
    """(path, type) of everything that needs a row; the type is "" where all have the option."""
    listed = json.loads(subprocess.run([ANNEAL, "config", "keys", "--json"], check=True, capture_output=True, text=True).stdout)
    keys = listed["keys"]
    missing = {"array"} & {word for key in keys for word in (key["unsupported"] or "").split("|")}
    missing.add("own")  # optimizers of programs, which the command has none of: tests/run/test_own_optimizer.c
    needed = {(key["path"], kind) for key in keys for kind in key["of"].split("|") if kind not in missing}
    paths = {path for path, _ in needed}
    tables = {path for path in paths if any(other.startswith((path + ".", path + "[].")) for other in paths)}
    return {(path, kind) for path, kind in needed if path not in tables or kind}


# ---- runs ----

class Result:
    """A run that has ended: its folder, what it printed, its exit code."""

    def __init__(self, folder, done):
        self.folder, self.code, self.output, self.errors = folder, done.returncode, done.stdout, done.stderr

    def json(self, name):
        return json.loads((self.folder / name).read_text())


class Runs:
    """Runs in folders of their own, each made once, however many rows ask for it."""

    def __init__(self, work):
        self.work, self.data, self.made, self.lock = work, work / "data", {}, threading.Lock()
        self.data.mkdir()
        options_rows.write_data(self.data)
        trained = self.train("mlp", ["run.seed=9", "run.dir=trained"])
        if trained.code:
            sys.exit("the run to take weights from fails: " + trained.errors)
        (self.data / "trained").symlink_to(trained.folder / "trained")

    def folder(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        for file in self.data.iterdir():
            (folder / file.name).symlink_to(file)
        return folder

    def once(self, what, make):
        with self.lock:
            future = self.made.get(what)
            mine = future is None
            if mine:
                future = self.made[what] = concurrent.futures.Future()
        if mine:
            try:
                future.set_result(make())
            except BaseException as error:
                future.set_exception(error)
                raise
        return future.result()

    def call(self, folder, command, base, settings):
        sets = [word for setting in settings for word in ("--set", setting)]
        words = [ANNEAL, *command, base + ".yaml", *sets]
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)

    def train(self, base, settings, first=None):
        def make():
            folder = self.folder()
            if first is not None:
                self.call(folder, ["train"], base, first)
            return Result(folder, self.call(folder, ["train"], base, settings))
        return self.once(("train", base, tuple(settings), first), make)

    def plan(self, base, settings, *more):
        def make():
            folder = self.folder()
            return Result(folder, self.call(folder, ["plan", "--json", *more], base, settings))
        return self.once(("plan", base, tuple(settings), more), make)

    def named(self, base, settings):
        """A program that saves three times by a step of its own: the names of the checkpoints."""
        folder = self.folder()
        shown = self.call(folder, ["config", "show"], base, settings)
        (folder / "named.yaml").write_text(shown.stdout)
        done = subprocess.run([sys.executable, __file__, "--named", str(LIBRARY), "named.yaml"], cwd=folder, capture_output=True,
                              text=True, timeout=300)
        return Result(folder, done)

    def stalls(self, base, settings):
        """What a supervisor says of a training process that is stopped for a while."""
        def make():
            folder = self.folder()
            with open(folder / "errors", "w+", encoding="utf-8") as errors:
                sets = [word for setting in ("run.steps=1000000000", *settings) for word in ("--set", setting)]
                process = subprocess.Popen([ANNEAL, "train", base + ".yaml", "--supervise", *sets], cwd=folder,
                                           stdout=subprocess.DEVNULL, stderr=errors)
                child = None
                try:
                    child = wait_for(lambda: (folder / "run/metrics.jsonl").exists() and child_of(process.pid))
                    os.kill(child, signal.SIGSTOP)
                    time.sleep(3)
                finally:
                    process.send_signal(signal.SIGTERM)
                    for number in (child, child_of(process.pid)):
                        if number:
                            resume(number)
                    try:
                        process.wait(60)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
                errors.seek(0)
                return Result(folder, subprocess.CompletedProcess([], 0, errors.read(), ""))
        return self.once(("stalls", base, tuple(settings)), make)


def resume(number):
    try:
        os.kill(number, signal.SIGCONT)
    except ProcessLookupError:
        pass


def child_of(parent):
    found = pathlib.Path(f"/proc/{parent}/task/{parent}/children")
    numbers = found.read_text().split() if found.exists() else []
    return int(numbers[0]) if numbers else None


def wait_for(look):
    for _ in range(1200):
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise RuntimeError("a supervised run does not train")


def save_by_name(library, config):
    """The program of Runs.named."""
    anneal = ctypes.CDLL(library)
    anneal.an_last_error.restype = ctypes.c_char_p
    context, trainer = ctypes.c_void_p(), ctypes.c_void_p()

    def do(status):
        if status:
            sys.exit(anneal.an_last_error(context).decode())

    do(anneal.an_context_create(ctypes.byref(context), None))
    do(anneal.an_trainer_open(ctypes.byref(trainer), context, config.encode(), None))
    for step in (10, 20, 30):
        do(anneal.an_trainer_save(trainer, ctypes.c_int64(step)))
    anneal.an_trainer_destroy(ctypes.byref(trainer))
    anneal.an_context_destroy(ctypes.byref(context))


# ---- what is seen ----

def without_times(name, text):
    """Two runs of the same config are the same in this."""
    if name == "metrics.jsonl":
        lines = [json.loads(line) for line in text.splitlines()]
        return [{key: value for key, value in line.items() if not key.endswith("_per_second")} for line in lines]
    if name == "outcome.json":
        return {key: value for key, value in json.loads(text).items() if key in ("end", "step")}
    if name == "summary.json":
        return {key: value for key, value in json.loads(text).items() if key in ("steps", "metrics", "best")}
    if name == "manifest.json":
        written = json.loads(text)
        return {key: written.get(key) for key in ("bits", "tensors")}
    return text


def files(result, pattern):
    """The files of a pattern with their text; of folders and of files with a time in their name only that they are there."""
    found = {}
    for path in sorted(result.folder.glob(pattern)):
        plain = path.is_dir() or path.name.startswith("events") or path.name == "trace.json"
        name = path.name.split(".")[0] if plain else path.name
        found[str(path.relative_to(result.folder).with_name(name))] = "" if plain else without_times(path.name, path.read_text())
    return found


def plans_differ(before, after):
    """The text of the config is counted in trainer_bytes, and so in the peak: a small difference there says nothing."""
    plans = [json.loads(result.output) for result in (before, after)]
    bytes_of_trainers = [plan.pop("trainer_bytes") for plan in plans]
    for plan in plans:
        del plan["peak_bytes"]
        plan.pop("strategies", None)  # they have the same two numbers
    return plans[0] != plans[1] or abs(bytes_of_trainers[0] - bytes_of_trainers[1]) >= LONGEST_TEXT


def differs(sees, before, after):
    kind, what = sees
    if kind == "plan":
        return plans_differ(before, after)
    see = {
        "hash": lambda result: result.json("run/summary.json")[what],
        "files": lambda result: files(result, what),
        "stalls": lambda result: what in result.output,
        "named": lambda result: sorted(os.listdir(result.folder / "run/checkpoints")),
    }[kind]
    return see(before) != see(after)


def make(runs, row, settings):
    kind = row.sees.kind
    if kind == "named":
        return runs.named(row.base, settings)
    if kind == "stalls":
        return runs.stalls(row.base, settings)
    # A stream has no samples to train on, but what is wrong with its options is said before that is.
    if kind == "plan" or row.base.startswith("stream"):
        return runs.plan(row.base, settings, *row.sees.what.split()) if kind == "plan" else runs.plan(row.base, settings)
    return runs.train(row.base, settings, row.first)


def problem_of_ends(before, after, sees):
    """Both runs end well, except for one that is refused as the row says."""
    refused = {"refused": (False, True), "accepted": (True, False)}.get(sees.kind, (False, False))
    for result, fails, name in ((before, refused[0], "without the change"), (after, refused[1], "with the change")):
        text = (result.errors or result.output).strip()[-600:]
        if not fails and result.code not in (0, ENDED_EARLY):
            return f"{name} it ends with {result.code}: {text}"
        if fails and not result.code:
            return f"{name} nothing is refused"
        if fails and sees.what not in text:
            return f"{name} the message has no '{sees.what}': {text}"
    return None


def problem_of(runs, row):
    """What is wrong with a row; None if its change does what it says."""
    before, after = make(runs, row, row.both), make(runs, row, (*row.both, *row.change))
    problem = problem_of_ends(before, after, row.sees)
    if problem or row.sees.kind in ("refused", "accepted"):
        return problem
    return None if differs(row.sees, before, after) else f"no difference in {' '.join(filter(None, row.sees))}"


def problem_of_control(runs, row):
    """A setting that says what is so already makes no difference; else a row could not show anything."""
    if row.sees.kind in ("refused", "accepted", "stalls"):
        return None
    before, after = make(runs, row, row.both), make(runs, row, (*row.both, "run.dir=run"))
    return "run.dir=run, which it is, makes a difference" if differs(row.sees, before, after) else None


def name_of(path, kind):
    return f"{path} (of {kind})" if kind else path


def check_table(problems):
    needed, known = options(), {(row.path, row.of) for row in options_rows.ROWS}
    problems += [f"{name_of(*option)}: no row in options_rows.py" for option in sorted(needed - known)]
    problems += [f"{name_of(*option)}: a row of no option" for option in sorted(known - needed)]
    return len(needed)


def main():
    problems, words = [], sys.argv[1] if len(sys.argv) > 1 else ""
    count = check_table(problems)
    rows = [row for row in options_rows.ROWS if words in row.path]
    controls = list({row.sees: row for row in rows}.values())
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = Runs(pathlib.Path(work))
        for chosen, check in ((rows, problem_of), (controls, problem_of_control)):
            for row, problem in zip(chosen, pool.map(lambda row, check=check: check(runs, row), chosen)):
                if problem:
                    problems.append(f"{name_of(row.path, row.of)}, {' '.join(row.change)}: {problem}")
    for problem in problems:
        print("FAILED:", problem)
    print(f"{count} options, {len(rows)} rows, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--named"]:
        save_by_name(*sys.argv[2:4])
    else:
        sys.exit(main())
