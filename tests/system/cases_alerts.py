"""Alerts and settings: a board that is gone, a webhook that fails, silences, settings that reach a run."""
import http.server
import json
import signal
import subprocess
import threading

from world import FIXED, World, free_port, refused


class Hook:
    """A small HTTP server: answers with each of `statuses` once, then with the last one for ever."""

    def __init__(self, statuses):
        self.messages = []
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = statuses[min(len(hook.messages), len(statuses) - 1)]
                hook.messages.append(json.loads(body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/alerts"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def configure(world, text):
    path = world.root / "odtd.toml"
    path.write_text(text)
    world.start_odtd(listen_port=world.listen_port, extra=["--config", path])


def alert(world, handle):
    """{} where there is none."""
    rule, subject = handle.split("/")
    for row in world.ctl("alert", "list", "--all"):
        if row["rule"] == rule.upper() and row["subject"] == subject:
            return row
    return {}


def wait_alert(world, handle, state, timeout=60):
    return world.wait_for(f"{handle} {state}",
                          lambda: (lambda a: a if a.get("state") == state else None)(alert(world, handle)), timeout)


def test_alerts_board_gone_acknowledged_and_back(bin_dir):
    with World(bin_dir) as world, Hook([500, 500, 200]) as hook:
        world.end("odtd")
        configure(world, f'[alerts]\nwebhook_url = "{hook.url}"\noffline = {{ threshold = 5 }}\n')
        world.add_sim("a0", "6a00000000000001")
        assert world.ctl("alert", "list") == []
        world.end("a0")
        fired = wait_alert(world, "offline/a0", "FIRING")
        assert fired["reason"]["code"] == "BOARD_OFFLINE" and fired["count"] == 1, fired
        assert fired["board_uid"] == "6a00000000000001", fired
        told = world.wait_for("the third attempt is taken", lambda: (
            lambda a: a if a["delivery"]["state"] == "DELIVERED" else None)(alert(world, "offline/a0")), 30)
        assert told["delivery"]["attempts"] == 3, told
        assert [m["event"] for m in hook.messages] == ["firing"] * 3, hook.messages
        assert hook.messages[2]["alert"]["id"] == fired["id"], hook.messages
        assert int(hook.messages[2]["event_seq"]) > 0, hook.messages

        world.ctl("alert", "ack", "offline/a0", "--note", "on the bench")
        world.end("odtd", signal.SIGKILL)
        configure(world, f'[alerts]\nwebhook_url = "{hook.url}"\noffline = {{ threshold = 5 }}\n')
        kept = alert(world, "offline/a0")
        assert (kept["id"], kept["ack_note"], kept["state"]) == (fired["id"], "on the bench", "FIRING"), kept

        world.sim_board("a0", "6a00000000000001", [])
        over = wait_alert(world, "offline/a0", "RESOLVED")
        assert over["resolution"] == "the board is back" and over["count"] == 1, over
        world.wait_for("the end is told", lambda: hook.messages[-1]["event"] == "resolved", 20)
        refused(world, "alert", "ack", "offline/a0", code=5, says=["does not fire"])


def test_alerts_silence_rules_and_bad_input(bin_dir):
    with World(bin_dir) as world, Hook([200]) as hook:
        world.end("odtd")
        configure(world, f'[alerts]\nwebhook_url = "{hook.url}"\n')
        world.add_sim("a0", "6a00000000000002")
        rules = {r["rule"]: r for r in world.ctl("alert", "rules")["settings"]["rules"]}
        assert len(rules) == 8 and rules["OFFLINE"]["threshold"] == 60, rules
        refused(world, "alert", "rule", "set", "offline", "--threshold", 4, code=2, says=["5 to 604800"])
        refused(world, "alert", "rule", "set", "ofline", "--threshold", 9, code=2, says=["accuracy_drop"])
        refused(world, "alert", "rule", "set", "firmware-skew", "--threshold", 9, code=2, says=["no threshold"])
        refused(world, "alert", "silence", "--for", "1h", code=2, says=["--rule"])
        refused(world, "alert", "silence", "--rule", "offline", "--for", "soon", code=2, says=["30m"])
        refused(world, "alert", "silence", "--board", "nobody", "--for", "1h", code=4)
        refused(world, "alert", "show", "offline/a0", code=4)
        world.ctl("alert", "rule", "set", "offline", "--threshold", 5)
        quiet = world.ctl("alert", "silence", "--board", "a0", "--for", "1h", "--note", "moving house")["silence"]
        world.end("a0")
        silent = wait_alert(world, "offline/a0", "FIRING")
        assert silent["silenced_until_time_us"] == quiet["until_time_us"], silent
        assert silent["delivery"]["state"] == "UNSPECIFIED" and hook.messages == [], silent
        world.end("odtd")
        configure(world, f'[alerts]\nwebhook_url = "{hook.url}"\n')
        after = world.ctl("alert", "rules")["settings"]
        assert {r["rule"]: r["threshold"] for r in after["rules"]}["OFFLINE"] == 5, after
        assert [s["note"] for s in after["silences"]] == ["moving house"], after
        world.ctl("alert", "unsilence", quiet["id"])
        world.wait_for("what still fires is told", lambda: len(hook.messages) == 1, 20)
        assert world.ctl("alert", "test")["delivered"] and hook.messages[-1]["event"] == "test", hook.messages
        world.ctl("alert", "rule", "set", "offline", "--disable")
        assert alert(world, "offline/a0")["resolution"] == "the rule was switched off"


def test_alerts_no_webhook_is_said(bin_dir):
    with World(bin_dir) as world:
        refused(world, "alert", "test", code=5, says=["no webhook", "webhook_url"])
        world.end("odtd")
        path = world.root / "bad.toml"
        for text, says in (('[alerts]\nwebhook_url = "ftp://x"\n', "http"), ("[alerts]\noffline = { threshold = 1 }\n", "5 to"),
                           ("[alerts]\noffine = { threshold = 9 }\n", "accuracy_drop")):
            path.write_text(text)
            done = subprocess.run([str(world.bin / "odtd"), "--config", str(path)], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=30)
            assert done.returncode != 0 and says in done.stderr, done


def test_alerts_settings_reach_a_run(bin_dir):
    with World(bin_dir) as world:
        world.add_sim("a0", "6a00000000000003")
        world.add_sim("a1", "6a00000000000004")
        world.ctl("board", "label", "a1", "site=lab")
        world.prepare(train=200, heldout=50, test=50)
        refused(world, "settings", "set", "--fleet", "batch=0", code=2, says=["batch", "1 to 4096"])
        refused(world, "settings", "set", "--fleet", "bacth=8", code=2, says=["mu_weight"])
        refused(world, "settings", "set", "epochs=2", code=2, says=["--cohort"])
        refused(world, "settings", "unset", "--fleet", "epochs", code=4)
        world.ctl("settings", "set", "--fleet", "epochs=2", "telemetry_every=4")
        world.ctl("settings", "set", "--cohort", "site=lab", "epochs=3")
        world.ctl("settings", "set", "--board", "a0", "telemetry_every=2")
        fixed = [str(f) for f in FIXED]
        asked = ["--model", "small", "--data", "shifted", *fixed, "--detach"]
        first = world.wait_run(world.ctl("train", "--board", "a0", *asked)["id"])
        second = world.wait_run(world.ctl("train", "--board", "a1", *asked)["id"])
        assert (first["epochs_done"], second["epochs_done"]) == (2, 3), (first, second)
        assert first["effective"]["telemetry_every"] == 2 and second["effective"]["telemetry_every"] == 4
        taken = {s["key"]: (s["value"], s["scope"], s["target"]) for s in second["settings"]}
        assert taken == {"epochs": ("3", "COHORT", "site=lab"), "telemetry_every": ("4", "FLEET", "")}, taken
        third = world.wait_run(world.ctl("train", "--board", "a1", *asked, "--epochs", 1)["id"])
        assert third["epochs_done"] == 1 and [s["key"] for s in third["settings"]] == ["telemetry_every"], third
        shown = {s["key"]: s for s in world.ctl("settings", "show", "--board", "a1")["settings"]}
        assert (shown["epochs"]["desired"], shown["epochs"]["reported"], shown["epochs"]["asked"]) == ("3", "1", True), shown
        assert [o["value"] for o in shown["epochs"]["overridden"]] == ["2"], shown
        world.end("odtd", signal.SIGKILL)
        world.restart_odtd()
        assert len(world.ctl("settings", "list")) == 4
        world.ctl("settings", "unset", "--cohort", "site=lab", "epochs")
        shown = {s["key"]: s for s in world.ctl("settings", "show", "--board", "a1")["settings"]}
        assert shown["epochs"]["desired"] == "2", shown


# What real training and real links do, without a word to the engine but what boards report.

def test_alerts_of_training_that_goes_wrong(bin_dir):
    with World(bin_dir) as world:
        world.end("odtd")
        configure(world, "[alerts]\nstuck = { threshold = 10 }\n")
        world.prepare(train=80, heldout=20, test=20)
        world.add_sim("slow", "6a00000000000052", "--step-delay-ms", 60000)
        world.add_sim("wild", "6a00000000000053", "--step-delay-ms", 20)
        slow = world.train("slow", epochs=2)
        asked = ["train", "--board", "wild", "--model", "small", "--data", "shifted", "--policy", "fixed", "--detach", "--epochs", 6,
                 "--batch", 8]
        # Two bits a weight and steps of eight times the gradient: most weights end at their bounds.
        run = world.ctl(*asked, "--k", 2, "--mu-weight", 3)["id"]
        fired = world.wait_for("saturated", lambda: alert(world, "saturation/wild") or None, 180)
        assert fired["value"] >= 50000 and fired["run_id"] == run and "end of their range" in fired["reason"]["text"], fired
        world.wait_run(run)
        # Steps of sixteen times: after a few of them no unit of the hidden layer says anything any more.
        run = world.ctl(*asked, "--k", 8, "--mu-weight", 4)["id"]
        dead = wait_alert(world, "dead_layer/wild", "FIRING", 180)
        assert dead["value"] >= 2 and dead["run_id"] == run and "dead layer" in dead["reason"]["text"], dead
        world.wait_run(run)
        # Its link lives, it says RUNNING, and nothing moves.
        stuck = wait_alert(world, "stuck/slow", "FIRING", 180)
        assert stuck["run_id"] == slow and stuck["value"] >= 10 and world.online("slow"), stuck
        world.ctl("run", "cancel", slow)
        over = wait_alert(world, "stuck/slow", "RESOLVED")
        assert over["resolution"] in ("the run does not train now", "the run was cancelled"), over
        # Weights that train well again close what the bad ones have opened.
        world.wait_run(world.train("wild", epochs=3))
        for handle in ("saturation/wild", "dead_layer/wild"):
            wait_alert(world, handle, "RESOLVED")


def test_alerts_of_a_bad_line(bin_dir):
    with World(bin_dir) as world:
        ports = [free_port(), free_port()]
        for port, name, faults in zip(ports, ("good", "bad"), ([], ["--faults", "flip=250"])):
            world.start(name, [str(world.bin / "odt-sim-board"), "--uid", f"6a000000000000{port:04x}", "--listen", str(port), *faults])
        world.end("odtd")
        configure(world, "".join(f'[[tcp.dial]]\naddress = "127.0.0.1:{port}"\nserial_line = true\n' for port in ports))
        for port, name in zip(ports, ("good", "bad")):
            world.name_board(name, f"6a000000000000{port:04x}")
        fired = wait_alert(world, "crc_rate/bad", "FIRING", 120)
        assert fired["value"] >= 10000 and "came damaged" in fired["reason"]["text"], fired
        assert alert(world, "crc_rate/good") == {}
