#!/usr/bin/env python3
"""Every example and every preset under limits of memory: each starts with what it chooses, and ends with one
state_hash, or is refused where nothing would fit.

    fitting.py TREE STATE [--limits 4,8,16] [--only REGEX] [--all] [--plan-only] [--models FOLDER | --fetch]
               [--step-seconds 120] [--start-seconds 60] [--most-seconds 1200] [--gflops 100]

TREE is the source tree, ANNEAL_BIN the folder of the command, STATE a folder for data and results: what it has is not
done again, unless the library has changed. Examples are the configs and programs below TREE/examples, presets those
that `anneal plan --help` lists, with data of random tokens. Models whose sizes all have defaults, what `anneal init`
writes for each kind of data, and some cases that are hard are looked at too. Published models are taken from --models,
or with --fetch downloaded by tests/models/fetch; without them, what needs them is left out.

A limit is that of a cgroup (version 1 or 2), which needs root. Where none can be made, `prlimit --data` takes its
place, and the output says so. For each case and limit:

- `anneal plan` under the limit says what is chosen;
- if it fits, two steps are trained: the process must not be killed, its peak must be below the limit, and no more than
  was planned. A case whose step would take more than --step-seconds, at --gflops, is started only, and ended after
  --start-seconds;
- if it is refused, no batch.micro of a leaf or more with any train.recompute may fit. If a smaller one does, which has
  other bits, the message must name settings that fit;
- what is chosen is the first of what fits and leaves a sixteenth of the limit: without recompute before recompute of
  blocks before full, and a large batch.micro before a small one; checkpoints written without a copy of the state come
  after a small batch.micro and before recompute;
- all runs of a case have the same state_hash, but those of models with batch norm. What is chosen under two limits
  alike is run under the first of them, with --all under both.

Besides, cases of 0.6 to 4 GiB are run under two thirds of what they take, so that something must be chosen there.
Exit code 1: something is not as it should be; 2: wrong usage."""

import argparse
import array
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib

GIB = 1 << 30
STEPS = 2
SPARE = 64 << 20  # a process has that beside what is planned: libraries, stacks, page tables
RECOMPUTES = ("none", "block", "full")


class Wrong(Exception):
    """Something is not as it should be."""


# ---- limits ----

class Limits:
    """Runs commands under a limit, in a cgroup of its own each."""

    def __init__(self):
        self.version, self.base, self.number = 0, None, 0
        for version, base, name in ((1, "/sys/fs/cgroup/memory", "memory.limit_in_bytes"), (2, "/sys/fs/cgroup", "memory.max")):
            group = pathlib.Path(base, f"fitting-{os.getpid()}")
            try:
                group.mkdir()
            except OSError:
                continue
            try:
                if (group / name).exists():  # the kernel puts it there, or it is no cgroup
                    (group / name).write_text(str(GIB))
                    self.version, self.base = version, base
            except OSError:
                pass
            group.rmdir()
            if self.version:
                break

    def name(self):
        return {0: "prlimit --data (no cgroup can be made here)", 1: "cgroup, version 1", 2: "cgroup, version 2"}[self.version]

    def run(self, limit, command, folder, out, seconds=None):
        """(exit code, peak of the group, peak of the process, kills for want of memory); the code is None if it was
        ended after `seconds`"""
        if not self.version:
            return self.run_limited(limit, command, folder, out, seconds)
        files = {1: ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"),
                 2: ("memory.max", "memory.peak", "memory.events")}[self.version]
        self.number += 1
        group = pathlib.Path(self.base, f"fitting-{os.getpid()}-{self.number}")
        group.mkdir()
        try:
            if limit:
                (group / files[0]).write_text(str(limit))
            procs = str(group / "cgroup.procs")

            def enter():
                with open(procs, "w") as file:
                    file.write(str(os.getpid()))

            code, resident = wait_for(command, folder, out, enter, seconds)
            peak = int((group / files[1]).read_text()) if (group / files[1]).exists() else resident
            kills = re.search(r"^oom_kill (\d+)", (group / files[2]).read_text(), re.M)
            return code, peak, resident, int(kills[1]) if kills else 0
        finally:
            for _ in range(100):  # the kernel may need a moment
                try:
                    group.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)

    @staticmethod
    def run_limited(limit, command, folder, out, seconds):
        if limit:
            command = ["prlimit", f"--data={limit}", *command]
        code, resident = wait_for(command, folder, out, None, seconds)
        return code, resident, resident, 0


