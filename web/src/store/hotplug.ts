import { toHex } from "../api/bytes";
import { BoardStatus, type Board, type Event } from "../api/types";
import { boards } from "./fleet";
import { fleetKnown } from "./link";
import { notices } from "./notices";

/// Says that a board came, came back or went. Called before the events are put into the tables.
export function announceBoards(events: readonly Event[]): void {
  if (!fleetKnown.value) return;
  for (const { what } of events) {
    if (what.case !== "board") continue;
    const text = boardChange(boards.peek(toHex(what.value.uid)), what.value);
    if (text !== "") notices.done(text);
  }
}

const isThere = (s: BoardStatus): boolean => s === BoardStatus.ONLINE || s === BoardStatus.BUSY;

export function boardChange(before: Board | undefined, after: Board): string {
  const name = after.name || toHex(after.uid).slice(-8);
  if (before === undefined) {
    return isThere(after.status)
      ? `New board ${name}: ${after.core}, firmware ${after.fwVersion}`
      : "";
  }
  if (before.status === after.status) return "";
  if (after.status === BoardStatus.OFFLINE) return `${name} went offline`;
  if (after.status === BoardStatus.QUARANTINED)
    return `${name} is quarantined: another board has its uid`;
  const wasAway =
    before.status === BoardStatus.OFFLINE || before.status === BoardStatus.UNSPECIFIED;
  return wasAway && isThere(after.status) ? `${name} is back online` : "";
}
