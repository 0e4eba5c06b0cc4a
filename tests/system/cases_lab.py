"""Boards in a lab: reserved, out of service, replaced, their power; also by two at once, after kill -9, with bad input."""
import concurrent.futures
import json
import os
import signal
import subprocess
import time
import urllib.request

from world import World, refused


def config(world, text):
    path = world.root / "odtd.toml"
    path.write_text(text)
    world.end("odtd")
    world.start_odtd(listen_port=world.listen_port, extra=["--config", path])


def script(world, name, text):
    path = world.root / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def kinds(world, board):
    """What was done with it, newest first."""
    return [e["kind"] for e in world.ctl("board", "history", board)]


def test_lab_reservations(bin_dir):
    with World(bin_dir) as world:
        world.prepare(train=100, heldout=40, test=40)
        world.add_sim("r0", "6b00000000000001")
        world.add_sim("r1", "6b00000000000002")
        for bad, says in (("0s", "no time"), ("-1h", "no time"), ("soon", "no time"), ("31d", "30 days"), ("", "no time")):
            refused(world, "board", "reserve", "r0", "--for", bad, code=2, says=[says])
        refused(world, "board", "reserve", "nobody", code=4)
        refused(world, "board", "extend", "r0", code=5, says=["not reserved"])
        refused(world, "board", "reserve", "r0", "--note", "x" * 201, code=2, says=["note"])
        world.ctl("--owner", "ann", "board", "reserve", "r0", "r1", "--for", "1h", "--note", "measuring")
        text = refused(world, "--owner", "bob", "train", "--board", "r0", "--model", "small", "--data", "shifted", "--epochs", 1,
                       "--detach", code=5, says=["reserved by ann until", "measuring", "--take-over"])
        assert "59 min" in text or "60 min" in text, text
        refused(world, "--owner", "bob", "board", "reserve", "r0", code=5, says=["ann"])
        refused(world, "--owner", "bob", "board", "extend", "r0", code=5, says=["ann"])
        refused(world, "--owner", "bob", "board", "release", "r0", code=5, says=["ann"])
        refused(world, "--owner", "bob", "board", "reset", "r0", code=5, says=["ann"])
        refused(world, "--owner", "bob", "campaign", "create", "--cohort", "type=sim", "--model", "small", "--data", "shifted",
                code=5, says=["reserved by ann"])
        os.environ["ODT_OWNER"] = "ann"
        try:
            world.wait_run(world.train("r0", epochs=1))
            world.ctl("board", "extend", "r0", "--for", "2h")
        finally:
            del os.environ["ODT_OWNER"]
        world.end("odtd", signal.SIGKILL)
        world.restart_odtd()
        held = world.board("r0")["reservation"]
        assert held["owner"] == "ann" and held["note"] == "measuring", held
        assert 7000e6 < held["expire_time_us"] - time.time() * 1e6 < 7201e6, held
        # As JSON over HTTP, for somebody named by a header.
        ask = urllib.request.Request(f"http://{world.address_of('http')}/odt.api.v1.LabService/ReleaseBoard",
                                     json.dumps({"uid": "awAAAAAAAAE="}).encode(),
                                     {"Content-Type": "application/json", "X-Odt-Owner": "ann"})
        with urllib.request.urlopen(ask, timeout=20) as answer:
            assert not json.load(answer)["board"].get("reservation")
        assert world.board("r0")["reservation"] is None, world.board("r0")
        # Admins (on this machine everybody is) may take a board over; who and from whom is kept.
        world.ctl("--owner", "bob", "board", "reserve", "r1", "--for", "2s", "--take-over")
        event = world.ctl("board", "history", "r1")[0]
        assert (event["kind"], event["previous"], event["owner"], event["actor"]) == ("TAKEN_OVER", "ann", "bob", "local"), event
        world.wait_for("its time is over", lambda: kinds(world, "r1")[0] == "EXPIRED", 20)
        assert kinds(world, "r0") == ["RELEASED", "EXTENDED", "RESERVED"], kinds(world, "r0")
        assert "taken over from ann" in world.ctl_raw("board", "history", "r1").stdout


