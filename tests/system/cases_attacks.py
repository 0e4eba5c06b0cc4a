"""Attacks on a real odtd: every door without the right credential, other machines' pages, malformed and endless requests, log injection."""
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from method_table import Doors, load_protos, make_tokens, try_every_method  # noqa: E402
from world import World, free_port  # noqa: E402

UID = "5100000000000001"


class Guarded(World):
    """An odtd that asks callers over TCP for a token."""

    def __init__(self, bin_dir, config="[auth]\nrequired = true\n"):
        super().__init__(bin_dir)
        self.config = self.root / "odtd.toml"
        self.config.write_text(config)

    def __enter__(self):
        self.restart_odtd()
        return self

    def restart_odtd(self):
        self.start_odtd(listen_port=self.listen_port, extra=["--config", self.config])

    def token(self, name, role, *more):
        path = self.root / f"{name}.token"
        self.ctl("token", "add", name, "--role", role, "--out", path, *more)
        assert path.stat().st_mode & 0o777 == 0o600, oct(path.stat().st_mode)
        return path

    def over_tcp(self, *args, token=None, env=None, stdin=None):
        given = ["--token-file", str(token)] if token else []
        clean = {k: v for k, v in os.environ.items() if not k.startswith("ODT_")}
        return subprocess.run([str(self.bin / "odtctl"), "--address", self.address_of("grpc"), *given, *map(str, args)], text=True,
                              input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL, capture_output=True, timeout=60,
                              env={**clean, "HOME": str(self.root), **(env or {})})


def odtd_log(world):
    return (world.state / "odtd.log").read_text(errors="replace")


def test_attacks_every_method_is_guarded(bin_dir):
    with Guarded(bin_dir) as world:
        bearers = make_tokens(world, world.root)
        world.restart_odtd()
        doors = Doors(world.address_of("grpc"), world.address_of("http"))
        figures = try_every_method(doors, load_protos(world.root / "table"), bearers)
        assert not figures["unguarded"], figures["unguarded"][:20]
        # What is not served cannot be tried: flashing alone is not, yet.
        unserved = [m for m in figures["methods_unregistered"] if "FlashService" not in m]
        assert not unserved, unserved
        assert figures["methods_total"] > 100, figures["methods_total"]
        # And the right one is let in, at each door.
        for door in ("grpc", "grpc-web", "json"):
            got = doors.call(door, "/odt.api.v1.FleetService/ListBoards", bearers["viewer"])
            assert got == "OK", (door, got)
        assert doors.get("/metrics", bearers["viewer"])[0] == 200 and doors.get("/healthz")[0] == 200
        assert doors.get("/python/simple/")[0] in (200, 404), "the package is no secret"
        # A flood of refusals does not fill the audit log, and is not lost in it.
        world.wait_for("refusals counted", lambda: any(e["times"] > 100 for e in audit(world, "result=UNAUTHENTICATED")), 30)
        assert len(audit(world, "result=UNAUTHENTICATED")) < 100


