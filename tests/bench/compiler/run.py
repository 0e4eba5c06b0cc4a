#!/usr/bin/python3
"""What odtc accepts of the zoo's shapes, and its images against ONNX Runtime on random inputs. Builds what it needs.

tests/bench/run.sh compiler [--json FILE] [--samples N] [--random N] [--build DIR] [--only zoo,fmnist]
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support/zoo"))
import harness  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/bench"))
import built  # noqa: E402

FMNIST = pathlib.Path(__file__).with_name("fmnist.py")  # prints "name value unit" lines of the PC-side trainer


class Zoo:
    def __init__(self, args):
        self.work = args.build / "zoo"
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.index = harness.make(self.work, "--samples", args.samples, "--random", args.random)
        self.compiled = harness.compile_all(self.work, self.index, args.build / "bin/odtc")
        self.tool = args.build / "bin/odt_zoo"
        self.build = args.build
        self.failures = {c.label: c.error for c in self.compiled if c.error}

    def groups(self, *names):
        return [c for c in self.compiled if c.entry["group"] in names]

    def row_files(self):
        """{row: its files}; a variant belongs to the row whose name it begins with."""
        rows = {e["name"]: [] for e in self.index if e["group"] == "rows"}
        for c in self.groups("rows", "variants"):
            rows[c.entry["name"].split(".")[0]].append(c)
        return rows

    def accepted(self):
        """Rows whose files all compile, raw and simplified to the same image."""
        good = 0
        for name, files in self.row_files().items():
            pairs = {}
            for c in (c for c in files if c.kind != "mangled"):
                pairs.setdefault(c.entry["name"], []).append(c)
            whole = not any(c.error for c in files)
            equal = whole and all(a.image.read_bytes() == b.image.read_bytes() for a, b in pairs.values())
            if whole and not equal:
                self.failures[name] = "raw and simplified files give different images"
            good += equal
        return good

    def trained(self):
        """Rows of which one step of every file leaves the state that the reference has."""
        errors = harness.run_tool(self.tool, "step", self.work, [c for c in self.compiled if not c.error])
        self.step_failures = {label: e for label, e in errors.items() if e}
        return sum(all(not c.error and not errors[c.label] for c in files) for files in self.row_files().values())

    def compare(self):
        errors = harness.run_tool(self.tool, "infer", self.work, [c for c in self.compiled if not c.error])
        self.failures.update({label: e for label, e in errors.items() if e})
        harness.run_ort(self.work, self.build)
        comparison = harness.Comparison()
        for c in self.compiled:
            if not c.error and not errors[c.label]:
                ort = self.work / "ort" / c.kind / f"{c.entry['name']}.f32"
                comparison.add(c, harness.outputs_of(c.out, c.entry), harness.outputs_of(ort, c.entry))
        return comparison

    def odtc_seconds(self):
        """The whole program on the 784-64-10 file, median of nine."""
        c = next(c for c in self.compiled if c.entry["name"] == "dense_784_64_10" and c.kind == "raw")
        command = [str(self.build / "bin/odtc"), "compile", str(c.onnx), "-o", str(self.work / "timed.odtm")]
        times = []
        for _ in range(9):
            start = time.monotonic()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times.append(time.monotonic() - start)
        return statistics.median(times)


def say(figures, name, value, unit):
    figures[name] = {"value": value, "unit": unit}
    print(f"{name} {value} {unit}", flush=True)


def run_zoo(args, figures, raw):
    zoo = Zoo(args)
    say(figures, "zoo_rows_accepted", zoo.accepted(), "rows")
    say(figures, "zoo_rows_trained", zoo.trained(), "rows")
    c = zoo.compare()
    say(figures, "ort_mismatches", c.mismatches, "logits")
    say(figures, "ort_exact_logits", c.values, "logits")
    say(figures, "ort_off_by_one", c.by_one, "logits")  # unequal scales, sums beyond 2^24: allowed there
    say(figures, "ort_behind_unequal_sums", c.amplified, "logits")
    say(figures, "dfp16_worst_error_pct", round(100 * c.worst_float, 3), "%")
    say(figures, "dfp16_class_flips", c.flips, "samples")
    others = [x for x in zoo.groups("random", "unequal", "inexact", "plain", "float")]
    say(figures, "other_models_accepted", sum(not x.error for x in others), f"of_{len(others)}")
    say(figures, "other_models_trained", sum(not x.error and x.label not in zoo.step_failures for x in others), f"of_{len(others)}")
    say(figures, "odtc_784_64_10_s", round(zoo.odtc_seconds(), 4), "s")
    raw.update(models=len(zoo.index), files=len(zoo.compiled), samples=args.samples, refused=zoo.failures, steps=zoo.step_failures,
               mismatches=c.details, float_errors=c.float_errors, unequal=[e["name"] for e in zoo.index if e["unequal"]])
    for text in [f"{k}: {v}" for k, v in {**zoo.failures, **zoo.step_failures}.items()] + c.details:
        print(f"# {text[:240]}")


def run_fmnist(args, figures, raw):
    run = subprocess.run([sys.executable, "-B", str(FMNIST), "--build", str(args.build)], stdout=subprocess.PIPE, text=True, check=True)
    for line in run.stdout.splitlines():
        if line.startswith("#"):
            print(line)
        elif line.strip():
            name, value, unit = line.split()
            say(figures, name, float(value), unit)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=built.FOLDER)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--random", type=int, default=60)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", default="zoo,fmnist")
    args = parser.parse_args()
    args.build = args.build.resolve()
    parts = {"zoo": run_zoo, "fmnist": run_fmnist}
    for part in args.only.split(","):
        if part not in parts:
            parser.error(f"--only '{part}': no such part (zoo, fmnist)")
    if args.json:
        try:
            args.json.open("w").close()
        except OSError:
            parser.error(f"cannot write {args.json}")
    figures, raw = {}, {}
    try:
        built.build(args.build, "odtc", "odt_zoo")
        for part in args.only.split(","):
            parts[part](args, figures, raw)
    except subprocess.CalledProcessError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 1
    if args.json:
        args.json.write_text(json.dumps({"figures": figures, "raw": raw}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
