import { describe, expect, it } from "vitest";
import { largest } from "./heatmap";
import { histogram } from "./histogram";
import { padded, roundTicks } from "./scatter";

describe("histogram", () => {
  it("counts every integer once, in bins of whole width", () => {
    const h = histogram([-3, -1, 0, 0, 2, 9], 4, 0);
    expect(h.counts.reduce((a, b) => a + b)).toBe(6);
    expect([h.min, h.max, h.width]).toEqual([-3, 9, 4]);
    expect(h.counts).toEqual([2, 3, 0, 1]); // -4..-1, 0..3, 4..7, 8..11
  });
  it("tells how many stand at the limit", () => {
    expect(histogram([-127, 127, 126, 0], 8, 127).atLimit).toBe(2);
    expect(histogram([-127, 127], 8, 0).atLimit).toBe(0);
  });
  it("takes one value and none", () => {
    expect(histogram([5, 5], 64, 0)).toMatchObject({ first: 5, counts: [2], deviation: 0 });
    expect(histogram([], 64, 0).total).toBe(0);
  });
});

describe("ticks of a scatter", () => {
  it("are round and inside", () => {
    expect(roundTicks(0.27, 1.03)).toEqual([0.4, 0.6, 0.8, 1]);
    expect(roundTicks(1, 1)).toEqual([1]);
  });
  it("have room also where all values are one", () => {
    expect(padded([3, 3])).toEqual([2.7, 3.3]);
    expect(padded([0])).toEqual([-0.5, 0.5]);
  });
});

describe("largest", () => {
  it("keeps a spike among the steps of one pixel", () => {
    expect(largest([1, 9, NaN, 2], 0, 4)).toBe(9);
    expect(largest([NaN], 0, 1)).toBeNaN();
    expect(largest([1, 2], 1, 99)).toBe(2);
  });
});
