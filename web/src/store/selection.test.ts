import { describe, expect, it } from "vitest";
import { Selection } from "./selection";

describe("Selection", () => {
  const rows = ["a", "b", "c", "d", "e"];
  it("ticks everything between two rows, either way", () => {
    const s = new Selection();
    s.toggle("d", true);
    s.toggle("b", true, rows);
    expect([...s.keys.value].sort()).toEqual(["b", "c", "d"]);
    s.toggle("c", false);
    expect(s.has("c")).toBe(false);
  });
  it("ticks one row where the one before is not shown any more", () => {
    const s = new Selection();
    s.toggle("z", true);
    s.toggle("b", true, rows);
    expect([...s.keys.value].sort()).toEqual(["b", "z"]);
    s.clear();
    expect(s.keys.value.size).toBe(0);
  });
});
