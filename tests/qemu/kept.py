#!/usr/bin/python3
"""A board whose core locks up, so that QEMU aborts, comes back ONLINE by itself (qemu-board.sh --keep), and nothing of it
is left when its starter is killed.

usage: kept.py BOARD --bin DIR
"""

import argparse
import os
import pathlib
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy"))
sys.path.insert(0, str(ROOT / "tests" / "support"))

from gdb_remote import PC, Gdb  # noqa: E402
from odt_processes import Processes  # noqa: E402

UID = "0505000000000077"
VTOR = 0xE000ED08
NOWHERE = 0xE0000000  # execute never
UNDEFINED = b"\xfe\xde"


def lock_up(socket):
    """Faults, with fault handlers that fault."""
    with Gdb(socket) as gdb:
        vectors = gdb.word(VTOR)
        for number in range(3, 8):
            gdb.write(gdb.word(vectors + 4 * number) & ~1, UNDEFINED)
        gdb.set_register(PC, NOWHERE)


def children_of(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(p) for p in path.read_text().split()]


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("board")
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket = os.path.join(folder, "gdb")
        fleet = Processes(args.bin.resolve(), folder)
        try:
            fleet.start_odtd()
            starter = fleet.qemu_board("kept", args.board, UID, keep=True, extra=["--gdb", socket])

            def boot():
                rows = [b for b in fleet.ctl("board", "list") if b["uid"] == UID and b["status"] == "ONLINE"]
                return rows[0]["boot_id"] if rows and rows[0].get("boot_id") else None

            first = fleet.wait_for("ONLINE", boot, 40)
            before = children_of(starter.pid)
            lock_up(socket)
            fleet.wait_for("QEMU's end", lambda: not any(alive(p) for p in before), 20)
            second = fleet.wait_for("ONLINE again", lambda: boot() not in (None, first) and boot(), 60)
            assert second != first, "another boot seed"
            assert "(exit 134)" in fleet.log_tail("kept"), fleet.log_tail("kept")
            last = children_of(starter.pid)
            assert last, "QEMU runs"
            starter.send_signal(signal.SIGKILL)
            fleet.wait_for("the end of QEMU with its starter", lambda: not any(alive(p) for p in last), 20)
        finally:
            fleet.stop()
    print(f"{args.board}: back ONLINE, no orphan; {time.process_time():.1f} s of this script")


if __name__ == "__main__":
    main()
