#!/usr/bin/env python3
"""Small files that become large: each is read, or refused by a message that names the limit, in memory and time that fit the file.

    expansions.py SOURCE-TREE BUILD-FOLDER [NAME]

Every case writes its files into an empty folder and says how the command must end, which words it must print, and how much more memory than a small run it
may take. SECONDS is only a net below: what took the square of a size took minutes. With NAME, only that case is run, and what it takes and says is shown.
"""
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import zlib

tree, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
only = sys.argv[3] if len(sys.argv) > 3 else None
command = [*os.environ.get("ANNEAL_RUN", "").split(), os.path.join(build, "bin/anneal")]
SECONDS = 60
MB = 1 << 20
SANITIZED = "ANNEAL_SANITIZED" in os.environ  # which has memory of its own around everything

cases = []  # name, exit code, pattern, memory in bytes, function that writes files and gives the arguments


def case(name, code, pattern, memory):
    def add(write):
        cases.append((name, code, pattern, memory, write))
        return write

    return add


def put(name, content):
    with open(name, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def train(data, *settings):
    put("c.yaml", f"run: {{dir: run, steps: 1}}\nmodel: {{type: mlp, hidden: [4]}}\ndata: {{train: {data}}}\nbatch: {{global: 2}}\ntrain: {{precision: f32}}\n")
    return ["train", "c.yaml", *[word for setting in settings for word in ("--set", setting)]]


# Tables


@case("csv: a million columns", 0, "done, after 1 step", 512 * MB)
def wide():
    columns = 10**6
    header = ",".join(f"c{i}" for i in range(columns))
    rows = [",".join("01"[(i + row) % 2] for i in range(columns)) for row in range(3)]
    put("wide.csv", "\n".join([header, *rows]) + "\n")
    return train("{type: csv, path: wide.csv}")


@case("csv: a quote that is never closed", 1, r"open.csv: line 3, column 1: '3,4.5,6.*' has an opening quote, and no closing one in the 16 MiB", 192 * MB)
def unclosed():
    put("open.csv", 'a,b\n1,2\n"3,4\n' + "5,6\n" * (24 * MB // 4))
    return train("{type: csv, path: open.csv}")


@case("csv: a quoted cell of 32 MB", 1, r"long.csv: line 3, column 1: .*16 MiB", 192 * MB)
def long_cell():
    put("long.csv", 'a,b\n1,2\n"' + "x" * (32 * MB) + '",4\n' + "5,6\n" * 3)
    return train("{type: csv, path: long.csv}")


@case("csv: a header of 32 MB", 1, r"long.csv: line 1, column 1: .*16 MiB", 192 * MB)
def long_header():
    put("long.csv", "x" * (32 * MB) + ",b\n" + "5,6\n" * 3)
    return train("{type: csv, path: long.csv}")


@case("csv: a quoted cell of line ends", 1, r"lines.csv: line 2, column 1: .*is not a number", 96 * MB)
def quoted_lines():
    put("lines.csv", 'a,b\n"' + "\n" * (15 * MB) + '",2\n' + "3,4\n" * 3)
    return train("{type: csv, path: lines.csv}")


@case("csv: empty lines", 0, "done, after 1 step", 96 * MB)
def empty_lines():
    put("lines.csv", "a,b\n1,2\n" + "\n" * (32 * MB) + "3,4\n")
    return train("{type: csv, path: lines.csv}")


@case("init: a quote that is never closed", 2, r"open.csv: line 3, column 1: .*quote", 192 * MB)
def unclosed_init():
    put("open.csv", 'a,b\n1,2\n"3,4\n' + "5,6\n" * (16 * MB // 4))
    return ["init", "open.csv"]


# Arrays


def npy(shape, size=0, order=False):
    text = f"{{'descr': '<f4', 'fortran_order': {order}, 'shape': {shape}, }}"
    text = text + " " * (117 - len(text)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + bytes(size)


def member(name, packed, plain, check, at):
    name = name.encode()
    local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 8, 0, 0, check, len(packed), plain, len(name), 0) + name + packed
    entry = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 8, 0, 0, check, len(packed), plain, len(name), 0, 0, 0, 0, 0, at) + name
    return local, entry


def npz(path, members):
    """Members are (name, bytes to deflate, the size that the directory claims or None)."""
    locals_, entries, at = b"", b"", 0
    for name, plain, claimed in members:
        deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = deflater.compress(plain) + deflater.flush()
        local, entry = member(name, packed, len(plain) if claimed is None else claimed, zlib.crc32(plain), at)
        locals_ += local
        entries += entry
        at += len(local)
    put(path, locals_ + entries + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(members), len(members), len(entries), at, 0))


@case("npz: one copy of an array", 0, "done, after 1 step", 200 * MB)
def one_copy():
    rows = 2 * MB
    npz("a.npz", [("x.npy", npy((rows, 16), 128 * MB), None), ("y.npy", npy((rows,), 4 * rows), None)])
    return train("{type: npy, path: a.npz}")


@case("npz: more than its shape", 1, r"a.npz: byte .*header announces 8 numbers", 64 * MB)
def surplus():
    npz("a.npz", [("x.npy", npy((2, 4), 256 * MB), None), ("y.npy", npy((2,), 8), None)])
    return train("{type: npy, path: a.npz}")


@case("npz: more than memory", 1, r"a.npz: .*it needs .* TiB of memory, and", 64 * MB)
def beyond_memory():
    """A directory of ZIP64, and compressed data that is a hole in the file from the header on."""
    numbers = 2**40
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = deflater.compress(npy((numbers // 4, 4))) + deflater.flush(zlib.Z_FULL_FLUSH)
    plain, size = 128 + 4 * numbers, 4 * numbers // 1000
    name = b"x.npy"
    extra = struct.pack("<HHQQ", 1, 16, plain, size)
    local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, 8, 0, 0, 0, 2**32 - 1, 2**32 - 1, len(name), len(extra)) + name + extra
    entry = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0, 8, 0, 0, 0, 2**32 - 1, 2**32 - 1, len(name), len(extra), 0, 0, 0, 0, 0) + name + extra
    at = len(local) + size
    large = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, 1, 1, len(entry), at)
    locator = struct.pack("<IIQI", 0x07064B50, 0, at + len(entry), 1)
    with open("a.npz", "wb") as file:
        file.write(local + packed)
        file.seek(at)
        file.write(entry + large + locator + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 1, 1, len(entry), 2**32 - 1, 0))
    return train("{type: npy, path: a.npz}")


@case("npz: one copy of an array in Fortran order", 0, "done, after 1 step", 200 * MB)
def fortran():
    rows = 2 * MB
    npz("a.npz", [("x.npy", npy((rows, 16), 128 * MB, True), None), ("y.npy", npy((rows,), 4 * rows), None)])
    return train("{type: npy, path: a.npz}")


# Pictures


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(rows, *others):
    """A grey picture of 8 x 8, whose compressed rows are these bytes, with other chunks before them."""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)) + b"".join(others) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


