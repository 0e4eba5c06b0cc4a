#!/usr/bin/env python3
"""The demo behind deploy/demo.sh: starts odtd and boards, trains a model on the PC, lets every board adapt.

Ends everything it started, on every way out. Exit 0: done (with --once: and the boards learned). 1: something failed.
"""
import argparse
import fcntl
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from odt_processes import CtlError, Processes, free_port  # noqa: E402

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
SHIFTS = {"inversion": "inversion", "rot90": "rot90", "flip": "flip", "gain": "gain:0.4,60", "none": "none"}
# name, uid, QEMU board (None: simulated), sensor shift
BOARDS = [
    ("sim-1", "51a00000000000a1", None, "gain"),
    ("sim-2", "51a00000000000a2", None, "none"),
    ("sim-3", "51a00000000000a3", None, "inversion"),
    ("sim-4", "51a00000000000a4", None, "rot90"),
    ("m33-1", "03300000000000b1", "mps2_an505", "inversion"),
    ("m4-1", "04000000000000b2", "mps2_an386", "rot90"),
    ("m3-1", "03000000000000b3", "lm3s6965evb", "flip"),
]
PRETRAIN, TRAIN, HELDOUT, TEST = 20000, 600, 200, 1000
MUST_LEARN = ("inversion", "rot90", "flip")
FINAL = ("SUCCEEDED", "FAILED", "CANCELLED")


class Terminal:
    """One live line on a terminal, plain lines in a log."""

    def __init__(self):
        self.live = sys.stdout.isatty()
        self.shown, self.last = False, 0.0

    def line(self, text=""):
        if self.shown:
            print("\r\033[K", end="")
            self.shown = False
        print(text, flush=True)

    def progress(self, text):
        if self.live:
            width = os.get_terminal_size().columns - 1
            print("\r\033[K" + text[:width], end="", flush=True)
            self.shown = True
        elif time.monotonic() - self.last > 10:
            self.last = time.monotonic()
            print("  " + text, flush=True)


def bar(part, width=24):
    full = round(part * width)
    return "[" + "#" * full + "." * (width - full) + "]"


def percent(accuracy):
    return f"{100 * accuracy['correct'] / accuracy['total']:.1f} %" if accuracy and accuracy.get("total") else "-"


def fraction(accuracy):
    return accuracy["correct"] / accuracy["total"] if accuracy and accuracy.get("total") else 0.0


