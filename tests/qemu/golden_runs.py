#!/usr/bin/python3
"""The golden runs on one board: resident and streamed, against tests/golden/dense-196-32-10.

usage: golden_runs.py BOARD [--sim BINARY] [--images DIR]
BOARD: sim or one of firmware/boards/boards.txt. Exits 0 only if every weights hash, loss and count
equals the expected one, and resident and streamed end in the same state. Prints the final hashes;
--state FILE also appends them there ("config board mode state weights"), for a comparison across boards.
"""

import argparse
import os
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

import board_client as bc  # noqa: E402
from tied import tied  # noqa: E402

pb = bc.pb
GOLDEN = os.path.join(ROOT, "tests", "golden", "dense-196-32-10")
GOLDEN_RAM = 20_000  # its image and training, streamed, fit
RESIDENT_RAM = 200_000  # 600 samples and training fit


def expected():
    """README.txt -> {config: [(hash, loss, correct) per epoch]}."""
    result = {}
    with open(os.path.join(GOLDEN, "README.txt")) as f:
        for line in f:
            words = line.split()
            if len(words) == 8 and words[1] == "epoch":
                result.setdefault(words[0], []).append((words[3], int(words[5]), int(words[7])))
    assert sorted(result) == ["A", "B"] and all(len(v) == 3 for v in result.values())
    return result


def spec_of(config, samples, streamed):
    common = dict(rule_set=1, shift_source=1, batch=8, epochs=3, train_samples=600,
                  heldout_samples=0, guard=False, sample_set_hash=bc.sample_set_hash(samples),
                  streamed=streamed, telemetry_every=1)
    if config == "A":
        return pb.RunSpec(k=8, rounding=3, loss=1, dead_zone=4, mu_weight_0=2, mu_weight_1=1,
                          mu_weight_2=0, mu_offset=1, order_seed=1, **common)
    return pb.RunSpec(k=15, rounding=1, loss=2, mu_weight_0=1, mu_weight_1=-1, mu_weight_2=-3,
                      mu_offset=-3, order_seed=7, **common)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(board, args):
    port = free_port()
    uid = "0d7000000000" + f"{sum(board.encode()):04x}"
    if board == "sim":
        command = [args.sim, "--listen", str(port), "--uid", uid, *getattr(args, "sim_options", "").split()]
        command += getattr(args, "board_options", [])
    else:
        image = os.path.join(args.images, board + ".elf")
        command = [os.path.join(ROOT, "deploy", "qemu-board.sh"), "--image", image, board, uid,
                   "--listen", f"127.0.0.1:{port}", *getattr(args, "board_options", [])]
    process = subprocess.Popen(tied(command), stdout=subprocess.DEVNULL)
    try:
        link = bc.Board.dial(port, timeout=20.0)
        ack = link.hello()
    except BaseException:
        process.terminate()
        raise
    assert ack.uid.hex() == uid, f"uid {ack.uid.hex()}, started with {uid}"
    return process, link, ack


def check(what, got, want):
    if got != want:
        sys.exit(f"{what}: got {got}, expected {want}")


def epoch_result(link, config, epoch, want):
    record = link.wait_event("epoch", 120, lambda e: e.epoch == epoch)
    name = f"{config} epoch {epoch}"
    check(f"{name} loss", record.loss, want[1])
    check(f"{name} correct", record.correct, want[2])
    check(f"{name} weights", bc.golden_hash(link.pull(pb.RESOURCE_WEIGHTS)), want[0])
    return record


def run_resident(link, config, samples, want):
    run_id = os.urandom(16)
    spec = spec_of(config, samples, False)
    spec.hold_at_epoch = True
    link.push(pb.RESOURCE_SAMPLES, samples, index=pb.SAMPLE_ROLE_TRAIN)
    link.request(start_run=pb.StartRun(run_id=run_id, attempt=1, spec=spec))
    for epoch in range(3):
        epoch_result(link, config, epoch, want[epoch])
        link.request(ack_epoch=pb.AckEpoch(run_id=run_id, attempt=1, epoch=epoch))
    return link.wait_event("job", 60, lambda j: j.job == pb.JOB_STATE_DONE)


def run_streamed(link, config, samples, want):
    run_id = os.urandom(16)
    spec = spec_of(config, samples, True)
    link.request(start_run=pb.StartRun(run_id=run_id, attempt=1, spec=spec))
    for epoch in range(3):
        link.train_streamed(run_id, spec, samples, steps=75)
        epoch_result(link, config, epoch, want[epoch])
    return link.wait_event("job", 60, lambda j: j.job == pb.JOB_STATE_DONE)


def run_all(board, link, args):
    samples = open(os.path.join(GOLDEN, "samples.odts"), "rb").read()
    image = open(os.path.join(GOLDEN, "image.odtm"), "rb").read()
    want = expected()
    room = link.ack.ram_bytes > RESIDENT_RAM
    for config in args.configs:
        final = {}
        modes = args.modes[config] if room or not args.modes[config] else ["streamed"]
        for mode in modes:
            link.push(pb.RESOURCE_MODEL_IMAGE, image)
            begin = time.monotonic()
            run = run_resident if mode == "resident" else run_streamed
            done = run(link, config, samples, want[config])
            final[mode] = (done.state_hash.hex(), done.weights_hash.hex())
            print(f"{board} {config} {mode}: state {final[mode][0][:16]} weights "
                  f"{final[mode][1][:16]} in {time.monotonic() - begin:.1f} s", flush=True)
            if args.state:
                with open(args.state, "a") as f:
                    f.write(f"{config} {board} {mode} {' '.join(final[mode])}\n")
        check(f"{config}: states of resident and streamed", len(set(final.values())), 1 if modes else 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("board")
    parser.add_argument("--sim", default="build/bin/odt-sim-board")
    parser.add_argument("--sim-options", default="", help="faults, for example")
    parser.add_argument("--images", default="build/bin/firmware")
    parser.add_argument("--state")
    parser.add_argument("--configs", default="AB")
    parser.add_argument("--modes", default="A:resident,A:streamed,B:resident,B:streamed",
                        help="of a board whose memory takes the samples")
    args = parser.parse_args()
    args.modes = {c: [m.split(":")[1] for m in args.modes.split(",") if m.startswith(c + ":")] for c in args.configs}
    process, link, ack = start(args.board, args)
    try:
        check("board type", ack.board, args.board)
        run_all(args.board, link, args)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
