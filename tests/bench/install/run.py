#!/usr/bin/python3
"""Figures of an installation: methods of the API by least role and those without one, units, packages.

  tests/bench/run.sh install [--debs DIR] [--json FILE]

  --debs    folder of packages (ninja debs): their sizes. Default: build, where it has some
Lines "name value unit". methods_unguarded counts methods whose definition names no role: a server made of them would not start.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "deploy"))
import api_reference  # noqa: E402


def methods():
    figures = {"methods_total": 0, "methods_unguarded": 0, "methods_open": 0}
    for file in api_reference.descriptors():
        for service in file.service:
            for method in service.method:
                role, marks = api_reference.access(method)
                figures["methods_total"] += 1
                if "open" in marks:
                    figures["methods_open"] += 1
                elif role in ("-", "?"):
                    figures["methods_unguarded"] += 1
                else:
                    figures[f"methods_{role}"] = figures.get(f"methods_{role}", 0) + 1
    return figures


def units():
    """systemd's rating of what a unit may do, in tenths: 0 nothing, 100 everything."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "lib/systemd/system"
        place.mkdir(parents=True)
        for unit in ("odtd.service", "odt-flash@.service"):
            (place / unit).write_text((ROOT / "deploy" / unit).read_text())
        for unit, name in (("odtd.service", "odtd"), ("odt-flash@odtd.service", "odt_flash")):
            done = subprocess.run(["systemd-analyze", f"--root={folder}", "security", "--offline=yes", unit], capture_output=True, text=True)
            rated = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
            if rated:
                figures[f"unit_exposure_{name}"] = round(float(rated[1]) * 10)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--debs", default=str(ROOT / "build"))
    parser.add_argument("--json")
    args = parser.parse_args()
    figures = {name: (value, "methods") for name, value in methods().items()}
    figures.update({name: (value, "tenths") for name, value in units().items()})
    for deb in sorted(pathlib.Path(args.debs).glob("*.deb")):
        figures[f"package_{deb.name.split('_')[0].replace('-', '_')}_bytes"] = (deb.stat().st_size, "bytes")
    for name, (value, unit) in figures.items():
        print(name, value, unit)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({n: v for n, (v, _) in figures.items()}, indent=1) + "\n")
    return 1 if figures["methods_unguarded"][0] else 0


if __name__ == "__main__":
    sys.exit(main())
