"""Windows of a board's own sensor: captured, looked at, labelled, trained on where they were taken."""
from __future__ import annotations

import dataclasses
import sys
from array import array as plain_array
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple

from . import api
from .arrays import array, needed
from .errors import InvalidArgument
from .lookup import number_of, word
from .things import Board, Named

if TYPE_CHECKING:
    from .fleet import Fleet

_TYPES = {1: ("int8", "b"), 2: ("uint8", "B"), 3: ("int16", "h")}  # dtype on the wire: numpy's, array's
_FEED_BYTES = 64 * 1024


@dataclasses.dataclass(frozen=True)
class Window:
    """One window on a board. id: from 1 since the start. label: class, None: none yet. kept: "" (no sample), "TRAIN",
    "HELDOUT". time_ms: of the board's uptime, at its last step."""

    id: int
    label: Optional[int]
    kept: str
    time_ms: int
    by_rule: bool
    by_button: bool


@dataclasses.dataclass(frozen=True)
class Rule:
    """Labels a window whose `of` ("mean", "max", "range") over a channel is in min..max, in the sensor's values."""

    of: str
    channel: int
    min: int
    max: int
    label: int


class Capture:
    """The capture of one board: fleet.capture("rig-7"). What a board holds is lost with its memory; nothing of it is stored
    by odtd. After it: fleet.train(board, model, captured=True).

    >>> capture = fleet.capture("rig-7").start("kinds", window_steps=64, rules=[Rule("mean", 0, -100, -1, label=0)], keep="train")
    >>> capture.refresh().values(capture.windows[0].id).shape
    (3, 64)
    """

    def __init__(self, fleet: "Fleet", board: Board):
        self.fleet, self.board = fleet, board
        self.pb = api.Capture()  # as it was when it was read

    def __repr__(self) -> str:
        return f"<Capture {self.board.name} {self.captured} windows{'' if self.active else ', stopped'}>"

    @property
    def active(self) -> bool:
        return self.pb.active

    @property
    def captured(self) -> int:
        """Windows since the start."""
        return self.pb.captured

    @property
    def kept(self) -> Tuple[int, int]:
        """Samples made since the start: (train, held-out)."""
        return self.pb.kept_train, self.pb.kept_heldout

    @property
    def windows(self) -> List[Window]:
        """Those that the board holds, oldest first."""
        return [Window(w.id, w.label if w.HasField("label") else None, word(w, "kept") if w.kept else "", w.time_ms, w.by_rule,
                       w.by_button) for w in self.pb.windows]

    def refresh(self) -> "Capture":
        self.pb = self.fleet.call(api.GetCaptureRequest(uid=self.board.key)).capture
        return self

    def start(self, model: Optional[Named] = None, *, window_steps: int = 0, rules: Sequence[Rule] = (), keep: str = "",
              trigger: str = "", **settings: Any) -> "Capture":
        """Begins anew. model: loaded where the board holds another. window_steps * channels = values of the model's input.
        keep: "train" or "heldout": what is labelled becomes a sample at once. trigger: "level", "button"; default: always.
        settings: those of api.CaptureSettings (slots, stride_steps, heldout_every, channels, dtype, unscaled, label, ...).
        Errors: InvalidArgument, FailedPrecondition (no sensor, no model), ResourceExhausted."""
        try:
            made = api.CaptureSettings(window_steps=window_steps, **settings)
            for rule in rules:
                added = made.rules.add(channel=rule.channel, min=rule.min, max=rule.max, label=rule.label)
                added.of = number_of(added.DESCRIPTOR.fields_by_name["of"].enum_type, rule.of, "rules.of")
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidArgument):
                raise
            names = ", ".join(f.name for f in api.CaptureSettings.DESCRIPTOR.fields)
            raise InvalidArgument(f"settings: {error}", field="settings", remedy=f"There are: {names}") from None
        for field, value in (("keep", keep), ("trigger", trigger)):
            if value:
                setattr(made, field, number_of(made.DESCRIPTOR.fields_by_name[field].enum_type, value, field))
        request = api.StartCaptureRequest(uid=self.board.key, settings=made,
                                          model_hash=b"" if model is None else self.fleet.model(model).key)
        self.pb = self.fleet.call(request).capture
        return self

    def stop(self) -> "Capture":
        """The windows stay."""
        self.pb = self.fleet.call(api.StopCaptureRequest(uid=self.board.key)).capture
        return self

    def values(self, window: int) -> Any:
        """Of one window, as the model would read them: [channels][window_steps], int8, uint8 or int16. NotFound."""
        answer = self.fleet.call(api.GetWindowRequest(uid=self.board.key, id=window))
        kind, code = _TYPES.get(answer.dtype, ("uint8", "B"))
        flat = plain_array(code, answer.values)
        if sys.byteorder == "big":
            flat.byteswap()
        steps = self.pb.window_steps or self.refresh().pb.window_steps or len(flat)
        return array([list(flat[at:at + steps]) for at in range(0, len(flat), steps)], kind)

    def label(self, window: int, label: int, keep: str = "") -> "Capture":
        """Gives a window its class. keep: "train" or "heldout" makes it a sample. FailedPrecondition: it is one already."""
        request = api.LabelWindowRequest(uid=self.board.key, id=window, label=label)
        if keep:
            request.keep = number_of(request.DESCRIPTOR.fields_by_name["keep"].enum_type, keep, "keep")
        self.fleet.call(request)
        return self.refresh()

    def feed(self, steps: Any, first: int = 0) -> "Capture":
        """Time steps [n, channels] for a board without a sensor of its own, of the dtype that start() named (1 int8, 2 uint8,
        3 int16). first: number of the first step since the start: what the board has already is skipped."""
        numpy = needed("feed()")
        steps = numpy.asarray(steps)
        if steps.ndim != 2 or steps.dtype.name not in ("int8", "uint8", "int16"):
            raise InvalidArgument(f"steps: {steps.dtype} {steps.shape}; [n, channels] of int8, uint8 or int16", field="steps")
        at_once = max(1, _FEED_BYTES // max(1, steps[:1].nbytes))
        for at in range(0, len(steps), at_once):
            part = numpy.ascontiguousarray(steps[at:at + at_once]).astype(steps.dtype.newbyteorder("<"))
            request = api.FeedSensorRequest(uid=self.board.key, first=first + at, steps=part.tobytes())
            self.pb = self.fleet.call(request, timeout=max(60.0, self.fleet.client.timeout)).capture
        return self.refresh()
