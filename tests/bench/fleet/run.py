#!/usr/bin/python3
"""odtd with a fleet: 1,000 boards train at 10 steps a second, a client reads every record, others change things and
ask for series meanwhile. Figures and raw counts as JSON; the bars are those of the project's fleet work.

The boards are one odt-sim-board process: real firmware, real link, a real network of 8 layers. Each takes its steps by
a schedule that no delay moves (--step-period-ms), whatever odtd does. `offered`: steps that they say they have trained.
Afterwards odtd dies by kill -9 amid the same calls; what it had answered OK to must be there.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "deploy"))
from odt_processes import Processes, free_port  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/bench"))
sys.path.insert(0, str(ROOT / "tests/bench/fleet"))
import built  # noqa: E402
import durable  # noqa: E402
import probes  # noqa: E402

FIRST_UID = 0x51000000_00000001
SPARE_UID = 0x52000000_00000001
SPARES = 10
LAYERS, STEP_MS = 8, 100
SAMPLES, BATCH = 8000, 8
# The bars: figure, what to reach, and by which relation.
BARS = [("offered_per_s", ">=", 9990), ("not_stored", "<=", 0), ("not_delivered", "<=", 0), ("gap_records", "<=", 0),
        ("odtd_1000x10_core_pct", "<=", 45), ("odtd_rss_slope_MB", "<=", 1), ("odtd_rss_MB", "<=", 150),
        ("bytes_per_frame", "<=", 60), ("control_p99_ms", "<=", 50), ("lost_after_ok", "<=", 0),
        ("query_200k_ms", "<=", 10), ("query_50runs_ms", "<=", 100), ("queries_unequal", "<=", 0),
        ("never_read_resync", ">=", 1)]


def stubs(folder):
    """Modules of odt.api.v1, made with protoc."""
    proto = ROOT / "proto"
    files = [str(p.relative_to(proto)) for p in [*proto.glob("odt/api/v1/*.proto"), *proto.glob("google/rpc/*.proto")]]
    subprocess.run(["protoc", "-I", str(proto), "--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin",
                    f"--python_out={folder}", f"--grpc_python_out={folder}", *files], check=True)
    sys.path.insert(0, str(folder))


def percentile(values, part):
    return round(sorted(values)[min(len(values) - 1, int(len(values) * part))], 2) if values else None


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
        self.listen_port = free_port()
        self.connect_odtd()
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

    def connect_odtd(self):
        self.odtd = self.start_odtd(listen_port=self.listen_port)
        self.channel = self.grpc.insecure_channel(
            self.address_of("grpc"), options=[("grpc.max_receive_message_length", 64 << 20)])
        self.storage = self.srpc.StorageServiceStub(self.channel)
        self.fleet = self.rpc.FleetServiceStub(self.channel)
        self.call_runs = self.rpc.RunServiceStub(self.channel)

    def boards(self, name, uid, count, step_ms):
        log = open(self.root / f"{name}.steps", "wb")
        command = [str(self.bin / "odt-sim-board"), "--uid", f"{uid:016x}", "--connect", self.address_of("listen"),
                   "--count", str(count), "--step-period-ms", str(step_ms), "--ram", "262144"]
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
        for i in range(self.args.boards):
            run = self.call_runs.CreateRun(self.pb.CreateRunRequest(spec=self.spec(FIRST_UID + i, self.epochs)), timeout=60).run
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
        """label, create-run, pause-run by turns, 20 a second, each when it is due."""
        self.control_ms, calls = [], durable.Calls(self)
        start = time.monotonic()
        while self.reading and calls.made < self.args.calls:
            time.sleep(max(0, start + calls.made / 20 - time.monotonic()))
            begun = time.monotonic()
            calls.one()
            self.control_ms.append((time.monotonic() - begun) * 1000)

    def queries(self):
        self.long_ms, self.many_ms, self.unequal = [], [], None
        long_run = self.spb.GetSeriesRequest(run_ids=self.seeded[:1], kinds=[3], buckets=200)
        many = self.spb.GetSeriesRequest(run_ids=self.seeded[1:51], kinds=[1], buckets=200)
        while self.reading:
            for request, into in ((long_run, self.long_ms), (many, self.many_ms)):
                begun = time.monotonic()
                answer = self.storage.GetSeries(request, timeout=60)
                into.append((time.monotonic() - begun) * 1000)
                if request is long_run:
                    bits = answer
            if self.unequal is None:
                self.unequal = int(not self.equal_to_brute_force(bits.runs[0], self.bits, 8, 200_000))
                self.unequal += sum(not self.equal_to_brute_force(r, self.loss, 1, 20_000) for r in answer.runs)
            time.sleep(1)

    # What bench_seed_telemetry wrote.
    @staticmethod
    def bits(step, layer):
        return 4 + (step * 7 + layer * 13 + step // 32) % 5

    @staticmethod
    def loss(step, _):
        return step * 2654435761 % (1 << 32) % 60_000 * (1 << 8) // 8

    @staticmethod
    def equal_to_brute_force(run, value, series, steps):
        starts = [*run.bucket_first_step, steps + 1]
        for one in run.series:
            for b in range(len(starts) - 1):
                values = [value(s, one.layer) for s in range(starts[b], starts[b + 1])]
                if (one.min[b], one.max[b], one.sum[b], run.count[b]) != (
                        min(values), max(values), sum(values), len(values)):
                    return False
        return len(run.series) == series and run.points == steps

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
        memory = probes.Memory(self.odtd.pid)
        memory.start()
        self.train_all()
        workers = [threading.Thread(target=t, daemon=True) for t in (self.control_calls, self.queries)]
        for worker in workers:
            worker.start()
        # Minutes 2 to 10: of a shorter run its last two thirds.
        warm = min(120, args.minutes * 60 / 3)
        time.sleep(warm)
        pid, sim = self.odtd.pid, self.running["fleet"].pid
        at0, from0, delivered0, steps0 = time.monotonic(), len(memory.points), self.delivered, self.steps()
        cpu0, parts0, sim0 = probes.cpu_s(pid), probes.threads_s(pid), probes.cpu_s(sim)
        time.sleep(max(0, at0 + args.minutes * 60 - warm - time.monotonic()))
        cpu1, parts1, sim1 = probes.cpu_s(pid), probes.threads_s(pid), probes.cpu_s(sim)
        at1, to1, delivered1, steps1 = time.monotonic(), len(memory.points), self.delivered, self.steps()
        if args.perf:
            subprocess.run(["perf", "record", "-e", "cpu-clock", "-o", args.perf, "-p", str(pid), "--", "sleep", "10"])
        own = set(self.runs)
        self.wait_for("end of the runs", lambda: all(r.state >= 7 for r in self.all_runs() if r.id in own),
                      self.epochs * SAMPLES // BATCH * STEP_MS / 1000 + 600, every=5)
        self.reading = False
        for worker in workers:
            worker.join(60)
        points = memory.end()
        runs = [r for r in self.all_runs() if r.id in own]
        for run in self.all_runs():
            if run.state < 7:
                self.call_runs.CancelRun(self.pb.CancelRunRequest(id=run.id), timeout=30)
        time.sleep(3)
        stored = self.stored(r.id for r in runs)
        spare = self.stored(r.id for r in self.all_runs() if r.id not in own)
        after = self.storage.GetStorage(self.spb.GetStorageRequest(), timeout=60)
        delivered, gaps = self.delivered, self.gaps
        sleeper_told = False
        patience = threading.Timer(20, self.sleeper.cancel)  # it was not behind enough to be told
        patience.start()
        try:
            for response in self.sleeper:
                sleeper_told = sleeper_told or response.resync
        except self.grpc.RpcError as error:
            raw["never_read_end"] = str(error.code())
        patience.cancel()
        offered = self.steps()[0]
        seconds, frames = at1 - at0, max(1, delivered1 - delivered0)
        figures["offered_per_s"] = round((steps1[0] - steps0[0]) / ((steps1[1] - steps0[1]) / 1e6), 1)
        figures["not_stored"] = offered - stored
        figures["not_delivered"] = stored + spare - delivered
        figures["gap_records"] = gaps
        figures["odtd_1000x10_core_pct"] = round((cpu1 - cpu0) / seconds * 100, 1)
        figures["odtd_us_per_frame"] = round((cpu1 - cpu0) / frames * 1e6, 2)
        figures["odtd_rss_slope_MB"] = round(probes.slope(points[from0:to1]) * 600, 2)
        figures["odtd_rss_MB"] = round(max(mb for _, mb in points), 1)
        grown = after.telemetry_used_bytes - before.telemetry_used_bytes
        figures["bytes_per_frame"] = round(grown / max(1, stored + spare), 1)
        figures["control_p99_ms"] = percentile(self.control_ms, 0.99)
        figures["query_200k_ms"] = percentile(self.long_ms, 0.5)
        figures["query_50runs_ms"] = percentile(self.many_ms, 0.5)
        figures["queries_unequal"] = self.unequal
        figures["never_read_resync"] = int(sleeper_told)
        raw.update(boards=args.boards, minutes=args.minutes, offered=offered, stored=stored, delivered=delivered,
                   stored_spares=spare, gap_records=gaps, succeeded=sum(r.state == 7 for r in runs),
                   dropped=after.frames_dropped, reader_resync=self.resync, control_calls=len(self.control_ms),
                   control_p50_ms=percentile(self.control_ms, 0.5), control_max_ms=percentile(self.control_ms, 1),
                   query_200k_p99_ms=percentile(self.long_ms, 0.99), query_50runs_p99_ms=percentile(self.many_ms, 0.99),
                   queries=len(self.long_ms), measured_s=round(seconds, 1), measured_frames=frames,
                   odtd_cpu_s=round(cpu1 - cpu0, 2), boards_cpu_s=round(sim1 - sim0, 2),
                   odtd_threads_cpu_s={name: round(parts1[name] - parts0.get(name, 0), 2) for name in sorted(parts1)
                                       if parts1[name] - parts0.get(name, 0) >= 0.05},
                   rss_MB=[[round(t), round(mb, 1)] for t, mb in points[::15]], load_average=os.getloadavg()[0])
        durable.kill_rounds(self, args.kills, figures, raw)
        return {"figures": figures, "raw": raw}

    def stored(self, runs):
        return sum(self.storage.GetRunStorage(self.spb.GetRunStorageRequest(run_id=run), timeout=60).storage.raw_frames
                   for run in runs)


def table(figures):
    """Every figure; those that have a bar with it."""
    bars = {name: (relation, bar) for name, relation, bar in BARS}
    for name, value in figures.items():
        relation, bar = bars.get(name, ("", ""))
        if value is None or not relation:
            verdict = ""
        else:
            verdict = "reached" if (value <= bar if relation == "<=" else value >= bar) else "MISSED"
        print(f"{name:24} {value!s:>10}   {relation} {bar!s:<6} {verdict}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=built.FOLDER)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--boards", type=int, default=1000)
    parser.add_argument("--step-ms", type=int, default=STEP_MS, help="a board takes a step each so many ms")
    parser.add_argument("--calls", type=int, default=5000, help="control calls, 20 a second")
    parser.add_argument("--kills", type=int, default=5, help="rounds of kill -9 amid calls, at the end")
    parser.add_argument("--json", type=pathlib.Path, help="figures and raw counts into this file")
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
    table(report["figures"])
    for key, value in report["raw"].items():
        print(f"# {key}: {value}")
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
