"""odtd's HTTP port as scripts see it: the wheel for pip, calls as JSON with curl, /metrics."""
import base64
import json
import re
import subprocess
import sys

from cases_python import ROOT, wheel
from world import World

UID = "5100000000000001"


def curl(world, path, body=None, *extra, kind="application/json"):
    """(HTTP status, content type, text) of a GET or, with a body, a POST."""
    args = ["curl", "-s", "--noproxy", "*", "--max-time", "30", "-w", "\n%{http_code} %{content_type}", *extra]
    if body is not None:
        args += ["-X", "POST", "-H", f"Content-Type: {kind}", "--data-binary", "@-"]
    done = subprocess.run([*args, f"http://{world.address_of('http')}{path}"], input=body or "", capture_output=True, text=True,
                          check=True, timeout=60)
    text, _, last = done.stdout.rpartition("\n")
    status, _, content = last.partition(" ")
    return int(status), content, text


def call(world, method, request=None, *extra):
    """(HTTP status, the answer parsed) of a call as JSON."""
    status, content, text = curl(world, f"/odt.api.v1.{method}", json.dumps(request or {}), *extra)
    assert content == "application/json", (status, content, text)
    return status, json.loads(text)


def error(answer, status, code, *says):
    assert answer[0] == status and set(answer[1]) == {"error"}, answer
    told = answer[1]["error"]
    assert told["code"] == code and set(told) == {"code", "message", "reason", "field", "remedy"}, told
    for part in says:
        assert part in told["message"] + told["remedy"] + told["reason"] + told["field"], (part, told)
    return told


def uid(text):
    return base64.b64encode(bytes.fromhex(text)).decode()


def test_http_serves_the_wheel_to_pip(bin_dir):
    with World(bin_dir) as world:
        again = world.root / "again"
        version = wheel(bin_dir).name.split("-")[1]
        subprocess.run([sys.executable, str(ROOT / "daemon" / "python" / "build_wheel.py"), "--proto", str(ROOT / "proto"), "--out",
                        str(again), "--version", version], check=True, capture_output=True)
        subprocess.run([sys.executable, str(ROOT / "daemon" / "python" / "build_wheel.py"), "--proto", str(ROOT / "proto"), "--out",
                        str(world.root / "third"), "--version", version], check=True, capture_output=True)
        name = wheel(bin_dir).name
        assert (again / name).read_bytes() == (world.root / "third" / name).read_bytes(), "the same sources gave other bytes"
        venv = world.root / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", str(venv)], check=True, timeout=120)
        http = world.address_of("http")
        for path, want in (("/python/simple/odtfleet/", 200), ("/python/simple/", 200), ("/python/", 200), ("/python", 200), (f"/python/{name}", 200),
                           ("/python/simple/other/", 404), ("/python/../odtd", 400), ("/python/%2e%2e/bin/odtd", 400)):
            assert curl(world, path, None, "-o", str(world.root / "page"), "--path-as-is")[0] == want, path
        done = subprocess.run([str(venv / "bin" / "python"), "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--no-deps", "--no-cache-dir",
                               "--index-url", f"http://{http}/python/simple", "odtfleet"], capture_output=True, text=True, timeout=120,
                              env={"PATH": "/usr/bin", "HOME": str(world.root), "no_proxy": "*"})
        assert done.returncode == 0, done.stderr + done.stdout
        world.add_sim("sim", "5100000000000001")
        say = "import odtfleet, sys; print(odtfleet.__version__, odtfleet.__file__, odtfleet.Fleet(sys.argv[1]).boards())"
        said = subprocess.run([str(venv / "bin" / "python"), "-c", say, world.address_of("grpc")], capture_output=True, text=True,
                              check=True, timeout=60, env={"PATH": "/usr/bin"}).stdout
        assert said.startswith(f"{version} {venv}") and "<Board sim 510000000000 sim ONLINE>" in said, said


