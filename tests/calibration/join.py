#!/usr/bin/env python3
"""Put lines of library.py into the time model's table of library calls, a line a shape.

    tests/calibration/join.py eval/sim/library/times.tsv [h200=library_H200.tsv ...] >times.tsv

A line of the table is: operator, sizes, and the microseconds of each column that its heading names, or "-".
Where a shape was measured twice with one type, the second time is in a second line of it.
"""
import sys

KINDS = ("float32", "float16", "bfloat16", "tf32")
COLUMNS = [f"{device}/{kind}" for device in ("h100", "h200") for kind in KINDS]
shapes = {}  # (operator, sizes): the lines of it, each with the times by column
notes = []


def add(op, sizes, column, us):
    lines = shapes.setdefault((op, sizes), [])
    line = next((x for x in lines if column not in x), None)
    if line is None:
        lines.append(line := {})
    line[column] = us


for line in open(sys.argv[1]):
    if line.startswith("#"):
        notes += [] if line.startswith("# operator") else [line]
        continue
    op, sizes, *times = line.split()
    for column, us in zip(COLUMNS, times):
        if us != "-":
            add(op, sizes, column, us)
for argument in sys.argv[2:]:
    device, path = argument.split("=", 1)
    for line in open(path):
        if line.startswith("#"):
            notes.append(line)
            continue
        op, kind, sizes, us = line.split()
        add(op, sizes, f"{device}/{kind}", us)
sys.stdout.writelines(notes)
print("# operator, sizes", *COLUMNS)
for (op, sizes), lines in shapes.items():
    for line in lines:
        print(op, sizes, *(line.get(c, "-") for c in COLUMNS), sep="\t")
