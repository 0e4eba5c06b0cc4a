#!/usr/bin/python3
"""What a board gives beside its link: watchdog, fault record, reset reason, LED.

usage: hal.py BOARD [--images DIR]
The product's image: faults and hangs are put upon it through QEMU's gdb stub.
"""

import argparse
import os
import struct
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import golden_runs as golden  # noqa: E402
from boards import qemu_boards  # noqa: E402
from gdb_remote import PC, Gdb  # noqa: E402

bc, pb, check = golden.bc, golden.pb, golden.check

# (watchdog, its clock in Hz, LED register); None: the model has none
DEVICES = {
    "mps2_an505": (0x50081000, 20_000_000, 0x50302000),
    "mps3_an524": (0x50081000, 32_000_000, 0x51302000),
    "mps2_an386": (0x40008000, 25_000_000, 0x40028000),
    "mps2_an500": (0x40008000, 25_000_000, 0x40028000),
    "mps3_an547": (0x5802E000, 32_768, 0x59302000),
    "lm3s6965evb": (0x40000000, 12_500_000, 0x40025004),
    "netduinoplus2": (None, None, None),
    "microbit": (None, None, None),
}
LOAD, VALUE, CTRL, LOCK, UNLOCK = 0x0, 0x4, 0x8, 0xC00, 0x1ACCE551
WATCHDOG_S = 30
NOWHERE = 0xE0000000  # execute never
RUNS_ON = {"microbit": 0xE000E010}  # its model executes zeros up to the first register
NO_MEMORY = 0xF0000000
STACK_OVERFLOW = 1 << 20  # of CFSR
STACK_BYTES = 8 * 1024  # of the boards with Armv8-M
STR_R3_R2, STR_R1_R0, CPSIE_I, CPSID_I, STAY = 0x6013, 0x6001, 0xB662, 0xB672, 0xE7FE


class Rig:
    def __init__(self, board, args, folder):
        self.board = board
        self.socket = os.path.join(folder, "gdb")
        args.board_options = ["--gdb", self.socket]
        self.process, self.link, self.ack = golden.start(board, args)
        # Code for the tests: the arena's last bytes, below the stack. Nothing lies there without a trainer.
        identity = int(qemu_boards()[board].identity, 16)
        self.scratch = identity - 16 * 1024

    def gdb(self):
        return Gdb(self.socket)

    def jump(self, code, registers=None):
        """Runs halfwords in the place of what the board is at."""
        with self.gdb() as gdb:
            gdb.write(self.scratch, struct.pack(f"<{len(code)}H", *code))
            for number, value in (registers or {}).items():
                gdb.set_register(number, value)
            gdb.set_register(PC, self.scratch)

    def next_boot(self, after, seconds=60):
        """The first HELLO_ACK of another boot."""
        self.link.logs = []
        before, end = self.ack.boot_id, time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self.ack = self.link.hello()
            except TimeoutError:
                continue
            if self.ack.boot_id != before:
                return self.ack
            time.sleep(0.2)
        sys.exit(f"{after}: the board did not start again")

    def log_line(self):
        end = time.monotonic() + 20
        while not self.link.logs:
            if time.monotonic() > end:
                sys.exit("no log line came")
            self.link.pump(0.2)
        return self.link.logs.pop(0)


def led_blinks(rig, register):
    rig.link.request(identify=pb.Identify(seconds=10))
    seen, end = set(), time.monotonic() + 9
    while len(seen) < 2 and time.monotonic() < end:
        with rig.gdb() as gdb:
            seen.add(gdb.word(register) & 1)
        time.sleep(0.07)
        rig.link.ping()
    check("LED", seen, {0, 1})


def fault_is_kept(rig):
    """Console text at once; the line as LOG in the next session, not in the one after it; reason FAULT."""
    rig.link.decoder.text = b""
    with rig.gdb() as gdb:
        gdb.set_register(PC, NOWHERE)
    check("reset reason", rig.next_boot("fault").reset_reason, pb.RESET_REASON_FAULT)
    line = rig.log_line()
    assert line.startswith("FAULT cfsr=") and f" pc={RUNS_ON.get(rig.board, NOWHERE):08x} " in line, line
    assert b"!" + line.encode() in rig.link.decoder.text, (line, rig.link.decoder.text)
    rig.link.ping()
    rig.link.hello()
    rig.link.ping()
    rig.link.pump(0.3)
    check("log lines of the session after", rig.link.logs, [])
    rig.link.request(reset=pb.Reset())
    check("reset reason", rig.next_boot("reset").reset_reason, pb.RESET_REASON_REQUESTED)
    rig.link.ping()
    rig.link.pump(0.3)
    check("log lines of the boot after", rig.link.logs, [])


