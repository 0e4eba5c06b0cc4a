"""Every method of the API, tried with every credential that must not let the caller in, at every door.

The table comes from proto/odt/api/v1: a method that is added there is tried without a word here.
"""
import hashlib
import http.client
import importlib
import json
import pathlib
import sqlite3
import ssl
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOORS = ("grpc", "grpc-web", "json")
NOBODY = "UNAUTHENTICATED"
TOO_LOW = "PERMISSION_DENIED"
ROLES = {1: "viewer", 2: "operator", 3: "admin"}
KIND_CREDENTIAL = 26  # store/rows.h


def load_protos(folder):
    """The API's modules, made by protoc in `folder`: name of the file -> module."""
    proto = ROOT / "proto"
    files = sorted(str(p.relative_to(proto)) for p in proto.glob("odt/api/v1/*.proto"))
    rpc = sorted(str(p.relative_to(proto)) for p in proto.glob("google/rpc/*.proto"))
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["protoc", "-I", str(proto), f"--python_out={folder}", *files, *rpc], check=True)
    sys.path.insert(0, str(folder))
    return {f: importlib.import_module(f[:-6].replace("/", ".") + "_pb2") for f in files}


def methods_of(modules):
    """[(path, role, open, streams)] of every method; AssertionError where one has no access option."""
    access = modules["odt/api/v1/access.proto"].access
    found = []
    for module in modules.values():
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                options = method.GetOptions()
                assert options.HasExtension(access), f"{method.full_name} has no access option"
                rule = options.Extensions[access]
                streams = getattr(method, "server_streaming", False)
                found.append((f"/{service.full_name}/{method.name}", rule.role, rule.open, streams))
    return sorted(found)


class Doors:
    """Calls with an empty request; the answer is the name of a gRPC code."""

    def __init__(self, grpc_address, http_address, ca=None):
        import grpc  # noqa: PLC0415 - of Debian's python, where this runs
        self.grpc = grpc
        if ca:
            self.channel = grpc.secure_channel(grpc_address, grpc.ssl_channel_credentials(pathlib.Path(ca).read_bytes()))
            self.http = http.client.HTTPSConnection(http_address, timeout=20, context=ssl.create_default_context(cafile=ca))
        else:
            self.channel = grpc.insecure_channel(grpc_address, options=[("grpc.enable_http_proxy", 0)])
            self.http = http.client.HTTPConnection(http_address, timeout=20)

    def call(self, door, path, authorization, streams=False):
        return getattr(self, door.replace("-", "_") + "_call")(path, authorization, streams)

    def grpc_call(self, path, authorization, streams):
        metadata = [("authorization", authorization)] if authorization else []
        same = {"request_serializer": lambda m: m, "response_deserializer": lambda m: m}
        try:
            if streams:
                call = self.channel.unary_stream(path, **same)(b"", metadata=metadata, timeout=5)
                next(call)
                call.cancel()
            else:
                self.channel.unary_unary(path, **same)(b"", metadata=metadata, timeout=5)
            return "OK"
        except StopIteration:
            return "OK"
        except self.grpc.RpcError as error:
            return error.code().name

    def post(self, path, kind, body, authorization):
        headers = {"Content-Type": kind, **({"Authorization": authorization} if authorization else {})}
        self.http.request("POST", path, body=body, headers=headers)
        answer = self.http.getresponse()
        return answer.status, answer.read()

    def json_call(self, path, authorization, streams):
        status, body = self.post(path, "application/json", b"{}", authorization)
        if status == 200:
            return "OK"
        return json.loads(body)["error"]["code"]

    def grpc_web_call(self, path, authorization, streams):
        status, body = self.post(path, "application/grpc-web+proto", b"\0\0\0\0\0", authorization)
        assert status == 200, (path, status)
        for line in body.decode("latin-1").replace("\r\n", "\n").split("\n"):
            if line.rpartition("grpc-status:")[1]:
                number = int(line.rpartition("grpc-status:")[2])
                return next(c.name for c in self.grpc.StatusCode if c.value[0] == number)
        return "OK"

    def get(self, path, authorization=None, method="GET"):
        self.http.request(method, path, headers={"Authorization": authorization} if authorization else {})
        answer = self.http.getresponse()
        return answer.status, answer.read()


def make_tokens(world, folder):
    """Bearers by what they are; odtd is restarted, because a day that is over is written into its database."""
    def add(name, role):
        path = folder / f"{name}.token"
        world.ctl("token", "add", name, "--role", role, "--days", 1, "--out", path)
        return "Bearer " + path.read_text().strip()
    bearers = {role: add(f"t-{role}", role) for role in ROLES.values()}
    bearers["expired"], bearers["revoked"] = add("t-expired", "admin"), add("t-revoked", "admin")
    world.ctl("token", "revoke", "t-revoked")
    world.end("odtd")
    digest = hashlib.sha256(bearers["expired"].split()[1].encode()).hexdigest()
    base = sqlite3.connect(world.data / "control.db")
    rows = base.execute("SELECT key, body FROM resource WHERE kind = ?", (KIND_CREDENTIAL,)).fetchall()
    for key, body in rows:
        text = body.decode() if isinstance(body, bytes) else body
        if digest in text:
            value = json.loads(text)
            value["expire_time_us"] = 1
            base.execute("UPDATE resource SET body = ? WHERE kind = ? AND key = ?", (json.dumps(value).encode(), KIND_CREDENTIAL, key))
    base.commit()
    base.close()
    return bearers


def try_every_method(doors, modules, bearers):
    """{methods_total, methods_unregistered, tries, unguarded: [(door, path, what, answer)]}"""
    methods = methods_of(modules)
    unguarded, tries, unregistered = [], 0, set()
    for path, role, is_open, streams in methods:
        wanted = [("wrong", "Bearer odt_" + "A" * 43, NOBODY), ("no bearer", "Basic YTpi", NOBODY), ("expired", bearers["expired"], NOBODY),
                  ("revoked", bearers["revoked"], NOBODY)]
        if not is_open:
            wanted.append(("absent", None, NOBODY))
            wanted += [(name, bearers[name], TOO_LOW) for number, name in ROLES.items() if number < role]
        for door in DOORS:
            if door == "json" and streams:
                continue
            for what, bearer, want in wanted:
                got = doors.call(door, path, bearer, streams)
                tries += 1
                if got == "UNIMPLEMENTED" and what == "wrong":
                    unregistered.add(path)
                if got != want and path not in unregistered:
                    unguarded.append((door, path, what, got))
    for path in ("/metrics", "/v1/blobs/" + "00" * 32):
        for what, bearer in (("absent", None), ("wrong", "Bearer odt_no"), ("expired", bearers["expired"]), ("revoked", bearers["revoked"])):
            tries += 1
            status, _ = doors.get(path, bearer)
            if status != 401:
                unguarded.append(("http", path, what, status))
    return {"methods_total": len(methods), "methods_unregistered": sorted(unregistered), "tries": tries, "unguarded": unguarded}
