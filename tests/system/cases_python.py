"""The Python package odtfleet as its wheel: pip from odtd, the examples, every helper, lost lines, restarts."""
import pathlib
import signal
import socket
import subprocess
import sys
import threading

from world import FIXED, World

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "daemon" / "python" / "examples"
SETTINGS = dict(policy="fixed", k=15, rounding="half-up", loss="ce", mu_weight=(1, -1, -3), mu_offset=-3, batch=8, seed=7)
assert FIXED[FIXED.index("--mu-weight") + 1] == "1,-1,-3"


def wheel(bin_dir):
    found = sorted((bin_dir.parent / "python").glob("odtfleet-*.whl"))
    assert found, f"no wheel in {bin_dir.parent / 'python'}: ninja -C build python_wheel (needs python3-setuptools, python3-wheel)"
    return found[-1]


def package(bin_dir):
    """The module, out of the wheel."""
    sys.path.insert(0, str(wheel(bin_dir)))
    import odtfleet
    return odtfleet


def script(world, path, *args, code=0, timeout=120):
    """Runs a user's script with the wheel; returns what it printed."""
    done = subprocess.run([sys.executable, str(path), *map(str, args)], env={"PYTHONPATH": str(wheel(world.bin)), "PATH": "/usr/bin"},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == code, (path, done.returncode, done.stdout, done.stderr)
    return done.stdout


def blobs(count, seed, mirrored=False):
    """Four classes of 24 values, which a small network tells apart."""
    import numpy
    rng = numpy.random.default_rng(seed)
    centres = numpy.random.default_rng(0).normal(0, 60, (4, 24))
    y = rng.integers(0, 4, count)
    x = (-centres if mirrored else centres)[y] + rng.normal(0, 40, (count, 24))
    return numpy.clip(x, -127, 127).astype("int8"), y


def prepare(fleet):
    """Model "blobs" and data "shifted" from arrays."""
    fleet.add_dataset("plain", *blobs(900, 1), train=600, heldout=100, test=200, seed=1)
    fleet.add_dataset("shifted", *blobs(900, 2, mirrored=True), train=600, heldout=100, test=200, seed=1)
    return fleet.train_on_pc("plain", "blobs", hidden=[12], epochs=3)


def refused(odtfleet, kind, call, *says):
    try:
        call()
    except odtfleet.FleetError as error:
        assert type(error).__name__ == kind, f"{type(error).__name__} instead of {kind}: {error}"
        for part in says:
            assert part in str(error), f"'{part}' is not in: {error}"
        assert "\n" not in str(error), error
        return error
    raise AssertionError(f"no {kind}")


def test_python_unit(bin_dir):
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "python" / "test_odtfleet.py")], capture_output=True, text=True,
                          env={"PYTHONPATH": str(wheel(bin_dir)), "PATH": "/usr/bin"}, timeout=120)
    assert done.returncode == 0, done.stderr


def test_python_examples(bin_dir):
    with World(bin_dir) as world:
        for i in range(3):
            world.add_sim(f"p{i}", f"66000000000000{i:02x}")
        where = ("--address", world.address_of("grpc"))
        said = script(world, EXAMPLES / "train_one.py", *where, "--board", "p0")
        assert "epoch 4: train " in said and "in 8 buckets" in said, said
        before, after = (float(v.rstrip("%;")) for v in said.split("p0: ")[2].split()[0:3:2])
        assert after > 90 > before, said
        said = script(world, EXAMPLES / "sweep.py", *where, "--cohort", "name!=p2")
        assert said.count("can take part") == 2 and "rung 1" in said and "on 2 of 2 boards" in said, said
        said = script(world, EXAMPLES / "federated.py", *where)
        assert "round 2: 3 of 3 boards, 2400 samples" in said and said.count("with its own epoch") == 3, said
        said = script(world, EXAMPLES / "export.py", "p0", world.root / "out", *where)
        assert "layer0.weight: int16 (32, 16)" in said, said
        assert sorted(p.suffix for p in (world.root / "out").iterdir()) == [".h", ".json", ".npz", ".onnx"]
        assert "no board 'p9'" in subprocess.run(
            [sys.executable, str(EXAMPLES / "export.py"), "p9", str(world.root / "out"), *where], capture_output=True, text=True,
            env={"PYTHONPATH": str(wheel(bin_dir)), "PATH": "/usr/bin"}).stderr


