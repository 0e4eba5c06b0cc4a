"""One odtd with boards in a folder of its own, and the small model and data sets that the system tests train."""
import gzip
import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "deploy"))
from odt_processes import CtlError, Processes, free_port  # noqa: E402,F401

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
# Of it the system tests take the first images, which are read in an eighth of the time.
IMAGES = 8000
FULL = os.environ.get("ODT_FULL") == "1"  # tests/run.sh --full
FINAL = ("SUCCEEDED", "FAILED", "CANCELLED")
# Settings that do not depend on what a board has room for, so that every board can run them.
FIXED = ("--policy", "fixed", "--k", 15, "--rounding", "half-up", "--loss", "ce", "--mu-weight", "1,-1,-3",
         "--mu-offset", "-3", "--batch", 8, "--seed", 7)


class World(Processes):
    def __init__(self, bin_dir):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="odt-system-"))
        super().__init__(bin_dir, self.root)
        self.listen_port = free_port()

    def __enter__(self):
        self.start_odtd(listen_port=self.listen_port)
        return self

    def __exit__(self, kind, *_):
        self.stop()
        if kind is None:
            shutil.rmtree(self.root, ignore_errors=True)

    def restart_odtd(self):
        self.start_odtd(listen_port=self.listen_port)

    def board(self, name_or_uid):
        return self.ctl("board", "show", name_or_uid)

    def online(self, *names):
        rows = {b["name"]: b for b in self.ctl("board", "list")}
        rows.update({b["uid"]: b for b in rows.values()})
        return all(rows.get(n, {}).get("status") == "ONLINE" for n in names)

    def add_sim(self, name, uid, *extra):
        self.sim_board(name, uid, [str(e) for e in extra])
        self.name_board(name, uid)

    def add_qemu(self, name, board, uid, where=None):
        self.qemu_board(name, board, uid, where)
        self.name_board(name, uid)

    def name_board(self, name, uid):
        self.wait_for(f"{name} online", lambda: self.online(uid), 20)
        if self.board(uid)["name"] != name:
            self.ctl("board", "rename", uid, name)

    def fmnist(self, what, head, each):
        """A file of the first IMAGES of "images-idx3" or "labels-idx1": `head` bytes, then `each` bytes a sample."""
        file = self.root / f"train-{what}-ubyte"
        if not file.exists():
            with gzip.open(DATA / f"train-{what}-ubyte.gz") as whole:
                start = whole.read(head)
                file.write_bytes(start[:4] + IMAGES.to_bytes(4, "big") + start[8:] + whole.read(IMAGES * each))
        return file

    def import_fmnist(self, name, transform, train, heldout, test, skip=0):
        return self.ctl("data", "import", self.fmnist("images-idx3", 16, 784), "--name", name, "--resize", "14x14",
                        "--labels", self.fmnist("labels-idx1", 8, 1),
                        "--transform", transform, "--train", train, "--heldout", heldout, "--test", test,
                        "--skip", skip, "--seed", 1, timeout=300)

    def prepare(self, train=400, heldout=100, test=300):
        """Model "small" (196-16-10) and data "shifted" (rotated by 90 degrees)."""
        self.import_fmnist("source", "none", 3000, 200, 500)
        self.ctl("pc-train", "--data", "source", "--hidden", 16, "--epochs", 4, "--seed", 1, "--name", "small", timeout=300)
        self.import_fmnist("shifted", "rot90", train, heldout, test, skip=4000)

    def train(self, board, *extra, epochs=3):
        return self.ctl("train", "--board", board, "--model", "small", "--data", "shifted", "--epochs", epochs, *FIXED,
                        "--detach", *extra)["id"]

    def run(self, run_id):
        return self.ctl("run", "show", run_id)

    def wait_run(self, run_id, timeout=120, want="SUCCEEDED"):
        run = self.wait_for(f"end of run {run_id[:8]}",
                            lambda: (lambda r: r if r["state"] in FINAL else None)(self.run(run_id)), timeout)
        if run["state"] != want:
            raise AssertionError(f"run {run_id[:8]} is {run['state']}, expected {want}: {run['reason']}")
        return run

    def wait_steps(self, run_id, steps, timeout=60):
        return self.wait_for(f"{steps} steps of run {run_id[:8]}", lambda: self.run(run_id)["steps_done"] >= steps,
                             timeout, every=0.1)


def refused(world, *args, code=None, says=()):
    """The call must fail with one clear error: exit code, one line that holds every text of `says`."""
    done = world.ctl_raw(*args)
    text = (done.stderr or done.stdout).strip()
    assert done.returncode != 0, f"odtctl {' '.join(map(str, args))} succeeded: {done.stdout}"
    if code is not None:
        assert done.returncode == code, f"exit {done.returncode}, expected {code}: {text}"
    for part in says:
        assert part.lower() in text.lower(), f"'{part}' is not in the error: {text}"
    assert len(text.splitlines()) <= 4, f"more than one clear error: {text}"
    return text


def now():
    return time.monotonic()
