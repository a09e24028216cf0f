#!/usr/bin/env python3
"""Every promise of equal bits that a user reads has its condition beside it: the words of docs/bits.md, or a link to it.

  check-claims.py SOURCE-TREE

A promise is a paragraph that speaks of equal bits and of what may change meanwhile: threads, ranks, kills and resumes.
Looked at are the README, the guides, the public headers, the texts of the command and of the packages."""
import pathlib, re, sys

tree = pathlib.Path(sys.argv[1])
BITS = re.compile(r"bit-identical|same bits|to the bit|bit for bit|same final weights|same state_hash", re.I)
CHANGE = re.compile(r"\branks?\b|threads|process|\bkill|resum|restart|interrupt|continues|gr(o|e)w", re.I)
CONDITION = re.compile(r"bits\.md|same instruction level", re.I)
# These speak of bits and promise nothing about runs: limits of oneDNN, versions of files, an option that gives bits up,
# sums of a program's own numbers.
NO_PROMISE = re.compile(r"oneDNN's instruction limit|tests/golden/checkpoints|run\.allow_new_bits|another number of")



def paragraphs(path, text):
    """Pairs of line and text: paragraphs and list items of prose, comments of headers, strings of C."""
    if path.suffix in (".c", ".h"):
        pattern = r"/\*.*?\*/" if path.suffix == ".h" else r'(?:"(?:[^"\\]|\\.)*"\s*)+'
        for m in re.finditer(pattern, text, re.S):
            yield text.count("\n", 0, m.start()) + 1, re.sub(r'"\s*"', "", m.group())
        return
    fenced = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", "", m.group()), text, flags=re.S | re.M)
    for m in re.finditer(r"(?:^(?!\s*$).*\n?)(?:^(?!\s*$|\s*[-*|] | *\.\n).*\n?)*", fenced, re.M):
        yield text.count("\n", 0, m.start()) + 1, m.group()


files = [tree / "README.md", tree / "packaging/debian/control"]
for pattern in ("docs/*.md", "docs/howto/*.md", "docs/tutorial/*.md", "docs/reference/*.md", "include/anneal/*.h",
                "src/cli/*/*.c", "examples/*/README.md"):
    files += sorted(tree.glob(pattern))
bare = []
for path in files:
    if path == tree / "docs/bits.md":
        continue
    for line, text in paragraphs(path, path.read_text()):
        text = " ".join(text.split())
        if BITS.search(text) and CHANGE.search(text) and not CONDITION.search(text) and not NO_PROMISE.search(text):
            bare.append(f"{path.relative_to(tree)}:{line}: {text[:150]}")
print("\n".join(bare))
if bare:
    sys.exit(f"{len(bare)} promises of equal bits without their condition: name it, or link docs/bits.md")