def test_python_boards_and_runs(bin_dir):
    import numpy
    odtfleet = package(bin_dir)
    with World(bin_dir) as world, odtfleet.Fleet(f"unix:{world.socket_path}") as fleet:
        for name, uid, *slow in (("left", "5100000000000001"), ("right", "5100000000000002"),
                                 ("spare", "5200000000000003", "--step-delay-ms", 20)):
            world.add_sim(name, uid, *slow)
        fleet.board("left").label(site="lab")
        fleet.board("5100000000000002").label(site="lab", broken="yes")
        names = lambda *a, **k: sorted(b.name for b in fleet.boards(*a, **k))  # noqa: E731
        assert names("site=lab,!broken") == ["left"] and names("site!=lab") == ["spare"]
        assert names("site=lab", include=["spare"], exclude=["left"]) == ["right", "spare"]
        assert names(include=["spare"]) == ["spare"] and len(names()) == 3
        model = prepare(fleet)
        data = fleet.dataset("shifted")
        assert data.counts == {"train": 600, "heldout": 100, "test": 200} and data.shape == (24,) and model.classes == 4
        # The client's label queries are those of odtd.
        for query in ("site=lab", "site!=lab", "broken", "!broken", "site=lab,!broken", "name=left", "status=ONLINE,type=sim"):
            checks = fleet.same_run(query, model, data, epochs=1, dry_run=True, **SETTINGS)
            assert sorted(c.board for c in checks) == sorted(b.uid for b in fleet.boards(query)), query
        estimate = fleet.estimate("left", model, data, epochs=3, **SETTINGS)
        assert estimate.steps == 225 and 0 < estimate.ram_bytes < estimate.board_ram_bytes and fleet.runs() == []
        told = []
        run = fleet.train("left", model, data, epochs=3, evaluate=True, name="first", **SETTINGS).wait(120, on_epoch=told.append)
        assert [e.epoch for e in told] == [0, 1, 2] == [e.epoch for e in run.epochs()]
        assert run.after > 0.9 > run.before and run.heldout_best == told[-1].heldout or run.heldout_best >= told[-1].heldout
        assert run.seconds > 0 and run.eta is None and run.created.year >= 2024
        again = []
        assert fleet.run("first").wait(10, on_epoch=again.append) == run and [e.epoch for e in again] == [0, 1, 2]
        frames = run.telemetry()
        assert isinstance(frames.loss, numpy.ndarray) and frames.bits.shape == frames.shift.shape == (225, 2)
        assert list(frames.step) == list(range(225)) and frames.total == 225 and set(frames.k.ravel()) == {15}
        curve = run.series("loss", "correct", buckets=9)
        assert curve["correct", 0].count.sum() == 225 and abs(
            (curve["loss", 0].mean * curve["loss", 0].count).sum() / 225 - frames.loss.mean()) < 0.01
        assert (curve["correct", 0].mean * curve["correct", 0].count).sum() == frames.correct.sum()
        assert run.telemetry(first_step=10, last_step=19).step.tolist() == list(range(10, 20))
        run.export(world.root / "t.csv")
        assert (world.root / "t.csv").read_text().count("\n") >= 226
        assert run.replay() and fleet.runs("name=first")[0].pb.replay == odtfleet.api.Run.REPLAY_VERDICT_EQUAL
        slow = fleet.train("spare", model, data, epochs=200, **SETTINGS)
        refused(odtfleet, "DeadlineExceeded", lambda: slow.wait(0.2), "is ", "wait again")
        assert len(fleet.stop_all().runs) == 1 and slow.refresh().state in ("PAUSED", "RUNNING", "PREPARING", "QUEUED")
        slow.cancel()
        refused(odtfleet, "RunFailed", lambda: slow.wait(30), "CANCELLED")
        wrong(odtfleet, fleet, model, data, world)
        assert fleet.backup(world.root / "all.tar").stat().st_size > 100_000


