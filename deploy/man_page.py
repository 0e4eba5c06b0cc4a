#!/usr/bin/python3
"""Manual pages of odtd, odtc, odt-worker, odt-flash out of what the programs say of themselves: --help of the program
and of its subcommands as it stands, and what PAGES adds. odtctl's own: daemon/cli/man_page.py.

  man_page.py PROGRAM OUT      OUT: NAME.SECTION
"""
import pathlib
import re
import subprocess
import sys

PAGES = {
    "odtd": ("daemon that trains neural networks on fleets of microcontroller boards", ["check-config", "restore"], {
        "FILES": ["/etc/odt-fleet/odtd.toml: every key with its default, commented out",
                  "/var/lib/odt-fleet: databases, blobs, crash reports (crashes/)",
                  "/run/odt-fleet/odtd.sock: the socket of odtctl, for root and the group odt"],
        "EXIT STATUS": ["0: stopped by SIGTERM or SIGINT", "1: cannot start, or went on without a part it needs",
                        "2: the configuration or a flag is wrong", "3: stopping took longer than 15 s"],
        "SIGNALS": ["SIGTERM, SIGINT: stop; runs on boards go on and are taken up at the next start",
                    "a second one: at once"]}, "odtctl(1), odtc(1), /usr/share/doc/odt\\-fleet/docs/operations.md"),
    "odtc": ("compiles QAT ONNX files into model images for boards, or C files", None, {}, "odtctl(1), odtd(8)"),
    "odt-worker": ("the program in which odtd compiles, imports, trains and replays", ["import", "train"], {},
                   "odtd(8), odtctl(1)"),
    "odt-flash": ("writes firmware onto boards for odtd, as a user of its own", None, {
        "FILES": ["/usr/share/odt\\-fleet/boards/*.toml: board profiles; /etc/odt\\-fleet/boards/*.toml go before them",
                  "/var/spool/odt\\-flash/odtd: requests and firmware of odtd, results and logs of odt\\-flash"]},
        "odtd(8), odtctl(1), openocd(1), dfu\\-util(1)"),
}


def said(program, *words):
    done = subprocess.run([program, *words, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise SystemExit(f"man_page.py: {program} {' '.join(words)} --help ended with {done.returncode}: {done.stderr}")
    return done.stdout.rstrip("\n").split("\n")


def literal(lines):
    yield from [".PP", ".nf"]
    for line in lines:
        line = line.replace("\\", "\\e").replace("-", "\\-")
        yield "\\&" + line if line[:1] in (".", "'") else line
    yield ".fi"


def page(program, name, section):
    title, below, parts, also = PAGES[name]
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    lines = said(program)
    if below is None:
        start = lines.index("Subcommands:") if "Subcommands:" in lines else len(lines)
        below = re.findall(r"^  ([a-z][a-z-]*)", "\n".join(lines[start:]), re.M)
    dashed = name.replace("-", "\\-")
    yield f'.TH {name.upper()} {section} "" "odt\\-fleet {version}" "odt\\-fleet"'
    yield from [".SH NAME", f"{dashed} \\- {title}", ".SH DESCRIPTION"]
    yield from literal(lines)
    for verb in below:
        yield f'.SS "{dashed} {verb}"'.replace("check-", "check\\-")
        yield from literal(said(program, verb))
    for head, items in parts.items():
        yield f".SH {head}"
        for item in items:
            yield from [".TP", ".B " + item.partition(": ")[0], item.partition(": ")[2]]
    yield from [".SH SEE ALSO", also]


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    out = pathlib.Path(sys.argv[2])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(page(sys.argv[1], out.stem, out.suffix[1:])) + "\n")


if __name__ == "__main__":
    main()
