"""Campaigns over simulated boards: the same run, sweeps, twins, rollouts, federated rounds; killed daemons and boards."""
import random
import signal
import time

from world import FIXED, World, refused

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
UNDER_WAY = ("RUNNING", "PENDING")


def sims(world, count, *extra):
    for i in range(count):
        world.add_sim(f"c{i}", f"62000000000000{i:02x}", *extra)
        world.ctl("board", "label", f"c{i}", "site=lab")


def begin(world, *args):
    return world.ctl("campaign", *args, "--detach")["id"]


def shown(world, campaign):
    return world.ctl("campaign", "show", campaign)


def wait(world, campaign, want="SUCCEEDED", timeout=180):
    def over():
        seen = shown(world, campaign)
        return seen if seen["campaign"]["state"] in ENDED else None
    seen = world.wait_for(f"end of campaign {campaign[:8]}", over, timeout)
    assert seen["campaign"]["state"] == want, (seen["campaign"]["state"], seen["campaign"]["reason"],
                                               [(u["state"], u["reason"]) for u in seen["units"]])
    legal(seen["events"])
    return seen


def legal(events):
    """Every change begins where the one before ended, and the numbers are dense."""
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1)), events
    assert events[0]["to"] == "QUEUED", events
    for before, after in zip(events, events[1:]):
        assert after["from"] == before["to"], events


def run_of(world, unit):
    """The unit's run; {} before it is created (its id is stored first)."""
    return {r["id"]: r for r in world.ctl("run", "list")}.get(unit["run_id"], {})


def outcome(world, seen):
    """What must not depend on times and boards: of each unit its settings and the states its run ended in."""
    out = []
    for unit in seen["units"]:
        run = world.run(unit["run_id"]) if unit["run_id"] else {}
        out.append((unit["round"], unit["trial"], unit["state"], unit["weights"], run.get("final_state_hash"),
                    unit["drift_l1"], unit["weight"]))
    return out


