"""Runs: one training of one model on one board; what they tell while they learn and when they have learned."""
from __future__ import annotations

import dataclasses
import datetime
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import api
from .arrays import array
from .errors import DeadlineExceeded, NotFound, RunFailed
from .lookup import word
from .things import Board, Thing, fraction, mean_loss, moment
from .watch import Token, Watch, topic

if TYPE_CHECKING:
    from .snapshots import Snapshot

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")


@dataclasses.dataclass(frozen=True)
class Epoch:
    """Results of one epoch. epoch: from 0. loss: mean of a sample. train, heldout: accuracy 0..1; None where there are no
    classes (then heldout_loss) or nothing was measured. step_us: mean of a step by the board's clock, microseconds."""

    epoch: int
    step: int
    loss: Optional[float]
    train: Optional[float]
    heldout: Optional[float]
    heldout_loss: Optional[float]
    best_step: int
    step_us: int
    pb: Any = dataclasses.field(repr=False)  # api.EpochResult: layers, alarms, state hash


@dataclasses.dataclass(frozen=True)
class Telemetry:
    """Records of steps, one row each; numpy arrays where numpy is there, else lists.

    step, attempt: [n]. loss: [n] mean of the batch's samples. correct: [n] right answers in the batch. bits (of the
    gradient's accumulators), shift, k (bits of the weights): [n][layers]. total: records that there are in the range.
    """

    step: Any
    attempt: Any
    loss: Any
    correct: Any
    bits: Any
    shift: Any
    k: Any
    total: int

    def __len__(self) -> int:
        return len(self.step)


@dataclasses.dataclass(frozen=True)
class Series:
    """A series in buckets of steps. first_step, count: [buckets]. min, max, mean: [buckets]; mean is nan in a bucket without
    records. kind: "loss" (mean of a record), "correct", "bits", "shift", "k"; layer: of the last three."""

    run: str
    kind: str
    layer: int
    first_step: Any
    count: Any
    min: Any
    max: Any
    mean: Any
    points: int  # records behind it


@dataclasses.dataclass(frozen=True)
class Estimate:
    """How a run would go, told before anything is sent. Times in seconds, sizes in bytes; 0: not known. basis:
    "THIS_BOARD", "SAME_CORE" (measured), "SCALED", "PREDICTED". warnings: (code, text)."""

    basis: str
    steps: int
    total_s: float
    prepare_s: float
    train_s: float
    queue_s: Optional[float]  # of the runs before it on the board
    send_bytes: int
    ram_bytes: int
    board_ram_bytes: int
    disk_bytes: int
    placement: str
    warnings: List[Tuple[str, str]]
    effective: Any = dataclasses.field(repr=False)  # api.HyperParams as the board would be told
    pb: Any = dataclasses.field(repr=False)

    @classmethod
    def of(cls, response: Any) -> "Estimate":
        e = response.estimate
        return cls(word(e, "basis"), e.steps, e.total_us / 1e6, e.prepare_us / 1e6, e.train_us / 1e6,
                   e.queue_us / 1e6 if e.queue_us >= 0 else None, e.send_bytes, e.ram_bytes, e.board_ram_bytes,
                   e.disk_bytes, e.placement, [(w.code, w.text) for w in e.warnings], response.run.effective, e)


