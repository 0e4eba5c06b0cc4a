"""Precision per layer (APT, steering) through the whole product."""
import signal

from world import FULL, World, refused

APT = ("--apt", "--apt-t-min", "1.0", "--apt-k-max", 12)


SIM = "5100000000000001"


def power_cycle(world):
    world.end("sim", signal.SIGKILL)
    world.wait_for("noticed", lambda: world.board("sim")["status"] == "OFFLINE", 60, every=0.1)
    world.sim_board("sim", SIM)


def layers(world, run_id):
    return [epoch["layers"] for epoch in world.ctl("run", "epochs", run_id)]


def train(world, board, *extra, epochs=3):
    """Settings of its own: the world's name a fixed k."""
    return world.ctl("train", "--board", board, "--model", "small", "--data", "shifted", "--policy", "fixed", "--epochs", epochs,
                     "--batch", 8, "--mu-weight", "2,1,0", "--seed", 3, "--detach", *extra)["id"]


def test_apt_same_bits_and_replay(bin_dir):
    """A simulated board, an M33 under QEMU and the replay end one APT run in one state; k has moved, and memory with it."""
    with World(bin_dir) as world:
        world.prepare(*((400, 100, 300) if FULL else (200, 40, 100)))
        world.add_sim("sim", SIM)
        world.add_qemu("m33", "mps2_an505", "3300000000000002")
        runs = {name: train(world, name, *APT, "--apt-offsets", "--evaluate") for name in ("sim", "m33")}
        runs["streamed"] = None
        ended = {name: world.wait_run(run, 240) for name, run in runs.items() if run}
        ended["streamed"] = world.wait_run(train(world, "sim", *APT, "--apt-offsets", "--streamed"), 240)
        states = {name: run["final_state_hash"] for name, run in ended.items()}
        assert len(set(states.values())) == 1 and len(states["sim"]) == 64, states
        effective = ended["sim"]["effective"]
        assert (effective["k"], effective["apt_k_max"], effective["apt_t_min_q8"]) == (6, 12, 256), effective
        for name in ("sim", "m33"):
            world.ctl("run", "replay", ended[name]["id"], timeout=120)
            assert world.run(ended[name]["id"])["replay"] == "EQUAL", name
        seen = layers(world, ended["sim"]["id"])
        assert len(seen) == 3 and all(len(epoch) == 2 for epoch in seen), seen
        ks = [[layer["k"] for layer in epoch] for epoch in seen]
        assert any(k != 6 for k in ks[-1]), ks
        for epoch in seen:
            for layer, weights, outputs in zip(epoch, (3136, 160), (16, 10)):
                assert layer["resident_bytes"] == weights * (2 if layer["k"] > 8 else 1), layer
                assert layer["logical_bits"] == weights * layer["k"] + outputs * layer["k_off"], layer
                assert layer["sum_n"] >= 4 and int(layer["sum_abs_g"]) > 0 and int(layer["gavg_q8"]) > 0, layer
                assert layer["w_min"] < 0 < layer["w_max"], layer