def test_http_json_calls(bin_dir):
    with World(bin_dir) as world:
        world.add_sim("sim", UID)
        status, answer = call(world, "FleetService/ListBoards")
        assert status == 200 and [b["name"] for b in answer["boards"]] == ["sim"], answer
        board = answer["boards"][0]
        assert board["uid"] == uid(UID) and board["status"] == "BOARD_STATUS_ONLINE" and board["labels"] == {}, board
        assert board["nvm_sequence"] == 0 and isinstance(board["boot_id"], str), "every field is there; 64 bits are text"
        # camelCase is taken too; so is an empty body, and parameters of the content type.
        change = {"request_id": "once", "uid": board["uid"], "setLabels": {"site": "lab"}}
        status, answer = call(world, "FleetService/UpdateBoard", change)
        assert status == 200 and answer["board"]["labels"] == {"site": "lab"}, answer
        etag = answer["board"]["meta"]["etag"]
        assert call(world, "FleetService/UpdateBoard", change)[1]["board"]["meta"]["etag"] == etag, "one request_id, one effect"
        error(call(world, "FleetService/UpdateBoard", {**change, "setLabels": {"site": "attic"}}), 400, "INVALID_ARGUMENT", "request_id")
        assert curl(world, "/odt.api.v1.SystemService/GetInfo", "", kind="application/json; charset=utf-8")[0] == 200
        assert curl(world, "/odt.api.v1.SystemService/GetInfo", "", kind="APPLICATION/JSON")[0] == 200
        assert call(world, "FleetService/ListBoards", {"filter": "label.site=lab"})[1]["boards"] != []
        assert world.ctl("board", "show", "sim")["labels"] == {"site": "lab"}


def test_http_json_errors(bin_dir):
    with World(bin_dir) as world:
        world.add_sim("sim", UID)
        error(call(world, "FleetService/GetBoard", {"uid": uid("00ff" * 4)}), 404, "NOT_FOUND", "00ff00ff")
        told = error(call(world, "FleetService/GetBoard", {"uid": uid("12")}), 400, "INVALID_ARGUMENT", "uid")
        assert told["field"] == "uid", told
        error(call(world, "FleetService/GetBoard", {"uid": 'a"\\\n'}), 400, "INVALID_ARGUMENT")
        error(call(world, "FleetService/GetBoardNvm", {"uid": uid(UID)}), 400, "FAILED_PRECONDITION", "NO_NVM")
        error(call(world, "FleetService/Nothing"), 404, "NOT_FOUND", "NO_METHOD")
        error(call(world, "Nothing/Nothing"), 404, "NOT_FOUND", "NO_METHOD")
        for path in ("/odt.api.v1.FleetService.ListBoards/x", "/odt.api.v1.FleetService/ListBoards/", "/", "/grpc.health.v1.Health/Check"):
            status, _, text = curl(world, path, "{}")
            error((status, json.loads(text)), 404, "NOT_FOUND", "NO_METHOD")
        error(call(world, "WatchService/Watch"), 501, "UNIMPLEMENTED", "STREAMING")
        error(call(world, "FleetService/ListBoards", {"flter": "x"}), 400, "INVALID_ARGUMENT", "BAD_JSON", "flter")
        error(call(world, "FleetService/ListBoards", {"page_size": "many"}), 400, "INVALID_ARGUMENT", "BAD_JSON", "page_size")
        for text in ("{", "[]", "nonsense", "{}{}", '{"a":' * 2000, "\x00"):
            status, _, answer = curl(world, "/odt.api.v1.FleetService/ListBoards", text)
            error((status, json.loads(answer)), 400, "INVALID_ARGUMENT", "BAD_JSON")
        error(call(world, "FleetService/IdentifyBoard", {"uid": uid(UID)}, "-H", "grpc-timeout: soon"), 400, "INVALID_ARGUMENT")
        big = json.dumps({"filter": "x" * (5 << 20)})
        status, _, answer = curl(world, "/odt.api.v1.FleetService/ListBoards", big)
        error((status, json.loads(answer)), 413, "RESOURCE_EXHAUSTED", "MESSAGE_TOO_BIG")
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/jsonx"):
            status, _, text = curl(world, "/odt.api.v1.FleetService/ListBoards", "{}", kind=kind)
            assert status == 415 and "application/json" in text, (kind, status, text)
        assert curl(world, "/odt.api.v1.FleetService/ListBoards", "{}", "-H", "Origin: http://evil.example")[0] == 403
        assert curl(world, "/odt.api.v1.FleetService/ListBoards", "{}", "-H", "Host: evil.example")[0] == 403
        assert call(world, "FleetService/ListBoards")[0] == 200
        assert world.running["odtd"].poll() is None


