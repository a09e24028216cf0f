"""Metrics by their definitions, in plain Python and f64: what anneal's numbers are compared with."""
import math
import struct


def read_npy(path):
    """An array of f32 or f64 as a list of rows."""
    raw = open(path, "rb").read()
    assert raw[:6] == b"\x93NUMPY"
    length = struct.unpack("<H", raw[8:10])[0]
    head = eval(raw[10:10 + length])  # a dictionary that the command has just written
    rows, columns = head["shape"]
    letter = {"<f4": "f", "<f8": "d"}[head["descr"]]
    numbers = struct.unpack(f"<{rows * columns}{letter}", raw[10 + length:])
    return [numbers[i * columns:(i + 1) * columns] for i in range(rows)]


def predicted(row):
    """The class with the largest number; of equal ones the first."""
    return max(range(len(row)), key=lambda c: (row[c], -c))


def confusion(targets, rows, classes):
    counts = [[0] * classes for _ in range(classes)]
    for target, row in zip(targets, rows):
        counts[target][predicted(row)] += 1
    return counts


def share(part, whole):
    return part / whole if whole else 0.0


def of_classes(counts):
    """(targets, predicted, precision, recall, f1) of each class."""
    result = []
    for c in range(len(counts)):
        right, row, column = counts[c][c], sum(counts[c]), sum(line[c] for line in counts)
        result.append((row, column, share(right, column), share(right, row), share(2 * right, row + column)))
    return result


def macro(classes):
    """Means of precision, recall and F1 over the classes that are there or were predicted."""
    seen = [c for c in classes if c[0] + c[1]]
    return [sum(c[i] for c in seen) / len(seen) for i in (2, 3, 4)]


def area(targets, rows):
    """Of all pairs of both classes, the share in which class 1 has the higher score; equal scores count half."""
    high = [row[1] - row[0] for row, target in zip(rows, targets) if target == 1]
    low = [row[1] - row[0] for row, target in zip(rows, targets) if target == 0]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in high for b in low) / (len(high) * len(low))


def cross_entropy(row, target):
    largest = max(row)
    return largest + math.log(sum(math.exp(x - largest) for x in row)) - row[target]


def weighted_cross_entropy(targets, rows, weights):
    """PyTorch's cross_entropy(weight=weights): the sum of weight · loss, divided by the sum of the weights of the targets."""
    return (sum(weights[target] * cross_entropy(row, target) for target, row in zip(targets, rows)) /
            sum(weights[target] for target in targets))


def focal(targets, rows, gamma):
    """The mean of (1 - p)^gamma · -log p."""
    losses = [cross_entropy(row, target) for target, row in zip(targets, rows)]
    return sum((1 - math.exp(-loss)) ** gamma * loss for loss in losses) / len(losses)


def balanced(targets, classes):
    """scikit-learn's class_weight="balanced"."""
    counts = [targets.count(c) for c in range(classes)]
    return [len(targets) / (sum(n > 0 for n in counts) * n) if n else 1.0 for n in counts]
