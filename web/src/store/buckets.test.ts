import { describe, expect, it } from "vitest";
import type { RunSeries } from "../api/types";
import { append, samplesBetween, spikeOf, toBuckets, type Tail } from "./buckets";
import { SeriesKind } from "../api/types";

const shape = { batch: 8, trainSamples: 20 }; // 3 steps an epoch: 8, 8, 4 samples
const series = (kind: SeriesKind, layer: number, min: number[], max: number[], sum: number[]) => ({
  kind,
  layer,
  min: min.map(BigInt),
  max: max.map(BigInt),
  sum: sum.map(BigInt),
  count: [],
});
const run = (change: object = {}): RunSeries =>
  ({
    firstStep: 0,
    lastStep: 8,
    bucketFirstStep: [0, 3, 6],
    count: [3, 0, 2],
    points: 5n,
    gapSteps: 4n,
    thinnedPoints: 0n,
    series: [
      series(SeriesKind.LOSS, 0, [65536, 0, 65536], [131072, 0, 65536], [294912, 0, 131072]),
      series(SeriesKind.CORRECT, 0, [2, 0, 4], [8, 0, 8], [10, 0, 12]),
      series(SeriesKind.SHIFT, 1, [1, 0, 3], [5, 0, 3], [9, 0, 6]),
    ],
    ...change,
  }) as unknown as RunSeries;

describe("toBuckets", () => {
  it("divides sums, keeps extremes, and leaves out buckets without a record", () => {
    const b = toBuckets(run(), shape);
    expect([...b.x]).toEqual([2, 8]);
    expect([...b.loss.mean]).toEqual([1.5, 1]);
    expect([...b.loss.max]).toEqual([2, 1]);
    expect([b.points, b.gaps]).toEqual([5, 4]);
  });
  it("takes accuracy of the samples that the steps had", () => {
    const b = toBuckets(run(), shape);
    expect(b.accuracy.mean[0]).toBeCloseTo(10 / 20); // three steps, 20 samples
    expect(Math.max(...b.accuracy.max)).toBeLessThanOrEqual(1);
  });
  it("has a band for every layer up to the last, also one without records", () => {
    const b = toBuckets(run(), shape);
    expect(b.layers).toBe(2);
    expect(b.shift[0]?.mean.length).toBe(0);
    expect([...(b.shift[1]?.max ?? [])]).toEqual([5, 3]);
  });
  it("takes a run without a record", () => {
    const none = { bucketFirstStep: [], count: [], points: 0n, gapSteps: 0n, series: [] };
    expect(toBuckets(run(none), shape).x.length).toBe(0);
  });
});

describe("samplesBetween", () => {
  it("counts the short last batch of each epoch", () => {
    expect(samplesBetween(0, 3, shape)).toBe(20);
    expect(samplesBetween(2, 4, shape)).toBe(12);
    expect(samplesBetween(0, 9, shape)).toBe(60);
    expect(samplesBetween(0, 1, { batch: 0, trainSamples: 0 })).toBe(0);
  });
});

describe("append", () => {
  const tail = (steps: number[]): Tail => ({
    x: Float64Array.from(steps),
    layers: 2,
    loss: Float64Array.from(steps, (s) => s / 10),
    accuracy: new Float64Array(steps.length),
    layer: (_name, layer) => Float64Array.from(steps, () => layer),
  });
  it("puts newer live steps behind the buckets, each with itself as its extremes", () => {
    const b = append(toBuckets(run(), shape), tail([7, 8, 9, 10]));
    expect([...b.x]).toEqual([2, 8, 9, 10]);
    expect([...b.loss.min].slice(2)).toEqual([0.9, 1]);
    expect(b.points).toBe(7);
    expect(b.shift.map((s) => s.mean.length)).toEqual([4, 4]);
  });
  it("changes nothing without newer steps", () => {
    const b = toBuckets(run(), shape);
    expect(append(b, tail([1, 2]))).toBe(b);
  });
});

describe("spikeOf", () => {
  it("gives the first step of the largest shift of a layer, where there are records", () => {
    expect(spikeOf(run(), 1)).toBe(1);
    const late = series(SeriesKind.SHIFT, 1, [1, 0, 3], [5, 9, 7], [9, 0, 6]);
    expect(spikeOf(run({ series: [late] }), 1)).toBe(7);
    expect(spikeOf(run(), 0)).toBe(0);
    expect(spikeOf(undefined, 0)).toBe(0);
  });
});
