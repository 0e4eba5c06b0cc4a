"""A script of a user in Python: stubs made with protoc, everything over gRPC."""
import contextlib
import importlib
import os
import pathlib
import queue
import subprocess
import sys
import threading

from world import FIXED, World, now

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"  # children are started while channels are open
import grpc  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVICES = ("FleetService", "RunService", "WatchService", "ModelService", "DatasetService", "SystemService")


def stubs(folder):
    """(messages, types, services) generated into `folder` from proto/odt/api/v1, as any user would."""
    proto = ROOT / "proto"
    out = folder / "stubs"
    out.mkdir()
    files = sorted(str(p.relative_to(proto)) for p in (proto / "odt" / "api" / "v1").glob("*.proto"))
    subprocess.run(["protoc", "-I", str(proto), "--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin",
                    f"--python_out={out}", f"--grpc_python_out={out}", *files], check=True)
    sys.path.insert(0, str(out))
    try:
        importlib.invalidate_caches()
        return tuple(importlib.import_module(f"odt.api.v1.{name}")
                     for name in ("services_pb2", "types_pb2", "services_pb2_grpc"))
    finally:
        sys.path.remove(str(out))


class Api:
    """Stubs over the unix socket."""
    generated = None

    def __init__(self, world):
        Api.generated = Api.generated or stubs(world.root)
        self.m, self.t, services = Api.generated
        self.channel = grpc.insecure_channel(f"unix:{world.socket_path}")
        for name in SERVICES:
            setattr(self, name[:-7].lower(), getattr(services, name + "Stub")(self.channel))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def spec(self, board, epochs):
        """A run on `board`, with the settings of world.FIXED."""
        given = dict(zip(FIXED[::2], FIXED[1::2]))
        hyper = self.t.HyperParams(
            policy=self.t.POLICY_FIXED, rounding=self.t.ROUNDING_HALF_UP, loss=self.t.LOSS_KIND_CE, k=given["--k"],
            mu_weight=[int(v) for v in given["--mu-weight"].split(",")], mu_offset=int(given["--mu-offset"]),
            batch=given["--batch"], order_seed=given["--seed"], epochs=epochs)
        model = next(m for m in self.model.ListModels(self.m.ListModelsRequest()).models if m.name == "small")
        data = next(d for d in self.dataset.ListDatasets(self.m.ListDatasetsRequest()).datasets if d.name == "shifted")
        return self.t.RunSpec(board_uid=board.uid, model_hash=model.hash, dataset_id=data.id, hyper=hyper)

    def start_run(self, board, epochs=3):
        return self.run.CreateRun(self.m.CreateRunRequest(request_id=os.urandom(8).hex(), spec=self.spec(board, epochs))).run

    def boards(self):
        return list(self.fleet.ListBoards(self.m.ListBoardsRequest()).boards)

    def topics(self, run=None, **resume):
        kinds = self.m.Topic
        asked = [kinds(kind=kinds.KIND_ALL_EVENTS, lossless=True)]
        if run:
            asked.append(kinds(kind=kinds.KIND_TELEMETRY, key=run.id, lossless=True, **resume))
        return asked


class Watching:
    """A Watch, read by a thread of its own. events: durable ones in order; frames: telemetry in order."""

    def __init__(self, api, topics, epoch=0, seq=0, on_frame=lambda f: None):
        self.api, self.on_frame = api, on_frame
        self.events, self.frames, self.faults = [], [], []
        self.store_epoch = self.resync = self.snapshots = 0
        self.held = 0  # the newest change of a run that the snapshot holds
        self.ready, self.news = threading.Event(), queue.SimpleQueue()
        self.call = api.watch.Watch(api.m.WatchRequest(topics=topics, resume_store_epoch=epoch, resume_event_seq=seq))
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            for response in self.call:
                self.store_epoch, self.resync = response.store_epoch, self.resync or response.resync
                # Boards as they are now come again after a resume; runs, models and data only in a snapshot.
                self.snapshots += sum(e.event_seq == 0 and e.WhichOneof("what") not in ("board", "port")
                                      for e in response.events)
                self.held = max([self.held] + [e.run.meta.etag for e in response.events
                                               if not e.event_seq and e.WhichOneof("what") == "run"])
                self.events += [e for e in response.events if e.event_seq]
                self.frames += response.telemetry
                for frame in response.telemetry:
                    self.on_frame(frame)
                if response.snapshot_done:
                    self.ready.set()
                self.news.put(1)
        except grpc.RpcError as e:
            if e.code() != grpc.StatusCode.CANCELLED:
                self.faults.append(str(e))
        except AssertionError as e:
            self.faults.append(str(e))
        self.news.put(0)  # the stream has ended

    def until(self, what, probe, seconds=60):
        """Waits until probe() is true, looking whenever something came."""
        deadline = now() + seconds
        while not probe():
            left = deadline - now()
            assert left > 0, f"not within {seconds} s: {what}"
            with contextlib.suppress(queue.Empty):
                assert self.news.get(timeout=left), f"the stream ended before: {what} {self.faults}"

    def until_final(self, run):
        self.until("end of the run", lambda: any(
            e.WhichOneof("what") == "run" and e.run.id == run.id and e.run.state == self.api.t.RUN_STATE_SUCCEEDED
            for e in self.events))

    def close(self):
        self.call.cancel()
        self.thread.join(10)
        assert not self.faults and not self.resync, (self.faults, self.resync)
        return self.seqs()

    def seqs(self):
        return [e.event_seq for e in self.events]


