#!/usr/bin/python3
"""Writes the committed seeds of fuzz_onnx: the smallest of many models that cover every block, raw and simplified.

usage: make_onnx_seeds.py   (python3-onnx; the first byte of a seed is the fuzzer's own)
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support/zoo"))
import export  # noqa: E402
import floats  # noqa: E402
import random_nets  # noqa: E402

OUT = pathlib.Path(__file__).with_name("corpus") / "fuzz_onnx"
LIMIT = 190_000  # bytes in all


def features(net):
    """What a network adds to the set."""
    out = {net.task, net.opset, net.bits, net.prequant is None, bool(net.output_scale)}
    for block in net.blocks:
        out.add((block.kind, *map(str, block.form.values())) if block.kind != "add" else (block.kind, block.form["equal"]))
        if block.window:
            out.update({("dilated", block.window.get("dilation", (1, 1)) != (1, 1)), ("padded", any(block.window["pads"]))})
            out.add(("groups", block.window.get("groups", 1) > 1))
    return out


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    nets = [random_nets.random_net(n) for n in range(300)]
    nets.sort(key=lambda net: len(export.write(net, True)))
    covered, total, count = set(), 0, 0
    for net in nets:
        new = features(net) - covered
        if not new:
            continue
        covered |= new
        raw = count % 2 == 0
        data = bytes([count % 4]) + export.write(net, raw, count if raw else None)
        if total + len(data) > LIMIT - 30_000:
            continue
        (OUT / f"{net.name}-{'raw' if raw else 'simple'}").write_bytes(data)
        total, count = total + len(data), count + 1
    for make in (floats.mlp, floats.batch_norms, floats.regression, floats.autoencoder):
        net, shape = make()
        data = bytes([count % 4]) + net.bytes(shape)
        (OUT / net.name).write_bytes(data)
        total, count = total + len(data), count + 1
    net, shape = floats.residual()
    for node in net.nodes:
        if node.op_type == "Concat":  # found by the fuzzer: its rank was added to it
            node.attribute[0].i = 2**63 - 1
    data = b"\0" + net.bytes(shape)
    (OUT / "float_far_axis").write_bytes(data)
    total, count = total + len(data), count + 1
    print(f"{count} seeds, {total} bytes, {len(covered)} features")


if __name__ == "__main__":
    main()
