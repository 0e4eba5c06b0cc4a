#!/usr/bin/python3
"""Instructions of the training kernels under QEMU: "name value unit" lines.

usage: run.py [--json FILE] [--build DIR] [--only IMAGE]
Builds bench images (cross compiler) for mps2_an505 with the DSP kernels and with the plain C ones, and for mps3_an547,
and runs them. Ends with 1 where a result's hash differs from that of the plain C kernels, fewer than 95 % of the
deltas are non-zero, or the two ways of counting disagree. --json: the raw counts too.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from counted import Run

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BATCH = 8
DENSE_MACS = 147 * 160
HEAD_MACS = 160 * 2
STEP_MACS = BATCH * (2 * DENSE_MACS + 3 * HEAD_MACS)  # forward and gradient; deltas of the head
CONV_A_MACS = BATCH * (2 * 49 * 3 * 32 + 147 * 2)
CONV_B_MACS = BATCH * 3 * 16 * 16 * 9 * 64
IMAGES = {  # name: (board, machine, build options)
    "m33": ("mps2_an505", "mps2-an505", []),
    "m33_c": ("mps2_an505", "mps2-an505", ["ODT_KERNELS=c"]),
    "m55": ("mps3_an547", "mps3-an547", []),
    "m3": ("mps2_an505", "mps2-an505", ["BENCH_SMALL_CORE=ON"]),
    "m3_chain32": ("mps2_an505", "mps2-an505", ["BENCH_SMALL_CORE=ON", "BENCH_CHAIN32=ON"]),
}
SMALL = ("m3", "m3_chain32")  # DFP16 alone, code for a core without the DSP extension


TOOLS = {  # program: its Debian package
    "arm-none-eabi-gcc": "gcc-arm-none-eabi", "arm-none-eabi-nm": "binutils-arm-none-eabi",
    "arm-none-eabi-objdump": "binutils-arm-none-eabi", "qemu-system-arm": "qemu-system-arm", "gcc": "gcc",
    "cmake": "cmake", "ninja": "ninja-build",
}


def check_tools(parser):
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            parser.error(f"{tool} is not in PATH: install the Debian package {package}")


def build(folder, name, board, options):
    out = folder / name
    configure = ["cmake", "-S", HERE, "-B", out, "-G", "Ninja", f"-DBENCH_BOARD={board}",
                 f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/firmware/arm/toolchain.cmake"]
    configure += [f"-D{option}" for option in options]
    for command in (configure, ["ninja", "-C", out, "bench"]):
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout)
    return out / "bench.elf"


def build_plugin(folder):
    plugin = folder / "libcount.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-o", plugin, HERE / "count.c"], check=True)
    return plugin


def steps(run, name):
    """Mean of the steps behind the first: with stale shifts that one is still exact."""
    return statistics.mean(run.insns[name][1:])


def forward(run):
    return (run.insns["fwd"][0] - run.insns["fwd_head"][0]) / (BATCH * DENSE_MACS)


def conv(run):
    a = (steps(run, "conv_a") - steps(run, "conv_a_head")) / CONV_A_MACS
    b = (steps(run, "conv2") - steps(run, "conv1")) / CONV_B_MACS
    return a, b


def share(run, name):
    total, zeros = run.deltas[name]
    return 100 * (total - zeros) / total


def figures_of(prefix, run):
    conv_a, conv_b = conv(run)
    return [
        (f"{prefix}_step_b8_insns", round(steps(run, "step")), "instructions"),
        (f"{prefix}_step_b8_stale_insns", round(steps(run, "step_stale")), "instructions"),
        (f"{prefix}_step_b8_stale_psto_insns", round(steps(run, "step_stale_psto")), "instructions"),
        (f"{prefix}_step_b8_k12_insns", round(steps(run, "step_k12")), "instructions"),
        (f"{prefix}_fwd_insn_per_mac", round(forward(run), 3), "instructions/MAC"),
        (f"{prefix}_dense_step_insn_per_mac", round(steps(run, "step") / STEP_MACS, 3), "instructions/MAC"),
        (f"{prefix}_conv_step_16x2_insn_per_mac", round(conv_a, 3), "instructions/MAC"),
        (f"{prefix}_conv_step_3x3_insn_per_mac", round(conv_b, 3), "instructions/MAC"),
        (f"{prefix}_conv_step_insn_per_mac", round(max(conv_a, conv_b), 3), "instructions/MAC"),
    ]


def f32_figures(run):
    macs = BATCH * DENSE_MACS
    return [
        ("f32_step_b8_insns", round(steps(run, "f32_step")), "instructions"),
        ("f32_step_b8_cycles", round(statistics.mean(run.cycles["f32_step"][1:])), "estimated cycles"),
        ("f32_fwd_insn_per_mac", round(run.insns["f32_fwd"][0] / macs, 3), "instructions/MAC"),
        ("f32_fwd_cycles_per_mac", round(run.cycles["f32_fwd"][0] / macs, 3), "estimated cycles/MAC"),
        ("f32_grad_insn_per_mac", round(run.insns["f32_grad"][0] / macs, 3), "instructions/MAC"),
    ]


def dfp16_figures(run):
    macs = BATCH * DENSE_MACS
    return [
        ("dfp16_step_b8_insns", round(steps(run, "dfp_step")), "instructions"),
        ("dfp16_step_b8_cycles", round(statistics.mean(run.cycles["dfp_step"][1:])), "estimated cycles"),
        ("dfp16_over_f32_ratio", round(steps(run, "f32_step") / steps(run, "dfp_step"), 3), "x"),
        ("dfp16_over_f32_cycles_ratio", round(statistics.mean(run.cycles["f32_step"][1:])
                                              / statistics.mean(run.cycles["dfp_step"][1:]), 3), "x"),
        ("dfp16_fwd_insn_per_mac", round(run.insns["dfp_fwd"][0] / macs, 3), "instructions/MAC"),
        ("dfp16_fwd_cycles_per_mac", round(run.cycles["dfp_fwd"][0] / macs, 3), "estimated cycles/MAC"),
        ("dfp16_delta_insn_per_mac", round(run.insns["dfp_delta"][0] / macs, 3), "instructions/MAC"),
        ("dfp16_grad_insn_per_mac", round(run.insns["dfp_update"][0] / macs, 3), "instructions/MAC"),
    ]


def chain32_figures(run, chained):
    def cycles(r):
        return statistics.mean(r.cycles["dfp_step"][1:])

    return [
        ("dfp16_m3_step_b8_insns", round(steps(run, "dfp_step")), "instructions"),
        ("dfp16_m3_chain32_step_b8_insns", round(steps(chained, "dfp_step")), "instructions"),
        ("dfp16_chain32_overhead_pct", round(100 * (steps(chained, "dfp_step") / steps(run, "dfp_step") - 1), 1), "%"),
        ("dfp16_chain32_cycles_overhead_pct", round(100 * (cycles(chained) / cycles(run) - 1), 1), "%"),
    ]


def check(runs):
    faults = [f"{name}: {fault}" for name, run in runs.items() for fault in run.faults]
    if faults:
        return faults
    reference = runs["m33_c"].hashes
    for name, run in runs.items():
        for what, value in run.hashes.items():
            if name == "m3_chain32":  # results of its own
                continue
            if value != reference[what]:
                faults.append(f"{name}: {what} ends in {value[:16]}, with the plain C kernels in {reference[what][:16]}")
        loops = run.insns["loop"]
        if any(abs(got - want) > 10 for got, want in zip(loops, (3000, 15000000))):
            faults.append(f"{name}: loops of 3000 and 15000000 instructions count as {loops}")
        for what in ("step", "step_stale", "step_stale_psto", "step_k12", "dfp_step"):
            if what not in run.deltas:
                continue
            if share(run, what) < 95:
                faults.append(f"{name}: {what}: only {share(run, what):.1f} % of the deltas are non-zero")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "bench-kernels")
    parser.add_argument("--only", choices=sorted(IMAGES), help="one image against the plain C kernels")
    args = parser.parse_args()
    try:  # before minutes of work
        args.build.mkdir(parents=True, exist_ok=True)
        if args.json:
            args.json.open("a").close()
    except OSError as error:
        parser.error(f"cannot write {error.filename}: {error.strerror}")
    check_tools(parser)
    plugin = build_plugin(args.build)
    wanted = [name for name in IMAGES if args.only in (None, name) or name == "m33_c"]
    runs = {}
    with tempfile.TemporaryDirectory() as work:
        for name in wanted:
            board, machine, options = IMAGES[name]
            runs[name] = Run(machine, build(args.build, name, board, options), plugin, work, name in SMALL)
    faults = check(runs)
    figures = []
    if not any(run.faults for run in runs.values()):
        for name, run in runs.items():
            if name in SMALL:
                continue
            figures += figures_of({"m33_c": "naive"}.get(name, name), run)
        last = runs.get("m33", runs["m33_c"])
        figures += f32_figures(runs["m33_c"]) + dfp16_figures(last)
        if all(name in runs for name in SMALL):
            figures += chain32_figures(*(runs[name] for name in SMALL))
        figures += [("arcfault_ram_bytes", last.values["arc_total_bytes"], "bytes"),
                    ("nonzero_delta_share", round(min(share(last, s) for s in ("step", "step_stale", "step_stale_psto",
                                                                               "step_k12")), 1), "%")]
    for name, value, unit in figures:
        print(name, value, unit)
    for fault in faults:
        print("fault:", fault, file=sys.stderr)
    if args.json:
        raw = {name: {"insns": run.insns, "estimated_cycles": run.cycles, "hashes": run.hashes, "values": run.values,
                      "deltas": run.deltas} for name, run in runs.items()}
        args.json.write_text(json.dumps({"figures": {n: v for n, v, _ in figures}, "raw": raw}, indent=1) + "\n")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
