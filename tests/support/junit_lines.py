#!/usr/bin/env python3
"""Turns a ctest JUnit file into PASS/FAIL/SKIP lines."""
import re
import sys
import xml.etree.ElementTree as ET

for case in ET.parse(sys.argv[1]).getroot().iter("testcase"):
    name = re.sub(r"\s+", "_", case.get("name", "unnamed"))
    skipped = case.find("skipped")
    if case.get("status") == "run" and case.find("failure") is None and skipped is None:
        print("PASS", name)
    elif skipped is not None and case.get("status") in ("notrun", "disabled", "skipped"):
        print("SKIP", name, (skipped.get("message") or "no reason given").replace("\n", " "))
    else:
        print("FAIL", name)
