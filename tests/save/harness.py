"""What the tests of this folder share: configs, runs of the command with faults, and what must hold afterwards."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77  # exit code for ctest: this machine cannot do it


class Failure(Exception):
    """Something that must hold does not."""


def check(holds, what):
    if not holds:
        raise Failure(what[:2000])


def where_threads_are(pid):
    """State, place in the kernel and system call of each thread."""
    found = []
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").iterdir()):
        texts = []
        for name in ("stat", "wchan", "syscall"):
            try:
                text = (task / name).read_text()
                texts.append(text.rsplit(")", 1)[1].split()[0] if name == "stat" else text.strip())
            except OSError:
                texts.append("?")
        found.append(" ".join(texts))
    return "; ".join(found)


class Command:
    """The command under test, and the library that is put before the C library."""

    def __init__(self, library, threads=1, launcher=()):
        self.library = library
        self.launcher = list(launcher)  # of ranks, before the command
        self.anneal = [*os.environ.get("ANNEAL_RUN", "").split(), os.environ["ANNEAL_BIN"] + "/anneal"]
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        self.verifies = "verify" in subprocess.run([*self.anneal, "--help"], capture_output=True, text=True).stdout

    def faults(self, folder, **faults):
        """The environment of a run with faults under a folder: at=, mode=, errno=, log=, slow_ms=, now=, shadow=."""
        names = {"FAULT_" + name.upper(): str(value) for name, value in faults.items() if value is not None}
        return {**self.environment, "LD_PRELOAD": str(self.library), "FAULT_FOLDER": os.path.realpath(folder), **names}

    def train(self, config, *arguments, environment=None, timeout=300):
        # Without faults it is one process: what ranks have left must do for any number of them.
        launcher = self.launcher if environment else []
        if launcher and "LD_PRELOAD" in environment:  # for ranks only: a launcher writes in signal handlers, where the library's lock hangs it
            environment = dict(environment)
            launcher = [*launcher, "env", "LD_PRELOAD=" + environment.pop("LD_PRELOAD")]
        with subprocess.Popen([*launcher, *self.anneal, "train", str(config), *arguments], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment or self.environment) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                where = where_threads_are(process.pid)
                process.kill()
                raise Failure(f"it hangs; its threads: {where}") from None
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def is_good(self, checkpoint):
        if not self.verifies:
            return (checkpoint / "manifest.json").exists()
        code = subprocess.run([*self.anneal, "verify", str(checkpoint)], capture_output=True, env=self.environment).returncode
        check(code in (0, 1), f"anneal verify {checkpoint.name} ended with {code}")
        return code == 0


# Functions of the C library that change files, or sync them; those with 64 in their names are the same.
CHANGING = set("""open openat creat __open_2 __openat_2 close write pwrite writev pwritev pwritev2 fsync fdatasync sync syncfs
    sync_file_range ftruncate truncate fallocate posix_fallocate rename renameat renameat2 link linkat symlink symlinkat unlink
    unlinkat remove rmdir mkdir mkdirat mkstemp mkostemp mkdtemp tmpfile copy_file_range sendfile splice opendir closedir mknod
    mkfifo""".split())


def names_of(program, which):
    listed = subprocess.run(["nm", "-D", which, str(program)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0].replace("64", "") for line in listed.splitlines()}


def check_interposed(library):
    """No call of the library escapes: what it takes from the C library to change files is put before it."""
    anneal = pathlib.Path(os.environ["ANNEAL_BIN"]).parent / "lib/libanneal.so"
    missing = (names_of(anneal, "--undefined-only") & CHANGING) - names_of(library, "--defined-only")
    check(not missing, f"interpose.c does not know what libanneal.so calls: {sorted(missing)}")


def checkpoints(run):
    """Those that have their name, the newest first: by launch, then by step."""
    found = pathlib.Path(run).glob("checkpoints/step-*")
    return sorted(found, key=lambda path: [int(number) for number in path.name.split("-")[2:0:-1]], reverse=True)


def leftovers(run):
    return sorted(path.name for path in pathlib.Path(run).glob("checkpoints/*") if not path.name.startswith("step-"))


def summary(run):
    with open(pathlib.Path(run) / "summary.json") as file:
        return json.load(file)


def state_hash(run):
    return summary(run)["state_hash"]


def metric_steps(run):
    """The steps that metrics.jsonl has a line of, in its order; evaluations left out."""
    with open(pathlib.Path(run) / "metrics.jsonl") as file:
        return [line["step"] for line in map(json.loads, file) if "loss" in line]


def check_steps(steps, last, what):
    """Each of the steps 1 … last once, in their order."""
    missing = sorted(set(range(1, last + 1)) - set(steps))[:10]
    twice = sorted({step for step in steps if steps.count(step) > 1})[:10] if len(set(steps)) < len(steps) else []
    check(not missing and not twice, f"{what}: steps are missing: {missing}, steps are there twice: {twice}")
    check(steps == list(range(1, last + 1)), f"{what}: steps are out of order")


def log_lines(path):
    """The lines of a fault log: (whether it was the chosen call, result, name, nth, path)."""
    lines = []
    if os.path.exists(path):
        for line in open(path):
            _, result, name, nth, where = line.rstrip("\n").split(" ", 4)
            lines.append((result[0] == "*", int(result.lstrip("*")), name, int(nth), where))
    return lines


def counted_lines(log):
    """The lines of a test's log that stand for something that happened; others begin with #."""
    return [line for line in log.read_text().splitlines() if line[:1].isdigit()] if log.exists() else []


def open_log(log, enough):
    """A log to carry on with. One that is complete is put aside."""
    if len(counted_lines(log)) >= enough:
        log.rename(log.with_suffix(".old"))
    return log


def fresh_folder(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return pathlib.Path(path)


def say(text):
    print(text, flush=True)


def run_main(main):
    try:
        sys.exit(main() or 0)
    except Failure as failure:
        say(f"FAILED: {failure}")
        sys.exit(1)
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)
