#!/usr/bin/env python3
"""System tests: the real odtd, odtctl, simulated and QEMU boards. Prints a PASS, FAIL or SKIP line a test.

  run.py --bin build/bin [--soak] [--only TEXT]
"""
import argparse
import pathlib
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases_api  # noqa: E402
import cases_bad_input  # noqa: E402
import cases_fixtures  # noqa: E402
import cases_precision  # noqa: E402
import cases_recovery  # noqa: E402
import cases_training  # noqa: E402
import cases_soak  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--soak", action="store_true")
    args = parser.parse_args()
    modules = [cases_soak] if args.soak else [cases_training, cases_precision, cases_recovery, cases_bad_input,
                                               cases_fixtures, cases_api]
    failed = 0
    for module in modules:
        for name, case in sorted(vars(module).items()):
            if not name.startswith("test_") or args.only not in name:
                continue
            full = f"system/{name[5:]}"
            start = time.monotonic()
            try:
                case(pathlib.Path(args.bin).resolve())
                print(f"PASS {full} {time.monotonic() - start:.1f} s", flush=True)
            except Exception as error:  # every fault of a case is its failure
                failed += 1
                traceback.print_exc()
                print(f"FAIL {full} {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
