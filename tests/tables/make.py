#!/usr/bin/env python3
"""Makes tables as people have them, in the working directory. Each can be learned by a small network.

    make.py

flowers.csv     header, row numbers, categories, missing cells, names of classes
patients.csv    header, several rows of each patient, missing cells, a number to predict
kinds.data      no header, names of classes in the last column
votes.data      no header and no numbers, names of classes in the first column, question marks
marks.csv       semicolons, quoted names, whole numbers as classes, a column that is always the same, free text
wide.tsv        tabs, many columns, a number to predict
sales.csv       semicolons, decimal commas, currency and percent signs, dates
machine.csv     two numbers to predict
faults.csv      a class that is rare
rows.jsonl      JSON lines with names of classes, a list and a text
story.txt       plain text
"""
import csv
import datetime
import json
import math
import random

random.seed(16)
KINDS = {"setosa": (1, "white"), "versicolor": (3, "blue"), "virginica": (5, "blue")}


def write(path, rows, **style):
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n", **style).writerows(rows)


def number(center, spread=0.6):
    return f"{random.uniform(center - spread, center + spread):.3f}"


rows = []
for i in range(240):
    kind = random.choice(sorted(KINDS))
    length, color = KINDS[kind]
    rows.append([i + 1, number(length), "NA" if i % 17 == 3 else number(0.5, 0.5), color, kind])
write("flowers.csv", [["id", "length", "width", "color", "kind"]] + rows)
write("kinds.data", [row[1:2] + row[3:] for row in rows])
with open("rows.jsonl", "w") as file:
    for row in rows:
        file.write(json.dumps({"sizes": [float(row[1]), 0.5], "color": row[3], "label": row[4]}) + "\n")

rows = []
for i in range(400):
    patient, age, dose = i // 8, random.uniform(20, 80), random.choice(["none", "low", "high"])
    effect = {"none": 0, "low": 10, "high": 25}[dose]
    pressure = 90 + 0.6 * age - effect + random.gauss(0, 2)
    rows.append([f"p{patient}", f"{age:.1f}", "" if i % 31 == 7 else f"{random.gauss(70, 8):.1f}", dose, f"{pressure:.1f}"])
write("patients.csv", [["patient", "age", "weight", "dose", "pressure"]] + rows)

rows = []
for _ in range(300):
    party = random.choice(["left", "right"])
    votes = [random.choices(["y", "n", "?"], [8, 1, 1] if (party == "left") == (k % 2 == 0) else [1, 8, 1])[0] for k in range(8)]
    rows.append([party] + votes)
write("votes.data", rows)

rows = []
for i in range(300):
    mark = random.randrange(4)
    rows.append([f"{mark * 10 + random.uniform(0, 6):.2f}", f"{random.random():.3f}", "2024", f"remark {i}; no more", mark])
write("marks.csv", [["points, of 40", "noise", "year", "remark", "mark"]] + rows, delimiter=";")

rows = []
for _ in range(300):
    x = [random.gauss(0, 1 + 10 * k) for k in range(60)]
    rows.append([f"{v:.4f}" for v in x] + [f"{x[0] * 5 + x[1] / 2 + 100:.4f}"])
write("wide.tsv", [[f"x{k}" for k in range(60)] + ["y"]] + rows, delimiter="\t")

with open("story.txt", "w") as file:
    file.write("".join(random.choice(["the cat sat on the mat.\n", "the dog ran to the cat.\n"]) for _ in range(300)))


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


rows = []
for i in range(400):
    price, share = random.uniform(200, 3000), random.uniform(0, 100)
    day = datetime.date(2023, 1, 1) + datetime.timedelta(days=random.randrange(365))
    sold = 500 + price + 20 * share + 1500 * math.sin(2 * math.pi * day.timetuple().tm_yday / 365)
    rows.append([day.strftime("%d.%m.%Y"), german(price) + " €", f"{share:.1f} %".replace(".", ","), german(sold)])
write("sales.csv", [["day", "cost", "share", "sold"]] + rows, delimiter=";")

rows = []
for i in range(300):
    speed, load = random.uniform(0, 1), random.uniform(0, 1)
    rows.append([f"{speed:.4f}", f"{2 * speed + load:.4f}", f"{load:.4f}", f"{speed - load:.4f}"])
write("machine.csv", [["speed", "heat", "load", "noise"]] + rows)
write("faults.csv", [["x", "state"]] + [[number(5 if i % 25 == 0 else 1), "broken" if i % 25 == 0 else "fine"] for i in range(300)])
