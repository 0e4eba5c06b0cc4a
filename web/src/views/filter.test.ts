import { describe, expect, it } from "vitest";
import { parseFilter } from "./filter";

const board = new Map([
  ["name", "m33-1"],
  ["core", "cortex-m33"],
  ["status", "online"],
  ["label.site", "lab"],
]);

describe("parseFilter", () => {
  it.each([
    ["", true],
    ["m33", true],
    ["M33 LAB", true],
    ["m4", false],
    ["-m4", true],
    ["-m33", false],
    ["core=cortex-m33", true],
    ["core=cortex", false],
    ["site=lab", true],
    ["label.site=lab", true],
    ["site!=lab", false],
    ["site!=bench", true],
    ["rack=1", false],
    ["-", true],
  ])("%s -> %s", (text, expected) => {
    expect(parseFilter(text)(board)).toBe(expected);
  });
});
