// A scripted fleet for the dashboard's own tests: boards of several cores, finished, failed and running
// runs with plausible curves. Deterministic: time is the caller's.
import * as pb from "../../web/test-support/pb.js";
import {
  hex,
  kHeldout,
  kTestTotal,
  makeDataset,
  makeModel,
  sha,
  uid,
  us,
  uuid,
} from "./fake_library.mjs";

export { hex };

const kLayers = 2;
const kEpochs = 10;
const kStepsPerEpoch = 50;

const kBoards = [
  ["m33-1", "mps2_an505", "cortex-m33", "rack 1", "inverted", { site: "lab", target: "m33" }],
  ["m4-1", "mps2_an386", "cortex-m4", "rack 1", "rotated", { site: "lab", target: "m4" }],
  ["m3-1", "lm3s6965evb", "cortex-m3", "rack 2", "flipped", { site: "lab", target: "m3" }],
  ["sim-1", "sim", "host", "", "gain", { site: "bench" }],
  ["sim-2", "sim", "host", "", "clean", { site: "bench" }],
  ["sim-3", "sim", "host", "", "rotated", { site: "bench" }],
  ["sim-4", "sim", "host", "", "", {}],
];

/// Accuracy after a share t of the training.
const curve = (start, end, t) => start + (end - start) * (1 - Math.exp(-3.2 * t));
const noise = (n) => ((Math.imul(n, 2654435761) >>> 8) % 1000) / 1000 - 0.5;

export class FakeFleet {
  constructor(nowMs, extraBoards = 0) {
    this.seq = 100n;
    this.storeEpoch = 0x1234567890abcdefn;
    this.boards = new Map();
    this.runs = new Map();
    this.ports = new Map();
    this.models = new Map();
    this.datasets = new Map();
    this.jobs = new Map();
    this.epochs = new Map(); // run hex -> EpochResult[]
    this.events = new Map(); // run hex -> RunEvent[]
    this.frames = new Map(); // run hex -> TelemetryFrame[]
    this.identified = [];
    this.mostFrames = Infinity; // held of a run
    this.build(nowMs, extraBoards);
  }

  meta(ms, by = "cli") {
    return {
      gatewayId: sha("gateway").slice(0, 16),
      createdBy: by,
      createTimeUs: us(ms),
      etag: this.seq,
    };
  }

