#!/usr/bin/python3
"""Kills QEMU at page writes of a commit: the EEPROM then holds the old commit or the new one, never neither.

usage: power_cut.py BOARD [--images DIR] [--positions N | --all]
QEMU is stopped where a page is about to be written (gdb stub), then killed (SIGKILL).
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import golden_runs as golden  # noqa: E402
from gdb_remote import Gdb  # noqa: E402

bc, pb, check = golden.bc, golden.pb, golden.check
RUN = b"power-cut-run-01"


def read(name):
    with open(os.path.join(golden.GOLDEN, name), "rb") as f:
        return f.read()


def address_of(elf, symbol):
    listed = subprocess.run(["arm-none-eabi-nm", elf], check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in listed.splitlines():
        words = line.split()
        if words[-1] == symbol:
            return int(words[0], 16) & ~1
    raise SystemExit(f"{elf}: no symbol {symbol}")


class Cut:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.memory = os.path.join(folder, "ee.bin")
        self.base = os.path.join(folder, "base.bin")
        self.gdb_path = os.path.join(folder, "gdb")
        self.address = address_of(os.path.join(args.images, args.board + ".elf"), "sbcon_eeprom_write_page")
        self.samples = read("samples.odts")
        self.process = None

    def power_on(self, gdb=False):
        self.args.board_options = ["--nvm", self.memory] + (["--gdb", self.gdb_path] if gdb else [])
        if os.path.exists(self.gdb_path):
            os.remove(self.gdb_path)
        self.process, link, ack = golden.start(self.args.board, self.args)
        return link, ack

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def start_run(self, link, attempt):
        spec = golden.spec_of("A", self.samples, True)
        link.finish(start_run=pb.StartRun(run_id=RUN, attempt=attempt, spec=spec))
        return spec

    def make_base(self):
        """Two commits: both slots are full. The state of the newer one and the pages of a commit."""
        link, _ = self.power_on()
        link.push(pb.RESOURCE_MODEL_IMAGE, read("image.odtm"))
        spec = self.start_run(link, 1)
        for commit_id in (1, 2):
            link.train_streamed(RUN, spec, self.samples, steps=2)
            nvm = link.finish(nvm_commit=pb.NvmCommit(commit_id=commit_id)).nvm
        assert nvm.has_image, "the image has to fit"
        link.close()
        self.kill()
        shutil.copy(self.memory, self.base)
        return nvm.hash, (nvm.bytes + 127) // 128 + 1

    def cut_at(self, page):
        """Kills at the write of page `page` (from 0); returns the state that the commit was of."""
        shutil.copy(self.base, self.memory)
        link, ack = self.power_on(gdb=True)
        assert ack.restored
        self.start_run(link, 2)  # from the image's weights: another state
        fresh = link.state().state_hash
        with Gdb(self.gdb_path) as gdb:
            gdb.break_at(self.address)
            gdb.run()
            link.request_id += 1
            commit = pb.Request(nvm_commit=pb.NvmCommit(commit_id=9))
            link.send(bc.REQ, link.request_id, commit.SerializeToString())
            for _ in range(page):
                gdb.wait_stop()
                gdb.run_on()
            gdb.wait_stop()
            self.kill()
        link.close()
        return fresh

    def commit_whole(self):
        shutil.copy(self.base, self.memory)
        link, _ = self.power_on()
        self.start_run(link, 2)
        fresh = link.finish(nvm_commit=pb.NvmCommit(commit_id=9)).nvm.hash
        link.close()
        self.kill()
        return fresh

    def held(self):
        link, ack = self.power_on()
        assert ack.restored, f"neither the old commit nor the new one; logs: {link.logs}"
        state = link.state()
        check("HELLO_ACK and GET_STATE", ack.state_hash, state.state_hash[:16])
        link.close()
        self.kill()
        return state.state_hash


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("board")
    parser.add_argument("--sim")
    parser.add_argument("--images", default="build/bin/firmware")
    parser.add_argument("--positions", type=int, default=16)
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="odt-cut-") as folder:
        cut = Cut(args, folder)
        try:
            old, pages = cut.make_base()
            count = pages if args.all else min(pages, args.positions)
            # The first page and the last, the head, are always among them.
            for page in sorted({i * (pages - 1) // (count - 1) for i in range(count)}):
                fresh = cut.cut_at(page)
                assert fresh != old
                check(f"killed at page {page} of {pages}: old state", cut.held(), old)
            fresh = cut.commit_whole()
            check("killed behind the last page: new state", cut.held(), fresh)
        finally:
            if cut.process is not None:
                cut.kill()
    print(f"{count} of {pages} page writes cut: always the old commit or the new one")


if __name__ == "__main__":
    main()