def test_lab_two_reserve_at_once(bin_dir):
    with World(bin_dir) as world:
        world.add_sim("r0", "6b00000000000011")
        for turn in range(3):
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                codes = list(pool.map(lambda i: world.ctl_raw("--owner", f"user{i}", "board", "reserve", "r0").returncode, range(6)))
            assert sorted(codes) == [0, 5, 5, 5, 5, 5], codes
            owner = f"user{codes.index(0)}"
            assert world.board("r0")["reservation"]["owner"] == owner, (codes, world.board("r0"))
            world.ctl("--owner", owner, "board", "release", "r0")


def test_lab_maintenance(bin_dir):
    with World(bin_dir) as world:
        config(world, "[alerts]\noffline = { threshold = 5 }\n")
        world.prepare(train=100, heldout=40, test=40)
        world.add_sim("m0", "6b00000000000021")
        world.add_sim("m1", "6b00000000000022")
        world.ctl("board", "maintenance", "m0", "on", "--note", "new cable")
        run = world.train("m0", epochs=1)
        held = world.wait_for("it says why it waits", lambda: (
            lambda r: r if r["reason"]["code"] else None)(world.run(run)), 20)
        assert held["state"] == "QUEUED" and held["reason"]["code"] == "BOARD_IN_MAINTENANCE", held
        assert "new cable" in held["reason"]["text"], held
        world.end("odtd", signal.SIGKILL)
        world.start_odtd(listen_port=world.listen_port, extra=["--config", world.root / "odtd.toml"])
        assert world.board("m0")["maintenance"]["note"] == "new cable"
        assert world.run(run)["state"] == "QUEUED"
        # Both go away; of the one in maintenance nothing is said.
        world.end("m0")
        world.end("m1")
        fired = lambda: sorted(a["subject"] for a in world.ctl("alert", "list"))  # noqa: E731
        world.wait_for("an alert of the other", lambda: fired() == ["m1"], 40)
        world.ctl("board", "maintenance", "m1", "on")
        world.wait_for("quiet", lambda: fired() == [], 20)
        world.ctl("board", "maintenance", "m0", "off")
        world.wait_for("it counts from now on", lambda: fired() == ["m0"], 40)
        world.sim_board("m0", "6b00000000000021", [])
        done = world.wait_run(run)
        assert done["reason"]["code"] == "", done
        assert kinds(world, "m0")[:2] == ["MAINTENANCE_OFF", "MAINTENANCE_ON"]
        refused(world, "board", "maintenance", "m0", "maybe", code=2)


def test_lab_place_and_replace(bin_dir):
    with World(bin_dir) as world:
        world.prepare(train=100, heldout=40, test=40)
        world.add_sim("old", "6b00000000000031")
        world.add_sim("new", "6b00000000000032")
        world.ctl("board", "place", "old", "rig 7")
        refused(world, "board", "place", "new", "rig 7", code=5, says=["that of board old", "board replace"])
        refused(world, "board", "place", "new", "-x y", code=2)
        refused(world, "board", "replace", "old", "old", code=2, says=["itself"])
        refused(world, "board", "replace", "old", "nobody", code=4)
        world.ctl("board", "label", "old", "site=lab", "motor=7")
        world.wait_run(world.train("old", epochs=1))
        pulled = world.ctl("weights", "pull", "old", "--alias", "rig7")
        world.ctl("weights", "restore", "rig7", "--board", "old")
        assert world.board("old")["target_snapshot"] == pulled["hash"], world.board("old")
        done = world.ctl("board", "replace", "old", "new", "--restore")
        assert done["new_board"]["place"] == "rig 7" and "place" not in {k: v for k, v in done["old_board"].items() if v}, done
        world.end("odtd", signal.SIGKILL)
        world.restart_odtd()
        now = world.board("new")
        assert (now["place"], now["labels"], now["target_snapshot"]) == ("rig 7", {"site": "lab", "motor": "7"}, pulled["hash"]), now
        assert kinds(world, "old")[0] == "REPLACED" and kinds(world, "new")[0] == "REPLACES"
        assert world.ctl("board", "history", "new")[0]["other_uid"] == "6b00000000000031"
        world.wait_for("new online", lambda: world.online("new"), 20)
        again = world.ctl("weights", "pull", "new")
        assert again["hash"] == pulled["hash"], again