ROWS = bytes(8 * 9)


def pictures(file):
    """Two classes of two pictures; one of them is this file."""
    for folder in "ab":
        os.makedirs("pictures/" + folder)
        for i in range(2):
            put(f"pictures/{folder}/{i}.png", file if folder + str(i) == "b1" else png(ROWS))
    return train("{type: images, path: pictures}", "batch.global=4")


@case("png: 128 MB behind the last row", 1, r"pictures/b/1.png: byte .*goes on for more than 65536 bytes behind the picture's last row", 64 * MB)
def surplus_rows():
    return pictures(png(ROWS + bytes(128 * MB)))


@case("png: a profile of 64 MB", 0, "done, after 1 step", 64 * MB)
def profile():
    return pictures(png(ROWS, chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(64 * MB), 9))))


@case("png: a text of 64 MB", 0, "done, after 1 step", 64 * MB)
def text_chunk():
    return pictures(png(ROWS, chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(64 * MB), 9))))


# Models and their names


def safetensors(tensors):
    header = json.dumps({name: {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]} for i, name in enumerate(tensors)}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(8 * len(tensors))


@case("model.layers: 2000000000", 2, r"c.yaml:2:\d+: model.layers is '2000000000'; it takes a whole number from 1 to 4096", 64 * MB)
def layers():
    put("t.txt", "some text " * 1000)
    put("c.yaml", "run: {dir: run, steps: 1}\nmodel: {type: gpt2, layers: 2000000000, heads: 2, width: 16, context: 16}\ndata: {train: {type: text, path: t.txt}}\n")
    return ["train", "c.yaml"]


