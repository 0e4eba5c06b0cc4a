#!/usr/bin/python3
"""Models of every construct through odtc and the host library; logits against those of ONNX Runtime.

usage: check.py PART --bin DIR --work DIR [--write]

PART infer: raw and simplified files compile, give the same image, and the logits that tests/golden/zoo/expected.json has
     step:  one training step of every model equals the reference's
     random: the same step on more networks of other shapes
     float: float32 models (DFP16), outputs within a part of the range of those of ONNX Runtime, and a step
--write puts ONNX Runtime's logits into expected.json (downloads it)
"""

import argparse
import json
import pathlib
import shutil
import sys

import numpy as np

import harness

EXPECTED = harness.ROOT / "tests/golden/zoo/expected.json"
SAMPLES = 8
NAMED = ("--groups", "rows,variants,plain,random,unequal", "--random", 24, "--samples", SAMPLES)
FLOATS = ("--groups", "float", "--random", 24, "--samples", SAMPLES)
FLOAT_ERROR = 0.002  # of the outputs' range


class Check:
    def __init__(self, args):
        self.args, self.failures, self.count = args, [], 0
        self.odtc, self.tool = args.bin / "odtc", args.bin / "odt_zoo"

    def expect(self, good, text):
        self.count += 1
        if not good:
            self.failures.append(text)

    def fixtures(self, *what):
        shutil.rmtree(self.args.work, ignore_errors=True)
        self.args.work.mkdir(parents=True)
        return harness.make(self.args.work, *what)

    def compiled(self, index, **options):
        done = harness.compile_all(self.args.work, index, self.odtc, **options)
        for c in done:
            self.expect(not c.error, f"{c.label}: {c.error}")
        return [c for c in done if not c.error]

    def same_images(self, compiled):
        images = {}
        for c in (c for c in compiled if c.kind != "mangled"):
            images.setdefault(c.entry["name"], []).append(c)
        for name, pair in images.items():
            # Branches of a random network may come in another order.
            if len(pair) == 2 and not (pair[0].entry["branches"] and pair[0].entry["group"] == "random"):
                self.expect(pair[0].image.read_bytes() == pair[1].image.read_bytes(), f"{name}: raw and simplified give two images")

    def run(self, command, compiled):
        errors = harness.run_tool(self.tool, command, self.args.work, compiled)
        for label, error in errors.items():
            self.expect(not error, f"{label}: {error}")
        return [c for c in compiled if not errors[c.label]]

    # --- parts

    def infer(self, *what):
        index = self.fixtures(*(what or NAMED))
        expected = json.loads(EXPECTED.read_text())
        compiled = self.compiled(index)
        self.same_images(compiled)
        for c in self.run("infer", compiled):
            self.compare(c, expected.get(c.entry["name"]))
        return compiled

    def compare(self, c, want):
        got = harness.outputs_of(c.out, c.entry)
        if want is None:
            return self.expect(False, f"{c.label}: not in expected.json: run check.py --write")
        if "sha256" in want:
            return self.expect(harness.digest(got) == want["sha256"], f"{c.label}: other logits than ONNX Runtime's")
        values = np.array(want["values"], np.float32).reshape(got.shape)
        if c.entry["group"] != "float":
            # What is one off in the sum may be more behind further layers.
            limit = 1 if c.entry["group"] == "unequal" else 8
            return self.expect(np.abs(got - values).max() <= limit, f"{c.label}: more than {limit} off ONNX Runtime's logits")
        got = harness.as_file(c.entry, got)
        error = float(np.abs(got - values).max() / np.abs(values).max())
        self.expect(error < FLOAT_ERROR, f"{c.label}: {error:.4f} of the range off ONNX Runtime's outputs")

    def step(self):
        index = self.fixtures("--groups", "rows,variants,plain,unequal", "--samples", 3)
        self.run("step", self.compiled(index, kinds=("simple",)))

    def float(self):
        self.run("step", self.infer(*FLOATS))

    def random(self):
        index = self.fixtures("--groups", "random", "--first", 1000, "--random", self.args.random, "--samples", 3)
        self.run("step", self.compiled(index, kinds=("raw", "simple")))

    def write(self):
        """Unequal scales may be one off, DFP16 is another arithmetic: values; everything else: a hash."""
        out = {}
        for what in (NAMED, FLOATS):
            index = self.fixtures(*what)
            harness.run_ort(self.args.work, self.args.build)
            self.write_group(index, out)
        EXPECTED.parent.mkdir(parents=True, exist_ok=True)
        EXPECTED.write_text("{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "\n}\n")

    def write_group(self, index, out):
        for e in index:
            y = harness.outputs_of(self.args.work / "ort/simple" / f"{e['name']}.f32", e)
            if e["group"] == "float":
                out[e["name"]] = {"values": [float(f"{v:.6g}") for v in y.ravel()]}
            elif e["unequal"]:
                out[e["name"]] = {"values": harness.as_logits(e, y).ravel().tolist()}
            else:
                out[e["name"]] = {"sha256": harness.digest(harness.as_logits(e, y))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("infer", "step", "random", "float"))
    parser.add_argument("--bin", type=pathlib.Path, default=harness.ROOT / "build/bin")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=harness.ROOT / "build", help="where ONNX Runtime is put")
    parser.add_argument("--random", type=int, default=60)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    check = Check(args)
    if args.write:
        check.write()
        return 0
    getattr(check, args.part)()
    shutil.rmtree(args.work, ignore_errors=True)
    for text in check.failures:
        print(f"FAIL {text}")
    print(f"{check.count} checks, {len(check.failures)} failed")
    return 1 if check.failures or check.count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
