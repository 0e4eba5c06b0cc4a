"""Bad input: one clear error each, non-zero exit, nothing half-done."""
import os
import resource
import socket
import sqlite3
import subprocess

from world import DATA, World, free_port, refused


def test_bad_files(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        models = len(world.ctl("model", "list"))
        datasets = len(world.ctl("data", "list"))
        onnx = next(world.data.glob("blobs/**/*"), None)
        assert onnx is not None
        good = world.ctl("model", "show", "small")
        world.ctl("weights", "list")
        blob = next(p for p in world.data.rglob(good["onnx_hash"]) if p.is_file())
        whole = blob.read_bytes()
        for size in (0, 1, len(whole) // 2, len(whole) - 1):
            file = world.root / f"truncated-{size}.onnx"
            file.write_bytes(whole[:size])
            refused(world, "model", "add", file, says=[".onnx"])
        csv = world.root / "text.csv"
        csv.write_text("a,b,label\n1,2,0\n3,broken,1\n")
        refused(world, "data", "import", csv, "--name", "csv", "--train", 1, "--heldout", 0,
                "--test", 1, says=["line 3", "(b)"])
        refused(world, "data", "import", csv, "--format", "idx", "--name", "x", "--labels", csv, "--train", 1,
                says=["text.csv"])
        refused(world, "data", "import", world.root / "none.gz", "--format", "idx", "--name", "x", "--labels", csv,
                "--train", 1, says=["none.gz"])
        refused(world, "data", "import", DATA / "train-images-idx3-ubyte.gz", "--name", "x",
                "--labels", DATA / "t10k-labels-idx1-ubyte.gz", "--train", 1, says=["60000", "10000"])
        assert len(world.ctl("model", "list")) == models
        assert len(world.ctl("data", "list")) == datasets
        assert not list(world.data.rglob("*.tmp*")), "half-written files stay behind"


def test_bad_requests(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("sim", "5100000000000001")
        world.add_sim("tiny", "5100000000000002", "--ram", 8000)
        world.add_sim("narrow", "5100000000000003", "--ram", 11000)
        common = ("--model", "small", "--data", "shifted", "--epochs", 1)
        refused(world, "train", "--board", "nobody", *common, code=4, says=["nobody"])
        refused(world, "train", "--board", "simm", *common, code=4, says=["sim"])
        refused(world, "train", "--board", "tiny", *common, code=5, says=["needs", "bytes", "8000"])
        refused(world, "train", "--board", "narrow", *common, "--k", 15, code=5, says=["11000", "would fit: k 8"])
        refused(world, "train", "--board", "sim", "--model", "smal", "--data", "shifted", code=4, says=["small"])
        refused(world, "train", "--board", "sim", *common, "--policy", "fixed", "--mu-weight", 9, says=["mu_weight", "4"])
        refused(world, "train", "--board", "sim", *common, "--policy", "fixed", "--k", 17, says=["k", "16"])
        refused(world, "train", "--board", "sim", *common, "--batch", 100000, says=["batch"])
        refused(world, "trian", code=2, says=["train"])
        refused(world, "run", "show", "abcdef", code=4)
        assert world.ctl("run", "list") == []
        # What creation accepts also fits: the board of 11000 bytes takes the run in its smallest form.
        world.wait_run(world.ctl("train", "--board", "narrow", *common, "--detach")["id"])
        # A port may be adopted before its board is plugged in; until then the list says why it is not open.
        world.ctl("port", "adopt", "/dev/does-not-exist-at-all")
        port = world.wait_for("GONE", lambda: next((p for p in world.ctl("port", "list") if p["state"] == "GONE"), None), 10)
        assert port["path"] == "/dev/does-not-exist-at-all" and port["reason"]["remedy"], port


def odtd(world, *args):
    return subprocess.run([str(world.bin / "odtd"), *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=20)


def test_odtd_refuses_to_start(bin_dir):
    with World(bin_dir) as world:
        other = world.root / "other"
        taken = world.address_of("http")
        done = odtd(world, "--data-dir", other, "--http", taken, "--grpc", "127.0.0.1:0", "--socket", world.root / "o.sock")
        assert done.returncode != 0 and taken.split(":")[1] in done.stderr + done.stdout, done
        taken = world.address_of("listen")
        done = odtd(world, "--data-dir", other, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--listen", taken,
                    "--socket", world.root / "o.sock")
        assert done.returncode != 0 and taken.split(":")[1] in done.stderr + done.stdout, done
        done = odtd(world, "--data-dir", world.data, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--socket",
                    world.root / "o.sock")
        assert done.returncode != 0 and str(world.data) in done.stderr + done.stdout, done
        done = odtd(world, "--data-dir", other, "--htp", "127.0.0.1:0")
        assert done.returncode != 0 and "--htp" in done.stderr + done.stdout, done
        config = world.root / "bad.toml"
        config.write_text("[http]\nlisen = 1\n")
        done = odtd(world, "--config", config)
        assert done.returncode != 0 and "bad.toml" in done.stderr + done.stdout, done


def test_database_from_a_newer_version(bin_dir):
    with World(bin_dir) as world:
        world.end("odtd")
        database = world.data / "control.db"
        connection = sqlite3.connect(database)
        connection.execute("PRAGMA user_version = 9999")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        before = database.read_bytes()
        done = odtd(world, "--data-dir", world.data, "--http", f"127.0.0.1:{free_port()}", "--grpc", "127.0.0.1:0",
                    "--socket", world.root / "o.sock")
        said = done.stderr + done.stdout
        assert done.returncode != 0 and "control.db" in said and "9999" in said, done
        assert database.read_bytes() == before


def test_idle_clients_do_not_use_up_the_descriptors(bin_dir):
    """Under the usual soft limit, more idle clients than it allows: odtd goes on answering."""
    with World(bin_dir) as world:
        world.end("odtd")
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        try:
            world.restart_odtd()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        host, port = world.address_of("grpc").split(":")
        clients = [socket.create_connection((host, int(port)), timeout=5) for _ in range(400)]
        assert world.ctl("board", "list") == []
        for client in clients:
            client.close()
        assert world.ctl("board", "list") == []


def test_daemon_down(bin_dir):
    with World(bin_dir) as world:
        world.end("odtd")
        refused(world, "board", "list", code=3, says=["odtd"])
        done = world.ctl_raw("doctor")
        assert done.returncode != 0 and "FAIL" in done.stdout, done
        assert os.path.exists(world.data / "control.db")