class Run(Thing):
    """A run as it was when it was read; refresh() reads it again."""

    @property
    def id(self) -> str:
        return self.pb.id.hex()

    @property
    def name(self) -> str:
        return self.pb.spec.name

    @property
    def state(self) -> str:
        """QUEUED, PREPARING, RUNNING, PAUSED, WAITING_BOARD, EVALUATING, SUCCEEDED, FAILED, CANCELLED."""
        return word(self.pb, "state")

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def board(self) -> Board:
        return self.fleet.board(self.pb.spec.board_uid)

    @property
    def progress(self) -> float:
        """Share of the steps that are done, 0 to 1."""
        return self.pb.steps_done / self.pb.steps_total if self.pb.steps_total else 0.0

    @property
    def eta(self) -> Optional[datetime.datetime]:
        """When it will have ended, UTC, from measured times; None: not known, or it does not train now."""
        return moment(self.pb.eta_time_us)

    @property
    def seconds(self) -> Optional[float]:
        """From when it first ran to its end; None: it has not ended."""
        return (self.pb.end_time_us - self.pb.start_time_us) / 1e6 if self.pb.end_time_us and self.pb.start_time_us else None

    @property
    def before(self) -> Optional[float]:
        """Accuracy on the test split before training (evaluate=True)."""
        return fraction(self.pb.before)

    @property
    def after(self) -> Optional[float]:
        return fraction(self.pb.after)

    @property
    def heldout_start(self) -> Optional[float]:
        """Held-out accuracy of the weights it began with."""
        return fraction(self.pb.heldout_start)

    @property
    def heldout_best(self) -> Optional[float]:
        """Held-out accuracy of the weights it ended with, where the guard is on."""
        return fraction(self.pb.heldout_best)

    @property
    def verdict(self) -> str:
        """Which weights it ended with, and why, for people."""
        return self.pb.verdict_text

    @property
    def weights_hash(self) -> str:
        """Of the snapshot that it ended with; "": it has not."""
        return self.pb.final_weights_hash.hex()

    def weights(self) -> "Snapshot":
        """The snapshot that it ended with. NotFound: it has not ended well."""
        if not self.pb.final_weights_hash:
            raise NotFound(f"run {self.id[:8]} is {self.state}: it has no final weights", reason="NO_WEIGHTS")
        return self.fleet.snapshot(self.pb.final_weights_hash)

    def _says(self) -> str:
        return f" {self.state} {self.pb.steps_done}/{self.pb.steps_total}"

    def refresh(self) -> "Run":
        self.pb = self.fleet.call(api.GetRunRequest(id=self.pb.id)).run
        return self

    def watch(self, telemetry: bool = False, resume: Optional[Token] = None, timeout: Optional[float] = None) -> Watch:
        """Its changes, epochs and (telemetry=True) step records, as they happen: Watch. It does not end by itself."""
        topics = [topic("run", self.pb.id)] + ([topic("telemetry", self.pb.id)] if telemetry else [])
        return Watch(self.fleet.client, topics, resume, timeout)

    def wait(self, timeout: Optional[float] = None, on_epoch: Optional[Callable[[Epoch], None]] = None,
             check: bool = True) -> "Run":
        """Until it has ended. RunFailed where it has not SUCCEEDED (check=False: look at `state`); DeadlineExceeded after
        `timeout` seconds: the run goes on. on_epoch is called once for each epoch."""
        seen = set()

        def tell(epoch: Epoch) -> None:
            if on_epoch and (epoch.pb.attempt, epoch.epoch) not in seen:
                seen.add((epoch.pb.attempt, epoch.epoch))
                on_epoch(epoch)
        try:
            if not self.refresh().ended:
                with self.watch(timeout=timeout) as changes:
                    for change in changes:
                        if change.kind == "epoch":
                            tell(epoch_of(change.value))
                        elif change.kind == "run":
                            self.pb = change.value
                            if self.ended:
                                break
        except DeadlineExceeded:
            raise DeadlineExceeded(f"run {self.id[:8]} is {self.state} at step {self.pb.steps_done} of "
                                   f"{self.pb.steps_total} after {timeout} s", remedy="It goes on; wait again.") from None
        for epoch in self.epochs() if on_epoch else ():
            tell(epoch)
        return self._checked(check)

    def _checked(self, check: bool) -> "Run":
        if check and self.state != "SUCCEEDED":
            reason = self.pb.reason
            raise RunFailed(f"run {self.id[:8]} is {self.state}: {reason.text or 'no reason told'}", self,
                            reason=reason.code, remedy=reason.remedy)
        return self

    def epochs(self) -> List[Epoch]:
        """Results so far, oldest first."""
        return [epoch_of(e) for e in self.fleet.call(api.ListEpochsRequest(run_id=self.pb.id)).epochs]

    def telemetry(self, first_step: int = 0, last_step: int = 0, attempt: int = 0, max_frames: int = 0) -> Telemetry:
        """Step records from first_step to last_step (inclusive; 0: to the end), at most max_frames of them evenly chosen (0:
        2000). attempt 0: the newest record of every step. For long runs see series()."""
        answer = self.fleet.call(api.GetTelemetryRequest(run_id=self.pb.id, attempt=attempt, first_step=first_step,
                                                         last_step=last_step, max_frames=max_frames))
        frames = [f for f in answer.frames if not f.gap]
        layers = max((len(f.layers) for f in frames), default=0)

        def by_layer(field: str) -> Any:
            rows = [[getattr(one, field) for one in f.layers] + [0] * (layers - len(f.layers)) for f in frames]
            return array(rows, "int64")
        return Telemetry(array([f.step for f in frames], "int64"), array([f.attempt for f in frames], "int64"),
                         array([float("nan") if mean_loss(f.loss) is None else mean_loss(f.loss) for f in frames]),
                         array([f.correct for f in frames], "int64"), by_layer("bits"), by_layer("shift"), by_layer("k"),
                         answer.total)

    def series(self, *kinds: str, buckets: int = 200, layers: Sequence[int] = ()) -> Dict[Tuple[str, int], Series]:
        """Whole-run curves: {(kind, layer): Series}, e.g. run.series("loss")["loss", 0].mean. No kinds: all."""
        return {(s.kind, s.layer): s for s in self.fleet.series([self], kinds, buckets=buckets, layers=layers)}

    def export(self, path: str, format: str = "") -> None:
        """Every step record as text: "csv" or "jsonl" (default: by the file's name). The file appears whole or not."""
        self.fleet.export_telemetry(self, path, format)

    def pause(self) -> "Run":
        return self._told(api.PauseRunRequest)

    def resume(self) -> "Run":
        return self._told(api.ResumeRunRequest)

    def cancel(self) -> "Run":
        return self._told(api.CancelRunRequest)

    def retry(self) -> "Run":
        """A new run of the same settings. FailedPrecondition unless this one FAILED or was CANCELLED."""
        return Run(self.fleet, self.fleet.call(api.RetryRunRequest(id=self.pb.id)).run)

    def replay(self, timeout: Optional[float] = None) -> bool:
        """Does the same on the host, bit by bit: whether board equals model. JobFailed: it could not."""
        from .things import Job
        Job(self.fleet, self.fleet.call(api.ReplayRunRequest(run_id=self.pb.id)).job).wait(timeout)
        return self.refresh().pb.replay == api.Run.REPLAY_VERDICT_EQUAL

    def _told(self, request: Any) -> "Run":
        self.pb = self.fleet.call(request(id=self.pb.id)).run
        return self


def epoch_of(e: Any) -> Epoch:
    return Epoch(e.epoch, e.step, mean_loss(e.loss), fraction(e.train), fraction(e.heldout), mean_loss(e.heldout_loss),
                 e.best_step, e.step_us, e)


def series_of(run: Any) -> List[Series]:
    """The series of an api.RunSeries."""
    found = []
    for s in run.series:
        count = list(s.count or run.count)
        kind = word(s, "kind").lower()
        scale = 65536.0 if kind == "loss" else 1.0
        nan = float("nan")
        found.append(Series(
            run.run_id.hex(), kind, s.layer, array(list(run.bucket_first_step), "int64"), array(count, "int64"),
            array([v / scale for v in s.min]), array([v / scale for v in s.max]),
            array([v / scale / n if n else nan for v, n in zip(s.sum, count)]), run.points))
    return found
