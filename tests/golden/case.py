"""A golden case: a graph in the text form (docs/ang-format.md) and what PyTorch says it computes, in f64.

A case is written with one call per node that says both: what the node is called here, and the PyTorch function of the
same meaning. So the graph and its oracle cannot drift apart.

    c = Case("softmax.axis_1")
    x = c.param("x", c.normal(3, 5, 7))
    y = c.op("softmax", [x], lambda x: torch.softmax(x, 1), axis=1)
    c.weigh(y)

A golden file has the cases of a family, one after another (pack.py), and begins with the line `anneal golden 2`. A case is
lines of text, the data after them.

    case softmax.axis_1 532     its name, and how many bytes its graph has (0: it has none)
    param x f64 3 3 5 7         role, name, type, number of dimensions, dimensions
    gradient x f64 3 3 5 7
    ...
    end
    the graph, and the arrays in the order of the lines, dense, little-endian, nothing between them

Numbers are f64, with all their digits, so that a test in f64 finds a kernel that loses some on the way in; a test in
f32 rounds what it is given, so cases avoid what makes that a large error (sin of 3000, say). Roles:

    param, state, input    what a run is given
    scalar                 the same, for one number
    symbol                 the size and the maximum of a symbolic dimension
    option                 of a model that has no graph here (cases_model.py)
    loss, gradient         after a training run; the loss divided by the number of targets
    targets                the number of targets that count (absent: 1)
    statistic              a state's batch statistic after a training run
    output                 after an evaluation run
    evaluation_loss        the same (absent: the loss)
"""

import json
import zlib

import numpy
import torch

TYPES = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16",
         torch.int32: "i32", torch.int64: "i64"}
STORED = {"f64": "<f8", "i32": "<i4", "i64": "<i8"}


class Value:
    """A value of the graph: what it is called there, and the tensor it stands for."""

    def __init__(self, name, tensor):
        self.name = name
        self.tensor = tensor

    def __str__(self):
        return "%" + self.name


class Dtype(str):
    """A type as an attribute: written without quotes."""


def text_of(attribute):
    if isinstance(attribute, Dtype):
        return str(attribute)
    if isinstance(attribute, (list, tuple)):
        return "[" + ",".join(str(x) for x in attribute) + "]"
    return json.dumps(attribute)  # true, 3, 0.5, "text": written alike in both


