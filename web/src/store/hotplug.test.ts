import { describe, expect, it } from "vitest";
import { BoardStatus, type Board } from "../api/types";
import { boardChange } from "./hotplug";

const board = (status: BoardStatus): Board =>
  ({
    uid: new Uint8Array([1]),
    name: "m4-1",
    core: "cortex-m4",
    fwVersion: "0.1.0",
    status,
  }) as Board;
const { ONLINE, OFFLINE, SUSPECT, BUSY } = BoardStatus;

describe("boardChange", () => {
  it("says that a board came, went and came back", () => {
    expect(boardChange(undefined, board(ONLINE))).toBe("New board m4-1: cortex-m4, firmware 0.1.0");
    expect(boardChange(board(SUSPECT), board(OFFLINE))).toBe("m4-1 went offline");
    expect(boardChange(board(OFFLINE), board(ONLINE))).toBe("m4-1 is back online");
  });
  it("keeps quiet about the rest", () => {
    expect(boardChange(undefined, board(OFFLINE))).toBe("");
    expect(boardChange(board(ONLINE), board(ONLINE))).toBe("");
    expect(boardChange(board(ONLINE), board(SUSPECT))).toBe("");
    expect(boardChange(board(ONLINE), board(BUSY))).toBe("");
  });
});
