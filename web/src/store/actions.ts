// What a person can ask the daemon to do. Each is one call with a request_id, and ends in a notice;
// the new state arrives by the stream like everybody else's.
import { signal } from "@preact/signals";
import { fromHex, newRequestId, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { describeError } from "../api/errors";
import type { Board, Job, Port, Run } from "../api/types";
import { boards, jobs, ports, runs } from "./fleet";
import { notices, type NoticeAction } from "./notices";

/// What is being asked for right now, e.g. "pause/<run>": its button waits.
export const pending = signal<ReadonlySet<string>>(new Set());

/// One call with a request_id of its own; `what` completes "Could not …", `done` ("": nothing) is what is told, with
/// what takes it back.
export async function act(
  key: string,
  what: string,
  done: string | (() => string),
  call: (requestId: string) => Promise<void>,
  undo?: NoticeAction,
): Promise<boolean> {
  if (pending.value.has(key)) return false;
  pending.value = new Set(pending.value).add(key);
  try {
    await call(newRequestId());
    const said = typeof done === "string" ? done : done();
    if (said !== "") notices.done(said, undo);
    return true;
  } catch (error) {
    notices.fail(describeError(error, `Could not ${what}`));
    return false;
  } finally {
    const left = new Set(pending.value);
    left.delete(key);
    pending.value = left;
  }
}

const options = { timeoutMs: kCallTimeoutMs };
/// What people call a board: its name, else the end of its uid.
export const label = (board: Board): string => board.name || toHex(board.uid).slice(-8);

export function identify(board: Board): Promise<boolean> {
  const name = label(board);
  return act(
    `identify/${toHex(board.uid)}`,
    `identify board ${name}`,
    `${name} blinks for 10 s`,
    async (requestId) => {
      await clients().fleet.identifyBoard({ requestId, uid: board.uid, seconds: 10 }, options);
    },
  );
}

export function rename(board: Board, name: string, place: string): Promise<boolean> {
  return act(
    `rename/${toHex(board.uid)}`,
    `rename board ${label(board)}`,
    `${label(board)} is now ${name}`,
    async (requestId) => {
      const answer = await clients().fleet.updateBoard(
        { requestId, uid: board.uid, etag: board.meta?.etag ?? 0n, name, place },
        options,
      );
      if (answer.board !== undefined) boards.set(toHex(board.uid), answer.board);
    },
  );
}

export function adopt(port: Port): Promise<boolean> {
  return act(
    `adopt/${port.path}`,
    `adopt port ${port.path}`,
    `${port.path} is adopted`,
    async (requestId) => {
      const answer = await clients().fleet.adoptPort({ requestId, path: port.path }, options);
      if (answer.port !== undefined) ports.set(port.path, answer.port);
    },
  );
}

/// Any place, also one that is not there yet; baud 0: tried one by one; uid "": any board.
export function adoptPlace(path: string, baud: number, uidHex: string): Promise<boolean> {
  return act(
    `adopt/${path}`,
    `adopt port ${path}`,
    `${path} is adopted`,
    async (requestId) => {
      const request = { requestId, path, baud, expectUid: fromHex(uidHex) };
      const answer = await clients().fleet.adoptPort(request, options);
      if (answer.port !== undefined) ports.set(path, answer.port);
    },
    { label: "Undo", run: () => void releasePath(path) },
  );
}

const releasePath = (path: string, undo?: NoticeAction): Promise<boolean> =>
  act(
    `release/${path}`,
    `release port ${path}`,
    `${path} is released`,
    async (requestId) => {
      const answer = await clients().fleet.releasePort({ requestId, path }, options);
      if (answer.port !== undefined) ports.set(path, answer.port);
    },
    undo,
  );

/// The daemon closes it and opens it no more.
export const release = ({ path, baud, expectUid }: Port): Promise<boolean> =>
  releasePath(path, {
    label: "Undo",
    run: () => void adoptPlace(path, baud, toHex(expectUid)),
  });

type RunVerb = "pause" | "resume" | "cancel";
export function changeRun(run: Run, verb: RunVerb, runLabel: string): Promise<boolean> {
  return act(`${verb}/${toHex(run.id)}`, `${verb} run ${runLabel}`, "", async (requestId) => {
    const request = { requestId, id: run.id };
    const { run: api } = clients();
    const answer =
      verb === "pause"
        ? await api.pauseRun(request, options)
        : verb === "resume"
          ? await api.resumeRun(request, options)
          : await api.cancelRun(request, options);
    if (answer.run !== undefined) runs.set(toHex(run.id), answer.run);
  });
}

export function replay(run: Run, runLabel: string): Promise<boolean> {
  return act(
    `replay/${toHex(run.id)}`,
    `replay run ${runLabel}`,
    `Replay of ${runLabel} started on the host`,
    async (requestId) => {
      const answer = await clients().run.replayRun({ requestId, runId: run.id }, options);
      if (answer.job !== undefined) jobs.set(toHex(answer.job.id), answer.job);
    },
  );
}

export function cancelJob(job: Job): Promise<boolean> {
  return act(
    `cancel-job/${toHex(job.id)}`,
    `cancel job ${toHex(job.id).slice(0, 8)}`,
    "",
    async (requestId) => {
      const answer = await clients().job.cancelJob({ requestId, id: job.id }, options);
      if (answer.job !== undefined) jobs.set(toHex(job.id), answer.job);
    },
  );
}
