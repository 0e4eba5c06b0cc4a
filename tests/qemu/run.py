#!/usr/bin/python3
"""The firmware under QEMU: one PASS/FAIL line a test.

usage: run.py --bin DIR [--only WORD] [--jobs N]
DIR holds odt-sim-board and firmware/BOARD.elf.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
from boards import qemu_boards  # noqa: E402
from tied import tied  # noqa: E402

BENCH = os.path.join(os.path.dirname(HERE), "bench", "kernels")
BOARDS = ["sim", *qemu_boards()]
# Too small for the golden runs: they train the last layer alone.
TINY = {"microbit"}
NVM_BOARDS = ["sim", "mps2_an505"]
# Boards whose driver of the link is another one's, too: they do not dial.
SAME_LINK = {"mps3_an524", "mps2_an500", "mps3_an547"}
# Whose core, too, is one of another board's or differs by its speed alone.
SAME_LIFE = {"mps3_an524", "mps2_an500"}
FULL = os.environ.get("ODT_FULL") == "1"
# Golden runs of everyday, config:mode; other boards do all. The M33s, and the cores with its instructions (M4, M7), share
# them; streamed ones take four times as long under QEMU.
EVERYDAY = {"mps2_an505": "A:streamed,B:resident", "mps3_an524": "A:resident", "mps2_an386": "A:resident",
            "netduinoplus2": "B:streamed", "mps2_an500": "B:resident", "mps3_an547": "A:resident,B:resident"}


def golden_modes(board):
    """Those that are asked of a board; none: all that it can."""
    if not FULL:
        return EVERYDAY.get(board, "")
    return "A:resident,B:resident" if board in SAME_LINK else ""


def run(name, command, limit):
    """Prints the test's line; what it said follows where it failed."""
    try:
        done = subprocess.run(tied(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=limit)
        output, ok = done.stdout, done.returncode == 0
        reason = "" if ok else f"exit {done.returncode}"
    except subprocess.TimeoutExpired as e:
        output = e.stdout.decode(errors="replace") if isinstance(e.stdout, bytes) else e.stdout
        ok, reason = False, f"not done after {limit} s"
    line = f"{'PASS' if ok else 'FAIL'} {name} {reason}".rstrip() + "\n"
    print(line if ok else f"{line}{output or ''}\n", end="", flush=True)  # at once: others print, too
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
        asked = {b for b in BOARDS if b not in TINY and config in (golden_modes(b) or "AB")}
        if len(set(runs.values())) != 1 or boards != asked:
            ok = False
            print(f"{config}: {runs}")
    print(f"{'PASS' if ok else 'FAIL'} qemu/same-state-on-every-core", flush=True)
    return ok


def tests_of(bin_dir, state):
    """(name, script and arguments, limit in seconds), the slowest first."""
    common = ["--sim", os.path.join(bin_dir, "odt-sim-board"), "--images", os.path.join(bin_dir, "firmware")]

    def here(script, *arguments):
        return [sys.executable, os.path.join(HERE, script), *arguments]

    # Images of their own, built again only where something changed.
    images = os.path.join(os.path.dirname(os.path.abspath(bin_dir)), "qemu")
    yield "qemu/bench-images", [sys.executable, os.path.join(BENCH, "run.py"), "--build", os.path.join(images, "bench")], 300
    yield "qemu/rules-on-cores", here("rules/run.py", "--build", os.path.join(images, "rules")), 300
    for board in sorted(TINY):
        yield f"qemu/tail-{board}", here("tail.py", board, *common), 120
    for board in sorted(set(BOARDS) - TINY, key=lambda b: (b in SAME_LINK, b == "sim")):
        modes = ["--modes", golden_modes(board)] if golden_modes(board) else []
        yield f"qemu/golden-{board}", here("golden_runs.py", board, *common, "--state", state, *modes), 300
    yield ("qemu/golden-sim-lossy", here("golden_runs.py", "sim", *common[:2], "--configs", "A",
                                         "--sim-options=--drop-ppm 30 --corrupt-ppm 30 --fault-seed 7"), 120)
    yield ("qemu/power-cut-mps2_an505", here("power_cut.py", "mps2_an505", *common, *(["--all"] if FULL else [])),
           3600 if FULL else 600)
    for board in NVM_BOARDS:
        yield f"qemu/nvm-{board}", here("nvm.py", board, *common), 300
    yield "qemu/sim-fleet", here("sim_fleet.py", "--bin", bin_dir), 180
    yield "qemu/kept-mps2_an505", here("kept.py", "mps2_an505", "--bin", bin_dir), 180
    for board in BOARDS[1:]:
        yield f"qemu/hal-{board}", here("hal.py", board, *common), 240
    for board in BOARDS:
        if board in SAME_LIFE and not FULL:
            continue
        for script in ("life",) if board in SAME_LINK else ("life", "dial"):
            yield f"qemu/{script}-{board}", here(script + ".py", board, *common), 120


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "states")
        chosen = [t for t in tests_of(args.bin, state) if args.only in t[0]]
        with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, args.jobs)) as pool:
            ok = all(list(pool.map(lambda t: run(*t), chosen)))
        if not args.only:
            ok &= same_everywhere(state)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
