"""odtd ends by kill -9 inside what must not tear: a commit of the store, a snapshot, a board's commit, a migration."""
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import time

from cases_campaign import ENDED, begin, outcome, shown, wait
from world import FIXED, CtlError, World

OLD_STORE = pathlib.Path(__file__).resolve().parents[1] / "fixtures/v0.1"
DIED = 137
# daemon/base/failpoint.h: points with the last passing that is drawn.
MIGRATION = (("migrate", 1), ("migrate.rows", 1))
POINTS = {"commit": (("control.commit", 40), ("control.committed", 40)),
          "snapshot": (("file.write", 8), ("blob.named", 4)),
          "board": (("board.commit.ask", 2), ("board.commit.done", 2))}
# By store-and-events.md, section 4; FAILED and CANCELLED from everywhere.
PATHS = {"QUEUED": ("PREPARING", "WAITING_BOARD"),
         "PREPARING": ("RUNNING", "PAUSED", "WAITING_BOARD", "EVALUATING"),
         "RUNNING": ("PAUSED", "WAITING_BOARD", "EVALUATING", "PREPARING", "SUCCEEDED"),
         "PAUSED": ("RUNNING", "WAITING_BOARD", "PREPARING"),
         "WAITING_BOARD": ("PREPARING", "RUNNING", "PAUSED", "EVALUATING"),
         "EVALUATING": ("PREPARING", "WAITING_BOARD", "SUCCEEDED")}


def drawn(rng, points):
    name, most = rng.choice(points)
    return f"{name}:{rng.randint(1, most)}"


def dead(world):
    """Whether odtd has ended at its failpoint."""
    process = world.running["odtd"]
    if process.poll() is None:
        return False
    assert process.returncode == DIED, f"odtd ended with exit {process.returncode}:\n{world.log_tail('odtd')}"
    return True


def start_with(world, failpoint):
    """odtd anew; True: it came no further than that."""
    world.end("odtd", signal.SIGKILL)
    try:
        world.start_odtd(listen_port=world.listen_port, env={**os.environ, "ODT_FAILPOINT": failpoint})
    except RuntimeError:
        return dead(world)
    return False


def died_before_the_end(world, campaign, timeout=20):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if dead(world):
            return True
        try:
            if shown(world, campaign)["campaign"]["state"] in ENDED:
                return dead(world)
        except CtlError:
            pass  # it has just ended
        time.sleep(0.05)
    return False


def legal_run(world, run):
    events = world.ctl("run", "events", run)
    assert events and events[0]["to"] == "QUEUED", events
    for before, after in zip(events, events[1:]):
        assert after["from"] == before["to"], events
        assert after["to"] in PATHS[after["from"]] + ("FAILED", "CANCELLED"), events


def orphans(world):
    """Blobs that no row of the store names."""
    with sqlite3.connect(f"file:{world.data / 'control.db'}?mode=ro", uri=True) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        cells = [c if isinstance(c, bytes) else str(c).encode()
                 for t in tables for row in store.execute(f"SELECT * FROM {t}") for c in row]
    said = b"\n".join(cells)
    blobs = [p for p in (world.data / "blobs").rglob("*") if p.is_file()]
    assert not [p for p in blobs if ".tmp-" in p.name], blobs
    return [p.name for p in blobs if bytes.fromhex(p.name) not in said and p.name.encode() not in said]


def no_orphan_stays(world):
    """A blob that a killed odtd left unnamed goes with the first sweep after a day; nothing else goes."""
    world.end("odtd")
    blobs = {p.name: p for p in (world.data / "blobs").rglob("*") if p.is_file()}
    unnamed = set(orphans(world))
    old = time.time() - 2 * 24 * 3600
    for path in blobs.values():
        os.utime(path, (old, old))
    world.restart_odtd()
    world.wait_for("no orphan blob", lambda: not orphans(world), 30)
    left = {p.name for p in (world.data / "blobs").rglob("*") if p.is_file()}
    assert left == set(blobs) - unnamed, (len(left), len(blobs), len(unnamed))
    return len(unnamed)


def old_store_migrated(world, rng, deaths):
    """The store of 0.1, whose migration is killed; it is whole afterwards."""
    world.data.mkdir()
    for name in ("control.db", "telemetry.db"):
        shutil.copy(OLD_STORE / name, world.data / name)
    for n in range(deaths):
        name, most = MIGRATION[n % len(MIGRATION)]
        failpoint = f"{name}:{rng.randint(1, most)}"
        assert start_with(world, failpoint), f"odtd did not end at {failpoint}"
        # Each from the start: what is moved once is not moved again.
        if n + 1 < deaths:
            for path in world.data.glob("*.db*"):
                path.unlink()
            for name in ("control.db", "telemetry.db"):
                shutil.copy(OLD_STORE / name, world.data / name)