  build(now, extra) {
    const model = makeModel(this.meta(now - 3.6e6));
    this.models.set(hex(model.hash), model);
    ["clean", "inverted", "rotated", "flipped", "gain"].forEach((name, i) => {
      this.datasets.set(name, makeDataset(name, i, this.meta(now - 3e6)));
    });
    kBoards.forEach((spec, i) => this.addBoard(now, i, spec));
    for (let i = 0; i < extra; i++) {
      this.addBoard(now, 100 + i, [
        `farm-${i + 1}`,
        "mps2_an505",
        "cortex-m33",
        `shelf ${1 + (i % 9)}`,
        "",
        { site: "farm" },
      ]);
    }
    const offline = this.boards.get(hex(uid(4)));
    Object.assign(offline, {
      status: pb.BoardStatus.OFFLINE,
      lastSeenTimeUs: us(now - 754_000),
      onlineSinceTimeUs: 0n,
    });
    this.boards.get(hex(uid(3))).link.crcErrors = 12n;
    this.boards.get(hex(uid(3))).link.retries = 31n;
    // Finished, failed and running runs.
    this.addRun(
      now - 1.8e6,
      0,
      40,
      "inverted",
      "first try",
      pb.RunState.SUCCEEDED,
      [0.113, 0.771],
      kEpochs,
    );
    this.addRun(
      now - 1.2e6,
      4,
      41,
      "clean",
      "control",
      pb.RunState.SUCCEEDED,
      [0.842, 0.842],
      kEpochs,
    );
    this.addRun(now - 9e5, 5, 42, "rotated", "rot", pb.RunState.FAILED, [0.204, 0.5], 4);
    this.addRun(
      now - 3e4,
      0,
      50,
      "inverted",
      "adapt m33-1",
      pb.RunState.RUNNING,
      [0.113, 0.768],
      4,
    );
    this.addRun(
      now - 2.5e4,
      1,
      51,
      "rotated",
      "adapt m4-1",
      pb.RunState.RUNNING,
      [0.204, 0.712],
      3,
    );
    this.addRun(now - 2e4, 2, 52, "flipped", "adapt m3-1", pb.RunState.PAUSED, [0.312, 0.731], 2);
    this.addRun(
      now - 1e4,
      3,
      53,
      "gain",
      "adapt sim-1",
      pb.RunState.EVALUATING,
      [0.655, 0.803],
      kEpochs,
    );
    this.ports.set(
      "/dev/ttyACM3",
      pb.create(pb.PortSchema, {
        path: "/dev/ttyACM3",
        usbVid: 0x2e8a,
        usbPid: 0x000a,
        usbSerial: "E6614103E7",
        description: "Pico",
        state: pb.PortState.UNCLAIMED,
        meta: this.meta(now),
      }),
    );
    this.ports.set(
      "/dev/ttyUSB1",
      pb.create(pb.PortSchema, {
        path: "/dev/ttyUSB1",
        usbVid: 0x0403,
        usbPid: 0x6001,
        description: "FT232R",
        state: pb.PortState.LOCKED,
        adopted: true,
        meta: this.meta(now),
        reason: {
          code: "PORT_LOCKED",
          text: "Held by minicom (pid 4211)",
          remedy: "Close minicom; the port is tried again every 5 s.",
        },
      }),
    );
    this.addJob(
      now - 3.5e6,
      1,
      pb.Job_Kind.COMPILE,
      pb.Job_State.SUCCEEDED,
      1000,
      "fmnist: 2 layers, 8.0 KiB",
      model.hash,
    );
    this.addJob(
      now - 6e4,
      2,
      pb.Job_Kind.REPLAY,
      pb.Job_State.RUNNING,
      420,
      "step 210 of 500",
      uuid(40),
    );
    this.addJob(now - 4e4, 3, pb.Job_Kind.IMPORT, pb.Job_State.FAILED, 120, "", new Uint8Array(0), {
      code: "CSV_CELL",
      text: 'motor.csv line 212, column 4: "n/a" is not a number',
      remedy: "Remove the line, or give the column as --label-column.",
    });
  }

  addJob(ms, n, kind, state, permille, message, resultKey, reason) {
    const job = pb.create(pb.JobSchema, {
      id: uuid(200 + n),
      kind,
      state,
      progressPermille: permille,
      message,
      resultKey,
      meta: this.meta(ms),
      ...(reason ? { reason } : {}),
    });
    this.jobs.set(hex(job.id), job);
  }

  addBoard(now, i, [name, type, core, place, , labels]) {
    const b = pb.create(pb.BoardSchema, {
      uid: uid(i),
      name,
      place,
      labels,
      boardType: type,
      core,
      fwVersion: "0.1.0",
      rulesVersion: 1,
      bootId: 77n + BigInt(i),
      ramBytes: type === "lm3s6965evb" ? 40960 : 131072,
      maxLayers: 16,
      maxBatch: 64,
      mtu: 512,
      status: pb.BoardStatus.ONLINE,
      lastSeenTimeUs: us(now),
      onlineSinceTimeUs: us(now - 4.1e6 + i * 60000),
      modelHash: i === 6 || i >= 100 ? new Uint8Array(0) : sha("model"),
      stateHash: sha(`state ${i}`).slice(0, 16),
      resetReason: "power-on",
      bootsSeen: 1 + (i % 3),
      link: {
        endpoint: `tcp-in:127.0.0.1:${40000 + i}`,
        rxFrames: 18211n,
        txFrames: 9100n,
        rxBytes: 1911232n,
        txBytes: 811221n,
        rttUs: 900 + i * 340,
        sessionCount: 1,
      },
      meta: this.meta(now - 4.1e6, "registry"),
    });
    this.boards.set(hex(b.uid), b);
  }

