import { describe, expect, it } from "vitest";
import { tableRows } from "./chart-table";
import { heatColour } from "./heatmap";
import { cohortBand, join, joinAll, quantile, smooth } from "./join";
import { sparkPath } from "./spark";
import { yRange } from "./uplot-options";

describe("join", () => {
  it("puts two series over the union of their steps", () => {
    const j = join([1, 2, 4], [[10, 20, 40]], [2, 3], [[200, 300]]);
    expect([...j.x]).toEqual([1, 2, 3, 4]);
    expect([...(j.columns[0] ?? [])]).toEqual([10, 20, NaN, 40]);
    expect([...(j.columns[1] ?? [])]).toEqual([NaN, 200, 300, NaN]);
  });
  it("takes empty sides", () => {
    expect([...join([], [[]], [5], [[1]]).x]).toEqual([5]);
    expect(join([], [[]], [], [[]]).x.length).toBe(0);
  });
});

describe("smooth", () => {
  it("starts at the first value and skips holes", () => {
    const s = smooth([4, NaN, 4], 0.9);
    expect([...s].map((v) => Math.round(v * 1e9) / 1e9)).toEqual([4, 4, 4]);
  });
  it("follows a step", () => {
    const s = smooth([0, 1, 1, 1, 1, 1, 1, 1], 0.5);
    expect(s[7]).toBeGreaterThan(0.98);
  });
});

describe("tableRows", () => {
  it("keeps every row of a short series, newest first", () => {
    expect(tableRows(3)).toEqual([2, 1, 0]);
    expect(tableRows(0)).toEqual([]);
  });
  it("thins a long one and keeps the newest", () => {
    const rows = tableRows(1000, 100);
    expect(rows.length).toBe(100);
    expect(rows[0]).toBe(999);
    expect(new Set(rows).size).toBe(100);
  });
});

describe("ranges and colours", () => {
  it("gives a flat line room and reaches the limits asked for", () => {
    const [lo, hi] = yRange(5, 5, undefined, undefined);
    expect(lo).toBeLessThan(5);
    expect(hi).toBeGreaterThan(5);
    const [a, b] = yRange(0.2, 0.6, 0, 1);
    expect(a).toBe(0);
    expect(b).toBeGreaterThanOrEqual(1);
  });
  it("draws nothing from one point", () => {
    expect(sparkPath([0.5])).toBe("");
    expect(sparkPath([0.5, NaN, 0.6])).toMatch(/^M.*L/);
  });
  it("clamps the heat scale", () => {
    expect(heatColour(-1, false)).toBe(heatColour(0, false));
    expect(heatColour(2, true)).toBe(heatColour(1, true));
  });
});

describe("many curves", () => {
  it("are put over the union of their x", () => {
    const j = joinAll([
      { x: [1, 3], columns: [[10, 30]] },
      { x: [2, 3], columns: [[2, 3]] },
    ]);
    expect([...j.x]).toEqual([1, 2, 3]);
    expect(j.columns.map((c) => [...c])).toEqual([
      [10, NaN, 30],
      [NaN, 2, 3],
    ]);
  });
  it("become a band of percentiles, each curve within its own range", () => {
    const curves = [0, 1, 2, 3, 4].map((y) => ({ x: [0, 10], values: [y, y] }));
    const b = cohortBand([...curves, { x: [8, 10], values: [100, 100] }], 11);
    expect(b.columns[1]?.[0]).toBe(2);
    expect(b.columns[2]?.[5]).toBeCloseTo(3.8);
    expect(b.columns[1]?.[10]).toBe(2.5);
    expect(cohortBand([], 5).x.length).toBe(0);
  });
  it("have quantiles between neighbours", () => {
    expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
    expect(quantile([], 0.5)).toBeNaN();
  });
});
