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
sys.path.insert(0, str(ROOT / "tests/bench"))
import built  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=built.FOLDER)
    args, rest = parser.parse_known_args()
    folder = args.build.resolve()
    try:
        built.build(folder, "bench_learn")
        digits = folder / "digits.bin"
        subprocess.run([sys.executable, "-B", ROOT / "tests/bench/learn/export_digits.py", digits], check=True)
    except subprocess.CalledProcessError as error:
        return error.returncode
    except FileNotFoundError as error:
        parser.error(f"{error.filename} is not in PATH; it is needed to build the bench")
    os.execv(folder / "bin/bench_learn", ["bench_learn", "--digits", str(digits), *rest])


if __name__ == "__main__":
    sys.exit(main())
