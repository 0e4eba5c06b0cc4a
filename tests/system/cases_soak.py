"""Long runs of tests/run.sh --full: kills at random moments until the weights would have shown it."""
import random
import signal

from cases_campaign import kill_at_moments
from cases_crash import kill_inside
from world import World


def test_random_kills(bin_dir):
    """20 rounds: odtd or a board is killed at a random step; every run ends in the undisturbed state."""
    rng = random.Random(20)
    with World(bin_dir) as world:
        world.prepare()
        world.add_sim("ref", "5100000000000009")
        expected = world.wait_run(world.train("ref"))["final_state_hash"]
        world.add_sim("a", "5100000000000001", "--step-delay-ms", 20)
        world.add_sim("b", "5100000000000002", "--step-delay-ms", 20)
        for round_number in range(20):
            runs = [world.train("a"), world.train("b", "--streamed")]
            for _ in range(rng.randrange(1, 4)):
                world.wait_steps(runs[rng.randrange(2)], rng.randrange(1, 140), timeout=120)
                victim = rng.choice(["odtd", "a", "b"])
                world.end(victim, signal.SIGKILL)
                if victim == "odtd":
                    world.restart_odtd()
                else:
                    world.sim_board(victim, "510000000000000" + ("1" if victim == "a" else "2"), ["--step-delay-ms", "20"])
            for run in runs:
                assert world.wait_run(run, 180)["final_state_hash"] == expected, f"round {round_number}"


def test_campaigns_with_odtd_killed_at_50_moments(bin_dir):
    kill_at_moments(bin_dir, 50, 50)


def test_odtd_dies_inside_50_times(bin_dir):
    kill_inside(bin_dir, {"migration": 6, "commit": 12, "snapshot": 10, "board": 10, "any": 12}, 50)
