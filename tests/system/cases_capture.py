"""Windows of a sensor: a simulated one that plays a file, and one that the host feeds to a QEMU board."""
import json
import pathlib
import re
import signal
import socket
import sqlite3
import struct

from world import World, free_port, now, refused

STEPS, CHANNELS = 4, 3


def wave(n):
    """Time steps of three channels, int16: the first tells the class by its mean."""
    return [((40 if t // STEPS % 2 else -40) + t % 5, t * 13 % 101 - 50, t % 7) for t in range(n)]


def packed(steps):
    return b"".join(struct.pack("<3h", *s) for s in steps)


def windows_of(steps):
    """As the importer cuts series: channel by channel."""
    return [[steps[at + t][c] for c in range(CHANNELS) for t in range(STEPS)] for at in range(0, len(steps) - STEPS + 1, STEPS)]


def make_model(world):
    """A model of such windows, with an input stage of its own."""
    table = world.root / "windows.csv"
    steps, rows = wave(800), ["".join(f"x{i}," for i in range(STEPS * CHANNELS)) + "kind"]
    for at in range(0, len(steps), STEPS):
        row = [v for step in steps[at:at + STEPS] for v in step]
        rows.append(",".join(map(str, row)) + ("," + ("high" if sum(row[::CHANNELS]) > 0 else "low")))
    table.write_text("\n".join(rows) + "\n")
    world.ctl("data", "import", table, "--series", "rows", "--channels", CHANNELS, "--window", STEPS, "--features", "raw")
    world.ctl("pc-train", "--data", "windows", "--hidden", 8, "--epochs", 2, "--name", "kinds", timeout=120)


def input_stage(world):
    """Of the manifest that odtd keeps with the model."""
    data = pathlib.Path(world.data)
    with sqlite3.connect(f"file:{data / 'control.db'}?mode=ro", uri=True) as db:
        rows = db.execute("select key, body from resource").fetchall()
    (body,) = [bytes(body) for key, body in rows if bytes(key).startswith(b"model.manifest.")]
    (hash_hex,) = re.findall(rb"[0-9a-f]{64}", body)
    (blob,) = [p for p in data.rglob(hash_hex.decode()) if p.is_file()]
    return json.loads(blob.read_text())["input"]


def quantised(stage, window):
    def channel(values, of):
        return values[of] if len(values) > 1 else values[0]
    out, p = [], stage["prequant"]
    for i, x in enumerate(window):
        offset, mult, k = (channel(p[key], i // STEPS) for key in ("offset", "mult", "k"))
        out.append(max(p["clip_lo"], min(p["clip_hi"], ((x * 256 + round(offset * 256)) * mult) >> (k + 8))))
    return out


def test_capture_of_a_sensor(bin_dir):
    with World(bin_dir) as world:
        make_model(world)
        steps = wave(400)
        file = world.root / "sensor.bin"
        file.write_bytes(packed(steps))
        world.add_sim("ears", "5100000000000021", "--sensor", file, "--sensor-channels", CHANNELS, "--sensor-rate", 2000, "--sensor-once")
        refused(world, "capture", "start", "ears", "--window", STEPS, says=["model"])
        refused(world, "capture", "start", "ears", "--model", "kinds", "--window", 5, says=["15", "12"])
        refused(world, "capture", "start", "ears", "--model", "kinds", "--window", STEPS, "--rule", "mode:0:1:2:0", says=["mode"])
        world.ctl("capture", "start", "ears", "--model", "kinds", "--window", STEPS, "--slots", 200, "--rule", "mean:0:-100:0:1",
                  "--rule", "mean:0:1:100:0", "--keep", "train", "--heldout-every", 5)
        seen = world.wait_for("all windows", lambda: (lambda c: c if c["captured"] == 100 else None)(world.ctl("capture", "list", "ears")), 30)
        assert (seen["kept_train"], seen["kept_heldout"], len(seen["windows"])) == (80, 20, 100), seen
        assert [w.get("label", 0) for w in seen["windows"]] == [(i + 1) % 2 for i in range(100)]
        stage = input_stage(world)
        for number in (1, 2, 57, 100):
            values = world.ctl("capture", "show", "ears", number)["values"]
            assert values == quantised(stage, windows_of(steps)[number - 1]), (number, values)
        assert world.ctl("capture", "stop", "ears")["active"] is False
        refused(world, "capture", "feed", "ears", file, says=["no capture"])


def test_capture_fed_to_a_board(bin_dir):
    with World(bin_dir) as world:
        make_model(world)
        world.add_qemu("m33", "mps2_an505", "5100000000000022")
        world.ctl("capture", "start", "m33", "--model", "kinds", "--window", STEPS, "--channels", CHANNELS, "--dtype", "s16", "--unscaled")
        file = world.root / "steps.bin"
        file.write_bytes(packed(wave(70)))
        fed = world.ctl("capture", "feed", "m33", file)
        assert (fed["steps"], fed["captured"]) == (70, 17), fed
        file.write_bytes(packed(wave(2)) + b"x")
        refused(world, "capture", "feed", "m33", file, says=["13 bytes", "6"])
        rows = world.ctl("capture", "list", "m33")["windows"]
        assert [w["id"] for w in rows] == list(range(2, 18)), rows
        world.ctl("capture", "label", "m33", 5, 1, "--keep", "heldout")
        refused(world, "capture", "label", "m33", 5, 0, says=["sample already"])
        refused(world, "capture", "label", "m33", 1, 0, says=["not in memory"])
        (kept,) = [w for w in world.ctl("capture", "list", "m33")["windows"] if w["id"] == 5]
        assert kept["kept"] == "HELDOUT" and kept["label"] == 1, kept


KEEP = ("--rule", "mean:0:-100:0:1", "--rule", "mean:0:1:100:0", "--keep", "train", "--heldout-every", 5)
# What the model was trained to tell the other way round.
SWAPPED = ("--rule", "mean:0:-100:0:0", "--rule", "mean:0:1:100:1", "--keep", "train", "--heldout-every", 5)


def ears(world, name, uid, *extra):
    """A simulated board with a sensor; its options, to start it again."""
    file = world.root / "sensor.bin"
    file.write_bytes(packed(wave(400)))
    options = ["--sensor", file, "--sensor-channels", CHANNELS, "--sensor-rate", 2000, *extra]
    world.add_sim(name, uid, *options)
    return options


def captures(world, board, rules=KEEP):
    world.ctl("capture", "start", board, "--model", "kinds", "--window", STEPS, "--slots", 50, *rules)
    world.wait_for("100 windows", lambda: world.ctl("capture", "list", board)["captured"] >= 100, 30)
    return world.ctl("capture", "stop", board)


def captured_run(world, board, epochs=4, *extra):
    return world.ctl("train", "--board", board, "--model", "kinds", "--captured", "--seed", 7, "--epochs", epochs, "--detach",
                     *extra)["id"]


def test_capture_trains_where_the_samples_are(bin_dir):
    """A run on what the board captured: as good as any other, but for replay and a power cycle."""
    with World(bin_dir) as world:
        make_model(world)
        world.ctl("pc-train", "--data", "windows", "--hidden", 4, "--epochs", 1, "--name", "others", timeout=120)
        options = ears(world, "ears", "5100000000000023", "--sensor-once", "--step-delay-ms", 25)
        train = ("train", "--board", "ears", "--model")
        refused(world, *train, "kinds", "--captured", says=["captured nothing"])
        refused(world, *train, "kinds", says=["--data", "--captured"])
        seen = captures(world, "ears", SWAPPED)
        assert (seen["kept_train"], seen["kept_heldout"]) == (80, 20), seen
        refused(world, *train, "kinds", "--captured", "--data", "windows", says=["one or the other"])
        refused(world, *train, "others", "--captured", says=["4 x 3 values", "others", "replace"])
        refused(world, *train, "kinds", "--captured", "--evaluate", says=["no test split"])
        refused(world, *train, "kinds", "--captured", "--streamed", says=["stay on the board"])

        undisturbed = world.wait_run(captured_run(world, "ears"))
        assert undisturbed["train_samples"] == 80 and undisturbed["heldout_best"]["total"] == 20, undisturbed
        assert undisturbed["spec"]["captured"] and not undisturbed["spec"]["dataset_id"], undisturbed["spec"]
        assert undisturbed["heldout_start"] == {"correct": 0, "total": 20}, undisturbed["heldout_start"]
        assert undisturbed["heldout_best"]["correct"] >= 18, undisturbed["heldout_best"]
        assert undisturbed["replay"] == "NOT_POSSIBLE", undisturbed["replay"]
        refused(world, "run", "replay", undisturbed["id"], says=["never left"])

        # Again, from the image's weights and not from those that the first run left; odtd is killed meanwhile.
        run = captured_run(world, "ears")
        world.wait_steps(run, 25)
        world.end("odtd", signal.SIGKILL)
        world.restart_odtd()
        ended = world.wait_run(run)
        assert ended["final_state_hash"] == undisturbed["final_state_hash"], ended
        assert ended["heldout_start"] == undisturbed["heldout_start"], ended

        # Without power the samples are gone, and the run says so.
        run = captured_run(world, "ears")
        world.wait_steps(run, 25)
        world.end("ears", signal.SIGKILL)
        world.wait_for("noticed", lambda: world.run(run)["state"] == "WAITING_BOARD", 10, every=0.1)
        world.sim_board("ears", "5100000000000023", [str(o) for o in options])
        failed = world.wait_run(run, want="FAILED")
        assert failed["reason"]["code"] == "CAPTURED_LOST" and "Capture again" in failed["reason"]["remedy"], failed


def test_capture_trains_on_a_qemu_board(bin_dir):
    with World(bin_dir) as world:
        make_model(world)
        world.add_qemu("m33", "mps2_an505", "5100000000000024")
        world.ctl("capture", "start", "m33", "--model", "kinds", "--window", STEPS, "--channels", CHANNELS, "--dtype", "s16", *KEEP)
        file = world.root / "steps.bin"
        file.write_bytes(packed(wave(240)))
        assert world.ctl("capture", "feed", "m33", file)["captured"] == 60
        ended = world.wait_run(captured_run(world, "m33", 3))
        assert ended["train_samples"] == 48 and ended["heldout_best"]["total"] == 12, ended


def lines_of(port, seconds):
    """What a board without a host writes, as far as it is whole lines."""
    text, until = b"", now() + seconds
    with socket.create_connection(("127.0.0.1", port), timeout=5) as board:
        board.settimeout(0.5)
        while now() < until:
            try:
                text += board.recv(4096)
            except TimeoutError:
                pass
    return text.decode("ascii").split("\r\n")[:-1]


def test_capture_classifies_alone(bin_dir):
    """Trained on its own windows, committed, and left alone: the class of its windows on the console, a line a second."""
    with World(bin_dir) as world:
        make_model(world)
        memory = ["--nvm", world.state / "alone.nvm"]
        options = ears(world, "alone", "5100000000000025", *memory)
        captures(world, "alone")
        ended = world.wait_run(captured_run(world, "alone", 6))
        assert ended["heldout_best"]["correct"] == ended["heldout_best"]["total"], ended["heldout_best"]
        world.ctl("board", "commit", "alone")
        world.end("alone", signal.SIGKILL)
        world.end("odtd")
        port = free_port()
        world.start("lonely", [str(world.bin / "odt-sim-board"), "--uid", "5100000000000025", "--listen", f"127.0.0.1:{port}",
                               *("80" if o == 2000 else str(o) for o in options)])  # none is missed on a busy machine
        world.wait_for("it listens", lambda: port_open(port), 10)
        lines = lines_of(port, 5)
        found = [re.fullmatch(r"window (\d+): class (\d)(, \d+ windows before it not shown)?", line) for line in lines]
        assert 3 <= len(found) <= 7 and all(found), lines
        assert all(int(m[2]) == int(m[1]) % 2 for m in found), lines
        assert any(m[3] for m in found), "not every one of 20 windows a second"


def port_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False
