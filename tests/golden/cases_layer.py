"""Products, convolution, pooling, reductions, softmax, norms, embedding, rotary positions."""

import math

import torch
import torch.nn.functional as F

from case import Case

# ---- products and convolution ----


def product():
    def multiply(a, b, transpose_a, transpose_b):
        return (a.transpose(-1, -2) if transpose_a else a) @ (b.transpose(-1, -2) if transpose_b else b)

    neither, first, second, both = (False, False), (True, False), (False, True), (True, True)
    settings = {
        "plain": ((37, 70), (70, 29), (neither, first, second, both)),
        "batch": ((3, 5, 9), (3, 9, 4), (neither, second)),
        "broadcast": ((2, 1, 6, 5), (3, 5, 7), (neither, first, second, both)),
        "weights": ((2, 11, 19), (19, 13), (neither, second)),
        "long": ((4, 1100), (1100, 3), (neither, second)),
        "single": ((1, 1), (1, 1), (neither,)),
    }
    for name, (a_dims, b_dims, transposes) in settings.items():
        for transpose_a, transpose_b in transposes:
            c = Case(f"product.{name}" + "_ta" * transpose_a + "_tb" * transpose_b)
            swap = lambda dims, yes: dims[:-2] + (dims[-1], dims[-2]) if yes else dims
            a = c.param("a", c.normal(*swap(a_dims, transpose_a)))
            b = c.param("b", c.normal(*swap(b_dims, transpose_b), scale=0.3))
            yield c.weigh(c.op("matmul", [a, b], lambda a, b: multiply(a, b, transpose_a, transpose_b),
                               transpose_a=transpose_a, transpose_b=transpose_b))


def convolution():
    settings = {
        "plain": ((2, 3, 9, 8), (5, 3, 3, 3), {}),
        "point": ((2, 7, 5, 3), (4, 7, 1, 1), {}),
        "padding": ((2, 3, 7, 6), (4, 3, 3, 3), {"padding": [1, 1]}),
        "stride": ((1, 2, 11, 10), (3, 2, 3, 3), {"stride": [2, 2], "padding": [1, 1]}),
        "dilation": ((1, 3, 12, 11), (2, 3, 3, 3), {"dilation": [2, 2], "padding": [2, 2]}),
        "groups": ((2, 6, 7, 7), (4, 3, 3, 3), {"groups": 2, "padding": [1, 1]}),
        "depthwise": ((1, 5, 8, 8), (5, 1, 3, 3), {"groups": 5}),
        "oblong": ((2, 2, 13, 9), (3, 2, 5, 2), {"stride": [3, 1], "padding": [2, 0], "dilation": [1, 3]}),
        "whole": ((3, 4, 5, 6), (7, 4, 5, 6), {}),
    }
    for name, (src_dims, weight_dims, options) in settings.items():
        c = Case(f"convolution.{name}")
        src, weights = c.param("src", c.normal(*src_dims)), c.param("weights", c.normal(*weight_dims, scale=0.4))
        given = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1, **options}
        yield c.weigh(c.op("convolution", [src, weights], lambda s, w: F.conv2d(s, w, **given), **given))


# ---- pooling ----


def pooling():
    settings = {
        "plain": ((2, 3, 8, 6), [2, 2], [2, 2], [0, 0]),
        "overlapping": ((1, 3, 9, 10), [3, 3], [2, 2], [1, 1]),
        "oblong": ((2, 2, 7, 11), [3, 2], [1, 3], [1, 0]),
        "rest": ((1, 2, 7, 9), [2, 2], [2, 2], [0, 0]),  # a row and a column that no window reaches
        "global": ((3, 4, 5, 6), [5, 6], [5, 6], [0, 0]),
    }
    for name, (dims, window, stride, padding) in settings.items():
        given = {"window": window, "stride": stride, "padding": padding}
        c = Case(f"max_pool.{name}")
        src = c.param("src", c.normal(*dims))
        yield c.weigh(c.op("max_pool", [src], lambda s: F.max_pool2d(s, window, stride, padding), **given))
        for exclude in (False, True):
            if exclude and padding == [0, 0]:
                continue
            c = Case(f"average_pool.{name}" + "_exclude" * exclude)
            src = c.param("src", c.normal(*dims))
            yield c.weigh(c.op("average_pool", [src],
                               lambda s: F.avg_pool2d(s, window, stride, padding, count_include_pad=not exclude),
                               exclude_padding=exclude, **given))
    c = Case("max_pool.ties")  # the first of equal elements gets the gradient
    src = c.param("src", c.integers(-2, 2, 2, 2, 8, 8).double())
    given = {"window": [3, 3], "stride": [2, 2], "padding": [1, 1]}
    yield c.weigh(c.op("max_pool", [src], lambda s: F.max_pool2d(s, 3, 2, 1), **given))


