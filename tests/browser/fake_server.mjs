// A stand-in for odtd in the dashboard's own tests: static files with the daemon's headers, and the API
// over gRPC-Web from a scripted fleet. Faults (silence, death, another store) are made by the test.
// By hand: node tests/browser/fake_server.mjs [--port 8080] [--boards N] [--empty]
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import * as pb from "../../web/test-support/pb.js";
import { FakeFleet, hex } from "./fake_fleet.mjs";
import { seriesOf } from "./fake_series.mjs";

const kDist = join(dirname(fileURLToPath(import.meta.url)), "../../web/dist");
const kTypes = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const kCsp = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
const kHeartbeatMs = 10_000;

function frame(flag, payload) {
  const out = Buffer.alloc(5 + payload.length);
  out[0] = flag;
  out.writeUInt32BE(payload.length, 1);
  out.set(payload, 5);
  return out;
}

class RpcError extends Error {
  constructor(code, message, reason, metadata = {}) {
    super(message);
    Object.assign(this, { code, reason, metadata });
  }
}

function trailer(code, error) {
  let text = `grpc-status: ${code}\r\n`;
  if (error !== undefined) {
    text += `grpc-message: ${encodeURIComponent(error.message)}\r\n`;
    if (error.reason !== undefined) {
      const info = pb.create(pb.ErrorInfoSchema, {
        reason: error.reason,
        domain: "odt-fleet",
        metadata: error.metadata,
      });
      const status = pb.create(pb.StatusSchema, {
        code,
        message: error.message,
        details: [pb.anyPack(pb.ErrorInfoSchema, info)],
      });
      text += `grpc-status-details-bin: ${Buffer.from(pb.toBinary(pb.StatusSchema, status)).toString("base64")}\r\n`;
    }
  }
  return frame(0x80, Buffer.from(text));
}

const kServices = [
  pb.FleetService,
  pb.RunService,
  pb.WatchService,
  pb.JobService,
  pb.SystemService,
  pb.StorageService,
  pb.CampaignService,
  pb.AlertService,
  pb.SettingsService,
  pb.ConsoleService,
  pb.EvaluationService,
  pb.EventService,
  pb.WeightsService,
  pb.ModelService,
  pb.DatasetService,
  pb.CaptureService,
];
const kAlways = ["Watch", "UpdateWatch", "GetInfo"]; // also by a daemon that refuses the rest
const kMethods = new Map(
  kServices.flatMap((s) => s.methods.map((m) => [`/${s.typeName}/${m.name}`, m])),
);

export class FakeServer {
  constructor(options = {}) {
    this.options = options;
    this.fleet = new FakeFleet(Date.now(), options.boards ?? 0);
    if (options.empty)
      for (const t of ["boards", "runs", "ports", "models", "datasets", "jobs"])
        this.fleet[t].clear();
    this.watches = new Map();
    this.nextWatch = 1n;
    this.log = []; // { method, request }
    this.ticks = 0;
    this.silent = false; // streams stay open and say nothing
    this.failNext = null; // RpcError of the next mutation
    this.server = createServer((req, res) => void this.serve(req, res));
  }

  async start(port = 0) {
    await new Promise((done) => this.server.listen(port, "127.0.0.1", done));
    this.port = this.server.address().port;
    this.url = `http://127.0.0.1:${this.port}`;
    this.ticker = setInterval(() => this.tick(), this.options.tickMs ?? 120);
    this.heart = setInterval(() => this.heartbeat(), kHeartbeatMs);
    return this;
  }

