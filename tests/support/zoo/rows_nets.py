"""A network for each row of shapes.txt, and variants of some of them."""

import zlib

from network import Net
from rows import read_rows

BATCH_NORM_LINEAR = ("CNN_TS_GEN_BASE_40K_NPU", "CNN_TS_GEN_BASE_4P2K_NPU")  # Linear, BatchNorm, ReLU


def seed_of(name):
    return zlib.crc32(name.encode()) & 0x7FFFFFFF


def run(net, ops, at):
    """Adds a row's operators behind tensor `at`; returns the last tensor."""
    for n, op in enumerate(ops):
        relu = n + 1 < len(ops) and ops[n + 1].kind == "relu"
        if op.kind == "conv":
            o, _, kh, kw = op.weight
            at = net.conv(o, (kh, kw), at, op.stride, op.pads, groups=op.groups, relu=relu)
        elif op.kind == "linear":
            bn = relu and net.name.split(".")[0] in BATCH_NORM_LINEAR
            at = net.linear(op.weight[1], at, relu, form="batch_norm" if bn else "matmul")
        elif op.kind == "max":
            at = net.maxpool(op.kernel, op.stride, op.pads, at)
        elif op.kind == "gap":
            at = net.gap(at, keepdims=int(net.name.startswith("RES_")))
        elif op.kind == "flat":
            at = net.flatten("Flatten", at)
        elif op.kind == "resh" and n == 0:
            net.reshape_input()
        elif op.kind == "resh":
            at = net.flatten("Reshape", at)
        elif op.kind == "resize":
            at = net.resize((2, 1), at)
    return at


def build(row, variant="", bits=8):
    name = row.name + variant
    net = Net(name, seed_of(name), row.input, bits)
    net.add_prequant(batch_norm=seed_of(row.name) % 2 == 0)
    if not row.name.startswith("RES_"):
        run(net, row.ops, 0)
    else:
        ends = [n for n, op in enumerate(row.ops) if op.kind == "gap"]
        a = run(net, row.ops[: ends[0] + 1], 0)
        b = run(net, row.ops[ends[0] + 1 : ends[1] + 1], 0)
        if variant == ".unequal":
            joined = net.add_scaled(a, b)
        elif variant == ".cat":
            joined = net.concat(a, b)
        else:
            joined = net.add(a, b)
        run(net, row.ops[ends[1] + 1 :], joined)
    net.task = {"AE": "autoencode", "FC": "regress", "RE": "regress"}.get(row.name[:2], "classify")
    if row.name.startswith("RES_"):
        net.task = "classify"
    net.check_alive()
    return net


def all_rows():
    return [build(row) for row in read_rows()]


def variants():
    """What the rows leave open: unequal scales and concat in place of the sum, fewer bits, a float output."""
    rows = {row.name: row for row in read_rows()}
    nets = [build(rows["RES_ADD_CNN_TS_GEN_BASE_3K"], v) for v in (".unequal", ".cat")]
    for name in ("CNN_TS_GEN_BASE_2K_NPU", "CNN_TS_GEN_BASE_6K_NPU", "FC_CNN_TS_GEN_BASE_1K_NPU", "CNN_LENET5"):
        nets.append(build(rows[name], ".w4", 4))
    for name in ("CNN_TS_GEN_BASE_5K_NPU", "REG_TS_GEN_BASE_3K"):
        nets.append(build(rows[name], ".w2", 2))
    for name in ("CNN_TS_GEN_BASE_4P2K_NPU", "REG_TS_GEN_BASE_1K", "AE_CNN_TS_GEN_BASE_1K"):
        net = build(rows[name], ".float_out")
        net.output_scale = 0.046875
        nets.append(net)
    return nets
