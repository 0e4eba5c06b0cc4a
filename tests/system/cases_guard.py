"""The guard where a board has room for one copy of the weights: odtd keeps the best."""
import signal

from world import World

# 196-40-10 in 15 bits: 16 KB a copy. Steps so large that the last epoch is not the best.
COARSE = ("--policy", "fixed", "--k", 15, "--rounding", "half-up", "--loss", "ce", "--mu-weight", 4, "--mu-offset", 1, "--batch", 8,
          "--seed", 7, "--epochs", 5)
SMALL = ("--ram", 36000)  # about what a 64 KB M3 has


def prepare(world):
    world.prepare(train=120, heldout=60, test=60)
    world.ctl("pc-train", "--data", "source", "--hidden", 40, "--epochs", 4, "--seed", 1, "--name", "wide", timeout=300)


def start(world, board, *extra):
    return world.ctl("train", "--board", board, "--model", "wide", "--data", "shifted", *COARSE, "--detach", *extra)["id"]


def expected(world):
    """The run on a board that keeps the best itself."""
    world.add_sim("roomy", "5100000000000009")
    run = world.wait_run(start(world, "roomy"))
    assert not run["effective"]["best_on_host"], run["effective"]
    assert run["best_step"] < run["steps_total"], "nothing to roll back"
    return run


def same(world, run, want):
    assert run["effective"]["best_on_host"], run["effective"]
    for field in ("final_state_hash", "final_weights_hash", "best_step", "heldout_best"):
        assert run[field] == want[field], (field, run[field], want[field])
    world.ctl("run", "replay", run["id"], timeout=120)
    assert world.run(run["id"])["replay"] == "EQUAL", run["id"]


def test_best_on_host_same_state(bin_dir):
    """An M3 with 64 KB ends in the state of a board with room for two copies; odtctl says where the best is."""
    with World(bin_dir) as world:
        prepare(world)
        want = expected(world)
        world.add_qemu("m3", "lm3s6965evb", "0300000000000004")
        same(world, world.wait_run(start(world, "m3"), 240), want)
        world.add_sim("sim", "5100000000000001", *SMALL)
        said = world.ctl_raw("train", "--board", "sim", "--model", "wide", "--data", "shifted", *COARSE)
        assert said.returncode == 0 and "best weights kept on the host" in said.stdout, (said.stdout, said.stderr)


def test_best_on_host_survives(bin_dir):
    """kill -9 of odtd and power cycles of the board, resident and streamed."""
    with World(bin_dir) as world:
        prepare(world)
        want = expected(world)
        for name, uid, extra in (("small", "5100000000000001", ()), ("streamed", "5100000000000002", ("--streamed",))):
            options = ("--step-delay-ms", 60, *SMALL)
            world.add_sim(name, uid, *options)
            run = start(world, name, *extra)
            world.wait_steps(run, 16)
            world.end("odtd", signal.SIGKILL)
            world.restart_odtd()
            world.wait_for("RUNNING", lambda: world.run(run)["state"] == "RUNNING", 60, every=0.1)
            world.wait_steps(run, 35)
            world.end(name, signal.SIGKILL)
            world.wait_for("noticed", lambda: world.run(run)["state"] == "WAITING_BOARD", 60, every=0.1)
            world.sim_board(name, uid, [str(o) for o in options])
            ended = world.wait_run(run)
            assert ended["attempt"] == 2, ended["attempt"]
            same(world, ended, want)
