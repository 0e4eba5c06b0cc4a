#!/usr/bin/python3
"""Non-volatile memory on one board: commit, power cycle, resume to the same bits, stand-alone, erase, bad content.

usage: nvm.py BOARD [--sim BINARY] [--images DIR]
BOARD: sim or one with an EEPROM (mps2_*, mps3_*).
"""

import argparse
import hashlib
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import golden_runs as golden  # noqa: E402

bc, pb, check = golden.bc, golden.pb, golden.check
RUN = b"nvm-run-00000001"
TRAIN, HELD = 64, 40


def read(name):
    with open(os.path.join(golden.GOLDEN, name), "rb") as f:
        return f.read()


class Rig:
    """A board with the memory `nvm`, killed and started again as often as wanted."""

    def __init__(self, board, args, nvm):
        self.board, self.args, self.nvm = board, args, nvm
        self.process = self.link = self.ack = None
        labels, data = bc.parse_samples(read("samples.odts"))
        dtype = read("samples.odts")[6]
        self.held = bc.make_samples(labels[:HELD], data[:HELD], dtype)
        self.train = bc.make_samples(labels[HELD:HELD + TRAIN], data[HELD:HELD + TRAIN], dtype)
        self.sample = data[0]
        self.evals = iter(range(100, 100000))

    def power_on(self, chips=2):
        """chips: of 64 KB each, where the memory is made now."""
        size = chips * 65536
        self.args.board_options = ["--nvm", self.nvm]
        if self.board == "sim":
            self.args.board_options += ["--nvm-bytes", str(size)]
        elif not os.path.exists(self.nvm):
            with open(self.nvm, "wb") as f:
                f.write(b"\xff" * size)
        self.process, self.link, self.ack = golden.start(self.board, self.args)
        return self.ack

    def power_off(self):
        self.link.close()
        self.process.kill()
        self.process.wait()

    def spec(self, streamed, **more):
        spec = golden.spec_of("B", self.train, streamed)
        spec.train_samples, spec.heldout_samples, spec.guard = TRAIN, HELD, True
        spec.sample_set_hash = bc.sample_set_hash(self.train, self.held)
        spec.class_weights = bytes([64, 60] + [64] * 8)
        for name, value in more.items():
            setattr(spec, name, value)
        return spec

    def load(self, streamed):
        self.link.push(pb.RESOURCE_MODEL_IMAGE, read("image.odtm"))
        self.samples(streamed)

    def samples(self, streamed):
        if not streamed:
            self.link.push(pb.RESOURCE_SAMPLES, self.train, index=pb.SAMPLE_ROLE_TRAIN)
            self.link.push(pb.RESOURCE_SAMPLES, self.held, index=pb.SAMPLE_ROLE_HELDOUT)

    def evaluate(self, _=0):
        eval_id = next(self.evals)
        self.link.evaluate_streamed(eval_id, None, self.held)
        return eval_id

    def start(self, spec, attempt, state=None):
        self.link.finish(start_run=pb.StartRun(run_id=RUN, attempt=attempt, spec=spec, expect_state_hash=state))
        if spec.streamed and state is None:
            self.evaluate()

    def end(self, spec, attempt):
        """Hash of the final state."""
        if spec.streamed:
            self.link.train_streamed(RUN, spec, self.train, attempt=attempt, on_epoch=self.evaluate,
                                     steps=24 - self.link.state(False).step)
        self.link.wait_event("job", 120, lambda j: j.job == pb.JOB_STATE_DONE)
        state = self.link.state()
        check("job", state.job, pb.JOB_STATE_DONE)
        return state.state_hash, state.weights_hash

    def commit(self, commit_id, **more):
        return self.link.finish(nvm_commit=pb.NvmCommit(commit_id=commit_id, **more)).nvm

    def status(self):
        return self.link.request(nvm_status=pb.NvmStatusGet()).nvm


def undisturbed(rig, streamed):
    rig.load(streamed)
    spec = rig.spec(streamed)
    rig.start(spec, 1)
    return rig.end(spec, 1)


