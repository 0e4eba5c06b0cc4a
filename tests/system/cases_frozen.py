"""Training the last layers on outputs of the frozen ones: the same bits as on the samples, on boards too small for the whole."""
import signal

from world import FIXED, World, refused


def prepare(world, train=96, heldout=32, test=60):
    """196-160-24-10, of which the last two layers are trained: 31 KB of the image are frozen."""
    world.prepare(train=train, heldout=heldout, test=test)
    world.ctl("pc-train", "--data", "source", "--hidden", "160,24", "--epochs", 3, "--seed", 1, "--name", "full", timeout=300)
    onnx = world.ctl("model", "show", "full")["onnx_hash"]
    blob = next(p for p in world.data.rglob(onnx) if p.is_file())
    (world.root / "part.onnx").write_bytes(blob.read_bytes())
    world.ctl("model", "add", world.root / "part.onnx", "--name", "part", "--trainable", 2, timeout=60)


def start(world, board, *extra, model="part", epochs=3):
    return world.ctl("train", "--board", board, "--model", model, "--data", "shifted", "--epochs", epochs, *FIXED, "--evaluate",
                     "--detach", *extra)["id"]


def same(world, run, want):
    for field in ("final_state_hash", "final_weights_hash", "best_step", "heldout_start", "heldout_best", "before", "after"):
        assert run[field] == want[field], (field, run[field], want[field])
    world.ctl("run", "replay", run["id"], timeout=120)
    assert world.run(run["id"])["replay"] == "EQUAL", run["id"]


def form(run):
    e = run["effective"]
    return ("tail" if e["tail"] else "frozen" if e["frozen"] else "samples") + (" streamed" if e["streamed"] else "")


def test_frozen_same_bits_on_every_board(bin_dir):
    """Samples; frozen outputs on sim and M33; the trainable part alone on an M3 of 64 KB and on sims without room for the rest."""
    with World(bin_dir) as world:
        prepare(world)
        world.add_sim("sim", "5100000000000001")
        world.add_qemu("m33", "mps2_an505", "3300000000000002")
        world.add_qemu("m3", "lm3s6965evb", "0300000000000004")
        world.add_sim("small", "5100000000000005", "--ram", 48000)
        world.add_sim("tiny", "5100000000000006", "--ram", 24000)
        runs = {"sim": start(world, "sim"), "m33": start(world, "m33", "--frozen", "on"), "m3": start(world, "m3"),
                "small": start(world, "small"), "tiny": start(world, "tiny")}
        ended = {name: world.wait_run(run, 240) for name, run in runs.items()}
        ended["sim frozen"] = world.wait_run(start(world, "sim", "--frozen", "on"))
        ended["sim frozen streamed"] = world.wait_run(start(world, "sim", "--frozen", "on", "--streamed"))
        forms = {name: form(run) for name, run in ended.items()}
        assert forms["sim"] == "samples" and forms["m33"] == forms["sim frozen"] == "frozen", forms
        assert forms["sim frozen streamed"] == "frozen streamed" and forms["m3"].startswith("tail"), forms
        assert forms["small"] == "tail" and forms["tiny"] == "tail streamed", forms
        want = ended["sim"]
        assert want["after"]["correct"] > want["before"]["correct"], want
        for run in ended.values():
            same(world, run, want)
        # What odtctl says of it.
        said = world.ctl_raw("train", "--board", "tiny", "--model", "part", "--data", "shifted", "--epochs", 1, *FIXED)
        assert said.returncode == 0 and "placement: the trainable part alone" in said.stdout, (said.stdout, said.stderr)
        assert "bytes, tiny has 24000" in said.stdout, said.stdout
        # Weights and accuracy of a board that holds the trainable part alone are the model's.
        pulled = world.ctl("weights", "pull", "--board", "tiny", "--alias", "from-tiny")
        assert pulled["model_hash"] == world.ctl("model", "show", "part")["hash"], pulled
        on_tiny = world.ctl("eval", "--board", "tiny", "--weights", "final/" + want["id"][:16], "--data", "shifted", timeout=60)
        on_sim = world.ctl("eval", "--board", "sim", "--weights", "final/" + want["id"][:16], "--data", "shifted", timeout=60)
        assert on_tiny["accuracy"] == on_sim["accuracy"] == want["after"], (on_tiny, on_sim)
        assert on_tiny["confusion"] == on_sim["confusion"]


def test_frozen_survives(bin_dir):
    """kill -9 of odtd and a power cycle of a board that holds the trainable part alone, resident and streamed."""
    with World(bin_dir) as world:
        prepare(world)
        world.add_sim("sim", "5100000000000001")
        want = world.wait_run(start(world, "sim"))
        for name, uid, ram in (("small", "5100000000000005", 48000), ("tiny", "5100000000000006", 24000)):
            options = ("--ram", ram, "--step-delay-ms", 60)
            world.add_sim(name, uid, *options)
            run = start(world, name)
            world.wait_steps(run, 12)
            world.end("odtd", signal.SIGKILL)
            world.restart_odtd()
            world.wait_steps(run, 20)
            world.end(name, signal.SIGKILL)
            world.wait_for("noticed", lambda: world.run(run)["state"] == "WAITING_BOARD", 60, every=0.1)
            world.sim_board(name, uid, [str(o) for o in options])
            ended = world.wait_run(run)
            assert ended["attempt"] == 2 and ended["effective"]["tail"], ended
            same(world, ended, want)


def test_frozen_refusals(bin_dir):
    with World(bin_dir) as world:
        prepare(world)
        world.add_sim("sim", "5100000000000001")
        world.add_sim("tiny", "5100000000000006", "--ram", 24000)
        refused(world, "train", "--board", "sim", "--model", "full", "--data", "shifted", "--frozen", "on", code=5,
                says=["'full' has no frozen outputs"])
        refused(world, "train", "--board", "tiny", "--model", "part", "--data", "shifted", "--frozen", "off", "--k", 15, "--batch", 8,
                says=["needs", "24000", "trainable part on frozen outputs"])
        refused(world, "train", "--board", "tiny", "--model", "part", "--data", "shifted", "--frozen", "perhaps", says=["--frozen"])
