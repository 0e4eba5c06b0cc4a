"""Training through the whole product."""
import hashlib

from world import FULL, World, refused


def test_same_bits_on_every_core(bin_dir):
    """Simulated board, M33 and M3 (streamed) end one run in the same training state; the replay agrees. In a full run
    an M4 and more samples, too: every core trains to the golden bits in tests/qemu."""
    with World(bin_dir) as world:
        samples = (400, 100, 300) if FULL else (160, 40, 100)
        world.prepare(*samples)
        world.add_sim("sim", "5100000000000001")
        world.add_qemu("m33", "mps2_an505", "3300000000000002")
        if FULL:
            world.add_qemu("m4", "mps2_an386", "0400000000000003")
        world.add_qemu("m3", "lm3s6965evb", "0300000000000004")
        runs = {name: world.train(name, "--evaluate") for name in ("sim", "m33", "m4", "m3")
                if name in world.running}
        runs["sim streamed"] = None
        ended = {name: world.wait_run(run, 240) for name, run in runs.items() if run}
        ended["sim streamed"] = world.wait_run(world.train("sim", "--evaluate", "--streamed"), 240)
        states = {name: run["final_state_hash"] for name, run in ended.items()}
        assert len(set(states.values())) == 1 and len(states["sim"]) == 64, states
        assert len({run["final_weights_hash"] for run in ended.values()}) == 1
        assert len({run["after"]["correct"] for run in ended.values()}) == 1
        assert ended["m3"]["effective"]["streamed"] and not ended["m33"]["effective"]["streamed"]
        assert ended["sim"]["after"]["correct"] > ended["sim"]["before"]["correct"] + samples[2] / 10, ended["sim"]
        for name in ("m3", "m33"):
            world.ctl("run", "replay", ended[name]["id"], timeout=120)
            assert world.run(ended[name]["id"])["replay"] == "EQUAL", name


def test_epochs_and_telemetry_are_complete(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("sim", "5100000000000001")
        run = world.wait_run(world.train("sim", epochs=3))
        epochs = world.ctl("run", "epochs", run["id"])
        assert [e["epoch"] for e in epochs] == [0, 1, 2]
        assert epochs[-1]["step"] == run["steps_total"] == 150
        assert all(e["train"]["total"] == 400 and e["heldout"]["total"] == 100 for e in epochs)
        states = [e["to"] for e in world.ctl("run", "events", run["id"])]
        assert states[-1] == "SUCCEEDED" and "RUNNING" in states and "PREPARING" in states, states


def test_guard_never_ends_worse_on_the_heldout_set(bin_dir):
    """Steps far too large on an unshifted sensor: the weights of the start come back."""
    with World(bin_dir) as world:
        world.prepare()
        world.import_fmnist("healthy", "none", 200, 200, 300, skip=5000)
        world.add_sim("sim", "5100000000000001")
        run = world.ctl("train", "--board", "sim", "--model", "small", "--data", "healthy", "--epochs", 3, "--policy", "fixed",
                        "--k", 8, "--mu-weight", 4, "--batch", 8, "--evaluate", "--detach")["id"]
        run = world.wait_run(run)
        epochs = [e["heldout"]["correct"] for e in world.ctl("run", "epochs", run["id"])]
        assert min(epochs) < run["heldout_start"]["correct"], f"nothing to guard against: {epochs}"
        assert run["heldout_best"]["correct"] == max([run["heldout_start"]["correct"], *epochs])
        now_held = world.ctl("eval", "--board", "sim", "--data", "healthy", "--split", "heldout", timeout=60)
        assert now_held["accuracy"] == run["heldout_best"], "the board does not hold the best weights"
        if run["best_step"] == 0:
            assert run["after"]["correct"] == run["before"]["correct"]


def test_pause_resume_cancel(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("sim", "5100000000000001", "--step-delay-ms", 20)
        reference = None
        run = world.train("sim")
        world.wait_steps(run, 20)
        world.ctl("run", "pause", run)
        world.wait_for("PAUSED", lambda: world.run(run)["state"] == "PAUSED", 10)
        steps = world.run(run)["steps_done"]
        assert steps < 150
        world.ctl("run", "resume", run)
        reference = world.wait_run(run)
        undisturbed = world.wait_run(world.train("sim"))
        assert reference["final_state_hash"] == undisturbed["final_state_hash"]
        run = world.train("sim")
        world.wait_steps(run, 20)
        world.ctl("run", "cancel", run)
        world.wait_run(run, 10, want="CANCELLED")
        refused(world, "run", "resume", run, code=5)
        world.wait_run(world.train("sim", epochs=1))  # the board is free again


def export_onnx(world, snapshot):
    """The trained weights in the ONNX file of the model, of a snapshot and of a board: what odtc makes of them."""
    refused(world, "weights", "export", snapshot, world.root / "exact.onnx", "--exact", code=6, says=["8 bits"])
    assert not (world.root / "exact.onnx").exists()
    made = world.ctl("weights", "export", snapshot, world.root / "trained.onnx")
    file = world.root / "trained.onnx"
    assert hashlib.sha256(file.read_bytes()).hexdigest() == made["hash"] and made["snapshot"] == snapshot
    again = world.ctl("weights", "export", world.root / "board.onnx", "--board", "sim", "--onnx")
    assert again["hash"] == made["hash"], (again, made)
    plain = world.ctl("weights", "export", world.root / "board.odtw", "--board", "sim")
    assert plain["hash"] == snapshot
    # The file is a model like any: its weights are those trained.
    known = {m["hash"] for m in world.ctl("model", "list")}
    added = world.ctl("model", "add", file, "--name", "trained")
    assert known and added["hash"] not in known
    refused(world, "weights", "export", snapshot, code=2, says=["SNAPSHOT FILE"])


def test_weights_pull_restore_export_eval(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("sim", "5100000000000001")
        run = world.wait_run(world.train("sim", "--evaluate"))
        trained = world.ctl("weights", "pull", "sim")
        assert trained["hash"] == run["final_weights_hash"]
        file = world.root / "weights.odtw"
        world.ctl("weights", "export", trained["hash"], file)
        assert hashlib.sha256(file.read_bytes()).hexdigest() == trained["hash"]
        evaluation = world.ctl("eval", "--board", "sim", "--data", "shifted", timeout=60)
        assert evaluation["accuracy"] == run["after"]
        assert sum(evaluation["confusion"]) == 300 and len(evaluation["confusion"]) == 100
        diagonal = sum(evaluation["confusion"][i * 11] for i in range(10))
        assert diagonal == run["after"]["correct"]
        export_onnx(world, trained["hash"])
        world.add_sim("twin", "5100000000000002")
        world.ctl("weights", "restore", trained["hash"], "--board", "twin")
        assert world.ctl("weights", "pull", "twin")["hash"] == trained["hash"]
        twin = world.ctl("eval", "--board", "twin", "--data", "shifted", timeout=60)
        assert twin["confusion"] == evaluation["confusion"]
