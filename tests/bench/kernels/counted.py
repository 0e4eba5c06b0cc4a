"""Runs a bench image under QEMU and reads what it counted: instructions by SysTick, and by the plugin per address.

Estimated cycles use a table like the Cortex-M4's with memory that never waits (load 2, a load behind a load 1, store 1,
several words 1 + words, multiply-accumulate and SIMD 1, VFMA 3, division 7, taken branch 3, one not taken 1): an
estimate, the same for every kernel. A small core's (Cortex-M3) multiply-accumulate takes 2, its 64-bit product 3, its 64-bit
multiply-accumulate 4 (the least its manual gives). Where a conditional branch's next instruction is itself a target, it counts as taken.
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from tied import tied  # noqa: E402

PREFIX = "arm-none-eabi-"
TOLERANCE = 3  # instructions: SysTick's step is shorter than one, the region's limits cost a few


class Image:
    """Instructions of an ELF file, by address."""

    def __init__(self, elf, small=False):
        self.elf = elf
        self.small = small
        self.cost = {}
        self.after = {}  # of a conditional branch: the next instruction, unless something jumps there
        self.symbols = {}
        self.base = self.top = 0
        self._read()

    def _read(self):
        for line in run([PREFIX + "nm", self.elf]).splitlines():
            value, kind, name = line.split()[-3:]
            if kind in "tT":
                self.symbols[name] = int(value, 16)
        text = run([PREFIX + "objdump", "-d", "-j", ".text", "--no-show-raw-insn", self.elf])
        code = re.findall(r"^\s*([0-9a-f]+):\s+([a-z][a-z0-9.]*)\s*(.*)$", text, re.M)
        addresses = [int(at, 16) for at, _, _ in code]
        self.base, self.top = addresses[0], addresses[-1] + 4
        targets = {int(t, 16) for _, name, rest in code if name.startswith(("b", "cb"))
                   for t in re.findall(r"\b([0-9a-f]+) <", rest)}
        before = ""
        for i, (_, name, rest) in enumerate(code):
            name = name.removesuffix(".w").removesuffix(".n")
            slow = {"mla": 2, "mls": 2, "smlal": 4, "umlal": 4, "smull": 3, "umull": 3} if self.small else {}
            self.cost[addresses[i]] = slow.get(name) or cycles(name, rest, before)
            conditional = re.fullmatch(r"b(eq|ne|cs|cc|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)", name) or name in ("cbz", "cbnz")
            if conditional and i + 1 < len(code) and addresses[i + 1] not in targets:
                self.after[addresses[i]] = addresses[i + 1]
            before = name

    def cycles(self, counts):
        total = sum(n * self.cost.get(at, 1) for at, n in counts.items())
        return total - 2 * sum(counts.get(self.after[at], 0) for at in counts if at in self.after)


def words(registers):
    n = 0
    for part in registers.strip("{} ^").split(","):
        ends = [int(x) for x in re.findall(r"[rsd](\d+)", part)]
        n += (ends[1] - ends[0] + 1 if len(ends) == 2 else 1) * (2 if part.strip().startswith("d") else 1)
    return n


def cycles(name, rest, before):
    if name.startswith(("ldm", "stm", "push", "pop", "vldm", "vstm", "vpush", "vpop")):
        listed = re.search(r"\{.*\}", rest)
        return 1 + words(listed.group(0)) + (2 if "pc" in rest else 0)
    if name.startswith(("ldrd", "strd")):
        return 3
    if name.startswith(("ldr", "vldr")):
        return 1 if before.startswith(("ldr", "vldr")) and not before.startswith("ldrd") else 2
    if name.startswith(("vfma", "vfms", "vfnm", "vmla", "vmls", "vnml")):
        return 3
    if name.startswith(("vdiv", "vsqrt")):
        return 14
    if name.startswith(("udiv", "sdiv")):
        return 7
    if re.fullmatch(r"b(l|x|lx|eq|ne|cs|cc|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?|cbn?z|tb[bh]", name):
        return 3
    return 1


def run(command, **more):
    return subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True, **more).stdout


class Run:
    """One start of an image: measured regions by name, hashes, values, delta counts."""

    def __init__(self, machine, elf, plugin, work, small=False):
        self.image = Image(elf, small)
        self.insns, self.cycles, self.hashes, self.values, self.deltas = {}, {}, {}, {}, {}
        self.faults = []
        counted = pathlib.Path(work) / "counts.txt"
        lines = self._qemu(machine, elf, plugin, counted)
        self._read(lines, regions(counted))

    def _qemu(self, machine, elf, plugin, counted):
        s = self.image.symbols
        option = (f"{plugin},begin={s['bench_start']:#x},end={s['bench_stop']:#x},base={self.image.base:#x},"
                  f"bytes={self.image.top - self.image.base},out={counted}")
        qemu = subprocess.Popen(tied(["qemu-system-arm", "-M", machine, "-nographic", "-nodefaults", "-monitor", "none",
                                      "-serial", "stdio", "-icount", "shift=6,align=off,sleep=off", "-plugin", option,
                                      "-kernel", elf]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.DEVNULL, errors="replace")
        lines = []
        try:
            for line in qemu.stdout:
                lines.append(line.strip())
                if lines[-1].startswith(("END", "FAIL", "!FAULT")):
                    break
        finally:
            qemu.terminate()
            qemu.wait()
        if not lines or lines[-1] != "END":
            self.faults.append(f"{machine}: the image stopped: {lines[-1] if lines else 'no output'}")
        return lines

    def _read(self, lines, counts):
        measured = [line.split()[1:] for line in lines if line.startswith("M ")]
        if len(counts) < len(measured):
            self.faults.append(f"{len(measured)} regions printed, {len(counts)} counted")
            return
        empty = None
        for (label, insns), (total, per_address) in zip(measured, counts):
            name = label.split("/")[0]
            if empty is None:
                empty = (total, self.image.cycles(per_address), int(insns))
                continue
            by_plugin = total - empty[0]
            if abs(by_plugin - int(insns)) > TOLERANCE:
                self.faults.append(f"{label}: {insns} instructions by SysTick, {by_plugin} by the plugin")
            self.insns.setdefault(name, []).append(int(insns))
            self.cycles.setdefault(name, []).append(self.image.cycles(per_address) - empty[1])
        for line in lines:
            kind, *rest = line.split() or [""]
            if kind == "H":
                self.hashes[rest[0]] = rest[1]
            elif kind == "N":
                self.values[rest[0]] = int(rest[1])
            elif kind == "D":
                self.deltas[rest[0]] = (int(rest[1]), int(rest[2]))


def regions(path):
    """[(instructions, {address: times})]"""
    result = []
    for line in path.read_text().splitlines():
        first, second = line.split()
        if first == "region":
            result.append((int(second), {}))
        else:
            result[-1][1][int(first, 16)] = int(second)
    return result
