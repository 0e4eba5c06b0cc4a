"""Recorded conversations of a host and a board: the file, and what its frames say.

File: "ODTR", u16 version = 1, u16 0; then records in the order in which the host sent and read them: u8 direction
(0 host to board, 1 board to host), 3 bytes 0, u32 length, that many bytes of the link. A record may end within a
frame. All integers are little-endian.
"""
import struct
import zlib

import board_client as bc

pb = bc.pb
TO_BOARD, TO_HOST = 0, 1
# What differs from one boot, build or machine to the next.
VOLATILE = {
    "HelloAck": ("fw_version", "build_id", "schema_hash", "boot_id", "uptime_ms", "max_poll_ms"),
    "Pong": ("uptime_ms",),
    "State": ("ram_used_bytes", "stack_high_water_bytes"),
    "Response": ("accepted_ms",),
    "EpochRecord": ("step_us",),
}
MESSAGES = {bc.HELLO_ACK: pb.HelloAck, bc.RSP: pb.Response, bc.CHUNK_UP: pb.Chunk, bc.WINDOW_UP: pb.Window,
            bc.PONG: pb.Pong, bc.EVENT: pb.Event, bc.LOG: pb.Log, bc.NEED_HELLO: pb.NeedHello,
            bc.LINK_ERR: pb.LinkErr, bc.BUSY: pb.Busy}


class Tap:
    """A socket that remembers what passes."""

    def __init__(self, sock):
        self.sock, self.records = sock, []

    def sendall(self, data):
        self.records.append((TO_BOARD, bytes(data)))
        self.sock.sendall(data)

    def recv(self, size):
        data = self.sock.recv(size)
        self.records.append((TO_HOST, data))
        return data

    def __getattr__(self, name):
        return getattr(self.sock, name)


def write(path, records):
    with open(path, "wb") as f:
        f.write(struct.pack("<4sHH", b"ODTR", 1, 0))
        for direction, data in records:
            if data:
                f.write(struct.pack("<B3xI", direction, len(data)) + data)


def read(path):
    """[(direction, bytes)]; ValueError where the file is not whole."""
    with open(path, "rb") as f:
        blob = f.read()
    if blob[:8] != struct.pack("<4sHH", b"ODTR", 1, 0):
        raise ValueError(f"{path}: no recording of version 1")
    records, at = [], 8
    while at < len(blob):
        direction, length = struct.unpack_from("<B3xI", blob, at)
        data = blob[at + 8:at + 8 + length]
        if direction > 1 or len(data) != length:
            raise ValueError(f"{path}: broken at byte {at}")
        records.append((direction, data))
        at += 8 + length
    return records


def frames(records):
    """[(direction, (type, session, id, payload))] in order of their last bytes."""
    decoders = (bc.Decoder(), bc.Decoder())
    result = [(direction, frame) for direction, data in records for frame in decoders[direction].feed(data)]
    if decoders[0].errors or decoders[1].errors or decoders[0].text or decoders[1].text:
        raise ValueError("the recording holds bytes that are no frames")
    return result


def message(frame):
    """The message of a board's frame; every field of it must be known."""
    value = MESSAGES[frame[0]]()
    value.ParseFromString(frame[3])
    return value


def without_volatile(value):
    """A copy that two boots, builds and machines have in common."""
    copy = type(value)()
    copy.CopyFrom(value)
    for name in VOLATILE.get(copy.DESCRIPTOR.name, ()):
        copy.ClearField(name)
    for field, part in copy.ListFields():
        if field.message_type and field.label != field.LABEL_REPEATED:
            getattr(copy, field.name).CopyFrom(without_volatile(part))
    return copy


# ---- values: what tests/unit/wire/recorded_conversation_test.cpp must decode ----

def step_values(m):
    return {"step": m.step, "loss": m.loss, "correct": m.correct, "layers": m.layers.hex()}


def eval_values(m):
    return {"id": m.eval_id, "correct": m.correct, "total": m.total, "loss": m.loss, "done": m.done,
            "next_seq": m.next_seq}


def state_values(m):
    return {"model": m.model_hash.hex(), "run": m.run_id.hex(), "attempt": m.attempt, "job": m.job, "step": m.step,
            "epoch": m.epoch, "state": m.state_hash.hex(), "weights": m.weights_hash.hex(), "train": m.samples_train,
            "ram": m.ram_bytes, "sample_set": m.sample_set_hash.hex(), "has_weights": m.has_weights}


def answer_values(m):
    kind = m.WhichOneof("result")
    values = {"error": m.error.code, "limit": m.error.limit, "kind": kind or "none"}
    if kind == "state":
        values["value"] = state_values(m.state)
    elif kind == "xfer_opened":
        x = m.xfer_opened
        values["value"] = {"offset": x.offset, "window": x.window, "chunk": x.chunk, "size": x.size, "crc32": x.crc32,
                           "version": x.version}
    elif kind == "step":
        values["value"] = step_values(m.step)
    elif kind == "eval":
        values["value"] = eval_values(m.eval)
    elif kind == "infer":
        values["value"] = {"logits": m.infer.logits.hex(), "predicted": m.infer.predicted}
    return values


def epoch_values(m):
    return {"epoch": m.epoch, "step": m.step, "loss": m.loss, "correct": m.correct, "total": m.total,
            "alarms": m.alarms, "state": m.state_hash.hex(), "step_us": m.step_us,
            "layers": [[e.bits_min, e.bits_mean_q8, e.bits_max, e.shift, e.nonzero_deltas_ppm, e.mean_abs_delta_q8,
                        e.zero_propagated_ppm, e.saturated, e.dead_units, e.k, e.u_q8] for e in m.layers]}


def job_values(m):
    return {"run": m.run_id.hex(), "attempt": m.attempt, "job": m.job, "step": m.step, "state": m.state_hash.hex(),
            "weights": m.weights_hash.hex(), "text": m.text}


def event_values(m):
    kind = m.WhichOneof("event")
    make = {"step": step_values, "epoch": epoch_values, "job": job_values, "eval": eval_values}[kind]
    return {"kind": kind, "value": make(getattr(m, kind))}


def hello_values(m):
    return {"proto": m.proto, "uid": m.uid.hex(), "board": m.board, "core": m.core, "fw_version": m.fw_version,
            "boot_id": m.boot_id, "reset_reason": m.reset_reason and pb.ResetReason.Name(m.reset_reason)[13:],
            "mtu": m.mtu, "rx_window": m.rx_window_bytes, "caps": m.caps, "max_layers": m.max_layers,
            "max_batch": m.max_batch, "ram": m.ram_bytes, "rules": m.rules_version, "job": m.job,
            "next_event": m.next_event}


def values(frame):
    """What a board's frame says, for JSON."""
    m = message(frame)
    make = {bc.HELLO_ACK: hello_values, bc.RSP: answer_values, bc.EVENT: event_values,
            bc.CHUNK_UP: lambda c: {"offset": c.offset, "bytes": len(c.data), "crc32": zlib.crc32(c.data)},
            bc.WINDOW_UP: lambda w: {"offset": w.offset, "end": w.end, "retransmit": w.retransmit, "status": w.status},
            bc.PONG: lambda p: {"uptime_ms": p.uptime_ms, "job": p.job, "step": p.step, "next_event": p.next_event},
            bc.LOG: lambda t: {"level": t.level, "text": t.text}}[frame[0]]
    return {"type": frame[0], "id": frame[2], **make(m)}
