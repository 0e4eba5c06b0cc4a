"""What boards print, searched events and the list of evaluations: through odtctl and as JSON over HTTP."""
import json
import signal
import subprocess

from cases_http import call, error, uid
from world import World, refused

UID = "5100000000000011"


def console(world, *args):
    """Lines as odtctl gives them, oldest first."""
    out = world.ctl_raw("--json", "board", "console", *args).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def texts(lines):
    return [line["text"] for line in lines]


def said(world, text, *args):
    world.wait_for(f"'{text}' on the console", lambda: any(text in t for t in texts(console(world, *args))), 20)


def test_console_keeps_what_boards_print(bin_dir):
    with World(bin_dir) as world:
        world.add_sim("one", UID)
        world.add_sim("two", UID[:-1] + "2")
        world.online("one", "two")
        world.ctl("board", "identify", "one", "--seconds", 1)
        said(world, "identify: this is the board", "one")
        assert any(t.startswith("online at tcp") for t in texts(console(world, "one"))), console(world)
        assert not any("identify" in t for t in texts(console(world, "two")))
        assert {line["board_uid"] for line in console(world)} == {UID, UID[:-1] + "2"}, "merged"
        assert texts(console(world, "--search", "IDENTIFY -nothing")) == ["identify: this is the board"]
        assert console(world, "--search", "-identify -online") == []
        follow = subprocess.Popen([str(world.bin / "odtctl"), "--address", f"unix:{world.socket_path}", "board", "console", "one",
                                   "--follow", "--lines", "1", "--no-times"], stdout=subprocess.PIPE, text=True)
        try:
            assert "identify" in follow.stdout.readline()
            world.end("one", signal.SIGKILL)
            assert "offline: " in follow.stdout.readline()
            follow.send_signal(signal.SIGINT)
            assert follow.wait(10) == 0
        finally:
            follow.kill()
        assert texts(console(world, "one", "--least-level", "3"))[-1].startswith("offline: ")
        before = console(world, "one", "--all")
        world.end("odtd", signal.SIGKILL)
        world.restart_odtd()
        world.online("two")
        after = console(world, "one", "--all")
        assert after == before, "lines did not outlive a killed odtd"
        world.wait_for("numbers that go on", lambda: console(world, "two")[-1]["seq"] > before[-1]["seq"], 20)
        refused(world, "board", "console", "nobody", says=("nobody",))


def test_console_refuses_what_it_cannot_do(bin_dir):
    with World(bin_dir) as world:
        ask = "v1.ConsoleService/ListConsole"

        def asked(**request):
            return call(world, ask.removeprefix("v1."), request)

        error(asked(page_size=1001), 400, "INVALID_ARGUMENT", "1001", "1000")
        error(asked(after_seq="1", before_seq="2"), 400, "INVALID_ARGUMENT", "only one")
        error(asked(search="x" * 201), 400, "INVALID_ARGUMENT", "201 bytes")
        error(asked(board_uids=[uid("00")]), 400, "INVALID_ARGUMENT", "board_uids")
        error(asked(least_level=6), 400, "INVALID_ARGUMENT", "0 to 5")
        status, page = asked(search="' OR 1=1 --", after_seq="18446744073709551615")
        assert status == 200 and page["lines"] == [], page


def test_events_are_searched_in_the_daemon(bin_dir):
    with World(bin_dir) as world:
        world.add_sim("one", UID)
        world.online("one")
        world.ctl("board", "label", "one", "shelf=blue-shelf")

        def search(**request):
            status, found = call(world, "EventService/SearchEvents", request)
            assert status == 200, found
            return found

        found = search(search="BLUE-SHELF", kinds=["board"])
        assert found["events"][0]["board"]["labels"] == {"shelf": "blue-shelf"}, found
        assert search(search="blue-shelf -one")["events"] == [], "-word left nothing out"
        assert search(kinds=["run_event"])["events"] == []
        everything = search()
        seqs = [int(e["event_seq"]) for e in everything["events"]]
        assert seqs == sorted(seqs, reverse=True) and seqs[-1] == int(everything["oldest_event_seq"]), seqs
        page = search(page_size=2)
        rest = search(page_size=1000, page_token=page["next_page_token"])
        assert [int(e["event_seq"]) for e in page["events"] + rest["events"]] == seqs, "pages overlap or leave a gap"
        assert search(after_seq=everything["newest_event_seq"])["events"] == []
        assert len(search(board_uid=uid(UID))["events"]) >= 2
        world.end("one", signal.SIGKILL)
        world.wait_for("the board is away", lambda: world.board("one")["status"] == "OFFLINE", 20)
        world.wait_for("its event", lambda: search(problems=True, search="offline")["events"], 20)
        bad = call(world, "EventService/SearchEvents", {"kinds": ["nonsense"]})
        error(bad, 400, "INVALID_ARGUMENT", "nonsense")
        error(call(world, "EventService/SearchEvents", {"page_token": "-3"}), 400, "INVALID_ARGUMENT", "token")


def test_evaluations_are_listed(bin_dir):
    with World(bin_dir) as world:
        world.add_sim("one", UID)
        world.online("one")
        assert world.ctl("eval", "list") == []
        world.prepare(200, 50, 100)
        world.wait_run(world.train("one", epochs=1))
        for split in ("heldout", "test"):
            world.ctl("eval", "--board", "one", "--data", "shifted", "--split", split)
        listed = world.ctl("eval", "list")
        assert [e["split"] for e in listed][:2] == ["test", "heldout"], listed
        assert all("confusion" not in e or e["confusion"] == [] for e in listed)
        only = world.ctl("eval", "list", "--board", "one", "--split", "heldout")
        assert only and all(e["split"] == "heldout" for e in only), only
        assert len(world.ctl("eval", "list", "--count", 1)) == 1
        refused(world, "eval", says=("--board",))
