#!/usr/bin/python3
"""Many simulated boards in one process: each is a board of its own to odtd, whatever happens on their lines; a duplicate uid
is told; a wrong list of faults is one error.

usage: sim_fleet.py --bin DIR
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy"))

from odt_processes import Processes  # noqa: E402

COUNT = 30
FIRST = 0x5100000000000FF0  # the last byte carries on the way


def online(fleet):
    return {b["uid"]: b for b in fleet.ctl("board", "list") if b["status"] == "ONLINE"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    args = parser.parse_args()
    sim = str(args.bin.resolve() / "odt-sim-board")
    wrong = subprocess.run([sim, "--listen", "0", "--faults", "drop=10,melt=1"], capture_output=True, text=True, timeout=20)
    assert wrong.returncode == 2 and "--faults" in wrong.stderr and "melt" in wrong.stderr, wrong
    with tempfile.TemporaryDirectory() as folder:
        fleet = Processes(args.bin.resolve(), folder)
        try:
            fleet.start_odtd()
            fleet.sim_board("fleet", f"{FIRST:016x}", ["--count", str(COUNT), "--ram", 65536, "--fault-seed", 3, "--faults",
                                                       "drop=5,flip=5,garbage=5,duplicate=5", "--baud", 921600])
            want = {f"{FIRST + i:016x}" for i in range(COUNT)}
            fleet.wait_for("all online", lambda: set(online(fleet)) == want, 60)
            boots = {b["boot_id"] for b in online(fleet).values()}
            assert len(boots) == COUNT, "every board has its own entropy"
            fleet.end("fleet")
            fleet.sim_board("twins", "5200000000000001", ["--count", 3, "--ram", 65536, "--duplicate-uid"])
            fleet.wait_for("the twins' warning", lambda: "5200000000000001 answers here and on" in fleet.log_tail("odtd", 60), 60)
            fleet.wait_for("one of the twins and the third, online",
                           lambda: {"5200000000000001", "5200000000000002"} <= set(online(fleet)), 60)
        finally:
            fleet.stop()


if __name__ == "__main__":
    main()
