"""Windows of a sensor: a simulated one that plays a file, and one that the host feeds to a QEMU board."""
import json
import pathlib
import re
import sqlite3
import struct

from world import World, refused

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
