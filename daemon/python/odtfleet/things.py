"""What odtd keeps: base class, boards, models, data sets, jobs."""
from __future__ import annotations

import dataclasses
import datetime
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

from . import api
from .client import until
from .errors import JobFailed
from .lookup import word

if TYPE_CHECKING:
    from .fleet import Fleet
    from .snapshots import Snapshot


def fraction(accuracy: Any) -> Optional[float]:
    """correct / total of an api.Accuracy; None where nothing was measured."""
    return accuracy.correct / accuracy.total if accuracy.total else None


def mean_loss(loss: Any) -> Optional[float]:
    """Mean of an api.Loss over its samples: sum * 2^exp2 / count; None where there are none."""
    return loss.sum * 2.0 ** loss.exp2 / loss.count if loss.count else None


def moment(time_us: int) -> Optional[datetime.datetime]:
    """UTC; None: it has not come."""
    return datetime.datetime.fromtimestamp(time_us / 1e6, datetime.timezone.utc) if time_us else None


class Thing:
    """A resource as it was when it was read. `pb`: its message with everything, odt/api/v1/types.proto."""

    _key = "id"

    def __init__(self, fleet: "Fleet", pb: Any):
        self.fleet, self.pb = fleet, pb

    @property
    def key(self) -> bytes:
        return getattr(self.pb, self._key)

    @property
    def created(self) -> Optional[datetime.datetime]:
        """When it came to be, UTC."""
        return moment(self.pb.meta.create_time_us)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.key == self.key  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.key))

    def __repr__(self) -> str:
        name = getattr(self, "name", "")
        return f"<{type(self).__name__} {name + ' ' if name else ''}{self.key.hex()[:12]}{self._says()}>"

    def _says(self) -> str:
        return ""


class Board(Thing):
    """A microcontroller that runs the firmware, by the uid of its chip."""

    _key = "uid"

    @property
    def uid(self) -> str:
        return self.pb.uid.hex()

    @property
    def name(self) -> str:
        return self.pb.name

    @property
    def place(self) -> str:
        return self.pb.place

    @property
    def labels(self) -> Dict[str, str]:
        return dict(self.pb.labels)

    @property
    def type(self) -> str:
        """E.g. "mps2_an505", "sim"."""
        return self.pb.board_type

    @property
    def core(self) -> str:
        """E.g. "cortex-m33"."""
        return self.pb.core

    @property
    def status(self) -> str:
        """ONLINE, SUSPECT, OFFLINE, QUARANTINED, BUSY."""
        return word(self.pb, "status")

    @property
    def online(self) -> bool:
        return self.status in ("ONLINE", "BUSY")

    @property
    def ram_bytes(self) -> int:
        return self.pb.ram_bytes

    def _says(self) -> str:
        return f" {self.type} {self.status}"

    def fields(self) -> Dict[str, str]:
        """What a label query may ask for beside labels."""
        return {"name": self.name, "place": self.place, "type": self.type, "core": self.core, "status": self.status}

    def refresh(self) -> "Board":
        self.pb = self.fleet.call(api.GetBoardRequest(uid=self.pb.uid)).board
        return self

    def label(self, remove: Tuple[str, ...] = (), **labels: str) -> "Board":
        """Sets labels, and takes away those of `remove`."""
        self.pb = self.fleet.call(api.UpdateBoardRequest(uid=self.pb.uid, set_labels=labels, remove_labels=remove)).board
        return self

    def rename(self, name: Optional[str] = None, place: Optional[str] = None) -> "Board":
        """Both are unique in the fleet: AlreadyExists."""
        self.pb = self.fleet.call(api.UpdateBoardRequest(uid=self.pb.uid, name=name, place=place)).board
        return self

    def pull(self, alias: str = "") -> "Snapshot":
        """The weights that the board holds now, kept as a snapshot. Unavailable: it does not answer."""
        return self.fleet.pull(self, alias)

    def commit(self) -> Any:
        """What the board holds to its non-volatile memory; returns api.BoardNvm. FailedPrecondition: it has none."""
        return self.fleet.call(api.CommitBoardRequest(uid=self.pb.uid)).nvm


class Model(Thing):
    """A compiled image, by the SHA-256 of its bytes."""

    _key = "hash"

    @property
    def hash(self) -> str:
        return self.pb.hash.hex()

    @property
    def name(self) -> str:
        return self.pb.name

    @property
    def input_shape(self) -> Tuple[int, ...]:
        """(N,) or (C, H, W)."""
        return tuple(self.pb.input_shape)

    @property
    def classes(self) -> int:
        """0: a regression or an autoencoder."""
        return self.pb.n_classes

    def delete(self) -> None:
        """Into the trash. FailedPrecondition: runs use it."""
        self.fleet.call(api.DeleteModelRequest(hash=self.pb.hash))


class Dataset(Thing):
    """Source values with labels or targets, in splits."""

    @property
    def id(self) -> str:
        return self.pb.id.hex()

    @property
    def name(self) -> str:
        return self.pb.name

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of one sample."""
        return tuple(self.pb.shape)

    @property
    def counts(self) -> Dict[str, int]:
        """Samples of "train", "heldout" and "test"."""
        return {"train": self.pb.train, "heldout": self.pb.heldout, "test": self.pb.test}

    @property
    def class_names(self) -> List[str]:
        return list(self.pb.class_names)

    @property
    def warnings(self) -> List[str]:
        """What the import found: leaks, duplicates, classes without samples, ..."""
        return list(self.pb.warnings)

    def _says(self) -> str:
        return f" {'x'.join(map(str, self.shape))} {self.pb.train}+{self.pb.heldout}+{self.pb.test}"

    def report(self) -> Any:
        """api.DatasetReport: balance, duplicates, ranges."""
        return self.fleet.call(api.GetDatasetRequest(id=self.pb.id)).report

    def delete(self) -> None:
        """Into the trash. FailedPrecondition: runs use it."""
        self.fleet.call(api.DeleteDatasetRequest(id=self.pb.id))


class Job(Thing):
    """Work of odtd: compile, import, train on the PC, evaluate, replay, export."""

    @property
    def id(self) -> str:
        return self.pb.id.hex()

    @property
    def kind(self) -> str:
        return word(self.pb, "kind")

    @property
    def state(self) -> str:
        """QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED."""
        return word(self.pb, "state")

    @property
    def progress(self) -> float:
        """0 to 1."""
        return self.pb.progress_permille / 1000

    def _says(self) -> str:
        return f" {self.kind} {self.state}"

    def refresh(self) -> "Job":
        self.pb = self.fleet.call(api.GetJobRequest(id=self.pb.id)).job
        return self

    def wait(self, timeout: Optional[float] = None) -> "Job":
        """Until it has ended well. JobFailed: it has not; DeadlineExceeded: it goes on."""
        until(f"{self.kind.lower()} job {self.id[:8]}",
              lambda: self.refresh().state in ("SUCCEEDED", "FAILED", "CANCELLED"), timeout)
        if self.state != "SUCCEEDED":
            reason = self.pb.reason
            raise JobFailed(f"{self.kind.lower()}: {reason.text or self.pb.message or self.state}", self,
                            reason=reason.code, remedy=reason.remedy)
        return self

    def cancel(self) -> "Job":
        self.pb = self.fleet.call(api.CancelJobRequest(id=self.pb.id)).job
        return self


@dataclasses.dataclass(frozen=True)
class Info:
    """About this odtd."""

    version: str
    http_url: str
    data_dir: str
    boards_online: int
    boards_known: int
    pb: Any = dataclasses.field(repr=False)


Named = Union[str, bytes, Thing]
