"""Goodput of a QEMU board's UART: samples pushed by the protocol, against bytes that an image only counts."""
import os
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))
sys.path.insert(0, str(ROOT / "tests" / "qemu"))
sys.path.insert(0, str(ROOT / "deploy"))

from odt_processes import free_port  # noqa: E402
from tied import tied  # noqa: E402

BYTES = 1 << 17
ROUNDS = 5


class Qemu:
    def __init__(self, board, image):
        self.port = free_port()
        script = ROOT / "deploy" / "qemu-board.sh"
        self.process = subprocess.Popen(tied([script, "--image", image, "--listen", f"127.0.0.1:{self.port}", board,
                                              "0505000000000099"]), stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def connect(self):
        end = time.monotonic() + 20
        while True:
            try:
                sock = socket.create_connection(("127.0.0.1", self.port), 60)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)


def raw_rate(board, image):
    """kB/s of bytes that are only counted."""
    rates = []
    with Qemu(board, image) as qemu, qemu.connect() as sock:
        time.sleep(1)
        for _ in range(ROUNDS):
            begin = time.monotonic()
            sock.sendall(struct.pack("<I", BYTES) + bytes(BYTES))
            if sock.recv(1) != b"D":
                raise RuntimeError("the sink did not answer")
            rates.append(BYTES / 1000 / (time.monotonic() - begin))
    return statistics.median(rates)


def link_rate(board, image, program, model):
    """kB/s of content of a transfer by the daemon's session (bench_push)."""
    with Qemu(board, image) as qemu:
        qemu.connect().close()
        done = subprocess.run(tied([program, f"tcp:127.0.0.1:{qemu.port}", model, str(BYTES), str(ROUNDS)]),
                              stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    return float(done.stdout.split()[-1])


def build_sink(folder, board):
    out = pathlib.Path(folder) / "sink"
    for command in (["cmake", "-S", ROOT / "tests/bench/link/sink", "-B", out, "-G", "Ninja", f"-DSINK_BOARD={board}",
                     f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/firmware/arm/toolchain.cmake"], ["ninja", "-C", out]):
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout)
    return out


def symbol_sizes(path):
    listing = subprocess.run(["arm-none-eabi-nm", "-S", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = (line.split() for line in listing.splitlines())
    return {row[3]: int(row[1], 16) for row in rows if len(row) == 4}


def measure(board, image, program, model):
    """{name: figure} of a board."""
    with tempfile.TemporaryDirectory() as folder:
        sink = build_sink(folder, board)
        sizes = symbol_sizes(next(sink.rglob("sizes.c.o*")))
        figures = {"fw_link_ram_bytes": sum(v for k, v in sizes.items() if k.startswith("size_"))
                   + sum(v for k, v in symbol_sizes(image).items() if k == "rx")}
        raw = raw_rate(board, sink / "sink.elf")
        link = link_rate(board, image, program, model)
    figures.update({"qemu_raw_kBps": round(raw, 1), "qemu_goodput_kBps": round(link, 1),
                    "qemu_goodput_ratio": round(link / raw, 3)})
    size = subprocess.run(["arm-none-eabi-size", image], stdout=subprocess.PIPE, text=True, check=True).stdout
    text, data = size.splitlines()[1].split()[:2]
    figures["fw_flash_bytes"] = int(text) + int(data)
    return figures