def test_campaign_same_run_on_each_board(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        sims(world, 4)
        world.ctl("board", "label", "c3", "broken=yes")
        common = ("--model", "small", "--data", "shifted", "--epochs", 2, *FIXED)
        checks = world.ctl("campaign", "create", "--cohort", "site=lab,!broken", *common, "--dry-run")["checks"]
        assert len(checks) == 3 and all(c["online"] and c["steps"] == 100 for c in checks), checks
        assert world.ctl("campaign", "list") == []
        first = begin(world, "create", "--cohort", "site=lab,!broken", "--name", "each", *common)
        seen = wait(world, first)
        assert len(seen["units"]) == 3 and len({u["board_uid"] for u in seen["units"]}) == 3
        assert len({o[4] for o in outcome(world, seen)}) == 1, "the same run gave different states"
        # 1 by 1 gives what all at once gave.
        alone = world.wait_run(world.train("c3", epochs=2))
        assert alone["final_state_hash"] == outcome(world, seen)[0][4]
        checks = world.ctl("campaign", "create", "--board", "c0", *common, "--dry-run")["checks"]
        assert checks[0]["estimate_us"] > 0, "a board that has trained says how long it takes"
        alike = world.ctl("train", "--board", "c0", *common, "--dry-run")["estimate"]
        assert checks[0]["estimate"]["basis"] == "THIS_BOARD" == alike["basis"], (checks[0], alike)
        assert checks[0]["estimate"]["train_us"] == alike["train_us"], (checks[0], alike)
        refused(world, "campaign", "create", "--cohort", "site=attic", *common, code=5, says=("no board matches",))
        refused(world, "campaign", "retry", "each", code=5, says=("nothing",))
        refused(world, "campaign", "pause", "each", code=5, says=("over",))
        refused(world, "campaign", "create", "--cohort", "site=lab", "--model", "small", "--data", "shifted",
                "--batch", 60000, code=2, says=("batch", "4096"))
        refused(world, "campaign", "create", "--cohort", "site=lab", "--model", "small", "--data", "shifted",
                "--batch", 4096, code=5, says=("cannot take part",))
        account = world.ctl("campaign", "account", seen["units"][0]["run_id"])
        assert account["energy"] * 32 == account["energy_fp32"] * 15, "15 bits throughout"
        world.ctl("campaign", "delete", "each")
        refused(world, "campaign", "show", "each", code=4)


def test_campaign_fifty_boards_at_once(bin_dir):
    """50 runs at once end in the state that one alone ends in."""
    with World(bin_dir) as world:
        world.prepare(train=200, heldout=50, test=50)
        world.add_sim("alone", "6300000000000001")
        alone = world.wait_run(world.train("alone", epochs=2))["final_state_hash"]
        world.sim_board("fleet", "6400000000000000", ["--count", "50"])
        world.wait_for("50 boards online", lambda: sum(
            b["status"] == "ONLINE" for b in world.ctl("board", "list")) == 51, 120)
        seen = wait(world, begin(world, "create", "--cohort", "name!=alone", "--model", "small", "--data", "shifted",
                                 "--epochs", 2, *FIXED), timeout=600)
        assert len(seen["units"]) == 50, (len(seen["units"]), [b["name"] for b in world.ctl("board", "list")])
        assert {world.run(u["run_id"])["final_state_hash"] for u in seen["units"]} == {alone}


def test_campaign_sweep_by_halving(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        sims(world, 3)
        sweep = ("create", "--cohort", "site=lab", "--model", "small", "--data", "shifted", "--epochs", 4, *FIXED,
                 "--sweep", "mu_weight=1/-1/-3,-6", "--sweep", "batch=4,8,16", "--strategy", "halving", "--eta", 2)
        seen = wait(world, begin(world, *sweep, "--name", "halving"))
        rungs = [[u for u in seen["units"] if u["round"] == r] for r in range(3)]
        assert [len(r) for r in rungs] == [6, 3, 2], [len(r) for r in rungs]
        assert [u["hyper"]["epochs"] for u in (rungs[0][0], rungs[1][0], rungs[2][0])] == [1, 2, 4]
        best = seen["units"][seen["campaign"]["best_unit"]]
        assert best["heldout_best"]["correct"] == max(u["heldout_best"]["correct"] for u in rungs[2])
        named = world.ctl("weights", "show", "halving/best")
        assert named["hash"] == best["weights"] == seen["campaign"]["result"]
        again = wait(world, begin(world, *sweep))
        assert outcome(world, again) == outcome(world, seen), "a sweep does not depend on which board did what"
        drawn = wait(world, begin(world, "create", "--cohort", "site=lab", "--model", "small", "--data", "shifted",
                                  "--epochs", 1, *FIXED, "--sweep", "mu_offset=-6..0", "--strategy", "random",
                                  "--trials", 3, "--sweep-seed", 4))
        assert len({u["hyper"]["mu_offset"] for u in drawn["units"]}) == 3
        refused(world, *("campaign", "create", "--cohort", "site=lab", "--model", "small", "--data", "shifted",
                         "--sweep", "colour=red"), code=2, says=("colour", "mu_weight"))


def test_campaign_twin(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        sims(world, 2)
        common = ("twin", "--model", "small", "--data", "shifted", "--epochs", 2, *FIXED)
        twin = wait(world, begin(world, *common, "--a", "c0", "--b-board", "c1"))["campaign"]["twin"]
        assert twin["what"] == "EQUAL" and twin["steps_compared"] == 100, twin
        twin = wait(world, begin(world, *common, "--a", "c0", "--b", "mu_offset=-2"))["campaign"]["twin"]
        assert twin["what"] not in ("EQUAL", "UNSPECIFIED") and twin["settings"] == ["mu_offset"], twin
        assert twin["first_state_epoch"] == 1, twin


def test_campaign_rollout_and_abort(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        sims(world, 4)
        good = world.wait_run(world.train("c0", epochs=3))["final_weights_hash"]
        for board in ("c0", "c1", "c2", "c3"):
            world.ctl("weights", "restore", good, "--board", board)
        # Steps of nothing: the weights of the model, which do not know the shifted data.
        bad = world.ctl("train", "--board", "c0", "--model", "small", "--data", "shifted", "--epochs", 1, "--policy",
                        "fixed", "--k", 15, "--mu-weight", -7, "--mu-offset", -8, "--batch", 8, "--seed", 7, "--no-guard",
                        "--detach")["id"]
        bad = world.wait_run(bad)["final_weights_hash"]
        world.ctl("weights", "restore", good, "--board", "c0")
        common = ("rollout", "--cohort", "site=lab", "--data", "shifted", "--canary", 25, "--phases", "50,100")
        seen = wait(world, begin(world, *common, "--snapshot", bad), want="FAILED")
        assert seen["campaign"]["reason"]["code"] == "DROPPED", seen["campaign"]["reason"]
        assert [u["state"] for u in seen["units"]] == ["ROLLED_BACK", "SKIPPED", "SKIPPED", "SKIPPED"]
        assert [e["to"] for e in seen["events"]] == ["QUEUED", "RUNNING", "ROLLING_BACK", "FAILED"]
        pulled = world.ctl("weights", "pull", "--board", "c0")
        assert pulled["hash"] == good, "the canary has its old weights again"
        seen = wait(world, begin(world, *common, "--snapshot", good))
        assert [u["round"] for u in seen["units"]] == [0, 1, 2, 2]
        assert all(u["state"] == "SUCCEEDED" and u["after"]["total"] == 100 for u in seen["units"])


def test_campaign_federated_with_a_board_killed(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        sims(world, 4, "--step-delay-ms", 60)
        common = ("federated", "--cohort", "site=lab", "--model", "small", "--data", "shifted", "--epochs", 2, *FIXED,
                  "--resume-deadline", 3, "--min-boards", 2)
        campaign = begin(world, *common, "--rounds", 2, "--personalise", 1, "--evaluate", "--name", "fed")
        world.wait_for("first steps", lambda: any(
            run_of(world, u).get("steps_done", 0) >= 5
            for u in shown(world, campaign)["units"] if u["board_uid"].endswith("03")), 60, every=0.1)
        world.end("c3", signal.SIGKILL)
        seen = wait(world, campaign)
        first = seen["rounds"][0]
        assert first["boards"] == 4 and first["averaged"] == 3 and first["samples"] == 3 * 400, first
        assert len(seen["rounds"]) == 2 and len(seen["units"]) == 12
        lost = [u for u in seen["units"] if u["board_uid"].endswith("03")]
        assert lost[0]["state"] == "FAILED" and lost[1]["state"] == "SKIPPED", lost
        # All boards have the same data: their average is what one of them has.
        assert first["average"] == seen["units"][0]["weights"]
        assert seen["units"][0]["drift_l1"] > 0 and seen["units"][0]["changed_ppm"] > 0
        average = world.ctl("weights", "show", "fed/average")
        assert average["hash"] == seen["rounds"][1]["average"], (average, seen["rounds"])
        own = [u for u in seen["units"] if u["personal"] and u["state"] == "SUCCEEDED"]
        assert len(own) == 3 and all(u["before"]["total"] == 300 and u["after"]["total"] == 300 for u in own)


def test_campaign_pause_resume_cancel(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        sims(world, 2, "--step-delay-ms", 20)
        common = ("create", "--cohort", "site=lab", "--model", "small", "--data", "shifted", "--epochs", 3, *FIXED)
        campaign = begin(world, *common)
        running = lambda: [run_of(world, u).get("state") for u in shown(world, campaign)["units"]]  # noqa: E731
        world.wait_for("both run", lambda: running() == ["RUNNING", "RUNNING"], 60)
        assert world.ctl("campaign", "pause", campaign)["state"] == "PAUSED"
        world.wait_for("both pause", lambda: running() == ["PAUSED", "PAUSED"], 30)
        assert world.ctl("campaign", "resume", campaign)["state"] == "RUNNING"
        paused = outcome(world, wait(world, campaign))
        second = begin(world, *common)
        plain = outcome(world, wait(world, second))
        assert [p[4] for p in paused] == [p[4] for p in plain]
        third = begin(world, *common)
        world.ctl("campaign", "cancel", third)
        seen = wait(world, third, want="CANCELLED")
        assert all(u["state"] not in UNDER_WAY for u in seen["units"])


def test_campaign_pauses_with_stop_all(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        sims(world, 2, "--step-delay-ms", 20)
        campaign = begin(world, "create", "--cohort", "site=lab", "--model", "small", "--data", "shifted", "--epochs", 3,
                         "--parallel", 1, *FIXED)
        states = lambda: sorted(run_of(world, u).get("state", u["state"]) for u in shown(world, campaign)["units"])  # noqa: E731
        world.wait_for("one runs", lambda: states() == ["PENDING", "RUNNING"], 60)
        stopped = world.ctl("stop-all")
        assert stopped["campaigns"] == [campaign] and len(stopped["runs"]) == 1, stopped
        assert shown(world, campaign)["campaign"]["state"] == "PAUSED"
        # Nothing goes on by itself, also not after a restart of odtd.
        world.end("odtd", signal.SIGKILL)
        world.restart_odtd()
        world.wait_for("boards", lambda: world.online("c0", "c1"), 20)
        assert states() == ["PAUSED", "PENDING"] and shown(world, campaign)["campaign"]["state"] == "PAUSED"
        world.ctl("campaign", "resume", campaign)
        wait(world, campaign)


def kill_at_moments(bin_dir, moments, seed):
    """kill -9 of odtd at seeded moments of sweeps and federated campaigns: the undisturbed campaigns' results."""
    rng = random.Random(seed)
    with World(bin_dir) as world:
        world.prepare(train=200, heldout=100, test=100)
        sims(world, 3, "--step-delay-ms", 2)
        kinds = [("create", "--sweep", "mu_weight=1/-1/-3,-4", "--sweep", "batch=8,16", "--strategy", "halving", "--eta", 2),
                 ("federated", "--rounds", 3, "--personalise", 1)]
        common = ("--cohort", "site=lab", "--model", "small", "--data", "shifted", "--epochs", 2, *FIXED)
        plain = [outcome(world, wait(world, begin(world, *kind, *common))) for kind in kinds]
        done = 0
        while done < moments:
            for kind, expected in zip(kinds, plain):
                campaign = begin(world, *kind, *common)
                for _ in range(rng.randrange(1, 4)):
                    time.sleep(rng.uniform(0.02, 2.5))
                    world.end("odtd", signal.SIGKILL)
                    world.restart_odtd()
                    done += 1
                assert outcome(world, wait(world, campaign, timeout=300)) == expected, (kind[0], done)


def test_campaign_odtd_killed(bin_dir):
    kill_at_moments(bin_dir, 3, 6)