def kill_inside(bin_dir, wanted, seed):
    """wanted: how often odtd dies in a migration, a commit, a snapshot, a board's commit, and at any moment."""
    rng = random.Random(seed)
    world = World(bin_dir)
    old_store_migrated(world, rng, wanted["migration"])
    with world:
        old = [r["id"] for r in world.ctl("run", "list")]
        assert len(old) == 1 and len(world.ctl("run", "epochs", old[0])) == 2, old
        records = world.ctl_raw("run", "export", old[0], "--format", "jsonl").stdout.splitlines()
        assert len(records) == 1 + 50, records[:2]
        world.prepare(train=200, heldout=100, test=100)
        for i in range(3):
            world.add_sim(f"c{i}", f"65000000000000{i:02x}", "--step-delay-ms", 2, "--nvm", world.state / f"c{i}.nvm")
            world.ctl("board", "label", f"c{i}", "room=crash")
        snapshots = [world.wait_run(world.train("c0", epochs=n))["final_weights_hash"] for n in (1, 2)]
        common = ("--cohort", "room=crash", "--data", "shifted")
        train = ("--model", "small", "--epochs", 2, *FIXED[:-2])  # without the seed
        rollouts = [("board", ("rollout", *common, "--commit", "--canary", 34, "--phases", "100", "--max-drop", 100,
                               "--snapshot", s)) for s in snapshots]
        federated = ("snapshot", ("federated", *common, *train, "--rounds", 2, "--personalise", 1))
        sweep = ("snapshot", ("create", *common, *train, "--sweep", "mu_weight=1/-1/-3,-4", "--sweep", "batch=8,16",
                              "--strategy", "halving", "--eta", 2))
        kinds = [rollouts[0], federated, rollouts[1], sweep]
        left = {k: n for k, n in wanted.items() if k != "migration"}
        runs = set()
        for turn in range(60):
            if not any(left.values()):
                break
            # Those whose points are done have nothing left to show.
            open_kinds = [k for k in kinds if left[k[0]]] or kinds[1:2]
            own, kind = open_kinds[turn % len(open_kinds)]
            if own == "snapshot":
                kind = (*kind, "--seed", 100 + turn)  # of weights that are stored already no file is written
            campaign = begun_and_killed(world, rng, own, kind, left)
            seen = wait(world, campaign, timeout=300)
            undisturbed = wait(world, begin(world, *kind), timeout=300)
            assert outcome(world, seen) == outcome(world, undisturbed), (kind, left)
            runs.update(u["run_id"] for u in seen["units"] if u["run_id"])
            if own == "board":
                snapshot = kind[-1]
                world.wait_for("boards", lambda: world.online("c0", "c1", "c2"), 30)
                held = [world.ctl("weights", "pull", "--board", f"c{i}")["hash"] for i in range(3)]
                assert held == [snapshot] * 3, (held, snapshot)
        assert not any(left.values()), f"odtd did not die often enough: {left}"
        for run in runs:
            legal_run(world, run)
        print(f"{sum(wanted.values())} deaths, {len(runs)} runs, {no_orphan_stays(world)} orphans swept", flush=True)


def begun_and_killed(world, rng, own, kind, left):
    """Begins a campaign and lets odtd die in it, by what is left to do; odtd lives again at the end."""
    if own == "board" and left["board"]:
        # It is over soon: the first point is set before it begins.
        start_with(world, drawn(rng, POINTS["board"]))
        world.wait_for("boards", lambda: world.online("c0", "c1", "c2"), 30)
        campaign = begin(world, *kind)
        left["board"] -= died_before_the_end(world, campaign)
    else:
        campaign = begin(world, *kind)
        time.sleep(rng.uniform(0.02, 1.0))
        world.end("odtd", signal.SIGKILL)
        left["any"] = max(0, left["any"] - 1)
    for _ in range(rng.randint(2, 5)):
        able = [what for what in (own, "commit", "any") if left[what]]
        if not able:
            break
        what = rng.choice(able)
        if what == "any":
            world.end("odtd", signal.SIGKILL)
            world.restart_odtd()
            time.sleep(rng.uniform(0.02, 1.5))
            world.end("odtd", signal.SIGKILL)
            left["any"] -= 1
        elif start_with(world, drawn(rng, POINTS[what])) or died_before_the_end(world, campaign):
            left[what] -= 1
        else:
            break
    world.end("odtd", signal.SIGKILL)
    world.restart_odtd()
    return campaign


def test_crash_odtd_dies_inside(bin_dir):
    """Five moments, one of each kind."""
    kill_inside(bin_dir, {"migration": 1, "commit": 1, "snapshot": 1, "board": 1, "any": 1}, 6)
