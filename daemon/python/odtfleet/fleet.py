"""Fleet: one odtd with its boards, models, data sets, runs and snapshots."""
from __future__ import annotations

import pathlib
import ssl
import urllib.error
import urllib.request
from typing import Any, Callable, List, Optional, Sequence, Union

from . import api, data as uploads
from .arrays import needed
from .campaigns import CampaignMaker
from .captures import Capture
from .client import TIMEOUT_S, Client
from .errors import FleetError, InvalidArgument, NotFound, Unavailable
from .evaluation import Answer, Evaluation, answers_of
from .hyper import Hyper
from .lookup import find, matches, number_of
from .operations import Operations
from .runs import Estimate, Run, Series, series_of
from .snapshots import Snapshot, write_whole
from .things import Board, Dataset, Info, Job, Model, Named, Thing
from .watch import Token, Watch, topic


class Fleet(CampaignMaker, Operations):
    """A connection to odtd. Thread-safe; use it with `with`, or close() it.

    >>> with Fleet("127.0.0.1:7421") as fleet:
    ...     run = fleet.train("rig-7", "fmnist", "rotated", epochs=5).wait()

    address: "host:port" or "unix:/path" of odtd's gRPC; default: where odtctl looks. timeout: seconds for one answer.
    owner: whom the calls are for, where boards are reserved; default: who makes them.
    http: where odtd's HTTP is ("http://host:port"); default: what odtd says. token, token_file, ca: who calls, and whose
    certificate odtd must have (TLS); default: $ODT_TOKEN, $ODT_CA, else what `odtctl login` has kept in ~/.config/odt.

    Where a board, model, data set, snapshot, run or campaign is asked for, give the object, its name or alias, its key
    (bytes), or the beginning of its key in hex, 6 digits at least. All methods raise FleetError (errors.py).
    """

    def __init__(self, address: str = "", timeout: float = TIMEOUT_S, http: str = "", owner: str = "", token: str = "",
                 token_file: str = "", ca: str = ""):
        self.client = Client(address, timeout, owner, token, token_file, ca)
        self._http = http

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Fleet {self.client.address}>"

    def close(self) -> None:
        self.client.close()

    def call(self, request: Any, timeout: Optional[float] = None) -> Any:
        """Any unary method of the API: fleet.call(api.ListQueuesRequest()).queues. Mutations get a request_id, and what the
        line lost is tried again with the same one, so that nothing happens twice."""
        return self.client.call(request, timeout)

    def info(self) -> Info:
        i = self.call(api.GetInfoRequest())
        return Info(i.version, i.http_url, i.data_dir, i.boards_online, i.boards_known, i)

    # -- boards

    def boards(self, query: str = "", *, include: Sequence[Named] = (), exclude: Sequence[Named] = ()) -> List[Board]:
        """Boards of a label query: terms joined by ',', all of which hold: "site=lab", "site!=lab", "broken" (has that label),
        "!broken", and fields "status=ONLINE", "type=sim", "core=...", "name=...", "place=..."; "": all. include and exclude
        add and take away single ones; include without a query: only those."""
        every = [Board(self, b) for b in self.client.list(api.ListBoardsRequest(), "boards")]
        added, gone = ([self._pick("board", b, every) for b in some] for some in (include, exclude))
        wanted = [b for b in every if (matches(query, b.labels, b.fields()) if query or not include else False) or b in added]
        return [b for b in wanted if b not in gone]

    def board(self, which: Named) -> Board:
        return self._one("board", which, Board, self.boards)

    # -- models and data

    def models(self, filter: str = "") -> List[Model]:
        """Newest first."""
        return [Model(self, m) for m in self.client.list(api.ListModelsRequest(filter=filter), "models")]

    def model(self, which: Named) -> Model:
        return self._one("model", which, Model, self.models)

    def add_model(self, onnx: uploads.Source, name: str, *, trainable_layers: int = 0, arithmetic: str = "",
                  input: str = "", input_exponent: Optional[int] = None, timeout: float = 300.0) -> Model:
        """Compiles an ONNX file (path or bytes). trainable_layers: the last so many, 0: all. arithmetic: "int8", "dfp16";
        input of float32 files: "u8", "s8", "s16". JobFailed names the node that cannot be done, and a remedy."""
        request = api.AddModelRequest(onnx_blob=self.upload(onnx), name=uploads.check_name(name),
                                      trainable_layers=trainable_layers, input_exponent=input_exponent)
        for field, value in (("arithmetic", arithmetic), ("input", input)):
            if value:
                setattr(request, field, number_of(request.DESCRIPTOR.fields_by_name[field].enum_type, value, field))
        job = Job(self, self.call(request).job).wait(timeout)
        return self.model(job.pb.result_key)

    def datasets(self, filter: str = "") -> List[Dataset]:
        """Newest first."""
        return [Dataset(self, d) for d in self.client.list(api.ListDatasetsRequest(filter=filter), "datasets")]

    def dataset(self, which: Named) -> Dataset:
        return self._one("dataset", which, Dataset, self.datasets)

    def add_dataset(self, name: str, x: Any, y: Any = None, x_test: Any = None, y_test: Any = None, *,
                    timeout: float = 300.0, **options: Any) -> Dataset:
        """A data set of numpy arrays. x: [n, ...] numbers, one sample [N], [H,W], [C,H,W] or [H,W,C]; y: [n] class numbers
        or names, [n] or [n, targets] floats (a regression), or None (an autoencoder). x_test, y_test: an own test split.
        options: those of api.ImportOptions, e.g. train, heldout, test (samples a split), split=(80, 10, 10), seed."""
        blob = self.upload(uploads.npz_of(x, y, x_test, y_test), f"{name}.npz")
        return self._import(blob, timeout, {"format": "npz", **options, "name": uploads.check_name(name)})

    def import_data(self, name: str, *paths: Union[str, pathlib.Path], labels: Optional[uploads.Source] = None,
                    test: Optional[uploads.Source] = None, test_labels: Optional[uploads.Source] = None,
                    timeout: float = 600.0, **options: Any) -> Dataset:
        """A data set of files or a folder: CSV, NPY, NPZ, IDX, WAV, Edge Impulse, PNG. labels, test, test_labels: files of
        IDX and NPY. options: those of api.ImportOptions, e.g. resize=(14, 14), transform="rot90", label_column="y"."""
        if not paths:
            raise InvalidArgument("paths: none is given", field="paths")
        content = uploads.gather(paths)
        options.setdefault("format", uploads.format_of(paths))
        blob = self.upload(content, "" if isinstance(content, pathlib.Path) else name)
        others = {field: self.upload(source) for field, source in
                  (("label_blob", labels), ("test_data_blob", test), ("test_label_blob", test_labels)) if source is not None}
        return self._import(blob, timeout, {**options, "name": uploads.check_name(name)}, **others)

    def _import(self, blob: bytes, timeout: float, options: dict, **others: Any) -> Dataset:
        try:
            made = api.ImportOptions(**options)
        except (TypeError, ValueError) as error:
            names = ", ".join(f.name for f in api.ImportOptions.DESCRIPTOR.fields)
            raise InvalidArgument(f"options: {error}", field="options", remedy=f"There are: {names}") from None
        job = Job(self, self.call(api.ImportDatasetRequest(options=made, data_blob=blob, **others)).job).wait(timeout)
        return self.dataset(job.pb.result_key)

    def train_on_pc(self, data: Named, name: str, *, hidden: Sequence[int] = (32,), arch: str = "", epochs: int = 10,
                    seed: int = 1, timeout: float = 900.0, **more: Any) -> Model:
        """Trains a network on this odtd's computer and adds it as a model. arch: "conv8x3x3s2,relu,gap,dense" in place of
        hidden. more: dfp16, augment, autoencode of api.TrainOnPcRequest."""
        request = api.TrainOnPcRequest(dataset_id=self.dataset(data).pb.id, hidden=hidden, arch=arch, epochs=epochs,
                                       seed=seed, name=uploads.check_name(name), **more)
        job = Job(self, self.call(request).job).wait(timeout)
        return self.model(job.pb.result_key)

    def upload(self, source: uploads.Source, name: str = "") -> bytes:
        """Bytes or a file to odtd; returns its SHA-256. Goes on where a broken upload of the same ended."""
        return uploads.upload(self, source, name)

    def blob(self, digest: Union[str, bytes], timeout: Optional[float] = None) -> bytes:
        """The content of a blob by its SHA-256, over HTTP. NotFound, Unavailable."""
        digest = bytes.fromhex(digest) if isinstance(digest, str) else digest
        self._http = self._http or self.info().http_url
        url = uploads.blob_url(self._http, digest)
        try:
            handlers: List[Any] = [urllib.request.ProxyHandler({})]
            if self.client.ca_pem:
                handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cadata=self.client.ca_pem.decode())))
            request = urllib.request.Request(url, headers=self.client.headers)
            with urllib.request.build_opener(*handlers).open(request, timeout=timeout or self.client.timeout) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            kind = NotFound if error.code == 404 else FleetError
            raise kind(f"blob {digest.hex()[:12]}: HTTP {error.code}") from None
        except OSError as error:
            raise Unavailable(f"blob {digest.hex()[:12]}: {error}", remedy='Give Fleet(..., http="http://HOST:PORT").') from None

    # -- runs

    def train(self, board: Named, model: Named, data: Optional[Named] = None, *, name: str = "",
              start: Optional[Named] = None, evaluate: bool = False, captured: bool = False, priority: int = 0,
              resume_deadline_s: int = 0, hyper: Optional[Hyper] = None, **settings: Any) -> Run:
        """Queues a run and returns at once: run.wait(), run.watch(). It goes on in odtd whatever becomes of this program.

        settings: those of Hyper (epochs=5, mu_weight=(1, -1, -3), k=15, ...), over `hyper`. start: a snapshot to begin with;
        default: the model's weights. evaluate: the test split before and after. captured: on samples that the board
        captured itself, in place of data. priority: -100..100, the highest waits least. resume_deadline_s: how long a lost
        board is waited for. Errors: InvalidArgument, NotFound, FailedPrecondition, ResourceExhausted (does not fit)."""
        spec = self._run_spec(board, model, data, name, start, evaluate, captured, priority, resume_deadline_s, hyper, settings)
        return Run(self, self.call(api.CreateRunRequest(spec=spec)).run)

    def estimate(self, board: Named, model: Named, data: Optional[Named] = None, *, start: Optional[Named] = None,
                 evaluate: bool = False, captured: bool = False, hyper: Optional[Hyper] = None, **settings: Any) -> Estimate:
        """What train() with the same arguments would take: time, memory, disk, fit. Nothing is begun; what train() refuses is
        refused here."""
        spec = self._run_spec(board, model, data, "", start, evaluate, captured, 0, 0, hyper, settings)
        return Estimate.of(self.call(api.CreateRunRequest(spec=spec, dry_run=True)))

    def _run_spec(self, board: Named, model: Named, data: Optional[Named], name: str, start: Optional[Named],
                  evaluate: bool, captured: bool, priority: int, deadline: int, hyper: Optional[Hyper], settings: dict) -> Any:
        message = Hyper.of(hyper, settings).message()
        if (data is None) != captured:
            raise InvalidArgument("data: " + ("none is given" if data is None else "the board's own samples are asked for"),
                                  field="data", remedy="Give a data set, or captured=True.")
        return api.RunSpec(
            board_uid=self.board(board).pb.uid, model_hash=self.model(model).pb.hash, hyper=message, name=name,
            dataset_id=b"" if data is None else self.dataset(data).pb.id, evaluate=evaluate, captured=captured,
            start_snapshot=b"" if start is None else self.snapshot(start).pb.hash, priority=priority,
            resume_deadline_s=deadline)

    def runs(self, filter: str = "", limit: int = 0) -> List[Run]:
        """Newest first. filter: "state=RUNNING,name!=test"; limit 0: all."""
        return [Run(self, r) for r in self.client.list(api.ListRunsRequest(filter=filter), "runs", limit)]

    def run(self, which: Named) -> Run:
        if isinstance(which, bytes) or isinstance(which, str) and len(which.replace("-", "")) == 32:
            try:
                key = which if isinstance(which, bytes) else bytes.fromhex(which.replace("-", ""))
                return Run(self, self.call(api.GetRunRequest(id=key)).run)
            except ValueError:
                pass  # a name of 32 letters
        return self._one("run", which, Run, self.runs)

    def series(self, runs: Sequence[Named], kinds: Sequence[str] = (), *, buckets: int = 200,
               layers: Sequence[int] = (), first_step: int = 0, last_step: int = 0) -> List[Series]:
        """Curves of up to 200 runs in one call: "loss", "correct", "bits", "shift", "k" (none given: all), exactly of the raw
        records, in at most `buckets` buckets (1..5000)."""
        request = api.GetSeriesRequest(run_ids=[self.run(r).pb.id for r in runs], buckets=buckets, layers=layers,
                                       first_step=first_step, last_step=last_step)
        kind = request.DESCRIPTOR.fields_by_name["kinds"].enum_type
        request.kinds.extend(number_of(kind, k, "kinds") for k in kinds)
        return [s for run in self.call(request).runs for s in series_of(run)]

    def export_telemetry(self, run: Named, path: Union[str, pathlib.Path], format: str = "") -> pathlib.Path:
        """Every step record as "csv" or "jsonl" (default: by the file's name). Whole or not at all."""
        path = pathlib.Path(path)
        request = api.ExportTelemetryRequest(run_id=self.run(run).pb.id)
        kind = request.DESCRIPTOR.fields_by_name["format"].enum_type
        request.format = number_of(kind, format or path.suffix[1:] or "csv", "format")
        return write_whole(path, (part.data for part in self.client.chunks(request)))

    def stop_all(self, cancel: bool = False) -> Any:
        """Emergency: pauses (or cancels) every run on every board, now. Returns api.StopAllResponse: runs, boards_silent."""
        return self.call(api.StopAllRequest(cancel=cancel))

    def watch(self, *kinds: str, runs: Sequence[Named] = (), telemetry: Sequence[Named] = (),
              resume: Optional[Token] = None, timeout: Optional[float] = None) -> Watch:
        """Changes as they happen. kinds: "fleet", "runs", "library", "jobs", "campaigns", "all" (default, where runs and
        telemetry name none either). runs: these with their epochs. telemetry: step records of these. resume: Watch.token."""
        topics = [topic(k) for k in kinds or (() if runs or telemetry else ("all",))]
        topics += [topic("run", self.run(r).pb.id) for r in runs]
        topics += [topic("telemetry", self.run(r).pb.id) for r in telemetry]
        return Watch(self.client, topics, resume, timeout)

    # -- weights

    def snapshots(self, filter: str = "", limit: int = 0) -> List[Snapshot]:
        """Newest first."""
        return [Snapshot(self, s) for s in self.client.list(api.ListSnapshotsRequest(filter=filter), "snapshots", limit)]

    def snapshot(self, which: Named) -> Snapshot:
        """By alias ("best"), object, hash, or the beginning of the hash."""
        if isinstance(which, bytes):
            return Snapshot(self, self.call(api.GetSnapshotRequest(hash=which)).snapshot)
        return self._one("snapshot", which, Snapshot, self.snapshots)

    def pull(self, board: Named, alias: str = "") -> Snapshot:
        """The weights that a board holds now, kept as a snapshot."""
        request = api.PullWeightsRequest(board_uid=self.board(board).pb.uid, alias=alias)
        return Snapshot(self, self.call(request, timeout=max(60.0, self.client.timeout)).snapshot)

    def push(self, weights: uploads.Source, alias: str = "") -> Snapshot:
        """Keeps an odt_weights file (path or bytes; Snapshot.export("x.odtw")) as a snapshot."""
        return Snapshot(self, self.call(api.AddSnapshotRequest(blob=self.upload(weights), alias=alias)).snapshot)

    # -- evaluate and try

    def evaluate(self, board: Named, data: Named, snapshot: Optional[Named] = None, *, split: str = "test",
                 samples: bool = False, timeout: float = 600.0) -> Evaluation:
        """Measures weights (default: what the board holds) on a split ("train", "heldout", "test"), on the board. samples:
        also which ones are wrong: Evaluation.wrong()."""
        request = api.EvaluateRequest(board_uid=self.board(board).pb.uid, dataset_id=self.dataset(data).pb.id, split=split,
                                      samples=samples, snapshot=b"" if snapshot is None else self.snapshot(snapshot).pb.hash)
        job = Job(self, self.call(request).job).wait(timeout)
        return Evaluation(self, self.call(api.GetEvaluationRequest(id=job.pb.result_key)).evaluation)

    def infer(self, board: Named, values: Any = None, *, data: Optional[Named] = None, split: str = "test", first: int = 0,
              count: int = 1) -> List[Answer]:
        """What a board says with the weights that it holds: of one sample by hand (values: numbers in the model's order, any
        shape), or of `count` (1..64) samples of a data set from `first` on."""
        request = api.InferRequest(board_uid=self.board(board).pb.uid)
        if (values is None) == (data is None):
            raise InvalidArgument("values, data: give one of both", field="values")
        if data is not None:
            request.dataset_id, request.split = self.dataset(data).pb.id, split
            request.first, request.count = first, count
        else:
            flat = values if isinstance(values, (list, tuple)) and not any(isinstance(v, (list, tuple)) for v in values) \
                else needed("infer() of an array").asarray(values, "float32").ravel()
            request.values.extend(float(v) for v in flat)
        return answers_of(self.call(request))

    def capture(self, board: Named) -> Capture:
        """Windows of a board's own sensor: start(), windows, values(), label(); then train(..., captured=True)."""
        return Capture(self, self.board(board))

    # -- jobs, backup

    def jobs(self, filter: str = "") -> List[Job]:
        """Newest first. filter: "kind=IMPORT"."""
        return [Job(self, j) for j in self.client.list(api.ListJobsRequest(filter=filter), "jobs")]

    def backup(self, path: Union[str, pathlib.Path]) -> pathlib.Path:
        """Everything that odtd keeps as one tar file, while it works; `odtd restore FILE --data DIR` reads it."""
        return write_whole(pathlib.Path(path), (part.data for part in self.client.chunks(api.BackupRequest())))

    # -- names

    def _one(self, what: str, which: Named, kind: Any, every: Callable[[], List[Any]]) -> Any:
        if isinstance(which, kind):
            return which
        return self._pick(what, which, every())

    @staticmethod
    def _pick(what: str, which: Named, every: List[Any]) -> Any:
        if isinstance(which, bytes):
            which = which.hex()
        if isinstance(which, Thing):
            if which in every:
                return next(t for t in every if t == which)
            raise InvalidArgument(f"{what}: {which!r} is none", field=what)
        if not isinstance(which, str) or not which:
            raise InvalidArgument(f"{what}: {which!r} is no name", field=what,
                                  remedy=f"Give a name, the beginning of a key, or the {what} itself.")
        return find(what, which, every, lambda t: t.key.hex(), lambda t: [t.name, *getattr(t, "aliases", ())])


