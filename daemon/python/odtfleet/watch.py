"""The Watch stream: every change as it happens, without gap or duplicate, also across broken lines and restarts."""
from __future__ import annotations

import dataclasses
import queue
import threading
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

import grpc

from . import api
from .client import Client
from .errors import DeadlineExceeded, FleetError, Unavailable, from_rpc

Token = Tuple[int, int]  # (store_epoch, event_seq)

_SILENCE_S = 45.0  # heartbeats come every 10 to 15 s
_PATIENCE_S = 60.0  # with an odtd that went away


@dataclasses.dataclass(frozen=True)
class Change:
    """One thing that happened.

    kind: "board", "port", "model", "dataset", "snapshot", "run", "run_event", "epoch", "job", "evaluation", "deleted",
    "warning", "campaign", "campaign_event", ... (the fields of api.Event), "telemetry" (api.TelemetryFrame; with gap: so many
    steps from step on have no record), or "resync": too much was missed, or the store is another; a snapshot follows. value: the message.
    seq: 0 for what is as it was when the stream began, and for telemetry. time_us: microseconds UTC, 0 where not told.
    """

    kind: str
    value: Any
    seq: int = 0
    time_us: int = 0
    actor: str = ""


class Watch:
    """Iterator of `Change`. Begins with a snapshot of the topics (seq 0) unless `resume` fits; then changes in the order of
    `seq`, all of them, each once. Breaks of the line are mended by resuming behind the last change that was handed out.

    `token` resumes the events in another process (fleet.watch(..., resume=token); step records begin anew). Use it with `with`, or close() it.
    Iterating raises Unavailable when odtd stays away for a minute, and DeadlineExceeded when `timeout` seconds are over.
    """

    def __init__(self, client: Client, topics: List[Any], resume: Optional[Token] = None, timeout: Optional[float] = None):
        self._client, self._topics = client, topics
        self._token = resume or (0, 0)
        self._end = None if timeout is None else time.monotonic() + timeout
        self._timeout = timeout
        self._news: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._call: Any = None
        self._closed = False
        self._away_since: Optional[float] = None
        self._changes = self._run()
        self.in_sync = False  # the snapshot is whole: what comes now is new

    @property
    def token(self) -> Token:
        """(store_epoch, event_seq) of the last change that was handed out; (0, 0): none yet."""
        return self._token

    def close(self) -> None:
        """Ends the stream. A thread that waits in the iteration gets its end."""
        self._closed = True
        if self._call is not None:
            self._call.cancel()
        self._news.put(None)

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Change]:
        return self._changes

    def __next__(self) -> Change:
        return next(self._changes)

    def _request(self) -> Any:
        return api.WatchRequest(topics=self._topics, resume_store_epoch=self._token[0], resume_event_seq=self._token[1])

    def _run(self) -> Iterator[Change]:
        while not self._closed:
            resync = False
            try:
                for response in self._responses():
                    self._away_since = None
                    resync = response.resync
                    yield from self._take(response)
                    if resync:
                        break
            except grpc.RpcError as rpc:
                error = from_rpc(rpc, "/odt.api.v1.WatchService/Watch")
                if self._closed:
                    return
                if error.code not in ("UNAVAILABLE", "CANCELLED"):
                    raise error from None
                self._be_patient(error)
                continue
            if self._closed:
                return
            if resync:
                self._token, self.in_sync = (0, 0), False
                for topic in self._topics:
                    topic.from_attempt = topic.from_step = 0
                yield Change("resync", None)
            else:
                self._be_patient(Unavailable("Watch: odtd has ended the stream"))

    def _responses(self) -> Iterator[Any]:
        """Responses of one call, read by a thread, so that silence and deadlines are noticed."""
        news = self._news = queue.SimpleQueue()
        call = self._call = self._client.stream(self._request())

        def read() -> None:
            try:
                for response in call:
                    news.put(response)
                news.put(None)
            except grpc.RpcError as error:
                news.put(error)
        threading.Thread(target=read, name="odtfleet-watch", daemon=True).start()
        try:
            while not self._closed:
                left = _SILENCE_S if self._end is None else min(_SILENCE_S, self._end - time.monotonic())
                if self._end is not None and left <= 0:
                    raise DeadlineExceeded(f"watch: {self._timeout:g} s are over")
                try:
                    item = news.get(timeout=left)
                except queue.Empty:
                    if left >= _SILENCE_S:
                        return  # not even a heartbeat: begin again
                    continue
                if item is None:
                    return
                if isinstance(item, grpc.RpcError):
                    raise item
                yield item
        finally:
            call.cancel()

    def _take(self, response: Any) -> Iterator[Change]:
        for event in response.events:
            kind = event.WhichOneof("what")
            if event.event_seq:
                self._token = (response.store_epoch, event.event_seq)
            if kind is not None:  # None: of a newer odtd
                yield Change(kind, getattr(event, kind), event.event_seq, event.time_us, event.actor)
        for frame in response.telemetry:
            self._remember(frame)
            yield Change("telemetry", frame, 0, frame.time_us)
        self.in_sync = self.in_sync or response.snapshot_done
        if self.in_sync and response.store_epoch and response.next_seq > 0:
            self._token = (response.store_epoch, max(self._token[1], response.next_seq - 1))

    def _remember(self, frame: Any) -> None:
        for topic in self._topics:
            # A gap is told late, with a step that lies behind.
            if topic.kind == api.Topic.KIND_TELEMETRY and topic.key == frame.run_id and \
                    (topic.from_attempt, topic.from_step) < (frame.attempt, frame.step):
                topic.from_attempt, topic.from_step = frame.attempt, frame.step

    def _be_patient(self, error: FleetError) -> None:
        now = time.monotonic()
        self._away_since = self._away_since or now
        if now - self._away_since > _PATIENCE_S:
            raise error
        if self._end is not None and now >= self._end:
            raise DeadlineExceeded(f"watch: {self._timeout:g} s are over; odtd is away") from error
        time.sleep(0.3)


def topic(kind: str, key: bytes = b"", lossless: bool = True, max_rate_hz: int = 0) -> Any:
    """An api.Topic by its word: "fleet", "runs", "run", "telemetry", "library", "jobs", "all", "campaigns", ..."""
    from .lookup import number_of
    words: Dict[str, str] = {"all": "all_events", "events": "all_events", "boards": "fleet"}
    number = number_of(api.Topic.DESCRIPTOR.enum_types_by_name["Kind"], words.get(kind, kind), "topic")
    return api.Topic(kind=number, key=key, lossless=lossless, max_rate_hz=max_rate_hz)
