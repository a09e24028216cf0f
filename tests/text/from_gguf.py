#!/usr/bin/env python3
"""Compares a GGUF vocabulary with what others make of it, by hand.

usage: tests/text/from_gguf.py LIBANNEAL.SO FILE.gguf [TOKENIZER.json]

Encodes the texts of FILE.gguf.inp, if there is one, with the keys of the file, and compares with FILE.gguf.out, which llama.cpp's tests have. Writes a
TOKENIZER.json with the same vocabulary, for tests/text/compare.py. Needs the package gguf.
"""
import ctypes, json, os, sys
import gguf

library, path = sys.argv[1], sys.argv[2]
fields = gguf.GGUFReader(path).fields


def key(name, default=None):
    field = fields.get("tokenizer.ggml." + name)
    return default if field is None else field.contents()


class Parts(ctypes.Structure):
    text, i64, i32 = ctypes.c_char_p, ctypes.c_int64, ctypes.c_int32
    _fields_ = [
        ("size", ctypes.c_size_t), ("model", text), ("pre", text), ("tokens", ctypes.POINTER(text)), ("types", ctypes.POINTER(i32)),
        ("merges", ctypes.POINTER(text)), ("token_count", i64), ("merge_count", i64), ("bos", i32), ("eos", i32), ("unk", i32), ("pad", i32),
        ("add_bos", ctypes.c_bool), ("add_eos", ctypes.c_bool), ("reserved", ctypes.c_uint8 * 6),
    ]  # fmt: skip


lib, pointer = ctypes.CDLL(library), ctypes.c_void_p
lib.an_last_error.restype = ctypes.c_char_p
lib.an_last_error.argtypes = [pointer]
lib.an_encoder_run.argtypes = [pointer, ctypes.c_char_p, ctypes.c_size_t, pointer, pointer, pointer]
lib.an_encoder_create.argtypes = [pointer, pointer]
lib.an_tokenizer_create_parts.argtypes = [pointer, pointer, pointer]
tokens, merges, types = key("tokens"), key("merges", []), key("token_type")
parts = Parts()
lib.an_tokenizer_parts_init(ctypes.byref(parts), ctypes.c_size_t(ctypes.sizeof(parts)))
parts.model, parts.pre = key("model").encode(), key("pre", "gpt-2").encode()
parts.tokens = (ctypes.c_char_p * len(tokens))(*[t.encode() for t in tokens])
parts.types = (ctypes.c_int32 * len(tokens))(*types) if types else None
parts.merges = (ctypes.c_char_p * len(merges))(*[m.encode() for m in merges])
parts.token_count, parts.merge_count = len(tokens), len(merges)
bert = key("model") == "bert"
parts.bos, parts.eos = key("bos_token_id", key("cls_token_id", -1)), key("eos_token_id", -1)
parts.unk, parts.pad = key("unknown_token_id", -1), key("padding_token_id", -1)
if bert:
    parts.bos, parts.eos = key("cls_token_id", parts.bos), key("seperator_token_id", parts.eos)
context, ours, encoder = pointer(), pointer(), pointer()
lib.an_context_create(ctypes.byref(context), None)
if lib.an_tokenizer_create_parts(ctypes.byref(ours), context, ctypes.byref(parts)):
    sys.exit(lib.an_last_error(context).decode())
lib.an_encoder_create(ctypes.byref(encoder), ours)


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("pair", ctypes.c_char_p), ("length", ctypes.c_size_t), ("special", ctypes.c_bool),
                ("parse", ctypes.c_bool), ("reserved", ctypes.c_uint8 * 6)]  # fmt: skip


options = Options()
lib.an_encode_options_init(ctypes.byref(options), ctypes.c_size_t(ctypes.sizeof(options)))
options.special = False
status = 0
if os.path.exists(path + ".inp"):
    texts = open(path + ".inp", "rb").read().split(b"\n__ggml_vocab_test__\n")
    wanted = [[int(i) for i in line.split()] for line in open(path + ".out")]
    different = 0
    for text, ids in zip(texts, wanted):
        result, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_int64()
        if lib.an_encoder_run(encoder, text, len(text), ctypes.byref(options), ctypes.byref(result), ctypes.byref(count)):
            sys.exit(lib.an_last_error(None).decode())
        if result[: count.value] != ids:
            different += 1
            print(f"  {text!r}\n    ours   {result[:count.value]}\n    theirs {ids}")
    print(f"{path}: {len(wanted)} texts, {different} differ")
    status = different > 0
if len(sys.argv) > 3:
    patterns = {
        "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    }
    name = key("pre", "gpt-2")
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": name not in patterns}
    before = [{"type": "Digits", "individual_digits": True}] if name == "smollm" else []
    if name in patterns:
        before = [{"type": "Split", "pattern": {"Regex": patterns[name]}, "behavior": "Isolated", "invert": False}]
    written = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                          "special": types[i] == 3} for i, t in enumerate(tokens) if types and types[i] in (3, 4)],
        "normalizer": {"type": "NFC"} if name == "qwen2" else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": before + [level]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": name == "llama-bpe",
                  "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges},
    }  # fmt: skip
    os.makedirs(os.path.dirname(sys.argv[3]) or ".", exist_ok=True)
    json.dump(written, open(sys.argv[3], "w"), ensure_ascii=False)
sys.exit(status)
