#!/usr/bin/python3
"""Every figure of the project, group by group, each with the command that prints it again.

  tests/bench/run.sh all [--only GROUP,...] [--skip GROUP,...] [--json FILE] [--table FILE.md] [--limit SECONDS]

  --json    groups with command, exit code, seconds and figures
  --table   the same as Markdown, with machine, date and commit (deploy/BENCHMARKS.md is such a file)
Hours on a quiet machine; on another one figures of time say little. A group that fails is named, the others go on; exit code 1 then.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
LINE = re.compile(r"^([a-zA-Z][\w./-]*) (-?\d[\d.,eE+-]*)(?: (.*))?$")


def groups():
    found = sorted(p.parent.name for p in (ROOT / "tests/bench").glob("*/run.py") if p.parent.name != "all")
    return ["delays", *found]


def command(group):
    return ["tests/bench/run.sh"] if group == "delays" else ["tests/bench/run.sh", group]


def flat(value, prefix=""):
    """Numbers of a JSON value by their path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{prefix}.{key}" if prefix else key)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield prefix, value


def figures(text):
    """From lines "name value unit", and from a JSON value that is all of the output or a line of it."""
    found = {}
    candidates = [text, *text.splitlines()]
    for part in candidates:
        try:
            value = json.loads(part)
        except ValueError:
            continue
        for name, number in flat(value):
            found[name] = [number, ""]
    for line in text.splitlines():
        if match := LINE.match(line.strip()):
            number = match[2].replace(",", "")
            try:
                found[match[1]] = [float(number) if re.search(r"[.eE]", number) else int(number), match[3] or ""]
            except ValueError:
                continue
    return found


def run(group, limit):
    start = time.monotonic()
    try:
        done = subprocess.run(command(group), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=limit)
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        code, out, err = -1, (late.stdout or b"").decode(errors="replace"), f"not done after {limit} s"
    return {"command": " ".join(command(group)), "exit": code, "seconds": round(time.monotonic() - start, 1), "figures": figures(out),
            "error": err.strip().splitlines()[-1][:300] if code != 0 and err.strip() else ""}


def machine():
    cpu = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {"cpu": cpu, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.release()}",
            "load_before": round(os.getloadavg()[0], 1), "date": datetime.date.today().isoformat(), "commit": commit or "unknown"}


def table(about, results):
    out = ["# Figures", "", f"{about['date']}, commit {about['commit']}, {about['cores']} cores of {about['cpu']}, {about['system']}, load before: "
           f"{about['load_before']}. Made by `tests/bench/run.sh all --table`; what each figure means: `tests/bench/README.md`.", ""]
    for group, result in results.items():
        out += [f"## {group}", "", f"`{result['command']}`, {result['seconds']} s" +
                ("" if result["exit"] == 0 else f"; ended with {result['exit']}: {result['error']}"), ""]
        if result["figures"]:
            out += ["| figure | value | unit |", "|---|---|---|"]
            out += [f"| `{name}` | {value} | {unit} |" for name, (value, unit) in result["figures"].items()] + [""]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", default="")
    parser.add_argument("--json")
    parser.add_argument("--table")
    parser.add_argument("--limit", type=int, default=7200)
    args = parser.parse_args()
    wanted = [g for g in args.only.split(",") if g] or groups()
    wanted = [g for g in wanted if g not in args.skip.split(",")]
    for group in wanted:
        if group not in groups():
            raise SystemExit(f"run.sh all: no group '{group}'; there are: {', '.join(groups())}")
    about, results = machine(), {}
    for group in wanted:
        print(f"== {group}: {' '.join(command(group))}", flush=True)
        results[group] = run(group, args.limit)
        for name, (value, unit) in results[group]["figures"].items():
            print(name, value, unit)
        if results[group]["exit"] != 0:
            print(f"{group}: ended with {results[group]['exit']}: {results[group]['error']}", file=sys.stderr)
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps({"machine": about, "groups": results}, indent=1) + "\n")
    if args.table:
        pathlib.Path(args.table).write_text(table(about, results))
    return 1 if any(r["exit"] != 0 for r in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