def test_lab_power(bin_dir):
    with World(bin_dir) as world:
        log = world.root / "relay.log"
        good = script(world, "relay", f'echo "$@" >> {log}\n')
        hang = script(world, "hang", f"echo begun >> {log}\ntrap '' TERM\nsleep 600\n")
        flood = script(world, "flood", "head -c 5000000 /dev/zero | tr '\\0' x\necho\necho last words\nexit 3\n")
        config(world, f'''
[[power]]
name = "good"
boards = ["rig 1"]
command = ["{good}", "cycle", "{{place}}; touch {world.root}/pwned", "{{uid}}"]
[[power]]
name = "hang"
boards = ["p1"]
command = ["{hang}"]
timeout_s = 2
[[power]]
name = "flood"
boards = ["p2"]
command = ["{flood}"]
[[power]]
name = "gone"
boards = ["6b00000000000043"]
command = ["/nonexistent/relay"]
''')
        for i in range(5):
            world.add_sim(f"p{i}", f"6b0000000000004{i}")
        world.ctl("board", "place", "p0", "rig 1")
        done = world.ctl("board", "power-cycle", "p0")
        assert done["ok"] and done["profile"] == "good", done
        assert log.read_text() == f"cycle rig 1; touch {world.root}/pwned 6b00000000000040\n"
        assert not (world.root / "pwned").exists()
        refused(world, "board", "power-cycle", "p1", code=1, says=["killed after 2 s"])
        text = refused(world, "board", "power-cycle", "p3", code=1, says=["/nonexistent/relay", "No such file"])
        assert "configuration" in text, text
        flooded = world.ctl_raw("--json", "board", "power-cycle", "p2")
        answer = json.loads(flooded.stdout)
        assert flooded.returncode == 1 and answer["exit_code"] == 3 and len(answer["output"]) <= 2000, answer
        assert "last words" in answer["output"], answer
        refused(world, "board", "power-cycle", "p4", code=5, says=["no power profile", "[[power]]"])
        refused(world, "board", "power-cycle", "nobody", code=4)
        assert kinds(world, "p1") == ["POWER_CYCLED"] and not world.ctl("board", "history", "p1")[0]["power"]["ok"]
        profiles = {p["name"]: p for p in world.ctl("board", "power-profiles")["profiles"]}
        assert sorted(profiles) == ["flood", "gone", "good", "hang"], profiles
        # kill -9 in the middle: nothing hangs on to the board afterwards, and that it began is known.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            cut = pool.submit(world.ctl_raw, "board", "power-cycle", "p1")
            before = log.read_text().count("begun")
            world.wait_for("it has begun", lambda: log.read_text().count("begun") > before, 20, every=0.05)
            world.end("odtd", signal.SIGKILL)
            assert cut.result().returncode != 0
        world.start_odtd(listen_port=world.listen_port, extra=["--config", world.root / "odtd.toml"])
        power = world.wait_for("the board is back", lambda: world.board("p1").get("power"), 20)
        assert power["last_time_us"] > 0 and not power.get("running"), power


def test_lab_bad_power_profiles(bin_dir):
    with World(bin_dir) as world:
        world.end("odtd")
        path = world.root / "bad.toml"
        for text, says in (('[[power]]\nname = "x"\n', "without command or uhubctl"),
                           ('[[power]]\ncommand = ["/bin/true"]\n', "without name"),
                           ('[[power]]\nname = "x"\ncommand = ["true"]\n', "absolute path"),
                           ('[[power]]\nname = "x"\ncommand = "/bin/true"\n', "array of strings"),
                           ('[[power]]\nname = "x"\nuhubctl = "1-1;reboot"\n', "LOCATION:PORT"),
                           ('[[power]]\nname = "x"\ncommand = ["/bin/true"]\ntimeout_s = 0\n', "1 to 300"),
                           ('[[power]]\nname = "x"\nshell = "reboot"\n', "unknown key")):
            path.write_text(text)
            done = subprocess.run([str(world.bin / "odtd"), "--config", str(path)], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=30)
            assert done.returncode != 0 and says in done.stderr, (text, done.stderr)
