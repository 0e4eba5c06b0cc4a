import { describe, expect, it } from "vitest";
import { samplesOfStep, StepSeries, toPoint, type StepPoint } from "./series";

const point = (step: number, loss = step): StepPoint => ({
  step,
  loss,
  accuracy: 0.5,
  shifts: [step, step + 1],
  bits: [1, 2],
  ks: [8, 8],
});

describe("StepSeries", () => {
  it("keeps columns in step order", () => {
    const s = new StepSeries(16);
    [3, 1, 2, 5, 4].forEach((n) => s.add(point(n)));
    expect([...s.column("step")]).toEqual([1, 2, 3, 4, 5]);
    expect([...s.layerColumn("shift", 1)]).toEqual([2, 3, 4, 5, 6]);
  });

  it("forgets the steps that the store has told", () => {
    const s = new StepSeries(8);
    [1, 2, 3, 4].forEach((n) => s.add(point(n)));
    s.dropThrough(2);
    expect([...s.column("step")]).toEqual([3, 4]);
    s.dropThrough(9);
    expect(s.length).toBe(0);
    s.add(point(11));
    expect([...s.column("loss")]).toEqual([11]);
  });

  it("replaces a step that comes again", () => {
    const s = new StepSeries(16);
    [1, 2, 3].forEach((n) => s.add(point(n)));
    s.add(point(2, 99));
    expect(s.length).toBe(3);
    expect([...s.column("loss")]).toEqual([1, 99, 3]);
  });

  it.each([15, 16, 17, 1000])(
    "holds at most its capacity after %i steps, whole run in view",
    (n) => {
      const s = new StepSeries(16);
      for (let i = 1; i <= n; i++) s.add(point(i));
      expect(s.length).toBeLessThanOrEqual(16);
      expect(s.lastStep).toBe(n);
      const steps = [...s.column("step")];
      expect(steps[0]).toBe(1);
      // Evenly: no gap is more than a quarter of the run.
      expect(Math.max(...steps.map((v, i) => v - (steps[i - 1] ?? 0)))).toBeLessThanOrEqual(
        Math.max(1, n / 4),
      );
      expect([...steps].sort((a, b) => a - b)).toEqual(steps);
      expect([...s.layerColumn("shift", 0)]).toEqual(steps);
    },
  );

  it("takes an old step into a full series in order", () => {
    const s = new StepSeries(8);
    for (let i = 1; i <= 16; i += 2) s.add(point(i));
    s.add(point(4));
    const steps = [...s.column("step")];
    expect(steps).toContain(4);
    expect([...steps].sort((a, b) => a - b)).toEqual(steps);
  });

  it("leaves a hole where a layer was not reported", () => {
    const s = new StepSeries(8);
    s.add(point(1));
    s.add({ ...point(2), shifts: [7], bits: [1], ks: [8] });
    expect(s.layerColumn("shift", 1)[1]).toBeNaN();
    expect(s.layerColumn("shift", 0)[1]).toBe(7);
  });
});

describe("toPoint", () => {
  it("takes the batch's size from the run where the board does not tell it", () => {
    const shape = { batch: 8, trainSamples: 20 };
    expect([0, 1, 2, 3, 5].map((s) => samplesOfStep(s, shape))).toEqual([8, 8, 4, 8, 4]);
    expect(samplesOfStep(1, { batch: 8, trainSamples: 16 })).toBe(8);
    const frame = { step: 2, correct: 3, loss: { sum: 40n, exp2: 0, count: 0 }, layers: [] };
    expect(toPoint(frame as never, shape)).toMatchObject({ step: 3, accuracy: 0.75, loss: 10 });
    const unknown = toPoint(frame as never, { batch: 0, trainSamples: 0 });
    expect([unknown.accuracy, unknown.loss]).toEqual([NaN, NaN]);
  });
});
