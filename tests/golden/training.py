#!/usr/bin/env python3
"""Makes the golden files of a training step's parts with PyTorch: optimizers, schedules, loss scaler, clipping,
means over samples with batch norm, weights of classes, the focal loss, and the moving average of the weights.

    pip install torch==2.15.0
    tests/golden/training.py

The files data/training_*.txt hold series: a line with a name and a count, then as many numbers, one a line. Tests of
tests/step and tests/train read them; weights and gradients come from formulas that the tests repeat (tests/step/series.h).
"""

import math
import pathlib

import torch
from torch.optim import SGD, Adam, AdamW, lr_scheduler

FOLDER = pathlib.Path(__file__).resolve().parent / "data"
TYPES = {"f32": torch.float32, "f64": torch.float64}


class Series:
    """One golden file."""

    def __init__(self, name):
        self.path = FOLDER / f"training_{name}.txt"
        self.names, self.lines = set(), []

    def add(self, name, numbers):
        assert name not in self.names, f"two series have the name {name}"
        self.names.add(name)
        numbers = [float(x) for x in numbers]
        self.lines.append(f"{name} {len(numbers)}")
        self.lines += ["%.17g" % x for x in numbers]

    def write(self):
        self.path.write_text("\n".join(self.lines) + "\n")
        return len(self.names), self.path.stat().st_size


# ---- optimizers: the parameters of series.h ----

SHAPES = {"table.weight": (50, 50), "layer.weight": (3, 5), "layer.bias": (7,), "gain": (1,)}
STEPS = 100
SHOWN = (1, 2, 10, 100)


def weight(number, shape):
    i = torch.arange(math.prod(shape), dtype=torch.int64)
    return (((i * 31 + number * 17) % 101 - 50).double() / 50).reshape(shape)


def gradient(number, shape, step):
    """The gain's are 0: its weight has to stay."""
    if shape == (1,):
        return torch.zeros(shape, dtype=torch.float64)
    i = torch.arange(math.prod(shape), dtype=torch.int64) + 5003 * number
    return (((i * 7919 + step * 104729) % 2003 - 1001).double() / 1001).reshape(shape)


def digest(values):
    """All of a few; of many the first and last, those around the first page's end, the sum and the sum of squares."""
    flat = values.detach().double().flatten()
    if flat.numel() <= 16:
        return flat.tolist()
    return flat[:8].tolist() + flat[1020:1028].tolist() + flat[-8:].tolist() + [flat.sum(), (flat * flat).sum()]


# name: class, peak rate, weight decay of the weights, options, what else a step does
OPTIMIZERS = {
    "sgd": (SGD, 0.1, 0, {}, {}),
    "sgd_momentum": (SGD, 0.1, 0, {"momentum": 0.9}, {}),
    "sgd_dampening": (SGD, 0.1, 0, {"momentum": 0.9, "dampening": 0.5}, {}),
    "sgd_dampening_alone": (SGD, 0.1, 0, {"dampening": 0.5}, {}),
    "sgd_nesterov": (SGD, 0.1, 0, {"momentum": 0.9, "nesterov": True}, {}),
    "sgd_decay": (SGD, 0.1, 0.1, {"momentum": 0.9}, {}),
    "sgd_all": (SGD, 0.02, 0.1, {"momentum": 0.95, "nesterov": True}, {}),
    "sgd_values": (SGD, 0.1, 0, {}, {"clip_value": 0.3}),
    "sgd_one_cycle": (SGD, 0.1, 0.1, {"momentum": 0.9}, {"one_cycle": True}),
    "adam": (Adam, 0.01, 0, {}, {}),
    "adam_decay": (Adam, 0.01, 0.1, {}, {}),
    "adamw": (AdamW, 0.01, 0.01, {}, {}),
    "adamw_betas": (AdamW, 0.01, 0.1, {"betas": (0.8, 0.95), "eps": 1e-6}, {}),
    "adamw_no_betas": (AdamW, 0.001, 0.1, {"betas": (0.0, 0.999)}, {}),
    "adamw_groups": (AdamW, 0.01, 0.01, {}, {"table_rate": 0.1, "table_decay": 0.5}),
    "adamw_one_cycle": (AdamW, 0.01, 0.01, {}, {"one_cycle": True}),
    "adamw_clipped": (AdamW, 0.01, 0.01, {}, {"clip_norm": 1.0, "scale": 1024.0}),
}