@case("inspect: a name that a terminal obeys", 0, r"(?s)^[^\x00-\x09\x0b-\x1f\x7f]*a\\x1b\[2Jb\\x07\\xc2\\x9b1m[^\x00-\x09\x0b-\x1f\x7f]*$", 64 * MB)
def obeyed():
    put("model.safetensors", safetensors(["a\x1b[2Jb\x07\u009b1m", "plain.weight"]))
    return ["inspect", "model.safetensors"]


@case("inspect: a name of 4 MB beside 1,000 others", 0, r"plain.999", 64 * MB)
def long_name():
    put("model.safetensors", safetensors(["x" * (4 * MB), *[f"plain.{i}" for i in range(1000)]]))
    return ["inspect", "model.safetensors"]


def cache(links):
    """A model of two files as Hugging Face's cache holds it; `links` are where the files of snapshots lead to."""
    root = "models--a--b"
    os.makedirs(f"{root}/blobs")
    os.makedirs(f"{root}/snapshots/0123")
    for i in range(2):
        put(f"{root}/blobs/{i}", safetensors([f"tensor.{i}"]))
        os.symlink(links[i], f"{root}/snapshots/0123/model-{i + 1}.safetensors")
    put(f"{root}/blobs/2", json.dumps({"weight_map": {f"tensor.{i}": f"model-{i + 1}.safetensors" for i in range(2)}}))
    os.symlink("../../blobs/2", f"{root}/snapshots/0123/model.safetensors.index.json")
    put("outside", safetensors(["tensor.1"]))
    return ["inspect", f"{root}/snapshots/0123"]


@case("cache: links to blobs", 0, r"tensor.0 .*tensor.1", 64 * MB)
def cached():
    return cache(["../../blobs/0", "../../blobs/1"])


for number, target in enumerate(["../../../outside", "../../blobs/../../outside", "../../blobs/..", "../../blobs/missing", os.path.abspath(__file__)]):
    case(f"cache: a link to {target if number < 4 else 'a file of the system'}", 1, r"model-2.safetensors: cannot be opened: it is a link", 64 * MB)(
        lambda target=target: cache(["../../blobs/0", target])
    )


# Tokenizers


def tokenizer(normalizers=(), decoder=None):
    """A byte-level one of published form, with other normalizers."""
    made = json.load(open(os.path.join(tree, "tests/golden/tokenizers/gpt2.json")))
    made["normalizer"] = {"type": "Sequence", "normalizers": list(normalizers)} if normalizers else None
    made["added_tokens"] = []
    if decoder:
        made["decoder"] = decoder
    put("tokenizer.json", json.dumps(made))
    return ["tokenize", "tokenizer.json", "text.txt", "-o", "tokens.bin", "--threads", "1", "--end", "none"]


def replace(pattern, content):
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


@case("normalizers: a letter is doubled 24 times", 1, r"normalizer 13 of the tokenizer, Replace, makes the text too long: a text can become 32 times", 64 * MB)
def doubled():
    put("text.txt", "a")
    return tokenizer([replace("a", "aa")] * 24)


@case("normalizers: a letter becomes 4 KB", 1, r"normalizer 1 of the tokenizer, Replace, makes the text too long", 64 * MB)
def replaced():
    put("text.txt", "a" * 40000)
    return tokenizer([replace("a", "b" * 4096)])


