#!/usr/bin/python3
"""Figures of the whole product on this machine: the median of a few rounds each, in ms."""
import argparse
import json
import pathlib
import signal
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from world import World  # noqa: E402

ROUNDS = 3
UID = "5100000000000001"


def ms_until(world, what, probe, limit):
    start = time.monotonic()
    world.wait_for(what, probe, limit, every=0.02)
    return (time.monotonic() - start) * 1000


def restart_to_running(world):
    """From the start of an odtd after kill -9 in mid-run to that run being RUNNING again."""
    run = world.train("sim", epochs=20)
    world.wait_steps(run, 20)
    world.end("odtd", signal.SIGKILL)
    start = time.monotonic()
    world.restart_odtd()
    world.wait_for("RUNNING", lambda: world.run(run)["state"] == "RUNNING", 30, every=0.02)
    figure = (time.monotonic() - start) * 1000
    world.ctl("run", "cancel", run)
    world.wait_run(run, 20, want="CANCELLED")
    return figure


def offline_noticed(world, sig):
    """From a board's death (its connection closes) or freeze (it stays) to OFFLINE in odtctl."""
    world.running["sim"].send_signal(sig)
    figure = ms_until(world, "OFFLINE", lambda: world.board("sim")["status"] == "OFFLINE", 20)
    world.end("sim", signal.SIGKILL)
    world.sim_board("sim", UID, ["--step-delay-ms", "10"])
    world.wait_for("online", lambda: world.online("sim"), 20)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    args = parser.parse_args()
    with World(args.bin.resolve()) as world:
        world.prepare()
        world.add_sim("sim", UID, "--step-delay-ms", 10)
        measures = {
            "restart_to_running_ms": restart_to_running,
            "board_killed_noticed_ms": lambda w: offline_noticed(w, signal.SIGKILL),
            "board_frozen_noticed_ms": lambda w: offline_noticed(w, signal.SIGSTOP),
        }
        figures = {name: round(statistics.median(measure(world) for _ in range(ROUNDS)))
                   for name, measure in measures.items()}
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
