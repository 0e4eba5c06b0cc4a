"""Files of the user's become datasets: formats, reports, previews and what is refused."""
import struct
import wave
import zlib

from world import World, refused


def rows(n, kind=lambda i: "ab"[i % 2]):
    return "x,y,dead,kind\n" + "".join(f"{i},{i * 7 % 50 - 20},3,{kind(i)}\n" for i in range(n))


def test_import_reports(bin_dir):
    with World(bin_dir) as world:
        table = world.root / "table.csv"
        table.write_text(rows(100).replace("\n4,", "\n,") + "1,-13,3,b\n")
        refused(world, "data", "import", table, says=["table.csv: line 6, column 0 (x)", "--missing"])
        made = world.ctl("data", "import", table, "--missing", "zero", "--stratify")
        assert (made["name"], made["dtype"], made["shape"]) == ("table", "i8", [3]), made
        assert made["class_counts"] == [50, 51] and made["report"]["missing_cells"] == 1, made
        shown = world.ctl("data", "show", "table")
        assert shown["report"]["duplicates"] == 1 and shown["report"]["constant"] == 1, shown["report"]
        assert any("dead" in w for w in shown["warnings"]), shown["warnings"]
        assert [f["name"] for f in shown["report"]["features"]] == ["x", "y", "dead"]
        sample = world.ctl("data", "show", "table", "--sample", 0)
        assert sample["split"] == "train" and len(sample["values"]) == 3, sample
        x, y, dead = world.ctl("data", "show", "table", "--sample", 100)["values"]
        assert dead == 3 and (x, y) in {(i if i != 4 else 0, i * 7 % 50 - 20) for i in range(100)} | {(1, -13)}, (x, y)
        refused(world, "data", "show", "table", "--sample", 101, code=4, says=["101", "0 to 100"])
        text = world.ctl_raw("data", "show", "table", "--sample", 0).stdout
        assert f"class {sample['label']}" in text and "dead" in text, text


def test_import_of_several_files(bin_dir):
    with World(bin_dir) as world:
        folder = world.root / "runs"
        (folder / "late").mkdir(parents=True)
        (folder / "a.csv").write_text(rows(30))
        (folder / "late" / "b.csv").write_text(rows(20))
        (folder / ".hidden.csv").write_text("broken")
        made = world.ctl("data", "import", folder, "--split", "60,20,20")
        assert (made["name"], made["train"], made["heldout"], made["test"]) == ("runs", 30, 10, 10), made
        again = world.ctl("data", "import", folder / "a.csv", folder / "late" / "b.csv", "--split", "60,20,20",
                          "--name", "again")
        assert again["train"] == 30, again
        (folder / "late" / "b.csv").write_text("x,y,dead,kind\n1,2,3,a\n1,oops,3,b\n")
        refused(world, "data", "import", folder, code=6, says=["runs/late/b.csv: line 3, column 1 (y)", "oops"])
        refused(world, "data", "import", folder / "a.csv", folder / "late" / "b.csv", "--name", "z", code=6,
                says=["b.csv: line 3"])
        assert len(world.ctl("data", "list")) == 2


def test_regression_data(bin_dir):
    with World(bin_dir) as world:
        table = world.root / "weather.csv"
        table.write_text("a;b;t\n" + "".join(f"{i};{i % 7},5;{i / 4}\n" for i in range(40)))
        made = world.ctl("data", "import", table, "--target-column", "t")
        assert made["outputs"] == 1 and made["n_classes"] == 0 and made["dtype"] == "f32", made
        sample = world.ctl("data", "show", "weather", "--sample", 1)
        assert sample["targets"][0] * 4 == sample["values"][0], sample


def png_of(rows):
    """A gray picture."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(r) for r in rows)))
            + chunk(b"IEND", b""))


def test_data_infer_from_a_picture_and_from_sound(bin_dir):
    with World(bin_dir) as world:
        world.prepare(train=100, heldout=40, test=40)
        world.add_sim("d0", "6c00000000000001")
        picture = world.root / "one.PNG"
        pixels = [[(7 * y + 13 * x) % 256 for x in range(14)] for y in range(14)]
        picture.write_bytes(png_of(pixels))
        refused(world, "infer", "--board", "d0", "--file", picture, code=5, says=["no model"])
        world.wait_run(world.train("d0", epochs=1))

        def outputs(*args):
            return world.ctl("infer", "--board", "d0", *args)["samples"][0]["outputs"]
        by_hand = ",".join(str(v) for row in pixels for v in row)
        assert outputs("--file", picture) == outputs("--values", by_hand)
        # Twice as large, each pixel four times: the same after it was brought to the model's size.
        large = world.root / "large.png"
        large.write_bytes(png_of([[v for v in row for _ in range(2)] for row in pixels for _ in range(2)]))
        assert outputs("--file", large) == outputs("--values", by_hand)
        sound = world.root / "one.wav"
        with wave.open(str(sound), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(8000)
            out.writeframes(struct.pack("<200h", *range(200)))
        assert outputs("--file", sound) == outputs("--values", ",".join(map(str, range(196))))
        with wave.open(str(sound), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(8000)
            out.writeframes(struct.pack("<20h", *range(20)))
        refused(world, "infer", "--board", "d0", "--file", sound, code=2, says=["20 samples", "196"])
        large.write_bytes(picture.read_bytes()[:60])
        refused(world, "infer", "--board", "d0", "--file", large, code=2)
        large.write_bytes(b"no picture")
        refused(world, "infer", "--board", "d0", "--file", large, code=2, says=["neither a PNG nor a WAV"])
        large.write_bytes(b"")
        refused(world, "infer", "--board", "d0", "--file", large, code=2, says=["empty"])
        row = world.root / "row.csv"
        row.write_text("a line of words\n" + by_hand + "\n")
        assert outputs("--file", row, "--row", 1) == outputs("--values", by_hand)
