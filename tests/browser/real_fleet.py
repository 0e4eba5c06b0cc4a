"""A real odtd with sim boards, data, a model and runs of each kind, for the browser tests that look at every view."""
import pathlib
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
BOARDS = [("lab-1", "51a00000000000d1", 0), ("lab-2", "51a00000000000d2", 0), ("field-1", "51a00000000000d3", 4),
          ("field-2", "51a00000000000d4", 4)]
SPLITS = ("--train", 400, "--heldout", 100, "--test", 200)


def _import(fleet, name, transform, *more):
    fleet.ctl("data", "import", DATA, "--name", name, "--resize", "14x14", "--transform", transform, *more,
              "--seed", 1, timeout=120)


def _train(fleet, name, board, *more):
    return fleet.ctl("train", "--board", board, "--model", "fmnist", "--data", "fmnist-inversion", "--name", name,
                     "--evaluate", "--detach", *more)


def start(fleet):
    """Boards, a model, two datasets; finished runs (auto, fixed k, adaptive precision), one that fails, one going on."""
    fleet.start_odtd(web=ROOT / "web" / "dist")
    for name, uid, delay in BOARDS:
        fleet.sim_board(name, uid, ["--step-delay-ms", delay] if delay else [])

    def online():
        states = {b["uid"]: b["status"] for b in fleet.ctl("board", "list")}
        return all(states.get(uid) == "ONLINE" for _, uid, _ in BOARDS)

    fleet.wait_for("boards online", online, 20)
    for name, uid, _ in BOARDS:
        fleet.ctl("board", "rename", uid, name)
        fleet.ctl("board", "label", name, f"site={name.split('-')[0]}")
    _import(fleet, "fmnist", "none", "--train", 2000, "--heldout", 200, "--test", 300)
    fleet.ctl("pc-train", "--data", "fmnist", "--hidden", 32, "--epochs", 3, "--seed", 1, "--name", "fmnist",
              timeout=120)
    _import(fleet, "fmnist-inversion", "inversion", *SPLITS, "--skip", 3000)
    _train(fleet, "auto", "lab-1", "--epochs", 4)
    _train(fleet, "fixed8", "lab-1", "--epochs", 4, "--k", 8, "--policy", "fixed", "--mu-weight", 1)
    _train(fleet, "apt", "lab-2", "--epochs", 6, "--apt", "--policy", "fixed", "--mu-weight", 1)
    _train(fleet, "apt-high", "lab-2", "--epochs", 6, "--apt", "--apt-t-min", 1, "--policy", "fixed", "--mu-weight", 1)
    _train(fleet, "long", "field-1", "--epochs", 4000)

    def over():
        states = {r["spec"]["name"]: r["state"] for r in fleet.ctl("run", "list")}
        return all(states.get(n) == "SUCCEEDED" for n in ("auto", "fixed8", "apt", "apt-high"))

    fleet.wait_for("runs over", over, 60)


def main():
    """Keeps that fleet up to look at: real_fleet.py BIN STATE [seconds]; prints where it is."""
    import sys
    sys.path.insert(0, str(ROOT / "deploy"))
    from odt_processes import Processes
    fleet = Processes(sys.argv[1], sys.argv[2])
    try:
        started = time.monotonic()
        start(fleet)
        print(f"http://{fleet.address_of('http')} socket {fleet.socket_path} after {time.monotonic() - started:.1f} s",
              flush=True)
        time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 1e6)
    finally:
        fleet.stop()


if __name__ == "__main__":
    main()
