#!/usr/bin/python3
"""Figures of the link: "name value unit" lines.

usage: run.py [--build DIR] [--json FILE] [--seeds N] [--jobs N] [--only matrix|goodput|qemu]
matrix   every fault during every operation, N seeds each (200), in virtual time: the daemon's own code from the stores to
         the session, the firmware's own code, a simulated line between them (tests/support/virtual)
goodput  bulk transfer over a line of 921600 baud and 8 ms one way, in virtual time likewise; with 1 % of the frames lost
qemu     bulk transfer into mps2_an505 under QEMU against bytes that an image only counts, in real time; sizes of the image
Ends with 1 where the matrix finds a fault. --json: the figures, and the matrix cell by cell.
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))
import qemu  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/bench"))
import built  # noqa: E402

GOLDEN = ROOT / "tests" / "golden" / "dense-196-32-10"
FAULTS = ["drop", "flip", "burst", "truncate", "duplicate", "garbage", "delay", "stall", "cut", "reset", "power_cycle",
          "daemon_kill"]
UNITS = {"fw_link_ram_bytes": "bytes", "fw_flash_bytes": "bytes", "qemu_goodput_ratio": "ratio"}


def cells_of(program, fault, seeds):
    """The cells of one fault; a process that ends by itself counts as an exit of the daemon."""
    done = subprocess.run(["nice", "-n", "10", program, GOLDEN, "--fault", fault, "--seeds", str(seeds)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    print(done.stderr, end="", file=sys.stderr, flush=True)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode not in (0, 1)


def matrix(program, seeds, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda fault: cells_of(program, fault, seeds), FAULTS))
    cells = [cell for some, _ in results for cell in some]
    figures = {f"fault_{name}": sum(cell[name] for cell in cells) for name in ("wrong", "lost", "hangs")}
    figures["fault_exits"] = sum(ended for _, ended in results)
    figures["fault_runs"] = sum(cell["seeds"] for cell in cells)
    return figures, cells


def goodput(program):
    done = subprocess.run([program, GOLDEN / "image.odtm"], stdout=subprocess.PIPE, text=True, check=True)
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=built.FOLDER)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=("matrix", "goodput", "qemu"))
    args = parser.parse_args()
    wanted = {"matrix": ["bench_matrix"], "goodput": ["bench_goodput"], "qemu": ["bench_push", "firmware_images"]}
    parts = [args.only] if args.only else list(wanted)
    targets = [target for part in parts for target in wanted[part]]
    built.build(args.build, *targets)
    programs, figures, cells = args.build / "bin", {}, []
    if "goodput" in parts:
        figures.update(goodput(programs / "bench_goodput"))
    if "qemu" in parts:
        figures.update(qemu.measure("mps2_an505", programs / "firmware" / "mps2_an505.elf", programs / "bench_push",
                                    GOLDEN / "image.odtm"))
    if "matrix" in parts:
        found, cells = matrix(programs / "bench_matrix", args.seeds, args.jobs)
        figures.update(found)
    for name, value in figures.items():
        print(name, value, UNITS.get(name, "kB/s" if name.endswith("kBps") else ""))
    if args.json:
        args.json.write_text(json.dumps({"figures": figures, "matrix": cells}, indent=1) + "\n")
    sys.exit(1 if any(figures.get(f"fault_{name}") for name in ("wrong", "lost", "hangs", "exits")) else 0)


if __name__ == "__main__":
    main()
