#!/usr/bin/python3
"""Trains the last layer of a model on a small board, from outputs of the frozen part that the host computed.

usage: tail.py BOARD [--sim BINARY] [--images DIR]
BOARD and the simulator get the same batches, in two forms: FROZEN samples of a whole model (64-32-10), and a model
of the last layer alone (32-10). The simulator trains the whole models from raw samples too. All must end in the same
weights, the same form in the same state, and those in the hashes below. What a board with non-volatile memory commits
survives its reset.
"""

import argparse
import hashlib
import os
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import golden_runs as golden  # noqa: E402

bc, pb, check = golden.bc, golden.pb, golden.check
sys.path.insert(0, golden.GOLDEN)
import make_image as parts  # noqa: E402

FROZEN_FLAG = 2
NVM = 0x80
WHOLE_INPUTS = 64  # of the 196: what fits 16 KB with the board's own needs
EXPECTED = {  # first 16 digits of state and weights
    "frozen": ("156c8da6bf97baf9", "1e4b30351a47bcaa"),
    "tail": ("71ab47b069eb70cf", "eb2f70240bff0cec"),
}


def sections(inputs):
    """[(weights [in][out], offsets, shifts)] of the two layers, the first one's inputs cut off."""
    first = parts.read("layer0_weights_in_out.i8")[:inputs * 32]
    return [(first, parts.read("layer0_offset.i32"), parts.read("layer0_k.i8")),
            (parts.read("layer1_weights_in_out.i8"), parts.read("layer1_offset.i32"), parts.read("layer1_k.i8"))]


def image_of(layers, frozen):
    """layers: [(inputs, input dtype, outputs, clip, flags)] with their sections; the first `frozen` stand still."""
    image = parts.Image()
    sizes = [(layers[0][1], layers[0][0])] + [(parts.U8 if clip[0] == 0 else parts.S8, n) for _, _, n, clip, _, _ in layers]
    tensors_off = image.add(b"".join(parts.tensor(dtype, n) for dtype, n in sizes))
    ops = b""
    for i, (n_in, _, n_out, clip, flags, (weights, offsets, shifts)) in enumerate(layers):
        at = [image.add(weights), image.add(offsets), image.add(shifts)]
        flags |= 0 if i < frozen else parts.TRAINABLE
        ops += struct.pack("<BBHHHii", parts.LINEAR, flags, i, 0xFFFF, i + 1, *clip)
        ops += struct.pack("<6I", at[0], n_in * n_out, at[1], n_out, at[2], 0)
        ops += bytes(24) + f"layer{i}".encode().ljust(32, b"\0")
    ops_off = image.add(ops)
    correct = image.add(struct.pack("10b", *parts.CORRECT))
    wrong = image.add(struct.pack("10b", *parts.WRONG))
    data = image.data
    struct.pack_into("<4sHHIHHHHIIIIHHII16s", data, 0, b"ODTM", 1, 64, len(data), len(sizes), len(layers),
                     len(layers) - frozen, 10, tensors_off, ops_off, correct, wrong, parts.CE_SCALE, 0, 0, 0, b"tail")
    return bytes(data)


def hidden(samples, layer, inputs):
    """Rule 1.2: outputs of the first layer, u8."""
    weights = struct.unpack(f"{inputs * 32}b", layer[0])
    offsets, shifts = struct.unpack("<32i", layer[1]), struct.unpack("32b", layer[2])
    columns = [weights[o::32] for o in range(32)]
    result = []
    for sample in samples:
        x = struct.unpack(f"{inputs}b", sample)
        sums = [sum(a * b for a, b in zip(x, column)) + offset for column, offset in zip(columns, offsets)]
        result.append(bytes(max(0, min(255, s >> k)) for s, k in zip(sums, shifts)))
    return result


class Form:
    def __init__(self, name, image, blob):
        self.name, self.image, self.blob = name, image, blob


