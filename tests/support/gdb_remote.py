"""Speaks GDB's remote protocol to QEMU's stub: memory, registers and a breakpoint of a board that is
stopped for it."""

import socket
import struct
import time

PC = 15


class Gdb:
    """Connecting stops the board; leaving the `with` lets it run on."""

    def __init__(self, path, timeout=20.0):
        self.path, self.timeout = path, timeout

    def __enter__(self):
        end = time.monotonic() + self.timeout
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        while True:
            try:
                self.sock.connect(self.path)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        self.buffer = b""
        self.command("?")
        self.command("qXfer:features:read:target.xml:0,8")  # single registers are written only after this
        return self

    def __exit__(self, *_):
        try:
            self.command("D")
        except (ConnectionError, BrokenPipeError):
            pass  # killed
        finally:
            self.sock.close()

    def byte(self):
        while not self.buffer:
            data = self.sock.recv(4096)
            if not data:
                raise ConnectionError("QEMU's gdb stub closed the connection")
            self.buffer = data
        first, self.buffer = self.buffer[:1], self.buffer[1:]
        return first

    def command(self, text):
        self.sock.sendall(b"$%s#%02x" % (text.encode(), sum(text.encode()) % 256))
        answer = self.packet()
        while answer[:1] == "T" and text != "?":  # that it has stopped, which it says by itself, too
            answer = self.packet()
        if answer.startswith("E"):
            raise RuntimeError(f"gdb: {text}: {answer}")
        return answer

    def done(self, text):
        answer = self.command(text)
        assert answer == "OK", f"gdb: {text}: {answer!r}"

    def packet(self):
        while self.byte() != b"$":
            pass
        answer = b""
        while (byte := self.byte()) != b"#":
            answer += byte
        self.byte(), self.byte()
        self.sock.sendall(b"+")
        return answer.decode()

    def word(self, address):
        return struct.unpack("<I", bytes.fromhex(self.command(f"m{address:x},4")))[0]

    def write(self, address, data):
        """RAM only: QEMU's stub ignores what is written to devices."""
        self.done(f"M{address:x},{len(data):x}:{data.hex()}")

    def set_register(self, number, value):
        self.done(f"P{number:x}={struct.pack('<I', value).hex()}")

    def break_at(self, address):
        """run() ends whenever it is about to execute what is there."""
        self.breakpoint = f"0,{address:x},2"
        self.done(f"Z{self.breakpoint}")

    def run(self):
        self.sock.sendall(b"$c#63")

    def wait_stop(self):
        answer = self.packet()
        assert answer[:1] == "T", answer

    def run_on(self):
        """From the breakpoint."""
        self.done(f"z{self.breakpoint}")
        self.sock.sendall(b"$s#73")
        self.wait_stop()
        self.done(f"Z{self.breakpoint}")
        self.run()
