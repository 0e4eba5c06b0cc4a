// Boards in a lab: whose they are for now, out of service, their power. Each is one call, and ends in a notice.
import { signal } from "@preact/signals";
import { toHex } from "../api/bytes";
import { kCallTimeoutMs } from "../api/clients";
import { lateClients } from "../api/late-clients";
import { currentOwner, setOwner } from "../api/owner";
import type { Board } from "../api/types";
import { act, label } from "./actions";
import { boards } from "./fleet";

const kPowerTimeoutMs = 310_000; // the longest that a profile may take

/// Whom this browser works for; empty: who the daemon takes it for.
export const owner = signal(currentOwner());
export function workFor(name: string): void {
  owner.value = name.trim();
  setOwner(owner.value);
}

const options = { timeoutMs: kCallTimeoutMs };
const keep = (board: Board | undefined): void => {
  if (board !== undefined) boards.set(toHex(board.uid), board);
};

export function reserve(
  board: Board,
  durationS: number,
  note: string,
  takeOver: boolean,
): Promise<boolean> {
  return act(
    `reserve/${toHex(board.uid)}`,
    `reserve board ${label(board)}`,
    `${label(board)} is reserved`,
    async (requestId) => {
      const ask = { requestId, uid: board.uid, durationS, note, takeOver };
      keep((await lateClients().lab.reserveBoard(ask, options)).board);
    },
  );
}

export function extendReservation(board: Board, durationS: number): Promise<boolean> {
  return act(
    `reserve/${toHex(board.uid)}`,
    `extend the reservation of ${label(board)}`,
    `The reservation of ${label(board)} is longer`,
    async (requestId) => {
      const ask = { requestId, uid: board.uid, durationS };
      keep((await lateClients().lab.extendBoard(ask, options)).board);
    },
  );
}

export function releaseBoard(board: Board, takeOver: boolean): Promise<boolean> {
  return act(
    `reserve/${toHex(board.uid)}`,
    `release board ${label(board)}`,
    `${label(board)} is free`,
    async (requestId) => {
      const ask = { requestId, uid: board.uid, takeOver };
      keep((await lateClients().lab.releaseBoard(ask, options)).board);
    },
  );
}

export function setMaintenance(board: Board, on: boolean, note: string): Promise<boolean> {
  return act(
    `maintenance/${toHex(board.uid)}`,
    `${on ? "take" : "put"} board ${label(board)} ${on ? "out of" : "into"} service`,
    on ? `${label(board)} is in maintenance` : `${label(board)} is in service`,
    async (requestId) => {
      const ask = { requestId, uid: board.uid, on, note };
      keep((await lateClients().lab.setMaintenance(ask, options)).board);
    },
  );
}

export function powerCycle(board: Board): Promise<boolean> {
  let said = "";
  return act(
    `power/${toHex(board.uid)}`,
    `switch the power of ${label(board)}`,
    () => said,
    async (requestId) => {
      const answer = await lateClients().lab.powerCycleBoard(
        { requestId, uid: board.uid },
        { timeoutMs: kPowerTimeoutMs },
      );
      const result = answer.result;
      if (result?.ok === false) throw new Error(result.reason?.text ?? "the command failed");
      said = `The power of ${label(board)} went off and on`;
    },
  );
}