# ---- reductions and softmax ----


def reductions():
    functions = {"reduce_sum": torch.sum, "reduce_mean": torch.mean, "reduce_max": torch.amax}
    for name, function in functions.items():
        for axes, keep in (([0], False), ([1], True), ([2], False), ([0, 2], False), ([0, 1, 2], False)):
            c = Case(f"{name}.axes_{''.join(map(str, axes))}" + "_keep" * keep)
            x = c.param("x", c.normal(4, 5, 21))
            y = c.op(name, [x], lambda x: function(x, dim=axes, keepdim=keep), axes=axes, keep=keep)
            yield c.weigh(y)
    for name in ("reduce_sum", "reduce_mean"):  # more than one block of a long row
        c = Case(f"{name}.long")
        x = c.param("x", c.normal(2, 2100))
        yield c.weigh(c.op(name, [x], lambda x: functions[name](x, dim=1), axes=[1]))
    c = Case("reduce_max.ties")  # elements that are the maximum share its gradient
    x = c.param("x", c.integers(-2, 3, 5, 12).double())
    yield c.weigh(c.op("reduce_max", [x], lambda x: torch.amax(x, 1), axes=[1]))
    c = Case("reduce_mean.symbol")  # the number of elements is known only when the program runs
    c.symbol("rows", 5, 9)
    x, w = c.input("x", c.normal(5, 7), ["rows", 7]), c.param("w", c.normal(7))
    y = c.op("multiply", [x, w], torch.mul, shape=["rows", 7])
    yield c.weigh(c.op("reduce_mean", [y], lambda y: y.mean(0), axes=[0]))


def softmax():
    for name, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        for axis in range(3):
            c = Case(f"{name}.axis_{axis}")
            x = c.param("x", c.normal(3, 5, 67, scale=2))
            yield c.weigh(c.op(name, [x], lambda x: function(x, axis), axis=axis))
        c = Case(f"{name}.far")  # beyond what exp can take; whole numbers, because f32 has few digits there
        x = c.param("x", c.integers(-7, 7, 4, 9).double() + 1000 * c.integers(-1, 2, 4, 1))
        yield c.weigh(c.op(name, [x], lambda x: function(x, 1), axis=1))
        c = Case(f"{name}.single")  # the gradient is zero, so another stands beside it
        x = c.param("x", c.normal(4, 1))
        y = c.op(name, [x], lambda x: function(x, 1), axis=1)
        yield c.weigh(c.op("add", [y, x], torch.add))


# ---- norms ----

EPSILON = 1e-5


def layer_norm(c, x, weight, bias=None):
    inputs = [c.param("x", x), c.param("weight", weight)] + ([c.param("bias", bias)] if bias is not None else [])
    y = c.op("layer_norm", inputs, lambda x, w, b=None: F.layer_norm(x, w.shape, w, b, EPSILON), unread=2,
             epsilon=EPSILON)
    return c.weigh(y)


def rms_norm(c, x, weight):
    inputs = [c.param("x", x), c.param("weight", weight)]
    return c.weigh(c.op("rms_norm", inputs, lambda x, w: F.rms_norm(x, w.shape, w, EPSILON), unread=1, epsilon=EPSILON))


def norms():
    for dims in ((2, 4, 3), (7, 17), (2, 3, 17), (5, 131), (1, 1100)):
        width, text = dims[-1], "x".join(map(str, dims))
        c = Case(f"layer_norm.{text}")
        yield layer_norm(c, c.normal(*dims), c.normal(width) + 1, c.normal(width))
        c = Case(f"rms_norm.{text}")
        yield rms_norm(c, c.normal(*dims), c.normal(width) + 1)
    c = Case("layer_norm.without_bias")
    yield layer_norm(c, c.normal(5, 24), c.normal(24) + 1)
    c = Case("layer_norm.offset")  # a mean far from zero
    yield layer_norm(c, c.normal(4, 33) + 30, c.normal(33) + 1, c.normal(33))


