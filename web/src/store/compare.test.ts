import { describe, expect, it } from "vitest";
import type { EpochResult, Run } from "../api/types";
import { axisOf, outliers } from "./compare";

const run = {
  startTimeUs: 10_000_000n,
  trainSamples: 20,
  effective: { batch: 8 },
} as unknown as Run;
const epochs = [
  { step: 3, timeUs: 16_000_000n },
  { step: 6, timeUs: 18_000_000n },
] as unknown as EpochResult[];

describe("axisOf", () => {
  it("counts epochs with their short last batch", () => {
    expect(axisOf("epoch", run, epochs)(6)).toBe(2);
  });
  it("puts steps between the ends of epochs evenly in time, and goes on at the last pace", () => {
    const at = axisOf("relative", run, epochs);
    expect([at(0), at(1.5), at(3), at(6)]).toEqual([0, 3, 6, 8]);
    expect(at(9)).toBe(10);
    expect(axisOf("wall", run, epochs)(3)).toBe(16);
  });
  it("knows no time of a run that has not begun", () => {
    expect(axisOf("relative", { ...run, startTimeUs: 0n }, [])(5)).toBeNaN();
    expect(axisOf("epoch", { ...run, effective: undefined } as unknown as Run, [])(5)).toBeNaN();
  });
});

describe("outliers", () => {
  it("names the one that stands apart", () => {
    expect(outliers([0.7, 0.71, 0.69, 0.72, 0.1])).toEqual([false, false, false, false, true]);
  });
  it("says nothing of few, of equals, or of what is not known", () => {
    expect(outliers([0.7, 0.1, 0.9])).toEqual([false, false, false]);
    expect(outliers([0.5, 0.5, 0.5, 0.5, 0.5])).not.toContain(true);
    expect(outliers([NaN, 0.7, 0.71, 0.69, 0.72, 0.1])[0]).toBe(false);
  });
});
