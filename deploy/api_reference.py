#!/usr/bin/python3
"""The API's reference as Markdown, out of proto/odt/api/v1: services, methods with role and stream, messages, enums, each
with the comments that stand beside it.

  api_reference.py OUT.md
"""
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2 as pb

HERE = pathlib.Path(__file__).resolve().parents[1] / "proto"
PACKAGE = ".odt.api.v1."
ROLES = {0: "-", 1: "viewer", 2: "operator", 3: "admin"}
ACCESS = 50601  # access.proto


def descriptors():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "set.binpb"
        files = sorted(str(f.relative_to(HERE)) for f in (HERE / "odt/api/v1").glob("*.proto"))
        subprocess.run(["protoc", "-I", str(HERE), "--include_source_info", f"--descriptor_set_out={out}", *files], check=True)
        whole = pb.FileDescriptorSet()
        whole.ParseFromString(out.read_bytes())
    return sorted(whole.file, key=lambda f: f.name)


def varints(data):
    """(field, value) of a message of varints."""
    at = 0
    while at < len(data):
        pair = []
        for _ in range(2):
            value = shift = 0
            while True:
                byte = data[at]
                at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
                if byte < 128:
                    break
            pair.append(value)
        yield pair[0] >> 3, pair[1]


def access(method):
    """(role, marks) of the option odt.api.v1.access, which this program has no class for."""
    for field, wire, value in unknown(method.options.SerializeToString()):
        if field == ACCESS and wire == 2:
            found = dict(varints(value))
            marks = [name for number, name in ((2, "mutates"), (3, "audited"), (4, "open")) if found.get(number)]
            return ROLES.get(found.get(1, 0), "?"), ", ".join(marks)
    return "-", ""


def unknown(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    while at < len(data):
        tag = varint()
        if tag & 7 == 2:
            size = varint()
            yield tag >> 3, 2, data[at:at + size]
            at += size
        else:
            yield tag >> 3, 0, varint()


class Comments:
    def __init__(self, file):
        self.by_path = {tuple(place.path): place for place in file.source_code_info.location}

    def of(self, *path):
        place = self.by_path.get(path)
        if place is None:
            return ""
        return " ".join((place.leading_comments + " " + place.trailing_comments).split()).replace("|", "\\|")


def kind(field):
    name = field.type_name.removeprefix(PACKAGE).lstrip(".") or \
        pb.FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    return ("repeated " if field.label == field.LABEL_REPEATED else "optional " if field.proto3_optional else "") + name


def message(out, item, comments, path, prefix=""):
    if item.options.map_entry:
        return
    name = prefix + item.name
    out += [f"### {name}", ""]
    if comments.of(*path):
        out += [comments.of(*path), ""]
    if item.field:
        out += ["| | field | type | |", "|---|---|---|---|"]
        out += [f"| {f.number} | `{f.name}` | {kind(f)} | {comments.of(*path, 2, i)} |" for i, f in enumerate(item.field)]
        out.append("")
    for i, nested in enumerate(item.nested_type):
        message(out, nested, comments, (*path, 3, i), name + ".")
    for i, nested in enumerate(item.enum_type):
        enum(out, nested, comments, (*path, 4, i), name + ".")


def enum(out, item, comments, path, prefix=""):
    out += [f"### {prefix}{item.name}", ""]
    if comments.of(*path):
        out += [comments.of(*path), ""]
    out += ["| | value | |", "|---|---|---|"]
    out += [f"| {v.number} | `{v.name}` | {comments.of(*path, 2, i)} |" for i, v in enumerate(item.value)] + [""]


def service(out, item, comments, path):
    out += [f"### {item.name}", ""]
    if comments.of(*path):
        out += [comments.of(*path), ""]
    out += ["| method | least role | | takes, gives | |", "|---|---|---|---|---|"]
    for i, m in enumerate(item.method):
        role, marks = access(m)
        takes = ("stream " if m.client_streaming else "") + m.input_type.removeprefix(PACKAGE)
        gives = ("stream " if m.server_streaming else "") + m.output_type.removeprefix(PACKAGE)
        out.append(f"| `{m.name}` | {role} | {marks} | {takes}, {gives} | {comments.of(*path, 2, i)} |")
    out.append("")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    files = descriptors()
    methods = sum(len(s.method) for f in files for s in f.service)
    out = ["# API reference", "",
           f"Made by `deploy/api_reference.py` of `proto/odt/api/v1`: {methods} methods of "
           f"{sum(len(f.service) for f in files)} services. As gRPC, gRPC-Web, or JSON by POST to `/odt.api.v1.SERVICE/METHOD`.", ""]
    for file in files:
        comments = Comments(file)
        out += [f"## {file.name.removeprefix('odt/api/v1/')}", ""]
        if comments.of(12):
            out += [comments.of(12), ""]
        for i, item in enumerate(file.service):
            service(out, item, comments, (6, i))
        for i, item in enumerate(file.message_type):
            message(out, item, comments, (4, i))
        for i, item in enumerate(file.enum_type):
            enum(out, item, comments, (5, i))
    pathlib.Path(sys.argv[1]).write_text("\n".join(out).rstrip() + "\n")


if __name__ == "__main__":
    main()