def batch_norms():
    for name, dims in (("features", (7, 5)), ("images", (3, 5, 4, 6)), ("sequence", (4, 3, 9))):
        for kind in ("batch_norm", "batch_norm_fixed"):
            c = Case(f"{kind}.{name}")
            channels = dims[1]
            inputs = [
                c.param("x", c.normal(*dims) + 0.5),
                c.param("weight", c.normal(channels) + 1),
                c.param("bias", c.normal(channels)),
                c.state("mean", c.normal(channels)),  # of earlier steps: evaluation uses them
                c.state("variance", c.uniform(0.5, 2, channels)),
            ]
            fixed = lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, training=False, eps=EPSILON)
            if kind == "batch_norm_fixed":
                yield c.weigh(c.op(kind, inputs, fixed, epsilon=EPSILON))
                continue

            def by_batch(x, w, b, m, v):
                mean, variance = torch.zeros_like(m), torch.zeros_like(v)  # with momentum 1 they become the batch's
                y = F.batch_norm(x, mean, variance, w, b, training=True, momentum=1.0, eps=EPSILON)
                return [y, mean, variance]

            y, mean, variance = c.op(kind, inputs, by_batch, unread=1, momentum=0.1, epsilon=EPSILON)
            c.statistic("mean", mean)
            c.statistic("variance", variance)
            evaluation = fixed(*[value.tensor for value in inputs])
            if name == "sequence":  # a view of what evaluation replaces
                y = c.op("transpose", [y], lambda y: y.transpose(1, 2), axes=[0, 2, 1])
                evaluation = evaluation.transpose(1, 2)
            yield c.weigh(y, evaluation=evaluation)


# ---- sequences ----


def embedding():
    for dims, dtype in (((11,), torch.int64), ((3, 7), torch.int32), ((1, 1), torch.int64)):
        c = Case("embedding." + "x".join(map(str, dims)))  # some rows are asked for more than once, some never
        k, t = c.input("indices", c.integers(0, 9, *dims, dtype=dtype)), c.param("table", c.normal(13, 10))
        yield c.weigh(c.op("embedding", [k, t], lambda k, t: F.embedding(k.long(), t)))


def rotate(x, base=10000.0, rotated=0, position=0, factor=0.0, low_factor=0.0, high_factor=0.0, original_context=0):
    """Rotary positions as Llama has them: the first half of the turning part is paired with its second half."""
    size = rotated or x.shape[-1]
    frequency = base ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    if factor:
        wavelength = 2 * math.pi / frequency
        share = (original_context / wavelength - low_factor) / (high_factor - low_factor)
        between = (1 - share) * frequency / factor + share * frequency
        frequency = torch.where(wavelength < original_context / high_factor, frequency,
                                torch.where(wavelength > original_context / low_factor, frequency / factor, between))
    angle = torch.outer(position + torch.arange(x.shape[-2], dtype=torch.float64), frequency)
    cosine, sine = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
    turning, resting = x[..., :size], x[..., size:]
    first, second = turning.chunk(2, -1)
    return torch.cat([turning * cosine + torch.cat([-second, first], -1) * sine, resting], -1)


def rotary():
    settings = {
        "plain": ((2, 3, 17, 8), {}),
        "base": ((1, 2, 70, 24), {"base": 500000.0}),
        "partial": ((2, 2, 9, 20), {"rotated": 8}),
        "position": ((2, 2, 5, 16), {"position": 61}),
        "scaled": ((1, 2, 23, 32), {"base": 500000.0, "factor": 8.0, "low_factor": 1.0, "high_factor": 4.0,
                                    "original_context": 64}),
    }
    for name, (dims, given) in settings.items():
        c = Case(f"rotary.{name}")
        inputs = [c.param("src", c.normal(*dims))]
        attributes = {"base": 10000.0, "rotated": dims[-1], **given}
        if "position" in given:
            inputs.append(c.scalar("position", attributes.pop("position")))
        yield c.weigh(c.op("rotary", inputs, lambda x, *_: rotate(x, **given), **attributes))


FAMILIES = (product, convolution, pooling, reductions, softmax, norms, batch_norms, embedding, rotary)
