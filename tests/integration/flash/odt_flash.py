#!/usr/bin/python3
"""odt-flash as a process: images of every format, profiles, requests; what it refuses and what it leaves behind.

usage: odt_flash.py ODT_FLASH
"""
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ODT_FLASH = ""
BUILD = bytes(range(1, 21))


def notes():
    text = b"board_x\0cortex-m33\x000.1.0".ljust(64, b"\0")
    return struct.pack("<3I4s", 4, 20, 3, b"GNU\0") + BUILD + struct.pack("<3I4s", 4, 64, 1, b"ODT\0") + text


def code():
    return struct.pack("<II", 0x20001000, 0x08000101) + b"\x11" * 248 + notes()


def elf(data, address=0x08000000, machine=40):
    head = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01".ljust(16, b"\0"), 2, machine, 1, address, 52, 0, 0, 52, 32, 1,
                       40, 0, 0)
    return head + struct.pack("<8I", 1, 84, address, address, len(data), len(data), 5, 4) + data


def hex_file(data, address=0x08000000):
    def record(offset, kind, body):
        raw = bytes([len(body), offset >> 8, offset & 255, kind]) + body
        return ":" + (raw + bytes([-sum(raw) & 255])).hex().upper() + "\n"
    lines = [record(0, 4, struct.pack(">H", address >> 16))]
    lines += [record(at, 0, data[at:at + 16]) for at in range(0, len(data), 16)]
    return ("".join(lines) + record(0, 1, b"")).encode()


def uf2(data, address=0x10000000):
    parts = [data[at:at + 256] for at in range(0, len(data), 256)]
    return b"".join(struct.pack("<8I", 0x0A324655, 0x9E5D5157, 0, address + 256 * i, len(part), i, len(parts), 0) +
                    part.ljust(476, b"\0") + struct.pack("<I", 0x0AB16F30) for i, part in enumerate(parts))