  /// Drops every connection and stops listening, as a killed daemon does.
  async stop() {
    clearInterval(this.ticker);
    clearInterval(this.heart);
    this.watches.clear();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  async restart() {
    this.server = createServer((req, res) => void this.serve(req, res));
    return this.start(this.port);
  }

  async serve(req, res) {
    const path = new URL(req.url, "http://x").pathname;
    if (req.method === "POST") return this.rpc(path, req, res);
    const file = normalize(path === "/" ? "/index.html" : path).replace(/^(\.\.[/\\])+/, "");
    try {
      const body = await readFile(join(kDist, file));
      res.writeHead(200, {
        "content-type": kTypes[extname(file)] ?? "application/octet-stream",
        "content-security-policy": kCsp,
        "x-content-type-options": "nosniff",
        "cache-control": file.startsWith("/assets/")
          ? "public, max-age=31536000, immutable"
          : "no-cache",
      });
      res.end(body);
    } catch {
      res.writeHead(404).end();
    }
  }

  async rpc(path, req, res) {
    const chunks = [];
    for await (const c of req) chunks.push(c);
    const body = Buffer.concat(chunks);
    const method = kMethods.get(path);
    res.writeHead(200, { "content-type": "application/grpc-web+proto" });
    if (method === undefined) return res.end(trailer(12, new Error(`no ${path}`)));
    const request = pb.fromBinary(method.input, body.subarray(5, 5 + body.readUInt32BE(1)));
    this.log.push({ method: method.name, request });
    try {
      if (method.name === "Watch") return this.watch(request, res);
      const { refuse } = this.options;
      if (refuse !== undefined && !kAlways.includes(method.name))
        throw new RpcError(9, refuse.message, refuse.reason, { remedy: refuse.remedy });
      const mutates = !/^(Get|List|Update(?=Watch))/.test(method.name);
      if (mutates && this.failNext !== null) {
        const error = this.failNext;
        this.failNext = null;
        throw error;
      }
      const answer = this.call(method.name, request);
      res.write(
        frame(0, Buffer.from(pb.toBinary(method.output, pb.create(method.output, answer)))),
      );
      res.end(trailer(0));
    } catch (error) {
      res.end(trailer(error.code ?? 13, error));
    }
  }

  call(name, request) {
    const f = this.fleet;
    const runHex =
      request.runId !== undefined
        ? hex(request.runId)
        : request.id !== undefined
          ? hex(request.id)
          : "";
    switch (name) {
      case "UpdateWatch": {
        const w = this.watches.get(request.watchId);
        if (w === undefined) throw new RpcError(5, `no watch ${request.watchId}`);
        for (const t of request.add) w.topics.set(`${t.kind}:${hex(t.key)}`, t);
        for (const t of request.remove) w.topics.delete(`${t.kind}:${hex(t.key)}`);
        this.send(w, {
          events: this.snapshot(new Map(request.add.map((t) => [`${t.kind}:${hex(t.key)}`, t]))),
          snapshotDone: true,
        });
        return {};
      }
      case "GetInfo":
        return {
          version: "0.1.0",
          rulesVersion: 1,
          dataDir: "/var/lib/odt-fleet",
          controlDbBytes: 1_200_000n,
          telemetryDbBytes: 48_000_000n,
          diskFreeBytes: 91_000_000_000n,
          listenBoards: "127.0.0.1:7420",
        };
      case "ListEpochs":
        return { epochs: f.epochs.get(runHex) ?? [] };
      case "ListRunEvents":
        return { events: f.events.get(runHex) ?? [] };
      case "GetSeries":
        return {
          runs: request.runIds.map((id) => seriesOf(id, f.frames.get(hex(id)) ?? [], request)),
        };
      case "GetTelemetry": {
        const all = f.frames.get(runHex) ?? [];
        const most = request.maxFrames || 2000;
        const every = Math.max(1, Math.ceil(all.length / most));
        return {
          frames: all.filter((_, i) => i % every === 0),
          total: all.length,
        };
      }
      case "IdentifyBoard":
        f.identified.push(hex(request.uid));
        return {};
      case "UpdateBoard": {
        const board = f.boards.get(hex(request.uid));
        Object.assign(board, {
          name: request.name ?? board.name,
          place: request.place ?? board.place,
        });
        this.publish([["board", board]]);
        return { board };
      }
      case "AdoptPort": {
        const port = f.ports.get(request.path);
        Object.assign(port, { adopted: true, state: pb.PortState.OPENING });
        this.publish([["port", port]]);
        return { port };
      }
      case "PauseRun":
        return {
          run: this.change(runHex, pb.RunState.PAUSED, pb.DesiredState.PAUSE, "asked to pause"),
        };
      case "ResumeRun":
        return {
          run: this.change(runHex, pb.RunState.RUNNING, pb.DesiredState.RUN, "asked to go on"),
        };
      case "CancelRun":
        return {
          run: this.change(
            runHex,
            pb.RunState.CANCELLED,
            pb.DesiredState.CANCEL,
            "asked to cancel",
          ),
        };
      case "CreateRun":
        return { run: this.createRun(request) };
      case "ReplayRun": {
        const run = f.runs.get(runHex);
        run.replay = pb.Run_ReplayVerdict.EQUAL;
        f.addJob(Date.now(), 90, pb.Job_Kind.REPLAY, pb.Job_State.SUCCEEDED, 1000, "equal", run.id);
        const job = [...f.jobs.values()].at(-1);
        this.publish([
          ["run", run],
          ["job", job],
        ]);
        return { job };
      }
      default:
        // A daemon without anything in it has nothing to say.
        if (this.options.empty && /^(Get(Storage|Info)|List|Search)/.test(name)) return {};
        throw new RpcError(12, `fake server: ${name} is not scripted`);
    }
  }

  createRun({ spec, dryRun }) {
    const epochs = spec.hyper.epochs ?? 10;
    if (epochs < 1 || epochs > 1000) {
      throw new RpcError(3, `epochs ${epochs}; limit 1..1000`, "OUT_OF_RANGE", {
        remedy: "Give 1 to 1000 epochs.",
      });
    }
    const f = this.fleet;
    if (dryRun)
      return {
        spec,
        stepsTotal: epochs * 50,
        effective: { ...spec.hyper, batch: 8, k: 15, epochs },
      };
    const index = [...f.boards.keys()].indexOf(hex(spec.boardUid));
    const [name] = [...f.datasets].find(([, d]) => hex(d.id) === hex(spec.datasetId));
    const run = f.addRun(
      Date.now(),
      index,
      60,
      name,
      spec.name,
      pb.RunState.RUNNING,
      [0.2, 0.7],
      0,
    );
    this.publish([["run", run]]);
    return run;
  }

  change(runHex, state, desired, cause) {
    const run = this.fleet.runs.get(runHex);
    if (run === undefined) throw new RpcError(5, `run ${runHex} is not known`);
    const event = this.fleet.addRunEvent(run, Date.now(), run.state, state, cause);
    Object.assign(run, { state, desired });
    this.publish([
      ["run", run],
      ["runEvent", event],
    ]);
    return run;
  }

  snapshot(topics) {
    const f = this.fleet;
    const events = [];
    const put = (name, list) => {
      for (const value of list) events.push({ what: { case: name, value } });
    };
    for (const t of topics.values()) {
      if (t.kind === pb.Topic_Kind.FLEET) {
        put("board", f.boards.values());
        put("port", f.ports.values());
      }
      if (t.kind === pb.Topic_Kind.RUNS) put("run", f.runs.values());
      if (t.kind === pb.Topic_Kind.LIBRARY) {
        put("model", f.models.values());
        put("dataset", f.datasets.values());
      }
      if (t.kind === pb.Topic_Kind.JOBS) put("job", f.jobs.values());
      if (t.kind === pb.Topic_Kind.RUN) {
        put("epoch", f.epochs.get(hex(t.key)) ?? []);
        put("runEvent", f.events.get(hex(t.key)) ?? []);
      }
    }
    return events;
  }

  watch(request, res) {
    const w = {
      id: this.nextWatch++,
      res,
      topics: new Map(request.topics.map((t) => [`${t.kind}:${hex(t.key)}`, t])),
    };
    this.watches.set(w.id, w);
    res.on("close", () => this.watches.delete(w.id));
    if (this.silent) return;
    const fits = request.resumeStoreEpoch === this.fleet.storeEpoch && request.resumeEventSeq > 0n;
    this.send(w, {
      watchId: w.id,
      events: fits ? [] : this.snapshot(w.topics),
      snapshotDone: true,
    });
  }

  send(w, response) {
    if (this.silent) return;
    const f = this.fleet;
    const message = pb.create(pb.WatchResponseSchema, {
      watchId: w.id,
      storeEpoch: f.storeEpoch,
      nextSeq: f.seq + 1n,
      serverTimeUs: BigInt(Date.now()) * 1000n,
      ...response,
    });
    w.res.write(frame(0, Buffer.from(pb.toBinary(pb.WatchResponseSchema, message))));
  }

  publish(changes, frames = []) {
    const f = this.fleet;
    const events = changes.map(([name, value]) => [
      name,
      pb.create(pb.EventSchema, {
        eventSeq: ++f.seq,
        timeUs: BigInt(Date.now()) * 1000n,
        what: { case: name, value },
      }),
    ]);
    const topicOf = {
      board: 1,
      port: 1,
      run: 2,
      model: 5,
      dataset: 5,
      job: 6,
      deleted: 1,
    };
    for (const w of this.watches.values()) {
      const mine = events.filter(([name, e]) =>
        name === "epoch" || name === "runEvent"
          ? w.topics.has(`3:${hex(e.what.value.runId)}`)
          : w.topics.has(`${topicOf[name]}:`),
      );
      const telemetry = frames.filter((t) => w.topics.has(`4:${hex(t.runId)}`));
      if (mine.length + telemetry.length > 0)
        this.send(w, { events: mine.map(([, e]) => e), telemetry });
    }
  }

  tick() {
    // In phases not all boards step in the same moment; each one does every tickMs * phases.
    const phases = this.options.phases ?? 1;
    const { events, frames } = this.fleet.tick(Date.now(), this.ticks++ % phases, phases);
    if (!this.options.still) this.publish(events, frames);
  }

  heartbeat() {
    for (const board of this.fleet.boards.values()) {
      if (board.status === pb.BoardStatus.ONLINE) board.lastSeenTimeUs = BigInt(Date.now()) * 1000n;
    }
    for (const w of this.watches.values()) this.send(w, {});
  }
}

export { RpcError, hex };

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const arg = (name, otherwise) => {
    const i = process.argv.indexOf(name);
    return i < 0 ? otherwise : process.argv[i + 1];
  };
  const server = new FakeServer({
    boards: Number(arg("--boards", 0)),
    empty: process.argv.includes("--empty"),
  });
  await server.start(Number(arg("--port", 8080)));
  console.log(server.url);
}