def dense(seqs):
    return bool(seqs) and seqs == list(range(seqs[0], seqs[0] + len(seqs)))


def prepared(world, *board_options):
    world.prepare()
    world.add_sim("sim", "5100000000000001", *board_options)


def test_api_lists_reflects_and_is_healthy(bin_dir):
    with World(bin_dir) as world:
        world.add_sim("left", "5100000000000001")
        world.add_sim("right", "5100000000000002")
        with Api(world) as api:
            boards = {b.name: b for b in api.boards()}
            assert sorted(boards) == ["left", "right"]
            assert all(b.status == api.t.BOARD_STATUS_ONLINE and b.core == "host" for b in boards.values())
            assert boards["left"].uid.hex() == "5100000000000001"
            world.wait_for("both boards counted",  # by the fleet's view, which follows within a second
                           lambda: api.system.GetInfo(api.m.GetInfoRequest()).boards_online == 2, 3)
            health = api.channel.unary_unary("/grpc.health.v1.Health/Check")
            assert health(b"", timeout=5) == b"\x08\x01", "not SERVING"
            reflect = api.channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
            listed = next(iter(reflect(iter([b"\x3a\x00"]), timeout=5)))  # list_services
            for name in SERVICES:
                assert f"odt.api.v1.{name}".encode() in listed, name
            try:
                api.fleet.GetBoard(api.m.GetBoardRequest(uid=b"nobody!!"))
                raise AssertionError("a board that is not there was found")
            except grpc.RpcError as e:
                assert e.code() == grpc.StatusCode.NOT_FOUND, e


def test_api_watch_is_dense_and_telemetry_is_stored_first(bin_dir):
    with World(bin_dir) as world:
        prepared(world)
        with Api(world) as api:
            board = api.boards()[0]
            run = api.start_run(board)

            def stored(frame):
                asked = api.m.GetTelemetryRequest(run_id=frame.run_id, first_step=frame.step, last_step=frame.step or 1)
                held = {f.step: f for f in api.run.GetTelemetry(asked).frames}
                assert frame.step in held and held[frame.step].loss == frame.loss, f"step {frame.step} is not stored"

            watch = Watching(api, api.topics(run), on_frame=stored)
            watch.until_final(run)
            watch.until("150 steps", lambda: len(watch.frames) >= 150)
            assert dense(watch.close()), watch.seqs()
            assert sorted({f.step for f in watch.frames}) == list(range(150)) and len(watch.frames) == 150
            epochs = [e.epoch.epoch for e in watch.events if e.WhichOneof("what") == "epoch"]
            assert epochs == [0, 1, 2], epochs


def test_api_watch_resumes_without_gap_or_duplicate(bin_dir):
    """The stream is dropped three times in mid-run; the parts together are what an undisturbed stream saw."""
    with World(bin_dir) as world:
        prepared(world, "--step-delay-ms", 15)
        with Api(world) as api:
            whole = Watching(api, api.topics())
            assert whole.ready.wait(10)
            run = api.start_run(api.boards()[0])
            seqs, steps, epoch = [], [], 0
            for part in range(4):
                after = {"from_attempt": 1, "from_step": steps[-1]} if steps else {}
                begin = {"epoch": epoch, "seq": seqs[-1]} if seqs else {}
                watch = Watching(api, api.topics(run, **after), **begin)
                if part < 3:
                    watch.until(f"steps of part {part}", lambda: len(watch.frames) >= 25 and watch.events)
                else:
                    watch.until_final(run)
                    watch.until("the last step", lambda: watch.frames[-1].step == 149)
                seqs += watch.close()
                if part == 0:
                    held = watch.held
                assert (watch.snapshots > 0) == (part == 0), "only the first stream begins with a snapshot"
                steps += [f.step for f in watch.frames]
                epoch = watch.store_epoch
            whole.until("the last event", lambda: whole.seqs()[-1] >= seqs[-1])
            undisturbed = whole.close()
            assert dense(undisturbed) and dense(seqs), (undisturbed, seqs)
            assert seqs == [s for s in undisturbed if seqs[0] <= s <= seqs[-1]]
            assert not [e for e in whole.events if e.WhichOneof("what") == "run" and e.run.id == run.id
                        and held < e.event_seq < seqs[0]], "the first stream leaves nothing out behind its snapshot"
            assert steps == list(range(150)), steps


def test_api_a_watch_that_never_reads_disturbs_nobody(bin_dir):
    with World(bin_dir) as world:
        prepared(world)
        with Api(world) as api, Api(world) as other:
            board = api.boards()[0]
            run = api.start_run(board, epochs=40)
            idle = other.watch.Watch(other.m.WatchRequest(topics=other.topics(run)))
            watch = Watching(api, api.topics(run))
            slowest = 0.0
            while not any(e.WhichOneof("what") == "run" and e.run.state == api.t.RUN_STATE_SUCCEEDED for e in watch.events):
                start = now()
                api.boards()
                slowest = max(slowest, now() - start)
                assert watch.news.get(timeout=60), f"the stream ended: {watch.faults}"
            watch.until("all steps", lambda: len(watch.frames) >= 2000)
            assert dense(watch.close())
            assert slowest < 20, f"a list took {slowest:.1f} s"  # generous: a loaded machine is no fault
            idle.cancel()
            assert api.system.GetInfo(api.m.GetInfoRequest()).boards_online == 1
        assert world.running["odtd"].poll() is None