def run_optimizer(series, name, type_name):
    kind, rate, decay, options, extra = OPTIMIZERS[name]
    dtype = TYPES[type_name]
    parameters = {p: torch.nn.Parameter(weight(i, s).to(dtype)) for i, (p, s) in enumerate(SHAPES.items())}
    groups = []
    for p, value in parameters.items():
        group = {"params": [value], "lr": rate, "weight_decay": decay if value.ndim >= 2 else 0}
        if p.startswith("table"):
            group["lr"] *= extra.get("table_rate", 1)
            group["weight_decay"] = extra.get("table_decay", group["weight_decay"])
        group["factor"] = group["lr"] / rate
        groups.append(group)
    optimizer = kind(groups, lr=rate, **options)
    if extra.get("one_cycle"):
        schedule = lr_scheduler.OneCycleLR(optimizer, rate, total_steps=STEPS)
    else:
        schedule = lr_scheduler.LambdaLR(optimizer, lambda t: 1 - t / 200)
    norms = []
    for step in range(STEPS):
        scale = extra.get("scale", 1)
        for i, (p, s) in enumerate(SHAPES.items()):
            parameters[p].grad = (gradient(i, s, step).to(dtype) * scale) / scale
        if "clip_norm" in extra:
            norms.append(torch.nn.utils.clip_grad_norm_(parameters.values(), extra["clip_norm"]))
        if "clip_value" in extra:
            torch.nn.utils.clip_grad_value_(parameters.values(), extra["clip_value"])
        optimizer.step()
        if step + 1 < STEPS:
            schedule.step()
        if step + 1 in SHOWN:
            for p, value in parameters.items():
                series.add(f"{name}.{type_name}.{p}.{step + 1}", digest(value))
    if norms:
        series.add(f"{name}.{type_name}.norms", norms)


def optimizers():
    series = Series("optimizers")
    for name in OPTIMIZERS:
        for type_name in TYPES:
            run_optimizer(series, name, type_name)
    return series


# ---- schedules: the factor at each of 1,000 steps, as the rate of an optimizer whose peak rate is 1 ----

LENGTH, WARMUP = 1000, 100


def linear(o, length=LENGTH, least=0.1):
    return lr_scheduler.LinearLR(o, 1.0, least, length)


def cosine(o, length=LENGTH, least=0.1):
    return lr_scheduler.CosineAnnealingLR(o, length, least)


def by_formula(formula):
    return lambda o: lr_scheduler.LambdaLR(o, formula)


def clamped_cosine(t):
    return max(0.1, 0.5 * (1 + math.cos(math.pi * t / LENGTH)))


def inverse_sqrt(warmup, timescale):
    """transformers' get_inverse_sqrt_schedule; its warm-up begins with 0."""

    def factor(t):
        if t < warmup:
            return t / max(1, warmup)
        return 1 / math.sqrt((t + timescale - warmup) / timescale)

    return factor


def wsd(t, decay=200, least=0.1):
    """transformers' get_wsd_schedule with decay_type linear; its warm-up begins with 0."""
    if t < WARMUP:
        return t / WARMUP
    if t < LENGTH - decay:
        return 1
    return (1 - (t - (LENGTH - decay)) / decay) * (1 - least) + least


def points(t):
    places = ((0, 0.0), (50, 1.0), (400, 0.5), (900, 0.1))
    for (t_0, f_0), (t_1, f_1) in zip(places, places[1:]):
        if t < t_1:
            return f_0 + (f_1 - f_0) * (t - t_0) / (t_1 - t_0)
    return places[-1][1]


def after_warmup(start, following):
    """LinearLR refuses a start of 0, which is no mistake here."""

    def make(o):
        if start == 0:
            warmup = lr_scheduler.LambdaLR(o, lambda t: t / WARMUP)
        else:
            warmup = lr_scheduler.LinearLR(o, start, 1.0, WARMUP)
        return lr_scheduler.SequentialLR(o, [warmup, following(o)], [WARMUP])

    return make


def one_cycle(**options):
    return lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=LENGTH, **options)


def parts(o):
    return [linear(o, 200, 0.5), cosine(o, 400, 0.2), lr_scheduler.ExponentialLR(o, 0.995)]


def sequence(o):
    return lr_scheduler.SequentialLR(o, parts(o), [200, 600])


def warmup_sequence(o):
    """SequentialLR cannot hold another one: the same, flat."""
    warmup = lr_scheduler.LinearLR(o, 1 / WARMUP, 1.0, WARMUP)
    return lr_scheduler.SequentialLR(o, [warmup, *parts(o)], [WARMUP, WARMUP + 200, WARMUP + 600])


