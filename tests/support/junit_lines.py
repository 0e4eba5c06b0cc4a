#!/usr/bin/env python3
"""Turns a ctest JUnit file into PASS/FAIL/SKIP lines.

usage: junit_lines.py CTEST_XML [GTEST_FOLDER]
A test with a file of its name in GTEST_FOLDER is a program of GoogleTest: its cases are the lines. One that failed without a
failed case of its own, or wrote no file, is a line itself.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ET


def named(text):
    return re.sub(r"\s+", "_", text)


def line_of(case, name):
    skipped = case.find("skipped")
    if skipped is not None:
        return "SKIP", name, (skipped.get("message") or "no reason given").strip().replace("\n", " ")
    return ("FAIL" if case.find("failure") is not None else "PASS"), name


def cases_of(path, program):
    """Lines of a GoogleTest file. What stands before the program's last point is its cases' prefix, as ctest has it."""
    try:
        cases = list(ET.parse(path).getroot().iter("testcase"))
    except (OSError, ET.ParseError):
        return []
    prefix = program[:program.rfind(".") + 1]
    return [line_of(c, named(f"{prefix}{c.get('classname')}.{c.get('name')}")) for c in cases
            if c.get("status") == "run"]


def main():
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    for case in ET.parse(sys.argv[1]).getroot().iter("testcase"):
        name = case.get("name", "unnamed")
        lines = cases_of(folder / f"{name}.xml", name) if folder else []
        own = line_of(case, named(name))
        if own[0] == "PASS" and case.get("status") != "run":
            own = ("FAIL", named(name))
        if not lines or (own[0] == "FAIL" and not any(line[0] == "FAIL" for line in lines)):
            lines.append(own)
        for line in lines:
            print(*line)


main()