def resumed(rig, streamed):
    """Power is cut in the middle of an epoch; the run goes on at the step that was committed."""
    rig.load(streamed)
    spec = rig.spec(streamed, commit_every=5, hold_at_epoch=not streamed)
    rig.start(spec, 1)
    if streamed:
        rig.link.train_streamed(RUN, spec, rig.train, steps=11, on_epoch=rig.evaluate)
        rig.link.wait_event("nvm", 60, lambda e: e.step == 10 and not e.text)
    else:
        # It holds at the epoch's end: step 8; 5 is committed.
        rig.link.wait_event("epoch", 60)
        rig.link.wait_event("nvm", 60, lambda e: e.step == 5 and not e.text)
    want = 10 if streamed else 5
    known = rig.status()
    check("committed step", (known.step, known.run_id, known.has_image, known.has_best),
          (want, RUN, True, True))
    rig.power_off()
    ack = rig.power_on()
    check("restored", (ack.restored, ack.run_id, ack.attempt, ack.last_step, ack.job),
          (True, RUN, 1, want, pb.JOB_STATE_UNSPECIFIED))
    check("state in HELLO_ACK", ack.state_hash, known.hash[:16])
    check("model in HELLO_ACK", ack.model_hash, hashlib.sha256(read("image.odtm")).digest()[:16])
    state = rig.link.state()
    check("GET_STATE", (state.restored, state.nvm_step, state.state_hash), (True, want, known.hash))
    rig.samples(streamed)
    rig.start(rig.spec(streamed), 2, state.state_hash)
    check("restored after START_RUN", rig.link.state().restored, False)
    return rig.end(rig.spec(streamed), 2)


def image_does_not_fit(rig, want):
    """One chip: two slots of 32 KB take state and best, not the model image; it comes from the host."""
    rig.power_off()
    os.remove(rig.nvm)
    rig.power_on(chips=1)
    rig.load(False)
    rig.start(rig.spec(False, commit_every=5, hold_at_epoch=True), 1)
    rig.link.wait_event("epoch", 60)
    rig.link.wait_event("nvm", 60, lambda e: e.step == 5 and not e.text)
    known = rig.status()
    check("what fits", (known.slot_bytes, known.has_image, known.has_best), (32640, False, True))
    assert known.want_state + known.want_best + known.want_image > known.slot_bytes
    rig.power_off()
    check("restored without image", rig.power_on(chips=1).restored, False)
    rig.load(False)
    check("restore", rig.link.finish(nvm_status=pb.NvmStatusGet(restore=True)).nvm.step, 5)
    state = rig.link.state()
    check("state", (state.restored, state.step, state.state_hash), (True, 5, known.hash))
    rig.start(rig.spec(False), 2, state.state_hash)
    check("resumed with the host's image", rig.end(rig.spec(False), 2), want)
    rig.power_off()
    os.remove(rig.nvm)
    rig.power_on()


def requests(rig, weights):
    """Of the run that is done: compare-and-set, ids, what is there already."""
    link = rig.link
    state = link.state()
    try:
        rig.commit(7, expect_hash=bytes(32))
        raise AssertionError("a commit of another state was taken")
    except bc.BoardError as e:
        check("expect_hash", e.code, pb.STATUS_CODE_FAILED_PRECONDITION)
    done = rig.commit(8, expect_hash=state.state_hash)
    check("commit", (done.kind, done.step, done.hash, done.has_image, done.commit_id),
          (pb.NVM_KIND_STATE, 24, state.state_hash, True, 8))
    event = link.wait_event("nvm", 10, lambda e: e.commit_id == 8)
    check("event", (event.sequence, event.hash, event.text), (done.sequence, state.state_hash, ""))
    check("same id", rig.commit(8).sequence, done.sequence)
    check("same content", rig.commit(9).sequence, done.sequence)
    rig.power_off()
    ack = rig.power_on()
    check("restored", (ack.restored, ack.last_step), (True, 24))
    check("weights", link_hash(rig.link), weights)


def link_hash(link):
    return hashlib.sha256(link.pull(pb.RESOURCE_WEIGHTS)).digest()


