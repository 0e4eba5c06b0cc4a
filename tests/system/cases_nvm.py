"""Non-volatile memory of boards: runs go on at the step committed, boards infer alone, nothing changes the bits."""
import os
import signal
import socket
import threading

import board_client as bc
from world import World, free_port, now, refused

pb = bc.pb
UID = {"resident": "5200000000000001", "streamed": "5200000000000002", "m33": "5200000000000003"}
STEPS = 50  # an epoch's: 400 samples, batches of 8


def reference(world):
    world.add_sim("ref", "5200000000000009")
    return world.wait_run(world.train("ref"))["final_state_hash"]


def sim_with_nvm(world, name, *extra):
    world.add_sim(name, UID[name], "--nvm", world.state / f"{name}.nvm", *extra)


def committed_in_mid_epoch(world, run, beyond=60):
    """Waits for a commit in the middle of an epoch, of which the store knows; its step."""
    return world.wait_for("a commit in mid-epoch",
                          lambda: (lambda s: s if s > beyond and s % STEPS else 0)(world.run(run)["nvm_step"]),
                          120, every=0.05)


def went_on_from(world, run, attempt=2):
    """Step that the attempt began at."""
    texts = [e["cause"] for e in world.ctl("run", "events", run) if f"attempt {attempt} from step" in e["cause"]]
    assert texts, world.ctl("run", "events", run)
    return int(texts[0].split("from step ")[1])


def each_epoch_once_an_attempt(epochs):
    """All are there; where the board went on from before an epoch's end, a second time with the same result."""
    assert sorted({e["epoch"] for e in epochs}) == [0, 1, 2], epochs
    assert len({(e["attempt"], e["epoch"]) for e in epochs}) == len(epochs), epochs
    assert len({(e["epoch"], e["state_hash"]) for e in epochs}) == 3, epochs


def power_cycled(world, run, restart, name):
    """Kills the board behind a commit; the run goes on in the middle of an epoch."""
    committed_in_mid_epoch(world, run)
    world.end(name, signal.SIGKILL)
    known = world.run(run)["nvm_step"]
    world.wait_for("noticed", lambda: world.run(run)["state"] == "WAITING_BOARD", 60, every=0.1)
    restart()
    ended = world.wait_run(run)
    step = went_on_from(world, run)
    assert step >= known and step % 7 == 0 and step % STEPS, (step, known)
    assert ended["attempt"] == 2, ended
    return ended


