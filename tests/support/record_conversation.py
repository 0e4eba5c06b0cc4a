#!/usr/bin/python3
"""Records a conversation with odt-sim-board for a release's fixtures.

usage: record_conversation.py --sim build/bin/odt-sim-board OUTPUT_FOLDER

Writes conversation.bin (tests/support/conversation.py describes it) and conversation.json: what every frame of the
board says, decoded independently of the host's codec. Made once a release and never again.
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "qemu")]
import board_client as bc  # noqa: E402
import conversation  # noqa: E402
import golden_runs  # noqa: E402

pb = bc.pb
UID = "0d700000000000f1"


def resident(link, samples, run_id):
    """Epoch 0 of golden run A on resident samples; then weights, state and an evaluation."""
    spec = golden_runs.spec_of("A", samples, False)
    spec.hold_at_epoch = True
    link.push(pb.RESOURCE_SAMPLES, samples, index=pb.SAMPLE_ROLE_TRAIN)
    link.request(start_run=pb.StartRun(run_id=run_id, attempt=1, spec=spec))
    link.wait_event("epoch")
    weights = link.pull(pb.RESOURCE_WEIGHTS)
    golden_runs.check("weights after epoch 0", bc.golden_hash(weights), golden_runs.expected()["A"][0][0])
    state = link.pull(pb.RESOURCE_STATE)
    golden_runs.check("state", hashlib.sha256(state).digest(), link.state().state_hash)
    link.request(job_control=pb.JobControl(action=pb.JobControl.ACTION_STOP, run_id=run_id))
    link.wait_event("job", match=lambda j: j.job == pb.JOB_STATE_STOPPED)
    link.request(evaluate=pb.Evaluate(eval_id=1, role=pb.SAMPLE_ROLE_TRAIN))
    link.wait_event("eval")
    link.pull(pb.RESOURCE_EVAL_RESULT)
    link.push(pb.RESOURCE_INFER_INPUT, bc.parse_samples(samples)[1][0])
    link.request(infer=pb.Infer())
    return state


def streamed(link, samples, run_id):
    """Three streamed steps, a step out of turn, a stop."""
    spec = golden_runs.spec_of("A", samples, True)
    link.request(start_run=pb.StartRun(run_id=run_id, attempt=1, spec=spec))
    link.train_streamed(run_id, spec, samples, steps=3)
    try:
        link.request(train_step=pb.TrainStep(run_id=run_id, attempt=1, step=9, batch_id=3, slot=0))
        raise AssertionError("a step out of turn was taken")
    except bc.BoardError as e:
        golden_runs.check("code", e.code, pb.STATUS_CODE_FAILED_PRECONDITION)
    link.pull(pb.RESOURCE_STATE)
    link.request(job_control=pb.JobControl(action=pb.JobControl.ACTION_STOP, run_id=run_id))


def converse(link):
    samples = (pathlib.Path(golden_runs.GOLDEN) / "samples.odts").read_bytes()
    image = (pathlib.Path(golden_runs.GOLDEN) / "image.odtm").read_bytes()
    link.hello()
    link.ping()
    link.state()
    link.push(pb.RESOURCE_MODEL_IMAGE, image)
    state = resident(link, samples, b"resident run 16b")
    link.push(pb.RESOURCE_MODEL_IMAGE, image)
    streamed(link, samples, b"streamed run 16b")
    link.push(pb.RESOURCE_MODEL_IMAGE, image)
    link.push(pb.RESOURCE_SAMPLES, samples, index=pb.SAMPLE_ROLE_TRAIN)
    link.push(pb.RESOURCE_STATE, state)
    golden_runs.check("state pushed", link.state().state_hash, hashlib.sha256(state).digest())
    link.ping()
    link.send(bc.BYE, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sim", required=True)
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    port = golden_runs.free_port()
    board = subprocess.Popen([args.sim, "--listen", str(port), "--uid", UID], stdout=subprocess.DEVNULL)
    try:
        link = bc.Board.dial(port)
        link.sock = tap = conversation.Tap(link.sock)
        converse(link)
    finally:
        board.terminate()
        board.wait()
    conversation.write(args.folder / "conversation.bin", tap.records)
    said = [conversation.values(f) for d, f in conversation.frames(tap.records) if d == conversation.TO_HOST]
    lines = ",\n".join(json.dumps(v) for v in said)
    (args.folder / "conversation.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(said)} frames of the board")


if __name__ == "__main__":
    main()
