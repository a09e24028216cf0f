#!/usr/bin/env python3
"""Compares tokenizers with the package `tokenizers`, by hand: ids of many kinds of text, and speed.

usage: tests/text/compare.py LIBANNEAL.SO TOKENIZER.JSON [--rounds N] [--speed] [--text FILE]...

LIBANNEAL.SO is build/release/lib/libanneal.so. Random texts have a fixed seed; --rounds 20 makes 10^6 random strings and 10^7 random bytes. Prints
one line for each kind of text, with the first difference if there is one, and ends with 1 if there is any. --speed measures both in turns, one thread each.
"""
import argparse, ctypes, glob, os, random, sys, time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers

arguments = argparse.ArgumentParser()
arguments.add_argument("library")
arguments.add_argument("tokenizer")
arguments.add_argument("--rounds", type=int, default=1)
arguments.add_argument("--speed", action="store_true")
arguments.add_argument("--text", action="append", default=[])
given = arguments.parse_args()

lib = ctypes.CDLL(given.library)
pointer, size = ctypes.c_void_p, ctypes.c_size_t
lib.an_last_error.restype = ctypes.c_char_p
lib.an_last_error.argtypes = [pointer]
lib.an_context_create.argtypes = [pointer, pointer]
lib.an_tokenizer_open.argtypes = [pointer, pointer, ctypes.c_char_p]
lib.an_encoder_create.argtypes = [pointer, pointer]
lib.an_encoder_run.argtypes = [pointer, ctypes.c_char_p, size, pointer, pointer, pointer]
lib.an_tokenizer_decode.argtypes = [pointer, pointer, ctypes.c_int64, ctypes.c_bool, ctypes.c_char_p, size, pointer]
context, ours, encoder = pointer(), pointer(), pointer()


def need(status, message):
    if status:
        sys.exit(message)


need(lib.an_context_create(ctypes.byref(context), None), "no context")
begin = time.time()
if lib.an_tokenizer_open(ctypes.byref(ours), context, given.tokenizer.encode()):
    sys.exit(lib.an_last_error(context).decode())
loaded = time.time() - begin
need(lib.an_encoder_create(ctypes.byref(encoder), ours), "no encoder")
begin = time.time()
theirs = tokenizers.Tokenizer.from_file(given.tokenizer)
print(f"{given.tokenizer}: read in {loaded:.2f} s, by tokenizers {tokenizers.__version__} in {time.time() - begin:.2f} s")
theirs.no_truncation()
theirs.no_padding()
tokens, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_int64()


def encode(text):
    if lib.an_encoder_run(encoder, text, len(text), None, ctypes.byref(tokens), ctypes.byref(count)):
        sys.exit(lib.an_last_error(None).decode())
    return tokens[: count.value]


def decode(ids):
    length = size()
    array = (ctypes.c_int32 * max(1, len(ids)))(*ids)
    lib.an_tokenizer_decode(ours, array, len(ids), True, None, 0, ctypes.byref(length))
    text = ctypes.create_string_buffer(length.value + 1)
    lib.an_tokenizer_decode(ours, array, len(ids), True, text, length.value, ctypes.byref(length))
    return text.raw[: length.value]


def hexadecimal(text):
    return " ".join(f"{ord(c):04X}" for c in text[:60])


failures = 0


def compare(name, texts):
    global failures
    different, first, total, tried, round_trips = 0, None, 0, 0, 0
    for begin in range(0, len(texts), 1000):
        part = texts[begin : begin + 1000]
        for text, their in zip(part, theirs.encode_batch(part)):
            mine = encode(text.encode("utf-8"))
            tried += 1
            total += len(mine)
            if mine != their.ids:
                different += 1
                if first is None or len(text) < len(first[0]):
                    first = (text, mine, their.ids)
            round_trips += decode(mine) == text.encode("utf-8")
    print(f"  {name}: {tried} texts, {total} tokens, {different} differ, {round_trips} decode to themselves", flush=True)
    if first:
        failures += 1
        print(f"    {first[0][:60]!r} = {hexadecimal(first[0])}\n    ours   {first[1][:40]}\n    theirs {first[2][:40]}")


