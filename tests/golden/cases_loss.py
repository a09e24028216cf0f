"""Losses. The graph has sums over targets; PyTorch's means say what a step makes of them."""

import torch
import torch.nn.functional as F

from case import Case


def cross_entropy():
    settings = {
        "plain": ((13, 7), {}, 0),
        "tokens": ((3, 11, 29), {}, 0),
        "many_classes": ((4, 1111), {}, 0),
        "ignored": ((3, 9, 10), {"ignored": -100}, 9),
        "ignored_class": ((15, 6), {"ignored": 2}, 4),
        "smoothing": ((8, 17), {"label_smoothing": 0.1}, 0),
        "smoothing_ignored": ((3, 8, 12), {"label_smoothing": 0.2, "ignored": -100}, 7),
    }
    for name, (dims, options, ignored_count) in settings.items():
        for scale, suffix in ((2, ""), (40, "_far")):
            if suffix and name not in ("plain", "smoothing"):
                continue
            c = Case(f"cross_entropy.{name}{suffix}")
            ignored = options.get("ignored", -100)
            targets = c.integers(0, dims[-1], *dims[:-1], dtype=torch.int32 if name == "tokens" else torch.int64)
            flat = targets.view(-1)
            flat[torch.from_numpy(c.random.permutation(flat.numel())[:ignored_count])] = ignored
            count = int((targets != ignored).sum())
            t, x = c.input("targets", targets), c.param("logits", c.normal(*dims, scale=scale))
            attributes = {"ignored": ignored, "label_smoothing": options.get("label_smoothing", 0.0)}
            evaluate = lambda x, t, reduction="sum": F.cross_entropy(
                x.view(-1, dims[-1]), t.view(-1).long(), ignore_index=ignored, reduction=reduction,
                label_smoothing=attributes["label_smoothing"])
            loss = c.op("cross_entropy", [x, t], evaluate, unread=1, **attributes)
            yield c.loss_of_targets(loss, t, count, evaluate(x.tensor, t.tensor, "mean"))


def weighed_cross_entropy():
    """Weights of classes and the focal loss of Lin et al. (2017), (1 - p)^gamma · -log p, where p is the probability of the target."""
    settings = {  # dimensions of logits, gamma, class weights, masked targets, depth of a product that makes the logits, size of the logits
        "weights": ((13, 5), 0, True, 0, 0, 1),
        "weights_tokens": ((3, 7, 11), 0, True, 4, 0, 1),
        "weights_head": ((23, 6), 0, True, 3, 9, 1),
        "focal_half": ((17, 4), 0.5, False, 0, 0, 1),
        "focal_1": ((17, 4), 1.0, False, 0, 0, 1),
        "focal_2": ((3, 6, 7), 2.0, False, 5, 0, 1),
        "focal_5": ((17, 4), 5.0, False, 0, 0, 2),
        "focal_sure": ((17, 4), 2.0, False, 0, 0, 6),
        "focal_weights": ((19, 5), 2.0, True, 2, 0, 1),
        "focal_head": ((23, 6), 2.0, True, 3, 9, 0.3),
    }
    for name, (dims, gamma, weighs, masked, depth, scale) in settings.items():
        c = Case(f"weighed_cross_entropy.{name}")
        classes, ignored = dims[-1], -100
        targets = c.integers(0, classes, *dims[:-1])
        flat = targets.view(-1)
        flat[torch.from_numpy(c.random.permutation(flat.numel())[:masked])] = ignored
        count = int((targets != ignored).sum())
        class_weights = c.uniform(0.2, 5, classes) if weighs else torch.ones(classes, dtype=torch.float64)
        t = c.input("targets", targets)
        inputs = [t] + ([c.input("weights", class_weights[targets.clamp(min=0)])] if weighs else [])
        if depth:
            x = c.op("matmul", [c.param("src", c.normal(*dims[:-1], depth)), c.param("head", c.normal(classes, depth, scale=scale))],
                     lambda a, b: a @ b.T, transpose_b=True)
        else:
            x = c.param("logits", c.normal(*dims, scale=scale))

        def evaluate(x, t, *_):
            x, t = x.reshape(-1, classes), t.view(-1)
            if gamma == 0:
                return F.cross_entropy(x, t, weight=class_weights, ignore_index=ignored, reduction="sum")
            entropy = F.cross_entropy(x, t, ignore_index=ignored, reduction="none")
            return (class_weights[t.clamp(min=0)] * (1 - torch.exp(-entropy)) ** gamma * entropy)[t != ignored].sum()

        loss = c.op("cross_entropy", [x, *inputs], evaluate, unread=1, ignored=ignored, label_smoothing=0.0, focal=float(gamma))
        yield c.loss_of_targets(loss, t, count, evaluate(x.tensor, t.tensor) / count)


def errors():
    functions = {
        "squared_error": (F.mse_loss, {}),
        "absolute_error": (F.l1_loss, {}),
        "huber_error": (lambda x, t, reduction: F.huber_loss(x, t, reduction, 0.7), {"delta": 0.7}),
        "binary_cross_entropy": (F.binary_cross_entropy_with_logits, {}),
    }
    for name, (function, attributes) in functions.items():
        for dims in ((17,), (5, 9), (2, 3, 700)):
            c = Case(f"{name}." + "x".join(map(str, dims)))
            x = c.param("src", c.normal(*dims, scale=3 if name == "binary_cross_entropy" else 1))
            targets = c.uniform(0, 1, *dims) if name == "binary_cross_entropy" else c.normal(*dims)
            if len(dims) == 2:  # hard labels; errors that are exactly zero
                targets = targets.round() if name == "binary_cross_entropy" else torch.where(
                    c.integers(0, 3, *dims) == 0, x.tensor.detach(), targets)
            t = c.input("targets", targets)
            loss = c.op(name, [x, t], lambda x, t: function(x, t, reduction="sum"), **attributes)
            yield c.loss_of_targets(loss, t, t.tensor.numel(), function(x.tensor, t.tensor, reduction="mean"))
    c = Case("binary_cross_entropy.far")  # beyond what exp can take
    x, t = c.param("src", c.normal(31, scale=400)), c.input("targets", c.integers(0, 2, 31).double())
    loss = c.op("binary_cross_entropy", [x, t],
                lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="sum"))
    yield c.loss_of_targets(loss, t, 31, F.binary_cross_entropy_with_logits(x.tensor, t.tensor))


FAMILIES = (cross_entropy, weighed_cross_entropy, errors)
