"""Snapshots: where they come from, what differs, back to boards and cohorts, files of other programs, out of the way."""
import io
import json
import pathlib
import shutil
import struct
import subprocess
import tempfile
import zipfile

from world import World, refused


def read_npy(content):
    """(values, shape) of a version 1 .npy of little-endian integers."""
    assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
    size = struct.unpack("<H", content[8:10])[0]
    head = eval(content[10:10 + size], {"__builtins__": {}})  # a literal of our own making
    kind = {"|i1": "b", "<i2": "h", "<i4": "i"}[head["descr"]]
    body = content[10 + size:]
    return struct.unpack(f"<{len(body) // struct.calcsize(kind)}{kind}", body), head["shape"]


def labelled(world, name, uid, *labels, delay_ms=0):
    world.add_sim(name, uid, *(("--step-delay-ms", delay_ms) if delay_ms else ()))
    world.ctl("board", "label", name, *labels)


def test_snapshots_chain_and_diff(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("one", "6100000000000001")
        first = world.wait_run(world.train("one"))
        second = world.wait_run(world.train("one", "--start", first["final_weights_hash"], "--name", "again"))
        a, b = first["final_weights_hash"], second["final_weights_hash"]
        assert a != b
        log = world.ctl("weights", "log", b)
        assert [e["snapshot"]["hash"] for e in log["entries"]] == [b, a], log
        assert all(e["link"] == "OK" for e in log["entries"]), log
        assert log["end"] == "MODEL", log
        assert log["entries"][0]["snapshot"]["origin"] == "run"
        # An alias and a note are no part of the chain.
        world.ctl("weights", "alias", a, "golden")
        world.ctl("weights", "note", "golden", "as delivered")
        assert world.ctl("weights", "log", b)["entries"][1]["link"] == "OK"
        diff = world.ctl("weights", "diff", "golden", b, "--channels")
        assert diff["all"]["changed"] > 0 and diff["all"]["linf"] > 0, diff["all"]
        for layer in diff["layers"]:
            for key in ("values", "changed", "l1", "hamming_bits"):
                assert sum(c[key] for c in layer["channels"]) == layer["weights"][key], (key, layer)
            assert max(c["linf"] for c in layer["channels"]) == layer["weights"]["linf"]
        assert world.ctl("weights", "diff", a, a)["all"]["changed"] == 0
        # The weights' bytes gone: the chain says so.
        blob = next(p for p in world.root.rglob(f"*{a[2:]}*") if p.is_file())
        blob.write_bytes(b"ODTW" + b"\0" * 100)
        broken = world.ctl_raw("weights", "log", b)
        assert broken.returncode == 1 and "CONTENT LOST" in broken.stdout, (broken.stdout, broken.stderr)


def test_snapshots_of_other_models_do_not_compare(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.ctl("pc-train", "--data", "source", "--hidden", 8, "--epochs", 1, "--seed", 1, "--name", "other", timeout=300)
        world.add_sim("one", "6100000000000002")
        a = world.wait_run(world.train("one"))["final_weights_hash"]
        run = world.ctl("train", "--board", "one", "--model", "other", "--data", "shifted", "--epochs", 1, "--detach")["id"]
        b = world.wait_run(run)["final_weights_hash"]
        refused(world, "weights", "diff", a, b, code=5, says=("different models",))
        refused(world, "weights", "diff", a, "nosuch", code=4, says=("nosuch",))


def test_snapshots_restored_to_a_cohort(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        labelled(world, "a", "6100000000000003", "site=lab")
        labelled(world, "b", "6100000000000004", "site=lab", "broken=yes", delay_ms=20)
        labelled(world, "c", "6100000000000005", "site=roof")
        best = world.wait_run(world.train("a"))["final_weights_hash"]
        world.ctl("weights", "alias", best, "best")
        # b's own weights are nowhere else: a cancelled run's.
        run = world.train("b", epochs=400)
        world.wait_steps(run, 60)
        world.ctl("run", "cancel", run)
        world.wait_run(run, want="CANCELLED")
        would = world.ctl("weights", "restore", "best", "--boards", "site=lab,!broken", "--dry-run")
        assert [b["outcome"] for b in would["boards"]] == ["HELD_IT"], would
        before = {s["hash"] for s in world.ctl("weights", "list")}
        done = world.ctl("weights", "restore", "best", "--boards", "site=lab")
        outcome = {world.board(b["board_uid"])["name"]: b for b in done["boards"]}
        assert set(outcome) == {"a", "b"}, outcome
        assert outcome["a"]["outcome"] == "HELD_IT" and outcome["b"]["outcome"] == "DONE", outcome
        saved = outcome["b"]["saved"]
        assert saved and saved not in before
        kept = world.ctl("weights", "show", saved)
        assert kept["origin"] == "automatic: before a restore" and kept["run_id"] == run, kept
        assert world.ctl("weights", "pull", "b")["hash"] == best
        assert world.ctl("weights", "pull", "c")["hash"] != best if world.board("c")["model_hash"] else True
        # What was saved brings b back to where it was.
        world.ctl("weights", "restore", saved, "--board", "b")
        assert world.ctl("weights", "pull", "b")["hash"] == saved
        refused(world, "weights", "restore", "best", "--boards", "site=moon", code=4, says=("no board is in the cohort",))
        refused(world, "weights", "restore", "best", "--boards", "site=lab,", code=2, says=("empty term",))
        refused(world, "weights", "restore", "best", "--board", "a", "--commit", code=5, says=("non-volatile",))
        # One that has no memory refuses for itself, and says so; the call fails as a whole.
        partly = world.ctl_raw("weights", "restore", "best", "--boards", "site=lab", "--commit")
        assert partly.returncode == 1 and "2 of 2 boards" in partly.stderr, (partly.stdout, partly.stderr)


def test_snapshots_commit_with_restore(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        nvm = world.state / "k.nvm"
        world.add_sim("k", "6100000000000006", "--nvm", nvm)
        best = world.wait_run(world.train("k"))["final_weights_hash"]
        world.wait_run(world.train("k", epochs=2))
        done = world.ctl("weights", "restore", best, "--board", "k", "--commit")
        assert done["nvm"]["sequence"] >= 1 and done["nvm"]["hash"] == best, done["nvm"]


def test_snapshots_as_files(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("one", "6100000000000007")
        weights = world.wait_run(world.train("one"))["final_weights_hash"]
        out = pathlib.Path(tempfile.mkdtemp(dir=world.root))
        world.ctl("weights", "export", weights, "--format", "json", "-o", out / "w.json")
        layers = json.loads((out / "w.json").read_text())["layers"]
        world.ctl("weights", "export", weights, out / "w.npz")
        with zipfile.ZipFile(io.BytesIO((out / "w.npz").read_bytes())) as archive:
            assert archive.testzip() is None
            for i, layer in enumerate(layers):
                values, shape = read_npy(archive.read(f"layer{i}.weight.npy"))
                assert list(values) == layer["weights"] and list(shape) == layer["shape"], i
                offsets, _ = read_npy(archive.read(f"layer{i}.offset.npy"))
                assert list(offsets) == layer["offsets"], i
        world.ctl("weights", "export", weights, out / "w.h")
        sums = " ".join(f"{sum(layer['weights']) + sum(layer['offsets'])}" for layer in layers)
        code = '#include "w.h"\n#include <stdio.h>\nint main(void) {\n'
        for i, layer in enumerate(layers):
            code += "  long s%d = 0;\n" % i
            for part, count in (("weight", len(layer["weights"])), ("offset", len(layer["offsets"]))):
                code += "  for (int n = 0; n < %d; ++n) s%d += odt_layer%d_%s[n];\n" % (count, i, i, part)
        code += '  printf("%s\\n"%s);\n}\n' % (" ".join(["%ld"] * len(layers)), "".join(f", s{i}" for i in range(len(layers))))
        (out / "main.c").write_text(code)
        compiler = shutil.which("cc") or shutil.which("gcc")
        subprocess.run([compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main"], cwd=out, check=True)
        assert subprocess.run([out / "main"], capture_output=True, text=True, check=True).stdout.strip() == sums
        world.ctl("weights", "export", weights, out / "w.onnx", timeout=120)
        assert (out / "w.onnx").stat().st_size > 1000
        refused(world, "weights", "export", weights, out / "x.npz", "--exact", code=2, says=("--exact",))


def test_snapshots_pruned_and_deleted(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("one", "6100000000000008")
        hashes = [world.wait_run(world.train("one", epochs=epochs))["final_weights_hash"] for epochs in (1, 2, 3, 5)]
        assert len(set(hashes)) == 4, hashes
        pinned, aliased, plain, newest = hashes
        world.ctl("weights", "pin", pinned)
        world.ctl("weights", "alias", aliased, "golden")
        refused(world, "weights", "rm", pinned, code=5, says=("pinned",))
        would = world.ctl("weights", "prune", "--keep", 1, "--older-than-days", 0, "--dry-run")
        assert [s["hash"] for s in would["pruned"]] == [plain] and would["kept"] == 3, would
        assert would["bytes"] == world.ctl("weights", "show", plain)["bytes"]
        assert plain in [s["hash"] for s in world.ctl("weights", "list")], "a dry run"
        world.ctl("weights", "prune", "--keep", 1, "--older-than-days", 0)
        left = [s["hash"] for s in world.ctl("weights", "list")]
        assert sorted(left) == sorted([pinned, aliased, newest]), left
        world.ctl("weights", "pin", pinned, "--remove")
        world.ctl("weights", "rm", pinned)
        assert pinned not in [s["hash"] for s in world.ctl("weights", "list")]