def wrong(odtfleet, fleet, model, data, world):
    """One clear error each, of the class that fits."""
    x, y = blobs(40, 1)
    for kind, call, *says in (
            ("NotFound", lambda: fleet.train("lift", model, data), "no board 'lift'", "left"),
            ("NotFound", lambda: fleet.snapshot("golden"), "no snapshot 'golden'"),
            ("NotFound", lambda: fleet.run("00" * 16)),
            ("InvalidArgument", lambda: fleet.train("left", model, data, batch=60000), "spec.hyper.batch", "4096"),
            ("InvalidArgument", lambda: fleet.train("left", model, data, epocs=1), "epochs"),
            ("InvalidArgument", lambda: fleet.train("left", model), "captured=True"),
            ("InvalidArgument", lambda: fleet.board("510000"), "5100000000000001"),
            ("InvalidArgument", lambda: fleet.board(7), "7 is no name"),
            ("InvalidArgument", lambda: fleet.board(model), "is none"),
            ("FailedPrecondition", lambda: fleet.same_run("site=attic", model, data), "NO_BOARDS"),
            ("FailedPrecondition", lambda: model.delete(), "MODEL_IN_USE"),
            ("InvalidArgument", lambda: fleet.sweep({"colour": ["red"]}, "site=lab", model, data), "colour"),
            ("NotFound", lambda: fleet.rollout("00" * 32, "site=lab"), "no snapshot"),
            ("InvalidArgument", lambda: fleet.rollout(fleet.snapshots()[0], "site=lab", canary=10), "0 to 1"),
            ("InvalidArgument", lambda: fleet.infer("left", [1.0, 2.0]), "24"),
            ("InvalidArgument", lambda: fleet.infer("left"), "one of both"),
            ("InvalidArgument", lambda: fleet.add_dataset("x", x, y[:5]), "5 labels for 40"),
            ("InvalidArgument", lambda: fleet.add_dataset("x", x, y, trian=3), "trian"),
            ("NotFound", lambda: fleet.import_data("x", world.root / "none.csv"), "no such file"),
            ("JobFailed", lambda: fleet.add_model(b"junk", "junk"), "not an ONNX model"),
            ("NotFound", lambda: fleet.blob(b"\1" * 32), "404"),
            ("Unavailable", lambda: odtfleet.Fleet("127.0.0.1:1", timeout=0.5).info(), "no odtd answers")):
        refused(odtfleet, kind, call, *says)


