#!/usr/bin/python3
"""Accuracy of the PC's trainer on Fashion-MNIST, in firmware/odt's integers. Builds what it needs.

tests/bench/compiler/fmnist.py [--build DIR] [--only cnn|mlp] [--quick] [--seed N] [--json FILE]

Prints "name value unit" lines; about 4 minutes of one core.
"""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    args, rest = parser.parse_known_args()
    folder = args.build.resolve()
    if not (folder / "build.ninja").exists():
        parser.error(f"{folder} is not configured; see README.md")
    done = subprocess.run(["ninja", "-C", folder, "bench_accuracy"], check=False, stdout=sys.stderr)
    if done.returncode != 0:
        return done.returncode
    os.execv(folder / "bin/bench_accuracy", ["bench_accuracy", *rest])


if __name__ == "__main__":
    sys.exit(main())
