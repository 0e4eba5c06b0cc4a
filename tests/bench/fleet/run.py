#!/usr/bin/python3
"""odtd with a fleet: 1,000 boards train at 10 steps a second, a client reads every record, others change things and
ask for series meanwhile. Figures and raw counts as JSON; the bars are those of the project's fleet work.

The boards are one odt-sim-board process: real firmware, real link, a real network of 8 layers; each takes its next
step by its own clock, whatever odtd does. `offered`: steps that they say they have trained.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "deploy"))
from odt_processes import Processes, free_port  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/bench"))
import built  # noqa: E402

FIRST_UID = 0x51000000_00000001
SPARE_UID = 0x52000000_00000001
SPARES = 10
LAYERS, STEP_MS = 8, 100
SAMPLES, BATCH = 8000, 8
TICK = os.sysconf("SC_CLK_TCK")


def stubs(folder):
    """Modules of odt.api.v1, made with protoc."""
    proto = ROOT / "proto"
    files = [str(p.relative_to(proto)) for p in [*proto.glob("odt/api/v1/*.proto"), *proto.glob("google/rpc/*.proto")]]
    subprocess.run(["protoc", "-I", str(proto), "--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin",
                    f"--python_out={folder}", f"--grpc_python_out={folder}", *files], check=True)
    sys.path.insert(0, str(folder))


def percentile(values, part):
    return round(sorted(values)[min(len(values) - 1, int(len(values) * part))], 2) if values else None


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


class Fleet(Processes):
    def __init__(self, args):
        self.args = args
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="odt-fleet-", dir=args.scratch))
        super().__init__(args.bin.resolve(), self.root)
        stubs(self.root)
        import grpc
        from odt.api.v1 import services_pb2, services_pb2_grpc, storage_pb2, storage_pb2_grpc
        self.grpc, self.pb, self.rpc = grpc, services_pb2, services_pb2_grpc
        self.spb, self.srpc = storage_pb2, storage_pb2_grpc
        self.runs, self.delivered, self.gaps, self.resync = [], 0, 0, False
        self.reading = True
        self.lock = threading.Lock()

    # -- before

    def seed(self):
        self.data.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([str(self.bin / "bench_seed_telemetry"), str(self.data / "telemetry.db"), "200000", "50",
                               "20000"], check=True, capture_output=True, text=True)
        self.seeded = [bytes.fromhex(line) for line in done.stdout.split()]

    def start_all(self):
        self.odtd = self.start_odtd(listen_port=free_port())
        self.channel = self.grpc.insecure_channel(
            self.address_of("grpc"), options=[("grpc.max_receive_message_length", 64 << 20)])
        self.storage = self.srpc.StorageServiceStub(self.channel)
        table = self.root / "points.csv"
        draw = random.Random(1)
        with open(table, "w") as out:
            out.write(",".join(f"x{i}" for i in range(8)) + ",label\n")
            for i in range(SAMPLES + 200):
                label = i % 4
                out.write(",".join(str(draw.randrange(60) + 60 * (label == j % 4)) for j in range(8)) + f",c{label}\n")
        self.ctl("data", "import", table, "--name", "points", "--label-column", "label", "--train", SAMPLES,
                 "--heldout", 64, "--test", 64, "--seed", 1, timeout=300)
        self.ctl("pc-train", "--data", "points", "--hidden", *[8] * (LAYERS - 1), "--epochs", 1, "--seed", 1, "--name",
                 "net", timeout=600)
        self.boards("fleet", FIRST_UID, self.args.boards, self.args.step_ms)
        self.boards("spares", SPARE_UID, SPARES, STEP_MS)
        self.wait_for("boards online", lambda: self.online() >= self.args.boards + SPARES, 300, every=1)

    def boards(self, name, uid, count, step_ms):
        log = open(self.root / f"{name}.steps", "wb")
        command = [str(self.bin / "odt-sim-board"), "--uid", f"{uid:016x}", "--connect", self.address_of("listen"),
                   "--count", str(count), "--step-delay-ms", str(step_ms), "--ram", "262144"]
        self.running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def online(self):
        info = self.rpc.SystemServiceStub(self.channel).GetInfo(self.pb.GetInfoRequest(), timeout=30)
        return info.boards_online

    def spec(self, uid, epochs):
        h = {"policy": 2, "k": 15, "batch": BATCH, "epochs": epochs, "order_seed": uid & 0xFFFF, "mu_offset": -3}
        spec = self.pb.CreateRunRequest().spec
        spec.board_uid, spec.model_hash, spec.dataset_id = uid.to_bytes(8, "big"), self.model, self.dataset
        for key, value in h.items():
            setattr(spec.hyper, key, value)
        spec.hyper.mu_weight.extend([1, -1, -3])
        spec.hyper.rounding, spec.hyper.loss = 1, 2
        return spec

    def train_all(self):
        self.model = bytes.fromhex(self.ctl("model", "list")[0]["hash"])
        self.dataset = bytes.fromhex(self.ctl("data", "list")[0]["id"])
        steps = int((self.args.minutes + 1) * 60 * 1000 / STEP_MS)
        self.epochs = -(-steps // (SAMPLES // BATCH))
        runs = self.rpc.RunServiceStub(self.channel)
        self.call_runs = runs
        for i in range(self.args.boards):
            run = runs.CreateRun(self.pb.CreateRunRequest(spec=self.spec(FIRST_UID + i, self.epochs)), timeout=60).run
            self.runs.append(run.id)
        self.wait_for("runs RUNNING", lambda: self.running_runs() >= self.args.boards, 600, every=2)

    def running_runs(self):
        return sum(r.state == 3 for r in self.all_runs())

    def all_runs(self):
        out, token = [], ""
        while True:
            page = self.call_runs.ListRuns(self.pb.ListRunsRequest(page_size=1000, page_token=token), timeout=60)
            out += page.runs
            token = page.next_page_token
            if not token:
                return out

    # -- meanwhile

    def read_everything(self):
        watch = self.rpc.WatchServiceStub(self.channel)
        topic = self.pb.Topic(kind=4, lossless=True)
        for response in watch.Watch(self.pb.WatchRequest(topics=[topic])):
            self.gaps += sum(1 for f in response.telemetry if f.gap)
            self.delivered += len(response.telemetry)
            self.resync = self.resync or response.resync

    def never_read(self):
        channel = self.grpc.insecure_channel(self.address_of("grpc"), options=[("grpc.use_local_subchannel_pool", 1)])
        watch = self.rpc.WatchServiceStub(channel)
        self.sleeper = watch.Watch(self.pb.WatchRequest(topics=[self.pb.Topic(kind=4, lossless=True)]))

    def control_calls(self):
        fleet = self.rpc.FleetServiceStub(self.channel)
        self.control_ms, queued, i = [], [], 0
        start = time.monotonic()
        while self.reading and i < self.args.calls:
            time.sleep(max(0, start + i / 20 - time.monotonic()))
            uid = SPARE_UID + i % SPARES
            begun = time.monotonic()
            if i % 3 == 0:
                request = self.pb.UpdateBoardRequest(uid=uid.to_bytes(8, "big"))
                request.set_labels["turn"] = str(i)
                fleet.UpdateBoard(request, timeout=30)
            elif i % 3 == 1:
                queued.append(self.call_runs.CreateRun(self.pb.CreateRunRequest(spec=self.spec(uid, 1)),
                                                       timeout=30).run.id)
            else:
                run = queued.pop()
                try:
                    self.call_runs.PauseRun(self.pb.PauseRunRequest(id=run), timeout=30)
                except self.grpc.RpcError as error:  # it has ended meanwhile: an answer too
                    if error.code() != self.grpc.StatusCode.FAILED_PRECONDITION:
                        raise
            self.control_ms.append((time.monotonic() - begun) * 1000)
            i += 1

    def queries(self):
        self.long_ms, self.many_ms, self.query_equal = [], [], None
        long_run = self.spb.GetSeriesRequest(run_ids=self.seeded[:1], kinds=[3], buckets=200)
        many = self.spb.GetSeriesRequest(run_ids=self.seeded[1:51], kinds=[1], buckets=200)
        while self.reading:
            for request, into in ((long_run, self.long_ms), (many, self.many_ms)):
                begun = time.monotonic()
                answer = self.storage.GetSeries(request, timeout=60)
                into.append((time.monotonic() - begun) * 1000)
                if request is long_run and self.query_equal is None:
                    self.query_equal = self.equal_to_brute_force(answer.runs[0])
            time.sleep(1)

    @staticmethod
    def equal_to_brute_force(run):
        starts = [*run.bucket_first_step, 200_001]
        for series in run.series:
            for b in range(len(starts) - 1):
                values = [4 + (s * 7 + series.layer * 13 + s // 32) % 5 for s in range(starts[b], starts[b + 1])]
                if (series.min[b], series.max[b], series.sum[b], run.count[b]) != (
                        min(values), max(values), sum(values), len(values)):
                    return False
        return len(run.series) == 8 and run.points == 200_000

    def steps(self):
        """Steps that the boards have trained, and when (us of the boards' clock)."""
        path = self.root / "fleet.steps"
        before = path.read_bytes().count(b"steps ")
        self.running["fleet"].send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            lines = [x for x in path.read_text().splitlines() if x.startswith("steps ")]
            if len(lines) > before:
                return tuple(int(x) for x in lines[-1].split()[1:])
            time.sleep(0.02)
        raise RuntimeError("the boards do not answer")

    # -- all of it

    def measure(self):
        args = self.args
        figures, raw = {}, {}
        before = self.storage.GetStorage(self.spb.GetStorageRequest(), timeout=60)
        threads = [threading.Thread(target=self.read_everything, daemon=True)]
        threads[0].start()
        self.never_read()
        time.sleep(1)
        self.train_all()
        workers = [threading.Thread(target=t, daemon=True) for t in (self.control_calls, self.queries)]
        for worker in workers:
            worker.start()
        warm = min(120, args.minutes * 60 / 3)
        time.sleep(warm)
        cpu0, rss0, at0, steps0 = cpu_s(self.odtd.pid), rss_mb(self.odtd.pid), time.monotonic(), self.steps()
        rss_most = rss0
        while time.monotonic() < at0 + args.minutes * 60 - warm:
            time.sleep(2)
            rss_most = max(rss_most, rss_mb(self.odtd.pid))
        cpu1, rss1, at1, steps1 = cpu_s(self.odtd.pid), rss_mb(self.odtd.pid), time.monotonic(), self.steps()
        if args.perf:
            subprocess.run(["perf", "record", "-g", "-o", args.perf, "-p", str(self.odtd.pid), "--", "sleep", "10"])
        own = set(self.runs)
        self.wait_for("end of the runs", lambda: all(r.state >= 7 for r in self.all_runs() if r.id in own),
                      self.epochs * SAMPLES // BATCH * STEP_MS / 1000 + 300, every=2)
        self.reading = False
        for worker in workers:
            worker.join(60)
        runs = [r for r in self.all_runs() if r.id in own]
        for run in self.all_runs():
            if run.state < 7:
                self.call_runs.CancelRun(self.pb.CancelRunRequest(id=run.id), timeout=30)
        time.sleep(3)
        stored = sum(self.storage.GetRunStorage(self.spb.GetRunStorageRequest(run_id=r.id), timeout=60).storage.raw_frames
                     for r in runs)
        spare = sum(self.storage.GetRunStorage(self.spb.GetRunStorageRequest(run_id=r.id), timeout=60).storage.raw_frames
                    for r in self.all_runs() if r.id not in own)
        after = self.storage.GetStorage(self.spb.GetStorageRequest(), timeout=60)
        sleeper_told = False
        try:
            for response in self.sleeper:
                sleeper_told = sleeper_told or response.resync
        except self.grpc.RpcError as error:
            raw["never_read_end"] = str(error.code())
        offered = self.steps()[0]
        minutes = (at1 - at0) / 60
        figures["offered_per_s"] = round((steps1[0] - steps0[0]) / ((steps1[1] - steps0[1]) / 1e6), 1)
        figures["odtd_1000x10_core_pct"] = round((cpu1 - cpu0) / (at1 - at0) * 100, 1)
        figures["odtd_rss_slope_MB"] = round((rss1 - rss0) / minutes * 10, 2)
        figures["odtd_rss_MB"] = round(rss_most, 1)
        grown = after.telemetry_used_bytes - before.telemetry_used_bytes
        figures["bytes_per_frame"] = round(grown / max(1, stored + spare), 1)
        figures["control_p99_ms"] = percentile(self.control_ms, 0.99)
        figures["query_200k_ms"] = percentile(self.long_ms, 0.5)
        figures["query_50runs_ms"] = percentile(self.many_ms, 0.5)
        raw.update(boards=args.boards, minutes=args.minutes, offered=offered, stored=stored, delivered=self.delivered,
                   stored_spares=spare, gap_records=self.gaps, succeeded=sum(r.state == 7 for r in runs),
                   dropped=after.frames_dropped, reader_resync=self.resync, never_read_resync=sleeper_told,
                   control_calls=len(self.control_ms), control_p50_ms=percentile(self.control_ms, 0.5),
                   control_max_ms=percentile(self.control_ms, 1), query_200k_p99_ms=percentile(self.long_ms, 0.99),
                   query_50runs_p99_ms=percentile(self.many_ms, 0.99), queries=len(self.long_ms),
                   query_equals_brute_force=self.query_equal, load_average=os.getloadavg()[0])
        return {"figures": figures, "raw": raw}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=built.FOLDER)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--boards", type=int, default=1000)
    parser.add_argument("--step-ms", type=int, default=STEP_MS - 3, help="a board's delay from step to step")
    parser.add_argument("--calls", type=int, default=5000, help="control calls, 20 a second")
    parser.add_argument("--json", type=pathlib.Path, help="the figures also into this file")
    parser.add_argument("--scratch", default=None, help="folder of the data directory")
    parser.add_argument("--perf", help="record 10 s of odtd with perf into this file")
    args = parser.parse_args()
    built.build(args.build, "odtd", "odtctl", "odt-worker", "odt-sim-board", "bench_seed_telemetry")
    args.bin = args.build.resolve() / "bin"
    fleet = Fleet(args)
    try:
        fleet.seed()
        fleet.start_all()
        report = fleet.measure()
    finally:
        fleet.stop()
        shutil.rmtree(fleet.root, ignore_errors=True)
    text = json.dumps(report, indent=2)
    print(text)
    if args.json:
        args.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