def test_apt_survives_power_cycle_and_kill(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("sim", SIM, "--step-delay-ms", 10)
        whole = world.wait_run(train(world, "sim", *APT, "--apt-offsets", epochs=4))
        run = train(world, "sim", *APT, "--apt-offsets", epochs=4)
        world.wait_steps(run, 70)
        world.end("odtd", signal.SIGKILL)
        world.restart_odtd()
        world.wait_steps(run, 110)
        power_cycle(world)
        again = world.wait_run(run)
        assert again["attempt"] > 1, again
        assert again["final_state_hash"] == whole["final_state_hash"]
        world.ctl("run", "replay", run, timeout=120)
        assert world.run(run)["replay"] == "EQUAL"


def test_apt_steered_by_hand(bin_dir):
    """The host moves k without APT; lost boards get it again, and the replay does the same."""
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("sim", SIM, "--step-delay-ms", 40)
        run = train(world, "sim", "--k", 8, "--apt-k-max", 14, epochs=5)
        world.wait_steps(run, 5)
        world.ctl("run", "set-k", run, "--layer", 0, "--k", 14)
        world.ctl("run", "set-k", run, "--layer", 1, "--k", 5, "--step", 180)
        refused(world, "run", "set-k", run, "--layer", 0, "--k", 15, "--step", 240, says=("k is 15", "2 to 14"))
        refused(world, "run", "set-k", run, "--layer", 2, "--k", 5, "--step", 240, says=("layer is 2", "0 to 1"))
        refused(world, "run", "set-k", run, "--layer", 1, "--k", 5, "--step", 1, says=("step",))
        next_epoch = world.run(run)["steering"][0]["step"]
        world.wait_steps(run, next_epoch + 10)
        power_cycle(world)
        ended = world.wait_run(run)
        assert ended["attempt"] > 1
        told = [(s["step"], s["layer"], s["k"]) for s in ended["steering"]]
        assert told == [(next_epoch, 0, 14), (180, 1, 5)] and next_epoch in (50, 100, 150), told
        epochs = world.ctl("run", "epochs", run)  # some of both attempts
        for epoch in epochs:
            n = epoch["epoch"]
            ks = [layer["k"] for layer in epoch["layers"]]
            assert ks == [14 if 50 * n >= next_epoch else 8, 5 if n >= 3 else 8], epoch
        assert {epoch["epoch"] for epoch in epochs} == set(range(5))
        world.ctl("run", "replay", run, timeout=120)
        assert world.run(run)["replay"] == "EQUAL"


def test_apt_layers_of_fixed_unequal_precision(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("sim", SIM)
        run = world.wait_run(train(world, "sim", "--k", 12, "--layer-k", "0,6"))
        assert [layer["k"] for layer in layers(world, run["id"])[-1]] == [12, 6]
        world.ctl("run", "replay", run["id"], timeout=120)
        assert world.run(run["id"])["replay"] == "EQUAL"
        # What it has learned can be pulled, pushed and started from.
        weights = world.ctl("weights", "pull", "sim")
        world.add_sim("twin", "5100000000000002")
        world.ctl("weights", "restore", weights["hash"], "--board", "twin")
        assert world.ctl("weights", "pull", "twin")["hash"] == weights["hash"]
        again = world.wait_run(world.ctl("train", "--board", "twin", "--model", "small", "--data", "shifted", "--policy", "fixed",
                                         "--epochs", 2, "--batch", 8, "--mu-weight", 1, "--start", weights["hash"],
                                         "--detach")["id"])
        assert [layer["k"] for layer in layers(world, again["id"])[-1]] == [12, 6]
        assert again["heldout_start"]["correct"] == run["heldout_best"]["correct"]


def test_apt_settings_name_their_limits(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("sim", SIM)

        def wrong(*extra, says):
            refused(world, "train", "--board", "sim", "--model", "small", "--data", "shifted", "--policy", "fixed", "--detach",
                    *extra, says=says)

        wrong("--apt", "--apt-k-max", 17, says=("apt_k_max", "17", "2 to 16"))
        wrong("--apt", "--k", 13, "--apt-k-max", 12, says=("k is 13", "2 to 12"))
        wrong("--apt", "--apt-t-min", "0.5", "--apt-t-max", "1.5", says=("--apt-t-max", "2 to"))
        wrong("--apt", "--apt-t-min", "0", says=("--apt-t-min",))
        wrong("--apt-t-min", "0.5", says=("apt_t_min_q8", "apt off"))
        wrong("--layer-k", "8,8,8", says=("--layer-k has 3 values", "2 trainable layers"))
        wrong("--layer-k", "8,1", says=("layer_k is 1", "2 to 16"))
        wrong("--apt", "--mu-weight", 5, says=("mu_weight",))
        wrong("--rule", "niti-literal", "--apt", says=("NITI_LITERAL",))
        wrong("--rule", "dfp16", says=("DFP16", "small"))
        wrong("--blocked", says=("blocked", "DFP16"))
        wrong("--rule", "dfp16", "--mu-weight", 1, says=("mu_weight", "DFP16"))
        wrong("--lr", "0.1", says=("lr_m", "DFP16"))
        wrong("--rule", "dfp16", "--lr", "-1", says=("--lr",))


def dfp16(world, board, *extra):
    return world.ctl("train", "--board", board, "--model", "wide", "--data", "shifted", "--policy", "fixed", "--rule", "dfp16",
                     "--epochs", 3, "--batch", 8, "--seed", 3, "--detach", *extra)["id"]


def test_dfp16_same_bits_and_replay(bin_dir):
    """Training with int16 tensors and shared exponents: simulated board, M33, streamed and replay end in one state."""
    with World(bin_dir) as world:
        samples = (400, 100, 300) if FULL else (160, 40, 100)
        world.prepare(*samples)
        world.ctl("pc-train", "--data", "source", "--hidden", 16, "--epochs", 4, "--seed", 1, "--name", "wide", "--dfp16",
                  timeout=300)
        world.add_sim("sim", SIM)
        world.add_qemu("m33", "mps2_an505", "3300000000000002")
        for extra in ((), ("--blocked", "--lr", "0.01,0.004,0.001")):
            runs = [dfp16(world, name, *extra, "--evaluate") for name in ("sim", "m33")]
            ended = [world.wait_run(run, 240) for run in runs]
            ended.append(world.wait_run(dfp16(world, "sim", *extra, "--streamed"), 240))
            states = [run["final_state_hash"] for run in ended]
            assert len(set(states)) == 1 and len(states[0]) == 64, states
            world.ctl("run", "replay", ended[1]["id"], timeout=120)
            assert world.run(ended[1]["id"])["replay"] == "EQUAL"
            learnt = samples[2] / 10 if FULL or not extra else 0
            assert ended[0]["after"]["correct"] > ended[0]["before"]["correct"] + learnt, ended[0]
            assert ended[0]["effective"]["rule_set"] == "DFP16" and len(ended[0]["effective"]["lr_m"]) == 3, ended[0]


def test_dfp16_survives_power_cycle(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.ctl("pc-train", "--data", "source", "--hidden", 16, "--epochs", 4, "--seed", 1, "--name", "wide", "--dfp16",
                  timeout=300)
        world.add_sim("sim", SIM, "--step-delay-ms", 20)
        for extra in ((), ("--blocked",)):
            whole = world.wait_run(dfp16(world, "sim", *extra))
            run = dfp16(world, "sim", *extra)
            world.wait_steps(run, 70)
            power_cycle(world)
            again = world.wait_run(run)
            assert again["attempt"] > 1 and again["final_state_hash"] == whole["final_state_hash"], again
            world.end("sim", signal.SIGKILL)
            world.sim_board("sim", SIM, ["--step-delay-ms", "20"])
            world.wait_for("online", lambda: world.online("sim"), 20)
