"""The rows of options_act.py: for every option a small run, a change of the option, and what must differ then.

    row(PATH, BASE, CHANGE, SEES)            CHANGE is what --set takes; a list, where several go together
    row(PATH, BASE, CHANGE, SEES, of=TYPE)   for the option of this type, where an option is of some types only
    row(..., both=[...])                     settings of both runs, the one without and the one with the change
    row(..., first=[...])                    settings of a run that was made before in the same folder

SEES is one of
    HASH, STATE        summary.json has another weights_hash, or another state_hash, which also has moments and statistics
    PLAN               `anneal plan --json` says something else
    RANKS_PLAN         `anneal plan --json --ranks=2` does
    FILES(PATTERN)     other files match the pattern, or they have another text
    REFUSED(WORDS)     only the changed run ends with an error, which has the words
    ACCEPTED(WORDS)    only the run without the change ends with an error, which has the words
    NAMED              a program that saves by name, which the command does not, keeps other checkpoints
    STALLS(WORDS)      only the changed run, under --supervise and held up for a while, makes the supervisor print the words
"""
import collections
import io
import json
import os
import pathlib
import struct
import zipfile
import zlib

Row = collections.namedtuple("Row", "path of base change sees both first")
Sees = collections.namedtuple("Sees", "kind what")
HASH, STATE, PLAN, NAMED = Sees("hash", "weights_hash"), Sees("hash", "state_hash"), Sees("plan", ""), Sees("named", "")
RANKS_PLAN = Sees("plan", "--ranks=2")


def FILES(pattern):
    return Sees("files", pattern)


def REFUSED(words):
    return Sees("refused", words)


def ACCEPTED(words):
    return Sees("accepted", words)


def STALLS(words):
    return Sees("stalls", words)


UNSUPPORTED = REFUSED("is not supported yet")
METRICS, OUTCOME, KEPT = FILES("run/metrics.jsonl"), FILES("run/outcome.json"), FILES("run/checkpoints/*")
ROWS = []


def row(path, base, change, sees, of="", both=(), first=None):
    change = [change] if isinstance(change, str) else change
    ROWS.append(Row(path, of, base, tuple(change), sees, tuple(both), None if first is None else tuple(first)))


# ---- data, and the configs that all rows start from ----

TAIL = "batch: {global: 4}\noptimizer: {lr: 1e-2}\nlog: {every: 1 steps}\nrun: {dir: run, steps: 4}\n"
IMAGES = "data: {train: {type: idx, path: images.idx, labels: labels.idx}}\n"
FINETUNE = pathlib.Path(__file__).resolve().parent.parent / "golden/finetune"
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "pretrained"
BASES = {
    "mlp": "model: {type: mlp, hidden: [4]}\ndata: {train: {type: csv, path: sums.csv}}\n",
    "eval": "model: {type: mlp, hidden: [4]}\ndata: {train: {type: csv, path: sums.csv, part: 0%..50%}, "
            "eval: {type: csv, path: sums.csv, part: 50%..100%}}\neval: {every: 1 steps}\n",
    "classes": "model: {type: mlp, hidden: [4]}\ndata: {train: {type: csv, path: classes.csv, classes: on}}\n",
    "cnn": "model: {type: cnn, filters: [2, 3], hidden: 4}\n" + IMAGES,
    "gpt2": "model: {type: gpt2, layers: 2, heads: 2, width: 8, context: 8}\n"
            "data: {train: {type: text, path: poem.txt, tokens: chars}}\n",
    "llama": "model: {type: llama, layers: 2, heads: 2, width: 8, hidden: 16, context: 8}\n"
             "data: {train: {type: text, path: poem.txt}}\n",
    "tokens": "model: {type: gpt2, layers: 1, heads: 2, width: 8, context: 8, vocabulary: 64}\n"
              "data: {train: {type: tokens, path: tokens.bin}}\n",
    "megatron": "model: {type: gpt2, layers: 1, heads: 2, width: 8, context: 8, vocabulary: 64}\n"
                "data: {train: {type: megatron, path: set}}\n",
    "bert": "model: {type: bert, layers: 2, heads: 2, width: 8, hidden: 16, context: 16}\n"
            f"data: {{train: {{type: sentences, path: sentences.jsonl, tokenizer: {FINETUNE}/wordpiece}}}}\n",
    "chat": "model: {type: llama, layers: 1, heads: 2, width: 8, hidden: 16, context: 48}\n"
            f"data: {{train: {{type: chat, path: chat.jsonl, tokenizer: {FINETUNE}/bpe}}}}\n",
    "preferences": "model: {type: llama, layers: 1, heads: 2, width: 8, hidden: 16, context: 96}\n"
                   "lora: {targets: [q_proj], rank: 2}\n"
                   f"data: {{train: {{type: preferences, path: preferences.jsonl, tokenizer: {FINETUNE}/bpe}}}}\n",
    "mixture": "model: {type: gpt2, layers: 1, heads: 2, width: 8, context: 8}\n"
               "data: {train: {type: mixture, parts: [{type: text, path: poem.txt}, {type: text, path: other.txt}]}}\n",
    "sequential": "model: {type: sequential, layers: [{type: linear, size: 4}, relu, linear]}\n"
                  "data: {train: {type: csv, path: sums.csv}}\n",
    "arrays": "model: {type: mlp, hidden: [4]}\ndata: {train: {type: npy, path: arrays.npz}}\n",
    "hdf5": "model: {type: mlp, hidden: [4]}\ndata: {train: {type: hdf5, path: images.h5}}\n",
    "lines": "model: {type: mlp, hidden: [4]}\ndata: {train: {type: jsonl, path: sums.jsonl}}\n",
    "pictures": "model: {type: cnn, filters: [2, 3], hidden: 4}\ndata: {train: {type: images, path: pictures}}\n",
    "layers": "model: {type: sequential, layers: [{type: convolution, filters: 2}, relu, max_pool, flatten, linear]}\n" + IMAGES,
    "pretrained": f"model: {{from: {GOLDEN}/qwen2, context: 8}}\ndata: {{train: {{type: tokens, path: few.bin}}}}\n",
    "pretrained-bert": f"model: {{from: {FINETUNE.parent}/huggingface/bert}}\n"
                       "data: {train: {type: sentences, path: sentences.jsonl, tokenizer: few.json}}\n",
    "graph": "model: {graph: model.ang}\ndata: {train: {type: csv, path: sums.csv}}\n",
    "stream": "model: {type: mlp, inputs: 2, outputs: 3, hidden: [4]}\ndata: {source: stream}\n",
    "stream-cnn": "model: {type: cnn, channels: 1, height: 8, width: 8, classes: 3, filters: [2], hidden: 4}\n"
                  "data: {source: stream}\n",
    "stream-layers": "model: {type: sequential, inputs: [2], layers: [{type: linear, size: 3}]}\ndata: {source: stream}\n",
    "overflow": "model: {type: mlp, hidden: [4]}\ndata: {train: {type: csv, path: huge.csv}}\n",
}
GRAPH = """ang 1
graph "small"
symbol batch
%0 = input(name="x") : f32[batch,2]
%1 = input(name="targets") : f32[batch,1]
%2 = param(name="in.weight", initializer=2, scale=0.7) : f32[4,2]
%3 = matmul(%0, %2, transpose_b=true) : f32[batch,4]
%4 = param(name="in.shift", initializer=2, scale=0.7) : f32[4]
%5 = bias(%3, %4, axis=1) : f32[batch,4]
%6 = relu(%5) : f32[batch,4]
%7 = param(name="out.weight", initializer=2, scale=0.5) : f32[1,4]
%8 = matmul(%6, %7, transpose_b=true) : f32[batch,1]
output(%8, name="y")
%9 = squared_error(%8, %1) : f32[]
loss %9 targets %1
"""


