"""Golden files as they lie in data/: the packed cases of a family (case.py) one after another, behind one line."""

MAGIC = b"anneal golden 2\n"
SIZES = {"f64": 8, "i32": 4, "i64": 8}


def size_of(line):
    """The bytes of the array that a line of a header announces."""
    words = line.split()
    size = SIZES[words[2]]
    for dimension in words[4:]:
        size *= int(dimension)
    return size


def read(file):
    """The packed cases of a file by name, in their order; none if there is no such file."""
    cases = {}
    if not file.exists():
        return cases
    content = file.read_bytes()
    assert content.startswith(MAGIC), f"{file} is no golden file"
    at = len(MAGIC)
    while at < len(content):
        begin, end = at, content.index(b"\nend\n", at) + len(b"\nend\n")
        first, *lines = content[begin:end].decode().splitlines()[:-1]
        word, name, graph_bytes = first.split()
        assert word == "case", f"{file}: no case begins with {first!r}"
        at = end + int(graph_bytes) + sum(map(size_of, lines))
        cases[name] = content[begin:at]
    assert at == len(content), f"{file} ends too early"
    return cases


def write(file, cases):
    """`cases`: packed ones, in the order in which they are to stand."""
    file.write_bytes(MAGIC + b"".join(cases))
