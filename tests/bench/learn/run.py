#!/usr/bin/python3
"""Learning bars: firmware/odt's training against fp32 SGD on the same work. Builds what it needs.

tests/bench/run.sh learn [--quick] [--json FILE] [--only digits|fashion|apt|dfp] [--build DIR]
"""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def build(folder):
    if not (folder / "build.ninja").exists():
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                        "-DODT_UNITY=ON", "-DODT_TESTS=ON"], check=True, stdout=sys.stderr)
    subprocess.run(["ninja", "-C", folder, "bench_learn"], check=True, stdout=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    args, rest = parser.parse_known_args()
    folder = args.build.resolve()
    try:
        build(folder)
        digits = folder / "digits.bin"
        subprocess.run([sys.executable, "-B", ROOT / "tests/bench/learn/export_digits.py", digits], check=True)
    except subprocess.CalledProcessError as error:
        return error.returncode
    except FileNotFoundError as error:
        parser.error(f"{error.filename} is not in PATH; it is needed to build the bench")
    os.execv(folder / "bin/bench_learn", ["bench_learn", "--digits", str(digits), *rest])


if __name__ == "__main__":
    sys.exit(main())
