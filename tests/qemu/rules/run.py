#!/usr/bin/python3
"""The golden runs of tests/golden/rules on cores with their own kernels, under QEMU.

usage: run.py [--build DIR] [--only BOARD]
Cross-builds an image per board that trains every run of rules.json and wide.json; every run must end in the oracle's
weights and have had its losses. Ends with 1 where one does not.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
from boards import qemu_boards  # noqa: E402
from tied import tied  # noqa: E402
ROOT = HERE.parents[2]
GOLDEN = ROOT / "tests" / "golden" / "rules"
# One a core; the image with all runs does not fit into the others' memories.
BOARDS = {name: qemu_boards()[name].machine
          for name in ("mps2_an386", "mps2_an500", "mps2_an505", "mps3_an524", "mps3_an547")}
ARRAYS = {"mu_weight": 3, "lr_m": 3, "class_weights": 128, "layer_k": 16}


def runs():
    out = []
    for name in ("rules.json", "wide.json"):
        for run in json.loads((GOLDEN / name).read_text())["runs"]:
            losses = run.get("losses") or [step["loss"] for step in run["steps"]]
            total = 0
            for loss in losses:
                total = (total * 3 + loss) % 2**64
            out.append(dict(run, loss_sum=struct.pack("<Q", total).hex()))
    return out


def array(name, kind, values):
    return f"static const {kind} {name}[] __attribute__((aligned(4))) = {{{','.join(str(v) for v in values)}}};\n"


def spec_text(spec):
    fields = []
    for name, value in spec.items():
        if name in ARRAYS:
            value = list(value) + [64] * (128 - len(value)) if name == "class_weights" else value
            fields.append(f".{name} = {{{','.join(str(v) for v in value)}}}")
        else:
            fields.append(f".{name.replace('apt_', 'apt.')} = {value}")
    return "{" + ", ".join(fields) + "}"


def write_c(path):
    text, table = '#include "runs.h"\n', []
    for i, run in enumerate(runs()):
        image, samples = bytes.fromhex(run["image"]), bytes.fromhex(run["samples"])
        text += array(f"image{i}", "uint8_t", image) + array(f"samples{i}", "uint8_t", samples)
        scores, steers = run.get("heldout_scores"), run.get("set_k", [])
        if scores:
            text += array(f"scores{i}", "uint32_t", scores)
        if steers:
            text += array(f"set_k{i}", "uint32_t", [v for s in steers for v in s])
        table.append(f'{{.name = "{run["name"]}", .image = image{i}, .image_bytes = {len(image)}u, '
                     f".samples = samples{i}, .samples_bytes = {len(samples)}u, .spec = {spec_text(run['spec'])}, "
                     f".scores = {f'scores{i}' if scores else 'NULL'}, "
                     f".set_k = {f'set_k{i}' if steers else 'NULL'}, .n_set_k = {len(steers)}u}}")
    text = text.replace('#include "runs.h"\n', '#include <stddef.h>\n\n#include "runs.h"\n')
    text += "const rules_run_t kRuns[] = {\n" + ",\n".join(table) + "\n};\n"
    text += f"const uint32_t kRunCount = {len(table)}u;\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def build(folder, board, runs_c):
    out = folder / board
    for command in (["cmake", "-S", HERE, "-B", out, "-G", "Ninja", f"-DRULES_BOARD={board}", f"-DRULES_RUNS={runs_c}",
                     f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/firmware/arm/toolchain.cmake"], ["ninja", "-C", out, "rules"]):
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout)
    return out / "rules.elf"


def train(machine, elf):
    """Lines of the image, up to END."""
    qemu = subprocess.Popen(tied(["qemu-system-arm", "-M", machine, "-nographic", "-nodefaults", "-monitor", "none",
                                  "-serial", "stdio", "-kernel", elf]), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL, errors="replace")
    lines = []
    try:
        for line in qemu.stdout:
            lines.append(line.strip())
            if lines[-1].startswith(("END", "!FAULT")):
                break
    finally:
        qemu.terminate()
        qemu.wait()
    return lines


def faults_of(board, lines):
    if not lines or lines[-1] != "END":
        return [f"{board}: the image stopped: {lines[-1] if lines else 'no output'}"]
    got = {words[1]: words for words in (line.split() for line in lines) if len(words) >= 3}
    faults = []
    for run in runs():
        words = got.get(run["name"], ["nothing"])
        if words != ["R", run["name"], run["weights_sha256"], run["loss_sum"]]:
            faults.append(f"{board}: {run['name']}: {' '.join(words)}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "rules-on-boards")
    parser.add_argument("--only", choices=sorted(BOARDS))
    args = parser.parse_args()
    folder = args.build.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    write_c(folder / "runs.c")
    faults = []
    for board, machine in BOARDS.items():
        if args.only in (None, board):
            faults += faults_of(board, train(machine, build(folder, board, folder / "runs.c")))
    print("\n".join(faults) or f"{len(runs())} runs as the oracle has them")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