def forms():
    labels, raw = bc.parse_samples(open(os.path.join(golden.GOLDEN, "samples.odts"), "rb").read())
    raw = [sample[:WHOLE_INPUTS] for sample in raw]
    first, last = sections(WHOLE_INPUTS)
    outputs = hidden(raw, first, WHOLE_INPUTS)
    head = (32, parts.U8, 10, (-128, 127), 0, last)
    whole = image_of([(WHOLE_INPUTS, parts.S8, 32, (0, 255), parts.RELU, first), head], 1)
    yield Form("raw", whole, bc.make_samples(labels, raw, parts.S8))
    yield Form("frozen", whole, bc.make_samples(labels, outputs, parts.U8, FROZEN_FLAG))
    yield Form("tail", image_of([head], 0), bc.make_samples(labels, outputs, parts.U8))


def model_for(ack):
    """(image, samples) that fit the board: the golden ones, or the last layer alone."""
    if ack.ram_bytes > golden.GOLDEN_RAM:
        return parts.read("image.odtm"), parts.read("samples.odts")
    form = next(f for f in forms() if f.name == "tail")
    return form.image, form.blob


def train(link, form):
    """(state hash, weights hash, the trained layer's values and offsets)"""
    spec = golden.spec_of("A", form.blob, True)
    run_id = hashlib.sha256(b"tail").digest()[:16]
    spec.sample_set_hash = bytes(32)  # the forms' samples differ, the run is the same
    link.push(pb.RESOURCE_MODEL_IMAGE, form.image)
    link.request(start_run=pb.StartRun(run_id=run_id, attempt=1, spec=spec))
    link.train_streamed(run_id, spec, form.blob)
    done = link.wait_event("job", 60, lambda j: j.job == pb.JOB_STATE_DONE)
    layers = bc.parse_weights(link.pull(pb.RESOURCE_WEIGHTS))
    return done.state_hash.hex(), done.weights_hash.hex(), layers


def survives_reset(link):
    """What was committed to the board's flash is there again after a reset."""
    before = link.state()
    blob = link.pull(pb.RESOURCE_STATE)
    link.finish(nvm_commit=pb.NvmCommit(commit_id=1))
    link.wait_event("nvm", 30, lambda e: e.commit_id == 1 and not e.text)
    link.request(reset=pb.Reset())
    old, end = link.ack.boot_id, time.monotonic() + 20
    while link.hello().boot_id == old:
        assert time.monotonic() < end, "the board did not reset"
        time.sleep(0.1)
    check("restored", link.ack.restored, True)
    after = link.state()
    check("model, state, weights after the reset", (after.model_hash, after.state_hash, after.weights_hash),
          (before.model_hash, before.state_hash, before.weights_hash))
    check("state's bytes", link.pull(pb.RESOURCE_STATE), blob)


def train_all(board, args, names):
    process, link, ack = golden.start(board, args)
    try:
        check("board type", ack.board, board)
        results = {form.name: train(link, form) for form in forms() if form.name in names}
        used = link.state(False).stack_high_water_bytes
        if ack.caps & NVM:
            survives_reset(link)
            used = max(used, link.state(False).stack_high_water_bytes)
        for name, (state, weights, _) in results.items():
            print(f"{board} {name}: state {state[:16]} weights {weights[:16]}, arena {ack.ram_bytes}, stack {used}", flush=True)
        return results
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("board")
    parser.add_argument("--sim", default="build/bin/odt-sim-board")
    parser.add_argument("--images", default="build/bin/firmware")
    args = parser.parse_args()
    wanted = train_all("sim", args, ["raw", "frozen", "tail"])
    got = train_all(args.board, args, ["frozen", "tail"])
    for name, result in got.items():
        check(f"{name}: state and weights against the simulator's", result, wanted[name])
        check(f"{name}: values against those from raw samples", result[2], wanted["raw"][2])
        check(f"{name}: recorded state", (result[0][:16], result[1][:16]), EXPECTED[name])
    before = struct.unpack("320b", sections(WHOLE_INPUTS)[1][0])
    assert struct.unpack("<320h", got["tail"][2][0][2]) != before, "nothing was trained"


if __name__ == "__main__":
    main()
