"""Calls that change things, and whether what was answered OK survives kill -9 of odtd."""
import random
import signal
import threading
import time

SPARE_UID = 0x52000000_00000001
SPARES = 10
PAUSE = 2  # DesiredState
SUCCEEDED = 7  # and what comes after it is over, too


class Calls:
    """label, create-run, pause-run by turns; remembers what was answered OK."""

    def __init__(self, fleet, label="turn"):
        self.f, self.label, self.made = fleet, label, 0
        self.queued, self.labels, self.created, self.paused = [], {}, [], []

    def one(self):
        """RpcError where odtd does not answer."""
        f, i = self.f, self.made
        self.made += 1
        uid = (SPARE_UID + i % SPARES).to_bytes(8, "big")
        if i % 3 == 0:
            request = f.pb.UpdateBoardRequest(uid=uid)
            request.set_labels[self.label] = str(i)
            f.fleet.UpdateBoard(request, timeout=30)
            self.labels[uid] = i
        elif i % 3 == 1:
            spec = f.spec(SPARE_UID + i % SPARES, 1)
            run = f.call_runs.CreateRun(f.pb.CreateRunRequest(spec=spec), timeout=30).run.id
            self.created.append(run)
            self.queued.append(run)
        elif self.queued:
            run = self.queued.pop()
            try:
                f.call_runs.PauseRun(f.pb.PauseRunRequest(id=run), timeout=30)
                self.paused.append(run)
            except f.grpc.RpcError as error:  # it has ended meanwhile: an answer too
                if error.code() != f.grpc.StatusCode.FAILED_PRECONDITION:
                    raise

    def lost(self):
        """What was answered OK and is not there."""
        f, out = self.f, []
        for uid, turn in self.labels.items():
            board = f.fleet.GetBoard(f.pb.GetBoardRequest(uid=uid), timeout=30).board
            if int(board.labels.get(self.label, -1)) < turn:
                out.append(f"label of {uid.hex()}: {board.labels.get(self.label)}, wanted {turn}")
        runs = {run.id: run for run in f.all_runs()}
        out += [f"run {run.hex()}" for run in self.created if run not in runs]
        out += [f"pause of {run.hex()}" for run in self.paused
                if run in runs and runs[run].desired != PAUSE and runs[run].state < SUCCEEDED]
        return out


def kill_rounds(fleet, rounds, figures, raw):
    """odtd dies `rounds` times at a seeded moment while four callers change things."""
    draw = random.Random(7)
    answered, lost = 0, []
    for turn in range(rounds):
        callers = [Calls(fleet, f"caller{turn}.{number}") for number in range(4)]
        dead = threading.Event()

        def call(calls):
            while not dead.is_set():
                try:
                    calls.one()
                except fleet.grpc.RpcError:
                    return

        threads = [threading.Thread(target=call, args=(calls,)) for calls in callers]
        for thread in threads:
            thread.start()
        time.sleep(0.3 + draw.random())
        fleet.end("odtd", signal.SIGKILL)
        dead.set()
        for thread in threads:
            thread.join()
        fleet.connect_odtd()
        for calls in callers:
            answered += len(calls.labels) + len(calls.created) + len(calls.paused)
            lost += calls.lost()
    figures["lost_after_ok"] = len(lost) if rounds else None
    raw.update(kills=rounds, answered_before_kills=answered, lost=lost[:20])
