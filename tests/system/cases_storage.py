"""What odtd keeps: export of raw records, trash and purge, backup and restore."""
import csv
import json
import shutil
import subprocess

from world import World, refused


def trained(world, epochs=2):
    world.prepare(train=400, heldout=60, test=60)
    world.add_sim("sim", "5100000000000001")
    return world.wait_run(world.train("sim", epochs=epochs))


def test_storage_export_holds_every_step(bin_dir):
    """CSV and JSON lines have each step once, with the same values; a thinned run says that it is not whole."""
    with World(bin_dir) as world:
        run = trained(world)
        steps = run["steps_total"]
        table = world.root / "run.csv"
        done = world.ctl_raw("run", "export", run["id"], "--out", table)
        assert done.returncode == 0, done.stderr
        lines = table.read_text().splitlines()
        assert lines[0] == f"# run {run['id']}", lines[0]
        rows = list(csv.DictReader(lines[1:]))
        assert [int(r["step"]) for r in rows] == list(range(steps)), (len(rows), steps)
        out = world.ctl_raw("run", "export", run["id"], "--format", "jsonl").stdout.splitlines()
        head, records = json.loads(out[0]), [json.loads(x) for x in out[1:]]
        assert head == {"run": run["id"], "complete": True, "thinned_records": 0}, head
        assert len(records) == steps
        for row, record in zip(rows, records):
            assert int(row["loss_sum"]) == record["loss"]["sum"] and int(row["bits_0"]) == record["layers"][0]["bits"]
        part = world.ctl_raw("run", "export", run["id"], "--first-step", 5, "--last-step", 7).stdout.splitlines()
        assert len(part) == 2 + 3, part
        refused(world, "run", "export", "123456", code=4)
        refused(world, "run", "export", run["id"], "--out", "/no/such/folder/x.csv", says=["cannot be written"])
        refused(world, "run", "export", run["id"], "--first-step", 7, "--last-step", 5, code=2, says=["lies before"])
        device = world.root / "full"
        device.symlink_to("/dev/full")
        refused(world, "run", "export", run["id"], "--out", device, code=1, says=["cannot be written"])
        assert device.is_symlink(), "a device was replaced by a file"
        world.ctl("run", "pin", run["id"])
        refused(world, "run", "thin", run["id"], says=["pinned"])
        world.ctl("run", "unpin", run["id"])
        assert world.ctl("run", "thin", run["id"])["bytes_freed"] > 0
        thinned = world.ctl_raw("run", "export", run["id"]).stdout
        assert f"NOT COMPLETE: of {steps} records only rollups are left" in thinned, thinned[:300]


def test_storage_trash_and_purge(bin_dir):
    """Deleted things come back as they were; what is used is refused; purge frees the bytes it tells."""
    with World(bin_dir) as world:
        run = trained(world)
        refused(world, "data", "rm", "shifted", says=["used by 1 run"])
        world.ctl("run", "delete", run["id"])
        assert world.ctl("run", "list") == []
        refused(world, "run", "show", run["id"], code=4)
        (item,) = world.ctl("storage", "trash")
        assert item["kind"] == "run", item
        world.ctl("storage", "restore", run["id"][:12])
        again = world.run(run["id"])
        assert again["final_state_hash"] == run["final_state_hash"] and world.ctl("storage", "trash") == []
        world.ctl("run", "delete", run["id"])
        world.ctl("data", "rm", "shifted")
        before = world.ctl("storage", "show")
        told = world.ctl("storage", "purge", "--dry-run")
        assert len(world.ctl("storage", "trash")) == 2
        freed = world.ctl("storage", "purge")
        assert freed == told and int(freed["bytes_freed"]) > 0, (told, freed)
        assert freed["items"] == 2 and freed["telemetry_frames"] == run["steps_total"], freed
        after = world.ctl("storage", "show")
        assert int(before["blob_bytes"]) - int(after["blob_bytes"]) == int(freed["bytes_freed"]), (before, after, freed)
        assert world.ctl("storage", "trash") == []
        refused(world, "storage", "restore", run["id"][:12], code=4)


def test_storage_backup_and_restore(bin_dir):
    """A backup taken while a board trains holds what there was; another odtd starts on it, in a new epoch."""
    with World(bin_dir) as world:
        run = trained(world)
        world.add_sim("slow", "5100000000000002", "--step-delay-ms", 20)
        world.wait_steps(world.train("slow", epochs=20), 20)
        file = world.root / "backup.tar"
        done = world.ctl_raw("backup", file)
        assert done.returncode == 0 and file.exists(), done.stderr
        world.stop()
        target = world.root / "other"
        odtd = str(world.bin / "odtd")
        restored = subprocess.run([odtd, "restore", str(file), "--data", f"{target}/"], capture_output=True, text=True)
        assert restored.returncode == 0 and "restored and checked" in restored.stdout, restored.stderr
        twice = subprocess.run([odtd, "restore", str(file), "--data", str(target)], capture_output=True, text=True)
        assert twice.returncode == 1 and "not empty" in twice.stderr, twice.stderr
        torn = world.root / "torn.tar"
        torn.write_bytes(file.read_bytes()[:-3000])
        bad = subprocess.run([odtd, "restore", str(torn), "--data", str(world.root / "none")], capture_output=True, text=True)
        assert bad.returncode == 1 and not (world.root / "none").exists(), bad.stderr
        shutil.rmtree(world.data)
        target.rename(world.data)
        world.restart_odtd()
        again = world.run(run["id"])
        assert again["final_state_hash"] == run["final_state_hash"], again
        rows = world.ctl_raw("run", "export", run["id"]).stdout.splitlines()
        assert len(rows) == run["steps_total"] + 2, len(rows)
