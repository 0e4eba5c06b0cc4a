"""The build that figures come from: with the benches, apart from that of deploy/demo.sh and tests/run.sh."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench"


def build(folder, *targets):
    """Configures `folder` where it is new and builds `targets` in it; CalledProcessError where that fails."""
    if not (folder / "build.ninja").exists():
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                        "-DODT_UNITY=ON", "-DODT_TESTS=ON"], check=True, stdout=sys.stderr)
    subprocess.run(["ninja", "-C", folder, *targets], check=True, stdout=sys.stderr)