def test_python_weights_and_evaluations(bin_dir):
    import numpy
    odtfleet = package(bin_dir)
    with World(bin_dir) as world, odtfleet.Fleet(world.address_of("grpc")) as fleet:
        world.add_sim("left", "5100000000000001")
        world.add_sim("right", "5100000000000002")
        prepare(fleet)
        run = fleet.train("left", "blobs", "shifted", epochs=2, **SETTINGS).wait(120)
        learned = run.weights()
        assert learned.hash == run.weights_hash == fleet.pull("left", alias="mine").hash
        assert fleet.snapshot("mine") == learned and "mine" in learned.refresh().aliases
        arrays = learned.arrays()
        assert arrays["layer0.weight"].shape == (24, 12) and arrays["layer1.offset"].dtype == numpy.int32
        for end, mark in ((".npz", b"PK"), (".h", b"/*"), (".json", b"{"), (".onnx", b"\x08"), (".odtw", b"ODTW")):
            assert learned.export(world.root / f"w{end}").read_bytes().startswith(mark), end
        refused(odtfleet, "InvalidArgument", lambda: learned.export(world.root / "w.txt"), "tells no format")
        pushed = fleet.push(world.root / "w.odtw", alias="pushed")
        assert pushed == learned
        outcome = learned.restore(boards="type=sim", dry_run=True)
        assert [r.outcome for r in sorted(outcome, key=lambda r: r.board)] == ["HELD_IT", "DONE"], outcome
        assert all(r.ok for r in learned.restore("right")) and fleet.pull("right") == learned
        other = fleet.train("right", "blobs", "shifted", epochs=1, start=learned, guard=False, **{**SETTINGS, "mu_weight": 2}).wait(60)
        diff = learned.diff(other.weights(), channels=True)
        assert diff.all.values == 24 * 12 + 12 + 12 * 4 + 4 and 0 < diff.all.changed and len(diff.layers[0].channels) == 12
        mine, theirs = arrays["layer0.weight"].astype(int), other.weights().arrays()["layer0.weight"].astype(int)
        assert diff.layers[0].weights.linf == abs(mine - theirs).max() and diff.layers[0].weights.l1 == abs(mine - theirs).sum()
        assert other.weights().log()[1] == learned
        told = fleet.evaluate("left", "shifted", samples=True)
        assert told.total == 200 == told.confusion.sum() and told.correct == numpy.trace(told.confusion)
        assert len(told.wrong()) == 200 - told.correct
        assert fleet.evaluate("right", "shifted", learned).correct == told.correct
        answers = fleet.infer("left", data="shifted", count=64)
        assert sum(a.predicted == a.wanted[0] for a in answers) == 64 - sum(w.index < 64 for w in told.wrong())
        by_hand = fleet.infer("left", blobs(1, 2, mirrored=True)[0][0])[0]
        assert by_hand.outputs.shape == (4,) and by_hand.predicted == by_hand.outputs.argmax()
        learned.update(note="from a test", pinned=True)
        refused(odtfleet, "FailedPrecondition", learned.delete, "pinned")


def test_python_campaigns(bin_dir):
    odtfleet = package(bin_dir)
    with World(bin_dir) as world, odtfleet.Fleet(world.address_of("grpc")) as fleet:
        for i in range(3):
            world.add_sim(f"c{i}", f"62000000000000{i:02x}")
        prepare(fleet)
        common = dict(model="blobs", data="shifted", epochs=2, **SETTINGS)
        same = fleet.same_run("type=sim", name="each", **common).wait(120)
        assert len({r.pb.final_state_hash for r in same.runs()}) == 1 and len(same.units()) == 3 and same.progress == 1
        assert fleet.campaign("each") == same and fleet.campaigns()[0] == same
        sweep = fleet.sweep({"mu_weight": [(1, -1, -3), -6], "batch": "8..9"}, "type=sim", **common).wait(120)
        assert len(sweep.units()) == 4 and sweep.best.weights == sweep.result().hash
        assert {tuple(u.settings["mu_weight"]) for u in sweep.units()} == {(1, -1, -3), (-6,)}
        drawn = fleet.sweep({"mu_offset": range(-6, 1)}, "type=sim", strategy="random", trials=3, sweep_seed=4, **common).wait(120)
        assert len({u.settings.get("mu_offset", 0) for u in drawn.units()}) == 3
        twin = fleet.twin("c0", "c1", **common).wait(120)
        assert twin.twin.what == odtfleet.api.TwinResult.WHAT_EQUAL and twin.twin.steps_compared == 150
        twin = fleet.twin("c0", b_settings={"mu_offset": -2}, **common).wait(120)
        assert list(twin.twin.settings) == ["mu_offset"] and twin.twin.what != odtfleet.api.TwinResult.WHAT_EQUAL
        out = fleet.rollout(sweep.result(), "type=sim", "shifted", canary=0.3, phases=[0.5, 1]).wait(120)
        assert [u.state for u in out.units()] == ["SUCCEEDED"] * 3 and fleet.pull("c2") == sweep.result()
        together = fleet.federated(2, boards=["c0", "c1"], personalise_epochs=1, **common).wait(120)
        assert [r.averaged for r in together.rounds()] == [2, 2] and together.result().hash
        paused = fleet.same_run(boards=["c0"], **{**common, "epochs": 300}).pause()
        assert paused.state == "PAUSED"
        paused.cancel()
        refused(odtfleet, "CampaignFailed", lambda: paused.wait(60), "CANCELLED")