def audit(world, terms, *more):
    done = world.ctl_raw("--json", "audit", "--all", "--filter", terms, *more)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_attacks_tokens_have_roles_and_end_at_once(bin_dir):
    with Guarded(bin_dir) as world:
        world.add_sim("sim", UID)
        viewer, operator = world.token("ann", "viewer"), world.token("ci", "operator", "--user", "build", "--days", 1)
        for attempt in (world.over_tcp("board", "list"), world.over_tcp("token", "list", token=viewer),
                        world.over_tcp("board", "rename", "sim", "x", token=viewer)):
            assert attempt.returncode == 5, (attempt.returncode, attempt.stderr)
            assert "token" in attempt.stderr and "odt_" not in attempt.stderr, attempt.stderr
        assert world.over_tcp("board", "list", token=viewer).returncode == 0
        assert world.over_tcp("board", "list", env={"ODT_TOKEN": viewer.read_text().strip()}).returncode == 0
        done = world.over_tcp("board", "rename", "sim", "bench-1", token=operator)
        assert done.returncode == 0, done.stderr
        # A token that others may read, or that is none, is not used.
        operator.chmod(0o644)
        assert "chmod 600" in world.over_tcp("board", "list", token=operator).stderr
        operator.chmod(0o600)
        assert world.over_tcp("board", "list", env={"ODT_TOKEN": "not\ta token"}).returncode == 2

        # An open stream ends with its token.
        watch = subprocess.Popen([str(world.bin / "odtctl"), "--address", world.address_of("grpc"), "--token-file", str(viewer), "watch"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": str(world.root)})
        try:
            world.wait_for("token in use", lambda: any(t["last_used_time_us"] for t in world.ctl("token", "list") if t["name"] == "ann"), 20)
            time.sleep(0.3)
            assert watch.poll() is None
            world.ctl("token", "revoke", "ann")
            _, told = watch.communicate(timeout=10)
            assert watch.returncode == 5 and "revoked" in told, (watch.returncode, told)
        finally:
            watch.kill()
        refused = world.over_tcp("board", "list", token=viewer)
        assert refused.returncode == 5 and "revoked" in refused.stderr, refused.stderr

        # Who did what, from where: also after a restart.
        world.end("odtd")
        world.restart_odtd()
        renamed = audit(world, "method=UpdateBoard,result=OK,actor=build")
        assert len(renamed) == 1 and renamed[0]["credential"] == "token ci" and renamed[0]["address"] == "127.0.0.1", renamed
        assert "bench-1" in renamed[0]["what"] and UID in renamed[0]["what"], renamed
        assert audit(world, "method=UpdateBoard,result=PERMISSION_DENIED,actor=ann")
        assert [e["what"] for e in audit(world, "method=AddToken,result=OK")], "tokens that were made"
        table = world.ctl_raw("audit", "--csv", "--since", "1h")
        assert table.stdout.startswith("seq,time_us,actor,") and "RevokeToken" in table.stdout, table.stdout[:500]
        assert world.ctl_raw("audit", "--since", "yesterday-ish").returncode == 2

        # Secrets: neither in the log, nor in the databases.
        secrets = [p.read_text().strip().encode() for p in (viewer, operator)]
        code = world.ctl("token", "login-code")["code"].encode()
        for path in [world.state / "odtd.log", *world.data.rglob("*")]:
            if path.is_file():
                held = path.read_bytes()
                assert not any(s in held for s in (*secrets, code, code.replace(b"-", b""))), path


def http_answer(address, raw, timeout=10, context=None):
    """The bytes that come back for `raw`."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=timeout) as plain:
        line = context.wrap_socket(plain, server_hostname=host) if context else plain
        line.sendall(raw)
        line.settimeout(timeout)
        got = b""
        try:
            while part := line.recv(65536):
                got += part
        except (TimeoutError, ConnectionError):
            pass
        return got


def get(path, *headers, host="localhost"):
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers, "", ""]).encode("latin-1")


def test_attacks_on_http(bin_dir):
    with World(bin_dir) as world:
        address = world.address_of("http")

        def status(raw):
            line = http_answer(address, raw).split(b"\r\n")[0].split(b" ")
            return int(line[1]) if len(line) > 1 else 0
        # DNS rebinding: a page's own name that points here.
        for host, want in (("localhost", 200), (address, 200), ("evil.example", 403), ("127.0.0.1.evil.example", 403),
                           ("localhost.evil.example", 403), ("", 403)):
            assert status(get("/healthz", host=host)) == want, host
        assert status(get("/healthz", "Origin: http://evil.example")) == 403
        assert status(get("/healthz", "Origin: null")) == 403
        head = http_answer(address, get("/healthz")).lower()
        for header in (b"x-content-type-options: nosniff", b"content-security-policy: default-src 'self'", b"referrer-policy: no-referrer"):
            assert header in head, head
        assert b"access-control-allow-origin" not in head
        # A form of another page cannot make a call: its content types are none of ours.
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            raw = (f"POST /odt.api.v1.RunService/StopAll HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: 2\r\n"
                   "Connection: close\r\n\r\n{}").encode()
            assert status(raw) == 415, kind
        # Out of the folders.
        for path in ("/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/assets/..%5c..%5cx", "//etc/passwd",
                     "/%00", "/python/../../odtd", "/python/%2e%2e/odtd", "/v1/blobs/../control.db", "/v1/blobs/%2e%2e%2fcontrol.db",
                     "/v1/blobs/" + "a" * 63, "/v1/blobs/", "/" + "a" * 7000):
            got = http_answer(address, get(path))
            assert b"root:" not in got and b"SQLite format" not in got and b"\x7fELF" not in got, path
            assert int(got.split(b" ")[1]) in (400, 404), (path, got[:80])
        # Malformed and endless.
        for raw in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                    b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 100_000, b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
                    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n"):
            got = http_answer(address, raw)
            assert got == b"" or int(got.split(b" ")[1]) in (400, 413, 431, 505), (raw[:40], got[:80])
        big = (b"POST /odt.api.v1.FleetService/ListBoards HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               b"Content-Length: 50000000\r\nConnection: close\r\n\r\n")
        assert status(big) == 413
        assert world.ctl("info")["version"], "alive"


def test_attacks_logs_hold_no_foreign_lines(bin_dir):
    with World(bin_dir) as world:
        evil = "x\x1b[2J\r\nFORGED\x07"
        world.sim_board("sim", UID, ["--type", evil])
        world.wait_for("board", lambda: world.ctl("board", "list"), 20)
        world.ctl_raw("board", "rename", UID, evil)
        address = world.address_of("http")
        for raw in (get("/healthz", host="a\x1b[31mb"), get("/\x1b]0;x\x07"), get("/healthz", "Origin: http://\x1b[31m")):
            http_answer(address, raw)
        world.ctl_raw("token", "add", evil, "--role", "admin")
        world.ctl_raw("audit", "--filter", f"actor={evil}")
        shown = world.ctl_raw("board", "list").stdout + world.ctl_raw("audit").stdout
        for text in (odtd_log(world), shown):
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", re.sub(r"\x1b\[(32|33|31|36|1|m|0)*m", "", text)), ascii(text[-2000:])
            assert not re.search(r"^FORGED", text, re.M), ascii(text[-2000:])


def test_attacks_a_crowd_of_slow_clients(bin_dir):
    """The short form of tests/bench/install: more silent and slow connections than there are places, and odtd answers."""
    with World(bin_dir) as world:
        host, _, port = world.address_of("http").rpartition(":")
        crowd = []
        try:
            for n in range(700):
                one = socket.create_connection((host, int(port)), timeout=5)
                if n % 3 == 0:
                    one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
                crowd.append(one)
            for _ in range(20):
                line = http.client.HTTPConnection(host, int(port), timeout=10)
                line.request("GET", "/healthz")
                assert line.getresponse().status == 200
                line.close()
            # A header that has begun must go on: the slow ones are let go.
            slow = socket.create_connection((host, int(port)), timeout=30)
            crowd.append(slow)
            start = time.monotonic()
            slow.sendall(b"GET / HTTP/1.1\r\nX: ")
            slow.settimeout(40)
            assert slow.recv(100) == b"", "closed without a word"
            assert time.monotonic() - start < 30
        finally:
            for one in crowd:
                one.close()
        pid = world.running["odtd"].pid
        world.wait_for("descriptors back", lambda: len(os.listdir(f"/proc/{pid}/fd")) < 100, 20)


def refused_start(world, *args):
    done = subprocess.run([str(world.bin / "odtd"), "--data-dir", str(world.root / "other"), "--socket", "none", *map(str, args)], text=True,
                          capture_output=True, timeout=30)
    assert done.returncode != 0 and not (world.root / "other").exists(), (args, done.stderr)
    return done.stderr


def speaks(address, version):
    """Whether a handshake of just this version of TLS is done."""
    context = _unchecked()
    context.set_alpn_protocols(["h2"])
    context.minimum_version = context.maximum_version = version
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=20) as plain, context.wrap_socket(plain, server_hostname=host) as line:
            return line.version() is not None
    except (ssl.SSLError, ConnectionError):
        return False


def test_attacks_setup_remote(bin_dir):
    with World(bin_dir) as world:
        # Not without protection.
        for args in (["--http", "0.0.0.0:0"], ["--grpc", "[::]:0"]):
            told = refused_start(world, *args)
            assert "setup remote" in told and "ssh -L" in told and told.count("\n") == 2, told
        open_config = world.root / "open.toml"
        open_config.write_text('[auth]\nrequired = false\n[tls]\ncert = "c"\nkey = "k"\n')
        assert "auth.required" in refused_start(world, "--config", open_config, "--http", "0.0.0.0:0")
        half = world.root / "half.toml"
        half.write_text('[tls]\ncert = "/nowhere"\nkey = "/nowhere"\n')
        assert "tls.cert: /nowhere" in refused_start(world, "--config", half, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")

        config = world.root / "odtd.toml"
        assert world.ctl_raw("setup", "remote", "--config", config).returncode == 4
        config.write_text("# empty\n")
        http_port, grpc_port = free_port(), free_port()
        made = world.ctl("setup", "remote", "--config", config, "--name", "localhost", "--http-port", http_port, "--grpc-port", grpc_port)
        folder = world.root / "odtd.toml.d"
        for path in (folder / "tls" / "key.pem", folder / "tls" / "cert.pem", folder / "remote.toml"):
            assert path.stat().st_mode & 0o777 == 0o600, path
        shown = subprocess.run(["openssl", "x509", "-in", str(folder / "tls" / "cert.pem"), "-noout", "-fingerprint", "-sha256"], text=True,
                               capture_output=True, check=True).stdout
        assert made["fingerprint"] in shown and made["url"] == f"https://localhost:{http_port}", made

        # Started again with it: the code from before is still good.
        world.end("odtd")
        (world.data / "endpoints.json").unlink(missing_ok=True)
        world.start("odtd", [str(world.bin / "odtd"), "--config", str(config), "--data-dir", str(world.data), "--socket", str(world.socket_path)])
        world.wait_for("odtd", (world.data / "endpoints.json").exists, 20)
        grpc_at, http_at = f"localhost:{grpc_port}", f"localhost:{http_port}"
        for address in (grpc_at, http_at):
            assert speaks(address, ssl.TLSVersion.TLSv1_3), address
            assert not speaks(address, ssl.TLSVersion.TLSv1_2), address

        def outside(*args, stdin=""):
            clean = {k: v for k, v in os.environ.items() if not k.startswith(("ODT_", "XDG_"))}
            return subprocess.run([str(world.bin / "odtctl"), *map(str, args)], input=stdin, text=True, capture_output=True, timeout=60,
                                  env={**clean, "HOME": str(world.root / "home")})
        assert outside("--address", grpc_at, "board", "list").returncode == 3, "clear text"
        wrong = outside("login", grpc_at, "--fingerprint", "00" * 32, stdin=made["login_code"] + "\n")
        assert wrong.returncode == 5 and "in between" in wrong.stderr, wrong.stderr
        done = outside("login", grpc_at, "--fingerprint", made["fingerprint"], stdin="AAAAA-BBBBB\n")
        assert done.returncode == 5 and "login code" in done.stderr, done.stderr
        done = outside("login", grpc_at, "--fingerprint", made["fingerprint"], stdin=made["login_code"].lower() + "\n")
        assert done.returncode == 0, done.stderr
        assert "odt_" not in done.stdout + done.stderr
        done = outside("--json", "--address", grpc_at, "whoami")
        assert done.returncode == 0, done.stderr
        me = json.loads(done.stdout)
        assert me["role"] == "ADMIN" and me["auth_required"], me
        again = outside("login", grpc_at, "--fingerprint", made["fingerprint"], stdin=made["login_code"] + "\n")
        assert again.returncode == 5, "a code works once"

        # The dashboard's port: TLS, the login page open, data not.
        context = ssl.create_default_context(cafile=str(folder / "tls" / "cert.pem"))
        line = http.client.HTTPSConnection(http_at, timeout=20, context=context)
        for path, want in (("/", 200), ("/healthz", 200), ("/metrics", 401), ("/v1/blobs/" + "00" * 32, 401)):
            line.request("GET", path)
            answer = line.getresponse()
            answer.read()
            assert answer.status == want, (path, answer.status)
        line.close()
        doors = Doors(grpc_at, http_at, ca=str(folder / "tls" / "cert.pem"))
        for door in ("grpc", "grpc-web", "json"):
            assert doors.call(door, "/odt.api.v1.FleetService/ListBoards", None) == "UNAUTHENTICATED", door
            assert doors.call(door, "/odt.api.v1.AuthService/WhoAmI", None) == "OK", door
        assert b"403" in http_answer(f"127.0.0.1:{http_port}", get("/healthz", host="evil.example"), context=_unchecked()).split(b"\r\n")[0]


def _unchecked():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
