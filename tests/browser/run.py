#!/usr/bin/env python3
"""The browser tests: the dashboard against a scripted fleet (ui.mjs), then against a real odtd with sim boards and
runs going on (e2e.mjs), which it kills and starts again in the middle, and every view and action against another real
one (real.mjs). Prints a PASS/FAIL line a test.

    tests/browser/run.py --bin build/bin [--only ui|e2e|real]
"""
import argparse
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy"))
from odt_processes import Processes  # noqa: E402
import real_fleet  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
BOARDS = [("sim-1", "51a00000000000c1"), ("sim-2", "51a00000000000c2"), ("sim-3", "51a00000000000c3")]
UI_SECONDS, E2E_SECONDS, REAL_SECONDS = 900, 600, 900


def import_data(fleet, name, transform, counts, skip):
    train, heldout, test = counts
    fleet.ctl("data", "import", DATA, "--name", name, "--resize", "14x14",
              "--transform", transform, "--train", train, "--heldout", heldout, "--test", test,
              "--skip", skip, "--seed", 1, timeout=120)


def start_fleet(fleet):
    """odtd, boards and runs: a short one that ends while the test looks, and long ones."""
    fleet.start_odtd(web=ROOT / "web" / "dist")
    for name, uid in BOARDS:
        # Slow enough to be watched; the first is quick, so that its run ends meanwhile.
        fleet.sim_board(name, uid, [] if name == "sim-1" else ["--step-delay-ms", "20"])

    def online():
        states = {b["uid"]: b["status"] for b in fleet.ctl("board", "list")}
        return all(states.get(uid) == "ONLINE" for _, uid in BOARDS)

    fleet.wait_for("boards online", online, 20)
    for name, uid in BOARDS:
        fleet.ctl("board", "rename", uid, name)
    import_data(fleet, "fmnist", "none", (2000, 200, 500), 0)
    fleet.ctl("pc-train", "--data", "fmnist", "--hidden", 32, "--epochs", 3, "--seed", 1, "--name", "fmnist", timeout=120)
    import_data(fleet, "fmnist-inversion", "inversion", (400, 100, 500), 3000)
    for (name, _), epochs in zip(BOARDS, (5, 1000, 1000)):
        fleet.ctl("train", "--board", name, "--model", "fmnist", "--data", "fmnist-inversion", "--epochs", epochs,
                  "--evaluate", "--detach")


def with_fleet(suite, bin_dir, body):
    """body(fleet) with processes of its own, which end with it; its exit code."""
    state = pathlib.Path(tempfile.mkdtemp(prefix="odt-browser-"))
    fleet = Processes(bin_dir, state)
    try:
        code = body(fleet)
        if code != 0:
            print(fleet.log_tail("odtd", 30), file=sys.stderr)
        return code
    except (RuntimeError, TimeoutError, KeyError, OSError, subprocess.TimeoutExpired) as error:
        print(f"FAIL browser/{suite}-setup {str(error).splitlines()[0]}")
        print(error, fleet.log_tail("odtd", 30), sep="\n", file=sys.stderr)
        return 1
    finally:
        fleet.stop()
        shutil.rmtree(state, ignore_errors=True)


def run_e2e(fleet):
    start_fleet(fleet)
    http = fleet.address_of("http")
    listen = fleet.address_of("listen")
    test = subprocess.Popen(["node", str(HERE / "e2e.mjs"), "--url", f"http://{http}", "--boards", str(len(BOARDS)),
                             "--control"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    timer = signal.signal(signal.SIGALRM, lambda *_: test.kill())
    signal.alarm(E2E_SECONDS)
    for line in test.stdout:
        if line == "ASK kill\n":
            fleet.end("odtd", signal.SIGKILL)
        elif line == "ASK forget\n":  # everything that odtd knows
            for part in fleet.data.iterdir():
                shutil.rmtree(part) if part.is_dir() else part.unlink()
        elif line == "ASK start\n":
            fleet.start_odtd(http_port=int(http.rsplit(":", 1)[1]), listen_port=int(listen.rsplit(":", 1)[1]),
                             web=ROOT / "web" / "dist")
        else:
            print(line, end="", flush=True)
            continue
        test.stdin.write("done\n")
        test.stdin.flush()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, timer)
    code = test.wait()
    if code not in (0, 1):
        print(f"FAIL browser/e2e ended with exit {code}")
    return code


def run_real(fleet):
    real_fleet.start(fleet)
    return subprocess.run(["node", str(HERE / "real.mjs"), "--url", f"http://{fleet.address_of('http')}",
                           "--ctl", f"{fleet.bin / 'odtctl'} --address unix:{fleet.socket_path}"],
                          timeout=REAL_SECONDS).returncode


def run_ui():
    try:
        return subprocess.run(["node", str(HERE / "ui.mjs")], timeout=UI_SECONDS).returncode
    except subprocess.TimeoutExpired:
        print(f"FAIL browser/ui longer than {UI_SECONDS} s")
        return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", choices=("ui", "e2e", "real"))
    args = parser.parse_args()
    codes = []
    if args.only in (None, "ui"):
        codes.append(run_ui())
    if args.only in (None, "e2e"):
        codes.append(with_fleet("e2e", args.bin, run_e2e))
    if args.only in (None, "real"):
        codes.append(with_fleet("real", args.bin, run_real))
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
