#!/usr/bin/python3
"""Figures of the dashboard in Debian's Chromium, as JSON: size of the first load, first paint, a run of 200,000 steps
x 8 layers and twelve tabs against a real odtd with sim boards; 1,000 boards at 10 steps/s against a scripted daemon.

    tests/bench/run.sh web [--bin build/bin] [--seconds N] [--steps N] [--only bundle,paint,run,tabs,boards] [--json FILE]
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "deploy"), str(ROOT / "tests" / "browser")]
from odt_processes import Processes  # noqa: E402
import real_fleet  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
STEPS_PER_EPOCH = 50  # 400 samples, batch 8


def long_run(fleet, steps):
    """A finished run of so many steps of a model with 8 layers; its id."""
    fleet.ctl("pc-train", "--data", "fmnist", "--hidden", *[16] * 7, "--epochs", 1, "--seed", 1, "--name", "deep",
              timeout=120)
    fleet.ctl("train", "--board", "lab-1", "--model", "deep", "--data", "fmnist-inversion", "--name", "deep",
              "--epochs", steps // STEPS_PER_EPOCH, "--batch", 8, "--policy", "fixed", "--mu-weight", 1, "--k", 8,
              "--detach")

    def run():
        return next(r for r in fleet.ctl("run", "list") if r["spec"]["name"] == "deep")

    fleet.wait_for("the long run over", lambda: run()["state"] in ("SUCCEEDED", "FAILED"), 600, every=1)
    return run()["id"].replace("-", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--seconds", type=int, default=600, help="of updates from 1,000 boards")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--only", default="bundle,paint,run,tabs,boards")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    if not (args.bin / "odtd").exists():
        parser.error(f"{args.bin}/odtd is not there: build first (README.md), or give --bin")
    state = pathlib.Path(tempfile.mkdtemp(prefix="odt-bench-web-"))
    fleet = Processes(args.bin, state)
    try:
        real_fleet.start(fleet)
        run = long_run(fleet, args.steps) if "run" in args.only.split(",") else ""
        done = subprocess.run(["node", str(HERE / "page.mjs"), "--url", f"http://{fleet.address_of('http')}", "--run", run,
                               "--seconds", str(args.seconds), "--only", args.only], stdout=subprocess.PIPE, text=True)
    finally:
        fleet.stop()
        shutil.rmtree(state, ignore_errors=True)
    print(done.stdout, end="")
    if done.returncode == 0 and args.json is not None:
        args.json.write_text(json.dumps(json.loads(done.stdout), indent=2) + "\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
