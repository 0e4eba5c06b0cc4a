#!/usr/bin/python3
"""The flash program of boards under QEMU: puts an image in the place of the board's, and ends QEMU; its starter
(qemu-board.sh --keep --image DIR/UID.elf --qmp DIR/UID.qmp) starts it again with it.

  qemu-flash.py DIR UID IMAGE        exit code 0: in place, and QEMU was told
"""
import json
import os
import pathlib
import shutil
import socket
import sys


def tell(path, *commands):
    with socket.socket(socket.AF_UNIX) as qmp:
        qmp.settimeout(10)
        qmp.connect(str(path))
        lines = qmp.makefile("rw")
        lines.readline()
        for command in commands:
            lines.write(json.dumps({"execute": command}) + "\n")
            lines.flush()
            lines.readline()


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    folder, uid, image = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    target = folder / f"{uid}.elf"
    if not target.exists():
        sys.exit(f"qemu-flash: no board {uid} in {folder}")
    print(f"writing {image.stat().st_size} bytes: 0%", flush=True)
    part = folder / f"{uid}.part"
    shutil.copyfile(image, part)
    os.replace(part, target)
    print("written: 90%", flush=True)
    try:
        tell(folder / f"{uid}.qmp", "qmp_capabilities", "quit")
    except (FileNotFoundError, ConnectionRefusedError):
        print("QEMU is between two starts: it takes the image by itself", flush=True)
    print("restarted: 100%", flush=True)


if __name__ == "__main__":
    main()
