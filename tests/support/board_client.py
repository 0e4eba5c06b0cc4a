"""Speaks the device link (proto/README.md) to one board over TCP: the independent peer of the tests.

The frame codec here is written from the specification, not from proto/frame: the two check each
other. Needs python3-protobuf and protoc.
"""

import atexit
import hashlib
import importlib
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

HELLO, REQ, CHUNK, WINDOW, PING, BYE = 1, 2, 3, 4, 5, 6
HELLO_ACK, RSP, CHUNK_UP, WINDOW_UP, PONG, EVENT, LOG = 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87
NEED_HELLO, LINK_ERR, BUSY = 0x88, 0x89, 0x8A


def load_proto():
    """The module generated from proto/odt/device/v1/device.proto, made at run time."""
    out = tempfile.mkdtemp(prefix="odt-proto-")
    atexit.register(shutil.rmtree, out, True)
    proto = os.path.join(ROOT, "proto")
    path = "odt/device/v1/device.proto"
    subprocess.run(["protoc", "-I", proto, "--python_out", out, path], check=True)
    sys.path.insert(0, out)
    return importlib.import_module("odt.device.v1.device_pb2")


pb = load_proto()


def cobs_encode(data):
    out = bytearray()
    block = bytearray()
    for b in data:
        if b:
            block.append(b)
        if b == 0 or len(block) == 254:
            out.append(len(block) + 1)
            out += block
            block = bytearray()
    out.append(len(block) + 1)
    return bytes(out + block)


def cobs_decode(data):
    out = bytearray()
    at = 0
    while at < len(data):
        code = data[at]
        if code == 0 or at + code > len(data):
            return None
        out += data[at + 1:at + code]
        at += code
        if code != 255 and at < len(data):
            out.append(0)
    return bytes(out)


def encode_frame(kind, session, ident, payload=b""):
    raw = struct.pack("<BBHI", 1, kind, session, ident) + payload
    raw += struct.pack("<I", zlib.crc32(raw))
    return b"\0" + cobs_encode(raw) + b"\0"


class Decoder:
    """Splits a byte stream into frames (kind, session, id, payload) and text."""

    def __init__(self):
        self.block = bytearray()
        self.errors = 0
        self.text = b""

    def feed(self, data):
        frames = []
        for b in data:
            if b:
                self.block.append(b)
                continue
            if self.block:
                frame = self.finish(bytes(self.block))
                if frame:
                    frames.append(frame)
            self.block = bytearray()
        return frames

    def finish(self, block):
        raw = cobs_decode(block)
        if raw and len(raw) >= 12 and zlib.crc32(raw[:-4]) == struct.unpack("<I", raw[-4:])[0]:
            version, kind, session, ident = struct.unpack("<BBHI", raw[:8])
            return (kind, session, ident, raw[8:-4]) if version == 1 else None
        if sum(32 <= b < 127 or b in (9, 10, 13) for b in block) * 4 >= len(block) * 3:
            self.text += block + b"\n"
        else:
            self.errors += 1
        return None


class BoardError(Exception):
    def __init__(self, error):
        super().__init__(f"{pb.StatusCode.Name(error.code)}: {error.text} (limit {error.limit})")
        self.code, self.text, self.limit = error.code, error.text, error.limit


