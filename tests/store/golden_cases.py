"""The cases of tests/golden/data, for checks of exports: name, graph and arrays of each. Cases without a graph are left out."""
import pathlib
import sys

import numpy

golden = pathlib.Path(__file__).resolve().parent.parent / "golden"
sys.dont_write_bytecode = True
sys.path.insert(0, str(golden))
import pack

STORED = {"f64": "<f8", "i32": "<i4", "i64": "<i8"}


def read():
    """Yields name, graph and {(role, name): array}."""
    for file in sorted((golden / "data").glob("*.golden")):
        for name, content in pack.read(file).items():
            at = content.index(b"\nend\n") + len(b"\nend\n")
            first, *lines = content[:at].decode().splitlines()[:-1]
            graph_bytes = int(first.split()[2])
            graph, arrays = content[at : at + graph_bytes].decode(), {}
            at += graph_bytes
            for line in lines:
                role, array_name, dtype, _, *dims = line.split(" ")
                shape = [int(d) for d in dims]
                array = numpy.frombuffer(content, STORED[dtype], int(numpy.prod(shape, dtype=numpy.int64)), at)
                arrays[role, array_name] = array.reshape(shape).copy()
                at += array.nbytes
            if graph:
                yield name, graph, arrays