def lost_stack_is_no_lockup(rig):
    """A core whose exception cannot be stacked still restarts, where its bus tells."""
    with rig.gdb() as gdb:
        gdb.set_register(13, NO_MEMORY)
    check("reset reason", rig.next_boot("stack").reset_reason, pb.RESET_REASON_FAULT)
    assert rig.log_line().startswith("FAULT cfsr="), "a fault's line"


def full_stack_is_told(rig, limit):
    """Armv8-M: the stack does not grow into the arena."""
    for _ in range(5):
        with rig.gdb() as gdb:
            gdb.set_register(13, limit + 8)
        check("reset reason", rig.next_boot("full stack").reset_reason, pb.RESET_REASON_FAULT)
        line = rig.log_line()
        if int(line.split("cfsr=")[1][:8], 16) & STACK_OVERFLOW:
            return
        # Stopped where it was about to pop: what lies there is no address to return to, another fault.
    raise AssertionError(line)


def watchdog_is_fed(rig, base, hertz):
    with rig.gdb() as gdb:
        check("watchdog LOAD", gdb.word(base + LOAD), hertz * WATCHDOG_S)
        check("watchdog CTRL", gdb.word(base + CTRL) & 3, 3)
    lowest = hertz * WATCHDOG_S
    for _ in range(20):
        time.sleep(0.1)
        with rig.gdb() as gdb:
            lowest = min(lowest, gdb.word(base + VALUE))
    # Two seconds pass between the first look and the last; the board lets far less than half of it go by.
    assert lowest > hertz * WATCHDOG_S // 2, f"nobody feeds it: {lowest}"


def hang_ends(rig, base, hertz, masked):
    """A loop that the main loop never comes back from; the watchdog is set to 1 s for the test."""
    code = [STR_R3_R2, STR_R1_R0, CPSID_I if masked else CPSIE_I, STAY]
    rig.link.decoder.text = b""
    rig.jump(code, {0: base + LOAD, 1: hertz, 2: base + LOCK, 3: UNLOCK})
    reason = rig.next_boot(f"hang, masked {masked}").reset_reason
    if masked and rig.board == "lm3s6965evb":
        # Its first time-out is an ordinary interrupt, the second resets; QEMU does not note it, the chip does.
        check("reset reason", reason, pb.RESET_REASON_UNSPECIFIED)
        return
    check("reset reason", reason, pb.RESET_REASON_WATCHDOG)
    line = rig.log_line()
    stuck = rig.scratch + 2 * (len(code) - 1)
    assert line.startswith("HUNG ") and f" pc={stuck:08x} " in line, line
    assert b"!" + line.encode() in rig.link.decoder.text, rig.link.decoder.text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("board")
    parser.add_argument("--sim")
    parser.add_argument("--images", default="build/bin/firmware")
    args = parser.parse_args()
    base, hertz, led = DEVICES[args.board]
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(args.board, args, folder)
        try:
            check("reset reason", rig.ack.reset_reason, pb.RESET_REASON_POWER_ON)
            check("weak entropy", rig.ack.caps & 0x100, 0)
            if led:
                led_blinks(rig, led)
            fault_is_kept(rig)
            if base:
                watchdog_is_fed(rig, base, hertz)
                hang_ends(rig, base, hertz, masked=False)
                hang_ends(rig, base, hertz, masked=True)
            if qemu_boards()[args.board].core in ("cortex-m33", "cortex-m55"):
                full_stack_is_told(rig, int(qemu_boards()[args.board].identity, 16) - STACK_BYTES)
            if args.board not in ("lm3s6965evb", "microbit"):  # their models ignore accesses to nothing
                lost_stack_is_no_lockup(rig)
        finally:
            rig.process.terminate()
            rig.process.wait()


if __name__ == "__main__":
    main()
