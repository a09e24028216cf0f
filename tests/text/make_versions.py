#!/usr/bin/env python3
"""Makes src/text/versions.def: where the package `tokenizers` takes a character for something else than utf8proc does, because its tables are of other versions of Unicode.

usage: tests/text/make_versions.py >src/text/versions.def

Asks the package itself about each character, so that nobody has to know which of its parts has which version. Run by hand, with utf8proc 2.8 or later.
"""
import ctypes, os, sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Regex, __version__, normalizers, pre_tokenizers

lib, libc = ctypes.CDLL("libutf8proc.so.2"), ctypes.CDLL(None)
lib.utf8proc_category.argtypes = lib.utf8proc_tolower.argtypes = [ctypes.c_int32]
lib.utf8proc_map.argtypes = [ctypes.c_char_p, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int]
lib.utf8proc_map.restype = ctypes.c_ssize_t
lib.utf8proc_unicode_version.restype = ctypes.c_char_p
libc.free.argtypes = [ctypes.c_void_p]
STABLE, COMPAT, DECOMPOSE = 1 << 1, 1 << 2, 1 << 4
LETTERS, NONSPACING, MARKS = range(1, 6), range(6, 7), range(6, 9)
NUMBERS, PUNCTUATION, OTHER = range(9, 12), range(12, 19), range(26, 30)


def form(text, options):
    found = ctypes.c_void_p()
    length = lib.utf8proc_map(text.encode(), len(text.encode()), ctypes.byref(found), options | STABLE | DECOMPOSE)
    result = ctypes.string_at(found, length).decode()
    libc.free(found)
    return result


nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
letter, number = (pre_tokenizers.Split(Regex(p), "isolated") for p in (r"\p{L}", r"\p{N}"))
bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
clean = normalizers.BertNormalizer(**{**bert, "clean_text": True})
accents = normalizers.BertNormalizer(**{**bert, "strip_accents": True})
marks, words = normalizers.StripAccents(), pre_tokenizers.BertPreTokenizer()
flags, lower, small = {}, {}, normalizers.Lowercase()
for point in range(0x80, 0x110000):
    if 0xD800 <= point < 0xE000 or point == 0xFFFD:
        continue
    c, category, found = chr(point), lib.utf8proc_category(point), []
    order = "a\u0345" + c + "\u0334"  # marks of a high and a low class
    if nfd.normalize_str(order) != form(order, 0) or nfd.normalize_str(c) != form(c, 0) or nfkd.normalize_str(c) != form(c, COMPAT):
        found.append("PLAIN")
    apart = lambda step, text: len(step.pre_tokenize_str(text)) == 3
    for name, has, kinds in (
        ("LETTER", apart(letter, f".{c}."), LETTERS),
        ("NUMBER", apart(number, f".{c}."), NUMBERS),
        ("NONSPACING", accents.normalize_str(f"a{c}b") == "ab", NONSPACING),
        ("MARK", marks.normalize_str(f"a{c}") == "a", MARKS),
        ("OTHER", clean.normalize_str(f"a{c}b") == "ab", OTHER),
        ("PUNCTUATION", apart(words, f"a{c}b"), PUNCTUATION),
    ):
        if has != (category in kinds):
            found.append(name if has else "NOT_" + name)
    if point in (0x11930, 0x11935):
        found.append("PLAIN")  # the parts of U+11938, so that they are not composed
    if point != 0x130 and small.normalize_str(c) != chr(lib.utf8proc_tolower(point)):  # which has two
        lower[point] = ord(small.normalize_str(c))
    if found:
        flags[point] = " | ".join(found)
print("/* Characters that the package `tokenizers` takes for something else than utf8proc does, as its tables are of other versions of Unicode. Made by")
print(f" * tests/text/make_versions.py with version {__version__} of the package and Unicode {lib.utf8proc_unicode_version().decode()} of utf8proc. */")
begin = None
for point in sorted(flags):
    if begin is None:
        begin = point
    if flags.get(point + 1) != flags[point]:
        print(f"RANGE(0x{begin:04x}, 0x{point:04x}, {flags[point]})")
        begin = None
for point in sorted(lower):
    if begin is None:
        begin = point
    if lower.get(point + 1) != lower[point] + 1:
        print(f"LOWER(0x{begin:04x}, 0x{point:04x}, 0x{lower[begin]:04x})")
        begin = None
