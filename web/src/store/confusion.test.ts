import { describe, expect, it } from "vitest";
import type { Dataset } from "../api/types";
import { int8s, perClass, worstPairs } from "./confusion";
import { indexInDataset, splitSize } from "./samples";

describe("confusion", () => {
  const matrix = [8, 2, 0, 1, 9, 0, 4, 0, 0];
  it("gives recall, precision and f1 of each class", () => {
    const [a, b, c] = perClass(matrix, 3);
    expect(a).toMatchObject({ total: 10, right: 8, said: 13, recall: 0.8, precision: 8 / 13 });
    expect(b?.f1).toBeCloseTo(18 / 21);
    expect([c?.recall, c?.precision, c?.f1]).toEqual([0, NaN, 0]);
  });
  it("has no figures of a class without samples", () => {
    const [, b] = perClass([1, 0, 0, 0], 2);
    expect([b?.recall, b?.precision, b?.f1]).toEqual([NaN, NaN, NaN]);
  });
  it("names what is mixed up most", () => {
    expect(worstPairs(matrix, 3, 2)).toEqual([
      { label: 2, said: 0, count: 4 },
      { label: 0, said: 1, count: 2 },
    ]);
  });
  it("reads outputs as signed bytes", () => {
    expect([...int8s(Uint8Array.of(0, 127, 128, 255))]).toEqual([0, 127, -128, -1]);
  });
});

describe("samples", () => {
  it("counts train first, then held-out, then test", () => {
    const d = { train: 10, heldout: 4, test: 3 } as Dataset;
    expect(["train", "heldout", "test"].map((s) => indexInDataset(d, s, 1))).toEqual([1, 11, 15]);
    expect(splitSize(d, "heldout")).toBe(4);
  });
});