def samples_of(text):
    """{name: {labels: value}} of Prometheus text; every sample stands under its own HELP and TYPE."""
    found, helps, kinds, now = {}, {}, {}, None
    for line in text.splitlines():
        if match := re.fullmatch(r"# HELP (\w+) (.+)", line):
            now = match[1]
            assert now not in helps, f"two HELPs of {now}"
            helps[now] = match[2]
        elif match := re.fullmatch(r"# TYPE (\w+) (counter|gauge|histogram)", line):
            assert match[1] == now, f"TYPE of {match[1]} without its HELP"
            kinds[now] = match[2]
        else:
            match = re.fullmatch(r'([a-z][a-z0-9_]*)(\{(?:[a-z_]+="[^"\\\n]*",?)+\})? (-?[0-9.e+]+)', line)
            assert match, f"no sample: {line!r}"
            assert match[1] == now and now in kinds, f"{match[1]} stands under {now}"
            assert match[2] not in found.setdefault(now, {}), f"twice: {line}"
            found[now][match[2]] = float(match[3])
    assert set(found) == set(helps) == set(kinds), set(found) ^ set(helps)
    for name, kind in kinds.items():
        assert name.startswith("odt_"), name
        assert name.endswith("_total") == (kind == "counter"), f"{name} is a {kind}"
        assert helps[name].endswith("."), helps[name]
        assert not re.search(r"_(ms|us|mb|kb|pct|percent)(_|$)", name), f"{name}: units are written out"
    return found


def test_http_metrics(bin_dir):
    with World(bin_dir) as world:
        world.add_sim("sim", UID)
        first = world.wait_for("the board counted", lambda: (lambda m: m if m.get("odt_boards", {}).get('{status="online"}') == 1 else None)(
            samples_of(curl(world, "/metrics")[2])), 10)
        status, content, _ = curl(world, "/metrics")
        assert status == 200 and content.startswith("text/plain; version=0.0.4"), (status, content)
        for name in ("odt_build_info", "odt_watch_streams", "odt_http_connections", "odt_control_db_bytes", "odt_telemetry_db_bytes",
                     "odt_disk_free_bytes", "odt_telemetry_dropped_total", "odt_link_crc_errors", "odt_link_retries",
                     "odt_api_calls_total", "odt_api_errors_total", "odt_api_microseconds_total"):
            assert name in first, name
        assert first["odt_control_db_bytes"][None] > 4096 and first["odt_disk_free_bytes"][None] > 1 << 20
        label = '{method="/odt.api.v1.FleetService/GetBoard"}'
        error(call(world, "FleetService/GetBoard", {"uid": uid("00ff" * 4)}), 404, "NOT_FOUND")
        call(world, "FleetService/GetBoard", {"uid": uid(UID)})
        after = samples_of(curl(world, "/metrics")[2])
        assert after["odt_api_calls_total"][label] - first["odt_api_calls_total"][label] == 2
        assert after["odt_api_errors_total"][label] - first["odt_api_errors_total"][label] == 1
        assert after["odt_api_microseconds_total"][label] > first["odt_api_microseconds_total"][label]
        world.end("sim")
        world.wait_for("the board gone", lambda: samples_of(curl(world, "/metrics")[2])["odt_boards"].get('{status="offline"}') == 1, 15)
