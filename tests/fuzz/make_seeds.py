#!/usr/bin/env python3
"""Makes the seeds of the fuzzers of pictures, arrays and JSON lines.

    make_seeds.py CORPUS    (tests/fuzz/corpus: the folders png, npy, jsonl, chat and gguf in it are filled, and pretrained and tokenizer get their small ones)

Those of jpeg are made by make_jpeg_seeds, with libjpeg."""
import io
import json
import pathlib
import struct
import sys
import zipfile
import zlib

corpus = pathlib.Path(sys.argv[1])


def write(folder, name, options, content):
    (corpus / folder).mkdir(parents=True, exist_ok=True)
    (corpus / folder / name).write_bytes(bytes([options]) + content)


# ---- PNG: everything behind the signature ----

def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(kind, depth, channels, interlaced=0, before=b""):
    width, height = 5, 4
    passes = [(0, 0, 1, 1)] if not interlaced else [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    rows, number = b"", 0
    for x, y, dx, dy in passes:
        across = len(range(x, width, dx))
        for _ in range(y, height, dy):
            if across:
                number += 1
                rows += bytes([number % 5]) + bytes((number * 37 + i * 11) % 251 for i in range((across * channels * depth + 7) // 8))
    header = struct.pack(">2I5B", width, height, depth, kind, 0, 0, interlaced)
    return chunk(b"IHDR", header) + before + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


palette = chunk(b"PLTE", bytes(range(3 * 16)))
for depth in (1, 2, 4, 8, 16):
    write("png", f"grey{depth}", depth, png(0, depth, 1))
for depth in (8, 16):
    write("png", f"rgb{depth}", 40 + depth, png(2, depth, 3))
    write("png", f"rgb_alpha{depth}", 60 + depth, png(6, depth, 4))
    write("png", f"grey_alpha{depth}", 80 + depth, png(4, depth, 2))
write("png", "palette", 9, png(3, 4, 1, before=palette + chunk(b"tRNS", b"\x10\x80")))
write("png", "interlaced", 77, png(2, 8, 3, interlaced=1))
write("png", "texts", 33, png(0, 8, 1, before=chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"tEXt", b"Author\0nobody") +
                              chunk(b"zTXt", b"Note\0\0" + zlib.compress(b"nothing"))))
write("png", "checksums", 129, png(0, 8, 1))


# ---- arrays ----

def npy(kind, shape, content, fortran=False, version=1):
    header = f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + content


def npz(method, **arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as members:
        for name, content in arrays.items():
            with members.open(name + ".npy", "w", force_zip64=True) as member:
                member.write(content)
    return file.getvalue()


x, y = npy("<f4", (3, 2, 2), struct.pack("<12f", *range(12))), npy("<i2", (3,), struct.pack("<3h", 2, 0, 5))
for kind, width in (("<f2", 2), ("<f8", 8), ("|i1", 1), ("<i4", 4), ("<i8", 8), ("|u1", 1), ("<u2", 2), ("<u4", 4), ("<u8", 8), ("|b1", 1)):
    write("npy", "type_" + kind[1:], width, npy(kind, (4,), bytes([1] + [0] * (width - 1)) * 4))
write("npy", "cube", 4, x)
write("npy", "labels", 1, y)
write("npy", "fortran", 2, npy("<f4", (3, 2), struct.pack("<6f", *range(6)), True))
write("npy", "version2", 16, npy("<f4", (2,), struct.pack("<2f", 1, 2), version=2))
write("npy", "stored", 0, npz(zipfile.ZIP_STORED, x=x, y=y))
w = npy("<f8", (3,), struct.pack("<3d", 1, 0, 2.5))
write("npy", "weights", 64, npz(zipfile.ZIP_STORED, x=x, y=y, w=w))
write("npy", "weights_optional", 192, npz(zipfile.ZIP_STORED, x=x, y=y))
write("npy", "deflated", 8, npz(zipfile.ZIP_DEFLATED, arr_0=x, arr_1=y))

# ---- JSON lines ----

write("jsonl", "plain", 0, b'{"a": 1, "y": 2}\n{"a": 3, "y": 4}\n')
write("jsonl", "named", 7, b'{"a": 1, "b": {"c": [1, 2]}, "y": -1e3}\n\n{"y": 0.5, "b": {"c": [[3], 4]}, "a": true}')
write("jsonl", "classes", 12, b'{"a": 1, "y": 2}\n{"a": 3, "y": 0}\n{"a": 3, "y": -100}\n')
write("jsonl", "names", 4, b'{"a": 1, "y": "dog"}\r\n{"a": 3, "y": "c\\u0061t"}\r\n')
write("jsonl", "more", 32, b'{"a": [1, [2, 3]], "x": 0, "y": null}\n')
write("jsonl", "half", 80, b'{"a": 1, "b": 2}\n{"b": 3, "a": 4}\n{"a": 5, "b": 6}\n')
write("jsonl", "weights", 134, b'{"a": 1, "y": 2, "w": 1}\n{"a": 3, "y": 4, "w": 0.5}\n')
write("jsonl", "weights_optional", 135, b'{"a": 1, "b": {"c": 2}, "y": 2}\n{"a": 3, "b": {"c": 2}, "y": 4}\n')

# ---- data for fine-tuning ----

turns = b'{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "ask"}, {"role": "assistant", "content": "yes"}]}\n'
asked = b'{"messages": [{"role": "user", "content": "ask"}, {"role": "assistant", "content": "<think>\\nso\\n</think>\\n\\nyes <|im_end|>"}]}\n'
for number, name in enumerate(("chatml", "llama3", "mistral", "zephyr", "qwen", "llama31", "qwen3", "none")):
    write("chat", name, number + 32, asked if name in ("mistral", "none") else turns + asked)
write("chat", "plain", 16 + 64, b'{"text": "some text that is longer than a sample"}\n\n{"prompt": "two and two is", "completion": " four", "id": [1, {}]}\n')
write("chat", "half", 128 + 8, asked * 3)
write("chat", "pairs", 32, b' {"prompt": "one", "chosen": " two", "rejected": " three"}\n{"prompt": [{"role": "user", "content": "x"}], "chosen": [{"role": "assistant", "content": "y"}], "rejected": [{"role": "assistant", "content": "z"}]}\n')
write("chat", "pairs_cut", 48, b' {"chosen": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a long answer of many words"}], "rejected": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "z"}]}\n')
write("chat", "template", 0, b"{% for m in messages %}{{ '<|im_start|>' + m['role'] }}<|im_start|>system\nBe kind.<|im_end|>{% endfor %}")

# ---- GGUF ----


def gguf_string(text):
    return struct.pack("<Q", len(text)) + text


def gguf(tensors, keys=(), version=3):
    """Tensors: name, type, dimensions, offset. Keys: name, type, bytes of the value."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for name, kind, value in keys:
        head += gguf_string(name) + struct.pack("<I", kind) + value
    for name, kind, dims, offset in tensors:
        head += gguf_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
    return head


kinds = {"f32": (0, 4), "f16": (1, 8), "q4_0": (2, 32), "q4_1": (3, 32), "q5_0": (6, 32), "q5_1": (7, 32), "q8_0": (8, 32), "q4_k": (12, 256), "q6_k": (14, 256),
         "bf16": (30, 8)}
for name, (kind, columns) in kinds.items():
    write("gguf", name, 64, gguf([(b"w", kind, (columns, 2), 0)]))
keys = [(b"general.alignment", 4, struct.pack("<I", 64)), (b"a", 8, gguf_string(b"text")), (b"b", 9, struct.pack("<IQ3i", 5, 3, 1, 2, 3)),
        (b"c", 9, struct.pack("<IQ", 8, 1) + gguf_string(b"x")), (b"d", 7, b"\1"), (b"e", 12, struct.pack("<d", 0.5))]
write("gguf", "keys", 16, gguf([(b"a", 0, (4,), 0), (b"b", 0, (), 64)], keys, version=2))

# ---- published models: a description without weights ----

number, string = lambda n: struct.pack("<I", n), gguf_string
real = lambda x: struct.pack("<f", x)
keys = [(b"general.architecture", 8, string(b"llama")), (b"llama.block_count", 4, number(1)), (b"llama.context_length", 4, number(8)), (b"llama.embedding_length", 4, number(4)),
        (b"llama.feed_forward_length", 4, number(4)), (b"llama.attention.head_count", 4, number(2)), (b"llama.attention.layer_norm_rms_epsilon", 6, real(1e-5)),
        (b"tokenizer.ggml.eos_token_id", 4, number(1)), (b"general.sampling.temp", 6, real(0.5))]
write("pretrained", "small.gguf", ord("1"), gguf([(b"token_embd.weight", 0, (4, 2), 0)], keys) + bytes(64))

# ---- tokenizers: one small one for every kind of step, whose text comes behind a NUL ----

bpe = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "<s>": 4}, "merges": ["a b"]}
pieces = {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "#", "max_input_chars_per_word": 9, "vocab": {"?": 0, "a": 1, "#b": 2, "[S]": 3}}
byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
split = {"type": "Split", "pattern": {"Regex": r"\s+|\p{L}"}, "behavior": "Isolated", "invert": False}
parts = {
    "bytes": {"pre_tokenizer": byte_level, "decoder": byte_level, "model": bpe},
    "added": {"added_tokens": [{"id": 4, "content": "<s>", "special": True, "lstrip": True, "rstrip": True, "single_word": True, "normalized": False}], "model": bpe},
    "forms": {"normalizer": {"type": "Sequence", "normalizers": [{"type": k} for k in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")]}, "model": bpe},
    "replace": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"}, {"type": "Replace", "pattern": {"String": " "}, "content": "b"}, {"type": "Strip", "strip_left": True, "strip_right": True}]}, "model": bpe},
    "splits": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, {"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}]}, "model": bpe},
    "punctuation": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Punctuation", "behavior": "Removed"}, {"type": "WhitespaceSplit"}]}, "model": bpe},
    "joined": {"pre_tokenizer": {**split, "behavior": "MergedWithNext", "pattern": {"String": "b"}}, "model": bpe},
    "fallback": {"decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "_"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
                 "model": {**bpe, "unk_token": "a", "fuse_unk": True, "byte_fallback": True}},
    "uncased": {"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}, "pre_tokenizer": {"type": "BertPreTokenizer"},
                "decoder": {"type": "WordPiece", "prefix": "#", "cleanup": True}, "model": pieces},
    "template": {"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[S]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                                    "special_tokens": {"[S]": {"id": "[S]", "ids": [3], "tokens": ["[S]"]}}}, "model": pieces},
}
for name, content in parts.items():
    (corpus / "tokenizer").mkdir(parents=True, exist_ok=True)
    text = "a\u0301 ab<s> B.1 \u4e16".encode() + b"\xff"
    (corpus / "tokenizer" / f"small_{name}").write_bytes(json.dumps(content, separators=(",", ":")).encode() + b"\0" + text)
