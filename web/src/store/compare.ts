import type { EpochResult, Run } from "../api/types";
import { count } from "./format";
import { usToMs } from "./numbers";

export type Axis = "step" | "epoch" | "relative" | "wall";
export const kAxes: readonly [Axis, string][] = [
  ["step", "Step"],
  ["epoch", "Epoch"],
  ["relative", "Time since the start"],
  ["wall", "Time of day"],
];

/// Steps of one epoch of a run; 0: not known yet.
export function stepsPerEpoch(run: Run): number {
  const batch = run.effective?.batch ?? 0;
  return batch > 0 ? Math.ceil(run.trainSamples / batch) : 0;
}

/// Where steps stand on an axis. Times are known at the ends of epochs and taken as even between them.
export function axisOf(
  axis: Axis,
  run: Run,
  epochs: readonly EpochResult[],
): (step: number) => number {
  if (axis === "step") return (step) => step;
  if (axis === "epoch") {
    const per = stepsPerEpoch(run);
    return (step) => (per > 0 ? step / per : NaN);
  }
  const start = usToMs(run.startTimeUs);
  const known = [
    { step: 0, ms: start },
    ...epochs.map((e) => ({ step: e.step, ms: usToMs(e.timeUs) })),
  ];
  const base = axis === "relative" ? start : 0;
  return (step) => {
    const after = known.findIndex((k) => k.step >= step);
    const at = Math.max(1, after === -1 ? known.length - 1 : after);
    const [a, b = a] = [known[at - 1], known[at]];
    if (a === undefined || b === undefined || start === 0) return NaN;
    const pace = b.step > a.step ? (b.ms - a.ms) / (b.step - a.step) : 0;
    return (a.ms + (step - a.step) * pace - base) / 1000;
  };
}

export function axisText(axis: Axis): (v: number) => string {
  switch (axis) {
    case "step":
      return (v) => count(Math.round(v));
    case "epoch":
      return (v) => String(Math.round(v * 100) / 100);
    case "relative":
      return (v) => (v < 120 ? `${Math.round(v * 10) / 10} s` : `${Math.round(v / 6) / 10} min`);
    case "wall":
      return (v) => new Date(v * 1000).toLocaleTimeString(undefined, { hour12: false });
  }
}

const kFar = 3.5; // scaled deviations from the median

/// Which values stand apart from the others, by the median absolute deviation. Fewer than five tell nothing.
export function outliers(values: readonly number[]): boolean[] {
  const known = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (known.length < 5) return values.map(() => false);
  const middle = (list: readonly number[]): number =>
    ((list[(list.length - 1) >> 1] ?? NaN) + (list[list.length >> 1] ?? NaN)) / 2;
  const median = middle(known);
  const spread = middle(known.map((v) => Math.abs(v - median)).sort((a, b) => a - b)) * 1.4826;
  return values.map(
    (v) => Number.isFinite(v) && spread > 0 && Math.abs(v - median) / spread > kFar,
  );
}
