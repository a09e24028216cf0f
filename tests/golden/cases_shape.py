"""Views and copies: where elements go, and where gradients come back from."""

import torch
import torch.nn.functional as F

from case import Case


def reshape():
    c = Case("reshape.plain")
    x = c.param("x", c.normal(4, 6, 5))
    yield c.weigh(c.op("reshape", [x], lambda x: x.reshape(8, 15), dims=[8, 15]))
    c = Case("reshape.ones")
    x = c.param("x", c.normal(3, 1, 7))
    yield c.weigh(c.op("reshape", [x], lambda x: x.reshape(1, 21, 1, 1), dims=[1, 21, 1, 1]))
    c = Case("reshape.of_slice")  # rows of a slice lie apart, and still make a view
    x = c.param("x", c.normal(6, 8, 5))
    y = c.op("slice", [x], lambda x: x[1:5], axis=0, begin=1, end=5)
    yield c.weigh(c.op("reshape", [y], lambda y: y.reshape(2, 2, 40), dims=[2, 2, 40]))


def transpose():
    for axes in ([1, 0], [2, 0, 1], [0, 2, 1, 3]):
        c = Case("transpose." + "".join(map(str, axes)))
        x = c.param("x", c.normal(*[5, 7, 3, 2][: len(axes)]))
        yield c.weigh(c.op("transpose", [x], lambda x: x.permute(axes), axes=axes))


def slices():
    for axis, begin, end in ((0, 0, 3), (1, 2, 9), (2, 4, 5)):
        c = Case(f"slice.axis_{axis}")
        x = c.param("x", c.normal(5, 9, 6))
        y = c.op("slice", [x], lambda x: x.narrow(axis, begin, end - begin), axis=axis, begin=begin, end=end)
        yield c.weigh(y)
    c = Case("slice.overlapping")  # the gradients of both are added
    x = c.param("x", c.normal(9, 4))
    y = c.op("slice", [x], lambda x: x[:6], axis=0, begin=0, end=6)
    yield c.weigh(y, c.op("slice", [x], lambda x: x[3:], axis=0, begin=3, end=9))


def split():
    for axis, parts in ((0, 2), (1, 3), (2, 5)):
        c = Case(f"split.axis_{axis}")
        x = c.param("x", c.normal(4, 6, 5))
        yield c.weigh(*c.op("split", [x], lambda x: x.chunk(parts, axis), axis=axis))
    c = Case("split.one_unread")
    x = c.param("x", c.normal(3, 12))
    parts = c.op("split", [x], lambda x: x.chunk(3, 1), axis=1)
    yield c.weigh(parts[0], parts[2])


def expand():
    for name, dims, to in (("ones", (3, 1, 5), (3, 4, 5)), ("leading", (5,), (2, 3, 5)), ("both", (1, 6), (4, 3, 6))):
        c = Case(f"expand.{name}")
        x = c.param("x", c.normal(*dims))
        yield c.weigh(c.op("expand", [x], lambda x: x.expand(to), dims=to))


def contiguous():
    c = Case("contiguous.plain")
    x = c.param("x", c.normal(9, 13, 2))
    y = c.op("transpose", [x], lambda x: x.permute(2, 1, 0), axes=[2, 1, 0])
    z = c.op("contiguous", [y], lambda y: y.contiguous())
    yield c.weigh(c.op("reshape", [z], lambda z: z.reshape(26, 9), dims=[26, 9]))


def concat():
    for axis in range(3):
        c = Case(f"concat.axis_{axis}")
        dims = [[3, 4, 5], [3, 4, 5], [3, 4, 5]]
        for part, size in zip(dims, (1, 6, 2)):
            part[axis] = size
        parts = [c.param(name, c.normal(*d)) for name, d in zip("abc", dims)]
        yield c.weigh(c.op("concat", parts, lambda *p: torch.cat(p, axis), axis=axis))
    c = Case("concat.twice")
    x = c.param("x", c.normal(4, 3))
    yield c.weigh(c.op("concat", [x, x], lambda a, b: torch.cat([a, b], 1), axis=1))


def pad():
    for axis, before, after in ((0, 2, 1), (1, 0, 3), (2, 4, 0)):
        c = Case(f"pad.axis_{axis}")
        x = c.param("x", c.normal(3, 5, 4))
        widths = [0, 0] * (2 - axis) + [before, after]
        yield c.weigh(c.op("pad", [x], lambda x: F.pad(x, widths), axis=axis, before=before, after=after))


def gather():
    for axis, dims, dtype in ((0, (7, 4), torch.int64), (1, (3, 8), torch.int32), (2, (2, 3, 9), torch.int64)):
        c = Case(f"gather.axis_{axis}")  # indices repeat, and in all but the last case are fewer than src's rows
        src = [5, 6, 7][: len(dims)] if axis < 2 else [2, 3, 7]
        x = c.param("x", c.normal(*src))
        k = c.input("indices", c.integers(0, src[axis], *dims, dtype=dtype))
        yield c.weigh(c.op("gather", [x, k], lambda x, k: torch.gather(x, axis, k.long()), axis=axis))


FAMILIES = (reshape, transpose, slices, split, expand, contiguous, concat, pad, gather)
