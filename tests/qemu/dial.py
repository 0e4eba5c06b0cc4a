#!/usr/bin/python3
"""A board that dials: its UART connects to the host, comes again when the host went away, keeps its run.

usage: dial.py BOARD [--sim BINARY] [--images DIR]
"""

import argparse
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import golden_runs as golden  # noqa: E402
from tail import model_for  # noqa: E402

bc, pb = golden.bc, golden.pb


def accept(server):
    server.settimeout(30)
    sock, _ = server.accept()
    return bc.Board(sock, timeout=20.0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("board")
    parser.add_argument("--sim", default="build/bin/odt-sim-board")
    parser.add_argument("--images", default="build/bin/firmware")
    args = parser.parse_args()
    uid = "0d70000000000dd1"
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"127.0.0.1:{server.getsockname()[1]}"
        if args.board == "sim":
            command = [args.sim, "--connect", where, "--uid", uid]
        else:
            command = [os.path.join(golden.ROOT, "deploy", "qemu-board.sh"), "--image",
                       os.path.join(args.images, args.board + ".elf"), "--connect", where, args.board, uid]
        process = subprocess.Popen(golden.tied(command), stdout=subprocess.DEVNULL)
        try:
            link = accept(server)
            first = link.hello()
            golden.check("uid", first.uid.hex(), uid)
            link.push(pb.RESOURCE_MODEL_IMAGE, model_for(first)[0])
            link.close()
            link = accept(server)
            again = link.hello()
            golden.check("boot_id", again.boot_id, first.boot_id)
            golden.check("model kept", len(again.model_hash), 16)
            link.close()
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
