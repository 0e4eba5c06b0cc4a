#!/usr/bin/env python3
"""odtd as a process: starts, serves on all its doors, refuses what it cannot do with one clear error, stops.

usage: odtd_process.py ODTD SCRATCH_DIR
"""
import faulthandler
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import grpc

ODTD = ""
SCRATCH = ""
GET_INFO = "/odt.api.v1.SystemService/GetInfo"
WATCH = "/odt.api.v1.WatchService/Watch"


# A child that ends with this process. No preexec_fn: after a fork of gRPC's threads it can hang.
WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"]


def call(channel, method, request=b""):
    return channel.unary_unary(method)(request, timeout=10)


def fields(message):
    """The length-delimited and varint fields of a message, without its schema."""
    found, at = {}, 0

    def varint(pos):
        value = shift = 0
        while True:
            byte = message[pos]
            value |= (byte & 0x7F) << shift
            pos, shift = pos + 1, shift + 7
            if byte < 0x80:
                return value, pos

    while at < len(message):
        tag, at = varint(at)
        if tag & 7 == 0:
            found[tag >> 3], at = varint(at)
        elif tag & 7 == 2:
            length, at = varint(at)
            found[tag >> 3], at = message[at:at + length], at + length
        else:
            raise ValueError(f"wire type {tag & 7}")
    return found


