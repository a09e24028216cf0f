"""Steps of many samples, for test_golden_leaves: every op that adds over samples, each in a small model."""

import torch
import torch.nn.functional as F

from case import Case
from cases_layer import EPSILON

IGNORED = -100
SAMPLES = 67  # more than 64 leaves, which are uneven then
SCALE = 1.5  # of adapters


class Step(Case):
    """A case whose samples are the first dimension of every input."""

    def __init__(self, name, samples=SAMPLES):
        super().__init__(f"leaves.{name}")
        self.samples = samples
        self.symbol("batch", samples, samples)

    def given(self, name, tensor):
        return self.input(name, tensor, ["batch", *tensor.shape[1:]])

    def op(self, kind, inputs, function, **attributes):
        """As in a case; the size of a first dimension of as many is the symbol's."""
        if attributes.get("unread", 0) == 0:
            dims = list(function(*[value.tensor for value in inputs]).shape)
            attributes["shape"] = ["batch", *dims[1:]] if dims[:1] == [self.samples] else dims
        return super().op(kind, inputs, function, **attributes)

    def weight(self, name, *dims):
        return self.param(name, self.normal(*dims, scale=dims[-1] ** -0.5))

    def linear(self, x, weight):
        return self.op("matmul", [x, weight], lambda x, w: x @ w.T, transpose_b=True)

    def bias(self, x, name, axis):
        size = x.tensor.shape[axis]
        shape = [-1 if i == axis else 1 for i in range(x.tensor.ndim)]
        b = self.param(name, self.normal(size, scale=0.3))
        return self.op("bias", [x, b], lambda x, b: x + b.view(shape), axis=axis)

    def labels(self, classes, *dims, masked):
        labels = self.integers(0, classes, self.samples, *dims)
        labels.view(-1)[torch.from_numpy(self.random.permutation(labels.numel())[:masked])] = IGNORED
        return self.given("targets", labels)

    def cross_entropy(self, logits, targets, label_smoothing=0.0):
        classes, count = logits.tensor.shape[-1], int((targets.tensor != IGNORED).sum())
        evaluate = lambda x, t, reduction="sum": F.cross_entropy(
            x.reshape(-1, classes), t.view(-1), ignore_index=IGNORED, reduction=reduction, label_smoothing=label_smoothing)
        loss = self.op("cross_entropy", [logits, targets], evaluate, unread=1, ignored=IGNORED, label_smoothing=label_smoothing)
        return self.loss_of_targets(loss, targets, count, evaluate(logits.tensor, targets.tensor, "mean"))

    def error(self, kind, function, x, targets, **attributes):
        t = self.given("targets", targets)
        loss = self.op(kind, [x, t], lambda x, t: function(x, t, reduction="sum"), **attributes)
        return self.loss_of_targets(loss, t, targets.numel(), function(x.tensor, t.tensor, reduction="mean"))


def text():
    """A table that is the head too, positions, both norms, an adapter beside a layer."""
    tokens, classes, width, hidden = 3, 19, 6, 8
    c = Step("text")
    k = c.given("tokens", c.integers(0, classes, SAMPLES, tokens))
    table = c.weight("table", classes, width)
    x = c.op("embedding", [k, table], F.embedding)
    places = c.op("slice", [c.weight("places", 5, width)], lambda w: w[:tokens], axis=0, begin=0, end=tokens)
    x = c.op("add", [x, places], torch.add)
    inputs = [x, c.param("norm.weight", 1 + c.normal(width)), c.param("norm.bias", c.normal(width))]
    y = c.op("layer_norm", inputs, lambda x, w, b: F.layer_norm(x, w.shape, w, b, EPSILON), unread=2, epsilon=EPSILON)
    y, _ = adapted(c, y, hidden)
    y = c.op("gelu", [c.bias(y, "bias", 2)], F.gelu)
    x = c.op("add", [x, c.linear(y, c.weight("back", width, hidden))], torch.add)
    inputs = [x, c.param("last.weight", 1 + c.normal(width))]
    x = c.op("rms_norm", inputs, lambda x, w: F.rms_norm(x, w.shape, w, EPSILON), unread=1, epsilon=EPSILON)
    return c.cross_entropy(c.linear(x, table), c.labels(classes, tokens, masked=40), label_smoothing=0.1)