class OdtFlash(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="odt-flash-test-")
        self.root = pathlib.Path(self.folder.name)
        self.spool, self.profiles = self.root / "spool", self.root / "profiles"
        for part in ("requests", "firmware", "results"):
            (self.spool / part).mkdir(parents=True)
        self.profiles.mkdir(mode=0o755)
        self.program = self.root / "program.py"
        self.out = self.root / "out.json"
        self.say("")

    def tearDown(self):
        self.folder.cleanup()

    def say(self, body):
        """The flash program of the test: tells what it was given, then does `body`."""
        self.program.write_text("#!/usr/bin/python3\nimport json, os, sys, time\n"
                                f"json.dump([sys.argv[1:], dict(os.environ), open(sys.argv[1], 'rb').read().hex()],"
                                f" open({str(self.out)!r}, 'w'))\n{body}\n")
        self.program.chmod(0o755)

    def profile(self, name="board_x", words=('"{image}"', '"{uid}"'), timeout=20, extra=""):
        file = self.profiles / f"{name}.toml"
        argv = ", ".join([f'"{self.program}"', *words])
        file.write_text(f'board_types = ["board_x"]\ncore = "cortex-m33"\n{extra}[memory]\nflash_address = 0x08000000\n'
                        f'flash_bytes = 65536\n[flash]\nmethod = "test"\nformats = ["elf", "bin"]\nargv = [{argv}]\n'
                        f"timeout_s = {timeout}\n")
        file.chmod(0o644)
        return file

    def request(self, name="one", data=None, profile="board_x", **values):
        data = elf(code()) if data is None else data
        digest = hashlib.sha256(data).hexdigest()
        (self.spool / "firmware" / digest).write_bytes(data)
        values = {"uid": "0102030405060708", **values}
        (self.spool / "requests" / f"{name}.json").write_text(
            json.dumps({"profile": profile, "image": digest, "format": "elf", "values": values}))
        return digest

    def drain(self, *flags, code_wanted=0):
        done = subprocess.run([ODT_FLASH, "--spool", str(self.spool), "--profiles", str(self.profiles), "--own-profiles", *flags],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code_wanted, done.stderr)
        return done

    def result(self, name="one"):
        return json.loads((self.spool / "results" / f"{name}.json").read_text())

    def failed(self, code_wanted, begun, name="one"):
        result = self.result(name)
        self.assertEqual((result["state"], result["error"]["code"], result["begun"]), ("failed", code_wanted, begun), result)
        self.assertTrue(result["error"]["text"])
        return result

    def inspect(self, data):
        file = self.root / "image"
        file.write_bytes(data)
        return subprocess.run([ODT_FLASH, "--inspect", str(file)], capture_output=True, text=True, timeout=30)

    def test_images_of_every_format_say_what_they_are(self):
        raw = code()
        for kind, data, where in (("elf", elf(raw), "0x8000000"), ("hex", hex_file(raw), "0x8000000"),
                                  ("uf2", uf2(raw), "0x10000000"), ("bin", raw, "0x0")):
            said = self.inspect(data)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertEqual(said.stdout, f"{kind}, {len(data)} bytes, flash {where} + {len(raw)}, board board_x, core cortex-m33, "
                                          f"version 0.1.0, build {BUILD[:6].hex()}\n")

    def test_damaged_images_are_refused(self):
        raw = code()
        bad_sum = hex_file(raw).replace(b":10", b":11", 1)
        flipped = bytearray(hex_file(raw))
        flipped[60] = flipped[60] ^ 1
        for what, data in (("cut ELF", elf(raw)[:-5]), ("ELF of a PC", elf(raw, machine=62)), ("sum", bad_sum), ("bit", bytes(flipped)),
                           ("no end", hex_file(raw)[:-12]), ("cut UF2", uf2(raw)[:-1]), ("UF2 block", uf2(raw)[512:]),
                           ("text", b"hello, world, this is text"), ("nothing", b"")):
            said = self.inspect(data)
            self.assertEqual(said.returncode, 2, what)
            self.assertIn("what to do", said.stderr, what)

    def test_a_request_is_written_by_the_profiles_program(self):
        self.say("print('erasing'); print('writing 40%'); print('done 100%')")
        self.profile()
        data = elf(code())
        self.request(data=data)
        self.drain()
        result = self.result()
        self.assertEqual((result["state"], result["permille"], result["begun"], result["line"]), ("done", 1000, True, "done 100%"))
        self.assertEqual((self.spool / "results/one.log").read_text().splitlines(), ["erasing", "writing 40%", "done 100%"])
        argv, environment, image = json.loads(self.out.read_text())
        self.assertEqual(bytes.fromhex(image), data)
        self.assertEqual(argv[1], "0102030405060708")
        self.assertEqual(set(environment) - {"LC_CTYPE"}, {"PATH", "LANG", "HOME"})
        self.assertFalse(pathlib.Path(argv[0]).exists(), "the copy of the image is left behind")
        self.assertEqual(list((self.spool / "requests").iterdir()), [])

    def test_a_request_is_done_once(self):
        self.profile()
        self.request()
        self.drain()
        self.out.unlink()
        self.request()
        self.drain()
        self.assertFalse(self.out.exists())

    def test_what_the_program_does_wrong_is_told(self):
        self.profile()
        self.say("print('no probe found'); sys.exit(3)")
        self.request("ends")
        self.drain()
        self.assertIn("no probe found", self.failed("FLASH_PROGRAM", True, "ends")["error"]["text"])
        self.say("time.sleep(60)")
        self.profile(timeout=1)
        self.request("hangs")
        self.drain()
        self.failed("FLASH_TIMEOUT", True, "hangs")
        self.program.unlink()
        self.request("absent")
        self.drain()
        self.failed("FLASH_PROGRAM", False, "absent")

    def test_nothing_is_started_for_what_is_not_right(self):
        file = self.profile()
        self.request("unknown", profile="other")
        self.request("shell", uid="01; touch /tmp/x")
        self.request("option", uid="-x")
        self.request("path", profile="../profiles/board_x")
        digest = self.request("changed", data=elf(code() + b"\0" * 4))
        (self.spool / "firmware" / digest).write_bytes(elf(code() + b"\1" * 4))
        (self.spool / "requests/broken.json").write_text("{")
        (self.spool / "requests/link.json").symlink_to("/etc/passwd")
        # What would hold or fill a reader: a pipe, a device, where a request or an image should be.
        os.mkfifo(self.spool / "requests/pipe.json")
        for name, target in (("piped", None), ("endless", "/dev/zero"), ("linked", "/etc/hostname")):
            image = self.spool / "firmware" / self.request(name, data=elf(code() + name.encode()))
            image.unlink()
            if target is None:
                os.mkfifo(image)
            else:
                image.symlink_to(target)
        self.request("name", data=elf(code()))
        bad = json.loads((self.spool / "requests/name.json").read_text())
        (self.spool / "requests/name.json").write_text(json.dumps({**bad, "image": "../requests/name.json"}))
        self.drain()
        self.failed("PROFILE_UNKNOWN", False, "unknown")
        self.failed("PROFILE_UNKNOWN", False, "path")
        self.failed("PLACEHOLDER", False, "shell")
        self.failed("PLACEHOLDER", False, "option")
        for name in ("changed", "piped", "endless", "linked", "name"):
            self.failed("FIRMWARE_CORRUPT", False, name)
        self.profile("ported", ('"{image}"', '"{port}"'))
        for name, port in (("disk", "/etc/shadow"), ("dots", "/dev/../etc/shadow")):
            self.request(name, profile="ported", port=port)
            self.drain()
            self.failed("PLACEHOLDER", False, name)
        file.chmod(0o666)
        self.request("open")
        self.drain()
        self.failed("PROFILE_INVALID", False, "open")
        file.chmod(0o644)
        for name, words, extra in (("words", ('"{other}"',), ""), ("key", ('"{image}"',), "colour = 1\n")):
            self.profile(name, words, extra=extra)
            self.request(f"bad-{name}", profile=name)
            self.drain()
            self.failed("PROFILE_INVALID", False, f"bad-{name}")
        self.assertFalse(self.out.exists())
        self.assertEqual(list((self.spool / "requests").iterdir()), [])

    def test_one_at_a_time_works_on_a_spool(self):
        first = subprocess.Popen([ODT_FLASH, "--spool", str(self.spool), "--profiles", str(self.profiles), "--watch"],
                                 stdin=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 30
            while not (self.spool / "results/.lock").exists() and time.monotonic() < until:
                time.sleep(0.02)
            done = self.second(until)
            self.assertIn("another odt-flash", done.stderr)
        finally:
            first.terminate()
            self.assertEqual(first.wait(20), 0)
        self.drain()

    def second(self, until):
        while True:
            done = subprocess.run([ODT_FLASH, "--spool", str(self.spool)], capture_output=True, text=True, timeout=30)
            if done.returncode == 1 or time.monotonic() > until:
                return done

    def test_boards_are_written_side_by_side(self):
        self.say("open(sys.argv[1] + '.ready', 'w').close()\nroot = os.path.dirname(os.path.abspath(__file__))\n"
                 "open(f'{root}/{sys.argv[2]}.here', 'w').close()\n"
                 "until = time.time() + 15\n"
                 "while len([n for n in os.listdir(root) if n.endswith('.here')]) < 3 and time.time() < until: time.sleep(0.02)\n"
                 "os.unlink(sys.argv[1] + '.ready')\n"
                 "sys.exit(0 if time.time() < until else 1)")
        self.profile()
        for i in range(3):
            self.request(f"b{i}", uid=f"{i:016x}")
        self.drain()
        self.assertEqual([self.result(f"b{i}")["state"] for i in range(3)], ["done"] * 3)

    def test_no_spool_is_one_clear_error(self):
        done = subprocess.run([ODT_FLASH, "--spool", str(self.root / "none")], capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertIn("what to do", done.stderr)
        self.assertEqual(subprocess.run([ODT_FLASH], capture_output=True, timeout=30).returncode, 2)


if __name__ == "__main__":
    ODT_FLASH = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