class Odtd:
    def __init__(self, data_dir, *flags):
        self.data_dir = pathlib.Path(data_dir)
        self.flags = [*WITH_PARENT, ODTD, "--data-dir", str(data_dir), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
                      "--socket", str(self.data_dir) + ".sock", *flags]
        self.log = open(self.data_dir.parent / "odtd.log", "ab")
        self.process = subprocess.Popen(self.flags, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.endpoints = {}

    def wait(self):
        path = self.data_dir / "endpoints.json"
        for _ in range(600):
            if self.process.poll() is not None:
                raise AssertionError(f"odtd ended with {self.process.returncode}")
            if path.exists():
                self.endpoints = json.loads(path.read_text())
                if self.endpoints["pid"] == self.process.pid:
                    return self
            time.sleep(0.05)
        raise AssertionError("odtd wrote no endpoints.json within 30 s")

    def channel(self):
        return grpc.insecure_channel(self.endpoints["grpc"])

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(timeout=20)
        self.log.close()
        return code


def run(*flags):
    done = subprocess.run([*WITH_PARENT, ODTD, *flags], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stderr


class OdtdTest(unittest.TestCase):
    def setUp(self):
        # Short: a unix socket's path has at most 107 characters.
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="odtd_"))
        self.data = self.scratch / "data"
        self.running = []

    def tearDown(self):
        for odtd in self.running:
            if odtd.process.poll() is None:
                odtd.process.kill()
                odtd.process.wait()
            odtd.log.close()
        log = self.scratch / "odtd.log"
        if log.exists():
            shutil.copy(log, pathlib.Path(SCRATCH) / f"{self.id().rsplit('.', 1)[-1]}.log")
        shutil.rmtree(self.scratch)

    def start(self, *flags, data=None):
        self.running.append(Odtd(data or self.data, *flags))
        return self.running[-1].wait()

    def test_serves_on_every_door(self):
        odtd = self.start("--listen", "127.0.0.1:0")
        with odtd.channel() as channel:
            info = fields(call(channel, GET_INFO))
            self.assertEqual(len(info[2]), 16)
            self.assertEqual(info[9].decode(), str(self.data))
            self.assertEqual(call(channel, "/grpc.health.v1.Health/Check"), b"\x08\x01")
        mode = os.stat(odtd.endpoints["socket"]).st_mode & 0o777
        self.assertEqual(mode, 0o660)
        with grpc.insecure_channel("unix:" + odtd.endpoints["socket"]) as channel:
            self.assertEqual(fields(call(channel, GET_INFO))[2], info[2])
        web = http.client.HTTPConnection("127.0.0.1", odtd.endpoints["http_port"], timeout=10)
        web.request("POST", GET_INFO, body=bytes(5), headers={"Content-Type": "application/grpc-web+proto"})
        answer = web.getresponse().read()
        self.assertEqual(fields(answer[5:5 + int.from_bytes(answer[1:5], "big")])[2], info[2])
        self.assertIn(b"grpc-status: 0", answer)
        web.request("GET", "/readyz")
        self.assertEqual(web.getresponse().read(), b"ready\n")
        web.close()
        with socket.create_connection(("127.0.0.1", odtd.endpoints["listen_port"]), timeout=5):
            pass
        self.assertEqual(odtd.stop(), 0)
        self.assertFalse((self.data / "endpoints.json").exists())

    def test_reflection_lists_the_services(self):
        odtd = self.start()
        with odtd.channel() as channel:
            method = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
            answer = next(iter(method(iter([b"\x3a\x00"]), timeout=10)))
            for service in (b"FleetService", b"WatchService", b"SystemService"):
                self.assertIn(b"odt.api.v1." + service, answer)

    def test_stops_quickly_with_a_watch_open(self):
        odtd = self.start()
        with odtd.channel() as channel:
            stream = channel.unary_stream(WATCH)(b"\x0a\x02\x08\x07")
            next(stream)
            begin = time.monotonic()
            self.assertEqual(odtd.stop(), 0)
            self.assertLess(time.monotonic() - begin, 6)
            with self.assertRaises(grpc.RpcError) as ended:
                while True:
                    next(stream)
            self.assertEqual(ended.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def test_identity_survives_kill_and_restart(self):
        odtd = self.start()
        with odtd.channel() as channel:
            before = fields(call(channel, GET_INFO))
        odtd.stop(signal.SIGKILL)
        self.assertTrue(pathlib.Path(odtd.endpoints["socket"]).exists())
        odtd = self.start()
        with odtd.channel() as channel:
            after = fields(call(channel, GET_INFO))
        self.assertEqual((before[2], before[3]), (after[2], after[3]))
        with grpc.insecure_channel("unix:" + odtd.endpoints["socket"]) as channel:
            call(channel, GET_INFO)

    def check_refusal(self, code, words, *flags):
        got, text = run(*flags, *([] if "--socket" in flags else ["--socket", str(self.data) + ".sock"]))
        self.assertEqual(got, code, text)
        lines = [line for line in text.splitlines() if line.startswith("odtd: ")]
        self.assertEqual(len(lines), 1, text)
        for word in words:
            self.assertIn(word, text)

    def test_ports_in_use_are_named_and_nothing_is_half_started(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            for flag in ("--http", "--grpc", "--listen"):
                flags = {"--http": "127.0.0.1:0", "--grpc": "127.0.0.1:0", "--listen": "127.0.0.1:0"}
                flags[flag] = f"127.0.0.1:{port}"
                self.check_refusal(1, [str(port), "in use", "what to do", flag], "--data-dir", str(self.data),
                                   *(word for pair in flags.items() for word in pair))
                self.assertFalse((self.data / "control.db").exists())

    def test_second_daemon_on_the_same_data_is_refused(self):
        odtd = self.start()
        self.check_refusal(1, [], "--data-dir", str(self.data), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
                           "--socket", "none")
        with odtd.channel() as channel:
            call(channel, GET_INFO)
        self.assertTrue((self.data / "endpoints.json").exists())

    def test_bad_configuration_names_file_line_and_key(self):
        config = self.scratch / "odtd.toml"
        for text, words in (
            ("[http]\nlistn = '127.0.0.1:1'\n", [":2:", "http.listn", "listen"]),
            ("[http]\nlisten = 'everywhere'\n", [":2:", "http.listen", "everywhere"]),
            ("[jobs]\n\nparallel = 0\n", [":3:", "jobs.parallel", "1 to 64"]),
            ("[log]\nlevel = 7\n", [":2:", "log.level", "string"]),
            ("[[serial.allow]]\nvid = '0451'\n", [":2:", "serial.allow.vid"]),
            ("[[tcp.dial]]\naddress = 'board'\n", [":2:", "tcp.dial.address", "HOST:PORT"]),
            ("[access]\nremote_role = 'root'\n", [":2:", "access.remote_role"]),
            ("data_dir = \n", [":1:"]),
        ):
            config.write_text(text)
            self.check_refusal(2, [str(config), *words], "--config", str(config), "--data-dir", str(self.data))
        self.check_refusal(1, ["nowhere.toml"], "--config", str(self.scratch / "nowhere.toml"))
        self.check_refusal(2, ["--http"], "--http", "8080")
        self.check_refusal(2, ["--nonsense"], "--nonsense")
        self.check_refusal(2, ["--dial"], "--dial", "board")
        self.assertFalse(self.data.exists())

    def test_check_config_names_every_fault_with_its_remedy(self):
        config = self.scratch / "odtd.toml"
        config.write_text("data_dir = 7\n[http]\nlistn = '127.0.0.1:1'\nmax_connections = 1\n[log]\nlevel = 'loud'\n"
                          "[boards]\nlisten = ['here']\n[[serial.allow]]\nbaud = 9600\n[[tcp.dial]]\ntls = 'yes'\n[jobs]\nparallel = '2'\n"
                          "[alerts]\ndisk = { threshold = -1 }\n")
        done = subprocess.run([ODTD, "check-config", str(config)], capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 2, done.stderr)
        for words in ((":1:", "data_dir", "string", "7"), (":3:", "http.listn", "did you mean listen?"), (":4:", "max_connections", "is 1;", "8 to"),
                      (":6:", "log.level", "loud", "trace"), (":8:", "boards.listen", "here"), (":9:", "serial.allow", "vid_pid"),
                      (":12:", "tcp.dial.tls", "true or false", "yes"), (":14:", "jobs.parallel", "whole number", "'2'"),
                      (":16:", "threshold", "-1")):
            lines = done.stderr.splitlines()
            found = [i for i, line in enumerate(lines) if words[0] in line and words[1] in line]
            self.assertEqual(len(found), 1, (words, done.stderr))
            text = lines[found[0]] + lines[found[0] + 1]
            self.assertIn("what to do", text)
            for word in words:
                self.assertIn(word, text)
        config.write_text(f"worker = '{self.scratch}/none'\n[boards]\ntls_key = '{self.scratch}/key'\n")
        done = subprocess.run([ODTD, "check-config", str(config)], capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 2)
        self.assertIn("boards.tls_key", done.stderr)
        self.assertIn("worker", done.stderr)
        config.write_text("[log]\nlevel = 'warn'\n")
        for words, code in (([str(config)], 0), ([str(self.scratch / "nowhere.toml")], 1), ([str(config), "x"], 2), (["--help"], 0)):
            done = subprocess.run([ODTD, "check-config", *words], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, code, (words, done.stderr))
        # The daemon itself names the first one, how many more there are, and where to see them.
        config.write_text("[http]\nlistn = 1\nlistm = 2\n")
        self.check_refusal(2, ["listn", "1 more", "check-config"], "--config", str(config), "--data-dir", str(self.data))

    def test_the_service_manager_hears_ready_watchdog_and_stopping(self):
        path = self.scratch / "notify"
        heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        heard.bind(str(path))
        heard.settimeout(30)
        os.environ.update(NOTIFY_SOCKET=str(path), WATCHDOG_USEC="600000")
        try:
            odtd = self.start()
        finally:
            del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
        self.assertIn("READY=1", heard.recv(4096).decode().split("\n"))
        for _ in range(3):
            self.assertEqual(heard.recv(4096).decode(), "WATCHDOG=1")
        # Stopped by a signal that it cannot hear, it feeds the watchdog no more.
        odtd.process.send_signal(signal.SIGSTOP)
        heard.settimeout(1)
        with self.assertRaises(TimeoutError):
            for _ in range(20):
                heard.recv(4096)
        odtd.process.send_signal(signal.SIGCONT)
        heard.settimeout(30)
        self.assertEqual(odtd.stop(), 0)
        said = b""
        while b"STOPPING=1" not in said:
            said = heard.recv(4096)
        heard.close()

    def test_a_crash_leaves_a_report_with_build_and_addresses(self):
        odtd = self.start()
        self.assertEqual(odtd.stop(signal.SIGSEGV), -signal.SIGSEGV)
        reports = list((self.data / "crashes").glob("*.txt"))
        self.assertEqual(len(reports), 1)
        text = reports[0].read_text()
        self.assertRegex(text, r"^odtd \d+\.\d+\.\d+ build [0-9a-f]{40}\nsignal 11 at address 0x[0-9a-f]+\n")
        self.assertRegex(text, r"\n#\d+ odtd\+0x[0-9a-f]+\n")
        self.assertEqual(self.start().stop(), 0)
        self.assertEqual(len(list((self.data / "crashes").glob("*.txt"))), 1)

    def test_the_example_configuration_is_valid(self):
        example = pathlib.Path(__file__).resolve().parents[3] / "deploy" / "odtd.toml"
        config = self.scratch / "odtd.toml"
        # Comments of one word and a value are keys: all of them at once must be taken.
        lines = []
        for line in example.read_text().splitlines():
            body = line[1:] if line.startswith("#") else line
            key = body.split("=")[0].strip().strip("[]")
            is_key = line.startswith("#") and not line.startswith("# ") and ("=" in body or body.startswith("[["))
            if is_key and key not in ("data_dir", "web_dir", "worker", "socket", "file", "listen",
                                      "tls_cert", "tls_key", "tls_client_ca", "tls_psk_file", "cert", "key", "client_ca"):  # of files that are there
                lines.append(body)
            elif not line.startswith("#"):
                lines.append(line)
        config.write_text("\n".join(lines).replace("192.168.7.21:7001", "127.0.0.1:9"))
        self.assertIn("remote_role", config.read_text())
        odtd = self.start("--config", str(config))
        self.assertEqual(odtd.stop(), 0)

    def test_a_newer_database_is_refused_untouched(self):
        self.assertEqual(self.start().stop(), 0)
        database = self.data / "control.db"
        with sqlite3.connect(database) as connection:
            connection.execute("PRAGMA user_version=9999")
        connection.close()
        before = database.read_bytes()
        self.check_refusal(1, ["newer"], "--data-dir", str(self.data), "--http", "127.0.0.1:0", "--grpc",
                           "127.0.0.1:0")
        self.assertEqual(database.read_bytes(), before)

    def test_a_missing_worker_is_named(self):
        self.check_refusal(1, ["odt-nothing"], "--data-dir", str(self.data), "--http", "127.0.0.1:0", "--grpc",
                           "127.0.0.1:0", "--worker", "/odt-nothing")

    def test_says_its_version(self):
        done = subprocess.run([ODTD, "--version"], capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^odtd \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    faulthandler.dump_traceback_later(100, exit=True)
    ODTD, SCRATCH = sys.argv[1], sys.argv[2]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
