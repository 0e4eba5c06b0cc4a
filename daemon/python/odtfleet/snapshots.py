"""Snapshots: weights by their hash, with where they came from."""
from __future__ import annotations

import dataclasses
import io
import pathlib
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import api
from .arrays import needed
from .errors import InvalidArgument
from .lookup import word
from .things import Job, Named, Thing, fraction

_FORMATS = {".npz": "npz", ".h": "c", ".json": "json", ".onnx": "onnx", ".odtw": "odtw"}


@dataclasses.dataclass(frozen=True)
class Difference:
    """What differs: values compared, changed of them, l1 = sum of |a - b|, linf = the largest, in steps of the finer of
    both precisions."""

    values: int
    changed: int
    l1: int
    linf: int

    @property
    def share(self) -> float:
        """Changed fraction, 0 to 1."""
        return self.changed / self.values if self.values else 0.0


@dataclasses.dataclass(frozen=True)
class LayerDifference:
    """Of one trainable layer. channels: of each output, where asked for. k: precisions (a, b)."""

    name: str
    shape: Tuple[int, ...]
    k: Tuple[int, int]
    weights: Difference
    offsets: Difference
    channels: List[Difference]


@dataclasses.dataclass(frozen=True)
class Diff:
    """Of two snapshots of one model."""

    all: Difference
    layers: List[LayerDifference]


@dataclasses.dataclass(frozen=True)
class Restored:
    """What became of one board. outcome: DONE, HELD_IT (nothing to do), REFUSED (it is as it was), FAILED. saved: hash of the
    snapshot that keeps what the board held and nobody had, or ""."""

    board: str
    outcome: str
    reason: str
    saved: str

    @property
    def ok(self) -> bool:
        return self.outcome in ("DONE", "HELD_IT")


class Snapshot(Thing):
    """Weights and offsets of a model at a step, content-addressed."""

    _key = "hash"

    @property
    def hash(self) -> str:
        return self.pb.hash.hex()

    @property
    def aliases(self) -> List[str]:
        return list(self.pb.aliases)

    @property
    def name(self) -> str:
        return self.pb.aliases[0] if self.pb.aliases else ""

    @property
    def step(self) -> int:
        return self.pb.step

    @property
    def origin(self) -> str:
        """"run", "pull", "upload", "automatic: before ..."."""
        return self.pb.origin

    @property
    def heldout(self) -> Optional[float]:
        """Held-out accuracy, where it was measured."""
        return fraction(self.pb.heldout)

    @property
    def pinned(self) -> bool:
        return self.pb.pinned

    def refresh(self) -> "Snapshot":
        self.pb = self.fleet.call(api.GetSnapshotRequest(hash=self.pb.hash)).snapshot
        return self

    def log(self, limit: int = 100) -> List["Snapshot"]:
        """This one, what it began as, and so on back to the model's own weights."""
        answer = self.fleet.call(api.ListSnapshotLogRequest(hash=self.pb.hash, limit=limit))
        return [Snapshot(self.fleet, e.snapshot) for e in answer.entries]

    def diff(self, other: Named, channels: bool = False) -> Diff:
        """Against another snapshot of the same model. FailedPrecondition (OTHER_MODEL)."""
        other = self.fleet.snapshot(other)
        d = self.fleet.call(api.DiffSnapshotsRequest(a=self.pb.hash, b=other.pb.hash, channels=channels))
        return Diff(_difference(d.all), [
            LayerDifference(one.name, tuple(one.shape), (one.k_a, one.k_b), _difference(one.weights),
                            _difference(one.offsets), [_difference(c) for c in one.channels]) for one in d.layers])

    def restore(self, board: Optional[Named] = None, *, boards: str = "", only: Sequence[Named] = (), commit: bool = False,
                dry_run: bool = False, timeout: float = 300.0) -> List[Restored]:
        """Puts it on a board, on those of a label query, or on those of `only`: one Restored for each board. One that
        refuses or is away does not hold up the others: look at `ok`. commit: to non-volatile memory too."""
        named = [*only, board] if board is not None else only
        request = api.RestoreCohortRequest(snapshot=self.pb.hash, boards=boards, commit=commit, dry_run=dry_run,
                                           board_uids=[self.fleet.board(b).pb.uid for b in named])
        answer = self.fleet.call(request, timeout=timeout)
        return [Restored(b.board_uid.hex(), word(b, "outcome"), b.reason.text, b.saved.hex()) for b in answer.boards]

    def bytes(self, format: str = "npz") -> bytes:
        """A file of the weights: "npz", "c" (header), "json", "onnx" (the model's own file with them), "odtw"."""
        if format == "onnx":
            job = Job(self.fleet, self.fleet.call(api.ExportOnnxRequest(snapshot=self.pb.hash)).job).wait(300)
            return self.fleet.blob(job.pb.result_key)
        if format not in _FORMATS.values():
            raise InvalidArgument(f"format '{format}' is none of " + ", ".join(_FORMATS.values()), field="format")
        number = 0 if format == "odtw" else getattr(api, f"WEIGHTS_FORMAT_{format.upper()}")
        return self.fleet.blob(self.fleet.call(api.ExportSnapshotRequest(snapshot=self.pb.hash, format=number)).blob)

    def export(self, path: Union[str, pathlib.Path], format: str = "") -> pathlib.Path:
        """Writes the file: .npz, .h, .json, .onnx or .odtw, by its name or `format`. Whole or not at all."""
        path = pathlib.Path(path)
        kind = format or _FORMATS.get(path.suffix, "")
        if not kind:
            raise InvalidArgument(f"{path}: its end tells no format", field="path",
                                  remedy="Use one of " + ", ".join(_FORMATS) + ", or give format=.")
        return write_whole(path, [self.bytes(kind)])

    def arrays(self) -> Dict[str, Any]:
        """Arrays by name: "layer0.weight" (int8 or int16, the layer's shape), "layer0.offset" (int32), ... FailedPrecondition
        without numpy. A value is integer * 2^-k-like by the manifest: see export("x.json")."""
        numpy = needed("arrays()")
        with numpy.load(io.BytesIO(self.bytes("npz")), allow_pickle=False) as file:
            return {name: file[name] for name in file.files if not name.endswith(".json")}

    def update(self, *, add: Sequence[str] = (), remove: Sequence[str] = (), note: Optional[str] = None,
               pinned: Optional[bool] = None) -> "Snapshot":
        """Aliases, note, pin (never pruned, never deleted)."""
        request = api.UpdateSnapshotRequest(hash=self.pb.hash, add_aliases=add, remove_aliases=remove, note=note)
        if pinned is not None:
            request.pinned = pinned
        self.pb = self.fleet.call(request).snapshot
        return self

    def delete(self) -> None:
        """Into the trash. FailedPrecondition: pinned, or in use (the text says by what)."""
        self.fleet.call(api.DeleteSnapshotRequest(hash=self.pb.hash))


def _difference(d: Any) -> Difference:
    return Difference(d.values, d.changed, d.l1, d.linf)


def write_whole(path: pathlib.Path, parts: Any) -> pathlib.Path:
    """The bytes of `parts`, one after the other, to `path`: under another name until it is whole."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as out:
            for piece in parts:
                out.write(piece)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