  addRun(start, boardIndex, n, data, name, state, [before, after], epochsDone) {
    const stepsTotal = kEpochs * kStepsPerEpoch;
    const over = state >= pb.RunState.SUCCEEDED;
    const run = pb.create(pb.RunSchema, {
      id: uuid(n),
      state,
      desired: pb.DesiredState.RUN,
      attempt: 1,
      stepsTotal,
      rulesVersion: 1,
      stepsDone: epochsDone * kStepsPerEpoch,
      epochsDone,
      startTimeUs: us(start),
      trainSamples: 400,
      spec: {
        boardUid: uid(boardIndex),
        modelHash: sha("model"),
        datasetId: this.datasets.get(data).id,
        hyper: { policy: pb.Policy.AUTO, epochs: kEpochs },
        evaluate: true,
        name,
      },
      effective: {
        policy: pb.Policy.AUTO,
        ruleSet: pb.RuleSet.NITI,
        rounding: pb.Rounding.HALF_UP,
        loss: pb.LossKind.CE,
        shiftSource: pb.ShiftSource.EXACT,
        muWeight: [1, -1, -3],
        muOffset: -3,
        deadZone: 0,
        k: 15,
        batch: 8,
        epochs: kEpochs,
        orderSeed: 7,
        srSeed: 1,
        guard: true,
        telemetryEvery: 1,
        streamed: boardIndex === 2,
        checkpointEpochs: 1,
      },
      before: { correct: Math.round(before * kTestTotal), total: kTestTotal },
      heldoutStart: { correct: Math.round(before * kHeldout), total: kHeldout },
      heldoutBest: { correct: 0, total: kHeldout },
      meta: this.meta(start),
    });
    run.target = [before, after];
    const key = hex(run.id);
    this.runs.set(key, run);
    this.epochs.set(key, []);
    this.events.set(key, []);
    this.frames.set(key, []);
    this.addRunEvent(run, start, pb.RunState.QUEUED, pb.RunState.PREPARING, "board is free");
    this.addRunEvent(
      run,
      start + 900,
      pb.RunState.PREPARING,
      pb.RunState.RUNNING,
      "samples and model are on the board",
    );
    for (let s = 1; s <= epochsDone * kStepsPerEpoch; s++) this.step(run, s, start + s * 60);
    if (over || state === pb.RunState.EVALUATING || state === pb.RunState.PAUSED) {
      this.addRunEvent(
        run,
        start + stepsTotal * 60,
        pb.RunState.RUNNING,
        state,
        state === pb.RunState.FAILED
          ? "telemetry of step 201 differs from its record"
          : "last step done",
      );
    }
    if (over) run.endTimeUs = us(start + stepsTotal * 60);
    if (state === pb.RunState.SUCCEEDED) {
      run.after = pb.create(pb.AccuracySchema, {
        correct: Math.round(after * kTestTotal),
        total: kTestTotal,
      });
      run.finalStateHash = sha(`final state ${n}`);
      run.finalWeightsHash = sha(`final weights ${n}`);
      run.replay = n === 40 ? pb.Run_ReplayVerdict.EQUAL : pb.Run_ReplayVerdict.UNSPECIFIED;
    }
    if (state === pb.RunState.FAILED) {
      run.reason = pb.create(pb.ReasonSchema, {
        code: "DIVERGED",
        text: "Board sim-3 repeated step 201 with another result",
        remedy: "Both records are kept: odtctl run diff rot. Check the board’s RAM.",
      });
    }
    const board = this.boards.get(hex(uid(boardIndex)));
    if (!over) board.runId = run.id;
    return run;
  }

  addRunEvent(run, ms, from, to, cause) {
    const list = this.events.get(hex(run.id));
    const event = pb.create(pb.RunEventSchema, {
      runId: run.id,
      seq: list.length + 1,
      timeUs: us(ms),
      from,
      to,
      cause,
      actor: "scheduler",
    });
    list.push(event);
    return event;
  }

