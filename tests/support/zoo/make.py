#!/usr/bin/python3
"""Writes ONNX models of every construct that odtc accepts, with samples: see README.md.

usage: make.py OUT [--groups rows,variants,random,unequal,inexact,float,plain] [--random N] [--first N] [--samples N]

OUT/raw/NAME.onnx     as exported: constants as subgraphs, shared initialisers, nodes in any legal order
OUT/simple/NAME.onnx  the same model simplified; float models have no other form
OUT/mangled/NAME.onnx  without names, operands in either order
OUT/NAME.f32          samples, float32
OUT/index.json        what there is
"""

import argparse
import json
import pathlib

import export
import floats
import plain_nets
import random_floats
import random_nets
import rows_nets


def has_branches(net):
    return any(b.kind in ("add", "concat") for b in net.blocks)


def unequal(net):
    return any(b.kind == "add" and not b.form["equal"] for b in net.blocks)


class Folder:
    def __init__(self, out, samples):
        self.out, self.n, self.index = out, samples, []
        for name in ("raw", "simple", "mangled"):
            (out / name).mkdir(parents=True, exist_ok=True)

    def add(self, group, net, files, outputs):
        for kind, data in files.items():
            (self.out / kind / f"{net.name}.onnx").write_bytes(data)
        net.samples(self.n, rows_nets.seed_of(net.name + ".samples")).tofile(self.out / f"{net.name}.f32")
        self.index.append(dict(name=net.name, group=group, kinds=sorted(files), task=net.task, inputs=list(net.shape), outputs=outputs, samples=self.n))
        return self.index[-1]

    def integer(self, group, net):
        # Branches keep their order, so that both files give one image; random networks come in any order.
        seed = None if has_branches(net) and group != "random" else rows_nets.seed_of(net.name)
        files = {"raw": export.write(net, True, seed), "simple": export.write(net, False, input_name="input", output_name="output")}
        if group in ("rows", "random"):
            files["mangled"] = export.write(net, rows_nets.seed_of(net.name) % 2 == 0, rows_nets.seed_of(net.name), mangle=True)
        entry = self.add(group, net, files, list(net.blocks[-1].shape))
        entry.update(unequal=unequal(net), branches=has_branches(net), output_scale=net.output_scale or 1.0)

    def floating(self, net, shape):
        entry = self.add("float", net, {"simple": net.bytes(shape)}, list(shape))
        entry.update(unequal=False, branches=True, output_scale=1.0, post=net.post)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--groups", default="rows,variants,random,unequal,inexact,float,plain")
    parser.add_argument("--random", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--samples", type=int, default=8)
    args = parser.parse_args()
    folder = Folder(args.out, args.samples)
    groups = args.groups.split(",")
    made = {
        "rows": rows_nets.all_rows,
        "variants": rows_nets.variants,
        "random": lambda: [random_nets.random_net(args.first + n) for n in range(args.random)],
        "unequal": lambda: [random_nets.unequal_net(n) for n in range(6)],
        "inexact": lambda: [random_nets.inexact_net(n) for n in range(2)],
        "plain": plain_nets.all_plain,
    }
    for group in groups:
        if group == "float":
            # A third as many random ones as integer networks.
            for net, shape in floats.all_floats() + [random_floats.random_float(args.first + n) for n in range(args.random // 3)]:
                folder.floating(net, shape)
            continue
        for net in made[group]():
            folder.integer(group, net)
    (args.out / "index.json").write_text(json.dumps(folder.index, indent=1) + "\n")


if __name__ == "__main__":
    main()
