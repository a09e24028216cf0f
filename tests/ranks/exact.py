#!/usr/bin/env python3
"""Exact by default: eight configs without batch.leaves end with one state_hash each, whatever takes their steps.

    exact.py TREE BUILD [--results FILE] [--config NAME]... [--kills N] [--seed N] [--plant KEY=VALUE]

For each config:

- pairs: runs in which every two values of different settings meet: ranks, MPI library, threads, ranks.shard,
  batch.micro, train.recompute;
- kills: runs that are killed (SIGKILL) at random moments until there were N kills (20), each start with other settings;
- moves: runs that begin on one rank, go on with four and end on one again, by each MPI library.

Every run is a line of the results file: the script can be interrupted and goes on from there, and several of them may
write to one file, each with configs of its own. A line counts as long as the config and its data are the same; the file
is for one build. Without --results, it begins anew. --plant changes one setting of one run of each config, which must
then be reported. BUILD is the build folder. Exit code 1: two hashes differ, or a run failed."""

import argparse
import array
import hashlib
import itertools
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
import tempfile
import time

# ---- settings ----

RANKS = [1, 2, 3, 4, 8]
THREADS = [1, 2, 3]
STRATEGIES = ["none", "optimizer", "gradients", "full", "hybrid", "auto"]
MICRO = [None, 1, 3, 5]  # leaves that a micro-batch has room for, at most; None: batch.micro is not given
RECOMPUTE = ["none", "block", "full"]
NAMES = ["ranks", "mpi", "threads", "shard", "micro", "recompute"]

LEAST_LEAVES = 8
KILLS_OF_A_RUN = 7  # then it goes on to its end
RUN_SECONDS = 900  # for what hangs

# ---- configs ----