  /// One training step; returns what the daemon would publish for it.
  step(run, s, ms) {
    const key = hex(run.id);
    const [a0, a1] = run.target;
    const t = s / (kEpochs * kStepsPerEpoch);
    const accuracy = curve(a0, a1, t);
    const wobble = noise(s * 7 + run.id[3]);
    const correct = Math.max(0, Math.min(8, Math.round(8 * accuracy + 2.4 * wobble)));
    const lossSum = BigInt(Math.round(8 * (14000 * (1 - accuracy) + 1600 + 2600 * wobble)));
    const stage = Math.min(2, Math.floor(3 * t));
    const layers = Array.from({ length: kLayers }, (_, l) => {
      const bits = Math.max(3, Math.round(15 - 3 * l - 3 * t + 1.4 * noise(s * 3 + l)));
      return {
        layer: l,
        bits,
        shift: Math.max(0, bits - [1, -1, -3][stage]),
        k: 15,
      };
    });
    const frame = pb.create(pb.TelemetryFrameSchema, {
      runId: run.id,
      attempt: 1,
      step: s - 1,
      boardUid: run.spec.boardUid,
      timeUs: us(ms),
      eventId: s,
      loss: {
        sum: lossSum < 0n ? 0n : lossSum,
        exp2: 0,

        kind: pb.Loss_Kind.CE,
      },
      correct,
      layers,
    });
    const frames = this.frames.get(key);
    frames.push(frame);
    if (frames.length > 2 * this.mostFrames) frames.splice(0, this.mostFrames);
    run.stepsDone = s;
    if (s % kStepsPerEpoch !== 0) return { frame };
    const epoch = s / kStepsPerEpoch;
    const held = Math.round(kHeldout * (accuracy + 0.012 * noise(s)));
    const result = pb.create(pb.EpochResultSchema, {
      runId: run.id,
      attempt: 1,
      epoch: epoch - 1,
      step: s,
      boardUid: run.spec.boardUid,
      timeUs: us(ms),
      stepUs: 11800,
      loss: {
        sum: BigInt(Math.round(400 * (14000 * (1 - accuracy) + 1600))),
        exp2: 0,
        count: 400,
        kind: pb.Loss_Kind.CE,
      },
      train: { correct: Math.round(400 * accuracy), total: 400 },
      heldout: { correct: held, total: kHeldout },
      stateHash: sha(`${key} ${epoch}`),
      alarms: 0,
      layers: layers.map((l, i) => ({
        bitsMin: l.bits - 1,
        bitsMeanQ8: l.bits * 256,
        bitsMax: l.bits + 1,
        shift: l.shift,
        nonzeroDeltasPpm: Math.max(9000, 612000 - epoch * 38000 - i * 50000),
        saturated: epoch > 6 ? 3 : 0,
        deadUnits: i === 0 ? 1 : 0,
        k: 15,
      })),
    });
    if (held > run.heldoutBest.correct) {
      run.heldoutBest = pb.create(pb.AccuracySchema, {
        correct: held,
        total: kHeldout,
      });
      run.bestStep = s;
    }
    result.bestStep = run.bestStep;
    run.epochsDone = epoch;
    this.epochs.get(key).push(result);
    return { frame, epoch: result };
  }

  /// Moves every running run one step on, or those of one phase of several; returns [{topic events}, frames].
  tick(now, phase = 0, phases = 1) {
    const events = [];
    const frames = [];
    let at = 0;
    for (const run of this.runs.values()) {
      if (at++ % phases !== phase || run.state !== pb.RunState.RUNNING) continue;
      const { frame, epoch } = this.step(run, run.stepsDone + 1, now);
      frames.push(frame);
      if (epoch !== undefined) {
        events.push(["epoch", epoch], ["run", run]);
        if (epoch.epoch === kEpochs - 1) this.finish(run, now, events);
      }
    }
    return { events, frames };
  }

  finish(run, now, events) {
    run.state = pb.RunState.SUCCEEDED;
    run.endTimeUs = us(now);
    run.after = pb.create(pb.AccuracySchema, {
      correct: Math.round(run.target[1] * kTestTotal),
      total: kTestTotal,
    });
    run.finalStateHash = sha(`final ${hex(run.id)}`);
    run.finalWeightsHash = sha(`weights ${hex(run.id)}`);
    events.push(
      ["run", run],
      ["runEvent", this.addRunEvent(run, now, pb.RunState.RUNNING, run.state, "last step done")],
    );
    const board = this.boards.get(hex(run.spec.boardUid));
    board.runId = new Uint8Array(0);
    events.push(["board", board]);
  }
}
