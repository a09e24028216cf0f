"""What the measurements of this folder share: building, peers as processes, and turns.

Machines are noisy, so nothing here compares two times that were taken apart: every contender stays alive and has its
turn in every round, and what is reported is the median over the rounds of a ratio within a round. Standard library
only.
"""
import array
import atexit
import ctypes
import math
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent
TREE = BENCH.parent
PAUSE = 0.05  # seconds between turns: threads that spin after their work go to sleep in less
MOMENT = 0.25  # seconds that a turn lasts, at least: short passes are repeated


class Unmeasured(Exception):
    """A contender is not there, or failed; the message says why."""


def say(text):
    """Progress: for people, so not on standard output, which has the results."""
    print(text, file=sys.stderr, flush=True)


# ---- building ----


def build():
    """Builds the programs of this folder, in build/release or in the build folder ANNEAL_BUILD, and returns where they are."""
    folder = os.environ.get("ANNEAL_BUILD")
    commands = [] if folder else [["cmake", "--preset", "release"]]
    folder = pathlib.Path(folder) if folder else TREE / "build" / "release"
    commands.append(["cmake", "--build", str(folder), "--target", "bench"])
    for command in commands:
        done = subprocess.run(command, cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            lines = [line for line in done.stdout.splitlines() if not line.startswith("[")]  # without what went well
            sys.exit("\n".join(lines) + f"\n'{' '.join(command)}' failed; tools/bootstrap installs what a build needs")
    return folder / "bench"


def python_with(module, *variables):
    """A Python that has the module: one that an environment variable names, or python3. None: there is none."""
    named = [os.environ[v] for v in variables if os.environ.get(v)]
    for python in named + ["python3", "/usr/bin/python3"]:
        try:
            if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0:
                return python
        except OSError:
            continue
    say(f"no python3 here has {module}: it is left out ({variables[0]} may name one that has it)")
    return None


# ---- processes ----

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_alive = set()
# What PyTorch compiles: in a folder of this run, since one that is ended while it writes spoils it for the next.
_compiled = tempfile.TemporaryDirectory(prefix="anneal-bench-", ignore_cleanup_errors=True)


def _start():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgid(0, 0)  # no session: Linux may give each session the same share of the cores, however many threads it has


def _end_all():
    for process in list(_alive):
        process.close()


atexit.register(_end_all)
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


class Process:
    """A child in a group of its own, which ends with us however we end."""

    def __init__(self, argv, threads):
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.name = pathlib.Path(argv[0]).name
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
                           TORCHINDUCTOR_CACHE_DIR=_compiled.name)
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                      env=environment, preexec_fn=_start)
        _alive.add(self)

    def read(self):
        line = self.child.stdout.readline()
        if line:
            return line
        self.child.wait()
        self.errors.seek(0)
        last = self.errors.read().strip().splitlines()[-4:]
        raise Unmeasured(f"{self.name} ended with {self.child.returncode}: " + " / ".join(last))

    def write(self, line):
        try:
            self.child.stdin.write(line)
            self.child.stdin.flush()
        except BrokenPipeError:
            self.read()

    def send(self, number):
        os.killpg(self.child.pid, number)

    def close(self):
        if self not in _alive:
            return
        _alive.remove(self)
        try:
            self.send(signal.SIGKILL)  # reaches one that is stopped, too
        except ProcessLookupError:
            pass
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self.errors):
            try:
                stream.close()
            except BrokenPipeError:
                pass


# ---- contenders ---- each has a label, gigabytes that it takes, start(), turn() -> seconds of a pass, close()


class Served:
    """A program that answers lines "WARM PASSES" with seconds: step.c, torch_peers.py, numpy_dgemm.py."""

    def __init__(self, label, argv, threads, gigabytes=1.0):
        self.label, self.argv, self.threads, self.gigabytes = label, argv, threads, gigabytes
        self.process = None

    def start(self):
        self.process = Process(self.argv, self.threads)
        if self.process.read().strip() != "ready":
            raise Unmeasured(f"{self.label} did not say ready")
        self.ask(1, 1)
        self.passes = max(1, math.ceil(MOMENT / max(self.ask(0, 1), 1e-6)))

    def ask(self, warm, passes):
        self.process.write(f"{warm} {passes}\n")
        return float(self.process.read())

    def turn(self):
        return self.ask(1, self.passes)

    def close(self):
        if self.process:
            self.process.close()


class BareGemm:
    """The limit: a process a turn. It warms up with a pass of its own, and making its buffers is not in its time."""

    def __init__(self, folder, layout, precision, tokens, threads):
        self.label, self.gigabytes, self.threads = layout, 4.0, threads
        self.argv = [str(folder / "bare_gemm"), str(tokens), "1", precision, layout]

    def start(self):
        if not os.path.exists(self.argv[0]):
            raise Unmeasured("there is no oneDNN in this build, so no limit to compare with")

    def turn(self):
        process = Process(self.argv, self.threads)
        try:
            line = process.read()
        finally:
            process.close()
        found = re.search(r"median ([0-9.]+) s", line)
        if not found:
            raise Unmeasured(f"bare_gemm said '{line.strip()}'")
        return float(found.group(1))

    def close(self):
        pass


