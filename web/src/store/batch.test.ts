import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Run } from "../api/types";
import { batchOf, batchUnknown, epochOrder } from "./batch";

interface OrderCase {
  epoch: number;
  order_seed: number;
  p: number[];
}
const golden = new URL("../../../tests/golden/rules/rules.json", import.meta.url);
const cases = (JSON.parse(readFileSync(golden, "utf8")) as { order: OrderCase[] }).order;

const run = (more: object = {}): Run =>
  ({
    trainSamples: 20,
    stepsTotal: 9,
    effective: { batch: 8, orderSeed: 1 },
    spec: {},
    ...more,
  }) as Run;

describe("epochOrder", () => {
  it("is the order of boards and host", () => {
    expect(cases.length).toBeGreaterThan(5);
    for (const c of cases) expect([...epochOrder(c.order_seed, c.epoch, c.p.length)]).toEqual(c.p);
  });
});

describe("batchOf", () => {
  it("cuts the epoch's order into batches, the last one short", () => {
    const [first, second] = [0, 1].map((e) => [...epochOrder(1, e, 20)]);
    expect(batchOf(run(), 1)).toEqual({ epoch: 0, samples: first?.slice(0, 8) });
    expect(batchOf(run(), 3)).toEqual({ epoch: 0, samples: first?.slice(16) });
    expect(batchOf(run(), 4)).toEqual({ epoch: 1, samples: second?.slice(0, 8) });
  });
  it("knows no step outside the run", () => {
    expect(batchOf(run(), 0)).toBeNull();
    expect(batchOf(run(), 10)).toBeNull();
    expect(batchOf(run({ effective: undefined }), 1)).toBeNull();
  });
});

describe("batchUnknown", () => {
  it("says why", () => {
    expect(batchUnknown(run(), 20)).toBe("");
    expect(batchUnknown(run(), 21)).toContain("21 training samples now, the run had 20");
    expect(batchUnknown(run(), undefined)).toContain("no longer here");
    expect(batchUnknown(run({ spec: { captured: true } }), 20)).toContain("never left");
    expect(batchUnknown(run({ trainSamples: 0 }), 20)).toContain("not begun");
  });
});
