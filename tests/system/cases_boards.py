"""Who may come in where: duplicate uids, expected boards, ports that are none."""
from world import World, free_port, refused

UID = "5300000000000001"


def test_boards_duplicate_uid_is_shown(bin_dir):
    """The second board of a uid stays outside; list, ports and doctor say where it is and what to do."""
    with World(bin_dir) as world:
        world.add_sim("first", UID)
        world.start("second", [str(world.bin / "odt-sim-board"), "--uid", UID, "--connect", world.address_of("listen")])
        port = world.wait_for("quarantine", lambda: next(
            (p for p in world.ctl("port", "list") if p["reason"]["code"] == "DUPLICATE_UID"), None), 20)
        assert port["board_uid"] == UID and "unplug" in port["reason"]["remedy"], port
        assert world.online("first") and len(world.ctl("board", "list")) == 1
        said = world.ctl_raw("board", "list")
        assert "quarantined" in said.stdout + said.stderr and UID in said.stdout, said
        findings = world.ctl("doctor")
        (duplicate,) = [f for f in findings if UID in f["text"] and "answers here and on" in f["text"]]
        assert duplicate["verdict"] == "WARN" and "unplug" in duplicate["remedy"], duplicate
        world.end("second")
        world.wait_for("gone from the list", lambda: not any(
            p["reason"].get("code") == "DUPLICATE_UID" for p in world.ctl("port", "list")), 45, every=1)
        assert world.online("first")


def test_boards_expected_uid(bin_dir):
    """A port adopted for one board does not take another; adopted again, it does."""
    with World(bin_dir) as world:
        number = free_port()
        world.start("sim", [str(world.bin / "odt-sim-board"), "--uid", UID, "--listen", f"127.0.0.1:{number}"])
        place = f"tcp:127.0.0.1:{number}"
        refused(world, "port", "adopt", place, "--expect-uid", "12", says=["--expect-uid", "16 to 32 hex digits"])
        world.ctl("port", "adopt", place, "--expect-uid", "5300000000000002")

        def port():
            return next(p for p in world.ctl("port", "list") if p["path"] == place)
        refused_by = world.wait_for("refusal", lambda: (lambda p: p if p["reason"].get("code") else None)(port()), 20)
        assert refused_by["reason"]["code"] == "UNEXPECTED_BOARD" and UID in refused_by["reason"]["text"], refused_by
        assert refused_by["expect_uid"] == "5300000000000002" and world.ctl("board", "list") == []
        world.ctl("port", "adopt", place, "--expect-uid", UID)
        world.wait_for("online", lambda: world.online(UID), 20)


def test_boards_ports_that_are_none(bin_dir):
    with World(bin_dir) as world:
        refused(world, "port", "adopt", "/etc/passwd", says=["/etc/passwd", "regular file"])
        refused(world, "port", "adopt", "/dev/null", says=["mem", "not a serial port"])
        refused(world, "port", "adopt", "/dev", says=["folder"])
        assert not world.ctl("port", "list") or all(not p["adopted"] for p in world.ctl("port", "list"))
