#!/usr/bin/python3
"""The firmware under QEMU: one PASS/FAIL line a test.

usage: run.py --bin DIR [--only WORD]
DIR holds odt-sim-board and firmware/BOARD.elf.
"""

import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(os.path.dirname(HERE), "bench", "kernels")
BOARDS = ["sim", "lm3s6965evb", "mps2_an386", "mps2_an505"]


def run(name, command, limit):
    """Prints the test's line; what it said follows where it failed."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=limit)
        output, ok = done.stdout, done.returncode == 0
        reason = "" if ok else f"exit {done.returncode}"
    except subprocess.TimeoutExpired as e:
        output = e.stdout.decode(errors="replace") if isinstance(e.stdout, bytes) else e.stdout
        ok, reason = False, f"not done after {limit} s"
    print(f"{'PASS' if ok else 'FAIL'} {name} {reason}".rstrip(), flush=True)
    if not ok:
        print(output or "", flush=True)
    return ok


def same_everywhere(path):
    """Every (board, mode) of a configuration ends in one state and one set of weights."""
    ends = {}
    with open(path) as f:
        for line in f:
            config, board, mode, state, weights = line.split()
            ends.setdefault(config, {})[(board, mode)] = (state, weights)
    ok = sorted(ends) == ["A", "B"]
    for config, runs in sorted(ends.items()):
        boards = {board for board, _ in runs}
        if len(set(runs.values())) != 1 or boards != set(BOARDS):
            ok = False
            print(f"{config}: {runs}")
    print(f"{'PASS' if ok else 'FAIL'} qemu/same-state-on-every-core", flush=True)
    return ok


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    sim = os.path.join(args.bin, "odt-sim-board")
    images = os.path.join(args.bin, "firmware")
    ok = True
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "states")
        for board in BOARDS:
            name = f"qemu/golden-{board}"
            if args.only in name:
                ok &= run(name, [sys.executable, os.path.join(HERE, "golden_runs.py"), board,
                                 "--sim", sim, "--images", images, "--state", state], 300)
        if args.only in "qemu/golden-sim-lossy":
            ok &= run("qemu/golden-sim-lossy", [
                sys.executable, os.path.join(HERE, "golden_runs.py"), "sim", "--sim", sim, "--configs", "A",
                "--sim-options=--drop-ppm 30 --corrupt-ppm 30 --fault-seed 7"], 120)
        if not args.only:
            ok &= same_everywhere(state)
        if args.only in "qemu/bench-images":
            ok &= run("qemu/bench-images", [sys.executable, os.path.join(BENCH, "run.py"), "--build",
                                            os.path.join(folder, "bench")], 300)
        if args.only in "qemu/rules-on-cores":
            ok &= run("qemu/rules-on-cores", [sys.executable, os.path.join(HERE, "rules", "run.py"), "--build",
                                              os.path.join(folder, "rules")], 300)
        for board in BOARDS:
            for script in ("life", "dial"):
                name = f"qemu/{script}-{board}"
                if args.only in name:
                    ok &= run(name, [sys.executable, os.path.join(HERE, script + ".py"), board,
                                     "--sim", sim, "--images", images], 120)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
