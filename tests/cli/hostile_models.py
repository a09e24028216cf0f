#!/usr/bin/env python3
"""Published models that are broken or made to do harm: each is refused, by the name of its file and with what is wrong with it.

    hostile_models.py SOURCE-TREE BUILD-FOLDER [NAME]

Every case changes one thing of a small model in tests/golden/pretrained and says which words the message must have. No case may crash, take longer than a few
seconds or take more memory than the model that is not changed: what a file claims is never allocated before it has been compared with what there is.
With NAME, only that case is run and its message is shown.
"""
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile

tree, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
only = sys.argv[3] if len(sys.argv) > 3 else None
golden = os.path.join(tree, "tests/golden/pretrained")
command = os.path.join(build, "bin/anneal")
MEMORY = 64 << 20  # above what the unchanged model takes; the largest file here has 40 KB
SECONDS = 20

cases = []  # name, function that writes the model into an empty folder and returns its path, pattern


def case(name, pattern, write):
    cases.append((name, write, pattern))


# Folders of Hugging Face


def folder(change=None, family="smollm2", tensors=None, files=None):
    """A folder whose config.json was changed by change(config), whose header of tensors by tensors(header), and with more files."""

    def write(work):
        path = os.path.join(work, "model")
        os.mkdir(path)
        config = json.load(open(os.path.join(golden, family, "config.json")))
        made = change(config) if change else config
        text = made if isinstance(made, (str, bytes)) else json.dumps(made if made is not None else config)
        with open(os.path.join(path, "config.json"), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        weights = open(os.path.join(golden, family, "model.safetensors"), "rb").read()
        if tensors:
            weights = tensors(weights)
        if weights is not None:
            open(os.path.join(path, "model.safetensors"), "wb").write(weights)
        for name, content in (files or {}).items():
            open(os.path.join(path, name), "wb").write(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return write


def key(name, value):
    def change(config):
        config[name] = value

    return change


def without(*names):
    def change(config):
        for name in names:
            config.pop(name, None)

    return change


SIZES = ["hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size", "max_position_embeddings"]
WRONG = {"0": 0, "-1": -1, "a fraction": 2.5, "a string": "12", "a list": [12], "huge": 10**18, "beyond 64 bits": 10**30, "true": True}
for size in SIZES:
    # Hugging Face assumes a size for each of these keys, and the weights are of another.
    if size != "max_position_embeddings":
        case(f"folder: no {size}", r"model.*describes a model of", folder(without(size)))
        case(f"folder: {size} is null", r"model.*describes a model of", folder(key(size, None)))
    for word, value in WRONG.items():
        case(f"folder: {size} is {word}", f"(config.json.*{size}|{size}.*config.json)", folder(key(size, value)))
case("folder: heads do not divide the width", r"config.json", folder(lambda c: c.pop("head_dim", None) and None or c.update(num_attention_heads=5)))
case("folder: key heads do not divide heads", r"config.json.*num_key_value_heads|head", folder(key("num_key_value_heads", 3)))
case("folder: more key heads than heads", r"head", folder(key("num_key_value_heads", 8)))
case("folder: an odd head_dim", r"head", folder(key("head_dim", 5)))
case("folder: head_dim 0", r"head_dim", folder(key("head_dim", 0)))
case("folder: another activation", r"config.json.*hidden_act", folder(key("hidden_act", "relu")))
case("folder: epsilon is negative", r"rms_norm_eps", folder(key("rms_norm_eps", -1e-5)))
case("folder: epsilon is a string", r"rms_norm_eps", folder(key("rms_norm_eps", "small")))
case("folder: epsilon is infinite", r"config.json", folder(lambda c: json.dumps(c).replace("1e-05", "1e999")))
case("folder: unknown key", r"config.json.*frobnicate", folder(key("frobnicate", 1)))
case("folder: unknown family", r"config.json.*mamba", folder(key("model_type", "mamba")))
case("folder: model_type is a number", r"config.json.*model_type", folder(key("model_type", 7)))
case("folder: no model_type", r"config.json.*model_type", folder(without("model_type")))
case("folder: model_type with zero bytes", r"config.json", folder(key("model_type", "llama\0")))
case("folder: rotary scaling of an unknown kind", r"config.json.*rope", folder(lambda c: c.pop("rope_parameters", None) and None or c.update(rope_scaling={"rope_type": "wavy", "factor": 2.0})))
case("folder: rotary factor 0", r"config.json.*(rope|factor)", folder(lambda c: c.pop("rope_parameters", None) and None or c.update(rope_scaling={"rope_type": "llama3", "factor": 0})))
case("folder: rotary base 0", r"config.json.*(rope|theta)", folder(lambda c: c.update(rope_parameters={"rope_type": "default", "rope_theta": 0})))
case("folder: rotary base is a list", r"config.json.*(rope|theta)", folder(lambda c: c.update(rope_parameters={"rope_type": "default", "rope_theta": [1]})))
case("folder: quantised by another program", r"config.json.*quantization_config", folder(key("quantization_config", {"quant_method": "gptq"})))
case("folder: code of its own", r"config.json.*auto_map", folder(key("auto_map", {"AutoModel": "evil.py"})))
case("folder: tied and untied", r"model.*describes a model of", folder(key("tie_word_embeddings", False)))
case("folder: tie_word_embeddings is 3", r"config.json.*tie_word_embeddings", folder(key("tie_word_embeddings", 3)))
case("folder: config.json is empty", r"config.json", folder(lambda c: ""))
case("folder: config.json is a list", r"config.json", folder(lambda c: "[1, 2]"))
case("folder: config.json is a number", r"config.json", folder(lambda c: "3"))
case("folder: config.json is cut", r"config.json", folder(lambda c: json.dumps(c)[:-20]))
case("folder: config.json goes on", r"config.json", folder(lambda c: json.dumps(c) + "{}"))
case("folder: config.json is not UTF-8", r"config.json", folder(lambda c: json.dumps(c).replace("llama", "ll\udcffma").encode("utf-8", "surrogateescape")))
case("folder: config.json has a key twice", r"config.json.*(twice|hidden_size)", folder(lambda c: json.dumps(c)[:-1] + ', "hidden_size": 12}'))
case("folder: config.json is 100,000 lists deep", r"config.json", folder(lambda c: "[" * 100000))
case("folder: config.json is 100,000 objects deep", r"config.json", folder(lambda c: '{"a":' * 100000))
case("folder: config.json with a long number", r"config.json", folder(lambda c: json.dumps(c).replace('"hidden_size": 24', '"hidden_size": ' + "9" * 5000)))
case("folder: config.json with NaN", r"config.json", folder(lambda c: json.dumps(c).replace("1e-05", "NaN")))


def no_config(work):
    path = folder()(work)
    os.remove(os.path.join(path, "config.json"))
    return path


def config_is_folder(work):
    path = no_config(work)
    os.mkdir(os.path.join(path, "config.json"))
    return path


def config_is_pipe(work):
    path = no_config(work)
    os.mkfifo(os.path.join(path, "config.json"))
    return path


def config_is_loop(work):
    path = no_config(work)
    os.symlink("config.json", os.path.join(path, "config.json"))
    return path


def empty_folder(work):
    path = os.path.join(work, "model")
    os.mkdir(path)
    return path


case("folder: no config.json", r"model", no_config)
case("folder: config.json is a folder", r"config.json", config_is_folder)
case("folder: config.json is a pipe", r"config.json", config_is_pipe)
case("folder: config.json links to itself", r"config.json", config_is_loop)
case("folder: empty", r"model", empty_folder)
case("folder: no weights", r"model.*(safetensors|weights)", folder(tensors=lambda w: None))


# generation_config.json


def generation(content):
    return folder(files={"generation_config.json": content})


for name, value in {"temperature": -1, "top_p": 2, "min_p": "small", "top_k": -3, "repetition_penalty": 0, "do_sample": "yes", "eos_token_id": 10**6}.items():
    case(f"generation: {name} is {value}", f"generation_config.json.*{name}", generation({name: value}))
case("generation: a key twice", "generation_config.json.*top_p.*twice", generation(b'{"top_p": 0.5, "top_p": 0.5}'))
case("generation: 1,000 end tokens", "generation_config.json.*eos_token_id", generation({"eos_token_id": list(range(1000))}))
case("generation: cut", "generation_config.json", generation(b'{"top_p": 0.5'))
case("generation: empty", "generation_config.json", generation(b""))
case("generation: 100,000 lists deep", "generation_config.json", generation(b'{"new": ' + b"[" * 100000))
case("generation: 2 MB", "generation_config.json.*bytes", generation(b"{" + b" " * (2 << 20) + b"}"))


# safetensors


def header(change):
    """The file with its header changed; the tensors' bytes stay."""

    def tensors(weights):
        size = struct.unpack("<Q", weights[:8])[0]
        facts = json.loads(weights[8 : 8 + size])
        made = change(facts)
        text = (made if isinstance(made, bytes) else json.dumps(made if made is not None else facts).encode())
        return struct.pack("<Q", len(text)) + text + weights[8 + size :]

    return tensors


def of(name, **facts):
    def change(all_facts):
        all_facts[name].update(facts)

    return folder(tensors=header(change))


def dropped(name):
    return folder(tensors=header(lambda facts: facts.pop(name) and None))


NORM = "model.norm.weight"
EMBED = "model.embed_tokens.weight"
QUERY = "model.layers.1.self_attn.q_proj.weight"
for tensor in (NORM, EMBED, QUERY):
    case(f"safetensors: no {tensor}", "safetensors.*byte", folder(tensors=header(lambda facts, tensor=tensor: {k: v for k, v in facts.items() if k != tensor})))
    case(f"safetensors: {tensor} has no type", "safetensors", folder(tensors=header(lambda facts, tensor=tensor: facts[tensor].pop("dtype") and None)))
    case(f"safetensors: {tensor} has no shape", "safetensors", folder(tensors=header(lambda facts, tensor=tensor: facts[tensor].pop("shape") and None)))
    case(f"safetensors: {tensor} has no offsets", "safetensors", folder(tensors=header(lambda facts, tensor=tensor: facts[tensor].pop("data_offsets") and None)))
    case(f"safetensors: {tensor} of an unknown type", "safetensors", of(tensor, dtype="F33"))
    case(f"safetensors: {tensor} of integers", "safetensors|" + re.escape(tensor), of(tensor, dtype="I32"))
    case(f"safetensors: {tensor} with a negative side", "safetensors", of(tensor, shape=[-24]))
    case(f"safetensors: {tensor} with an empty side", "safetensors|" + re.escape(tensor), of(tensor, shape=[0]))
    case(f"safetensors: {tensor} with sides that overflow", "safetensors", of(tensor, shape=[2**33, 2**33]))
    case(f"safetensors: {tensor} of 100 sides", "safetensors", of(tensor, shape=[1] * 100))
    case(f"safetensors: {tensor} backwards", "safetensors", of(tensor, data_offsets=[96, 0]))
    case(f"safetensors: {tensor} behind the end", "safetensors", of(tensor, data_offsets=[2**40, 2**40 + 96]))
    case(f"safetensors: {tensor} with one offset", "safetensors", of(tensor, data_offsets=[0]))
    case(f"safetensors: {tensor} with offsets that are strings", "safetensors", of(tensor, data_offsets=["0", "96"]))
case("safetensors: two tensors share bytes", "safetensors", folder(tensors=header(lambda f: f[QUERY].update(data_offsets=f["model.layers.0.self_attn.q_proj.weight"]["data_offsets"]))))
case("safetensors: a tensor too many", "(model.spare|spare)", folder(tensors=lambda w: header(lambda f: f.update({"model.spare.weight": {"dtype": "F32", "shape": [1], "data_offsets": [len(w) - 8 - struct.unpack("<Q", w[:8])[0]] * 2}}) or {**f, "model.spare.weight": {"dtype": "F32", "shape": [1], "data_offsets": [len(w) - 8 - struct.unpack("<Q", w[:8])[0], len(w) - 4 - struct.unpack("<Q", w[:8])[0]]}})(w) + b"\0\0\0\0"))
case("safetensors: a shape turned around", re.escape("mlp.down_proj.weight"), folder(tensors=header(lambda f: f["model.layers.0.mlp.down_proj.weight"].update(shape=[20, 24]))))
case("safetensors: empty", "safetensors", folder(tensors=lambda w: b""))
case("safetensors: seven bytes", "safetensors", folder(tensors=lambda w: w[:7]))
case("safetensors: a header of 2^63 bytes", "safetensors", folder(tensors=lambda w: struct.pack("<Q", 2**63) + w[8:]))
case("safetensors: a header as long as the file", "safetensors", folder(tensors=lambda w: struct.pack("<Q", len(w)) + w[8:]))
case("safetensors: a header of nothing", "safetensors", folder(tensors=lambda w: struct.pack("<Q", 0) + w[8:]))
case("safetensors: cut in its tensors", "safetensors", folder(tensors=lambda w: w[:-100]))
case("safetensors: longer than its tensors", "safetensors", folder(tensors=lambda w: w + b"\0" * 100))
case("safetensors: the header is a list", "safetensors", folder(tensors=header(lambda f: b"[]")))
case("safetensors: the header is not JSON", "safetensors", folder(tensors=header(lambda f: b"{{{{")))
case("safetensors: the header is not UTF-8", "safetensors", folder(tensors=header(lambda f: json.dumps(f).replace("norm", "n\udcffrm", 1).encode("utf-8", "surrogateescape"))))
case("safetensors: a tensor twice", "safetensors", folder(tensors=header(lambda f: (json.dumps(f)[:-1] + ', "' + NORM + '": ' + json.dumps(f[NORM]) + "}").encode())))
case("safetensors: a name of 100,000 letters", re.escape(NORM), folder(tensors=header(lambda f: {("n" * 100000 if k == NORM else k): v for k, v in f.items()})))


# Several files with an index


def index(weight_map=None, keep=False, **facts):
    """An index beside parts; weight_map(map) changes it."""

    def write(work):
        path = folder()(work)
        weights = open(os.path.join(path, "model.safetensors"), "rb").read()
        names = [k for k in json.loads(weights[8 : 8 + struct.unpack("<Q", weights[:8])[0]]) if k != "__metadata__"]
        os.rename(os.path.join(path, "model.safetensors"), os.path.join(path, "part-1.safetensors"))
        made = {name: "part-1.safetensors" for name in names}
        if weight_map:
            made = weight_map(made) or made
        whole = {"metadata": {"total_size": 1}, "weight_map": made}
        whole.update(facts)
        text = facts["text"] if "text" in facts else json.dumps(whole)
        open(os.path.join(path, "model.safetensors.index.json"), "w").write(text)
        return path

    return write


case("index: a part that is not there", "part-2", index(lambda m: m.update({NORM: "part-2.safetensors"})))
case("index: a part above the folder", r"\.\.", index(lambda m: m.update({NORM: "../part-1.safetensors"})))
case("index: a part anywhere", "/etc/passwd", index(lambda m: m.update({NORM: "/etc/passwd"})))
case("index: a part in a folder above, hidden", r"index.json|\.\.", index(lambda m: m.update({NORM: "a/../../part-1.safetensors"})))
case("index: a part without a name", "index.json", index(lambda m: m.update({NORM: ""})))
case("index: a part that is a number", "index.json", index(lambda m: m.update({NORM: 1})))
case("index: a part that is the index", "index.json", index(lambda m: m.update({NORM: "model.safetensors.index.json"})))
case("index: a tensor that the part does not have", "nowhere", index(lambda m: m.update({"nowhere": "part-1.safetensors"})))
case("index: no map", "index.json", index(weight_map=lambda m: m, text="{}"))
case("index: the map is a list", "index.json", index(text='{"weight_map": []}'))
case("index: the map is empty", "index.json|weight", index(text='{"weight_map": {}}'))
case("index: not JSON", "index.json", index(text="weights"))
case("index: empty", "index.json", index(text=""))
case("index: 50,000 deep", "index.json", index(text='{"weight_map":' * 50000))

# GGUF

KINDS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Gguf:
    """A small GGUF file in parts: keys [(name, kind, value)], tensors [[name, sides, type, offset]], data."""

    def __init__(self, data):
        self.at, self.bytes = 24, data
        tensors, keys = struct.unpack("<QQ", data[8:24])
        self.version = struct.unpack("<I", data[4:8])[0]
        self.magic = data[:4]
        self.keys = [self.read_key() for _ in range(keys)]
        self.tensors = [self.read_tensor() for _ in range(tensors)]
        self.data = data[(self.at + 31) // 32 * 32 :]
        self.counts = None

    def number(self, kind):
        size = struct.calcsize(kind)
        value = struct.unpack(kind, self.bytes[self.at : self.at + size])[0]
        self.at += size
        return value

    def string(self):
        size = self.number("<Q")
        self.at += size
        return self.bytes[self.at - size : self.at]

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            inner, count = self.number("<I"), self.number("<Q")
            return inner, [self.value(inner) for _ in range(count)]
        return self.number(KINDS[kind])

    def read_key(self):
        name, kind = self.string(), self.number("<I")
        return [name, kind, self.value(kind)]

    def read_tensor(self):
        name = self.string()
        sides = [self.number("<Q") for _ in range(self.number("<I"))]
        return [name, sides, self.number("<I"), self.number("<Q")]

    def set(self, name, kind, value):
        for entry in self.keys:
            if entry[0].decode() == name:
                entry[1], entry[2] = kind, value
                return
        self.keys.append([name.encode(), kind, value])

    def drop(self, name):
        self.keys = [entry for entry in self.keys if entry[0].decode() != name]

    def tensor(self, name):
        return next(entry for entry in self.tensors if entry[0].decode() == name)

    @staticmethod
    def write_value(kind, value):
        if isinstance(value, bytes) and kind != 8:
            return value  # as it is
        if kind == 8:
            return struct.pack("<Q", len(value)) + value
        if kind == 9:
            inner, values = value
            return struct.pack("<IQ", inner, len(values)) + b"".join(Gguf.write_value(inner, each) for each in values)
        return struct.pack(KINDS[kind], value)

    def write(self):
        tensors, keys = self.counts or (len(self.tensors), len(self.keys))
        out = self.magic + struct.pack("<IQQ", self.version, tensors, keys)
        for name, kind, value in self.keys:
            out += struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + self.write_value(kind, value)
        for name, sides, kind, offset in self.tensors:
            out += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(sides)) + b"".join(struct.pack("<Q", side) for side in sides) + struct.pack("<IQ", kind, offset)
        return out + b"\0" * (-len(out) % 32) + self.data


def gguf(change=None, after=None, family="smollm2"):
    def write(work):
        path = os.path.join(work, "model.gguf")
        file = Gguf(open(os.path.join(golden, family + ".gguf"), "rb").read())
        if change:
            change(file)
        out = file.write()
        open(path, "wb").write(after(out) if after else out)
        return path

    return write


def sets(name, kind, value):
    return gguf(lambda f: f.set(name, kind, value))


for name in ("block_count", "context_length", "embedding_length", "attention.head_count", "feed_forward_length"):
    whole = "llama." + name
    case(f"gguf: no {whole}", "model.gguf.*" + re.escape(name), gguf(lambda f, whole=whole: f.drop(whole)))
    case(f"gguf: {whole} is 0", "model.gguf", sets(whole, 4, 0))
    case(f"gguf: {whole} is -1", "model.gguf", sets(whole, 5, -1))
    if name != "context_length":  # as many positions as a user asks for are planned, not as many as there may be
        case(f"gguf: {whole} is 2^32 - 1", "model.gguf", sets(whole, 4, 2**32 - 1))
    case(f"gguf: {whole} is 2^64 - 1", "model.gguf", sets(whole, 10, 2**64 - 1))
    case(f"gguf: {whole} is a string", "model.gguf", sets(whole, 8, b"24"))
    case(f"gguf: {whole} is a fraction", "model.gguf", sets(whole, 6, 2.5))
    case(f"gguf: {whole} is a list", "model.gguf", sets(whole, 9, (4, [24])))
case("gguf: no architecture", "model.gguf.*architecture", gguf(lambda f: f.drop("general.architecture")))
case("gguf: another architecture", "model.gguf.*mamba", sets("general.architecture", 8, b"mamba"))
case("gguf: architecture is a number", "model.gguf.*architecture", sets("general.architecture", 4, 1))
case("gguf: architecture has a zero byte", "model.gguf", sets("general.architecture", 8, b"llama\0x"))
case("gguf: architecture is not UTF-8", "model.gguf", sets("general.architecture", 8, b"\xff\xfe"))
case("gguf: rotary base 0", "model.gguf.*rope", sets("llama.rope.freq_base", 6, 0.0))
case("gguf: rotary base is not a number", "model.gguf", sets("llama.rope.freq_base", 6, float("nan")))
case("gguf: rotary dimension of another size", "model.gguf.*rotates", sets("llama.rope.dimension_count", 4, 4))
case("gguf: epsilon is infinite", "model.gguf", sets("llama.attention.layer_norm_rms_epsilon", 6, float("inf")))
case("gguf: key heads do not divide heads", "model.gguf", sets("llama.attention.head_count_kv", 4, 3))
case("gguf: experts", "model.gguf.*expert", sets("llama.expert_count", 4, 8))
case("gguf: rotary scaling of an unknown kind", "model.gguf.*rope", sets("llama.rope.scaling.type", 8, b"wavy"))
case("gguf: split in files", "model.gguf.*split", sets("split.count", 2, 3))
case("gguf: a key twice", "model.gguf", gguf(lambda f: f.keys.append(list(f.keys[2]))))
case("gguf: a key without a name", "model.gguf", gguf(lambda f: f.keys.append([b"", 4, 1])))
case("gguf: a key of an unknown kind", "model.gguf", gguf(lambda f: f.keys.append([b"a.b", 99, b"\0\0\0\0"])))
case("gguf: a string longer than the file", "model.gguf", gguf(lambda f: f.keys.append([b"a.b", 9, struct.pack("<IQ", 8, 1) + struct.pack("<Q", 2**60)])))
case("gguf: a list of 2^60 numbers", "model.gguf", gguf(lambda f: f.keys.append([b"a.b", 9, struct.pack("<IQ", 4, 2**60)])))
case("gguf: a list of 2^62 lists", "model.gguf", gguf(lambda f: f.keys.append([b"a.b", 9, struct.pack("<IQ", 9, 2**62)])))
case("gguf: lists 10,000 deep", "model.gguf", gguf(lambda f: f.keys.append([b"a.b", 9, struct.pack("<IQ", 9, 1) * 10000 + struct.pack("<IQ", 4, 0)])))
case("gguf: alignment 0", "model.gguf.*alignment", sets("general.alignment", 4, 0))
case("gguf: alignment 3", "model.gguf.*alignment", sets("general.alignment", 4, 3))
case("gguf: alignment 2^31", "model.gguf", sets("general.alignment", 4, 2**31))
for words, counts in {"tensors than it has": (10**6, None), "2^63 tensors": (2**63, None), "no tensors": (0, None), "2^63 keys": (None, 2**63), "no keys": (None, 0)}.items():
    case(f"gguf: {words}", "model.gguf", gguf(lambda f, counts=counts: setattr(f, "counts", (counts[0] if counts[0] is not None else len(f.tensors), counts[1] if counts[1] is not None else len(f.keys)))))
case("gguf: another magic", "model", gguf(lambda f: setattr(f, "magic", b"GGML")))
case("gguf: version 1", "model.gguf.*version", gguf(lambda f: setattr(f, "version", 1)))
case("gguf: version 99", "model.gguf.*version", gguf(lambda f: setattr(f, "version", 99)))
case("gguf: bytes in the other order", "model.gguf", gguf(lambda f: setattr(f, "version", 3 << 24)))
for tensor in ("token_embd.weight", "blk.1.attn_k.weight", "output_norm.weight"):
    case(f"gguf: no {tensor}", "model.gguf", gguf(lambda f, tensor=tensor: f.tensors.remove(f.tensor(tensor))))
    case(f"gguf: {tensor} of an unknown type", "model.gguf", gguf(lambda f, tensor=tensor: f.tensor(tensor).__setitem__(2, 77)))
    case(f"gguf: {tensor} of a type that is not read", "model.gguf", gguf(lambda f, tensor=tensor: f.tensor(tensor).__setitem__(2, 16)))
    case(f"gguf: {tensor} of blocks that do not divide it", "model.gguf", gguf(lambda f, tensor=tensor: f.tensor(tensor).__setitem__(2, 8)))
    case(f"gguf: {tensor} behind the end", "model.gguf", gguf(lambda f, tensor=tensor: f.tensor(tensor).__setitem__(3, 2**40)))
    case(f"gguf: {tensor} at an odd place", "model.gguf", gguf(lambda f, tensor=tensor: f.tensor(tensor).__setitem__(3, 7)))
    case(f"gguf: {tensor} with a side of 0", "model.gguf", gguf(lambda f, tensor=tensor: f.tensor(tensor)[1].__setitem__(0, 0)))
    case(f"gguf: {tensor} with sides that overflow", "model.gguf", gguf(lambda f, tensor=tensor: f.tensor(tensor).__setitem__(1, [2**33, 2**33])))
    case(f"gguf: {tensor} of nine sides", "model.gguf", gguf(lambda f, tensor=tensor: f.tensor(tensor).__setitem__(1, [1] * 9)))
    case(f"gguf: {tensor} of another shape", "model.gguf", gguf(lambda f, tensor=tensor: f.tensor(tensor).__setitem__(1, [12])))
    case(f"gguf: {tensor} twice", "model.gguf", gguf(lambda f, tensor=tensor: f.tensors.append(list(f.tensor(tensor)))))
case("gguf: a tensor too many", "spare", gguf(lambda f: f.tensors.append([b"spare.weight", [24], 0, 0])))
case("gguf: a tensor without a name", "model.gguf", gguf(lambda f: f.tensors.append([b"", [24], 0, 0])))
case("gguf: empty", "model", gguf(after=lambda b: b""))
case("gguf: three bytes", "model", gguf(after=lambda b: b[:3]))
case("gguf: twenty bytes", "model", gguf(after=lambda b: b[:20]))
case("gguf: cut in its keys", "model.gguf", gguf(after=lambda b: b[:200]))
case("gguf: cut in its tensors' names", "model.gguf", gguf(after=lambda b: b[:900]))
case("gguf: cut in its tensors", "model.gguf", gguf(after=lambda b: b[: len(b) - 64]))


def run(path):
    """exit code (negative: a signal), message, peak memory in bytes"""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([command, "generate", path, "--tokens", "1,2", "--max-tokens", "1"], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        try:
            # The peak is that of this child alone.
            signal.alarm(SECONDS)
            _, status, usage = os.wait4(process.pid, 0)
            signal.alarm(0)
        except TimeoutError:
            process.kill()
            os.wait4(process.pid, 0)
            return "time", "", 0
        out.seek(0)
        return os.waitstatus_to_exitcode(status), out.read().decode(errors="replace"), usage.ru_maxrss * 1024


def main():
    def ring(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    names = [name for name, _, _ in cases]
    assert len(set(names)) == len(names), "two cases have one name"
    failed = 0
    least = 0
    for name, write in (("folder", folder()), ("gguf", gguf())):
        with tempfile.TemporaryDirectory() as work:
            code, message, peak = run(write(work))
            if code != 0:
                print(f"FAILED: the {name} that nothing was done to is refused: {message}")
                return 1
            least = max(least, peak)
    most = 0
    for name, write, pattern in cases:
        if only and name != only:
            continue
        with tempfile.TemporaryDirectory() as work:
            path = write(work)
            code, message, peak = run(path)
            most = max(most, peak - least)
            problem = None
            if code == "time":
                problem = f"still running after {SECONDS} s"
            elif code not in (1, 2):
                problem = f"ended with {code}"
            elif work not in message:
                problem = "the message names no file of the model"
            elif not re.search(pattern, message.replace(work, ""), re.S):
                problem = f"the message does not match {pattern}"
            elif peak > least + MEMORY:
                problem = f"took {peak >> 20} MB, where a good model takes {least >> 20}"
            if only:
                print(message)
            if problem:
                failed += 1
                print(f"FAILED: {name}: {problem}\n    {message.strip().replace(work, '…')[:400]}")
    print(f"{len(cases)} broken models, {failed} not refused as they should be; at most {max(most, 0) >> 20} MB more than a good one")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