class Cutter:
    """A TCP line to odtd that is cut when odtd's answer to a request whose bytes hold `mark` begins: carried out, untold."""

    def __init__(self, target, mark):
        self.target, self.mark, self.cuts = target, mark, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            host, port = self.target.split(":")
            server = socket.create_connection((host, int(port)))
            armed = threading.Event()
            threading.Thread(target=self.pump, args=(client, server, armed, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, armed, False), daemon=True).start()

    def pump(self, source, sink, armed, asking):
        try:
            while data := source.recv(65536):
                if asking and self.mark in data and self.cuts < 2:
                    armed.set()
                elif not asking and armed.is_set() and len(data) > 60:  # no acknowledgement: the answer
                    self.cuts += 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def test_python_an_answer_lost_happens_once(bin_dir):
    odtfleet = package(bin_dir)
    with World(bin_dir) as world:
        world.add_sim("sim", "5100000000000001")
        line = Cutter(world.address_of("grpc"), b"only-once")
        with odtfleet.Fleet(line.address) as fleet:
            prepare(fleet)
            run = fleet.train("sim", "blobs", "shifted", epochs=1, name="only-once", **SETTINGS)
            assert line.cuts == 2, line.cuts
            assert [r.id for r in fleet.runs("name=only-once")] == [run.id]
            assert run.wait(60).state == "SUCCEEDED"
        line.listener.close()


def test_python_watch_goes_on_through_a_restart(bin_dir):
    odtfleet = package(bin_dir)
    with World(bin_dir) as world:
        world.add_sim("sim", "5100000000000001", "--step-delay-ms", 10)
        with odtfleet.Fleet(f"unix:{world.socket_path}") as fleet:
            prepare(fleet)
            run = fleet.train("sim", "blobs", "shifted", epochs=3, **SETTINGS)
            steps, lost, seqs, epochs, killed, token = [], set(), [], [], False, None
            with fleet.watch("all", telemetry=[run], timeout=120) as changes:
                for change in changes:
                    if change.kind == "telemetry":
                        frame = change.value  # what the board could not keep while odtd was away is told as a gap
                        lost.update(range(frame.step, frame.step + frame.gap))
                        steps += [] if frame.gap else [frame.step]
                    elif change.seq:
                        seqs.append(change.seq)
                        epochs += [change.value.epoch] if change.kind == "epoch" else []
                    assert change.kind != "resync"
                    if len(steps) == 40 and not killed:
                        killed = True
                        world.end("odtd", signal.SIGKILL)
                        world.restart_odtd()
                    token = changes.token
                    if change.kind == "run" and change.value.state == odtfleet.api.RUN_STATE_SUCCEEDED and change.seq:
                        break
            assert killed and epochs == [0, 1, 2] and seqs == list(range(seqs[0], seqs[-1] + 1)), (epochs, seqs)
            assert steps == sorted(set(steps)), f"each step once, in order: {steps}"
            assert set(range(steps[-1])) <= lost | set(steps), f"neither told nor lost: {set(range(steps[-1])) - lost - set(steps)}"
            fleet.board("sim").label(site="lab")
            with fleet.watch("all", resume=token, timeout=30) as changes:
                change = next(c for c in changes if c.seq)
                assert change.seq == token[1] + 1, (change, token)
            with fleet.watch("fleet", timeout=0.5) as changes:
                refused(odtfleet, "DeadlineExceeded", lambda: list(changes))
            assert run.wait(10).state == "SUCCEEDED"


