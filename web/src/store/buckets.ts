import { SeriesKind, type RunSeries, type Series } from "../api/types";
import type { BatchShape } from "./series";

/// One quantity over the buckets of a run: mean, and the extremes that the raw records reached.
export interface Band {
  mean: Float64Array;
  min: Float64Array;
  max: Float64Array;
}

/// Steps of a run in buckets. Where every bucket holds one record, min = mean = max and nothing is left out.
export interface Buckets {
  x: Float64Array; // steps done, in the middle of the bucket; ascending
  points: number; // raw records in the range
  gaps: number; // steps without a record
  thinned: number; // of points, known by rollups only
  layers: number;
  loss: Band; // per sample
  accuracy: Band; // of the batch, 0..1
  shift: readonly Band[];
  bits: readonly Band[];
  k: readonly Band[];
}

export const kNoBand: Band = {
  mean: new Float64Array(0),
  min: new Float64Array(0),
  max: new Float64Array(0),
};
export const kNoBuckets: Buckets = {
  x: new Float64Array(0),
  points: 0,
  gaps: 0,
  thinned: 0,
  layers: 0,
  loss: kNoBand,
  accuracy: kNoBand,
  shift: [],
  bits: [],
  k: [],
};

const kQ16 = 65536;

/// Samples in the steps from `first` to before `end`: batches, of which the last of an epoch may be short.
export function samplesBetween(first: number, end: number, shape: BatchShape): number {
  const { batch, trainSamples } = shape;
  if (batch <= 0 || trainSamples <= 0) return 0;
  const perEpoch = Math.ceil(trainSamples / batch);
  const upTo = (step: number): number =>
    Math.floor(step / perEpoch) * trainSamples + Math.min((step % perEpoch) * batch, trainSamples);
  return upTo(end) - upTo(first);
}

function band(
  series: Series | undefined,
  keep: readonly number[],
  counts: readonly number[],
  scale: (i: number) => number,
): Band {
  if (series === undefined) return { ...kNoBand };
  const own = series.count.length > 0 ? series.count : counts;
  const [mean, min, max] = [0, 1, 2].map(() => new Float64Array(keep.length)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  for (let j = 0; j < keep.length; j++) {
    const i = keep[j] ?? 0;
    const n = own[i] ?? 0;
    const by = n > 0 ? scale(i) : NaN;
    min[j] = Number(series.min[i] ?? 0n) * by;
    max[j] = Number(series.max[i] ?? 0n) * by;
    mean[j] = (Number(series.sum[i] ?? 0n) * by) / n;
  }
  return { mean, min, max };
}

/// The daemon's integers as columns for charts. Buckets without a record are left out.
export function toBuckets(run: RunSeries, shape: BatchShape): Buckets {
  const firsts = run.bucketFirstStep;
  const keep = firsts.map((_, i) => i).filter((i) => (run.count[i] ?? 0) > 0);
  const end = (i: number): number => firsts[i + 1] ?? run.lastStep + 1;
  const find = (kind: SeriesKind, layer = 0): Series | undefined =>
    run.series.find((s) => s.kind === kind && s.layer === layer);
  const layers = run.series.reduce(
    (n, s) => (s.kind === SeriesKind.SHIFT ? Math.max(n, s.layer + 1) : n),
    0,
  );
  const perLayer = (kind: SeriesKind): Band[] =>
    Array.from({ length: layers }, (_, l) => band(find(kind, l), keep, run.count, () => 1));
  // Correct answers are of a step's batch: those of a full one, so that the last step of an epoch may be told too low.
  const perStep = (i: number): number => {
    const steps = end(i) - (firsts[i] ?? 0);
    const samples = samplesBetween(firsts[i] ?? 0, end(i), shape);
    return samples > 0 ? steps / samples : NaN;
  };
  const accuracy = band(find(SeriesKind.CORRECT), keep, run.count, perStep);
  return {
    x: Float64Array.from(keep, (i) => ((firsts[i] ?? 0) + 1 + end(i)) / 2),
    points: Number(run.points),
    gaps: Number(run.gapSteps),
    thinned: Number(run.thinnedPoints),
    layers,
    loss: band(find(SeriesKind.LOSS), keep, run.count, () => 1 / kQ16),
    accuracy: { ...accuracy, max: accuracy.max.map((v) => Math.min(v, 1)) },
    shift: perLayer(SeriesKind.SHIFT),
    bits: perLayer(SeriesKind.BITS),
    k: perLayer(SeriesKind.K),
  };
}

function joinColumns(a: Float64Array, b: Float64Array): Float64Array {
  const out = new Float64Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

/// Live steps after the last bucket, as buckets of one record each.
export interface Tail {
  x: Float64Array;
  layers: number;
  loss: Float64Array;
  accuracy: Float64Array;
  layer: (name: "shift" | "bits" | "k", layer: number) => Float64Array;
}

export function append(buckets: Buckets, tail: Tail): Buckets {
  const last = buckets.x[buckets.x.length - 1] ?? -Infinity;
  let from = 0;
  while (from < tail.x.length && (tail.x[from] ?? 0) <= last) from++;
  if (from === tail.x.length) return buckets;
  const cut = (column: Float64Array): Float64Array => column.subarray(from);
  const held = buckets.x.length;
  const none = new Float64Array(held).fill(NaN);
  const extend = (to: Band | undefined, column: Float64Array): Band => ({
    mean: joinColumns(to?.mean.length === held ? to.mean : none, cut(column)),
    min: joinColumns(to?.min.length === held ? to.min : none, cut(column)),
    max: joinColumns(to?.max.length === held ? to.max : none, cut(column)),
  });
  const layers = Math.max(buckets.layers, tail.layers);
  const perLayer = (name: "shift" | "bits" | "k"): Band[] =>
    Array.from({ length: layers }, (_, l) => extend(buckets[name][l], tail.layer(name, l)));
  return {
    ...buckets,
    x: joinColumns(buckets.x, cut(tail.x)),
    points: buckets.points + tail.x.length - from,
    layers,
    loss: extend(buckets.loss, tail.loss),
    accuracy: extend(buckets.accuracy, tail.accuracy),
    shift: perLayer("shift"),
    bits: perLayer("bits"),
    k: perLayer("k"),
  };
}

/// The first step, from 1, of the bucket with a layer's largest shift; 0: there is none.
export function spikeOf(run: RunSeries | undefined, layer: number): number {
  const own = run?.series.find((s) => s.kind === SeriesKind.SHIFT && s.layer === layer);
  let at = -1;
  own?.max.forEach((v, i) => {
    if ((run?.count[i] ?? 0) > 0 && (at < 0 || v > (own.max[at] ?? 0n))) at = i;
  });
  return at < 0 ? 0 : (run?.bucketFirstStep[at] ?? 0) + 1;
}