# batch.global and the rest. Leaves are not all equal, and the last step of an epoch is short, so that some are empty.
CONFIGS = {
    # numbers: 32 rows a leaf
    "mlp": (270, """
run:       {steps: 200, seed: 13}
model:     {type: mlp, hidden: [24, 16], activation: tanh, dropout: 0.1}
data:
  train:   {type: csv, path: rows.csv, targets: [y, z], part: 0%..80%}
  eval:    {type: csv, path: rows.csv, targets: [y, z], part: 80%..100%}
optimizer: {type: lion, lr: 1e-3, weight_decay: 0.1}
eval:      {every: 47 steps, best: val_r2}
"""),
    # images: 4 samples a leaf
    "cnn": (35, """
run:       {steps: 40, seed: 12}
model:     {type: cnn, filters: [4, 8], hidden: 16, dropout: 0.2}
data:
  train:   {type: idx, path: images.gz, labels: labels.gz, part: 0%..1.1%}
  eval:    {type: idx, path: images.gz, labels: labels.gz, part: 99.5%..100%}
  augment: {shift: 2, rotate: 10}
optimizer: {type: sgd, lr: 0.05, momentum: 0.9, nesterov: on}
train:     {precision: f32}
eval:      {every: 7 steps, best: val_accuracy}
"""),
    # characters and a tied table in f32: 2 samples of 16 tokens a leaf, and 16 leaves
    "char-gpt": (36, """
run:       {steps: 40, seed: 11}
model:     {type: gpt2, layers: 2, heads: 2, width: 32, context: 16, dropout: 0.1}
data:
  train:   {type: text, path: text.txt, tokens: chars, part: 0%..80%}
  eval:    {type: text, path: text.txt, tokens: chars, part: 80%..100%}
optimizer: {type: adamw, lr: 3e-3, weight_decay: 0.1}
schedule:  {type: cosine, warmup: 5, min_ratio: 0.1}
train:     {precision: f32}
eval:      {every: 7 steps}
"""),
    # documents apart in bf16: 8 samples of 64 tokens a leaf
    "gpt2-bf16": (67, """
run:       {steps: 16, seed: 15}
model:     {type: gpt2, layers: 2, heads: 2, width: 32, context: 64, vocabulary: 211, dropout: 0.1}
data:
  train:   {type: tokens, path: documents.bin, format: u16, end_token: 0, documents: apart, border_targets: off, part: 0%..90%}
  eval:    {type: tokens, path: documents.bin, format: u16, end_token: 0, documents: apart, border_targets: off, part: 90%..100%}
optimizer: {type: adamw, lr: 3e-3, weight_decay: 0.1}
train:     {precision: bf16}
eval:      {every: 7 steps}
"""),
    # packed conversations and an adapter in bf16: 3 samples of 96 tokens a leaf
    "llama-lora-chat": (26, """
run:       {steps: 16, seed: 3}
model:     {from: base, context: 96}
lora:      {targets: [q_proj, v_proj, down_proj], rank: 4, dropout: 0.1}
data:      {train: {type: chat, path: chat.jsonl, tokenizer: bpe}, split: {eval: 10%}}
optimizer: {lr: 1e-2}
train:     {precision: bf16}
eval:      {every: 7 steps}
"""),
    # sentences and pairs of sentences, padded, with weights of classes: 2 samples of 20 tokens a leaf
    "bert-sentences": (30, """
run:       {steps: 50, seed: 7}
model:     {type: bert, layers: 2, heads: 4, width: 16, hidden: 40, context: 20, vocabulary: 200, dropout: 0.1, pooling: mean}
data:
  train:   {type: sentences, path: sentences.jsonl, tokenizer: wordpiece}
  split:   {eval: 20%, by: stratify}
  class_weights: balanced
optimizer: {lr: 3e-3}
train:     {precision: f32}
eval:      {every: 7 steps, metrics: [loss, accuracy, f1]}
"""),
    # a table with categories, missing cells, units, weights of samples and the average of the weights: 32 rows a leaf
    "table": (262, """
run:       {steps: 200, seed: 21}
model:     {type: mlp, hidden: [24, 16], activation: gelu, dropout: 0.1}
data:
  train:   {type: csv, path: table.csv, targets: [pressure], categories: embedding}
  split:   {eval: 20%, by: group patient}
  missing: {method: mean}
  weights: weight
  normalize: {inputs: standard, targets: standard, fit: first 300 samples}
optimizer: {lr: 3e-3}
train:     {ema: 0.9}
eval:      {every: 47 steps}
"""),
    # pairs of answers and an adapter with magnitudes in bf16: 4 samples of 64 tokens a leaf
    "dpo": (34, """
run:       {steps: 16, seed: 5}
model:     {from: base, context: 64}
lora:      {targets: [q_proj, v_proj, down_proj], rank: 4, dora: on}
data:
  train:   {type: preferences, path: pairs.jsonl, tokenizer: bpe, context: 64}
  split:   {eval: 10%}
optimizer: {lr: 3e-3}
train:     {precision: bf16, loss: {beta: 0.1}}
eval:      {every: 7 steps}
"""),
}
COMMON = "batch:     {{global: {batch}}}\nlog:       {{every: 1 steps, tensorboard: off}}\n"


class Failure(Exception):
    """A run that did not do what it must."""


def say(text):
    print(text, flush=True)


# ---- data ----


def write_rows(rng):
    with open("rows.csv", "w") as file:
        file.write("a,b,c,y,z\n")
        for _ in range(730):
            a, b, c = (rng.uniform(-1, 1) for _ in range(3))
            file.write(f"{a:.4f},{b:.4f},{c:.4f},{a * b + c:.4f},{a - b * c:.4f}\n")