def test_python_what_the_readmes_say(bin_dir):
    """The examples of README.md and daemon/python/README.md, word for word, but for the address."""
    odtfleet = package(bin_dir)
    for page in ("README.md", "daemon/python/README.md"):
        with World(bin_dir) as world, odtfleet.Fleet(world.address_of("grpc")) as fleet:
            for name, uid in (("rig-7", "5100000000000001"), ("rig-8", "5100000000000002")):
                world.add_sim(name, uid)
                fleet.board(name).label(site="lab")
            fleet.add_dataset("plain", *blobs(1200, 1), seed=1)
            fleet.train_on_pc("plain", "motor", hidden=[12], epochs=3)
            code = (ROOT / page).read_text().partition("```python\n")[2].partition("```")[0]
            assert '"127.0.0.1:7421"' in code and 'export("worn.npz")' in code, page
            x, y = blobs(1200, 2, mirrored=True)
            code = code.replace("127.0.0.1:7421", world.address_of("grpc")).replace("worn.npz", str(world.root / "worn.npz"))
            exec(compile(code, page, "exec"), {"x": x, "y": y})
            assert (world.root / "worn.npz").exists(), page


def test_python_an_odtd_that_hangs_is_a_deadline(bin_dir):
    odtfleet = package(bin_dir)
    with World(bin_dir) as world, odtfleet.Fleet(world.address_of("grpc")) as fleet:
        assert fleet.boards() == []
        refused(odtfleet, "NotFound", lambda: fleet.blob(b"\1" * 32))
        watch = fleet.watch("fleet", timeout=1)
        odtd = world.running["odtd"]
        odtd.send_signal(signal.SIGSTOP)
        world.wait_for("every thread to stop", lambda: all(
            p.read_text().rpartition(")")[2].split()[0] == "T" for p in pathlib.Path(f"/proc/{odtd.pid}/task").glob("*/stat")), 20)
        error = refused(odtfleet, "DeadlineExceeded", lambda: fleet.call(odtfleet.api.ListBoardsRequest(), timeout=0.5), "no answer within the time given")
        assert isinstance(error, TimeoutError)
        refused(odtfleet, "DeadlineExceeded", lambda: list(watch), "1 s are over")
        refused(odtfleet, "Unavailable", lambda: fleet.blob(b"\1" * 32, timeout=0.5), "timed out")
        odtd.send_signal(signal.SIGCONT)
        world.wait_for("odtd to answer again", lambda: fleet.call(odtfleet.api.GetInfoRequest(), timeout=10).version, 20)


def test_python_captures_train_where_they_were_taken(bin_dir):
    import numpy
    odtfleet = package(bin_dir)
    rng = numpy.random.default_rng(3)
    label = rng.integers(0, 2, 200)
    steps = rng.integers(-5, 6, (800, 3)).astype("int16") + numpy.where(label, 40, -40).repeat(4)[:, None].astype("int16")
    windows = steps.reshape(200, 4, 3).transpose(0, 2, 1)  # [n, channels, steps]
    with World(bin_dir) as world, odtfleet.Fleet(world.address_of("grpc")) as fleet:
        (world.root / "sensor.bin").write_bytes(steps[:400].tobytes())
        world.add_sim("ears", "5100000000000021", "--sensor", world.root / "sensor.bin", "--sensor-channels", 3, "--sensor-rate", 2000,
                      "--sensor-once")
        fleet.add_dataset("windows", steps.reshape(200, 12), label, seed=1, series="rows", channels=3, window_steps=4, features="raw")
        fleet.train_on_pc("windows", "kinds", hidden=[8], epochs=2)
        rules = [odtfleet.Rule("mean", 0, -100, 0, label=1), odtfleet.Rule("mean", 0, 1, 100, label=0)]  # the other way round
        refused(odtfleet, "InvalidArgument", lambda: fleet.capture("ears").start("kinds", window_steps=5), "12")
        refused(odtfleet, "InvalidArgument", lambda: fleet.capture("ears").start("kinds", window=4), "window_steps")
        refused(odtfleet, "InvalidArgument", lambda: fleet.capture("ears").start(rules=[odtfleet.Rule("mode", 0, 0, 0, 0)]), "mean, max")
        capture = fleet.capture("ears").start("kinds", window_steps=4, slots=110, rules=rules, keep="train", heldout_every=5)
        world.wait_for("all windows", lambda: capture.refresh().captured == 100, 30)
        assert capture.kept == (80, 20) and [w.label for w in capture.windows] == [1 - v for v in label[:100]]
        assert {w.kept for w in capture.windows} == {"TRAIN", "HELDOUT"} and all(w.by_rule for w in capture.windows)
        values = capture.values(7)
        assert values.shape == (3, 4) and numpy.corrcoef(values.ravel(), windows[6].ravel())[0, 1] > 0.99
        assert not capture.stop().active
        run = fleet.train("ears", "kinds", captured=True, epochs=4, seed=7).wait(60)
        assert run.heldout_start < 0.2 and run.heldout_best > 0.9, (run.heldout_start, run.heldout_best)
        refused(odtfleet, "InvalidArgument", lambda: capture.feed(steps.astype(float)), "int16")
        refused(odtfleet, "FailedPrecondition", lambda: capture.feed(steps), "sensor of its own")
        world.add_sim("fed", "5100000000000022")
        capture = fleet.capture("fed").start("kinds", window_steps=4, slots=40, channels=3, dtype=3)
        assert capture.feed(steps[:70]).captured == 17 and capture.feed(steps[60:80], first=60).captured == 20
        assert numpy.corrcoef(fleet.capture("fed").values(3).ravel(), windows[2].ravel())[0, 1] > 0.99
        assert capture.label(3, 1, keep="heldout").windows[2].kept == "HELDOUT"
        refused(odtfleet, "FailedPrecondition", lambda: capture.label(3, 0), "sample already")