SCHEDULES = {
    "constant": lambda o: lr_scheduler.ConstantLR(o, 1.0),
    "linear": linear,
    "linear_to_zero": lambda o: linear(o, least=0.0),
    "cosine": cosine,
    "cosine_to_zero": lambda o: cosine(o, least=0.0),
    "cosine_clamp": by_formula(clamped_cosine),
    "cosine_restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 130, 1, 0.1),
    "cosine_restarts_growing": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 70, 2, 0.0),
    "one_cycle": one_cycle(),
    "one_cycle_linear": one_cycle(anneal_strategy="linear", pct_start=0.2501, div_factor=10, final_div_factor=100),
    "one_cycle_three": one_cycle(three_phase=True),
    "one_cycle_three_linear": one_cycle(three_phase=True, anneal_strategy="linear", pct_start=0.4),
    "inverse_sqrt": by_formula(inverse_sqrt(WARMUP, WARMUP)),
    "inverse_sqrt_cold": by_formula(inverse_sqrt(0, 10000)),
    "wsd": by_formula(wsd),
    "step": lambda o: lr_scheduler.StepLR(o, 30, 0.7),
    "exponential": lambda o: lr_scheduler.ExponentialLR(o, 0.993),
    "polynomial": lambda o: lr_scheduler.PolynomialLR(o, LENGTH, 2.5),
    "polynomial_plain": lambda o: lr_scheduler.PolynomialLR(o, LENGTH),
    "polynomial_floor": by_formula(lambda t: 0.1 + 0.9 * (1 - t / LENGTH) ** 0.5),
    "points": by_formula(points),
    "sequence": sequence,
    "warmup_cosine_0": after_warmup(0, lambda o: cosine(o, LENGTH - WARMUP)),
    "warmup_cosine_tiny": after_warmup(1e-8, lambda o: cosine(o, LENGTH - WARMUP)),
    "warmup_cosine": after_warmup(1 / WARMUP, lambda o: cosine(o, LENGTH - WARMUP)),
    "warmup_linear": after_warmup(1 / WARMUP, lambda o: linear(o, LENGTH - WARMUP)),
    "warmup_constant": after_warmup(1 / WARMUP, lambda o: lr_scheduler.ConstantLR(o, 1.0)),
    "warmup_step": after_warmup(1 / WARMUP, lambda o: lr_scheduler.StepLR(o, 30, 0.7)),
    "warmup_sequence": warmup_sequence,
}


def schedules():
    series = Series("schedules")
    for name, make in SCHEDULES.items():
        optimizer = SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.9)
        schedule = make(optimizer)
        rates, momenta = [], []
        for step in range(LENGTH):
            group = optimizer.param_groups[0]
            rates.append(group["lr"])
            momenta.append(group["momentum"])
            optimizer.step()
            if step + 1 < LENGTH:
                schedule.step()
        series.add(name, rates)
        if name.startswith("one_cycle"):
            series.add(name + ".momentum", momenta)
    return series


# ---- the loss scaler ----

SCALERS = {
    "usual": {"growth_interval": 5},
    "odd": {"growth_interval": 4, "growth_factor": 1.7, "backoff_factor": 0.3, "init_scale": 1000.0},
    "highest": {"growth_interval": 3, "init_scale": 2.0**125},
}
SCALER_STEPS = 100
INFINITE = (3, 4, 10, 11, 12, 30, 55, 56, 90)
NAN = (21, 71)


def scalers():
    series = Series("scaler")
    for name, options in SCALERS.items():
        parameter = torch.nn.Parameter(weight(2, (7,)).float())
        optimizer = SGD([parameter], lr=0.1)
        scaler = torch.amp.GradScaler("cpu", **options)
        scales, skips, weights = [scaler.get_scale()], [], []
        scaler.scale(torch.zeros(1))
        for step in range(SCALER_STEPS):
            scale = scaler.get_scale()
            parameter.grad = (gradient(2, (7,), step) * scale).float()
            if step in INFINITE or step in NAN:
                parameter.grad[step % 7] = math.inf if step in INFINITE else math.nan
            before = parameter.detach().clone()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
            skips.append(torch.equal(before, parameter))
            weights += parameter.tolist()
        series.add(f"{name}.scales", scales)
        series.add(f"{name}.skips", skips)
        series.add(f"{name}.weights", weights)
    return series