def write_table(rng):
    with open("table.csv", "w") as file:
        file.write("patient,age,mass,dose,ward,weight,pressure\n")
        for i in range(820):
            age, dose = rng.uniform(20, 80), rng.choice(["none", "low", "high"])
            mass = rng.choice(["", "NA"]) if rng.random() < 0.05 else f"{rng.gauss(7e4, 8e3):.0f}"
            pressure = 90 + 0.6 * age - {"none": 0, "low": 10, "high": 25}[dose] + rng.gauss(0, 2)
            file.write(f"p{i // 8 % 40},{age:.1f},{mass},{dose},{rng.choice('ABCDE')},{rng.choice([0.5, 1, 2])},{pressure:.1f}\n")


def write_documents(rng):
    tokens = []
    while len(tokens) < 12000:
        at = rng.randrange(1, 211)
        for _ in range(rng.randrange(90)):
            tokens.append(at)
            at = 1 + (7 * at + rng.randrange(3)) % 210
        tokens.append(0)
    array.array("H", tokens[:12000]).tofile(open("documents.bin", "wb"))


def write_jsonl(name, records):
    pathlib.Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


def write_conversations():
    def turns(i):
        return [{"role": "user", "content": f"What is {i % 7} and {i % 5}?"},
                {"role": "assistant", "content": f"It is {i % 7 + i % 5}."}] * (1 + i % 3)

    write_jsonl("chat.jsonl", [{"messages": turns(i)} for i in range(260)])
    def answer(text):
        return [{"role": "assistant", "content": text}]

    write_jsonl("pairs.jsonl", [{"prompt": turns(i)[:1], "chosen": answer(f"{i % 7 + i % 5}."),
                                 "rejected": answer(["Many.", "A few of them."][i % 2])} if i % 4 else
                                {"prompt": f"{i % 7} and {i % 5} is", "chosen": f" {i % 7 + i % 5}",
                                 "rejected": [" many", " few of them"][i // 4 % 2]} for i in range(120)])
    words = [("all", "many"), ("one", "few"), ("none", "few"), ("nobody", "none")]
    write_jsonl("sentences.jsonl", [{"text": f"we saw {words[i % 4][0]}", "text_pair": "of them " * (i % 5),
                                     "label": words[i % 4][1]} for i in range(158)])


def write_base(rng):
    """A small published model with random weights."""
    vocabulary, width, hidden, heads, kv = 512, 32, 64, 4, 2
    shapes = {"model.embed_tokens.weight": [vocabulary, width], "model.norm.weight": [width]}
    for i in range(2):
        layer = f"model.layers.{i}."
        shapes |= {layer + "input_layernorm.weight": [width], layer + "post_attention_layernorm.weight": [width],
                   layer + "self_attn.q_proj.weight": [width, width],
                   layer + "self_attn.k_proj.weight": [width * kv // heads, width],
                   layer + "self_attn.v_proj.weight": [width * kv // heads, width],
                   layer + "self_attn.o_proj.weight": [width, width], layer + "mlp.gate_proj.weight": [hidden, width],
                   layer + "mlp.up_proj.weight": [hidden, width], layer + "mlp.down_proj.weight": [width, hidden]}
    header, data = {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        part = struct.pack(f"<{count}f", *[rng.gauss(0, 0.1) if len(shape) > 1 else 1.0 for _ in range(count)])
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    os.mkdir("base")
    pathlib.Path("base/model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    pathlib.Path("base/config.json").write_text(json.dumps(dict(
        architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=width, intermediate_size=hidden,
        num_hidden_layers=2, num_attention_heads=heads, num_key_value_heads=kv, vocab_size=vocabulary,
        max_position_embeddings=256, tie_word_embeddings=True)))


def write_inputs(tree):
    """Configs and their data, in the working folder. Returned: a digest of all of it."""
    rng = random.Random(3)
    write_rows(rng)
    write_table(rng)
    write_documents(rng)
    write_conversations()
    write_base(rng)
    text = (tree / "examples/shakespeare/tinyshakespeare.txt").read_bytes()
    pathlib.Path("text.txt").write_bytes(text[:2500])
    for name in ("images-idx3", "labels-idx1"):
        shutil.copy(tree / f"examples/mnist/mnist-10k-{name}-ubyte.gz", name.split("-")[0] + ".gz")
    for name in ("bpe", "wordpiece"):
        shutil.copytree(tree / "tests/golden/finetune" / name, name)
    digests = {}
    data = hashlib.sha256()
    for path in sorted(path for path in pathlib.Path().rglob("*") if path.is_file()):
        data.update(path.read_bytes())
    for name, (batch, config) in CONFIGS.items():
        whole = config + COMMON.format(batch=batch)
        pathlib.Path(name + ".yaml").write_text(whole)
        digests[name] = hashlib.sha256(whole.encode() + data.digest()).hexdigest()[:8]
    return digests


# ---- pairs ----


def covering(values, rng):
    """Rows of one value of each list, in which every two values of different lists meet; few, by greed."""
    columns = range(len(values))
    missing = {(i, a, j, b) for i, j in itertools.combinations(columns, 2)
               for a in range(len(values[i])) for b in range(len(values[j]))}
    rows = []
    while missing:
        best, most = None, -1
        for _ in range(60):
            seed = rng.choice(sorted(missing))
            row = [None] * len(values)
            row[seed[0]], row[seed[2]] = seed[1], seed[3]
            for i in rng.sample(columns, len(values)):
                if row[i] is None:
                    row[i] = max(range(len(values[i])), key=lambda a: (gain(row, i, a, missing), rng.random()))
            covered = sum((i, row[i], j, row[j]) in missing for i, j in itertools.combinations(columns, 2))
            if covered > most:
                best, most = row, covered
        missing -= {(i, best[i], j, best[j]) for i, j in itertools.combinations(columns, 2)}
        rows.append([values[i][best[i]] for i in columns])
    return rows


def gain(row, i, a, missing):
    """How many pairs that are missing a row would have with value a in column i."""
    return sum(((j, row[j], i, a) if j < i else (i, a, j, row[j])) in missing
               for j in range(len(row)) if j != i and row[j] is not None)


# ---- processes ----


def started(tag):
    """Processes of a start, which have the tag in their environments: a launcher may put ranks into sessions of
    their own, and they may outlive it."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if tag in (path / "environ").read_bytes().split(b"\0"):
                found[int(path.name)] = (path / "comm").read_text().strip()
        except OSError:
            continue
    return found


def send(processes, number):
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass


def wait_until(holds, seconds):
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


class Start:
    """One start of a run, by any launcher."""

    count = 0

    def __init__(self, words, environment):
        Start.count += 1
        tag = f"{os.getpid()}-{Start.count}"
        environment = {**environment, "EXACT_START": tag}
        self.words, self.tag = words, f"EXACT_START={tag}".encode()
        with open("out", "w") as out, open("err", "w") as err:
            self.process = subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=environment,
                                            start_new_session=True)

    def is_over(self):
        return self.process.poll() is not None

    def ranks(self):
        return sorted(process for process, name in started(self.tag).items() if name == "anneal")

    def end(self):
        """Waits for the launcher, and for what it may have left. Its exit code."""
        try:
            code = self.process.wait(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill_all()
            raise Failure(f"it hangs: {' '.join(self.words)}\n{tail()}") from None
        if not wait_until(lambda: not started(self.tag), 60):
            raise Failure(f"processes are left: {started(self.tag)}")
        return code

    def kill_all(self):
        """Until there are none: a launcher may be starting more of them."""
        while started(self.tag):
            send(started(self.tag), signal.SIGKILL)
            self.process.poll()
            time.sleep(0.002)
        self.process.wait()


def tail():
    return "".join(pathlib.Path(name).read_text(errors="replace")[-1500:] for name in ("out", "err"))


def read_json(path, key):
    try:
        return json.loads(pathlib.Path(path).read_text())[key]
    except (OSError, ValueError, KeyError):
        return None


# ---- the test ----


class Test:
    def __init__(self, options, digests):
        self.options, self.digests = options, digests
        self.random = random.Random(options.seed)
        self.build = options.build
        self.anneal = str(self.build / "bin/anneal")
        self.environment = {**os.environ, "OMP_WAIT_POLICY": "passive", "MPIRUN_SECONDS": str(RUN_SECONDS)}
        self.libraries = [mpi for mpi in ("openmpi", "mpich") if shutil.which("mpirun." + mpi) and
                          (self.build / f"lib/libtwo_hosts_{mpi}.so").exists()]
        self.run = None  # the start that is at work
        self.failures = []
        self.leaves, self.samples = {}, {}  # of each config: their number, and samples of the largest
        self.steps = {name: int(re.search(r"steps: (\d+)", config)[1]) for name, (_, config) in CONFIGS.items()}

    # -- results --

    def lines(self, config, part=None):
        """Lines of a config as it is now: part, settings, hash, kills."""
        found = [line.split("\t") for line in self.options.results.read_text().splitlines() if line[:1] != "#"]
        return [line[2:] for line in found if line[:2] == [config, self.digests[config]] and part in (None, line[2])]

    def note(self, config, part, settings, found, kills=0):
        with open(self.options.results, "a") as file:
            file.write("\t".join([config, self.digests[config], part, settings, found, str(kills)]) + "\n")
        expected = self.expected(config)
        if expected and found != expected:
            say(f"  DIFFERENT: {config}, {part}, {settings}: {found}, and not {expected}")

    def expected(self, config):
        return next((line[2] for line in self.lines(config, "alone")), None)

    # -- runs --

    def words(self, config, folder, settings, *more):
        """The command of a start. No settings: as a user has it, on one process."""
        words = [self.anneal, "train", config + ".yaml", "--set", "run.dir=" + folder, *more]
        if settings is None:
            return words
        for key, value in (("ranks.threads", settings["threads"]), ("ranks.shard", settings["shard"]),
                           ("train.recompute", settings["recompute"])):
            words += ["--set", f"{key}={value}"]
        if settings["micro"]:
            words += ["--set", f"batch.micro={settings['micro'] * self.samples[config]}"]
        mpi, ranks = settings["mpi"], settings["ranks"]
        if mpi == "alone":
            return words
        if settings["shard"] == "hybrid" and ranks % 2 == 0:  # two hosts, as they believe
            words = ["env", f"LD_PRELOAD={self.build}/lib/libtwo_hosts_{mpi}.so", *words]
        return [str(self.options.tree / "tests/comm/mpirun.sh"), mpi, str(ranks), *words]

    def start(self, *words):
        self.run = Start(self.words(*words), self.environment)
        return self.run

    def finish(self, folder, what):
        """The hash of a run that nobody disturbs any more."""
        code = self.run.end()
        found = read_json(folder + "/summary.json", "state_hash")
        if code != 0 or not found:
            raise Failure(f"{what}: it ended with {code}: {' '.join(self.run.words)}\n{tail()}")
        return found

    def choose(self, micro):
        mpi = self.random.choice(["alone", *self.libraries, *self.libraries])
        values = [RANKS, [mpi], THREADS, STRATEGIES, [micro], RECOMPUTE]
        settings = dict(zip(NAMES, map(self.random.choice, values)))
        if mpi == "alone":
            settings["ranks"] = 1
        return settings

    # -- parts --

    def alone(self, config):
        """One process with all defaults: the hash of all others, and the leaves that the default has."""
        shutil.rmtree(config, ignore_errors=True)
        self.start(config, config, None)
        found = self.finish(config, "alone")
        banner = " ".join(pathlib.Path("out").read_text().split())
        leaves = re.search(r"bits identical on 1 to (\d+) ranks", banner)
        if not leaves or int(leaves[1]) < LEAST_LEAVES:
            raise Failure(f"{config}: it does not have {LEAST_LEAVES} leaves by default: {banner}")
        if "batch.leaves" in banner:
            raise Failure(f"{config}: there is a note about its leaves: {banner}")
        self.leaves[config] = int(leaves[1])
        self.samples[config] = -(-CONFIGS[config][0] // self.leaves[config])
        if not self.lines(config, "alone"):
            self.note(config, "alone", "", found)
        elif found != self.expected(config):
            raise Failure(f"{config}: other bits than those of the results, {self.expected(config)}: {found}")
        shutil.rmtree(config)

    def pairs(self, config):
        values = [RANKS, self.libraries, THREADS, STRATEGIES, MICRO, RECOMPUTE]
        rows = [dict(zip(NAMES, row)) for row in covering(values, random.Random(1))]
        done = {line[1] for line in self.lines(config, "pairs")}
        planted = next((row for row in reversed(rows) if row["ranks"] == 2), None)
        for row in rows:
            settings, more = describe(row), []
            if self.options.plant and row is planted:
                settings, more = f"{settings}, {self.options.plant}", ["--set", self.options.plant]
            if settings in done:
                continue
            shutil.rmtree("pair", ignore_errors=True)
            self.start(config, "pair", row, *more)
            self.note(config, "pairs", settings, self.finish("pair", f"{config}, {settings}"))

    def kills(self, config):
        done = sum(int(line[3]) for line in self.lines(config, "kills"))
        while done < self.options.kills:
            shutil.rmtree("killed", ignore_errors=True)
            kills, history = 0, []
            micro = self.random.choice(MICRO)  # a run that is resumed must have that with which it began
            while True:
                settings = self.choose(micro)
                history.append(describe(settings))
                self.start(config, "killed", settings, "--set", f"save.every={max(2, self.steps[config] // 12)} steps")
                wanted = kills < KILLS_OF_A_RUN and done + kills < self.options.kills
                if not wanted or not self.kill(self.steps[config]):
                    break
                kills += 1
                history[-1] += f", killed at {step_of('killed')}"
            found = self.finish("killed", f"{config}, kills, after {history}")
            self.note(config, "kills", "; ".join(history), found, kills)
            done += kills

    def kill(self, steps):
        """SIGKILL at a random moment, to all processes of the start or to one rank. False: it ended by itself."""
        run, last = self.run, step_of("killed")
        if self.random.random() < 0.3:  # any moment, also before the first step
            time.sleep(self.random.uniform(0, 1.5))
        else:  # a run that goes on first cuts lines off that it makes again
            least = last + self.random.randint(1, steps // 4)
            wait_until(lambda: run.is_over() or step_of("killed") >= least, RUN_SECONDS)
            time.sleep(self.random.uniform(0, 0.05))
        ranks = run.ranks()
        if run.is_over() or not ranks:
            if run.is_over() or not wait_until(lambda: run.is_over() or run.ranks(), RUN_SECONDS) or run.is_over():
                return False
            ranks = run.ranks()
        if not ranks or read_json("killed/summary.json", "state_hash"):
            return False
        if self.random.random() < 0.3:  # one rank, of which the launcher hears
            send([self.random.choice(ranks)], signal.SIGKILL)
            wait_until(run.is_over, 20)
        run.kill_all()
        return True

    def moves(self, config):
        """One rank, four, and one again: each stops after a step, with a checkpoint, when it is asked to."""
        done = {line[1] for line in self.lines(config, "moves")}
        for turn, mpi in enumerate(self.libraries):
            if mpi in done:
                continue
            shards = (STRATEGIES * 2)[turn * 3 + list(CONFIGS).index(config) % 3:]
            plans = [dict(zip(NAMES, (1, "alone", 1, "none", None, "none"))),
                     dict(zip(NAMES, (4, mpi, 1, shards[0], None, "none"))),
                     dict(zip(NAMES, (1, "alone", 2, "none", None, "none")))]
            for _ in range(20):  # a run that ends before it hears of the stop is taken again
                found = self.move(config, plans)
                if found:
                    break
            else:
                raise Failure(f"{config}: the run ends before it can be stopped")
            self.note(config, "moves", mpi, found)

    def move(self, config, plans):
        shutil.rmtree("moved", ignore_errors=True)
        steps = self.steps[config]
        for i, settings in enumerate(plans):
            last = step_of("moved")
            pathlib.Path("moved/outcome.json").unlink(missing_ok=True)
            run = self.start(config, "moved", settings)
            if i + 1 == len(plans):
                return self.finish("moved", f"{config}, moves")
            least = last + self.random.randint(1, steps // 4)
            wait_until(lambda: run.is_over() or step_of("moved") >= least, RUN_SECONDS)
            send(run.ranks()[:1], signal.SIGUSR1)
            run.end()
            reached, how = (read_json("moved/outcome.json", key) for key in ("step", "end"))
            if how == "done":
                return None
            if how != "stopped on request" or not last < reached < steps:
                raise Failure(f"{config}, moves, {describe(settings)}: after step {last} it ended at {reached}: {how}\n{tail()}")
        return None

    def play(self, config):
        began = time.monotonic()
        for part in (self.alone, self.pairs, self.moves, self.kills):
            try:
                part(config)
            except Failure as failure:
                self.failures.append(str(failure))
                say(f"  FAILED: {failure}")
                with open(self.options.results, "a") as file:
                    file.write("# failed: " + str(failure).split("\n", 1)[0] + "\n")
                if part == self.alone:
                    return
        say(f"  {config}: done, after {time.monotonic() - began:.0f} s")

    def report(self, configs):
        """Whether all is as it must be."""
        good = not self.failures
        say("config\tleaves\tpairs\tkills\truns with kills\tmoves\thashes")
        for config in configs:
            lines = self.lines(config)
            counts = {part: sum(line[0] == part for line in lines) for part in ("pairs", "kills", "moves")}
            hashes = sorted({line[2] for line in lines})
            kills = sum(int(line[3]) for line in lines)
            good = good and len(hashes) == 1
            say(f"{config}\t{self.leaves.get(config)}\t{counts['pairs']}\t{kills}\t{counts['kills']}\t{counts['moves']}\t"
                f"{len(hashes)}: {' '.join(hashes)}")
            for part, settings, found, _ in lines:
                if found != self.expected(config):
                    say(f"  DIFFERENT: {part}, {settings}: {found}")
        for failure in self.failures:
            say(f"FAILED: {failure}")
        return good


def describe(settings):
    micro = settings["micro"] or "unset"
    return (f"{settings['mpi']} {settings['ranks']}x{settings['threads']}, shard {settings['shard']}, micro {micro}, "
            f"recompute {settings['recompute']}")


def step_of(run):
    """The last step that metrics.jsonl has; 0: none."""
    try:
        with open(run + "/metrics.jsonl", "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 4096))
            steps = re.findall(rb'"step": (\d+)', file.read())
    except OSError:
        return 0
    return int(steps[-1]) if steps else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--config", action="append", choices=CONFIGS)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--plant", metavar="KEY=VALUE")
    options = parser.parse_args()
    options.tree, options.build = options.tree.resolve(), options.build.resolve()
    with tempfile.TemporaryDirectory(prefix="exact-", dir=os.getcwd()) as folder:
        options.results = (options.results or pathlib.Path(folder) / "results").resolve()
        options.results.touch()
        os.chdir(folder)
        test = Test(options, write_inputs(options.tree))
        if not test.libraries:
            say("SKIPPED: there is no MPI")
            return 77
        say(f"exact: seed {options.seed}, {' and '.join(test.libraries)}")
        configs = options.config or list(CONFIGS)
        try:
            for config in configs:
                test.play(config)
        finally:
            if test.run and not test.run.is_over():
                test.run.kill_all()
            os.chdir("..")
        return 0 if test.report(configs) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
