#!/usr/bin/python3
"""Writes the committed seeds of fuzz_frame (golden frames), fuzz_dispatch (requests that make sense)
and fuzz_kernels (networks).

usage: make_seeds.py   (the model and samples of fuzz_dispatch.cc are known to it by their hash only)
"""

import hashlib
import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import board_client as bc  # noqa: E402

pb = bc.pb
RUN = b"r" * 16


def write(fuzzer, name, data):
    with open(os.path.join(HERE, "corpus", fuzzer, name), "wb") as f:
        f.write(data)


def frame(kind, step, body):
    return struct.pack("<BBH", kind, step, len(body)) + body


def requests(*ops):
    return b"\x01" + b"".join(frame(2, 1, pb.Request(**op).SerializeToString()) for op in ops)


def spec(streamed):
    samples = bc.make_samples(bytes([0, 1, 2, 0]), [b"\x09" * 6] * 4, 1)
    digest = hashlib.sha256(samples).digest()
    return pb.RunSpec(rule_set=1, loss=1, shift_source=1, mu_offset=1, k=8, batch=4, epochs=3,
                      train_samples=4, heldout_samples=0 if streamed else 4, guard=not streamed,
                      streamed=streamed, telemetry_every=1,
                      sample_set_hash=hashlib.sha256(digest + (bytes(32) if streamed else digest)).digest())


def networks():
    """Bytes for fuzz_kernels: the arithmetic, graph or chain, size, then whatever comes."""
    for i in range(24):
        stream = b"".join(hashlib.sha256(b"%d %d" % (i, j)).digest() for j in range(6))
        write("fuzz_kernels", f"net-{i}", bytes([i % 3, 80 if i % 4 == 3 else 0, i % 5]) + stream)


def main():
    networks()
    with open(os.path.join(ROOT, "tests", "golden", "frames", "frames.json")) as f:
        golden = json.load(f)
    for i, v in enumerate(golden["valid"] + golden["malformed"][:6]):
        write("fuzz_frame", f"golden-{i}", b"\xff\x10" + bytes.fromhex(v["wire"]))
    start = [dict(start_run=pb.StartRun(run_id=RUN, attempt=1, spec=spec(s))) for s in (False, True)]
    state = dict(get_state=pb.GetState(with_state_hash=True))
    control = [dict(job_control=pb.JobControl(run_id=RUN, action=a)) for a in (1, 2, 3)]
    read = [dict(xfer_open=pb.XferOpen(xfer_id=1000 + r, resource=r, direction=pb.DIRECTION_TO_HOST))
            for r in (4, 5, 6, 7)]
    step = dict(train_step=pb.TrainStep(run_id=RUN, attempt=1, step=0))
    end = dict(end_epoch=pb.EndEpoch(run_id=RUN, attempt=1, epoch=0))
    ack = dict(ack_epoch=pb.AckEpoch(run_id=RUN, attempt=1, epoch=0))
    write("fuzz_dispatch", "resident", requests(start[0], state, *control, ack, dict(get_epoch=pb.GetEpoch())))
    write("fuzz_dispatch", "streamed", requests(start[1], step, step, end, ack, state))
    write("fuzz_dispatch", "evaluate", requests(
        dict(evaluate=pb.Evaluate(eval_id=1, role=1)), dict(get_eval=1),
        dict(evaluate=pb.Evaluate(eval_id=2, total=4)), dict(eval_step=pb.EvalStep(eval_id=2)), dict(infer=pb.Infer())))
    windows = frame(4, 4, pb.Window(end=4096).SerializeToString())
    write("fuzz_dispatch", "read", requests(start[0], *read) + windows)
    write("fuzz_dispatch", "telemetry", requests(
        start[0], dict(get_telemetry_from=pb.GetTelemetryFrom(event_id=1)), dict(identify=pb.Identify(seconds=1)),
        dict(reset=pb.Reset())))
    chunks = frame(3, 0, pb.Chunk(offset=0, data=b"ODTW" + b"\0" * 60).SerializeToString())
    write("fuzz_dispatch", "write", requests(dict(xfer_open=pb.XferOpen(
        xfer_id=1000, resource=4, direction=pb.DIRECTION_TO_BOARD, size=200))) + chunks)


if __name__ == "__main__":
    main()