class Board:
    """One session. Every wait has a deadline; requests are repeated with the same id."""

    def __init__(self, sock, timeout=10.0):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.timeout = timeout
        self.decoder = Decoder()
        self.queue = []
        self.events = []  # (id, Event)
        self.event_ids = set()
        self.event_from = 1
        self.logs = []
        self.session = random.randint(1, 65535)
        self.request_id = 0
        self.xfer_id = random.randint(1, 1 << 30)
        self.retries = 0
        self.ack = None

    @staticmethod
    def dial(port, host="127.0.0.1", wait=20.0, **kwargs):
        end = time.monotonic() + wait
        while True:
            try:
                return Board(socket.create_connection((host, port), timeout=1), **kwargs)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def close(self):
        self.sock.close()

    # ---- frames ----

    def send(self, kind, ident, payload=b""):
        self.sock.settimeout(self.timeout)
        self.sock.sendall(encode_frame(kind, self.session, ident, payload))

    def sort(self, frame):
        kind, _, ident, payload = frame
        if kind == EVENT:
            event = pb.Event()
            event.ParseFromString(payload)
            if ident not in self.event_ids:
                self.event_ids.add(ident)
                self.events.append((ident, event))
        elif kind == LOG:
            log = pb.Log()
            log.ParseFromString(payload)
            self.logs.append(log.text)
        else:
            self.queue.append(frame)

    def pump(self, seconds):
        """Reads what comes within `seconds`, at least once."""
        self.sock.settimeout(max(seconds, 0.001))
        try:
            data = self.sock.recv(65536)
        except socket.timeout:
            return False
        if not data:
            raise ConnectionError("the board closed the link")
        for frame in self.decoder.feed(data):
            self.sort(frame)
        return True

    def take(self, kinds, seconds, match=lambda f: True):
        end = time.monotonic() + seconds
        while True:
            for i, frame in enumerate(self.queue):
                if frame[0] in kinds and match(frame):
                    return self.queue.pop(i)
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.pump(left)

    # ---- session ----

    def hello(self, mtu=576, session=None):
        self.session = session or random.randint(1, 65535)
        self.request_id = 0
        hello = pb.Hello(proto_min=1, proto_max=1, host_id=b"h" * 16, mtu=mtu,
                         session64=random.getrandbits(64), nonce=random.getrandbits(64))
        self.sock.settimeout(self.timeout)
        self.sock.sendall(b"\0\0")
        end = time.monotonic() + self.timeout
        while time.monotonic() < end:
            self.send(HELLO, 1, hello.SerializeToString())
            frame = self.take([HELLO_ACK], 0.5, lambda f: f[1] == self.session)
            if frame:
                before, self.ack = self.ack, pb.HelloAck()
                self.ack.ParseFromString(frame[3])
                if before is None or before.boot_id != self.ack.boot_id:
                    self.event_ids, self.event_from = set(), self.ack.next_event
                return self.ack
        raise TimeoutError("no HELLO_ACK")

    def ping(self):
        nonce = random.getrandbits(32)
        end = time.monotonic() + self.timeout
        while time.monotonic() < end:
            self.send(PING, nonce)
            frame = self.take([PONG], 1.0, lambda f: f[2] == nonce)
            if frame:
                pong = pb.Pong()
                pong.ParseFromString(frame[3])
                return pong
        raise TimeoutError("no PONG")

    def refill(self):
        """Asks for events that were lost on the way."""
        missing = [i for i in range(self.event_from, self.ping().next_event)
                   if i not in self.event_ids]
        if missing:
            first = self.request(get_telemetry_from=pb.GetTelemetryFrom(
                event_id=missing[0])).telemetry.first
            self.event_from = max(self.event_from, first)

    def request(self, **op):
        """Sends Request(op=...), repeats it until the answer comes; raises BoardError."""
        self.request_id += 1
        payload = pb.Request(**op).SerializeToString()
        end = time.monotonic() + self.timeout
        while time.monotonic() < end:
            self.send(REQ, self.request_id, payload)
            frame = self.take([RSP], 1.0, lambda f: f[2] == self.request_id)
            if frame:
                response = pb.Response()
                response.ParseFromString(frame[3])
                if response.HasField("error") and response.error.code:
                    raise BoardError(response.error)
                return response
            self.retries += 1
        raise TimeoutError(f"no answer to {list(op)}")

    def finish(self, seconds=60.0, **op):
        """As request(); asks again while the board answers ACCEPTED."""
        end = time.monotonic() + seconds
        while True:
            answer = self.request(**op)
            if not answer.accepted_ms:
                return answer
            if time.monotonic() > end:
                raise TimeoutError(f"{list(op)} is accepted and never done; logs: {self.logs}")
            time.sleep(min(answer.accepted_ms, 100) / 1000)

    def state(self, with_hash=True):
        return self.request(get_state=pb.GetState(with_state_hash=with_hash)).state

    # ---- bulk ----

    def push(self, resource, content, index=0, batch_id=0, **more):
        self.xfer_id += 1
        crc = zlib.crc32(content)
        opened = self.request(xfer_open=pb.XferOpen(
            xfer_id=self.xfer_id, resource=resource, index=index, direction=pb.DIRECTION_TO_BOARD,
            size=len(content), crc32=crc, batch_id=batch_id, **more)).xfer_opened
        at = held = opened.offset
        end = min(len(content), at + opened.window)
        stall = time.monotonic()
        while held < len(content):
            while at < end:
                part = content[at:min(at + opened.chunk, end)]
                self.send(CHUNK, self.xfer_id, pb.Chunk(offset=at, data=part).SerializeToString())
                at += len(part)
            frame = self.take([WINDOW_UP], 1.0, lambda f: f[2] == self.xfer_id)
            if frame is None:
                at = held  # go back
                self.stalled(stall, held)
                continue
            window = pb.Window()
            window.ParseFromString(frame[3])
            if window.status:
                break
            if window.offset > held:
                held, stall = window.offset, time.monotonic()
            end = max(end, window.end)
            if window.retransmit:
                at = window.offset
        self.request(xfer_commit=pb.XferCommit(xfer_id=self.xfer_id, crc32=crc))
        return opened

    def stalled(self, since, at):
        if time.monotonic() - since > 3 * self.timeout:
            raise TimeoutError(f"transfer stands at byte {at}; logs: {self.logs}")

    def pull(self, resource, index=0):
        self.xfer_id += 1
        opened = self.request(xfer_open=pb.XferOpen(
            xfer_id=self.xfer_id, resource=resource, index=index,
            direction=pb.DIRECTION_TO_HOST)).xfer_opened
        content = b""
        window = min(max(opened.window, opened.chunk), 4096)
        end = 0
        retransmit = False
        stall = time.monotonic()
        while len(content) < opened.size:
            self.stalled(stall, len(content))
            end = min(opened.size, len(content) + window)
            self.send(WINDOW, self.xfer_id, pb.Window(
                offset=len(content), end=end, retransmit=retransmit).SerializeToString())
            retransmit = False
            while len(content) < end:
                frame = self.take([CHUNK_UP], 1.0, lambda f: f[2] == self.xfer_id)
                if frame is None:
                    retransmit = True
                    break
                chunk = pb.Chunk()
                chunk.ParseFromString(frame[3])
                if chunk.offset == len(content):
                    content += chunk.data
                    stall = time.monotonic()
        crc = zlib.crc32(content)
        assert crc == opened.crc32, "content differs from what the board announced"
        self.request(xfer_commit=pb.XferCommit(xfer_id=self.xfer_id, crc32=crc))
        return content

    # ---- runs ----

    def wait_event(self, kind, seconds=60.0, match=lambda e: True):
        """Next event of a kind ("step", "epoch", "job", "eval"), taken out of the list."""
        end = time.monotonic() + seconds
        while True:
            for i, (_, event) in enumerate(self.events):
                value = getattr(event, kind)
                if event.WhichOneof("event") == kind and match(value):
                    self.events.pop(i)
                    return value
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no {kind} event; logs: {self.logs}")
            if not self.pump(min(left, 0.5)):
                self.refill()

    def evaluate_streamed(self, eval_id, model, blob, part=8):
        labels, data = parse_samples(blob)
        self.request(evaluate=pb.Evaluate(eval_id=eval_id, total=len(labels)))
        seq = 0
        for i in range(0, len(labels), part):
            self.push(pb.RESOURCE_BATCH, make_samples(labels[i:i + part], data[i:i + part], blob[6]),
                      index=seq % 2, batch_id=seq + 1)
            result = self.request(eval_step=pb.EvalStep(
                eval_id=eval_id, seq=seq, batch_id=seq + 1, slot=seq % 2)).eval
            seq += 1
        return result

    def train_step(self, step):
        """The step's record. A step that was only accepted (the one before was slow) is asked for again."""
        end = time.monotonic() + 3 * self.timeout
        while True:
            answer = self.request(train_step=step)
            if answer.HasField("step"):
                return answer.step
            if time.monotonic() > end:
                raise TimeoutError(f"step {step.step} is accepted and never done; logs: {self.logs}")
            time.sleep(min(answer.accepted_ms, 1000) / 1000)

    def train_streamed(self, run_id, spec, blob, attempt=1, steps=None, on_epoch=None):
        """Streams the run from the step the board is at; the host orders (rule 1.8)."""
        labels, data = parse_samples(blob)
        n, batch = len(labels), spec.batch
        per_epoch = -(-n // batch)
        state = self.state(False)
        step = state.step
        total = per_epoch * spec.epochs if steps is None else step + steps
        records = []
        while step < total:
            epoch, first = divmod(step, per_epoch)
            if first == 0 or step == state.step:
                order = shuffled(spec.order_seed, epoch, n)
            picked = order[first * batch:(first + 1) * batch]
            self.push(pb.RESOURCE_BATCH,
                      make_samples(bytes(labels[i] for i in picked), [data[i] for i in picked],
                                   blob[6], blob[7]), index=step % 2, batch_id=step + 1)
            records.append(self.train_step(pb.TrainStep(
                run_id=run_id, attempt=attempt, step=step, batch_id=step + 1, slot=step % 2)))
            step += 1
            if step % per_epoch == 0:
                eval_id = on_epoch(epoch) if on_epoch else 0
                self.finish(end_epoch=pb.EndEpoch(run_id=run_id, attempt=attempt, epoch=epoch,
                                                  eval_id=eval_id))
                record = self.wait_event("epoch", match=lambda e: e.epoch == epoch)
                self.events.append((0, pb.Event(epoch=record)))  # for the caller too
                self.request(ack_epoch=pb.AckEpoch(run_id=run_id, attempt=attempt, epoch=epoch))
        return records


# ---- formats ----

def parse_samples(blob):
    magic, version, dtype, _, count, length = struct.unpack("<4sHBBII", blob[:16])
    assert magic == b"ODTS" and version == 1
    labels = blob[16:16 + count]
    at = 16 + (count + 3) // 4 * 4
    return labels, [blob[at + i * length:at + (i + 1) * length] for i in range(count)]


def make_samples(labels, data, dtype, flags=0):
    labels = bytes(labels)
    pad = b"\0" * (-len(labels) % 4)
    return (struct.pack("<4sHBBII", b"ODTS", 1, dtype, flags, len(labels), len(data[0])) + labels + pad
            + b"".join(data))


def sample_set_hash(train, heldout=None):
    held = hashlib.sha256(heldout).digest() if heldout else bytes(32)
    return hashlib.sha256(hashlib.sha256(train).digest() + held).digest()


def shuffled(seed, epoch, n):
    """Rule 1.8."""
    mask = 0xFFFFFFFF
    x = (seed ^ ((epoch + 1) * 0x9E3779B1)) & mask or 0x9E3779B9

    def following():
        nonlocal x
        x ^= (x << 13) & mask
        x ^= x >> 17
        x ^= (x << 5) & mask
        return x

    for _ in range(4):
        following()
    p = list(range(n))
    for i in range(n - 1, 0, -1):
        j = (following() * (i + 1)) >> 32
        p[i], p[j] = p[j], p[i]
    return p


def parse_weights(blob):
    """odt_weights v1 -> list of (k, dims, M as int16 LE bytes, offsets bytes)."""
    assert blob[:4] == b"ODTW"
    at = 44
    layers = []
    for _ in range(blob[9]):
        kind, dtype, k, ndim = struct.unpack_from("<BBbB", blob, at)
        dims = struct.unpack_from("<4H", blob, at + 4)[:ndim]
        n, offsets = struct.unpack_from("<II", blob, at + 12)
        at += 20
        width = 2 if dtype == 3 else 1
        values = struct.unpack_from(f"<{n}{'h' if dtype == 3 else 'b'}", blob, at)
        at += (n * width + 3) // 4 * 4
        layers.append((k, dims, struct.pack(f"<{n}h", *values), blob[at:at + 4 * offsets]))
        at += 4 * offsets
    assert at == len(blob)
    return layers


def golden_hash(weights):
    """The hash of tests/golden/dense-196-32-10: M as int16 and offsets, layer after layer."""
    return hashlib.sha256(b"".join(m + off for _, _, m, off in parse_weights(weights))).hexdigest()
