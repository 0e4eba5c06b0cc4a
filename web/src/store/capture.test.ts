import { describe, expect, it } from "vitest";
import { stepBytes, windowValues } from "./capture";
import { lengthOf, optionsOf, kNewImport } from "./datasets";

describe("steps of a fed sensor", () => {
  it("are little-endian, a line each", () => {
    expect([...stepBytes("1, -2\n300 4\n", 2, 3)]).toEqual([1, 0, 254, 255, 44, 1, 4, 0]);
    expect([...stepBytes("255", 1, 2)]).toEqual([255]);
  });
  it("name the step that does not fit", () => {
    expect(() => stepBytes("1 2\n3", 2, 3)).toThrow("step 2 has 1 values");
    expect(() => stepBytes("128", 1, 1)).toThrow("-128 to 127");
    expect(() => stepBytes("1.5", 1, 3)).toThrow("step 1: 1.5");
  });
  it("come back as they were", () => {
    expect(windowValues(stepBytes("-5\n700", 1, 3), 3)).toEqual([-5, 700]);
    expect(windowValues(Uint8Array.of(255), 1)).toEqual([-1]);
    expect(windowValues(Uint8Array.of(255), 2)).toEqual([255]);
  });
});

describe("options of an import", () => {
  it("tell seconds from steps", () => {
    expect(lengthOf("1.5s")).toEqual({ seconds: 1.5, steps: 0 });
    expect(lengthOf("104")).toEqual({ seconds: 0, steps: 104 });
    expect(lengthOf("")).toEqual({ seconds: 0, steps: 0 });
  });
  it("read lists", () => {
    const o = optionsOf({
      ...kNewImport,
      split: "80,10,10",
      resize: "14x14",
      targetColumns: "a, b",
    });
    expect([o.split, o.resize, o.targetColumns]).toEqual([
      [80, 10, 10],
      [14, 14],
      ["a", "b"],
    ]);
  });
});
