import { effect } from "@preact/signals";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Table } from "./table";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("Table", () => {
  it("draws one row for a change of one row", () => {
    const table = new Table<number>();
    table.set("a", 1);
    table.set("b", 1);
    const seen: string[] = [];
    effect(() => void seen.push(`a${table.get("a").value}`));
    effect(() => void seen.push(`b${table.get("b").value}`));
    table.set("b", 2);
    expect(seen).toEqual(["a1", "b1", "b2"]);
  });

  it("tells keys at once, also to who waits for one", () => {
    const table = new Table<number>();
    const seen: unknown[] = [];
    effect(() => void seen.push(table.get("late").value));
    table.set("late", 7);
    table.delete("late");
    expect(seen).toEqual([undefined, 7, undefined]);
    expect(table.keys.value).toEqual([]);
  });

  it("moves the whole at once after a pause, then once a second with the newest", () => {
    const table = new Table<number>();
    table.set("a", 0);
    vi.advanceTimersByTime(1000);
    const sums: number[] = [];
    effect(() => void sums.push(table.all().reduce((s, v) => s + v, 0)));
    for (let i = 1; i <= 50; i++) table.set("a", i);
    expect(sums).toEqual([0, 1]);
    vi.advanceTimersByTime(1000);
    expect(sums).toEqual([0, 1, 50]);
    vi.advanceTimersByTime(5000);
    expect(sums).toEqual([0, 1, 50]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
