"""Today's programs against what earlier versions left behind."""
import ctypes
import pathlib
import signal
import subprocess
import sys
import time

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import board_client as bc  # noqa: E402
import conversation  # noqa: E402

RECORDING = ROOT / "tests" / "fixtures" / "v0.1" / "conversation.bin"
_LIBC = ctypes.CDLL(None)
KEYED = (bc.HELLO_ACK, bc.RSP, bc.PONG, bc.EVENT)  # one answer or event an id


class Heard:
    """What a board has said: answers and events by id, content by transfer."""

    def __init__(self):
        self.answers, self.content, self.windows, self.refused = {}, {}, {}, []

    def add(self, frame):
        kind, _, ident, _ = frame
        message = conversation.message(frame)
        if kind in KEYED:
            self.answers[(kind, ident)] = conversation.without_volatile(message)
        elif kind == bc.CHUNK_UP:
            held = self.content.setdefault(ident, bytearray())
            assert message.offset <= len(held), f"transfer {ident}: hole before byte {message.offset}"
            held[message.offset:message.offset + len(message.data)] = message.data
        elif kind == bc.WINDOW_UP:
            assert not message.status and not message.retransmit, message
            before = self.windows.get(ident, (0, 0))
            self.windows[ident] = (max(before[0], message.offset), max(before[1], message.end))
        elif kind != bc.LOG:
            self.refused.append((kind, message))

    def reaches(self, other):
        """Whether the host that had heard `other` could have said its next word now."""
        return (other.answers.keys() <= self.answers.keys() and
                all(len(self.content.get(i, b"")) >= len(c) for i, c in other.content.items()) and
                all(self.windows.get(i, (0, 0)) >= w for i, w in other.windows.items()))

    def late_steps(self, other):
        """Steps only accepted here (the machine made the one before take over 50 ms), done at once there."""
        return [key for key, m in other.answers.items() if m.DESCRIPTOR.name == "Response" and m.HasField("step") and
                not self.answers[key].ListFields()]

    def missing(self, other):
        return sorted(other.answers.keys() - self.answers.keys())[:5]


def replay(frames, port):
    """Says the host's frames, each no earlier than the recorded host had heard as much; returns (recorded, heard)."""
    link = bc.Board.dial(port)
    recorded, heard = Heard(), Heard()

    def listen_until_caught_up():
        deadline = time.monotonic() + 30
        while not heard.reaches(recorded):
            assert time.monotonic() < deadline, f"the board does not say {heard.missing(recorded)}"
            link.sock.settimeout(1)
            try:
                data = link.sock.recv(65536)
            except TimeoutError:
                continue
            assert data, f"the board closed the link; not said: {heard.missing(recorded)}"
            for frame in link.decoder.feed(data):
                heard.add(frame)
            assert not heard.refused, heard.refused

    for direction, frame in frames:
        if direction == conversation.TO_HOST:
            recorded.add(frame)
            continue
        listen_until_caught_up()
        kind, session, ident, payload = frame
        link.sock.sendall(bc.encode_frame(kind, session, ident, payload))
    listen_until_caught_up()
    link.close()
    return recorded, heard


def with_board(bin_dir, uid, use):
    """use(port) with a simulated board of that uid."""
    board = subprocess.Popen([str(bin_dir / "odt-sim-board"), "--listen", "0", "--uid", uid], stdout=subprocess.PIPE,
                             text=True, preexec_fn=lambda: _LIBC.prctl(1, signal.SIGKILL))
    try:
        return use(int(board.stdout.readline().rsplit(":", 1)[1].split()[0]))
    finally:
        board.terminate()
        board.wait()
        board.stdout.close()


class HostOfThen:
    """Messages as a host of that release reads them: by the definitions pinned then, without fields it does not know."""

    def __init__(self, image):
        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(image.read_bytes()).file:
            pool.Add(file)
        self.pool, self.factory = pool, message_factory.MessageFactory(pool)

    def reads(self, message):
        then = self.factory.GetPrototype(self.pool.FindMessageTypeByName(message.DESCRIPTOR.full_name))()
        then.ParseFromString(message.SerializeToString())
        then.DiscardUnknownFields()
        seen = type(message).FromString(then.SerializeToString())
        if seen.DESCRIPTOR.name == "HelloAck":
            seen.caps &= 0x1FF  # the bits that had a meaning
        return seen


def test_recorded_host_of_0_1_finds_the_same_board(bin_dir):
    """Every answer, event and content of the board is to a host of 0.1 what the board of 0.1 said, but for boots, clocks and
    sizes in RAM."""
    host = HostOfThen(RECORDING.parent / "proto.binpb")
    frames = conversation.frames(conversation.read(RECORDING))
    hello = next(conversation.message(f) for d, f in frames if d == conversation.TO_HOST and f[0] == bc.HELLO_ACK)
    for _ in range(5):
        recorded, heard = with_board(bin_dir, hello.uid.hex(), lambda port: replay(frames, port))
        if not heard.late_steps(recorded):
            break
    for key, message in recorded.answers.items():
        now = host.reads(heard.answers[key])
        assert now == message, f"frame {key[0]:02x} {key[1]}: now\n{now}\nthen\n{message}"
    assert heard.answers.keys() == recorded.answers.keys(), heard.answers.keys() - recorded.answers.keys()
    assert heard.content == recorded.content, "content that the board sends differs"
    events = [m for (kind, _), m in recorded.answers.items() if kind == bc.EVENT]
    assert sum(m.WhichOneof("event") == "step" for m in events) >= 75 and len(recorded.content) >= 4


def test_recorded_host_notices_another_board(bin_dir):
    """The comparison can fail: the same conversation with another order of the samples does not agree."""
    frames = conversation.frames(conversation.read(RECORDING))
    at = next(i for i, (d, f) in enumerate(frames) if d == conversation.TO_BOARD and f[0] == bc.REQ and
              bc.pb.Request.FromString(f[3]).HasField("start_run"))
    kind, session, ident, payload = frames[at][1]
    request = bc.pb.Request.FromString(payload)
    request.start_run.spec.order_seed ^= 1
    frames[at] = (conversation.TO_BOARD, (kind, session, ident, request.SerializeToString()))
    end = next(i for i, (d, f) in enumerate(frames) if i > at and d == conversation.TO_BOARD and f[0] == bc.REQ)
    uid = next(conversation.message(f) for d, f in frames if d == conversation.TO_HOST and f[0] == bc.HELLO_ACK).uid
    recorded, heard = with_board(bin_dir, uid.hex(), lambda port: replay(frames[:end], port))
    assert any(heard.answers[key] != message for key, message in recorded.answers.items())
