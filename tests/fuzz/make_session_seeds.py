#!/usr/bin/python3
"""Writes the committed seeds of fuzz_session: the frames of the board in recorded conversations, as answers to each of the
host's operations, and what firmware and noise may put between them.

usage: make_session_seeds.py
"""

import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CORPUS = os.path.join(HERE, "corpus", "fuzz_session")
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import board_client as bc  # noqa: E402
import conversation  # noqa: E402

pb = bc.pb
OF_REQUEST, OF_TRANSFER, OF_PING, OF_BODY, NO_SESSION, RAW, LATE = 0, 1, 2, 3, 4, 8, 16
OPERATIONS = 22


def record(mode, kind, body):
    return struct.pack("<BBH", mode, kind & 0x7F, len(body)) + body


def write(name, operation, records, flags=0):
    with open(os.path.join(CORPUS, name), "wb") as f:
        f.write(bytes([operation, flags]) + b"".join(records))


def answer(kind, body):
    """A recorded frame as an answer to what the host asks now."""
    mode = {bc.CHUNK_UP: OF_TRANSFER, bc.WINDOW_UP: OF_TRANSFER, bc.PONG: OF_PING}.get(kind, OF_REQUEST)
    if kind == bc.EVENT:
        return record(OF_BODY, kind, struct.pack("<I", 1) + body)
    return record(mode, kind, body)


def recorded():
    """Frames of the board, by type: (type, body)."""
    for release in sorted(os.listdir(os.path.join(ROOT, "tests", "fixtures"))):
        path = os.path.join(ROOT, "tests", "fixtures", release, "conversation.bin")
        if os.path.exists(path):
            for direction, (kind, _session, _id, body) in conversation.frames(conversation.read(path)):
                if direction == conversation.TO_HOST:
                    yield kind, body


def main():
    os.makedirs(CORPUS, exist_ok=True)
    frames = [(kind, body) for kind, body in recorded() if kind != bc.HELLO_ACK]
    answers = [f for f in frames if f[0] == bc.RSP]
    others = [f for f in frames if f[0] != bc.RSP]
    for operation in range(OPERATIONS):
        # Every third answer, from another beginning: each meets each operation in some seed.
        some = answers[operation % 3::3][:24]
        write(f"answers-{operation}", operation, [answer(*f) for f in some])
        write(f"between-{operation}", operation, [answer(*f) for pair in zip(others[operation::7], some) for f in pair][:24])
    accepted = pb.Response(accepted_ms=100).SerializeToString()
    state = pb.Response(state=pb.State(job=1, step=3)).SerializeToString()
    write("accepted", 0, [record(OF_REQUEST, bc.RSP, accepted)] * 3 + [record(OF_REQUEST, bc.RSP, state)])
    opened = pb.Response(xfer_opened=pb.XferOpened(offset=0, window=2048, chunk=512, size=600)).SerializeToString()
    chunks = [record(OF_TRANSFER, bc.CHUNK_UP, pb.Chunk(offset=at, data=b"w" * 300).SerializeToString()) for at in (0, 300)]
    write("receive", 1, [record(OF_REQUEST, bc.RSP, opened), *chunks])
    windows = [record(OF_TRANSFER, bc.WINDOW_UP, pb.Window(offset=at, end=2000).SerializeToString()) for at in (512, 1024, 2000)]
    write("send", 2, [record(OF_REQUEST, bc.RSP, opened), *windows])
    need = record(NO_SESSION, bc.NEED_HELLO, pb.NeedHello(boot_id=8).SerializeToString())
    write("other-boot", 0, [need, record(OF_REQUEST, bc.RSP, state)])
    error = record(NO_SESSION, bc.LINK_ERR, pb.LinkErr(reason=1, limit=576, got=600).SerializeToString())
    write("link-error", 0, [error, record(OF_REQUEST, bc.RSP, state)])
    # Every kind of answer and of event, whatever a recorded board has said.
    results = {"state": pb.State(job=2, step=3, best_wait=1), "xfer_opened": pb.XferOpened(window=2048, chunk=512, size=9),
               "step": pb.StepRecord(step=1, layers=b"\x01\x02\x03" * 2),
               "eval": pb.EvalResult(eval_id=9, done=True), "infer": pb.InferResult(logits=b"\x01" * 10),
               "telemetry": pb.TelemetryRange(first=1, next=9), "nvm": pb.NvmStatus(sequence=3, step=2),
               "windows": pb.Windows(entries=b"\x01" * 36)}
    operation = {"xfer_opened": 1, "step": 4, "eval": 7, "infer": 8, "windows": 9, "nvm": 20}
    for name, result in results.items():
        body = pb.Response(**{name: result}).SerializeToString()
        write(f"result-{name}", operation.get(name, 0), [record(OF_REQUEST, bc.RSP, body)] * 4)
    events = {"step": results["step"], "epoch": pb.EpochRecord(epoch=0, layers=[pb.LayerEpoch(bits_max=9, k=8)]),
              "job": pb.JobChanged(run_id=b"r" * 16, attempt=1, job=3), "eval": results["eval"],
              "nvm": pb.NvmCommitted(commit_id=7, sequence=3)}
    for name, event in events.items():
        body = pb.Event(**{name: event}).SerializeToString()
        write(f"event-{name}", 5, [record(OF_BODY, bc.EVENT, struct.pack("<I", at) + body) for at in (1, 2, 4)]
              + [record(OF_REQUEST, bc.RSP, pb.Response(telemetry=pb.TelemetryRange(first=1, next=5)).SerializeToString())] * 3)
    busy = record(OF_REQUEST, bc.BUSY, pb.Busy(until_ms=2000).SerializeToString())
    write("busy", 0, [busy, record(LATE | OF_REQUEST, bc.RSP, state)])
    write("console", 0, [record(RAW, 0, b"\x00[00:00:01] WRN hello\x1b[2J\r\n\x00"), record(LATE, bc.RSP, state)])
    write("strict", 0, [record(RAW, 0, b"\x00garbage\x00" * 20), record(OF_REQUEST, bc.RSP, state)], flags=1)
    write("own-hello", 0, [record(OF_REQUEST, bc.HELLO_ACK, frames_hello()), record(OF_REQUEST, bc.RSP, state)], flags=2)


def frames_hello():
    return next(body for kind, body in recorded() if kind == bc.HELLO_ACK)


if __name__ == "__main__":
    main()
