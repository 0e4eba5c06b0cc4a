#!/usr/bin/env python3
"""Fails on an #include edge that the layer table does not allow (the dashboard's: web/scripts/check-layers.mjs).

The table is the architecture: a room may use itself and what stands in its row. Run from anywhere; prints each
forbidden edge as file:line and exits 1.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# room -> rooms it may include (beside itself). Rooms of daemon/ are named by their folder.
ALLOWED = {
    "base": set(),
    "model": {"base"},
    "link": {"base", "model"},
    "wire": {"base", "model", "link", "proto/frame", "proto/device"},
    "session": {"base", "model", "link", "wire"},
    "data": {"base", "model"},
    "store": {"base", "model"},
    "fleet": {"base", "model", "link", "session", "store"},
    "jobs": {"base", "model", "store"},
    "lab": {"base", "model", "jobs"},
    "training": {"base", "model", "session", "fleet", "store", "data", "jobs", "lab"},
    "campaign": {"base", "model", "fleet", "store", "data", "training"},
    "alerts": {"base", "model", "store", "training"},
    "flash": {"base"},
    "auth": {"base", "model", "store"},
    "api": {"base", "model", "store", "auth", "data", "jobs", "training", "campaign", "alerts", "proto/api"},
    "app": {"base", "model", "link", "wire", "session", "fleet", "store", "data", "jobs", "lab", "training", "campaign", "alerts", "auth", "api"},
    "compiler": {"base", "model", "data", "firmware/odt"},
    "worker": {"base", "model", "data", "compiler", "firmware/odt"},
    "cli": {"base", "proto/api"},
    "firmware/odt": set(),
    "firmware/hal": set(),
    "firmware/app": {"firmware/odt", "firmware/hal", "proto/frame", "proto/device"},
    "firmware/boards": {"firmware/app", "firmware/hal", "firmware/odt", "proto/frame"},
    "proto/frame": set(),
}
DAEMON_ROOMS = {p.name for p in (ROOT / "daemon").iterdir() if p.is_dir()}
# Only these may include generated protobuf headers (and compiler/ its ONNX ones).
PB_HEADERS_IN = {"daemon/wire/device_codec.h", "daemon/api/api_convert.h"}


def room_of(path: pathlib.Path) -> str | None:
    parts = path.relative_to(ROOT).parts
    if parts[0] == "daemon" and len(parts) > 2:
        return parts[1]
    if parts[0] in ("firmware", "proto") and len(parts) > 2:
        return f"{parts[0]}/{parts[1]}"
    return None


def target_of(include: str, source: pathlib.Path) -> str | None:
    first = include.split("/")[0]
    if first == "odt":
        if include.startswith("odt/api/v1/"):
            return "proto/api"
        if include.startswith("odt/device/v1/"):
            return "proto/device"
        return "firmware/odt"
    if first == "google" and include.startswith("google/rpc/"):
        return "proto/api"
    if first in ("hal", "app") and room_of(source) and room_of(source).startswith("firmware"):
        return f"firmware/{first}"
    if first == "frame":
        return "proto/frame"
    if first in DAEMON_ROOMS and "/" in include:
        return first
    return None


def check_native() -> list[str]:
    faults = []
    for folder in ("daemon", "firmware", "proto"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".c", ".cpp", ".cc", ".hpp"):
                continue
            room = room_of(path)
            if room is None:
                continue
            rel = path.relative_to(ROOT).as_posix()
            if room not in ALLOWED:
                faults.append(f"{rel}: room '{room}' is not in the layer table")
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
                if not match:
                    continue
                include = match.group(1)
                if ".." in include:
                    faults.append(f"{rel}:{number}: includes are rooted, no '..': {include}")
                target = target_of(include, path)
                if target and target != room and target not in ALLOWED[room]:
                    faults.append(f"{rel}:{number}: {room} may not use {target} ({include})")
                if (path.suffix in (".h", ".hpp") and include.endswith(".pb.h") and rel not in PB_HEADERS_IN
                        and room not in ("compiler", "firmware/app")):
                    faults.append(f"{rel}:{number}: a header may not include {include}; forward-declare")
    return faults


def main() -> int:
    faults = check_native()
    for fault in faults:
        print(fault)
    print(f"layering: {len(faults)} forbidden edges")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
