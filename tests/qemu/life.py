#!/usr/bin/python3
"""A board's life beside training: reset, reconnection, garbage, stale sessions, a board with its small memory.

usage: life.py BOARD [--sim BINARY] [--images DIR]
"""

import argparse
import os
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import golden_runs as golden  # noqa: E402
from tail import model_for  # noqa: E402

bc, pb, check = golden.bc, golden.pb, golden.check


def tells_its_build(board, ack, folder):
    """The id is the one that the linker put into the image; the simulator has none."""
    if board == "sim":
        return check("build id", ack.build_id, b"")
    with open(os.path.join(folder, f"{board}.elf"), "rb") as file:
        image = file.read()
    note = image.index(struct.pack("<3I4s", 4, 20, 3, b"GNU\0"))
    check("build id", ack.build_id, image[note + 16:note + 22])
    text = image[image.index(struct.pack("<3I4s", 4, 64, 1, b"ODT\0")) + 16:][:64].split(b"\0")
    check("board note", (text[0].decode(), text[1].decode(), text[2].decode()), (board, ack.core, ack.fw_version))


def reset_gives_a_new_boot(link, ack, image):
    link.push(pb.RESOURCE_MODEL_IMAGE, image)
    link.request(reset=pb.Reset())
    end = time.monotonic() + 20
    while True:
        again = link.hello()
        if again.boot_id != ack.boot_id:
            break
        assert time.monotonic() < end, "the board did not reset"
        time.sleep(0.1)
    check("reset reason", again.reset_reason, pb.RESET_REASON_REQUESTED)
    check("uid after reset", again.uid, ack.uid)
    check("model after reset", again.model_hash, b"")


def garbage_costs_nothing(link):
    link.sock.sendall(b"AT\rATE1\r" + b"\x7e" * 300 + bytes(range(128, 256)) + b"\0\xff\xff\0")
    link.hello()
    check("job", link.state().job, pb.JOB_STATE_UNSPECIFIED)
    assert link.ping().rx_errors >= 1


def stale_session_is_told(link):
    link.hello(session=11)
    link.hello(session=12)
    link.session = 11
    link.send(bc.PING, 1)
    frame = link.take([bc.NEED_HELLO], 10)
    assert frame is not None and frame[1] == 0
    link.session = 12
    link.ping()


def oversize_is_told(link):
    link.send(bc.REQ, 1, b"\xff" * 577)
    frame = link.take([bc.LINK_ERR], 10)
    err = pb.LinkErr()
    err.ParseFromString(frame[3])
    check("limit", (err.reason, err.limit), (pb.LinkErr.REASON_OVERSIZE, 576))
    link.ping()


def evaluation_without_a_run(link, image, samples):
    link.push(pb.RESOURCE_MODEL_IMAGE, image)
    labels, data = bc.parse_samples(samples)
    part = bc.make_samples(labels[:40], data[:40], samples[6])
    result = link.evaluate_streamed(1, None, part)
    check("evaluation", (result.done, result.total), (True, 40))
    counts = link.pull(pb.RESOURCE_EVAL_RESULT)
    table = [int.from_bytes(counts[i:i + 4], "little") for i in range(0, len(counts), 4)]
    check("confusion sum", sum(table), 40)
    check("confusion diagonal", sum(table[11 * i] for i in range(10)), result.correct)
    link.push(pb.RESOURCE_INFER_INPUT, data[0])
    assert len(link.request(infer=pb.Infer()).infer.logits) == 10
    return result.correct


def weights_go_out_and_back(link, image, samples, before, ram_bytes):
    """Trains a little with guard and held-out samples, restores the old weights, finds the old score."""
    labels, data = bc.parse_samples(samples)
    held = bc.make_samples(labels[:40], data[:40], samples[6])
    train = bc.make_samples(labels[40:72], data[40:72], samples[6])
    original = link.pull(pb.RESOURCE_WEIGHTS)
    # Two copies of int16 weights are too much for a 64 KB board.
    spec = golden.spec_of("B" if ram_bytes > 40_000 else "A", samples, True)
    spec.train_samples, spec.heldout_samples, spec.guard, spec.epochs = 32, 40, True, 3
    spec.sample_set_hash = bc.sample_set_hash(train, held)
    run_id = os.urandom(16)
    link.request(start_run=pb.StartRun(run_id=run_id, attempt=1, spec=spec))
    evals = iter(range(100, 200))

    def evaluate(_=0):
        eval_id = next(evals)
        link.evaluate_streamed(eval_id, None, held)
        return eval_id

    evaluate()
    link.train_streamed(run_id, spec, train, on_epoch=evaluate)
    state = link.state()
    check("job", state.job, pb.JOB_STATE_DONE)
    assert state.best_correct >= before, "the guard keeps at least the start"
    blob = link.pull(pb.RESOURCE_STATE)
    best = link.pull(pb.RESOURCE_BEST_WEIGHTS)
    after = link.evaluate_streamed(next(evals), None, held).correct
    check("score of the end", after, state.best_correct)
    # Another life: only what the host has.
    link.push(pb.RESOURCE_MODEL_IMAGE, image)
    link.push(pb.RESOURCE_STATE, blob)
    link.push(pb.RESOURCE_BEST_WEIGHTS, best)
    check("state hash", link.state().state_hash, state.state_hash)
    link.push(pb.RESOURCE_WEIGHTS, original)
    check("weights", link.pull(pb.RESOURCE_WEIGHTS), original)
    check("old score", link.evaluate_streamed(next(evals), None, held).correct, before)


def too_big_says_so(link, ack):
    try:
        link.push(pb.RESOURCE_SAMPLES, b"x" * (ack.ram_bytes + 1), index=pb.SAMPLE_ROLE_TEST)
    except bc.BoardError as e:
        check("code", e.code, pb.STATUS_CODE_RESOURCE_EXHAUSTED)
        assert 0 < e.limit < ack.ram_bytes, e
    else:
        sys.exit("more than the memory was taken")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("board")
    parser.add_argument("--sim", default="build/bin/odt-sim-board")
    parser.add_argument("--images", default="build/bin/firmware")
    args = parser.parse_args()
    process, link, ack = golden.start(args.board, args)
    image, samples = model_for(ack)
    try:
        tells_its_build(args.board, ack, args.images)
        reset_gives_a_new_boot(link, ack, image)
        garbage_costs_nothing(link)
        stale_session_is_told(link)
        oversize_is_told(link)
        before = evaluation_without_a_run(link, image, samples)
        weights_go_out_and_back(link, image, samples, before, ack.ram_bytes)
        too_big_says_so(link, ack)
        state = link.state()
        print(f"{args.board}: RAM {state.ram_used_bytes} of {state.ram_bytes}, stack "
              f"{state.stack_high_water_bytes}, retries {link.retries}")
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