def images(count, side, shift):
    pixels = bytearray(side * side * count)
    for i in range(count):
        for k in range(side):
            pixels[(i * side + (i + shift) % 4) * side + k] = 200 + i
    return struct.pack(">4B3I", 0, 0, 8, 3, count, side, side) + bytes(pixels)


def png(side, rows):
    """A grey PNG file."""
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    header = struct.pack(">2I5B", side, side, 8, 0, 0, 0, 0)
    packed = zlib.compress(b"".join(b"\0" + rows[i * side:(i + 1) * side] for i in range(side)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def npy(kind, shape, content):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + content


def npz(arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        for name, content in arrays.items():
            members.writestr(name + ".npy", content)
    return file.getvalue()


def labels(count, shift):
    return struct.pack(">4BI", 0, 0, 8, 1, count) + bytes((i + shift) % 4 for i in range(count))


def megatron(tokens, document):
    """The .bin and the .idx of documents of so many tokens."""
    count = len(tokens) // document
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1)
    index += struct.pack(f"<{count}i", *[document] * count)
    index += struct.pack(f"<{count}q", *[2 * document * i for i in range(count)])
    index += struct.pack(f"<{count + 1}q", *range(count + 1))
    return struct.pack(f"<{len(tokens)}H", *tokens), index


def write_data(folder):
    def write(name, content):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    pairs = [(i % 11 / 10, i % 7 / 6) for i in range(38)]
    write("sums.csv", "a,b,sum\n" + "".join(f"{a},{b},{a + b}\n" for a, b in pairs))
    write("products.csv", "a,b,product\n" + "".join(f"{a},{b},{a * b}\n" for a, b in pairs))
    for name, result in (("sums", lambda a, b: a + b), ("products", lambda a, b: a * b)):
        write(name + ".jsonl", "".join(json.dumps({"a": a, "b": b, "y": result(a, b)}) + "\n" for a, b in pairs))
    write("bare.csv", "".join(f"{a},{b},{a + b}\n" for a, b in pairs[1:]))
    write("prices.csv", "a,when,sum\n" + "".join(f"${a},2024-05-{i % 28 + 1:02},{a + b}\n" for i, (a, b) in enumerate(pairs)))
    write("semicolons.csv", "a;b;sum\n" + "".join(f"{a};{b};{a + b}\n" for a, b in pairs))
    write("classes.csv", "a,b,class\n" + "".join(f"{a},{b},{int(a + b)}\n" for a, b in pairs))
    write("colors.csv", "a,color,sum\n" + "".join(f"{a},{'red' if b > 0.5 else 'blue'},{a + b}\n" for a, b in pairs))
    write("gaps.csv", "a,b,sum\n" + "".join(f"{a},{b if b else ''},{a + b}\n" for a, b in pairs))
    write("huge.csv", "a,y\n1e30,2\n2e30,1\n3e30,6\n4e30,8\n")
    for name, shift in (("", 0), ("other-", 1)):
        write(name + "images.idx", images(40, 8, shift))
        write(name + "labels.idx", labels(40, shift))
        pixels = images(40, 8, shift)[16:]
        arrays = {"x": npy("|u1", (40, 8, 8), pixels), "y": npy("|i1", (40,), labels(40, shift)[8:]),
                  "z": npy("<i2", (40, 2), bytes(range(160))), "w": npy("|u1", (40,), bytes(i % 3 for i in range(40)))}
        write(name + "arrays.npz", npz(arrays))
        write(name + "labels.npy", arrays["w"])
        write(name + "images.h5", (GOLDEN.parent / "hdf5" / (name + "images.h5")).read_bytes())
        for i in range(40):
            (folder / (name + "pictures") / f"class{i % 4}").mkdir(parents=True, exist_ok=True)
            write(f"{name}pictures/class{i % 4}/{i}.png", png(8, pixels[i * 64:(i + 1) * 64]))
    for name, word in (("", "see"), ("other-", "hear")):
        write(name + "sentences.jsonl", "".join(f'{{"text": "we {word} {i}", "label": {i % 3}}}\n' for i in range(12)))
        write(name + "chat.jsonl", "".join(
            f'{{"messages": [{{"role": "user", "content": "{word} {i}?"}}, {{"role": "assistant", "content": "yes {i}"}}]}}\n' for i in range(16)))
        pair = '{{"prompt": [{{"role": "user", "content": "{0} {1}?"}}], "chosen": [{{"role": "assistant", "content": "yes {1}"}}], ' \
               '"rejected": [{{"role": "assistant", "content": "no"}}]}}\n'
        write(name + "preferences.jsonl", "".join(pair.format(word, i) for i in range(16)))
    write("poem.txt", "".join(f"line {i % 10} of it\n" for i in range(60)))
    write("prompts.txt", "line 3\nof it\n")
    write("other.txt", "".join(f"verse {i % 7}, the other\n" for i in range(60)))
    for name, factor in (("", 1), ("other-", 3)):
        tokens = [i * i * factor % 61 if i % 2 == 0 else 0 for i in range(640)]
        write(name + "tokens.bin", struct.pack("<640H", *tokens))
        for ending, content in zip((".bin", ".idx"), megatron(tokens, 20)):
            write(name + "set" + ending, content)
    write("few.bin", struct.pack("<640H", *[i * i % 23 for i in range(640)]))
    vocabulary = ", ".join(f'"{word}": {i}' for i, word in enumerate(["[PAD]", "[UNK]", "we", "see", "hear", *"0123456789"]))
    write("few.json", '{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"}, '
                      '"post_processor": null, "decoder": null, "model": {"type": "WordPiece", "unk_token": "[UNK]", '
                      '"continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {' + vocabulary + "}}}")
    write("model.ang", GRAPH)
    write("other.ang", GRAPH.replace("relu", "tanh"))
    for name, text in BASES.items():
        write(name + ".yaml", text + TAIL)


# ---- version, run ----

row("version", "mlp", "version=2", REFUSED("version"))
row("run.dir", "mlp", "run.dir=elsewhere", FILES("elsewhere/summary.json"))
row("run.seed", "mlp", "run.seed=4", HASH)
row("run.steps", "mlp", "run.steps=5", HASH)
row("run.epochs", "mlp", "run.epochs=2", HASH, both=["run.steps="])
row("run.tokens", "gpt2", "run.tokens=64", HASH, both=["run.steps="])
row("run.samples", "mlp", "run.samples=8", HASH, both=["run.steps="])
row("run.max_time", "mlp", "run.max_time=0.0001s", OUTCOME, both=["run.steps=2000", "log.every=off"])
if "avx2" in pathlib.Path("/proc/cpuinfo").read_text().split() and os.environ.get("ANNEAL_MAX_ISA") != "base":
    row("run.isa", "mlp", "run.isa=base", FILES("run/checkpoints/*/manifest.json"))
else:
    row("run.isa", "mlp", "run.isa=avx2", REFUSED("avx2"))
row("run.allow_new_bits", "mlp", "run.allow_new_bits=on", ACCEPTED("run.allow_new_bits"),
    both=["run.steps=6", "train.matmul_precision=medium"], first=[])

# ---- model ----

row("model.type", "mlp", "model={type: sequential, layers: [linear]}", PLAN)
row("model.graph", "graph", "model.graph=other.ang", HASH, of="graph")
row("model.from", "pretrained", f"model.from={GOLDEN}/qwen2-window", HASH, of="pretrained")
row("model.context", "pretrained", "model.context=4", PLAN, of="pretrained")
row("model.classes", "pretrained-bert", "model.classes=5", PLAN, of="pretrained")
row("model.pooling", "pretrained-bert", "model.pooling=mean", PLAN, of="pretrained")
row("model.dropout", "pretrained-bert", "model.dropout=0.5", HASH, of="pretrained")
row("model.inputs", "stream", "model.inputs=3", PLAN, of="mlp")
row("model.inputs", "stream-layers", "model.inputs=[3]", PLAN, of="sequential")
row("model.outputs", "stream", "model.outputs=4", PLAN, of="mlp")
row("model.hidden", "mlp", "model.hidden=[5, 4]", PLAN, of="mlp")
row("model.embedding", "mlp", "model.embedding=3", PLAN, of="mlp", both=["data.train.path=colors.csv", "data.train.categories=embedding"])
row("model.embedding", "mlp", "model.embedding=3", PLAN, of="sequential",
    both=["model={type: sequential, layers: [linear]}", "data.train.path=colors.csv", "data.train.categories=embedding"])
row("model.hidden", "cnn", "model.hidden=5", PLAN, of="cnn")
row("model.hidden", "llama", "model.hidden=24", PLAN, of="llama")
row("model.channels", "stream-cnn", "model.channels=3", PLAN, of="cnn")
row("model.height", "stream-cnn", "model.height=12", PLAN, of="cnn")
row("model.width", "stream-cnn", "model.width=12", PLAN, of="cnn")
row("model.classes", "stream-cnn", "model.classes=5", PLAN, of="cnn")
row("model.filters", "cnn", "model.filters=[3, 3]", PLAN, of="cnn")
for kind in ("mlp", "cnn"):
    row("model.activation", kind, "model.activation=tanh", HASH, of=kind)
    row("model.batch_norm", kind, "model.batch_norm=on", PLAN, of=kind)
for kind in ("mlp", "cnn", "gpt2", "bert"):
    row("model.dropout", kind, "model.dropout=0.5", HASH, of=kind)
for kind in ("gpt2", "llama"):
    row("model.layers", kind, "model.layers=1", PLAN, of=kind)
    row("model.heads", kind, "model.heads=1", HASH, of=kind)
    row("model.width", kind, "model.width=16", PLAN, of=kind)
    row("model.context", kind, "model.context=4", PLAN, of=kind)
    row("model.vocabulary", kind, "model.vocabulary=300", PLAN, of=kind)
for key, value, sees in (("layers", 1, PLAN), ("heads", 1, HASH), ("width", 16, PLAN), ("hidden", 24, PLAN), ("context", 24, PLAN),
                         ("vocabulary", 300, PLAN), ("classes", 5, PLAN), ("token_types", 3, PLAN), ("pooling", "mean", PLAN), ("epsilon", 0.1, HASH)):
    row("model." + key, "bert", f"model.{key}={value}", sees, of="bert")
row("model.kv_heads", "llama", "model.kv_heads=1", PLAN, of="llama")
row("model.rotary_base", "llama", "model.rotary_base=100", HASH, of="llama")
row("model.epsilon", "llama", "model.epsilon=0.1", HASH, of="llama")
row("model.tied", "llama", "model.tied=on", PLAN, of="llama")
row("model.loss", "stream", "model.loss=cross_entropy", PLAN, of="mlp", both=["model.loss=squared"])
row("model.loss", "stream-layers", "model.loss=cross_entropy", PLAN, of="sequential", both=["model.loss=squared"])

row("model.layers", "sequential", "model.layers=[linear]", PLAN, of="sequential")


def layer(option, kind, without, changed, sees=HASH):
    """A row of a layer's option: the layer as a flow table, without and with the option."""
    small = kind in ("linear", "dropout", "batch_norm", "layer_norm", "rms_norm", "relu")
    lists = ["model.layers=[%s]" % (f"{{type: linear, size: 4}}, {text}, linear" if small else f"{text}, flatten, linear")
             for text in (without, changed)]
    row("model.layers[]." + option, "sequential" if small else "layers", lists[1], sees,
        of="" if option in ("type", "name") else kind, both=[lists[0]])


layer("type", "relu", "relu", "tanh")
layer("size", "linear", "{type: linear, size: 4}", "{type: linear, size: 5}", PLAN)
layer("bias", "linear", "{type: linear, size: 4}", "{type: linear, size: 4, bias: off}", PLAN)
layer("bias", "convolution", "{type: convolution, filters: 2}", "{type: convolution, filters: 2, bias: off}", PLAN)
layer("filters", "convolution", "{type: convolution, filters: 2}", "{type: convolution, filters: 3}", PLAN)
layer("window", "convolution", "{type: convolution, filters: 2}", "{type: convolution, filters: 2, window: 5}", PLAN)
layer("stride", "convolution", "{type: convolution, filters: 2}", "{type: convolution, filters: 2, stride: 2}", PLAN)
layer("padding", "convolution", "{type: convolution, filters: 2}", "{type: convolution, filters: 2, padding: 0}", PLAN)
for kind in ("max_pool", "average_pool"):
    layer("window", kind, f"{{type: {kind}, window: 2}}", f"{{type: {kind}, window: 4}}", PLAN)
    layer("stride", kind, f"{{type: {kind}, window: 2}}", f"{{type: {kind}, window: 2, stride: 1}}", PLAN)
    layer("padding", kind, f"{{type: {kind}, window: 2}}", f"{{type: {kind}, window: 2, padding: 1}}", PLAN)
layer("rate", "dropout", "dropout", "{type: dropout, rate: 0.5}")
for kind in ("batch_norm", "layer_norm", "rms_norm"):
    layer("epsilon", kind, kind, f"{{type: {kind}, epsilon: 0.1}}")
layer("momentum", "batch_norm", "batch_norm", "{type: batch_norm, momentum: 0.5}", STATE)
layer("name", "relu", "{type: linear, size: 4}", "{type: linear, size: 4, name: middle}", FILES("run/checkpoints/*/graph.ang"))

ADAPTER = ["lora.targets=[c_attn]", "lora.rank=2"]
row("lora.targets", "gpt2", "lora.targets=[c_attn, c_fc]", HASH, both=ADAPTER)
row("lora.train", "gpt2", "lora.train=[ln_f]", HASH, both=ADAPTER)
row("lora.rank", "gpt2", "lora.rank=3", HASH, both=ADAPTER)
row("lora.alpha", "gpt2", "lora.alpha=5", HASH, both=ADAPTER)
row("lora.dropout", "gpt2", "lora.dropout=0.5", HASH, both=ADAPTER)
row("lora.rslora", "gpt2", "lora.rslora=on", HASH, both=ADAPTER)
row("lora.dora", "gpt2", "lora.dora=on", HASH, both=ADAPTER)
row("lora.base", "gpt2", "lora.base=full", PLAN, both=[*ADAPTER, "train.precision=bf16"])
row("lora.base", "gpt2", "lora.base=q8_0", PLAN, both=[*ADAPTER, "train.precision=bf16", "model.width=32"])
row("lora.from", "gpt2", "lora.from=nowhere", REFUSED("nowhere/adapter_config.json"), both=ADAPTER)

SAVED = ["model.init.from=trained"]
row("model.init.from", "mlp", "model.init.from=trained", HASH)
row("model.init.weights", "mlp", "model.init.weights=ema", REFUSED("has no moving average of the weights"), both=SAVED)
row("model.init.missing", "mlp", "model.init.missing=init", ACCEPTED("model.init"),
    both=["model.hidden=[4, 4]", "model.init.unexpected=ignore", *SAVED])
row("model.init.unexpected", "mlp", "model.init.unexpected=ignore", ACCEPTED("model.init"),
    both=["model={type: sequential, layers: [{type: linear, size: 4, name: hidden.0}, linear]}", "model.init.missing=init", *SAVED])
row("model.init.rename", "mlp", "model.init.rename={'^hidden': 'unknown'}", HASH,
    both=["model.init.missing=init", "model.init.unexpected=ignore", *SAVED])

# ---- data ----

TEXT = "data.train={type: text, path: poem.txt}"
row("data.train.type", "tokens", "data.train={type: megatron, path: other-set}", HASH)
row("data.train.type", "mlp", "data.train.type=array", REFUSED("which is not supported yet"))
for kind, base, path in (("idx", "cnn", "other-images.idx"), ("csv", "mlp", "products.csv"), ("text", "gpt2", "other.txt"),
                         ("tokens", "tokens", "other-tokens.bin"), ("megatron", "megatron", "other-set")):
    row("data.train.path", base, "data.train.path=" + path, HASH, of=kind)
    row("data.train.part", base, "data.train.part=50%..100%", HASH, of=kind)
for kind, base in (("text", "gpt2"), ("tokens", "tokens"), ("megatron", "megatron")):
    row("data.train.context", base, "data.train.context=6", HASH, of=kind)
for kind, base in (("chat", "chat"), ("sentences", "bert")):
    row("data.train.path", base, f"data.train.path=other-{kind}.jsonl", HASH, of=kind)
    row("data.train.part", base, "data.train.part=50%..100%", HASH, of=kind)
    row("data.train.context", base, "data.train.context=12" if kind == "sentences" else "data.train.context=40", PLAN, of=kind)
    row("data.train.tokenizer", base, "data.train.tokenizer=" + str(FINETUNE / ("bpe" if kind == "sentences" else "wordpiece")),
        PLAN if kind == "sentences" else REFUSED("has no token '<|im_start|>'"), of=kind, both=[] if kind == "sentences" else ["data.train.template=chatml"])
row("data.train.path", "preferences", "data.train.path=other-preferences.jsonl", HASH, of="preferences")
row("data.train.part", "preferences", "data.train.part=50%..100%", HASH, of="preferences")
row("data.train.context", "preferences", "data.train.context=60", PLAN, of="preferences")
row("data.train.tokenizer", "preferences", f"data.train.tokenizer={FINETUNE}/wordpiece", REFUSED("has no token '<|im_start|>'"), of="preferences",
    both=["data.train.template=chatml"])
row("data.train.template", "preferences", "data.train.template=zephyr", HASH, of="preferences")
row("data.train.system", "preferences", "data.train.system=Be brief.", HASH, of="preferences")
row("train.loss.beta", "preferences", "train.loss.beta=0.5", HASH, both=["optimizer.type=sgd"])
row("data.train.template", "chat", "data.train.template=zephyr", HASH, of="chat")
row("data.train.system", "chat", "data.train.system=Be brief.", HASH, of="chat")
row("data.train.packing", "chat", "data.train.packing=off", HASH, of="chat")
row("data.train.prompts", "chat", "data.train.prompts=on", HASH, of="chat")
row("data.train.path", "pictures", "data.train.path=other-pictures", HASH, of="images")
row("data.train.part", "pictures", "data.train.part=50%..100%", HASH, of="images")
row("data.train.flat", "pictures", "data.train.flat=on", FILES("run/checkpoints/*/graph.ang"), of="images",
    both=["model={type: sequential, layers: [flatten, linear]}"])
row("data.train.scaled", "pictures", "data.train.scaled=off", HASH, of="images")
for key, value in (("channels", 3), ("height", 12), ("width", 6)):
    row("data.train." + key, "pictures", f"data.train.{key}={value}", HASH, of="images")
row("data.train.path", "arrays", "data.train.path=other-arrays.npz", HASH, of="npy")
row("data.train.part", "arrays", "data.train.part=50%..100%", HASH, of="npy")
row("data.train.labels", "arrays", "data.train.labels=labels.npy", HASH, of="npy")
row("data.train.flat", "arrays", "data.train.flat=off", REFUSED("inputs"), of="npy")
row("data.train.scaled", "arrays", "data.train.scaled=off", HASH, of="npy")
row("data.train.inputs", "arrays", "data.train.inputs=[z]", HASH, of="npy")
row("data.train.targets", "arrays", "data.train.targets=[w]", HASH, of="npy")
row("data.train.dtype", "arrays", "data.train.dtype=f64", HASH, of="npy")
row("data.train.path", "hdf5", "data.train.path=other-images.h5", HASH, of="hdf5")
row("data.train.part", "hdf5", "data.train.part=50%..100%", HASH, of="hdf5")
row("data.train.flat", "hdf5", "data.train.flat=off", REFUSED("inputs"), of="hdf5")
row("data.train.scaled", "hdf5", "data.train.scaled=off", HASH, of="hdf5")
row("data.train.inputs", "hdf5", "data.train.inputs=z", HASH, of="hdf5")
row("data.train.targets", "hdf5", "data.train.targets=w", HASH, of="hdf5")
row("data.train.dtype", "hdf5", "data.train.dtype=f64", HASH, of="hdf5")
row("data.train.path", "lines", "data.train.path=products.jsonl", HASH, of="jsonl")
row("data.train.part", "lines", "data.train.part=50%..100%", HASH, of="jsonl")
row("data.train.inputs", "lines", "data.train.inputs=[a]", HASH, of="jsonl")
row("data.train.targets", "lines", "data.train.targets=[a]", HASH, of="jsonl")
row("data.train.classes", "lines", "data.train.classes=on", REFUSED("is not a class"), of="jsonl")
row("data.train.dtype", "lines", "data.train.dtype=f64", HASH, of="jsonl")
row("data.train.labels", "cnn", "data.train.labels=other-labels.idx", HASH, of="idx")
row("data.train.flat", "layers", "data.train.flat=on", FILES("run/checkpoints/*/graph.ang"), of="idx", both=["model.layers=[flatten, linear]"])
row("data.train.scaled", "cnn", "data.train.scaled=off", HASH, of="idx")
row("data.train.inputs", "mlp", "data.train.inputs=[a]", HASH, of="csv")
row("data.train.targets", "mlp", "data.train.targets=[a]", HASH, of="csv")
row("data.train.classes", "classes", "data.train.classes=off", HASH, of="csv")
row("data.train.categories", "mlp", "data.train.categories=off", REFUSED("is not a number"), of="csv", both=["data.train.path=colors.csv"])
row("data.train.categories", "mlp", "data.train.categories=embedding", PLAN, of="csv", both=["data.train.path=colors.csv"])
row("data.train.header", "mlp", "data.train.header=on", HASH, of="csv", both=["data.train.path=bare.csv"])
row("data.train.numbers", "mlp", "data.train.numbers=auto", PLAN, of="csv", both=["data.train.path=prices.csv"])
row("data.train.dates", "mlp", "data.train.dates=auto", PLAN, of="csv", both=["data.train.path=prices.csv"])
row("data.train.delimiter", "mlp", "data.train.delimiter=;", ACCEPTED("semicolons.csv"), of="csv",
    both=["data.train.path=semicolons.csv"])
row("data.train.dtype", "mlp", "data.train.dtype=f64", HASH, of="csv")
row("data.train.dtype", "stream", ["data.source=", "data.train={type: stream, dtype: f64}"], PLAN, of="stream")
row("data.train.tokens", "gpt2", "data.train.tokens=bytes", PLAN, of="text")
row("data.train.format", "tokens", "data.train.format=u32", HASH, of="tokens")
row("data.train.documents", "tokens", "data.train.documents=apart", HASH, of="tokens", both=["data.train.end_token=0"])
row("data.train.documents", "megatron", "data.train.documents=apart", HASH, of="megatron")
row("data.train.border_targets", "tokens", "data.train.border_targets=off", HASH, of="tokens",
    both=["data.train.end_token=4", "data.train.documents=apart"])
row("data.train.border_targets", "megatron", "data.train.border_targets=off", HASH, of="megatron", both=["data.train.documents=apart"])
row("data.train.end_token", "tokens", "data.train.end_token=5", HASH, of="tokens",
    both=["data.train.end_token=4", "data.train.documents=apart"])
row("data.train.parts", "mixture", "data.train.parts=[{type: text, path: poem.txt}]", HASH, of="mixture")
row("data.train.count", "mixture", "data.train.count=8", HASH, of="mixture", both=["run.steps="])
row("data.train.weight", "mixture", "data.train.parts=[{type: text, path: poem.txt, weight: 3}, {type: text, path: other.txt}]", HASH)
row("data.eval", "mlp", "data.eval={type: csv, path: products.csv}", METRICS)
row("data.split.eval", "mlp", "data.split.eval=50%", HASH, both=["data.split={eval: 25%}"])
row("data.split.by", "mlp", "data.split.by=time", HASH, both=["data.split={eval: 25%}"])
row("data.split.seed", "mlp", "data.split.seed=1", HASH, both=["data.split={eval: 25%}"])
row("data.class_weights", "classes", "data.class_weights=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]", HASH)
row("data.class_weights", "mlp", "data.class_weights=balanced", REFUSED("are not classes"))
row("data.weights", "mlp", ["data.weights=a", "data.train.inputs=[a, b]"], HASH)
row("data.missing.method", "mlp", "data.missing.method=mean", ACCEPTED("data.missing"), both=["data.train.path=gaps.csv"])
row("data.missing.value", "mlp", "data.missing.value=3", HASH, both=["data.train.path=gaps.csv", "data.missing.method=constant"])
row("data.mixtures", "mixture", ["data.train=", "data.mixtures=[{type: text, path: poem.txt}]"], HASH)
row("data.source", "mlp", ["data={source: stream}", "model.inputs=2", "model.outputs=1"], REFUSED("stream"))
row("data.capacity", "stream", "data.capacity=2k", UNSUPPORTED)
row("data.policy", "stream", "data.policy=fifo", UNSUPPORTED)
row("data.holdout", "stream", "data.holdout=5%", UNSUPPORTED)
row("data.threads", "mlp", "data.threads=9", PLAN)
row("data.drop_last", "mlp", "data.drop_last=on", HASH, both=["run.steps="])
for key, value in (("flip", "vertical"), ("shift", 2), ("crop", 2), ("rotate", 20), ("brightness", 0.5), ("contrast", "50%"),
                   ("erase", 0.5), ("mixup", 0.4)):
    row("data.augment." + key, "cnn", f"data.augment.{key}={value}", HASH)
row("data.normalize.inputs", "mlp", "data.normalize.inputs=standard", HASH)
row("data.normalize.targets", "mlp", "data.normalize.targets=range", HASH)
row("data.normalize.fit", "mlp", "data.normalize.fit=first 7 samples", HASH, both=["data.normalize.inputs=standard"])
row("data.normalize.fit", "mlp", "data.normalize.fit=running", REFUSED("which is for streams"))

# ---- batch, optimizer ----

row("batch.global", "mlp", "batch.global=8", HASH)
row("batch.micro", "mlp", "batch.micro=2", PLAN)
row("batch.accumulate", "mlp", ["batch={micro: 2, accumulate: 3}"], HASH)
row("batch.leaves", "mlp", "batch.leaves=2", PLAN)
row("optimizer.type", "mlp", "optimizer.type=sgd", HASH)
row("optimizer.lr", "mlp", "optimizer.lr=2e-2", HASH)
for kind in ("adamw", "adam"):
    row("optimizer.betas", "mlp", "optimizer.betas=[0.5, 0.9]", HASH, of=kind, both=["optimizer.type=" + kind])
    row("optimizer.eps", "mlp", "optimizer.eps=0.1", HASH, of=kind, both=["optimizer.type=" + kind])
row("optimizer.betas", "mlp", "optimizer.betas=[0.5, 0.9]", STATE, of="lion", both=["optimizer.type=lion"])
for kind in ("adamw", "adam", "sgd", "lion", "rmsprop"):
    row("optimizer.weight_decay", "mlp", "optimizer.weight_decay=0.5", HASH, of=kind, both=["optimizer.type=" + kind])
row("optimizer.momentum", "mlp", "optimizer.momentum=0.9", HASH, of="sgd", both=["optimizer.type=sgd"])
row("optimizer.dampening", "mlp", "optimizer.dampening=0.5", HASH, of="sgd", both=["optimizer={type: sgd, momentum: 0.9}"])
row("optimizer.nesterov", "mlp", "optimizer.nesterov=on", HASH, of="sgd", both=["optimizer={type: sgd, momentum: 0.9}"])
row("optimizer.eps", "mlp", "optimizer.eps=0.1", HASH, of="rmsprop", both=["optimizer.type=rmsprop"])
row("optimizer.alpha", "mlp", "optimizer.alpha=0.5", HASH, of="rmsprop", both=["optimizer.type=rmsprop"])
row("optimizer.momentum", "mlp", "optimizer.momentum=0.9", HASH, of="rmsprop", both=["optimizer.type=rmsprop"])
row("optimizer.centered", "mlp", "optimizer.centered=on", HASH, of="rmsprop", both=["optimizer.type=rmsprop"])
row("optimizer.decay", "graph", "optimizer.decay=names", HASH, both=["optimizer.weight_decay=0.5"])
row("optimizer.decay_embeddings", "gpt2", "optimizer.decay_embeddings=off", HASH, both=["optimizer.weight_decay=0.5"])
GROUP = "optimizer.groups=[{match: weight, %s}]"
row("optimizer.groups[].match", "mlp", "optimizer.groups=[{match: bias, lr_scale: 2}]", HASH, both=[GROUP % "lr_scale: 2"])
row("optimizer.groups[].lr_scale", "mlp", GROUP % "lr_scale: 2", HASH, both=[GROUP % "lr_scale: 1"])
row("optimizer.groups[].weight_decay", "mlp", GROUP % "weight_decay: 0.5", HASH, both=[GROUP % "lr_scale: 1"])
row("optimizer.groups[].freeze", "mlp", GROUP % "freeze: on", HASH, both=[GROUP % "lr_scale: 1"])
row("optimizer.layer_decay", "gpt2", "optimizer.layer_decay=0.5", HASH)

# ---- schedule ----

def schedule(option, kind, rest, value, sees=HASH):
    """A row of an option that this type of schedule has: the rest of the schedule, then the option."""
    whole = ", ".join(filter(None, ["type: " + kind, rest]))
    row("schedule." + option, "mlp", f"schedule.{option}={value}", sees, of=kind, both=[f"schedule={{{whole}}}", "run.steps=8"])


row("schedule.type", "mlp", "schedule.type=cosine", HASH)
row("schedule.warmup.steps", "mlp", "schedule.warmup.steps=3", HASH)
row("schedule.warmup.start_factor", "mlp", "schedule.warmup.start_factor=0.5", HASH, both=["schedule.warmup.steps=3"])
row("schedule.per", "mlp", "schedule.per=epoch", HASH, both=["schedule.type=linear"])
for kind, rest in (("linear", ""), ("cosine", ""), ("cosine_restarts", "T_0: 4"), ("wsd", "decay: 4"), ("polynomial", "power: 2"), ("sqrt", "")):
    schedule("min_ratio", kind, rest, "0.3")
    schedule("min_lr", kind, rest, "1e-5")
schedule("floor", "cosine", "min_ratio: 0.3", "clamp")
schedule("T_0", "cosine_restarts", "T_0: 4", "3")
schedule("T_mult", "cosine_restarts", "T_0: 2", "2")
schedule("max_lr", "one_cycle", "", "0.1")
schedule("pct_start", "one_cycle", "", "0.6")
schedule("div_factor", "one_cycle", "", "5")
schedule("final_div_factor", "one_cycle", "", "2")
schedule("anneal", "one_cycle", "", "linear")
schedule("three_phase", "one_cycle", "", "on")
schedule("momentum", "one_cycle", "", "off")
schedule("stable", "wsd", "decay: 4", "2")
schedule("decay", "wsd", "decay: 4", "2")
schedule("period", "step", "period: 4", "3")
schedule("gamma", "step", "period: 2", "0.5")
schedule("gamma", "exponential", "gamma: 0.9", "0.5")
schedule("power", "polynomial", "", "2")
schedule("points", "points", "points: {0: 1, 8: 0.1}", "{0: 0.1, 8: 1}")
schedule("parts", "sequence", "parts: [constant, linear], milestones: [4]", "[constant, cosine]")
schedule("milestones", "sequence", "parts: [constant, linear], milestones: [4]", "[3]")

# ---- train ----

row("train.clip_norm", "mlp", "train.clip_norm=0.01", HASH, both=["optimizer.type=sgd"])
row("train.clip_value", "mlp", "train.clip_value=0.01", HASH, both=["optimizer.type=sgd"])
row("train.precision", "mlp", "train.precision=bf16", HASH, both=["train.precision=f32"])
row("train.matmul_precision", "mlp", "train.matmul_precision=medium", HASH)
row("train.recompute.mode", "gpt2", "train.recompute.mode=full", PLAN)
row("train.recompute.segments", "gpt2", "train.recompute.segments=2", PLAN)
row("train.recompute.budget", "gpt2", "train.recompute.budget=1KiB", REFUSED("the budget is 1024"))
row("train.loss.reduction", "tokens", "train.loss.reduction=sample_mean", HASH,
    both=["data.train.end_token=4", "data.train.documents=apart", "data.train.border_targets=off"])
row("train.loss.label_smoothing", "classes", "train.loss.label_smoothing=0.2", HASH)
row("train.loss.focal", "classes", "train.loss.focal=2", HASH)
row("train.ema.decay", "mlp", "train.ema=0.5", STATE)
row("train.on_nonfinite", "overflow", "train.on_nonfinite=skip", ACCEPTED("not finite"))
row("train.on_nonfinite", "mlp", "train.on_nonfinite=rollback", REFUSED("use skip, which ends with the same weights"))
row("train.max_skips", "overflow", "train.max_skips=2", REFUSED("skipped"), both=["train.on_nonfinite=skip"])

# ---- eval ----

row("eval.every", "eval", "eval.every=2", METRICS)
row("eval.at_start", "eval", "eval.at_start=on", METRICS)
row("eval.samples", "eval", "eval.samples=3", METRICS)
row("eval.micro", "eval", "eval.micro=3", STATE)
row("eval.metrics", "eval", "eval.metrics=[mae]", METRICS, both=["eval.best.metric=val_mae"])
row("eval.generate", "gpt2", "eval.generate=prompts.txt", FILES("run/samples/*"),
    both=["data.train.part=0%..50%", "data.eval={type: text, path: poem.txt, tokens: chars, part: 50%..100%}", "eval.every=2"])
row("eval.best.metric", "eval", "eval.best.metric=val_mae", FILES("run/summary.json"))
row("eval.best.mode", "eval", "eval.best.mode=max", FILES("run/summary.json"))
NEVER_BETTER = ["optimizer.lr=0", "run.steps=8"]
row("eval.early_stop.metric", "eval", "eval.early_stop.metric=val_loss", OUTCOME, both=NEVER_BETTER)
row("eval.early_stop.patience", "eval", "eval.early_stop.patience=2", OUTCOME, both=["eval.early_stop.metric=val_loss", *NEVER_BETTER])
row("eval.early_stop.min_delta", "eval", "eval.early_stop.min_delta=100", OUTCOME,
    both=["eval.early_stop={metric: val_loss, patience: 2}", "optimizer.lr=1e-2", "run.steps=6"])

# ---- save, log ----

SAVES = ["save.every=1 steps", "run.steps=6"]
row("save.every", "mlp", "save.every=1 steps", KEPT)
row("save.keep_last", "mlp", "save.keep_last=4", KEPT, both=SAVES)
row("save.keep_every", "mlp", "save.keep_every=2 steps", KEPT, both=SAVES)
row("save.keep_named", "mlp", "save.keep_named=1", NAMED)
row("save.stage", "mlp", "save.stage=stage", FILES("stage*"))
row("save.writers", "mlp", "save.writers=4", PLAN)
row("log.every", "mlp", "log.every=2 steps", METRICS)
row("log.grad_norms", "mlp", "log.grad_norms=parameter", METRICS)
row("log.tensorboard", "mlp", "log.tensorboard=off", FILES("run/events*"))
row("log.profile", "mlp", "log.profile=trace.json", FILES("trace.json"))

# ---- ranks ----

row("ranks.shard", "mlp", "ranks.shard=full", RANKS_PLAN)
row("ranks.accumulate", "mlp", "ranks.accumulate=off", RANKS_PLAN,
    both=["ranks.shard=gradients", "batch.global=16", "batch.leaves=8", "batch.micro=2"])
row("ranks.unit.min_elements", "gpt2", "ranks.unit.min_elements=1000000", RANKS_PLAN)
row("ranks.precision.params", "mlp", "ranks.precision.params=bf16", REFUSED("read parameters in f32"))
row("ranks.precision.reduce", "mlp", "ranks.precision.reduce=bf16", METRICS)
row("ranks.threads", "mlp", "ranks.threads=3", PLAN)
row("ranks.shared_memory", "mlp", "ranks.shared_memory=off", RANKS_PLAN)
row("ranks.report_after", "mlp", "ranks.report_after=1s", STALLS("no progress"))
row("ranks.timeout", "mlp", "ranks.timeout=1s", STALLS("it hangs"))