def test_nvm_power_cycle_goes_on_in_mid_epoch(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        expected = reference(world)
        for name, extra in (("resident", ()), ("streamed", ("--streamed",))):
            sim_with_nvm(world, name, "--step-delay-ms", 40)
            run = world.train(name, "--commit-every", 7, *extra)
            again = ["--nvm", str(world.state / f"{name}.nvm")]
            ended = power_cycled(world, run, lambda: world.sim_board(name, UID[name], again), name)
            assert ended["final_state_hash"] == expected, ended
            nvm = world.ctl("board", "nvm", name)
            assert nvm["kind"] == "STATE" and nvm["step"] == 3 * STEPS and nvm["has_image"], nvm
            assert nvm["hash"] == expected, nvm


def test_nvm_board_reset_goes_on_in_mid_epoch(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        expected = reference(world)
        sim_with_nvm(world, "resident", "--step-delay-ms", 40)
        run = world.train("resident", "--commit-every", 7)
        committed_in_mid_epoch(world, run)
        world.ctl("board", "reset", "resident")
        ended = world.wait_run(run)
        assert ended["attempt"] == 2 and ended["final_state_hash"] == expected, ended
        assert went_on_from(world, run) % STEPS, "in mid-epoch"


def test_nvm_all_processes_killed(bin_dir):
    """odtd and boards, kill -9: all come back, each board with its memory."""
    with World(bin_dir) as world:
        world.prepare()
        expected = reference(world)
        runs = {}
        for name, extra in (("resident", ()), ("streamed", ("--streamed",))):
            sim_with_nvm(world, name, "--step-delay-ms", 60)
            runs[name] = world.train(name, "--commit-every", 7, *extra)
        for run in runs.values():
            committed_in_mid_epoch(world, run)
        world.end("odtd", signal.SIGKILL)
        for name in runs:
            world.end(name, signal.SIGKILL)
        world.restart_odtd()
        for name in runs:
            world.sim_board(name, UID[name], ["--nvm", str(world.state / f"{name}.nvm")])
        for name, run in runs.items():
            ended = world.wait_run(run)
            assert ended["final_state_hash"] == expected, ended
            each_epoch_once_an_attempt(world.ctl("run", "epochs", run))


def test_nvm_qemu_power_cycle(bin_dir):
    """A Cortex-M33 with two EEPROMs: power cycle in mid-epoch, then the trained model stands alone."""
    with World(bin_dir) as world:
        world.prepare()
        expected = reference(world)
        memory = world.state / "ee.bin"
        memory.write_bytes(b"\xff" * 131072)
        options = ["--nvm", str(memory)]
        world.qemu_board("m33", "mps2_an505", UID["m33"], extra=options)
        world.name_board("m33", UID["m33"])
        run = world.train("m33", "--commit-every", 14)  # a commit takes longer than its steps
        ended = power_cycled(world, run, lambda: world.qemu_board("m33", "mps2_an505", UID["m33"], extra=options), "m33")
        assert ended["final_state_hash"] == expected, ended
        world.wait_for("the end is committed", lambda: world.ctl("board", "nvm", "m33")["step"] == 3 * STEPS, 30)
        world.end("m33", signal.SIGKILL)
        world.end("odtd")
        port = free_port()
        world.qemu_board("m33", "mps2_an505", UID["m33"], where=f"127.0.0.1:{port}", extra=options)
        stands_alone(port, ended["final_weights_hash"])


def stands_alone(port, weights_hash):
    """A client that pushes a sample and nothing else."""
    link = bc.Board.dial(port, timeout=20.0)
    ack = link.hello()
    assert ack.restored and ack.uid.hex() in UID.values()
    sample = bytes(range(196))
    link.push(pb.RESOURCE_INFER_INPUT, sample)
    first = link.request(infer=pb.Infer()).infer
    assert len(first.logits) == 10
    blob = bc.make_samples([first.predicted] * 4, [sample] * 4, 1)
    result = link.evaluate_streamed(77, None, blob)
    assert (result.correct, result.total) == (4, 4), "it evaluates to what it infers"
    assert bc.hashlib.sha256(link.pull(pb.RESOURCE_WEIGHTS)).hexdigest() == weights_hash
    link.close()


def test_nvm_commit_on_request(bin_dir):
    """odtctl board commit, nvm, erase; the board comes back with the weights, odtd sends nothing."""
    with World(bin_dir) as world:
        world.prepare()
        reference(world)
        refused(world, "board", "commit", "ref", says=["no non-volatile memory"])
        refused(world, "train", "--board", "ref", "--model", "small", "--data", "shifted", "--commit-every", 5,
                says=["non-volatile memory"])
        sim_with_nvm(world, "resident", "--nvm-page-us", 500)
        refused(world, "board", "commit", "resident", says=["nothing to commit"])
        run = world.wait_run(world.train("resident"))
        assert world.ctl("board", "nvm", "resident")["kind"] == "UNSPECIFIED", "on request only"
        done = world.ctl("board", "commit", "resident")
        assert done["kind"] == "STATE" and done["hash"] == run["final_state_hash"], done
        assert world.ctl("board", "commit", "resident")["sequence"] == done["sequence"], "the same again: no wear"
        world.wait_for("shown", lambda: world.board("resident")["nvm_step"] == 3 * STEPS, 5)
        again = ["--nvm", str(world.state / "resident.nvm")]
        world.end("resident", signal.SIGKILL)
        world.wait_for("noticed", lambda: world.board("resident")["status"] == "OFFLINE", 60, every=0.1)
        world.sim_board("resident", UID["resident"], again)
        world.wait_for("restored", lambda: world.online("resident") and world.board("resident")["restored"], 10)
        assert world.ctl("weights", "pull", "resident")["hash"] == run["final_weights_hash"]
        assert world.ctl("board", "erase", "resident")["sequence"] == 0
        world.end("resident", signal.SIGKILL)
        world.wait_for("noticed", lambda: world.board("resident")["status"] == "OFFLINE", 60, every=0.1)
        world.sim_board("resident", UID["resident"], again)
        world.wait_for("empty", lambda: world.online("resident") and not world.board("resident")["restored"], 10)


def test_nvm_too_small_says_what_fits(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        sim_with_nvm(world, "resident", "--nvm-bytes", 8192)
        run = world.wait_run(world.train("resident", "--commit-every", 5), want="FAILED")
        assert "two slots" in str(run["reason"]) and "3968" in str(run["reason"]), run["reason"]
        world.wait_run(world.train("resident"))
        refused(world, "board", "commit", "resident", says=["two slots", "3968"])


class Cable(threading.Thread):
    """Between a board and odtd; cut() drops what goes through, for a while."""

    def __init__(self, target):
        super().__init__(daemon=True)
        host, port = target.rsplit(":", 1)
        self.target = (host, int(port))
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.plugged = threading.Event()
        self.plugged.set()
        self.pairs = []
        self.start()

    def run(self):
        while True:
            try:
                board, _ = self.server.accept()
                if not self.plugged.is_set():
                    board.close()
                    continue
                host = socket.create_connection(self.target)
            except OSError:
                return
            self.pairs.append((board, host))
            for a, b in ((board, host), (host, board)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    @staticmethod
    def pump(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for end in (a, b):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.plugged.clear()
        for pair in self.pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs = []


def test_cable_loss_keeps_the_run(bin_dir):
    """1 s (with ODT_FULL: 1 min too): the board keeps its run; nothing is pushed again, the same final state."""
    with World(bin_dir) as world:
        world.prepare()
        expected = reference(world)
        cable = Cable(world.address_of("listen"))
        for name in ("resident", "streamed"):
            world.start(name, [str(world.bin / "odt-sim-board"), "--uid", UID[name], "--step-delay-ms", "40",
                               "--connect", f"127.0.0.1:{cable.port}"])
            world.name_board(name, UID[name])
        seconds = [1, 60] if os.environ.get("ODT_FULL") == "1" else [1]
        runs = [world.train("resident", epochs=3), world.train("streamed", "--streamed", epochs=3)]
        for i, gone in enumerate(seconds):
            for run in runs:
                world.wait_steps(run, 20 + 20 * i)
            cable.cut()
            until = now() + gone
            world.wait_for("the time without cable", lambda: now() > until, gone + 5, every=0.1)
            cable.plugged.set()
        for run in runs:
            ended = world.wait_run(run)
            assert ended["attempt"] == 1 and ended["final_state_hash"] == expected, ended
