#!/usr/bin/python3
"""What the firmware takes on a Cortex-M33: "name value unit" lines.

usage: run.py [--build DIR] [--board NAME]
Cross-builds the board's image three times (ODT_WITHOUT): whole; `core`, which still does the main job (NITI on dense layers
and convolutions, link, non-volatile memory); `dense`, integer training of dense layers and the link alone. Bytes of flash
are code and constants, no model. fw_link_ram_bytes is all that serves link and protocol: decoder, transmitter, cached
answer, transfers, events, logs, receive ring; not the model, the trainer, the run, epoch records.
"""
import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
NOT_CORE = ["GRAPHS", "APT", "DFP16", "CAPTURE"]
NOT_DENSE = [*NOT_CORE, "CONV", "NVM"]
LINK = ["app_link_t", "app_xfer_t", "app_xfer_t", "app_head_t", "app_events_t", "app_logs_t"]


def run(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout)
    return done.stdout


def build(folder, board, without):
    run("cmake", "-S", ROOT / "firmware" / "arm", "-B", folder, "-G", "Ninja", f"-DODT_BOARD={board}",
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/firmware/arm/toolchain.cmake", f"-DODT_WITHOUT={';'.join(without)}")
    run("ninja", "-C", folder)
    return folder / f"{board}.elf"


def flash_and_ram(elf):
    text, data, bss = (int(n) for n in run("arm-none-eabi-size", elf).splitlines()[-1].split()[:3])
    return text + data, data + bss


def size_of(folder, names):
    """Bytes of types of the app, as the board's compiler lays them out."""
    source, result = folder / "sizes.c", folder / "sizes.o"
    source.write_text('#include "app/types.h"\n' + "".join(f"char size_{n}[sizeof({n})];\n" for n in sorted(set(names))))
    include = [f"-I{ROOT / path}" for path in ("firmware/odt/include", "firmware/app/include", "firmware/hal/include",
                                               "proto")]
    run("arm-none-eabi-gcc", "-std=c11", "-mcpu=cortex-m33", "-mthumb", "-fno-common", *include, "-c", source, "-o", result)
    sizes = symbols(result)
    return sum(sizes[f"size_{n}"] for n in names)


def symbols(path):
    lines = (line.split() for line in run("arm-none-eabi-nm", "-S", path).splitlines())
    return {words[3]: int(words[1], 16) for words in lines if len(words) == 4}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "bench-size")
    parser.add_argument("--board", default="mps2_an505")
    args = parser.parse_args()
    whole = build(args.build / "whole", args.board, [])
    core = build(args.build / "core", args.board, NOT_CORE)
    dense = build(args.build / "dense", args.board, NOT_DENSE)
    flash, ram = flash_and_ram(whole)
    print("fw_link_ram_bytes", size_of(args.build, LINK) + symbols(whole)["rx"], "bytes")
    print("fw_static_ram_bytes", ram, "bytes")
    print("fw_flash_bytes", flash, "bytes")
    print("fw_flash_core_bytes", flash_and_ram(core)[0], "bytes")
    print("fw_flash_dense_bytes", flash_and_ram(dense)[0], "bytes")


if __name__ == "__main__":
    main()
