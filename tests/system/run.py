#!/usr/bin/env python3
"""System tests: the real odtd, odtctl, simulated and QEMU boards. Prints a PASS, FAIL or SKIP line a test.

  run.py --bin build/bin [--soak] [--only TEXT] [--jobs N]

Every case has a process, a daemon and boards of its own; most of them wait for clocks, so that several run at once.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import cases_alerts  # noqa: E402
import cases_api  # noqa: E402
import cases_attacks  # noqa: E402
import cases_bad_input  # noqa: E402
import cases_boards  # noqa: E402
import cases_campaign  # noqa: E402
import cases_capture  # noqa: E402
import cases_cli  # noqa: E402
import cases_console  # noqa: E402
import cases_crash  # noqa: E402
import cases_data  # noqa: E402
import cases_fixtures  # noqa: E402
import cases_float  # noqa: E402
import cases_frozen  # noqa: E402
import cases_guard  # noqa: E402
import cases_http  # noqa: E402
import cases_lab  # noqa: E402
import cases_losses  # noqa: E402
import cases_nvm  # noqa: E402
import cases_precision  # noqa: E402
import cases_python  # noqa: E402
import cases_queue  # noqa: E402
import cases_recovery  # noqa: E402
import cases_snapshots  # noqa: E402
import cases_storage  # noqa: E402
import cases_training  # noqa: E402
import cases_soak  # noqa: E402
from tied import tied  # noqa: E402

# The slowest begin first.
MODULES = [cases_campaign, cases_crash, cases_recovery, cases_nvm, cases_training, cases_alerts, cases_lab, cases_snapshots, cases_queue, cases_losses,
           cases_precision, cases_guard, cases_frozen, cases_float, cases_attacks, cases_bad_input, cases_boards, cases_capture, cases_data, cases_storage,
           cases_python, cases_http, cases_cli, cases_console,
           cases_fixtures, cases_api]

# Of tests/run.sh --full alone: what tests/qemu (nvm.py) and the simulated boards' cases show as well.
FULL_ONLY = {"test_nvm_qemu_power_cycle"}


def run_here(case, bin_dir):
    """A case in this process: its line, and how it failed."""
    full = f"system/{case.__name__[5:]}"
    start = time.monotonic()
    try:
        case(bin_dir)
        print(f"PASS {full} {time.monotonic() - start:.1f} s", flush=True)
        return 0
    except Exception as error:  # every fault of a case is its failure
        traceback.print_exc()
        print(f"FAIL {full} {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)
        return 1


def run_apart(case, bin_dir):
    """The same in a process of its own, which ends with this one."""
    done = subprocess.run(tied([sys.executable, __file__, "--bin", bin_dir,
                                "--case", f"{case.__module__}.{case.__name__}"]),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = done.stdout
    if done.returncode != 0 and "\nFAIL " not in "\n" + output:
        output += f"FAIL system/{case.__name__[5:]} exit {done.returncode}\n"
    print(output, end="", flush=True)
    return 1 if done.returncode else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--case", help="one case, in this process: MODULE.NAME")
    args = parser.parse_args()
    bin_dir = pathlib.Path(args.bin).resolve()
    if args.case:
        module, name = args.case.split(".")
        return run_here(getattr(sys.modules[module], name), bin_dir)
    cases = [case for module in ([cases_soak] if args.soak else MODULES) for name, case in sorted(vars(module).items())
             if name.startswith("test_") and args.only in name
             and (name not in FULL_ONLY or args.only or os.environ.get("ODT_FULL") == "1")]
    with concurrent.futures.ThreadPoolExecutor(max_workers=1 if args.soak else max(1, args.jobs)) as pool:
        return 1 if sum(pool.map(lambda case: run_apart(case, bin_dir), cases)) else 0


if __name__ == "__main__":
    sys.exit(main())