# ---- clipping ----

LIMITS = (0.5, 1.0, 30.0, 1e9)


def clipping():
    series = Series("clipping")
    for type_name, dtype in TYPES.items():
        for size in ("usual", "large", "small"):
            factor = {"usual": 1.0, "large": 3e15, "small": 1e-9}[size]
            for limit in LIMITS + ("value",):
                parameters = {}
                for i, (p, s) in enumerate(SHAPES.items()):
                    parameters[p] = torch.nn.Parameter(torch.zeros(s, dtype=dtype))
                    parameters[p].grad = (gradient(i, s, 3) * factor).to(dtype)
                if limit == "value":
                    torch.nn.utils.clip_grad_value_(parameters.values(), 0.3 * factor)
                else:
                    norm = torch.nn.utils.clip_grad_norm_(parameters.values(), limit * factor)
                    series.add(f"{type_name}.{size}.{limit:g}.norm", [norm])
                word = limit if limit == "value" else f"{limit:g}"
                for p, value in parameters.items():
                    series.add(f"{type_name}.{size}.{word}.{p}", digest(value.grad))
    return series


# ---- means over samples: the model of tests/train/test_means.c ----

CHANNELS, PLACES, HIDDEN, KINDS, SAMPLES, IGNORED = 3, 4, 5, 6, 31, -100
STEPS_OF = (12, 12, 7)  # samples of each step
CUTS = {"whole": (1, 12), "micro": (1, 5), "leaves": (2, 4)}  # leaves, most samples in a micro-batch
RATE, MOMENTUM = 0.5, 0.1


def number(i):
    return ((i * 7919 + 13) % 2003 - 1001).double() / 1001


def numbers_of(*shape):
    return number(torch.arange(math.prod(shape), dtype=torch.int64)).reshape(shape)


def mean_targets(loss):
    """Classes with 0 to PLACES targets a sample, or numbers."""
    if loss != "cross_entropy":
        values = numbers_of(SAMPLES, PLACES, KINDS).flip(0)
        return (values + 1) / 2 if loss == "binary_cross_entropy" else values
    targets = torch.full((SAMPLES, PLACES), IGNORED)
    for i in range(SAMPLES):
        for p in range(i * 3 % 5):
            targets[i, p] = (i * 3 + p) % KINDS
    return targets


def element_losses(loss, y, t):
    f = torch.nn.functional
    if loss == "cross_entropy":
        return f.cross_entropy(y.reshape(-1, KINDS), t.reshape(-1), ignore_index=IGNORED, reduction="none").view(t.shape)
    if loss == "huber_error":
        return f.huber_loss(y, t, delta=0.7, reduction="none")
    return {"squared_error": f.mse_loss, "absolute_error": f.l1_loss,
            "binary_cross_entropy": f.binary_cross_entropy_with_logits}[loss](y, t, reduction="none")


def run_means(series, loss, cut):
    leaves, micro = CUTS[cut]
    x, t = numbers_of(SAMPLES, CHANNELS, PLACES), mean_targets(loss)
    shapes = {"bn.weight": (CHANNELS,), "bn.bias": (CHANNELS,), "first.weight": (HIDDEN, CHANNELS), "first.bias": (HIDDEN,),
              "head.weight": (KINDS, HIDDEN)}
    w = {n: weight(i, s).clone().requires_grad_() for i, (n, s) in enumerate(shapes.items())}
    mean, variance = torch.zeros(CHANNELS).double(), torch.ones(CHANNELS).double()
    losses, begin = [], 0
    for n in STEPS_OF:
        counts = [(t[i] != IGNORED).sum().item() if loss == "cross_entropy" else t[i].numel() for i in range(begin, begin + n)]
        divisor, total, means, variances = sum(c > 0 for c in counts), 0, 0, 0
        for v in w.values():
            v.grad = None
        for leaf in range(leaves):
            at, end = begin + leaf * n // leaves, begin + (leaf + 1) * n // leaves
            while at < end:
                part = slice(at, min(at + micro, end))
                size, own_mean, own_variance = part.stop - at, torch.zeros(CHANNELS).double(), torch.ones(CHANNELS).double()
                h = torch.nn.functional.batch_norm(x[part], own_mean, own_variance, w["bn.weight"], w["bn.bias"], True, 1.0, 1e-5)
                h = torch.relu(h.transpose(1, 2) @ w["first.weight"].T + w["first.bias"])
                each = element_losses(loss, h @ w["head.weight"].T, t[part]).flatten(1).sum(1)
                part_loss = sum(each[i] / counts[at - begin + i] for i in range(size) if counts[at - begin + i])
                if torch.is_tensor(part_loss):
                    (part_loss / divisor).backward()
                    total += part_loss.item() / divisor
                means, variances = means + own_mean * size, variances + own_variance * size
                at = part.stop
        losses.append(total)
        with torch.no_grad():
            for v in w.values():
                v -= RATE * v.grad
        mean, variance = (1 - MOMENTUM) * mean + MOMENTUM * means / n, (1 - MOMENTUM) * variance + MOMENTUM * variances / n
        begin += n
    series.add(f"{loss}.{cut}.loss", losses)
    series.add(f"{loss}.{cut}.bn.running_mean", mean)
    series.add(f"{loss}.{cut}.bn.running_var", variance)
    for n, v in w.items():
        series.add(f"{loss}.{cut}.{n}", v.detach().flatten())


