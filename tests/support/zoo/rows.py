"""shapes.txt, parsed: the layers of each row."""

import dataclasses
import pathlib
import re

SHAPES = pathlib.Path(__file__).with_name("shapes.txt")


@dataclasses.dataclass
class Op:
    kind: str  # conv linear relu max gap flat resh resize
    weight: tuple = ()  # conv OxIxHxW, linear INxOUT
    kernel: tuple = (1, 1)
    stride: tuple = (1, 1)
    pads: tuple = (0, 0, 0, 0)
    groups: int = 1


@dataclasses.dataclass
class Row:
    name: str
    input: tuple  # C, H, W
    ops: list


def numbers(text, mark):
    return tuple(int(n) for n in text.split(mark))


def parse_op(word):
    if m := re.fullmatch(r"C(\d+x\d+x\d+x\d+)s([\d,]+)p([\d,]+)(?:g(\d+))?", word):
        return Op("conv", numbers(m[1], "x"), stride=numbers(m[2], ","), pads=numbers(m[3], ","), groups=int(m[4] or 1))
    if m := re.fullmatch(r"L(\d+x\d+)", word):
        return Op("linear", numbers(m[1], "x"))
    if m := re.fullmatch(r"Maxk([\d,]+)s([\d,]+)p([\d,]+)", word):
        return Op("max", kernel=numbers(m[1], ","), stride=numbers(m[2], ","), pads=numbers(m[3], ","))
    kinds = {"R": "relu", "GAP": "gap", "flat": "flat", "resh": "resh", "Resize": "resize"}
    return Op(kinds[word])


def read_rows(path=SHAPES):
    rows = []
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        name, shape, ops = (part.strip() for part in line.split("|"))
        rows.append(Row(name, numbers(shape, "x")[1:], [parse_op(word) for word in ops.split()]))
    return rows
