"""Runs that wait: priorities, order, retries, the stop of everything, estimates and warnings; samples said wrongly."""
import signal

from world import World, refused

SLOW = ("--step-delay-ms", 30)


def waiting(world, board):
    queue = world.ctl("run", "queue", board)["queues"]
    return [r["id"] for r in queue[0]["runs"]] if queue else []


def test_queue_priorities_survive_a_restart(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("one", "6200000000000001", *SLOW)
        running = world.train("one", epochs=40)
        world.wait_for("RUNNING", lambda: world.run(running)["state"] == "RUNNING", 30, every=0.1)
        low, high, also = world.train("one"), world.train("one", "--priority", 5), world.train("one")
        assert waiting(world, "one") == [running, high, low, also]
        world.ctl("run", "reorder", also, "--before", high)
        order = [running, also, high, low]
        assert waiting(world, "one") == order
        lease = world.ctl("run", "queue", "one")["queues"][0]["lease"]
        assert lease["what"] == "run" and lease["holder"] == running and lease["expire_time_us"] > lease["since_time_us"], lease
        world.end("odtd", signal.SIGKILL)
        world.restart_odtd()
        world.wait_for("the order again", lambda: waiting(world, "one") == order, 20, every=0.2)
        refused(world, "run", "reorder", running, "--priority", 3, code=5, says=("does not wait",))
        refused(world, "run", "reorder", low, code=2, says=("--priority",))
        refused(world, "run", "retry", low, code=5, says=("not over",))
        world.ctl("run", "cancel", running)
        world.wait_run(running, want="CANCELLED")
        world.wait_for("the next one", lambda: world.run(also)["state"] in ("PREPARING", "EVALUATING", "RUNNING"), 20, every=0.1)
        again = world.ctl("run", "retry", running)[0]
        assert again["retry_of"] == running and again["spec"]["hyper"] == world.run(running)["spec"]["hyper"]
        stopped = world.ctl("stop-all", "--cancel")
        assert all(r["told"] for r in stopped["runs"]) and len(stopped["runs"]) == 4, stopped
        for run in (also, high, low, again["id"]):
            world.wait_run(run, want="CANCELLED")


def test_queue_stop_all_with_a_board_that_hangs(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        names = ("good", "stuck")
        for i, name in enumerate(names):
            world.add_sim(name, f"620000000000001{i}", *SLOW)
        runs = {name: world.train(name, epochs=200) for name in names}
        for run in runs.values():
            world.wait_for("RUNNING", lambda run=run: world.run(run)["state"] == "RUNNING", 30, every=0.1)
        world.running["stuck"].send_signal(signal.SIGSTOP)
        try:
            done = world.ctl_raw("--json", "stop-all")
            assert done.returncode == 1, done.stdout
            assert world.run(runs["good"])["state"] == "PAUSED"
            assert world.run(runs["stuck"])["desired"] == "PAUSE"
        finally:
            world.running["stuck"].send_signal(signal.SIGCONT)
        world.wait_for("stuck is told", lambda: world.run(runs["stuck"])["state"] == "PAUSED", 30, every=0.2)
        world.ctl("run", "resume", runs["good"])
        world.wait_for("goes on", lambda: world.run(runs["good"])["state"] == "RUNNING", 20, every=0.1)


def test_queue_estimate_and_eta(bin_dir):
    with World(bin_dir) as world:
        world.prepare(train=60, heldout=20, test=100)
        world.add_sim("one", "6200000000000020", *SLOW)
        args = ("train", "--board", "one", "--model", "small", "--data", "shifted", "--epochs", 30, "--dry-run", "--evaluate")
        first = world.ctl(*args)["estimate"]
        assert first["steps"] > 0 and first["send_bytes"] > 0 and first["disk_free_bytes"] > 0, first
        codes = [w["code"] for w in first["warnings"]]
        assert codes == ["TOO_FEW_SAMPLES", "FEW_HELDOUT"], codes
        run = world.train("one", "--evaluate", epochs=30)
        shown = world.wait_for("an ETA", lambda: (lambda r: r if r["eta_time_us"] else None)(world.run(run)), 30, every=0.1)
        assert [w["code"] for w in shown["warnings"]] == codes, shown["warnings"]
        ended = world.wait_run(run)
        assert ended["eta_time_us"] == 0 and ended["timing"]["step_us"] > 0, ended["timing"]
        assert ended["guard_verdict"] in ("BEST", "LAST", "START") and ended["verdict_text"]
        second = world.ctl(*args)["estimate"]
        assert second["basis"] == "THIS_BOARD" and second["total_us"] > 0, second
        text = world.ctl_raw(*args)
        assert "measured on this board" in text.stdout, text.stdout


def test_queue_wrong_samples(bin_dir):
    with World(bin_dir) as world:
        world.prepare(train=200, heldout=60, test=120)
        world.add_sim("one", "6200000000000030")
        world.wait_run(world.train("one"))
        got = world.ctl("eval", "--board", "one", "--data", "shifted", "--wrong", 200, timeout=120)
        wrong = got["wrong_samples"]
        assert wrong["total"] == got["accuracy"]["total"] - got["accuracy"]["correct"] == len(wrong["samples"]), wrong["total"]
        classes = len(got["class_totals"])
        for s in wrong["samples"]:
            assert s["label"] != s["said"] and got["confusion"][s["label"] * classes + s["said"]] > 0, s
        assert sum(got["class_totals"]) == got["accuracy"]["total"]
        assert sum(got["class_correct"]) == got["accuracy"]["correct"]
        # One of them by itself says the same.
        one = wrong["samples"][0]
        said = world.ctl("infer", "--board", "one", "--data", "shifted", "--first", one["index"], "--count", 1)
        assert said["samples"][0]["predicted"] == one["said"], (said, one)
        # By hand: as many values as the model takes.
        by_hand = world.ctl("infer", "--board", "one", "--values", ",".join(["0"] * 196))
        assert len(by_hand["samples"]) == 1
        refused(world, "infer", "--board", "one", "--values", "1,2,3", code=2, says=("196",))
        refused(world, "infer", "--board", "one", code=2, says=("one of them",))
