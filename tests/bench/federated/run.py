#!/usr/bin/python3
"""Federated training on spoken digits: six speakers, six boards (simulated ones, each with the real firmware).

usage: run.py [--build DIR] [--json FILE] [--rounds N] [--epochs N]
The base model is trained on this machine, on recordings of three of the speakers; every board then has recordings of one
speaker alone. Prints what each board gets right of its own speaker's test recordings before, after training alone, with
the average of the federated rounds, and after going on alone from that average. Local training has as many epochs as the
rounds together. $ODT_TEST_DATA: the folder with free-spoken-digits.tar.xz, which is not part of the project.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from world import World  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/bench"))
import built  # noqa: E402

SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
KNOWN = SPEAKERS[:3]  # of the base model
ARCHIVE = "free-spoken-digits.tar.xz"


def import_speakers(world, recordings, name, only, split, seed=1):
    return world.ctl("data", "import", recordings, "--name", name, "--pattern", "{label}_{speaker}_{n}.wav", "--only", only,
                     "--features", "spectrogram:16x16", "--split", split, "--seed", seed, timeout=600)


def run_campaign(world, *args):
    ident = world.ctl("campaign", *args, "--detach", timeout=600)["id"]
    done = world.wait_for(f"end of campaign {ident[:8]}", lambda: (
        lambda s: s if s["campaign"]["state"] in ("SUCCEEDED", "FAILED", "CANCELLED") else None)(
            world.ctl("campaign", "show", ident)), 3600, every=1)
    assert done["campaign"]["state"] == "SUCCEEDED", done["campaign"]["reason"]
    return done


def share(accuracy):
    return accuracy["correct"] / accuracy["total"]


def measure(world, recordings, rounds, epochs):
    few = ",".join(str(n) for n in range(10))
    import_speakers(world, recordings, "base", f"speaker={','.join(KNOWN)}; n={few}", "80,20,0")
    world.ctl("pc-train", "--data", "base", "--hidden", 64, "--epochs", 60, "--seed", 1, "--name", "digits", timeout=1200)
    boards = {}
    for number, speaker in enumerate(SPEAKERS):
        import_speakers(world, recordings, speaker, f"speaker={speaker}; n!={few}", "50,25,25")
        world.add_sim(speaker, f"6300000000000{number:03x}")
        world.ctl("board", "label", speaker, f"speaker={speaker}")
        boards[world.board(speaker)["uid"]] = speaker
    cohort = ["--cohort", "speaker", "--model", "digits", "--evaluate"]
    cohort += [arg for speaker in SPEAKERS for arg in ("--data-of", f"{speaker}={speaker}")]
    local = run_campaign(world, "create", *cohort, "--epochs", rounds * epochs)
    fed = run_campaign(world, "federated", *cohort, "--rounds", rounds, "--epochs", epochs, "--personalise", epochs)
    rows = {name: {} for name in SPEAKERS}
    for unit in local["units"]:
        rows[boards[unit["board_uid"]]].update(before=share(unit["before"]), local=share(unit["after"]),
                                               test=unit["before"]["total"], train=unit["train_samples"])
    for unit in fed["units"]:
        if unit["personal"]:
            rows[boards[unit["board_uid"]]].update(federated=share(unit["before"]), then_local=share(unit["after"]))
    drift = [[u["drift_l1"] for u in fed["units"] if u["round"] == r] for r in range(rounds)]
    return rows, drift


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=built.FOLDER)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    archive = pathlib.Path(os.environ.get("ODT_TEST_DATA", ".")) / ARCHIVE
    if not archive.is_file():
        print(f"run.py: no {archive}; set ODT_TEST_DATA to the folder that holds it", file=sys.stderr)
        return 2
    built.build(args.build, "odtd", "odtctl", "odtc", "odt-worker", "odt-sim-board")
    with tempfile.TemporaryDirectory(prefix="odt-digits-") as folder:
        subprocess.run(["tar", "xJf", archive, "-C", folder], check=True)
        with World((args.build / "bin").resolve()) as world:
            rows, drift = measure(world, pathlib.Path(folder) / "recordings", args.rounds, args.epochs)
    columns = ("before", "local", "federated", "then_local")
    print(f"{'speaker':<10} {'train':>5} {'test':>5} " + " ".join(f"{c:>11}" for c in columns))
    for speaker, row in rows.items():
        print(f"{speaker:<10} {row['train']:>5} {row['test']:>5} " + " ".join(f"{100 * row[c]:>11.1f}" for c in columns))
    means = {c: sum(r[c] for r in rows.values()) / len(rows) for c in columns}
    worst = {c: min(r[c] for r in rows.values()) for c in columns}
    print(f"{'mean':<22} " + " ".join(f"{100 * means[c]:>11.1f}" for c in columns))
    print(f"{'worst':<22} " + " ".join(f"{100 * worst[c]:>11.1f}" for c in columns))
    for c in columns:
        print(f"federated_digits_{c} {100 * means[c]:.1f} percent")
    if args.json:
        args.json.write_text(json.dumps({"rounds": args.rounds, "epochs": args.epochs, "speakers": rows, "mean": means,
                                         "worst": worst, "drift_l1": drift}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
