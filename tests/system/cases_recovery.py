"""Killed daemons, power-cycled boards: every run ends in the weights of the undisturbed run."""
import signal

from world import World


def reference_hash(world):
    return world.wait_run(world.train("ref"))["final_state_hash"]


def test_odtd_killed_in_mid_run(bin_dir):
    """kill -9, restarted: RUNNING again by itself (tests/bench/run.sh: how soon), same final state, no epoch or event lost."""
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("ref", "5100000000000009")
        expected = reference_hash(world)
        world.add_sim("resident", "5100000000000001", "--step-delay-ms", 120)
        world.add_sim("streamed", "5100000000000002", "--step-delay-ms", 60)
        runs = [world.train("resident"), world.train("streamed", "--streamed")]
        for run in runs:
            world.wait_steps(run, 30)
        world.end("odtd", signal.SIGKILL)
        world.restart_odtd()
        world.wait_for("both RUNNING", lambda: all(world.run(r)["state"] == "RUNNING" for r in runs), 60, every=0.1)
        for run in runs:
            ended = world.wait_run(run)
            assert ended["final_state_hash"] == expected, ended
            assert [e["epoch"] for e in world.ctl("run", "epochs", run)] == [0, 1, 2]


def test_board_power_cycled_in_mid_run(bin_dir):
    """Noticed (tests/bench/run.sh says how soon); gets model and last verified state again; same final state."""
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("ref", "5100000000000009")
        expected = reference_hash(world)
        for name, uid, extra in (("resident", "5100000000000001", ()), ("streamed", "5100000000000002", ("--streamed",))):
            world.add_sim(name, uid, "--step-delay-ms", 30)
            run = world.train(name, *extra)
            world.wait_steps(run, 70)
            world.end(name, signal.SIGKILL)
            world.wait_for("noticed", lambda: world.board(name)["status"] == "OFFLINE" and
                           world.run(run)["state"] == "WAITING_BOARD", 60, every=0.1)
            world.sim_board(name, uid)
            ended = world.wait_run(run)
            assert ended["attempt"] == 2 and ended["final_state_hash"] == expected, ended


def test_qemu_board_power_cycled(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("ref", "5100000000000009")
        expected = reference_hash(world)
        world.add_qemu("m3", "lm3s6965evb", "0300000000000004")
        run = world.train("m3")
        world.wait_steps(run, 60)
        world.end("m3", signal.SIGKILL)
        world.wait_for("noticed", lambda: world.board("m3")["status"] == "OFFLINE", 60, every=0.1)
        world.qemu_board("m3", "lm3s6965evb", "0300000000000004")
        ended = world.wait_run(run)
        assert ended["attempt"] == 2 and ended["final_state_hash"] == expected, ended


def test_board_frozen_then_back(bin_dir):
    """SIGSTOP: offline. SIGCONT: the board holds its run, so nothing is pushed again."""
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("ref", "5100000000000009")
        expected = reference_hash(world)
        world.add_sim("sim", "5100000000000001", "--step-delay-ms", 40)
        run = world.train("sim")
        world.wait_steps(run, 30)
        world.running["sim"].send_signal(signal.SIGSTOP)
        world.wait_for("noticed", lambda: world.board("sim")["status"] == "OFFLINE", 60, every=0.1)
        world.running["sim"].send_signal(signal.SIGCONT)
        ended = world.wait_run(run)
        assert ended["attempt"] == 1 and ended["final_state_hash"] == expected, ended


def test_both_killed(bin_dir):
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("ref", "5100000000000009")
        expected = reference_hash(world)
        world.add_sim("sim", "5100000000000001", "--step-delay-ms", 30)
        run = world.train("sim")
        world.wait_steps(run, 80)
        world.end("odtd", signal.SIGKILL)
        world.end("sim", signal.SIGKILL)
        world.restart_odtd()
        assert world.run(run)["state"] in ("WAITING_BOARD", "RUNNING", "PREPARING")
        world.sim_board("sim", "5100000000000001")
        assert world.wait_run(run)["final_state_hash"] == expected
