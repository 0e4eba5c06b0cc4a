import { batch, signal, type Signal } from "@preact/signals";
import { fromHex, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { describeError, type Problem } from "../api/errors";
import {
  SeriesKind,
  type EpochResult,
  type Event,
  type RunEvent,
  type RunSeries,
  type TelemetryFrame,
} from "../api/types";
import { append, kNoBuckets, spikeOf, toBuckets, type Buckets } from "./buckets";
import type { Progress } from "../api/watch-protocol";
import { kChartEpochs, kRecentEpochs, kRowEpochs, mergeEpochs, thinEpochs } from "./epochs";
import { runs } from "./fleet";
import { usToMs } from "./numbers";
import { StepSeries, toPoint, type BatchShape } from "./series";

const kMostBuckets = 5000; // that the daemon gives
const kBuckets = 1000; // about two for each pixel of a chart
const kZoomDelayMs = 60; // a drag or a held key asks once
const kRedrawMs = 250; // charts are redrawn at most 4 times a second
const kRefillMs = 8000; // how soon after steps were skipped on the way they are fetched

/// What was read of the steps zoomed to.
interface Part {
  of: readonly [number, number];
  buckets: Buckets;
  epochs: readonly EpochResult[];
}

/// Everything of one run beside the Run itself.
export class RunDetail {
  readonly epochs: Signal<readonly EpochResult[]> = signal([]); // of the whole run, of a long one evenly chosen
  readonly recent: Signal<readonly EpochResult[]> = signal([]); // the newest, without a gap
  readonly epochsDone = signal(0); // epochs the daemon holds
  readonly events: Signal<readonly RunEvent[]> = signal([]);
  readonly steps = new StepSeries(); // live ones, newer than what was read from the store
  readonly zoom: Signal<readonly [number, number] | null> = signal(null); // steps shown; null: all
  readonly stepsVersion = signal(0); // counts redraws wanted, at most 4 a second
  readonly totalSteps = signal(0); // steps the daemon holds
  readonly lastStep = signal(0);
  readonly lastStepMs = signal(0); // when the newest step was seen, daemon's clock; 0: not yet
  readonly problem: Signal<Problem | null> = signal(null);
  readonly loaded = signal(false);
  private stepsWanted = false; // a fleet row needs the newest step only, not the curve
  private redraw: ReturnType<typeof setTimeout> | null = null;
  private refill: ReturnType<typeof setTimeout> | null = null;
  private zoomTimer: ReturnType<typeof setTimeout> | null = null;
  private whole: Buckets = kNoBuckets;
  private drawn: { version: number; buckets: Buckets } | null = null;
  private part: Part | null = null;
  private recentMost = kRecentEpochs;

  constructor(readonly runHex: string) {}

  /// What charts draw now: of the steps zoomed to, else of the whole run with its newest steps.
  buckets(): Buckets {
    const version = this.stepsVersion.value;
    const zoom = this.zoom.value;
    if (this.part !== null && this.part.of === zoom) return this.part.buckets;
    if (this.drawn?.version !== version) this.drawn = { version, buckets: this.withTail() };
    return this.drawn.buckets;
  }

  // Frames come conflated: steps that were left out on the way count as not shown.
  private withTail(): Buckets {
    const drawn = this.withFrames();
    const every = runs.peek(this.runHex)?.effective?.telemetryEvery || 1;
    const told = Math.floor(this.lastStep.peek() / every) - drawn.gaps;
    return drawn.x.length > 0 && told > drawn.points ? { ...drawn, points: told } : drawn;
  }

  private withFrames(): Buckets {
    return append(this.whole, {
      x: this.steps.column("step"),
      layers: this.steps.layers,
      loss: this.steps.column("loss"),
      accuracy: this.steps.column("accuracy"),
      layer: (name, layer) => this.steps.layerColumn(name, layer),
    });
  }

  /// Shows these steps (from 1, inclusive); null: the whole run. Their buckets are read from the store.
  setZoom(range: readonly [number, number] | null): void {
    const end = Math.max(this.totalSteps.value, this.lastStep.value, 1);
    if (range !== null) {
      const first = Math.max(1, Math.floor(Math.min(...range)));
      const last = Math.min(end, Math.ceil(Math.max(...range)));
      if (last <= first || (first <= 1 && last >= end)) range = null;
      else range = [first, last];
    }
    this.part = null;
    this.zoom.value = range;
    if (this.zoomTimer !== null) clearTimeout(this.zoomTimer);
    this.zoomTimer =
      range === null ? null : setTimeout(() => void this.readZoom(range), kZoomDelayMs);
  }

  private async readZoom(range: readonly [number, number]): Promise<void> {
    try {
      const [series, epochs] = await Promise.all([
        this.readSeries(range),
        this.epochs.peek().length < this.epochsDone.peek()
          ? this.listEpochs({ maxEpochs: kChartEpochs, firstStep: range[0], lastStep: range[1] })
          : null,
      ]);
      if (this.zoom.peek() !== range || series === undefined) return;
      const buckets = toBuckets(series, this.batchShape());
      this.part = { of: range, buckets, epochs: epochs?.epochs ?? this.epochsIn(range) };
      this.stepsVersion.value++;
    } catch (error) {
      this.problem.value = describeError(error, "Could not read the steps zoomed to");
    }
  }

  /// Results of the epochs shown: of the steps zoomed to, else of the whole run.
  shownEpochs(): readonly EpochResult[] {
    void this.stepsVersion.value;
    const zoom = this.zoom.value;
    if (zoom === null) return this.epochs.value;
    return this.part !== null && this.part.of === zoom ? this.part.epochs : this.epochsIn(zoom);
  }

  private epochsIn(range: readonly [number, number]): EpochResult[] {
    return this.epochs.value.filter((e) => e.step >= range[0] && e.step <= range[1]);
  }

  private listEpochs(of: { maxEpochs?: number; firstStep?: number; lastStep?: number }) {
    const request = { runId: fromHex(this.runHex), ...of };
    return clients().run.listEpochs(request, { timeoutMs: kCallTimeoutMs });
  }

  /// Reads `more` further ones of the newest epochs.
  async readRecent(more = 0): Promise<void> {
    this.recentMost += more;
    const [done, steps] = [this.epochsDone.peek(), this.epochs.peek().at(-1)?.step ?? 0];
    if (done === 0) return;
    const firstStep = Math.max(1, Math.ceil(steps * (1 - this.recentMost / done)));
    try {
      const { epochs } = await this.listEpochs({ firstStep });
      this.recent.value = mergeEpochs(this.recent.peek(), epochs).slice(-this.recentMost);
    } catch (error) {
      this.problem.value = describeError(error, "Could not read the newest epochs");
    }
  }

  /// The step within bucket `index` of what is shown that shifted a layer's gradient furthest.
  async largestShift(layer: number, index: number): Promise<number> {
    const { x } = this.buckets();
    const at = x[index] ?? 1;
    const [before, after] = [x[index - 1], x[index + 1]];
    const half = (after !== undefined ? after - at : before !== undefined ? at - before : 0) / 2;
    const first = Math.max(1, Math.ceil(before !== undefined ? (before + at) / 2 : at - half));
    const last = Math.max(first, Math.floor(after !== undefined ? (after + at) / 2 : at + half));
    if (last === first) return first;
    const { lateClients } = await import("../api/late-clients");
    const answer = await lateClients().storage.getSeries(
      {
        runIds: [fromHex(this.runHex)],
        kinds: [SeriesKind.SHIFT],
        layers: [layer],
        firstStep: first - 1,
        lastStep: last - 1,
        buckets: Math.min(kMostBuckets, last - first + 1),
      },
      { timeoutMs: kCallTimeoutMs },
    );
    return spikeOf(answer.runs[0], layer) || first;
  }

  private async readSeries(
    range: readonly [number, number] | null,
  ): Promise<RunSeries | undefined> {
    const { lateClients } = await import("../api/late-clients"); // the fleet page needs no curves
    const answer = await lateClients().storage.getSeries(
      {
        runIds: [fromHex(this.runHex)],
        buckets: kBuckets,
        ...(range !== null && { firstStep: range[0] - 1, lastStep: range[1] - 1 }),
      },
      { timeoutMs: kCallTimeoutMs },
    );
    return answer.runs[0];
  }

  addEpoch(epoch: EpochResult): void {
    this.addEpochs([epoch]);
  }

  private addEpochs(list: readonly EpochResult[]): void {
    if (list.length === 0) return;
    const newest = list[list.length - 1]?.epoch ?? -1;
    this.epochsDone.value = Math.max(this.epochsDone.peek(), newest + 1);
    if (!this.stepsWanted) {
      // A row of a list: a sparkline, for as many hours as it stands there.
      this.epochs.value = thinEpochs(mergeEpochs(this.epochs.peek(), list.map(slim)), kRowEpochs);
      return;
    }
    this.epochs.value = thinEpochs(mergeEpochs(this.epochs.peek(), list));
    this.recent.value = mergeEpochs(this.recent.peek(), list).slice(-this.recentMost);
  }

  // What the daemon chose of many has gaps: the newest are read for themselves.
  private takeEpochs(list: readonly EpochResult[], total: number): void {
    const newest = list[list.length - 1]?.epoch ?? -1;
    const later = this.epochs.peek().filter((e) => e.epoch > newest);
    this.epochs.value = later;
    this.addEpochs(list);
    this.epochsDone.value = Math.max(this.epochsDone.peek(), total);
    if (this.stepsWanted && total > list.length) {
      this.recent.value = [];
      void this.readRecent();
    }
  }

  addEvent(event: RunEvent): void {
    if (this.events.value.some((e) => e.seq === event.seq)) return;
    this.events.value = [...this.events.value, event].sort((a, b) => a.seq - b.seq);
  }

  /// The newest step that is known of.
  reach(steps: number, timeMs: number): void {
    this.lastStep.value = Math.max(this.lastStep.value, steps);
    this.lastStepMs.value = Math.max(this.lastStepMs.value, timeMs);
  }

  addFrame(frame: TelemetryFrame): void {
    if (frame.gap !== 0) return;
    const done = frame.step + 1;
    this.reach(done, usToMs(frame.timeUs));
    if (!this.stepsWanted) return;
    this.steps.add(toPoint(frame, this.batchShape()));
    this.totalSteps.value = Math.max(this.totalSteps.value, done);
    this.queueRedraw();
  }

  /// Epochs, the run's events and, if asked, steps, from the daemon's store.
  async load(withSteps: boolean): Promise<void> {
    this.stepsWanted ||= withSteps;
    const { run } = clients();
    const options = { timeoutMs: kCallTimeoutMs };
    const runId = fromHex(this.runHex);
    try {
      // Each is shown as it comes: the steps do not wait for the epochs.
      await Promise.all([
        this.listEpochs({ maxEpochs: this.stepsWanted ? kChartEpochs : kRowEpochs }).then(
          (answer) => batch(() => this.takeEpochs(answer.epochs, answer.total)),
        ),
        withSteps &&
          run
            .listRunEvents({ runId }, options)
            .then((answer) => batch(() => answer.events.forEach((e) => this.addEvent(e)))),
        withSteps && this.readSeries(null).then((series) => series && this.takeSeries(series)),
      ]);
      batch(() => {
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
      const series = await this.readSeries(null);
      if (series !== undefined) this.takeSeries(series);
    } catch {
      // The curve stays as it is and says how much of the run it shows.
    }
  }

  private takeSeries(series: RunSeries): void {
    batch(() => this.setSeries(series));
  }

  private setSeries(series: RunSeries): void {
    this.whole = toBuckets(series, this.batchShape());
    if (this.whole.x.length > 0) {
      this.steps.dropThrough(series.lastStep + 1);
      this.lastStep.value = Math.max(this.lastStep.value, series.lastStep + 1);
      this.totalSteps.value = Math.max(this.totalSteps.value, series.lastStep + 1);
    }
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

/// What a row needs of an epoch.
const slim = (e: EpochResult): EpochResult => ({ ...e, layers: [], stateHash: kNoHash });
const kNoHash = new Uint8Array();

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
  steps: { telemetry: readonly TelemetryFrame[]; progress: readonly Progress[]; dropped: number },
): void {
  batch(() => {
    for (const { what } of records) {
      if (what.case === "epoch") details.get(toHex(what.value.runId))?.addEpoch(what.value);
      if (what.case === "runEvent") details.get(toHex(what.value.runId))?.addEvent(what.value);
    }
    for (const p of steps.progress) details.get(p.run)?.reach(p.steps, p.timeMs);
    for (const frame of steps.telemetry) {
      const detail = details.get(toHex(frame.runId));
      if (detail === undefined) continue;
      detail.addFrame(frame);
      if (steps.dropped > 0) detail.refillSoon();
    }
  });
}