class TorchGpt2:
    """torch_gpt2.py as it is: it runs step after step, so it is stopped between its turns. The step in which it was stopped
    warms it up; the one after that is whole, and counts."""

    def __init__(self, python, mode, precision, batch, tokens, threads):
        self.label, self.threads = mode, threads
        self.gigabytes = 2.5 + 1.25 * batch * tokens / 1024  # 3.7 at B4 T256 and 7.5 at B4 T1024
        self.argv = [python, str(BENCH / "torch_gpt2.py"), "--no-update", "--precision", precision, "--batch", str(batch),
                     "--seq", str(tokens), "--threads", str(threads), "--steps", "1000000"]
        self.argv += ["--compile"] if mode == "compile" else []
        self.process = None

    def start(self):
        self.process = Process(self.argv, self.threads)
        self.step()  # it compiles in its first step
        self.step()
        self.process.send(signal.SIGSTOP)

    def step(self):
        found = None
        while not found:
            found = re.search(r"^step \d+ loss \S+ ([0-9.]+) s", self.process.read())
        return float(found.group(1))

    def turn(self):
        self.process.send(signal.SIGCONT)
        self.step()
        seconds = self.step()
        self.process.send(signal.SIGSTOP)
        return seconds

    def close(self):
        if self.process:
            self.process.close()


# ---- turns ----


def available_gigabytes():
    with open("/proc/meminfo") as file:
        amounts = dict(line.split(":", 1) for line in file)
    free = int(amounts["MemAvailable"].split()[0]) * 1024
    try:
        limit = pathlib.Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(pathlib.Path("/sys/fs/cgroup/memory.current").read_text())
        free = free if limit == "max" else min(free, int(limit) - used)
    except (OSError, ValueError):
        pass
    return free / 1e9


def _groups(peers):
    """Peers that fit in memory together."""
    room = 0.9 * available_gigabytes()
    groups = []
    for peer in peers:
        if groups and sum(p.gigabytes for p in groups[-1]) + peer.gigabytes <= room:
            groups[-1].append(peer)
        else:
            groups.append([peer])
    return groups


def _started(peers):
    for peer in peers:
        try:
            say(f"  starting {peer.label}")
            peer.start()
            yield peer
        except Unmeasured as reason:
            say(f"  {peer.label} could not be measured: {reason}")
            peer.close()


def alternate(ours, peers, rounds):
    """Gives ours and every peer a turn in each round. Returns {label: [(our seconds, its seconds), ...]} of those that
    could be measured; Unmeasured if ours could not. Peers that do not fit in memory with the others have rounds of
    their own."""
    times = {}
    try:
        say(f"  starting {ours.label}")
        ours.start()
        for group in _groups(peers):
            live = list(_started(group))
            for number in range(rounds if live else 0):
                line = []
                time.sleep(PAUSE)
                mine = ours.turn()
                for peer in list(live):
                    time.sleep(PAUSE)
                    try:
                        seconds = peer.turn()
                    except Unmeasured as reason:
                        say(f"  {peer.label} could not be measured: {reason}")
                        peer.close()
                        live.remove(peer)
                        continue
                    times.setdefault(peer.label, []).append((mine, seconds))
                    line.append(f"{peer.label} {duration(seconds)}")
                say(f"  round {number + 1} of {rounds}: {ours.label} {duration(mine)}, " + ", ".join(line))
            for peer in group:
                peer.close()
    finally:
        ours.close()
        for peer in peers:
            peer.close()
    return times


def ratio(pairs):
    """Our speed divided by that of a peer: the median over the rounds."""
    return statistics.median(theirs / mine for mine, theirs in pairs)


def duration(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3f} {unit}"
    return f"{seconds * 1e6:.1f} us"


def medians(label, times):
    """ "anneal 3.1 s, eager 4.0 s": the median times, ours first."""
    mine = statistics.median(mine for pairs in times.values() for mine, _ in pairs)
    rest = (f"{name} {duration(statistics.median(t for _, t in pairs))}" for name, pairs in times.items())
    return ", ".join([f"{label} {duration(mine)}", *rest])


# ---- a config ----

BATCH, TOKENS = 4, 256


def gpt2_config(folder, batch=BATCH, tokens=TOKENS):
    """GPT-2 124M on random tokens, with the settings of torch_gpt2.py."""
    numbers = random.Random(0)
    data = array.array("H", (numbers.randrange(50257) for _ in range(100 * batch * tokens + 1)))
    (folder / "random.bin").write_bytes(data.tobytes())
    config = folder / "gpt2.yaml"
    config.write_text(f"""
run:       {{dir: {folder}/run, seed: 1}}
model:     {{type: gpt2, layers: 12, heads: 12, width: 768, context: {tokens}, vocabulary: 50304}}
data:      {{train: {{type: tokens, path: random.bin, format: u16}}}}
batch:     {{global: {batch}}}
optimizer: {{lr: 3e-4, betas: [0.9, 0.95], weight_decay: 0.1}}
train:     {{clip_norm: 1.0}}
""")
    return config