def test_python_alerts_and_settings(bin_dir):
    odtfleet = package(bin_dir)
    api = odtfleet.api
    with World(bin_dir) as world, odtfleet.Fleet(world.address_of("grpc")) as fleet:
        world.add_sim("sim", "5100000000000001")
        fleet.board("sim").label(site="lab")
        prepare(fleet)
        assert fleet.set_setting("epochs", 3) == 1 and fleet.set_setting("batch", 16, cohort="site=lab,!broken") == 1
        assert fleet.set_setting("epochs", 2, board="sim") == 1 and fleet.set_setting("mu_weight", (1, -1, -3), board_type="sim") == 1
        told = fleet.effective_settings("sim")
        assert [(told[k].value, told[k].scope) for k in ("epochs", "batch", "mu_weight", "k")] == [
            ("2", "BOARD"), ("16", "COHORT"), ("1/-1/-3", "BOARD_TYPE"), ("", "")], told
        run = fleet.train("sim", "blobs", "shifted", policy="fixed", batch=8).wait(60)
        assert (run.pb.effective.epochs, run.pb.effective.batch, list(run.pb.effective.mu_weight)) == (2, 8, [1, -1, -3]), run.pb.effective
        fleet.unset_setting("epochs", board="sim")
        assert fleet.effective_settings("sim")["epochs"].value == "3" and len(fleet.settings()) == 3
        refused(odtfleet, "InvalidArgument", lambda: fleet.set_setting("epocs", 2), "epocs")
        refused(odtfleet, "InvalidArgument", lambda: fleet.set_setting("epochs", "many"), "epochs")
        refused(odtfleet, "InvalidArgument", lambda: fleet.set_setting("epochs", 2, board="sim", cohort="a=b"), "one scope")
        (rule,) = [r for r in fleet.call(api.ListAlertRulesRequest()).settings.rules if r.rule == api.ALERT_RULE_KIND_OFFLINE]
        fleet.call(api.UpdateAlertRuleRequest(rule=rule.rule, threshold=rule.min))
        assert fleet.silence(60, rule="offline", board="sim", note="a test").board_uid == fleet.board("sim").key
        world.end("sim")
        (alert,) = world.wait_for("the alert", lambda: fleet.alerts("state=firing,rule=offline"), rule.min + 30)
        assert alert.firing and alert.rule == "OFFLINE" and alert.subject == "sim" and not alert.acknowledged, alert
        assert alert.acknowledge("looking").acknowledged
        world.add_sim("sim", "5100000000000001")
        world.wait_for("its end", lambda: not fleet.alerts("state=firing"), 30)
        refused(odtfleet, "FailedPrecondition", alert.acknowledge)