def wait_for(command, folder, out, enter, seconds):
    with open(out, "w") as file:
        process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=enter)
        end, ended = time.monotonic() + (seconds or 1e9), False
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if not ended and time.monotonic() > end:
                ended = True
                os.kill(process.pid, signal.SIGKILL)
            time.sleep(0.05)
        process.returncode = os.waitstatus_to_exitcode(status)
        return None if ended and process.returncode == -signal.SIGKILL else process.returncode, usage.ru_maxrss * 1024


# ---- data ----

def write_tokens(path, vocabulary, count, seed=1):
    r = random.Random(seed)
    path.write_bytes(array.array("H", (r.randrange(min(vocabulary, 1 << 16)) for _ in range(count))).tobytes())


def write_idx(images, labels, count, side, classes):
    r = random.Random(2)
    images.write_bytes(struct.pack(">IIII", 0x803, count, side, side) + r.randbytes(count * side * side))
    labels.write_bytes(struct.pack(">II", 0x801, count) + bytes(i % classes for i in range(count)))


def write_png(path, side, seed):
    r = random.Random(seed)
    rows = b"".join(b"\0" + r.randbytes(3 * side) for _ in range(side))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def write_images(folder, side, count):
    for name in ("first", "second"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(count // 2):
            write_png(folder / name / f"{i}.png", side, f"{name} {i}")


def words(count, seed):
    r = random.Random(seed)
    return " ".join(r.choice(("the king comes with his men and all that he has said is true for us if you were here now to see it").split())
                    for _ in range(count))


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def chat_lines(count, length):
    return [{"messages": [{"role": "user", "content": words(length // 2, i)}, {"role": "assistant", "content": words(length, -i)}]}
            for i in range(1, count + 1)]


def pair_lines(count, length):
    return [{"prompt": [{"role": "user", "content": words(12, i)}],
             "chosen": [{"role": "assistant", "content": words(length // 4, -i)}],
             "rejected": [{"role": "assistant", "content": words(length, 1000 + i)}]} for i in range(1, count + 1)]


def write_table(path, rows=400):
    r = random.Random(3)
    lines = ["a,b,c,height"]
    for _ in range(rows):
        a, b, c = r.random(), r.random(), r.random()
        lines.append(f"{a:.4f},{b:.4f},{c:.4f},{a * b - c:.4f}")
    path.write_text("\n".join(lines) + "\n")


def write_npz(path, rows=300):
    def npy(shape, code, data):
        header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
        header += " " * (-(len(header) + 11) % 64) + "\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data

    import zipfile
    r = random.Random(4)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", npy(f"({rows}, 8)", "<f4", array.array("f", (r.random() for _ in range(rows * 8))).tobytes()))
        file.writestr("y.npy", npy(f"({rows},)", "<i4", array.array("i", (i % 3 for i in range(rows))).tobytes()))


# ---- cases ----

class Case:
    def __init__(self, name, folder, config=None, program=None):
        self.name, self.folder, self.config, self.program = name, folder, config, program


class Cases:
    def __init__(self, o, anneal):
        self.o, self.anneal, self.list, self.left_out = o, anneal, [], []
        self.work = o.state / "data"
        self.work.mkdir(parents=True, exist_ok=True)
        self.models = {}

    def command(self, *arguments, cwd=None):
        return subprocess.run([self.anneal, *arguments], cwd=cwd, capture_output=True, text=True)

    def wanted(self, name):
        return re.search(self.o.only, name)

    def leave_out(self, name, why):
        self.left_out.append((name, why))

    def model(self, name, path):
        """A published model, or None."""
        if name not in self.models:
            folder = self.o.models or self.o.state / "models"
            if not (folder / path).exists() and self.o.fetch:
                subprocess.run([self.o.tree / "tests/models/fetch", folder, name], stdout=subprocess.DEVNULL)
            self.models[name] = (folder / path) if (folder / path).exists() else None
        return self.models[name]

    # Examples: the folder is copied, and gets the data that its README makes.
    def add_examples(self):
        for source in sorted(path for path in (self.o.tree / "examples").iterdir() if path.is_dir()):
            name = "example " + source.name
            folder = self.work / source.name
            configs = sorted(source.glob("**/*.yaml"))
            if not any(self.wanted(f"{name}/{c.stem}") for c in configs) and not self.wanted(name):
                continue
            shutil.copytree(source, folder, dirs_exist_ok=True)
            ready = getattr(self, "prepare_" + source.name, lambda folder: True)(folder)
            programs = [path.stem for path in source.glob("*.c")] if (source / "CMakeLists.txt").exists() else []
            program = pathlib.Path(os.path.abspath(os.environ["ANNEAL_BIN"]), "../tests/examples", programs[0]) if programs else None
            for config in configs or [None]:
                case = f"{name}/{config.stem}" if config else name
                if not ready:
                    self.leave_out(case, "its model is not here")
                elif program and not program.exists():
                    self.leave_out(case, f"{program.name} is not built")
                elif program:
                    self.add_program(case, folder, config, program.resolve())
                else:
                    self.add(Case(case, folder, folder / config.relative_to(source)))

    def add_program(self, name, folder, config, program):
        self.add(Case(name, folder, config and folder / config.name, program))

    def prepare_smollm2(self, folder):
        model = self.model("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
        if not model:
            return False
        link(folder / model.name, model)
        make(folder / "train.jsonl", lambda path: self.awk(folder, path, "-v", "count=200", "-f", "people.awk"))
        make(folder / "pairs.jsonl", lambda path: write_lines(path, pair_lines(60, 90)))
        make(folder / "pairs-test.jsonl", lambda path: write_lines(path, pair_lines(12, 90)))
        make(folder / "shakespeare.bin", lambda path: self.command(
            "tokenize", str(folder / model.name), str(self.o.tree / "examples/shakespeare/tinyshakespeare.txt"), "-o", str(path)))
        return True

    def prepare_minilm(self, folder):
        model = self.model("minilm", "all-MiniLM-L6-v2")
        if not model:
            return False
        link(folder / model.name, model)
        text = str(self.o.tree / "examples/shakespeare/tinyshakespeare.txt")
        for part in ("train", "test"):
            make(folder / f"{part}.jsonl", lambda path: self.awk(folder, path, "-v", f"part={part}", "-f", "speakers.awk", text, text))
        return True

    @staticmethod
    def awk(folder, path, *arguments):
        with open(path, "w") as file:
            subprocess.run(["awk", *arguments], cwd=folder, stdout=file, check=True)

    def tokens(self, vocabulary):
        path = self.work / f"tokens-{vocabulary}.bin"
        make(path, lambda path: write_tokens(path, vocabulary, 400_000))
        return path

    def config(self, name, text):
        path = self.work / f"{name}.yaml"
        path.write_text(text)
        return path

    def text_config(self, name, model, vocabulary, more="", data=""):
        tokens = f"type: tokens, path: {self.tokens(vocabulary).name}, format: u16{data}"
        return self.config(name, f"model: {{{model}}}\n{more}data:\n  train: {{{tokens}, part: 0%..90%}}\n  eval:  {{{tokens}, part: 90%..100%}}\n")

    # Presets are those of the command; their sizes are in its source.
    def add_presets(self):
        sizes = dict((name, rest) for name, *rest in re.findall(r'\{"([\w.-]+)", (\d+), (\d+), (\d+)\}', (self.o.tree / "src/models/preset.c").read_text()))
        source = (self.o.tree / "src/models/preset.c").read_text()
        vocabulary = int(re.search(r"VOCABULARY = (\d+)", source)[1])
        context = int(re.search(r"CONTEXT = (\d+)", source)[1])
        names = re.search(r"^Presets: (.*?)\. A file", self.command("plan", "--help").stdout, re.M | re.S)[1].split()
        if sorted(names) != sorted(sizes):
            raise Wrong(f"the command has the presets {names}, its source {sorted(sizes)}")
        for name in names:
            layers, heads, width = sizes[name]
            shape = f"type: gpt2, layers: {layers}, heads: {heads}, width: {width}, context: {context}, vocabulary: {vocabulary}"
            self.add(Case(f"preset {name}", self.work, self.text_config(name, shape, vocabulary)))
            # Steps that take seconds: the same model and samples, but few of these.
            few = {"gpt2-124m": 4, "gpt2-355m": 2}.get(name)
            if few:
                self.add(Case(f"preset {name}, batch.global {few}", self.work,
                              self.text_config(f"{name}-few", shape, vocabulary, f"batch: {{global: {few}}}\n")))

    # Models that need no sizes.
    def add_defaults(self):
        keys = self.command("config", "keys").stdout
        types = re.search(r"^\s*model\.type\b.*?((?:\w+, )+\w+ or \w+)", keys, re.M | re.S)
        known = {"mlp", "cnn", "gpt2", "bert"}
        for name in re.split(r", | or ", types[1]) if types else sorted(known):
            if name not in known and name not in ("llama", "pretrained", "sequential", "graph"):
                raise Wrong(f"model.type {name} is not known here")
        make(self.work / "table.csv", write_table)
        csv = "type: csv, path: table.csv, targets: [height]"
        self.add(Case("default mlp", self.work, self.config("default-mlp", f"model: {{type: mlp}}\ndata: {{train: {{{csv}}}}}\n")))
        for side, count in ((28, 64), (224, 40)):
            folder = self.work / f"images-{side}"
            make(folder, lambda path: write_images(path, side, count))
            data = f"type: images, path: {folder.name}"
            text = f"model: {{type: cnn}}\ndata:\n  train: {{{data}, part: 0%..80%}}\n  eval:  {{{data}, part: 80%..100%}}\n"
            self.add(Case(f"default cnn, images of {side} x {side}", self.work, self.config(f"default-cnn-{side}", text)))
        self.add(Case("default gpt2, contexts of 128", self.work,
                      self.text_config("default-gpt2", "type: gpt2, vocabulary: 50257", 50257, data=", context: 128")))
        make(self.work / "sentences.jsonl", lambda path: write_lines(path, [{"text": words(200, i), "label": i % 2} for i in range(100)]))
        minilm = self.model("minilm", "all-MiniLM-L6-v2")
        if minilm:
            link(self.work / "tokenizer.json", minilm / "tokenizer.json")
            text = ("model: {type: bert, classes: 2}\ndata: {train: {type: sentences, path: sentences.jsonl, tokenizer: tokenizer.json, "
                    "context: 512}}\n")
            self.add(Case("default bert, contexts of 512", self.work, self.config("default-bert", text)))

    # What `anneal init` writes.
    def add_init(self):
        make(self.work / "table.csv", write_table)
        make(self.work / "table.jsonl", lambda path: write_lines(path, [{"a": i % 7, "b": i % 5, "height": i % 7 - i % 5} for i in range(300)]))
        make(self.work / "arrays.npz", write_npz)
        make(self.work / "text.txt", lambda path: path.write_text((self.o.tree / "examples/shakespeare/tinyshakespeare.txt").read_text()))
        make(self.work / "images-32", lambda path: write_images(path, 32, 40))
        make(self.work / "chat.jsonl", lambda path: write_lines(path, chat_lines(100, 80)))
        make(self.work / "pairs.jsonl", lambda path: write_lines(path, pair_lines(60, 80)))
        make(self.work / "labelled.jsonl", lambda path: write_lines(path, [{"text": words(30, i), "label": f"kind {i % 2}"} for i in range(100)]))
        images = self.o.tree / "examples/mnist/mnist-10k-images-idx3-ubyte.gz"
        link(self.work / images.name, images)
        labels = self.o.tree / "examples/mnist/mnist-10k-labels-idx1-ubyte.gz"
        link(self.work / labels.name, labels)
        smollm2, minilm = self.model("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"), self.model("minilm", "all-MiniLM-L6-v2")
        for data, options in (("table.csv", []), ("table.jsonl", []), ("arrays.npz", ["--target", "y"]), (images.name, ["--target", labels.name]),
                              ("text.txt", []), ("images-32", []), ("chat.jsonl", ["--from", smollm2]), ("pairs.jsonl", ["--from", smollm2]),
                              ("labelled.jsonl", ["--from", minilm])):
            name = f"init {data}"
            if not self.wanted(name):
                continue
            if None in options:
                self.leave_out(name, "its model is not here")
                continue
            config = self.work / f"init-{data}.yaml"
            config.unlink(missing_ok=True)
            came = self.command("init", data, *map(str, options), "-o", config.name, cwd=self.work)
            if came.returncode:
                raise Wrong(f"anneal init {data}: {came.stderr.strip()}")
            self.add(Case(name, self.work, config))

    # Where one sample is large: long contexts, pairs, large images, leaves of many rows, batch norm.
    def add_hard(self):
        shape = ("type: llama, layers: 30, heads: 9, kv_heads: 3, width: 576, hidden: 1536, vocabulary: 49152, rotary_base: 100000, tied: on, context: ")
        targets = "lora: {targets: [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj], rank: 8, alpha: 16}\ntrain: {precision: bf16}\n"
        for context, batch in ((256, 4), (2048, 32), (8192, 32)):
            self.add(Case(f"LoRA on a llama of SmolLM2's sizes, contexts of {context}, batch.global {batch}", self.work,
                          self.text_config(f"lora-{context}", shape + str(context), 49152, targets + f"batch: {{global: {batch}}}\n")))
        for context in (256, 2048):
            self.add(Case(f"a llama of SmolLM2's sizes, contexts of {context}", self.work,
                          self.text_config(f"llama-{context}", shape + str(context), 49152)))
        self.add(Case("a llama of SmolLM2's sizes in bf16, leaves of 4,096 rows", self.work, self.text_config(
            "llama-rows", shape + "64", 49152, "train: {precision: bf16}\nbatch: {global: 4096}\n")))
        smollm2 = self.model("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
        if smollm2:
            link(self.work / smollm2.name, smollm2)
            for context, length in ((2048, 900), (8192, 3600)):
                make(self.work / f"chat-{context}.jsonl", lambda path: write_lines(path, chat_lines(60, length)))
                make(self.work / f"pairs-{context}.jsonl", lambda path: write_lines(path, pair_lines(60, length)))
                start = f"model: {{from: {smollm2.name}, context: {context}}}\n" + targets
                self.add(Case(f"conversations on SmolLM2, contexts of {context}", self.work, self.config(
                    f"chat-{context}", start + f"data: {{train: {{type: chat, path: chat-{context}.jsonl}}}}\n")))
                self.add(Case(f"DPO on SmolLM2, contexts of {context}", self.work, self.config(
                    f"pairs-{context}", start + f"data: {{train: {{type: preferences, path: pairs-{context}.jsonl}}}}\n")))
        make(self.work / "images-1024", lambda path: write_images(path, 1024, 40))
        data = "data:\n  train: {type: images, path: images-1024, part: 0%..80%}\n  eval:  {type: images, path: images-1024, part: 80%..100%}\n"
        layer = "{type: convolution, filters: %d}, {type: relu}, {type: max_pool}, "
        layers = "".join(layer % filters for filters in (32, 64, 64, 64)) + "{type: average_pool, window: 64}, {type: flatten}, {type: linear}"
        self.add(Case("convolutions over images of 1,024 x 1,024", self.work,
                      self.config("large-images", f"model: {{type: sequential, layers: [{layers}]}}\n{data}")))
        layers = layers.replace("{type: relu}", "{type: batch_norm}, {type: relu}")
        self.add(Case("batch norm over images of 1,024 x 1,024", self.work,
                      self.config("batch-norm", f"model: {{type: sequential, layers: [{layers}]}}\n{data}")))

    def add(self, case):
        if self.wanted(case.name):
            self.list.append(case)


def make(path, write):
    """A file or folder that is there is whole."""
    if path.exists():
        return
    beside = path.with_name(path.name + ".new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.unlink(missing_ok=True)
    write(beside)
    beside.rename(path)
    for file in sorted(path.parent.glob(beside.name + ".*")):  # what a command writes beside it
        file.rename(str(file).replace(beside.name, path.name))


def link(path, to):
    if not path.exists():
        path.symlink_to(pathlib.Path(to).resolve())


# ---- what is checked ----

class Checks:
    def __init__(self, o, anneal, limits):
        self.o, self.anneal, self.limits = o, anneal, limits
        self.file = o.state / "results.jsonl"
        library = pathlib.Path(anneal).resolve().parent.parent / "lib/libanneal.so"
        self.version = hashlib.sha256((library if library.exists() else pathlib.Path(anneal)).read_bytes()).hexdigest()[:12]
        self.known = {}
        if self.file.exists():
            for line in self.file.read_text().splitlines():
                r = json.loads(line)
                if r["version"] == self.version:
                    self.known[r["key"]] = r
        self.wrong = []

    def remember(self, key, make_result):
        if key not in self.known:
            result = dict(make_result(), key=key, version=self.version)
            with open(self.file, "a") as file:
                file.write(json.dumps(result) + "\n")
            self.known[key] = result
        return self.known[key]

    def note_wrong(self, text):
        self.wrong.append(text)
        print("WRONG:", text, flush=True)

    # -- plans --

    def plan(self, case, limit, *sets):
        out = self.o.state / "plan.out"
        command = [self.anneal, "plan", str(case.config)]
        for s in sets:
            command += ["--set", s]
        code, _, _, kills = self.limits.run(limit, command, case.folder, out)
        text = out.read_text()
        if code != 0 or kills:
            raise Wrong(f"{case.name}: {' '.join(command[1:])} ended with {code}: {text.strip()[-300:]}")
        batch = re.search(r", training: batch (\d+)", text)
        chosen = re.search(r"micro-batches of (\d+) samples(?: and train.recompute (\w+))? were chosen", text)
        refused = re.search(r"^the run does not fit in memory: (.*)", text, re.M)

        def row(name):
            return int(re.search(rf"^  {name} .* ([\d,]+)$", text, re.M)[1].replace(",", ""))

        return {"peak": row("peak"), "copy": row("checkpoint"),
                "flops": flops_of(text), "micro": int(batch[1]) if batch else 0,
                "chosen": bool(chosen), "recompute": (chosen[2] if chosen else None) or "none",
                "refused": refused[1] if refused else None}

    def global_of(self, case):
        shown = subprocess.run([self.anneal, "config", "show", str(case.config)], cwd=case.folder, capture_output=True, text=True).stdout
        found = re.search(r"^batch:(?:\n  .*)*?\n  global: (\d+)|^batch:.*?global: (\d+)|^batch\.global\W+(\d+)", shown, re.M)
        return int(next(g for g in found.groups() if g)) if found else 32

    def leaves_of(self, case, samples):
        """What batch.leaves: auto is. A plan for as many ranks as samples says so, unless there is a leaf for each."""
        out = subprocess.run([self.anneal, "plan", str(case.config), "--ranks", str(samples)], cwd=case.folder, capture_output=True, text=True)
        text = out.stdout + out.stderr
        fewer = re.search(r"with fewer it would be (\d+)", text)
        return int(fewer[1]) if fewer else 1 if "a pass has one leaf" in text else samples

    def grid(self, case):
        """What each batch.micro and train.recompute need, from the fastest to the slowest: with the leaves that the run
        has by itself; and the least with those that a given batch.micro has, where one sample is evaluated at a time.
        Checkpoints without a copy of the state come before recompute."""
        def find():
            samples = self.global_of(case)
            leaves = self.leaves_of(case, samples)
            leaf = -(-samples // leaves)
            own, direct, given = [], [], []
            for recompute in RECOMPUTES:
                micro = samples
                while True:
                    plan = self.plan(case, 0, f"batch.micro={micro}", f"train.recompute={recompute}", f"batch.leaves={leaves}")
                    peak = plan["peak"]
                    if recompute == "none":
                        own.append((peak, plan["micro"], recompute))
                    direct.append((peak - plan["copy"], plan["micro"], recompute))
                    if micro <= leaf:
                        break
                    micro = max(micro // 2, leaf)
            for micro, recompute in ((1, "none"), (1, "block"), (1, "full"), (samples, "full")):
                sets = [f"batch.micro={micro}", f"train.recompute={recompute}"] + (["eval.micro=1"] if evaluates(case) else [])
                plan = self.plan(case, 0, *sets)
                given.append((plan["peak"] - plan["copy"], micro, recompute))
            own += direct
            return {"leaves": leaves, "own": own, "least": min(own), "given": min(given)}

        return self.remember(f"{case.name}: grid", find)

    def check_choice(self, case, limit, plan):
        """What is chosen is the first of what leaves a sixteenth of the limit, or where nothing does, what needs
        least."""
        grid = self.grid(case)
        room = limit - limit // 16
        # On which side of the border it is depends on the lengths of names and paths.
        near = [own for own in grid["own"] if abs(own[0] - room) < limit // 500]
        fits = [own for own in grid["own"] if own[0] <= room]
        best = fits[0] if fits else grid["least"]
        if (plan["micro"], plan["recompute"]) != tuple(best[1:]) and not near:
            self.note_wrong(f"{case.name} under {gib(limit)}: batch.micro {plan['micro']} with train.recompute {plan['recompute']} was chosen, "
                            f"but {best[1]} with {best[2]} is better and needs {gib(best[0])}")

    def check_refusal(self, case, limit, plan):
        least = self.grid(case)
        needs, micro, recompute = least["least"]
        if needs <= limit:
            self.note_wrong(f"{case.name} under {gib(limit)}: refused, but batch.micro {micro} with train.recompute {recompute} needs {gib(needs)} and has the same bits")
        needs, micro, recompute = least["given"]
        if needs > limit:
            if not plan["refused"].count("even batch.micro"):
                self.note_wrong(f"{case.name} under {gib(limit)}: the refusal advises what does not fit: {plan['refused']}")
            return f"refused: at least {gib(min(least['least'][0], needs))}"
        advised = re.search(r"(eval.micro 1)?(?: and )?(?:train.recompute (\w+) )?(?:with )?batch.micro (\d+) would need", plan["refused"])
        sets = advised and [f"batch.micro={advised[3]}"] + ([f"train.recompute={advised[2]}"] if advised[2] else []) + (["eval.micro=1"] if advised[1] else [])
        if not sets or "even batch.micro" in plan["refused"] or self.plan(case, limit, *sets)["refused"]:
            self.note_wrong(f"{case.name} under {gib(limit)}: refused without advice that holds, but batch.micro {micro} with train.recompute {recompute} needs {gib(needs)}: {plan['refused']}")
        return f"refused: its {least['leaves']} leaves need at least {gib(least['least'][0])}; advises {' '.join(sets or [])}, which has other bits"

    # -- runs --

    def train(self, case, limit, plan):
        run = self.o.state / "run"
        shutil.rmtree(run, ignore_errors=True)
        out = self.o.state / "run.out"
        samples = self.global_of(case)
        passes = -(-samples // plan["micro"])
        expected = plan["flops"] * passes / (1e9 * self.o.gflops)
        starts_only = expected > self.o.step_seconds
        command = [self.anneal, "train", str(case.config), "--set", f"run.dir={run}", "--set", "run.epochs=", "--set", f"run.steps={STEPS}",
                   "--set", "log.tensorboard=off"]
        if evaluates(case):
            command += ["--set", f"eval.every={STEPS} steps", "--set", "eval.at_start=off", "--set", "eval.samples=4"]
        began = time.monotonic()
        code, peak, resident, kills = self.limits.run(limit, command, case.folder, out, self.o.start_seconds if starts_only else self.o.max_seconds)
        text = out.read_text()
        banner = re.search(r"^batch .*?= .*?(\d+) lea", text, re.M)
        result = {"code": code, "peak": peak, "resident": resident, "kills": kills, "seconds": round(time.monotonic() - began, 1),
                  "leaves": int(banner[1]) if banner else None, "starts_only": starts_only, "hash": None, "end": text.strip()[-600:]}
        if code == 0:
            result["hash"] = json.loads((run / "summary.json").read_text())["state_hash"]
        shutil.rmtree(run, ignore_errors=True)
        return result

    def check_run(self, case, limit, plan, r):
        where = f"{case.name} under {gib(limit)}" if limit else f"{case.name} without a limit"
        if r["kills"] or (r["code"] or 0) < 0:
            self.note_wrong(f"{where}: killed, of {gib(plan['peak'])} planned, {gib(r['resident'])} taken")
        elif r["code"]:
            self.note_wrong(f"{where}: the plan fits, but the run ends with {r['code']}: {r['end'][-300:]}")
        if limit and r["resident"] > limit:
            self.note_wrong(f"{where}: {gib(r['resident'])} taken")
        if r["resident"] > plan["peak"] * 1.02 + 2 * SPARE:
            self.note_wrong(f"{where}: {gib(r['resident'])} taken, but {gib(plan['peak'])} planned")

    # -- a case --

    def check(self, case, rows):
        if case.program:
            self.check_program(case, rows)
            return
        hashes, cells, chosen, limits = {}, [], {}, [(limit, f"{limit / GIB:g}") for limit in self.o.limits]
        free = self.remember(f"{case.name}: plan 0", lambda: self.plan(case, 0, "batch.micro=" + str(self.global_of(case)), "train.recompute=none")
                             if self.chooses(case) else self.plan(case, 0))
        if self.chooses(case) and 0.6 * GIB < free["peak"] < 4 * GIB:
            limits.append((max(free["peak"] * 2 // 3, 512 << 20), "tight"))
        for limit, name in limits:
            plan = self.remember(f"{case.name}: plan {limit}", lambda: self.plan(case, limit))
            if plan["refused"]:
                cells.append([name, limit, self.check_refusal(case, limit, plan), None])
                continue
            text = f"micro {plan['micro']}, {plan['recompute']}" + (" (chosen)" if plan["chosen"] else "")
            if self.chooses(case) and (plan["chosen"] or plan["peak"] > limit - limit // 16):
                self.check_choice(case, limit, plan)
            if self.o.plan_only:
                cells.append([name, limit, f"{text}: {gib(plan['peak'])} planned", None])
                continue
            like = next((old for old, same in chosen.items() if same == (plan["micro"], plan["recompute"])), None)
            if like and not self.o.all and f"{case.name}: run {limit}" not in self.known:
                cells.append([name, limit, "the same", None])
                continue
            chosen[name] = plan["micro"], plan["recompute"]
            run = self.remember(f"{case.name}: run {limit}", lambda: self.train(case, limit, plan))
            self.check_run(case, limit, plan, run)
            if run["hash"]:
                hashes[name] = run["hash"]
            took = "started only" if run["code"] is None else "" if run["hash"] else f"code {run['code']}"
            cells.append([name, limit, f"{text}: {gib(plan['peak'])} planned, {gib(run['resident'])} taken" + (f", {took}" if took else ""), run["hash"]])
        same = len(set(hashes.values()))
        if same > 1 and "batch_norm" not in case.config.read_text():
            self.note_wrong(f"{case.name}: {same} hashes: {hashes}")
        rows.append((case.name, cells, f"{len(hashes)} of {len(hashes)}" if same == 1 else "not run" if same == 0 else f"{same} hashes"))

    @staticmethod
    def chooses(case):
        text = case.config.read_text()
        return "micro:" not in text and "recompute:" not in text

    def check_program(self, case, rows):
        """A program of an example prints its own hash or its losses."""
        said, cells = {}, []
        for limit in self.o.limits:
            def run():
                folder = self.o.state / "program"
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(case.folder, folder)
                out = self.o.state / "program.out"
                command = [str(case.program)] + ([case.config.name] if case.config else [])
                code, peak, resident, kills = self.limits.run(limit, command, folder, out, self.o.max_seconds)
                lines = [line for line in out.read_text().splitlines() if re.search("hash|loss|accuracy|state|error", line)]
                lines = [re.sub(r"\S+ (s|seconds|samples/s)\b", "", line) for line in lines]
                return {"code": code, "resident": resident, "kills": kills, "end": out.read_text()[-300:],
                        "hash": hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]}

            r = self.remember(f"{case.name}: run {limit}", run)
            if r["code"] != 0 or r["kills"] or r["resident"] > limit:
                self.note_wrong(f"{case.name} under {gib(limit)}: ended with {r['code']}, {gib(r['resident'])} taken: {r['end']}")
            said[limit] = r["hash"]
            cells.append([f"{limit / GIB:g}", limit, f"{gib(r['resident'])} taken", r["hash"]])
        if len(set(said.values())) > 1:
            self.note_wrong(f"{case.name}: its output differs between limits")
        rows.append((case.name, cells, f"{len(said)} of {len(said)}" if len(set(said.values())) == 1 else f"{len(set(said.values()))} outputs"))


def evaluates(case):
    return re.search(r"^\s*eval: ", case.config.read_text(), re.M) is not None


def flops_of(text):
    found = re.search(r"^  arithmetic\s+([\d.]+) ([KMGTP]?)FLOP", text, re.M)
    return float(found[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}[found[2]] if found else 0


def gib(bytes_):
    return f"{bytes_ / GIB:.2f} GiB"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("state", type=pathlib.Path)
    parser.add_argument("--limits", default="4,8,16")
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--plan-only", action="store_true")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--step-seconds", type=float, default=120)
    parser.add_argument("--start-seconds", type=float, default=60)
    parser.add_argument("--most-seconds", type=float, default=1200)
    parser.add_argument("--gflops", type=float, default=100, help="what this machine computes in a second, for --step-seconds")
    o = parser.parse_args()
    o.tree, o.state = o.tree.resolve(), o.state.resolve()
    o.limits = [int(float(limit) * GIB) for limit in o.limits.split(",")]
    o.models = o.models and o.models.resolve()
    o.state.mkdir(parents=True, exist_ok=True)
    anneal = os.path.join(os.path.abspath(os.environ["ANNEAL_BIN"]), "anneal")
    limits = Limits()
    print(f"limits: {limits.name()}", flush=True)
    cases, checks, rows = Cases(o, anneal), Checks(o, anneal, limits), []
    for add in (cases.add_examples, cases.add_presets, cases.add_defaults, cases.add_init, cases.add_hard):
        add()
    for case in cases.list:
        try:
            checks.check(case, rows)
        except Wrong as wrong:
            checks.note_wrong(str(wrong))
            continue
        print(rows[-1][0], *(f"\n    {name:>5}  {text}" for name, _, text, _ in rows[-1][1]), f"\n    hash   {rows[-1][2]}", flush=True)
    with open(o.state / "table.md", "w") as file:
        names = [f"{limit / GIB:g} GiB" for limit in o.limits] + ["two thirds of what it takes"]
        file.write("| config | " + " | ".join(names) + " | runs of one hash |\n|" + " --- |" * (len(names) + 2) + "\n")
        for name, cells, same in rows:
            texts = {cell[0]: cell[2] if cell[0] != "tight" else f"{gib(cell[1])}: {cell[2]}" for cell in cells}
            file.write(f"| {name} | " + " | ".join(texts.get(key, "") for key in [f"{limit / GIB:g}" for limit in o.limits] + ["tight"]) + f" | {same} |\n")
    for name, why in cases.left_out:
        print(f"left out: {name}: {why}")
    print(f"{len(rows)} cases, {len(checks.wrong)} wrong; the table is {o.state / 'table.md'}")
    for text in checks.wrong:
        print("WRONG:", text)
    return 1 if checks.wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