def means():
    """In f64 only: what the loss of a step with sample_mean is, and what batch norm makes of all of its samples."""
    series = Series("means")
    for loss in ("cross_entropy", "squared_error", "absolute_error", "huber_error", "binary_cross_entropy"):
        for cut in CUTS:
            run_means(series, loss, cut)
    return series


# ---- class weights, the focal loss and the moving average ----
# The model and the samples are those of tests/train/test_loss_series.c.

MLP = {"hidden.0.weight": (6, 4), "hidden.0.bias": (6,), "hidden.1.weight": (5, 6), "hidden.1.bias": (5,),
       "output.weight": (3, 5), "output.bias": (3,)}
CLASS_SAMPLES, CLASS_STEPS, CLASS_RATE, DECAY = 24, 4, 0.2, 0.7
CLASS_WEIGHTS = {"none": None, "given": (0.25, 3.0, 1.7), "balanced": "balanced"}
GAMMAS = (0, 0.5, 2)


def class_loss(logits, targets, weights, gamma):
    """The mean of PyTorch: divided by the weights of the targets. A focal loss has the same mean."""
    if gamma == 0:
        return torch.nn.functional.cross_entropy(logits, targets, weight=weights)
    own = torch.ones(3, dtype=torch.float64) if weights is None else weights
    entropy = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    return (own[targets] * (1 - torch.exp(-entropy)) ** gamma * entropy).sum() / own[targets].sum()


def run_classes(series, name, weights, gamma):
    x = numbers_of(CLASS_SAMPLES, 4)
    i = torch.arange(CLASS_SAMPLES)
    targets = i % 5 % 3
    if weights == "balanced":  # as scikit-learn has them
        weights = CLASS_SAMPLES / (3 * torch.bincount(targets).double())
    elif weights is not None:
        weights = torch.tensor(weights, dtype=torch.float64)
    w = torch.nn.ParameterDict({n.replace(".", "/"): torch.nn.Parameter(weight(k, s)) for k, (n, s) in enumerate(MLP.items())})
    optimizer = SGD(w.parameters(), lr=CLASS_RATE)
    averaged = torch.optim.swa_utils.AveragedModel(w, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(DECAY))
    losses, norms = [], []
    for _ in range(CLASS_STEPS):
        optimizer.zero_grad()
        h = torch.relu(x @ w["hidden/0/weight"].T + w["hidden/0/bias"])
        h = torch.relu(h @ w["hidden/1/weight"].T + w["hidden/1/bias"])
        loss = class_loss(h @ w["output/weight"].T + w["output/bias"], targets, weights, gamma)
        loss.backward()
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_(w.parameters(), math.inf).item())
        optimizer.step()
        averaged.update_parameters(w)
    series.add(f"{name}.losses", losses)
    series.add(f"{name}.norms", norms)
    for n in MLP:
        series.add(f"{name}.{n}", w[n.replace(".", "/")].detach().flatten())
        series.add(f"{name}.ema.{n}", averaged.module[n.replace(".", "/")].detach().flatten())


def classes():
    series = Series("classes")
    for name, weights in CLASS_WEIGHTS.items():
        for gamma in GAMMAS:
            run_classes(series, f"{name}.{gamma:g}", weights, gamma)
    return series


def main():
    torch.set_num_threads(1)  # sums have one order
    for make in (optimizers, schedules, scalers, clipping, means, classes):
        series = make()
        count, size = series.write()
        print(f"{series.path.name}: {count} series, {size / 1e3:.0f} kB")
    print(f"PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