def adapted(c, x, outputs, rank=2):
    """A layer with an adapter: x·weightᵀ + SCALE · (x·firstᵀ)·secondᵀ. Also gives the weights."""
    inputs = x.tensor.shape[-1]
    weights = [c.weight("weight", outputs, inputs), c.weight("first", rank, inputs), c.weight("second", outputs, rank)]
    narrow = c.op("scale", [c.linear(x, weights[1])], lambda x: SCALE * x, factor=SCALE)
    y = c.op("matmul_sum", [x, weights[0], narrow, weights[2]], lambda x, w, y, v: x @ w.T + y @ v.T, transpose_b=True)
    return y, weights


def dora():
    """Factors that are made of weights: each term of the gradient of a magnitude is divided by a norm."""
    outputs = 7
    c = Step("dora")
    y, weights = adapted(c, c.given("x", c.normal(SAMPLES, 5)), outputs)
    magnitude = c.param("magnitude", c.uniform(0.5, 1.5, outputs))
    norm = lambda w, a, b: torch.linalg.vector_norm(w + SCALE * b @ a, dim=1).detach()  # a constant to the gradient
    factors = c.op("row_factors", [*weights, magnitude], lambda w, a, b, m: m / norm(w, a, b), unread=1, scale=SCALE)
    y = c.op("stretch", [y, factors], torch.mul)
    return c.error("squared_error", F.mse_loss, y, c.normal(SAMPLES, outputs))


def images():
    c = Step("images", 41)
    x = c.given("image", c.normal(41, 2, 5, 5))
    convolve = lambda name, x, dims, groups: c.op(
        "convolution", [x, c.param(name, c.normal(*dims, scale=0.4))],
        lambda s, w: F.conv2d(s, w, padding=1, groups=groups), stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups=groups)
    x = c.op("relu", [c.bias(convolve("first", x, (4, 2, 3, 3), 1), "bias", 1)], torch.relu)
    x = c.op("max_pool", [x], lambda x: F.max_pool2d(x, 2), window=[2, 2], stride=[2, 2], padding=[0, 0])
    x = convolve("second", x, (6, 2, 3, 3), 2)
    x = c.op("reshape", [x], lambda x: x.reshape(41, 24), dims=["batch", 24])
    x = c.bias(c.linear(x, c.weight("head", 3, 24)), "head.bias", 1)
    return c.error("binary_cross_entropy", F.binary_cross_entropy_with_logits, x, c.uniform(0, 1, 41, 3))


def broadcast():
    """Parameters that all samples share, along rows, columns and both."""
    c = Step("broadcast")
    x = c.given("x", c.normal(SAMPLES, 4, 3))
    x = c.op("multiply", [x, c.param("row", c.normal(3))], torch.mul)
    x = c.op("add", [x, c.param("column", c.normal(4, 1))], torch.add)
    x = c.op("multiply", [x, c.param("one", c.normal(1))], torch.mul)
    x = c.op("add", [x, c.param("both", c.normal(1, 4, 3))], torch.add)
    return c.error("absolute_error", F.l1_loss, x, c.normal(SAMPLES, 4, 3))


def gather():
    """Elements of a parameter that samples pick, some of them often."""
    c = Step("gather")
    k = c.given("indices", c.integers(0, 9, SAMPLES, 4))
    x = c.op("gather", [c.param("src", c.normal(11, 4)), k], lambda s, k: s.gather(0, k), axis=0)
    return c.error("huber_error", lambda x, t, reduction: F.huber_loss(x, t, reduction, 0.7), x, c.normal(SAMPLES, 4),
                   delta=0.7)


def head():
    """A head of its own, whose classes have weights."""
    classes = 7
    c = Step("head")
    x = c.op("tanh", [c.linear(c.given("x", c.normal(SAMPLES, 4)), c.weight("layer", 5, 4))], torch.tanh)
    x, t = c.linear(x, c.weight("head", classes, 5)), c.labels(classes, masked=9)
    weights = c.uniform(0.2, 5, classes)
    w = c.given("weights", weights[t.tensor.clamp(min=0)])
    evaluate = lambda x, t, *_: F.cross_entropy(x, t, weight=weights, ignore_index=IGNORED, reduction="sum")
    loss = c.op("cross_entropy", [x, t, w], evaluate, unread=1, ignored=IGNORED, label_smoothing=0.0, focal=0.0)
    count = int((t.tensor != IGNORED).sum())
    return c.loss_of_targets(loss, t, count, evaluate(x.tensor, t.tensor) / count)


def leaves():
    for case in (text, dora, images, broadcast, gather, head):
        yield case()


FAMILIES = (leaves,)
