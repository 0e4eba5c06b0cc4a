import { signal } from "@preact/signals";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BoardStatus, RunState, type Board, type Run } from "../api/types";
import { boards, runs } from "../store/fleet";

vi.stubGlobal("location", { hash: "" });
vi.stubGlobal("window", { addEventListener: () => {} });
const { fleetCounts, olderThan, shownBoards } = await import("./fleet-list");

const uid = (n: number) => new Uint8Array([n]);
const board = (n: number, name: string, more: Partial<Board> = {}): Board =>
  ({
    uid: uid(n),
    name,
    place: "",
    core: "host",
    boardType: "sim",
    fwVersion: "0.2.0",
    labels: {},
    runId: new Uint8Array(),
    modelHash: new Uint8Array(),
    status: BoardStatus.ONLINE,
    ...more,
  }) as Board;
const run = (n: number, of: number, state: RunState): Run =>
  ({ id: uid(n), state, spec: { boardUid: uid(of) } }) as Run;

beforeEach(() => {
  vi.useFakeTimers();
  boards.clear();
  runs.clear();
  boards.set("02", board(2, "sim-10"));
  boards.set("01", board(1, "sim-2"));
  boards.set("03", board(3, "sim-1", { status: BoardStatus.OFFLINE, fwVersion: "0.1.9" }));
});
afterEach(() => vi.useRealTimers());
const query = (text: string) => signal(new URLSearchParams(text));

describe("shownBoards", () => {
  it("sorts by the numbers in names, and by status", () => {
    expect(shownBoards(query("")).value).toEqual(["03", "01", "02"]);
    expect(shownBoards(query("sort=status")).value.at(-1)).toBe("03");
  });

  it("filters by words, status and what is wrong", () => {
    runs.set("21", run(0x21, 2, RunState.FAILED));
    expect(shownBoards(query("q=-sim-1")).value).toEqual(["01"]);
    expect(shownBoards(query("status=offline")).value).toEqual(["03"]);
    expect(shownBoards(query("only=outdated")).value).toEqual(["03"]);
    expect(shownBoards(query("only=failed")).value).toEqual(["02"]);
    expect(shownBoards(query("q=run=failed")).value).toEqual(["02"]);
  });

  it("stays the same array while nothing moves, and moves within a second when something does", () => {
    const list = shownBoards(query("sort=status"));
    const before = list.value;
    vi.advanceTimersByTime(2000);
    boards.set("01", board(1, "sim-2", { place: "rack 1" }));
    expect(list.value).toBe(before);
    boards.set("01", board(1, "sim-2", { status: BoardStatus.OFFLINE }));
    vi.advanceTimersByTime(1000);
    expect(list.value).toEqual(["02", "03", "01"]);
  });
});

describe("fleetCounts", () => {
  it("counts boards by status, failed and outdated ones, and active runs", () => {
    runs.set("21", run(0x21, 2, RunState.FAILED));
    runs.set("31", run(0x31, 1, RunState.RUNNING));
    const { chips, only, activeRuns } = fleetCounts.value;
    expect(chips).toEqual([2, 0, 0, 1, 0]);
    expect(only).toEqual([1, 1]);
    expect(activeRuns).toBe(1);
  });
});

describe("olderThan", () => {
  it("compares numbers, not letters", () => {
    expect(olderThan("0.9.0", "0.10.0")).toBe(true);
    expect(olderThan("1.0", "0.10.0")).toBe(false);
    expect(olderThan("0.1.0", "0.1.0")).toBe(false);
  });
});