class Case:
    def __init__(self, name):
        self.name = name
        self.random = numpy.random.default_rng(zlib.crc32(name.encode()))
        self.lines = []
        self.arrays = []  # (role, name, numpy array)
        self.params = {}
        self.taken = set()
        self.outputs = {}
        self.loss = None

    # ---- random numbers ----

    def normal(self, *dims, scale=1.0):
        return torch.tensor(scale * self.random.standard_normal(dims))

    def uniform(self, low, high, *dims):
        return torch.tensor(self.random.uniform(low, high, dims))

    def integers(self, low, high, *dims, dtype=torch.int64):
        """In [low, high)."""
        return torch.tensor(self.random.integers(low, high, dims), dtype=dtype)

    # ---- sources ----

    def array(self, role, name, tensor):
        self.arrays.append((role, name, tensor.detach().numpy() if isinstance(tensor, torch.Tensor) else tensor))

    def symbol(self, name, size, maximum):
        """A dimension that is `size` in this run, of a plan that allows for `maximum`."""
        self.lines.append(f"symbol {name}")
        self.array("symbol", name, numpy.array([size, maximum], dtype=numpy.int64))

    def source(self, kind, name, tensor, dims=None):
        """`dims` gives the dimensions as text, where some are symbols."""
        assert name not in self.taken, f"{self.name}: {name} is taken"
        self.taken.add(name)
        shape = text_of(list(tensor.shape) if dims is None else dims)
        self.lines.append(f"%{name} = {kind}(name={json.dumps(name)}) : {TYPES[tensor.dtype]}{shape}")
        return Value(name, tensor)

    def param(self, name, tensor):
        """A trainable parameter: its gradient is part of the case."""
        tensor = tensor.clone().requires_grad_()
        self.params[name] = tensor
        self.array("param", name, tensor)
        return self.source("param", name, tensor)

    def input(self, name, tensor, dims=None):
        self.array("input", name, tensor)
        return self.source("input", name, tensor, dims)

    def state(self, name, tensor):
        self.array("state", name, tensor)
        return self.source("run_state", name, tensor)

    def scalar(self, name, number):
        tensor = torch.tensor(number, dtype=torch.int64)
        self.array("scalar", name, tensor)
        self.lines.append(f"%{name} = scalar(name={json.dumps(name)}, dtype=i64)")
        return Value(name, tensor)

    def constant(self, number):
        name = self.free_name("constant")
        self.lines.append(f"%{name} = constant(value={text_of(number)}) : f64[]")
        return Value(name, torch.tensor(number, dtype=torch.float64))

    # ---- nodes ----

    def free_name(self, stem):
        name, number = stem, 1
        while name in self.taken:
            number += 1
            name = f"{stem}{number}"
        self.taken.add(name)
        return name

    def op(self, kind, inputs, function, unread=0, shape=None, **attributes):
        """Adds a node. `function` gets the tensors of the inputs that are there and gives one tensor or a list of
        them; the op has `unread` more outputs, which nobody reads. The types that PyTorch finds are written too, so
        that shape inference is compared with it; `shape` is the output's where it has symbols."""
        result = function(*[value.tensor for value in inputs if value is not None])
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        values = [Value(self.free_name(kind), tensor) for tensor in results]
        names = [str(value) for value in values] + ["_"] * unread
        operands = ["_" if value is None else str(value) for value in inputs]
        operands += [f"{key}={text_of(value)}" for key, value in attributes.items()]
        types = [TYPES[r.dtype] + text_of(list(r.shape) if shape is None else shape) for r in results]
        kinds = " : " + ", ".join(types) if unread == 0 else ""
        self.lines.append(f"{', '.join(names)} = {kind}({', '.join(operands)}){kinds}")
        return values if isinstance(result, (list, tuple)) else values[0]

    def output(self, value, name=None):
        """A value that evaluation gives."""
        name = name or value.name
        self.outputs[name] = value.tensor
        self.lines.append(f"output({value}, name={json.dumps(name)})")

    def statistic(self, state, value):
        """What a training run says of its batch, for the running statistic of that name."""
        self.array("statistic", state, value.tensor)
        self.lines.append(f"output({value}, name={json.dumps(state)}, training=true, state=true)")

    # ---- the loss ----

    def weights_for(self, tensor):
        """Random weights for the elements of a tensor, of both signs, with which its sum is no difference of larger
        numbers: that would have few digits in f32."""
        least = 0.3  # of the sum of absolute values
        weights = self.uniform(0.25, 1.75, *tensor.shape) * self.integers(0, 2, *tensor.shape).mul(2).sub(1)
        flat = weights.view(-1)
        terms = flat * tensor.detach().reshape(-1)
        for i in terms.abs().argsort(descending=True).tolist():
            if terms.sum() >= least * terms.abs().sum():
                break
            if terms[i] < 0:
                flat[i], terms[i] = -flat[i], -terms[i]
        return weights

    def weigh(self, *values, evaluation=None):
        """Ends an op's case: the values are outputs, and the loss is the sum of all their elements, each with a weight
        of its own, so that no two elements have the same gradient. `evaluation` stands for the value where evaluation
        computes another one."""
        total = None
        for number, value in enumerate(values):
            self.output(value)
            weight = self.input(f"loss_weights.{number}", self.weights_for(value.tensor))
            term = self.op("multiply", [value, weight], torch.mul)
            if term.tensor.ndim:
                term = self.op("reduce_sum", [term], torch.sum, axes=list(range(term.tensor.ndim)))
            total = term if total is None else self.op("add", [total, term], torch.add)
            if evaluation is not None:
                self.outputs[value.name] = evaluation
                self.array("evaluation_loss", "loss", (evaluation * weight.tensor).sum())
        self.lines.append(f"loss {total}")
        self.loss = total.tensor
        return self

    def loss_of_targets(self, value, targets, count, mean):
        """Ends a loss's case. `value` is the sum that the graph computes; the golden loss and gradients are those of
        `mean`, PyTorch's own mean, which must be that sum divided by the number of targets that count."""
        torch.testing.assert_close(value.tensor / count, mean, rtol=1e-13, atol=0)
        self.lines.append(f"loss {value} targets {targets}")
        self.array("targets", "count", numpy.int64(count))
        self.loss = mean
        return self

    # ---- the bytes ----

    def packed(self):
        """The case as it stands in a golden file."""
        self.loss.backward()
        self.array("loss", "loss", self.loss)
        for name, tensor in self.params.items():
            gradient = tensor.grad if tensor.grad is not None else torch.zeros_like(tensor)
            assert gradient.isfinite().all(), f"{self.name}: the gradient of {name} is not finite"
            self.array("gradient", name, gradient)
        for name, tensor in self.outputs.items():
            assert tensor.isfinite().all(), f"{self.name}: {name} is not finite"
            self.array("output", name, tensor.to(torch.float64))
        graph = ("\n".join(["ang 1", *self.lines]) + "\n").encode() if self.lines else b""
        header, data = [f"case {self.name} {len(graph)}"], []
        for role, name, array in self.arrays:
            dtype = TYPES[torch.from_numpy(numpy.atleast_1d(array)).dtype]
            header.append(" ".join([role, name, dtype, str(array.ndim), *map(str, array.shape)]))
            data.append(numpy.ascontiguousarray(array, dtype=STORED[dtype]).tobytes())
        header.append("end\n")
        return "\n".join(header).encode() + graph + b"".join(data)