def random_texts(kind, number):
    random.seed(f"{kind} {number}")
    special = [t.content for t in theirs.get_added_tokens_decoder().values()][:50]
    alphabets = {
        "ascii": [chr(c) for c in range(128)],
        "any character": None,
        "spaces": list(" \t\n\r\v\f\u0085\u00a0\u1680\u180e\u2003\u2028\u202f\u3000\ufeffaZ1'.") + ["  ", "\n\n"],
        "contractions": list(" 'sStTdDmMlLrReEvV\u017f\u2019abc1") + ["'s", "'re", "'LL", "'Ve", " '", "''"],
        "numbers": list("0123456789\u0660\u00b2\u2167\u00bd\u4e00\uff11 .,-+a'"),
        "marks": [chr(c) for c in range(0x300, 0x370)] + list("aeiouAEIOU\u00e9\u212b\uac00\u1100\u1161\u11a8\u0f73\u0344"),
        "words": list("etaoinshrdlu") + [" ", " ", "  ", ".", ",", "\n"],
        "special tokens": special + [" ", "a", "<", "|", ">", "  ", "\n", "b"],
    }
    alphabet = alphabets[kind]
    if alphabet:
        return ["".join(random.choices(alphabet, k=random.randrange(1, 24))) for _ in range(6250)]
    ranges = [(0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x10FFFF)]
    return ["".join(chr(random.randint(*random.choice(ranges))) for _ in range(random.randrange(1, 24))) for _ in range(6250)]


here = os.path.dirname(os.path.abspath(__file__))
tree = os.path.dirname(os.path.dirname(here))
sources = sorted(glob.glob(tree + "/src/*/*.[ch]") + glob.glob(tree + "/tools/*") + glob.glob(tree + "/docs/*.md"))
files = [open(f, encoding="utf-8").read() for f in sources if os.path.isfile(f)]
compare("source code of this tree", files)
for name in given.text:
    text = open(name, encoding="utf-8", newline="").read()
    compare(name, [text])
    compare(name + ", lines", text.splitlines(keepends=True))
compare("every character", [f"a{chr(c)}b{chr(c)} {chr(c)}" for c in range(0x110000) if not 0xD800 <= c < 0xE000])
for kind in ["ascii", "any character", "spaces", "contractions", "numbers", "marks", "words", "special tokens"]:
    texts = [t for number in range(given.rounds) for t in random_texts(kind, number)]
    compare("random " + kind, texts)
for number in range(given.rounds):
    random.seed(number)
    raw = random.randbytes(500000)
    mine = encode(raw)
    if mine != theirs.encode(raw.decode("utf-8", "replace")).ids:
        failures += 1
        print(f"  random bytes {number}: differ")
print(f"  random bytes: {500000 * given.rounds}")

if given.speed:
    for name in given.text:
        text = open(name, encoding="utf-8", newline="").read()
        raw = text.encode("utf-8")
        lines = [line.encode("utf-8") for line in text.splitlines(keepends=True)]
        for what, a, b in [
            ("whole", lambda: [lib.an_encoder_run(encoder, raw, len(raw), None, ctypes.byref(tokens), ctypes.byref(count))], lambda: [theirs.encode(text)]),
        ]:
            times = [[], []]
            for turn in range(7):
                for side, call in enumerate((a, b)):
                    begin = time.time()
                    call()
                    times[side].append(time.time() - begin)
            best = [sorted(t)[len(t) // 2] for t in times]
            print(f"  {name}, {what}: {len(raw) / best[0] / 1e6:.1f} MB/s, tokenizers {len(raw) / best[1] / 1e6:.1f} MB/s, ratio {best[1] / best[0]:.2f}")
sys.exit(1 if failures else 0)
