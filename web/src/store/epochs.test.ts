import { describe, expect, it } from "vitest";
import type { EpochResult } from "../api/types";
import { mergeEpochs, thinEpochs } from "./epochs";

const epoch = (n: number, alarms = 0): EpochResult =>
  ({ epoch: n, step: (n + 1) * 50, alarms }) as EpochResult;
const numbers = (list: readonly EpochResult[]) => list.map((e) => e.epoch);

describe("mergeEpochs", () => {
  it("keeps the order and the newer result of the same epoch", () => {
    const list = mergeEpochs([epoch(0), epoch(2)], [epoch(1), epoch(2, 4), epoch(5)]);
    expect(numbers(list)).toEqual([0, 1, 2, 5]);
    expect(list[2]?.alarms).toBe(4);
    expect(numbers(mergeEpochs(list, [epoch(6)]))).toEqual([0, 1, 2, 5, 6]);
    expect(mergeEpochs(list, [epoch(5, 9)]).at(-1)?.alarms).toBe(9);
  });
});

describe("thinEpochs", () => {
  it("halves until there is room, the newest always among them", () => {
    const all = Array.from({ length: 4000 }, (_, i) => epoch(i));
    const kept = thinEpochs(all, 1000);
    expect(kept.length).toBe(1000);
    expect(kept.at(-1)).toBe(all.at(-1));
    expect(numbers(kept.slice(0, 2))).toEqual([3, 7]);
    expect(thinEpochs(kept, 1000)).toBe(kept);
  });
});