def stand_alone(rig, weights):
    """Nothing is pushed but a sample: the board infers and evaluates with what it was trained to."""
    rig.load(True)
    spec = rig.spec(True)
    rig.start(spec, 1)
    rig.end(spec, 1)
    want = rig.link.evaluate_streamed(next(rig.evals), None, rig.held)
    rig.link.push(pb.RESOURCE_INFER_INPUT, rig.sample)
    logits = rig.link.request(infer=pb.Infer()).infer.logits
    rig.commit(21)
    rig.power_off()
    rig.power_on()
    rig.link.push(pb.RESOURCE_INFER_INPUT, rig.sample)
    check("logits after power cycle", rig.link.request(infer=pb.Infer()).infer.logits, logits)
    got = rig.link.evaluate_streamed(next(rig.evals), None, rig.held)
    check("evaluation after power cycle", (got.correct, got.loss), (want.correct, want.loss))
    check("weights", link_hash(rig.link), weights)


def weights_and_image(rig):
    """Without a run: weights as pushed, then the image alone."""
    weights = rig.link.pull(pb.RESOURCE_WEIGHTS)
    rig.load(True)
    rig.link.push(pb.RESOURCE_WEIGHTS, weights)
    check("kind", rig.commit(31).kind, pb.NVM_KIND_WEIGHTS)
    rig.power_off()
    rig.power_on()
    check("weights as pushed", rig.link.pull(pb.RESOURCE_WEIGHTS), weights)
    rig.load(True)
    original = link_hash(rig.link)
    check("kind", rig.commit(32).kind, pb.NVM_KIND_IMAGE)
    rig.power_off()
    rig.power_on()
    check("weights of the image", link_hash(rig.link), original)


def erased(rig):
    before = rig.status()
    rig.link.finish(nvm_erase=pb.NvmErase(commit_id=41))
    now = rig.status()
    check("sequence", now.sequence, 0)
    assert now.writes_0 > before.writes_0 and now.writes_1 > before.writes_1, "wear is counted"
    assert rig.link.state().has_weights, "what is in memory stays"
    rig.power_off()
    ack = rig.power_on()
    check("after erase", (ack.restored, ack.model_hash), (False, b""))
    check("wear after power cycle", (rig.status().writes_0, rig.status().writes_1), (now.writes_0, now.writes_1))
    check("logs", [t for t in rig.link.logs if "NVM" in t], [])


def bad_content(rig):
    """Garbage, another version, a foreign head: one log line, and the memory is used anew."""
    rig.load(True)
    rig.commit(51)
    rig.power_off()
    size = os.path.getsize(rig.nvm)
    with open(rig.nvm, "rb") as f:
        good = f.read()
    version = bytearray(good)
    for slot in (0, size // 2):
        if version[slot:slot + 4] == b"ODTN":
            version[slot + 4] = 9
            version[slot + 124:slot + 128] = bc.zlib.crc32(version[slot:slot + 124]).to_bytes(4, "little")
    for name, content in (("garbage", os.urandom(size)), ("version", bytes(version))):
        with open(rig.nvm, "r+b") as f:
            f.write(content)
        ack = rig.power_on()
        check(name, (ack.restored, ack.model_hash), (False, b""))
        rig.link.ping()
        end = time.monotonic() + 5
        while not rig.link.logs and time.monotonic() < end:
            rig.link.pump(0.2)
        check(f"{name}: log lines", len([t for t in rig.link.logs if "NVM" in t]), 1)
        rig.load(True)
        check(f"{name}: commit", rig.commit(52).kind, pb.NVM_KIND_IMAGE)
        rig.power_off()
        assert rig.power_on().restored
        rig.power_off()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("board")
    parser.add_argument("--sim", default="build/bin/odt-sim-board")
    parser.add_argument("--images", default="build/bin/firmware")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="odt-nvm-") as folder:
        rig = Rig(args.board, args, os.path.join(folder, "nvm.bin"))
        try:
            rig.power_on()
            want = undisturbed(rig, True)
            check("resident", undisturbed(rig, False), want)
            check("streamed, power cut", resumed(rig, True), want)
            requests(rig, want[1])
            check("resident, power cut", resumed(rig, False), want)
            image_does_not_fit(rig, want)
            stand_alone(rig, want[1])
            weights_and_image(rig)
            erased(rig)
            bad_content(rig)
        finally:
            rig.process.kill()
            rig.process.wait()
    print("non-volatile memory: the same bits")


if __name__ == "__main__":
    main()
