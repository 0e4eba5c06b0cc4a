"""What definitions and files say of an installation: methods by least role, exposure of the units, sizes of packages."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "deploy"))
import api_reference  # noqa: E402


def methods_by_role():
    """How many methods each least role may call, by their definitions."""
    figures = {"methods_open": 0, "methods_without_role": 0}
    for file in api_reference.descriptors():
        for service in file.service:
            for method in service.method:
                role, marks = api_reference.access(method)
                if "open" in marks:
                    figures["methods_open"] += 1
                elif role in ("-", "?"):
                    figures["methods_without_role"] += 1
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


def packages(folder):
    """Bytes of each package in a folder; none where it has none."""
    return {f"package_{deb.name.split('_')[0].replace('-', '_')}_bytes": deb.stat().st_size
            for deb in sorted(pathlib.Path(folder).glob("*.deb"))}
