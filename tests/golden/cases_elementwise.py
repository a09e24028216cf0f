"""Functions of one and of two elements, and casts."""

import torch
import torch.nn.functional as F

from case import Case, Dtype

UNARY = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    # PyTorch's own threshold of 20 makes it x above, which is wrong by e^-20
    "softplus": lambda x: F.softplus(x, threshold=200),
    "mish": F.mish,
    "hard_swish": F.hardswish,
    "sin": torch.sin,
    "cos": torch.cos,
    "abs": torch.abs,
}
POSITIVE = ("log", "sqrt")
KINKED = ("relu", "abs")  # and what they do at 0 matters


def unary():
    for name, function in UNARY.items():
        c = Case(f"{name}.plain")
        x = c.uniform(0.05, 9, 3, 5, 19) if name in POSITIVE else c.normal(3, 5, 19, scale=2.5)
        if name in KINKED:
            x[0, :, ::4] = 0
        yield c.weigh(c.op(name, [c.param("x", x)], function))
    for name in ("gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "softplus", "mish", "hard_swish"):
        c = Case(f"{name}.tails")  # nothing overflows there
        x = c.param("x", c.uniform(-60, 60, 2, 67))
        yield c.weigh(c.op(name, [x], UNARY[name]))
    for name in ("sin", "cos"):  # arguments that must be reduced; f32 numbers, for which a rounded one would be another
        c = Case(f"{name}.large")
        x = c.param("x", c.uniform(-3000, 3000, 101).float().double())
        yield c.weigh(c.op(name, [x], UNARY[name]))
    c = Case("scale.plain")
    x = c.param("x", c.normal(4, 33))
    yield c.weigh(c.op("scale", [x], lambda x: x * -0.3, factor=-0.3))
    c = Case("clamp.plain")
    x = c.normal(4, 33, scale=2)
    x[0, ::3], x[1, ::3] = -1.5, 2  # what it does on its bounds matters
    yield c.weigh(c.op("clamp", [c.param("x", x)], lambda x: torch.clamp(x, -1.5, 2), low=-1.5, high=2.0))


BINARY = {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "divide": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "power": torch.pow,
}
SHAPES = {
    "same": ((3, 5, 17), (3, 5, 17)),
    "row": ((4, 3, 33), (33,)),
    "column": ((7, 1), (2, 7, 9)),
    "both": ((3, 1, 5, 1), (4, 1, 7)),
    "scalar": ((), (6, 11)),
}


def binary():
    for name, function in BINARY.items():
        for shape_name, (a_dims, b_dims) in SHAPES.items():
            c = Case(f"{name}.{shape_name}")
            a, b = c.normal(*a_dims), c.normal(*b_dims)
            if name == "divide":
                b = c.uniform(0.4, 2.5, *b_dims) * c.integers(0, 2, *b_dims).mul(2).sub(1)
            if name == "power":
                a, b = c.uniform(0.2, 3, *a_dims), c.uniform(-2.5, 2.5, *b_dims)
            yield c.weigh(c.op(name, [c.param("a", a), c.param("b", b)], function))
    for name in ("maximum", "minimum"):  # equal elements share the gradient
        c = Case(f"{name}.ties")
        a, b = c.integers(-2, 3, 6, 13).double(), c.integers(-2, 3, 6, 13).double()
        yield c.weigh(c.op(name, [c.param("a", a), c.param("b", b)], BINARY[name]))
    c = Case("power.negative_base")  # whole exponents, whose own gradient does not exist
    a = c.param("a", c.normal(5, 9))
    b = c.input("b", c.integers(0, 5, 5, 9).double())
    yield c.weigh(c.op("power", [a, b], torch.pow))
    c = Case("power.zero_base")
    a = c.param("a", c.integers(0, 2, 4, 9).double())
    b = c.input("b", c.integers(0, 4, 4, 9).double())
    yield c.weigh(c.op("power", [a, b], torch.pow))
    c = Case("multiply.square")  # both inputs are the same value: two contributions
    x = c.param("x", c.normal(5, 7))
    yield c.weigh(c.op("multiply", [x, x], torch.mul))
    c = Case("multiply.constant")
    x = c.param("x", c.normal(5, 7))
    yield c.weigh(c.op("multiply", [x, c.constant(-1.75)], torch.mul))


def bias():
    for axis, dims in ((1, (5, 23)), (1, (3, 4, 5, 2)), (0, (6, 3)), (0, (9,))):
        c = Case(f"bias.axis_{axis}_of_{len(dims)}")
        src, bias = c.param("src", c.normal(*dims)), c.param("bias", c.normal(dims[axis]))
        shape = [-1 if i == axis else 1 for i in range(len(dims))]
        yield c.weigh(c.op("bias", [src, bias], lambda s, b: s + b.view(shape), axis=axis))


def cast():
    for low, name in ((torch.bfloat16, "bf16"), (torch.float16, "f16")):
        c = Case(f"cast.{name}")  # rounds on the way there, and its gradient on the way back
        x = c.param("x", c.normal(3, 47))
        y = c.op("cast", [x], lambda x: x.to(low), dtype=Dtype(name))
        yield c.weigh(c.op("cast", [y], lambda y: y.double(), dtype=Dtype("f64")))
    for dtype, name in ((torch.int32, "i32"), (torch.int64, "i64")):
        c = Case(f"cast.{name}")
        x = c.param("x", c.normal(4, 5))
        k = c.input("k", c.integers(-1000, 1000, 4, 5, dtype=dtype))
        y = c.op("cast", [k], lambda k: k.double(), dtype=Dtype("f64"))
        yield c.weigh(c.op("multiply", [x, y], torch.mul))


FAMILIES = (unary, binary, bias, cast)