@case("normalizers: a beginning of 1 MB", 1, r"normalizer 1 of the tokenizer, Prepend, makes the text too long", 64 * MB)
def prepended():
    put("text.txt", "a" * 100)
    return tokenizer([{"type": "Prepend", "prepend": "b" * MB}])


@case("normalizers: too many", 2, r"tokenizer.json.*there are more than 256 normalizers", 64 * MB)
def many():
    put("text.txt", "a" * 100)
    return tokenizer([{"type": "Lowercase"}] * 1000)


@case("decoder: a letter becomes 1 MB", 2, r"tokenizer.json.*a decoder replaces 1 bytes by 1048576", 64 * MB)
def decoded():
    put("text.txt", "a" * 100)
    return tokenizer(decoder=replace("a", "b" * MB))


@case("WordPiece: words of any length", 2, r"max_input_chars_per_word is 1000000000, but can be at most 1000", 64 * MB)
def wordpiece():
    put("text.txt", "a" * (20 * MB))
    made = json.load(open(os.path.join(tree, "tests/golden/tokenizers/bert.json")))
    made["model"]["max_input_chars_per_word"] = 10**9
    put("tokenizer.json", json.dumps(made))
    return ["tokenize", "tokenizer.json", "text.txt", "-o", "tokens.bin", "--threads", "1", "--end", "none"]


@case("a word of 20 MB", 0, r"", 1024 * MB)
def word():
    put("text.txt", "a" * (20 * MB))
    return tokenizer()


def run(arguments):
    """exit code (negative: a signal), what was said, peak memory in bytes, seconds of a core"""
    with open("out", "wb+") as out:
        process = subprocess.Popen([*command, *arguments], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        try:
            signal.alarm(SECONDS)
            _, status, usage = os.wait4(process.pid, 0)
            signal.alarm(0)
        except TimeoutError:
            process.kill()
            _, status, usage = os.wait4(process.pid, 0)
            return "time", "", usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime
        out.seek(0)
        return os.waitstatus_to_exitcode(status), out.read().decode(errors="replace"), usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


def written(write):
    """The arguments. Files are written by another process: the memory of this one counts as that of its children."""
    process = os.fork()
    if process == 0:
        put("arguments", json.dumps(write()))
        os._exit(0)
    if os.waitpid(process, 0)[1] != 0:
        raise RuntimeError("the files of a case could not be written")
    return json.load(open("arguments"))


def measure(write):
    """The same, in a folder of its own."""
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        result = run(written(write))
        os.chdir(tree)
        return result


def small():
    put("small.csv", "a,b\n1,2\n3,4\n")
    return train("{type: csv, path: small.csv}")


def problem_of(result, least, code, pattern, memory):
    ended, message, peak, _ = result
    if ended == "time":
        return f"still running after {SECONDS} s"
    if ended != code:
        return f"ended with {ended}, not {code}"
    if not re.search(pattern, message if "(?s)" in pattern else " ".join(message.split())):
        return f"the message does not match {pattern}"
    if peak > least + memory and not SANITIZED:
        return f"took {peak - least >> 20} MB more than a small run; {memory >> 20} are allowed"
    return None


def main():
    def ring(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    os.environ["OMP_NUM_THREADS"] = "1"
    least = measure(small)[2]
    failed = 0
    for name, code, pattern, memory, write in cases:
        if only and name != only and only != "all":
            continue
        result = measure(write)
        if only:
            print(f"{name}: {(result[2] - least) / MB:.0f} MB more than a small run, {result[3]:.2f} s\n    {' '.join(result[1].split())[-300:]}")
        problem = problem_of(result, least, code, pattern, memory)
        if problem:
            failed += 1
            print(f"FAILED: {name}: {problem}\n    {' '.join(result[1].split())[:600]}")
    print(f"{len(cases)} files that become large, {failed} not handled as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
