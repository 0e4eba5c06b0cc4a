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


def requests(*ops, board=1):
    """board: 1 a model, 2 non-volatile memory, 4 a sensor of its own."""
    return bytes([board]) + b"".join(frame(2, 1, pb.Request(**op).SerializeToString()) for op in ops)


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
    wait = frame(7, 0, b"") * 3  # PINGs, 0.7 s apart
    commit = [dict(nvm_commit=pb.NvmCommit(commit_id=7))] * 3
    status = [dict(nvm_status=pb.NvmStatusGet(restore=r)) for r in (False, True)]
    write("fuzz_dispatch", "nvm", requests(start[0], *commit, *status, board=3) + wait + requests(
        *commit, *status, dict(nvm_erase=pb.NvmErase(commit_id=8)), *status)[1:])
    capture = pb.CaptureStart(window_steps=3, stride_steps=2, slots=4, channels=2, dtype=1, mul=[256], add=[0], keep=1, label=1,
                              trigger=1, rules=[pb.LabelRule(of=1, max=9, label=2)])
    for name, board in (("capture", 1), ("capture-sensor", 5), ("capture-nvm", 7)):
        write("fuzz_dispatch", name, requests(
            dict(capture_start=capture), dict(feed_sensor=pb.FeedSensor(first=0, steps=b"\x05" * 24)),
            dict(get_windows=pb.GetWindows(from_id=0)), dict(label_window=pb.LabelWindow(window_id=1, label=1, keep=2)),
            dict(xfer_open=pb.XferOpen(xfer_id=1000, resource=9, index=1, direction=pb.DIRECTION_TO_HOST)),
            *commit, dict(capture_stop=pb.CaptureStop()), board=board) + wait)
    varied = spec(True)
    varied.apt_mode, varied.apt_k_max = 1, 12
    steer = dict(set_precision=pb.SetPrecision(run_id=RUN, attempt=1, step=1, layer=0, k=10))
    write("fuzz_dispatch", "precision", requests(
        dict(start_run=pb.StartRun(run_id=RUN, attempt=1, spec=varied, steering=[pb.Steer(step=1, k=9)])), steer, step, state, step, end))
    apart = spec(False)
    apart.best_on_host = True
    kept = dict(best_kept=pb.BestKept(run_id=RUN, attempt=1, weights_hash=b"h" * 32))
    write("fuzz_dispatch", "best-kept", requests(
        dict(start_run=pb.StartRun(run_id=RUN, attempt=1, spec=apart)), state, read[1], kept, step, end, kept))
    write("fuzz_dispatch", "ends", requests(start[1], read[0], dict(xfer_commit=pb.XferCommit(xfer_id=1004)),
                                            dict(xfer_abort=pb.XferAbort(xfer_id=1004)), state))
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
