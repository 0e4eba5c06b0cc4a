#!/usr/bin/python3
"""odtctl(1) out of what odtctl says of itself: every verb's --help, nothing else.

  man_page.py ODTCTL OUT
"""
import pathlib
import re
import subprocess
import sys

SECTION = re.compile(r"^(Options|Positionals|Subcommands):$")
ENTRY = re.compile(r"^  (\S.*?)(?:  +(.*))?$")


def said(odtctl, *verb):
    return subprocess.run([odtctl, *verb, "--help"], capture_output=True, text=True, check=True).stdout.rstrip("\n").split("\n")


def escaped(text):
    """Text for troff: '-' is a hyphen-minus to copy, and no line begins with a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def parse(lines):
    """(title, usage, {section: [(entry, text)]}, lines behind them) of a help page."""
    title, usage, sections, rest, now = lines[0], "", {}, [], None
    for line in lines[1:]:
        if line.startswith("Usage: "):
            usage = line[7:]
        elif match := SECTION.match(line):
            now = sections.setdefault(match[1], [])
        elif not line:
            now = None if sections else now
        elif now is None:
            rest.append(line)
        elif line.startswith("      ") and now:
            entry, text = now[-1]
            now[-1] = (entry, f"{text} {line.strip()}".strip())
        elif match := ENTRY.match(line):
            now.append((match[1], match[2] or ""))
        else:
            raise SystemExit(f"man_page.py: a line of a kind it does not know: {line!r}")
    return title, usage, sections, rest


def entries(items):
    for entry, text in items:
        yield ".TP"
        yield f".B {escaped(entry)}"
        yield escaped(text) if text else "\\&"


def verbs(odtctl, path):
    """Every verb below `path`, with what it takes."""
    title, usage, sections, _ = parse(said(odtctl, *path))
    options = [e for e in sections.get("Options", []) if not e[0].startswith("-h,")]
    below = sections.get("Subcommands", [])
    yield f'.SS "{escaped(" ".join(path))}"'
    yield escaped(title) + ("" if title.endswith(".") else ".")
    yield ".PP"
    yield f".B {escaped(usage.replace('SUBCOMMAND', 'VERB'))}"
    yield from entries(sections.get("Positionals", []) + options)
    for name, _ in below:
        yield from verbs(odtctl, [*path, name])


def page(odtctl):
    title, usage, sections, rest = parse(said(odtctl))
    version = subprocess.run([odtctl, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    yield f'.TH ODTCTL 1 "" "odt\\-fleet {escaped(version)}" "odt\\-fleet"'
    yield ".SH NAME"
    yield "odtctl \\- " + escaped(title.partition(": ")[2] or title)
    yield ".SH SYNOPSIS"
    yield f".B {escaped(usage.replace('SUBCOMMAND', 'VERB'))}"
    yield ".SH OPTIONS"
    yield from entries(sections["Options"])
    yield ".SH VERBS"
    yield from entries(sections["Subcommands"])
    yield ".SH NAMES, ADDRESS, EXIT CODES"
    for line in rest:
        if re.match(r"(Names of|Where odtd|Exit codes)", line):
            yield ".PP"
        yield escaped(line)
    yield ".SH REFERENCE"
    for name, _ in sections["Subcommands"]:
        yield from verbs(odtctl, [name])
    yield ".SH SEE ALSO"
    yield "odtd(8), odtc(1), odt\\-worker(1)"


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    out = pathlib.Path(sys.argv[2])
    text = "\n".join(page(sys.argv[1])) + "\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text)


if __name__ == "__main__":
    main()