class Demo:
    def __init__(self, args):
        self.args = args
        self.term = Terminal()
        self.fleet = Processes(args.bin, args.state)
        self.uids = {}  # board name -> uid
        self.firmware = None
        self.start_time = time.monotonic()

    # -- start

    def start(self):
        if self.fleet.data.exists() and self.args.once:
            subprocess.run(["rm", "-rf", str(self.fleet.data)], check=True)
        web = pathlib.Path(__file__).resolve().parents[1] / "web" / "dist"
        self.fleet.start_odtd(http_port=self.args.port or self.default_port(), web=web)
        for name, uid, qemu, _ in BOARDS:
            if qemu is None:
                self.fleet.sim_board(name, uid)
        http = self.fleet.address_of("http")
        self.term.line(f"dashboard: http://{http}/")
        if self.args.ssh_host:
            port = http.rsplit(":", 1)[1]
            self.term.line(f"  from your own machine: ssh -L {port}:{http} {os.environ.get('USER', 'root')}@{self.args.ssh_host}")
        self.firmware = subprocess.Popen(
            ["ninja", "-C", self.args.build, "-j", str(self.args.jobs), "firmware_images"],
            stdin=subprocess.DEVNULL, stdout=open(self.fleet.state / "firmware.log", "wb"), stderr=subprocess.STDOUT)
        self.wait_online([b for b in BOARDS if b[2] is None])

    @staticmethod
    def default_port():
        import socket
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", 8420))
                return 8420
            except OSError:
                return free_port()

    def wait_online(self, boards):
        wanted = {uid: name for name, uid, _, _ in boards}

        def online():
            rows = {b["uid"]: b for b in self.fleet.ctl("board", "list")}
            return all(rows.get(uid, {}).get("status") == "ONLINE" for uid in wanted)

        self.fleet.wait_for("boards online: " + ", ".join(wanted.values()), online, 30)
        for uid, name in wanted.items():
            self.uids[name] = uid
            if self.fleet.ctl("board", "show", uid)["name"] != name:
                self.fleet.ctl("board", "rename", uid, name)

    def start_qemu(self):
        code = self.firmware.poll()
        while code is None:
            self.term.progress("building the firmware of the QEMU boards")
            time.sleep(0.3)
            code = self.firmware.poll()
        if code != 0:
            raise RuntimeError(f"the firmware build failed; see {self.fleet.state}/firmware.log")
        boards = [b for b in BOARDS if b[2] is not None]
        for name, uid, qemu, _ in boards:
            self.fleet.qemu_board(name, qemu, uid, keep=True)
        self.wait_online(boards)
        self.term.line(f"boards online: {len(BOARDS)}, of them under QEMU: " +
                       ", ".join(f"{n} ({q})" for n, _, q, _ in boards))

    # -- data and model

    def import_data(self, name, shift, train, heldout, test, skip):
        if any(d["name"] == name for d in self.fleet.ctl("data", "list")):
            return
        self.fleet.ctl("data", "import", DATA / "train-images-idx3-ubyte.gz", "--name", name, "--resize", "14x14",
                       "--labels", DATA / "train-labels-idx1-ubyte.gz", "--test-data", DATA / "t10k-images-idx3-ubyte.gz",
                       "--test-labels", DATA / "t10k-labels-idx1-ubyte.gz",
                       "--transform", SHIFTS[shift], "--train", train, "--heldout", heldout, "--test", test,
                       "--skip", skip, "--seed", 1, timeout=300)

    def prepare(self):
        self.term.progress("importing Fashion-MNIST")
        self.import_data("fmnist", "none", PRETRAIN, 500, 2000, 0)
        if not any(m["name"] == "fmnist" for m in self.fleet.ctl("model", "list")):
            self.term.progress("training 196-32-10 on the PC")
            self.fleet.ctl("pc-train", "--data", "fmnist", "--hidden", 32, "--epochs", 20, "--seed", 1,
                           "--name", "fmnist", timeout=600)
        model = next(m for m in self.fleet.ctl("model", "list") if m["name"] == "fmnist")
        self.term.line(f"model fmnist: 196-32-10, int8, {percent(model['source_accuracy'])} on unshifted test images")
        for shift in SHIFTS:
            self.term.progress(f"shifting the sensor: {shift}")
            self.import_data(f"fmnist-{shift}", shift, TRAIN, HELDOUT, TEST, PRETRAIN + 500)

    # -- runs

    def adapt(self, boards, epochs=10, extra=()):
        """Starts a run on each board; returns {board name: run} when all have ended."""
        runs = {}
        for name, _, _, shift in boards:
            runs[name] = self.fleet.ctl("train", "--board", name, "--model", "fmnist", "--data", f"fmnist-{shift}",
                                        "--epochs", epochs, "--evaluate", "--detach", *extra)["id"]
        ended = {}
        while len(ended) < len(runs):
            part, parts = 0.0, []
            for name, run_id in runs.items():
                run = ended.get(name) or self.fleet.ctl("run", "show", run_id)
                if run["state"] in FINAL:
                    ended[name] = run
                part += 1 if run["state"] in FINAL else run["steps_done"] / max(run["steps_total"], 1)
                parts.append(f"{name} {run['epochs_done']}" if run["state"] not in FINAL else f"{name} done")
            part /= len(runs)
            self.term.progress(f"adapting {bar(part)} {100 * part:.0f} %  epochs: " + "  ".join(parts))
            time.sleep(0.4)
        for name, run in ended.items():
            if run["state"] != "SUCCEEDED":
                self.term.line(f"{name}: run {run['id'][:8]} {run['state']}: {run['reason']['text']} {run['reason']['remedy']}")
        return ended

    def replay(self, runs):
        equal = {}
        for name, run in runs.items():
            self.term.progress(f"replaying {name}'s run on the host")
            if run["state"] == "SUCCEEDED":
                try:
                    self.fleet.ctl("run", "replay", run["id"], timeout=300)
                except CtlError as error:
                    self.term.line(str(error))
                equal[name] = self.fleet.ctl("run", "show", run["id"])["replay"] == "EQUAL"
        return equal

    def table(self, runs, equal):
        cores = {b["name"]: b["core"] for b in self.fleet.ctl("board", "list")}
        rows = []
        for name, _, _, shift in BOARDS:
            run = runs[name]
            rows.append({
                "board": name, "core": cores[name], "shift": shift, "state": run["state"],
                "before": fraction(run["before"]), "after": fraction(run["after"]),
                "before_correct": run["before"]["correct"], "after_correct": run["after"]["correct"],
                "total": run["after"]["total"], "samples": run["train_samples"],
                "weights_hash": run["final_weights_hash"], "replay_equal": equal.get(name, False),
            })
        self.term.line()
        self.term.line(f"{'board':8}{'core':13}{'sensor':12}{'before':>8}{'after':>8}{'images':>8}{'samples':>9}  weights       replay")
        for row in rows:
            self.term.line(f"{row['board']:8}{row['core']:13}{row['shift']:12}{100 * row['before']:7.1f}%{100 * row['after']:7.1f}%"
                           f"{row['total']:8}{row['samples']:9}  {row['weights_hash'][:12]}  "
                           f"{'equal' if row['replay_equal'] else 'DIFFERENT'}")
        self.term.line()
        return rows

    @staticmethod
    def faults(rows):
        found = []
        for row in rows:
            gain = 100 * (row["after"] - row["before"])
            if row["state"] != "SUCCEEDED":
                found.append(f"{row['board']}: the run ended as {row['state']}")
                continue
            if row["total"] < 1000:
                found.append(f"{row['board']}: evaluated on {row['total']} images only")
            if row["shift"] in MUST_LEARN and (gain < 10 or row["after"] < 0.65):
                found.append(f"{row['board']} ({row['shift']}): {gain:+.1f} points to {100 * row['after']:.1f} %; "
                             "expected at least +10 and 65 %")
            if gain < -0.5:
                found.append(f"{row['board']}: {gain:+.1f} points, worse than its start")
            if not row["replay_equal"]:
                found.append(f"{row['board']}: the host's replay ends in another training state")
        return found

    # -- the loop that keeps the dashboard live

    def drift(self):
        rng = random.Random(1)
        self.term.line("next:")
        self.term.line(f"  {self.args.bin}/odtctl --address unix:{self.fleet.socket_path} board list")
        self.term.line(f"  {self.args.bin}/odtctl --address unix:{self.fleet.socket_path} train --board sim-1 --model fmnist --data fmnist-flip --epochs 5")
        self.term.line("  deploy/demo.sh --stop")
        while True:
            name, uid, qemu, _ = BOARDS[rng.randrange(len(BOARDS))]
            shift = rng.choice(list(SHIFTS))
            try:
                run = self.adapt([(name, uid, qemu, shift)], epochs=8)[name]
                self.term.progress(f"drift: {name} sensor {shift}: {percent(run['before'])} -> {percent(run['after'])}; next in 15 s")
            except CtlError as error:
                self.term.progress(f"drift: {error}")
            time.sleep(15)

    def run(self):
        self.start()
        self.prepare()
        self.start_qemu()
        began = time.monotonic()
        runs = self.adapt(BOARDS)
        equal = self.replay(runs)
        rows = self.table(runs, equal)
        self.term.line(f"{len(rows)} runs in {time.monotonic() - began:.0f} s; since odtd's start {time.monotonic() - self.start_time:.0f} s")
        if self.args.json:
            target = pathlib.Path(self.args.json)
            part = target.with_name(target.name + ".part")
            boards = [{k: v for k, v in row.items() if k not in ("shift", "state")} for row in rows]
            part.write_text(json.dumps({"boards": boards}, indent=1) + "\n")
            part.replace(target)
        found = self.faults(rows)
        for fault in found:
            self.term.line("FAULT " + fault)
        if self.args.once:
            return 1 if found else 0
        self.drift()
        return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bin", "build", "state"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--port", type=int)
    parser.add_argument("--ssh-host")
    args = parser.parse_args()

    state = pathlib.Path(args.state)
    state.mkdir(parents=True, exist_ok=True)
    lock = open(state / "pid", "a+")
    fcntl.flock(lock, fcntl.LOCK_EX)
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()

    demo = Demo(args)

    def ended(signum, _frame):
        raise SystemExit(128 + signum)

    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, ended)
    try:
        return demo.run()
    except (RuntimeError, TimeoutError, KeyError, OSError) as error:
        demo.term.line(f"error: {error}")
        demo.term.line(f"  logs: {state}/*.log")
        return 1
    finally:
        if demo.firmware and demo.firmware.poll() is None:
            demo.firmware.terminate()
        demo.fleet.stop()
        demo.term.line("stopped: odtd and all boards")
        lock.truncate(0)


if __name__ == "__main__":
    sys.exit(main())
