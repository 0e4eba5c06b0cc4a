import { batch, signal, type Signal } from "@preact/signals";
import { fromHex, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { describeError, type Problem } from "../api/errors";
import type { EpochResult, Event, RunEvent, TelemetryFrame } from "../api/types";
import { runs } from "./fleet";
import { usToMs } from "./numbers";
import { StepSeries, toPoint, type BatchShape } from "./series";

const kMaxFrames = 2000;
const kRedrawMs = 250; // charts are redrawn at most 4 times a second
const kRefillMs = 8000; // how soon after steps were skipped on the way they are fetched

/// Everything of one run beside the Run itself.
export class RunDetail {
  readonly epochs: Signal<readonly EpochResult[]> = signal([]);
  readonly events: Signal<readonly RunEvent[]> = signal([]);
  readonly steps = new StepSeries();
  readonly stepsVersion = signal(0); // counts redraws wanted, at most 4 a second
  readonly totalSteps = signal(0); // steps the daemon holds
  readonly lastStep = signal(0);
  readonly lastStepMs = signal(0); // when the newest step was seen, daemon's clock; 0: not yet
  readonly problem: Signal<Problem | null> = signal(null);
  readonly loaded = signal(false);
  private stepsWanted = false; // a fleet row needs the newest step only, not the curve
  private redraw: ReturnType<typeof setTimeout> | null = null;
  private refill: ReturnType<typeof setTimeout> | null = null;

  constructor(readonly runHex: string) {}

  addEpoch(epoch: EpochResult): void {
    const key = (e: EpochResult): number => e.epoch;
    // A newer attempt's result of the same epoch equals the older one or the run failed: keep the newer.
    const others = this.epochs.value.filter((e) => e.epoch !== epoch.epoch);
    this.epochs.value = [...others, epoch].sort((a, b) => key(a) - key(b));
  }

  addEvent(event: RunEvent): void {
    if (this.events.value.some((e) => e.seq === event.seq)) return;
    this.events.value = [...this.events.value, event].sort((a, b) => a.seq - b.seq);
  }

  addFrame(frame: TelemetryFrame): void {
    if (frame.gap !== 0) return;
    const done = frame.step + 1;
    this.lastStep.value = Math.max(this.lastStep.value, done);
    this.lastStepMs.value = Math.max(this.lastStepMs.value, usToMs(frame.timeUs));
    if (!this.stepsWanted) return;
    this.steps.add(toPoint(frame, this.batchShape()));
    this.totalSteps.value = Math.max(this.totalSteps.value, done, this.steps.length);
    this.queueRedraw();
  }

  /// Epochs, the run's events and, if asked, steps, from the daemon's store.
  async load(withSteps: boolean): Promise<void> {
    this.stepsWanted ||= withSteps;
    const { run } = clients();
    const options = { timeoutMs: kCallTimeoutMs };
    const runId = fromHex(this.runHex);
    try {
      const [epochs, events, telemetry] = await Promise.all([
        run.listEpochs({ runId }, options),
        withSteps ? run.listRunEvents({ runId }, options) : null,
        withSteps ? run.getTelemetry({ runId, maxFrames: kMaxFrames }, options) : null,
      ]);
      batch(() => {
        for (const e of epochs.epochs) this.addEpoch(e);
        for (const e of events?.events ?? []) this.addEvent(e);
        if (telemetry !== null) this.takeFrames(telemetry.frames, telemetry.total);
        this.problem.value = null;
        this.loaded.value = true;
      });
    } catch (error) {
      this.problem.value = describeError(error, `Could not read run ${this.runHex.slice(0, 8)}`);
      this.loaded.value = true;
    }
  }

  /// Steps were left out of the live stream: the curve gets them from the store a little later.
  refillSoon(): void {
    if (!this.stepsWanted) return;
    this.refill ??= setTimeout(() => {
      this.refill = null;
      void this.refetchSteps();
    }, kRefillMs);
  }

  async refetchSteps(): Promise<void> {
    try {
      const answer = await clients().run.getTelemetry(
        { runId: fromHex(this.runHex), maxFrames: kMaxFrames },
        { timeoutMs: kCallTimeoutMs },
      );
      this.takeFrames(answer.frames, answer.total);
    } catch {
      // The curve stays as it is and says how much of the run it shows.
    }
  }

  private takeFrames(frames: readonly TelemetryFrame[], total: number): void {
    const newest = this.steps.length === 0 ? 0 : this.steps.lastStep;
    if (frames.length > 0) this.steps.clear();
    const shape = this.batchShape();
    for (const f of frames) if (f.gap === 0) this.steps.add(toPoint(f, shape));
    this.lastStep.value = Math.max(newest, this.steps.lastStep);
    this.totalSteps.value = Math.max(total, this.steps.length);
    this.stepsVersion.value++;
  }

  private batchShape(): BatchShape {
    const run = runs.peek(this.runHex);
    return { batch: run?.effective?.batch ?? 0, trainSamples: run?.trainSamples ?? 0 };
  }

  private queueRedraw(): void {
    this.redraw ??= setTimeout(() => {
      this.redraw = null;
      this.stepsVersion.value++;
    }, kRedrawMs);
  }
}

const kKeepClosed = 32; // details of runs no longer shown, for going back without a flash
const details = new Map<string, RunDetail>();
export const detailsGeneration = signal(0); // counts up when all details were forgotten

export function runDetail(runHex: string): RunDetail {
  let detail = details.get(runHex);
  if (detail === undefined) {
    detail = new RunDetail(runHex);
    details.set(runHex, detail);
  }
  return detail;
}

/// Drops the oldest details that nobody shows.
export function trimDetails(shown: ReadonlySet<string>): void {
  for (const hex of [...details.keys()]) {
    if (details.size <= kKeepClosed + shown.size) return;
    if (!shown.has(hex)) details.delete(hex);
  }
}

export function forgetDetails(): void {
  details.clear();
  detailsGeneration.value++;
}

export function applyRecords(
  records: readonly Event[],
  telemetry: readonly TelemetryFrame[],
  dropped: number,
): void {
  batch(() => {
    for (const { what } of records) {
      if (what.case === "epoch") details.get(toHex(what.value.runId))?.addEpoch(what.value);
      if (what.case === "runEvent") details.get(toHex(what.value.runId))?.addEvent(what.value);
    }
    for (const frame of telemetry) {
      const detail = details.get(toHex(frame.runId));
      if (detail === undefined) continue;
      detail.addFrame(frame);
      if (dropped > 0) detail.refillSoon();
    }
  });
}
