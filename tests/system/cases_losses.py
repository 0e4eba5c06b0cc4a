"""Regressions and autoencoders through the whole product: losses where classifiers have accuracy."""
import random
import signal

from world import World, refused

SIM = "5100000000000001"
# Settings that do not depend on what a board has room for.
FIXED = ("--policy", "fixed", "--k", 15, "--rounding", "half-up", "--mu-weight", "1,-1,-3", "--mu-offset", "-3", "--batch", 8,
         "--seed", 5, "--epochs", 4)


def write_sums(path, n, seed, drift=False):
    """x0..x5 in 0..100, and their sum and a difference; drift: of a sensor whose gain and zero have moved."""
    rng = random.Random(seed)
    lines = ["x0,x1,x2,x3,x4,x5,sum,difference"]
    for _ in range(n):
        x = [rng.randrange(1001) / 10 for _ in range(6)]
        seen = [v * 0.6 + 30 for v in x] if drift else x
        lines.append(",".join(f"{v:g}" for v in [*seen, sum(x), x[0] + x[1] - x[2] - x[3]]))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_strokes(path, n, seed, dim=True, odd=False):
    """8x8 images of one upright or level stroke and noise, a row each; dim: of less contrast; odd: slanted strokes."""
    rng = random.Random(seed)
    level = [[(y, x) for x in range(8)] for y in range(8)]
    strokes = level + [[(y, x) for y in range(8)] for x in range(8)]
    if odd:
        strokes = [[(y, (y + i) % 8) for y in range(8)] for i in range(8)]
    lines = []
    for _ in range(n):
        image = [[rng.randrange(24) for _ in range(8)] for _ in range(8)]
        for y, x in rng.choice(strokes):
            image[y][x] = 190 + rng.randrange(60)
        lines.append(",".join(str(v // 2 + 60 if dim else v) for row in image for v in row))
    path.write_text("\n".join(lines) + "\n")
    return path


def import_table(world, file, *extra):
    return world.ctl("data", "import", file, "--name", file.stem, "--seed", 1, *extra, timeout=120)


def targets(world, file, *extra):
    return import_table(world, file, "--target-column", "sum", "--target-column", "difference", *extra)


def prepare_sums(world):
    """Model "adder" (6-16-2), and data "drifted" that it has to learn anew."""
    targets(world, write_sums(world.root / "sums.csv", 1200, 1))
    world.ctl("pc-train", "--data", "sums", "--hidden", 16, "--epochs", 20, "--name", "adder", timeout=300)
    targets(world, write_sums(world.root / "drifted.csv", 600, 2, drift=True), "--train", 400, "--heldout", 80, "--test", 100)


def prepare_digits(world):
    """Model "coder" (64-24-64, an autoencoder of strokes), and data "dim" of a sensor that has lost contrast."""
    none = ("--label-column", "-")
    import_table(world, write_strokes(world.root / "strokes.csv", 2500, 1, dim=False), *none)
    world.ctl("pc-train", "--data", "strokes", "--hidden", 24, "--epochs", 12, "--name", "coder", timeout=300)
    import_table(world, write_strokes(world.root / "dim.csv", 500, 2), *none, "--train", 320, "--heldout", 80, "--test", 100)


def train(world, board, model, data, *extra):
    return world.ctl("train", "--board", board, "--model", model, "--data", data, *FIXED, "--detach", *extra)["id"]


def mean(loss):
    return loss["sum"] / loss["count"]


def check_losses(world, run, samples):
    """Losses where accuracy stood, and the guard's best among them."""
    epochs = world.ctl("run", "epochs", run["id"])
    assert [e["epoch"] for e in epochs] == [0, 1, 2, 3], epochs
    for e in epochs:
        assert e["loss"]["kind"] == "MSE" and e["loss"]["count"] == samples, e["loss"]
        assert e["train"] == e["heldout"] == {"correct": 0, "total": 0}, e
        assert e["heldout_loss"]["count"] == 80 and e["heldout_loss"]["kind"] == "MSE", e
    assert run["after"]["total"] == run["heldout_best"]["total"] == 0, run
    best = min(run["heldout_start_loss"]["sum"], *(e["heldout_loss"]["sum"] for e in epochs))
    assert run["heldout_best_loss"]["sum"] == best, (run["heldout_best_loss"], epochs)
    held = world.ctl("eval", "--board", "sim", "--data", run["spec"]["dataset_id"], "--split", "heldout", timeout=60)
    assert held["loss"]["sum"] == best, "the board does not hold the best weights"


def check_same_everywhere(world, model, data):
    """Simulated board resident, streamed and an M33: one state; replays agree; odtd killed in mid-run changes nothing."""
    world.add_sim("sim", SIM)
    world.add_qemu("m33", "mps2_an505", "3300000000000002")
    world.add_sim("slow", "5100000000000003", "--step-delay-ms", 30)
    ended = [world.wait_run(train(world, name, model, data, "--evaluate", *extra), 240)
             for name, extra in (("m33", ()), ("sim", ("--streamed",)), ("sim", ()))]
    killed = train(world, "slow", model, data, "--evaluate")
    world.wait_steps(killed, 30)
    world.end("odtd", signal.SIGKILL)
    world.restart_odtd()
    ended.append(world.wait_run(killed, 120))
    states = [run["final_state_hash"] for run in ended]
    assert len(set(states)) == 1 and len(states[0]) == 64, states
    assert len({(run["after_loss"]["sum"], run["heldout_best_loss"]["sum"]) for run in ended}) == 1, ended
    for run in (ended[0], ended[-1]):
        world.ctl("run", "replay", run["id"], timeout=120)
        assert world.run(run["id"])["replay"] == "EQUAL", run["id"]
    return ended[2]


def test_regression_trains_on_boards(bin_dir):
    """Two sums of the inputs, learnt anew after a drift of the sensor: the squared error falls to a quarter."""
    with World(bin_dir) as world:
        prepare_sums(world)
        model = world.ctl("model", "show", "adder")
        assert model["outputs"]["task"] == "REGRESS" and model["outputs"]["count"] == 2, model["outputs"]
        assert len(model["outputs"]["scale"]) == 2, "the model does not say its targets' scale"
        run = check_same_everywhere(world, "adder", "drifted")
        assert run["outputs"] == model["outputs"], run["outputs"]
        assert mean(run["after_loss"]) < mean(run["before_loss"]) / 4, run
        check_losses(world, run, 400)
        for words in (("run", "show", run["id"]), ("run", "list"), ("run", "epochs", run["id"]),
                      ("eval", "--board", "sim", "--data", "drifted")):
            text = world.ctl_raw(*words).stdout
            assert "mse " in text and "0.0 %" not in text, text


def test_autoencoder_trains_on_boards(bin_dir):
    """Strokes of less contrast: the error falls to a half, and strokes of other kinds stand out by their scores."""
    with World(bin_dir) as world:
        prepare_digits(world)
        run = check_same_everywhere(world, "coder", "dim")
        assert run["outputs"]["task"] == "AUTOENCODE" and run["outputs"]["count"] == 64, run["outputs"]
        assert mean(run["after_loss"]) < mean(run["before_loss"]) / 2, run
        check_losses(world, run, 320)
        import_table(world, write_strokes(world.root / "odd.csv", 60, 3, odd=True), "--label-column", "-", "--train", 2,
                     "--heldout", 2, "--test", 50)
        good, odd = (world.ctl("eval", "--board", "sim", "--data", name, timeout=60) for name in ("dim", "odd"))
        scores = good["scores"]
        assert scores["min"] <= scores["median"] <= scores["p95"] <= scores["max"], scores
        assert odd["scores"]["min"] > scores["p95"], (scores, odd["scores"])
        text = world.ctl_raw("eval", "--board", "sim", "--data", "dim").stdout
        assert "ANOMALY SCORE" in text and "P95" in text, text


def test_regression_in_dfp16(bin_dir):
    """The same in int16 with shared exponents: resident, streamed, replayed."""
    with World(bin_dir) as world:
        prepare_sums(world)
        world.ctl("pc-train", "--data", "sums", "--hidden", 16, "--epochs", 20, "--name", "adder16", "--dfp16", timeout=300)
        world.add_sim("sim", SIM)
        common = ("train", "--board", "sim", "--model", "adder16", "--data", "drifted", "--rule", "dfp16", "--policy", "fixed",
                  "--batch", 8, "--epochs", 4, "--evaluate", "--detach")
        ended = [world.wait_run(world.ctl(*common, *extra)["id"]) for extra in ((), ("--streamed",))]
        assert ended[0]["final_state_hash"] == ended[1]["final_state_hash"], ended
        assert ended[0]["effective"]["loss"] == "MSE" and ended[0]["effective"]["rule_set"] == "DFP16", ended[0]["effective"]
        assert mean(ended[0]["after_loss"]) < mean(ended[0]["before_loss"]) / 4, ended[0]
        world.ctl("run", "replay", ended[0]["id"], timeout=120)


def test_losses_refuse_what_does_not_fit(bin_dir):
    """Labels for a regression, another count of targets, cross-entropy: one clear error, and nothing begins."""
    with World(bin_dir) as world:
        prepare_sums(world)
        world.add_sim("sim", SIM)
        file = write_sums(world.root / "single.csv", 60, 3)
        import_table(world, file, "--target-column", "sum", "--drop-column", "difference")
        labelled = world.root / "labelled.csv"
        labelled.write_text("".join(f"{i},{i % 5},{i % 3},{i % 4},1,{i % 2},{'ab'[i % 2]}\n" for i in range(60)))
        import_table(world, labelled)
        start = ("train", "--board", "sim", "--model", "adder", "--detach", "--data")
        refused(world, *start, "single", says=("'single' has 1 targets", "regression of 2 values"))
        refused(world, *start, "labelled", says=("'labelled' has 2 classes", "regression of 2 values"))
        refused(world, *start, "drifted", "--loss", "ce", says=("loss CE", "without classes"))
        refused(world, *start, "drifted", "--rule", "dfp16", says=("DFP16", "8-bit integers"))
        world.ctl("pc-train", "--data", "labelled", "--hidden", 4, "--epochs", 2, "--name", "classes", timeout=120)
        refused(world, "train", "--board", "sim", "--model", "classes", "--detach", "--data", "drifted",
                says=("'drifted' has 2 targets", "tells 2 classes apart"))
        assert world.ctl("run", "list") == []
