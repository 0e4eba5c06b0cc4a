import type { TelemetryFrame } from "../api/types";
import { lossPerSample } from "./numbers";

/// Most steps a run keeps in the browser. Beyond, every second one goes and only every second new one
/// stays: the whole run stays in view and the chart says how many of how many it shows.
export const kSeriesCap = 4096;
export const kMaxLayers = 16;

export interface StepPoint {
  step: number; // steps done: the first is 1, as in epoch results
  loss: number; // per sample; NaN: not reported
  accuracy: number; // of the batch, 0..1; NaN: not reported
  shifts: readonly number[]; // per layer position
  bits: readonly number[];
  ks: readonly number[];
}

/// How many samples the batches of a run have.
export interface BatchShape {
  batch: number; // 0: not known
  trainSamples: number;
}

/// Samples in step number `step` (from 0): a batch, or what is left at the end of an epoch. 0: not known.
export function samplesOfStep(step: number, { batch, trainSamples }: BatchShape): number {
  if (batch <= 0) return 0;
  const perEpoch = Math.ceil(trainSamples / batch);
  const isLast = perEpoch > 0 && step % perEpoch === perEpoch - 1;
  return isLast ? trainSamples - (perEpoch - 1) * batch : batch;
}

/// A board reports sums over its batch; the batch's size follows from the run.
export function toPoint(frame: TelemetryFrame, shape: BatchShape): StepPoint {
  const n = frame.loss?.count || samplesOfStep(frame.step, shape);
  return {
    step: frame.step + 1,
    loss: n > 0 && frame.loss !== undefined ? lossPerSample({ ...frame.loss, count: n }) : NaN,
    accuracy: n > 0 ? frame.correct / n : NaN,
    shifts: frame.layers.map((l) => l.shift),
    bits: frame.layers.map((l) => l.bits),
    ks: frame.layers.map((l) => l.k),
  };
}

/// Steps of one run, ascending, each step once; columns ready for the charts. Capacity is fixed.
export class StepSeries {
  private readonly cap: number;
  private length_ = 0;
  private layers_ = 0;
  private stride = 1; // of so many new steps one is kept; doubles whenever the series is full
  private tailAge = 1; // steps that the last point stands for; it stays once that is the stride
  private steps = new Float64Array(0); // all columns are made with the first step
  private losses = new Float64Array(0);
  private accuracies = new Float64Array(0);
  private readonly perLayer: Map<string, Float64Array> = new Map();

  constructor(cap = kSeriesCap) {
    this.cap = cap;
  }

  get length(): number {
    return this.length_;
  }
  get layers(): number {
    return this.layers_;
  }
  get lastStep(): number {
    return this.length_ === 0 ? 0 : (this.steps[this.length_ - 1] ?? 0);
  }

  clear(): void {
    this.length_ = 0;
    this.stride = 1;
    this.tailAge = 1;
  }

  /// Forgets the steps up to this one.
  dropThrough(step: number): void {
    const from = this.lowerBound(step + 1);
    if (from === 0) return;
    for (const c of this.columns()) c.copyWithin(0, from, this.length_);
    this.length_ -= from;
    if (this.length_ === 0) this.clear();
  }

  /// Adds or, for a step that is there already (a step done again after a resume), replaces.
  add(point: StepPoint): void {
    if (this.steps.length === 0) {
      this.steps = new Float64Array(this.cap);
      this.losses = new Float64Array(this.cap);
      this.accuracies = new Float64Array(this.cap);
    }
    if (this.length_ > 0 && point.step > this.lastStep) {
      if (this.tailAge < this.stride) {
        this.tailAge++;
        this.write(this.length_ - 1, point);
        return;
      }
      this.tailAge = 1;
    }
    let at = this.lowerBound(point.step);
    const known = at < this.length_ && this.steps[at] === point.step;
    if (!known) {
      if (this.length_ === this.cap) {
        this.thin();
        at = this.lowerBound(point.step);
      }
      for (const c of this.columns()) c.copyWithin(at + 1, at, this.length_);
      this.length_++;
    }
    this.write(at, point);
  }

  /// Columns over the steps held: views, valid until the next add().
  column(name: "step" | "loss" | "accuracy"): Float64Array {
    const source = { step: this.steps, loss: this.losses, accuracy: this.accuracies }[name];
    return source.subarray(0, this.length_);
  }

  layerColumn(name: "shift" | "bits" | "k", layer: number): Float64Array {
    return this.layerStore(name, layer).subarray(0, this.length_);
  }

  private layerStore(name: string, layer: number): Float64Array {
    const key = `${name}${layer}`;
    let store = this.perLayer.get(key);
    if (store === undefined) {
      store = new Float64Array(this.cap).fill(NaN);
      this.perLayer.set(key, store);
    }
    return store;
  }

  private write(at: number, point: StepPoint): void {
    this.steps[at] = point.step;
    this.losses[at] = point.loss;
    this.accuracies[at] = point.accuracy;
    this.layers_ = Math.max(this.layers_, Math.min(kMaxLayers, point.shifts.length));
    for (let i = 0; i < this.layers_; i++) {
      this.layerStore("shift", i)[at] = point.shifts[i] ?? NaN;
      this.layerStore("bits", i)[at] = point.bits[i] ?? NaN;
      this.layerStore("k", i)[at] = point.ks[i] ?? NaN;
    }
  }

  private columns(): Float64Array[] {
    return [this.steps, this.losses, this.accuracies, ...this.perLayer.values()];
  }

  private lowerBound(step: number): number {
    let lo = 0;
    let hi = this.length_;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if ((this.steps[mid] ?? 0) < step) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  }

  // Keeps every second point, the first and the last.
  private thin(): void {
    const half = Math.floor(this.length_ / 2);
    for (const c of this.columns()) {
      for (let i = 1; i < half; i++) c[i] = c[2 * i + 1] ?? NaN;
    }
    this.length_ = half;
    this.stride *= 2;
  }
}
