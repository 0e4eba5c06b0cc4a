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
sys.path.insert(0, str(ROOT / "tests/bench"))
import built  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=built.FOLDER)
    args, rest = parser.parse_known_args()
    folder = args.build.resolve()
    try:
        built.build(folder, "bench_accuracy")
    except subprocess.CalledProcessError as error:
        return error.returncode
    os.execv(folder / "bin/bench_accuracy", ["bench_accuracy", *rest])


if __name__ == "__main__":
    sys.exit(main())
